"""Takes a model's chatter off a caption: thoughts, introductions, alternatives, quotes, marks that no network renders."""

import json

import regex

from platforms.cutting import tokens

LONGEST = 80_000        # characters that are looked at; the largest limit of a network is 63,206
ROUNDS = 5              # of unwrapping: a quote inside a fence behind an introduction is three
PAIRS = {'"': '"', "'": "'", "“": "”", "”": "”", "„": "“", "«": "»", "»": "«", "‹": "›", "‘": "’", "「": "」", "『": "』", "`": "`"}

# Control characters, those that turn the direction of all that follows, and three that X refuses.
UNSEEN = regex.compile(r"[\p{Cc}--\t\n]|[\u202A-\u202E\uFEFF\uFFFE\uFFFF]", regex.VERSION1)
THOUGHTS = "think|thinking|thought|thoughts|reasoning|reflection"
OPENED, CLOSED_AGAIN = rf"(?:<(?:{THOUGHTS})>|\[THINK\])", rf"(?:</(?:{THOUGHTS})>|\[/THINK\])"
THOUGHT = regex.compile(rf"\A(?:\s*{OPENED}.*?(?:{CLOSED_AGAIN}|\Z))+", regex.IGNORECASE | regex.DOTALL)
UNOPENED = regex.compile(rf"\A(?:(?!{OPENED}).)*?{CLOSED_AGAIN}", regex.IGNORECASE | regex.DOTALL)
# What a chat is made of for the model itself, such as <|im_end|>; behind it a turn begins that is not the caption's.
CONTROL = regex.compile(r"<\|[\w-]{1,30}\|>|<end_of_turn>|</s>\s*\Z")
BEFORE_IT = regex.compile(r"\A\s*(?:<\|[\w-]{1,30}\|>(?:assistant\b)?\s*)+")
FENCED = regex.compile(r"```\w*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", regex.DOTALL)

# What models say before a caption, by language. It must plainly speak of the caption, so that "Here is what we baked:" stays.
SAID = r"[^\n:：]{0,120}"
OURS = r"(?![^\n:：]*\b(?:our|my|unser\w*|mein\w*|notre|nos|mon|nuestr\w+|noss\w+|meus?|minhas?|" \
       r"what|was|ce que|lo que|o que)\b)"
FOR = r"(?:\s+(?:for|in|with|about|on|that|under|within|you|ideas|options|" \
      rf"für|zu|mit|auf|pour|sur|avec|para|sobre|com|con|en)\b{SAID})?"
WELL = r"(?:¡?(?:sure|certainly|of course|absolutely|great|okay|gerne|natürlich|klar|bien sûr|avec plaisir|claro|" \
       r"por supuesto|com certeza|بالتأكيد|بالطبع|ज़रूर|जरूर|बिल्कुल|はい|もちろん)[^\n:!.,、。،।]{0,40}[!.,:、。،।]+\s*)"
HERE = r"(?:here(?:['’]s| is| are| you go| you are)|hier (?:ist|sind|kommt|kommen)|voici|aquí (?:tienes|está|están|va|van)|" \
       r"aqui (?:está|estão|vai|vão)|segue)"
LABEL = "(?:captions?|tweets?|bildunterschrift(?:en)?|légendes?|leyendas?|pies? de foto|legendas?)"
FARTHER = "(?:キャプション|投稿文|التعليق|تعليق|منشور|कैप्शन)"
KINDS = "(?:posts?|versions?|options?|drafts?|beitrag|beiträge|vorschläge|publications?|propositions?|" \
        "publicacion(?:es)?|publicación|" \
        "versión|versiones|opciones|textos?|texte?|versão|versões|opções|publicação)"
