"""Facets of Bluesky, by the vectors of the official apps.

https://github.com/bluesky-social/atproto/blob/main/packages/api/tests/rich-text-detection.test.ts
"""

import time

import pytest

from platforms.richtext import facets

FAMILY = "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F467"
ENGLAND = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"      # one grapheme of 28 bytes
TAG_64 = "thisisa64characterstring_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


def found(text, unknown=()):
    """[(what the facet covers, its value)]; a range that cuts a character fails here."""
    data, result = text.encode(), []
    for facet in facets(text, lambda handle: None if handle in unknown else f"did:plc:{handle}"):
        feature = facet["features"][0]
        value = feature.get("did") or feature.get("uri") or feature.get("tag")
        result.append((data[facet["index"]["byteStart"]:facet["index"]["byteEnd"]].decode(), value))
    return result


def mention(handle):
    return f"@{handle}", f"did:plc:{handle}"


def link(shown):
    return shown, shown if "://" in shown else f"https://{shown}"


@pytest.mark.parametrize("text, expected", [
    ("no mention", []),
    ("@handle.com middle end", [mention("handle.com")]),
    ("start middle @handle.com", [mention("handle.com")]),
    ("@handle.com @handle.com @handle.com", [mention("handle.com")] * 3),
    ("@full123-chars.test", [mention("full123-chars.test")]),
    ("not@right", []),
    ("@handle.com!@#$chars", [mention("handle.com")]),
    ("@handle.com\n@handle.com", [mention("handle.com")] * 2),
    ("parenthetical (@handle.com)", [mention("handle.com")]),
    (f"{FAMILY} @handle.com {FAMILY}", [mention("handle.com")]),
    ("@handle.com. @handle.com, end", [mention("handle.com")] * 2),
    ("mail ann@handle.com", []),
    ("@nodomain @no.such-ending", []),
])
def test_mentions(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize("text, expected", [
    ("start https://middle.com/foo/bar?baz=bux#hash end", [link("https://middle.com/foo/bar?baz=bux#hash")]),
    ("https://newline1.com\nhttps://newline2.com", [link("https://newline1.com"), link("https://newline2.com")]),
    (f"{FAMILY} https://middle.com {FAMILY}", [link("https://middle.com")]),
    ("start middle.com/foo/bar?baz=bux#hash end", [link("middle.com/foo/bar?baz=bux#hash")]),
    ("newline1.com\nnewline2.com", [link("newline1.com"), link("newline2.com")]),
    ("a example.com/index.php php link", [link("example.com/index.php")]),
    ("a trailing bsky.app: colon", [link("bsky.app")]),
    ("not.. a..url ..here", []),
    ("e.g.", []),
    ("e.g./foo", []),
    ("something-cool.jpg", []),
    ("website.com.jpg/foo", []),
    ("punctuation https://foo.com, https://bar.com/whatever; https://baz.com.",
     [link("https://foo.com"), link("https://bar.com/whatever"), link("https://baz.com")]),
    ("parenthentical (https://foo.com)", [link("https://foo.com")]),
    ("except for https://foo.com/thing_(cool)", [link("https://foo.com/thing_(cool)")]),
    ("one mark only https://foo.com/really?!", [link("https://foo.com/really?")]),
    ("a domain that starts with the scheme httpbin.org", [link("httpbin.org")]),
    ("nothing behind the scheme: https:// https://. http:///path", []),
    ("https://user.example.com/(@handle.com)", [link("https://user.example.com/(@handle.com)")]),
])
def test_links(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize("text, tags", [
    ("#a #b", ["a", "b"]),
    ("#1", []),
    ("#1a", ["1a"]),
    ("body #tag body", ["tag"]),
    ("#", []), ("#?", []), ("text # text", []), ("##", []),
    (f"body #{TAG_64}", [TAG_64]),
    (f"body #{TAG_64}b", []),
    (f"body #{TAG_64}!", [TAG_64]),
    (f"#{ENGLAND * 20}", [ENGLAND * 20]),
    (f"#{ENGLAND * 30}", []),                   # few graphemes, but more than 640 bytes
    ("its a #double#rainbow", ["double#rainbow"]),
    ("##hashash", ["#hashash"]),
    ("some #n0n3s@n5e!", ["n0n3s@n5e"]),
    ("works #with,punctuation", ["with,punctuation"]),
    ("strips trailing #punctuation, #like. #this!", ["punctuation", "like", "this"]),
    ("strips #multi_trailing___...", ["multi_trailing"]),
    ("works with #🦋 emoji, and #butter🦋fly", ["🦋", "butter🦋fly"]),
    ("this #\uFE0F\u20E3tag should not be a tag", []),
    ("this ##\uFE0F\u20E3tag should be a tag", ["#\uFE0F\u20E3tag"]),
    ("this #t\nag should be a tag", ["t"]),
    ("#\u200B", []), ("#\u200Ba", []), ("#a\u200Bb", ["a"]), ("#ab\u200B", ["ab"]), ("#a\u20E2b", ["a"]),
    ("＃tag", ["tag"]),
    ("no match 1?: #1?", []),
    ("bsky.example/x#header", []),
    ("日本 #日本語。", ["日本語"]),
])
def test_tags(text, tags):
    assert [value for shown, value in found(text)] == tags


@pytest.mark.parametrize("text, tags", [
    ("$AAPL", ["$AAPL"]), ("$aapl", ["$AAPL"]), ("$A", ["$A"]), ("$BTC $ETH", ["$BTC", "$ETH"]), ("$100", []),
    ("$GOOGL", ["$GOOGL"]), ("$TOOLONG", []), ("check $LEGO now", ["$LEGO"]), ("($GOOG)", ["$GOOG"]),
    ("$AAPL, $MSFT!", ["$AAPL", "$MSFT"]),
    ("no$SPACE", []), ("$ AAPL", []), ("$123ABC", []), ("$ABC12", ["$ABC12"]), ("$ABC123", []),
])
def test_cashtags(text, tags):
    assert [value for shown, value in found(text)] == tags


@pytest.mark.parametrize("text, expected", [
    ("e\u0301 @a.com", [(4, 10)]),
    ("日本 #tag", [(7, 11)]),
    ("👍🏿 https://a.com é b.com", [(9, 22), (26, 31)]),
    ("match full width number sign (tag): ＃tag", [(36, 42)]),
])
def test_ranges_are_utf8_bytes_with_an_exclusive_end(text, expected):
    ranges = [(facet["index"]["byteStart"], facet["index"]["byteEnd"]) for facet in facets(text, lambda handle: "did:plc:x")]
    assert ranges == expected


def test_kinds_come_in_the_order_of_the_text():
    text = "#one @two.com https://three.com $FOUR"
    assert found(text) == [("#one", "one"), mention("two.com"), link("https://three.com"), ("$FOUR", "$FOUR")]


def test_an_unknown_handle_stays_text_and_is_asked_for_once():
    asked = []
    assert facets("@gone.com and @gone.com", asked.append) == []
    assert asked == ["gone.com"]


@pytest.mark.parametrize("text", ["#" + "1" * 30_000, "@a." * 10_000, "a.b" * 10_000, "$A" * 15_000, "https://" * 5_000])
def test_detection_takes_time_in_proportion_to_the_text(text):
    start = time.process_time()
    facets(text, lambda handle: None)
    assert time.process_time() - start < 1
