"""Posts on TikTok whose sending is in doubt, and uploads that stopped: each post once, no chunk without need."""

from dataclasses import replace

import pytest

from platforms.base import Absent, Processing
from platforms.errors import Unavailable, Unconfirmed
from platforms.tiktok import CHUNK
from tests.live import prepared
from tests.networks.tiktok import CAROUSEL, DRAFTS, FILM, IMAGE, LONG, published, settled, stored
from tests.networks.tiktok import ann, net, tiktok  # noqa: F401
from tests.standins.tiktok_errors import CREATOR, PHOTO, STATUS, UPLOAD, VIDEO


# Exactly once.

FAULTS = {
    "lost answer": ({"drop_answer": True}, True), "lost request": ({"drop_before": True}, False),
    "504": ({"status": 504, "body": "<html>"}, False), "500 after acting": ({"status": 500, "body": "", "acts": True}, True),
}


@pytest.mark.parametrize("content", [FILM, LONG, DRAFTS["video"]], ids=["one chunk", "three chunks", "draft"])
@pytest.mark.parametrize("fault, there", FAULTS.values(), ids=FAULTS)
def test_a_video_in_doubt_is_found_out_and_may_be_sent_again(net, tiktok, ann, content, fault, there):
    receipt = prepared(tiktok, ann, content)
    net.fault(UPLOAD, **fault)
    with pytest.raises(Unconfirmed) as caught:
        tiktok.publish(ann, content, receipt)
    shown = net.posts if content is not DRAFTS["video"] else net.drafts
    assert "canary" not in repr(vars(caught.value)) and len(shown) == there
    doubted = replace(content, sent_ago=30.0)
    found = tiktok.find(ann, doubted, receipt)
    if there:
        assert settled(tiktok, ann, found).id in shown[0].values()
    else:
        assert found == Absent()
    assert list(tiktok.prepare(ann, doubted, receipt)) == []
    again = settled(tiktok, ann, tiktok.publish(ann, doubted, receipt))
    assert again.id in shown[0].values() and len(shown) == 1


def test_a_part_answered_like_the_first_of_more(net, tiktok, ann):
    receipt = prepared(tiktok, ann, FILM)
    net.fault(UPLOAD, status=206, acts=True)
    with pytest.raises(Unconfirmed):
        tiktok.publish(ann, FILM, receipt)


@pytest.mark.parametrize("fault, there", [
    *FAULTS.values(), ({"status": 200, "body": "<html>", "acts": True}, True),
    ({"status": 200, "body": {"data": {}, "error": {"code": "ok"}}, "acts": True}, True),
], ids=[*FAULTS, "garbage after acting", "no id"])
@pytest.mark.parametrize("content", [IMAGE, CAROUSEL, DRAFTS["image"]], ids=["image", "carousel", "draft"])
def test_photos_in_doubt_stay_so(net, tiktok, ann, content, fault, there):
    receipt = prepared(tiktok, ann, content)
    net.fault(PHOTO, **fault)
    with pytest.raises(Unconfirmed):
        tiktok.publish(ann, content, receipt)
    assert len(net.posts + net.drafts) == there
    assert tiktok.find(ann, replace(content, sent_ago=30.0), receipt) is None and not net.calls(STATUS)


@pytest.mark.parametrize("doubt", [0.0, 4000.0], ids=["first sending", "after one in doubt"])
def test_an_upload_that_has_run_out_begins_anew(net, tiktok, ann, doubt):
    content = replace(LONG, sent_ago=doubt)
    receipt = prepared(tiktok, ann, content)
    net.advance(3700)
    with pytest.raises(Unavailable) as caught:
        tiktok.publish(ann, content, receipt)
    assert caught.value.receipt.keys() == {"creator", "off", "privacy", "kind"}
    renewed = prepared(tiktok, ann, content, caught.value.receipt)
    assert settled(tiktok, ann, tiktok.publish(ann, content, renewed)) and len(net.posts) == 1


def test_an_upload_that_has_run_out_after_its_last_chunk_is_not_begun_anew(net, tiktok, ann):
    receipt = prepared(tiktok, ann, LONG)
    net.fault(UPLOAD, drop_answer=True)
    with pytest.raises(Unconfirmed):
        tiktok.publish(ann, LONG, receipt)
    net.advance(3700)
    outcome = tiktok.publish(ann, replace(LONG, sent_ago=3700.0), receipt)
    assert settled(tiktok, ann, outcome).id == net.posts[0]["id"] and len(net.calls(VIDEO)) == 1


def test_nothing_begins_anew_where_tiktok_does_not_say_how_much_it_has(net, tiktok, ann):
    receipt = prepared(tiktok, ann, FILM)
    net.advance(3700)
    with pytest.raises(Unavailable) as caught:
        tiktok.publish(ann, replace(FILM, sent_ago=3700.0), receipt)
    assert caught.value.receipt is None
    with pytest.raises(Unavailable) as caught:      # but no sending is in doubt here
        tiktok.publish(ann, FILM, receipt)
    assert "publishId" not in caught.value.receipt


