"""What every stand-in network shares: a real HTTP server on loopback, routes, a record of requests, faults and rates."""

import argparse
import json
import os
import re
import signal
import socket
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from email.message import Message
from email.parser import HeaderParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

HOST = os.environ.get("STANDIN_HOST", "127.0.0.1")     # other machines reach it where a benchmark says so
ADMIN = "/_standin/"
DRAINED_BYTES = 1 << 20  # read after an early refusal, so that a small sender can still read the answer
DRAIN_SECONDS = 0.5
JOIN_SECONDS = 5
SIGNATURES = (  # (offset, bytes, media type)
    (0, b"\xff\xd8\xff", "image/jpeg"), (0, b"\x89PNG\r\n\x1a\n", "image/png"), (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"), (4, b"ftypavif", "image/avif"), (4, b"ftypheic", "image/heic"),
    (4, b"ftypqt  ", "video/quicktime"), (4, b"ftyp", "video/mp4"), (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "audio/ogg"), (0, b"ID3", "audio/mpeg"), (8, b"WAVE", "audio/wav"), (0, b"WEBVTT", "text/vtt"),
)


class Answer(Exception):
    """What goes back. A handler returns it or raises it; a dict or list body goes as JSON, a str as HTML, None as nothing."""

    def __init__(self, status: int = 200, body=None, headers: dict | None = None):
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers or {}


@dataclass
class Request:
    """One request as it arrived. `size` counts body bytes, `status` stays None when nothing was answered."""

    method: str
    path: str
    query: list = field(repr=False)
    headers: Message = field(repr=False)
    time: float
    endpoint: str = ""
    args: dict = field(default_factory=dict)
    size: int = 0
    status: int | None = None
    body: bytes = field(default=b"", repr=False)
    reply_headers: dict = field(default_factory=dict, repr=False)  # sent with whatever is answered

    @property
    def media_type(self) -> str:
        """Content-Type without its parameters, "" when there is none."""
        return self.headers.get("Content-Type", "").split(";")[0].strip().lower()

    @property
    def length(self) -> int | None:
        """Content-Length in bytes, None when the header is absent. Raises ValueError when it is not a number."""
        value = self.headers.get("Content-Length")
        if value is not None and not value.isdecimal():
            raise ValueError("Content-Length is not a number")
        return None if value is None else int(value)


@dataclass
class Fault:
    """What goes wrong at one endpoint for the next `times` requests (None: for all of them).

    drop_before: the connection ends before anything is done. drop_answer: it is done, then the connection ends.
    status (with body, headers): answered instead of acting, or with acts=True after having acted.
    delay: seconds between acting (if it acts) and answering or ending the connection.
    """

    endpoint: str
    times: int | None = 1
    drop_before: bool = False
    drop_answer: bool = False
    status: int | None = None
    body: object = None
    headers: dict = field(default_factory=dict)
    delay: float = 0.0
    acts: bool = False

    @property
    def prevents(self) -> bool:
        """Whether the network does nothing with the request."""
        return self.drop_before or (self.status is not None and not self.acts and not self.drop_answer)


@dataclass(frozen=True)
class Window:
    """State of one rate: `remaining` calls until `reset` (epoch seconds); `seconds` is the length of the window."""

    limit: int
    seconds: int
    remaining: int
    reset: float
    exceeded: bool


@dataclass(frozen=True)
class Part:
    """One part of a multipart/form-data body."""

    name: str
    filename: str | None
    media_type: str | None
    data: bytes = field(repr=False)


def route(method: str, path: str, name: str | None = None, **options):
    """Mark a method of a Network as the handler of `path`, where `/:word` matches one segment and arrives in request.args."""
    pattern = re.compile(re.sub(r"(?<=/):(\w+)", r"(?P<\1>[^/]+)", re.escape(path)))

    def mark(handler):
        handler.route = (method, pattern, name or f"{method} {path}", options)
        return handler

    return mark


def parse_json(data: bytes):
    """The value of a JSON body as JavaScript reads it (2.0 is an integer). Raises ValueError for what JSON.parse refuses."""

    def constant(text):
        raise ValueError(f"{text} is not JSON")

    def number(text):
        return int(float(text)) if float(text).is_integer() else float(text)

    return json.loads(data.decode(), parse_float=number, parse_constant=constant)


def parse_multipart(content_type: str, data: bytes) -> list[Part]:
    """The parts of a multipart/form-data body (RFC 7578), in order. Raises ValueError for anything malformed or unfinished."""
    head = HeaderParser(policy=HTTP).parsestr(f"Content-Type: {content_type}\n\n")
    boundary = head.get_boundary()
    if head.get_content_type() != "multipart/form-data" or not boundary:
        raise ValueError("no boundary")
    first, *parts, end = (b"\r\n" + data).split(b"\r\n--" + boundary.encode())
    if first or end not in (b"--", b"--\r\n"):
        raise ValueError("the closing boundary is missing")
    return [_part(part) for part in parts]


def sniff(data: bytes) -> str | None:
    """Media type by the first bytes, None when they are unknown."""
    return next((kind for offset, magic, kind in SIGNATURES if data[offset:].startswith(magic)), None)


class Network:
    """A stand-in: use as a context manager. Handlers run one at a time, so each request is atomic.

    posts is what the network shows in public, requests is every request that came, in order. `errors` names the answers of
    the network's error table as arguments of `fault`.
    """

    errors: dict[str, dict] = {}
    _routes: tuple = ()

    def __init_subclass__(cls):
        # Of its own class and of the parts that it is put together from, which are no networks themselves.
        parts = [cls, *(base for base in cls.__bases__ if not issubclass(base, Network))]
        handlers = [value for part in parts for value in vars(part).values() if hasattr(value, "route")]
        inherited = [one for base in cls.__bases__ for one in getattr(base, "_routes", ())]
        cls._routes = (*inherited, *((*handler.route, handler) for handler in handlers))

    def __init__(self, port: int = 0):
        self.port, self.url = port, ""
        self.posts: list[dict] = []
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.rates: dict[str, tuple[int, int]] = {}  # name: (calls, seconds)
        self.crashes: list[str] = []
        self._lock, self._stopping = threading.RLock(), threading.Event()
        self._counts, self._skew = {}, 0.0

    def __enter__(self):
        self._server = _Server((HOST, self.port), _Handler)
        self._server.network, self._server.open = self, {}
        self.port = self._server.server_address[1]
        self.url = f"http://{HOST}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self._stopping.set()
        self._server.shutdown()
        for connection, thread in list(self._server.open.items()):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(JOIN_SECONDS)
        self._server.server_close()
        self._thread.join(JOIN_SECONDS)
        if self.crashes and kind is None:
            raise AssertionError(f"the stand-in itself failed:\n{self.crashes[0]}")

    def now(self) -> float:
        """The network's own time, in epoch seconds."""
        return time.time() + self._skew

    def advance(self, seconds: float):
        """Let the network's time jump ahead, so that tokens, keys and rate windows run out without waiting."""
        self._skew += seconds

    def calls(self, endpoint: str) -> list[Request]:
        """The requests that reached one endpoint, in order."""
        return [request for request in self.requests if request.endpoint == endpoint]

    def fault(self, endpoint: str, **details) -> Fault:
        """Queue a Fault for an endpoint ("*" for every one). Raises ValueError for an endpoint that does not exist."""
        if endpoint != "*" and endpoint not in {name for _, _, name, _, _ in self._routes}:
            raise ValueError(f"no endpoint {endpoint}")
        fault = Fault(endpoint, **details)
        with self._lock:
            self.faults.append(fault)
        return fault

    def fail(self, error: str, **details) -> Fault:
        """Queue a row of the network's error table by name; details as for `fault`, endpoint included."""
        return self.fault(**{**self.errors[error], **details})

    def take(self, rate: str, key, points: int = 1, aligned: bool = False) -> Window:
        """Count a call against a rate for one key. An aligned window starts at a multiple of its length, else at a call."""
        limit, seconds = self.rates[rate]
        now = self.now()
        start, count = self._counts.get((rate, key), (0.0, 0))
        if now >= start + seconds:
            start, count = (now - now % seconds if aligned else now), 0
        count += points
        self._counts[rate, key] = start, count
        return Window(limit, seconds, max(0, limit - count), start + seconds, count > limit)

    def accept(self, request: Request, options: dict):
        """Look at the head of a request before its body is read; raise an Answer to refuse it unread."""

    def call(self, request: Request, options: dict, handler):
        """Run the handler of a route. Networks put in front of it what they do for every request."""
        return handler(self, request)

    def no_route(self, request: Request, methods: list[str]) -> Answer:
        """The answer for an unknown path (no methods) or a known path with another method."""
        return Answer(405 if methods else 404, "")

    def add_user(self, **details):
        """Create an account; each network says with which details and what comes back."""
        raise NotImplementedError

    def serve(self, request: Request, read_body) -> Answer | None:
        """Answer one request, None to end the connection silently. read_body() fills the body or raises ConnectionError."""
        if request.path.startswith(ADMIN):
            read_body()
            return self._admin(request)
        self.requests.append(request)
        options, handler, methods = self._find(request)
        fault = self._take_fault(request.endpoint)
        try:
            if handler and not (fault and fault.prevents):
                self.accept(request, options)
            read_body()
            answer = self._act(request, options, handler, methods, fault)
        except Answer as refusal:
            answer = refusal
        answer.headers = {**request.reply_headers, **answer.headers}
        return self._spoil(answer, fault) if fault else answer

    def _act(self, request, options, handler, methods, fault):
        if fault and fault.prevents:
            return Answer()
        if handler is None:
            return self.no_route(request, methods)
        with self._lock:
            try:
                result = self.call(request, options, handler)
            except Answer:
                raise
            except Exception:
                self.crashes.append(traceback.format_exc())
                return Answer(500, "the stand-in itself failed")
        return result if isinstance(result, Answer) else Answer(200, result)

    def _spoil(self, answer, fault):
        if fault.delay and self._stopping.wait(fault.delay):
            return None
        if fault.drop_before or fault.drop_answer:
            return None
        return Answer(fault.status, fault.body, fault.headers) if fault.status is not None else answer

    def _find(self, request):
        methods = []
        for method, pattern, name, options, handler in self._routes:
            if match := pattern.fullmatch(request.path):
                if method == request.method:
                    request.endpoint, request.args = name, {key: unquote(value) for key, value in match.groupdict().items()}
                    return options, handler, []
                methods.append(method)
        return {}, None, methods

    def _take_fault(self, endpoint):
        with self._lock:
            fitting = [fault for fault in self.faults if fault.endpoint in (endpoint, "*")]
            fault = min(fitting, key=lambda fault: fault.times is None, default=None)     # one for good hides none for once
            if fault and fault.times is not None:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
            return fault

    def _admin(self, request):
        details = parse_json(request.body or b"{}")
        with self._lock:
            match request.method, request.path.removeprefix(ADMIN):
                case "GET", "posts":
                    return Answer(200, {"posts": self.posts})
                case "GET", "requests":
                    keys = ("method", "path", "endpoint", "size", "time", "status")
                    return Answer(200, {"requests": [{key: getattr(one, key) for key in keys} for one in self.requests]})
                case "POST", "users":
                    return Answer(200, {"user": self.add_user(**details)})
                case "POST", "faults":
                    return Answer(200, asdict(self.fail(**details) if "error" in details else self.fault(**details)))
        return Answer(404, "")


def run(network: type[Network]):
    """Serve one network as a process of its own until SIGTERM or SIGINT; its first line on stdout is {"url": ...}."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    port = parser.parse_args().port
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with network(port=port) as running:
        print(json.dumps({"url": running.url}), flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self):
        super().setup()
        self.server.open[self.connection] = threading.current_thread()

    def finish(self):
        with suppress(OSError):
            super().finish()
        self.server.open.pop(self.connection, None)

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(self.server.network.now() if timestamp is None else timestamp)

    def serve(self):
        parts = urlsplit(self.path)
        request = Request(self.command, parts.path, parse_qsl(parts.query, keep_blank_values=True), self.headers, time.time())
        self.unread, answer = True, None
        with suppress(ConnectionError):
            try:
                answer = self.server.network.serve(request, lambda: self._read(request))
            except (ValueError, TypeError, KeyError) as error:  # a malformed head, or arguments the admin calls do not know
                answer = Answer(400, repr(error))
        if answer is None:
            self.close_connection = True
            return
        request.status = answer.status
        with suppress(ConnectionError):
            self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve

    def _read(self, request):
        if "Transfer-Encoding" in self.headers:
            raise Answer(411, "Length Required")
        request.body = self.rfile.read(request.length or 0)
        request.size = len(request.body)
        if request.size < (request.length or 0):
            raise ConnectionError("the sender stopped in the middle of the body")
        self.unread = False

    def _send(self, answer):
        body, kind = _encode(answer.body)
        self.send_response(answer.status)
        for name, value in {**kind, **answer.headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if self.unread:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")
        self.wfile.flush()
        if self.unread:
            self._drain()

    def _drain(self):
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(DRAIN_SECONDS)
        left = DRAINED_BYTES
        with suppress(OSError):
            while left > 0 and (data := self.rfile.read1(1 << 16)):
                left -= len(data)


def _encode(body):
    if body is None:
        return b"", {}
    if isinstance(body, str):
        return body.encode(), {"Content-Type": "text/html; charset=utf-8"}
    return json.dumps(body, ensure_ascii=False).encode(), {"Content-Type": "application/json; charset=utf-8"}


def _part(part):
    text, blank, data = part.partition(b"\r\n\r\n")
    head = HeaderParser(policy=HTTP).parsestr(text.decode().removeprefix("\r\n"))
    name = head.get_param("name", header="content-disposition")
    if not part.startswith(b"\r\n") or not blank or head.get_content_disposition() != "form-data" or name is None:
        raise ValueError("a part without a form-data name")
    return Part(name, head.get_filename(), head.get_content_type() if "Content-Type" in head else None, data)
