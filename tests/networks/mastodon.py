"""What the conformance suite needs to know of Mastodon."""

from platforms.base import Account, Content
from platforms.mastodon import Mastodon
from tests.live import http_for, image, video
from tests.standins.mastodon import MastodonServer

TOKEN = "canary-token"
RENEWS = False      # tokens last until somebody revokes them
SAMPLES = {
    "text": Content("Fresh bread", key="k-1"),
    "image": Content("Fresh bread", (image(1), image(2)), "image", {"altTexts": ["a loaf", ""]}, "k-1"),
    "video": Content("Fresh bread", (video(),), "video", key="k-1"),
    "poll": Content("Rye or wheat?", (), "poll", {"poll": {"options": ["rye", "wheat"], "expiresIn": 3600}}, "k-1"),
}
PUBLISH = "POST /api/v1/statuses"


def start():
    """An instance with one account."""
    net = MastodonServer()
    net.add_user("ann", TOKEN)
    return net


def settings(net):
    """None: the address is that of the account."""
    return {}


def account(net):
    """The account, connected with its token."""
    connected = Mastodon(http_for(net)).connect({"host": net.url, "accessToken": TOKEN})
    return Account(connected.profile.platform_id, connected.profile.username, connected.host, connected.credentials)


def public(net):
    """The ids of the statuses."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Somebody revokes the token."""
    net.tokens[TOKEN].state = "revoked"
