"""The stand-ins of YouTube and Google Business Profile refuse what Google refuses: every refusal has a row here."""

import json
from urllib.parse import urlencode

import pytest
import urllib3

from tests.networks import gbp, youtube
from tests.standins.gbp import BusinessServer
from tests.standins.google import CLIENT_ID, CLIENT_SECRET, REDIRECT
from tests.standins.youtube import AUTH, YouTubeServer

HTTP = urllib3.PoolManager(retries=False, timeout=5)
VIDEOS, UPLOAD, THREADS = "/youtube/v3/videos", "/upload/youtube/v3/videos", "/youtube/v3/commentThreads"
POSTS = "/v4/accounts/111/locations/222/localPosts"
SNIPPET = {"title": "Bread", "description": "Fresh"}
DATE = {"year": 2026, "month": 12, "day": 1}
DAY = {"startDate": DATE, "startTime": {"hours": 9}, "endDate": DATE, "endTime": {"hours": 17}}


class Caller:
    """One account of a stand-in."""

    def __init__(self, net, account):
        self.net, self.account = net, account
        self.token = account.credentials["accessToken"]

    def send(self, method, path, query=None, **content):
        """(status, reason or body, headers) of one call; the reason is that of Google's errors."""
        headers = {"Authorization": f"Bearer {self.token}", **content.pop("headers", {})}
        address = self.net.url + path if path.startswith("/") else path
        address += f"?{urlencode(query)}" if query else ""
        answer = HTTP.request(method, address, headers=headers, redirect=False, **content)
        body = answer.json() if answer.headers.get("Content-Type", "").startswith("application/json") else answer.data.decode()
        error = body.get("error") if isinstance(body, dict) else None
        reason = error["errors"][0]["reason"] if isinstance(error, dict) and "errors" in error else error or body
        return answer.status, reason, answer.headers

    def session(self, video=None, *, part="snippet,status", size="10", kind="video/mp4", **query):
        """Opens an upload."""
        return self.send("POST", UPLOAD, {"uploadType": "resumable", "part": part, **query}, json=video or {"snippet": SNIPPET},
                         headers={"X-Upload-Content-Length": size, "X-Upload-Content-Type": kind})

    def put(self, address, span, body=b""):
        """Sends a part of a video."""
        return self.send("PUT", address, body=body, headers={"Content-Range": f"bytes {span}"})

    def video(self, **status):
        """The id of a video that is uploaded and processed."""
        address = self.session({"snippet": SNIPPET, "status": status})[2]["Location"]
        _, body, _ = self.put(address, "0-9/10", b"v" * 10)
        self.net.videos[body["id"]]["polls"] = 0
        return body["id"]


@pytest.fixture
def yt():
    with YouTubeServer() as net:
        yield Caller(net, youtube.account(net))


@pytest.fixture
def business():
    with BusinessServer() as net:
        yield Caller(net, gbp.account(net))


# YouTube

