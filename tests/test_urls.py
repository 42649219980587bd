"""What the strict URL parser takes and refuses, and what the guarded fetch makes of hostile URLs."""

import random
from urllib.parse import urlsplit

import pytest
import urllib3

from storage.fetch import Fetcher, Refused
from storage.urls import MAX_URL, UrlError, is_special_name, normal_host, parse

LONG_LABEL, LONG_NAME = "a" * 64, ".".join(["a" * 60] * 5)
MALFORMED = [
    # no http URL at all
    "", "http", "http:", "http:/", "http://", "http:///", "http:///host.org/", "http:host.org", "http:/host.org", "//host.org/",
    "host.org", "/path", "ftp://host.org/", "file:///etc/passwd", "gopher://host.org/", "javascript:alert(1)",
    "httpx://host.org/", "data:,x", "jar:http://host.org!/", "ws://host.org/", "http+unix://%2Fsocket/", "https//host.org",
    "hƒttp://host.org/", "ſ://host.org/", "url:http://host.org/", "http;//host.org/",
    # user names, and hosts hidden before or behind one
    "http://user@host.org/", "http://user:password@host.org/", "http://@host.org/", "http://:@host.org/",
    "http://a@b@host.org/", "http://127.1.1.1:80\\@127.2.2.2:80/", "http://host.org:80@127.0.0.1/",
    "http://host.org&@127.0.0.1/", "http://a%40b@host.org", "http://[::1]@host.org/", "http://host.org@[::1]/",
    # backslashes, blanks and control characters
    "http:\\\\host.org/", "http://host.org\\.other.org/", "http://host.org/\\", " http://host.org/", "http://host.org/ ",
    "http://host.org/a b", "http://ho st.org/", "http://host.org/\r\nX: y", "http://host.org\n/", "http://host.org/\t",
    "ht\ntp://host.org", "http://host.org/\x00", "http://127.0.0.1\x00.host.org/", "http://host.org/\x7f",
    "http://host.org/\x85", "http://host.org/\u2028", "http://host.org/\u3000", "http://\u00a0host.org/",
    "http://host.org/\ud800", "\ufeffhttp://host.org/",
    # ports
    "http://host.org:/", "http://host.org:0/", "http://host.org:080/", "http://host.org:65536/", "http://host.org:99999999/",
    "http://host.org:-80/", "http://host.org:+80/", "http://host.org:8_0/", "http://host.org:80:80/", "http://host.org:８０/",
    "http://host.org:٨٠/", "http://host.org:80a/", "http://:80/", "http://host.org:http/", "http://[::1]:/", "http://[::1]80/",
    # names
    "http://.host.org/", "http://host..org/", "http://host.org./", "http://./", "http://../", "http://-host.org/",
    "http://host-.org/", "http://host.org%2eother.org/", "http://%6c%6f%63alhost/", "http://host%00.org/", "http://*.org/",
    "http://ho$t.org/", "http://a,b.org/", "http://a|b.org/", "http://{a}.org/", "http://\"a\".org/", "http://a'b.org/",
    "http://a`b.org/", "http://<a>.org/", f"http://{LONG_LABEL}.org/", f"http://{LONG_NAME}.org/",
    "http://" + "ü" * 300 + ".org/", "http://xn--a.org/", "http://xn--.org/", "http://host。。org/", "http://a／b.org/",
    "http://a＠b.org/", "http://a：80.org/", "http://℀.org/", "http://a＃b.org/", "http://a？b.org/", "http://a\u200db.org/",
    "http://\u202ehost.org/", "http://host％2eorg/", "http://i❤.org/", "http://\u0301a.org/",
    # numbers that C libraries read as IPv4
    "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/", "http://127.0.1/",
    "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://0x7f.1/", "http://127.0.0.01/", "http://127.0.0.0x1/",
    "http://1.2.3.4.5/", "http://256.1.1.1/", "http://1.1.1/", "http://0/", "http://00000000.0/", "http://127.0.0.1./",
    "http://host.1/", "http://host.0x/", "http://host.0xf/", "http://①②⑦.1/", "http://٠/", "http://127.0.0.٣/", "http://127。1/",
    "http://４２９４９６７２９５/", "http://127.0.0.1.0/",
    # IPv6
    "http://[]/", "http://[/", "http://]/", "http://::1/", "http://[::1/", "http://::1]/", "http://[[::1]]/", "http://[::1]a/",
    "http://[::1%25lo]/", "http://[::1%lo]/", "http://[fe80::1%251]/", "http://[::g]/", "http://[1:2]/", "http://[::127.1]/",
    "http://[::0127.0.0.1]/", "http://[127.0.0.1]/", "http://[v1.a]/", "http://[host.org]/", "http://[::１]/", "http://a[::1]/",
    # length
    "http://host.org/" + "a" * MAX_URL, "http://host.org/" + "ü" * (MAX_URL // 3),
]
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
# Well-formed, and each leads inside: by an address, by a name, or (the last row) by what the name server says.
INSIDE = [
    "http://127.0.0.1/", "http://127.0.0.1:8080/", "http://127.255.255.254/", "http://0.0.0.0/", "http://10.1.2.3/",
    "http://100.64.0.1/", "http://169.254.169.254/latest/meta-data/", "http://172.16.0.1/", "http://192.168.1.1/",
    "http://192.0.0.8/", "http://192.88.99.1/", "http://198.18.0.1/", "http://224.0.0.1/", "http://240.0.0.1/",
    "http://255.255.255.255/", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://１２７.0.0.1/", "http://𝟏𝟐𝟕.𝟎.𝟎.𝟏/",
    "http://[::]/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::127.0.0.1]/", "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/", "http://[::ffff:a9fe:a9fe]/", "http://[::ffff:8.8.8.8]/", "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/",
    "http://[2002:a9fe:a9fe::1]/", "http://[2001:0:7f00:1::]/", "http://[2001:db8::1]/", "http://[3fff::1]/",
    "http://[5f00::1]/", "http://[100::1]/", "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fe80::1]/",
    "http://[fec0::1]/", "http://[ff02::1]/", "http://[4000::1]/", "http://localhost/", "http://LOCALHOST/",
    "http://ⓛocalhost/", "http://loc\u00adalhost/", "http://a.localhost/", "http://router/", "http://printer.local/",
    "http://metadata.google.internal/", "http://nas.home.arpa/", "http://1.0.0.127.in-addr.arpa/", "http://a.test/",
    "http://a.example/", "http://a.invalid/", "http://a.onion/", "http://a.alt/", "http://a.lan/", "http://a.home/",
    "http://a.corp/", "http://a.localdomain/", "http://a.private/", "http://a.intranet/", "http://com/",
    "http://127.0.0.1.nip.io/", "http://host.org/", "https://host.org:8443/", "http://bücher.org/",
]

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
