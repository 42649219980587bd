"""What the conformance suite needs to know of Facebook."""

from platforms.base import Account, Content
from tests.live import image, video
from tests.standins.facebook import FEED, PHOTO_STORIES, REELS, UPLOAD_ROOT, VIDEO_ROOT, VIDEOS, FacebookServer
from tests.standins.meta import ROOT

PAGE_TOKEN, USER_TOKEN = "EAAcanary-page", "EAAcanary-user"
PORTRAIT = {"width": 1080, "height": 1920, "duration": 10.0}
SAMPLES = {
    "text": Content("hi", post_type="text", key="k-1"),
    "image": Content("hi", (image(1), image(2)), "image", {"altTexts": ["a loaf", ""]}, "k-1"),
    "video": Content("hi", (video(),), "video", {"title": "A loaf"}, "k-1"),
    "reel": Content("hi", (video(**PORTRAIT),), "reel", {"title": "A loaf"}, "k-1"),
    "story": Content("", (image(),), "story", key="k-1"),
    "link": Content("hi", post_type="link", options={"link": "https://bread.example/menu"}, key="k-1"),
}
PUBLISH = {"text": FEED, "image": FEED, "link": FEED, "video": VIDEOS, "reel": REELS, "story": PHOTO_STORIES}


def start():
    """Facebook with one Page."""
    net = FacebookServer()
    net.add_user("ann", USER_TOKEN)
    net.add_page("Bread", PAGE_TOKEN, username="bread")
    return net


def settings(net):
    """The connector's settings that lead to `net`."""
    return {"api_url": net.url + ROOT, "video_url": net.url + VIDEO_ROOT, "upload_url": net.url + UPLOAD_ROOT,
            "authorize_url": f"{net.url}{ROOT}/dialog/oauth", "client_id": net.app, "client_secret": net.secret}


def account(net):
    """The Page, as it is when it was connected."""
    page = next(iter(net.pages))
    return Account(page, "bread", credentials={"accessToken": PAGE_TOKEN, "userToken": USER_TOKEN, "pageId": page})


def public(net):
    """The ids of what is public, in order."""
    return [post["id"] for post in net.posts]


def expire(net):
    """The Page's token is no longer valid; the user's still is."""
    net.renew(next(iter(net.pages)))
