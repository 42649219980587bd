"""What Instagram, Facebook, Threads and Google Business Profile refuse before anything is sent."""

import pytest

from platforms.base import GIF, JPEG, MB, MP4, PNG, QUICKTIME, WEBM, WEBP, Content, Media
from platforms.facebook import Facebook
from platforms.gbp import GoogleBusinessProfile
from platforms.instagram import Instagram
from platforms.text import emoji_as_bytes
from platforms.threads import Threads

instagram, facebook, threads, gbp = Instagram(), Facebook(), Threads(), GoogleBusinessProfile()

OPEN_DAY = {"title": "Open day", "start": "2026-12-01T09:00", "end": "2026-12-01T17:00"}


def photo(mime_type=JPEG, size=MB, width=1080, height=1080):
    return Media(mime_type, size, "https://media.test/photo", width, height)


def moving(mime_type, size=MB):
    return Media(mime_type, size, "https://media.test/moving", 1080, 1080, animated=True)


def film(mime_type=MP4, size=MB, width=1080, height=1920, duration=30.0):
    return Media(mime_type, size, "https://media.test/film", width, height, duration)


def broken(platform, caption="", media=(), post_type=None, **options):
    """The broken rules of a post, each with its place."""
    problems = platform.problems(Content(caption=caption, media=tuple(media), post_type=post_type, options=options))
    return [(problem.path, problem.rule) for problem in problems]


def row(name, platform, expected=(), **post):
    return pytest.param(platform, post, list(expected), id=name)


@pytest.mark.parametrize("platform, post, expected", [
    row("instagram caption at the limit", instagram, caption="é" * 2200, media=[photo()]),
    row("instagram caption one over", instagram, [("caption", "caption_length")], caption="é" * 2201, media=[photo()]),
    row("instagram story with a caption", instagram, [("caption", "caption_length")], caption="a", media=[photo()],
        post_type="story"),
    row("instagram 30 hashtags", instagram, caption="#a " * 30, media=[photo()]),
    row("instagram 31 hashtags", instagram, [("caption", "caption_hashtags")], caption="#a " * 31, media=[photo()]),
    row("instagram 31 fragments of URLs", instagram, caption="https://a.test/b#c " * 31, media=[photo()]),
    row("instagram 20 mentions", instagram, caption="@a " * 20, media=[photo()]),
    row("instagram 21 mentions", instagram, [("caption", "caption_mentions")], caption="@a " * 21, media=[photo()]),
    row("instagram 21 mail addresses", instagram, caption="a@b.test " * 21, media=[photo()]),
    row("facebook caption at the limit", facebook, caption="😀" * 63_206),
    row("facebook caption one over", facebook, [("caption", "caption_length")], caption="a" * 63_207),
    row("facebook text without a caption", facebook, [("caption", "caption_required")], caption=" "),
    row("facebook photo without a caption", facebook, media=[photo()]),
    row("threads caption at the limit", threads, caption="é" * 500),
    row("threads caption one over", threads, [("caption", "caption_length")], caption="é" * 501),
    row("threads emojis at the limit", threads, caption="😀" * 125),
    row("threads emojis one over", threads, [("caption", "caption_length")], caption="😀" * 125 + "a"),
    row("threads text without a caption", threads, [("caption", "caption_required")]),
    row("threads photo without a caption", threads, media=[photo()]),
    row("threads poll without a caption", threads, [("caption", "caption_required")], post_type="poll",
        poll={"optionA": "a", "optionB": "b"}),
    row("threads link without a caption", threads, post_type="link", linkAttachment="https://a.test"),
    row("gbp caption at the limit", gbp, caption="a" * 1500),
    row("gbp caption one over", gbp, [("caption", "caption_length")], caption="a" * 1501),
    row("gbp emojis at the limit", gbp, caption="😀" * 750),
    row("gbp emojis one over", gbp, [("caption", "caption_length")], caption="😀" * 750 + "a"),
    row("gbp photo without a caption", gbp, [("caption", "caption_required")], media=[photo()]),
    row("gbp event without a caption", gbp, [("caption", "caption_required")], post_type="event", event=OPEN_DAY),
    row("gbp offer without a caption", gbp, [("caption", "caption_required")], post_type="offer", event=OPEN_DAY),
])
def test_captions(platform, post, expected):
    assert broken(platform, **post) == expected


