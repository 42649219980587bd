"""LinkedIn: https://learn.microsoft.com/linkedin/marketing/community-management/shares/posts-api"""

from platforms.base import GIF, JPEG, MB, MP4, PNG, ImageLimits, Limits, Platform, PostType, Problem, VideoLimits

MAX_PIXELS = 36_152_320 - 1     # of an image; shares/images-api
MIN_VIDEO_BYTES = 75_000        # shares/videos-api


class LinkedIn(Platform):
    """A member of LinkedIn, or a Page."""

    name = "linkedin"
    title = "LinkedIn"
    limits = Limits(
        caption=3000,           # whether the marks of mentions count is not documented: everything is counted
        media_items=20,
        title=399, description=4085,        # of a link
        image=ImageLimits(types=(JPEG, PNG, GIF), max_bytes=10 * MB),       # the bytes are not documented: a careful guess
        video=VideoLimits(types=(MP4,), max_bytes=500 * MB, min_aspect_ratio=1 / 2.4, max_aspect_ratio=2.4,
                          min_duration=3, max_duration=30 * 60),            # the ratios are those of other publishers
        source="https://learn.microsoft.com/linkedin/marketing/community-management/shares/posts-api", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True),
        "image": PostType(images=(1, 1), options=("altTexts",)),
        "carousel": PostType(images=(2, 20), options=("altTexts",)),
        "video": PostType(videos=(1, 1), options=("title",)),
        "link": PostType(images=(0, 1), required=("link",)),                # the image becomes the thumbnail
        "poll": PostType(required=("poll",)),
    }
    options = ("visibility", "disableReshare", "firstComment")

    def extra_problems(self, post_type, content):
        """The pixels of images, the least bytes of videos."""
        for position, item in enumerate(content.media):
            pixels = (item.width or 0) * (item.height or 0)
            if not item.is_video and pixels > MAX_PIXELS:
                yield Problem(f"media/{position}", "media_pixels",
                              f"the image has {pixels} pixels; LinkedIn allows {MAX_PIXELS}")
            if item.is_video and item.bytes < MIN_VIDEO_BYTES:
                yield Problem(f"media/{position}", "media_bytes",
                              f"LinkedIn: the file has {item.bytes} bytes; at least {MIN_VIDEO_BYTES} are needed")
