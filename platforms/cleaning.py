"""Takes a model's chatter off a caption: thoughts, introductions, alternatives, quotes, marks that no network renders."""

import regex

from platforms.cutting import tokens

LONGEST = 80_000        # characters that are looked at; the largest limit of a network is 63,206
ROUNDS = 5              # of unwrapping: a quote inside a fence behind an introduction is three
PAIRS = {'"': '"', "'": "'", "“": "”", "”": "”", "„": "“", "«": "»", "»": "«", "‹": "›", "‘": "’", "「": "」", "『": "』", "`": "`"}

# Control characters, those that turn the direction of all that follows, and three that X refuses.
UNSEEN = regex.compile(r"[\p{Cc}--\t\n]|[\u202A-\u202E\uFEFF\uFFFE\uFFFF]", regex.VERSION1)
THOUGHTS = "think|thinking|thought|thoughts|reasoning|reflection"
THOUGHT_OVER = regex.compile(rf"</(?:{THOUGHTS})>|\[/THINK\]", regex.IGNORECASE)
THOUGHT_BEGUN = regex.compile(rf"<(?:{THOUGHTS})>|\[THINK\]", regex.IGNORECASE)
FENCED = regex.compile(r"```\w*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", regex.DOTALL)

# What models say before a caption, by language. Each names the caption, so that "Here is what we baked:" stays.
SAID = r"[^\n:：]{0,160}"
WELL = r"(?:(?:sure|certainly|of course|absolutely|great|okay|gerne|natürlich|klar|bien sûr|avec plaisir|claro|por supuesto|" \
       r"com certeza|بالتأكيد|بالطبع|ज़रूर|जरूर|बिल्कुल|はい|もちろん)(?:[^\n:!.,、。،।]{0,60})[!.,:、。،।]+\s*)"
LEADS = (
    rf"here(?:['’]s| is| are){SAID}\b(?:captions?|tweets?|posts?|versions?|options?|drafts?)\b{SAID}",
    rf"hier (?:ist|sind|kommt|kommen){SAID}(?:caption|bildunterschrift|beitrag|beiträge|\btext|post|version|vorschl)\w*{SAID}",
    rf"voici{SAID}(?:légende|publication|texte|version|post|proposition)s?\b{SAID}",
    rf"aquí (?:tienes|están?|van?){SAID}(?:leyenda|texto|publicaci[oó]n|pie|post|versi[oó]n|descripción|caption){SAID}",
    rf"(?:aqui (?:está|estão|vai)|segue){SAID}(?:legenda|texto|publicação|post|versão|caption){SAID}",
    rf"{SAID}(?:キャプション|投稿文?|文案|バージョン){SAID}(?:です|ます|こちら)",
    rf"(?:إليك|إليكم|هذا هو|هذه هي|فيما يلي){SAID}(?:تعليق|منشور|نص|وصف|كابشن|نسخة){SAID}",
    rf"(?:यहाँ|यहां|यह रहा|ये रहा|लीजिए|आपके लिए|पेश है){SAID}(?:कैप्शन|पोस्ट|शीर्षक){SAID}",
)
LABEL = "(?:caption|tweet|bildunterschrift|légende|leyenda|pie de foto|legenda|キャプション|投稿文|التعليق|تعليق|منشور|कैप्शन)"
MARKS = r"[*_#> \t]*"       # of markdown around such a line
CLOSED = r"(?:[*_]+(?=\s))?\s*"
LEAD = regex.compile(rf"\A{MARKS}{WELL}?(?:(?:{'|'.join(LEADS)}){MARKS}[:：।。]|{LABEL}{MARKS}[:：]){CLOSED}", regex.IGNORECASE)
SEVERAL = regex.compile(r"captions|tweets|posts|versions|options|drafts|vorschläge|beiträge|légendes|publications|propositions|"
                        r"versiones|opciones|textos|publicaciones|versões|opções|legendas", regex.IGNORECASE)
WELL_ALONE = regex.compile(rf"\A{WELL}(?=\n)", regex.IGNORECASE)

# A second caption begins where a line says so.
NUMBER = r"(?:\s*(?:#|n[°º]|no\.)?\s*(?:\p{N}{1,2}|one|two|three|[一二三]))"
KIND = "(?:option|version|alternative|variante?|caption|vorschlag|opción|versión|opção|versão|légende|proposition|" \
       "オプション|案|パターン|キャプション|الخيار|خيار|विकल्प|संस्करण)"
