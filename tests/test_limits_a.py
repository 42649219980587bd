"""What X, LinkedIn, TikTok, YouTube and Pinterest refuse before anything is sent, and how X counts."""

import time

import pytest
from twitter_text import parse_tweet

from platforms.base import GIF, JPEG, MB, MP4, PNG, QUICKTIME, WEBM, WEBP, Content, Media
from platforms.linkedin import LinkedIn
from platforms.pinterest import Pinterest
from platforms.text import tweet_weight
from platforms.tiktok import TikTok
from platforms.twitter import Twitter
from platforms.youtube import YouTube

twitter, linkedin, tiktok, youtube, pinterest = NETWORKS = Twitter(), LinkedIn(), TikTok(), YouTube(), Pinterest()

QUESTION = {"options": ["a", "b"], "durationMinutes": 60}
CARD = {"url": "https://a.test", "title": "A"}
LONG_LINK = "https://example.com/" + "a" * 300
TIKTOK = {"privacyLevel": "PUBLIC_TO_EVERYONE"}
YOUTUBE = {"title": "A", "media": [Media(MP4, MB, "https://media.test/film", 1080, 1920, 30.0)]}
PIN = {"boardId": "1"}


def photo(mime_type=JPEG, size=MB, width=1080, height=1080):
    return Media(mime_type, size, "https://media.test/photo", width, height)


def moving(mime_type, size=MB, width=1080, height=1080):
    return Media(mime_type, size, "https://media.test/moving", width, height, animated=True)


def film(mime_type=MP4, size=MB, width=1080, height=1920, duration=30.0):
    return Media(mime_type, size, "https://media.test/film", width, height, duration)


def broken(platform, caption="", media=(), post_type=None, **options):
    """The broken rules of a post, each with its place."""
    problems = platform.problems(Content(caption=caption, media=tuple(media), post_type=post_type, options=options))
    return [(problem.path, problem.rule) for problem in problems]


def row(name, platform, expected=(), **post):
    return pytest.param(platform, post, list(expected), id=f"{platform.name} {name}")


@pytest.mark.parametrize("platform, post, expected", [
    row("caption at the limit", twitter, caption="a" * 280),
    row("caption one over", twitter, [("caption", "caption_length")], caption="a" * 281),
    row("caption at the limit with a link", twitter, caption=f"{LONG_LINK} {'a' * 256}"),
    row("caption one over with a link", twitter, [("caption", "caption_length")], caption=f"{LONG_LINK} {'a' * 257}"),
    row("caption of 140 heavy characters", twitter, caption="漢" * 140),
    row("caption of 141 heavy characters", twitter, [("caption", "caption_length")], caption="漢" * 141),
    row("text without a caption", twitter, [("caption", "caption_required")]),
    row("poll without a caption", twitter, [("caption", "caption_required")], post_type="poll", poll=QUESTION),
    row("photo without a caption", twitter, media=[photo()]),
    row("caption with a byte order mark", twitter, [("caption", "caption_characters")], caption="a\uFEFF"),
    row("one cashtag and prices", twitter, caption="$ACME: US$5, $5 and a$bc"),
    row("two cashtags", twitter, [("caption", "caption_cashtags")], caption="$ACME, $brk.b!"),
    row("caption at the limit", linkedin, caption="é" * 3000),
    row("caption one over", linkedin, [("caption", "caption_length")], caption="é" * 3001),
    row("text without a caption", linkedin, [("caption", "caption_required")], caption=" \n"),
    row("photo without a caption", linkedin, media=[photo()]),
    row("caption at the limit", tiktok, caption="😀" * 1100, media=[film()], **TIKTOK),
    row("caption one over", tiktok, [("caption", "caption_length")], caption="😀" * 1100 + "a", media=[film()], **TIKTOK),
    row("photo caption at the limit", tiktok, caption="a" * 4000, media=[photo()], **TIKTOK),
    row("photo caption one over", tiktok, [("caption", "caption_length")], caption="a" * 4001, media=[photo()], **TIKTOK),
    row("carousel caption one over", tiktok, [("caption", "caption_length")], caption="a" * 4001, media=[photo()] * 2,
        **TIKTOK),
    row("caption at the limit", youtube, caption="é" * 2500, **YOUTUBE),
    row("caption one over", youtube, [("caption", "caption_length")], caption="é" * 2500 + "a", **YOUTUBE),
    row("caption with an angle bracket", youtube, [("caption", "angle_brackets")], caption="a > b", **YOUTUBE),
    row("caption at the limit", pinterest, caption="é" * 800, media=[photo()], **PIN),
    row("caption one over", pinterest, [("caption", "caption_length")], caption="é" * 801, media=[photo()], **PIN),
])
def test_captions(platform, post, expected):
    assert broken(platform, **post) == expected


