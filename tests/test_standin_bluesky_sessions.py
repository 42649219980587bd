"""The stand-in of Bluesky is as strict as a real server with requests, sessions, readers and videos."""

import base64
import json
import time
from urllib.parse import urlencode

import pytest

from tests.callers import KEY, LOGIN, MP4, PNG, POST, PUT, REFRESH, SERVICE, UPLOAD, ann     # the last is a fixture
from tests.standins import bluesky, bluesky_sessions, bluesky_video


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