@pytest.mark.parametrize("change, status, reason", [
    ({"part": "snippet,colour"}, 400, "invalidParameter"), ({"part": "status"}, 400, "unexpectedPart"),
    ({"notify": "true"}, 400, "badRequest"), ({"notifySubscribers": "yes"}, 400, "invalidParameter"),
    ({"uploadType": "media"}, 400, "invalidParameter"), ({"size": ""}, 400, "badRequest"), ({"size": "0"}, 400, "badRequest"),
    ({"size": str(2**38 + 1)}, 400, "badRequest"), ({"kind": "image/png"}, 400, "badContent"),
    ({"video": {"snippet": {**SNIPPET, "colour": "red"}}}, 400, "badRequest"),
    ({"video": {"snippet": {**SNIPPET, "tags": "a"}}}, 400, "badRequest"),
    ({"video": {"snippet": {**SNIPPET, "categoryId": 22}}}, 400, "badRequest"),
    ({"video": {"snippet": SNIPPET, "status": {"privacyStatus": "secret"}}}, 400, "badRequest"),
    ({"video": {"snippet": SNIPPET, "status": {"embeddable": "true"}}}, 400, "badRequest"),
    ({"video": {"snippet": {**SNIPPET, "title": " "}}}, 400, "invalidTitle"),
    ({"video": {"snippet": {**SNIPPET, "title": "a" * 101}}}, 400, "invalidTitle"),
    ({"video": {"snippet": {**SNIPPET, "title": "<"}}}, 400, "invalidTitle"),
    ({"video": {"snippet": {**SNIPPET, "description": "é" * 2501}}}, 400, "invalidDescription"),
    ({"video": {"snippet": {**SNIPPET, "tags": ["a" * 501]}}}, 400, "invalidTags"),
    ({"video": {"snippet": {**SNIPPET, "categoryId": "99"}}}, 400, "invalidCategoryId"),
    ({"video": {"snippet": {**SNIPPET, "defaultLanguage": "?"}}}, 400, "invalidVideoMetadata"),
])
def test_sessions_that_youtube_does_not_open(yt, change, status, reason):
    assert yt.session(**change)[:2] == (status, reason) and not yt.net.sessions


@pytest.mark.parametrize("span, body", [
    ("0-8/10", b"v" * 9), ("0-9/11", b"v" * 10), ("0-9/10", b"v" * 9), ("1-9/10", b"v" * 9), ("0-10/10", b"v" * 11),
    ("nonsense", b""),
])
def test_chunks_that_do_not_fit(yt, span, body):
    address = yt.session()[2]["Location"]
    assert yt.put(address, span, body)[0] == 400
    assert yt.put(address, "*/10")[::2][0] == 308 and not yt.net.videos


def test_the_course_of_an_upload(yt):
    address = yt.session(size=str(262_144 + 1))[2]["Location"]
    assert "Range" not in yt.put(address, "*/262145")[2]
    status, _, headers = yt.put(address, "0-262143/262145", b"v" * 262_144)
    assert (status, headers["Range"]) == (308, "bytes=0-262143")
    assert yt.put(address, "262144-262144/262145", b"v")[0] == 201
    again, body, _ = yt.put(address, "*/262145")
    assert again == 200 and list(yt.net.videos) == [body["id"]]
    assert body["status"]["privacyStatus"] == "public" and yt.net.posts
    assert yt.put(address, "262144-262144/262145", b"v")[0] == 201 and len(yt.net.videos) == 1


def test_a_session_ends_and_belongs_to_one_channel(yt):
    address = yt.session()[2]["Location"]
    yt.token = yt.net.add_user()["accessToken"]
    assert yt.put(address, "*/10")[0] == 404
    yt.net.advance(7 * 86_400 + 1)
    yt.token = yt.net.grant(next(iter(yt.net.sessions.values())).owner)["accessToken"]
    assert yt.put(address, "*/10")[0] == 404


def test_an_update_replaces_the_whole_part(yt):
    video = yt.video(embeddable=True, privacyStatus="private")
    body = {"id": video, "status": {"privacyStatus": "public"}}
    assert yt.send("PUT", VIDEOS, {"part": "status"}, json=body)[0] == 200
    assert yt.net.videos[video]["status"]["embeddable"] is False
    for change, expected in [({"id": "x"}, (404, "videoNotFound")), ({"snippet": SNIPPET}, (400, "unexpectedPart")),
                             ({"status": {"embeddable": True}}, (400, "invalidVideoMetadata"))]:
        assert yt.send("PUT", VIDEOS, {"part": "status"}, json={**body, **change})[:2] == expected
    yt.token = yt.net.add_user()["accessToken"]
    assert yt.send("PUT", VIDEOS, {"part": "status"}, json=body)[:2] == (403, "forbidden")


