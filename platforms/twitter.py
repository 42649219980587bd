"""X, formerly Twitter: https://docs.x.com/x-api/posts/create-post"""

import re

from platforms.base import (GIF, JPEG, MB, MP4, PNG, QUICKTIME, WEBP, ImageLimits, Limits, Platform, PostType, Problem,
                            VideoLimits)
from platforms.text import tweet_weight

STILL_BYTES = 5 * MB            # of an image that does not move
CASHTAG = re.compile(r"(?<!\S)\$[a-z]{1,6}(?:[._][a-z]{1,2})?(?=$|[\s!-/:-@\[-`{-~])", re.IGNORECASE)     # of twitter-text
INVALID = re.compile("[\uFFFE\uFEFF\uFFFF]")


class Twitter(Platform):
    """An account of X, by the limits of accounts without Premium: what Premium adds hangs on the account."""

    name = "twitter"
    title = "X"
    limits = Limits(
        caption=280,            # 25,000 with Premium
        media_items=4,
        image=ImageLimits(types=(JPEG, PNG, WEBP, GIF), max_bytes=15 * MB),     # of a GIF; see STILL_BYTES for the others
        # More with Premium. The page also gives 1280x1024 as the largest frame, but recommends 720x1280: no largest frame here.
        # Another copy of it allows 20 minutes and 8 GB; until that is sure, what is surely taken.
        video=VideoLimits(types=(MP4, QUICKTIME), max_bytes=512 * MB, min_width=32, min_height=32, min_aspect_ratio=1 / 3,
                          max_aspect_ratio=3, min_duration=0.5, max_duration=140),
        source="https://docs.x.com/x-api/media/quickstart/best-practices", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True),
        "image": PostType(images=(1, 4), options=("altTexts", "taggedUserIds")),
        "video": PostType(videos=(1, 1)),
        "poll": PostType(caption_required=True, required=("poll",)),
    }
    options = ("replySettings", "inReplyToTweetId", "communityId", "shareWithFollowers", "placeId", "forSuperFollowersOnly",
               "madeWithAi", "paidPartnership")
    counts = "weighted characters"

    def measure(self, caption):
        """Weighted characters: a link counts 23, an emoji or a Chinese, Japanese or Korean character 2."""
        return tweet_weight(caption)

    def extra_problems(self, post_type, content):
        """Characters and cashtags that X refuses, GIFs, and options that do not fit to each other or the media."""
        if INVALID.search(content.caption):
            yield Problem("caption", "caption_characters", "X takes none of the characters U+FEFF, U+FFFE and U+FFFF")
        if (count := len(CASHTAG.findall(content.caption))) > 1:
            yield Problem("caption", "caption_cashtags", f"the caption has {count} cashtags; X allows 1")
        for position, item in enumerate(content.media):
            yield from _image_problems(f"media/{position}", item, len(content.media))
        if content.options.get("shareWithFollowers") and "communityId" not in content.options:
            yield Problem("options/communityId", "required", "shareWithFollowers is for posts to a community")


def _image_problems(path, item, count):
    if item.mime_type == GIF:       # taken for an animated one, since stills are rare and their number of frames is not known
        if count > 1:
            yield Problem(path, "media_count", "X takes a GIF only alone")
        if (item.width or 0) > 1280 or (item.height or 0) > 1080:
            yield Problem(path, "media_size", f"the GIF has {item.width}x{item.height} pixels; X allows 1280x1080")
    elif not item.is_video and item.bytes > STILL_BYTES:
        yield Problem(path, "media_bytes", f"X: the file has {item.bytes} bytes; {STILL_BYTES} are allowed")