OTHER = regex.compile(rf"^{MARKS}(?:{KIND}{NUMBER}|alternativ\w{{0,4}}(?=[^\p{{L}}\n]{{0,5}}[:：]))"
                      rf"[^\p{{L}}\p{{N}}\n]{{0,3}}?(?:[:：.)–—-]{CLOSED}|$)", regex.IGNORECASE | regex.MULTILINE)
OR = regex.compile(rf"^{MARKS}(?:or|oder|ou|o bien|または|أو|या)[:*_]*[ \t]*$", regex.IGNORECASE | regex.MULTILINE)
ITEM = regex.compile(r"\A1[.)]\s+(.+?)(?=\n\s*2[.)]\s|\Z)", regex.DOTALL)
RULE = regex.compile(r"^[ \t]*(?:-{3,}|\*{3,}|_{3,}|—{3,})[ \t]*$", regex.MULTILINE)

# What models say after it; a paragraph of its own that speaks of the text, not of its topic.
ABOUT = r"(?:captions?|versions?|tweaks?|adjust\w*|revis\w*|shorter|longer|rewrite|other options|tone|anpass\w*|änder\w*|" \
        r"variante|modifi\w*|ajust\w*|versión|versão|légende|legenda|leyenda|変更|修正|調整|تعديل|صياغة|बदलाव|संस्करण)"
OFFER = r"(?:let me know|feel free|would you like|do you want|want me to|i can also|i hope|if you['’]d like|möchten sie|" \
        r"möchtest du|sag mir|lass mich|n['’]hésite|souhaite|voulez|¿?quieres|avísame|si quieres|quer que|me avise|se quiser|" \
        r"ご希望|必要|هل تريد|أخبرني|यदि आप|क्या आप)"
REMARK = r"(?:note|explanation|why this works|hinweis|remarque|nota|注|ملاحظة|नोट)\W{0,3}[:：]|" \
         r"(?:character count|characters|zeichen)\W{0,3}[:：]?\s*\p{N}"
TAIL = regex.compile(rf"\n\n[(*_ ]*(?:{OFFER}[^\n]{{0,300}}{ABOUT}|{REMARK}).*\Z", regex.IGNORECASE | regex.DOTALL)
UNIT = r"(?:characters?|chars?|words?|zeichen|caractères|caracteres|文字|حرف\p{M}*ا?|अक्षर)"
COUNTED = regex.compile(rf"[ \n]{{0,3}}[(\[]~?\p{{N}}{{1,5}} ?/? ?\p{{N}}{{0,5}} ?{UNIT} ?[)\]]\Z", regex.IGNORECASE)

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
    text = _spaced(_without_thoughts(UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))[:LONGEST])
    for _ in range(ROUNDS):
        before, text = text, _unquoted(_first(_without_chatter(text)))
        if text == before:
            break
    return _spaced(_unquoted(_plain(text)))


def _without_thoughts(text):
    over = [match.end() for match in THOUGHT_OVER.finditer(text)]
    text = text[over[-1]:] if over else text        # some servers leave out the opening mark
    begun = THOUGHT_BEGUN.search(text)
    return text[:begun.start()] if begun else text


def _without_chatter(text):
    fenced = FENCED.search(text)
    text = WELL_ALONE.sub("", fenced[1] if fenced else text, count=1).lstrip()
    lead = LEAD.match(text)
    if lead and lead.end() < len(text):
        text = text[lead.end():]
        item = ITEM.match(text) if SEVERAL.search(lead[0]) else None
        text = item[1] if item else text
    return COUNTED.sub("", TAIL.sub("", text).strip()).strip()


def _first(text):
    """The first of several captions."""
    item = ITEM.match(text)
    if item and item[1][0] in PAIRS:
        return item[1].strip()
    begun = OTHER.match(text)
    text = text[begun.end():] if begun and begun.end() < len(text) else text
    ends = [match.start() for match in (OTHER.search(text, 1), OR.search(text, 1)) if match and text[:match.start()].strip()]
    return _first_block(text[:min(ends)] if ends else text).strip()


def _first_block(text):
    """Up to a ruler; but hashtags that stand below it belong to the caption."""
    blocks = [block.strip() for block in RULE.split(text) if block.strip()]
    kept = blocks[:1] + [block for block in blocks[1:2] if all(word[0] in "#＃" for word in block.split())]
    return "\n\n".join(kept)


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
