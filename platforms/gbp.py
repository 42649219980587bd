"""Google Business Profile: https://developers.google.com/my-business/content/posts-data"""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import quote, urlencode

from platforms.base import (JPEG, MB, MP4, PNG, QUICKTIME, Absent, Account, Connected, ImageLimits, Limits, PostType, Problem,
                            Processing, Profile, Published, VideoLimits)
from platforms.errors import PermissionMissing, PlatformError, Rejected, Unavailable
from platforms.google import GooglePlatform, app_trouble, details
from platforms.http import THROTTLED
from platforms.text import utf16_units

# 5 MB: support.google.com/business/answer/6103862. The pixels are on no page, but Google refuses tiny pictures.
PHOTO = ImageLimits(types=(JPEG, PNG), max_bytes=5 * MB, min_width=400, min_height=300)
MIN_BYTES = 10 * 1024       # the same answer, for photos of the profile; not documented for those of posts
# Of the gallery alone, support.google.com/business/answer/6103862: 250 pixels; half a minute of 720 lines, upright or lying.
GALLERY_PHOTO = replace(PHOTO, min_width=250, min_height=250)
GALLERY_VIDEO = VideoLimits(types=(MP4, QUICKTIME), max_bytes=75 * MB, min_width=720, min_height=720, max_duration=30)

TOPICS = {"update": "STANDARD", "event": "EVENT", "offer": "OFFER"}
SHOWN = ("LIVE", "RECURRING")               # states of a post that is public; the second one that of a post which repeats
# How often a post repeats: the fields of our option that belong to it, and their names at Google.
REPEATS = {"daily": {}, "weekly": {"daysOfWeek": "daysOfWeek"},
           "monthly": {"dayOfMonth": "dayOfMonth", "weekOfMonth": "dayOfWeekOccurrence"}}
READ_MASK = "name,title,storefrontAddress,metadata"
PICTURES = ("PROFILE", "LOGO", "COVER")     # categories of media, the likest to a picture of the account first
ACCOUNTS, LOCATIONS, LISTED = 20, 100, 100  # of a page, the most that there are
PAGES = 50                                  # of one list that are read
WAITS = (10,) * 3 + (30,) * 4 + (300,) * 12 + (3600,)      # seconds between questions for the state: no interval is published
SKEW = 60                                   # seconds that the clocks of the database and of Google may drift apart
# What a post is told from its like by: fields that come back as they were sent, as addresses may not.
VERBATIM = {"title", "year", "month", "day", "hours", "minutes", "actionType", "couponCode"}
LATE = 600                                  # seconds after which a list has what was posted: not documented
DAY = timedelta(days=1)
THROTTLE = 60                               # seconds: the limits are those of a minute
NO_QUOTA = "quota_limit_value 0"            # what a project has before Google has approved it

ACCOUNT, LOCATION = re.compile("accounts/[A-Za-z0-9_-]{1,64}"), re.compile("locations/[A-Za-z0-9_-]{1,64}")
POST = re.compile(f"{ACCOUNT.pattern}/{LOCATION.pattern}/localPosts/[A-Za-z0-9_-]{{1,100}}")
ITEM = re.compile(f"{ACCOUNT.pattern}/{LOCATION.pattern}/media/[A-Za-z0-9_-]{{1,200}}")
UPLOAD = re.compile(r"(?!.*\.\.)[!-~]{1,1000}")     # the name of an upload, whose form is not documented

# https://developers.google.com/my-business/reference/rest/Shared.Types/ErrorCode: the code comes as its name or its number.
PHOTO_TROUBLE = ("PHOTO_FETCH_FAILED", "PHOTO_UPLOAD_FAILED", *map(str, range(1000, 1100)))
NOT_FOR_POSTS = ("OPERATION_UNSUPPORTED_UNDER_ACCOUNT_CONDITION", "1301", "LOCATION_DISABLED_FOR_LOCAL_POST_API")


def not_for_posts(_, **words):
    """The error for a profile that Google lets nothing be posted to."""
    return Rejected("Google takes no posts for this location: its profile is not verified, suspended, or part of a chain",
                    rule="location", **words)


