"""Google Business Profile, accounts and locations by v1, posts by v4: https://developers.google.com/my-business"""

import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.standins.google import SCOPE_MISSING, UNAUTHENTICATED, GoogleServer, Refusal, api, error_body, error_info
from tests.standins.server import Answer, run, sniff

MANAGE = ("https://www.googleapis.com/auth/business.manage",)
SUMMARY, TITLE = 1500, 58               # characters
URL = re.compile(r"https?://\S+")
LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
MASK = {"name", "title", "storefrontAddress", "metadata", "phoneNumbers", "categories", "storeCode", "websiteUri", "latlng"}
BUTTONS = {"BOOK", "ORDER", "SHOP", "LEARN_MORE", "SIGN_UP", "CALL"}
DATE, TIME = {"year": int, "month": int, "day": int}, {"hours": int, "minutes": int, "seconds": int, "nanos": int}
SCHEDULE = {"startDate": DATE, "startTime": TIME, "endDate": DATE, "endTime": TIME}
DAYS = {"MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"}
PATTERNS = {"dailyPattern": {}, "weeklyPattern": {"daysOfWeek": [DAYS]}, "monthlyPattern": {
    "dayOfMonth": int, "dayOfWeekOccurrence": {"FIRST", "SECOND", "THIRD", "FOURTH", "LAST"}}}
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
EVENT = {"title": str, "schedule": SCHEDULE, "recurrenceInfo": {"seriesEndTime": str, **PATTERNS}}
CATEGORIES = {"COVER", "PROFILE", "LOGO", "EXTERIOR", "INTERIOR", "PRODUCT", "AT_WORK", "FOOD_AND_DRINK", "MENU", "COMMON_AREA",
              "ROOMS", "TEAMS", "ADDITIONAL"}
ITEM = {"mediaFormat": {"PHOTO", "VIDEO"}, "locationAssociation": {"category": CATEGORIES}, "description": str,
        "sourceUrl": str, "dataRef": {"resourceName": str}}
KINDS = {"PHOTO": ("image/jpeg", "image/png"), "VIDEO": ("video/mp4", "video/quicktime")}
LARGEST = {"PHOTO": 5 << 20, "VIDEO": 75 << 20}
LOCAL_POST = {
    "languageCode": str, "summary": str, "topicType": {"STANDARD", "EVENT", "OFFER", "ALERT"}, "alertType": {"COVID_19"},
    "callToAction": {"actionType": BUTTONS, "url": str}, "event": EVENT,
    "offer": {"couponCode": str, "redeemOnlineUrl": str, "termsConditions": str}, "scheduledTime": str,
    "media": [{"mediaFormat": {"PHOTO", "VIDEO"}, "sourceUrl": str}],
}
CREATE, LIST = "POST /v4/accounts/:a/locations/:l/localPosts", "GET /v4/accounts/:a/locations/:l/localPosts"
READ, MEDIA = "GET /v4/accounts/:a/locations/:l/localPosts/:p", "GET /v4/accounts/:a/locations/:l/media"
ADD, BEGIN = "POST /v4/accounts/:a/locations/:l/media", "POST /v4/accounts/:a/locations/:l/media:startUpload"
UPLOAD = "POST /upload/v1/media/canary/:name"
ACCOUNTS, LOCATIONS, LOCATION = "GET /v1/accounts", "GET /v1/accounts/:a/locations", "GET /v1/locations/:l"


def validation(code, name, message):
    """The body of a refused post."""
    details = [{"@type": "type.googleapis.com/google.mybusiness.v4.ValidationError",
                "errorDetails": [{"code": code, "field": name, "message": message}]}]
    return error_body(400, "Request contains an invalid argument.", "badRequest", details=details)


def _row(status, message, endpoint=CREATE, headers=None, **more):
    return {"endpoint": endpoint, "status": status, "body": error_body(status, message, **more), "headers": headers or {}}


