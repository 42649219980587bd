"""A server of links for tests of from-url, and an API that is allowed to fetch from it."""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from tests.service import PATIENCE, Member, free_port, start_api


class Links(ThreadingHTTPServer):
    """`answers` maps a path to (status, headers, body); `asked` has each (path, headers). Answers wait until `open` is set."""

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers, self.asked, self.open = {}, [], Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.open.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        self.server.open.wait(PATIENCE)
        status, headers, body = self.server.answers.get(self.path, (404, {}, b"nothing"))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Connection": "close", **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass    # the reader has seen enough

    def log_message(self, *_):
        pass


@contextmanager
def serving(port=0):
    """A running Links."""
    server = Links(port)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.open.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def fetching_api(environ):
    """The address of an API that may fetch from one port of this machine, and the Links at that port."""
    with serving(free_port()) as server:
        process, url = start_api({**environ, "POSTHORN_ALLOW_PRIVATE": f"127.0.0.1:{server.server_address[1]}"})
        yield url, server
        process.stop()


@pytest.fixture
def links(fetching_api):
    """The Links, which know nothing yet."""
    server = fetching_api[1]
    server.answers.clear()
    server.asked.clear()
    yield server
    server.open.set()


@pytest.fixture
def fetcher(fetching_api):
    """A team of its own whose API may fetch from `links`."""
    return Member(fetching_api[0])
