"""What the conformance suite needs to know of LinkedIn."""

from dataclasses import replace

import pytest

from platforms.base import Account, Content
from platforms.linkedin import LinkedIn
from tests.live import MP4, fixtures, image, part_of, video
from tests.standins.linkedin import CLIENT_ID, CLIENT_SECRET, MEMBER_SCOPES, PAGE_SCOPES, LinkedInServer
from tests.standins.linkedin_rules import CREATE

PUBLISH = CREATE
FILM = MP4 + bytes(75_000)
SAMPLES = {
    "text": Content("Fresh bread (and rolls) #bread https://bread.example/menu_1", key="k-1"),
    "image": Content("Fresh bread", media=(image(1),), options={"altTexts": ["A loaf"]}, key="k-1"),
    "carousel": Content("Fresh bread", media=(image(1), image(2)), options={"altTexts": ["A loaf", ""]}, key="k-1"),
    "video": Content("Fresh bread", media=(replace(video(), bytes=len(FILM), duration=9.0, open=part_of(FILM)),),
                     options={"title": "How bread is made"}, key="k-1"),
    "link": Content("Fresh bread", post_type="link", options={"link": {"url": "https://bread.example/menu", "title": "Menu"}},
                    key="k-1"),
    "poll": Content("Help us", post_type="poll", key="k-1",
                    options={"poll": {"question": "Rye or wheat?", "options": ["Rye", "Wheat"], "duration": "ONE_DAY"}}),
}
LINK = {"url": "https://bread.example/menu", "title": "Menu", "description": "What we bake"}
TARGETS = {"geoLocations": ["urn:li:geo:103644278"], "industries": ["urn:li:industry:34"],
           "jobFunctions": ["urn:li:function:12"], "seniorities": ["urn:li:seniority:4", "urn:li:seniority:5"]}
OPTIONS = {
    "altTexts": (SAMPLES["image"], {"altText": "A loaf"}),
    "title": (replace(SAMPLES["video"], media=(*SAMPLES["video"].media, image())), {"title": "How bread is made"}),
    "link": (Content("hi", post_type="link", options={"link": LINK}, key="k-1"), {"article": {
        "source": "https://bread.example/menu", "title": "Menu", "description": "What we bake"}}),
    "poll": (SAMPLES["poll"], {"poll": {"question": "Rye or wheat?", "options": [{"text": "Rye"}, {"text": "Wheat"}],
                                        "settings": {"duration": "ONE_DAY"}}}),
    "visibility": (Content("hi", options={"visibility": "LOGGED_IN"}, key="k-1"), {"visibility": "LOGGED_IN"}),
    "disableReshare": (Content("hi", options={"disableReshare": True}, key="k-1"), {"isReshareDisabledByAuthor": True}),
    "reshareUrn": lambda net, account: reshare(net.add_post(account.platform_id, "Look")["id"]),
    "targeting": (Content("hi", options={"targeting": TARGETS}, key="k-1"), {"targetEntities": [TARGETS]}),
    "firstComment": (Content("hi", options={"firstComment": "More"}, key="k-1"), {"message": {"text": "More"}}),
}


def reshare(urn):
    """A Content that shares a post, and what says so on the wire."""
    return Content("Look at this", options={"reshareUrn": urn}, key="k-1"), {"reshareContext": {"parent": urn}}


def start():
    """LinkedIn, with nobody on it."""
    return LinkedInServer()


def settings(net, scopes=MEMBER_SCOPES):
    """The settings of a connector to this LinkedIn."""
    return {"api_url": net.url, "public_url": net.url, "authorize_url": f"{net.url}/oauth/v2/authorization",
            "token_url": f"{net.url}/oauth/v2/accessToken", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
            "scopes": scopes}


def account(net, name="ann", scopes=MEMBER_SCOPES):
    """A member who allowed the app."""
    tokens = {"accessToken": f"canary-access-{name}", "refreshToken": f"canary-refresh-{name}"}
    urn = net.add_user(name, tokens["accessToken"], refresh_token=tokens["refreshToken"], scopes=scopes)
    return Account(urn, name, credentials={**tokens, "expiresAt": net.now() + 5_184_000})


def administered(net):
    """A Page whose administrator allowed the app."""
    member = account(net, "bob", f"{MEMBER_SCOPES} {PAGE_SCOPES}")
    return replace(member, platform_id=net.add_page("2414183", "bob"), username="acme")


ACCOUNTS = {"targeting": administered}      # who may use an option, where that is not `account`


def public(net):
    """The ids of all posts."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Ends all access tokens."""
    for token in net.tokens.values():
        token.end = net.now()


net, linkedin, ann = fixtures(LinkedIn, start, lambda net: settings(net, f"{MEMBER_SCOPES} {PAGE_SCOPES}"), account)


@pytest.fixture
def page(net):
    """A Page."""
    return administered(net)