@pytest.mark.parametrize("platform, post, expected", [
    row("instagram nothing", instagram, [("media", "media_required")], caption="a"),
    row("instagram 10 of a carousel", instagram, media=[photo()] * 9 + [film()]),
    row("instagram 11 of a carousel", instagram, [("media", "media_count")], media=[photo()] * 11, post_type="carousel"),
    row("instagram 1 of a carousel", instagram, [("media", "media_count")], media=[photo()], post_type="carousel"),
    row("instagram 11 of anything", instagram, [("media", "media_count")], media=[photo()] * 11),
    row("instagram 2 of a story", instagram, [("media", "media_count")], media=[photo(), film()], post_type="story"),
    row("instagram 2 of a reel", instagram, [("media", "media_count")], media=[film(), film()], post_type="reel"),
    row("instagram PNG", instagram, media=[photo(PNG)]),
    row("instagram WebP that moves", instagram, [("media/0", "media_type")], media=[moving(WEBP)]),
    row("instagram GIF", instagram, [("media/0", "media_type")], media=[photo(GIF)]),
    row("instagram PNG narrower than 4:5", instagram, [("media/0", "media_aspect_ratio")],
        media=[photo(PNG, 9 * MB, width=1080, height=1351)]),
    row("instagram WebM", instagram, [("media/0", "media_type")], media=[film(WEBM)]),
    row("instagram photo of 8 MB", instagram, media=[photo(size=8 * MB)]),
    row("instagram photo over 8 MB", instagram, media=[photo(size=8 * MB + 1)]),
    row("instagram GIF over 8 MB", instagram, [("media/0", "media_type"), ("media/0", "media_bytes")],
        media=[photo(GIF, 8 * MB + 1)]),
    row("instagram photo of 4:5", instagram, media=[photo(width=1080, height=1350)]),
    row("instagram photo of 1.91:1", instagram, media=[photo(width=1910, height=1000)]),
    row("instagram photo narrower than 4:5", instagram, [("media/0", "media_aspect_ratio")],
        media=[photo(width=1080, height=1351)]),
    row("instagram photo wider than 1.91:1", instagram, [("media/1", "media_aspect_ratio")],
        media=[photo(), photo(width=1080, height=565)]),
    row("instagram story photo of 9:16", instagram, media=[photo(width=1080, height=1920)], post_type="story"),
    row("instagram story photo of 8 MB", instagram, media=[photo(size=8 * MB)], post_type="story"),
    row("instagram story photo over 8 MB", instagram, media=[photo(size=8 * MB + 1)], post_type="story"),
    row("instagram reel of 3 seconds", instagram, media=[film(width=1920, height=192, duration=3)]),
    row("instagram thinnest reel", instagram, media=[film(width=10, height=1000)]),
    row("instagram too thin reel", instagram, [("media/0", "media_aspect_ratio")], media=[film(width=9, height=1000)]),
    row("instagram too wide reel", instagram, [("media/0", "media_aspect_ratio")], media=[film(width=1920, height=191)]),
    row("instagram story of a minute", instagram, media=[film(size=100 * MB, width=100, height=1000, duration=60)],
        post_type="story"),
    row("instagram story of 3 seconds", instagram, media=[film(width=1920, height=192, duration=3)], post_type="story"),
    row("instagram story out of every bound", instagram,
        [("media/0", rule) for rule in ("media_bytes", "media_width", "media_aspect_ratio", "media_duration")],
        media=[film(size=100 * MB + 1, width=1921, height=192, duration=2.9)], post_type="story"),
    row("instagram too thin story", instagram, [("media/0", "media_aspect_ratio")], media=[film(width=99, height=1000)],
        post_type="story"),
    row("instagram reel of 15 minutes", instagram, media=[film(QUICKTIME, 300 * MB, duration=900)]),
    row("instagram reel over 15 minutes and 300 MB", instagram, [("media/0", "media_bytes"), ("media/0", "media_duration")],
        media=[film(size=300 * MB + 1, duration=900.1)]),
    row("instagram reel under 3 seconds", instagram, [("media/0", "media_duration")], media=[film(duration=2.9)]),
    row("instagram reel over 1920 pixels", instagram, [("media/0", "media_width")], media=[film(width=1921)]),
    row("instagram story over a minute", instagram, [("media/0", "media_duration")], media=[film(duration=61)],
        post_type="story"),
    row("instagram unmeasured reel", instagram, media=[Media(MP4, MB, "https://media.test/film")]),
    row("facebook 10 photos", facebook, media=[photo(JPEG), photo(PNG), photo(GIF)] * 3 + [photo()]),
    row("facebook 11 photos", facebook, [("media", "media_count")], media=[photo()] * 11),
    row("facebook video with a thumbnail", facebook, media=[photo(), film()]),
    row("facebook video with two thumbnails", facebook, [("media", "media_count")], media=[photo(), film(), photo()]),
    row("facebook video with a GIF for a thumbnail", facebook, [("media/1", "media_type")], media=[film(), photo(GIF)]),
    row("facebook text with a photo", facebook, [("media", "media_count")], caption="a", media=[photo()], post_type="text"),
    row("facebook WebP over 10 MB", facebook, media=[photo(WEBP, 10 * MB + 1)]),
    row("facebook WebP that moves", facebook, [("media/1", "media_type")], media=[photo(WEBP), moving(WEBP)]),
    row("facebook GIF over 10 MB", facebook, [("media/0", "media_bytes")], media=[photo(GIF, 10 * MB + 1)]),
    row("facebook video of 4 hours", facebook, media=[film(QUICKTIME, 2048 * MB, 854, 480, 14_400)]),
    row("facebook video over 4 hours", facebook, [("media/0", "media_duration")], media=[film(duration=14_401)]),
    row("facebook reel of 90 seconds", facebook, media=[film(width=608, height=1080, duration=90)], post_type="reel"),
    row("facebook smallest reel", facebook, media=[film(width=540, height=960, duration=3)], post_type="reel"),
    row("facebook reel under 3 seconds", facebook, [("media/0", "media_duration")], media=[film(duration=2.9)],
        post_type="reel"),
    row("facebook narrow reel", facebook, [("media/0", "media_aspect_ratio")], media=[film(width=1080, height=2340)],
        post_type="reel"),
    row("facebook reel over 90 seconds", facebook, [("media/0", "media_duration")], media=[film(duration=91)],
        post_type="reel"),
    row("facebook square reel", facebook, [("media/0", "media_aspect_ratio")], media=[film(width=1080, height=1080)],
        post_type="reel"),
    row("facebook small reel", facebook, [("media/0", "media_width"), ("media/0", "media_height")],
        media=[film(width=360, height=640)], post_type="reel"),
    row("facebook story over a minute", facebook, [("media/0", "media_duration")], media=[film(duration=61)],
        post_type="story"),
    row("threads 20 of a carousel", threads, media=[photo(PNG)] * 10 + [film()] * 10),
    row("threads 21 of a carousel", threads, [("media", "media_count")], media=[photo()] * 21),
    row("threads GIF", threads, [("media/1", "media_type")], media=[photo(), photo(GIF)]),
    row("threads photo of 10:1", threads, media=[photo(width=1000, height=100)]),
    row("threads photo of 8 MB", threads, media=[photo(size=8 * MB)]),
    row("threads photo over 8 MB", threads, media=[photo(size=8 * MB + 1)]),
    row("threads PNG over 8 MB that moves", threads, [("media/0", "media_bytes")], media=[moving(PNG, 8 * MB + 1)]),
    row("threads photo wider than 10:1", threads, [("media/0", "media_aspect_ratio")], media=[photo(width=1001, height=100)]),
    row("threads video of 5 minutes", threads, media=[film(size=1024 * MB, duration=300)]),
    row("threads widest video", threads, media=[film(width=1920, height=192)]),
    row("threads too wide video", threads, [("media/0", "media_width"), ("media/0", "media_aspect_ratio")],
        media=[film(width=1921, height=192)]),
    row("threads thinnest video", threads, media=[film(width=10, height=1000)]),
    row("threads too thin video", threads, [("media/0", "media_aspect_ratio")], media=[film(width=9, height=1000)]),
    row("threads video over 5 minutes and 1 GB", threads, [("media/0", "media_bytes"), ("media/0", "media_duration")],
        media=[film(size=1024 * MB + 1, duration=301)]),
    row("gbp photo at the least", gbp, caption="a", media=[photo(PNG, 10_240, 400, 300)]),
    row("gbp photo under the least", gbp, [("media/0", "media_width"), ("media/0", "media_height"), ("media/0", "media_bytes")],
        caption="a", media=[photo(PNG, 10_239, 399, 299)]),
    row("gbp photo over 5 MB", gbp, caption="a", media=[photo(size=5 * MB + 1)]),
    row("gbp GIF over 5 MB", gbp, [("media/0", "media_type"), ("media/0", "media_bytes")], caption="a",
        media=[photo(GIF, 5 * MB + 1)]),
    row("gbp 2 photos", gbp, [("media", "media_count")], caption="a", media=[photo(), photo()]),
    row("gbp video", gbp, [("options/category", "required")], caption="a", media=[film()]),
    row("gbp video in a post", gbp, [("media", "media_count")], caption="a", media=[film()], post_type="update"),
    row("gbp largest video", gbp, media=[film(QUICKTIME, 75 * MB, 720, 1280, 30)], category="MENU"),
    row("gbp WebP", gbp, caption="a", media=[photo(WEBP)]),
    row("gbp tiny WebP", gbp, [("media/0", "media_height")], caption="a", media=[photo(WEBP, width=400, height=299)]),
])
def test_media(platform, post, expected):
    assert broken(platform, **post) == expected


