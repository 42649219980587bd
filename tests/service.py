"""The real service for tests: API and worker as processes of their own, and a team to speak as."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import urllib3

from platforms.accounts import owner
from storage import keys
from storage.database import database
from storage.models import Account, Client, Idea, Media, Team, User
from storage.posts import Attachment, Post, Target
from storage.secrets import Vault, new_key

ROOT = Path(__file__).parents[1]
PATIENCE = 30.0
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def free_port():
    """A port of the loopback interface that nobody has at this moment.

    Below the range that the system hands out to outgoing connections, and below that of the embedded store: nobody takes it by
    chance before it is used.
    """
    for port in random.sample(range(12_000, 20_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


def well_formed(prefix="sk_live_", random_part="A" * 32):
    """A key with the right check digits that nobody has."""
    number, digits = zlib.crc32((prefix + random_part).encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return prefix + random_part + digits


def challenge(url):
    """What an answer without a good credential asks for, at the service of this address."""
    return f'Bearer realm="posthorn", resource_metadata="{url}/.well-known/oauth-protected-resource"'


def environment(database_url, store, **more):
    """The settings of a service on `database_url` (libpq) and `store` (storage.embedded.StoreAddress)."""
    return {"PATH": os.environ["PATH"], "DATABASE_URL": database_url, "S3_ENDPOINT_URL": store.endpoint_url,
            "S3_ACCESS_KEY": store.access_key, "S3_SECRET_KEY": store.secret_key, "S3_BUCKET": store.bucket,
            "S3_REGION": store.region, "S3_PUBLIC_URL": store.public_url,
            "POSTHORN_SECRET_KEYS": new_key(), "POSTHORN_VALIDATE_RESPONSES": "1", "POSTHORN_RATE_LIMIT": "100000",
            "POSTHORN_FAILED_CREDENTIALS_LIMIT": "100000", "POSTHORN_LOG_FORMAT": "text", **more}


class Process:
    """`posthorn <command>` as a process of its own, in a group of its own so that nothing of it is left behind."""

    def __init__(self, command, environ, *arguments):
        self._log, self._read = tempfile.TemporaryFile(), 0    # no pipe: a process that says much would wait for its reader
        self.popen = subprocess.Popen([sys.executable, "-m", "handlers", command, *arguments], env=environ, cwd=ROOT,
                                      start_new_session=True, stderr=self._log)

    def log(self):
        """What it has said since the last time."""
        said = os.pread(self._log.fileno(), 1 << 24, self._read)
        self._read += len(said)
        return said.decode()

    def kill(self):
        """Ends the whole group at once, as a power cut would."""
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()

    def stop(self):
        """Asks it to end; returns its exit status."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(30)
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        return self.popen.returncode


@dataclass
class Answer:
    """An HTTP answer, read whole."""

    status: int
    headers: urllib3.HTTPHeaderDict
    raw: bytes

    @property
    def body(self):
        return json.loads(self.raw)

    @property
    def data(self):
        return self.body["data"]

    @property
    def code(self):
        return self.body["error"]["code"]

    @property
    def rules(self):
        """The broken rules as (path, rule)."""
        return [(detail["path"], detail["rule"]) for detail in self.body["error"].get("details", [])]


