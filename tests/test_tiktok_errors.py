"""What TikTok says of a post while it works on it, and everything that it refuses."""

from dataclasses import replace

import pytest

from platforms.base import Processing, Published
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.tiktok import SHOWN
from tests.live import part_of, prepared
from tests.networks import tiktok as known
from tests.networks.tiktok import FILM, IMAGE, published, settled
from tests.networks.tiktok import ann, net, tiktok  # noqa: F401
from tests.standins.tiktok_errors import CREATOR, STATUS, UPLOAD, VIDEO


# What becomes of a post.

def test_pauses(net, tiktok, ann):
    net.processing_polls, net.rates["status"] = 40, (1000, 60)
    outcome = tiktok.publish(ann, FILM, prepared(tiktok, ann, FILM))
    pauses = [outcome.after]
    while isinstance(outcome := tiktok.check(ann, outcome.receipt), Processing) and not outcome.receipt["shown"]:
        pauses.append(outcome.after)
    assert pauses == [3.0, 5.0, 10.0, 15.0] + [30.0] * 29 + [300.0] * 8


def test_a_post_for_everybody_has_its_address_once_it_was_looked_through(net, tiktok, ann):
    net.moderation_polls = 2
    assert published(tiktok, ann, FILM).id == net.posts[0]["id"]


def test_a_post_that_is_looked_through_for_long_is_published_all_the_same(net, tiktok, ann):
    net.moderation_polls = 100
    result = published(tiktok, ann, FILM)
    assert result == Published(net.posts[0]["publish_id"], f"{net.url}/@ann")
    assert len(net.calls(STATUS)) == 1 + len(SHOWN) + 1


def test_a_post_for_few_has_no_address(net, tiktok, ann):
    result = published(tiktok, ann, replace(IMAGE, options={"privacyLevel": "SELF_ONLY"}))
    assert result == Published(net.posts[0]["publish_id"], f"{net.url}/@ann") and len(net.calls(STATUS)) == 2


@pytest.mark.parametrize("name, ids, shown", [
    ("publicaly_available_post_id", [7400000000000000001], "7400000000000000001"),
    ("publicaly_available_post_id", ["74"], "74"), ("publicly_available_post_id", [74], "74"),
])
def test_spellings_of_the_id(net, tiktok, ann, name, ids, shown):
    outcome = tiktok.publish(ann, FILM, prepared(tiktok, ann, FILM))
    net.fault(STATUS, status=200, body={"data": {"status": "PUBLISH_COMPLETE", name: ids}, "error": {"code": "ok"}})
    assert tiktok.check(ann, outcome.receipt).id == shown


@pytest.mark.parametrize("reason, expected, rule", [
    ("file_format_check_failed", Rejected, "media_type"), ("duration_check_failed", Rejected, "media_duration"),
    ("frame_rate_check_failed", Rejected, "media_frame_rate"), ("picture_size_check_failed", Rejected, "media_size"),
    ("internal", Rejected, "internal"), ("video_pull_failed", Rejected, "media_url"),
    ("photo_pull_failed", Rejected, "media_url"), ("publish_cancelled", Rejected, "cancelled"),
    ("auth_removed", Rejected, "permission"),
    ("spam_risk_too_many_posts", Rejected, "quota"), ("spam_risk_user_banned_from_posting", Rejected, "banned"),
    ("spam_risk_text", Rejected, "spam"), ("spam_risk", Rejected, "spam"), ("something_new", Rejected, "failed"),
])
def test_posts_that_fail(net, tiktok, ann, reason, expected, rule):
    net.failing = reason
    with pytest.raises(expected) as caught:
        published(tiktok, ann, IMAGE)
    assert (caught.value.rule, caught.value.platform_code) == (rule, reason) and not net.posts


def test_a_file_that_is_no_video(net, tiktok, ann):
    broken = replace(FILM, media=(replace(FILM.media[0], bytes=9, open=part_of(b"no video!")),))
    with pytest.raises(Rejected) as caught:
        published(tiktok, ann, broken)
    assert caught.value.rule == "media_type"


@pytest.mark.parametrize("row, expected", [
    ("invalid_publish_id", Unconfirmed), ("token_not_authorized_for_specified_publish_id", Unconfirmed),
    ("scope_not_authorized", Unconfirmed), ("invalid_param", Unconfirmed), ("access_token_invalid", Disconnected),
    ("rate_limit_exceeded", Unavailable), ("internal_error", Unavailable), ("busy_inside", Unavailable),
    ("bad_gateway", Unavailable),
])
def test_a_question_that_fails_says_nothing_about_the_post(net, tiktok, ann, row, expected):
    outcome = tiktok.publish(ann, FILM, prepared(tiktok, ann, FILM))
    net.fail(row, endpoint=STATUS)
    with pytest.raises(PlatformError) as caught:
        tiktok.check(ann, outcome.receipt)
    assert type(caught.value) is expected


