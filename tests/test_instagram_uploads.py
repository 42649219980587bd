"""Videos on their way to Instagram, which stop in the middle."""

import json
from dataclasses import replace

import pytest

from platforms.base import Content
from platforms.errors import Disconnected, Rejected, Unavailable
from tests.live import account, consented, part_of, prepared, published, tried
from tests.networks.instagram import ann, film, instagram, net, own, photo  # noqa: F401
from tests.standins.instagram import CREATE, UPLOAD
from tests.standins.meta_upload import upload_error

FILM = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 400
VIDEO = replace(film(), bytes=len(FILM), open=part_of(FILM))
REEL = Content("hi", (VIDEO,), "reel", key="k-1")
CAROUSEL = Content("hi", (VIDEO, photo(2), VIDEO), "carousel", key="k-1")


def arrived(net):
    """The videos that Instagram has."""
    return [bytes(one.upload.data) for one in net.containers.values() if one.upload]


@pytest.mark.parametrize("content, count", [(REEL, 1), (CAROUSEL, 2), (replace(REEL, caption="", post_type="story"), 1)])
def test_videos_go_up_by_themselves(net, instagram, ann, content, count):
    assert published(instagram, ann, content).id == net.posts[0]["id"]
    assert arrived(net) == [FILM] * count and len(net.calls(UPLOAD)) == count


def test_without_a_page_videos_are_fetched(net, own):
    cake = account(own.redeem(*consent(own))[0])
    published(own, cake, REEL)
    assert net.posts[0]["given"]["video_url"] == "https://media.test/1.mp4" and not net.calls(UPLOAD)


def consent(platform):
    return consented(platform, "https://posthorn.test/connect/callback")


@pytest.mark.parametrize("taken", [0, 1000, len(FILM)])
def test_a_video_goes_on_with_the_byte_after_the_last_that_arrived(net, instagram, ann, taken):
    receipt = json.loads(json.dumps(next(instagram.prepare(ann, REEL, {}))))
    upload = net.containers[receipt["container"]].upload
    upload.size, upload.data = len(FILM), bytearray(FILM[:taken])
    prepared(instagram, ann, REEL, receipt)
    assert arrived(net) == [FILM] and len(net.calls(CREATE)) == 1
    assert [request.size for request in net.calls(UPLOAD)] == [len(FILM) - taken] * (taken < len(FILM))


@pytest.mark.parametrize("content", [REEL, CAROUSEL])
def test_an_upload_whose_answer_was_lost_is_not_sent_twice(net, instagram, ann, content):
    net.fault(UPLOAD, drop_answer=True)
    receipt = {}
    with pytest.raises(Unavailable):
        for receipt in instagram.prepare(ann, content, {}):
            pass
    instagram.publish(ann, content, prepared(instagram, ann, content, receipt))
    assert len(net.calls(UPLOAD)) == len(arrived(net)) and set(arrived(net)) == {FILM} and len(net.posts) == 1


def test_a_finished_upload_is_left_alone(net, instagram, ann):
    steps = instagram.prepare(ann, CAROUSEL, {})
    receipt = [next(steps), next(steps)][-1]
    assert receipt["filled"] == receipt["children"]
    prepared(instagram, ann, CAROUSEL, receipt)
    assert len(net.calls(UPLOAD)) == 2


def test_an_upload_that_was_begun_a_day_ago_begins_anew(net, instagram, ann):
    receipt = next(instagram.prepare(ann, REEL, {}))
    net.advance(86_401)
    assert tried(instagram, ann, REEL, receipt) == (None, 2) and len(net.containers) == 2


@pytest.mark.parametrize("status, kind, retriable, expected", [
    (400, "ProcessingFailedError", False, Rejected), (400, "ProcessingFailedError", True, Unavailable),
    (400, "OffsetInvalidError", False, Unavailable), (400, "PartialRequestError", False, Unavailable),
    (401, "NotAuthorizedError", False, Disconnected), (500, "SomethingError", False, Unavailable)])
def test_errors_of_the_upload_host(net, instagram, ann, status, kind, retriable, expected):
    net.fault(UPLOAD, status=status, body=upload_error(kind, "It is broken", retriable))
    with pytest.raises(expected) as caught:
        prepared(instagram, ann, REEL)
    assert (caught.value.platform_code, caught.value.platform_message) == (kind, "It is broken")
    assert "canary" not in repr(vars(caught.value))
