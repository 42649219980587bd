"""Long videos on Bluesky: in parts, from where a dead worker left off, and whole where the service knows no parts."""

import pytest

from platforms.base import Content, Media
from platforms.bluesky_video import WHOLE
from platforms.errors import Rejected, Unavailable
from tests.live import part_of, prepared, published
from tests.networks.bluesky import ann, bluesky, net  # fixtures

START, PART, FINISH, SEND = (f"app.bsky.video.{name}" for name in ("startUpload", "uploadPart", "finishUpload", "uploadVideo"))
FILM = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * (WHOLE // 256 + 5000)
PARTS = -(-len(FILM) // (8 << 20))


def film():
    return Content("hi", (Media("video/mp4", len(FILM), "u", 640, 360, 9.0, open=part_of(FILM)),), "video")


def whole(net):
    """Whether the one published video is the file, byte for byte."""
    return [job["data"] == FILM for job in net._jobs.values()] == [True] and len(net.posts) == 1


def test_it_goes_in_parts_of_the_size_that_the_service_wants(net, bluesky, ann):
    published(bluesky, ann, film())
    assert [request.size for request in net.calls(PART)] == [8 << 20] * (PARTS - 1) + [len(FILM) % (8 << 20)]
    assert whole(net) and not net.calls(SEND)


def test_a_worker_that_died_is_followed_by_one_that_sends_the_rest(net, bluesky, ann):
    receipt = {}
    while "job" not in receipt:
        receipt = next(step for step in bluesky.prepare(ann, film(), receipt) if step != receipt)
    assert len(net.calls(PART)) == PARTS
    bluesky.publish(ann, film(), prepared(bluesky, ann, film(), receipt))
    assert whole(net)


def test_a_service_without_parts_gets_it_whole(net, bluesky, ann):
    net.multipart = False
    published(bluesky, ann, film())
    assert whole(net) and len(net.calls(SEND)) == len(net.calls(START)) == 1


@pytest.mark.parametrize("endpoint, status, code, kept", [
    (PART, 404, "UploadNotFound", None), (PART, 400, "UploadExpired", None), (FINISH, 400, "UploadFailed", None),
    (FINISH, 400, "MissingParts", 0), (START, 400, "DailyLimitExceeded", None), (START, 429, "TooManyOpenUploads", None),
    (PART, 503, "ServiceOverloaded", None), (FINISH, 400, "UploadNotReady", None)])
def test_what_can_be_mended_is_tried_again(net, bluesky, ann, endpoint, status, code, kept):
    net.fault(endpoint, status=status, body={"error": code, "message": "Sorry"})
    steps, receipt = bluesky.prepare(ann, film(), {}), {}
    with pytest.raises(Unavailable) as caught:
        for receipt in steps:
            pass
    left = receipt if caught.value.receipt is None else caught.value.receipt
    if code in ("UploadNotFound", "UploadExpired", "UploadFailed"):
        assert "upload" not in left
    if kept is not None:
        assert left["upload"]["sent"] == kept
    bluesky.publish(ann, film(), prepared(bluesky, ann, film(), left))
    assert whole(net)


@pytest.mark.parametrize("code", ["VideoTooLarge", "UnsupportedContentType", "UploadForbidden"])
def test_what_cannot_be_mended_is_refused(net, bluesky, ann, code):
    net.fault(START, status=400, body={"error": code, "message": "Sorry"})
    with pytest.raises(Rejected) as caught:
        prepared(bluesky, ann, film())
    assert caught.value.platform_code == code and not net.calls(PART)


@pytest.mark.parametrize("plan", [
    {"partSizeBytes": 0}, {"partCount": 0}, {"partCount": 10**9}, {"partSizeBytes": 5}, {"jobId": 7}])
def test_a_plan_that_makes_no_sense_is_not_followed(net, bluesky, ann, plan):
    usual = {"jobId": "j", "partSizeBytes": 8 << 20, "partCount": PARTS, "expiresAt": "2030-01-01T00:00:00Z"}
    net.fault(START, status=200, body={**usual, **plan})
    with pytest.raises(Unavailable):
        prepared(bluesky, ann, film())
    assert not net.calls(PART)


def test_a_part_whose_answer_was_lost_is_sent_again(net, bluesky, ann):
    net.fault(PART, drop_answer=True)
    receipt = {}
    with pytest.raises(Unavailable):
        for receipt in bluesky.prepare(ann, film(), {}):
            pass
    bluesky.publish(ann, film(), prepared(bluesky, ann, film(), receipt))
    assert whole(net) and len(net.calls(PART)) == PARTS + 1
