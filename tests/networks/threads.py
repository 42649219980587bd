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
ANSWERS = {"optionA": "rye", "optionB": "oat", "optionC": "corn", "optionD": "none"}
LONG_TEXT = {"plaintext": "🍞 and more", "linkAttachmentUrl": "https://bread.example/",
             "textWithStylingInfo": [{"offset": 0, "length": 1, "stylingInfo": ["bold", "italic"]}]}


def post(kind, **options):
    """A post of this type with these options."""
    return Content("Rye 🍞 wins", SAMPLES[kind].media, kind, options, "k-1")


def about(net, option, parameter):
    """A post that has to do with one of somebody else."""
    theirs = {"id": net.new_id(), "owner": "1", "given": {}, "created": net.now(), "replied_to": None}
    net.posts.append(theirs)
    return post("text", **{option: theirs["id"]}), {parameter: theirs["id"]}


# For tests/test_options_covered.py.
OPTIONS = {
    "altTexts": (post("image", altTexts=["a loaf"]), {"alt_text": "a loaf"}),
    "isSpoilerMedia": (post("carousel", isSpoilerMedia=True), {"media_type": "CAROUSEL", "is_spoiler_media": "true"}),
    "textSpoilers": (post("text", textSpoilers=[{"offset": 4, "length": 1}]),
                     {"entity_type": "SPOILER", "offset": 4, "length": 2}),
    "replyControl": (post("text", replyControl="mentioned_only"), {"reply_control": "mentioned_only"}),
    "enableReplyApprovals": (post("text", enableReplyApprovals=True), {"enable_reply_approvals": "true"}),
    "topicTag": (post("text", topicTag="Bread"), {"topic_tag": "Bread"}),
    "locationId": (post("text", locationId="900"), {"location_id": "900"}),
    "quotePostId": lambda net, _: about(net, "quotePostId", "quote_post_id"),
    "replyToId": lambda net, _: about(net, "replyToId", "reply_to_id"),
    "allowlistedCountryCodes": (post("text", allowlistedCountryCodes=["AT", "CH"]), {"allowlisted_country_codes": "AT,CH"}),
    "shareToInstagram": (post("text", shareToInstagram="dark"), {"crossreshare_to_ig_dark_mode": "true"}),
    "isGhostPost": (post("text", isGhostPost=True), {"is_ghost_post": "true"}),
    "gifId": (post("text", gifId="3o7aD2"), {"gif_id": "3o7aD2", "provider": "GIPHY"}),
    "textAttachment": (post("text", textAttachment=LONG_TEXT), {
        "plaintext": "🍞 and more", "link_attachment_url": "https://bread.example/",
        "text_with_styling_info": [{"offset": 0, "length": 2, "styling_info": ["bold", "italic"]}]}),
    "linkAttachment": (post("link", linkAttachment="https://bread.example/"), {"link_attachment": "https://bread.example/"}),
    "poll": (post("poll", poll=ANSWERS), {"option_a": "rye", "option_b": "oat", "option_c": "corn", "option_d": "none"}),
    "firstComment": (post("text", firstComment="More"), {"text": "More"}),
    "thread": (post("text", thread=["and so on"]), {"text": "and so on"}),
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
