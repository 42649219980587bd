"""How long a text is: each network counts in its own way."""

import re
import unicodedata

import regex
from twitter_text.extract_urls import default_protocol, is_valid_url, max_tco_slug_length, max_url_length
from twitter_text.regexp.emoji import emoji as tweet_emoji
from twitter_text.regexp.invalid_domain_chars import invalid_domain_chars
from twitter_text.regexp.latin_accent_chars import latin_accent_chars
from twitter_text.regexp.valid_cctld import valid_cctld
from twitter_text.regexp.valid_gtld import valid_gtld
from twitter_text.regexp.valid_punycode import valid_punycode
from twitter_text.regexp.valid_tco_url import valid_tco_url
from twitter_text.regexp.valid_url_path import valid_url_path
from twitter_text.regexp.valid_url_query_chars import valid_url_query_chars
from twitter_text.regexp.valid_url_query_ending_chars import valid_url_query_ending_chars

_GRAPHEME = regex.compile(r"\X")
_EMOJI = regex.compile(r"[\p{Extended_Pictographic}\p{Regional_Indicator}\u20E3]")      # U+20E3 makes a keycap of a digit

# Mastodon's own: config/initializers/twitter_regex.rb and app/models/account.rb (MENTION_RE) of github.com/mastodon/mastodon.
# Written anew so that the time stays proportional to the text, which that of twitter-text's patterns does not.
_MASTODON_URL = regex.compile(r"(?<![A-Za-z0-9@\uFF20$#\uFF03])(?i:https?)://([\w-]++(?>\.[\w-]++)++)"
                              r"((?>:[0-9]++)?+(?>/(?>[^\s<>()?]|\([^\s()]*+\))*+)?+)"
                              r"(\?[A-Za-z0-9!?*'@();:&=+$/%#\[\]_.,~|-]*+)?")
_MASTODON_PATH_END = "!*\"'\u300C\u300D;:=,.$%[]~&|@"
_MASTODON_QUERY_END = "!?*'@();:+$%[].,~|"
_REMOTE_MENTION = regex.compile(r"(?<![=/\w])(@[A-Za-z0-9_]++(?>[.-]+[A-Za-z0-9_]+)*+)@\w++(?>[.-]+\w+)*+(?![@\uFF20]|://)")

# X's own: docs.x.com/fundamentals/counting-characters, with the patterns of github.com/twitter/twitter-text, put together anew
# so that the time stays proportional to the text: its parse_tweet needs a second for 800 characters such as "a.a.a.".
# A host is a row of labels with dots, as far as the last top-level domain among them.
_TWEET_TLD = f"(?=(?P<tld>{valid_gtld.pattern}|{valid_cctld.pattern}|{valid_punycode.pattern})|)"
_TWEET_LETTER = f"[^{invalid_domain_chars.pattern}]"
_TWEET_BEFORE = r"[^A-Za-z0-9@\uFF20$#\uFF03\uFFFE\uFEFF\uFFFF]"
_TWEET_HOST = regex.compile(rf"(?:(?<={_TWEET_BEFORE})|^(?!{_TWEET_BEFORE}{_TWEET_LETTER}))(https?://)?+(?={_TWEET_LETTER})"
                            rf"((?:(?!-)(?:{_TWEET_LETTER}++|-)++(?<!-)\.{_TWEET_TLD}"
                            rf"|(?![_-])(?:{_TWEET_LETTER}++|[_-])++(?<![_-])\.)*+)"        # _ is for subdomains only
                            rf"(?:(?!https?://)(?:{_TWEET_LETTER}|[_-]))*+", regex.IGNORECASE)
_TWEET_ASCII_HOST = regex.compile(rf"(?:[-a-z0-9{latin_accent_chars.pattern}]++\.{_TWEET_TLD})++", regex.IGNORECASE)
_TWEET_REST = re.compile(rf"(?::[0-9]+)?(/{valid_url_path.pattern}*)?"
                         rf"(?:\?{valid_url_query_chars.pattern}*{valid_url_query_ending_chars.pattern})?", re.IGNORECASE)
_TWEET_HEAVY = regex.compile("[^\0-\u10FF\u2000-\u200D\u2010-\u201F\u2032-\u2037]")
_TWEET_LINK = 23
_MANY_MARKS = regex.compile(r"(\p{M}{30})(?=\p{M})")


def code_points(text: str) -> int:
    """Unicode code points, as LinkedIn, Instagram and most others count."""
    return len(text)


def utf16_units(text: str) -> int:
    """UTF-16 code units, as JavaScript's `length`."""
    return len(text.encode("utf-16-le")) // 2


def utf8_bytes(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode())


def graphemes(text: str) -> int:
    """Extended grapheme clusters of UAX #29: what a reader calls a character."""
    return sum(1 for _ in _GRAPHEME.finditer(text))