@pytest.mark.parametrize("platform, post, expected", [
    row("instagram every option of a reel", instagram, media=[film()], userTags=[{"username": "a"}], collaborators=["a"],
        locationId="1", isAiGenerated=True, isPaidPartnership=True, firstComment="a", thumbOffsetMs=29_999, shareToFeed=True,
        audioName="a", trialGraduation="MANUAL"),
    row("instagram photo with a cover", instagram, [("options/thumbOffsetMs", "option")], media=[photo()], thumbOffsetMs=0),
    row("instagram reel with an alt text", instagram, [("options/altTexts", "option"), ("options/altTexts/0", "alt_texts")],
        media=[film()], altTexts=["a"]),
    row("instagram story with a comment", instagram, [("options/firstComment", "option")], media=[photo()], post_type="story",
        firstComment="a"),
    row("instagram blank comment", instagram, [("options/firstComment", "text_required")], media=[photo()], firstComment=" "),
    row("instagram cover after the end", instagram, [("options/thumbOffsetMs", "thumb_offset")], media=[film()],
        thumbOffsetMs=30_000),
    row("instagram alternative texts of a carousel", instagram, media=[photo(), film(), photo()], altTexts=["a", "", "c"]),
    row("instagram alternative text of a video", instagram, [("options/altTexts/1", "alt_texts")], media=[photo(), film()],
        altTexts=["a", "b"]),
    row("instagram too many alternative texts", instagram, [("options/altTexts", "media_options")], media=[photo()],
        altTexts=["a", "b"]),
    row("instagram tag with a position", instagram, media=[photo(), photo()],
        userTags=[{"username": "a", "x": 0, "y": 0.5, "media": 1}]),
    row("instagram tag without a position", instagram, [("options/userTags/1", "user_tags")], media=[photo()],
        userTags=[{"username": "a", "x": 0, "y": 0}, {"username": "b", "x": 0}]),
    row("instagram tag of no media", instagram, [("options/userTags/0/media", "user_tags")], media=[photo()],
        userTags=[{"username": "a", "x": 0, "y": 0, "media": 1}]),
    row("instagram tag on a video of a carousel", instagram, [("options/userTags/0/media", "user_tags")],
        media=[film(), photo()], userTags=[{"username": "a"}]),
    row("instagram tag with a position on a reel", instagram, [("options/userTags/0", "user_tags")], media=[film()],
        userTags=[{"username": "a", "x": 0, "y": 0}]),
    row("instagram tag on a story", instagram, media=[photo()], post_type="story", userTags=[{"username": "a"}]),
    row("facebook link", facebook, post_type="link", link="https://a.test", placeId="1", firstComment="a"),
    row("facebook blank comment", facebook, [("options/firstComment", "text_required")], caption="a", firstComment="\n"),
    row("facebook link without its link", facebook, [("options/link", "required")], caption="a", post_type="link"),
    row("facebook text with a link", facebook, [("options/link", "option")], caption="a", post_type="text", link="https://a.test"),
    row("facebook video with a place", facebook, [("options/placeId", "option")], media=[film()], title="a", placeId="1"),
    row("facebook reel with a place", facebook, media=[film()], post_type="reel", title="a", placeId="1"),
    row("facebook too many alternative texts", facebook, [("options/altTexts", "media_options")], media=[photo()],
        altTexts=["a", "b"]),
    row("facebook story with a caption", facebook, [("caption", "caption_length")], caption="a", media=[photo()],
        post_type="story"),
    row("threads every option of a photo", threads, media=[photo()], altTexts=["a"], isSpoilerMedia=True,
        replyControl="everyone", enableReplyApprovals=True, topicTag="a", locationId="1", quotePostId="1", firstComment="a"),
    row("threads text with alternative texts", threads, [("options/altTexts", "option"), ("options/altTexts", "media_options")],
        caption="a", altTexts=["a"]),
    row("threads poll", threads, caption="a", post_type="poll", poll={"optionA": "a", "optionB": "b"}),
    row("threads poll without its poll", threads, [("options/poll", "required")], caption="a", post_type="poll"),
    row("threads poll with a gap", threads, [("options/poll/optionC", "required")], caption="a", post_type="poll",
        poll={"optionA": "a", "optionB": "b", "optionD": "d"}),
    row("threads poll with a blank", threads, [("options/poll/optionB", "text_required")], caption="a",
        poll={"optionA": "a", "optionB": " "}),
    row("threads long text of blanks", threads, [("options/textAttachment/plaintext", "text_required")], caption="a",
        textAttachment={"plaintext": "\n"}),
    row("threads link without its link", threads, [("options/linkAttachment", "required")], caption="a", post_type="link"),
    row("threads five links", threads, caption="www.a.test https://b.test, https://c.test. https://d.test (https://b.test)",
        post_type="link", linkAttachment="https://e.test"),
    row("threads five links, one of them attached", threads, post_type="link", linkAttachment="https://e.test",
        caption="www.a.test https://b.test https://c.test https://d.test https://e.test!"),
    row("threads six links", threads, [("caption", "caption_links")], post_type="link", linkAttachment="https://f.test",
        caption="www.a.test https://b.test https://c.test https://d.test https://e.test"),
    row("threads comment at the limit", threads, caption="a", firstComment="😀" * 125),
    row("threads comment one over", threads, [("options/firstComment", "comment_length")], caption="a",
        firstComment="😀" * 125 + "a"),
    row("gbp update with a button", gbp, caption="a", language="en", cta={"actionType": "BOOK", "url": "https://a.test"}),
    row("gbp button without a url", gbp, [("options/cta/url", "required")], caption="a", cta={"actionType": "BOOK"}),
    row("gbp call", gbp, caption="a", cta={"actionType": "CALL"}),
    row("gbp call with a url", gbp, [("options/cta/url", "option")], caption="a",
        cta={"actionType": "CALL", "url": "https://a.test"}),
    row("gbp update with an event", gbp, [("options/event", "option")], caption="a", post_type="update", event=OPEN_DAY),
    row("gbp event without its event", gbp, [("options/event", "required")], caption="a", post_type="event"),
    row("gbp offer", gbp, caption="a", post_type="offer", event=OPEN_DAY, offer={"couponCode": "a"}),
    row("gbp offer with a button", gbp, [("options/cta", "option")], caption="a", post_type="offer", event=OPEN_DAY,
        cta={"actionType": "CALL"}),
    row("gbp offer without an event", gbp, [("options/event", "required")], caption="a", post_type="offer", offer={}),
    row("gbp event of one minute", gbp, caption="a", post_type="event", event={**OPEN_DAY, "end": "2026-12-01T09:00"}),
    row("gbp event that ends before it starts", gbp, [("options/event/end", "event_end")], caption="a", post_type="event",
        event={**OPEN_DAY, "end": "2026-12-01T08:59"}),
    row("gbp event on no day", gbp, [("options/event/start", "event_time")], caption="a", post_type="event",
        event={**OPEN_DAY, "start": "2026-02-30T09:00"}),
    row("gbp title at the limit", gbp, caption="a", post_type="event", event={**OPEN_DAY, "title": "a" * 58}),
    row("gbp title one over", gbp, [("options/event/title", "title_length")], caption="a", post_type="event",
        event={**OPEN_DAY, "title": "😀" * 29 + "a"}),
    row("a post type of other networks", gbp, [("postType", "post_type")], caption="a", post_type="reel"),
])
def test_options(platform, post, expected):
    assert broken(platform, **post) == expected


