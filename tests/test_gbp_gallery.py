"""Photos and videos of the gallery of a Google Business Profile."""

from dataclasses import replace

import pytest

from platforms.base import Absent, Published
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import prepared, published, video
from tests.networks.gbp import SAMPLES, cafe, gbp, net  # noqa: F401
from tests.standins.gbp import ADD, BEGIN, MEDIA, UPLOAD

PHOTO, VIDEO = SAMPLES["image"], SAMPLES["video"]
NAME, ON_THE_MAP = "accounts/111/locations/222/media/AF1Qip1", "https://maps.google.com/maps?cid=222"
LONG_AGO = 700.0


def added(net):
    """What the gallery has got, without the file itself."""
    return [{name: value for name, value in one["item"].items() if name not in ("name", "googleUrl", "createTime")}
            for one in net.added]


def test_photo(net, gbp, cafe):
    assert published(gbp, cafe, PHOTO) == Published(NAME, ON_THE_MAP)
    assert added(net) == [{"mediaFormat": "PHOTO", "locationAssociation": {"category": "INTERIOR"}, "description": "Our oven"}]
    assert net.added[0]["data"] == PHOTO.media[0].open().read() and net.posts == []
    assert net.calls(UPLOAD)[0].media_type == "image/png"


def test_video(net, gbp, cafe):
    assert published(gbp, cafe, VIDEO).id == NAME
    assert added(net) == [{"mediaFormat": "VIDEO", "locationAssociation": {"category": "ADDITIONAL"}}]
    assert net.added[0]["data"] == VIDEO.media[0].open().read() and net.calls(UPLOAD)[0].media_type == "video/mp4"


def test_a_cover_has_no_description(net, gbp, cafe):
    published(gbp, cafe, replace(PHOTO, options={"category": "COVER"}))
    assert added(net) == [{"mediaFormat": "PHOTO", "locationAssociation": {"category": "COVER"}}]


def test_the_category_tells_a_file_of_the_gallery_from_a_post(gbp):
    photo = PHOTO.media
    assert gbp.infer(photo, ["category"]) == "image" and gbp.infer(photo) == gbp.infer(photo, ["language"]) == "update"
    problems = gbp.problems(replace(VIDEO, post_type=None, options={}))
    assert [(problem.path, problem.rule) for problem in problems] == [("options/category", "required")]


@pytest.mark.parametrize("content, rules", [
    (replace(PHOTO, media=(replace(PHOTO.media[0], width=249, height=250),)), ["media_width"]),
    (replace(PHOTO, media=(replace(PHOTO.media[0], width=250, height=250),)), []),
    (replace(PHOTO, media=(replace(PHOTO.media[0], bytes=10_239),)), ["media_bytes"]),
    (replace(VIDEO, media=(video(width=719, height=1280, duration=30.5),)), ["media_width", "media_duration"]),
    (replace(VIDEO, media=(video(width=1280, height=720, duration=30.0),)), []),
    (replace(VIDEO, media=(replace(video(width=720, height=720), bytes=75 * 1_048_576 + 1),)), ["media_bytes"]),
    (replace(VIDEO, media=(replace(video(width=720, height=720), mime_type="video/webm"),)), ["media_type"]),
])
def test_files_that_the_gallery_does_not_take(gbp, content, rules):
    assert [(problem.path, problem.rule) for problem in gbp.problems(content)] == [("media/0", rule) for rule in rules]


def test_a_finished_upload_is_not_repeated(net, gbp, cafe):
    receipt = prepared(gbp, cafe, PHOTO)
    seen = len(net.requests)
    assert list(gbp.prepare(cafe, PHOTO, receipt)) == [] and len(net.requests) == seen and net.added == []
    assert "accessToken" not in receipt and gbp.publish(cafe, PHOTO, receipt)


@pytest.mark.parametrize("endpoint", [BEGIN, UPLOAD])
@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"status": 503, "body": ""}, {"status": 200, "body": {}}])
def test_an_upload_that_breaks_off_is_begun_anew(net, gbp, cafe, endpoint, fault):
    if endpoint == UPLOAD and fault.get("status") == 200:
        fault = {"status": 500, "acts": True}
    net.fault(endpoint, **fault)
    with pytest.raises(Unavailable):
        prepared(gbp, cafe, PHOTO)
    assert published(gbp, cafe, PHOTO) and len(net.added) == 1


