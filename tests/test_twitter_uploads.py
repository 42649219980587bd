"""Files on their way to X: chunk by chunk, over killed workers and lost answers."""

import json
from dataclasses import replace

import pytest

from platforms.base import MB, Content, Waiting
from platforms.errors import Rejected, Unavailable, Unconfirmed
from tests.live import MP4, image, prepared, published
from tests.networks.twitter import ann, film, net, twitter  # fixtures
from tests.standins.twitter_rules import APPEND, FINALIZE, STATUS

INITIALIZE = "POST /2/media/upload/initialize"


def test_a_finished_preparation_asks_for_nothing(net, twitter, ann):
    content = Content("hi", media=(image(), image(1)), options={"altTexts": ["a", "b"]}, key="k-1")
    receipt = prepared(twitter, ann, content)
    seen = len(net.requests)
    assert list(twitter.prepare(ann, content, receipt)) == [] and len(net.requests) == seen


@pytest.mark.parametrize("done", range(1, 13))
def test_a_preparation_goes_on_where_a_worker_was_killed(net, twitter, ann, done):
    data = MP4 + bytes(2 * MB)
    content = Content("hi", media=(film(data),), key="k-1")
    steps = twitter.prepare(ann, content, {})
    receipt = {}
    for _, step in zip(range(done), steps):
        receipt = json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
    steps.close()
    twitter.publish(ann, content, prepared(twitter, ann, content, receipt))
    assert net.posts[0]["media"][0].data == data and len(net.media) == 1
    assert len(net.calls(APPEND)) == 3 and len(net.calls(FINALIZE)) == 1


@pytest.mark.parametrize("endpoint", [INITIALIZE, APPEND, FINALIZE, STATUS])
@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"drop_before": True}, {"status": 503}])
def test_a_step_whose_answer_was_lost_is_made_again(net, twitter, ann, endpoint, fault):
    content, receipt = Content("hi", media=(film(),), key="k-1"), {}
    net.fault(endpoint, **fault)
    with pytest.raises(Unavailable) as caught:
        for step in twitter.prepare(ann, content, {}):
            receipt = step.receipt if isinstance(step, Waiting) else step
    assert caught.value.receipt is None
    twitter.publish(ann, content, prepared(twitter, ann, content, receipt))
    assert net.posts[0]["media"][0].data == MP4 and len(net.posts) == 1


@pytest.mark.parametrize("endpoint, status", [(APPEND, 404), (APPEND, 400), (FINALIZE, 404), (FINALIZE, 400), (STATUS, 404)])
def test_an_upload_that_x_forgot_begins_again_once(net, twitter, ann, endpoint, status):
    content = Content("hi", media=(film(),), key="k-1")
    body = net.errors["unknown_media"]["body"]
    net.fault(endpoint, status=status, body=body)
    with pytest.raises(Unavailable) as caught:
        prepared(twitter, ann, content)
    assert caught.value.receipt == {"media": [], "again": True} and caught.value.platform_code == "resource-not-found"
    net.fault(endpoint, status=status, body=body)
    with pytest.raises(Rejected):
        prepared(twitter, ann, content, caught.value.receipt)
    twitter.publish(ann, content, prepared(twitter, ann, content, caught.value.receipt))
    assert len(net.posts) == 1


@pytest.mark.parametrize("row", ["media_invalid", "media_invalid_short"])
def test_media_that_x_no_longer_knows_are_uploaded_again_once(net, twitter, ann, row):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(twitter, ann, content)
    net.fail(row)
    with pytest.raises(Unavailable) as caught:
        twitter.publish(ann, content, receipt)
    renewed = prepared(twitter, ann, content, caught.value.receipt)
    assert renewed["media"][0]["id"] != receipt["media"][0]["id"]
    net.fail(row)
    with pytest.raises(Rejected):
        twitter.publish(ann, content, renewed)
    assert twitter.publish(ann, content, renewed) and len(net.posts) == 1


def test_media_that_are_gone_because_the_post_is_there(net, twitter, ann):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(twitter, ann, content)
    first = twitter.publish(ann, content, receipt)
    net.fail("media_invalid")
    assert twitter.publish(ann, replace(content, sent_ago=600.0), receipt) == first and len(net.posts) == 1


def test_media_that_are_gone_and_nobody_can_tell_why(net, twitter, ann):
    content = Content("hi", media=(image(),), key="k-1", sent_ago=10.0)
    receipt = prepared(twitter, ann, content)
    net.fail("media_invalid")
    with pytest.raises(Unconfirmed) as caught:
        twitter.publish(ann, content, receipt)
    assert caught.value.platform_message == "Your media IDs are invalid."
    net.fail("media_invalid")
    with pytest.raises(Unavailable) as caught:
        twitter.publish(ann, replace(content, sent_ago=600.0), receipt)
    assert caught.value.receipt == {"media": [], "again": True}


def test_media_expire(net, twitter, ann):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(twitter, ann, content)
    net.media[receipt["media"][0]["id"]].end = net.now()
    with pytest.raises(Unavailable) as caught:
        twitter.publish(ann, content, receipt)
    assert caught.value.receipt["media"] == []


def test_a_text_without_media_is_not_blamed_on_them(net, twitter, ann):
    net.fail("media_invalid")
    with pytest.raises(Rejected):
        published(twitter, ann, Content("hi", key="k-1"))


@pytest.mark.parametrize("state", [{"state": "failed"}, {"state": "in_progress", "progress_percent": 99}])
def test_a_file_that_cannot_be_processed(net, twitter, ann, state):
    info = {**state, "error": {"code": 3, "name": "UnsupportedMedia", "message": "Duration too long"}}
    content = Content("hi", media=(film(),), key="k-1")
    steps = twitter.prepare(ann, content, {})
    [next(steps) for _ in range(3)]
    net.fault(FINALIZE, status=200, body={"data": {"id": next(iter(net.media)), "processing_info": info}})
    with pytest.raises(Rejected) as caught:
        next(steps)
    error = caught.value
    assert (error.rule, error.platform_code, error.platform_message) == ("media", "UnsupportedMedia", "Duration too long")


def test_a_video_that_lies_about_its_type(net, twitter, ann):
    with pytest.raises(Rejected) as caught:
        prepared(twitter, ann, Content("hi", media=(replace(image(), mime_type="video/mp4"),), key="k-1"))
    assert caught.value.platform_code == "InvalidMedia"


@pytest.mark.parametrize("endpoint, body", [
    (INITIALIZE, {"data": {"id": 7}}), (INITIALIZE, {"data": {"id": "7/../../tweets"}}), (INITIALIZE, "<html>"),
    (FINALIZE, {"data": {}}), (FINALIZE, {"data": {"id": "8"}}),
])
def test_nonsense_is_no_progress(net, twitter, ann, endpoint, body):
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(Unavailable):
        prepared(twitter, ann, Content("hi", media=(image(),), key="k-1"))
