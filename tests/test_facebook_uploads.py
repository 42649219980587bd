"""Files on their way to Facebook, which stop in the middle."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from platforms.base import Processing
from platforms.errors import Disconnected, Rejected, Unavailable
from tests.live import image, prepared
from tests.networks.facebook import FILM, SAMPLES, facebook, film, finished, net, page, posted, sent_reel  # noqa: F401
from tests.standins.facebook import ERRORS, PARTS, PHOTOS, READ, REELS, UPLOAD, hashes


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
    receipt = sent_reel(facebook, page)
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
    receipt = sent_reel(facebook, page)
    net.fail(row, endpoint=READ)
    with pytest.raises(Unavailable):
        facebook.check(page, receipt)


def test_a_reel_that_is_public_by_now_is_not_published_again(net, facebook, page):
    receipt = sent_reel(facebook, page)
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