def emoji_as_bytes(text: str) -> int:
    """Code points, but every emoji (a whole cluster of UAX #29) counts its UTF-8 bytes, as Threads counts.

    https://developers.facebook.com/documentation/threads/posts says so of emojis only; signs that may be shown as text
    or as emoji, such as the copyright sign, are counted as emojis here.
    """
    return sum(len(cluster.encode() if _EMOJI.search(cluster) else cluster) for cluster in _GRAPHEME.findall(text))


def is_top_level_domain(label: str) -> bool:
    """Whether `label`, in lower case, is a top-level domain of the IANA, as twitter-text lists them."""
    return bool(valid_gtld.fullmatch(label) or valid_cctld.fullmatch(label))


def mastodon_length(text: str, spoiler: str = "", url_length: int = 23) -> int:
    """Grapheme clusters of `spoiler` and `text` together, as Mastodon counts (app/validators/status_length_validator.rb).

    In `text` alone every URL with a scheme counts `url_length` (characters_reserved_per_url of the instance), and a mention
    @user@domain counts without its domain.
    """
    parts, end = [spoiler], 0
    for start, stop, stand_in in _mastodon_entities(text, "x" * url_length):
        parts += text[end:start], stand_in
        end = stop
    return graphemes("".join(parts) + text[end:])


def tweet_weight(text: str) -> int:
    """The weighted length of X: a link counts 23, an emoji 2, any other character 1 or, outside the small scripts, 2.

    As parse_tweet(text).weightedLength of twitter-text, also for texts that are too long or invalid. Only after a host that
    is none because of an underscore, as in "my_site.com/a?b=c.com", may a link be seen that X does not see.
    https://docs.x.com/fundamentals/counting-characters
    """
    # Sorting many marks on one letter takes quadratic time; UAX #15 (Stream-Safe Text Format) parts them in this way.
    text = unicodedata.normalize("NFC", _MANY_MARKS.sub("\\1\u034F", text)).replace("\r\n", "\n")
    parts, end = [], 0
    for start, stop in _tweet_links(text):
        parts.append(text[end:start])
        end = stop
    plain, emojis = tweet_emoji.subn("", "\n".join([*parts, text[end:]]))
    return len(plain) + len(_TWEET_HEAVY.findall(plain)) + 2 * emojis + (_TWEET_LINK - 1) * len(parts)


def _mastodon_entities(text, url):
    """(start, stop, what it counts as) of the links and the mentions outside them, in order."""
    links = [(match.start(), stop, url) for match in _MASTODON_URL.finditer(text) if (stop := _mastodon_url_end(match))]
    taken = {position for start, stop, _ in links for position in range(start, stop)}
    mentions = [(*match.span(), match[1]) for match in _REMOTE_MENTION.finditer(text) if match.start() not in taken]
    return sorted(links + mentions)


def _mastodon_url_end(match):
    """Where the URL ends: before the punctuation after it, or after the last top-level domain in it; None if there is none."""
    host, rest, query = match[1], match[2], match[3] or ""
    name, _, ending = host.lower().rpartition(".")
    if is_top_level_domain(ending) or ending.startswith("xn--"):
        if query := query.rstrip(_MASTODON_QUERY_END):
            return match.end(2) + len(query)
        return match.end(1) + len(rest.rstrip(_MASTODON_PATH_END))
    stop = match.end(1) - len(ending)
    letters = regex.match(r"[a-z]+(?![0-9a-z@+-])", ending)       # scripts without spaces go on right after it
    if letters and is_top_level_domain(letters[0]):
        return stop + letters.end()
    while "." in name:
        stop -= 1
        name, _, ending = name.rpartition(".")
        if is_top_level_domain(ending):
            return stop
        stop -= len(ending)
    return None


def _tweet_links(text):
    """(start, stop) of everything in `text` that X makes a link of, in order."""
    position = 0 if "." in text else len(text)
    while host := _TWEET_HOST.search(text, position):
        position = host.end()
        if host["tld"]:
            rest = _TWEET_REST.match(text, host.end("tld"), host.end("tld") + max_url_length)
            position = rest.end() + 1
            yield from _tweet_links_at(text, host, rest)


def _tweet_links_at(text, host, rest):
    start, stop, scheme = host.start(), rest.end(), host[1]
    domain = text[host.start(2):host.end("tld")]
    if stop - start > max_url_length or not is_valid_url(text[start:stop], scheme or default_protocol, domain):
        return
    if scheme:
        short = valid_tco_url.search(text[start:stop])
        if short is None:
            yield start, stop
        elif len(short[1]) <= max_tco_slug_length:
            yield start, start + short.end()
    elif not start or text[start - 1] not in "-_./":
        hosts = [(start + part.start(), start + part.end("tld")) for part in _TWEET_ASCII_HOST.finditer(domain) if part["tld"]]
        if hosts and rest[1]:
            hosts[-1] = hosts[-1][0], hosts[-1][1] + len(rest[0])
        yield from hosts
