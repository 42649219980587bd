"""The stand-ins of Meta refuse what its networks refuse: unknown parameters, wrong types, and what does not go together."""

import json

import pytest

from platforms.errors import Rejected
from platforms.http import Upload
from tests.live import PNG, part_of
from tests.scenes import MODULES, Scene

PICTURE = {"image_url": "https://media.test/1.jpg"}
REEL = {"media_type": "REELS", "video_url": "https://media.test/1.mp4"}
CHILD = {**PICTURE, "is_carousel_item": "true"}
TEXT, SECOND = {"media_type": "TEXT", "text": "hi"}, {"offset": 1, "length": 1}
TAG = {"username": "ben", "x": 0.5, "y": 0.5}
PRODUCT = {"product_id": "7", "x": 0.5, "y": 0.5}


@pytest.fixture
def scene(request):
    with MODULES[request.param].start() as net:
        yield Scene(request.param, net)


def told(form):
    """Parameters as they go out, lists and objects as JSON."""
    return {name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in form.items()}


def refused(scene, edge, form, node=None, **request):
    """Whether a request with these parameters is refused, and nothing becomes public."""
    before, path = scene.public(), f"/{node or scene.account.platform_id}{edge and '/'}{edge}"
    with pytest.raises(Rejected):
        scene.connector.call(scene.account, "POST", path, form=told(form), **request)
    return scene.public() == before


@pytest.mark.parametrize("scene, edge, form", [
    ("instagram", "media", PICTURE), ("instagram", "media", CHILD), ("instagram", "media", REEL),
    ("instagram", "media", {**PICTURE, "user_tags": [TAG], "product_tags": [PRODUCT] * 5}),
    ("threads", "threads", TEXT), ("facebook", "feed", {"message": "hi"}),
    ("threads", "threads", {**TEXT, "text_entities": [{**SECOND, "entity_type": "SPOILER"}]}),
    ("threads", "threads", {**TEXT, "text_attachment": {"plaintext": "ab"}, "link_attachment": "https://b.test"}),
], indirect=["scene"])
def test_what_the_refused_differ_from_is_taken(scene, edge, form):
    assert scene.connector.call(scene.account, "POST", f"/{scene.account.platform_id}/{edge}", form=told(form)).field("id")


@pytest.mark.parametrize("scene", ["instagram"], indirect=True)
@pytest.mark.parametrize("form", [
    {**PICTURE, "colour": "red"}, {}, {**PICTURE, **REEL}, {"media_type": "FILM", **PICTURE},
    {"media_type": "REELS", **PICTURE},
    {"media_type": "STORIES", **PICTURE, "caption": "hi"}, {**CHILD, "caption": "hi"}, {**CHILD, "location_id": "1"},
    {**PICTURE, "is_ai_generated": "perhaps"}, {**PICTURE, "location_id": "here"}, {**PICTURE, "collaborators": list("abcd")},
    {**PICTURE, "branded_content_sponsor_ids": list("123")}, {**PICTURE, "alt_text": "x" * 1001},
    {**PICTURE, "user_tags": "ben"}, {**PICTURE, "user_tags": [{"username": "ben"}]}, {**REEL, "user_tags": [TAG]},
    {**PICTURE, "product_tags": [{"product_id": "7"}]},
    {**REEL, "product_tags": [PRODUCT]}, {**PICTURE, "product_tags": [PRODUCT] * 6}, {**PICTURE, "product_tags": [TAG]},
    {**REEL, "thumb_offset": "soon"}, {**REEL, "cover_url": "ftp://media.test/1.jpg"},
    {**PICTURE, "cover_url": "https://a.test"}, {**REEL, "audio_configuration": {"audio_volume": 5}},
    {**REEL, "audio_configuration": {"audio_id": "1", "audio_volume": 101}},
    {**REEL, "trial_params": {"graduation_strategy": "SOON"}}, {"media_type": "REELS", "upload_type": "sudden"},
    {**PICTURE, "caption": "x" * 2201}, {"media_type": "CAROUSEL", "children": "1"}, {**PICTURE, "image_url": "media.test"},
])
def test_instagram(scene, form):
    assert refused(scene, "media", form) and not scene.net.containers


