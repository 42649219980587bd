"""Facebook Pages: https://developers.facebook.com/documentation/pages-api/posts"""

from dataclasses import replace

from platforms.base import GIF, JPEG, MB, MP4, PNG, QUICKTIME, ImageLimits, Limits, Platform, PostType, Problem, VideoLimits

PHOTO = ImageLimits(types=(JPEG, PNG, GIF), max_bytes=10 * MB)      # docs/graph-api/reference/page/photos; GIFs stand still
# docs/graph-api/video-uploads: 10 GB and 4 hours in chunks, no WebM. No shape is documented today for videos of the feed.
VIDEO = VideoLimits(types=(MP4, QUICKTIME), max_duration=4 * 60 * 60)
# documentation/video-api/guides/reels-publishing: 9:16, which leaves the odd pixel of an encoder undecided.
REEL = VideoLimits(types=(MP4, QUICKTIME), min_width=540, min_height=960, min_aspect_ratio=0.56, max_aspect_ratio=0.57,
                   min_duration=3, max_duration=90)
STORY = replace(REEL, max_duration=60)      # docs/page-stories-api


class Facebook(Platform):
    """A Facebook Page. Profiles of persons and groups cannot be published to."""

    name = "facebook"
    title = "Facebook"
    limits = Limits(
        caption=63_206,     # on no page of the documentation: the number that other publishers use
        media_items=10,     # not documented either
        title=255,          # nor this
        image=PHOTO, video=VIDEO,
        source="https://developers.facebook.com/documentation/pages-api/posts", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True, options=("placeId", "firstComment")),
        "image": PostType(images=(1, 10), options=("altTexts", "placeId", "firstComment")),
        "video": PostType(videos=(1, 1), options=("title", "firstComment")),
        "reel": PostType(videos=(1, 1), video=REEL, options=("title", "placeId", "firstComment")),
        "story": PostType(images=(0, 1), videos=(0, 1), total=(1, 1), caption=0, video=STORY),
        "link": PostType(required=("link",), options=("placeId", "firstComment")),
    }
