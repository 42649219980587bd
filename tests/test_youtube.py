"""Videos on YouTube, by a stand-in as strict as the real one."""

from dataclasses import replace
from datetime import datetime

import pytest

from platforms.base import Absent, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.youtube import _to_new_quota
from tests.live import image, prepared, published, video
from tests.networks import youtube as network
from tests.networks.youtube import CONTENT, ann, net, only, published_with, with_options, youtube  # noqa: F401
from tests.standins.youtube_errors import ERRORS, INSERT, LIST, SESSION, THUMBNAIL, UPDATE


# What a post becomes.

def test_video(net, youtube, ann):
    result = published(youtube, ann, CONTENT)
    one = only(net)
    assert result == Published(one["id"], f"https://www.youtube.com/watch?v={one['id']}") and net.posts == [one]
    assert one["data"] == CONTENT.media[0].open().read()
    assert {name: one["snippet"][name] for name in ("title", "description", "categoryId")} == {
        "title": "Bread", "description": "hi", "categoryId": "22"}
    assert one["status"] == {"privacyStatus": "public", "selfDeclaredMadeForKids": False, "containsSyntheticMedia": False,
                             "embeddable": True, "license": "youtube", "publicStatsViewable": True, "uploadStatus": "processed"}
    assert one["notified"] == 1


def test_a_short_has_an_address_of_its_own(net, youtube, ann):
    result = published(youtube, ann, replace(CONTENT, post_type="reel", media=(video(width=9, height=16),)))
    assert result.url == f"https://www.youtube.com/shorts/{only(net)['id']}"


def test_options(net, youtube, ann):
    published(youtube, ann, with_options(
        tags=["a", "b c"], categoryId="10", privacyStatus="unlisted", madeForKids=True, containsSyntheticMedia=True,
        paidPromotion=True, embeddable=False, license="creativeCommon", publicStatsViewable=False, language="de",
        audioLanguage="de-AT", notifySubscribers=False, recordingDate="2026-11-20",
        localizations=[{"language": "en", "title": "Bread"}, {"language": "pt-BR", "title": "Pão", "description": "Oi"}]))
    one = only(net)
    assert {name: one["snippet"].get(name) for name in ("tags", "categoryId", "defaultLanguage", "defaultAudioLanguage")} == {
        "tags": ["a", "b c"], "categoryId": "10", "defaultLanguage": "de", "defaultAudioLanguage": "de-AT"}
    assert one["status"] == {"privacyStatus": "unlisted", "selfDeclaredMadeForKids": True, "containsSyntheticMedia": True,
                             "embeddable": False, "license": "creativeCommon", "publicStatsViewable": False,
                             "uploadStatus": "processed"}
    assert one["paid"] == {"hasPaidProductPlacement": True} and not one["notify"]
    assert one["recorded"] == {"recordingDate": "2026-11-20T00:00:00Z"}
    assert one["localizations"] == {"en": {"title": "Bread", "description": ""}, "pt-BR": {"title": "Pão", "description": "Oi"}}


def test_a_private_video_stays_private(net, youtube, ann):
    content = with_options(privacyStatus="private")
    receipt = prepared(youtube, ann, content)
    result = youtube.publish(ann, content, receipt)
    assert net.posts == [] and only(net)["notified"] == 0
    assert youtube.find(ann, content, receipt) == result


def test_nothing_is_public_before_the_video_is_processed(net, youtube, ann):
    steps = list(youtube.prepare(ann, CONTENT, {}))
    waits = [step for step in steps if isinstance(step, Waiting)]
    assert [step.after for step in waits] == [15, 15] and net.posts == []
    assert steps[-1] == {"video": only(net)["id"], "processed": True}


def test_a_long_processing_is_asked_after_ever_more_rarely(net, youtube, ann):
    net.processing_polls = 20
    waits = [step.after for step in youtube.prepare(ann, CONTENT, {}) if isinstance(step, Waiting)]
    assert waits == [15] * 4 + [60] * 10 + [300] * 6


def test_an_image_becomes_the_thumbnail(net, youtube, ann):
    for media in ((video(), image(1)), (image(1), video())):
        published(youtube, ann, replace(CONTENT, media=media))
    assert [one["thumbnail"] for one in net.videos.values()] == [image(1).open().read()] * 2
    assert [request.media_type for request in net.calls(THUMBNAIL)] == ["image/png"] * 2


# What is refused before anything is sent.

GERMAN = {"language": "de", "title": "Brot"}


