"""Instagram: https://developers.facebook.com/docs/instagram-platform/content-publishing"""

import re

from platforms.base import JPEG, MB, MP4, QUICKTIME, ImageLimits, Limits, Platform, PostType, Problem, VideoLimits

PHOTO = ImageLimits(types=(JPEG,), max_bytes=8 * MB, min_aspect_ratio=4 / 5, max_aspect_ratio=1.91)    # widths are scaled
STORY_PHOTO = ImageLimits(types=(JPEG,), max_bytes=8 * MB)
REEL = VideoLimits(types=(MP4, QUICKTIME), max_bytes=300 * MB, max_width=1920, min_aspect_ratio=0.01, max_aspect_ratio=10,
                   min_duration=3, max_duration=15 * 60)
# Also for the videos of a carousel, whose bounds are no longer documented: these were the last ones given for feed videos.
SHORT = VideoLimits(types=(MP4, QUICKTIME), max_bytes=100 * MB, max_width=1920, min_aspect_ratio=0.1, max_aspect_ratio=10,
                    min_duration=3, max_duration=60)
FEED = ("collaborators", "locationId", "isAiGenerated", "isPaidPartnership", "firstComment")

# What Instagram itself takes for a tag is not documented: an address of mail or a fragment of a URL is surely none.
CAPTION_TAGS = (("caption_hashtags", "hashtags", re.compile(r"(?<![\w/&])#\w"), 30),
                ("caption_mentions", "mentions", re.compile(r"(?<![\w.])@\w"), 20))


class Instagram(Platform):
    """A professional Instagram account."""

    name = "instagram"
    title = "Instagram"
    limits = Limits(
        caption=2200,       # the unit is not documented
        media_items=10, image=PHOTO, video=REEL,
        source="https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/ig-user/media",
        reviewed_at="2026-11-21")
    post_types = {
        "image": PostType(images=(1, 1), options=("altTexts", *FEED)),
        "carousel": PostType(images=(0, 10), videos=(0, 10), total=(2, 10), mixed=True, video=SHORT,
                             options=("altTexts", *FEED)),
        "reel": PostType(videos=(1, 1), options=(*FEED, "thumbOffsetMs", "shareToFeed", "audioName", "trialGraduation")),
        "story": PostType(images=(0, 1), videos=(0, 1), total=(1, 1), caption=0, image=STORY_PHOTO, video=SHORT),
    }
    options = ("userTags",)

    def extra_problems(self, post_type, content):
        """Counts of hashtags and mentions, and what alternative texts, user tags and the cover's moment have to fit to."""
        for rule, noun, pattern, most in CAPTION_TAGS:
            count = len(pattern.findall(content.caption))
            if count > most:
                yield Problem("caption", rule, f"the caption has {count} {noun}; Instagram allows {most}")
        yield from _alt_text_problems(content)
        yield from _user_tag_problems(post_type, content)
        offset = content.options.get("thumbOffsetMs")
        if offset is not None and any(item.duration is not None and offset >= item.duration * 1000 for item in content.media):
            yield Problem("options/thumbOffsetMs", "thumb_offset", f"the video ends before {offset} milliseconds")


def _alt_text_problems(content):
    texts = content.options.get("altTexts", ())
    for position, (text, item) in enumerate(zip(texts, content.media)):
        if text and item.is_video:
            yield Problem(f"options/altTexts/{position}", "alt_texts", "Instagram takes alternative texts of images only")


def _user_tag_problems(post_type, content):
    for position, tag in enumerate(content.options.get("userTags", ())):
        path, index = f"options/userTags/{position}", tag.get("media", 0)
        if index >= len(content.media):
            yield Problem(f"{path}/media", "user_tags", f"the post has {len(content.media)} media, counted from 0")
        elif post_type == "carousel" and content.media[index].is_video:
            yield Problem(f"{path}/media", "user_tags", "Instagram tags nobody on a video of a carousel")
        elif post_type in ("image", "carousel") and not {"x", "y"} <= tag.keys():
            yield Problem(path, "user_tags", "a tag on an image needs x and y")
        elif post_type == "reel" and {"x", "y"} & tag.keys():
            yield Problem(path, "user_tags", "a tag on a reel takes neither x nor y")
