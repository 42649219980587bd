"""Requests a second and latency of the API, as a ratio to a bare program that does the same SQL and answers the same bytes.

Run: python -m tests.benchmarks.api [--rounds 5] [--seconds 3]

Two processes each of the API and of the floor (tests/benchmarks/floor.py), both under the same server, in turns, on one
PostgreSQL; 4 and 16 connections that ask one request after the other. Health is held against bare Starlette.
"""

import argparse
import asyncio
import os
import pickle
import selectors
import socket
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

from psycopg2.extras import Json

from handlers.app import create_app
from handlers.config import Config
from handlers.health import get_health
from storage.database import database
from tests.benchmarks.figures import line
from tests.benchmarks.place import place
from tests.service import ROOT, Member, free_port, start_api

PROMISED = {"GET": 0.4, "POST": 0.4, "health": 0.3}     # times the floor's requests a second
P95 = 25.0      # ms at 4 connections
POST = b'{"caption":"Fresh bread from eight","scheduleAt":"%s","targets":[{"platform":"bluesky"}]}'

SERVER = """
import sys
from gunicorn.util import import_app
from handlers.config import Config, environment
from handlers.serve import Api

class Floor(Api):
    def load(self):
        return import_app(sys.argv[2])

Floor(Config.from_env(environment()), "127.0.0.1", int(sys.argv[1])).run()
"""
STARLETTE = """
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def health(request):
    return Response(BODY, media_type="application/json")

app = Starlette(routes=[Route("/v1/health", health)])
"""


class Load:
    """`connections` that each ask `request` (bytes) again as soon as the answer is there, for `seconds`."""

    def __init__(self, port, request, status, connections):
        self._request, self._status = request, b"HTTP/1.1 %d" % status
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]

    def run(self, seconds):
        """The requests a second, and the sorted milliseconds of each."""
        times, started, state = [], time.perf_counter(), {}
        with selectors.DefaultSelector() as selector:
            for one in self._sockets:
                selector.register(one, selectors.EVENT_READ)
                state[one] = [b"", time.perf_counter()]
                one.sendall(self._request)
            while time.perf_counter() - started < seconds:
                for key, _ in selector.select(1):
                    self._read(key.fileobj, state[key.fileobj], times)
        elapsed = time.perf_counter() - started
        for one in self._sockets:
            one.close()
        return len(times) / elapsed, sorted(times)

    def _read(self, one, state, times):
        state[0] += one.recv(65536)
        head, found, body = state[0].partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        assert head.startswith(self._status), state[0]
        now = time.perf_counter()
        times.append((now - state[1]) * 1000)
        state[:] = b"", now
        one.sendall(self._request)


