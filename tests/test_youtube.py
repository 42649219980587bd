"""Videos on YouTube, by a stand-in as strict as the real one."""

import io
import json
import time
from dataclasses import replace
from datetime import datetime

import pytest

from platforms.base import Absent, Content, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.youtube import CHUNK, YouTube, _to_new_quota
from tests.live import http_for, image, part_of, prepared, published, video
from tests.networks import youtube as network
from tests.standins.youtube import (ADD, COMMENTS, ERRORS, INSERT, LIST, READ_COMMENTS, READ_ITEMS, SESSION, THUMBNAIL, UPDATE,
                                    YouTubeServer)

LONG = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 256 * 160     # 10 MB: two chunks
CONTENT = Content("hi", media=(video(),), post_type="video", options={"title": "Bread"}, key="k-1")
TWO_CHUNKS = replace(CONTENT, media=(replace(video(), bytes=len(LONG), open=part_of(LONG)),))


@pytest.fixture
def net():
    with YouTubeServer() as net:
        yield net


@pytest.fixture
def youtube(net):
    return YouTube(http_for(net), network.settings(net))


@pytest.fixture
def ann(net):
    return network.account(net)


def with_options(**options):
    return replace(CONTENT, options={"title": "Bread", **options})


def only(net):
    assert len(net.videos) == 1
    return next(iter(net.videos.values()))


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
        audioLanguage="de-AT", notifySubscribers=False))
    one = only(net)
    assert {name: one["snippet"].get(name) for name in ("tags", "categoryId", "defaultLanguage", "defaultAudioLanguage")} == {
        "tags": ["a", "b c"], "categoryId": "10", "defaultLanguage": "de", "defaultAudioLanguage": "de-AT"}
    assert one["status"] == {"privacyStatus": "unlisted", "selfDeclaredMadeForKids": True, "containsSyntheticMedia": True,
                             "embeddable": False, "license": "creativeCommon", "publicStatsViewable": False,
                             "uploadStatus": "processed"}
    assert one["paid"] == {"hasPaidProductPlacement": True} and not one["notify"]


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


# The upload.

def test_a_large_file_goes_in_chunks(net, youtube, ann):
    steps = list(youtube.prepare(ann, TWO_CHUNKS, {}))
    assert [step.get("offset") for step in steps[:2]] == [0, CHUNK]
    assert [(request.size, request.headers["Content-Range"]) for request in net.calls(SESSION)] == [
        (CHUNK, f"bytes 0-{CHUNK - 1}/{len(LONG)}"),
        (len(LONG) - CHUNK, f"bytes {CHUNK}-{len(LONG) - 1}/{len(LONG)}")]
    assert only(net)["data"] == LONG
    assert "session" not in steps[-1]


def test_a_killed_worker_goes_on_with_the_next_chunk(net, youtube, ann):
    steps = youtube.prepare(ann, TWO_CHUNKS, {})
    receipt = json.loads(json.dumps([next(steps), next(steps)][-1]))
    net.requests.clear()
    assert published_with(youtube, ann, TWO_CHUNKS, receipt) and only(net)["data"] == LONG
    assert [request.headers["Content-Range"].split("/")[0] for request in net.calls(SESSION)] == [
        "bytes *", f"bytes {CHUNK}-{len(LONG) - 1}"]
    assert not net.calls(INSERT)


def published_with(youtube, ann, content, receipt):
    return youtube.publish(ann, content, prepared(youtube, ann, content, receipt))


@pytest.mark.parametrize("fault", [
    {"drop_answer": True}, {"drop_before": True}, {"status": 503, "body": "busy"}, {"status": 500, "body": "", "acts": True},
    {"status": 200, "body": "<html>", "acts": True},
], ids=["lost answer", "lost request", "503", "500 after acting", "garbage after acting"])
@pytest.mark.parametrize("chunks", [0, 1], ids=["first chunk", "last chunk"])
def test_a_chunk_in_doubt_is_asked_after(net, youtube, ann, fault, chunks):
    if chunks == 0 and fault.get("status") == 200:
        fault = {"status": 308, "body": "", "headers": {"Range": "nonsense"}, "acts": True}
    receipt, steps = {}, youtube.prepare(ann, TWO_CHUNKS, {})
    for _ in range(1 + chunks):
        receipt = next(steps)
    net.fault(SESSION, **fault)
    with pytest.raises(Unavailable):
        for receipt in steps:
            pass
    assert published_with(youtube, ann, TWO_CHUNKS, receipt)
    assert only(net)["data"] == LONG and len(net.calls(INSERT)) == 1


def test_a_chunk_that_is_stored_in_part_goes_on_from_there(net, youtube, ann):
    net.keeps = 262_144 * 3
    assert published(youtube, ann, TWO_CHUNKS) and only(net)["data"] == LONG
    assert net.calls(SESSION)[1].headers["Content-Range"].startswith("bytes 786432-")