ERRORS = {
    "unauthenticated": {"endpoint": CREATE, **UNAUTHENTICATED},
    "scope_missing": {"endpoint": CREATE, **SCOPE_MISSING},
    "api_off": _row(403, "Google My Business API has not been used in project 1 before or it is disabled.",
                    details=error_info("SERVICE_DISABLED", service="mybusiness.googleapis.com")),
    "api_off_of_old": _row(403, "Access Not Configured.", reason="accessNotConfigured", domain="usageLimits"),
    "permission_denied": _row(403, "The caller does not have permission"),
    "not_found": _row(404, "Requested entity was not found."),
    "wrong_path": {"endpoint": CREATE, "status": 404, "body": "<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>"},
    "invalid": {"endpoint": CREATE, "status": 400, "body": validation(2, "topic_type", "Topic type is required.")},
    "photo_fetch": {"endpoint": CREATE, "status": 400, "body": validation("PHOTO_FETCH_FAILED", "media", "Fetching failed.")},
    "photo_upload": {"endpoint": CREATE, "status": 400, "body": validation("PHOTO_UPLOAD_FAILED", "media", "Upload failed.")},
    "photo_number": {"endpoint": CREATE, "status": 400, "body": validation(1001, "media", "Fetching failed.")},
    "unverified": {"endpoint": CREATE, "status": 400, "body": validation(1301, "", "Operation is unsupported.")},
    "unverified_by_name": {"endpoint": CREATE, "status": 400, "body": validation(
        "OPERATION_UNSUPPORTED_UNDER_ACCOUNT_CONDITION", "", "Operation is unsupported.")},
    "chain": {"endpoint": CREATE, "status": 400, "body": validation("LOCATION_DISABLED_FOR_LOCAL_POST_API", "", "No posts.")},
    "exhausted": _row(429, "Resource has been exhausted (e.g. check quota)."),
    "rate_limited": _row(429, "Quota exceeded for quota metric 'Requests'.", headers={"Retry-After": "30"},
                         details=error_info("RATE_LIMIT_EXCEEDED", quota_limit_value="300")),
    "not_approved": _row(429, "Quota exceeded for quota metric 'Requests'.", ACCOUNTS,
                         details=error_info("RATE_LIMIT_EXCEEDED", quota_limit_value="0")),
    "internal": _row(500, "Internal error encountered."),
    "unavailable": _row(503, "The service is currently unavailable."),
    "deadline": _row(504, "Deadline expired before operation could complete."),
}


@dataclass
class Location:
    """One business. `accounts`: the numbers of those that list it. `state`: why it may not post (a row of ERRORS), or None."""

    id: str
    title: str
    accounts: list
    metadata: dict
    address: dict | None = None
    state: str | None = None
    media: list = field(default_factory=list)


@dataclass
class User:
    """One person with the numbers and names of their business accounts."""

    accounts: dict