@pytest.mark.parametrize("change, expected", [
    ({"body": b""}, (400, "mediaBodyRequired")), ({"body": b"GIF89a"}, (400, "invalidImage")),
    ({"headers": {"Content-Type": "image/jpeg"}}, (400, "invalidImage")), ({"video": "x"}, (404, "videoNotFound")),
    ({"verified": False}, (403, "forbidden")), ({"polls": 1}, (403, "forbidden")), ({}, (200, None)),
])
def test_thumbnails(yt, change, expected):
    video = yt.video()
    yt.net.videos[video]["polls"] = change.pop("polls", 0)
    yt.net.consenting.verified = change.pop("verified", True)
    content = {"body": b"\x89PNG\r\n\x1a\n", "headers": {"Content-Type": "image/png"}, **change}
    query = {"videoId": content.pop("video", video), "uploadType": "media"}
    status, reason, _ = yt.send("POST", "/upload/youtube/v3/thumbnails/set", query, **content)
    assert (status, None if status == 200 else reason) == expected


@pytest.mark.parametrize("status, change, expected", [
    ({}, {"videoId": "x"}, (404, "videoNotFound")), ({}, {"channelId": "UCother"}, (404, "videoNotFound")),
    ({}, {"text": " "}, (400, "commentTextRequired")), ({}, {"text": "a" * 10_001}, (400, "commentTextTooLong")),
    ({"selfDeclaredMadeForKids": True}, {}, (403, "commentsDisabled")),
    ({"privacyStatus": "private"}, {}, (403, "commentsDisabled")),
])
def test_comments(yt, status, change, expected):
    comment = {"channelId": yt.account.platform_id, "videoId": yt.video(**status), **change}
    comment["topLevelComment"] = {"snippet": {"textOriginal": comment.pop("text", "First")}}
    assert yt.send("POST", THREADS, {"part": "snippet"}, json={"snippet": comment})[:2] == expected and not yt.net.comments


def test_quotas(yt):
    yt.net.consenting.uploads_left = 1
    yt.video()
    assert yt.session()[:2] == (400, "uploadLimitExceeded")
    yt.net.consenting.uploads_left, yt.net.uploads = 1, 0
    assert yt.session()[:2] == (403, "quotaExceeded")
    yt.net.units = 0
    assert yt.send("GET", VIDEOS, {"part": "status", "id": "x"})[:2] == (403, "quotaExceeded")


@pytest.mark.parametrize("method, path, query, scope", [
    ("POST", THREADS, {"part": "snippet"}, AUTH), ("PUT", VIDEOS, {"part": "status"}, f"{AUTH}.upload"),
    ("POST", UPLOAD, {"part": "snippet"}, f"{AUTH}.readonly"), ("GET", VIDEOS, {"part": "status"}, f"{AUTH}.upload"),
])
def test_scopes(yt, method, path, query, scope):
    yt.token = yt.net.add_user(scopes=(scope,))["accessToken"]
    assert yt.send(method, path, query)[:2] == (403, "insufficientPermissions")


def test_calls_that_lack_something(yt):
    assert yt.send("GET", VIDEOS, {"part": "status"})[:2] == (400, "missingRequiredParameter")
    query, kind = {"part": "status"}, {"Content-Type": "application/json"}
    assert yt.send("PUT", VIDEOS, query, body=b"{", headers=kind)[:2] == (400, "parseError")
    assert yt.send("PUT", VIDEOS, query, body=b"{}")[:2] == (400, "badContent")
    assert yt.send("GET", "/youtube/v3/search")[0] == 404
    yt.net.advance(3600)
    assert yt.send("GET", VIDEOS, {"part": "status", "id": "x"})[:2] == (401, "authError")


# Business Profile

