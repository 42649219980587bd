"""The guarded fetch against real, mostly hostile servers on loopback; every connection of the process is watched."""

import io
import ipaddress
import socket
import ssl
import sys
import threading
import tracemalloc
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from time import monotonic, sleep

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from storage.fetch import (MAX_REDIRECTS, USER_AGENT, WEB_PORTS, BadStatus, Broken, Download, Fetcher, Refused,
                           Timeouts, TooLarge, Unreachable)
from storage.wire import MAX_HEAD

QUICK = Timeouts(dns=0.2, connect=0.2, first_byte=0.2, total=0.4)
PATIENT = Timeouts(dns=2, connect=2, first_byte=5, total=10)
BARE = b"HTTP/1.1 200 OK\r\n"
OK = BARE + b"Content-Length: 2\r\n\r\nok"
CHUNKED = BARE + b"Transfer-Encoding: chunked\r\n\r\n"
PUBLIC = "93.184.216.34"
SYSTEM_TRUST = ssl.create_default_context()  # made once, because it is slow
UNREACHED = "the address cannot be reached"
watched = None  # what the process connects to, while a test watches


def watch(event, args):
    """Notes every connect, and keeps those that would leave loopback from happening."""
    if event == "socket.connect" and watched is not None and args[0].family in (socket.AF_INET, socket.AF_INET6):
        watched.append((args[0].type, *args[1][:2]))
        if not args[1][0].startswith(("127.", "::1", "localhost")):
            raise ConnectionRefusedError


sys.addaudithook(watch)


@pytest.fixture(autouse=True)
def connects():
    """The (address, port) pairs that TCP sockets were connected to, as a function."""
    global watched
    watched = []
    yield lambda: [where for kind, *where in watched if kind == socket.SOCK_STREAM]
    watched = None


