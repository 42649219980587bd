"""Parses the URL of a fetch once and strictly, so that no second parser ever has a say in where it leads."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin

import idna

MAX_URL = 8192
MAX_NAME = 253  # RFC 1035 section 2.3.4, as is the label's limit of 63 in _LABEL
DEFAULT_PORTS = {"http": 80, "https": 443}

# https://www.iana.org/assignments/special-use-domain-names, where a name stands for all below it; the whole of arpa for its
# many rows there. Without example.com, .net and .org, which RFC 6761 section 6.5 wants treated like any other name.
SPECIAL_NAMES = frozenset({"alt", "arpa", "example", "invalid", "local", "localhost", "onion", "test"})
# Names that private networks use: ICANN's reservation of internal, RFC 6762 appendix G, and the default of many resolvers.
PRIVATE_NAMES = frozenset({"corp", "home", "internal", "intranet", "lan", "localdomain", "private"})

_FORBIDDEN = re.compile(r"[\s\x00-\x20\x7f-\xa0\\\ud800-\udfff]")
_PARTS = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::([1-9][0-9]{0,4}))?")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE | re.ASCII)
# The underscore is no letter of host names, yet real ones (buckets above all) have it.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
# All that RFC 3986 lets a path and a query hold, and %, so that what is encoded already stays as it is.
_TARGET_SAFE = "!$%&'()*+,-./:;=?@[]_~"


class UrlError(ValueError):
    """The text breaks a rule for URLs; .args[0] is one sentence that is safe to show."""


@dataclass(frozen=True)
class Url:
    """A URL in parts: `host` is a lower-case ASCII name or an IP address without brackets, `target` the path with the query."""

    scheme: str
    host: str
    port: int
    target: str

    def __str__(self):
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def authority(self):
        """Host and port as URLs have them: brackets around IPv6, no port when it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_address(self):
        """True when the host is an IP address and there is no name to resolve."""
        return is_address(self.host)

    def join(self, location):
        """The Url that `location`, absolute or relative (RFC 3986 section 5), means here. Raises UrlError as parse does."""
        _check_text(location)
        if _ABSOLUTE.match(location):
            return parse(location)
        if location.startswith("//"):
            return parse(f"{self.scheme}:{location}")
        # Only the path is joined by the library, over a host that is thrown away: it has no say in where this leads.
        joined = urljoin(f"http://h{self.target}", location)
        return parse(f"{self.scheme}://{self.authority}{joined.removeprefix('http://h')}")


def parse(text):
    """The Url of the http or https URL `text`, without its fragment. Raises UrlError.

    Stricter than RFC 3986: no user name, backslash, blank or control character anywhere, no empty port, no number for a host
    unless it is an address in its usual form. Hosts follow UTS 46, non-transitional.
    """
    _check_text(text)
    parts = _PARTS.match(text)
    if not parts:
        raise UrlError("the URL must start with http:// or https://")
    scheme, authority, target = parts[1].lower(), parts[2], parts[3]
    if "@" in authority:
        raise UrlError("the URL must not hold a user name or password")
    match = _AUTHORITY.fullmatch(authority)
    if not match:
        raise UrlError("the URL has a malformed host or port")
    host = normal_host(match[2]) if match[1] is None else _ipv6(match[1])
    port = int(match[3] or DEFAULT_PORTS[scheme])
    if port > 65535:
        raise UrlError("the URL has a malformed host or port")
    url = Url(scheme, host, port, quote(target if target.startswith("/") else "/" + target, safe=_TARGET_SAFE))
    if len(str(url)) > MAX_URL:
        raise UrlError(f"the URL is longer than {MAX_URL} characters")
    return url


def normal_host(text):
    """The host `text`, a name or an IP address without brackets, in the one form that Url.host has. Raises UrlError."""
    if ":" in text:
        return _ipv6(text)
    name = _ascii_name(text)
    labels = name.split(".")
    if len(name) > MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise UrlError("the URL has a malformed host or port")
    # A number at the end makes C libraries read the whole as an IPv4 address in one of its many forms, such as 127.1 or 0x7f.1.
    if _NUMERIC.fullmatch(labels[-1]) and not is_address(name):
        raise UrlError("the URL has a malformed host or port")
    return name


def is_address(host):
    """True when `host`, in normal form, is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_special_name(host):
    """True for a name, in normal form, that means nothing on the public internet: without a dot, or under a reserved ending."""
    return "." not in host or host.rpartition(".")[2] in SPECIAL_NAMES | PRIVATE_NAMES


def _check_text(text):
    if len(text) > MAX_URL:
        raise UrlError(f"the URL is longer than {MAX_URL} characters")
    if _FORBIDDEN.search(text):
        raise UrlError("the URL must not hold blanks, control characters or backslashes")


def _ascii_name(text):
    if text.isascii() and "xn--" not in text.lower():
        return text.lower()
    if len(text) > MAX_NAME:
        raise UrlError("the URL has a malformed host or port")
    try:
        return idna.encode(text, uts46=True, std3_rules=True, transitional=False).decode("ascii")
    except UnicodeError as error:
        raise UrlError("the URL has a malformed host or port") from error


def _ipv6(text):
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError as error:
        raise UrlError("the URL has a malformed host or port") from error
    if address.scope_id is not None:
        raise UrlError("the URL has a malformed host or port")
    return address.compressed