class GoogleBusinessProfile(GooglePlatform):
    """A location of a Google Business Profile, with its posts and the photos and videos of its gallery.

    Google refuses videos in posts, and serves no posts about products or alerts; comments there are none. Its own
    `scheduledTime` would be a second schedule beside ours.
    """

    name = "gbp"
    title = "Google Business Profile"
    limits = Limits(
        caption=1500,       # not documented: the API says so when it refuses
        media_items=1,      # the API takes a list; more than one photo is not documented
        title=58,           # of an event or offer, from the API's refusal too
        image=PHOTO, video=GALLERY_VIDEO,
        source="https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts",
        reviewed_at="2026-11-21")
    # Whether Google takes a post without text is not documented: a caption is asked for, but for files of the gallery.
    post_types = {
        "update": PostType(images=(0, 1), caption_required=True, options=("language", "cta")),
        "event": PostType(images=(0, 1), caption_required=True, required=("event",), options=("language", "cta")),
        "offer": PostType(images=(0, 1), caption_required=True, required=("event",), options=("language", "offer")),
        "image": PostType(images=(1, 1), image=GALLERY_PHOTO, required=("category",)),
        "video": PostType(videos=(1, 1), required=("category",)),
    }
    counts = "UTF-16 code units"
    live = True
    scopes = ("https://www.googleapis.com/auth/business.manage",)
    settings = {**GooglePlatform.settings, "api_url": "https://mybusiness.googleapis.com/v4",
                "upload_url": "https://mybusiness.googleapis.com/upload/v1/media",
                "accounts_url": "https://mybusinessaccountmanagement.googleapis.com/v1",
                "locations_url": "https://mybusinessbusinessinformation.googleapis.com/v1"}
    verdicts = {
        **GooglePlatform.verdicts, NO_QUOTA: app_trouble,
        **dict.fromkeys((429, "RATE_LIMIT_EXCEEDED", "rateLimitExceeded", "RESOURCE_EXHAUSTED"),
                        partial(THROTTLED, retry_after=THROTTLE)),
        **dict.fromkeys(PHOTO_TROUBLE, partial(Rejected, rule="media")), **dict.fromkeys(NOT_FOR_POSTS, not_for_posts),
    }

    def measure(self, caption):
        """UTF-16 code units: the documentation names no unit, and of the two that are likely this is the stricter one."""
        return utf16_units(caption)

    def extra_problems(self, post_type, content):
        """A photo of 10 KB at least, a URL for every button but CALL, and an event that ends after it starts."""
        for position, item in enumerate(content.media):
            if not item.is_video and item.bytes < MIN_BYTES:
                yield Problem(f"media/{position}", "media_bytes", f"the file has {item.bytes} bytes; {MIN_BYTES} are needed")
        cta = content.options.get("cta")
        if cta and cta["actionType"] == "CALL" and "url" in cta:
            yield Problem("options/cta/url", "option", "the button CALL takes no url: it dials the number of the profile")
        if cta and cta["actionType"] != "CALL" and "url" not in cta:
            yield Problem("options/cta/url", "required", f"the button {cta['actionType']} needs a url")
        if "event" in content.options:
            yield from self._event_problems(content.options["event"])

    def choices(self, credentials):
        """Every location of every business account that the person has a part in, once."""
        person, found = Account("", "", credentials=credentials), {}
        for page in self._pages(person, f"{self.settings['accounts_url']}/accounts", pageSize=ACCOUNTS):
            for position in _positions(page, "accounts"):
                owner = _name(page, ACCOUNT, "accounts", position, "name")
                for location, connected in self._locations(person, owner):
                    found.setdefault(location, connected)
        if not found:
            raise Rejected("this Google account manages no location of a Business Profile", rule="no_location")
        return list(found.values())

    def profile(self, account):
        """The location with its address, since those of a chain share a name, and its picture."""
        location = account.platform_id.partition("/locations/")[2]
        address = f"{self.settings['locations_url']}/locations/{location}"
        answer = self.call(account, "GET", address, query={"readMask": READ_MASK})
        return Profile(account.platform_id, location, _display_name(answer), self._picture(account))

    def prepare(self, account, content, receipt):
        """Uploads a file for the gallery, which shows nothing yet; that of a post Google can only fetch itself."""
        if _is_item(content) and "upload" not in receipt:
            yield {**receipt, "upload": self._upload(account, content.media[0])}

    def publish(self, account, content, receipt):
        """Creates the post, which Google looks at before it shows it; or adds the file to the gallery."""
        address, body = ((self._items(account), _item(content, receipt)) if _is_item(content) else
                         (self._posts(account), _post(self, content)))
        try:
            answer = self.call(account, "POST", address, json=body, commits=True)
        except Rejected as refusal:
            if refusal.rule != "media" or "photo" in receipt:
                raise
            raise Unavailable("Google could not get the file", receipt={"photo": "failed"}, **refusal.words) from None
        if _is_item(content):
            return self._added(account, _name(answer, ITEM, "name"))
        return self._outcome(account, answer, {**receipt, "post": _name(answer, POST, "name")})

    def check(self, account, receipt):
        """Reads the state of the post."""
        return self._outcome(account, self.call(account, "GET", f"{self.settings['api_url']}/{receipt['post']}"), receipt)

    def find(self, account, content, receipt):
        """Looks through all posts of the location, or its gallery, for what is like ours and as young as the sending.

        None where several are: Google knows no mark by which one of them could be told to be ours.
        """
        try:
            found, complete = self._alike(account, content)
        except (PermissionMissing, Rejected):
            return None
        if not found:
            return Absent() if complete and content.sent_ago > LATE else None
        if len(found) > 1:
            return None
        return self._added(account, found[0]) if _is_item(content) else Processing({"post": found[0]}, 1)

    def words(self, answer):
        """The first code of a ValidationError, which says more than the status, and all of its messages."""
        code, message = super().words(answer)
        messages = []
        for detail in details(answer):
            if answer.field(*detail, "metadata", "quota_limit_value", default=None) == "0":
                return NO_QUOTA, message
            for position in _positions(answer, *detail, "errorDetails"):
                problem = (*detail, "errorDetails", position)
                messages.append(answer.field(*problem, "message", default=None))
                code = answer.field(*problem, "code", kind=int | str, default=code) if position == 0 else code
        return None if code is None else str(code), "; ".join(filter(None, messages)) or message

    def _locations(self, person, owner):
        address = f"{self.settings['locations_url']}/{owner}/locations"
        for page in self._pages(person, address, readMask=READ_MASK, pageSize=LOCATIONS):
            for position in _positions(page, "locations"):
                path = ("locations", position)
                location = _name(page, LOCATION, *path, "name")
                profile = Profile(f"{owner}/{location}", location.partition("/")[2], _display_name(page, *path))
                yield location, Connected(profile, "", {**person.credentials, "mapsUrl": _maps_url(page, *path)})

    def _picture(self, account):
        """The address of the picture that stands for the location; None where there is none, or Google does not say."""
        pictures = {}
        try:
            answer = self.call(account, "GET", self._items(account), query={"pageSize": LISTED})
            for position in _positions(answer, "mediaItems"):
                item = ("mediaItems", position)
                links = [answer.link(*item, name, default=None) for name in ("thumbnailUrl", "googleUrl")]
                pictures[answer.field(*item, "locationAssociation", "category", default="")] = links[0] or links[1]
        except PlatformError:
            return None
        return next((pictures[category] for category in PICTURES if pictures.get(category)), None)

    def _upload(self, account, item):
        """The name of a file that Google has, and shows nowhere yet."""
        upload = _name(self.call(account, "POST", f"{self._items(account)}:startUpload", json={}), UPLOAD, "resourceName")
        with item.open() as file:
            self.call(account, "POST", f"{self.settings['upload_url']}/{quote(upload, safe='/')}", body=file, size=item.bytes,
                      query={"upload_type": "media"}, headers={"Content-Type": item.mime_type})
        return upload

    def _alike(self, account, content):
        """The names of the posts, or the files of the gallery, that may be ours, and whether their list came to its end."""
        if _is_item(content):
            address, kind, form = self._items(account), "mediaItems", ITEM
            is_ours = partial(_is_item_of, wanted=_item(content, {}))
        else:
            address, kind, form = self._posts(account), "localPosts", POST
            is_ours = partial(_is_ours, post=_post(self, content))
        found, complete = [], False
        for page in self._pages(account, address, pageSize=LISTED):
            found += [_name(page, form, kind, position, "name") for position in _positions(page, kind)
                      if is_ours(page, (kind, position)) and _is_young(page, (kind, position), content.sent_ago)]
            complete = not page.field("nextPageToken", default="")
        return found, complete

    def _added(self, account, item):
        """A file of the gallery. The addresses that Google gives it change: it is found on the map."""
        return Published(item, account.credentials["mapsUrl"])

    def _posts(self, account):
        return f"{self.settings['api_url']}/{account.platform_id}/localPosts"

    def _items(self, account):
        return f"{self.settings['api_url']}/{account.platform_id}/media"

    def _outcome(self, account, answer, receipt):
        state, asked = answer.field("state", default=None), receipt.get("asked", 0)
        if state == "REJECTED":
            raise Rejected("Google has looked at the post and does not show it: it breaks a rule for the content of posts; "
                           "which one Google does not say", rule="policy", platform_code=state)
        if state in SHOWN:
            return Published(receipt["post"], answer.link("searchUrl", default=None) or account.credentials["mapsUrl"])
        return Processing({**receipt, "asked": asked + 1}, WAITS[min(asked, len(WAITS) - 1)])

    def _pages(self, account, address, **query):
        """The answers that make up a list, up to PAGES of them."""
        page = self.call(account, "GET", address, query=query)
        yield page
        for _ in range(PAGES - 1):
            token = page.field("nextPageToken", default="")
            if not token:
                return
            page = self.call(account, "GET", address, query={**query, "pageToken": token})
            yield page

    def _event_problems(self, event):
        length = utf16_units(event["title"])
        if length > self.limits.title:
            yield Problem("options/event/title", "title_length",
                          f"the title has {length} {self.counts}; {self.title} allows {self.limits.title}")
        times = {field: _local_time(event[field]) for field in ("start", "end")}
        for field, time in times.items():
            if time is None:
                yield Problem(f"options/event/{field}", "event_time", f"{event[field]} is no date and time of the calendar")
        if None not in times.values() and times["end"] < times["start"]:
            yield Problem("options/event/end", "event_end", "the event ends before it starts")
        if "repeat" in event:
            yield from _repeat_problems(event["repeat"])
            last = _local_time(event["repeat"].get("until", ""))
            if last and times["start"] and last.date() < times["start"].date() - DAY:       # wherever on earth either is meant
                yield Problem("options/event/repeat/until", "event_end", "the event ends to repeat before it starts")


