"""The stand-in for X is as strict as X: every refusal has a row here."""

import pytest
import urllib3

from tests.networks import twitter as network
from tests.standins.shapes import List, Range, Text, wrongs
from tests.standins.twitter import DUPLICATE_SECONDS
from tests.standins.twitter_media import MEDIA_SECONDS

HTTP = urllib3.PoolManager(retries=False, timeout=5)
PNG, MP4 = b"\x89PNG\r\n\x1a\n" + b"p" * 60, b"\0\0\0\x18ftypisom" + b"v" * 60
POLL = {"options": ["a", "b"], "duration_minutes": 5}


@pytest.fixture
def net():
    with network.start() as net:
        yield net


@pytest.fixture
def ann(net):
    return network.account(net)


def call(net, method, path, token="canary-access-ann", **content):
    """(status, JSON or None) of one call."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = HTTP.request(method, net.url + path, headers={**headers, **content.pop("headers", {})}, **content)
    return answer.status, answer.json() if answer.data[:1] == b"{" else None


def post(net, **body):
    return call(net, "POST", "/2/tweets", json=body)


def uploaded(net, data=PNG, kind="image/png", category="tweet_image", chunks=1):
    """The id of finished media."""
    begin = {"media_type": kind, "total_bytes": len(data), "media_category": category}
    media = call(net, "POST", "/2/media/upload/initialize", json=begin)[1]["data"]["id"]
    size = -(-len(data) // chunks)
    for number in range(chunks):
        assert append(net, media, number, data[number * size:][:size])[0] == 200
    return media


def append(net, upload, number, data, **more):
    fields = {"segment_index": str(number), "media": ("chunk", data), **more}
    return call(net, "POST", f"/2/media/upload/{upload}/append", fields=fields)


def finished(net, *args, **details):
    media = uploaded(net, *args, **details)
    assert call(net, "POST", f"/2/media/upload/{media}/finalize")[0] == 200
    return media


@pytest.mark.parametrize("body, status", [
    ({"text": "hi"}, 201), ({"text": "hi", "poll": POLL}, 201), ({"text": "x" * 280}, 201), ({"text": "漢" * 140}, 201),
    ({"text": "hi", "reply_settings": "verified", "made_with_ai": True, "geo": {"place_id": "a"}}, 201),
    ({"text": "hi", "community_id": "77", "share_with_followers": True}, 201), ({"text": "$A and $5"}, 201),
    ({}, 400), ({"text": " "}, 400), ({"text": 7}, 400), ({"text": "hi", "visibility": "public"}, 400),
    ({"text": "hi", "reply_settings": "everyone"}, 400), ({"text": "hi", "made_with_ai": "true"}, 400),
    ({"text": "hi", "media": {}}, 400), ({"text": "hi", "media": {"media_ids": []}}, 400),
    ({"text": "hi", "media": {"media_ids": [12]}}, 400), ({"text": "hi", "media": {"media_ids": ["12"]}}, 400),
    ({"text": "hi", "media": {"media_ids": ["1"], "alt": "a"}}, 400), ({"text": "hi", "reply": {}}, 400),
    ({"text": "hi", "poll": {**POLL, "options": ["a"]}}, 400),
    ({"text": "hi", "poll": {**POLL, "options": ["a", "b" * 26]}}, 400),
    ({"text": "hi", "poll": {**POLL, "duration_minutes": 4}}, 400),
    ({"text": "hi", "poll": {**POLL, "duration_minutes": 5.5}}, 400),
    ({"text": "hi", "reply": {"in_reply_to_tweet_id": "5"}}, 400), ({"text": "hi", "share_with_followers": True}, 400),
    ({"text": "hi", "community_id": "78"}, 403), ({"text": "x" * 281}, 403), ({"text": "漢" * 141}, 403),
    ({"text": "$ACME $BRK"}, 403), ({"text": "a\ufeff"}, 403),
])
def test_posts(net, ann, body, status):
    assert post(net, **body)[0] == status and len(net.posts) == (status == 201)


def test_posts_take_json_alone(net, ann):
    plain = {"body": b'{"text": "hi"}', "headers": {"Content-Type": "text/plain"}}
    for content in ({"fields": {"text": "hi"}}, {"body": b"{", "headers": {"Content-Type": "application/json"}}, plain):
        assert call(net, "POST", "/2/tweets", **content)[0] == 400


def test_a_duplicate_is_refused_for_a_while(net, ann):
    assert [post(net, text=text)[0] for text in ("hi", "ho", "hi")] == [201, 201, 403]
    net.posts[0]["time"] -= DUPLICATE_SECONDS
    assert post(net, text="hi")[0] == 201


def test_answers_to_others_need_their_interest(net, ann):
    other = net.add_post(net.add_user("bob"), "hello")["id"]
    status, body = post(net, text="hi", reply={"in_reply_to_tweet_id": other})
    assert (status, body["type"].rpartition("/")[2]) == (403, "not-authorized-for-resource")
    net.mentioned.add(other)
    assert post(net, text="hi", reply={"in_reply_to_tweet_id": other})[0] == 201


@pytest.mark.parametrize("token", [None, "nothing", "Bearer"])
def test_calls_need_a_token(net, ann, token):
    assert call(net, "GET", "/2/users/me", token=token)[0] == 401


@pytest.mark.parametrize("scopes, path, status", [
    ("tweet.read tweet.write users.read", "/2/media/upload/initialize", 403),
    ("tweet.read users.read media.write", "/2/tweets", 403), ("media.write", "/2/media/upload/initialize", 400)])
def test_calls_need_their_scopes(net, scopes, path, status):
    net.add_user("cat", "token-cat", scopes=scopes)
    assert call(net, "POST", path, token="token-cat", json={})[0] == status


def test_tokens_end_after_two_hours(net, ann):
    net.advance(7199)
    assert call(net, "GET", "/2/users/me")[0] == 200
    net.advance(1)
    assert call(net, "GET", "/2/users/me")[0] == 401


@pytest.mark.parametrize("change", [
    {"media_type": "image/avif"}, {"media_category": "tweet_video"}, {"media_category": "photo"}, {"total_bytes": "9"},
    {"total_bytes": 0}, {"size": 9}])
def test_uploads_begin_with_what_they_are(net, ann, change):
    begin = {"media_type": "image/png", "total_bytes": 9, "media_category": "tweet_image", **change}
    assert call(net, "POST", "/2/media/upload/initialize", json=begin)[0] == 400


def test_an_upload_needs_all_its_chunks_and_no_more(net, ann):
    begin = {"media_type": "image/png", "total_bytes": len(PNG), "media_category": "tweet_image"}
    media = call(net, "POST", "/2/media/upload/initialize", json=begin)[1]["data"]["id"]
    finalize = f"/2/media/upload/{media}/finalize"
    assert append(net, media, 1, PNG[9:])[0] == 200 and call(net, "POST", finalize)[0] == 400
    assert append(net, media, 0, PNG)[0] == 400
    assert append(net, media, 0, PNG[:9])[0] == append(net, media, 0, PNG[:9])[0] == 200
    assert call(net, "POST", finalize, json={})[0] == 400
    assert call(net, "POST", finalize)[0] == 200 and append(net, media, 2, b"")[0] == 400


@pytest.mark.parametrize("number, more", [
    (1000, {}), (-1, {}), ("a", {}), (0, {"media_type": "image/png"}), (0, {"media": "text"})])
def test_a_chunk_is_as_the_document_has_it(net, ann, number, more):
    begin = {"media_type": "image/png", "total_bytes": len(PNG), "media_category": "tweet_image"}
    media = call(net, "POST", "/2/media/upload/initialize", json=begin)[1]["data"]["id"]
    assert append(net, media, number, PNG, **more)[0] == 400


def test_the_edge_refuses_large_bodies(net, ann):
    assert append(net, "1", 0, bytes(5 << 20)) == (413, None)


def test_media_belong_to_their_owner(net, ann):
    net.add_user("bob", "token-bob")
    media = finished(net)
    about = {"id": media, "metadata": {"alt_text": {"text": "a"}}}
    assert call(net, "POST", "/2/media/metadata", token="token-bob", json=about)[0] == 404
    assert call(net, "POST", "/2/tweets", token="token-bob", json={"text": "hi", "media": {"media_ids": [media]}})[0] == 400


def test_media_are_attached_when_they_are_ready_and_until_they_expire(net, ann):
    video = finished(net, MP4, "video/mp4", "tweet_video")
    assert post(net, text="hi", media={"media_ids": [video]})[0] == 400
    status = f"/2/media/upload?command=STATUS&media_id={video}"
    states = [call(net, "GET", status)[1]["data"]["processing_info"]["state"] for _ in range(2)]
    assert states == ["in_progress", "succeeded"]
    assert post(net, text="hi", media={"media_ids": [video, finished(net)]})[0] == 400
    assert post(net, text="hi", media={"media_ids": [video]})[0] == 201
    image = finished(net)
    net.media[image].end -= MEDIA_SECONDS
    assert post(net, text="ho", media={"media_ids": [image]})[0] == 400


def test_media_are_what_they_are_said_to_be(net, ann):
    media = uploaded(net, MP4, "image/png")
    assert call(net, "POST", f"/2/media/upload/{media}/finalize")[0] == 400


@pytest.mark.parametrize("text, status", [("a" * 1000, 200), ("a" * 1001, 400), (7, 400)])
def test_alternative_texts(net, ann, text, status):
    body = {"id": finished(net), "metadata": {"alt_text": {"text": text}}}
    assert call(net, "POST", "/2/media/metadata", json=body)[0] == status


@pytest.mark.parametrize("query", ["max_results=4", "max_results=101", "count=5", "tweet.fields=nope", "start_time=2026-01-01",
                                   "start_time=2099-01-01T00:00:00Z", "start_time=2026-01-01T00:00:00.000Z"])
def test_the_timeline_is_asked_properly(net, ann, query):
    assert call(net, "GET", f"/2/users/{ann.platform_id}/tweets?{query}")[0] == 400


def test_the_timeline_shows_what_it_is_asked_for(net, ann):
    for number in range(6):
        net.add_post(ann.platform_id, f"{number} <&> https://example.com")
    path = f"/2/users/{ann.platform_id}/tweets?max_results=5"
    page = call(net, "GET", path)[1]
    assert page["meta"]["result_count"] == 5 and page["meta"]["next_token"] and page["data"][0].keys() == {"id", "text"}
    assert page["data"][0]["text"].startswith("5 &lt;&amp;&gt; https://t.co/")
    shown = call(net, "GET", path + "&tweet.fields=entities")[1]["data"][0]
    assert shown["entities"]["urls"][0]["expanded_url"] == "https://example.com"


def test_the_rates_are_told_and_kept(net, ann):
    net.rates["GET /2/users/me"] = (1, 900)
    token = {"Authorization": "Bearer canary-access-ann"}
    answers = [HTTP.request("GET", f"{net.url}/2/users/me", headers=token) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    assert [answer.headers["x-rate-limit-remaining"] for answer in answers] == ["0", "0"]


@pytest.mark.parametrize("value, found", [
    ({"a": 1}, []), ({"a": 1, "b": ["x"]}, []), ({}, ["a"]), ({"a": True}, ["a"]), ({"a": 6}, ["a"]), ({"a": 1, "c": 1}, ["c"]),
    ({"a": 1, "b": []}, ["b"]), ({"a": 1, "b": ["xx", 1]}, ["b.0", "b.1"]), (7, [""]), (None, [""])])
def test_shapes(value, found):
    assert wrongs(value, {"a!": Range(1, 5), "b": List(Text(1, 1), 1)}) == found
