"""Many requests, good ones and mutants of them, to one API of two processes: nothing may answer 5xx or outside the envelope,
and the processes may not grow.

Run: python -m tests.benchmarks.endurance [--requests 200000] [--seed 1]

The mutants keep HTTP itself in order (what is no HTTP is refused by the server, see tests/test_hostile.py) and change all else:
method, path, query, headers, and the bytes and values of the body.
"""

import argparse
import json
import os
import random
import selectors
import socket
import time
from collections import Counter
from urllib.parse import urlsplit

import psutil

from tests.benchmarks.figures import line
from tests.benchmarks.ingest import MB
from tests.benchmarks.place import service
from tests.service import Http, Member

CONNECTIONS = 8
WARM = 2_000            # requests after which the processes are as large as they should stay
GROWTH = 10             # MB
PATIENCE = 30           # seconds for an answer
IDEA = {"content": "Bread", "sourceUrl": "https://example.net/bread"}
METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND")
PATHS = ("/", "//", "/v1", "/v1/posts/", "/v1//posts", "/v1/posts/%00", "/v1/posts/..%2f", "/v2/posts", "/v1/%ff", "/docs",
         "/v1/openapi.json", "/sign-in", "/oauth/token", "/media/x", "/connect/callback?state=x", "/v1/posts/" + "a" * 3000)
VALUES = (None, True, -1, 0, 10**30, 1e308, "", "\0", "\ud800", "a" * 70_000, [], {}, [[]] * 50, {"a": {"b": {}}}, "2026-13-45T99:99:99Z",
          "https://127.0.0.1/", "9999-12-31T23:59:59+23:59", "💥" * 300, "' OR 1=1 --", "${jndi:x}", "../../etc/passwd")
HEADERS = (("Content-Type", "text/plain"), ("Content-Type", "APPLICATION/JSON; charset=utf-16"), ("Content-Encoding", "gzip"),
           ("Expect", "100-continue"), ("Expect", "the unexpected"), ("Authorization", "Bearer x"), ("Authorization", "Basic eDp5"),
           ("Idempotency-Key", "k"), ("Idempotency-Key", "ü" * 300), ("X-Request-Id", "a\tb"), ("Accept", "text/html"),
           ("If-None-Match", "*"), ("Origin", "https://evil.example"), ("Host", "evil.example"), ("Cookie", "a=" + "b" * 5000))


def good(key, post_id, idea_id):
    """(method, path, headers, body) of requests as they should be."""
    to = {"Authorization": f"Bearer {key}"}
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
    post = {"caption": "Fresh bread from eight", "scheduleAt": later, "targets": [
        {"platform": "bluesky"}, {"platform": "mastodon", "options": {"visibility": "public", "caption": "Bread"}}]}
    return [
        ("GET", "/v1/health", {}, None), ("GET", f"/v1/posts/{post_id}", to, None), ("GET", "/v1/posts?limit=5", to, None),
        ("GET", "/v1/platforms", to, None), ("GET", "/v1/accounts", to, None), ("GET", "/v1/clients", to, None),
        ("POST", "/v1/posts", to, post), ("POST", "/v1/posts/validate", to, post), ("PATCH", f"/v1/posts/{post_id}", to, {"caption": "Bread"}),
        ("POST", "/v1/generate", to, {"topic": "bread", "platform": "bluesky"}), ("POST", "/v1/ideas", to, IDEA),
        ("PATCH", f"/v1/ideas/{idea_id}", to, {"content": "More bread", "platform": None}),
        ("POST", "/v1/media/upload-url", to, {"contentType": "image/png", "fileSize": 1000}),
        ("POST", f"/v1/posts/{post_id}/retry", to, {}), ("GET", "/v1/posts/post_nobody", to, None)]


class Mutations:
    """Requests as bytes, one after the other: every second one is a mutant."""

    def __init__(self, some, seed):
        self._some, self._random, self._number = some, random.Random(seed), 0

    def next(self):
        """(method, request)."""
        self._number += 1
        method, path, headers, body = self._random.choice(self._some)
        raw = b"" if body is None else json.dumps(body).encode()
        headers = {**headers, **({"Content-Type": "application/json"} if raw else {})}
        if self._random.random() < 0.02:
            headers["Connection"] = "close"     # so that each process gets its share
        if self._number % 2:
            for _ in range(self._random.randint(1, 3)):
                method, path, headers, raw = self._mutated(method, path, headers, raw)
        return method, _encoded(method, path, headers, raw)

    def _mutated(self, method, path, headers, raw):
        choice, pick = self._random.randrange(7), self._random.choice
        if choice == 0:
            method = pick(METHODS)
        elif choice == 1:
            path = pick(PATHS)
        elif choice == 2:
            name = pick(("limit", "cursor", "status", "clientId", "from", "x" * 200, "%00"))
            path += ("&" if "?" in path else "?") + f"{name}={pick(('', '-1', '%ff', 'a' * 2000, '1e9', '%F0%9F%92%A5'))}"
        elif choice == 3:
            headers = {**headers, **dict([pick(HEADERS)])}
        elif raw and choice == 4:
            raw = self._bytes(raw)
        elif raw:
            raw = self._value(raw)
        return method, path, headers, raw

    def _bytes(self, raw):
        raw, at = bytearray(raw), self._random.randrange(len(raw))
        change = self._random.randrange(4)
        if change == 0:
            raw[at] = self._random.randrange(256)
        elif change == 1:
            del raw[at:]
        elif change == 2:
            raw[at:at] = raw[:at] or b"\xef\xbb\xbf"
        else:
            raw[at:at] = b"[" * self._random.choice((1, 60, 20_000))
        return bytes(raw)

    def _value(self, raw):
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            return raw
        holders = [body] if isinstance(body, dict | list) and body else []
        for one in holders:
            inner = one.values() if isinstance(one, dict) else one
            holders += [value for value in inner if isinstance(value, dict | list) and value and len(holders) < 50]
        if holders:
            holder = self._random.choice(holders)
            place = self._random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            holder[place] = self._random.choice(VALUES)
            if isinstance(holder, dict) and self._random.random() < 0.2:
                holder["no such member"] = holder.pop(place)
        return json.dumps(body).encode()