def _repeat_problems(repeat):
    """What does not belong to the frequency, and what is missing from it."""
    frequency, path = repeat["frequency"], "options/event/repeat"
    for name, others in REPEATS.items():
        for field in others:
            if field in repeat and name != frequency:
                yield Problem(f"{path}/{field}", "option", f"what repeats {frequency} has no {field}")
    if frequency == "weekly" and "daysOfWeek" not in repeat:
        yield Problem(f"{path}/daysOfWeek", "required", "what repeats weekly needs its daysOfWeek")
    if frequency == "monthly" and len(repeat.keys() & set(REPEATS["monthly"])) != 1:
        yield Problem(f"{path}/dayOfMonth", "required", "what repeats monthly needs either dayOfMonth or weekOfMonth")


def _local_time(text):
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _post(network, content):
    options, topic = content.options, TOPICS[content.post_type or network.infer(content.media, content.options)]
    post = {"topicType": topic, "summary": content.caption, "languageCode": options.get("language"),
            "callToAction": options.get("cta"), "event": _event(options.get("event")), "offer": _offer(options.get("offer")),
            "media": [{"mediaFormat": "PHOTO", "sourceUrl": item.url} for item in content.media]}
    return {name: value for name, value in post.items() if value}


def _event(event):
    """With all parts of both times, as the clock at the business shows them: Google takes no less and knows no time zone."""
    if event is None:
        return None
    schedule = {}
    for side in ("start", "end"):
        time = datetime.fromisoformat(event[side])
        schedule[f"{side}Date"] = {"year": time.year, "month": time.month, "day": time.day}
        schedule[f"{side}Time"] = {"hours": time.hour, "minutes": time.minute}
    return {"title": event["title"], "schedule": schedule, **_recurrence(event.get("repeat"))}