@pytest.mark.parametrize("platform, post, expected", [
    row("4 photos", twitter, media=[photo(JPEG), photo(PNG), photo(WEBP), photo(size=5 * MB)]),
    row("5 photos", twitter, [("media", "media_count")], media=[photo()] * 5),
    row("photos over 5 MB", twitter, media=[photo(size=5 * MB + 1), photo(PNG, 5 * MB + 1)]),
    row("animations over 5 MB", twitter, [("media/0", "media_bytes"), ("media/1", "media_bytes")],
        media=[moving(PNG, 5 * MB + 1), moving(WEBP, 5 * MB + 1)]),
    row("largest GIF", twitter, media=[photo(GIF, 15 * MB, 1280, 1080)]),
    row("GIF over 15 MB", twitter, [("media/0", "media_bytes")], media=[photo(GIF, 15 * MB + 1)]),
    row("too wide GIF", twitter, [("media/0", "media_size")], media=[photo(GIF, width=1281)]),
    row("too high GIF", twitter, [("media/0", "media_size")], media=[photo(GIF, height=1081)]),
    row("GIF beside a photo", twitter, [("media/1", "media_count")], media=[photo(), photo(GIF)]),
    row("photo and video", twitter, media=[photo(), film()]),
    row("two photos and a video", twitter, [("media", "media_count")], media=[photo(), photo(), film()]),
    row("GIF and video", twitter, [("media/0", "media_type"), ("media/0", "media_count")], media=[photo(GIF), film()]),
    row("2 videos", twitter, [("media", "media_count")], media=[film(), film()], post_type="video"),
    row("poll with a photo", twitter, [("media", "media_count")], caption="a", media=[photo()], post_type="poll",
        poll=QUESTION),
    row("WebM", twitter, [("media/0", "media_type")], media=[film(WEBM)]),
    row("smallest video", twitter, media=[film(QUICKTIME, width=32, height=32, duration=0.5)]),
    row("too small video", twitter, [("media/0", "media_width"), ("media/0", "media_height")],
        media=[film(width=31, height=31)]),
    row("thinnest video", twitter, media=[film(width=640, height=1920)]),
    row("widest video", twitter, media=[film(size=512 * MB, width=1920, height=640)]),
    row("unmeasured GIF", twitter, media=[Media(GIF, MB, "https://media.test/gif")]),
    row("too thin video", twitter, [("media/0", "media_aspect_ratio")], media=[film(width=639, height=1920)]),
    row("too wide video", twitter, [("media/0", "media_aspect_ratio")], media=[film(width=1921, height=640)]),
    row("longest video", twitter, media=[film(duration=140)]),
    row("too long video", twitter, [("media/0", "media_duration")], media=[film(duration=140.1)]),
    row("too short video", twitter, [("media/0", "media_duration")], media=[film(duration=0.4)]),
    row("video over 512 MB", twitter, [("media/0", "media_bytes")], media=[film(size=512 * MB + 1)]),
    row("20 photos", linkedin, media=[photo(JPEG), photo(PNG)] * 9 + [photo(GIF)] * 2),
    row("21 photos", linkedin, [("media", "media_count")], media=[photo()] * 21),
    row("carousel of one", linkedin, [("media", "media_count")], media=[photo()], post_type="carousel"),
    row("photo and video", linkedin, media=[photo(), film()]),
    row("two photos and a video", linkedin, [("media", "media_count")], media=[photo(), photo(), film()]),
    row("WebP", linkedin, media=[photo(WEBP)]),
    row("animated WebP", linkedin, [("media/0", "media_type")], media=[moving(WEBP)]),
    row("MOV", linkedin, [("media/0", "media_type")], media=[film(QUICKTIME)]),
    row("largest photo", linkedin, media=[photo(size=10 * MB, width=36_152_319, height=1)]),
    row("unmeasured photo", linkedin, media=[Media(JPEG, MB, "https://media.test/photo")]),
    row("photo over 10 MB and of too many pixels", linkedin, media=[photo(size=10 * MB + 1, width=36_152_320, height=1)]),
    row("GIF over 10 MB", linkedin, [("media/0", "media_bytes")], media=[photo(GIF, 10 * MB + 1)]),
    row("GIF of too many pixels", linkedin, [("media/1", "media_pixels")],
        media=[photo(), photo(GIF, width=36_152_320, height=1)]),
    row("largest WebP that is converted", linkedin, media=[photo(WEBP, width=8000, height=8000)]),
    row("WebP too large to be converted", linkedin, [("media/0", "media_type"), ("media/0", "media_pixels")],
        media=[photo(WEBP, width=8000, height=8001)]),
    row("largest JPEG of all", linkedin, media=[photo(width=16_000, height=15_000)]),
    row("smallest video", linkedin, media=[film(size=75_000, width=1000, height=2400, duration=3)]),
    row("too small video", linkedin, [("media/0", "media_bytes")], media=[film(size=74_999)]),
    row("largest video", linkedin, media=[film(size=500 * MB, width=2400, height=1000, duration=1800)]),
    row("video over 500 MB and 30 minutes", linkedin, [("media/0", "media_bytes"), ("media/0", "media_duration")],
        media=[film(size=500 * MB + 1, duration=1801)]),
    row("video under 3 seconds", linkedin, [("media/0", "media_duration")], media=[film(duration=2.9)]),
    row("too thin video", linkedin, [("media/0", "media_aspect_ratio")], media=[film(width=999, height=2400)]),
    row("too wide video", linkedin, [("media/0", "media_aspect_ratio")], media=[film(width=2401, height=1000)]),
    row("link with a thumbnail", linkedin, media=[photo()], post_type="link", link=CARD),
    row("link with two photos", linkedin, [("media", "media_count")], media=[photo()] * 2, post_type="link", link=CARD),
    row("nothing", tiktok, [("media", "media_required")], caption="a", **TIKTOK),
    row("35 photos", tiktok, media=[photo(WEBP)] * 35, **TIKTOK),
    row("36 photos", tiktok, [("media", "media_count")], media=[photo()] * 36, post_type="carousel", **TIKTOK),
    row("photo and video", tiktok, [("media", "media_count")], media=[photo(), film()], **TIKTOK),
    row("PNG", tiktok, media=[photo(PNG)], **TIKTOK),
    row("animated PNG", tiktok, [("media/0", "media_type")], media=[moving(PNG)], **TIKTOK),
    row("GIF", tiktok, [("media/0", "media_type")], media=[photo(GIF)], **TIKTOK),
    row("largest photos", tiktok, media=[photo(size=20 * MB, width=1920), photo(size=20 * MB, height=1920)], **TIKTOK),
    row("unmeasured photo", tiktok, media=[Media(JPEG, MB, "https://media.test/photo")], **TIKTOK),
    row("photo over every bound", tiktok, media=[photo(PNG, 20 * MB + 1, 1921, 1921)], **TIKTOK),
    row("animated WebP over every bound", tiktok,
        [("media/0", rule) for rule in ("media_bytes", "media_width", "media_height", "media_short_side")],
        media=[moving(WEBP, 20 * MB + 1, 1921, 1921)], **TIKTOK),
    row("unmeasured PNG", tiktok, media=[Media(PNG, 21 * MB, "https://media.test/photo")], **TIKTOK),
    row("carousel of one", tiktok, [("media", "media_count")], media=[photo()], post_type="carousel", **TIKTOK),
    row("WebM at every upper bound", tiktok, media=[film(WEBM, 4096 * MB, 4096, 4096, 600)], **TIKTOK),
    row("MOV at every lower bound", tiktok, media=[film(QUICKTIME, 1, 360, 360, 3)], **TIKTOK),
    row("video over every bound", tiktok,
        [("media/0", rule) for rule in ("media_bytes", "media_width", "media_height", "media_duration")],
        media=[film(MP4, 4096 * MB + 1, 4097, 4097, 600.1)], **TIKTOK),
    row("video under every bound", tiktok, [("media/0", rule) for rule in ("media_width", "media_height", "media_duration")],
        media=[film(width=359, height=359, duration=2.9)], **TIKTOK),
    row("nothing", youtube, [("media", "media_required")], caption="a", title="A"),
    row("photo", youtube, [("media", "media_count")], media=[photo()], title="A"),
    row("video with its thumbnail", youtube, media=[film(), photo(PNG, 50 * MB)], title="A"),
    row("GIF over 50 MB for a thumbnail", youtube, [("media/1", "media_type"), ("media/1", "media_bytes")],
        media=[film(), photo(GIF, 50 * MB + 1)], title="A"),
    row("WebP for a thumbnail", youtube, media=[photo(WEBP), film()], title="A"),
    row("two thumbnails", youtube, [("media", "media_count")], media=[film(), photo(), photo()], title="A", post_type="video"),
    row("2 videos", youtube, [("media", "media_count")], media=[film()] * 2, title="A", post_type="video"),
    row("largest video", youtube, media=[film(QUICKTIME, 256 * 1024 * MB, 7680, 4320, 43_200)], title="A"),
    row("video over 256 GB and 12 hours", youtube, [("media/0", "media_bytes"), ("media/0", "media_duration")],
        media=[film(WEBM, 256 * 1024 * MB + 1, duration=43_201)], title="A"),
    row("square Short of 3 minutes", youtube, media=[film(width=1080, height=1080, duration=180)], title="A", post_type="reel"),
    row("lying Short", youtube, [("media/0", "media_aspect_ratio")], media=[film(width=1081, height=1080)], title="A",
        post_type="reel"),
    row("Short over 3 minutes", youtube, [("media/0", "media_duration")], media=[film(duration=180.1)], title="A",
        post_type="reel"),
    row("nothing", pinterest, [("media", "media_required")], caption="a", **PIN),
    row("5 photos", pinterest, media=[photo(JPEG), photo(PNG)] * 2 + [photo()], **PIN),
    row("6 photos", pinterest, [("media", "media_count")], media=[photo()] * 6, post_type="carousel", **PIN),
    row("video with its cover", pinterest, media=[photo(PNG), film()], **PIN),
    row("video with two images", pinterest, [("media", "media_count")], media=[photo(), film(), photo()], **PIN,
        post_type="video"),
    row("GIF", pinterest, [("media/0", "media_type")], media=[photo(GIF)], **PIN),
    row("WebP over 20 MB", pinterest, media=[photo(WEBP, 20 * MB + 1)], **PIN),
    row("animated PNG over 20 MB", pinterest, [("media/0", "media_bytes")], media=[moving(PNG, 20 * MB + 1)], **PIN),
    row("WebM", pinterest, [("media/0", "media_type")], media=[film(WEBM)], **PIN),
    row("carousel of one", pinterest, [("media", "media_count")], media=[photo()], post_type="carousel", **PIN),
    row("carousel of one shape", pinterest, media=[photo(size=20 * MB, width=2, height=3), photo(width=667, height=1000)],
        **PIN),
    row("carousel of two shapes", pinterest, [("media", "media_aspect_ratio")], media=[photo(), photo(height=1100)], **PIN),
    row("carousel of unmeasured photos", pinterest, media=[Media(JPEG, MB, "https://media.test/photo")] * 2, **PIN),
    row("longest video", pinterest, media=[film(QUICKTIME, 2048 * MB, 1000, 2000, 900)], **PIN),
    row("shortest video", pinterest, media=[film(width=1910, height=1000, duration=4)], **PIN),
    row("video over 2 GB and 15 minutes", pinterest, [("media/0", "media_bytes"), ("media/0", "media_duration")],
        media=[film(size=2048 * MB + 1, duration=901)], **PIN),
    row("video under 4 seconds", pinterest, [("media/0", "media_duration")], media=[film(duration=3.9)], **PIN),
    row("too thin video", pinterest, [("media/0", "media_aspect_ratio")], media=[film(width=999, height=2000)], **PIN),
    row("too wide video", pinterest, [("media/0", "media_aspect_ratio")], media=[film(width=1911, height=1000)], **PIN),
])
def test_media(platform, post, expected):
    assert broken(platform, **post) == expected


