"""What becomes of a post on Facebook that is refused."""

import pytest

from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.facebook import Facebook
from tests.live import http_for, prepared
from tests.networks import facebook as network
from tests.networks.facebook import SAMPLES, facebook, net, page, posted  # noqa: F401
from tests.standins.facebook import ERRORS, FEED, PHOTOS

TEXT = SAMPLES["text"]


SURELY_NOT = {"app_limit", "user_limit", "page_limit", "feature_limit", "call_limit", "pages_limit", "too_fast"}
DEAD = {"expired", "app_removed", "checkpoint", "password_changed", "unconfirmed", "logged_out", "no_role", "session"}
LACKING = {"permission", "scope", "ability", "capability", "authorization", "no_video", "no_video_permission"}
DOUBTFUL = {"unknown", "unknown_as_400", "service", "passing", "bad_gateway", "upload_timeout", "upload_problem",
            "upload_hiccup", "video_hiccup", "link_hiccup"}
OF_THE_FEED = sorted(row for row, details in ERRORS.items() if details["endpoint"] == FEED)


def meaning(row, doubt):
    groups = {Unavailable: SURELY_NOT, Disconnected: DEAD, PermissionMissing: LACKING, doubt: DOUBTFUL}
    return next((error for error, rows in groups.items() if row in rows), Rejected)


@pytest.mark.parametrize("row", OF_THE_FEED)
def test_errors_of_publishing(net, facebook, page, row):
    receipt = prepared(facebook, page, TEXT)
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        facebook.publish(page, TEXT, receipt)
    error, body = caught.value, ERRORS[row]["body"]
    assert type(error) is meaning(row, Unconfirmed) and not net.posts
    if isinstance(body, dict):
        assert error.platform_message == body["error"].get("error_user_msg", body["error"]["message"])
        assert error.platform_code.split("/")[0] == str(body["error"]["code"])
    assert "canary" not in repr(vars(error))
    if row in SURELY_NOT:
        assert (error.code, error.retry_after) == ("rate_limited", 3600 if row == "too_fast" else 900)


@pytest.mark.parametrize("row", OF_THE_FEED)
def test_errors_of_preparing_leave_nothing_in_doubt(net, facebook, page, row):
    net.fail(row, endpoint=PHOTOS)
    with pytest.raises(PlatformError) as caught:
        prepared(facebook, page, SAMPLES["image"])
    assert type(caught.value) is (Unavailable if row in DOUBTFUL else meaning(row, Unconfirmed))


def test_facebook_says_for_how_long_it_wants_quiet(net, facebook, page):
    net.rates["calls"], net.regain = (1, 3600), 7
    facebook.profile(page)
    with pytest.raises(Unavailable) as caught:
        facebook.publish(page, TEXT, {})
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 7 * 60)


@pytest.mark.parametrize("usage", ["{", "[]", "{\"1\": 7}", "{\"1\": [{}]}", "{\"1\": []}"])
def test_a_usage_that_nobody_understands_does_no_harm(net, facebook, page, usage):
    net.fail("page_limit", headers={"X-Business-Use-Case-Usage": usage})
    with pytest.raises(Unavailable) as caught:
        facebook.publish(page, TEXT, {})
    assert caught.value.retry_after == 900


def test_a_text_that_was_posted_just_before_is_refused(net, facebook, page):
    posted(facebook, page, TEXT)
    with pytest.raises(Rejected) as caught:
        facebook.publish(page, TEXT, prepared(facebook, page, TEXT))
    assert caught.value.platform_code == "506" and len(net.posts) == 1


def test_every_call_proves_that_the_app_makes_it(net, facebook, page):
    for kind in ("image", "video"):
        posted(facebook, page, SAMPLES[kind])
    assert all("appsecret_proof" in dict(request.query) for request in net.requests)


def test_without_a_secret_there_is_no_proof(net, page):
    facebook = Facebook(http_for(net), {**network.settings(net), "client_secret": ""})
    posted(facebook, page, TEXT)
    assert not any("appsecret_proof" in dict(request.query) for request in net.requests)
