"""A chat endpoint in OpenAI's format, as strict as the real ones about what it is sent, that answers what the test says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY, MODEL = "sk-model-canary", "small-1"


class ChatServer:
    """`with ChatServer() as model:` then `model.says(text)`, `model.answers(status, raw)`, `model.waits(seconds)`."""

    def __init__(self):
        self.requests = []
        self.status, self.raw, self.delay = 200, b"", 0.0
        self.says("A caption.")
        self._http = _Quiet(("127.0.0.1", 0), _handler(self))
        self._released = threading.Event()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._released.set()
        self._http.shutdown()
        self._http.server_close()

    def says(self, text, tokens=17):
        """The next answers hold `text` and report `tokens` (None: no usage)."""
        answer = {"id": "c1", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
        self.answers(200, json.dumps(answer | ({} if tokens is None else {"usage": {"total_tokens": tokens}})).encode())

    def answers(self, status, raw):
        """The next answers are exactly these bytes."""
        self.status, self.raw = status, raw

    def waits(self, seconds):
        """The next answers come after so many seconds."""
        self.delay = seconds

    def judge(self, method, path, headers, body):
        """The status and body for a request: what the real endpoints refuse is refused."""
        if method != "POST" or path != "/v1/chat/completions":
            return 404, b'{"error": {"message": "no such route"}}'
        if headers.get("Authorization") != f"Bearer {KEY}":
            return 401, json.dumps({"error": {"message": f"Incorrect API key: {headers.get('Authorization')}"}}).encode()
        request = json.loads(body)
        if headers.get("Content-Type") != "application/json" or set(request) - {"model", "messages", "max_tokens", "temperature"}:
            return 400, b'{"error": {"message": "unknown member"}}'
        if request["model"] != MODEL:
            return 404, b'{"error": {"message": "no such model"}}'
        assert [sorted(message) for message in request["messages"]] == [["content", "role"]] * len(request["messages"])
        self.requests.append(request)
        return self.status, self.raw

    def pause(self):
        """Waits as told, or until the server ends."""
        if self.delay:
            self._released.wait(self.delay)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A caller that hangs up is no news."""


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, raw = server.judge(self.command, self.path, self.headers, body)
            server.pause()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *words):
            pass

    return Handler