def _recurrence(repeat):
    """https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts#RecurrenceInfo"""
    if repeat is None:
        return {}
    names = REPEATS[repeat["frequency"]]
    info = {f"{repeat['frequency']}Pattern": {names[field]: value for field, value in repeat.items() if field in names}}
    return {"recurrenceInfo": {**info, **({"seriesEndTime": repeat["until"]} if "until" in repeat else {})}}


def _offer(offer):
    fields = {"couponCode": "couponCode", "redeemUrl": "redeemOnlineUrl", "terms": "termsConditions"}
    return {fields[name]: value for name, value in (offer or {}).items()}


def _is_item(content):
    """Whether this is a file of the gallery, no post."""
    return "category" in content.options


def _item(content, receipt):
    """https://developers.google.com/my-business/reference/rest/v4/accounts.locations.media#MediaItem"""
    category = content.options["category"]
    item = {"mediaFormat": "VIDEO" if content.media[0].is_video else "PHOTO", "locationAssociation": {"category": category},
            "dataRef": {"resourceName": receipt.get("upload")}}
    return item | ({"description": content.caption} if content.caption and category != "COVER" else {})


def _is_item_of(page, path, wanted):
    return (page.field(*path, "mediaFormat", default="") == wanted["mediaFormat"]
            and page.field(*path, "locationAssociation", "category", default="") == wanted["locationAssociation"]["category"]
            and page.field(*path, "description", default="").split() == wanted.get("description", "").split())


