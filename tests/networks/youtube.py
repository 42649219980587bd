"""What the conformance suite needs to know of YouTube."""

from platforms.base import Account, Content
from tests.live import image, video
from tests.standins.google import CLIENT_ID, CLIENT_SECRET
from tests.standins.youtube import UPDATE, YouTubeServer

SAMPLES = {
    "video": Content("Fresh bread", media=(video(), image()), post_type="video", options={"title": "Bread"}, key="k-1"),
    "reel": Content("Fresh bread", media=(video(width=9, height=16, duration=15.0),), post_type="reel",
                    options={"title": "Bread"}, key="k-1"),
}
PUBLISH = UPDATE


def start():
    """The stand-in."""
    return YouTubeServer()


def settings(net):
    """Connector settings that point at the stand-in."""
    return {"authorize_url": f"{net.url}/o/oauth2/v2/auth", "token_url": f"{net.url}/token", "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET, "api_url": f"{net.url}/youtube/v3", "upload_url": f"{net.url}/upload/youtube/v3"}


def account(net):
    """A channel whose credentials the stand-in knows."""
    credentials = net.add_user()
    return Account(net.consenting.id, "breadtv", credentials=credentials)


def public(net):
    """The ids of the videos that others can see."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Ends the access tokens, as an hour does."""
    net.expire()