@pytest.mark.parametrize("platform, post, expected", [
    row("every option of a photo", twitter, media=[photo()] * 2, altTexts=["", "b"], taggedUserIds=["1"],
        replySettings="verified", inReplyToTweetId="1", communityId="1", shareWithFollowers=True, placeId="a",
        forSuperFollowersOnly=False, madeWithAi=True, paidPartnership=True),
    row("too many alternative texts", twitter, [("options/altTexts", "media_options")], media=[photo()], altTexts=["a", "b"]),
    row("every option of a video", twitter, media=[film()], title="a", description="b", embeddable=True, subtitles=[],
        sensitiveMedia=["other"], callToAction={"type": "VISIT_SITE", "url": "https://a.test"}),
    row("photo with a title", twitter, [("options/title", "option")], media=[photo()], title="a"),
    row("quote", twitter, caption="a", quoteTweetId="1"),
    row("quote with a photo", twitter, [("options/quoteTweetId", "option")], caption="a", media=[photo()], quoteTweetId="1"),
    row("quote in a poll", twitter, [("options/quoteTweetId", "option")], caption="a", poll=QUESTION, quoteTweetId="1"),
    row("no answer that leaves people out", twitter, [("options/inReplyToTweetId", "required")], caption="a",
        excludeReplyUserIds=["1"]),
    row("video with alternative texts", twitter, [("options/altTexts", "option")], media=[film()], altTexts=["a"]),
    row("poll", twitter, caption="a", post_type="poll", poll=QUESTION),
    row("poll without its poll", twitter, [("options/poll", "required")], caption="a", post_type="poll"),
    row("text with a poll", twitter, [("options/poll", "option")], caption="a", post_type="text", poll=QUESTION),
    row("shared, but to no community", twitter, [("options/communityId", "required")], caption="a", shareWithFollowers=True),
    row("a shared post", linkedin, caption="a", reshareUrn="urn:li:share:1", targeting={"geoLocations": ["urn:li:geo:1"]}),
    row("a shared post with a photo", linkedin, [("options/reshareUrn", "option")], media=[photo()], reshareUrn="urn:li:share:1"),
    row("every option of photos", linkedin, media=[photo()] * 2, altTexts=["a", ""], visibility="PUBLIC", disableReshare=True,
        firstComment="a"),
    row("too many alternative texts", linkedin, [("options/altTexts", "media_options")], media=[photo()], altTexts=["a", "b"]),
    row("video with a title", linkedin, media=[film()], title="a"),
    row("photo with a title", linkedin, [("options/title", "option")], media=[photo()], title="a"),
    row("link", linkedin, post_type="link", link=CARD),
    row("link without its link", linkedin, [("options/link", "required")], caption="a", post_type="link"),
    row("text with a link", linkedin, [("options/link", "option")], caption="a", link=CARD, post_type="text"),
    row("poll of blanks", linkedin, [("options/poll/question", "text_required"), ("options/poll/options/1", "text_required")],
        caption="a", poll={"question": " ", "options": ["a", "\t"], "duration": "ONE_DAY"}),
    row("poll without its poll", linkedin, [("options/poll", "required")], caption="a", post_type="poll"),
    row("document", linkedin, [("postType", "post_type")], caption="a", post_type="document"),
    row("every option of a video", tiktok, media=[film()], **TIKTOK, disableComment=True, brandContentToggle=True,
        brandOrganicToggle=True, disableDuet=True, disableStitch=True, coverTimestampMs=1, isAigc=True),
    row("every option of photos", tiktok, media=[photo()] * 2, **TIKTOK, title="a" * 90, autoAddMusic=True, coverIndex=1),
    row("video without its privacy", tiktok, [("options/privacyLevel", "required")], media=[film()]),
    row("video with a title", tiktok, [("options/title", "option")], media=[film()], **TIKTOK, title="a"),
    row("photo made with AI", tiktok, [("options/isAigc", "option")], media=[photo()], **TIKTOK, isAigc=True),
    row("title at the limit", tiktok, media=[photo()], **TIKTOK, title="😀" * 45),
    row("title one over", tiktok, [("options/title", "title_length")], media=[photo()], **TIKTOK, title="😀" * 45 + "a"),
    row("cover of no photo", tiktok, [("options/coverIndex", "cover_index")], media=[photo()] * 2, **TIKTOK, coverIndex=2),
    row("branded content for the account alone", tiktok, [("options/privacyLevel", "branded_content")], media=[film()],
        privacyLevel="SELF_ONLY", brandContentToggle=True),
    row("own promotion for the account alone", tiktok, media=[film()], privacyLevel="SELF_ONLY", brandContentToggle=False,
        brandOrganicToggle=True),
    row("every option", youtube, **YOUTUBE, post_type="reel", tags=["a"], categoryId="22", privacyStatus="public",
        madeForKids=False, containsSyntheticMedia=True, paidPromotion=True, embeddable=True, license="youtube",
        publicStatsViewable=True, language="en", audioLanguage="en", notifySubscribers=False, playlistId="PL1",
        firstComment="a"),
    row("video without its title", youtube, [("options/title", "required")], media=[film()]),
    row("blank title", youtube, [("options/title", "required")], media=[film()], title=" "),
    row("title with an angle bracket", youtube, [("options/title", "angle_brackets")], media=[film()], title="a < b"),
    row("video with alternative texts", youtube, [("options/altTexts", "option")], **YOUTUBE, altTexts=["a"]),
    row("tags at the limit", youtube, **YOUTUBE, tags=["a" * 247, "b " + "c" * 248]),
    row("tags one over", youtube, [("options/tags", "tags_length")], **YOUTUBE, tags=["a" * 247, "b " + "c" * 249]),
    row("blank comment on a video", youtube, [("options/firstComment", "text_required")], **YOUTUBE, firstComment=" "),
    row("blank comment", linkedin, [("options/firstComment", "text_required")], caption="a", firstComment="\t"),
    row("comment on a video for kids", youtube, [("options/firstComment", "comments_off")], **YOUTUBE, madeForKids=True,
        firstComment="a"),
    row("every option of a carousel", pinterest, media=[photo()] * 2, **PIN, boardSectionId="1", title="a",
        link="https://a.test", altText="a", dominantColor="#000000", slides=[{}, {"title": "b"}]),
    row("photo without its board", pinterest, [("options/boardId", "required")], media=[photo()]),
    row("photo with slides", pinterest, [("options/slides", "option")], media=[photo()], **PIN, slides=[{}]),
    row("too many slides", pinterest, [("options/slides", "slides")], media=[photo()] * 2, **PIN, slides=[{}] * 3),
    row("video with a cover", pinterest, media=[film()], **PIN, coverSecond=0),
    row("video with an image and a moment", pinterest, [("options/coverSecond", "one_cover")], media=[film(), photo()], **PIN,
        coverSecond=0),
    row("video with two covers", pinterest, [("options/coverSecond", "one_cover")], media=[film()], **PIN, coverSecond=0,
        coverImageUrl="https://a.test"),
])
def test_options(platform, post, expected):
    assert broken(platform, **post) == expected


