"""Posts and drafts on TikTok, by a network as strict as the real one."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from platforms.base import Published
from platforms.errors import PermissionMissing, Rejected, Unavailable
from platforms.tiktok import CHUNK
from tests.live import MP4, prepared
from tests.networks.tiktok import CAROUSEL, DRAFTS, FILM, IMAGE, LEVEL, TOKEN, film, published
from tests.networks.tiktok import ann, net, tiktok  # noqa: F401
from tests.standins.tiktok_errors import CREATOR, INBOX, PHOTO, STATUS, UPLOAD, VIDEO


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


# Drafts.

@pytest.mark.parametrize("kind", DRAFTS)
def test_a_draft_goes_to_the_inbox_and_is_seen_by_nobody(net, tiktok, ann, kind):
    result = published(tiktok, ann, DRAFTS[kind])
    draft, = net.drafts
    assert result == Published(draft["publish_id"], f"{net.url}/@ann") and net.posts == []
    assert not net.calls(CREATOR), "what the creator allows does not matter to a draft"


def test_what_a_draft_of_a_video_takes_along(net, tiktok, ann):
    published(tiktok, ann, DRAFTS["video"])
    assert sent(net, INBOX) == {
        "source_info": {"source": "FILE_UPLOAD", "video_size": len(MP4), "chunk_size": len(MP4), "total_chunk_count": 1}}
    assert net.drafts[0]["sha256"] == sha256(MP4).hexdigest() and not net.calls(VIDEO)


def test_what_a_draft_of_photos_takes_along(net, tiktok, ann):
    published(tiktok, ann, DRAFTS["image"])
    assert sent(net, PHOTO) == {
        "media_type": "PHOTO", "post_mode": "MEDIA_UPLOAD",
        "post_info": {"title": "A loaf", "description": "Fresh bread #sourdough"},
        "source_info": {"source": "PULL_FROM_URL", "photo_cover_index": 0, "photo_images": ["https://media.test/0.jpg"]}}


def test_a_draft_that_somebody_posted_before_we_asked_has_its_address(net, tiktok, ann):
    outcome = tiktok.publish(ann, DRAFTS["video"], prepared(tiktok, ann, DRAFTS["video"]))
    net.fault(STATUS, status=200, body={"data": {"status": "PUBLISH_COMPLETE", "publicaly_available_post_id": [74]},
                                        "error": {"code": "ok"}})
    assert tiktok.check(ann, outcome.receipt) == Published("74", f"{net.url}/@ann/video/74")


@pytest.mark.parametrize("kind", DRAFTS)
def test_a_draft_needs_a_permission_of_its_own(net, tiktok, ann, kind):
    net.grants.token(TOKEN).scopes.discard("video.upload")
    with pytest.raises(PermissionMissing):
        published(tiktok, ann, DRAFTS[kind])


def test_too_many_drafts_wait_in_the_inbox(net, tiktok, ann):
    net.fail("spam_risk_too_many_pending_share", endpoint=INBOX)
    with pytest.raises(Unavailable) as caught:
        prepared(tiktok, ann, DRAFTS["video"])
    assert caught.value.retry_after == 3600


@pytest.mark.parametrize("content, options, expected", [
    (FILM, {"privacyLevel": "SELF_ONLY", "isAigc": True, "disableDuet": False}, ["privacyLevel", "isAigc", "disableDuet"]),
    (CAROUSEL, {"title": "a", "coverIndex": 0, "autoAddMusic": True}, ["autoAddMusic"]), (IMAGE, {}, []), (FILM, {}, []),
])
def test_what_a_draft_leaves_to_people_is_refused(tiktok, content, options, expected):
    problems = tiktok.problems(replace(content, options={"draft": True, **options}))
    assert [(problem.path, problem.rule) for problem in problems] == [(f"options/{name}", "draft") for name in expected]


def test_no_draft_at_all_needs_its_privacy_level(tiktok):
    problems = tiktok.problems(replace(FILM, options={"draft": False}))
    assert [(problem.path, problem.rule) for problem in problems] == [("options/privacyLevel", "required")]
