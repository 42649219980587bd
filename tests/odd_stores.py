"""Stores that are not as they should be, each a server of its own."""

import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from storage.objects import Objects

SECRET = "the-secret-key-of-nobody"


class Careless(BaseHTTPRequestHandler):
    """A store that takes everything, but no CORS rules."""

    def status(self):
        return 501 if self.path.endswith("?cors=") else 200

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status())
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


class Open(Careless):
    """The same, which admits the pages of `origin` all by itself."""

    origin, preflight, telling = "*", 204, ("OPTIONS", "PUT")

    def end_headers(self):
        if self.command in self.telling:
            self.send_header("Access-Control-Allow-Origin", self.origin)
            self.send_header("Access-Control-Allow-Methods", "GET, PUT")
        super().end_headers()

    def do_OPTIONS(self):
        self.send_response(self.preflight)
        self.end_headers()


class Old(Careless):
    """A store that knows no conditions, as Swift 2.30 and Backblaze B2 are."""

    def status(self):
        return 501 if "If-None-Match" in self.headers else 200


class Refusing(Careless):
    """A store that refuses what is signed in the URL."""

    def status(self):
        return 403 if "X-Amz-Signature" in self.path else 200


@contextmanager
def serving(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Objects(f"http://127.0.0.1:{server.server_port}", "key", SECRET, "media")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def answering(text):
    """A store that answers whatever it is asked with these bytes, and hangs up once the asker has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def loop():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.settimeout(10)
                    connection.recv(65_536)
                    connection.sendall(text)
                    connection.shutdown(socket.SHUT_WR)
                    # A socket closed with bytes unread is reset, and the reset can overtake the answer.
                    while connection.recv(65_536):
                        pass
        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield Objects(f"http://127.0.0.1:{server.getsockname()[1]}", "key", SECRET, "media")
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