@pytest.mark.parametrize("change, field", [
    ({"topicType": None}, "topic_type"), ({"summary": "a" * 1501}, "summary"), ({"languageCode": "?"}, "language_code"),
    ({"topicType": "EVENT"}, "event"), ({"topicType": "OFFER"}, "event"),
    ({"topicType": "EVENT", "event": {"title": "a", "schedule": {**DAY, "endTime": {"hours": 8}}}}, "event"),
    ({"topicType": "EVENT", "event": {"title": "a", "schedule": {"startDate": DAY["startDate"]}}}, "event"),
    ({"topicType": "EVENT", "event": {"title": "a", "schedule": {**DAY, "endDate": {**DATE, "day": 32}}}}, "event"),
    ({"topicType": "EVENT", "event": {"title": "a" * 59, "schedule": DAY}}, "event.title"), ({"offer": {}}, "offer"),
    ({"topicType": "OFFER", "event": {"title": "a", "schedule": DAY}, "callToAction": {"actionType": "CALL"}},
     "call_to_action"),
    ({"callToAction": {"actionType": "CALL", "url": "https://a.example.com"}}, "call_to_action.url"),
    ({"callToAction": {"actionType": "BOOK"}}, "call_to_action.url"),
    ({"media": [{"mediaFormat": "PHOTO", "sourceUrl": "https://a.example.com"}] * 2}, "media"),
    ({"media": [{"mediaFormat": "PHOTO"}]}, "media.source_url"),
])
def test_posts_that_google_refuses(business, change, field):
    post = {name: value for name, value in {"topicType": "STANDARD", "summary": "a", **change}.items() if value is not None}
    answer = HTTP.request("POST", business.net.url + POSTS, json=post, headers={"Authorization": f"Bearer {business.token}"})
    assert answer.status == 400 and not business.net.made
    assert json.loads(answer.data)["error"]["details"][0]["errorDetails"][0]["field"] == field


@pytest.mark.parametrize("change", [{"colour": "red"}, {"topicType": "PRODUCT"}, {"media": {"sourceUrl": "x"}}, {"summary": 7},
                                    {"event": {"title": "a", "schedule": {"startDate": "2026-12-01"}}},
                                    {"callToAction": {"actionType": "BUY", "url": "https://a.example.com"}}])
def test_posts_of_another_form(business, change):
    status, reason, _ = business.send("POST", POSTS, json={"topicType": "STANDARD", **change})
    assert (status, reason) == (400, "badRequest") and not business.net.made


@pytest.mark.parametrize("info, status", [
    ({"dailyPattern": {}}, 200), ({"weeklyPattern": {"daysOfWeek": ["MONDAY"]}, "seriesEndTime": "2027-01-01T00:00:00Z"}, 200),
    ({"monthlyPattern": {"dayOfMonth": 31}}, 200), ({}, 400), ({"dailyPattern": {}, "weeklyPattern": {}}, 400),
    ({"weeklyPattern": {}}, 400), ({"weeklyPattern": {"daysOfWeek": ["MONDAY", "MONDAY"]}}, 400), ({"monthlyPattern": {}}, 400),
    ({"monthlyPattern": {"dayOfMonth": 32}}, 400), ({"monthlyPattern": {"dayOfMonth": 1, "dayOfWeekOccurrence": "LAST"}}, 400),
    ({"dailyPattern": {}, "seriesEndTime": "2027-01-01"}, 400), ({"dailyPattern": {"every": 2}}, 400),
])
def test_what_repeats(business, info, status):
    event = {"title": "a", "schedule": DAY, "recurrenceInfo": info}
    assert business.send("POST", POSTS, json={"topicType": "EVENT", "summary": "a", "event": event})[0] == status