@pytest.mark.parametrize("options, expected", [
    ({"recordingDate": "2026-02-30"}, [("recordingDate", "date")]),
    ({"privacyStatus": "private", "firstComment": "a"}, [("firstComment", "comments_off")]),
    ({"privacyStatus": "unlisted", "firstComment": "a"}, []),
    ({"localizations": [GERMAN]}, [("language", "required")]),
    ({"language": "DE", "localizations": [GERMAN]}, [("localizations/0/language", "unique")]),
    ({"language": "en", "localizations": [GERMAN, {**GERMAN, "language": "De"}]}, [("localizations/1/language", "unique")]),
    ({"language": "en", "localizations": [{**GERMAN, "title": " "}, {"language": "pt", "title": "<", "description": ">"}]}, [
        ("localizations/0/title", "required"), ("localizations/1/title", "angle_brackets"),
        ("localizations/1/description", "angle_brackets")]),
    ({"language": "en", "localizations": [{**GERMAN, "description": "ä" * 2501}]}, [
        ("localizations/0/description", "description_length")]),
    ({"language": "en", "localizations": [{**GERMAN, "description": "ä" * 2500}], "recordingDate": "2024-02-29"}, []),
])
def test_options_that_youtube_would_refuse(youtube, options, expected):
    problems = youtube.problems(with_options(**options))
    assert [(problem.path, problem.rule) for problem in problems] == [(f"options/{path}", rule) for path, rule in expected]


# What YouTube makes of the video.

@pytest.mark.parametrize("state, reason", [("failed", "codec"), ("rejected", "duplicate"), ("rejected", "length"),
                                           ("deleted", None)])
def test_a_video_that_youtube_refuses_never_becomes_public(net, youtube, ann, state, reason):
    net.outcome = state, reason
    with pytest.raises(Rejected) as caught:
        prepared(youtube, ann, CONTENT)
    assert (caught.value.rule, caught.value.platform_code) == ("video", reason or state) and net.posts == []


def test_a_new_video_may_be_listed_late(net, youtube, ann):
    net.hides = 10
    assert published(youtube, ann, CONTENT)


def test_a_video_that_is_never_listed_is_given_up(net, youtube, ann):
    net.hides = 11
    with pytest.raises(Rejected) as caught:
        prepared(youtube, ann, CONTENT)
    assert caught.value.rule == "video"


@pytest.mark.parametrize("body", [{}, "<html>", [], {"kind": "k", "items": [{"status": 7}]}])
def test_a_state_of_nonsense_says_nothing(net, youtube, ann, body):
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        prepared(youtube, ann, CONTENT)


def test_a_channel_that_keeps_everything_private(net, youtube):
    net.add_user(private_only=True)
    account = network.account(net)
    net.consenting.private_only = True
    receipt = prepared(youtube, account, CONTENT)
    with pytest.raises(Rejected) as caught:
        youtube.publish(account, CONTENT, receipt)
    assert caught.value.rule == "privacy" and net.posts == []


# At most once.

@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 503, "body": {"error": "busy"}}, False), ({"status": 500, "body": "", "acts": True}, True),
    ({"status": 200, "body": "<html>", "acts": True}, True), ({"status": 200, "body": {"id": "1"}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "503", "500 after acting", "garbage after acting", "no status"])
def test_a_post_in_doubt_is_found_out_and_may_be_sent_again(net, youtube, ann, fault, there):
    receipt = prepared(youtube, ann, CONTENT)
    net.fault(UPDATE, **fault)
    with pytest.raises(Unconfirmed):
        youtube.publish(ann, CONTENT, receipt)
    one = only(net)
    address = Published(one["id"], f"https://www.youtube.com/watch?v={one['id']}")
    assert youtube.find(ann, CONTENT, receipt) == (address if there else Absent())
    assert youtube.find_retries
    assert published_with(youtube, ann, CONTENT, receipt) == address
    assert len(net.posts) == 1 and one["notified"] == 1


def test_what_has_no_video_was_never_sent(net, youtube, ann):
    assert youtube.find(ann, CONTENT, {}) == Absent()
    assert youtube.find(ann, CONTENT, {"session": net.url, "offset": 0}) == Absent() and not net.requests


def test_a_video_that_somebody_deleted_cannot_be_told(net, youtube, ann):
    receipt = prepared(youtube, ann, CONTENT)
    net.videos.clear()
    assert youtube.find(ann, CONTENT, receipt) is None


