"""Callers at a steady pace: reads, publishes with idempotency keys, uploads, links, captions; and what came of each request.

Beside them the receiver of a webhook.
"""

import json
import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, cycle
from types import SimpleNamespace

import urllib3

from storage.models import wire_time
from tests.media_samples import image
from tests.test_crash import NO_ANSWER, PUBLISH

PATIENCE = 60.0     # seconds in which a publish that got no 202 is asked again under its key
LAST_ONES = 0.05    # of the requests end their connection, so that each process of the API gets its share of every kind
AGAIN = 0.5         # seconds between two such
READS = ("/v1/health", "/v1/posts?limit=20", "/v1/platforms", "/v1/accounts", "/v1/posts?status=published")


class Receiver(ThreadingHTTPServer):
    """Takes events until closed: `came` has of each id how often it came, `posts` the ids of the posts that are out.

    Every thirtieth request is refused, and its event has to come again; no event is refused twice, since it would be 5 minutes
    until the third attempt, and 30 until the fourth.
    """

    daemon_threads, request_queue_size = True, 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Event)
        self.came, self.posts, self.requests, self.refused = Counter(), set(), count(1), set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Event(BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        event_id = self.headers["webhook-id"]
        refused = next(self.server.requests) % 30 == 0 and event_id not in self.server.refused
        if refused:
            self.server.refused.add(event_id)
        else:
            self.server.came[event_id] += 1
            self.server.posts.add(event["data"]["id"])
        self.send_response(500 if refused else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Traffic:
    """Activities on threads of their own until stopped.

    `http(mode)` gives what asks with a key of "live" or "test". `asked` has of each request when it ended (epoch seconds),
    what, the status (0: no answer) and the seconds; `accepted` the caption of each post that was answered with 202, by its id.
    """

    def __init__(self, http, stage, link, accounts, beside=None):
        """Publishes on `stage` from so many `accounts` on each network; `link` leads to a picture, `beside` to an idler."""
        self._http, self._link, self._beside = http, link, beside
        names = [(name, stage.account(name)[1]) for _ in range(accounts) for name in PUBLISH]
        self._accounts, self._numbers, self._lock = cycle(names), count(), threading.Lock()
        self._picture, self._store = image("PNG"), urllib3.PoolManager(retries=False, timeout=30)
        self.asked, self.accepted, self.refused = [], {}, []
        self._stopping, self._threads, self._latest = threading.Event(), [], []

    def start(self, paces):
        """Begins the activities at so many a second each, by the names of the methods below."""
        for name, pace in paces.items():
            http = SimpleNamespace(live=self._http("live"), test=self._http("test"))
            thread = threading.Thread(target=self._keep, args=(getattr(self, name), pace, http), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self):
        """Ends them; what is under way is waited for."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE + 40)

    def reads(self, http):
        """One of what callers look at."""
        self._ask(http.live, "read", "GET", random.choice((*READS, *self._latest)))

    def now(self, http):
        """A post that is due at once."""
        self._publish(http, None)

    def burst(self, http):
        """A post that is due at the next full minute, with all others that are."""
        soon = datetime.now(UTC) + timedelta(seconds=61)
        self._publish(http, wire_time(soon.replace(second=0, microsecond=0)))

    def uploads(self, http):
        """A picture through its presigned URL, and a post of it."""
        given = {"contentType": "image/png", "fileSize": len(self._picture)}
        asked = self._ask(http.live, "upload-url", "POST", "/v1/media/upload-url", given)
        if asked is None or asked.status != 201:
            return
        headers = asked.body["meta"]["requiredHeaders"]
        put = self._timed("upload", lambda: self._store.request("PUT", asked.data["uploadUrl"], self._picture, headers=headers))
        if put is not None and put.status == 200:
            self._publish(http, None, media=[asked.data["publicUrl"]])

    def beside(self, _):
        """A request to a program that does nothing else: what that takes is the machine's doing."""
        self._timed("beside", lambda: self._store.request("GET", self._beside))

    def links(self, http):
        """A picture by its link."""
        self._ask(http.live, "from-url", "POST", "/v1/media/from-url", {"url": self._link})

    def captions(self, http):
        """A caption of the sandbox."""
        self._ask(http.test, "caption", "POST", "/v1/generate", {"topic": "bread", "platform": "bluesky"})

    def _keep(self, activity, pace, http):
        due = time.monotonic() + random.random() / pace
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            activity(http)
            due = max(due + 1 / pace, time.monotonic() - 1)     # what could not be asked in time is not made up for

    def _publish(self, http, at, media=()):
        with self._lock:
            number, (network, account) = next(self._numbers), next(self._accounts)
        caption, until = f"post {number} of the day", time.monotonic() + PATIENCE
        body = {"caption": caption, "targets": [{"platform": network, "options": {"account": account}}],
                **({"scheduleAt": at} if at else {}), **({"media": media} if media else {})}
        headers = {"Idempotency-Key": f"key-{number}"}
        while True:
            answer = self._ask(http.live, "publish", "POST", "/v1/posts", body, headers)
            if answer is not None and answer.status == 202:
                self.accepted[answer.data["id"]] = caption
                self._latest = [f"/v1/posts/{answer.data['id']}"]
                return
            if answer is not None and answer.status not in (409, 503):
                return
            if time.monotonic() > until or self._stopping.wait(AGAIN):
                return

    def _ask(self, http, what, method, path, body=None, headers=None):
        more = {"Connection": "close"} if random.random() < LAST_ONES else {}
        return self._timed(what, lambda: http.request(method, path, body, headers={**(headers or {}), **more}))

    def _timed(self, what, request):
        """The answer, or None."""
        started, answer, words = time.monotonic(), None, None
        try:
            answer = request()
        except NO_ANSWER as error:
            words = repr(error)
        at, status = time.time(), answer.status if answer is not None else 0
        self.asked.append((at, what, status, time.monotonic() - started))
        if not 200 <= status < 300:
            self.refused.append((at, what, status, words or getattr(answer, "raw", b"")[:300]))
        return answer
