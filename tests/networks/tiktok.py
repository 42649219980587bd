"""What the conformance suite needs to know of TikTok."""

from dataclasses import replace

from platforms.base import JPEG, Account, Content
from tests.live import image, video
from tests.standins.tiktok import PHOTO, UPLOAD, TikTokServer

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


def start():
    """The stand-in, with one account."""
    net = TikTokServer()
    net.add_user("ann", TOKEN, refresh_token=REFRESH_TOKEN, display_name="Ann")
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
