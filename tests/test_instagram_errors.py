"""What becomes of a post on Instagram whose files come to nothing, or that is refused."""

from dataclasses import replace

import pytest

from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import prepared, published, tried
from tests.networks.instagram import SAMPLES, ann, instagram, net, photo  # noqa: F401
from tests.standins.instagram import CREATE, ERRORS, PUBLISH

IMAGE, CAROUSEL = SAMPLES["image"], SAMPLES["carousel"]
FAILED = "Error: Media upload has failed with error code"


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
    (f"{FAILED} 2207020", 3), (f"{FAILED} 2207076", 1), (f"{FAILED} 2207077", 1), ("Something else", 1),
])
def test_a_file_that_cannot_be_processed(net, instagram, ann, reason, tries):
    net.broken["upload"] = reason
    error, count = tried(instagram, ann, CAROUSEL)
    assert type(error) is Rejected and count == tries
    assert (error.rule, error.platform_message) == ("media", reason)


@pytest.mark.parametrize("row", ["fetch_timeout", "creation_failed", "upload_failed", "fetch_failed", "no_media",
                                 "lost_upload", "lost_media", "media_gone"])
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


@pytest.mark.parametrize("row", ["not_ready", "not_found", "no_media", "media_expired"])
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

SURELY_NOT = {"app_limit", "user_limit", "page_limit", "call_limit", "account_limit", "quota"}
AGAIN = {"not_ready", "not_found", "no_media", "media_expired"}
LACKING = {"permission", "scope", "ability", "capability"}
DEAD = {"expired", "checkpoint", "password_changed", "unconfirmed", "logged_out", "no_role", "removed", "session"}
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


@pytest.mark.parametrize("row", OF_PUBLISHING)
def test_errors_of_preparing_leave_nothing_in_doubt(net, instagram, ann, row):
    net.fail(row, endpoint=CREATE, times=9)
    error, _ = tried(instagram, ann, IMAGE) if row in {"no_media", "media_expired"} else (refusal(instagram, ann), 1)
    groups = [(Unavailable, SURELY_NOT | DOUBTFUL), (Disconnected, DEAD), (PermissionMissing, LACKING)]
    assert type(error) is next((kind for kind, rows in groups if row in rows), Rejected) and not net.containers


def refusal(instagram, ann):
    """The error that a preparation ends with."""
    with pytest.raises(PlatformError) as caught:
        prepared(instagram, ann, IMAGE)
    return caught.value


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
