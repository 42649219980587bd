"""Posts on Instagram, by a Graph API as strict as the real one."""

import json
from dataclasses import replace

import pytest

from platforms.base import Absent, Content, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.instagram import Instagram
from platforms.meta import SETTLED
from tests.live import http_for, prepared, published, tried
from tests.networks import instagram as network
from tests.networks.instagram import SAMPLES, film, photo
from tests.standins.instagram import COMMENT, COMMENTS, CREATE, ERRORS, LIST, PUBLISH, READ, STORIES
from tests.standins.meta import IN_DOUBT

IMAGE, CAROUSEL, REEL, STORY = SAMPLES.values()
FAILED = "Error: Media upload has failed with error code"
PROFILE = "https://www.instagram.com/bread/"


@pytest.fixture
def net():
    with network.start() as net:
        yield net


@pytest.fixture
def instagram(net):
    return Instagram(http_for(net), network.settings(net))


@pytest.fixture
def ann(net):
    return network.account(net)


def given(net):
    """The parameters of the posts that are public, JSON read."""
    return [{name: json.loads(value) if value[:1] in "[{" else value for name, value in post["given"].items()}
            for post in net.posts]


# What a post becomes.

def test_image(net, instagram, ann):
    options = {"altTexts": ["a loaf"], "userTags": [{"username": "ben", "x": 0.5, "y": 0.25}], "collaborators": ["cid", "dot"],
               "locationId": "900", "isAiGenerated": True, "isPaidPartnership": False}
    result = published(instagram, ann, Content("Grüße 👋🏽 #bread", (photo(),), "image", options, "k-1"))
    assert result.id == net.posts[0]["id"] and result.url.startswith("https://www.instagram.com/p/")
    assert given(net) == [{
        "image_url": "https://media.test/1.jpg", "caption": "Grüße 👋🏽 #bread", "alt_text": "a loaf", "location_id": "900",
        "user_tags": [{"username": "ben", "x": 0.5, "y": 0.25}], "collaborators": ["cid", "dot"], "is_ai_generated": "true",
        "is_paid_partnership": "false"}]


def test_reel(net, instagram, ann):
    options = {"userTags": [{"username": "ben"}], "thumbOffsetMs": 0, "shareToFeed": False, "audioName": "Dough",
               "trialGraduation": "MANUAL"}
    result = published(instagram, ann, Content("hi", (film(),), "reel", options, "k-1"))
    assert result.url.startswith("https://www.instagram.com/reel/")
    assert given(net) == [{
        "media_type": "REELS", "video_url": "https://media.test/1.mp4", "caption": "hi", "user_tags": [{"username": "ben"}],
        "thumb_offset": "0", "share_to_feed": "false", "audio_name": "Dough",
        "trial_params": {"graduation_strategy": "MANUAL"}}]


@pytest.mark.parametrize("item, file", [(photo(), {"image_url": "https://media.test/1.jpg"}),
                                        (film(), {"video_url": "https://media.test/1.mp4"})])
def test_story(net, instagram, ann, item, file):
    published(instagram, ann, Content("", (item,), "story", {"userTags": [{"username": "ben"}]}, "k-1"))
    assert given(net) == [{"media_type": "STORIES", **file, "user_tags": [{"username": "ben"}]}]


def test_carousel(net, instagram, ann):
    options = {"altTexts": ["a loaf", "", "a roll"], "collaborators": ["ben"], "locationId": "900", "isAiGenerated": True,
               "userTags": [{"username": "cid", "media": 2, "x": 0, "y": 1}]}
    published(instagram, ann, Content("hi", (photo(1), film(2), photo(3)), "carousel", options, "k-1"))
    children = [one.id for one in net.containers.values()][:3]
    assert given(net) == [{"media_type": "CAROUSEL", "children": ",".join(children), "caption": "hi", "collaborators": ["ben"],
                           "location_id": "900", "is_ai_generated": "true"}]
    assert net.posts[0]["files"] == [
        {"is_carousel_item": "true", "image_url": "https://media.test/1.jpg", "alt_text": "a loaf"},
        {"is_carousel_item": "true", "media_type": "VIDEO", "video_url": "https://media.test/2.mp4"},
        {"is_carousel_item": "true", "image_url": "https://media.test/3.jpg", "alt_text": "a roll",
         "user_tags": json.dumps([{"username": "cid", "x": 0, "y": 1}])}]


