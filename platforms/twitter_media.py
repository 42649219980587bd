"""Files on their way to X, chunk by chunk: https://docs.x.com/x-api/media/quickstart/media-upload-chunked"""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from platforms.base import GIF, MB, Waiting
from platforms.errors import Rejected, Unavailable
from platforms.http import Upload

CHUNK = MB                      # X's edge refuses chunks of 5 MB; 512 of these make the largest video, of at most 1000
CHECKS = (1, 60)                # seconds between two looks at a file that is processed, whatever X asks for


@dataclass(frozen=True)
class File:
    """One file to upload, opened as platforms.base.Media are. `shown`: it is one of the media of the post."""

    mime_type: str
    category: str
    bytes: int
    shown: bool
    open: Callable = field(repr=False)


class Uploads:
    """The part of the X connector that has to do with files."""

    def prepare(self, account, content, receipt):
        """Uploads the media in chunks, waits until X has processed them, describes them, and gives a video its subtitles."""
        if "media" not in receipt:
            receipt = {"media": []}
            yield receipt
        for position, file in enumerate(files(content)):
            while (one := receipt["media"][position] if position < len(receipt["media"]) else {}).get("stage") != "ready":
                one, wait = self._advance(account, content, position, file, receipt, one)
                receipt = {**receipt, "media": [*receipt["media"][:position], one]}
                yield receipt if wait is None else Waiting(receipt, wait)

    def _advance(self, account, content, position, file, receipt, one):
        """One step with one of the files: what is known of it after that, and seconds to wait, None for no wait."""
        stage = one.get("stage")
        if stage is None:
            answer = self._call(account, "POST", "media/upload/initialize", json={
                "media_type": file.mime_type, "total_bytes": file.bytes, "media_category": file.category})
            return {"id": digits(answer, "data", "id"), "stage": "upload", "chunks": 0}, None
        media = partial(self._media, account, receipt)
        if stage == "upload" and one["chunks"] * CHUNK < file.bytes:
            _append(media, file, one)
            return {**one, "chunks": one["chunks"] + 1}, None
        if stage == "upload":
            return _state(one, media("POST", f"media/upload/{one['id']}/finalize"))
        if stage == "processing":
            return _state(one, media("GET", "media/upload", query={"command": "STATUS", "media_id": one["id"]}))
        if metadata := _metadata(content, position, file):
            media("POST", "media/metadata", json={"id": one["id"], "metadata": metadata})
        if file.category == "subtitles":
            track = content.options["subtitles"][position - len(content.media)]
            media("POST", "media/subtitles", json={
                "id": shown_ids(content, receipt)[0], "media_category": "TweetVideo", "subtitles": {
                    "id": one["id"], "language_code": track["language"].upper(), "display_name": track["name"]}})
        return {**one, "stage": "ready"}, None

    def _media(self, account, receipt, method, path, **request):
        """A call about an upload that X may have forgotten meanwhile."""
        answer = self._call(account, method, path, accept=(400, 404), **request)
        if answer.status in (400, 404):
            raise lost(receipt, answer.error())
        return answer


def files(content) -> list[File]:
    """What is uploaded for a post: its media, of which an image beside a video is only its preview, and its subtitles."""
    filmed = any(item.is_video for item in content.media)
    # The page on uploads ties videos of 512 MB to amplify_video; tweet_video is what posts of accounts take.
    media = [File(item.mime_type, "tweet_video" if item.is_video else "tweet_gif" if item.mime_type == GIF else "tweet_image",
                  item.bytes, item.is_video or not filmed, item.open) for item in content.media]
    return media + [_track(track["text"].encode()) for track in content.options.get("subtitles", ())]


def shown_ids(content, receipt) -> list[str]:
    """The ids of the media that a post shows."""
    return [one["id"] for one, file in zip(receipt["media"], files(content), strict=False) if file.shown]


def preview_id(content, receipt) -> str | None:
    """The id of the image beside a video."""
    still = [one["id"] for one, file in zip(receipt["media"], files(content), strict=False)
             if not file.shown and file.category == "tweet_image"]
    return still[0] if still else None


def lost(receipt, refusal):
    """The error for media that X does not know, or no longer: they are uploaded again, once."""
    if "again" in receipt:
        return refusal
    return Unavailable("X has lost the uploaded media", receipt={**receipt, "media": [], "again": True}, **refusal.words)


def digits(answer, *path):
    """An id, which goes into addresses."""
    found = answer.field(*path)
    if not re.fullmatch("[0-9]{1,19}", found):
        raise answer.manner.fault()
    return found


def _track(data):
    kind = "text/vtt" if data.startswith(b"WEBVTT") else "text/srt"
    return File(kind, "subtitles", len(data), False, lambda offset=0, length=None: io.BytesIO(data[offset:][:length]))


def _metadata(content, position, file):
    """What is said of one of the media that a post shows."""
    if not file.shown:
        return {}
    text = "".join(content.options.get("altTexts", ())[position:position + 1])
    warnings = dict.fromkeys(content.options.get("sensitiveMedia", ()), True)
    return {**({"alt_text": {"text": text}} if text else {}), **({"sensitive_media_warning": warnings} if warnings else {})}


def _append(media, file, one):
    """Sends the next chunk of a file; `media` makes the call."""
    start = one["chunks"] * CHUNK
    size = min(CHUNK, file.bytes - start)
    with file.open(start, size) as part:
        media("POST", f"media/upload/{one['id']}/append", form={"segment_index": one["chunks"]},
              files=[Upload("media", "chunk", "application/octet-stream", part, size)])


def _state(one, answer):
    """What an answer says of the processing of one of the files, and the seconds to wait for more."""
    about = "data", "processing_info"
    if answer.field("data", "id") != one["id"]:
        raise answer.manner.fault()
    state = answer.field(*about, "state", default="succeeded")
    # X has been seen to stay in_progress with an error beside it.
    if state == "failed" or answer.field(*about, "error", kind=dict, default=None):
        code, message = (answer.field(*about, "error", name, default=None) for name in ("name", "message"))
        raise Rejected("X could not process the media", rule="media", platform_code=code, platform_message=message)
    if state == "succeeded":
        return {**one, "stage": "processed"}, None
    least, most = CHECKS
    return {**one, "stage": "processing"}, min(max(answer.field(*about, "check_after_secs", kind=int, default=5), least), most)
