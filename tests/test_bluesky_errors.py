"""What goes wrong on Bluesky, and what becomes of a post then."""

import pytest

from platforms.base import Content
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import PNG, image, prepared, tried, video
from tests.networks.bluesky import ann, bluesky, net  # fixtures

PUT, APPLY, UPLOAD = "com.atproto.repo.putRecord", "com.atproto.repo.applyWrites", "com.atproto.repo.uploadBlob"
SEND_VIDEO, POLL_VIDEO = "app.bsky.video.uploadVideo", "app.bsky.video.getJobStatus"
GATES = {"replyControl": ["followers"], "disableQuotes": True}


@pytest.mark.parametrize("row, expected", [
    ("expired_token", Disconnected), ("invalid_token", Disconnected), ("auth_missing", Disconnected),
    ("deactivated", Disconnected), ("taken_down", Disconnected), ("invalid_oauth_token", Disconnected),
    ("dpop_nonce", Disconnected), ("scope_missing", PermissionMissing), ("account_not_found", Disconnected),
    ("invalid_record", Rejected), ("blob_not_found", Unavailable), ("rate_limited", Unavailable), ("server_error", Unconfirmed),
    ("upstream_failure", Unconfirmed), ("unavailable", Unconfirmed), ("gateway_timeout", Unconfirmed),
])
@pytest.mark.parametrize("options", [{}, GATES], ids=["plain", "with gates"])
def test_errors_of_publishing(net, bluesky, ann, options, row, expected):
    receipt = prepared(bluesky, ann, Content("hi"))
    net.fail(row, endpoint=APPLY if options else PUT)
    with pytest.raises(PlatformError) as caught:
        bluesky.publish(ann, Content("hi", options=options), receipt)
    error, words = caught.value, net.errors[row]["body"]
    assert type(error) is expected and not net.posts
    if isinstance(words, dict):
        assert (error.platform_code, error.platform_message) == (words["error"], words["message"])
    if row == "rate_limited":
        assert error.code == "rate_limited" and error.retry_after > 1_000_000
    assert ann.credentials["accessJwt"] not in repr(vars(error))


def test_a_key_that_is_taken_is_our_own_post(net, bluesky, ann):
    receipt = prepared(bluesky, ann, Content("hi"))
    net.fail("invalid_swap")
    assert bluesky.publish(ann, Content("hi"), receipt).id.endswith(receipt["rkey"])


@pytest.mark.parametrize("fault, expected", [
    ({"status": 500, "body": {"error": "InternalServerError", "message": "Internal Server Error"}}, Unavailable),
    ({"status": 502, "body": "<html>"}, Unavailable), ({"drop_answer": True}, Unavailable),
    ({"status": 200, "body": {"blob": {}}}, Unavailable),
    ({"status": 429, "body": {"error": "RateLimitExceeded"}}, Unavailable),
    ({"status": 413, "body": {"error": "PayloadTooLarge"}}, Rejected),
    ({"status": 400, "body": {"error": "ExpiredToken"}}, Disconnected),
])
def test_errors_of_uploading(net, bluesky, ann, fault, expected):
    net.fault(UPLOAD, **fault)
    with pytest.raises(expected):
        prepared(bluesky, ann, Content("hi", media=(image(),)))


def test_a_file_that_the_server_fails_over_again_and_again_is_to_blame(net, bluesky, ann):
    content = Content("hi", media=(image(1), image(2)))
    net.fail("server_error", endpoint=UPLOAD, times=5)
    error, tries = tried(bluesky, ann, content)
    assert (type(error), error.rule, tries) == (Rejected, "media", 5)
    net.fail("server_error", endpoint=UPLOAD, times=4)
    assert tried(bluesky, ann, content) == (None, 5)


def test_a_file_above_the_servers_own_limit_is_refused_although_it_hangs_up_early(net, bluesky, ann):
    net.blob_bytes = 1000
    with pytest.raises(Rejected) as caught:
        prepared(bluesky, ann, Content("hi", media=(image(data=PNG + bytes(1_900_000)),)))
    assert caught.value.platform_code == "PayloadTooLarge"


@pytest.mark.parametrize("endpoint, fault, expected", [
    (SEND_VIDEO, {"status": 401, "body": {"error": "invalid token: wrong audience"}}, Rejected),
    (SEND_VIDEO, {"status": 503, "body": "<html>"}, Unavailable),
    (SEND_VIDEO, {"drop_answer": True}, Unavailable),
    (SEND_VIDEO, {"status": 409, "body": {"error": "already_exists"}}, Unavailable),
    (POLL_VIDEO, {"status": 502, "body": "<html>"}, Unavailable),
    (POLL_VIDEO, {"status": 200, "body": {}}, Unavailable),
])
def test_errors_of_the_video_service(net, bluesky, ann, endpoint, fault, expected):
    net.fault(endpoint, **fault)
    with pytest.raises(expected) as caught:
        prepared(bluesky, ann, Content("hi", media=(video(),)))
    assert getattr(caught.value, "receipt", None) is None


def test_a_video_needs_a_confirmed_address(net, bluesky, ann):
    net.accounts[ann.platform_id].email_confirmed = False
    with pytest.raises(Rejected) as caught:
        prepared(bluesky, ann, Content("hi", media=(video(),)))
    assert caught.value.platform_code == "unconfirmed_email"


@pytest.mark.parametrize("code, expected", [
    ("validation_failure", Rejected), ("encoding_failure", Rejected), ("pds_upload_unsupported_blob_size", Rejected),
    ("pds_upload_failure", Unavailable), ("generic_failure", Unavailable)])
def test_a_video_that_cannot_be_processed(net, bluesky, ann, code, expected):
    job = {"jobId": "j", "did": ann.platform_id, "state": "JOB_STATE_FAILED", "failureCode": code, "message": "Sorry"}
    net.fault(POLL_VIDEO, status=200, body={"jobStatus": job})
    content = Content("hi", media=(video(),))
    with pytest.raises(expected) as caught:
        prepared(bluesky, ann, content)
    assert (caught.value.platform_code, caught.value.platform_message) == (code, "Sorry")
    if expected is Unavailable:
        bluesky.publish(ann, content, prepared(bluesky, ann, content, caught.value.receipt))
        assert len(net.posts) == 1


def test_a_video_job_that_got_lost_starts_anew(net, bluesky, ann):
    content = Content("hi", media=(video(),))
    net.fault(POLL_VIDEO, status=400, body={"error": "InvalidRequest", "message": "job not found"})
    with pytest.raises(Unavailable) as caught:
        prepared(bluesky, ann, content)
    assert "job" not in caught.value.receipt
    assert bluesky.publish(ann, content, prepared(bluesky, ann, content, caught.value.receipt))