# Errors.

ROWS = {
    "access_token_invalid": (Disconnected, None, None), "scope_not_authorized": (PermissionMissing, None, None),
    "scope_permission_missed": (PermissionMissing, None, None), "rate_limit_exceeded": (Unavailable, None, 60),
    "spam_risk_too_many_posts": (Unavailable, None, 3600), "spam_risk_too_many_pending_share": (Unavailable, None, 3600),
    "reached_active_user_cap": (Unavailable, None, 3600), "spam_risk_user_banned_from_posting": (Rejected, "banned", None),
    "unaudited_client_can_only_post_to_private_accounts": (Rejected, "app", None),
    "privacy_level_option_mismatch": (Rejected, "privacy_level", None), "url_ownership_unverified": (Rejected, "app", None),
    "invalid_param": (Rejected, None, None), "invalid_params": (Rejected, None, None),
    "app_version_check_failed": (Rejected, "app_version", None),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("status", [None, 200], ids=["its status", "status 200"])
def test_errors_of_publishing_photos(net, tiktok, ann, row, status):
    receipt = prepared(tiktok, ann, IMAGE)
    net.fail(row, **({"status": status} if status else {}))
    with pytest.raises(PlatformError) as caught:
        tiktok.publish(ann, IMAGE, receipt)
    error, (expected, rule, wait) = caught.value, ROWS[row]
    assert (type(error), error.rule, getattr(error, "retry_after", None)) == (expected, rule, wait) and not net.posts
    assert (error.platform_code, error.platform_message) == (row, f"{row}, says TikTok (log_id 20261121100000AB12)")
    assert (error.code == "rate_limited") == (wait is not None) and "canary" not in repr(vars(error))


@pytest.mark.parametrize("row", ["internal_error", "busy_inside", "bad_gateway"])
def test_troubles_inside_tiktok(net, tiktok, ann, row):
    receipt = prepared(tiktok, ann, IMAGE)
    net.fail(row)
    with pytest.raises(Unconfirmed):
        tiktok.publish(ann, IMAGE, receipt)
    for endpoint, content in ((CREATOR, IMAGE), (VIDEO, FILM)):
        net.fail(row, endpoint=endpoint)
        with pytest.raises(Unavailable):
            prepared(tiktok, ann, content)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("endpoint", [CREATOR, VIDEO])
def test_errors_before_publishing_a_video(net, tiktok, ann, row, endpoint):
    net.fail(row, endpoint=endpoint)
    with pytest.raises(ROWS[row][0]) as caught:
        prepared(tiktok, ann, FILM)
    assert caught.value.platform_code == row


@pytest.mark.parametrize("status, expected", [(400, Rejected), (429, Unavailable), (500, Unconfirmed), (403, Unavailable),
                                              (404, Unavailable), (416, Unavailable)])
def test_errors_of_the_last_chunk(net, tiktok, ann, status, expected):
    receipt = prepared(tiktok, ann, FILM)
    net.fault(UPLOAD, status=status)
    with pytest.raises(PlatformError) as caught:
        tiktok.publish(ann, FILM, receipt)
    assert type(caught.value) is expected and "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize("body", [{}, "<html>", {"error": {"code": "ok"}}, {"data": {}, "error": {"code": "ok"}}, {"error": 7}])
@pytest.mark.parametrize("endpoint", [CREATOR, VIDEO])
def test_nonsense_before_publishing(net, tiktok, ann, endpoint, body):
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(Unavailable):
        prepared(tiktok, ann, FILM)


def test_a_creator_who_may_not_post_now(net, tiktok, ann):
    net.creators[ann.platform_id].blocked = "spam_risk_too_many_posts"
    with pytest.raises(Unavailable) as caught:
        prepared(tiktok, ann, FILM)
    assert caught.value.retry_after == 3600


def test_the_limit_of_a_minute(net, tiktok, ann):
    for _ in range(6):
        prepared(tiktok, ann, FILM)
    with pytest.raises(Unavailable) as caught:
        prepared(tiktok, ann, FILM)
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 60)
    net.advance(60)
    assert prepared(tiktok, ann, FILM)


def test_a_token_that_has_ended(net, tiktok, ann):
    receipt = prepared(tiktok, ann, IMAGE)
    known.expire(net)
    with pytest.raises(Disconnected):
        tiktok.publish(ann, IMAGE, receipt)
    renewed = replace(ann, credentials=tiktok.refresh(ann, force=True))
    assert settled(tiktok, renewed, tiktok.publish(renewed, IMAGE, receipt)) and len(net.posts) == 1