@pytest.mark.parametrize("platform, media, post_type", [
    pytest.param(platform, media, post_type, id=f"{platform.name} {name}")
    for name, media, post_types in [
        ("nothing", [], [None, "text", "text", "update"]),
        ("a photo", [photo()], ["image", "image", "image", "update"]),
        ("two photos", [photo()] * 2, ["carousel", "image", "carousel", None]),
        ("a video", [film()], ["reel", "video", "video", "video"]),
        ("two videos", [film()] * 2, ["carousel", None, "carousel", None]),
        ("a photo and a video", [photo(), film()], ["carousel", "video", "carousel", None]),
    ] for platform, post_type in zip([instagram, facebook, threads, gbp], post_types)
])
def test_a_missing_post_type_is_inferred(platform, media, post_type):
    assert platform.infer(media) == post_type


@pytest.mark.parametrize("platform", [instagram, facebook, threads, gbp], ids=lambda platform: platform.name)
def test_the_limit_of_media_is_that_of_the_largest_post_type(platform):
    assert platform.limits.media_items == max((kind.total or (0, max(kind.images[1], kind.videos[1])))[1]
                                              for kind in platform.post_types.values())


@pytest.mark.parametrize("text, length", [
    pytest.param("", 0, id="nothing"),
    pytest.param("a1#*", 4, id="ASCII, digits included"),
    pytest.param("é漢", 2, id="letters of several bytes"),
    pytest.param("e\u0301", 2, id="a combining accent"),
    pytest.param("😀", 4, id="an emoji"),
    pytest.param("👨\u200d👩\u200d👧", 18, id="a family"),
    pytest.param("👍🏽", 8, id="a skin tone"),
    pytest.param("🇩🇪", 8, id="a flag"),
    pytest.param("1\ufe0f\u20e3", 7, id="a keycap"),
    pytest.param("❤\ufe0f", 6, id="a heart"),
    pytest.param("é😀é", 6, id="a mixture"),
])
def test_threads_counts_emojis_in_bytes(text, length):
    assert emoji_as_bytes(text) == length


@pytest.mark.parametrize("platform, options, post_type", [
    pytest.param(facebook, ["link"], "link", id="facebook link"),
    pytest.param(threads, ["poll"], "poll", id="threads poll"),
    pytest.param(gbp, ["event"], "event", id="gbp event"),
    pytest.param(gbp, ["event", "cta"], "event", id="a button of an event"),
    pytest.param(gbp, ["event", "offer"], "offer", id="gbp offer"),
    pytest.param(gbp, ["language"], "update", id="an option of every post"),
])
def test_an_option_that_a_post_type_needs_tells_which_it_is(platform, options, post_type):
    assert platform.infer([], options) == post_type