@pytest.mark.parametrize("stored", [None, "bytes=0-99999999999", "bytes=5-9"])
def test_a_session_that_takes_nothing_is_left_alone(net, youtube, ann, stored):
    net.fault(SESSION, status=308, headers={"Range": stored} if stored else {}, times=None)
    with pytest.raises(Unavailable):
        prepared(youtube, ann, TWO_CHUNKS)
    assert len(net.calls(SESSION)) == 1


@pytest.mark.parametrize("row", ["session_gone", "session_expired"])
def test_a_lost_session_is_begun_anew(net, youtube, ann, row):
    steps = youtube.prepare(ann, TWO_CHUNKS, {})
    next(steps)
    net.fail(row)
    with pytest.raises(Unavailable) as caught:
        next(steps)
    assert caught.value.receipt == {}
    assert published_with(youtube, ann, TWO_CHUNKS, {}) and len(net.posts) == 1


def test_a_session_that_ran_out_while_nobody_looked_is_begun_anew(net, youtube, ann):
    receipt = next(youtube.prepare(ann, CONTENT, {}))
    net.sessions.clear()
    with pytest.raises(Unavailable) as caught:
        prepared(youtube, ann, CONTENT, receipt)
    assert caught.value.receipt == {}


@pytest.mark.parametrize("address", ["", "https://elsewhere.example.com/upload", "http://www.googleapis.com/upload", "/upload",
                                     "https://www.googleapis.com.example.com/", "https://wwwgoogleapis.com/"])
def test_the_token_goes_to_google_alone(net, youtube, ann, address):
    net.fault(INSERT, status=200, headers={"Location": address} if address else {})
    with pytest.raises(Unavailable):
        prepared(youtube, ann, CONTENT)
    assert len(net.requests) == 1


@pytest.mark.parametrize("address", ["https://www.googleapis.com/upload/x?upload_id=1", "https://youtube.googleapis.com/x"])
def test_a_session_may_live_on_any_host_of_googles_apis(youtube, address):
    assert youtube._is_googles(address)


def test_only_one_chunk_is_held_at_a_time(net, youtube, ann):
    asked = []

    def opened(offset=0, length=None):
        asked.append((offset, length))
        return io.BytesIO(LONG[offset:][:length])

    prepared(youtube, ann, replace(CONTENT, media=(replace(video(), bytes=len(LONG), open=opened),)))
    assert asked == [(0, CHUNK), (CHUNK, len(LONG) - CHUNK)]


def test_an_upload_pauses_for_a_new_token(net, youtube, ann):
    soon = replace(ann, credentials={**ann.credentials, "expiresAt": time.time() + 100})
    steps = list(youtube.prepare(soon, TWO_CHUNKS, {}))
    assert isinstance(steps[1], Waiting) and steps[1].after == 0 and steps[1].receipt["offset"] == CHUNK
    lasting = replace(ann, credentials={"accessToken": ann.credentials["accessToken"], "expiresAt": time.time() + 100})
    assert not isinstance(list(youtube.prepare(lasting, TWO_CHUNKS, {}))[1], Waiting)


def test_a_token_that_ends_within_an_upload_is_renewed(net, youtube, ann):
    steps = youtube.prepare(ann, TWO_CHUNKS, {})
    receipt = [next(steps), next(steps)][-1]
    net.expire()
    with pytest.raises(Disconnected):
        next(steps)
    renewed = replace(ann, credentials=youtube.refresh(ann, force=True))
    assert published_with(youtube, renewed, TWO_CHUNKS, receipt) and len(net.videos) == 1


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


@pytest.mark.parametrize("row, expected", [("invalid_image", Rejected), ("thumbnail_forbidden", Rejected),
                                           ("thumbnail_rate", Unavailable)])
def test_a_thumbnail_that_is_refused_keeps_the_video_private(net, youtube, ann, row, expected):
    net.fail(row)
    content = replace(CONTENT, media=(video(), image()))
    receipt = {}
    with pytest.raises(expected) as caught:
        for step in youtube.prepare(ann, content, {}):
            receipt = step
    assert caught.value.platform_code == ERRORS[row]["body"]["error"]["errors"][0]["reason"] and net.posts == []
    if expected is Unavailable:
        assert caught.value.code == "rate_limited"
        assert published_with(youtube, ann, content, receipt) and len(net.calls(INSERT)) == 1
    else:
        assert caught.value.rule == "thumbnail"


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


# What follows.

def followed(youtube, ann, content, receipt):
    """The last receipt of what follows, stored as JSON after each step, and the trouble there was."""
    try:
        for step in youtube.follow(ann, content, receipt):
            receipt = json.loads(json.dumps(step))
    except PlatformError as error:
        return receipt, error
    return receipt, None