class BusinessServer(GoogleServer):
    """posts are the posts that are shown (LIVE); `made` are all, by name; `added` the files of galleries that came by the API.

    processing_polls: how often a new post is found unfinished. outcome: what it becomes then. first: its state at once.
    links: whether shown posts have an address. page: entries of a page, where fewer than asked for.
    """

    errors, scopes = ERRORS, MANAGE

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls, self.outcome, self.first = processing_polls, "LIVE", "PROCESSING"
        self.links, self.page = True, 1000
        self.rates = {"edits": (10, 60)}
        self.locations: dict[str, Location] = {}
        self.made: dict[str, dict] = {}
        self.added: list[dict] = []
        self.uploads: dict[str, bytes] = {}

    def add_user(self, accounts=(("111", "Ann"),), scopes=None) -> dict:
        """Create a person with business accounts, (number, name) each, and return their credentials."""
        self.consenting = User(dict(accounts))
        return self.grant(self.consenting, scopes)

    def add_location(self, id_="222", title="Acme Cafe", accounts=("111",), **details) -> Location:
        """Create a location that these accounts list."""
        metadata = {"placeId": f"ChIJ{id_}", "mapsUri": f"https://maps.google.com/maps?cid={id_}", "hasVoiceOfMerchant": True}
        self.locations[id_] = Location(id_, title, list(accounts), **{"metadata": metadata, **details})
        return self.locations[id_]

    # Accounts and locations

    @api("GET", "/v1/accounts", MANAGE, query={
        "pageSize": range(1, 10**6), "pageToken": str, "filter": str, "parentAccount": str})
    def list_accounts(self, request, user, query, body):
        """The accounts of the person, 20 to a page at most."""
        accounts = [{"name": f"accounts/{number}", "accountName": name, "type": "PERSONAL" if at == 0 else "LOCATION_GROUP",
                     "role": "PRIMARY_OWNER"} for at, (number, name) in enumerate(user.accounts.items())]
        return self._paged("accounts", accounts, query, 20, 20)

    @api("GET", "/v1/accounts/:a/locations", MANAGE, required=("readMask",), query={
        "readMask": MASK, "pageSize": range(1, 101), "pageToken": str, "filter": str, "orderBy": str})
    def list_locations(self, request, user, query, body):
        """The locations of one account."""
        number = request.args["a"]
        if number not in user.accounts:
            raise Refusal(403, "The caller does not have permission")
        found = [_shown(one, query["readMask"]) for one in self.locations.values() if number in one.accounts]
        return self._paged("locations", found, query, 10, 100)

    @api("GET", "/v1/locations/:l", MANAGE, required=("readMask",), query={"readMask": MASK})
    def read_location(self, request, user, query, body):
        """One location."""
        location = self.locations.get(request.args["l"])
        if location is None or not user.accounts.keys() & set(location.accounts):
            raise Refusal(404, "Requested entity was not found.")
        return _shown(location, query["readMask"])

    @api("GET", "/v4/accounts/:a/locations/:l/media", MANAGE, query={"pageSize": range(1, 2501), "pageToken": str})
    def list_media(self, request, user, query, body):
        """The pictures of a location."""
        return self._paged("mediaItems", self._location(request, user).media, query, 100, 2500)

    @api("POST", "/v4/accounts/:a/locations/:l/media:startUpload", MANAGE, body={})
    def start_upload(self, request, user, query, body):
        """A name for a file to come."""
        self._location(request, user)
        name = f"canary/{secrets.token_urlsafe(8)}="
        self.uploads[name] = b""
        return {"resourceName": name}

    @api("POST", "/upload/v1/media/canary/:name", MANAGE, required=("upload_type",), query={"upload_type": {"media"}})
    def upload(self, request, user, query, body):
        """The bytes of a file, which nobody sees yet."""
        name = f"canary/{request.args['name']}"
        if name not in self.uploads or not request.body:
            raise Answer(404 if name not in self.uploads else 400, ERRORS["not_found"]["body"])
        self.uploads[name] = request.body
        return Answer(200, None)

    @api("POST", "/v4/accounts/:a/locations/:l/media", MANAGE, body=ITEM)
    def add_media(self, request, user, query, body):
        """Put a file into the gallery, where it is seen at once."""
        location = self._location(request, user)
        if self.take("edits", location.id).exceeded:
            raise Answer(429, ERRORS["exhausted"]["body"])
        if location.state:
            raise Answer(400, ERRORS[location.state]["body"])
        _check_item(body, self.uploads)
        now = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        name = f"accounts/{request.args['a']}/locations/{location.id}/media/AF1Qip{len(self.added) + 1}"
        data = self.uploads.pop(body["dataRef"]["resourceName"]) if "dataRef" in body else b""
        seen = {name: value for name, value in body.items() if name not in ("dataRef", "sourceUrl")}
        address = f"https://lh3.example.com/{len(self.added)}"
        location.media.append({"name": name, "googleUrl": address, "createTime": now, **seen})
        self.added.append({"id": name, "item": location.media[-1], "data": data})
        return location.media[-1]

    # Posts

    @api("POST", "/v4/accounts/:a/locations/:l/localPosts", MANAGE, body=LOCAL_POST)
    def create(self, request, user, query, body):
        """Make a post, which is looked at before it is shown."""
        location = self._location(request, user)
        if self.take("edits", location.id).exceeded:
            raise Answer(429, ERRORS["exhausted"]["body"])
        if location.state:
            raise Answer(400, ERRORS[location.state]["body"])
        _check_post(body)
        if any(item["mediaFormat"] == "VIDEO" for item in body.get("media", ())):
            raise Answer(500, ERRORS["internal"]["body"])
        name = f"accounts/{request.args['a']}/locations/{location.id}/localPosts/{len(self.made) + 1}"
        now = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.made[name] = {"post": {"name": name, "languageCode": "en", **body, "state": self.first, "createTime": now,
                                    "updateTime": now}, "polls": self.processing_polls, "id": name}
        return self._seen(self.made[name])

    @api("GET", "/v4/accounts/:a/locations/:l/localPosts/:p", MANAGE)
    def read(self, request, user, query, body):
        """One post; looking at it is what lets time pass here."""
        self._location(request, user)
        one = self.made.get(request.path.removeprefix("/v4/"))
        if one is None:
            raise Answer(404, ERRORS["not_found"]["body"])
        if one["polls"]:
            one["polls"] -= 1
        elif one["post"]["state"] == "PROCESSING":
            one["post"]["state"] = self.outcome
        return self._seen(one)

    @api("GET", "/v4/accounts/:a/locations/:l/localPosts", MANAGE, query={"pageSize": range(1, 101), "pageToken": str})
    def list_posts(self, request, user, query, body):
        """All posts of a location, in no documented order."""
        prefix = f"accounts/{request.args['a']}/locations/{self._location(request, user).id}/"
        found = [self._seen(one) for name, one in self.made.items() if name.startswith(prefix)]
        return self._paged("localPosts", found, query, 20, 100)

    # private

    def _location(self, request, user):
        location, number = self.locations.get(request.args["l"]), request.args["a"]
        if number not in user.accounts or location is None or number not in location.accounts:
            raise Answer(403, ERRORS["permission_denied"]["body"])
        return location

    def _seen(self, one):
        if one["post"]["state"] == "LIVE" and self.links:
            one["post"]["searchUrl"] = f"https://local.google.com/place?id=1&use=posts&lpsid={one['id'].rpartition('/')[2]}"
        self.posts[:] = [one for one in self.made.values() if one["post"]["state"] in ("LIVE", "RECURRING")]
        return one["post"]

    def _paged(self, name, entries, query, usual, most):
        start = int(query.get("pageToken", "0"))
        end = start + min(query.get("pageSize", usual), most, self.page)
        more = {"nextPageToken": str(end)} if end < len(entries) else {}
        return ({name: entries[start:end]} if entries[start:end] else {}) | more        # what is empty is left out