@pytest.mark.parametrize("reason, again", [("internal", True), ("upload_timeout", True), ("spam_risk", False)])
def test_an_upload_that_tiktok_gave_up(net, tiktok, ann, reason, again):
    receipt = prepared(tiktok, ann, FILM)
    net.fault(UPLOAD, status=404)
    net.fault(STATUS, status=200, body={"data": {"status": "FAILED", "fail_reason": reason}, "error": {"code": "ok"}})
    if again:
        with pytest.raises(Unavailable) as caught:
            tiktok.publish(ann, FILM, receipt)
        assert "publishId" not in caught.value.receipt
    else:
        assert tiktok.publish(ann, FILM, receipt).receipt["publishId"] == receipt["publishId"]


def test_a_search_ends_after_a_day(net, tiktok, ann):
    net.processing_polls = 1000
    receipt = prepared(tiktok, ann, FILM)
    outcome = tiktok.publish(ann, FILM, receipt)
    assert isinstance(tiktok.find(ann, replace(FILM, sent_ago=80_000.0), outcome.receipt), Processing)
    assert tiktok.find(ann, replace(FILM, sent_ago=90_000.0), outcome.receipt) is None


# Going on where it stopped.

def test_a_finished_preparation_asks_for_nothing(net, tiktok, ann):
    for content in (LONG, IMAGE):
        receipt = prepared(tiktok, ann, content)
        seen = len(net.requests)
        assert list(tiktok.prepare(ann, content, receipt)) == [] and len(net.requests) == seen


@pytest.mark.parametrize("stopped_after", range(1, 5))
def test_a_killed_worker_goes_on_after_the_last_acknowledged_chunk(net, tiktok, ann, stopped_after):
    steps = tiktok.prepare(ann, LONG, {})
    receipt = stored([next(steps) for _ in range(stopped_after)][-1])
    assert settled(tiktok, ann, tiktok.publish(ann, LONG, prepared(tiktok, ann, LONG, receipt)))
    assert len(net.calls(CREATOR)) == len(net.calls(VIDEO)) == 1 and len(net.calls(UPLOAD)) == 3


def test_a_chunk_whose_answer_was_lost_is_not_needed_again(net, tiktok, ann):
    steps = tiktok.prepare(ann, LONG, {})
    receipt = [next(steps), next(steps)][-1]
    net.fault(UPLOAD, drop_answer=True)
    with pytest.raises(Unavailable):
        next(steps)
    resumed = prepared(tiktok, ann, LONG, stored(receipt))
    assert resumed["sent"] == 2 * CHUNK and [put.status for put in net.calls(UPLOAD)] == [None, 416, 206]
    assert settled(tiktok, ann, tiktok.publish(ann, LONG, resumed))


@pytest.mark.parametrize("status", [500, 503])
def test_a_chunk_that_was_not_taken_is_sent_again(net, tiktok, ann, status):
    steps = tiktok.prepare(ann, LONG, {})
    receipt = [next(steps), next(steps)][-1]
    net.fault(UPLOAD, status=status)
    with pytest.raises(Unavailable):
        next(steps)
    assert prepared(tiktok, ann, LONG, stored(receipt))["sent"] == 2 * CHUNK


@pytest.mark.parametrize("uploaded", [0, 1])
def test_an_upload_that_does_not_fit_ours_begins_anew(net, tiktok, ann, uploaded):
    net.fault(UPLOAD, status=416)
    body = {"data": {"status": "PROCESSING_UPLOAD", "uploaded_bytes": uploaded}, "error": {"code": "ok"}}
    net.fault(STATUS, status=200, body=body)
    with pytest.raises(Unavailable) as caught:
        prepared(tiktok, ann, LONG)
    assert "publishId" not in caught.value.receipt


def test_an_upload_that_runs_out_halfway_begins_anew(net, tiktok, ann):
    steps = tiktok.prepare(ann, LONG, {})
    receipt = [next(steps), next(steps), next(steps)][-1]
    net.advance(3700)
    with pytest.raises(Unavailable) as caught:
        prepared(tiktok, ann, LONG, receipt)
    assert settled(tiktok, ann, tiktok.publish(ann, LONG, prepared(tiktok, ann, LONG, caught.value.receipt)))


def test_a_beginning_whose_answer_was_lost_is_made_again(net, tiktok, ann):
    net.fault(VIDEO, drop_answer=True)
    with pytest.raises(Unavailable):
        prepared(tiktok, ann, FILM)
    assert published(tiktok, ann, FILM) and len(net.posts) == 1 and len(net.calls(VIDEO)) == 2