@pytest.mark.parametrize("name", ["../../v4/accounts", "a b", "", 7])
def test_a_name_of_an_upload_that_leads_elsewhere_is_not_followed(net, gbp, cafe, name):
    net.fault(BEGIN, status=200, body={"resourceName": name})
    with pytest.raises(Unavailable):
        prepared(gbp, cafe, PHOTO)
    assert not net.calls(UPLOAD)


@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 500, "body": "", "acts": True}, True), ({"status": 200, "body": "<html>", "acts": True}, True),
    ({"status": 200, "body": {"name": "../x"}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "500 after acting", "garbage after acting", "no usable name"])
@pytest.mark.parametrize("content", [PHOTO, VIDEO], ids=["photo", "video"])
def test_a_file_in_doubt_is_looked_for(net, gbp, cafe, content, fault, there):
    receipt = prepared(gbp, cafe, content)
    net.fault(ADD, **fault)
    with pytest.raises(Unconfirmed):
        gbp.publish(cafe, content, receipt)
    found = gbp.find(cafe, replace(content, sent_ago=LONG_AGO), receipt)
    assert found == (Published(NAME, ON_THE_MAP) if there else Absent()) and len(net.added) == there


def test_one_of_several_files_that_may_be_ours_cannot_be_told(net, gbp, cafe):
    for _ in range(2):
        published(gbp, cafe, PHOTO)
    assert gbp.find(cafe, replace(PHOTO, sent_ago=LONG_AGO), {}) is None


@pytest.mark.parametrize("change", [
    {"description": "Our own"}, {"mediaFormat": "VIDEO"}, {"createTime": "2020-01-01T00:00:00Z"},
    {"locationAssociation": {"category": "EXTERIOR"}}, {"locationAssociation": 7},
])
def test_files_that_only_resemble_ours(net, gbp, cafe, change):
    published(gbp, cafe, PHOTO)
    net.locations["222"].media[0].update(change)
    assert gbp.find(cafe, replace(PHOTO, sent_ago=LONG_AGO), {}) == Absent()
    assert gbp.find(cafe, replace(PHOTO, sent_ago=30.0), {}) is None


def test_a_gallery_that_may_not_be_listed_cannot_tell(net, gbp, cafe):
    net.fail("permission_denied", endpoint=MEDIA)
    assert gbp.find(cafe, replace(PHOTO, sent_ago=LONG_AGO), {}) is None


@pytest.mark.parametrize("row, expected, rule", [
    ("unauthenticated", Disconnected, None), ("scope_missing", PermissionMissing, None), ("api_off", Rejected, "app"),
    ("permission_denied", PermissionMissing, None), ("not_found", Rejected, None), ("invalid", Rejected, None),
    ("unverified", Rejected, "location"), ("exhausted", Unavailable, None), ("internal", Unconfirmed, None),
    ("unavailable", Unconfirmed, None),
])
def test_errors_of_adding(net, gbp, cafe, row, expected, rule):
    receipt = prepared(gbp, cafe, PHOTO)
    net.fail(row, endpoint=ADD)
    with pytest.raises(PlatformError) as caught:
        gbp.publish(cafe, PHOTO, receipt)
    assert (type(caught.value), caught.value.rule) == (expected, rule) and not net.added
    assert "canary" not in repr(vars(caught.value)).replace(receipt["upload"], "")


def test_a_file_that_google_does_not_get_is_uploaded_once_more(net, gbp, cafe):
    net.fail("photo_upload", endpoint=ADD, times=2)
    with pytest.raises(Unavailable) as caught:
        published(gbp, cafe, PHOTO)
    again = prepared(gbp, cafe, PHOTO, caught.value.receipt)
    with pytest.raises(Rejected) as refused:
        gbp.publish(cafe, PHOTO, again)
    assert refused.value.rule == "media" and len(net.calls(UPLOAD)) == 2


def test_a_file_that_is_no_picture(net, gbp, cafe):
    broken = replace(PHOTO, media=(replace(PHOTO.media[0], open=VIDEO.media[0].open, bytes=VIDEO.media[0].bytes),))
    with pytest.raises(Unavailable) as caught:
        gbp.publish(cafe, broken, prepared(gbp, cafe, broken))
    assert caught.value.platform_code == "PHOTO_UPLOAD_FAILED"