def request(method, path, key=None, body=b""):
    """The bytes of one request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *([f"Authorization: Bearer {key}"] if key else [])]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def record(app, method, path, key, body=b"", idempotency_key=None):
    """What one request sends to the database and answers; the ids in it that are new."""
    statements, parts = [], []
    database.query_hooks.append(lambda event: statements.append((event.sql, _portable(event.params))))
    begin, commit = database.begin, database.commit
    database.begin = lambda *_: (statements.append(("BEGIN", None)), begin())
    database.commit = lambda: (statements.append(("COMMIT", None)), commit())

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        parts.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {key}".encode())]
    headers += [(b"content-type", b"application/json")] if body else []
    headers += [(b"idempotency-key", idempotency_key.encode())] if idempotency_key else []
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
             "raw_path": path.encode(), "query_string": b"", "headers": headers, "scheme": "http",
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    try:
        asyncio.run(app(scope, receive, send))
    finally:
        database.query_hooks.clear()
        database.begin, database.commit = begin, commit
    answer = b"".join(part.get("body", b"") for part in parts[1:])
    return {"status": parts[0]["status"], "body": answer, "statements": statements,
            "ids": [value for sql, values in statements if method == "POST" and sql.startswith("INSERT INTO")
                    for value in values or () if isinstance(value, str) and value.startswith(("post_", "target_"))]}


def _portable(params):
    """JSON values as they were before psycopg2 bound them to a connection."""
    if isinstance(params, dict):
        return dict(zip(params, _portable(params.values()), strict=True))
    return [Json(value.adapted) if isinstance(value, Json) else value for value in params or ()]


@contextmanager
def floor(environ, app, folder):
    """Two processes with `app` (an import string) under the API's own server; gives the port."""
    port = free_port()
    path = os.pathsep.join([str(ROOT), str(folder)])
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port), app], env={**environ, "PYTHONPATH": path},
                               start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def compare(what, ours, theirs, rounds, seconds):
    """Both in turns: `ours` and `theirs` are (port, request, status)."""
    for connections in (4, 16):
        rates, p95s = ([], []), ([], [])
        for number in range(rounds + 1):
            for which, target in enumerate((theirs, ours)):
                rate, times = Load(*target, connections).run(seconds)
                if number:      # the first round warms up
                    rates[which].append(rate)
                    p95s[which].append(times[int(len(times) * 0.95)])
        ratio = statistics.median(mine / bare for bare, mine in zip(*rates, strict=True))
        floor_rate, own_rate = (f"{statistics.median(some):.0f}/s" for some in rates)
        print(f"{what}, {connections} connections: floor {floor_rate:>7}, ours {own_rate:>7}, "
              f"p95 {statistics.median(p95s[0]):5.1f} and {statistics.median(p95s[1]):5.1f} ms")
        line(f"{what}, {connections} connections: floor in times of ours", 1 / ratio, 1 / PROMISED[what], "x", floor_rate,
             own_rate)
        if connections == 4 and what != "health":
            line(f"{what}, {connections} connections: p95", statistics.median(p95s[1]), P95, "ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    run(options.rounds, options.seconds)


def run(rounds, seconds):
    """All of it: so many rounds of so many seconds each."""
    settings = {"POSTHORN_API_PROCESSES": "2", "POSTHORN_VALIDATE_RESPONSES": "0", "POSTHORN_RATE_LIMIT": "1000000"}
    with place(**settings) as (environ, folder):
        measure(environ, folder, rounds, seconds)


def measure(environ, folder, rounds, seconds):
    """Starts all three and compares them."""
    key = Member("http://127.0.0.1").key()
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400)).encode()
    app = create_app(Config.from_env(environ))
    post = record(app, "POST", "/v1/posts", key, POST % later)
    path = f"/v1/posts/{post['ids'][0]}"
    recorded = {"key": key, "POST": post, "GET": record(app, "GET", path, key)}
    assert (recorded["GET"]["status"], post["status"]) == (200, 202), recorded
    for method in ("GET", "POST"):
        print(f"{method}: {len(recorded[method]['statements'])} statements")
        for sql, _ in recorded[method]["statements"]:
            print(f"    {' '.join(sql.split())[:110]}")
    health = get_health().body
    database.close_all()
    (folder / "recorded").write_bytes(pickle.dumps(recorded))
    (folder / "bare_health.py").write_text(STARLETTE.replace("BODY", repr(health)))
    environ = {**environ, "FLOOR_RECORDED": str(folder / "recorded")}
    process, url = start_api(environ)
    try:
        with (floor(environ, "tests.benchmarks.floor:app", folder) as bare,
              floor(environ, "bare_health:app", folder) as starlette):
            print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
            port = urlsplit(url).port
            for what, asked, status, against in (("GET", request("GET", path, key), 200, bare),
                                                 ("POST", request("POST", "/v1/posts", key, POST % later), 202, bare),
                                                 ("health", request("GET", "/v1/health"), 200, starlette)):
                compare(what, (port, asked, status), (against, asked, status), rounds, seconds)
    finally:
        process.stop()


if __name__ == "__main__":
    main()