@pytest.mark.parametrize("platform, media, post_type", [
    pytest.param(platform, media, post_type, id=f"{platform.name} {name}")
    for name, media, post_types in [
        ("nothing", [], ["text", "text", None, None, None]),
        ("a photo", [photo()], ["image", "image", "image", None, "image"]),
        ("two photos", [photo()] * 2, ["image", "carousel", "carousel", None, "carousel"]),
        ("a video", [film()], ["video", "video", "video", "video", "video"]),
        ("two videos", [film()] * 2, [None] * 5),
        ("a photo and a video", [photo(), film()], ["video", "video", None, "video", "video"]),
    ] for platform, post_type in zip(NETWORKS, post_types)
])
def test_a_missing_post_type_is_inferred(platform, media, post_type):
    assert platform.infer(media) == post_type


@pytest.mark.parametrize("platform, media, options, post_type", [
    pytest.param(twitter, [], {"poll": QUESTION}, "poll", id="a poll"),
    pytest.param(linkedin, [], {"poll": QUESTION}, "poll", id="a poll of LinkedIn"),
    pytest.param(linkedin, [], {"link": CARD}, "link", id="a link"),
    pytest.param(linkedin, [photo()], {"link": CARD}, "link", id="a link with a thumbnail"),
    pytest.param(linkedin, [photo()] * 2, {"link": CARD}, "carousel", id="a link with too many"),
    pytest.param(youtube, [film(width=1080, height=1920)], {"title": "A"}, "video", id="a video that may be a Short"),
])
def test_options_decide_where_media_do_not(platform, media, options, post_type):
    assert platform.infer(media, options) == post_type


