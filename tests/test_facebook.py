"""Posts on Facebook Pages, by a Graph API as strict as the real one."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from platforms.base import MB, Absent, Content, Processing, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.facebook import Facebook
from platforms.meta import SETTLED
from tests.live import http_for, image, part_of, prepared, video
from tests.networks import facebook as network
from tests.networks.facebook import PORTRAIT, SAMPLES
from tests.standins.facebook import (COMMENT, COMMENTS, ERRORS, FEED, LIST, PARTS, PHOTOS, READ, REELS, STORIES, UPLOAD,
                                     VIDEO_STORIES, hashes)
from tests.standins.meta import IN_DOUBT

FILM = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 10_000        # three parts
TEXT = SAMPLES["text"]


@pytest.fixture
def net():
    with network.start() as net:
        yield net


@pytest.fixture
def facebook(net):
    return Facebook(http_for(net), network.settings(net))


@pytest.fixture
def page(net):
    return network.account(net)


def long_video(**details):
    return video(**{**PORTRAIT, "bytes": len(FILM), "open": part_of(FILM), **details})


def film(kind, **options):
    return Content("hi", (replace(video(**PORTRAIT), bytes=len(FILM), open=part_of(FILM)),), kind, options, "k-1")


def story(item):
    return Content("", (item,), "story", key="k-1")


def finished(facebook, page, outcome):
    """What a video comes to, asked until it is known; and how often the answer was to wait."""
    asked = 0
    while isinstance(outcome, Processing):
        outcome, asked = facebook.check(page, json.loads(json.dumps(outcome.receipt))), asked + 1
    return outcome, asked


def posted(facebook, page, content):
    assert facebook.problems(content) == []
    receipt = prepared(facebook, page, content)
    return finished(facebook, page, facebook.publish(page, content, receipt))[0]


# What a post becomes.

def test_text(net, facebook, page):
    result = posted(facebook, page, Content("Grüße 👋🏽 #bread", options={"placeId": "900"}, key="k-1"))
    post = net.posts[0]
    assert result == Published(post["id"], f"https://www.facebook.com/{page.platform_id}/posts/{post['id'].split('_')[1]}")
    assert (post["message"], post["place"], post["link"], post["photos"]) == ("Grüße 👋🏽 #bread", "900", None, [])


def test_link(net, facebook, page):
    posted(facebook, page, SAMPLES["link"])
    assert (net.posts[0]["message"], net.posts[0]["link"]) == ("hi", "https://bread.example/menu")


def test_a_link_needs_no_text(net, facebook, page):
    posted(facebook, page, replace(SAMPLES["link"], caption=""))
    assert (net.posts[0]["message"], net.posts[0]["link"]) == (None, "https://bread.example/menu")


@pytest.mark.parametrize("count", [1, 3])
def test_images(net, facebook, page, count):
    options = {"altTexts": ["a loaf"], "placeId": "900"}
    posted(facebook, page, Content("hi", tuple(map(image, range(count))), "image", options, "k-1"))
    sent = list(net.photos.values())
    assert [photo.data[-1] for photo in sent] == list(range(count))
    assert [photo.alt for photo in sent] == ["a loaf", None, None][:count]
    assert [(post["photos"], post["place"]) for post in net.posts] == [([photo.id for photo in sent], "900")]


def test_a_video_goes_up_in_the_parts_that_facebook_asks_for(net, facebook, page):
    content = film("video", title="A loaf")
    steps = list(facebook.prepare(page, content, {}))
    assert [(step["start"], step["end"]) for step in steps] == [
        (0, MB), (MB, 2 * MB), (2 * MB, len(FILM)), (len(FILM), len(FILM))]
    assert not net.posts
    outcome = facebook.publish(page, content, steps[-1])
    result, asked = finished(facebook, page, outcome)
    assert asked == 3 and hashes(net) == [sha256(FILM).hexdigest()]
    assert result == Published(net.posts[0]["id"], f"https://www.facebook.com/{page.platform_id}/videos/{net.posts[0]['id']}/")
    assert (net.posts[0]["message"], net.posts[0]["title"]) == ("hi", "A loaf")


def test_reel(net, facebook, page):
    result = posted(facebook, page, film("reel", title="A loaf", placeId="900"))
    post = net.posts[0]
    assert result == Published(post["id"], f"https://www.facebook.com/reel/{post['id']}/")
    assert (post["message"], post["title"], post["place"], post["edge"]) == ("hi", "A loaf", "900", "video_reels")
    assert hashes(net) == [sha256(FILM).hexdigest()]


def test_a_story_of_a_photo(net, facebook, page):
    result = posted(facebook, page, story(image()))
    assert result == Published(net.posts[0]["id"], f"https://facebook.com/stories/{net.posts[0]['id']}")
    assert net.posts[0]["media_id"] == next(iter(net.photos))


def test_the_video_of_a_story_is_waited_for(net, facebook, page):
    content = story(film("reel").media[0])
    steps = list(facebook.prepare(page, content, {}))
    assert [step.after for step in steps if isinstance(step, Waiting)] == [5, 10]
    result = facebook.publish(page, content, prepared(facebook, page, content, steps[-1].receipt))
    assert result == Published(net.posts[0]["id"], f"https://facebook.com/stories/{net.posts[0]['id']}")


def test_the_pauses_between_questions_grow(net, facebook, page):
    outcome, seen = Processing({"video": prepared_reel(net, facebook, page)["video"]}), []
    net.videos[outcome.receipt["video"]].polls = 99
    for _ in range(6):
        outcome = facebook.check(page, outcome.receipt)
        seen.append(outcome.after)
    assert seen == [5, 10, 20, 30, 60, 60]


def prepared_reel(net, facebook, page):
    receipt = prepared(facebook, page, SAMPLES["reel"])
    facebook.publish(page, SAMPLES["reel"], receipt)
    return receipt


# The link to a post that is public.

@pytest.mark.parametrize("fault", [{"status": 500, "body": ""}, {"drop_answer": True}, {"status": 200, "body": {}},
                                   {"status": 401, "body": {"error": {"code": 190}}}])
def test_a_post_stays_published_whatever_becomes_of_the_question_for_its_link(net, facebook, page, fault):
    net.fault(READ, **fault)
    post = posted(facebook, page, TEXT)
    assert post == Published(net.posts[0]["id"], f"https://www.facebook.com/{net.posts[0]['id']}")


def test_a_story_stays_published_whatever_becomes_of_the_question_for_its_link(net, facebook, page):
    net.fault(STORIES, status=500)
    assert posted(facebook, page, SAMPLES["story"]) == Published(
        net.posts[0]["id"], f"https://www.facebook.com/{net.posts[0]['id']}")


# Exactly once.

@pytest.mark.parametrize("fault, there", IN_DOUBT)
@pytest.mark.parametrize("kind, endpoint", network.PUBLISH.items())
def test_a_post_in_doubt_is_found_or_stays_in_doubt(net, facebook, page, kind, endpoint, fault, there):
    content = SAMPLES[kind]
    receipt = prepared(facebook, page, content)
    net.fault(endpoint, **fault)
    with pytest.raises(Unconfirmed):
        facebook.publish(page, content, receipt)
    for one in net.videos.values():
        one.polls = 0
    found = facebook.find(page, content, receipt)
    assert len(net.posts) == there
    assert found == (Published(net.posts[0]["id"], found.url) if there else None)


def test_a_video_story_in_doubt_is_found(net, facebook, page):
    content = story(film("reel").media[0])
    receipt = prepared(facebook, page, content)
    net.fault(VIDEO_STORIES, drop_answer=True)
    with pytest.raises(Unconfirmed):
        facebook.publish(page, content, receipt)
    assert facebook.find(page, content, receipt).id == net.posts[0]["id"]


def test_a_video_that_is_being_published_is_processing(net, facebook, page):
    receipt = prepared_reel(net, facebook, page)
    net.fault(READ, status=200, body={"id": "1", "status": {"video_status": "processing", "publishing_phase": {
        "status": "in_progress"}}})
    assert facebook.find(page, SAMPLES["reel"], receipt) == Processing(receipt)


@pytest.mark.parametrize("status, there", [
    ({"publishing_phase": {"status": "completed"}}, True), ({"publishing_phase": {"publish_status": "published"}}, True),
    ({"publishing_phase": {"status": "complete", "publish_status": "scheduled"}}, False),
    ({"publishing_phase": {"status": "not_started"}, "video_status": "ready"}, False),
    ({"video_status": "ready"}, True), ({"video_status": "processing"}, False), ({}, False),
])
def test_the_shapes_of_a_video_that_is_public(net, facebook, page, status, there):
    link = "https://fb.example/1"
    net.fault(READ, status=200, body={"id": "1", "status": status, "published": True, "permalink_url": link})
    result = facebook.check(page, {"video": "1"})
    assert result == (Published("1", link) if there else Processing({"video": "1", "asked": 1}, 5))


@pytest.mark.parametrize("kind, expected", [("text", None), ("image", Absent()), ("reel", Absent()), ("story", Absent())])
def test_files_that_were_never_sent_are_in_no_post(facebook, page, kind, expected):
    assert facebook.find(page, SAMPLES[kind], {}) == expected


def test_older_and_other_posts_are_not_taken_for_ours(net, facebook, page):
    posted(facebook, page, TEXT)
    posted(facebook, page, replace(TEXT, caption="hi there"))
    net.posts[0]["created"] -= 60
    assert facebook.find(page, replace(TEXT, sent_ago=30.0), {}) is None
    assert facebook.find(page, replace(TEXT, sent_ago=70.0), {}).id == net.posts[0]["id"]


def test_a_post_without_text_cannot_be_told_from_others(net, facebook, page):
    content = replace(SAMPLES["image"], caption="")
    posted(facebook, page, content)
    assert facebook.find(page, content, prepared(facebook, page, content)) is None


@pytest.mark.parametrize("body", ["<html>", {}, {"data": [{"id": "1", "created_time": "yesterday"}]}, {"data": [7]}])
def test_a_list_of_nonsense_says_nothing(net, facebook, page, body):
    receipt = prepared(facebook, page, TEXT)
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        facebook.find(page, TEXT, receipt)


def test_a_refusal_that_says_success_is_false_is_in_doubt(net, facebook, page):
    receipt = prepared(facebook, page, SAMPLES["reel"])
    net.fault(REELS, status=200, body={"success": False})
    with pytest.raises(Unconfirmed):
        facebook.publish(page, SAMPLES["reel"], receipt)


# Uploads that stop in the middle.

def test_photos_go_on_where_they_stopped(net, facebook, page):
    content = replace(SAMPLES["image"], media=(image(1), image(2), image(3)))
    steps = facebook.prepare(page, content, {})
    receipt = next(steps)
    net.fault(PHOTOS, drop_answer=True)
    with pytest.raises(Unavailable):
        next(steps)
    receipt = prepared(facebook, page, content, receipt)
    facebook.publish(page, content, receipt)
    assert len(net.calls(PHOTOS)) == 4 and [net.photos[one].data[-1] for one in net.posts[0]["photos"]] == [1, 2, 3]


def test_photos_that_have_vanished_by_now_are_sent_again(net, facebook, page):
    receipt = prepared(facebook, page, SAMPLES["image"])
    receipt["photosAt"] -= 21 * 3600
    net.advance(25 * 3600)
    again = prepared(facebook, page, SAMPLES["image"], receipt)
    assert set(again["photos"]).isdisjoint(receipt["photos"])
    assert facebook.publish(page, SAMPLES["image"], again).id == net.posts[0]["id"]


def test_a_finished_preparation_asks_for_nothing_but_the_state_of_a_video(net, facebook, page):
    for kind, questions in {"text": 0, "image": 0, "video": 0, "reel": 1}.items():
        receipt = prepared(facebook, page, SAMPLES[kind])
        seen = len(net.requests)
        assert list(facebook.prepare(page, SAMPLES[kind], receipt)) == [] and len(net.requests) == seen + questions


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_video_goes_on_after_the_last_part_that_was_taken(net, facebook, page, kept):
    steps = facebook.prepare(page, film("video"), {})
    receipt = [next(steps) for _ in range(kept)][-1]
    done = prepared(facebook, page, film("video"), json.loads(json.dumps(receipt)))
    assert len(net.calls(PARTS)) == 3 and hashes(net) == [sha256(FILM).hexdigest()]
    facebook.publish(page, film("video"), done)
    assert len(net.posts) == 1


def test_a_part_whose_answer_was_lost_is_not_sent_twice(net, facebook, page):
    steps = facebook.prepare(page, film("video"), {})
    receipt = next(steps)
    net.fault(PARTS, drop_answer=True)
    with pytest.raises(Unavailable):
        next(steps)
    facebook.publish(page, film("video"), prepared(facebook, page, film("video"), receipt))
    assert hashes(net) == [sha256(FILM).hexdigest()] and len(net.posts) == 1


@pytest.mark.parametrize("data", [{"start_offset": 0, "end_offset": 1}, {"start_offset": 9, "end_offset": 1},
                                  {"start_offset": 1, "end_offset": 10**9}, {"start_offset": "x", "end_offset": "1"}, "text"])
def test_a_wrong_offset_that_leads_nowhere_fails(net, facebook, page, data):
    net.fault(PARTS, status=400, body={"error": {"code": 100, "error_subcode": 1363037, "error_data": data}})
    with pytest.raises((Rejected, Unavailable)):
        prepared(facebook, page, film("video"))


def test_a_refused_part_fails(net, facebook, page):
    net.fault(PARTS, status=400, body={"error": {"code": 100, "message": "no"}})
    with pytest.raises(Rejected):
        prepared(facebook, page, film("video"))


@pytest.mark.parametrize("taken", [0, 1000, len(FILM)])
def test_a_reel_goes_on_with_the_byte_after_the_last_that_arrived(net, facebook, page, taken):
    steps = facebook.prepare(page, film("reel"), {})
    receipt = next(steps)
    one = net.videos[receipt["video"]]
    one.data += FILM[:taken]
    if taken == len(FILM):
        one.size, one.state = taken, "waiting"
    prepared(facebook, page, film("reel"), receipt)
    assert hashes(net) == [sha256(FILM).hexdigest()]
    assert [request.size for request in net.calls(UPLOAD)] == [len(FILM) - taken] * (taken < len(FILM))


def test_an_upload_that_was_cut_goes_on(net, facebook, page):
    net.fault(UPLOAD, drop_answer=True)
    steps = facebook.prepare(page, film("reel"), {})
    receipt = next(steps)
    with pytest.raises(Unavailable):
        next(steps)
    facebook.publish(page, film("reel"), prepared(facebook, page, film("reel"), receipt))
    assert len(net.calls(UPLOAD)) == 1 and len(net.posts) == 1


@pytest.mark.parametrize("status", ["expired", "upload_failed"])
def test_a_video_that_facebook_lost_is_sent_again(net, facebook, page, status):
    net.fault(READ, status=200, body={"id": "1", "status": {"video_status": status}})
    with pytest.raises(Unavailable) as caught:
        prepared(facebook, page, SAMPLES["reel"])
    assert caught.value.receipt == {}
    facebook.publish(page, SAMPLES["reel"], prepared(facebook, page, SAMPLES["reel"], caught.value.receipt))
    assert len(net.videos) == 2 and len(net.posts) == 1


def test_a_broken_video_is_refused_before_it_is_published(net, facebook, page):
    net.fault(READ, status=200, body={"id": "1", "status": {"video_status": "error", "processing_phase": {
        "status": "error", "errors": [{"message": "The video is broken"}]}}})
    with pytest.raises(Rejected) as caught:
        prepared(facebook, page, SAMPLES["reel"])
    assert (caught.value.rule, caught.value.platform_message) == ("video", "The video is broken")


def test_a_video_that_breaks_after_the_last_call_fails(net, facebook, page):
    receipt = prepared_reel(net, facebook, page)
    net.videos[receipt["video"]].state = "error"
    net.videos[receipt["video"]].polls = 0
    with pytest.raises(Rejected) as caught:
        facebook.check(page, receipt)
    assert caught.value.platform_message == "The video is broken"


def test_a_reel_that_is_not_there_at_once(net, facebook, page):
    net.fail("missing", endpoint=READ)
    with pytest.raises(Unavailable):
        prepared(facebook, page, SAMPLES["reel"])


@pytest.mark.parametrize("row", ["missing", "permission", "service"])
def test_a_refused_question_says_nothing_of_a_video(net, facebook, page, row):
    receipt = prepared_reel(net, facebook, page)
    net.fail(row, endpoint=READ)
    with pytest.raises(Unavailable):
        facebook.check(page, receipt)


def test_a_reel_that_is_public_by_now_is_not_published_again(net, facebook, page):
    receipt = prepared_reel(net, facebook, page)
    assert finished(facebook, page, Processing(receipt))[0].id == net.posts[0]["id"]
    again = prepared(facebook, page, SAMPLES["reel"], receipt)
    assert finished(facebook, page, facebook.publish(page, SAMPLES["reel"], again))[0].id == net.posts[0]["id"]
    assert len(net.calls(REELS)) == 1


def test_a_video_that_ends_as_a_draft_says_so(net, facebook, page):
    net.drafts = True
    with pytest.raises(Rejected) as caught:
        posted(facebook, page, SAMPLES["video"])
    assert caught.value.rule == "draft" and not net.posts


@pytest.mark.parametrize("row, expected", [("processing_failed", Rejected), ("partial", Unavailable), ("hiccup", Unavailable),
                                           ("not_authorized", Disconnected)])
def test_errors_of_the_upload_host(net, facebook, page, row, expected):
    net.fail(row)
    with pytest.raises(expected) as caught:
        prepared(facebook, page, SAMPLES["reel"])
    assert caught.value.platform_message == ERRORS[row]["body"]["debug_info"]["message"]
    assert "canary" not in repr(vars(caught.value))


# Errors.

SURELY_NOT = {"app_limit", "user_limit", "page_limit", "feature_limit", "call_limit", "pages_limit", "too_fast"}
DEAD = {"expired", "password_changed", "session"}
LACKING = {"permission", "scope", "ability", "capability", "authorization", "no_video"}
DOUBTFUL = {"unknown", "unknown_as_400", "service", "passing", "bad_gateway", "upload_timeout", "upload_problem"}
OF_THE_FEED = sorted(row for row, details in ERRORS.items() if details["endpoint"] == FEED)


def meaning(row, doubt):
    groups = {Unavailable: SURELY_NOT, Disconnected: DEAD, PermissionMissing: LACKING, doubt: DOUBTFUL}
    return next((error for error, rows in groups.items() if row in rows), Rejected)


@pytest.mark.parametrize("row", OF_THE_FEED)
def test_errors_of_publishing(net, facebook, page, row):
    receipt = prepared(facebook, page, TEXT)
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        facebook.publish(page, TEXT, receipt)
    error, body = caught.value, ERRORS[row]["body"]
    assert type(error) is meaning(row, Unconfirmed) and not net.posts
    if isinstance(body, dict):
        assert error.platform_message == body["error"].get("error_user_msg", body["error"]["message"])
        assert error.platform_code.split("/")[0] == str(body["error"]["code"])
    assert "canary" not in repr(vars(error))
    if row in SURELY_NOT:
        assert (error.code, error.retry_after) == ("rate_limited", 3600 if row == "too_fast" else 900)


@pytest.mark.parametrize("row", OF_THE_FEED)
def test_errors_of_preparing_leave_nothing_in_doubt(net, facebook, page, row):
    net.fail(row, endpoint=PHOTOS)
    with pytest.raises(PlatformError) as caught:
        prepared(facebook, page, SAMPLES["image"])
    assert type(caught.value) is (Unavailable if row in DOUBTFUL else meaning(row, Unconfirmed))


def test_facebook_says_for_how_long_it_wants_quiet(net, facebook, page):
    net.rates["calls"], net.regain = (1, 3600), 7
    facebook.profile(page)
    with pytest.raises(Unavailable) as caught:
        facebook.publish(page, TEXT, {})
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 7 * 60)


@pytest.mark.parametrize("usage", ["{", "[]", "{\"1\": 7}", "{\"1\": [{}]}", "{\"1\": []}"])
def test_a_usage_that_nobody_understands_does_no_harm(net, facebook, page, usage):
    net.fail("page_limit", headers={"X-Business-Use-Case-Usage": usage})
    with pytest.raises(Unavailable) as caught:
        facebook.publish(page, TEXT, {})
    assert caught.value.retry_after == 900


def test_a_text_that_was_posted_just_before_is_refused(net, facebook, page):
    posted(facebook, page, TEXT)
    with pytest.raises(Rejected) as caught:
        facebook.publish(page, TEXT, prepared(facebook, page, TEXT))
    assert caught.value.platform_code == "506" and len(net.posts) == 1


def test_every_call_proves_that_the_app_makes_it(net, facebook, page):
    for kind in ("image", "video"):
        posted(facebook, page, SAMPLES[kind])
    assert all("appsecret_proof" in dict(request.query) for request in net.requests)


def test_without_a_secret_there_is_no_proof(net, page):
    facebook = Facebook(http_for(net), {**network.settings(net), "client_secret": ""})
    posted(facebook, page, TEXT)
    assert not any("appsecret_proof" in dict(request.query) for request in net.requests)


# The first comment.

def followed(facebook, page, content, receipt):
    for receipt in facebook.follow(page, content, receipt):
        receipt = json.loads(json.dumps(receipt))
    return receipt


@pytest.fixture
def public(net, facebook, page):
    """A post with a wish for a comment, and its receipt once it is public."""
    content = replace(TEXT, options={"firstComment": "More at the bakery "})
    post = posted(facebook, page, content)
    return content, {"public": {"id": post.id, "url": post.url}}


def texts(net):
    return [comment["message"] for found in net.comments.values() for comment in found]


def test_first_comment(net, facebook, page, public):
    content, receipt = public
    done = followed(facebook, page, content, receipt)
    assert texts(net) == ["More at the bakery "] and list(net.comments) == [net.posts[0]["id"]]
    assert done["comment"]["id"] == net.comments[net.posts[0]["id"]][0]["id"]
    assert followed(facebook, page, content, done) == done and len(net.calls(COMMENT)) == 1


def test_first_comment_of_a_reel(net, facebook, page):
    content = replace(SAMPLES["reel"], options={"firstComment": "More"})
    post = posted(facebook, page, content)
    followed(facebook, page, content, {"public": {"id": post.id, "url": post.url}})
    assert net.comments[post.id][0]["message"] == "More"


@pytest.mark.parametrize("fault, there", IN_DOUBT)
def test_a_comment_in_doubt_is_looked_for_and_never_written_twice(net, facebook, page, public, fault, there):
    content, receipt = public
    steps = facebook.follow(page, content, receipt)
    receipt = next(steps)
    net.fault(COMMENT, **fault)
    with pytest.raises(Unconfirmed):
        next(steps)
    assert len(texts(net)) == there
    if not there:
        with pytest.raises(Unavailable) as caught:
            followed(facebook, page, content, receipt)
        assert 290 < caught.value.retry_after <= SETTLED and not texts(net)
        content = replace(content, sent_ago=SETTLED)
    assert "id" in followed(facebook, page, content, receipt)["comment"] and len(texts(net)) == 1


def test_a_comment_that_surely_was_not_written_is_written_later(net, facebook, page, public):
    content, receipt = public
    net.fail("page_limit", endpoint=COMMENT)
    steps = facebook.follow(page, content, receipt)
    receipt = [next(steps), next(steps)][-1]
    with pytest.raises(Unavailable):
        next(steps)
    assert not texts(net)
    followed(facebook, page, content, receipt)
    assert len(texts(net)) == 1 and not net.calls(COMMENTS)


def test_a_comment_for_a_post_that_is_not_there_yet(net, facebook, page, public):
    content, receipt = public
    net.fail("missing", endpoint=COMMENT, times=2)
    steps = facebook.follow(page, content, receipt)
    receipt = [next(steps), next(steps)][-1]
    with pytest.raises(Unavailable) as caught:
        next(steps)
    assert caught.value.retry_after == 10 and set(receipt["comment"]) == {"begunAt"}
    with pytest.raises(Rejected):
        followed(facebook, page, replace(content, sent_ago=SETTLED + 1), receipt)
    followed(facebook, page, content, receipt)
    assert len(texts(net)) == 1


def test_a_comment_among_more_than_can_be_listed_is_given_up(net, facebook, page, public):
    content, receipt = public
    net.comments[net.posts[0]["id"]] = [{"id": str(number), "message": "Yes"} for number in range(101)]
    with pytest.raises(Rejected) as caught:
        followed(facebook, page, content, {**receipt, "comment": {"begunAt": 0, "sentAt": 0}})
    assert caught.value.rule == "comment" and not net.calls(COMMENT)


def test_a_comment_that_is_not_allowed(net, facebook, page, public):
    net.tokens[page.credentials["accessToken"]].scopes -= {"pages_manage_engagement"}
    with pytest.raises(PermissionMissing):
        followed(facebook, page, *public)


def test_without_the_option_nothing_follows(net, facebook, page):
    assert list(facebook.follow(page, TEXT, {"public": {"id": "1", "url": "u"}})) == []
