"""That TikTok's stand-in is as strict as TikTok."""

import json

import pytest
import urllib3

from tests.networks import tiktok as known
from tests.networks.tiktok import TOKEN

JSON = "application/json; charset=UTF-8"
INFO = {"privacy_level": "PUBLIC_TO_EVERYONE", "brand_content_toggle": False, "brand_organic_toggle": False}
PLAN = {"source": "FILE_UPLOAD", "video_size": 50_000_123, "chunk_size": 10_000_000, "total_chunk_count": 5}
PHOTOS = {"source": "PULL_FROM_URL", "photo_cover_index": 0, "photo_images": ["https://media.test/1.jpg"]}
POST = {"media_type": "PHOTO", "post_mode": "DIRECT_POST", "post_info": INFO, "source_info": PHOTOS}


@pytest.fixture
def net():
    with known.start() as net:
        net.rates["init"] = (1000, 60)
        yield net


def post(net, path, body, token=TOKEN, kind=JSON):
    """(status, error code, data) of a call."""
    answer = urllib3.request("POST", f"{net.url}/v2/post/publish/{path}/", body=json.dumps(body),
                             headers={"Authorization": f"Bearer {token}", "Content-Type": kind})
    found = answer.json()
    return answer.status, found["error"]["code"], found["data"]


def put(net, url, start, data, size, **headers):
    """(status, Content-Range) of a chunk."""
    answer = urllib3.request("PUT", url, body=data, headers={
        "Content-Type": "video/mp4", "Content-Range": f"bytes {start}-{start + len(data) - 1}/{size}", **headers})
    return answer.status, answer.headers.get("Content-Range")


@pytest.mark.parametrize("size, chunk, count, code", [
    (3_145_728, 3_145_728, 1, "ok"), (50_000_123, 10_000_000, 5, "ok"), (150_000_000, 64_000_000, 2, "ok"),
    (4_294_967_296, 64_000_000, 67, "ok"), (50_000_123, 10_000_000, 6, "invalid_param"),
    (3_145_728, 1_000_000, 3, "invalid_param"),
    (70_000_000, 70_000_000, 1, "invalid_param"), (130_000_000, 65_000_000, 2, "invalid_param"),
    (4_294_967_297, 64_000_000, 67, "invalid_param"), (0, 0, 1, "invalid_param"), (6.5, 6.5, 1, "invalid_param"),
])
def test_plans_of_chunks(net, size, chunk, count, code):
    source = {"source": "FILE_UPLOAD", "video_size": size, "chunk_size": chunk, "total_chunk_count": count}
    assert post(net, "video/init", {"post_info": INFO, "source_info": source})[1] == code


@pytest.mark.parametrize("change, code", [
    ({"privacy_level": "FOLLOWER_OF_CREATOR"}, "privacy_level_option_mismatch"), ({"privacy_level": None}, "invalid_param"),
    ({"disable_comment": None}, "invalid_param"), ({"title": "x" * 2201}, "invalid_param"),
    ({"title": "😀" * 1101}, "invalid_param"), ({"brand_organic_toggle": "no"}, "invalid_param"),
    ({"description": "x"}, "invalid_param"), ({"video_cover_timestamp_ms": True}, "invalid_param"),
    ({"privacy_level": "SELF_ONLY", "brand_content_toggle": True}, "invalid_param"),
])
def test_what_a_video_says_of_itself(net, change, code):
    assert post(net, "video/init", {"post_info": INFO | change, "source_info": PLAN})[1] == code


@pytest.mark.parametrize("change, code", [
    ({"media_type": "VIDEO"}, "invalid_param"), ({"post_mode": "MEDIA_UPLOAD"}, "invalid_param"),
    ({"post_mode": "DRAFT"}, "invalid_param"),
    ({"more": 1}, "invalid_param"), ({"post_info": INFO | {"title": "x" * 91}}, "invalid_param"),
    ({"post_info": INFO | {"disable_duet": True}}, "invalid_param"),
    ({"source_info": PHOTOS | {"photo_cover_index": 1}}, "invalid_param"),
    ({"source_info": PHOTOS | {"photo_images": ["https://media.test/1.jpg"] * 36}}, "invalid_param"),
    ({"source_info": PHOTOS | {"photo_images": ["https://other.test/1.jpg"]}}, "url_ownership_unverified"),
])
def test_photos(net, change, code):
    assert post(net, "content/init", POST | change)[1] == code and not net.posts