def _encoded(method, path, headers, raw):
    headers = {"Host": "127.0.0.1", **headers, **({"Content-Length": len(raw)} if raw else {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + raw


class Asker:
    """One connection that asks one request after the other, anew where the server closes it."""

    def __init__(self, port, mutations, seen):
        self._port, self._mutations, self._seen, self.socket = port, mutations, seen, None
        self.ask()

    def ask(self):
        """Sends the next request."""
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        self._method, self.request = self._mutations.next()
        self._answer, self.since = b"", time.monotonic()
        try:
            self.socket.sendall(self.request)
        except ConnectionError:     # refused before it was read whole; the answer is there all the same
            pass

    def read(self):
        """Takes what has come; True when that was a whole answer."""
        part = self.socket.recv(65536)
        self._answer += part
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100") and found:
            self._answer = body
            head, found, body = body.partition(b"\r\n\r\n")
        assert part or found, f"no answer to {self.request[:500]}"
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(b":") for one in head.split(b"\r\n")[1:])}
        status = int(head.split(b" ", 2)[1]) if found else 0
        bodiless = self._method == "HEAD" or status in (204, 304)
        if not found or (not bodiless and len(body) < int(headers.get(b"content-length", 0))):
            return False
        self._judge(status, headers, body, bodiless)
        if headers.get(b"connection") == b"close" or not part:
            self.socket.close()
            self.socket = None
        return True

    def _judge(self, status, headers, body, bodiless):
        self._seen[status] += 1
        assert status < 500, (self.request[:3000], body[:500])
        assert b"x-request-id" in headers, (self.request[:3000], headers)
        if status >= 400 and not bodiless and b" /v1" in self.request[:12]:
            error = json.loads(body)
            assert error["success"] is False and error["error"]["code"] and error["meta"]["requestId"], (self.request[:3000], body[:500])
            assert len(body) < 120_000, f"{len(body)} bytes of answer"


def ask(port, mutations, seen, number):
    """Asks `number` requests on CONNECTIONS connections."""
    with selectors.DefaultSelector() as selector:
        askers = [Asker(port, mutations, seen) for _ in range(CONNECTIONS)]
        for asker in askers:
            selector.register(asker.socket, selectors.EVENT_READ, asker)
        end = sum(seen.values()) + number
        while sum(seen.values()) < end:
            ready = selector.select(PATIENCE)
            late = [asker for asker in askers if time.monotonic() - asker.since > PATIENCE]
            assert not late, f"no answer within {PATIENCE} s to {[asker.request[:3000] for asker in late]}"
            for key, _ in ready:
                asker, before = key.data, key.fileobj
                if asker.read():
                    asker.ask()
                if asker.socket is not before:
                    selector.unregister(before)
                    selector.register(asker.socket, selectors.EVENT_READ, asker)
        for asker in askers:
            asker.socket.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unlimited = {f"POSTHORN_{name}_LIMIT": "1000000" for name in ("RATE", "CAPTION_RATE", "FAILED_CREDENTIALS")}
    with service(POSTHORN_API_PROCESSES="2", POSTHORN_VALIDATE_RESPONSES="0", **unlimited) as (api, url, _):
        report(api, url, options)


def report(api, url, options):
    """Asks and prints."""
    http, port, seen = Member(url).test, urlsplit(url).port, Counter()
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
    post_id = http.post("/v1/posts", {"caption": "Bread", "scheduleAt": later, "targets": [{"platform": "bluesky"}]}).data["id"]
    idea_id = http.post("/v1/ideas", IDEA).data["id"]
    mutations = Mutations(good(http.key, post_id, idea_id), options.seed)
    workers = psutil.Process(api.popen.pid).children()
    sizes, started = [], time.monotonic()
    for number in (WARM, options.requests - WARM):
        ask(port, mutations, seen, number)
        sizes.append([worker.memory_info().rss / MB for worker in workers])
    print(f"{sum(seen.values())} requests in {time.monotonic() - started:.0f} s at load {os.getloadavg()[0]:.1f}; answers by status: "
          + ", ".join(f"{status}: {count}" for status, count in sorted(seen.items())))
    assert Http(url).get("/v1/health").status == 200 and " ERROR " not in api.log()
    for number, (before, after) in enumerate(zip(*sizes, strict=True), 1):
        line(f"process {number}: {after:.0f} MB, more than after {WARM} requests", after - before, GROWTH, "MB")


if __name__ == "__main__":
    main()
