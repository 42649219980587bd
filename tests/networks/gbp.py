"""What the conformance suite needs to know of Google Business Profile."""

from platforms.base import Account, Content, Media
from tests.standins.gbp import CREATE, BusinessServer
from tests.standins.google import CLIENT_ID, CLIENT_SECRET

PHOTO = Media("image/jpeg", 50_000, "https://media.example.com/a.jpg", width=1200, height=900)
OPEN_DAY = {"title": "Open day", "start": "2026-12-01T09:00", "end": "2026-12-01T17:30"}
SAMPLES = {
    "update": Content("Fresh bread from 7", media=(PHOTO,), post_type="update", key="k-1",
                      options={"cta": {"actionType": "LEARN_MORE", "url": "https://bread.example.com/menu"}, "language": "en"}),
    "event": Content("See how we bake", post_type="event", options={"event": OPEN_DAY}, key="k-1"),
    "offer": Content("Two for one", post_type="offer", key="k-1",
                     options={"event": OPEN_DAY, "offer": {"couponCode": "BREAD"}}),
}
PUBLISH = CREATE


def start():
    """The stand-in."""
    return BusinessServer()


def settings(net):
    """Connector settings that point at the stand-in."""
    return {"authorize_url": f"{net.url}/o/oauth2/v2/auth", "token_url": f"{net.url}/token", "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET, "api_url": f"{net.url}/v4", "accounts_url": f"{net.url}/v1",
            "locations_url": f"{net.url}/v1"}


def account(net):
    """A location whose credentials the stand-in knows."""
    location = net.add_location()
    credentials = {**net.add_user(), "mapsUrl": location.metadata["mapsUri"]}
    return Account(f"accounts/111/locations/{location.id}", location.id, credentials=credentials)


def public(net):
    """The ids of the posts that are shown, or are on their way there."""
    return [name for name, one in net.made.items() if one["post"]["state"] != "REJECTED"]


def expire(net):
    """Ends the access tokens, as an hour does."""
    net.expire()
