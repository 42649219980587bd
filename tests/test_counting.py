"""How long a text is to Bluesky and to Mastodon."""

import time

import pytest

from platforms.text import graphemes, is_top_level_domain, mastodon_length, utf8_bytes

FAMILY = "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F467"
LONG_URL = "https://example.com/a/very/long/path/that/goes/on?and=on&and=on#and-on"


@pytest.mark.parametrize("text, count, size", [
    pytest.param("", 0, 0, id="empty"),
    pytest.param("hello", 5, 5, id="ascii"),
    pytest.param("é", 1, 2, id="precomposed"),
    pytest.param("e\u0301", 1, 3, id="combining"),
    pytest.param("\r\n", 1, 2, id="crlf is one"),
    pytest.param(FAMILY, 1, 25, id="family"),
    pytest.param("👍🏿", 1, 8, id="skin tone"),
    pytest.param("🇩🇪🇫🇷", 2, 16, id="two flags"),
    pytest.param("1\uFE0F\u20E3", 1, 7, id="keycap"),
    pytest.param("\u1100\u1161\u11A8", 1, 9, id="conjoining hangul"),
    pytest.param("日本語", 3, 9, id="cjk"),
])
def test_grapheme_clusters_are_what_a_reader_counts(text, count, size):
    assert (graphemes(text), utf8_bytes(text)) == (count, size)


@pytest.mark.parametrize("text, length", [
    pytest.param("hello", 5, id="plain"),
    pytest.param(FAMILY, 1, id="graphemes"),
    pytest.param(LONG_URL, 23, id="long url"),
    pytest.param("http://a.co", 23, id="short url counts as much"),
    pytest.param("HTTPS://EXAMPLE.COM/X", 23, id="upper case"),
    pytest.param(f"see {LONG_URL}.", 4 + 23 + 1, id="the dot after it is text"),
    pytest.param(f"({LONG_URL})", 25, id="in parentheses"),
    pytest.param("https://en.wikipedia.org/wiki/Post_(horn)", 23, id="parentheses of its own"),
    pytest.param("https://example.com/?q=1.", 24, id="dot after a query"),
    pytest.param("https://example.com?", 24, id="question mark"),
    pytest.param("https://example.com:8080/x,", 24, id="port"),
    pytest.param("https://example.comです", 25, id="script without spaces after it"),
    pytest.param("https://example.com/記事", 23, id="path in another script"),
    pytest.param("https://日本語.jp/", 23, id="international domain"),
    pytest.param("https://example.com.jpg", 23 + 4, id="ends after the top-level domain"),
    pytest.param("example.com", 11, id="bare domain as typed"),
    pytest.param("foohttps://example.com", 22, id="scheme inside a word"),
    pytest.param("http://localhost/x", 18, id="no top-level domain"),
    pytest.param("@ann", 4, id="local mention"),
    pytest.param("@ann@social.example.com", 4, id="mention without its domain"),
    pytest.param("@ann@example.com.", 5, id="dot after a mention"),
    pytest.param("(@ann@example.com)", 6, id="mention in parentheses"),
    pytest.param("ann@example.com", 15, id="mail address as typed"),
    pytest.param("https://example.com/(@ann@b.com)", 23, id="mention inside a url"),
    pytest.param("@ann@example.com https://example.com/", 4 + 1 + 23, id="both"),
])
def test_mastodon_shortens_urls_and_mentions(text, length):
    assert mastodon_length(text) == length


def test_mastodon_counts_the_warning_in_full():
    assert mastodon_length("https://a.example.com", "see https://a.example.com and @ann@example.com") == 23 + 46


def test_an_instance_may_reserve_another_length_for_urls():
    assert mastodon_length("https://example.com", url_length=30) == 30


@pytest.mark.parametrize("text", [
    "https://" + "a." * 20_000, "a-" * 20_000 + ".com:", "@a" * 20_000, "@a-" * 15_000, "https://a.com/" + "(a" * 20_000,
    "http://" * 6_000, "https://a.com/?" + "." * 40_000, "https://a.com " * 3_000,
], ids=lambda text: text[:16])
def test_counting_takes_time_in_proportion_to_the_text(text):
    start = time.process_time()
    mastodon_length(text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("label, known", [
    ("com", True), ("de", True), ("рф", True), ("jpg", False), ("", False), ("comx", False),
])
def test_top_level_domains(label, known):
    assert is_top_level_domain(label) is known
