"""Files on their way to LinkedIn: images whole, videos part by part, over killed workers and lost answers."""

import json
from dataclasses import replace

import pytest

from platforms.base import Content, Waiting
from platforms.errors import PermissionMissing, Rejected, Unavailable
from platforms.linkedin_media import BLIND
from tests.live import MP4, image, part_of, prepared, tried, video
from tests.networks.linkedin import ann, linkedin, net, page  # fixtures
from tests.standins.linkedin_media import PART_BYTES
from tests.standins.linkedin_rules import IMAGE_STATE, IMAGES, PUT_IMAGE, PUT_PART, PUT_THUMBNAIL, VIDEO_STATE, VIDEOS


def film(data=MP4 + bytes(PART_BYTES * 2 + 7)):
    """A video of three parts."""
    return Content("hi", media=(replace(video(), bytes=len(data), open=part_of(data)),), key="k-1")


def test_a_video_goes_in_the_parts_that_linkedin_wants(net, linkedin, page):
    content = film()
    linkedin.publish(page, content, prepared(linkedin, page, content))
    [asset] = net.assets.values()
    assert [request.size for request in net.calls(PUT_PART)] == [PART_BYTES, PART_BYTES, len(MP4) + 7]
    assert asset.data == MP4 + bytes(PART_BYTES * 2 + 7) and len(net.posts) == 1
    final = json.loads(net.calls(VIDEOS)[-1].body)["finalizeUploadRequest"]
    assert final == {"video": asset.urn, "uploadToken": f"t-{asset.key}", "uploadedPartIds": list(asset.tags.values())}
    assert not any("Authorization" in request.headers for request in net.calls(PUT_PART))


@pytest.mark.parametrize("turned", [False, True], ids=["video first", "image first"])
@pytest.mark.parametrize("who", ["ann", "page"])
def test_an_image_beside_a_video_is_its_thumbnail(net, linkedin, request, who, turned):
    author, [clip] = request.getfixturevalue(who), film().media
    content = Content("hi", media=(image(5), clip) if turned else (clip, image(5)), key="k-1")
    result = linkedin.publish(author, content, prepared(linkedin, author, content))
    [asset] = net.assets.values()
    assert asset.thumbnail[-1] == 5 and len(net.calls(PUT_THUMBNAIL)) == 1 and result.id == net.posts[0]["id"]
    assert net.posts[0]["body"]["content"] == {"media": {"id": asset.urn}}


@pytest.mark.parametrize("fault, expected", [
    ({"status": 503, "body": ""}, (type(None), 2)), ({"drop_answer": True}, (type(None), 2)),
    ({"status": 400, "body": {"code": "EXPIRED_UPLOAD_URL"}}, (type(None), 2)), ({"status": 415, "body": ""}, (Rejected, 1)),
    ({"status": 400, "body": {"code": "EXPIRED_UPLOAD_URL"}, "times": None}, (Rejected, 2))])
def test_a_thumbnail_that_is_not_taken(net, linkedin, page, fault, expected):
    net.fault(PUT_THUMBNAIL, **fault)
    error, tries = tried(linkedin, page, Content("hi", media=(*film().media, image(5)), key="k-1"))
    assert (type(error), tries) == expected


def test_an_image_goes_whole_and_with_the_token(net, linkedin, ann):
    content = Content("hi", media=(image(),), key="k-1")
    prepared(linkedin, ann, content)
    [put] = net.calls(PUT_IMAGE)
    assert put.size == content.media[0].bytes and put.headers["Authorization"] == f"Bearer {ann.credentials['accessToken']}"
    assert json.loads(net.calls(IMAGES)[0].body) == {"initializeUploadRequest": {"owner": ann.platform_id}}


def test_processing_is_waited_for_ever_more_patiently(net, linkedin, page):
    net.polls = 30
    content = film(MP4 + bytes(75_000))
    waits = [step.after for step in linkedin.prepare(page, content, {}) if isinstance(step, Waiting)]
    assert waits == [5] * 4 + [10] * 4 + [20] * 4 + [40] * 4 + [80] * 4 + [160] * 4 + [300] * 6
    assert len(net.calls(VIDEO_STATE)) == 31


def test_images_of_a_page_are_asked_after(net, linkedin, page):
    content = Content("hi", media=(image(1), image(2)), key="k-1")
    steps = list(linkedin.prepare(page, content, {}))
    assert [step.after for step in steps if isinstance(step, Waiting)] == [5, 5] and len(net.calls(IMAGE_STATE)) == 4
    assert linkedin.publish(page, content, steps[-1])


def test_images_of_a_member_cannot_be_asked_after_and_are_given_time(net, linkedin, ann):
    content = Content("hi", media=(image(1), image(2), image(3)), key="k-1")
    steps = list(linkedin.prepare(ann, content, {}))
    assert [step.after for step in steps if isinstance(step, Waiting)] == [BLIND] and len(net.calls(IMAGE_STATE)) == 1
    assert linkedin.publish(ann, content, steps[-1].receipt)


def test_a_finished_preparation_asks_for_nothing(net, linkedin, ann):
    content = Content("hi", media=(image(1), image(2)), key="k-1")
    receipt = prepared(linkedin, ann, content)
    seen = len(net.requests)
    assert list(linkedin.prepare(ann, content, receipt)) == [] and len(net.requests) == seen