@pytest.mark.parametrize("change, field", [
    ({}, None), ({"mediaFormat": None}, "media_format"), ({"locationAssociation": None}, "location_association"),
    ({"dataRef": None}, "data"), ({"sourceUrl": "https://a.example.com"}, "data"), ({"description": "Oven"}, None),
    ({"locationAssociation": {"category": "COVER"}, "description": "Oven"}, "description"),
    ({"dataRef": {"resourceName": "x"}}, "data_ref"), ({"mediaFormat": "VIDEO"}, "data_ref"),
    ({"dataRef": None, "sourceUrl": "x"}, "source_url"),
])
def test_files_of_a_gallery(business, change, field):
    headers = {"Authorization": f"Bearer {business.token}"}
    address = f"{business.net.url}/v4/accounts/111/locations/222/media"
    upload = HTTP.request("POST", f"{address}:startUpload", json={}, headers=headers).json()["resourceName"]
    bytes_of = f"{business.net.url}/upload/v1/media/{upload}?upload_type=media"
    assert HTTP.request("POST", bytes_of, body=b"\x89PNG\r\n\x1a\n", headers=headers).status == 200
    item = {"mediaFormat": "PHOTO", "locationAssociation": {"category": "MENU"}, "dataRef": {"resourceName": upload}, **change}
    item = {name: value for name, value in item.items() if value is not None}
    answer = HTTP.request("POST", address, json=item, headers=headers)
    assert (answer.status, len(business.net.added)) == ((400, 0) if field else (200, 1))
    assert not field or answer.json()["error"]["details"][0]["errorDetails"][0]["field"] == field
    assert HTTP.request("POST", bytes_of + "x", body=b"x", headers=headers).status == 400


def test_a_video_in_a_post_is_an_internal_error(business):
    post = {"topicType": "STANDARD", "media": [{"mediaFormat": "VIDEO", "sourceUrl": "https://a.example.com"}]}
    assert business.send("POST", POSTS, json=post)[0] == 500


@pytest.mark.parametrize("method, path, query, status", [
    ("GET", "/v1/accounts/111/locations", {}, 400), ("GET", "/v1/accounts/111/locations", {"readMask": "colour"}, 400),
    ("GET", "/v1/accounts/111/locations", {"readMask": "name", "pageSize": "101"}, 400),
    ("GET", "/v1/accounts/9/locations", {"readMask": "name"}, 403), ("GET", "/v1/locations/9", {"readMask": "name"}, 404),
    ("GET", POSTS, {"pageSize": "101"}, 400), ("GET", POSTS, {"page": "1"}, 400), ("GET", f"{POSTS}/9", {}, 404),
    ("GET", "/v4/accounts/111/locations/9/localPosts", {}, 403), ("GET", "/v4/locations/222/localPosts", {}, 404),
])
def test_calls_that_google_refuses(business, method, path, query, status):
    assert business.send(method, path, query)[0] == status


# The login

@pytest.mark.parametrize("change, status, error", [
    ({"client_id": "x"}, 401, "invalid_client"), ({"client_secret": "x"}, 401, "invalid_client"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"), ({"refresh_token": "x"}, 400, "invalid_grant"),
    ({"grant_type": "authorization_code", "code": "x"}, 400, "invalid_grant"),
])
def test_tokens_that_google_does_not_give(yt, change, status, error):
    form = {"grant_type": "refresh_token", "refresh_token": yt.account.credentials["refreshToken"], "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET, **change}
    answer = HTTP.request("POST", f"{yt.net.url}/token", body=urlencode(form),
                          headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (answer.status, answer.json()["error"]) == (status, error)


@pytest.mark.parametrize("change", [{"client_id": "x"}, {"redirect_uri": "https://elsewhere.example.com"}, {"scope": "x"},
                                    {"response_type": "token"}])
def test_logins_that_google_does_not_begin(yt, change):
    query = {"client_id": CLIENT_ID, "redirect_uri": REDIRECT, "scope": AUTH, "response_type": "code", "state": "s", **change}
    assert yt.send("GET", "/o/oauth2/v2/auth", query)[0] == 400


def test_a_refresh_token_comes_with_offline_access_alone(yt):
    query = {"client_id": CLIENT_ID, "redirect_uri": REDIRECT, "scope": AUTH, "response_type": "code", "state": "s"}
    code = yt.send("GET", "/o/oauth2/v2/auth", query)[2]["Location"].partition("code=")[2].partition("&")[0].replace("%2F", "/")
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET}
    answer = HTTP.request("POST", f"{yt.net.url}/token", body=urlencode(form),
                          headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 200 and "refresh_token" not in answer.json()