def _shown(location, mask):
    known = {"name": f"locations/{location.id}", "title": location.title, "metadata": location.metadata,
             "storefrontAddress": location.address}
    return {name: known[name] for name in mask if known.get(name)}


def _check_item(item, uploads):
    """Raises the refusal of a file for a gallery."""
    upload, kind = item.get("dataRef", {}).get("resourceName"), item.get("mediaFormat")
    category = item.get("locationAssociation", {}).get("category")
    data = uploads.get(upload, b"")
    problems = [
        (2, "media_format", "Media format is required.", kind is None),
        (2, "location_association", "A category is required.", category is None),
        (2, "data", "Either a url or a reference is required.", ("sourceUrl" in item) == ("dataRef" in item)),
        (3, "description", "A cover has no description.", category == "COVER" and "description" in item),
        (3, "data_ref", "Unknown or empty reference.", "dataRef" in item and not data),
        ("PHOTO_UPLOAD_FAILED", "data_ref", "Upload failed.", bool(data) and kind is not None and (
            sniff(data) not in KINDS[kind] or len(data) > LARGEST[kind])),
        ("PHOTO_FETCH_FAILED", "source_url", "Fetching failed.", "sourceUrl" in item and not URL.fullmatch(item["sourceUrl"])),
    ]
    _refuse_first(problems)


def _check_post(post):
    topic, event, button = post.get("topicType"), post.get("event"), post.get("callToAction")
    summary, photos = post.get("summary", ""), post.get("media", ())
    problems = [
        (2, "topic_type", "Topic type is required for post creation.", topic is None),
        (3, "summary", f"Must be at most {SUMMARY} characters", len(summary.encode("utf-16-le")) // 2 > SUMMARY),
        (3, "language_code", "Invalid language code.", not LANGUAGE.fullmatch(post.get("languageCode", "en"))),
        (2, "event", "Event is required.", topic in ("EVENT", "OFFER") and not _is_whole(event)),
        (3, "event.title", f"Must be at most {TITLE} characters", bool(event) and len(event.get("title", "")) > TITLE),
        (3, "event.recurrence_info", "Invalid recurrence.", bool(event) and not _recurs(event.get("recurrenceInfo"))),
        (6, "offer", "Offer is for offers.", topic != "OFFER" and "offer" in post),
        (6, "call_to_action", "Call to action is not for offers.", topic == "OFFER" and button is not None),
        (6, "call_to_action.url", "A call has no url.", bool(button) and button["actionType"] == "CALL" and "url" in button),
        (2, "call_to_action.url", "A url is required.", bool(button) and button["actionType"] != "CALL"
         and not URL.fullmatch(button.get("url", ""))),
        (4, "media", "Too many items.", len(photos) > 1),
        (3, "media.source_url", "Invalid url.", any(not URL.fullmatch(item.get("sourceUrl", "")) for item in photos)),
    ]
    _refuse_first(problems)


def _refuse_first(problems):
    for code, name, message, is_so in problems:
        if is_so:
            raise Answer(400, validation(code, name, message))


def _recurs(info):
    """Whether there is no recurrence, or one with a single pattern that is whole."""
    if info is None:
        return True
    patterns = info.keys() & PATTERNS.keys()
    if len(patterns) != 1 or not MOMENT.fullmatch(info.get("seriesEndTime", "2026-01-01T00:00:00Z")):
        return False
    if "weeklyPattern" in info:
        days = info["weeklyPattern"].get("daysOfWeek", [])
        return 0 < len(days) == len(set(days))
    return "dailyPattern" in info or len(info["monthlyPattern"]) == 1 and 1 <= info["monthlyPattern"].get("dayOfMonth", 1) <= 31


def _is_whole(event):
    """Whether an event has its title and all of a schedule that ends after it starts."""
    schedule = (event or {}).get("schedule", {})
    if not (event or {}).get("title") or schedule.keys() != SCHEDULE.keys():
        return False
    try:
        start, end = (datetime(**schedule[f"{side}Date"], hour=schedule[f"{side}Time"].get("hours", 0),
                               minute=schedule[f"{side}Time"].get("minutes", 0)) for side in ("start", "end"))
    except (TypeError, ValueError):
        return False
    return start <= end


if __name__ == "__main__":
    run(BusinessServer)
