"""What Posthorn does with a store that is there already, by its settings alone. Where something is wrong, it ends with 1.

Run: S3_ENDPOINT_URL=… S3_ACCESS_KEY=… S3_SECRET_KEY=… [S3_REGION=… S3_ADDRESSING=… SSL_CERT_FILE=…] \
python -m tests.benchmarks.store

Real API, worker and PostgreSQL; uploads by curl. Its objects are removed in the end, its bucket stays.
"""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import timedelta

from handlers.config import Config
from handlers.stores import open_store
from storage.database import database, open_pool
from storage.secrets import new_key
from storage.sweep import Retention, Sweep
from tests.commands import posthorn
from tests.links import serving
from tests.media_samples import image
from tests.servers import postgres
from tests.service import ROOT, Member, Process, start_api

TYPE, ORIGIN = "image/png", "https://app.example"
PNG = image("PNG")
PREFLIGHT = ("-X", "OPTIONS", "-H", f"Origin: {ORIGIN}", "-H", "Access-Control-Request-Method: PUT",
             "-H", "Access-Control-Request-Headers: content-type,if-none-match")
# What is sent in place of what was signed, and the headers with it.
OTHERS = {"one byte less": (PNG[:-1], {}), "one byte more": (PNG + b"x", {}),
          "another type": (PNG, {"Content-Type": "text/html"}),
          "chunked, larger": (PNG + b"x", {"Transfer-Encoding": "chunked"}),
          "what may replace": (PNG, {"If-None-Match": ""})}
wrong = []


def told(what, found, expected):
    """Prints one line; `expected` is what is right, or says whether it is."""
    good = expected(found) if callable(expected) else found == expected
    print(f"{'ok  ' if good else 'FAIL'}  {what}: {found}", flush=True)
    if not good:
        wrong.append(what)


def refused(status):
    return 400 <= status < 600


def curl(url, *arguments, body=None):
    """(status, headers by small names) of one request."""
    command = ["curl", "-sS", "-o", "/dev/null", "-D", "-", "-m", "30", *arguments, url]
    said = subprocess.run(command, input=body, capture_output=True, check=False)
    blocks = said.stdout.decode().strip().split("\r\n\r\n")     # one of 100 Continue may go before
    first, *lines = blocks[-1].splitlines() or ["HTTP/1.1 000"]
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines if ": " in line)


def upload(url, body, headers):
    """As it is asked for, `headers` told to curl; one without a value is not sent."""
    options = [option for name, value in headers.items() for option in ("-H", f"{name}: {value}" if value else f"{name}:")]
    return curl(url, "-X", "PUT", "--data-binary", "@-", *options, body=body)


@contextmanager
def place(links):
    """The settings of a service on the store; its database is this process's as well."""
    given = {name: value for name, value in os.environ.items() if name.startswith("S3_") or name in ("PATH", "SSL_CERT_FILE")}
    with postgres() as url:
        open_pool(url, connections=5)
        try:
            yield {**given, "DATABASE_URL": url, "POSTHORN_SECRET_KEYS": new_key(), "POSTHORN_RATE_LIMIT": "100000",
                   "POSTHORN_ALLOW_PRIVATE": links.url.removeprefix("http://")}
        finally:
            database.close_all()


def uploads(objects, http):
    """Exactly what was signed is taken, once and in its time."""
    def asked():
        answer = http.post("/v1/media/upload-url", {"contentType": TYPE, "fileSize": len(PNG)}).body
        headers = answer["meta"]["requiredHeaders"]
        del headers["Content-Length"]       # curl's own, which is true
        return answer["data"]["publicUrl"], answer["data"]["uploadUrl"], headers

    for what, (body, change) in OTHERS.items():
        public, url, headers = asked()
        told(f"upload of {what}", upload(url, body, headers | change)[0], refused)
        told(f"upload of {what}, stored", objects.stat(objects.key_of(public)), None)
    public, url, headers = asked()
    status, answered = upload(url, PNG, {**headers, "Origin": ORIGIN})
    told("exact upload", status, 200)
    told("a page may see the answer", answered.get("access-control-allow-origin"), lambda found: found in ("*", ORIGIN))
    told("the same once more", upload(url, PNG, headers)[0], refused)
    status, answered = curl(url, *PREFLIGHT)
    told("preflight", (status, answered.get("access-control-allow-origin")),
         lambda found: found[0] in (200, 204) and found[1] in ("*", ORIGIN))
    url, _ = objects.presigned_put(f"{objects.key_of(public)}.late", len(PNG), TYPE, 1)
    time.sleep(2.5)
    told("after its time", upload(url, PNG, headers)[0], refused)
    return public


def use(objects, http, links, public):
    """Served, fetched, published."""
    key = objects.key_of(public)
    told("served as", [curl(public, *more)[0] for more in ((), ("-r", "1-5"), ("-I",))], [200, 206, 200])
    told("read at the store without a key", [curl(url)[0] for url in objects.own_urls(key)],
         lambda found: all(map(refused, found)))
    links.answers["/a.png"] = (200, {"Content-Type": TYPE}, PNG)
    fetched = http.post("/v1/media/from-url", {"url": f"{links.url}/a.png"})
    told("from-url", fetched.status, 201)
    media = [public, fetched.data["publicUrl"]]
    post = http.post("/v1/posts", {"caption": "Bread", "media": media, "targets": [{"platform": "mastodon"}]})
    told("a post with both", http.settled(post.data["id"])["status"], "published")


def swept(objects, environ, team):
    """What has no row goes, and what has one stays."""
    before, orphan = {key for key, *_ in objects.list(team)}, f"{team}/test/{'A' * 32}.png"
    with open(__file__, "rb") as file:
        objects.put(orphan, file, 10, TYPE)
    time.sleep(1.5)     # some stores tell whole seconds
    told("orphans of a sweep", Sweep(objects, Retention(missing=timedelta())).whole().orphans, lambda found: found >= 1)
    told("only they are gone", {key for key, *_ in objects.list(team)} ^ before, set())
    posthorn(environ, "media", "sweep")


def diagnosed(environ):
    """What `posthorn doctor` says; it is told where it says FAIL."""
    said = subprocess.run([sys.executable, "-m", "handlers", "doctor"], env=environ, cwd=ROOT, capture_output=True, text=True)
    told("posthorn doctor", said.stdout.strip(), lambda text: "FAIL" not in text and "ok" in text)


def main():
    with serving() as links, place(links) as environ:
        print(posthorn(environ, "migrate"), end="")
        api, url = start_api(environ)
        environ["POSTHORN_BASE_URL"] = url
        objects, worker, member = open_store(Config.from_env(environ)), Process("worker", environ), Member(url)
        try:
            public = uploads(objects, member.test)
            use(objects, member.test, links, public)
            swept(objects, environ, member.team.id)
            diagnosed(environ)
        finally:
            worker.stop()
            api.stop()
            for key, *_ in list(objects.list(member.team.id)):
                objects.delete(key)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
