"""What the conformance suite needs to know of Threads."""

import time

import pytest

from platforms.base import Account, Content
from platforms.threads import Threads
from tests.live import http_for
from tests.networks.instagram import film, photo
from tests.standins.threads import PUBLISH as THREADS_PUBLISH
from tests.standins.threads import ROOT, ThreadsServer

TOKEN = "THQVcanary"
PROFILE = "https://www.threads.com/@ann"
DAY = 86_400
SAMPLES = {
    "text": Content("hi", post_type="text", key="k-1"),
    "image": Content("hi", (photo(),), "image", {"altTexts": ["a loaf"]}, "k-1"),
    "video": Content("hi", (film(),), "video", {"isSpoilerMedia": True}, "k-1"),
    "carousel": Content("hi", (photo(1), film(2)), "carousel", {"altTexts": ["a loaf"]}, "k-1"),
    "poll": Content("?", post_type="poll", options={"poll": {"optionA": "yes", "optionB": "no"}}, key="k-1"),
    "link": Content("hi", post_type="link", options={"linkAttachment": "https://bread.example/menu"}, key="k-1"),
}
PUBLISH = THREADS_PUBLISH
RENEWS = False      # a token is traded for a new one while it is good, and only then


def start():
    """Threads with one profile, whose token is some days old."""
    net = ThreadsServer()
    net.add_user("ann", TOKEN, "Ann")
    net.tokens[TOKEN].made -= 3 * DAY
    return net


def settings(net):
    """The connector's settings that lead to `net`."""
    return {"api_url": net.url + ROOT, "authorize_url": f"{net.url}/oauth/authorize", "exchange_url": net.url,
            "token_url": f"{net.url}/oauth/access_token", "client_id": net.app, "client_secret": net.secret}


def account(net):
    """The profile, as it is when it was connected some days ago."""
    user = next(iter(net.users.values()))
    now = time.time()
    return Account(user["id"], user["username"], credentials={"accessToken": TOKEN, "renewedAt": now - 3 * DAY,
                                                              "expiresAt": now + 57 * DAY})


def public(net):
    """The ids of what is public, in order."""
    return [post["id"] for post in net.posts]


def expire(net):
    """The token has ended: Threads has no other that would outlive it."""
    for token in net.tokens.values():
        token.problem = 463


@pytest.fixture
def net():
    with start() as net:
        yield net


@pytest.fixture
def threads(net):
    return Threads(http_for(net), settings(net))


@pytest.fixture
def ann(net):
    return account(net)