@pytest.mark.parametrize("info, code", [
    ({}, "ok"), ({"title": "a", "description": "b"}, "ok"), ({"title": "a" * 91}, "invalid_param"),
    ({"privacy_level": "SELF_ONLY"}, "invalid_param"), ({"auto_add_music": True}, "invalid_param"), (None, "invalid_param"),
])
def test_drafts_of_photos(net, info, code):
    assert post(net, "content/init", POST | {"post_mode": "MEDIA_UPLOAD", "post_info": info})[1] == code
    assert len(net.drafts) == (code == "ok") and not net.posts


@pytest.mark.parametrize("body, code", [
    ({"source_info": PLAN}, "ok"), ({"source_info": PLAN, "post_info": INFO}, "invalid_param"), ({}, "invalid_param"),
    ({"source_info": PLAN | {"total_chunk_count": 4}}, "invalid_param"),
])
def test_drafts_of_videos(net, body, code):
    assert post(net, "inbox/video/init", body)[1] == code and not net.posts


def test_drafts_and_posts_need_their_own_scopes(net):
    net.add_user("pat", "pat", scopes="video.publish")
    net.add_user("una", "una", scopes="video.upload")
    draft = POST | {"post_mode": "MEDIA_UPLOAD", "post_info": {}}
    assert post(net, "content/init", POST, token="pat")[1] == post(net, "content/init", draft, token="una")[1] == "ok"
    for path, body, token in (("content/init", draft, "pat"), ("content/init", POST, "una"),
                              ("inbox/video/init", {"source_info": PLAN}, "pat"),
                              ("video/init", {"post_info": INFO, "source_info": PLAN}, "una")):
        assert post(net, path, body, token=token)[:2] == (401, "scope_not_authorized")


def test_who_may_ask(net):
    net.add_user("ben", "ben", scopes="user.info.basic")
    assert post(net, "content/init", POST, token="nobody")[:2] == (401, "access_token_invalid")
    assert post(net, "content/init", POST, token="ben")[:2] == (401, "scope_not_authorized")
    assert post(net, "content/init", POST, kind="application/json")[:2] == (400, "invalid_params")
    net.add_user("eve", "eve")
    task = post(net, "content/init", POST)[2]["publish_id"]
    assert post(net, "status/fetch", {"publish_id": task}, token="eve")[1] == "token_not_authorized_for_specified_publish_id"
    assert post(net, "status/fetch", {"publish_id": "v_pub_file~1"})[1] == "invalid_publish_id"


def test_chunks_come_in_order_and_whole(net):
    size = 10_000_001
    source = {"source": "FILE_UPLOAD", "video_size": size, "chunk_size": 5_000_000, "total_chunk_count": 2}
    begun = post(net, "video/init", {"post_info": INFO, "source_info": source})[2]
    url, chunk = begun["upload_url"], bytes(5_000_000)
    assert put(net, url, 5_000_000, chunk + b"x", size) == (416, f"bytes 0-0/{size}")
    assert put(net, url, 0, chunk, size - 1)[0] == put(net, url, 0, chunk[1:], size)[0] == 400
    assert put(net, url, 0, chunk, size, **{"Content-Type": "image/png"})[0] == 400
    assert put(net, url, 0, chunk, size, Authorization=f"Bearer {TOKEN}")[0] == 400
    assert put(net, url.replace("upload_token=", "upload_token=x"), 0, chunk, size)[0] == 404
    assert put(net, url, 0, chunk, size)[0] == 206
    assert put(net, url, 0, chunk, size) == (416, f"bytes 0-5000000/{size}")
    status = post(net, "status/fetch", {"publish_id": begun["publish_id"]})[2]
    assert status == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": 5_000_000} and not net.posts
    net.advance(3600)
    assert put(net, url, 5_000_000, chunk + b"x", size)[0] == 403


def test_posts_wait_for_their_audit():
    with known.start() as net:
        net.audited = False
        assert post(net, "content/init", POST)[1] == "unaudited_client_can_only_post_to_private_accounts"
