"""A post on all eleven networks in test mode: what they take, what becomes of it, and everything wrong with it at once."""

import io
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache

import av
import pytest
from PIL import Image

from storage.models import Client, Media, wire_time
from storage.posts import Post, Target
from tests.media_samples import image
from tests.service import Member

TOMORROW = wire_time(datetime.now(UTC) + timedelta(days=1))

# What each network needs, as it stands in its documentation: (kind of media, options, post type that follows, caption limit).
NETWORKS = {
    "instagram": ("picture", {}, "image", 2200),
    "tiktok": ("video", {"privacyLevel": "SELF_ONLY"}, "video", 2200),
    "youtube": ("video", {"title": "Bread"}, "video", 5000),
    "linkedin": (None, {}, "text", 3000),
    "twitter": (None, {}, "text", 280),
    "facebook": (None, {}, "text", 63_206),
    "pinterest": ("picture", {"boardId": "7"}, "image", 800),
    "bluesky": (None, {}, "text", 300),
    "threads": (None, {}, "text", 500),
    "mastodon": (None, {}, "text", 500),
    "gbp": ("picture", {}, "update", 1500),
}
# What the sandbox makes of a caption: (status of the target, its error without the message).
COURSES = {
    "[sandbox:rejected]": ("failed", {"code": "unprocessable", "retryable": False, "rule": "sandbox",
                                      "platformCode": "sandbox_rejected"}),
    "[sandbox:disconnected]": ("failed", {"code": "invalid_state", "retryable": False}),
    "[sandbox:rate_limited]": ("published", None),
    "[sandbox:unavailable]": ("failed", {"code": "external_service_error", "retryable": True}),
    "[sandbox:unconfirmed]": ("unconfirmed", {"code": "external_service_error", "retryable": False}),
    "[sandbox:processing]": ("published", None),
    "a caption without a word of magic: sandbox:rejected": ("published", None),
}


@cache
def picture():
    """A square JPEG that every network takes."""
    out = io.BytesIO()
    Image.effect_noise((600, 600), 60).convert("RGB").save(out, "JPEG", quality=60)
    return out.getvalue()


@cache
def video():
    """A square MP4 of five seconds that every network takes."""
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=1)
        stream.width = stream.height = 480
        stream.pix_fmt = "yuv420p"
        for number in range(5):
            frame = av.VideoFrame.from_image(Image.effect_noise((480, 480), 60).convert("RGB"))
            frame.pts, frame.time_base = number, Fraction(1, 1)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


FILES = {"picture": (picture, "image/jpeg"), "video": (video, "video/mp4")}


@pytest.fixture
def target(member):
    """Makes a target for a network that lacks nothing; each file is uploaded once."""
    urls = {}

    def make(name, **options):
        kind, needed, _, _ = NETWORKS[name]
        if kind and kind not in urls:
            content, mime_type = FILES[kind]
            urls[kind] = member.test.uploaded(content(), mime_type)
        return {"platform": name, "options": {**needed, **({"media": [urls[kind]]} if kind else {}), **options}}

    return make


def valid(answer):
    assert answer.status == 200, answer.raw
    problems = answer.data["problems"]
    assert answer.data["valid"] is (problems == [])
    return [(problem["path"], problem["rule"]) for problem in problems]