class Http:
    """Requests to one service with one credential (None: without any), from the address `source` of this machine."""

    def __init__(self, url, key=None, *, source="127.0.0.1"):
        self.url, self.key = url, key
        self._pool = urllib3.PoolManager(retries=False, timeout=30, source_address=(source, 0))

    def request(self, method, path, json_body=None, *, headers=None, body=None):
        """One request; `json_body` goes out as JSON, `body` as it is."""
        given = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if json_body is not None:
            body, given = json.dumps(json_body).encode(), {**given, "Content-Type": "application/json"}
        response = self._pool.request(method, self.url + path, body=body, headers={**given, **(headers or {})})
        return Answer(response.status, response.headers, response.data)

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, json_body, **options):
        return self.request("POST", path, json_body, **options)

    def patch(self, path, json_body, **options):
        return self.request("PATCH", path, json_body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def uploaded(self, content, mime_type):
        """The URL for a post's media list of a file that went through upload-url into the store."""
        asked = self.post("/v1/media/upload-url", {"contentType": mime_type, "fileSize": len(content)}).body
        stored = self._pool.request("PUT", asked["data"]["uploadUrl"], body=content, headers=asked["meta"]["requiredHeaders"])
        assert stored.status == 200, stored.data
        return asked["data"]["publicUrl"]

    def settled(self, post_id, *, within=15.0, until=("published", "failed", "unconfirmed", "canceled")):
        """The post once none of its targets is on its way any more."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            post = self.get(f"/v1/posts/{post_id}").data
            if all(target["status"] in until for target in post["targets"]):
                return post
            time.sleep(0.02)
        raise AssertionError(f"not settled within {within} s: {post}")


class Member:
    """A team with a user and an agency client, and requests to make in its name: `test` and `live`."""

    def __init__(self, url, name="Bread & Co"):
        with database.connection_context():
            self.team = Team.add(name=name)
            self.user = User.add(team_id=self.team.id, name="Ann")
            self.client = Client.add(team_id=self.team.id, name="Corner Café")
        self.url = url
        self.test, self.live = (Http(url, self.key(mode)) for mode in ("test", "live"))

    def colleague(self, mode="test"):
        """Requests of another user of the team."""
        with database.connection_context():
            return self.http(mode=mode, user_id=User.add(team_id=self.team.id, name="Bob").id)

    def account(self, environ, platform, username, *, status="connected", credentials=None, **values):
        """A connected account of the team; its credentials open nothing anywhere."""
        vault = Vault((environ["POSTHORN_SECRET_KEYS"],))
        given = {"platform_id": username, "host": "", "display_name": username.title(), **values}
        with database.connection_context():
            row = Account.add(team_id=self.team.id, platform=platform, username=username, status=status, **given)
            sealed = vault.seal(owner(row.team_id, row.id), credentials or {"accessToken": "token-of-the-platform"})
            Account.update(credentials=sealed).where(Account.id == row.id).execute()
        return row

    def rows(self):
        """How many rows of each kind the team has, in both modes."""
        with database.connection_context():
            return {model.__name__: model.select().where(model.team_id == self.team.id).count()
                    for model in (Post, Target, Attachment, Idea, Media)}

    def key(self, mode="test", **options):
        """A fresh key of the team's user."""
        with database.connection_context():
            return keys.create(**{"team_id": self.team.id, "user_id": self.user.id, "mode": mode, **options})[0]

    def http(self, **options):
        """Requests with a fresh key."""
        return Http(self.url, self.key(**options))

    def caller(self, mode="test"):
        """The caller behind a fresh key, for tests below the API."""
        with database.connection_context():
            return keys.identify(self.key(mode))


@contextlib.contextmanager
def as_left():
    """Rows may be written as the network or a worker left them, without the steps that lead there."""
    database.execute_sql("SET session_replication_role = replica")
    try:
        yield
    finally:
        database.execute_sql("RESET session_replication_role")


def start_api(environ, **options):
    """The API on a free port, answering; returns its process and its address."""
    port = free_port()
    http, deadline = Http(f"http://127.0.0.1:{port}"), time.monotonic() + PATIENCE
    process = Process("serve", {"POSTHORN_BASE_URL": http.url, **environ}, "--port", str(port))
    while time.monotonic() < deadline:
        try:
            if http.get("/v1/health").status == 200:
                return process, http.url
        except urllib3.exceptions.HTTPError:
            time.sleep(0.05)
        if process.popen.poll() is not None:
            break
    process.kill()
    raise AssertionError(f"the API did not start: {process.log()}")
