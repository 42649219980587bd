"""What the conformance suite needs to know of Mastodon."""

from platforms.base import Account, Content
from platforms.mastodon import Mastodon
from tests.live import fixtures, http_for, image, video
from tests.standins.mastodon import MastodonServer

TOKEN = "canary-token"
RENEWS = False      # tokens last until somebody revokes them
SAMPLES = {
    "text": Content("Fresh bread", key="k-1"),
    "image": Content("Fresh bread", (image(1), image(2)), "image", {"altTexts": ["a loaf", ""]}, "k-1"),
    "video": Content("Fresh bread", (video(),), "video", key="k-1"),
    "poll": Content("Rye or wheat?", (), "poll", {"poll": {"options": ["rye", "wheat"], "expiresIn": 3600}}, "k-1"),
}
POLL = {"options": ["rye", "wheat"], "expiresIn": 3600, "multiple": True, "hideTotals": True}
OPTIONS = {
    "altTexts": (Content("hi", (image(),), "image", {"altTexts": ["a loaf"]}, "k-1"), {"description": "a loaf"}),
    "focalPoints": (Content("hi", (video(), image()), "video", {"focalPoints": [{"x": 0.5, "y": -1}]}, "k-1"), {
        "focus": "0.5,-1", "thumbnail": "1.png"}),
    "visibility": (Content("hi", options={"visibility": "unlisted"}, key="k-1"), {"visibility": "unlisted"}),
    "spoilerText": (Content("hi", options={"spoilerText": "cw"}, key="k-1"), {"spoiler_text": "cw"}),
    "sensitive": (Content("hi", options={"sensitive": True}, key="k-1"), {"sensitive": True}),
    "language": (Content("hi", options={"language": "de"}, key="k-1"), {"language": "de"}),
    "quotePolicy": (Content("hi", options={"quotePolicy": "nobody"}, key="k-1"), {"quote_approval_policy": "nobody"}),
    "poll": (Content("?", (), "poll", {"poll": POLL}, "k-1"), {"poll": {
        "options": ["rye", "wheat"], "expires_in": 3600, "multiple": True, "hide_totals": True}}),
    "thread": (Content("one", options={"thread": ["two"]}, key="k-1"), {"status": "two"}),
    "inReplyToId": lambda net, _: about(net, "inReplyToId", "in_reply_to_id"),
    "quotedStatusId": lambda net, _: about(net, "quotedStatusId", "quoted_status_id"),
}
PUBLISH = "POST /api/v1/statuses"


def start():
    """An instance with one account."""
    net = MastodonServer()
    net.add_user("ann", TOKEN, display_name="Ann")
    return net


def settings(net):
    """None: the address is that of the account."""
    return {}


def account(net):
    """The account, connected with its token."""
    connected = Mastodon(http_for(net)).connect({"host": net.url, "accessToken": TOKEN})
    return Account(connected.profile.platform_id, connected.profile.username, connected.host, connected.credentials)


def about(net, option, parameter):
    """A Content that has to do with a status of somebody else, and what says so on the wire."""
    other = net.add_status(net.add_user("bob"), "Who bakes rye?")
    return Content("We do", options={option: other["id"]}, key="k-1"), {"status": "We do", parameter: other["id"]}


def public(net):
    """The ids of the statuses."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Somebody revokes the token."""
    net.tokens[TOKEN].state = "revoked"


net, mastodon, ann = fixtures(Mastodon, start, settings, account)
