"""The stand-in networks are as strict as the real ones: every refusal has a row here."""

import base64
import hashlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import urllib3

from tests.standins import bluesky, bluesky_sessions, bluesky_video, mastodon
from tests.standins.bluesky import BlueskyServer
from tests.standins.mastodon import MastodonServer

HTTP = urllib3.PoolManager(retries=False, timeout=5)
PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 60
MP4 = b"\0\0\0\x18ftypisom" + b"v" * 60
MOVING_GIF = b"GIF89a" + b"\x21\xf9\x04frame" * 2
FAMILY = "👨‍👩‍👧‍👦"
POST = {"$type": "app.bsky.feed.post", "text": "put two", "createdAt": "2026-11-21T03:00:00.000Z"}
POST_CID = "bafyreid56tr5etoz446e2b6ha6jndx5hsyztpx3cmvetmz7yv4wzlhch6y"  # as the reference PDS computed it for POST
BLOB_CID = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
BLOB = {"$type": "blob", "ref": {"$link": BLOB_CID}, "mimeType": "image/png", "size": 5}
REF = {"uri": "at://did:plc:abc/app.bsky.feed.post/3mzzzzzzzzz2b", "cid": POST_CID}
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


def picture(**change):
    return {"$type": "app.bsky.embed.images", "images": [{"alt": "", "image": BLOB, **change}]}


def facet(**feature):
    return [{"index": {"byteStart": 0, "byteEnd": 3}, "features": [feature]}]


REFUSED_RECORDS = {
    "301 graphemes": ({"text": "a" * 301}, "grapheme too big (maximum 300, got 301) at $.record.text"),
    "7500 bytes": ({"text": FAMILY * 300}, "string too big (maximum 3000, got 7500) at $.record.text"),
    "no text": ({"text": ...}, 'Missing required key "text" at $.record'),
    "number as text": ({"text": 5}, "Expected string value type (got 5) at $.record.text"),
    "no createdAt": ({"createdAt": ...}, 'Missing required key "createdAt" at $.record'),
    "no timezone": ({"createdAt": "2026-11-21T03:00:00"},
                    'Invalid datetime (got "2026-11-21T03:00:00") at $.record.createdAt'),
    "bad language": ({"langs": ["english_us"]}, 'Invalid language (got "english_us") at $.record.langs[0]'),
    "4 languages": ({"langs": ["en"] * 4}, "array too big (maximum 3, got 4) at $.record.langs"),
    "9 tags": ({"tags": ["a"] * 9}, "array too big (maximum 8, got 9) at $.record.tags"),
    "long tag": ({"tags": ["é" * 65]}, "grapheme too big (maximum 64, got 65) at $.record.tags[0]"),
    "11 labels": ({"labels": {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "porn"}] * 11}},
                  "array too big (maximum 10, got 11) at $.record.labels.values"),
    "facet without did": ({"facets": facet(**{"$type": "app.bsky.richtext.facet#mention"})},
                          'Missing required key "did" at $.record.facets[0].features[0]'),
    "handle as did": ({"facets": facet(**{"$type": "app.bsky.richtext.facet#mention", "did": "bob.test"})},
                      'Invalid DID (got "bob.test") at $.record.facets[0].features[0].did'),
    "negative offset": ({"facets": [{"index": {"byteStart": -1, "byteEnd": 3}, "features": []}]},
                        "integer too small (minimum 0, got -1) at $.record.facets[0].index.byteStart"),
    "untyped embed": ({"embed": {"images": []}}, 'Expected an object which includes the "$type" property value type '
                                                 '(got {"images": ...}) at $.record.embed'),
    "5 images": ({"embed": picture() | {"images": picture()["images"] * 5}},
                 "array too big (maximum 4, got 5) at $.record.embed.images"),
    "image without alt": ({"embed": {"$type": "app.bsky.embed.images", "images": [{"image": BLOB}]}},
                          'Missing required key "alt" at $.record.embed.images[0]'),
    "video as image": ({"embed": picture(image=BLOB | {"mimeType": "video/mp4"})},
                       'Expected "image/*" (got "video/mp4") at $.record.embed.images[0].image.mimeType'),
    "image over 2 MB": ({"embed": picture(image=BLOB | {"size": 2000001})},
                        "blob too big (maximum 2000000, got 2000001) at $.record.embed.images[0].image"),
    "blob with a fifth member": ({"embed": picture(image=BLOB | {"url": "x"})},
                                 'Expected blob value type (got {"$type": ..., "ref": ..., ...}) at '
                                 '$.record.embed.images[0].image'),
    "zero aspect": ({"embed": picture(aspectRatio={"width": 0, "height": 3})},
                    "integer too small (minimum 1, got 0) at $.record.embed.images[0].aspectRatio.width"),
    "wrong $type inside": ({"embed": picture(aspectRatio={"$type": "x", "width": 1, "height": 1})},
                           'Expected "app.bsky.embed.defs#aspectRatio" (got "x") at '
                           "$.record.embed.images[0].aspectRatio.$type"),
    "gallery without aspect": ({"embed": {"$type": "app.bsky.embed.gallery", "items": [
        {"$type": "app.bsky.embed.gallery#image", "image": BLOB, "alt": ""}]}},
        'Missing required key "aspectRatio" at $.record.embed.items[0]'),
    "21 in a gallery": ({"embed": {"$type": "app.bsky.embed.gallery", "items": [{}] * 21}},
                        "array too big (maximum 20, got 21) at $.record.embed.items"),
    "video over 300 MB": ({"embed": {"$type": "app.bsky.embed.video",
                                     "video": BLOB | {"mimeType": "video/mp4", "size": 300_000_001}}},
                          "blob too big (maximum 300000000, got 300000001) at $.record.embed.video"),
    "thumb over 1 MB": ({"embed": {"$type": "app.bsky.embed.external", "external": {
        "uri": "https://a.b", "title": "", "description": "", "thumb": BLOB | {"size": 1000001}}}},
        "blob too big (maximum 1000000, got 1000001) at $.record.embed.external.thumb"),
    "card without description": ({"embed": {"$type": "app.bsky.embed.external",
                                            "external": {"uri": "https://a.b", "title": ""}}},
                                 'Missing required key "description" at $.record.embed.external'),
    "quote without cid": ({"embed": {"$type": "app.bsky.embed.record", "record": {"uri": REF["uri"]}}},
                          'Missing required key "cid" at $.record.embed.record'),
    "reply with a bad cid": ({"reply": {"root": REF | {"cid": "nope"}, "parent": REF}},
                             'Invalid CID string (got "nope") at $.record.reply.root.cid'),
    "reply without parent": ({"reply": {"root": REF}}, 'Missing required key "parent" at $.record.reply'),
}


