"""What the conformance suite needs to know of X."""

from platforms.base import Account, Content
from tests.live import image, video
from tests.standins.twitter import CLIENT_ID, CLIENT_SECRET, CREATE, XServer

PUBLISH = CREATE
SAMPLES = {
    "text": Content("Fresh bread & rolls: https://bread.example/menu", key="k-1"),
    "image": Content("Fresh bread", media=(image(1), image(2)), options={"altTexts": ["A loaf", ""]}, key="k-1"),
    "video": Content("Fresh bread", media=(video(width=640, height=360, duration=9.0),), key="k-1"),
    "poll": Content("Rye or wheat?", post_type="poll", options={"poll": {"options": ["rye", "wheat"], "durationMinutes": 60}},
                    key="k-1"),
}


def start():
    """X, with nobody on it."""
    return XServer()


def settings(net):
    """The settings of a connector to this X."""
    return {"api_url": net.url, "public_url": net.url, "authorize_url": f"{net.url}/i/oauth2/authorize",
            "token_url": f"{net.url}/2/oauth2/token", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


def account(net, username="ann", **details):
    """An account that allowed the app."""
    tokens = {"accessToken": f"canary-access-{username}", "refreshToken": f"canary-refresh-{username}"}
    user = net.add_user(username, tokens["accessToken"], refresh_token=tokens["refreshToken"], **details)
    subscription = {"subscription": details["subscription"]} if "subscription" in details else {}
    return Account(user, username, credentials={**tokens, "expiresAt": net.now() + 7200, **subscription})


def public(net):
    """The ids of all posts."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Ends all access tokens."""
    for token in net.tokens.values():
        token.end = net.now()
