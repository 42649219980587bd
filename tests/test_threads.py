"""Posts on Threads, by an API as strict as the real one."""

import json
from dataclasses import replace

import pytest

from platforms.base import Absent, Content, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.meta import SETTLED
from tests.live import prepared, published, tried
from tests.networks.instagram import film, photo
from tests.networks.threads import LONG_TEXT, PROFILE, SAMPLES, TOKEN, about, ann, net, post, threads  # noqa: F401
from tests.standins.meta import IN_DOUBT
from tests.standins.threads import CREATE, ERRORS, LIST, PUBLISH, READ, REPLIES

TEXT, IMAGE, VIDEO, CAROUSEL, POLL, LINK = SAMPLES.values()


def given(net):
    return [post["given"] for post in net.posts]


# What a post becomes.

def test_text_with_every_option(net, threads, ann):
    published(threads, ann, Content("first", key="k-0"))
    quoted = net.posts[0]["id"]
    options = {"replyControl": "followers_only", "enableReplyApprovals": True, "topicTag": "Bread and rolls",
               "locationId": "900", "quotePostId": quoted}
    result = published(threads, ann, Content("Grüße 👋🏽 #bread", post_type="text", options=options, key="k-1"))
    assert result.id == net.posts[1]["id"] and result.url.startswith(f"{PROFILE}/post/")
    assert given(net)[1] == {
        "media_type": "TEXT", "text": "Grüße 👋🏽 #bread", "reply_control": "followers_only", "enable_reply_approvals": "true",
        "topic_tag": "Bread and rolls", "location_id": "900", "quote_post_id": quoted}


@pytest.mark.parametrize("content, expected", [
    (IMAGE, {"media_type": "IMAGE", "image_url": "https://media.test/1.jpg", "alt_text": "a loaf", "text": "hi"}),
    (VIDEO, {"media_type": "VIDEO", "video_url": "https://media.test/1.mp4", "is_spoiler_media": "true", "text": "hi"}),
    (LINK, {"media_type": "TEXT", "text": "hi", "link_attachment": "https://bread.example/menu"}),
    (replace(LINK, caption=""), {"media_type": "TEXT", "link_attachment": "https://bread.example/menu"}),
    (POLL, {"media_type": "TEXT", "text": "?", "poll_attachment": "{\"option_a\": \"yes\", \"option_b\": \"no\"}"}),
    (replace(IMAGE, caption="", options={}), {"media_type": "IMAGE", "image_url": "https://media.test/1.jpg"}),
    (replace(POLL, options={"poll": dict(zip(("optionA", "optionB", "optionC", "optionD"), "wxyz", strict=True))}),
     {"media_type": "TEXT", "text": "?",
      "poll_attachment": "{\"option_a\": \"w\", \"option_b\": \"x\", \"option_c\": \"y\", \"option_d\": \"z\"}"}),
])
def test_the_kinds_of_posts(net, threads, ann, content, expected):
    assert published(threads, ann, content).id == net.posts[0]["id"]
    assert given(net) == [expected]


def test_an_answer_in_doubt_is_found_among_the_answers(net, threads, ann):
    content, _ = about(net, "replyToId", "reply_to_id")
    receipt = prepared(threads, ann, content)
    net.fault(PUBLISH, drop_answer=True)
    with pytest.raises(Unconfirmed):
        threads.publish(ann, content, receipt)
    assert threads.find(ann, content, receipt).id == net.posts[1]["id"] and len(net.calls(REPLIES)) == 1
    net.tokens[TOKEN].scopes -= {"threads_read_replies"}
    assert threads.find(ann, content, receipt) == Published(None, PROFILE)


def test_the_shade_of_a_story_on_instagram(net, threads, ann):
    published(threads, ann, post("text", shareToInstagram="light"))
    assert given(net)[0]["crossreshare_to_ig"] == "true" and "crossreshare_to_ig_dark_mode" not in given(net)[0]


SECOND = {"offset": 2, "length": 2}


@pytest.mark.parametrize("kind, options, problems", [
    ("text", {"textSpoilers": [{"offset": 2, "length": 8}, {"offset": 0, "length": 2}]}, []),
    ("text", {"textSpoilers": [{"offset": 0, "length": 3}, SECOND]}, [("options/textSpoilers/1", "passage")]),
    ("text", {"textSpoilers": [SECOND, {"offset": 0, "length": 11}]},
     [("options/textSpoilers/1", "passage"), ("options/textSpoilers/0", "passage")]),
    ("text", {"textAttachment": {"plaintext": "abc", "textWithStylingInfo": [{**SECOND, "stylingInfo": ["bold"]}]}},
     [("options/textAttachment/textWithStylingInfo/0", "passage")]),
    ("link", {"linkAttachment": "https://a.test", "textAttachment": {"plaintext": "a"}}, []),
    ("link", {"linkAttachment": "https://a.test", "textAttachment": {"plaintext": "a", "linkAttachmentUrl": "https://b.test"}},
     [("options/textAttachment/linkAttachmentUrl", "one_link")]),
    ("text", {"isGhostPost": True, "textSpoilers": [SECOND]}, []),
    ("text", {"isGhostPost": False, "topicTag": "Bread"}, []),
    ("text", {"isGhostPost": True, "topicTag": "Bread", "thread": ["two"]},
     [("options/topicTag", "ghost_post"), ("options/thread", "ghost_post")]),
    ("poll", {"poll": {"optionA": "a", "optionB": "b"}, "gifId": "1", "textAttachment": {"plaintext": "a"}},
     [("options/gifId", "option"), ("options/textAttachment", "option")]),
])
def test_what_options_have_to_fit_to(threads, kind, options, problems):
    assert [(problem.path, problem.rule) for problem in threads.problems(post(kind, **options))] == problems