@pytest.mark.parametrize("change, problem", REFUSED_RECORDS.values(), ids=REFUSED_RECORDS)
def test_bluesky_refuses_a_record_that_breaks_its_lexicon(ann, change, problem):
    record = {key: value for key, value in (POST | change).items() if value is not ...}
    expected = {"error": "InvalidRequest", "message": f"Invalid app.bsky.feed.post record: {problem}"}
    assert ann.put(record) == (400, expected)
    assert ann.network.posts == []


@pytest.mark.parametrize("change", [
    {}, {"text": FAMILY * 120}, {"text": ""}, {"text": "a" * 300}, {"createdAt": "2026-11-21T03:00:00.123456+00:00"},
    {"unknown": {"any": [1, None]}}, {"langs": ["en", "zh-Hant", "pt-BR"]}, {"embed": {"$type": "com.example.future"}},
    {"embed": {"$type": "app.bsky.embed.record", "record": REF}}, {"reply": {"root": REF, "parent": REF}}, {"$type": ...},
], ids=str)
def test_bluesky_takes_what_the_lexicon_allows(ann, change):
    record = {key: value for key, value in (POST | change).items() if value is not ...}
    status, answer = ann.put(record)
    assert (status, answer["validationStatus"]) == (200, "valid")
    assert ann.network.posts[0]["record"] == {"$type": "app.bsky.feed.post"} | record


def test_bluesky_gives_a_record_the_identifier_that_the_reference_server_gives_it(ann):
    assert ann.put(POST)[1]["cid"] == POST_CID
    query = {"repo": "ann.test", "collection": "app.bsky.feed.post", "rkey": KEY}
    assert ann.xrpc("com.atproto.repo.getRecord", query=query, token=None) == (
        200, {"uri": f"at://{ann.did}/app.bsky.feed.post/{KEY}", "cid": POST_CID, "value": POST})


def test_bluesky_stores_any_facet_range_and_tells_what_it_covers(ann):
    spans = [(6, 10), (6, 8), (4, 99), (3, 3)]
    facets = [{"index": {"byteStart": start, "byteEnd": end}, "features": []} for start, end in spans]
    assert ann.put(POST | {"text": "hello 🦋!", "facets": facets})[0] == 200
    assert [facet["text"] for facet in ann.network.posts[0]["facets"]] == ["🦋", None, None, None]


WHOLE = {"repo": "ann.test", "collection": "app.bsky.feed.post", "rkey": KEY, "record": POST}
REFUSED_WRITES = {
    "rkey that is no TID": ({"rkey": "op-123"}, 400, "InvalidRequest",
                            'Invalid record key for app.bsky.feed.post: Invalid TID string (got "op-123") at $'),
    "rkey with a slash": ({"rkey": "a/b"}, 400, "InvalidRequest", 'Invalid record key (got "a/b") at $.rkey'),
    "no rkey": ({"rkey": ...}, 400, "InvalidRequest", 'Missing required key "rkey" at $'),
    "other $type": ({"record": POST | {"$type": "app.bsky.feed.like"}}, 400, "InvalidRequest",
                    "Invalid $type: expected app.bsky.feed.post, got app.bsky.feed.like"),
    "fraction": ({"record": POST | {"foo": 1.5}}, 400, "InvalidRequest",
                 "Expected one of null, boolean, integer, string, cid, bytes, array or object value type (got 1.5) "
                 "at $.record.foo"),
    "unknown collection": ({"collection": "com.example.thing", "record": {}, "validate": True}, 400, "InvalidRequest",
                           "Unknown lexicon type: com.example.thing"),
    "bad collection": ({"collection": "posts"}, 400, "InvalidRequest", 'Invalid NSID (got "posts") at $.collection'),
    "unknown repo": ({"repo": "did:plc:nobody"}, 403, "AccountNotFound", "Account not found"),
    "another's repo": ({"repo": "eve.test"}, 401, "AuthenticationRequired", "Authentication Required"),
    "swap of something absent": ({"swapRecord": POST_CID}, 400, "InvalidSwap", "Record was at null"),
    "old commit": ({"swapCommit": POST_CID}, 400, "InvalidSwap", "Commit was at {commit}"),
    "unknown blob": ({"record": POST | {"embed": picture()}}, 400, "BlobNotFound",
                     f"Could not find blob: {BLOB_CID}"),
}


@pytest.mark.parametrize("change, status, error, message", REFUSED_WRITES.values(), ids=REFUSED_WRITES)
def test_bluesky_refuses_a_write(ann, change, status, error, message):
    ann.network.add_user("eve.test", "cccc")
    body = {key: value for key, value in (WHOLE | change).items() if value is not ...}
    message = message.format(commit=ann.network.accounts[ann.did].commit)
    assert ann.xrpc(PUT, body) == (status, {"error": error, "message": message})
    assert ann.network.records == {}


def test_bluesky_swap_null_takes_one_record_per_key_and_the_same_bytes_are_no_conflict(ann):
    first = ann.put(POST, swapRecord=None)
    assert first[0] == 200 and "commit" in first[1]
    assert ann.put(POST, swapRecord=None) == (200, {key: value for key, value in first[1].items() if key != "commit"})
    conflict = {"error": "InvalidSwap", "message": f"Record was at {POST_CID}"}
    assert ann.put(POST | {"text": "other"}, swapRecord=None) == (400, conflict)
    assert ann.put(POST | {"text": "other"})[0] == 200
    assert [(post["record"]["text"], post["edits"]) for post in ann.network.posts] == [("other", 1)]


def test_bluesky_answers_500_to_a_second_create_under_one_key(ann):
    body = {"repo": ann.did, "collection": "app.bsky.feed.post", "rkey": KEY, "record": POST}
    assert ann.xrpc(CREATE, body)[0] == 200
    assert ann.xrpc(CREATE, body) == (500, {"error": "InternalServerError", "message": "Internal Server Error"})
    assert len(ann.network.posts) == 1