def test_a_container_is_waited_for_with_growing_pauses(net, instagram, ann):
    net.processing_polls = 7
    waits = [step.after for step in instagram.prepare(ann, REEL, {}) if isinstance(step, Waiting)]
    assert waits == [5, 10, 20, 30, 60, 60, 60]


def test_a_wait_goes_on_in_another_run(net, instagram, ann):
    receipt, waits, runs = {}, [], 0
    while True:
        runs += 1
        step = None
        for step in instagram.prepare(ann, CAROUSEL, receipt):
            receipt = json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
            if isinstance(step, Waiting):
                waits.append(step.after)
                break
        if not isinstance(step, Waiting):
            break
    assert len(net.calls(CREATE)) == 3 and waits == [5, 10, 20, 5, 10] and runs == 6
    assert instagram.publish(ann, CAROUSEL, receipt).id == net.posts[0]["id"]


def test_a_finished_preparation_asks_for_the_state_alone(net, instagram, ann):
    receipt = prepared(instagram, ann, CAROUSEL)
    seen = len(net.requests)
    assert list(instagram.prepare(ann, CAROUSEL, receipt)) == []
    assert [request.endpoint for request in net.requests[seen:]] == [READ]


@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"status": 200, "body": {}}, {"status": 500, "body": ""}])
def test_a_container_whose_answer_was_lost_is_made_again(net, instagram, ann, fault):
    steps = instagram.prepare(ann, CAROUSEL, {})
    receipt = next(steps)
    net.fault(CREATE, **fault)
    with pytest.raises(Unavailable):
        next(steps)
    instagram.publish(ann, CAROUSEL, prepared(instagram, ann, CAROUSEL, receipt))
    shown = [file.get("image_url") for file in net.posts[0]["files"]]
    assert len(net.posts) == 1 and shown == ["https://media.test/1.jpg", None]


@pytest.mark.parametrize("fault", [{"status": 500, "body": ""}, {"drop_answer": True}, {"status": 200, "body": {}},
                                   {"status": 400, "body": {"error": {"code": 190}}}])
def test_a_post_stays_published_whatever_becomes_of_the_question_for_its_link(net, instagram, ann, fault):
    receipt = prepared(instagram, ann, IMAGE)
    net.fault(READ, **fault)
    assert instagram.publish(ann, IMAGE, receipt) == Published(net.posts[0]["id"], PROFILE)


# Exactly once.

@pytest.mark.parametrize("fault, there", IN_DOUBT)
@pytest.mark.parametrize("content", SAMPLES.values(), ids=SAMPLES)
def test_of_a_post_in_doubt_the_container_knows(net, instagram, ann, content, fault, there):
    receipt = prepared(instagram, ann, content)
    net.fault(PUBLISH, **fault)
    with pytest.raises(Unconfirmed):
        instagram.publish(ann, content, receipt)
    found = instagram.find(ann, content, receipt)
    assert found == (Published(net.posts[0]["id"], found.url) if there else None)
    later = replace(content, sent_ago=SETTLED + 1)
    assert instagram.find(ann, later, receipt) == (found if there else Absent())
    again = instagram.publish(ann, content, prepared(instagram, ann, content, receipt))
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


@pytest.mark.parametrize("state, expected", [("IN_PROGRESS", None), ("ERROR", None), ("NEWS", None), ("EXPIRED", Absent()),
                                             ("FINISHED", Absent())])
def test_what_the_states_of_a_container_tell(net, instagram, ann, state, expected):
    net.fault(READ, status=200, body={"id": "1", "status_code": state})
    assert instagram.find(ann, replace(IMAGE, sent_ago=SETTLED + 1), {"container": "1"}) == expected


def test_what_was_never_started_was_never_sent(instagram, ann):
    assert instagram.find(ann, IMAGE, {}) == Absent()


def test_a_published_container_whose_post_cannot_be_told_from_others_has_no_id(net, instagram, ann):
    published(instagram, ann, IMAGE)
    receipt = prepared(instagram, ann, IMAGE)
    net.fault(PUBLISH, drop_answer=True)
    with pytest.raises(Unconfirmed):
        instagram.publish(ann, IMAGE, receipt)
    assert instagram.find(ann, IMAGE, receipt) == Published(None, PROFILE)
    net.posts[0]["created"] -= 80
    assert instagram.find(ann, IMAGE, receipt).id == net.posts[1]["id"]
    net.posts[1]["given"]["caption"] = "changed"
    assert instagram.find(ann, IMAGE, receipt) == Published(None, PROFILE)


