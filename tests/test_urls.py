"""What the strict URL parser takes and refuses, and what the guarded fetch makes of hostile URLs."""

import random
from urllib.parse import urlsplit

import pytest
import urllib3

from storage.fetch import Fetcher, Refused
from storage.urls import MAX_URL, UrlError, is_special_name, normal_host, parse
from tests.url_corpus import INSIDE, MALFORMED

NORMAL = {
    "http://host.org": "http://host.org/",
    "HTTPS://Host.ORG:443/A": "https://host.org/A",
    "http://host.org:80/": "http://host.org/",
    "http://host.org:443/": "http://host.org:443/",
    "http://host.org?a=1": "http://host.org/?a=1",
    "http://host.org#f": "http://host.org/",
    "http://host.org/a?b#c?d#e": "http://host.org/a?b",
    "http://host.org#@other.org/": "http://host.org/",
    "http://host.org?@other.org/": "http://host.org/?@other.org/",
    "http://host.org//other.org/": "http://host.org//other.org/",
    "http://host.org/%2e%2e/%00?%0d%0a": "http://host.org/%2e%2e/%00?%0d%0a",
    "http://host.org/ü?ä=|\"<>^`{}": "http://host.org/%C3%BC?%C3%A4=%7C%22%3C%3E%5E%60%7B%7D",
    "http://bücher.org/": "http://xn--bcher-kva.org/",
    "http://XN--BCHER-KVA.org/": "http://xn--bcher-kva.org/",
    "http://faß.org/": "http://xn--fa-hia.org/",
    "http://ｈｏｓｔ。org/": "http://host.org/",
    "http://ho\u00adst.org/": "http://host.org/",
    "http://my_bucket.host.org/": "http://my_bucket.host.org/",
    "http://r3---sn-x.host.org/": "http://r3---sn-x.host.org/",
    "http://1.2.3.host.org/": "http://1.2.3.host.org/",
    "http://8.8.8.8/": "http://8.8.8.8/",
    "http://①②⑦.⓪.⓪.①/": "http://127.0.0.1/",
    "http://[2606:4700:0:0::1]:8080/a": "http://[2606:4700::1]:8080/a",
    "http://[::FFFF:127.0.0.1]/": "http://[::ffff:7f00:1]/",
}
LOOKUPS = []  # the names that the resolver was asked for


@pytest.fixture(scope="module")
def fetcher():
    return Fetcher(resolve=resolve)


@pytest.fixture
def lookups():
    LOOKUPS.clear()
    return LOOKUPS


def resolve(host):
    LOOKUPS.append(host)
    return ["127.0.0.1"]


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: ascii(text)[:60])
def test_a_malformed_url_is_refused(text):
    with pytest.raises(UrlError):
        parse(text)


@pytest.mark.parametrize("text, reason", {
    "http://user@host.org/": "user name", "ftp://host.org/": "http://", "http://a b/": "blanks",
    "http://a..b/": "malformed host",
    "http://host.org/" + "a" * MAX_URL: "longer than 8192",
}.items(), ids=["user", "scheme", "blank", "host", "length"])
def test_a_refusal_says_what_is_wrong_with_the_url(text, reason):
    with pytest.raises(UrlError, match=reason):
        parse(text)


@pytest.mark.parametrize("text, url", NORMAL.items(), ids=[ascii(text) for text in NORMAL])
def test_a_url_is_rebuilt_in_one_normal_form(text, url):
    assert str(parse(text)) == url
    assert parse(url) == parse(text)


@pytest.mark.parametrize("url", INSIDE, ids=ascii)
def test_a_url_that_leads_inside_is_refused_before_any_connection(fetcher, url):
    # Were a connection tried, it would end as Unreachable or be answered.
    with pytest.raises(Refused) as refusal, fetcher.open("GET", url):
        pass
    assert refusal.value.args == ("the address cannot be reached",)


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: ascii(text)[:60])
def test_a_malformed_url_is_not_even_looked_up(fetcher, lookups, text):
    with pytest.raises(Refused), fetcher.open("GET", text, ports=None):
        pass
    assert lookups == []


def test_what_is_accepted_is_read_alike_by_other_parsers():
    pieces = [
        "http://", "https://", "host.org", "127.0.0.1", "[::1]", "@", ":", "80", "\\", "/", "//", "?", "#", "%2f", "%", ".",
        "a", "-", "_", "&", ";", "=", "é", "。", "①", "[", "]", "xn--bcher-kva", "..", "\t", " ", "0x7f", "user", "、", "𝟏",
        "\u00ad",
    ]
    chance, accepted = random.Random(1), 0
    for _ in range(20000):
        text = chance.choice(("http://", "https://", "")) + "".join(chance.choices(pieces, k=chance.randint(1, 7)))
        try:
            url = parse(text)
        except UrlError:
            continue
        accepted += 1
        split, other = urlsplit(str(url)), urllib3.util.parse_url(str(url))
        assert (split.hostname, split.port or {"http": 80, "https": 443}[url.scheme]) == (url.host, url.port), text
        assert (other.host.strip("[]"), other.scheme) == (url.host, url.scheme), text
        assert parse(str(url)) == url, text
    assert accepted > 300


@pytest.mark.parametrize("location, url", {
    "c": "http://host.org/a/c", "/c": "http://host.org/c", "../../c": "http://host.org/c", "./c?d": "http://host.org/a/c?d",
    "?d": "http://host.org/a/b?d", "//other.org/c": "http://other.org/c", "https://other.org": "https://other.org/",
    "c#d": "http://host.org/a/c", ".//other.org/c": "http://host.org/a/other.org/c", "c?//x": "http://host.org/a/c?//x",
}.items())
def test_a_location_is_joined_to_the_url(location, url):
    assert str(parse("http://host.org/a/b?c").join(location)) == url


@pytest.mark.parametrize("location", [
    "///other.org/", "http:/c", "http:c", "c:d", "file:///c", "//u@other.org/", "c d", "\\\\other.org/", "/\\other.org/",
    "//[::1", "http://127.1/", "/c\r\n", "a" * (MAX_URL + 1),
], ids=lambda text: text[:20])
def test_a_location_is_judged_as_strictly_as_a_url(location):
    with pytest.raises(UrlError):
        parse("http://host.org/a/b?c").join(location)


def test_a_path_that_looks_like_a_host_stays_a_path():
    assert parse("http://host.org//other.org/a").join("b").authority == "host.org"


@pytest.mark.parametrize("text, host", [
    ("::1", "::1"), ("0:0::1", "::1"), ("LOCALHOST", "localhost"), ("127.0.0.1", "127.0.0.1"),
])
def test_a_host_has_one_normal_form(text, host):
    assert normal_host(text) == host


@pytest.mark.parametrize("host, special", [
    ("localhost", True), ("a.localhost", True), ("a.b.internal", True), ("a.example", True), ("example.com", False),
    ("localhost.org", False), ("host.org", False),
])
def test_special_names_are_told_from_public_ones(host, special):
    assert is_special_name(host) is special