class Server:
    """Accepts connections, keeps what they send, and answers each request by bytes or by a function of (socket, number)."""

    def __init__(self, answer, host="127.0.0.1", port=0, context=None):
        self.answer, self.context, self.requests, self.names = answer, context, [], []
        self.accepted = self.ended = 0
        self.listener = socket.create_server((host, port))
        self.host, self.port = self.listener.getsockname()
        self.closing = threading.Event()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()
        if context:
            context.sni_callback = lambda sock, name, context: self.names.append(name)

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            self.threads.append(threading.Thread(target=self.serve, args=(sock, self.accepted - 1)))
            self.threads[-1].start()

    def serve(self, sock, number):
        sock.settimeout(5)
        try:
            with sock, (self.context.wrap_socket(sock, server_side=True) if self.context else sock) as sock:
                self.requests.append(b"")
                while b"\r\n\r\n" not in self.requests[number]:
                    self.requests[number] += sock.recv(65536) or b"\r\n\r\n(closed)"
                if callable(self.answer):
                    self.answer(sock, number)
                else:
                    sock.sendall(self.answer)
        except OSError:
            pass  # the fetcher hung up, as it often must
        finally:
            self.ended += 1

    def receive(self, sock, number):
        """Reads on until the client closes."""
        while piece := sock.recv(65536):
            self.requests[number] += piece

    def drip(self, sock, piece):
        """Sends `piece` again and again until the client or the test ends."""
        while not self.closing.wait(0.02):
            sock.sendall(piece)

    def finish(self):
        """Waits until a connection was accepted and all of them have ended."""
        while not self.ended or self.ended < self.accepted:
            sleep(0.005)

    def close(self):
        self.closing.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def serve():
    servers = []

    def start(answer, **options):
        servers.append(Server(answer, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@contextmanager
def took_less_than(seconds):
    start = monotonic()
    yield
    assert monotonic() - start < seconds


def allowing(*servers, host="a.test", resolve=lambda name: ["127.0.0.1"], ssl_context=SYSTEM_TRUST):
    return Fetcher(frozenset((host, server.port) for server in servers), resolve, ssl_context=ssl_context)


def ask(server, method="GET", target="/", *, scheme="http", max_bytes=1000, timeouts=PATIENT, ssl_context=SYSTEM_TRUST,
        **options):
    """Status and body of the answer to one request to `server`."""
    fetcher = allowing(server, ssl_context=ssl_context)
    with fetcher.open(method, f"{scheme}://a.test:{server.port}{target}", timeouts=timeouts, **options) as response:
        return response.status, response.read(max_bytes)


def download(server, file=None, *, timeouts=PATIENT, **options):
    url = f"http://a.test:{server.port}/a"
    return allowing(server, **options).download(url, file or io.BytesIO(), max_bytes=10, timeouts=timeouts)


def redirect(location, status=302, body=b""):
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 5\r\n\r\n".encode("utf-8") + body


def with_lines(*lines):
    """The good answer with more lines in its head."""
    return BARE + b"".join(line + b"\r\n" for line in lines) + OK.removeprefix(BARE)


# What is sent

def test_the_request_is_exactly_this(serve):
    server = serve(OK)
    assert ask(server) == (200, b"ok")
    assert sorted(server.requests[0].decode().split("\r\n")) == sorted(
        ["GET / HTTP/1.1", f"User-Agent: {USER_AGENT}", "Accept: */*", f"Host: a.test:{server.port}",
         "Accept-Encoding: identity", "Connection: close", "", ""])


def test_headers_replace_the_defaults_but_not_the_encoding(serve):
    server = serve(OK)
    ask(server, headers={"user-agent": "mine", "ACCEPT": "text/html", "accept-encoding": "gzip", "X-Key": "ü"})
    lines = server.requests[0].decode("latin-1").lower().split("\r\n")
    assert [line for line in lines if line.startswith(("user-agent", "accept", "x-"))] == [
        "user-agent: mine", "accept: text/html", "accept-encoding: identity", "x-key: ü"]


@pytest.mark.parametrize("body, headers", [
    (b"hello", {}), (b"hello", {"content-length": "5"}), (io.BytesIO(b"hello"), {"Content-Length": "5"}),
    ([b"he", b"", b"llo"], {"Content-Length": "5"}), (iter([b"hello"]), {"Content-Length": "5"}),
], ids=["bytes", "bytes with length", "file", "list", "iterator"])
def test_a_body_arrives_with_its_length(serve, body, headers):
    def answer(sock, number):
        while not server.requests[number].endswith(b"hello"):
            server.requests[number] += sock.recv(100)
        sock.sendall(OK)

    server = serve(answer)
    assert ask(server, "POST", headers=headers, body=body) == (200, b"ok")
    head = server.requests[0].lower()
    assert (head.count(b"content-length: 5\r\n"), head.count(b"transfer-encoding")) == (1, 0)


@pytest.mark.parametrize("method, options", [
    ("POST", {"body": [b"x"]}), ("POST", {"body": [b"x"], "headers": {"Content-Length": "-1"}}),
    ("POST", {"body": b"x", "headers": {"Content-Length": "2"}}), ("GET", {"headers": {"Content-Length": "2"}}),
    ("GET", {"headers": {"Host": "b.test"}}), ("GET", {"headers": {"Transfer-Encoding": "chunked"}}), ("GET /", {}),
    ("get", {}),
], ids=["no length", "bad length", "wrong length", "length without body", "host", "chunked", "blank in method", "small method"])
def test_a_request_that_cannot_be_formed_is_a_value_error(serve, connects, method, options):
    server = serve(OK)
    with pytest.raises(ValueError):
        ask(server, method, **options)
    assert connects() == []


@pytest.mark.parametrize("headers", [
    {"X-Key": "hush\r\nX: y"}, {"X-Key": "hush\n"}, {"X-Key": "hush\x00"}, {"X-Key": "hush€"}, {"hush": "\x7f"},
    {"X hush": "y"}, {"": "hush"}, {"X:hush": "y"},
], ids=ascii)
def test_a_header_that_could_split_the_request_is_refused_without_showing_it(serve, connects, headers):
    server = serve(OK)
    with pytest.raises(Refused) as refusal:
        ask(server, headers=headers)
    assert (connects(), "hush" in str(refusal.value)) == ([], False)


def body_that_fails(error):
    yield b"hel"
    raise error


@pytest.mark.parametrize("body", [
    [b"hel"], [b"hello", b"!"], [b"hello!"], body_that_fails(Unreachable("no")), body_that_fails(TooLarge("no")),
    body_that_fails(OSError("no")),
], ids=["short", "long", "long piece", "fails to reach", "fails too large", "fails to read"])
def test_a_body_that_is_not_as_announced_is_broken_and_never_whole(serve, body):
    server = serve(lambda sock, number: server.receive(sock, number))
    with pytest.raises(Broken):
        ask(server, "POST", headers={"Content-Length": "5"}, body=body)
    server.finish()
    assert server.requests[0].partition(b"\r\n\r\n")[2] in (b"hel", b"hello", b"")


def test_the_environment_has_no_say(serve, monkeypatch):
    server, proxy = serve(OK), serve(OK)
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert (ask(server), proxy.accepted) == ((200, b"ok"), 0)


# Where it connects to

@pytest.mark.parametrize("answers", [
    [PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC, "::1"], [PUBLIC, "::ffff:8.8.8.8"], ["127.0.0.1"],
    [PUBLIC, "fe80::1%lo"], ["64:ff9b::808:808"], [f"93.184.216.{last}" for last in range(33)],
], ids=lambda answers: " ".join(answers)[:40])
def test_one_address_that_is_not_public_refuses_the_whole_answer(connects, answers):
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: answers)
    with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert connects() == []


def test_a_name_is_resolved_once_and_only_what_was_checked_is_connected(connects):
    answers = iter([[PUBLIC], ["127.0.0.1"], ["10.0.0.1"]])
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: next(answers))
    with pytest.raises(Unreachable, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert connects() == [[PUBLIC, 80]]
    with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert (connects(), next(answers)) == ([[PUBLIC, 80]], ["10.0.0.1"])


def test_a_record_that_moves_after_the_check_moves_nothing(serve, connects):
    checked = serve(OK, host="127.0.0.2")
    other = serve(OK, host="127.0.0.3", port=checked.port)
    answers = iter([["127.0.0.2"], ["127.0.0.3"]])
    with allowing(checked, resolve=lambda host: next(answers)).open("GET", f"http://a.test:{checked.port}/") as response:
        assert response.read(10) == b"ok"
    assert (connects(), other.accepted, next(answers)) == ([["127.0.0.2", checked.port]], 0, ["127.0.0.3"])


def test_what_is_allowed_privately_is_one_host_on_one_port(serve, connects):
    server, other = serve(OK), serve(OK)
    fetcher = Fetcher(frozenset({("LOCALHOST", server.port), ("[::0:1]", 1)}))
    with fetcher.open("GET", f"http://localhost:{server.port}/") as response:
        assert response.read(10) == b"ok"
    for url in (f"http://localhost:{other.port}/", f"http://127.0.0.1:{server.port}/", f"http://a.localhost:{server.port}/"):
        for ports in (None, {server.port, other.port}):
            with pytest.raises(Refused), fetcher.open("GET", url, ports=ports):
                pass
    with pytest.raises(Unreachable), fetcher.open("GET", "http://[::1]:1/"):
        pass
    assert (server.accepted, other.accepted) == (1, 0)


def test_the_defaults_are_those_that_users_are_promised():
    assert Timeouts() == Timeouts(dns=5, connect=5, first_byte=10, total=60)
    assert (WEB_PORTS, MAX_REDIRECTS) == ({80, 443, 8080, 8443}, 3)


def test_only_web_ports_are_open_unless_the_caller_lifts_the_rule(connects):
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: [PUBLIC])
    with pytest.raises(Refused, match="port"), fetcher.open("GET", "http://host.org:22/"):
        pass
    for url, options in (("http://host.org:22/", {"ports": None}), ("https://host.org:8443/", {})):
        with pytest.raises(Unreachable), fetcher.open("GET", url, **options):
            pass
    assert connects() == [[PUBLIC, 22], [PUBLIC, 8443]]


