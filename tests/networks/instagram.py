"""What the conformance suite needs to know of Instagram."""

import json
from dataclasses import replace

import pytest

from platforms.base import Account, Content
from platforms.instagram import Instagram
from tests.live import http_for, image, video
from tests.standins.instagram import PUBLISH as MEDIA_PUBLISH
from tests.standins.instagram import UPLOAD_ROOT, InstagramServer
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
TAG, SPOT = {"username": "ben", "x": 0.5, "y": 0.25}, {"x": 0, "y": 1}


def post(kind, **options):
    """A post of this type with these options."""
    return replace(SAMPLES[kind], options=options)


# For tests/test_options_covered.py.
OPTIONS = {
    "altTexts": (post("image", altTexts=["a loaf"]), {"alt_text": "a loaf"}),
    "collaborators": (post("image", collaborators=["cid", "dot"]), {"collaborators": "[\"cid\", \"dot\"]"}),
    "userTags": (post("carousel", userTags=[{**TAG, "media": 0}]), {"user_tags": json.dumps([TAG])}),
    "productTags": (post("carousel", productTags=[{**SPOT, "productId": "77", "media": 0}]), {"product_id": "77", **SPOT}),
    "locationId": (post("image", locationId="900"), {"location_id": "900"}),
    "coverUrl": (post("reel", coverUrl="https://media.test/cover.jpg"), {"cover_url": "https://media.test/cover.jpg"}),
    "thumbOffsetMs": (post("reel", thumbOffsetMs=1500), {"thumb_offset": "1500"}),
    "shareToFeed": (post("reel", shareToFeed=False), {"share_to_feed": "false"}),
    "audioName": (post("reel", audioName="Dough"), {"audio_name": "Dough"}),
    "music": (post("reel", music={"audioId": "8", "audioVolume": 70, "videoVolume": 30}),
              {"audio_id": "8", "audio_volume": 70, "video_volume": 30}),
    "trialGraduation": (post("reel", trialGraduation="MANUAL"), {"graduation_strategy": "MANUAL"}),
    "isAiGenerated": (post("carousel", isAiGenerated=True), {"media_type": "CAROUSEL", "is_ai_generated": "true"}),
    "isPaidPartnership": (post("reel", isPaidPartnership=True), {"is_paid_partnership": "true"}),
    "brandedContentSponsorIds": (post("image", brandedContentSponsorIds=["5", "6"]),
                                 {"branded_content_sponsor_ids": "[\"5\", \"6\"]"}),
    "firstComment": (post("image", firstComment="More"), {"message": "More"}),
    "disableComments": (post("image", disableComments=True), {"comment_enabled": "false"}),
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
    return {"api_url": net.url + ROOT, "upload_url": net.url + UPLOAD_ROOT, "client_id": net.app,
            "authorize_url": f"{net.url}{ROOT}/dialog/oauth", "client_secret": net.secret}


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
def own(net):
    """With the login of Instagram's own, by somebody without a Page."""
    net.add_own("cake", "IGcanary-own", "Cake")
    return Instagram(http_for(net), {
        "login": "instagram", "api_url": net.url + ROOT, "authorize_url": f"{net.url}/oauth/authorize", "client_id": net.app,
        "token_url": f"{net.url}/oauth/access_token", "exchange_url": net.url, "client_secret": net.secret})


@pytest.fixture
def ann(net):
    return account(net)
