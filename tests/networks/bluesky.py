"""What the conformance suite needs to know of Bluesky."""

from platforms.base import Account, Content
from platforms.bluesky import Bluesky
from tests.live import http_for, image, video
from tests.standins.bluesky import BlueskyServer

PASSWORD = "canary-pass-word"
LINK = {"url": "https://bread.example/menu", "title": "Menu", "description": "What we bake"}
SAMPLES = {
    "text": Content("Fresh bread", key="k-1"),
    "image": Content("Fresh bread", (image(1), image(2)), "image", {"altTexts": ["a loaf", ""]}, "k-1"),
    "video": Content("Fresh bread", (video(),), "video", key="k-1"),
    "link": Content("Fresh bread", (), "link", {"link": LINK}, "k-1"),
}
PUBLISH = "com.atproto.repo.putRecord"


def start():
    """A server with one account."""
    net = BlueskyServer()
    net.add_user("ann.test", PASSWORD)
    return net


def settings(net):
    """The addresses of the stand-in."""
    return {"api_url": net.url, "video_url": net.url}


def account(net):
    """The account, connected with its app password."""
    connected = Bluesky(http_for(net), settings(net)).connect({"identifier": "ann.test", "appPassword": PASSWORD})
    return Account(connected.profile.platform_id, connected.profile.username, connected.host, connected.credentials)


def public(net):
    """The addresses of the posts."""
    return [post["uri"] for post in net.posts]


def expire(net):
    """Lets the time of an access token pass."""
    net.advance(3 * 3600)