# Redirects

INNER = [
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://[::1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "//127.0.0.1:{port}/", "http://127.0.0.1:8080/", "http://localhost:8080/", "http://[::1]:8080/",
    "http://[::ffff:7f00:1]:8080/", "//0.0.0.0:8080/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/",
    "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://2130706433/", "http://0x7f.1:8080/", "http://127.1/",
    "http://①②⑦.⓪.⓪.①/", "http://inner.org/", "http://inner.org:8080/", "https://127.0.0.1:8443/", "http://a.test/",
    "http://a.test@127.0.0.1/", "http://127.0.0.1\\@a.test/", "file:///etc/passwd", "gopher://127.0.0.1/", "http:///",
    "http://a.internal/",
]


@pytest.mark.parametrize("location", INNER)
def test_a_redirect_to_the_inside_is_refused(serve, connects, location):
    inner = serve(OK)
    server = serve(redirect(location.format(port=inner.port)))
    with pytest.raises(Refused):
        download(server)
    assert (connects(), inner.accepted) == ([["127.0.0.1", server.port]], 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_three_redirects_are_followed_and_each_is_resolved_anew(serve, status):
    locations, lookups = ["/b?x=ü", "//a.test:{port}/c/", "../d"], []

    def answer(sock, number):
        if number < 3:
            sock.sendall(redirect(locations[number].format(port=server.port), status))
        else:
            sock.sendall(with_lines(b"Content-Type: Image/PNG; q=1"))

    server, file = serve(answer), io.BytesIO()
    brought = download(server, file, resolve=lambda host: lookups.append(host) or ["127.0.0.1"])
    assert brought == Download(2, f"http://a.test:{server.port}/d", "image/png")
    assert [request.split(b" ")[1] for request in server.requests] == [b"/a", b"/b?x=%C3%BC", b"/c/", b"/d"]
    assert (file.getvalue(), lookups) == (b"ok", ["a.test"] * 4)


def test_a_fourth_redirect_is_refused(serve):
    server = serve(redirect("/"))
    with pytest.raises(Refused, match="more than 3 times"):
        download(server)
    assert server.accepted == 4


@pytest.mark.parametrize("answer, status", [
    (redirect("/", 300), 300), (redirect("/", 304), 304), (redirect("/", 201), 201), (redirect(""), 302),
    (b"HTTP/1.1 404 No\r\n\r\n", 404), (b"HTTP/1.1 206 Part\r\n\r\n", 206),
])
def test_a_download_ends_well_with_200_only(serve, answer, status):
    server, file = serve(answer), io.BytesIO()
    with pytest.raises(BadStatus) as failure:
        download(server, file)
    assert (failure.value.status, file.getvalue(), server.accepted) == (status, b"", 1)


def test_the_body_of_a_redirect_is_not_read(serve):
    def answer(sock, number):
        sock.sendall(OK if number else redirect("/b").replace(b"Content-Length: 5", b"Content-Length: 99999999"))
        if not number:
            server.drip(sock, b"x" * 65536)

    server = serve(answer)
    with took_less_than(1):
        assert download(server).bytes == 2


def test_one_deadline_holds_for_all_redirects_together(serve):
    def answer(sock, number):
        sleep(0.3)
        sock.sendall(redirect("/"))

    server = serve(answer)
    with took_less_than(1), pytest.raises(Broken, match="in time"):
        download(server, timeouts=Timeouts(total=0.5))


# Answers that are late, endless, cut or twisted

def drip(piece, after=BARE):
    def answer(server, sock):
        sock.sendall(after)
        server.drip(sock, piece)
    return answer


SLOW = {
    "silence": drip(b"", b""), "status line": drip(b"x", b"HTTP/1.1 200 "), "headers": drip(b"X: y\r\n"),
    "one header": drip(b"y", BARE + b"X: "), "interim answers": drip(b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    "body": drip(b"x", BARE + b"\r\n"), "body with length": drip(b"x", BARE + b"Content-Length: 999\r\n\r\n"),
    "chunks": drip(b"1\r\nx\r\n", CHUNKED), "chunk size": drip(b"0", CHUNKED),
    "trailers": drip(b"X: y\r\n", CHUNKED + b"0\r\n"),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_a_slow_drip_ends_at_the_deadline(serve, answer):
    server = serve(lambda sock, number: answer(server, sock))
    with took_less_than(1), pytest.raises(Broken, match="in time"):
        ask(server, timeouts=QUICK)


def test_a_head_has_less_time_than_a_body(serve):
    server = serve(lambda sock, number: server.drip(sock, b""))
    with took_less_than(2), pytest.raises(Broken):
        ask(server, timeouts=Timeouts(first_byte=0.1, total=3))


def test_a_server_that_does_not_read_holds_a_body_no_longer_than_the_deadline(serve):
    server = serve(lambda sock, number: server.closing.wait())
    with took_less_than(1), pytest.raises(Broken, match="in time"):
        ask(server, timeouts=QUICK, body=bytes(50_000_000))


ENDLESS = {
    "headers": (BARE, b"X: " + b"y" * 60000 + b"\r\n"), "short headers": (BARE, b"X: y\r\n" * 1000),
    "header": (BARE, b"y" * 65536), "status line": (b"HTTP/1.1 200 ", b"y" * 65536),
    "interim answers": (b"", b"HTTP/1.1 103 Hints\r\nX: y\r\n\r\n" * 1000), "no HTTP": (b"", b"y" * 65536),
    "body": (BARE + b"\r\n", b"y" * 65536), "chunk": (CHUNKED + b"ffffffff\r\n", b"y" * 65536),
    "chunk size": (CHUNKED, b"0" * 65536), "chunk of negative size": (CHUNKED + b"-1\r\n", b"y" * 65536),
}


@pytest.mark.parametrize("first, more", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_answer_fills_no_memory(serve, first, more):
    def answer(sock, number):
        sock.sendall(first)
        while not server.closing.is_set():
            sock.sendall(more)

    server = serve(answer)
    tracemalloc.start()
    with took_less_than(3), pytest.raises((Broken, TooLarge)):
        ask(server, timeouts=Timeouts(total=1.5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_head_of_usual_size_is_read_and_a_huge_one_is_not(serve):
    line = b"X: " + b"y" * 997
    assert ask(serve(with_lines(*[line] * 40))) == (200, b"ok")
    with pytest.raises(Broken):
        ask(serve(with_lines(*[line] * (MAX_HEAD // len(line) + 1))))


FRAMED = {"with length": BARE + b"Content-Length: 10\r\n\r\n0123456789", "until the end": BARE + b"\r\n0123456789",
          "in chunks": CHUNKED + b"4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\nX: y\r\n\r\n"}


@pytest.mark.parametrize("answer", FRAMED.values(), ids=FRAMED)
def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_too_large(serve, answer):
    assert ask(serve(answer), max_bytes=10) == (200, b"0123456789")
    with pytest.raises(TooLarge):
        ask(serve(answer), max_bytes=9)


def test_a_stated_length_over_the_limit_is_too_large_before_any_of_it_came(serve):
    server = serve(lambda sock, number: drip(b"", BARE + b"Content-Length: 11\r\n\r\n")(server, sock))
    with took_less_than(0.5), pytest.raises(TooLarge):
        download(server)


TWISTED = {
    "closed at once": b"", "no HTTP": b"220 smtp.host.org ESMTP\r\n\r\n", "HTTP/0.9": b"<html>hello</html>",
    "bad status": b"HTTP/1.1 2xx\r\n\r\n", "status 99": b"HTTP/1.1 99 OK\r\n\r\n", "cut head": BARE + b"X: y",
    "cut after a header": BARE + b"X: y\r\n", "cut body": OK[:-1], "cut chunk": CHUNKED + b"5\r\nhel",
    "no last chunk": CHUNKED + b"2\r\nok\r\n", "bad chunk": CHUNKED + b"x\r\nok\r\n",
    "two lengths": with_lines(b"Content-Length: 3"), "length list": OK.replace(b": 2", b": 2, 3"),
    "length -1": OK.replace(b": 2", b": -1"), "length +2": OK.replace(b": 2", b": +2"),
    "unknown coding": CHUNKED.replace(b"chunked", b"gzip, chunked"), "line without colon": with_lines(b"hush"),
    "encoded": with_lines(b"Content-Encoding: gzip"),
}


@pytest.mark.parametrize("answer", TWISTED.values(), ids=TWISTED)
def test_an_answer_that_is_not_whole_and_clear_is_broken_and_asked_for_once(serve, answer):
    server = serve(answer)
    with pytest.raises(Broken):
        ask(server)
    assert (server.accepted, len(server.requests)) == (1, 1)


def test_a_malformed_answer_leaves_no_secret_behind(serve, caplog):
    caplog.set_level("DEBUG")
    with pytest.raises(Broken) as failure:
        ask(serve(TWISTED["line without colon"]), target="/?token=hush", headers={"X-Key": "hush"})
    assert "hush" not in caplog.text + repr(failure.value)


def test_interim_answers_are_skipped(serve):
    server = serve(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    with allowing(server).open("GET", f"http://a.test:{server.port}/") as response:
        assert (response.status, response.read(2)) == (200, b"ok")
        assert (response.headers.get("Link"), response.headers["content-length"]) == (None, "2")


@pytest.mark.parametrize("method, status", [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_without_a_body_is_whole_whatever_length_it_states(serve, method, status):
    server = serve(OK[:-2].replace(b"200", b"%d" % status))
    with allowing(server).open(method, f"http://a.test:{server.port}/") as response:
        assert (response.status, response.read(0), response.url) == (status, b"", f"http://a.test:{server.port}/")


@pytest.mark.parametrize("status", [200, 413])
def test_an_early_no_counts_and_an_early_yes_does_not(serve, status):
    server = serve(OK.replace(b"200", b"%d" % status))  # and closes with the body unread, which resets the connection
    if status == 413:
        assert ask(server, body=bytes(20_000_000)) == (413, b"ok")
    else:
        with pytest.raises(Broken):
            ask(server, body=bytes(20_000_000))


# No connection, so that surely nothing was sent

def raising(error):
    def resolve(host):
        raise error
    return resolve


@pytest.mark.parametrize("resolve", [
    raising(socket.gaierror(-2, "hush")), raising(TimeoutError()), raising(ValueError("hush")), lambda host: [],
    lambda host: None, lambda host: ["localhost"], lambda host: sleep(1),
], ids=["unknown", "timed out", "fails", "no address", "nothing", "a name", "slow"])
def test_a_name_without_a_usable_answer_is_unreachable(connects, resolve):
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=resolve)
    with took_less_than(0.9), pytest.raises(Unreachable, match=UNREACHED):
        with fetcher.open("GET", "http://host.org/", timeouts=QUICK):
            pass
    assert connects() == []


def test_stuck_lookups_take_up_eight_threads_and_no_more():
    gate, stuck = threading.Event(), []
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: stuck.append(host) or gate.wait(5))
    brief = Timeouts(dns=0.05)
    for number in range(12):
        with pytest.raises(Unreachable), fetcher.open("GET", f"http://{number}.org/", timeouts=brief):
            pass
    assert len(stuck) == 8
    gate.set()


def test_a_refused_port_is_unreachable():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can listen there
        port = reserved.getsockname()[1]
        fetcher = Fetcher(frozenset({("127.0.0.1", port)}), ssl_context=SYSTEM_TRUST)
        with pytest.raises(Unreachable, match=UNREACHED), fetcher.open("POST", f"http://127.0.0.1:{port}/", body=b"x"):
            pass


# TLS

def signed(subject, key, issuer, issuer_key, days=9, names=()):
    now = datetime.now(timezone.utc)
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, issuer))
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), now - timedelta(days=9),
                                      now + timedelta(days=days))
    builder = builder.add_extension(x509.BasicConstraints(not names, None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The context that trusts a new authority, and a function that makes a server's context for a name that it vouches for."""
    root = ec.generate_private_key(ec.SECP256R1())
    certificate = signed("authority", root, "authority", root)

    def serving(name, days=9):
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)]
        chain = tmp_path_factory.mktemp("tls") / "chain.pem"
        chain.write_bytes(signed("server", key, "authority", root, days, names) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context

    return ssl.create_default_context(cadata=certificate.decode()), serving


def test_tls_with_the_right_name_is_accepted_and_the_name_stays_the_name(serve, authority, connects):
    trusting, serving = authority
    server = serve(OK, context=serving("a.test"))
    assert ask(server, scheme="https", ssl_context=trusting) == (200, b"ok")
    assert server.names == ["a.test"]
    assert f"\r\nHost: a.test:{server.port}\r\n".encode() in server.requests[0]
    assert connects() == [["127.0.0.1", server.port]]


def test_tls_with_an_address_is_accepted_for_that_address(serve, authority):
    trusting, serving = authority
    server = serve(OK, context=serving("127.0.0.1"))
    with allowing(server, host="127.0.0.1", ssl_context=trusting).open("GET", f"https://127.0.0.1:{server.port}/") as response:
        assert response.read(2) == b"ok"


@pytest.mark.parametrize("name, days, trusted", [
    ("b.test", 9, True), ("*.a.test", 9, True), ("127.0.0.1", 9, True), ("a.test", -1, True), ("a.test", 9, False),
], ids=["other name", "name below", "only the address", "expired", "unknown authority"])
def test_tls_with_a_bad_certificate_is_unreachable_and_sends_nothing(serve, authority, name, days, trusted):
    trusting, serving = authority
    server = serve(OK, context=serving(name, days))
    with pytest.raises(Unreachable, match=UNREACHED):
        ask(server, "POST", scheme="https", body=b"x", ssl_context=trusting if trusted else None)
    server.finish()
    assert (server.accepted, server.requests) == (1, [])


def test_https_to_a_plain_server_is_unreachable_and_http_to_an_https_server_is_broken(serve, authority):
    with took_less_than(1), pytest.raises(Unreachable):
        ask(serve(OK), scheme="https", timeouts=QUICK)
    with took_less_than(1), pytest.raises(Broken):
        ask(serve(OK, context=authority[1]("a.test")), timeouts=QUICK)


def test_a_slow_drip_through_tls_ends_at_the_deadline(serve, authority):
    trusting, serving = authority
    server = serve(lambda sock, number: drip(b"x", BARE + b"\r\n")(server, sock), context=serving("a.test"))
    with took_less_than(1), pytest.raises(Broken, match="in time"):
        ask(server, scheme="https", ssl_context=trusting, timeouts=QUICK)