NETWORK = r"(?:x|twitter|instagram|tiktok|youtube|linkedin|facebook|pinterest|bluesky|threads|mastodon|google)"
SPEAKS = (
    rf"{HERE}{OURS}[^\n:：]{{0,60}}?\b{LABEL}{FOR}", rf"(?:{NETWORK}[ -]?)?{LABEL}(?:\s+(?:for|für|pour|para)\s+{NETWORK})?",
    FARTHER, r"(?:こちらが|以下が|以下は)[^\n:：。]{0,40}(?:キャプション|投稿文|文案)[^\n:：。]{0,12}",
    rf"(?:إليك|إليكم|هذا هو|هذه هي|فيما يلي){SAID}(?:تعليق|كابشن){SAID}",
    rf"(?:यहाँ|यहां|यह रहा|ये रहा|लीजिए|पेश है){SAID}कैप्शन{SAID}",
)
# These may speak of something else, and count only as a line of their own.
NEW = r"(?![^\n:：]*\b(?:new|neu\w*|nouve\w+|nuev\w+|nov[oa]s?|of|von)\b)"
SPEAKS_ALONE = (rf"{HERE}{OURS}{NEW}[^\n:：]{{0,40}}?\b{KINDS}{FOR}",
                rf"{NETWORK}[ -]{KINDS}", rf"(?<=[!.,:]\s*){HERE}{OURS}{SAID}", r"here you go")
MARKS = r"[*_#> \t]*"       # of markdown around such a line
CLOSED = r"(?:[*_]+(?=\s))?\s*"
LEAD = regex.compile(rf"\A{MARKS}{WELL}?(?:(?:{'|'.join(SPEAKS)}){MARKS}[:：]{CLOSED}|"
                     rf"(?:{'|'.join(SPEAKS_ALONE)}){MARKS}[:：][*_ \t]*\n\s*)", regex.IGNORECASE)
SEVERAL = regex.compile(r"captions|tweets|posts|versions|options|drafts|vorschläge|beiträge|légendes|publications|propositions|"
                        r"versiones|opciones|textos|publicaciones|leyendas|versões|opções|legendas|bildunterschriften",
                        regex.IGNORECASE)
WELL_ALONE = regex.compile(r"\A(?:sure(?: thing)?|certainly|gerne|avec plaisir|con gusto|com prazer)\s?[!.]\s*\n",
                           regex.IGNORECASE)

# A second caption begins where a line says so; this is looked for only where the first one began with such a line, or after an
# opening that spoke of several.
NUMBER = r"(?:\s*(?:#|n[°º]|no\.)?\s*(?:\p{N}{1,2}|one|two|three|[一二三]))"
KIND = "(?:option|version|alternative|variante?|caption|vorschlag|opción|versión|opção|versão|légende|proposition|" \
       "オプション|案|パターン|キャプション|الخيار|خيار|विकल्प|संस्करण)"
NUMBERED = rf"{MARKS}{KIND}{NUMBER}[^\p{{L}}\p{{N}}\n]{{0,3}}?"
OTHER = regex.compile(rf"^{NUMBERED}(?:[:：.)–—-]{CLOSED}|$)", regex.IGNORECASE | regex.MULTILINE)
FIRST = regex.compile(rf"\A{NUMBERED}[:：]?[*_ \t]*\n(?=.*^{NUMBERED}[:：]?[*_ \t]*$)",
                      regex.IGNORECASE | regex.MULTILINE | regex.DOTALL)
OR = regex.compile(rf"^{MARKS}(?:or|oder|ou|o bien|または|أو|या)[:*_]*[ \t]*$", regex.IGNORECASE | regex.MULTILINE)
QUOTED_ITEM = regex.compile(r"\A1[.)]\s+[\"“„«「]")
ITEM = regex.compile(r"\A1[.)]\s+(.+?)(?=\n\s*2[.)]\s|\Z)", regex.DOTALL)
RULE = regex.compile(r"^[ \t]*(?:-{3,}|\*{3,}|_{3,}|—{3,})[ \t]*$", regex.MULTILINE)

# What models say after it; a last paragraph that speaks of the text, not of its topic.
CHANGES = r"(?:(?:tweak|adjust|revise|rewrite|change|shorten)\w* (?:it|this|anything|the (?:caption|tone|text|style))|" \
          r"any (?:tweaks|adjustments|changes|revisions)|" \
          r"(?:shorter|longer|different|other|another|more) (?:version|option|caption|tone)s?|" \
          r"(?:kürzere|längere|andere|weitere)\w? (?:version|variante)\w*|(?:etwas|ihn|text|ton) (?:anpass|änder)\w*|" \
          r"(?:autre|version plus)\s\w+|(?:otra|outra) vers\w+|vers(?:ión|ão) más? \w+|versão mais \w+|" \
          r"\b(?:captions?|bildunterschrift|légende|leyenda|legenda)\b|キャプション|変更|修正|調整|تعديل|صياغة|बदलाव|कैप्शन)"