def test_a_story_is_looked_for_among_the_stories(net, instagram, ann):
    published(instagram, ann, replace(IMAGE, caption=""))
    receipt = prepared(instagram, ann, STORY)
    net.fault(PUBLISH, drop_answer=True)
    with pytest.raises(Unconfirmed):
        instagram.publish(ann, STORY, receipt)
    assert instagram.find(ann, STORY, receipt).id == net.posts[1]["id"] and len(net.calls(STORIES)) == 1


@pytest.mark.parametrize("row", ["spam", "not_found", "bad_ratio", "permission", "app_limit"])
def test_a_refusal_of_a_post_that_was_made_all_the_same(net, instagram, ann, row):
    receipt = prepared(instagram, ann, IMAGE)
    net.fail(row, acts=True)
    assert instagram.publish(ann, IMAGE, receipt).id == net.posts[0]["id"]


def test_a_refusal_that_may_mislead_is_in_doubt_while_the_container_says_nothing(net, instagram, ann):
    receipt = prepared(instagram, ann, IMAGE)
    net.fail("spam")
    net.fault(READ, status=500)
    with pytest.raises(Unconfirmed) as caught:
        instagram.publish(ann, IMAGE, receipt)
    assert caught.value.platform_code == "4/2207051"


@pytest.mark.parametrize("body", ["<html>", {}, {"data": [{"id": "1", "timestamp": "yesterday"}]}, {"data": [7]}])
def test_a_list_of_nonsense_says_nothing(net, instagram, ann, body):
    receipt = prepared(instagram, ann, IMAGE)
    instagram.publish(ann, IMAGE, receipt)
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        instagram.find(ann, IMAGE, receipt)


# Containers that come to nothing.

def test_containers_that_expired_are_made_again(net, instagram, ann):
    receipt = prepared(instagram, ann, CAROUSEL)
    net.advance(86_401)
    with pytest.raises(Unavailable) as caught:
        prepared(instagram, ann, CAROUSEL, receipt)
    assert caught.value.receipt == {"made": 0, "children": [], "ready": 0, "asked": 0}
    again = prepared(instagram, ann, CAROUSEL, caught.value.receipt)
    assert instagram.publish(ann, CAROUSEL, again) and len(net.posts) == 1 and len(net.containers) == 6


@pytest.mark.parametrize("reason, tries", [
    (f"{FAILED} 2207026", 1), (f"{FAILED} 2207053", 3), (f"{FAILED} 2207082", 3), (f"{FAILED} 2207052", 3),
    ("Something else", 1),
])
def test_a_file_that_cannot_be_processed(net, instagram, ann, reason, tries):
    net.broken["https://media.test/2.mp4"] = reason
    error, count = tried(instagram, ann, CAROUSEL)
    assert type(error) is Rejected and count == tries
    assert (error.rule, error.platform_message) == ("media", reason)


@pytest.mark.parametrize("row", ["fetch_timeout", "creation_failed", "upload_failed", "fetch_failed", "no_media"])
def test_a_container_that_is_not_made_for_a_passing_reason_is_tried_three_times(net, instagram, ann, row):
    net.fail(row, endpoint=CREATE, times=9)
    error, count = tried(instagram, ann, IMAGE)
    assert type(error) is Rejected and count == 3 and error.platform_message == ERRORS[row]["body"]["error"]["message"]


def test_an_address_that_cannot_be_fetched(net, instagram, ann):
    content = replace(IMAGE, media=(replace(photo(), url="https://media.test/bröt.jpg"),))
    error, _ = tried(instagram, ann, content)
    assert error.platform_code == "9004"


def test_a_container_that_is_not_there_at_once(net, instagram, ann):
    net.latency = 2
    error, count = tried(instagram, ann, IMAGE)
    assert error is None and count == 3 and len(net.containers) == 1


def test_a_container_that_does_not_come_is_made_again(net, instagram, ann):
    net.latency = 99
    error, count = tried(instagram, ann, IMAGE)
    assert error.platform_code == "100/33" and len(net.containers) == 3 and count == 12


