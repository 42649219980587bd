"""A chat endpoint in OpenAI's format, as strict as the real ones about what it is sent, with every fault they are known for.

Members, roles and error bodies: https://platform.openai.com/docs/api-reference/chat/create.
"""

import json
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY, MODEL = "sk-model-canary", "small-1"
MEMBERS = {"model", "messages"}         # what every server of the format knows; others refuse one or another of the rest
TICK = 0.02     # seconds between two looks at whether the caller is still there


@dataclass
class Reply:
    """One answer. `manner`: whole, drop (no answer), cut (half of it), drip (a byte at a time)."""

    status: int = 200
    raw: bytes = b""
    headers: dict = field(default_factory=dict)
    delay: float = 0.0
    manner: str = "whole"


def completion(text, *, tokens=17, finish="stop", **message):
    """The bytes of an answer that holds `text` and reports `tokens` (None: no usage)."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": tokens}}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "model": MODEL, "choices": [choice], **usage}).encode()


def error(status, message, *, headers=None, **more):
    """A refusal as the real ones word it, with things in it that nobody else should read."""
    body = {"error": {"message": message, "type": "error", "param": None, **more}}
    return Reply(status, json.dumps(body).encode(), headers or {})


class ChatServer:
    """`with ChatServer() as model:`; each of `says`, `answers`, `plans` replaces what the next requests get."""

    def __init__(self):
        self.requests, self.headers, self.times = [], [], []
        self.left = threading.Event()       # a caller hung up before its answer
        self.busy = 0                       # requests under way
        self.key = KEY                      # None: a server without keys, as local ones are
        self._plan, self._echo, self._lock = [Reply(raw=completion("A caption."))], False, threading.Lock()
        self._http = _Quiet(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._released = threading.Event()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._released.set()
        self._http.shutdown()
        self._http.server_close()

    def says(self, *texts, tokens=17, delay=0.0):
        """The next answers hold these texts in turn, the last one from then on, and report `tokens`."""
        self.plans(*(Reply(raw=completion(text, tokens=tokens), delay=delay) for text in texts))

    def answers(self, status, raw, **more):
        """The next answers are exactly these bytes."""
        self.plans(Reply(status, raw, **more))

    def plans(self, *replies):
        """The next answers are these in turn, the last one from then on."""
        with self._lock:
            self._plan, self._echo = list(replies), False

    def echoes(self):
        """The next answers hold everything that was sent: headers, members and messages."""
        self._echo = True

    def waits(self, seconds):
        """The answers after this come so many seconds later."""
        for reply in self._plan:
            reply.delay = seconds

    def reply(self, method, path, headers, body):
        """What a request gets: what the real endpoints refuse is refused."""
        if method != "POST" or path != "/v1/chat/completions":
            return error(404, "no such route")
        if headers.get("Authorization") != (f"Bearer {self.key}" if self.key else None):
            return error(401, f"Incorrect API key provided: {headers.get('Authorization')}", code="invalid_api_key")
        request = json.loads(body)
        if headers.get("Content-Type") != "application/json" or set(request) != MEMBERS or not _sound(request["messages"]):
            return error(400, f"invalid request: {body!r}")
        if request["model"] != MODEL:
            return error(404, f"The model `{request['model']}` does not exist", code="model_not_found")
        with self._lock:
            self.requests.append(request)
            self.headers.append(dict(headers))
            self.times.append(time.monotonic())
            if self._echo:
                return Reply(raw=completion(json.dumps({**request, "headers": dict(headers)}, ensure_ascii=False)))
            return self._plan.pop(0) if len(self._plan) > 1 else self._plan[0]

    def count(self, change):
        """One request more or less is under way."""
        with self._lock:
            self.busy += change

    def pause(self, seconds, connection):
        """Waits, at most until the server ends or the caller hangs up; False then."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._released.is_set():
            if select.select([connection], [], [], TICK)[0]:
                self.left.set()
                return False
        return True


def _sound(messages):
    """A system message, then those of the user and the assistant in turn, the user's at the end; texts that are not empty."""
    roles = [message["role"] for message in messages]
    expected = ["system", *(("user", "assistant")[number % 2] for number in range(len(messages) - 1))]
    texts = [message["content"] for message in messages if set(message) == {"role", "content"}]
    return (roles == expected and roles[-1] == "user" and len(texts) == len(messages)
            and all(isinstance(text, str) and text for text in texts))


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A caller that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ChatServer

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        reply = self.model.reply(self.command, self.path, self.headers, body)
        self.model.count(1)
        try:
            if self.model.pause(reply.delay, self.connection):
                self.answer(reply)
        finally:
            self.model.count(-1)

    def answer(self, reply):
        self.close_connection = True
        if reply.manner == "drop":
            return self.connection.shutdown(socket.SHUT_RDWR)
        self.send_response(reply.status)
        usual = {"Content-Type": "application/json", "Content-Length": str(len(reply.raw))}
        for name, value in {**usual, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.manner == "drip":
            return any(self.wfile.write(bytes([byte])) and not self.model.pause(0.1, self.connection) for byte in reply.raw)
        return self.wfile.write(reply.raw[:len(reply.raw) // 2] if reply.manner == "cut" else reply.raw)

    def log_message(self, *words):
        pass
