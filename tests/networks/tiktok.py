"""What the conformance suite and the tests of TikTok need to know of it."""

import json
from dataclasses import replace

from platforms.base import JPEG, Account, Content, Processing
from platforms.tiktok import CHUNK, TikTok
from tests.live import MP4, fixtures, image, part_of, prepared, video
from tests.standins.tiktok import TikTokServer
from tests.standins.tiktok_errors import PHOTO, UPLOAD

STEPS = 100         # of asking; more would be a loop
SCOPES = "user.info.basic,video.publish,video.upload"
TOKEN, REFRESH_TOKEN = "act.canary-access", "rft.canary-refresh"
LEVEL = {"privacyLevel": "PUBLIC_TO_EVERYONE"}
PUBLISH = {"image": PHOTO, "carousel": PHOTO, "video": UPLOAD}


def _photo(number=0):
    return replace(image(number), url=f"https://media.test/{number}.jpg", mime_type=JPEG)


SAMPLES = {
    "image": Content("Fresh bread #sourdough", (_photo(),), "image", {**LEVEL, "title": "A loaf"}, "k-1"),
    "carousel": Content("Fresh bread #sourdough", (_photo(1), _photo(2)), "carousel", {**LEVEL, "coverIndex": 1}, "k-1"),
    "video": Content("Fresh bread #sourdough", (video(width=720, height=1280, duration=9.5),), "video", LEVEL, "k-1"),
}
IMAGE, CAROUSEL, FILM = SAMPLES.values()


def film(size, **options):
    """A video of so many bytes."""
    data = MP4 + bytes(size - len(MP4))
    return replace(FILM, media=(replace(FILM.media[0], bytes=size, open=part_of(data)),), options={**LEVEL, **options})


LONG = film(3 * CHUNK + 5)
DRAFTS = {"video": replace(FILM, options={"draft": True}),
          "image": replace(IMAGE, options={"draft": True, "title": "A loaf"}),
          "carousel": replace(CAROUSEL, options={"draft": True, "coverIndex": 1})}


def with_options(content, **options):
    """The same post with these options beside its privacy level."""
    return replace(content, options={**LEVEL, **options})


OPTIONS = {
    "privacyLevel": (with_options(FILM), {"privacy_level": "PUBLIC_TO_EVERYONE"}),
    "draft": (DRAFTS["carousel"], {"post_mode": "MEDIA_UPLOAD"}),
    "disableComment": (with_options(IMAGE, disableComment=True), {"disable_comment": True}),
    "disableDuet": (with_options(FILM, disableDuet=True), {"disable_duet": True}),
    "disableStitch": (with_options(FILM, disableStitch=True), {"disable_stitch": True}),
    "brandContentToggle": (with_options(IMAGE, brandContentToggle=True), {"brand_content_toggle": True}),
    "brandOrganicToggle": (with_options(FILM, brandOrganicToggle=True), {"brand_organic_toggle": True}),
    "isAigc": (with_options(FILM, isAigc=True), {"is_aigc": True}),
    "coverTimestampMs": (with_options(FILM, coverTimestampMs=1500), {"video_cover_timestamp_ms": 1500}),
    "title": (with_options(IMAGE, title="A loaf"), {"title": "A loaf", "description": "Fresh bread #sourdough"}),
    "autoAddMusic": (with_options(CAROUSEL, autoAddMusic=True), {"auto_add_music": True}),
    "coverIndex": (with_options(CAROUSEL, coverIndex=1), {"photo_cover_index": 1}),
}


def start():
    """The stand-in, with one account."""
    net = TikTokServer()
    net.add_user("ann", TOKEN, refresh_token=REFRESH_TOKEN, scopes=SCOPES, display_name="Ann")
    return net


def settings(net):
    """The addresses of the stand-in, and the app that it knows."""
    return {"api_url": net.url, "authorize_url": f"{net.url}/v2/auth/authorize/", "token_url": f"{net.url}/v2/oauth/token/",
            "public_url": net.url, "client_id": net.client_key, "client_secret": net.client_secret}


def account(net):
    """The account, with tokens that are good."""
    ends = net.grants.access[TOKEN].ends
    return Account(net.consenting, "ann", credentials={"accessToken": TOKEN, "refreshToken": REFRESH_TOKEN, "expiresAt": ends})


def public(net):
    """The ids of what TikTok has posted, or is about to."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Ends the access token; the refresh token stays good."""
    net.grants.expire()


net, tiktok, ann = fixtures(TikTok, start, settings, account)


def stored(receipt):
    """A receipt as the database gives it back."""
    return json.loads(json.dumps(receipt))


def settled(tiktok, account, outcome):
    """What comes of a post after all the asking."""
    for _ in range(STEPS):
        if not isinstance(outcome, Processing):
            break
        outcome = tiktok.check(account, stored(outcome.receipt))
    return outcome


def published(tiktok, account, content):
    """What comes of a post that has no problems."""
    assert tiktok.problems(content, account) == []
    return settled(tiktok, account, tiktok.publish(account, content, prepared(tiktok, account, content)))
