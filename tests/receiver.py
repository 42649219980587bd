"""A receiver of webhooks as strict as real ones: it takes nothing that is not signed as Standard Webhooks has it."""

import json
import ssl
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread

from standardwebhooks.webhooks import Webhook

from tests.service import PATIENCE

MEMBERS = {"type", "timestamp", "data"}


class Receiver(ThreadingHTTPServer):
    """Each path is a webhook of its own with its `secrets`; `answers` holds what is answered there, one after the other.

    An answer is a status, or (status, headers), or an Event: 204 once that is set. 204 where nothing is said. `got` has each
    (path, webhook-id, body, headers) in the order of arrival, `faults` what was wrong with any.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, context=None, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.context, self.secrets, self.answers, self.got, self.faults = context, {}, {}, [], []
        self.port, self.connections, self.lock = self.server_address[1], 0, Lock()

    def url(self, path="/"):
        """Where events of this path are to be sent."""
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}{path}"

    def at(self, path="/"):
        """What came to a path: its (webhook-id, body), in order."""
        with self.lock:
            return [(id_, body) for where, id_, body, _ in self.got if where == path]

    def get_request(self):
        """Counts connections; the handshake is left to the thread of each."""
        sock, address = super().get_request()
        self.connections += 1
        if self.context:
            sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return sock, address

    def handle_error(self, request, client_address):
        """A sender that hangs up is no fault of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.request.settimeout(PATIENCE)
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def do_POST(self):
        server, headers = self.server, dict(self.headers.items())
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = _fault(server.secrets.get(self.path, ()), self.headers, body)
        with server.lock:
            server.got.append((self.path, headers.get("webhook-id"), body, headers))
            server.faults += [fault] if fault else []
            answers = server.answers.get(self.path)
            answer = answers.pop(0) if answers else 204
        if isinstance(answer, Event):
            answer.wait(PATIENCE)
            answer = 204
        status, more = answer if isinstance(answer, tuple) else (answer, {})
        self.send_response(400 if fault else status)
        for name, value in {"Content-Length": "0", "Connection": "close", **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


def _fault(secrets, headers, body):
    """What is wrong with a request; None when nothing is. Each of the `secrets` has to fit."""
    if headers["Content-Type"] != "application/json" or headers["Transfer-Encoding"] or headers["Content-Encoding"]:
        return "not plain JSON"
    if any(len(headers.get_all(f"webhook-{name}", [])) != 1 for name in ("id", "timestamp", "signature")):
        return "a header of the signature is not there once"
    try:
        for secret in secrets:
            Webhook(secret).verify(body, dict(headers.items()))
        event = json.loads(body)
    except Exception as error:
        return repr(error)
    if not secrets or set(event) != MEMBERS or not event["timestamp"].endswith("Z"):
        return f"no event of ours: {event}"
    return None


@contextmanager
def receiving(context=None, port=0):
    """A running Receiver."""
    server = Receiver(context, port)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
