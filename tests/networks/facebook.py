"""What the conformance suite needs to know of Facebook."""

import json
from dataclasses import replace

import pytest

from platforms.base import Account, Content, Processing
from platforms.facebook import Facebook
from tests.live import http_for, image, part_of, prepared, video
from tests.standins.facebook import FEED, PHOTO_STORIES, REELS, UPLOAD_ROOT, VIDEO_ROOT, VIDEOS, FacebookServer
from tests.standins.meta import ROOT

PAGE_TOKEN, USER_TOKEN = "EAAcanary-page", "EAAcanary-user"
FILM = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 10_000        # three parts
PORTRAIT = {"width": 1080, "height": 1920, "duration": 10.0}
SAMPLES = {
    "text": Content("hi", post_type="text", key="k-1"),
    "image": Content("hi", (image(1), image(2)), "image", {"altTexts": ["a loaf", ""]}, "k-1"),
    "video": Content("hi", (video(),), "video", {"title": "A loaf"}, "k-1"),
    "reel": Content("hi", (video(**PORTRAIT),), "reel", {"title": "A loaf"}, "k-1"),
    "story": Content("", (image(),), "story", key="k-1"),
    "link": Content("hi", post_type="link", options={"link": "https://bread.example/menu"}, key="k-1"),
}
WHEN = "1998-05-01T12:00:00Z"


def post(kind, **options):
    """A post of this type with these options."""
    return replace(SAMPLES[kind], options={**SAMPLES[kind].options, **options})


# For tests/test_options_covered.py.
OPTIONS = {
    "altTexts": (post("image", altTexts=["a loaf"]), {"alt_text_custom": "a loaf"}),
    "link": (post("link", link="https://bread.example/"), {"link": "https://bread.example/"}),
    "title": (post("reel", title="A roll"), {"title": "A roll"}),
    "placeId": (post("text", placeId="900"), {"place": "900"}),
    "targeting": (post("video", targeting={"countries": ["AT", "CH"], "ageMin": 18}),
                  {"geo_locations": {"countries": ["AT", "CH"]}, "age_min": 18}),
    "sponsorId": (post("video", sponsorId="901"), {"sponsor_id": "901"}),
    "backdatedTime": (post("image", backdatedTime=WHEN), {"backdated_time": WHEN}),
    "backdatedTimeGranularity": (post("link", backdatedTime=WHEN, backdatedTimeGranularity="year"),
                                 {"backdated_time_granularity": "year"}),
    "collaboratorIds": (post("reel", collaboratorIds=["77"]), {"target_id": "77"}),
    "firstComment": (post("text", firstComment="More"), {"message": "More"}),
    "firstCommentImageUrl": (post("text", firstComment="More", firstCommentImageUrl="https://media.test/menu.jpg"),
                             {"message": "More", "attachment_url": "https://media.test/menu.jpg"}),
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


@pytest.fixture
def net():
    with start() as net:
        yield net


@pytest.fixture
def facebook(net):
    return Facebook(http_for(net), settings(net))


@pytest.fixture
def page(net):
    return account(net)


def film(kind, **options):
    """A post with a video of three parts."""
    return Content("hi", (replace(video(**PORTRAIT), bytes=len(FILM), open=part_of(FILM)),), kind, options, "k-1")


def story(item):
    """A story that shows this file."""
    return Content("", (item,), "story", key="k-1")


def finished(facebook, page, outcome):
    """What a video comes to, asked until it is known; and how often the answer was to wait."""
    asked = 0
    while isinstance(outcome, Processing):
        outcome, asked = facebook.check(page, json.loads(json.dumps(outcome.receipt))), asked + 1
    return outcome, asked


def posted(facebook, page, content):
    """What comes of a post that has no problems."""
    assert facebook.problems(content) == []
    receipt = prepared(facebook, page, content)
    return finished(facebook, page, facebook.publish(page, content, receipt))[0]


def sent_reel(facebook, page):
    """The receipt of a reel that Facebook was told to publish."""
    receipt = prepared(facebook, page, SAMPLES["reel"])
    facebook.publish(page, SAMPLES["reel"], receipt)
    return receipt
