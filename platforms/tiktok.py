"""TikTok: https://developers.tiktok.com/doc/content-posting-api-reference-direct-post"""

from platforms.base import JPEG, MB, MP4, QUICKTIME, WEBM, WEBP, ImageLimits, Limits, Platform, PostType, Problem, VideoLimits
from platforms.text import utf16_units

TITLE = 90
SHORT_SIDE = 1080               # "1080p" of a photo, upright or lying
PHOTO_CAPTION = 4000            # the field description; the title of a photo post is a field of its own
PHOTO_OPTIONS = ("title", "autoAddMusic", "coverIndex")


class TikTok(Platform):
    """A TikTok account."""

    name = "tiktok"
    title = "TikTok"
    limits = Limits(
        caption=2200, media_items=35, title=TITLE, description=PHOTO_CAPTION,
        image=ImageLimits(types=(JPEG, WEBP), max_bytes=20 * MB, max_width=1920, max_height=1920),
        video=VideoLimits(types=(MP4, QUICKTIME, WEBM), max_bytes=4096 * MB, min_width=360, max_width=4096, min_height=360,
                          max_height=4096,
                          min_duration=3,       # not documented, but commonly found
                          max_duration=600),    # many accounts have less, 180 at least
        source="https://developers.tiktok.com/doc/content-posting-api-media-transfer-guide", reviewed_at="2026-11-21")
    post_types = {
        "image": PostType(images=(1, 1), caption=PHOTO_CAPTION, required=("privacyLevel",), options=PHOTO_OPTIONS),
        "carousel": PostType(images=(2, 35), caption=PHOTO_CAPTION, required=("privacyLevel",), options=PHOTO_OPTIONS),
        "video": PostType(videos=(1, 1), required=("privacyLevel",),
                          options=("disableDuet", "disableStitch", "coverTimestampMs", "isAigc")),
    }
    options = ("disableComment", "brandContentToggle", "brandOrganicToggle")
    counts = "UTF-16 code units"

    def measure(self, caption):
        """UTF-16 code units."""
        return utf16_units(caption)

    def extra_problems(self, post_type, content):
        """The short side of photos, the title in UTF-16, and options that contradict each other or the media."""
        options = content.options
        if (length := utf16_units(options.get("title", ""))) > TITLE:
            yield Problem("options/title", "title_length", f"the title has {length} {self.counts}; TikTok allows {TITLE}")
        for position, item in enumerate(content.media):
            side = min(item.width or 0, item.height or 0)
            if not item.is_video and side > SHORT_SIDE:
                yield Problem(f"media/{position}", "media_size",
                              f"the shorter side of the photo has {side} pixels; TikTok allows {SHORT_SIDE}")
        if "coverIndex" in options and options["coverIndex"] >= len(content.media):
            yield Problem("options/coverIndex", "cover_index", f"the post has {len(content.media)} media, counted from 0")
        if options.get("brandContentToggle") and options.get("privacyLevel") == "SELF_ONLY":
            yield Problem("options/privacyLevel", "branded_content", "TikTok keeps no branded content for the account alone")