def test_one_call_publishes_to_all_eleven_networks(member, worker, target, connection):
    answer = member.test.post("/v1/posts", {"caption": "Fresh bread", "targets": [target(name) for name in NETWORKS]})
    assert (answer.status, answer.data["status"]) == (202, "scheduled")
    assert answer.data["targets"] == [{"platform": name, "status": "scheduled"} for name in NETWORKS]
    post = member.test.settled(answer.data["id"])
    assert (post["status"], [one["platform"] for one in post["targets"]]) == ("published", list(NETWORKS))
    for one in post["targets"]:
        assert one == {"platform": one["platform"], "status": "published", "postId": one["postId"],
                       "url": f"https://sandbox.invalid/{one['postId']}"}
    assert len({one["postId"] for one in post["targets"]}) == len(NETWORKS)
    inferred = {row.platform: row.post_type for row in Target.select().where(Target.post_id == post["id"])}
    assert inferred == {name: network[2] for name, network in NETWORKS.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_caption_is_counted_up_to_the_networks_limit(member, target, name):
    one, limit = target(name), NETWORKS[name][3]
    fits, over = ({"caption": "b" * length, "targets": [one]} for length in (limit, limit + 1))
    assert valid(member.test.post("/v1/posts/validate", fits)) == []
    assert valid(member.test.post("/v1/posts/validate", over)) == [("/caption", "caption_length")]
    before = member.rows()
    refused = member.test.post("/v1/posts", over)
    assert (refused.status, refused.code, refused.rules) == (422, "unprocessable", [("/caption", "caption_length")])
    assert str(limit) in refused.body["error"]["message"]
    assert member.rows() == before


@pytest.fixture(scope="module")
def courses(api_url, worker):
    """What became of a post with each of the captions; they run at the same time."""
    http = Member(api_url).test
    posts = {caption: http.post("/v1/posts", {"caption": caption,
                                              "targets": [{"platform": "bluesky"}]}).data["id"] for caption in COURSES}
    return {caption: http.settled(post_id) for caption, post_id in posts.items()}


@pytest.mark.parametrize("caption", COURSES)
def test_magic_captions_take_their_course(courses, caption):
    post, (status, error) = courses[caption], COURSES[caption]
    [target] = post["targets"]
    assert (post["status"], target["status"]) == (status, status)
    assert ("postId" in target, "url" in target) == (status == "published",) * 2
    found = target.get("error")
    assert found == (error and {**error, "message": found["message"]})


def test_a_network_that_still_works_on_a_post_is_publishing(member, worker):
    body = {"targets": [{"platform": "bluesky"}, {"platform": "mastodon", "options": {"caption": "[sandbox:processing]"}}],
            "caption": "x"}
    post_id = member.test.post("/v1/posts", body).data["id"]
    while (post := member.test.get(f"/v1/posts/{post_id}").data)["targets"][0]["status"] != "published":
        assert post["status"] in ("scheduled", "publishing")
    assert (post["status"], post["targets"][1]) == ("publishing", {"platform": "mastodon", "status": "publishing"})
    assert member.test.delete(f"/v1/posts/{post_id}").status == 409
    assert member.test.settled(post_id)["status"] == "published"


def test_a_target_may_have_its_own_caption_and_media(member, worker, connection):
    urls = [member.test.uploaded(image("PNG", compress_level=level), "image/png") for level in (1, 9)]
    body = {"caption": "[sandbox:rejected]", "media": [urls[0]], "targets": [
        {"platform": "bluesky", "options": {"caption": "Own words"}},
        {"platform": "mastodon", "options": {"media": [urls[1], urls[0]]}},
        {"platform": "twitter", "options": {"caption": "No picture", "media": []}},
        {"platform": "facebook", "options": {"caption": ""}}]}
    post = member.test.settled(member.test.post("/v1/posts", body).data["id"])
    assert [one["status"] for one in post["targets"]] == ["published", "failed", "published", "published"]
    assert post["status"] == "partially_published"
    rows = list(Target.select().where(Target.post_id == post["id"]).order_by(Target.position))
    keys = [[next(position for position, url in enumerate(urls) if file.key in url) for file in row.files()] for row in rows]
    assert keys == [[0], [1, 0], [], [0]]
    assert [(row.caption, row.own_caption, row.own_media, row.post_type) for row in rows] == [
        ("Own words", True, False, "image"), ("[sandbox:rejected]", False, True, "image"), ("No picture", True, True, "text"),
        ("", True, False, "image")]
    assert [row.options for row in rows] == [{}] * 4


@pytest.mark.parametrize("targets, details", [
    ([{"platform": "bluesky"}, {"platform": "bluesky"}], [("/targets/1", "duplicate")]),
    ([{"platform": "bluesky"}, {"platform": "bluesky", "postType": "text"},
      {"platform": "bluesky", "options": {"account": "sandbox"}}],
     [("/targets/1", "duplicate"), ("/targets/2", "duplicate")]),
    ([{"platform": "bluesky"}, {"platform": "mastodon"},
      {"platform": "bluesky", "postType": "link", "options": {"link": {"url": "https://example.net", "title": "t"}}}], [])],
    ids=["same", "same after inference", "another post type"])
def test_no_two_targets_may_be_alike(member, targets, details):
    body = {"caption": "x", "targets": targets, "scheduleAt": TOMORROW}
    assert valid(member.test.post("/v1/posts/validate", body)) == details
    answer = member.test.post("/v1/posts", body)
    assert (answer.status, answer.rules if details else []) == (422 if details else 202, details)
    assert member.rows()["Post"] == (0 if details else 1)


def test_all_problems_are_told_at_once(member, target):
    gif = member.test.uploaded(image("GIF"), "image/gif")
    body = {"caption": "b" * 301, "media": [gif, gif, "https://media.example.net/x.png"], "scheduleAt": "2020-01-01T00:00:00Z",
            "targets": [
        {"platform": "bluesky", "options": {"media": [], "quoteUri": "https://example.net/no/post"}},
        {"platform": "instagram"},
        {"platform": "youtube", "postType": "video", "options": {"caption": "<b>"}},
        {"platform": "twitter", "postType": "text", "options": {"account": "ann", "altTexts": ["a"]}},
        {"platform": "gbp", "postType": "event", "options": {"media": [], "event": {
            "title": "Sale", "start": "2026-12-01T09:00", "end": "2026-11-01T09:00"}}}]}
    expected = {("/scheduleAt", "past"), ("/media/2", "media_unknown"), ("/caption", "caption_length"),
                ("/targets/0/options/quoteUri", "quote"), ("/media/0", "media_type"), ("/media/1", "media_type"),
                ("/targets/2/options/title", "required"), ("/targets/2/options/caption", "angle_brackets"),
                ("/media", "media_count"),
                ("/targets/3/options/account", "account"), ("/targets/3/options/altTexts", "option"),
                ("/targets/4/options/event/end", "event_end")}
    checked = member.test.post("/v1/posts/validate", body)
    assert expected <= set(valid(checked))
    before = member.rows()
    refused = member.test.post("/v1/posts", body)
    assert (refused.status, refused.code) == (422, "unprocessable")
    assert refused.body["error"]["details"] == checked.data["problems"]
    first, *others = refused.body["error"]["details"]
    assert refused.body["error"]["message"] == f"{first['path']}: {first['message']} (and {len(others)} more)"
    assert member.rows() == before


@pytest.mark.parametrize("one, path, rule", [
    ({"platform": "instagram"}, "/media", "media_required"),
    ({"platform": "tiktok", "postType": "video"}, "/targets/0/options/privacyLevel", "required"),
    ({"platform": "youtube", "postType": "reel"}, "/targets/0/options/title", "required"),
    ({"platform": "linkedin", "postType": "poll"}, "/targets/0/options/poll", "required"),
    ({"platform": "twitter", "options": {"shareWithFollowers": True}}, "/targets/0/options/communityId", "required"),
    ({"platform": "facebook", "postType": "link"}, "/targets/0/options/link", "required"),
    ({"platform": "pinterest", "postType": "image"}, "/targets/0/options/boardId", "required"),
    ({"platform": "bluesky", "options": {"altTexts": ["a"]}}, "/targets/0/options/altTexts", "option"),
    ({"platform": "threads", "postType": "text", "options": {"poll": {"optionA": "a", "optionB": "b"}}},
     "/targets/0/options/poll", "option"),
    ({"platform": "mastodon", "postType": "video"}, "/media", "media_count"),
    ({"platform": "gbp", "options": {"cta": {"actionType": "BOOK"}}}, "/targets/0/options/cta/url", "required")],
    ids=lambda value: value["platform"] if isinstance(value, dict) else "")
def test_each_network_has_rules_of_its_own(member, one, path, rule):
    assert (path, rule) in valid(member.test.post("/v1/posts/validate", {"caption": "x", "targets": [one]}))
    refused = member.test.post("/v1/posts", {"caption": "x", "targets": [one]})
    assert (refused.status, (path, rule) in refused.rules) == (422, True)
    assert not any(member.rows().values())


@pytest.mark.parametrize("body, details", [
    ({}, [("", "required")]), ({"caption": "x"}, [("", "required")]), ({"targets": []}, [("/targets", "minItems")]),
    ({"targets": [{"platform": "bluesky"}] * 51}, [("/targets", "maxItems")]),
    ({"targets": {"platform": "bluesky"}}, [("/targets", "type")]),
    ({"targets": ["bluesky"]}, [("/targets/0", "type")]), ({"targets": [{}]}, [("/targets/0", "required")]),
    ({"targets": [{"platform": "myspace"}]}, [("/targets/0/platform", "enum")]),
    ({"targets": [{"platform": "Bluesky"}]}, [("/targets/0/platform", "enum")]),
    ({"targets": [{"platform": "bluesky", "postType": "reel"}]}, [("/targets/0/postType", "enum")]),
    ({"targets": [{"platform": "bluesky", "posttype": "text"}]}, [("/targets/0", "additionalProperties")]),
    ({"targets": [{"platform": "bluesky", "options": {"boardId": "7"}}]}, [("/targets/0/options", "additionalProperties")]),
    ({"targets": [{"platform": "bluesky", "options": None}]}, [("/targets/0/options", "type")]),
    ({"targets": [{"platform": "bluesky", "options": {"account": "\0"}}]}, [("/targets/0/options/account", "pattern")]),
    ({"targets": [{"platform": "bluesky"}], "scheduledAt": TOMORROW}, [("", "additionalProperties")]),
    ({"targets": [{"platform": "bluesky"}], "caption": None}, [("/caption", "type")]),
    ({"targets": [{"platform": "bluesky"}], "caption": "b" * 65_001}, [("/caption", "maxLength")]),
    ({"targets": [{"platform": "bluesky"}], "caption": "\0"}, [("/caption", "pattern")]),
    ({"targets": [{"platform": "bluesky"}], "clientId": "a/b"}, [("/clientId", "pattern")]),
    ({"targets": [{"platform": "bluesky"}], "clientId": None}, [("/clientId", "type")]),
    ({"targets": [{"platform": "bluesky"}], "media": "https://x"}, [("/media", "type")]),
    ({"targets": [{"platform": "bluesky"}], "media": ["https://x.example"] * 36}, [("/media", "maxItems")]),
    ({"targets": [{"platform": "bluesky", "options": {"languages": ["en", 5]}}, {"platform": "gbp", "postType": "x"}],
      "media": [7], "x": 1},
     [("/targets/0/options/languages/1", "type"), ("/targets/1/postType", "enum"), ("/media/0", "type"),
      ("", "additionalProperties")])],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "")
def test_a_body_that_breaks_the_schema_is_refused_by_publish_and_validate_alike(member, body, details):
    for path in ("/v1/posts", "/v1/posts/validate"):
        answer = member.test.post(path, body)
        assert (answer.status, answer.code, sorted(set(answer.rules))) == (422, "unprocessable", sorted(details))
    assert not any(member.rows().values())


def test_a_caption_is_kept_to_the_letter(member, connection):
    caption = "  \u202eF\u0301re\u200dsh\r\n\tbread \U0001f468\u200d\U0001f373 %s \\ '; DROP TABLE x;-- \ufeff\u2028\x7f\x01 "
    answer = member.test.post("/v1/posts", {"caption": caption, "targets": [{"platform": "bluesky"}], "scheduleAt": TOMORROW})
    assert (answer.status, Post.get_by_id(answer.data["id"]).caption) == (202, caption)


@pytest.mark.parametrize("status", ["suspended", "archived"])
def test_nobody_acts_for_a_client_that_is_not_active(member, status):
    Client.update(status=status).where(Client.id == member.client.id).execute()
    body = {"caption": "x", "targets": [{"platform": "bluesky"}], "clientId": member.client.id}
    for http, sent in ((member.test, body), (member.http(client_id=member.client.id), {**body, "clientId": member.client.id}),
                       (member.http(client_id=member.client.id), {name: body[name] for name in ("caption", "targets")})):
        answer = http.post("/v1/posts", sent)
        assert (answer.status, answer.code, status in answer.body["error"]["message"]) == (409, "invalid_state", True)
        assert valid(http.post("/v1/posts/validate", sent)) == [("/clientId", "client_status")]
    assert member.test.get(f"/v1/posts?clientId={member.client.id}").status == 409
    assert not any(member.rows().values())


def test_a_failed_post_of_a_suspended_client_is_not_tried_again(member, worker):
    body = {"caption": "[sandbox:rejected]", "targets": [{"platform": "bluesky"}], "clientId": member.client.id}
    post_id = member.test.post("/v1/posts", body).data["id"]
    assert member.test.settled(post_id)["status"] == "failed"
    Client.update(status="suspended").where(Client.id == member.client.id).execute()
    assert member.test.request("POST", f"/v1/posts/{post_id}/retry").status == 409
    assert member.test.get(f"/v1/posts/{post_id}").data["status"] == "failed"


def test_an_unknown_client_and_another_teams_look_alike(api_url, member):
    stranger = Member(api_url)
    for path in ("/v1/posts", "/v1/posts/validate"):
        raws = set()
        for http, client_id in ((member.test, stranger.client.id), (member.test, "client_0000000000000000000000"),
                                (member.http(client_id=member.client.id), stranger.client.id),
                                (member.test, member.client.id.upper())):
            answer = http.post(path, {"targets": [{"platform": "bluesky"}], "clientId": client_id},
                               headers={"X-Request-Id": "same"})
            assert (answer.status, answer.code) == (404, "not_found")
            raws.add(answer.raw)
        assert len(raws) == 1
    assert not any(member.rows().values()) and not any(stranger.rows().values())


def test_a_post_for_a_client_belongs_to_it(member, connection):
    body = {"caption": "x", "targets": [{"platform": "bluesky"}], "scheduleAt": TOMORROW}
    named = member.test.post("/v1/posts", {**body, "clientId": member.client.id})
    implied = member.http(client_id=member.client.id).post("/v1/posts", body)
    assert {Post.get_by_id(answer.data["id"]).client_id for answer in (named, implied)} == {member.client.id}
    assert member.http(client_id=member.client.id).get(f"/v1/posts/{named.data['id']}").status == 200


def test_validating_writes_nothing_but_what_it_learned_of_a_file(member, connection):
    url = member.test.uploaded(image("PNG"), "image/png")
    body = {"caption": "x", "media": [url], "targets": [{"platform": "bluesky"}]}
    assert member.test.post("/v1/posts/validate", body).body == {"success": True, "data": {"valid": True, "problems": []}}
    assert member.rows() == {"Post": 0, "Target": 0, "Attachment": 0, "Idea": 0, "Media": 1}
    assert [row.state for row in Media.select().where(Media.team_id == member.team.id)] == ["ready"]