@pytest.mark.parametrize("row", ["not_ready", "not_found", "no_media"])
def test_a_container_that_cannot_be_published_yet(net, instagram, ann, row):
    receipt = prepared(instagram, ann, IMAGE)
    net.fail(row, times=4)
    for number in (1, 2, 3):
        with pytest.raises(Unavailable) as caught:
            instagram.publish(ann, IMAGE, receipt)
        receipt = caught.value.receipt
        assert (receipt["unseen"], caught.value.retry_after) == (number, 10) and receipt["container"]
    with pytest.raises(Unavailable) as caught:
        instagram.publish(ann, IMAGE, receipt)
    assert "container" not in caught.value.receipt and caught.value.receipt["made"] == 1


# Errors.

SURELY_NOT = {"app_limit", "call_limit", "account_limit", "quota"}
AGAIN = {"not_ready", "not_found", "no_media"}
LACKING, DEAD = {"permission", "ability", "capability"}, {"expired", "removed", "session"}
DOUBTFUL = {"server", "unknown", "unknown_as_400", "service", "bad_gateway"}
OF_PUBLISHING = sorted(row for row, details in ERRORS.items() if details["endpoint"] == PUBLISH)


@pytest.mark.parametrize("row", OF_PUBLISHING)
def test_errors_of_publishing(net, instagram, ann, row):
    receipt = prepared(instagram, ann, IMAGE)
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        instagram.publish(ann, IMAGE, receipt)
    error, body = caught.value, ERRORS[row]["body"]["error"]
    groups = [(Unavailable, SURELY_NOT | AGAIN), (Disconnected, DEAD), (PermissionMissing, LACKING), (Unconfirmed, DOUBTFUL)]
    assert type(error) is next((kind for kind, rows in groups if row in rows), Rejected) and not net.posts
    assert error.platform_message == body.get("error_user_msg", body["message"])
    assert error.platform_code == "/".join(str(body[name]) for name in ("code", "error_subcode") if name in body)
    assert "canary" not in repr(vars(error))
    if row in SURELY_NOT:
        assert (error.code, error.retry_after) == ("rate_limited", 3600 if row == "quota" else 900)


def test_instagram_says_for_how_long_it_wants_quiet(net, instagram, ann):
    net.rates["calls"], net.regain = (1, 3600), 7
    instagram.profile(ann)
    with pytest.raises(Unavailable) as caught:
        prepared(instagram, ann, IMAGE)
    assert (caught.value.platform_code, caught.value.code, caught.value.retry_after) == ("80002", "rate_limited", 7 * 60)


def test_the_quota_of_a_day(net, instagram, ann):
    net.rates["posts"] = (1, 86_400)
    published(instagram, ann, IMAGE)
    with pytest.raises(Unavailable) as caught:
        published(instagram, ann, IMAGE)
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 3600) and len(net.posts) == 1


def test_a_right_that_is_missing(net, instagram, ann):
    net.tokens[ann.credentials["accessToken"]].scopes -= {"instagram_content_publish"}
    with pytest.raises(PermissionMissing):
        prepared(instagram, ann, IMAGE)


# The first comment.

@pytest.fixture
def public(net, instagram, ann):
    content = replace(IMAGE, options={"firstComment": "More"})
    post = published(instagram, ann, content)
    return content, {"public": {"id": post.id, "url": post.url}}


def texts(net):
    return [comment["text"] for found in net.comments.values() for comment in found]


def test_first_comment(net, instagram, ann, public):
    steps = list(instagram.follow(ann, *public))
    assert texts(net) == ["More"] and steps[-1]["comment"]["id"] == net.comments[net.posts[0]["id"]][0]["id"]
    assert "fields" not in dict(net.calls(COMMENT)[0].query)


@pytest.mark.parametrize("fault, there", IN_DOUBT)
def test_a_comment_in_doubt_is_looked_for_and_never_written_twice(net, instagram, ann, public, fault, there):
    content, receipt = public
    steps = instagram.follow(ann, content, receipt)
    receipt = next(steps)
    net.fault(COMMENT, **fault)
    with pytest.raises(Unconfirmed):
        next(steps)
    assert len(texts(net)) == there
    content = replace(content, sent_ago=SETTLED)
    assert "id" in list(instagram.follow(ann, content, receipt))[-1]["comment"]
    assert texts(net) == ["More"] and len(net.calls(COMMENTS)) == 1


def test_a_post_whose_id_nobody_knows_gets_no_comment(instagram, ann, public):
    with pytest.raises(Rejected) as caught:
        list(instagram.follow(ann, public[0], {"public": {"id": None, "url": PROFILE}}))
    assert caught.value.rule == "comment"
