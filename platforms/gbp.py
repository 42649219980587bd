"""Google Business Profile: https://developers.google.com/my-business/content/posts-data"""

from datetime import datetime

from platforms.base import JPEG, MB, PNG, ImageLimits, Limits, Platform, PostType, Problem
from platforms.text import utf16_units

# 5 MB: support.google.com/business/answer/6103862. The pixels are on no page, but Google refuses tiny pictures.
PHOTO = ImageLimits(types=(JPEG, PNG), max_bytes=5 * MB, min_width=400, min_height=300)
MIN_BYTES = 10 * 1024       # the same answer, for photos of the profile; not documented for those of posts


class GoogleBusinessProfile(Platform):
    """A location of a Google Business Profile. Videos in posts are refused by Google."""

    name = "gbp"
    title = "Google Business Profile"
    limits = Limits(
        caption=1500,       # not documented: the API says so when it refuses
        media_items=1,      # the API takes a list; more than one photo is not documented
        title=58,           # of an event or offer, from the API's refusal too
        image=PHOTO,
        source="https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts",
        reviewed_at="2026-11-21")
    # Whether Google takes a post without text is not documented: a caption is asked for everywhere.
    post_types = {
        "update": PostType(images=(0, 1), caption_required=True, options=("cta",)),
        "event": PostType(images=(0, 1), caption_required=True, required=("event",), options=("cta",)),
        "offer": PostType(images=(0, 1), caption_required=True, required=("event",), options=("offer",)),
    }
    options = ("language",)
    counts = "UTF-16 code units"

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


def _local_time(text):
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