def test_bluesky_applies_all_writes_or_none(ann):
    def create(collection, value):
        return {"$type": f"{APPLY}#create", "collection": collection, "rkey": KEY, "value": value}

    uri = f"at://{ann.did}/app.bsky.feed.post/{KEY}"
    post, gate = create("app.bsky.feed.post", POST), {"post": uri, "allow": [], "createdAt": POST["createdAt"]}
    bad = ann.xrpc(APPLY, {"repo": ann.did, "writes": [post, create("app.bsky.feed.threadgate", gate | {"post": "x"})]})
    assert bad == (400, {"error": "InvalidRequest", "message": "Invalid app.bsky.feed.threadgate record: "
                                                               'Invalid at-uri (got "x") at $.writes[1].record.post'})
    assert ann.network.records == {}
    good = ann.xrpc(APPLY, {"repo": ann.did, "writes": [post, create("app.bsky.feed.threadgate", gate)]})
    assert good[0] == 200 and [result["$type"] for result in good[1]["results"]] == [f"{APPLY}#createResult"] * 2
    assert ann.xrpc(APPLY, {"repo": ann.did, "writes": [post]})[0] == 500
    assert ann.xrpc(APPLY, {"repo": ann.did, "writes": [{"$type": "x"}]})[0] == 400
    assert ann.xrpc(APPLY, {"repo": ann.did, "writes": [post] * 201})[1]["message"] == "Too many writes. Max: 200"
    assert len(ann.network.posts) == 1 and len(ann.network.records) == 2


def test_bluesky_checks_a_blob_against_what_was_uploaded_until_a_record_holds_it(ann):
    blob = ann.upload(kind="image/jpeg")[1]["blob"]
    assert (blob["mimeType"], blob["size"]) == ("image/png", len(PNG))
    for change, error in (({"size": 5}, "InvalidSize"), ({"mimeType": "image/jpeg"}, "InvalidMimeType")):
        status, answer = ann.put(POST | {"embed": picture(image=blob | change)})
        assert (status, answer["error"]) == (400, error)
    assert ann.put(POST | {"embed": picture(image=blob)})[0] == 200
    assert ann.put(POST | {"embed": picture(image=blob | {"size": 5})}, OTHER_KEY)[0] == 200


def test_bluesky_forgets_an_unused_blob_and_knows_only_the_owners(ann):
    ann.network.add_user("eve.test", "cccc")
    eve = Caller(ann.network, ann.xrpc(LOGIN, {"identifier": "eve.test", "password": "cccc"})[1]["accessJwt"])
    theirs = eve.upload()[1]["blob"]
    assert ann.put(POST | {"embed": picture(image=theirs)})[1]["error"] == "BlobNotFound"
    mine = ann.upload()[1]["blob"]
    ann.network.access_seconds = 86400
    ann.token = ann.xrpc(LOGIN, {"identifier": ann.did, "password": "aaaa-bbbb"})[1]["accessJwt"]
    ann.network.advance(bluesky.BLOB_SECONDS + 1)
    assert ann.put(POST | {"embed": picture(image=mine)})[1]["error"] == "BlobNotFound"


@pytest.mark.parametrize("path, headers, body, status, error, message", [
    (PUT, {"Content-Type": "text/plain"}, b"{}", 400, "InvalidRequest", "Wrong request encoding (Content-Type): text/plain"),
    (PUT, {"Content-Type": "application/json"}, b"{x", 400, "SyntaxError", "Unexpected token in JSON at position 0"),
    (PUT, {"Content-Type": "application/json"}, b"x" * 1_000_001, 413, "PayloadTooLargeError", "request entity too large"),
    (PUT, {"Content-Type": "application/json"}, None, 400, "InvalidRequest",
     "A request body is expected but none was provided"),
    (UPLOAD, {}, PNG, 400, "InvalidRequest", "Request encoding (Content-Type) required but not provided"),
    (UPLOAD, {"Content-Type": "image/png"}, b"x" * 2_000_001, 413, "PayloadTooLarge", "request entity too large"),
    (UPLOAD, {"Content-Type": "image/png", "Authorization": ""}, PNG, 401, "AuthMissing", "Authentication Required"),
    (PUT, {"Authorization": "Token a"}, b"{}", 400, "InvalidToken", "Unsupported authorization type: Token"),
    (PUT, {"Authorization": "Bearer"}, b"{}", 400, "InvalidToken", "Malformed authorization header"),
    (PUT, {"Authorization": "Bearer a.b.c"}, b"{}", 400, "InvalidToken", "Token could not be verified"),
    (PUT, {"Authorization": "DPoP a"}, b"{}", 401, "invalid_token", "Invalid token"),
    ("com.example.thing", {"Authorization": ""}, b"{}", 401, "AuthMissing", "Authentication Required"),
    ("com.example.thing", {}, b"{}", 501, "MethodNotImplemented", "Method Not Implemented"),
    (SERVICE, {}, b"{}", 400, "InvalidRequest", "Incorrect HTTP method (POST) expected GET"),
])
def test_bluesky_refuses_a_malformed_request(ann, path, headers, body, status, error, message):
    ann.network.blob_bytes = 2_000_000
    headers = {key: value for key, value in ({"Authorization": f"Bearer {ann.token}"} | headers).items() if value}
    answer = ann.send("POST", f"/xrpc/{path}", token=None, headers=headers, body=body)
    assert answer[:2] == (status, {"error": error, "message": message})


@pytest.mark.parametrize("login, status, error", [
    ({"identifier": "ann.test", "password": "aaaa-bbbb"}, 200, None),
    ({"identifier": "ANN@example.com", "password": "main"}, 200, None),
    ({"identifier": "@ann.test", "password": "aaaa-bbbb"}, 401, "AuthenticationRequired"),
    ({"identifier": "ann.test", "password": "wrong"}, 401, "AuthenticationRequired"),
    ({"identifier": "nobody.test", "password": "aaaa-bbbb"}, 401, "AuthenticationRequired"),
    ({"identifier": "two.test", "password": "main"}, 401, "AuthFactorTokenRequired"),
    ({"identifier": "two.test", "password": "app"}, 200, None),
    ({"identifier": "gone.test", "password": "main"}, 401, "AccountTakedown"),
    ({"identifier": "gone.test", "password": "app"}, 401, "AuthenticationRequired"),
    ({"identifier": "ann.test"}, 400, "InvalidRequest"),
    ({"identifier": "ann.test", "password": 5}, 400, "InvalidRequest"),
], ids=str)
def test_bluesky_login(ann, login, status, error):
    ann.network.add_user("two.test", "app", password="main", email_factor=True)
    gone = ann.network.add_user("gone.test", "app", password="main")
    ann.network.accounts[gone].status = "takendown"
    answer = ann.xrpc(LOGIN, login, token=None)
    assert (answer[0], answer[1].get("error")) == (status, error)


