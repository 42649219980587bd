"""Real, mostly hostile servers on loopback for the guarded fetch; every connection of the process is watched."""

import io
import socket
import ssl
import sys
import threading
from contextlib import contextmanager
from time import monotonic, sleep

import pytest

from storage.fetch import Fetcher, Timeouts

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


def drip(piece, after=BARE):
    def answer(server, sock):
        sock.sendall(after)
        server.drip(sock, piece)
    return answer