@pytest.mark.parametrize("scene", ["threads"], indirect=True)
@pytest.mark.parametrize("form", [
    {"colour": "red"}, {"text": " "}, {"media_type": "FILM"}, {"media_type": "IMAGE"}, {"text": "x" * 501},
    {"reply_control": "nobody"}, {"enable_reply_approvals": "perhaps"},
    {"topic_tag": "a.b"}, {"poll_attachment": {"option_a": "a"}},
    {"poll_attachment": {"option_a": "a", "option_b": "b", "option_d": "d"}},
    {"gif_attachment": {"gif_id": "1", "provider": "TENOR"}}, {"gif_attachment": {"gif_id": "1"}},
    {"poll_attachment": {"option_a": "a", "option_b": " "}}, {"text_attachment": {"plaintext": " "}},
    {"text_attachment": {"plaintext": "x" * 10_001}},
    {"text_attachment": {"plaintext": "a"}, "poll_attachment": {"option_a": "a", "option_b": "b"}},
    {"text_attachment": {"plaintext": "a", "link_attachment_url": "https://a.test"}, "link_attachment": "https://b.test"},
    {"text_attachment": {"plaintext": "a", "text_with_styling_info": [{**SECOND, "styling_info": ["bold"]}]}},
    {"text_attachment": {"plaintext": "ab", "text_with_styling_info": [{**SECOND, "styling_info": ["red"]}]}},
    {"text_entities": [{**SECOND, "entity_type": "SPOILER", "length": 2}]},
    {"text_entities": [{**SECOND, "entity_type": "BOLD"}]},
    {"text_entities": [{**SECOND, "entity_type": "SPOILER"}] * 2},
    {"is_ghost_post": "true", "topic_tag": "a"}, {"allowlisted_country_codes": "Austria"},
    {"crossreshare_to_ig": "dark"}, {"reply_to_id": "1"}, {"quote_post_id": "1"},
    {"text": " ".join(f"https://{letter}.test" for letter in "abcdef")},
])
def test_threads(scene, form):
    assert refused(scene, "threads", {**TEXT, **form}) and not scene.net.containers


@pytest.mark.parametrize("scene", ["facebook"], indirect=True)
@pytest.mark.parametrize("form", [
    {"colour": "red"}, {"message": " "}, {"message": "x" * 63_207}, {"place": "1"}, {"link": "bread.example"},
    {"attached_media": "1"}, {"attached_media": [{"media_fbid": "1"}]},
    {"targeting": "AT"}, {"targeting": {"age_min": 14}}, {"targeting": {"towns": []}},
    {"targeting": {"geo_locations": {"countries": ["Austria"]}}}, {"sponsor_id": "flour"},
    {"backdated_time": "2999-01-01T00:00:00Z"}, {"backdated_time_granularity": "week"},
])
def test_facebook(scene, form):
    assert refused(scene, "feed", {"message": "hi", **form})


@pytest.mark.parametrize("scene", ["facebook"], indirect=True)
def test_what_facebook_refuses_of_a_video(scene):
    receipt = scene.prepared(scene.content("video"))
    video, session = receipt["video"], receipt["session"]
    for form in ({"upload_session_id": "1"}, {"upload_session_id": session, "place": "900"},
                 {"upload_session_id": session, "targeting": "AT"}, {"upload_session_id": session, "sponsor_id": "flour"}):
        assert refused(scene, "videos", form, host="video_url", query={"upload_phase": "finish"})
    assert refused(scene, "collaborators", {"target_id": "77"}, node=video)
    for kind, data in (("image/gif", b"GIF89a"), ("image/jpeg", PNG), ("text/plain", b"picture")):
        picture = Upload("source", "1", kind, part_of(data)(), len(data))
        assert refused(scene, "thumbnails", {"is_preferred": "true"}, node=video, files=[picture])
    assert refused(scene, "thumbnails", {"is_preferred": "true"}, node=video) and scene.net.videos[video].thumbnail is None


@pytest.mark.parametrize("scene", ["instagram"], indirect=True)
def test_what_instagram_refuses_of_comments(scene):
    post = scene.sent(scene.content("image"), scene.prepared(scene.content("image")))
    assert refused(scene, "", {"comment_enabled": "perhaps"}, node=post.id)
    assert refused(scene, "comments", {"message": " "}, node=post.id)
    scene.connector.call(scene.account, "POST", f"/{post.id}", form={"comment_enabled": "false"})
    assert refused(scene, "comments", {"message": "More"}, node=post.id) and not scene.net.comments
