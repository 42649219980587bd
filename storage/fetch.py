"""Fetches from hosts that a user can influence, and connects to nothing but the public addresses it has checked itself."""

import http.client
import re
import ssl
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from email.errors import MissingHeaderBodySeparatorDefect
from functools import partial
from ipaddress import ip_address
from math import inf
from time import monotonic

from urllib3 import HTTPHeaderDict
from urllib3.connection import HTTPConnection, HTTPSConnection

from storage import urls
from storage.addresses import connect, is_own, is_public, system_addresses
from storage.figures import watched
from storage.lookups import Exhausted, Lookups
from storage.wire import CHUNK, Wire, seconds_left

WEB_PORTS = frozenset({80, 443, 8080, 8443})
USER_AGENT = "Posthorn/1.0 (+https://github.com/posthorn/posthorn)"
MAX_REDIRECTS = 3
MAX_ADDRESSES = 32  # more answers for one name are no honest round robin

# One sentence for all of these, so that nobody can map a private network by comparing answers.
_CLOSED = "the address cannot be reached"
_CUT = "the other server gave no whole answer"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OWN_HEADERS = frozenset({"host", "connection", "transfer-encoding"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class FetchError(Exception):
    """No usable answer; .args[0] is one sentence that tells nothing about the network."""


class Refused(FetchError):
    """The rules for URLs, headers or addresses said no: nothing was sent there."""


class Unreachable(FetchError):
    """No connection came about: not one byte of the request was sent."""


class Busy(Unreachable):
    """So many names are being looked up already that this one was not."""


class Broken(FetchError):
    """The request, or a part of it, was sent, and no whole and trustworthy answer came in time."""


class TooSlow(Broken):
    """The request was sent, and the deadline passed before the answer was whole."""


class TooLarge(FetchError):
    """The body is larger than the caller takes."""


class BadStatus(FetchError):
    """A download ended with another status than 200."""

    def __init__(self, status):
        super().__init__(f"the other server answered with status {status}")
        self.status = status


@dataclass(frozen=True)
class Timeouts:
    """Seconds by the monotonic clock: `connect` includes TLS, `first_byte` the whole head of the answer, `total` everything."""

    dns: float = 5.0
    connect: float = 5.0
    first_byte: float = 10.0
    total: float = 60.0


@dataclass(frozen=True)
class Download:
    """What a download brought: the body's length, the URL after redirects, the media type without parameters or None."""

    bytes: int
    url: str
    content_type: str | None


class Response:
    """An answer whose head has arrived. Its body can be read once, before the context of Fetcher.open ends."""

    def __init__(self, raw, url):
        self.status = raw.status
        self.headers = HTTPHeaderDict(raw.msg.items())
        self.url = str(url)
        self._raw, self.taken = raw, 0      # bytes of the body that were read

    def read(self, max_bytes):
        """The whole body. Raises TooLarge when it is over `max_bytes`, Broken when it does not arrive whole and in time."""
        return b"".join(self.stream(max_bytes))

    def stream(self, max_bytes):
        """Yields the body in pieces of at most CHUNK bytes, all of it or an error: Raises TooLarge and Broken as read does."""
        stated = self._raw.length
        if stated is not None and stated > max_bytes:
            raise TooLarge("the body is too large")
        if self.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
            raise Broken("the other server encoded its answer although it was asked not to")
        taken = 0
        while piece := self._piece(min(CHUNK, max_bytes + 1 - taken)):
            taken += len(piece)
            self.taken = taken
            if taken > max_bytes:
                raise TooLarge("the body is too large")
            yield piece
        if stated is not None and taken < stated:
            raise Broken(_CUT)

    def _piece(self, size):
        # readinto, because http.client's read has no bound for a chunk of negative size.
        buffer = bytearray(size)
        with _breaking():
            return bytes(memoryview(buffer)[: self._raw.readinto(buffer)])


class Fetcher:
    """Sends single requests, each on a connection of its own to an address that passed the checks. Threads may share it."""

    def __init__(self, allow_private=frozenset(), resolve=system_addresses, *, refuse=(), ssl_context=None):
        """`allow_private`: (host, port) pairs that may be reached although not public, on that port.

        `refuse`: networks (of ipaddress) that may not be reached although public.

        `resolve`: called with a host name, returns its addresses as texts or raises OSError; it may block.
        `ssl_context`: None for Python's default, which trusts the system's certificates. Raises ValueError for a bad host.
        """
        self._allow_private = frozenset((urls.normal_host(host.strip("[]")), port) for host, port in allow_private)
        self._lookups, self._refuse = Lookups(resolve), refuse
        self._ssl_context = ssl_context or ssl.create_default_context()

    @watched(FetchError)
    @contextmanager
    def open(self, method, url, *, headers=None, body=None, ports=WEB_PORTS, timeouts=Timeouts(), connected=None):
        """Context manager: sends one request exactly once, follows no redirect, and gives the Response.

        `body`: bytes, or a file or iterable of bytes; then `headers` must hold its Content-Length.
        `ports`: the ports that may be reached, None for all. The rule for addresses always holds.
        `connected`: called before the request goes out with a function that breaks it off, from any thread and at any time.
        Raises Refused, Unreachable and Broken; ValueError for a request that cannot be formed.
        """
        deadline = monotonic() + timeouts.total
        target = self._admit(url, ports)
        fields = _fields(method, headers or {}, body)
        connection = self._connect(target, timeouts, deadline)
        wire = connection.sock
        try:
            if connected:
                connected(wire.break_off)
            with _breaking():
                raw = _exchange(connection, wire, method, target, fields, body, timeouts.first_byte)
            yield Response(raw, target)
        finally:
            wire.hang_up()

    def check(self, url, *, ports=WEB_PORTS):
        """Judges a URL of somebody else for later use, without looking its name up. Raises Refused for what `open` would refuse.

        And for plain HTTP, unless its host and port are of `allow_private`.
        """
        target = self._admit(url, ports)
        if target.scheme != "https" and not self._allows(target):
            raise Refused("the URL must start with https://")
        if target.is_address:
            self._addresses(target, monotonic())

    def download(self, url, file, *, max_bytes, timeouts=Timeouts()):
        """Writes what a GET of `url` gives into the binary `file` and returns the Download; follows at most MAX_REDIRECTS.

        Every redirect passes the same checks, and `timeouts.total` holds for all of them together. Raises Refused, Unreachable,
        Broken, TooLarge over `max_bytes`, and BadStatus when the last answer is not 200.
        """
        end = monotonic() + timeouts.total
        try:
            for _ in range(MAX_REDIRECTS + 1):
                with self.open("GET", url, timeouts=replace(timeouts, total=end - monotonic())) as response:
                    location = response.headers.get("Location")
                    if response.status in _REDIRECTS and location:
                        url = _destination(response.url, location)
                        continue
                    if response.status != 200:
                        raise BadStatus(response.status)
                    return _save(response, file, max_bytes)
        except Unreachable:
            # No address is tried when there is no time left for it, which says nothing about the address.
            if monotonic() < end:
                raise
            raise TooSlow("the other server did not answer in time") from None
        raise Refused(f"the URL redirects more than {MAX_REDIRECTS} times")

    def _admit(self, text, ports):
        try:
            url = urls.parse(text)
        except urls.UrlError as error:
            raise Refused(error.args[0]) from None
        if self._allows(url):
            return url
        if ports is not None and url.port not in ports:
            raise Refused("the URL has a port that is not allowed")
        if not url.is_address and urls.is_special_name(url.host):
            raise Refused(_CLOSED)
        return url

    def _allows(self, url):
        return (url.host, url.port) in self._allow_private

    def _addresses(self, url, deadline):
        """The addresses to connect to: all that the host has, or none, since one that is not public taints the whole answer."""
        found = [url.host] if url.is_address else self._look_up(url.host, deadline)
        clean = all(is_public(address, self._refuse) and not is_own(address) for address in found)
        if len(found) > MAX_ADDRESSES or not clean and not self._allows(url):
            raise Refused(_CLOSED)
        return found

    def _look_up(self, host, deadline):
        try:
            answers = self._lookups.find(host, seconds_left(deadline))
            return list(dict.fromkeys(str(ip_address(answer)) for answer in answers))
        except Exhausted:
            raise Busy("too many names are being looked up at this moment") from None
        except Exception as error:  # whatever a resolver raises, nothing was sent
            raise Unreachable(_CLOSED) from error

    def _connect(self, url, timeouts, deadline):
        addresses = self._addresses(url, min(deadline, monotonic() + timeouts.dns))
        connect_deadline = min(deadline, monotonic() + timeouts.connect)
        with ExitStack() as undo:
            try:
                sock = undo.enter_context(connect(addresses, url.port, seconds_left(connect_deadline)))
                sock.settimeout(seconds_left(connect_deadline))
                connection = self._connection(url, sock)
                connection.connect()
            except Exception as error:  # TLS fails in many ways, all of them before the request
                raise Unreachable(_CLOSED) from error
            undo.pop_all()
        connection.sock = Wire(connection.sock, deadline)
        return connection

    def _connection(self, url, sock):
        if url.scheme == "https":
            return _TlsConnection(url, sock, ssl_context=self._ssl_context, cert_reqs=ssl.CERT_REQUIRED)
        return _PlainConnection(url, sock)


class _Pinned:
    """Makes urllib3's connections use a connected socket, while certificate and SNI stay with the URL's name."""

    auto_open = 0  # never a second connection, and so never a second request

    def __init__(self, url, sock, **options):
        super().__init__(url.host, url.port, **options)
        self.response_class = _FinalResponse
        self._pinned = sock

    def _new_conn(self):
        return self._pinned

    def getresponse(self):
        # Not urllib3's own, which writes the URL, and with it a token in the query, into the log when headers are malformed.
        return http.client.HTTPConnection.getresponse(self)


class _PlainConnection(_Pinned, HTTPConnection):
    pass


class _TlsConnection(_Pinned, HTTPSConnection):
    pass


class _FinalResponse(http.client.HTTPResponse):
    """Skips every interim answer (RFC 9110 section 15.2), of which http.client knows only 100."""

    def begin(self):
        super().begin()
        while 100 <= self.status < 200 and self.status != 101:
            self.headers = None
            super().begin()


@contextmanager
def _breaking():
    """Turns whatever goes wrong once the request may have left into Broken, without what the other side sent."""
    try:
        yield
    except Broken:
        raise
    except TimeoutError:
        raise TooSlow("the other server did not answer in time") from None
    except Exception:
        raise Broken(_CUT) from None


def _fields(method, headers, body):
    """The request's headers as they go out, checked here so that no later error holds a header's value in its message."""
    if not re.fullmatch("[A-Z]+", method):
        raise ValueError("the method must be upper-case letters")
    fields = HTTPHeaderDict({"User-Agent": USER_AGENT, "Accept": "*/*"})
    for name, value in headers.items():
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"the header {name} is not the caller's to set")
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise Refused("a header holds a character that headers cannot hold")
        fields[name] = value
    fields.update({"Accept-Encoding": "identity", "Connection": "close"})
    if isinstance(body, bytes):
        fields.setdefault("Content-Length", str(len(body)))
    length = fields.get("Content-Length", "" if body is not None else "0")
    if not re.fullmatch("[0-9]{1,18}", length) or isinstance(body, bytes | None) and int(length) != len(body or b""):
        raise ValueError("Content-Length must be the length of the body")
    return fields


def _exchange(connection, wire, method, url, fields, body, first_byte):
    pieces = None if body is None else _pieces(body, int(fields["Content-Length"]))
    cut_short = False
    try:
        connection.request(method, url.target, body=pieces, headers=fields)
    except (ConnectionError, ssl.SSLEOFError):
        # A server may refuse a request without reading all of it, and says why before it closes.
        cut_short = True
    wire.deadline = min(wire.end, monotonic() + first_byte)
    raw = connection.getresponse()
    wire.deadline, wire.allowance = wire.end, inf
    if cut_short and raw.status < 400 or not _well_framed(raw):
        raise Broken(_CUT)
    return raw


def _pieces(body, length):
    """The body's pieces, exactly `length` bytes in all: one more would pass for the start of another request."""
    if isinstance(body, bytes):
        body = [body]
    elif hasattr(body, "read"):
        body = iter(partial(body.read, CHUNK), b"")
    sent = 0
    for piece in body:
        sent += len(piece)
        if sent > length:
            break
        yield piece
    if sent != length:
        raise Broken("the body is not as long as its Content-Length says")


def _well_framed(raw):
    """False when the head leaves in doubt where the body ends (RFC 9112 section 6.3), or has a line that is no header."""
    if any(isinstance(defect, MissingHeaderBodySeparatorDefect) for defect in raw.msg.defects):
        return False
    codings = raw.msg.get_all("Transfer-Encoding")
    if codings:
        return [coding.lower() for coding in codings] == ["chunked"]
    lengths = set(raw.msg.get_all("Content-Length", []))
    return not lengths or len(lengths) == 1 and re.fullmatch("[0-9]{1,18}", lengths.pop())


def _save(response, file, max_bytes):
    size = 0
    for piece in response.stream(max_bytes):
        file.write(piece)
        size += len(piece)
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return Download(size, response.url, media_type or None)


def _destination(base, location):
    try:
        # http.client reads headers as Latin-1, while servers that do not encode their URLs send UTF-8.
        return str(urls.parse(base).join(location.encode("latin-1").decode("utf-8")))
    except (urls.UrlError, UnicodeError):
        raise Refused("the URL redirects to something that is no allowed URL") from None