def test_the_link_of_a_long_text_counts(threads):
    content = replace(post("text", textAttachment=LONG_TEXT), caption=" ".join(f"https://{letter}.test" for letter in "abcde"))
    assert [(problem.path, problem.rule) for problem in threads.problems(content)] == [("caption", "caption_links")]


def test_carousel(net, threads, ann):
    options = {"altTexts": ["a loaf", "", "a roll"], "isSpoilerMedia": True, "topicTag": "Bread"}
    published(threads, ann, Content("hi", (photo(1), film(2), photo(3)), "carousel", options, "k-1"))
    children = ",".join([one.id for one in net.containers.values()][:3])
    assert given(net) == [{"media_type": "CAROUSEL", "children": children, "text": "hi", "is_spoiler_media": "true",
                           "topic_tag": "Bread"}]
    item = {"is_carousel_item": "true"}
    assert net.posts[0]["files"] == [
        {"media_type": "IMAGE", "image_url": "https://media.test/1.jpg", "alt_text": "a loaf", **item},
        {"media_type": "VIDEO", "video_url": "https://media.test/2.mp4", **item},
        {"media_type": "IMAGE", "image_url": "https://media.test/3.jpg", "alt_text": "a roll", **item}]


@pytest.mark.parametrize("content, expected", [(TEXT, [2, 3, 5]), (VIDEO, [5, 10, 20, 30, 60, 60])])
def test_a_container_is_waited_for_with_growing_pauses(net, threads, ann, content, expected):
    net.processing_polls = 6
    assert [step.after for step in threads.prepare(ann, content, {}) if isinstance(step, Waiting)] == expected


def test_a_wait_goes_on_in_another_run(net, threads, ann):
    steps = threads.prepare(ann, CAROUSEL, {})
    receipt = next(step.receipt for step in steps if isinstance(step, Waiting))
    receipt = prepared(threads, ann, CAROUSEL, json.loads(json.dumps(receipt)))
    assert len(net.calls(CREATE)) == 3 and threads.publish(ann, CAROUSEL, receipt).id == net.posts[0]["id"]


@pytest.mark.parametrize("fault", [{"status": 500, "body": ""}, {"drop_answer": True}, {"status": 200, "body": {}}])
def test_a_post_stays_published_whatever_becomes_of_the_question_for_its_link(net, threads, ann, fault):
    receipt = prepared(threads, ann, TEXT)
    net.fault(READ, **fault)
    assert threads.publish(ann, TEXT, receipt) == Published(net.posts[0]["id"], PROFILE)


# Exactly once.

@pytest.mark.parametrize("fault, there", IN_DOUBT)
@pytest.mark.parametrize("content", SAMPLES.values(), ids=SAMPLES)
def test_of_a_post_in_doubt_the_container_knows(net, threads, ann, content, fault, there):
    receipt = prepared(threads, ann, content)
    net.fault(PUBLISH, **fault)
    with pytest.raises(Unconfirmed):
        threads.publish(ann, content, receipt)
    found = threads.find(ann, content, receipt)
    assert found == (Published(net.posts[0]["id"], found.url) if there else None)
    later = replace(content, sent_ago=SETTLED + 1)
    assert threads.find(ann, later, receipt) == (found if there else Absent())
    again = threads.publish(ann, content, prepared(threads, ann, content, receipt))
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


def test_a_refusal_of_a_post_that_was_made_all_the_same(net, threads, ann):
    receipt = prepared(threads, ann, TEXT)
    net.fail("spam", acts=True)
    assert threads.publish(ann, TEXT, receipt).id == net.posts[0]["id"]


@pytest.mark.parametrize("row", ["spam", "spam_too"])
def test_a_refusal_that_may_mislead_is_in_doubt_while_the_container_says_nothing(net, threads, ann, row):
    receipt = prepared(threads, ann, TEXT)
    net.fail(row)
    net.fault(READ, status=500)
    with pytest.raises(Unconfirmed):
        threads.publish(ann, TEXT, receipt)


