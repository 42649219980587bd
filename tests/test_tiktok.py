"""Posts on TikTok, by a network as strict as the real one."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from platforms.base import Absent, Processing, Published
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.tiktok import CHUNK, SHOWN, TikTok
from tests.live import MP4, http_for, part_of, prepared
from tests.networks import tiktok as known
from tests.networks.tiktok import LEVEL, SAMPLES
from tests.standins.tiktok import CREATOR, PHOTO, STATUS, UPLOAD, VIDEO

IMAGE, CAROUSEL, FILM = SAMPLES.values()


def film(size, **options):
    """A video of so many bytes."""
    data = MP4 + bytes(size - len(MP4))
    return replace(FILM, media=(replace(FILM.media[0], bytes=size, open=part_of(data)),), options={**LEVEL, **options})


LONG = film(3 * CHUNK + 5)


@pytest.fixture
def net():
    with known.start() as net:
        yield net


@pytest.fixture
def tiktok(net):
    return TikTok(http_for(net), known.settings(net))


@pytest.fixture
def ann(net):
    return known.account(net)


def stored(receipt):
    return json.loads(json.dumps(receipt))


def settled(tiktok, account, outcome):
    """What comes of a post after all the asking."""
    while isinstance(outcome, Processing):
        outcome = tiktok.check(account, stored(outcome.receipt))
    return outcome


def published(tiktok, account, content):
    assert tiktok.problems(content, account) == []
    return settled(tiktok, account, tiktok.publish(account, content, prepared(tiktok, account, content)))


def sent(net, endpoint):
    return json.loads(net.calls(endpoint)[-1].body)


# What a post becomes.

def test_video(net, tiktok, ann):
    result = published(tiktok, ann, FILM)
    assert result == Published(net.posts[0]["id"], f"{net.url}/@ann/video/{net.posts[0]['id']}")
    assert sent(net, VIDEO) == {
        "post_info": {"title": "Fresh bread #sourdough", "privacy_level": "PUBLIC_TO_EVERYONE", "brand_content_toggle": False,
                      "brand_organic_toggle": False},
        "source_info": {"source": "FILE_UPLOAD", "video_size": len(MP4), "chunk_size": len(MP4), "total_chunk_count": 1}}
    assert net.posts[0]["sha256"] == sha256(MP4).hexdigest()
    assert net.calls(UPLOAD)[0].headers["Content-Type"] == "video/mp4" and "Authorization" not in net.calls(UPLOAD)[0].headers


def test_every_option_of_a_video(net, tiktok, ann):
    published(tiktok, ann, replace(FILM, options={
        **LEVEL, "disableComment": True, "disableDuet": False, "disableStitch": True, "coverTimestampMs": 1500, "isAigc": True,
        "brandContentToggle": True, "brandOrganicToggle": True}))
    assert net.posts[0]["info"] == {
        "title": "Fresh bread #sourdough", "privacy_level": "PUBLIC_TO_EVERYONE", "disable_comment": True,
        "disable_duet": False, "disable_stitch": True, "video_cover_timestamp_ms": 1500, "is_aigc": True,
        "brand_content_toggle": True, "brand_organic_toggle": True}


def test_photo(net, tiktok, ann):
    result = published(tiktok, ann, IMAGE)
    assert result == Published(net.posts[0]["id"], f"{net.url}/@ann/photo/{net.posts[0]['id']}")
    assert sent(net, PHOTO) == {
        "media_type": "PHOTO", "post_mode": "DIRECT_POST",
        "post_info": {"title": "A loaf", "description": "Fresh bread #sourdough", "privacy_level": "PUBLIC_TO_EVERYONE",
                      "brand_content_toggle": False, "brand_organic_toggle": False},
        "source_info": {"source": "PULL_FROM_URL", "photo_cover_index": 0, "photo_images": ["https://media.test/0.jpg"]}}


def test_photos_with_every_option_and_no_text(net, tiktok, ann):
    published(tiktok, ann, replace(CAROUSEL, caption="", options={**LEVEL, "coverIndex": 1, "autoAddMusic": True,
                                                                  "disableComment": True}))
    assert net.posts[0]["source"]["photo_images"] == ["https://media.test/1.jpg", "https://media.test/2.jpg"]
    assert net.posts[0]["source"]["photo_cover_index"] == 1
    assert net.posts[0]["info"] == {"privacy_level": "PUBLIC_TO_EVERYONE", "auto_add_music": True, "disable_comment": True,
                                    "brand_content_toggle": False, "brand_organic_toggle": False}


@pytest.mark.parametrize("size, chunks", [
    (CHUNK - 1, 1), (CHUNK, 1), (2 * CHUNK - 1, 1), (2 * CHUNK, 2), (3 * CHUNK - 1, 2), (3 * CHUNK + 5, 3),
])
def test_chunks(net, tiktok, ann, size, chunks):
    content = film(size)
    published(tiktok, ann, content)
    assert net.posts[0]["sha256"] == sha256(content.media[0].open().read()).hexdigest()
    puts = net.calls(UPLOAD)
    assert [put.status for put in puts] == [206] * (chunks - 1) + [201]
    assert puts[-1].headers["Content-Range"] == f"bytes {(chunks - 1) * CHUNK if chunks > 1 else 0}-{size - 1}/{size}"


# What the creator allows.

@pytest.mark.parametrize("private, level, allowed", [
    (False, "FOLLOWER_OF_CREATOR", "PUBLIC_TO_EVERYONE, MUTUAL_FOLLOW_FRIENDS, SELF_ONLY"),
    (True, "PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR, MUTUAL_FOLLOW_FRIENDS, SELF_ONLY"),
])
def test_privacy_levels(net, tiktok, ann, private, level, allowed):
    net.creators[ann.platform_id].private = private
    with pytest.raises(Rejected) as caught:
        prepared(tiktok, ann, replace(FILM, options={"privacyLevel": level}))
    assert caught.value.rule == "privacy_level" and f"{allowed}, not {level}" in caught.value.message and not net.calls(VIDEO)


def test_length(net, tiktok, ann):
    net.creators[ann.platform_id].longest = 9
    with pytest.raises(Rejected) as caught:
        prepared(tiktok, ann, FILM)
    assert caught.value.rule == "media_duration" and "at most 9 seconds" in caught.value.message
    assert prepared(tiktok, ann, replace(FILM, media=(replace(FILM.media[0], duration=9.0),)))


@pytest.mark.parametrize("option, name", [("disableComment", "comment"), ("disableDuet", "duet"), ("disableStitch", "stitch")])
def test_what_the_creator_has_turned_off_stays_off(net, tiktok, ann, option, name):
    net.creators[ann.platform_id].off = {name}
    with pytest.raises(Rejected) as caught:
        prepared(tiktok, ann, replace(FILM, options={**LEVEL, option: False}))
    assert caught.value.rule == "disabled_by_creator" and f"{name}s off" in caught.value.message
    published(tiktok, ann, FILM)
    assert net.posts[0]["info"][f"disable_{name}"] is True


def test_photos_know_nothing_of_duets(net, tiktok, ann):
    net.creators[ann.platform_id].off = {"comment", "duet", "stitch"}
    published(tiktok, ann, IMAGE)
    assert net.posts[0]["info"].keys() & {"disable_comment", "disable_duet", "disable_stitch"} == {"disable_comment"}


def test_an_app_that_is_not_audited(net, tiktok, ann):
    net.audited = False
    with pytest.raises(Rejected) as caught:
        prepared(tiktok, ann, FILM)
    assert caught.value.rule == "app"
    net.creators[ann.platform_id].private = True
    assert published(tiktok, ann, replace(FILM, options={"privacyLevel": "SELF_ONLY"}))


def test_media_at_an_address_that_is_not_known_as_ours(net, tiktok, ann):
    net.verified = ["https://elsewhere.test/"]
    with pytest.raises(Rejected) as caught:
        published(tiktok, ann, IMAGE)
    assert caught.value.rule == "app" and "verify the domain" in caught.value.message


# Exactly once.

FAULTS = {
    "lost answer": ({"drop_answer": True}, True), "lost request": ({"drop_before": True}, False),
    "504": ({"status": 504, "body": "<html>"}, False), "500 after acting": ({"status": 500, "body": "", "acts": True}, True),
}


@pytest.mark.parametrize("content", [FILM, LONG], ids=["one chunk", "three chunks"])
@pytest.mark.parametrize("fault, there", FAULTS.values(), ids=FAULTS)
def test_a_video_in_doubt_is_found_out_and_may_be_sent_again(net, tiktok, ann, content, fault, there):
    receipt = prepared(tiktok, ann, content)
    net.fault(UPLOAD, **fault)
    with pytest.raises(Unconfirmed) as caught:
        tiktok.publish(ann, content, receipt)
    assert "canary" not in repr(vars(caught.value)) and len(net.posts) == there
    doubted = replace(content, sent_ago=30.0)
    found = tiktok.find(ann, doubted, receipt)
    if there:
        assert settled(tiktok, ann, found).id == net.posts[0]["id"]
    else:
        assert found == Absent()
    assert list(tiktok.prepare(ann, doubted, receipt)) == []
    again = settled(tiktok, ann, tiktok.publish(ann, doubted, receipt))
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


def test_a_part_answered_like_the_first_of_more(net, tiktok, ann):
    receipt = prepared(tiktok, ann, FILM)
    net.fault(UPLOAD, status=206, acts=True)
    with pytest.raises(Unconfirmed):
        tiktok.publish(ann, FILM, receipt)


@pytest.mark.parametrize("fault, there", [
    *FAULTS.values(), ({"status": 200, "body": "<html>", "acts": True}, True),
    ({"status": 200, "body": {"data": {}, "error": {"code": "ok"}}, "acts": True}, True),
], ids=[*FAULTS, "garbage after acting", "no id"])
@pytest.mark.parametrize("content", [IMAGE, CAROUSEL], ids=["image", "carousel"])
def test_photos_in_doubt_stay_so(net, tiktok, ann, content, fault, there):
    receipt = prepared(tiktok, ann, content)
    net.fault(PHOTO, **fault)
    with pytest.raises(Unconfirmed):
        tiktok.publish(ann, content, receipt)
    assert len(net.posts) == there
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
    ("photo_pull_failed", Rejected, "media_url"), ("publish_cancelled", Rejected, "cancelled"), ("auth_removed", Rejected, "permission"),
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