OFFER = r"(?:let me know|feel free|would you like|do you want|want me to|i can also|i hope|if you['’]d like|möchten sie|" \
        r"möchtest du|sag mir|lass mich|n['’]hésite|souhaite|voulez|¿?quieres|avísame|si quieres|quer que|me avise|se quiser|" \
        r"ご希望|必要|هل تريد|أخبرني|यदि आप|क्या आप)"
REMARK = r"(?:note|explanation|hinweis|erklärung|remarque|nota|注|ملاحظة|नोट)\W{0,3}[:：][^\n]{0,200}" \
         r"(?:\b(?:this|the|diese|cette|esta|la|a) (?:caption|bildunterschrift|légende|leyenda|legenda)\b|\bcharacters\b|" \
         r"\bzeichen\b|キャプション|文字)[^\n]*\Z|" \
         r"why this (?:caption|post|tweet) works\b|(?<=[*_])why this works\b|" \
         r"(?:character count|characters|zeichen)\W{0,5}\p{N}{1,5}(?:\s?/\s?\p{N}{1,5})?\W*\Z|" \
         r"alternativ\w{0,2} (?:caption|version|bildunterschrift|tweet)\b[^\n:：]{0,20}[:：]"
TAIL = regex.compile(rf"\n\n[(*_ ]*(?:{OFFER}[^\n]{{0,200}}{CHANGES}[^\n]*\Z|(?:{REMARK}).*\Z)",
                     regex.IGNORECASE | regex.DOTALL)
UNIT = r"(?:characters?|chars?|zeichen|caractères|caracteres|文字|حرف\p{M}*ا?|अक्षर)"
COUNTED = regex.compile(rf"[ \n]{{0,3}}[(\[]~?\p{{N}}{{1,5}} ?/? ?\p{{N}}{{0,5}} ?{UNIT} ?[)\]]\Z", regex.IGNORECASE)

# Refusals in plain words: short, and of nothing but the request.
REFUSAL_LENGTH = 300        # characters
REFUSAL = regex.compile(
    r"\A(?:(?:(?:i['’]m|i am) (?:very |really )?)?sorry[,.]? (?:but )?)?(?:i (?:can['’]?t|cannot|can not|won['’]t|will not)|"
    r"(?:i['’]m|i am) (?:unable|not able) to) (?:(?:assist|help|comply)(?: you)? with (?:that|this|your request|the request)\b|"
    r"(?:fulfil|fulfill|complete) (?:this|that|your|the) request|"
    r"(?:write|create|generate|provide|produce) (?:an? |this |that |such |the |your )?(?:captions?|content)\b)|"
    r"\A(?:(?:es )?tut mir leid,? (?:aber )?)?(?:ich kann|dabei kann ich|das kann ich)\b[^\n]{0,50}\b"
    r"nicht (?:helfen|erstellen|schreiben|erfüllen|nachkommen)|"
    r"\A(?:(?:je suis )?désolée?,? (?:mais )?)?je ne (?:peux|suis) pas (?:(?:vous )?aider|en mesure|répondre|créer|écrire)|"
    r"\A(?:lo siento,? (?:pero )?)?no puedo (?:ayudar|cumplir|crear|escribir|generar|asistir)\w* (?:con|esta|ese|eso|a)\b|"
    r"\A(?:(?:me )?(?:desculpe|sinto muito),? (?:mas )?)?não posso (?:ajudar|atender|criar|escrever|gerar)\b", regex.IGNORECASE)

# Inline marks, within a line; those inside links, mentions and hashtags are letters of these.
EMPHASIS = regex.compile(r"(\*\*\*|\*\*|~~)(?=\S)([^\n]{1,300}?)(?<=\S)\1|(?<!\w)(___|__)(?=\S)([^\n]{1,300}?)(?<=\S)\3(?!\w)"
                         r"|(?<![\p{Latin}\p{N}*\\])(\*)(?=[^\s*])([^\n*]{1,300}?)(?<=[^\s*])\5(?![\p{Latin}\p{N}*])"
                         r"|(?<![\w\\])(_)(?=[^\s_])([^\n_]{1,300}?)(?<=[^\s_])\7(?!\w)|(?<!`)(`+)(?!`)([^\n`]{1,300})\9(?!`)")