def test_a_list_of_nonsense_says_nothing(net, threads, ann):
    receipt = prepared(threads, ann, TEXT)
    threads.publish(ann, TEXT, receipt)
    net.fault(LIST, status=200, body={"data": [{"id": "1"}]})
    with pytest.raises(Unavailable):
        threads.find(ann, TEXT, receipt)


# Containers that come to nothing.

@pytest.mark.parametrize("reason, tries", [
    ("FAILED_DOWNLOADING_VIDEO", 3), ("UNKNOWN", 3), ("FAILED_PROCESSING_AUDIO", 1), ("FAILED_PROCESSING_VIDEO", 1),
    ("INVALID_ASPEC_RATIO", 1), ("INVALID_BIT_RATE", 1), ("INVALID_DURATION", 1), ("INVALID_FRAME_RATE", 1),
    ("INVALID_AUDIO_CHANNELS", 1), ("INVALID_AUDIO_CHANNEL_LAYOUT", 1)])
def test_a_file_that_cannot_be_processed(net, threads, ann, reason, tries):
    net.broken["https://media.test/1.mp4"] = reason
    error, count = tried(threads, ann, VIDEO)
    assert (type(error), error.rule, error.platform_message, count) == (Rejected, "media", reason, tries)


@pytest.mark.parametrize("row", ["fetch_failed", "fetch_timeout"])
def test_a_file_that_cannot_be_fetched_is_tried_three_times(net, threads, ann, row):
    net.fail(row, times=9)
    error, count = tried(threads, ann, IMAGE)
    assert type(error) is Rejected and count == 3


def test_a_container_that_is_not_there_at_once(net, threads, ann):
    net.latency = 2
    assert tried(threads, ann, TEXT) == (None, 3) and len(net.containers) == 1


def test_a_container_that_cannot_be_published_yet(net, threads, ann):
    receipt = prepared(threads, ann, TEXT)
    net.fail("not_found")
    with pytest.raises(Unavailable) as caught:
        threads.publish(ann, TEXT, receipt)
    assert caught.value.retry_after == 10
    assert threads.publish(ann, TEXT, prepared(threads, ann, TEXT, caught.value.receipt)).id == net.posts[0]["id"]


def test_containers_that_expired_are_made_again(net, threads, ann):
    receipt = prepared(threads, ann, CAROUSEL)
    net.advance(86_401)
    assert tried(threads, ann, CAROUSEL, receipt) == (None, 2) and len(net.containers) == 6


# Errors.

SURELY_NOT = {"app_limit", "user_limit", "page_limit", "call_limit", "quota"}
LACKING = {"permission", "ability", "scope"}
DEAD = {"expired", "logged_out", "app_removed", "password_changed", "session"}
DOUBTFUL = {"unknown", "unknown_as_400", "service", "passing", "bad_gateway"}
OF_PUBLISHING = sorted(row for row, details in ERRORS.items() if details["endpoint"] == PUBLISH)


@pytest.mark.parametrize("row", OF_PUBLISHING)
def test_errors_of_publishing(net, threads, ann, row):
    receipt = prepared(threads, ann, TEXT)
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        threads.publish(ann, TEXT, receipt)
    error, body = caught.value, ERRORS[row]["body"]["error"]
    groups = [(Unavailable, SURELY_NOT | {"not_found"}), (Disconnected, DEAD), (PermissionMissing, LACKING),
              (Unconfirmed, DOUBTFUL)]
    assert type(error) is next((kind for kind, rows in groups if row in rows), Rejected) and not net.posts
    assert error.platform_message == body.get("error_user_msg", body["message"])
    assert "canary" not in repr(vars(error))
    if row in SURELY_NOT:
        assert (error.code, error.retry_after) == ("rate_limited", 3600 if row == "quota" else 900)


@pytest.mark.parametrize("row", OF_PUBLISHING)
def test_errors_of_preparing_leave_nothing_in_doubt(net, threads, ann, row):
    net.fail(row, endpoint=CREATE)
    with pytest.raises(PlatformError) as caught:
        prepared(threads, ann, TEXT)
    groups = [(Unavailable, SURELY_NOT | DOUBTFUL), (Disconnected, DEAD), (PermissionMissing, LACKING)]
    assert type(caught.value) is next((kind for kind, rows in groups if row in rows), Rejected)


def test_the_quota_of_a_day(net, threads, ann):
    net.rates["posts"] = (1, 86_400)
    published(threads, ann, TEXT)
    with pytest.raises(Unavailable) as caught:
        published(threads, ann, TEXT)
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 3600) and len(net.posts) == 1


@pytest.mark.parametrize("scope, options", [
    ("threads_content_publish", {}), ("threads_location_tagging", {"locationId": "900"}),
    ("threads_share_to_instagram", {"shareToInstagram": "light"})])
def test_a_right_that_is_missing(net, threads, ann, scope, options):
    net.tokens[TOKEN].scopes -= {scope}
    with pytest.raises(PermissionMissing):
        prepared(threads, ann, replace(TEXT, options=options))
