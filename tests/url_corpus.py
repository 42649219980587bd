"""The corpus of hostile URLs: malformed ones, those that lead inside, and every way to write one address within another."""

import ipaddress
import re

from storage.urls import MAX_URL

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
# Where a server has something to lose: itself, its network, the metadata of its cloud, and a public address in disguise.
TARGETS = ["127.0.0.1", "0.0.0.0", "10.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "198.18.0.1", "8.8.8.8"]
# RFC 4291 section 2.5.5, RFC 2765, RFC 6052, RFC 8215, RFC 3056, RFC 4380 (server; client, whose bits are turned), RFC 5214.
EMBEDDINGS = {
    "mapped": lambda v4: 0xFFFF << 32 | v4, "compatible": lambda v4: v4, "translated": lambda v4: 0xFFFF << 48 | v4,
    "NAT64": lambda v4: 0x64FF9B << 96 | v4, "NAT64, local": lambda v4: 0x64FF9B0001 << 80 | v4,
    "NAT64, local, /48": lambda v4: 0x64FF9B0001 << 80 | v4 >> 16 << 64 | (v4 & 0xFFFF) << 40,
    "6to4": lambda v4: 0x2002 << 112 | v4 << 80 | 1, "Teredo server": lambda v4: 0x20010000 << 96 | v4 << 64,
    "Teredo client": lambda v4: 0x20010000 << 96 | 0x41D0E04D << 64 | v4 ^ 0xFFFFFFFF,
    "ISATAP, link-local": lambda v4: 0xFE80 << 112 | 0x5EFE << 32 | v4,
}


def embedded(way, address):
    """The IPv6 address, as text, that holds the IPv4 `address` in the `way` of EMBEDDINGS."""
    return str(ipaddress.IPv6Address(EMBEDDINGS[way](int(ipaddress.IPv4Address(address)))))


EMBEDDED = [embedded(way, address) for way in EMBEDDINGS for address in TARGETS]
ADDRESSES = [*TARGETS[:-1], *EMBEDDED, "::", "::1", "fc00::1", "fe80::1", "fec0::1", "ff02::1", "224.0.0.1", "255.255.255.255"]
# What is behind a line break is another header, and what does not begin like a URL is a path.
HEADERS = [url for url in MALFORMED if re.match("[a-z][a-z0-9+.-]*://", url, re.ASCII) and not set("\r\n\ud800") & set(url)]
CORPUS = [*INSIDE, *[f"http://{address if '.' in address else f'[{address}]'}/" for address in ADDRESSES], *HEADERS]
