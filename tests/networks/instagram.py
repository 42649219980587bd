"""What the conformance suite needs to know of Instagram."""

from dataclasses import replace

import pytest

from platforms.base import Account, Content
from platforms.instagram import Instagram
from tests.live import http_for, image, video
from tests.standins.instagram import PUBLISH as MEDIA_PUBLISH
from tests.standins.instagram import InstagramServer
from tests.standins.meta import ROOT

PAGE_TOKEN, USER_TOKEN = "EAAcanary-page", "EAAcanary-user"
PROFILE = "https://www.instagram.com/bread/"


def photo(number=1):
    """A photo that lies at a public address."""
    return replace(image(number, width=1080, height=1080), mime_type="image/jpeg", url=f"https://media.test/{number}.jpg")


def film(number=1):
    """A video that lies at a public address."""
    return replace(video(width=1080, height=1920, duration=10.0), url=f"https://media.test/{number}.mp4")


SAMPLES = {
    "image": Content("hi", (photo(),), "image", {"altTexts": ["a loaf"]}, "k-1"),
    "carousel": Content("hi", (photo(1), film(2)), "carousel", {"altTexts": ["a loaf"]}, "k-1"),
    "reel": Content("hi", (film(),), "reel", {"shareToFeed": True}, "k-1"),
    "story": Content("", (photo(),), "story", key="k-1"),
}
PUBLISH = MEDIA_PUBLISH


def start():
    """Instagram with one account that has a Page."""
    net = InstagramServer()
    net.add_user("ann", USER_TOKEN)
    net.add_account("bread", PAGE_TOKEN, "Bread")
    return net


def settings(net):
    """The connector's settings that lead to `net`."""
    return {"api_url": net.url + ROOT, "authorize_url": f"{net.url}{ROOT}/dialog/oauth", "client_id": net.app,
            "client_secret": net.secret}


def account(net):
    """The account, as it is when it was connected."""
    one = next(iter(net.accounts_of.values()))
    return Account(one.id, one.username, credentials={"accessToken": PAGE_TOKEN, "userToken": USER_TOKEN, "pageId": one.page})


def public(net):
    """The ids of what is public, in order."""
    return [post["id"] for post in net.posts]


def expire(net):
    """The Page's token is no longer valid; the user's still is."""
    net.renew(next(iter(net.pages)))


@pytest.fixture
def net():
    with start() as net:
        yield net


@pytest.fixture
def instagram(net):
    return Instagram(http_for(net), settings(net))


@pytest.fixture
def ann(net):
    return account(net)
