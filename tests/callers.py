"""People who call a stand-in themselves, without a connector, in the tests of the stand-ins."""

from urllib.parse import urlencode

import pytest
import urllib3

from tests.standins.bluesky import BlueskyServer
from tests.standins.mastodon import MastodonServer

HTTP = urllib3.PoolManager(retries=False, timeout=5)
PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 60
MP4 = b"\0\0\0\x18ftypisom" + b"v" * 60
FAMILY = "👨‍👩‍👧‍👦"
POST = {"$type": "app.bsky.feed.post", "text": "put two", "createdAt": "2026-11-21T03:00:00.000Z"}
KEY, OTHER_KEY = "3mzzzzzzzzz2b", "3mzzzzzzzzz2c"
PUT, CREATE, APPLY = "com.atproto.repo.putRecord", "com.atproto.repo.createRecord", "com.atproto.repo.applyWrites"
LOGIN, REFRESH = "com.atproto.server.createSession", "com.atproto.server.refreshSession"
SERVICE, UPLOAD = "com.atproto.server.getServiceAuth", "com.atproto.repo.uploadBlob"
STATUSES = "/api/v1/statuses"


class Caller:
    """One account of a network with its token."""

    def __init__(self, network, token=None, **known):
        self.network, self.token = network, token
        self.__dict__.update(known)

    def send(self, method, path, token=..., headers=(), **content):
        """(status, JSON or text, headers) of one call; token=None sends none, str content of `raw` goes as Authorization."""
        token = self.token if token is ... else token
        headers = ({"Authorization": f"Bearer {token}"} if token else {}) | dict(headers)
        answer = HTTP.request(method, self.network.url + path, headers=headers, redirect=False, **content)
        kind = answer.headers.get("Content-Type", "")
        return answer.status, answer.json() if kind.startswith("application/json") else answer.data.decode(), answer.headers

    def xrpc(self, nsid, data=None, query=None, **more):
        """The same for an XRPC method: POST with data, else GET."""
        path = f"/xrpc/{nsid}" + (f"?{urlencode(query)}" if query else "")
        return self.send("GET" if data is None else "POST", path, **({} if data is None else {"json": data}), **more)[:2]

    def put(self, record, rkey=KEY, **more):
        """putRecord of a post."""
        return self.xrpc(PUT, {"repo": self.did, "collection": "app.bsky.feed.post", "rkey": rkey, "record": record, **more})

    def upload(self, data=PNG, kind="image/png", **more):
        """uploadBlob."""
        return self.send("POST", f"/xrpc/{UPLOAD}", headers={"Content-Type": kind}, body=data, **more)[:2]

    def status(self, given, key=None, **more):
        """Create a Mastodon status."""
        return self.send("POST", STATUSES, headers={"Idempotency-Key": key} if key else {}, json=given, **more)[:2]

    def media(self, data=PNG, kind="image/png", name="a.png", **fields):
        """Upload to Mastodon."""
        return self.send("POST", "/api/v2/media", fields={"file": (name, data, kind), **fields})[:2]


@pytest.fixture
def ann():
    """Ann on Bluesky, logged in with an app password."""
    with BlueskyServer() as network:
        did = network.add_user("ann.test", "aaaa-bbbb", password="main", email="ann@example.com")
        session = Caller(network).xrpc(LOGIN, {"identifier": "ann.test", "password": "aaaa-bbbb"})[1]
        yield Caller(network, session["accessJwt"], did=did, session=session)


@pytest.fixture
def bob():
    """Bob on Mastodon."""
    with MastodonServer() as network:
        account_id = network.add_user("bob")
        yield Caller(network, "token-bob", id=account_id)