def _is_ours(page, path, post):
    return (page.field(*path, "summary", default="").split() == post["summary"].split()
            and page.field(*path, "topicType", default="STANDARD") == post["topicType"]
            and all(str(page.field(*path, *way, kind=type(value), default=type(value)())).split() == str(value).split()
                    for way, value in _verbatim(post)))


def _verbatim(part, *path):
    """The path and value of each field of ours that Google gives back as it was; a zero it may leave out."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield from _verbatim(value, *path, name)
        elif name in VERBATIM:
            yield (*path, name), value


def _is_young(page, path, sent_ago):
    """Whether what is at this path was made when we sent ours, or later."""
    try:
        made = datetime.fromisoformat(page.field(*path, "createTime"))
    except ValueError:
        return False
    # By the clocks of the database and of Google: that of this machine may be wrong.
    return made.timestamp() >= page.moment().timestamp() - sent_ago - SKEW


def _positions(answer, *path):
    """Of a list, which Google leaves out when it is empty."""
    answer.field(kind=dict)
    return range(len(answer.field(*path, kind=list, default=[])))


def _name(answer, form, *path):
    """The name of something of Google's, which becomes part of an address."""
    name = answer.field(*path)
    if not form.fullmatch(name):
        raise answer.manner.fault()
    return name


def _display_name(answer, *path):
    address = (*path, "storefrontAddress")
    parts = (answer.field(*path, "title"), answer.field(*address, "addressLines", 0, default=""),
             answer.field(*address, "locality", default=""))
    return ", ".join(filter(None, parts))


def _maps_url(answer, *path):
    """The location on the map, for posts without an address: https://developers.google.com/maps/documentation/urls"""
    place = answer.field(*path, "metadata", "placeId", default="")
    query = {"api": 1, "query": answer.field(*path, "title"), "query_place_id": place}
    return answer.link(*path, "metadata", "mapsUri", default=None) or f"https://www.google.com/maps/search/?{urlencode(query)}"
