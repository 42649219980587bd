"""YouTube: https://developers.google.com/youtube/v3/docs/videos/insert"""

from dataclasses import replace

from platforms.base import MP4, QUICKTIME, WEBM, Limits, Platform, PostType, Problem, VideoLimits
from platforms.text import utf8_bytes

VIDEO = VideoLimits(types=(MP4, QUICKTIME, WEBM), max_bytes=274_877_906_944,
                    max_duration=12 * 60 * 60)      # 15 minutes for channels that have not verified a phone number
# YouTube itself decides what is a Short, by these bounds: https://support.google.com/youtube/answer/15424877
SHORT = replace(VIDEO, max_aspect_ratio=1, max_duration=180)
TAGS = 500                      # characters of all tags together


class YouTube(Platform):
    """A YouTube channel."""

    name = "youtube"
    title = "YouTube"
    limits = Limits(caption=5000, media_items=1, title=100, description=5000, video=VIDEO,
                    source="https://developers.google.com/youtube/v3/docs/videos", reviewed_at="2026-11-21")
    post_types = {
        "video": PostType(videos=(1, 1), required=("title",)),
        "reel": PostType(videos=(1, 1), video=SHORT, required=("title",)),
    }
    options = ("tags", "categoryId", "privacyStatus", "madeForKids", "containsSyntheticMedia", "paidPromotion", "embeddable",
               "license", "publicStatsViewable", "language", "audioLanguage", "notifySubscribers", "playlistId", "firstComment")
    counts = "bytes in UTF-8"

    def measure(self, caption):
        """Bytes in UTF-8."""
        return utf8_bytes(caption)

    def extra_problems(self, post_type, content):
        """Angle brackets, empty titles, the length of all tags together, and comments where YouTube allows none."""
        options = content.options
        title = options.get("title")
        if title is not None and not title.strip():
            yield Problem("options/title", "required", "YouTube needs a title that is not blank")
        for path, text in (("options/title", title or ""), ("caption", content.caption)):
            if "<" in text or ">" in text:
                yield Problem(path, "angle_brackets", "YouTube takes neither < nor >")
        tags = options.get("tags", ())
        # docs/videos#snippet.tags[]: joined by commas, and in quotes where a space is inside.
        if (length := len(",".join(tags)) + 2 * sum(" " in tag for tag in tags)) > TAGS:
            yield Problem("options/tags", "tags_length", f"the tags have {length} characters; YouTube allows {TAGS}")
        if options.get("madeForKids") and "firstComment" in options:
            yield Problem("options/firstComment", "comments_off", "YouTube allows no comments on videos made for kids")
