"""Threads: https://developers.facebook.com/documentation/threads/posts"""

import re

from platforms.base import JPEG, MB, MP4, PNG, QUICKTIME, ImageLimits, Limits, Platform, PostType, Problem, VideoLimits
from platforms.text import emoji_as_bytes

PHOTO = ImageLimits(types=(JPEG, PNG), max_bytes=8 * MB, max_aspect_ratio=10)       # widths are scaled
VIDEO = VideoLimits(types=(MP4, QUICKTIME), max_bytes=1024 * MB, max_width=1920, min_aspect_ratio=0.01, max_aspect_ratio=10,
                    max_duration=300)
LINKS = 5       # documentation/threads/create-posts/text-attachments: different ones, those of the text and the attached one
LINK = re.compile(r"(?:https?://|\bwww\.)\S*[^\s.,;:!?)\]'\"]", re.IGNORECASE)
MEDIA_OPTIONS = ("altTexts", "isSpoilerMedia")


class Threads(Platform):
    """A Threads profile."""

    name = "threads"
    title = "Threads"
    limits = Limits(caption=500, media_items=20, image=PHOTO, video=VIDEO,
                    source="https://developers.facebook.com/documentation/threads/posts", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True),
        "image": PostType(images=(1, 1), options=MEDIA_OPTIONS),
        "video": PostType(videos=(1, 1), options=MEDIA_OPTIONS),
        "carousel": PostType(images=(0, 20), videos=(0, 20), total=(2, 20), mixed=True, options=MEDIA_OPTIONS),
        "poll": PostType(caption_required=True, required=("poll",)),
        "link": PostType(caption_required=True, required=("linkAttachment",)),
    }
    options = ("replyControl", "enableReplyApprovals", "topicTag", "locationId", "quotePostId", "firstComment")
    counts = "characters (an emoji counts its UTF-8 bytes)"

    def measure(self, caption):
        """Code points, but emojis in UTF-8 bytes."""
        return emoji_as_bytes(caption)

    def extra_problems(self, post_type, content):
        """At most five links; a first comment within the limit of a post; no fourth option of a poll without a third."""
        options = content.options
        links = {*LINK.findall(content.caption), options.get("linkAttachment")} - {None}
        if len(links) > LINKS:
            yield Problem("caption", "caption_links", f"the post has {len(links)} different links; Threads allows {LINKS}")
        length = self.measure(options.get("firstComment", ""))
        if length > self.limits.caption:
            yield Problem("options/firstComment", "comment_length",
                          f"the first comment has {length} {self.counts}; Threads allows {self.limits.caption}")
        poll = options.get("poll", {})
        if "optionD" in poll and "optionC" not in poll:
            yield Problem("options/poll/optionC", "required", "a poll with optionD needs optionC")
