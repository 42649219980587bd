"""The uploads of X: files in chunks, their processing, and what is said of them."""

import re
from dataclasses import dataclass, field

from tests.standins.server import Answer, parse_multipart, sniff
from tests.standins.shapes import List, Range, Text
from tests.standins.twitter_rules import ERRORS, api, body, invalid

MEDIA_SECONDS = 86_400
ID = re.compile("[0-9]{1,19}")
SRT = re.compile(rb"1\r?\n\d\d:\d\d:\d\d,\d{3} --> ")
CATEGORIES = {"image/jpeg": "tweet_image", "image/png": "tweet_image", "image/webp": "tweet_image", "image/gif": "tweet_gif",
              "video/mp4": "tweet_video", "video/quicktime": "tweet_video", "text/srt": "subtitles", "text/vtt": "subtitles"}
KEYS = {"tweet_image": 3, "tweet_video": 7, "tweet_gif": 16, "subtitles": 26}
INITIALIZE = {"media_type!": set(CATEGORIES), "total_bytes!": Range(1, 17_179_869_184), "media_category!": set(KEYS),
              "shared": bool, "additional_owners": List(ID)}
METADATA = {"id!": ID, "metadata!": {"alt_text": {"text!": Text(0, 1000)}, "sensitive_media_warning": {
    "adult_content": bool, "graphic_violence": bool, "other": bool}}}
SUBTITLES = {"id!": ID, "media_category!": {"AmplifyVideo", "TweetVideo"}, "subtitles!": {
    "id!": ID, "language_code!": re.compile("[A-Z]{2}"), "display_name!": Text(1, 100)}}


@dataclass
class Media:
    """An upload; `polls` counts the looks left until it is processed, `end` is None until it is finalized."""

    id: str
    user: object
    media_type: str
    category: str
    total: int
    segments: dict = field(default_factory=dict, repr=False)
    polls: int = 0
    end: float | None = None
    error: dict | None = None
    alt_text: str | None = None
    warning: dict | None = None
    subtitles: list = field(default_factory=list)

    @property
    def data(self):
        return b"".join(self.segments[number] for number in sorted(self.segments))

    @property
    def key(self):
        return f"{KEYS[self.category]}_{self.id}"


class Uploads:
    """The part of X that takes files. `processing_polls` is how often a video or GIF is found unfinished."""

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls = processing_polls
        self.media: dict[str, Media] = {}

    @api("POST", "/2/media/upload/initialize", "media.write")
    def initialize(self, request, user):
        """Begin an upload."""
        given = body(request, INITIALIZE)
        if CATEGORIES[given["media_type"]] != given["media_category"]:
            raise Answer(400, invalid("The media type does not fit the media category"))
        media = Media(self._id(), user, given["media_type"], given["media_category"], given["total_bytes"])
        self.media[media.id] = media
        return {"data": {"id": media.id, "media_key": media.key, "expires_after_secs": MEDIA_SECONDS}}

    @api("POST", "/2/media/upload/:id/append", "media.write")
    def append(self, request, user):
        """Take one segment; the same again replaces it."""
        media = self._media(request.args["id"], user)
        try:
            parts = {part.name: part for part in parse_multipart(request.headers.get("Content-Type", ""), request.body)}
            number = int(parts["segment_index"].data)
        except (ValueError, KeyError):
            raise Answer(400, invalid("The body is not valid")) from None
        segment = parts.get("media")
        if parts.keys() != {"media", "segment_index"} or not 0 <= number <= 999 or not segment.filename or media.end:
            raise Answer(400, invalid("The segment is not valid"))
        media.segments[number] = segment.data
        if sum(map(len, media.segments.values())) > media.total:
            raise Answer(400, invalid("More bytes than total_bytes", {"total_bytes": [str(media.total)]}))
        return {"data": {"expires_at": int(self.now()) + MEDIA_SECONDS}}

    @api("POST", "/2/media/upload/:id/finalize", "media.write")
    def finalize(self, request, user):
        """End an upload."""
        media = self._media(request.args["id"], user)
        if request.body or sorted(media.segments) != list(range(len(media.segments))) or len(media.data) != media.total:
            raise Answer(400, invalid("Segments do not add up to provided total file size."))
        found = "text/srt" if SRT.match(media.data) else sniff(media.data)
        if media.category in ("tweet_image", "subtitles") and found != media.media_type:
            raise Answer(400, invalid("The media type is not what was declared"))
        if found != media.media_type:
            media.error = {"code": 1, "name": "InvalidMedia", "message": "InvalidMedia"}
        media.end = media.end or self.now() + MEDIA_SECONDS
        media.polls = 0 if media.category in ("tweet_image", "subtitles") else self.processing_polls
        return {"data": self._progress(media, first=True)}

    @api("GET", "/2/media/upload", "media.write")
    def status(self, request, user):
        """How the processing goes."""
        given = dict(request.query)
        if given.keys() != {"command", "media_id"} or given["command"] != "STATUS":
            raise Answer(400, invalid("The query parameters are not valid"))
        media = self._media(given["media_id"], user)
        if media.end is None:
            raise Answer(400, invalid("The upload is not finalized"))
        media.polls = max(0, media.polls - 1)
        return {"data": self._progress(media)}

    @api("POST", "/2/media/metadata", "media.write")
    def describe(self, request, user):
        """Say of media what they show, or warn of them."""
        given = body(request, METADATA)
        media, said = self._media(given["id"], user), given["metadata"]
        if media.end is None or not said or media.category == "tweet_video" and "alt_text" in said:
            raise Answer(400, invalid("The media takes no such metadata"))
        media.alt_text, media.warning = said.get("alt_text", {}).get("text"), said.get("sensitive_media_warning")
        return {"data": {"id": media.id, "associated_metadata": said}}

    @api("POST", "/2/media/subtitles", "media.write")
    def subtitle(self, request, user):
        """Give a video subtitles."""
        given = body(request, SUBTITLES)
        video, track = self._media(given["id"], user), self._media(given["subtitles"]["id"], user)
        if (video.category, given["media_category"], track.category) != ("tweet_video", "TweetVideo", "subtitles") \
                or video.end is None or video.polls or track.end is None:
            raise Answer(400, invalid("These are no subtitles of a video"))
        video.subtitles.append({**given["subtitles"], "text": track.data.decode()})
        return {"data": {"id": video.id, "media_category": "TweetVideo", "associated_subtitles": given["subtitles"]}}

    # private

    def _media(self, media_id, user):
        media = self.media.get(media_id)
        if media is None or media.user is not user:
            raise Answer(404, ERRORS["unknown_media"]["body"])
        return media

    def _progress(self, media, first=False):
        data = {"id": media.id, "media_key": media.key, "size": media.total, "expires_after_secs": MEDIA_SECONDS}
        if media.category in ("tweet_image", "subtitles"):
            return data
        if media.polls:
            info = {"state": "pending" if first else "in_progress", "check_after_secs": 1, "progress_percent": 50}
        else:
            info = {"state": "failed", "error": media.error} if media.error else {"state": "succeeded", "progress_percent": 100}
        return data | {"processing_info": info}