@pytest.mark.parametrize("done", range(1, 10))
def test_a_preparation_goes_on_where_a_worker_was_killed(net, linkedin, page, done):
    content, receipt = film(), {}
    steps = linkedin.prepare(page, content, {})
    for _, step in zip(range(done), steps):
        receipt = json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
    steps.close()
    linkedin.publish(page, content, prepared(linkedin, page, content, receipt))
    assert len(net.assets) == 1 and len(net.calls(PUT_PART)) == 3 and len(net.posts) == 1
    assert "canary" not in json.dumps(receipt)


@pytest.mark.parametrize("endpoint", [VIDEOS, PUT_PART, VIDEO_STATE])
@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"drop_before": True}, {"status": 503}])
def test_a_step_whose_answer_was_lost_is_made_again(net, linkedin, page, endpoint, fault):
    content, receipt = film(), {}
    net.fault(endpoint, **fault)
    with pytest.raises(Unavailable) as caught:
        for step in linkedin.prepare(page, content, {}):
            receipt = step.receipt if isinstance(step, Waiting) else step
    assert caught.value.receipt is None
    linkedin.publish(page, content, prepared(linkedin, page, content, receipt))
    assert len(net.posts) == 1


@pytest.mark.parametrize("endpoint", [IMAGES, PUT_IMAGE])
@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"drop_before": True}, {"status": 503}])
def test_an_image_whose_answer_was_lost_is_sent_again(net, linkedin, ann, endpoint, fault):
    content = Content("hi", media=(image(1), image(2)), key="k-1")
    net.fault(endpoint, **fault)
    with pytest.raises(Unavailable):
        prepared(linkedin, ann, content)
    linkedin.publish(ann, content, prepared(linkedin, ann, content))
    assert len(net.posts) == 1


@pytest.mark.parametrize("endpoint, status", [
    (PUT_PART, 400), (PUT_PART, 403), (PUT_PART, 410), (VIDEOS, 400), (VIDEO_STATE, 404)])
def test_an_upload_that_linkedin_forgot_begins_again_once(net, linkedin, page, endpoint, status):
    content, gone = film(), {"status": status, "body": net.errors["expired_url"]["body"]}
    receipt = with_all_parts(linkedin, page, content) if endpoint == VIDEOS else {}
    net.fault(endpoint, **gone)
    with pytest.raises(Unavailable) as caught:
        prepared(linkedin, page, content, receipt)
    anew = caught.value.receipt
    assert anew == {"media": [], "again": True} and caught.value.platform_code == "EXPIRED_UPLOAD_URL"
    receipt = with_all_parts(linkedin, page, content, anew) if endpoint == VIDEOS else anew
    net.fault(endpoint, **gone)
    with pytest.raises((Rejected, PermissionMissing)):
        prepared(linkedin, page, content, receipt)
    linkedin.publish(page, content, prepared(linkedin, page, content, anew))
    assert len(net.posts) == 1


def with_all_parts(linkedin, account, content, receipt=None):
    """The receipt of a video whose upload only has to be ended, which has the address of what begins it."""
    for receipt in linkedin.prepare(account, content, receipt or {}):
        if receipt["media"] and receipt["media"][0]["parts"] == []:
            return receipt


def test_upload_addresses_end(net, linkedin, page):
    content = film()
    steps = linkedin.prepare(page, content, {})
    receipt = [next(steps) for _ in range(3)][-1]
    net.advance(31 * 86_400)
    with pytest.raises(Unavailable) as caught:
        prepared(linkedin, page, content, receipt)
    assert caught.value.platform_code == "EXPIRED_UPLOAD_URL" and caught.value.receipt["media"] == []


def test_a_file_that_cannot_be_processed(net, linkedin, page):
    with pytest.raises(Rejected) as caught:
        prepared(linkedin, page, film(b"not a film" + bytes(75_000)))
    error = caught.value
    assert (error.rule, error.platform_code) == ("media", "PROCESSING_FAILED")
    assert error.platform_message == "The codec is not supported"


@pytest.mark.parametrize("endpoint, body, content", [
    (IMAGES, {}, Content("hi", media=(image(),))),
    (IMAGES, {"value": {"image": "urn:li:image:X"}}, Content("hi", media=(image(),))),
    (IMAGES, {"value": {"image": "urn:li:person:X", "uploadUrl": "http://127.0.0.1:1/"}}, Content("hi", media=(image(),))),
    (IMAGES, "<html>", Content("hi", media=(image(),))),
    (VIDEOS, {"value": {"video": "urn:li:video:X", "uploadInstructions": []}}, film()),
    (VIDEOS, {"value": {"video": "urn:li:video:../me", "uploadInstructions": []}}, film()),
    (VIDEOS, {"value": {"video": "urn:li:video:X", "uploadInstructions": [
        {"uploadUrl": "https://a.test", "firstByte": 0, "lastByte": 5}]}}, film()),
    (VIDEOS, {"value": {"video": "urn:li:video:X", "uploadInstructions": [
        {"uploadUrl": "https://a.test", "firstByte": 1, "lastByte": PART_BYTES * 2 + 6 + len(MP4)}]}}, film()),
    (VIDEO_STATE, {"status": 7}, film()), (PUT_PART, {}, film()),
])
def test_nonsense_is_no_progress(net, linkedin, page, endpoint, body, content):
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(Unavailable):
        prepared(linkedin, page, content)


def test_the_token_goes_to_no_plain_address(net, linkedin, ann):
    net.fault(IMAGES, status=200, body={"value": {"image": "urn:li:image:X", "uploadUrl": "http://198.51.100.1/up"}})
    with pytest.raises(Rejected) as caught:
        prepared(linkedin, ann, Content("hi", media=(image(),)))
    assert caught.value.rule == "host"