@pytest.fixture
def public(net, youtube, ann):
    """A post with all that can follow, public, and its receipt."""
    net.consenting.playlists["PL1"] = []
    content = with_options(firstComment=" First \n", playlistId="PL1")
    receipt = prepared(youtube, ann, content)
    post = youtube.publish(ann, content, receipt)
    return content, {**receipt, "public": {"id": post.id, "url": post.url}}


def items(net):
    return [item["snippet"]["resourceId"]["videoId"] for item in net.consenting.playlists["PL1"]]


def comments(net):
    return [(one["snippet"]["videoId"], one["snippet"]["topLevelComment"]["snippet"]["textOriginal"]) for one in net.comments]


def test_a_first_comment_and_a_playlist(net, youtube, ann, public):
    content, receipt = public
    assert set(youtube.follow_options) == {"firstComment", "playlistId"}
    receipt, trouble = followed(youtube, ann, content, receipt)
    video_id = only(net)["id"]
    assert trouble is None and comments(net) == [(video_id, "First")] and items(net) == [video_id]
    assert receipt["firstComment"] == {"id": net.comments[0]["id"]} and receipt["playlistId"]["id"]
    seen = len(net.requests)
    assert followed(youtube, ann, content, receipt) == (receipt, None) and len(net.requests) == seen


@pytest.mark.parametrize("endpoint, option", [(COMMENTS, "firstComment"), (ADD, "playlistId")])
@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"drop_before": True}, {"status": 503, "body": ""},
                                   {"status": 200, "body": "<html>", "acts": True}])
def test_what_follows_in_doubt_is_looked_for_twice(net, youtube, ann, public, endpoint, option, fault):
    content, receipt = public
    net.fault(endpoint, **fault)
    for _ in range(3):
        receipt, trouble = followed(youtube, ann, content, receipt)
        if isinstance(trouble, Unavailable) and "looked" in receipt[option]:
            assert trouble.retry_after == 60
    assert trouble is None and len(comments(net)) == len(items(net)) == 1


def test_a_comment_of_somebody_else_is_not_taken_for_ours(net, youtube, ann, public):
    content, receipt = public
    net.fault(COMMENTS, drop_answer=True)
    receipt, _ = followed(youtube, ann, content, receipt)
    net.comments[0]["snippet"]["topLevelComment"]["snippet"]["authorChannelId"] = {"value": "UCother"}
    for _ in range(2):
        receipt, trouble = followed(youtube, ann, content, receipt)
    assert trouble is None and len(comments(net)) == 2


def test_a_comment_among_too_many_is_not_sent_again(net, youtube, ann, public):
    content, receipt = public
    net.fault(COMMENTS, drop_before=True)
    receipt, _ = followed(youtube, ann, content, receipt)
    net.fault(READ_COMMENTS, status=200, body={"kind": "k", "items": [], "nextPageToken": "more"})
    receipt, trouble = followed(youtube, ann, content, receipt)
    assert isinstance(trouble, Rejected) and comments(net) == [] and len(items(net)) == 1


@pytest.mark.parametrize("row, expected", [
    ("comments_disabled", Rejected), ("comment_forbidden", PermissionMissing), ("comment_ineligible", Rejected),
    ("comment_too_long", Rejected),
])
def test_a_comment_that_is_refused_leaves_the_rest(net, youtube, ann, public, row, expected):
    content, receipt = public
    net.fail(row)
    _, trouble = followed(youtube, ann, content, receipt)
    assert type(trouble) is expected and len(items(net)) == 1
    assert trouble.platform_code == ERRORS[row]["body"]["error"]["errors"][0]["reason"]


@pytest.mark.parametrize("row, expected", [
    ("playlist_full", Rejected), ("playlist_forbidden", PermissionMissing), ("playlist_not_found", Rejected),
    ("sorted_by_hand", Rejected),
])
def test_a_playlist_that_is_refused_leaves_the_rest(net, youtube, ann, public, row, expected):
    content, receipt = public
    net.fail(row)
    _, trouble = followed(youtube, ann, content, receipt)
    assert type(trouble) is expected and len(comments(net)) == 1


def test_a_comment_that_youtube_failed_to_process_is_tried_again(net, youtube, ann, public):
    content, receipt = public
    net.fail("comment_failure")
    for _ in range(3):
        receipt, trouble = followed(youtube, ann, content, receipt)
    assert trouble is None and len(comments(net)) == 1


def test_a_playlist_is_looked_through_for_this_video(net, youtube, ann, public):
    content, receipt = public
    receipt, _ = followed(youtube, ann, content, receipt)
    again, trouble = followed(youtube, ann, content, {**receipt, "playlistId": {}})
    assert trouble is None and again == receipt and len(items(net)) == 1 and len(net.calls(READ_ITEMS)) == 1


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
        "invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidVideoMetadata", "invalidFilename",
        "defaultLanguageNotSet", "mediaBodyRequired", "forbiddenLicenseSetting")),
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
