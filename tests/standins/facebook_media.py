"""What is sent to Facebook: photos and videos, and what a video goes through."""

import hashlib
from dataclasses import dataclass, field

from tests.standins.meta_upload import Upload


@dataclass
class Photo:
    """One photo that was sent; `post` is the one that shows it."""

    id: str
    page: str
    data: bytes = field(repr=False)
    alt: str | None
    made: float
    post: str | None = None


@dataclass
class Video(Upload):
    """One video: `state` runs uploading, processing, waiting (for the last call), publishing, published, draft, error."""

    id: str
    page: str
    edge: str
    size: int | None = None
    session: str | None = None
    data: bytearray = field(default_factory=bytearray, repr=False)
    state: str = "uploading"
    polls: int = 0
    title: str | None = None
    description: str | None = None
    thumbnail: bytes | None = field(default=None, repr=False)
    invited: list = field(default_factory=list)

    def status(self, now) -> dict:
        """Its status, as it is read; `now` in epoch seconds."""
        sent = len(self.data) == self.size
        overall = {"uploading": "uploading", "error": "error", "waiting": "processing" if self.polls else "upload_complete",
                   "publishing": "processing"}.get(self.state, "ready")
        publishing = {"published": {"status": "complete", "publish_status": "published", "publish_time": int(now)},
                      "draft": {"status": "complete", "publish_status": "draft"}}
        processing = {"status": {"uploading": "not_started", "waiting": "not_started", "publishing": "in_progress",
                                 "error": "error"}.get(self.state, "complete")}
        if self.state == "error":
            processing["error"] = {"message": "The video is broken"}
        return {"video_status": overall, "processing_phase": processing,
                "uploading_phase": {"status": "complete" if sent else "in_progress", "bytes_transfered": len(self.data)},
                "publishing_phase": publishing.get(self.state, {"status": "not_started"})}


def hashes(net) -> list[str]:
    """The SHA-256 of every video that arrived, in order."""
    return [hashlib.sha256(video.data).hexdigest() for video in net.videos.values()]
