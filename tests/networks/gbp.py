"""What the conformance suite and the tests of Google Business Profile need to know of it."""

from dataclasses import replace

from platforms.base import Account, Content, Media
from platforms.gbp import GoogleBusinessProfile
from tests.live import PNG, fixtures, image, video
from tests.standins.gbp import ADD, CREATE, BusinessServer
from tests.standins.google import CLIENT_ID, CLIENT_SECRET

PHOTO = Media("image/jpeg", 50_000, "https://media.example.com/a.jpg", width=1200, height=900)
OPEN_DAY = {"title": "Open day", "start": "2026-12-01T09:00", "end": "2026-12-01T17:30"}
SAMPLES = {
    "update": Content("Fresh bread from 7", media=(PHOTO,), post_type="update", key="k-1",
                      options={"cta": {"actionType": "LEARN_MORE", "url": "https://bread.example.com/menu"}, "language": "en"}),
    "event": Content("See how we bake", post_type="event", options={"event": OPEN_DAY}, key="k-1"),
    "offer": Content("Two for one", post_type="offer", key="k-1",
                     options={"event": OPEN_DAY, "offer": {"couponCode": "BREAD"}}),
    "image": Content("Our oven", (image(data=PNG + bytes(20_000), width=1200, height=900),), "image", {"category": "INTERIOR"},
                     "k-1"),
    "video": Content("", (video(width=720, height=1280, duration=12.5),), "video", {"category": "ADDITIONAL"}, "k-1"),
}
PUBLISH = {**dict.fromkeys(("update", "event", "offer"), CREATE), **dict.fromkeys(("image", "video"), ADD)}

WEEKLY = {"frequency": "weekly", "daysOfWeek": ["FRIDAY", "SATURDAY"], "until": "2027-03-31T23:59:59+01:00"}
DAY = {"year": 2026, "month": 12, "day": 1}
EVENT = {"title": "Open day", "schedule": {"startDate": DAY, "startTime": {"hours": 9, "minutes": 0}, "endDate": DAY,
                                           "endTime": {"hours": 17, "minutes": 30}}}
WHOLE_OFFER = {"couponCode": "BREAD", "redeemUrl": "https://a.example.com/x", "terms": "Once each."}


def repeated(**repeat):
    """An event that repeats."""
    return replace(SAMPLES["event"], options={"event": {**OPEN_DAY, "repeat": repeat}})


OPTIONS = {
    "language": (SAMPLES["update"], {"languageCode": "en"}),
    "cta": (SAMPLES["update"], {"callToAction": {"actionType": "LEARN_MORE", "url": "https://bread.example.com/menu"}}),
    "event": (repeated(**WEEKLY), {**EVENT, "recurrenceInfo": {
        "weeklyPattern": {"daysOfWeek": ["FRIDAY", "SATURDAY"]}, "seriesEndTime": "2027-03-31T23:59:59+01:00"}}),
    "event/repeat/dayOfMonth": (repeated(frequency="monthly", dayOfMonth=31), {"monthlyPattern": {"dayOfMonth": 31}}),
    "event/repeat/weekOfMonth": (repeated(frequency="monthly", weekOfMonth="LAST"), {
        "monthlyPattern": {"dayOfWeekOccurrence": "LAST"}}),
    "offer": (replace(SAMPLES["offer"], options={"event": OPEN_DAY, "offer": WHOLE_OFFER}), {
        "couponCode": "BREAD", "redeemOnlineUrl": "https://a.example.com/x", "termsConditions": "Once each."}),
    "category": (SAMPLES["image"], {"locationAssociation": {"category": "INTERIOR"}, "description": "Our oven"}),
}


def start():
    """The stand-in."""
    return BusinessServer()


def settings(net):
    """Connector settings that point at the stand-in."""
    return {"authorize_url": f"{net.url}/o/oauth2/v2/auth", "token_url": f"{net.url}/token", "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET, "api_url": f"{net.url}/v4", "accounts_url": f"{net.url}/v1",
            "locations_url": f"{net.url}/v1", "upload_url": f"{net.url}/upload/v1/media"}


def account(net):
    """A location whose credentials the stand-in knows."""
    location = net.add_location()
    credentials = {**net.add_user(), "mapsUrl": location.metadata["mapsUri"]}
    return Account(f"accounts/111/locations/{location.id}", location.id, credentials=credentials)


def public(net):
    """The ids of the posts that are shown, or are on their way there, and of the files that were put into galleries."""
    return [name for name, one in net.made.items() if one["post"]["state"] != "REJECTED"] + [one["id"] for one in net.added]


def expire(net):
    """Ends the access tokens, as an hour does."""
    net.expire()


net, gbp, cafe = fixtures(GoogleBusinessProfile, start, settings, account)
