"""What the conformance suite needs to know of Bluesky."""

from platforms.base import Account, Content
from platforms.bluesky import Bluesky
from tests.live import fixtures, http_for, image, video
from tests.standins.bluesky import BlueskyServer

PASSWORD = "canary-xxxx-yyyy"
LINK = {"url": "https://bread.example/menu", "title": "Menu", "description": "What we bake"}
SAMPLES = {
    "text": Content("Fresh bread", key="k-1"),
    "image": Content("Fresh bread", (image(1), image(2)), "image", {"altTexts": ["a loaf", ""]}, "k-1"),
    "video": Content("Fresh bread", (video(),), "video", key="k-1"),
    "link": Content("Fresh bread", (), "link", {"link": LINK}, "k-1"),
}
VTT = "WEBVTT\n\n00:00.000 --> 00:02.000\nFrisch aus dem Ofen"
LIST = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.graph.list/3mzzzzzzzzz2a"
OPTIONS = {
    "altTexts": (Content("hi", (image(),), "image", {"altTexts": ["a loaf"]}, "k-1"), {"alt": "a loaf"}),
    "link": (Content("hi", (), "link", {"link": LINK}, "k-1"), {
        "uri": LINK["url"], "title": LINK["title"], "description": LINK["description"]}),
    "languages": (Content("hi", options={"languages": ["de"]}, key="k-1"), {"langs": ["de"]}),
    "labels": (Content("hi", options={"labels": ["nudity"]}, key="k-1"), {"values": [{"val": "nudity"}]}),
    "tags": (Content("hi", options={"tags": ["bread"]}, key="k-1"), {"text": "hi", "tags": ["bread"]}),
    "subtitles": (Content("hi", (video(),), "video", {"subtitles": [
        {"language": "de", "text": VTT}, {"language": "at", "text": VTT + "!"}]}, "k-1"), {"lang": "de"}),
    "quoteUri": lambda net, account: about(net, account, "quoteUri", "embed", {
        "$type": "app.bsky.embed.record", "record": ...}),
    "replyToUri": lambda net, account: about(net, account, "replyToUri", "reply", {"root": ..., "parent": ...}),
    "replyControl": (Content("hi", options={"replyControl": ["followers"]}, key="k-1"), {
        "allow": [{"$type": "app.bsky.feed.threadgate#followerRule"}]}),
    "replyLists": (Content("hi", options={"replyLists": [f"at://{LIST}"]}, key="k-1"), {
        "allow": [{"$type": "app.bsky.feed.threadgate#listRule", "list": f"at://{LIST}"}]}),
    "disableQuotes": (Content("hi", options={"disableQuotes": True}, key="k-1"), {
        "embeddingRules": [{"$type": "app.bsky.feed.postgate#disableRule"}]}),
    "thread": (Content("one", options={"thread": ["two"]}, key="k-1"), {"text": "two"}),
}
PUBLISH = "com.atproto.repo.putRecord"


def start():
    """A server with one account."""
    net = BlueskyServer()
    net.add_user("ann.test", PASSWORD, display_name="Ann", avatar="https://cdn.example.com/ann.jpg")
    return net


def settings(net):
    """The addresses of the stand-in."""
    return {"api_url": net.url, "video_url": net.url}


def account(net):
    """The account, connected with its app password."""
    connected = Bluesky(http_for(net), settings(net)).connect({"identifier": "ann.test", "appPassword": PASSWORD})
    return Account(connected.profile.platform_id, connected.profile.username, connected.host, connected.credentials)


def about(net, account, option, member, shape):
    """A Content that has to do with a post on the network, and what says so in its record: `shape`, with `...` = that post."""
    post = net.add_post(account.platform_id, "Who bakes rye?")
    reference = {"uri": post["uri"], "cid": post["cid"]}
    wanted = {name: reference if value is ... else value for name, value in shape.items()}
    return Content("We do", options={option: post["uri"]}, key="k-1"), {"text": "We do", member: wanted}


def public(net):
    """The addresses of the posts."""
    return [post["uri"] for post in net.posts]


def expire(net):
    """Lets the time of an access token pass."""
    net.advance(3 * 3600)


net, bluesky, ann = fixtures(Bluesky, start, settings, account)