@pytest.mark.parametrize("platform, post_type", [
    pytest.param(platform, post_type, id=f"{platform.name} {post_type}")
    for platform, post_types in [(twitter, ["image", "video"]), (linkedin, ["image", "carousel", "video"]),
                                 (tiktok, ["image", "carousel", "video"]), (youtube, ["video", "reel"]),
                                 (pinterest, ["image", "carousel", "video"])] for post_type in post_types
])
def test_a_post_needs_the_media_of_its_type(platform, post_type):
    assert ("media", "media_count") in broken(platform, caption="a", post_type=post_type)


@pytest.mark.parametrize("platform, numbers", [
    pytest.param(twitter, (280, 4, 0, 0), id="twitter"),
    pytest.param(linkedin, (3000, 20, 399, 4085), id="linkedin"),
    pytest.param(tiktok, (2200, 35, 90, 4000), id="tiktok"),
    pytest.param(youtube, (5000, 2, 100, 5000), id="youtube"),
    pytest.param(pinterest, (800, 5, 100, 800), id="pinterest"),
])
def test_limits_as_they_are_told(platform, numbers):
    limits = platform.limits
    assert (limits.caption, limits.media_items, limits.title, limits.description) == numbers


# The first rows are cases of twitter-text: github.com/twitter/twitter-text/blob/master/conformance/validate.yml
@pytest.mark.parametrize("text, weight", [
    pytest.param("", 0, id="nothing"),
    pytest.param("Hi http://test.co", 26, id="link"),
    pytest.param("http://test.co", 23, id="only a link"),
    pytest.param("https://www.twitter.com/aloha " * 10, 240, id="ten links"),
    pytest.param("x" * 285, 285, id="too long"),
    pytest.param("x" * 263 + " http://www.twitter.com/jack ", 263 + 25, id="too long with a link"),
    pytest.param("A\u0301B", 2, id="composed into one letter"),
    pytest.param("A\uFB2C", 4, id="taken apart into three letters"),
    pytest.param("H🐱☺👨\u200D👩\u200D👧\u200D👦", 7, id="emojis"),
    pytest.param("🙋🏽👨\u200D🎤", 4, id="skin tone and profession"),
    pytest.param("1\u20E3", 2, id="keycap"),
    pytest.param("👨\u200D👩\u200D👧\u200D👦" * 140, 280, id="140 families"),
    pytest.param("\u2000\u200B\u2010\u2019\u2032\u2037", 6, id="light punctuation"),
    pytest.param("\u200E\u2020\u2026€", 8, id="heavy punctuation"),
    pytest.param("randomurl" * 7 + "s.com", 68, id="host with a label of 64 letters"),
    pytest.param("ABC\u202A\uFFFFABC\uFFFE", 12, id="invalid characters"),
    pytest.param("\u2066\u202Ahttp://foobar.پاکستان/\u202C\u2069", 31, id="directional marks"),
    pytest.param("a\r\nb\rc\n", 6, id="line ends"),
    pytest.param("example.com foo.bar localhost", 23 + 1 + 23 + 10, id="bare hosts"),
    pytest.param("例え.jp", 2 * 2 + 3, id="bare host that is not ASCII"),
    pytest.param("https://例え.jp", 23, id="host that is not ASCII"),
    pytest.param("詳しくは。https://example.com/a。", 12 + 23 + 2 - 2, id="link between heavy characters"),
    pytest.param("example.comです", 23 + 4, id="host before heavy characters"),
    pytest.param("a@example.com", 13, id="mail address"),
    pytest.param("example.com?a=b", 23 + 4, id="query without a path"),
    pytest.param("example.com/?a=b.", 24, id="path and query"),
    pytest.param("https://t.co/abc/def", 27, id="short link with more behind it"),
    pytest.param("https://t.co/" + "a" * 41, 54, id="too long short link"),
    pytest.param("https://example.com/" + "a" * 5000, 5020, id="too long link"),
])
def test_x_weighs_texts(text, weight):
    assert tweet_weight(text) == parse_tweet(text).weightedLength == weight


@pytest.mark.parametrize("text", [
    pytest.param("日" * 24_999 + ".", id="no space"),
    pytest.param("日." * 12_500, id="labels"),
    pytest.param("a." * 12_500, id="light labels"),
    pytest.param("a.com." * 4_000 + "_", id="top-level domains"),
    pytest.param("ж-" * 12_498 + ".com", id="hyphens"),
    pytest.param("日http://" * 3_125 + ".", id="schemes"),
    pytest.param("a.com/" + "(!)" * 8_331, id="parentheses"),
    pytest.param("a.com/(" * 3_571, id="open parentheses"),
    pytest.param("a" + "\u0315\u0300" * 12_500 + ".", id="marks"),
    pytest.param("👨\u200D" * 12_500 + ".", id="emojis"),
])
def test_x_weighs_hostile_texts_in_time(text):
    start = time.process_time()
    tweet_weight(text)
    assert time.process_time() - start < 0.05 * len(text) / 1000