def test_a_token_that_may_not_read_cannot_tell(net, youtube, ann):
    receipt = prepared(youtube, ann, CONTENT)
    net.fail("forbidden", endpoint=LIST)
    assert youtube.find(ann, CONTENT, receipt) is None


def test_a_list_of_nonsense_cannot_tell(net, youtube, ann):
    receipt = prepared(youtube, ann, CONTENT)
    net.fault(LIST, status=200, body={"items": []})
    with pytest.raises(Unavailable):
        youtube.find(ann, CONTENT, receipt)


def test_a_finished_preparation_asks_for_nothing(net, youtube, ann):
    content = replace(CONTENT, media=(video(), image()))
    receipt = prepared(youtube, ann, content)
    seen = len(net.requests)
    assert list(youtube.prepare(ann, content, receipt)) == [] and len(net.requests) == seen


# Errors.

@pytest.mark.parametrize("row, expected", [
    ("unauthenticated", Disconnected), ("scope_missing", PermissionMissing), ("forbidden", PermissionMissing),
    ("channel_closed", Rejected), ("channel_suspended", Rejected), ("user_suspended", Rejected), ("api_off", Rejected),
    ("quota", Unavailable), ("daily_limit", Unavailable), ("rate", Unavailable), ("user_rate", Unavailable),
    ("too_many", Unavailable), ("forbiddenPrivacySetting", Rejected), ("video_not_found", Rejected), ("backend", Unconfirmed),
    ("internal", Unconfirmed), ("bad_gateway", Unconfirmed), ("gateway_timeout", Unconfirmed),
])
def test_errors_of_publishing(net, youtube, ann, row, expected):
    receipt = prepared(youtube, ann, CONTENT)
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        youtube.publish(ann, CONTENT, receipt)
    error, body = caught.value, ERRORS[row]["body"]
    assert type(error) is expected and net.posts == []
    if isinstance(body, dict):
        assert error.platform_code == body["error"]["errors"][0]["reason"]
        assert error.platform_message == body["error"]["message"]
    assert ("canary" not in repr(vars(error))) and (error.rule == "app") == (row == "api_off")
    if expected is Unavailable:
        assert error.code == "rate_limited"


@pytest.mark.parametrize("row, expected", [
    *((row, Rejected) for row in (
        "invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata",
        "invalidFilename", "invalidRecordingDetails", "defaultLanguageNotSet", "mediaBodyRequired", "forbiddenLicenseSetting")),
    ("upload_limit", Unavailable), ("quota", Unavailable), ("signup_required", Rejected), ("backend", Unavailable),
    ("unauthenticated", Disconnected),
])
def test_errors_of_uploading(net, youtube, ann, row, expected):
    net.fail(row, endpoint=INSERT)
    with pytest.raises(PlatformError) as caught:
        prepared(youtube, ann, CONTENT)
    assert type(caught.value) is expected and not net.videos
    assert caught.value.platform_code == ERRORS[row]["body"]["error"]["errors"][0]["reason"]


def test_waits(net, youtube, ann):
    receipt = prepared(youtube, ann, CONTENT)
    waits = {}
    for row in ("too_many", "rate", "quota", "upload_limit"):
        net.fail(row, endpoint=UPDATE)
        with pytest.raises(Unavailable) as caught:
            youtube.publish(ann, CONTENT, receipt)
        waits[row] = caught.value.retry_after
    assert (waits["too_many"], waits["rate"], waits["upload_limit"]) == (7, None, 86_400)
    assert 0 < waits["quota"] <= 86_400
    assert waits["upload_limit"] < youtube.patience.total_seconds()


@pytest.mark.parametrize("now, hours", [("2026-11-21T02:30Z", 5.5), ("2026-11-21T08:00Z", 24), ("2026-07-01T07:30Z", 0.5),
                                        ("2026-11-21T23:00Z", 9)])
def test_the_quota_of_a_day_begins_at_midnight_in_california(now, hours):
    assert _to_new_quota(datetime.fromisoformat(now)) == hours * 3600


@pytest.mark.parametrize("error, code", [
    ("session with a message", 400), ("token in the answer", 403),
])
def test_no_credential_is_in_an_error(net, youtube, ann, error, code):
    steps = youtube.prepare(ann, CONTENT, {})
    session = next(steps)["session"]
    token = ann.credentials["accessToken"]
    net.fault(SESSION, status=code, body={"error": {"message": f"no {session} with {token}", "errors": [{"reason": token}]}})
    with pytest.raises(PlatformError) as caught:
        next(steps)
    assert "canary" not in repr(vars(caught.value)) and "[secret]" in caught.value.platform_message