def test_bluesky_allows_thirty_logins_in_five_minutes(ann):
    login = {"identifier": "ann.test", "password": "aaaa-bbbb"}
    answers = [ann.send("POST", f"/xrpc/{LOGIN}", json=login) for _ in range(30)]
    assert [answer[0] for answer in answers] == [200] * 29 + [429]
    status, body, headers = answers[-1]
    assert body == {"error": "RateLimitExceeded", "message": "Rate Limit Exceeded"}
    assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"], headers["RateLimit-Policy"]) == ("30", "0", "30;w=300")
    assert 0 < int(headers["RateLimit-Reset"]) - time.time() <= 300 and "Retry-After" not in headers
    ann.network.advance(301)
    assert ann.xrpc(LOGIN, login)[0] == 200


def test_bluesky_counts_points_for_writes(ann):
    ann.network.rates["write hour"] = (5, 3600)
    assert [ann.put(POST)[0] for _ in range(3)] == [200, 200, 429]


def rotate(ann, token):
    """(status, new refresh token, answer) of refreshSession."""
    status, answer, _ = ann.send("POST", f"/xrpc/{REFRESH}", token=token)
    return status, answer.get("refreshJwt"), answer


def test_bluesky_access_tokens_live_two_hours_and_are_no_refresh_tokens(ann):
    exp = json.loads(base64.urlsafe_b64decode(ann.token.split(".")[1] + "=="))["exp"]
    assert 7190 < exp - time.time() <= 7200
    wrong_kind = (400, {"error": "InvalidToken", "message": "Token could not be verified"})
    assert ann.xrpc("com.atproto.server.getSession", token=ann.session["refreshJwt"]) == wrong_kind
    assert ann.send("POST", f"/xrpc/{REFRESH}")[:2] == wrong_kind
    assert ann.xrpc(REFRESH, {}, token=ann.session["refreshJwt"]) == (
        400, {"error": "InvalidRequest", "message": "A request body was provided when none was expected"})
    assert ann.xrpc("com.atproto.server.getSession")[1]["did"] == ann.did
    ann.network.advance(7201)
    assert ann.put(POST) == (400, {"error": "ExpiredToken", "message": "Token has expired"})


