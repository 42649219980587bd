"""Makes a text that is too long fit: after a sentence, else after a word, never inside a character, a link or a tag."""

import regex

# What must stay whole or go: links, mentions, hashtags and cashtags. Generous, since a link cut in two leads nowhere.
TOKEN = regex.compile(r"\b[\p{L}\p{N}._%+-]{1,64}+@[\p{L}\p{N}-]{1,63}+(?:\.[\p{L}\p{N}-]{1,63}+){1,8}"
                      r"|(?:https?://|\bwww\.)[^\s。、「」！？]+"
                      r"|[@#\uFF03$][\p{L}\p{M}\p{N}_][\p{L}\p{M}\p{N}_.@·\u200C\u200D-]*+"
                      r"|\b[\p{L}\p{N}-]{1,63}+(?:\.[\p{L}\p{N}-]{1,63}+){0,8}\.\p{L}{2,63}+(?:/\S*)?", regex.IGNORECASE)
# After the mark and what closes with it. Marks that Latin texts also use inside numbers and names need a blank behind them.
# The end of a line ends a sentence too, and so does a hashtag before another one.
SENTENCE = regex.compile(r"[.!?…؟۔।॥]+[\p{Pe}\p{Pf}\"']*(?=\s|$)|[。！？｡]+[\p{Pe}\p{Pf}]*|\S(?=[ \t]{0,9}\n)"
                         r"|[#\uFF03][\p{L}\p{M}\p{N}_]+(?=[ \n]{1,9}[#\uFF03])")
WORD = regex.compile(r"\b", regex.WORD | regex.VERSION1)
GRAPHEME = regex.compile(r"\X")
AFTER_TOKEN = ".,;:!?…\"'”’»)*_،؛؟。、！？"                    # belongs to the sentence
DANGLING = " \t\r\n-–—([{«„“‘「『,;:、，،؛&/#@・\u200e\u200f\u2068"   # what no caption ends with
LONGEST_TOKEN = 4096        # characters before an end in which a link that ends there is looked for
KEPT = 0.5          # a cut after a sentence must leave this share of what a cut after a word leaves
ELLIPSIS = "…"


def cut(text, fits, whole=True) -> str:
    """The longest part of `text` from its start for which `fits` holds, as it holds for every shorter one; "" if none does.

    `whole` False: the text itself ends in the middle of something, and is cut even where it fits.
    """
    if whole and fits(text):
        return text
    safe = _safe_ends(text)
    sentence = _longest(text, [match.end() for match in SENTENCE.finditer(text) if match.end() in safe], fits)
    words = [match.start() for match in WORD.finditer(text) if match.start() in safe and match.start() < len(text)]
    word = _longest(text, words, fits, ELLIPSIS)
    if sentence and len(sentence) >= len(word) * KEPT:
        return sentence
    return word or sentence or _longest(text, sorted(safe - {len(text)}), fits, ELLIPSIS)


def tokens(text) -> list[tuple[int, int]]:
    """(start, end) of the links, mentions and tags in `text`, without the punctuation after them."""
    return [(token.start(), token.start() + max(1, len(_bare(token[0])))) for token in TOKEN.finditer(text)]


def _bare(token):
    """`token` without the punctuation after it; a bracket that was opened in it is its own."""
    bare = token.rstrip(AFTER_TOKEN)
    rest = token[len(bare):]
    return bare + ")" if rest.startswith(")") and bare.count("(") > bare.count(")") else bare


def _safe_ends(text):
    """Where a cut breaks neither a character nor a token."""
    inside = {position for start, end in tokens(text) for position in range(start + 1, end)}
    return {match.end() for match in GRAPHEME.finditer(text)} - inside


def _longest(text, ends, fits, after=""):
    """The longest prefix of `text` that ends at one of `ends` (sorted) and fits together with what is put `after` it."""
    low, high = 0, 1
    # Steps that double first, so that the time follows the limit and not how far a text goes over it.
    while high <= len(ends) and fits(_ended(text[:ends[high - 1]], after)):
        low, high = high, high * 2
    high = min(high, len(ends) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(_ended(text[:ends[middle - 1]], after)) else (low, middle)
    return _ended(text[:ends[low - 1]], after) if low else ""


def _ended(text, after):
    if not after:
        return text.rstrip()
    near = max(0, len(text) - LONGEST_TOKEN)
    kept = near + max((end for _, end in tokens(text[near:])), default=0)      # what a link ends with is a part of it
    text = text[:kept] + text[kept:].rstrip(DANGLING)
    last = text.rpartition(" ")[2].rpartition("\n")[2]
    # Behind a link or a tag it would become a part of it for some network; after a sentence nothing is left out.
    return text if not text or TOKEN.search(last) or SENTENCE.fullmatch(text[-1]) else text + after
