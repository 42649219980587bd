"""Pinterest: https://developers.pinterest.com/docs/api/v5/pins-create"""

from platforms.base import JPEG, MB, MP4, PNG, QUICKTIME, ImageLimits, Limits, Platform, PostType, Problem, VideoLimits

SAME_RATIO = 0.01               # how far the ratios of one carousel may differ: a pixel of rounding, no more


class Pinterest(Platform):
    """A Pinterest account, whose Pins go to one of its boards."""

    name = "pinterest"
    title = "Pinterest"
    limits = Limits(
        caption=800,            # of the API; the pages for people say 500. The unit is not documented
        media_items=5, title=100, description=800,
        image=ImageLimits(types=(JPEG, PNG), max_bytes=20 * MB),        # GIF and WebP are not documented for the API
        video=VideoLimits(types=(MP4, QUICKTIME), min_aspect_ratio=0.5, max_aspect_ratio=1.91, min_duration=4,
                          max_duration=15 * 60),
        source="https://help.pinterest.com/en/business/article/pinterest-product-specs", reviewed_at="2026-11-21")
    post_types = {
        "image": PostType(images=(1, 1), required=("boardId",)),
        "carousel": PostType(images=(2, 5), required=("boardId",), options=("slides",)),
        "video": PostType(videos=(1, 1), required=("boardId",), options=("coverImageUrl", "coverSecond")),
    }
    options = ("boardSectionId", "title", "link", "altText", "dominantColor")

    def extra_problems(self, post_type, content):
        """One shape for all images of a carousel, a slide for each at most, one cover for a video."""
        options, media = content.options, content.media
        ratios = [item.width / item.height for item in media if item.width and item.height]
        if post_type == "carousel" and ratios and max(ratios) > min(ratios) * (1 + SAME_RATIO):
            yield Problem("media", "media_aspect_ratio", "Pinterest takes only images of one shape together")
        if len(options.get("slides", ())) > len(media):
            yield Problem("options/slides", "slides", f"{len(options['slides'])} slides for {len(media)} media")
        if "coverImageUrl" in options and "coverSecond" in options:
            yield Problem("options/coverSecond", "one_cover", "a video has one cover: coverImageUrl or coverSecond")