def test_bluesky_refresh_tokens_rotate_with_grace_and_end_with_their_password(ann):
    first, revoked = ann.session["refreshJwt"], (400, None, {"error": "ExpiredToken", "message": "Token has been revoked"})
    second = rotate(ann, first)[1]
    claims = [json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==")) for token in (second, rotate(ann, first)[1])]
    assert claims[0]["jti"] == claims[1]["jti"]
    ann.network.advance(bluesky_sessions.GRACE_SECONDS + 1)
    assert rotate(ann, first) == revoked
    status, third, answer = rotate(ann, second)
    assert status == 200
    ann.network.revoke(ann.did, "aaaa-bbbb")
    assert rotate(ann, third) == revoked
    ann.token = answer["accessJwt"]
    assert ann.put(POST)[0] == 200  # an access token outlives the revocation
    assert ann.xrpc(LOGIN, {"identifier": ann.did, "password": "aaaa-bbbb"})[0] == 401


@pytest.mark.parametrize("state, error", [("deactivated", "AccountDeactivated"), ("takendown", "AccountTakedown")])
def test_bluesky_refuses_writes_of_a_closed_account(ann, state, error):
    ann.network.accounts[ann.did].status = state
    status, answer = ann.put(POST)
    assert (status, answer["error"]) == (401, error)


def test_bluesky_refuses_everything_to_an_account_that_was_taken_down(ann):
    ann.network.accounts[ann.did].status = "takendown"
    refused = (401, {"error": "AccountTakedown", "message": "Account has been taken down"})
    assert ann.upload() == ann.send("POST", f"/xrpc/{REFRESH}", token=ann.session["refreshJwt"])[:2] == refused


@pytest.mark.parametrize("nsid, query, error, message", [
    ("com.atproto.repo.getRecord", {"repo": "no.test", "collection": "app.bsky.feed.post", "rkey": KEY}, "InvalidRequest",
     "Could not find repo: no.test"),
    ("com.atproto.repo.getRecord", {"repo": "ann.test", "collection": "app.bsky.feed.post", "rkey": KEY}, "RecordNotFound",
     "Could not locate record: at://{did}/app.bsky.feed.post/" + KEY),
    ("com.atproto.repo.getRecord", {"repo": "ann.test", "rkey": KEY}, "InvalidRequest",
     'Invalid com.atproto.repo.getRecord params: Missing required key "collection"'),
    ("com.atproto.identity.resolveHandle", {"handle": "no.test"}, "HandleNotFound", "Unable to resolve handle"),
    ("app.bsky.actor.getProfile", {"actor": "no.test"}, "InvalidRequest", "Profile not found"),
    ("app.bsky.video.getJobStatus", {"jobId": "no"}, "InvalidRequest", "job not found"),
])
def test_bluesky_refuses_to_read(ann, nsid, query, error, message):
    assert ann.xrpc(nsid, query=query) == (400, {"error": error, "message": message.format(did=ann.did)})


@pytest.mark.parametrize("query, error", [
    ({"lxm": UPLOAD}, "InvalidRequest"), ({"aud": "nobody", "lxm": UPLOAD}, "InvalidRequest"),
    ({"aud": "did:web:a.b", "lxm": UPLOAD, "exp": 7200}, "BadExpiration"),
    ({"aud": "did:web:a.b", "lxm": UPLOAD, "exp": -5}, "BadExpiration"), ({"aud": "did:web:a.b", "exp": 120}, "BadExpiration"),
    ({"aud": "did:web:a.b", "lxm": "chat.bsky.convo.sendMessage"}, "InvalidRequest"),
    ({"aud": "did:web:a.b", "lxm": UPLOAD, "exp": "soon"}, "InvalidRequest"),
], ids=str)
def test_bluesky_refuses_a_service_token(ann, query, error):
    if isinstance(query.get("exp"), int):
        query = query | {"exp": int(time.time()) + query["exp"]}
    status, answer = ann.xrpc(SERVICE, query=query)
    assert (status, answer["error"]) == (400, error)


def video_call(ann, aud="did:web:127.0.0.1", lxm=UPLOAD, kind="video/mp4", name="a.mp4", data=MP4):
    token = ann.xrpc(SERVICE, query={"aud": aud, "lxm": lxm})[1]["token"]
    query = urlencode({"did": ann.did, "name": name} if name else {"did": ann.did})
    path = f"/xrpc/app.bsky.video.uploadVideo?{query}"
    return ann.send("POST", path, token=token, body=data, headers={"Content-Type": kind})[:2]


def test_bluesky_video_goes_through_its_states_and_is_known_when_it_comes_again(ann):
    status, job = video_call(ann)
    assert (status, job["state"]) == (200, "JOB_STATE_CREATED") and "blob" not in job
    poll = {"nsid": "app.bsky.video.getJobStatus", "query": {"jobId": job["jobId"]}, "token": None}
    polls = [ann.xrpc(**poll)[1]["jobStatus"] for _ in range(3)]
    assert [poll["state"] for poll in polls] == ["JOB_STATE_ENCODING", "JOB_STATE_ENCODED", "JOB_STATE_COMPLETED"]
    embed = {"$type": "app.bsky.embed.video", "video": polls[-1]["blob"], "alt": "cat"}
    assert ann.put(POST | {"embed": embed})[0] == 200
    assert video_call(ann) == (409, job | {"state": "JOB_STATE_COMPLETED", "error": "already_exists",
                                           "message": "Video already processed"})
    again = ann.xrpc(**poll)[1]["jobStatus"]
    assert (again["error"], again["blob"]) == ("already_exists", polls[-1]["blob"])


@pytest.mark.parametrize("change, status, reason", [
    ({"aud": "did:web:bsky.social"}, 401, 'invalid token: invalid token audience "did:web:bsky.social", '
                                          'should be the user\'s PDS DID "did:web:127.0.0.1"'),
    ({"lxm": PUT}, 401, f'invalid token: invalid token lxm "{PUT}"'),
    ({"name": None}, 400, "did and name are required"), ({"kind": "image/png"}, 400, "InvalidRequest"),
], ids=str)
def test_bluesky_video_service_refuses(ann, change, status, reason):
    answer = video_call(ann, **change)
    assert (answer[0], answer[1]["error"]) == (status, reason)


def test_bluesky_video_service_refuses_a_session_token_and_an_unconfirmed_address(ann):
    path = f"/xrpc/app.bsky.video.uploadVideo?did={ann.did}&name=a.mp4"
    for token, reason in ((ann.token, "Token could not be verified"), (None, "missing token")):
        answer = ann.send("POST", path, token=token, body=MP4, headers={"Content-Type": "video/mp4"})
        assert (answer[0], answer[1]["error"]) == (401, f"invalid token: {reason}")
    ann.network.accounts[ann.did].email_confirmed = False
    assert video_call(ann) == (400, {"jobStatus": {"did": "", "error": "unconfirmed_email", "jobId": "", "state": ""}})
    token = ann.xrpc(SERVICE, query={"aud": bluesky_video.VIDEO_DID, "lxm": "app.bsky.video.getUploadLimits"})[1]["token"]
    assert ann.xrpc("app.bsky.video.getUploadLimits", token=token)[1]["canUpload"] is False


def test_bluesky_identity_points_back_to_the_server(ann):
    document = ann.send("GET", f"/{ann.did}", token=None)[1]
    assert (document["alsoKnownAs"], document["service"][0]["serviceEndpoint"]) == (["at://ann.test"], ann.network.url)
    assert document == ann.session["didDoc"]
    assert ann.send("GET", "/did:plc:nobody")[0] == 404
    assert ann.xrpc("com.atproto.identity.resolveHandle", query={"handle": "ann.test"}) == (200, {"did": ann.did})
    profile = ann.xrpc("app.bsky.actor.getProfile", query={"actor": ann.did}, token=None)[1]
    assert profile["handle"] == "ann.test" and not {"displayName", "avatar"} & set(profile)
    assert ann.xrpc("com.atproto.server.describeServer")[1]["blobUploadLimit"] == bluesky.BLOB_BYTES


REFUSED_STATUSES = {
    "nothing": ({}, 422, "Validation failed: Text can't be blank"),
    "blank": ({"status": " "}, 422, "Validation failed: Text can't be blank"),
    "an object as text": ({"status": {"a": 1}}, 422, "Validation failed: Text can't be blank"),
    "501 characters": ({"status": "a" * 501}, 422, "Validation failed: Text character limit of 500 exceeded"),
    "warning counts": ({"status": "a" * 490, "spoiler_text": "b" * 11}, 422,
                       "Validation failed: Text character limit of 500 exceeded"),
    "unknown parameter": ({"status": "a", "colour": "red"}, 422,
                          "No such parameters, which a real instance drops without a word: colour"),
    "unknown visibility": ({"status": "a", "visibility": "secret"}, 422,
                           "Validation failed: Visibility is not included in the list"),
    "reply to nothing": ({"status": "a", "in_reply_to_id": "1"}, 404,
                         "The post you are trying to reply to does not appear to exist."),
    "quote of nothing": ({"status": "a", "quoted_status_id": "1"}, 404,
                         "The post you are trying to quote does not appear to exist."),
    "unknown media": ({"status": "a", "media_ids": ["22", "23"]}, 422,
                      "Media 22, 23 not found or already attached to another post"),
    "5 media": ({"status": "a", "media_ids": list("12345")}, 422, "Cannot attach more than 4 files"),
    "media and poll": ({"status": "a", "media_ids": ["1"], "poll": {"options": ["a", "b"], "expires_in": 600}}, 422,
                       "Cannot attach more than 4 files"),
    "poll without text": ({"poll": {"options": ["a", "b"], "expires_in": 600}}, 422, "Validation failed: Text can't be blank"),
    "one option": ({"status": "a", "poll": {"options": ["a"], "expires_in": 600}}, 422,
                   "Validation failed: Poll options must have more than one item"),
    "five options": ({"status": "a", "poll": {"options": list("abcde"), "expires_in": 600}}, 422,
                     "Validation failed: Poll options can't contain more than 4 items"),
    "same options": ({"status": "a", "poll": {"options": ["a", " a"], "expires_in": 600}}, 422,
                     "Validation failed: Poll options contain duplicate items"),
    "long option": ({"status": "a", "poll": {"options": ["a", "b" * 51], "expires_in": 600}}, 422,
                    "Validation failed: Poll options cannot be longer than 50 characters each"),
    "short poll": ({"status": "a", "poll": {"options": ["a", "b"], "expires_in": 299}}, 422,
                   "Validation failed: Poll expires at is too soon"),
    "long poll": ({"status": "a", "poll": {"options": ["a", "b"], "expires_in": 2629747}}, 422,
                  "Validation failed: Poll expires at is too far into the future"),
    "endless poll": ({"status": "a", "poll": {"options": ["a", "b"]}}, 422,
                     "Validation failed: Poll expires at can't be blank, Poll expires at is too far into the future"),
    "schedule too near": ({"status": "a", "scheduled_at": "NEAR"}, 422,
                          "Validation failed: Scheduled at date must be in the future"),
}


@pytest.mark.parametrize("given, status, error", REFUSED_STATUSES.values(), ids=REFUSED_STATUSES)
def test_mastodon_refuses_a_status(bob, given, status, error):
    if "scheduled_at" in given:
        given = given | {"scheduled_at": (datetime.now(UTC) + timedelta(seconds=100)).isoformat()}
    assert bob.status(given) == (status, {"error": error})
    assert bob.network.posts == []


@pytest.mark.parametrize("given, seen", [
    ({"status": "a", "visibility": "direct"}, {"visibility": "direct", "sensitive": False}),
    ({"status": "a", "spoiler_text": "cw"}, {"text": "a", "spoiler_text": "cw", "sensitive": True}),
    ({"spoiler_text": "cw"}, {"text": "cw", "spoiler_text": "", "sensitive": True}),
    ({"status": "a", "language": "pt-BR"}, {"language": "pt"}), ({"status": "a", "language": "klingon"}, {"language": "en"}),
    ({"status": "a", "media_ids": "22"}, {"text": "a", "media_attachments": []}),
    ({"status": FAMILY * 500}, {"text": FAMILY * 500}),
    ({"status": "a" * 476 + " https://example.com/" + "b" * 400}, {"spoiler_text": ""}),
    ({"status": "a" * 495 + " @bob@a.very.long.example.com"}, {"spoiler_text": ""}),
], ids=lambda value: str(value)[:60])
def test_mastodon_takes_a_status(bob, given, seen):
    assert bob.status(given)[0] == 200
    assert {key: bob.network.posts[0][key] for key in seen} == seen


@pytest.mark.parametrize("text, characters", [
    ("https://a.example/x", 23), ("(https://a.example/x).", 26), ("example.com", 11), ("@ann@b.example hi", 7), ("é🦋", 2),
])
def test_mastodon_counts_characters(text, characters):
    assert mastodon.length(text) == characters


def test_mastodon_answers_a_known_key_with_the_first_status_before_looking_at_the_rest(bob):
    media = bob.media()[1]["id"]
    first = bob.status({"status": "a", "media_ids": [media]}, "k")
    assert first[0] == 200
    assert bob.status({"status": "a", "media_ids": [media]}, "k") == first == bob.status({"status": ""}, "k")
    assert bob.status({"status": "a", "media_ids": [media]}, "other")[0] == 422
    bob.network.add_user("eve")
    assert bob.status({"status": ""}, "k", token="token-eve")[0] == 422
    bob.network.advance(mastodon.IDEMPOTENCY_SECONDS + 1)
    assert bob.status({"status": "b"}, "k")[1]["id"] != first[1]["id"]
    assert [post["idempotency_key"] for post in bob.network.posts] == ["k", "k"]


@pytest.mark.parametrize("state, scopes, status, error", [
    ("revoked", mastodon.SCOPES, 401, "The access token was revoked"),
    ("expired", mastodon.SCOPES, 401, "The access token expired"),
    ("valid", "read write:media", 403, "This action is outside the authorized scopes"),
    ("valid", "write", 200, None),
])
def test_mastodon_tokens(bob, state, scopes, status, error):
    bob.network.tokens["token-bob"].state, bob.network.tokens["token-bob"].scopes = state, set(scopes.split())
    answer = bob.status({"status": "a"})
    assert (answer[0], answer[1].get("error")) == (status, error)


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer nothing"}, {"Authorization": "Token token-bob"}], ids=str)
def test_mastodon_refuses_a_call_without_its_token(bob, header):
    assert bob.send("POST", STATUSES, token=None, headers=header, json={"status": "a"})[:2] == (
        401, {"error": "The access token is invalid"})


@pytest.mark.parametrize("state, error", mastodon.ACCOUNT_STATES.items())
def test_mastodon_refuses_an_account_that_may_not_act(bob, state, error):
    bob.network.accounts[bob.id].state = state
    assert bob.status({"status": "a"}) == (403, {"error": error})


@pytest.mark.parametrize("file, status, error", [
    (("a.png", b"no image", "image/png"), 422, "File type of uploaded media could not be verified"),
    (("a.png", MP4, "image/png"), 422, "Validation failed: File has contents that are not what they are reported to be"),
    (("a.pdf", b"%PDF", "application/pdf"), 422, "Validation failed: File content type is invalid"),
    (("a.png", PNG, ""), 422, "Validation failed: File content type is invalid"),
    ("just text", 422, "Validation failed: File can't be blank"),
    (("a.png", PNG + b"x" * mastodon.IMAGE_BYTES, "image/png"), 422,
     "Validation failed: File file size must be less than 16 MB"),
], ids=["unknown content", "video as image", "pdf", "no type", "no file name", "too large"])
def test_mastodon_refuses_a_file(bob, file, status, error):
    assert bob.send("POST", "/api/v2/media", fields={"file": file})[:2] == (status, {"error": error})


def test_mastodon_refuses_other_media_details(bob):
    assert bob.media(description="a" * 1501)[1]["error"].endswith("Description is too long (maximum is 1500 characters)")
    assert bob.media(thumbnail=("t.png", PNG, "image/png"))[1]["error"] == "Validation failed: Thumbnail must be blank"
    for kind, body in (("multipart/form-data; boundary=b", b"--b\r\n"), ("application/json", b"{x")):
        answer = bob.send("POST", "/api/v2/media", headers={"Content-Type": kind}, body=body)
        assert answer[:2] == (400, {"status": 400, "error": "Bad Request"})


@pytest.mark.parametrize("name, data, kind, shown", [
    ("a.mp4", MP4, "video/mp4", "video"), ("a.gif", MOVING_GIF, "image/gif", "gifv"), ("a.mp3", b"ID3", "audio/mpeg", "audio")])
def test_mastodon_processes_before_it_attaches(bob, name, data, kind, shown):
    status, media = bob.media(data, kind, name)
    assert (status, media["type"], media["url"]) == (202, shown, None)
    early = bob.status({"status": "a", "media_ids": [media["id"]]}, "k")
    assert early == (422, {"error": "Cannot attach files that have not finished processing. Try again in a moment!"})
    polls = [bob.send("GET", f"/api/v1/media/{media['id']}")[:2] for _ in range(2)]
    assert [(status, bool(body["url"])) for status, body in polls] == [(206, False), (200, True)]
    assert bob.status({"status": "a", "media_ids": [media["id"]]}, "k")[0] == 200
    assert bob.send("GET", f"/api/v1/media/{media['id']}")[:2] == (404, {"error": "Record not found"})


def test_mastodon_attaches_own_media_only_and_no_video_beside_an_image(bob):
    bob.network.add_user("eve")
    bob.network.processing_polls = 0
    image, video = bob.media(description="alt", focus="-0.5,1")[1], bob.media(MP4, "video/mp4", "a.mp4")[1]
    assert (image["description"], image["meta"]) == ("alt", {"focus": {"x": -0.5, "y": 1.0}})
    assert bob.status({"media_ids": [image["id"], video["id"]]})[1]["error"].startswith("Cannot attach a video")
    assert bob.status({"media_ids": [image["id"]]}, token="token-eve")[1]["error"].startswith(f"Media {image['id']} not found")
    assert bob.send("GET", f"/api/v1/media/{image['id']}", token="token-eve")[0] == 404
    assert bob.status({"media_ids": [image["id"]]})[0] == 200


def test_mastodon_reads_rails_forms(bob):
    media = [bob.media()[1]["id"] for _ in range(2)]
    form = {"status": "a", "media_ids[]": media, "sensitive": "false"}
    status, body, _ = bob.send("POST", STATUSES, body=urlencode(form, doseq=True),
                               headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (status, [one["id"] for one in body["media_attachments"]], body["sensitive"]) == (200, media, False)


def test_mastodon_limits_statuses_and_says_so_in_iso_time(bob):
    bob.network.rates["statuses"] = (2, 10800)
    answers = [bob.send("POST", STATUSES, headers={"Idempotency-Key": key}, json={"status": key}) for key in "aabc"]
    assert [(status, headers["X-RateLimit-Remaining"]) for status, _, headers in answers] == [
        (200, "1"), (200, "1"), (200, "0"), (429, "0")]
    assert answers[-1][1] == {"error": "Too many requests"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", answers[-1][2]["X-RateLimit-Reset"])


def test_mastodon_shows_statuses_to_those_who_may_see_them(bob):
    bob.network.add_user("eve")
    public = bob.status({"status": "<one>"})[1]
    private = bob.status({"status": "two", "visibility": "private"})[1]
    path = f"/api/v1/accounts/{bob.id}/statuses?limit=20&exclude_reblogs=true"
    assert bob.send("GET", path)[1] == [private, public]
    assert bob.send("GET", path, token=None)[1] == bob.send("GET", path, token="token-eve")[1] == [public]
    assert bob.send("GET", f"{STATUSES}/{private['id']}", token="token-eve")[:2] == (404, {"error": "Record not found"})
    assert bob.send("GET", f"{STATUSES}/{public['id']}", token=None)[1]["content"] == "<p>&lt;one&gt;</p>"
    assert bob.send("GET", f"{STATUSES}/{public['id']}/source")[1] == {"id": public["id"], "text": "<one>", "spoiler_text": ""}
    assert bob.send("GET", f"{STATUSES}/{public['id']}/source", token=None)[0] == 401
    bob.network.accounts[bob.id].silenced = True
    assert bob.status({"status": "three"})[1]["visibility"] == "unlisted"


class Login:
    """A registered app that asks for Bob's consent."""

    verifier, back = "v" * 43, "https://p.example/cb"

    def __init__(self, bob):
        self.bob = bob
        app = bob.send("POST", "/api/v1/apps", token=None, json={
            "client_name": "P", "redirect_uris": self.back, "scopes": mastodon.SCOPES})[1]
        self.secrets = {"client_id": app["client_id"], "client_secret": app["client_secret"]}

    def consent(self, **change):
        """(status, parameters sent back) of the consent page."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        asked = {"response_type": "code", "client_id": self.secrets["client_id"], "redirect_uri": self.back, "state": "s",
                 "scope": mastodon.SCOPES, "code_challenge": challenge, "code_challenge_method": "S256"}
        status, _, headers = self.bob.send("GET", f"/oauth/authorize?{urlencode(asked | change)}", token=None)
        return status, dict(parse_qs(urlsplit(headers.get("Location", "")).query))

    def trade(self, **change):
        """(status, error, access token) of a code's exchange, with a fresh code unless one is given."""
        form = self.secrets | {"grant_type": "authorization_code", "redirect_uri": self.back, "code_verifier": self.verifier,
                               "code": self.consent()[1]["code"][0]} | change
        status, answer, _ = self.bob.send("POST", "/oauth/token", token=None, json=form)
        return status, answer.get("error"), answer.get("access_token")


@pytest.mark.parametrize("change, status, error", [
    ({"code_verifier": "no"}, 400, "invalid_grant"), ({"code": "no"}, 400, "invalid_grant"),
    ({"redirect_uri": "https://x"}, 400, "invalid_grant"), ({"client_secret": "no"}, 401, "invalid_client"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ({"grant_type": "client_credentials", "scope": "admin:read"}, 400, "invalid_scope"),
], ids=str)
def test_mastodon_refuses_a_token(bob, change, status, error):
    assert Login(bob).trade(**change) == (status, error, None)


def test_mastodon_consent_checks_client_address_and_scope(bob):
    login = Login(bob)
    assert login.consent(scope="admin:read") == (302, {"error": ["invalid_scope"], "state": ["s"]})
    assert login.consent(code_challenge_method="plain")[1]["error"] == ["invalid_code_challenge_method"]
    assert login.consent(redirect_uri="https://evil.example")[0] == login.consent(client_id="no")[0] == 400


def test_mastodon_code_works_once_and_its_token_until_it_is_revoked(bob):
    login = Login(bob)
    code = login.consent()[1]["code"][0]
    status, _, token = login.trade(code=code)
    assert status == 200 and login.trade(code=code)[:2] == (400, "invalid_grant")
    assert bob.send("GET", "/api/v1/accounts/verify_credentials", token=token)[1]["username"] == "bob"
    assert bob.send("POST", "/oauth/revoke", json={"client_id": "no", "token": token})[0] == 403
    assert bob.send("POST", "/oauth/revoke", json=login.secrets | {"token": token})[0] == 200
    assert bob.status({"status": "a"}, token=token) == (401, {"error": "The access token was revoked"})


def test_mastodon_token_of_an_app_is_no_user(bob):
    own = Login(bob).trade(grant_type="client_credentials", scope="write:statuses")[2]
    assert bob.status({"status": "a"}, token=own) == (422, {"error": "This method requires an authenticated user"})


@pytest.mark.parametrize("given, problem", [
    ({"redirect_uris": "https://p/cb"}, "Application name can't be blank"),
    ({"client_name": "P"}, "Redirect URI can't be blank"),
    ({"client_name": "P", "redirect_uris": ["cb"]}, "Redirect URI must be an absolute URI."),
    ({"client_name": "P", "redirect_uris": ["https://p/cb"], "scopes": "everything"},
     "Scopes doesn't match configured on the server."),
], ids=str)
def test_mastodon_refuses_to_register_an_app(bob, given, problem):
    assert bob.send("POST", "/api/v1/apps", json=given)[:2] == (422, {"error": f"Validation failed: {problem}"})


def test_mastodon_tells_its_limits_and_knows_no_other_path(bob):
    for path in ("/api/v2/instance", "/api/v1/instance"):
        assert bob.send("GET", path, token=None)[1]["configuration"]["statuses"] == {
            "max_characters": 500, "max_media_attachments": 4, "characters_reserved_per_url": 23}
    assert bob.send("GET", "/api/v1/nothing")[:2] == bob.send("PUT", STATUSES)[:2] == (404, {"error": "Not Found"})


@pytest.mark.parametrize("network, error", [
    (network, error) for network in (BlueskyServer, MastodonServer) for error in network.errors])
def test_every_row_of_the_error_table_can_be_provoked_by_name(network, error):
    with network() as running:
        fault = running.fail(error)
        method, path = ("GET", f"/xrpc/{fault.endpoint}") if fault.endpoint.startswith("app.bsky") else \
            ("POST", f"/xrpc/{fault.endpoint}") if network is BlueskyServer else \
            ("POST", STATUSES) if fault.endpoint == "*" else fault.endpoint.replace(":id", "1").split()
        status, body, headers = Caller(running).send(method, path)
        assert (status, body) == (fault.status, fault.body)
        assert fault.headers.items() <= headers.items() and running.faults == []


@pytest.mark.parametrize("details, lost, posts", [
    ({"drop_before": True}, True, 0), ({"drop_answer": True}, True, 1), ({"status": 503, "body": {"error": "x"}}, False, 0),
    ({"status": 504, "acts": True}, False, 1), ({"delay": 0.05}, False, 1),
], ids=str)
def test_a_fault_says_whether_the_network_acted_and_what_came_back(bob, details, lost, posts):
    bob.network.fault("POST /api/v1/statuses", **details)
    started = time.monotonic()
    try:
        status = bob.status({"status": "a"})[0]
    except urllib3.exceptions.ProtocolError:
        status = None
    assert status == (None if lost else details.get("status", 200))
    assert len(bob.network.posts) == posts
    assert time.monotonic() - started >= details.get("delay", 0)
    assert [request.status for request in bob.network.calls("POST /api/v1/statuses")] == [status]
    assert bob.status({"status": "b"})[0] == 200


def test_faults_queue_and_unknown_endpoints_are_told(bob):
    bob.network.fault("POST /api/v1/statuses", status=500, times=2)
    bob.network.fault("*", status=502)
    assert [bob.status({"status": "a"})[0] for _ in range(4)] == [500, 500, 502, 200]
    with pytest.raises(ValueError, match="no endpoint"):
        bob.network.fault("POST /api/v1/toots", status=500)


def test_requests_are_recorded_and_secrets_stay_out_of_their_repr(bob):
    bob.status({"status": "a"}, "k")
    request = bob.network.requests[-1]
    assert (request.method, request.path, request.status, request.headers["Idempotency-Key"]) == ("POST", STATUSES, 200, "k")
    assert request.size == len(request.body) > 0 and "token-bob" not in repr(request)


def test_half_a_request_does_nothing(bob):
    with socket.create_connection(("127.0.0.1", bob.network.port)) as connection:
        connection.sendall(b"POST /api/v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token-bob\r\n"
                           b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n" + b'{"status": "a"}')
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert bob.network.posts == [] and bob.network.requests[-1].status is None


@pytest.mark.parametrize("header, status", [("Content-Length: many", b"400"), ("Transfer-Encoding: chunked", b"411")])
def test_a_body_of_unknown_length_is_refused(bob, header, status):
    with socket.create_connection(("127.0.0.1", bob.network.port)) as connection:
        connection.sendall(f"POST /api/v1/statuses HTTP/1.1\r\nHost: a\r\n{header}\r\n\r\n".encode())
        assert connection.recv(100).split()[1] == status


def test_many_callers_at_once_get_one_status_for_one_key(bob):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(bob.status({"status": "a"}, "k")[1]["id"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and len(set(answers)) == len(bob.network.posts) == 1


def test_stopping_ends_open_connections_and_waiting_answers_at_once():
    with MastodonServer() as network:
        network.fault("GET /api/v2/instance", delay=60)
        with pytest.raises(urllib3.exceptions.HTTPError):
            HTTP.request("GET", f"{network.url}/api/v2/instance", timeout=0.1)
        HTTP.request("GET", f"{network.url}/api/v1/instance")
        started = time.monotonic()
    assert time.monotonic() - started < 1
    with pytest.raises(urllib3.exceptions.HTTPError):
        HTTP.request("GET", f"{network.url}/api/v1/instance")


@pytest.mark.parametrize("module, user, call", [
    ("bluesky", {"handle": "ann.test", "app_password": "aaaa"}, f"/xrpc/{PUT}"), ("mastodon", {"username": "bob"}, STATUSES)])
def test_a_network_runs_as_a_process_of_its_own(module, user, call):
    command = [sys.executable, "-m", f"tests.standins.{module}", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert HTTP.request("POST", f"{url}/_standin/users", json=user).json()["user"]
            assert HTTP.request("POST", f"{url}/_standin/faults", json={"error": "rate_limited"}).status == 200
            assert HTTP.request("POST", f"{url}/_standin/faults", json={"endpoint": "nothing"}).status == 400
            assert HTTP.request("POST", url + call, json={}).status == 429
            assert HTTP.request("GET", f"{url}/_standin/posts").json() == {"posts": []}
            assert HTTP.request("GET", f"{url}/_standin/requests").json()["requests"][0]["path"] == call
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0