LINK = regex.compile(r"!?\[([^\[\]\n]{1,300})\]\((https?://[^\s()]{1,2000}(?:\([^\s()]{0,200}\)[^\s()]{0,200})?)"
                     r"(?:\s+\"[^\"\n]{0,200}\")?\)")
LINE_MARK = regex.compile(r"^[ \t]{0,3}(?:#{1,6}|>)[ \t]+", regex.MULTILINE)
BULLET = regex.compile(r"^([ \t]{0,20})\*[ \t]+(?=\S)", regex.MULTILINE)
ESCAPED = regex.compile(r"\\([\\`*_{}\[\]()#+.!|~>-])")


def clean(text) -> str:
    """The caption in a model's answer `text`, as a person would post it; "" if there is none."""
    text = _without_thoughts(UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    text = _spaced(CONTROL.split(BEFORE_IT.sub("", text), maxsplit=1)[0][:LONGEST])
    for _ in range(ROUNDS):
        before, text = text, _unquoted(_without_chatter(_unwrapped(text)))
        if text == before:
            break
    return _spaced(_unquoted(_plain(text)))


def refuses(text) -> bool:
    """Whether the whole of this caption only says that the model will not write one."""
    return len(text) <= REFUSAL_LENGTH and bool(REFUSAL.match(text))


def _without_thoughts(text):
    return UNOPENED.sub("", THOUGHT.sub("", text))      # some servers leave out the opening mark


def _unwrapped(text):
    """What stands in a fence, or as the only text in a JSON object."""
    fenced = FENCED.search(text)
    text = (fenced[1] if fenced else text).strip()
    if not text.startswith("{") or not text.endswith("}"):
        return text
    try:
        values = list(json.loads(text, strict=False).values())
    except (ValueError, RecursionError):
        return text
    return values[0].strip() if len(values) == 1 and isinstance(values[0], str) else text


def _without_chatter(text):
    text = WELL_ALONE.sub("", text, count=1).lstrip()
    lead, numbered = LEAD.match(text), FIRST.match(text)
    if lead and lead.end() < len(text):
        several, text = SEVERAL.search(lead[0]), text[lead.end():]
        text = _first(text) if several else _framed(text)
    elif numbered or QUOTED_ITEM.match(text):
        text = _first(text)
    return COUNTED.sub("", TAIL.sub("", text).strip()).strip()


def _first(text):
    """The first of several captions."""
    text = _framed(text)
    item = ITEM.match(text)
    if item:
        return item[1].strip()
    begun = OTHER.match(text)
    text = text[begun.end():] if begun and begun.end() < len(text) else text
    ends = [match.start() for match in (OTHER.search(text, 1), OR.search(text, 1)) if match and text[:match.start()].strip()]
    return text[:min(ends)].strip() if ends else text.strip()


def _framed(text):
    """What stands between the rulers of a text that begins with one; hashtags below the second one belong to it."""
    blocks = [block.strip() for block in RULE.split(text)]
    if len(blocks) < 3 or blocks[0]:
        return text
    return "\n\n".join(blocks[1:2] + [block for block in blocks[2:3] if all(word[0] in "#＃" for word in block.split())])


def _unquoted(text):
    inner = text[1:-1]
    around = len(text) > 2 and PAIRS.get(text[0]) == text[-1]
    again = {text[0], text[-1]} & set(inner.replace("n't", "").replace("'s", "")) if around else ()
    return inner.strip() if around and not again else text


def _plain(text):
    """`text` without the marks of markdown, which none of the networks renders."""
    text = LINK.sub(lambda link: link[2] if link[1] == link[2] else f"{link[1]} {link[2]}", text)
    text = BULLET.sub(r"\1• ", LINE_MARK.sub("", RULE.sub("", text)))
    if any(mark in text for mark in "*_~`"):
        text = _without_emphasis(_without_emphasis(text))       # bold inside italics
    return ESCAPED.sub(r"\1", text)


def _without_emphasis(text):
    spans = tokens(text)

    def bare(match):
        mark, inner = [group for group in match.groups() if group is not None]
        ends = match.start(), match.end() - len(mark)
        return match[0] if any(start < end < stop for start, stop in spans for end in ends) else inner

    return EMPHASIS.sub(bare, text)


def _spaced(text):
    text = regex.sub(r"[ \t]{3,}", "  ", text)
    return regex.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()
