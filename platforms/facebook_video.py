"""Videos on Facebook Pages: how they get there, what becomes of them, and what they are given once they are public.

https://developers.facebook.com/documentation/video-api/guides/reels-publishing
"""

import re
from functools import partial

from platforms.base import GIF, JPEG, PNG, Processing, Published, Waiting
from platforms.errors import PermissionMissing, Rejected, Unavailable
from platforms.http import Upload
from platforms.meta import Commenting, FacebookLogin, identity, pause, transferred

EXTENSIONS = {JPEG: "jpg", PNG: "png", GIF: "gif"}
STUCK = 60                  # seconds until a video that makes no progress is sent on
WRONG_OFFSET = "1363037"    # subcode of a part of a video that is not the one that is waited for
EDGES = {"reel": "video_reels", "story": "video_stories"}
DONE = ("complete", "completed")            # both spellings are in use
BROKEN = ("error", "expired", "upload_failed")


class Videos(FacebookLogin, Commenting):
    """The part of the Facebook connector that has to do with videos."""

    def check(self, account, receipt):
        """Asks whether a video is processed and public."""
        try:
            answer = self._video(account, receipt["video"])
        except PermissionMissing as error:      # which says nothing of the post
            raise _untold(error) from None
        if is_public(answer):
            return Published(receipt["video"], self._video_url(answer, receipt["video"]))
        if error := _broken(answer):
            raise error
        if answer.field("status", "publishing_phase", "publish_status", default=None) == "draft":
            raise Rejected("Facebook kept the video as a draft: publish it there, or post it as a reel", rule="draft")
        asked = receipt.get("asked", 0)
        return Processing({**receipt, "asked": asked + 1}, pause(asked))

    def follows(self, options, receipt):
        """A thumbnail as well."""
        return "thumbnail" in receipt or super().follows(options, receipt)

    def follow(self, account, content, receipt):
        """Gives a video its thumbnail, invites those whose reel it is to be too, and comments; no refusal holds up the rest."""
        done, trouble = receipt.get("done", []), None
        for name, rule, step in self._extras(account, content, receipt["public"]["id"]):
            if name in done:
                continue
            try:
                succeeded(step())
            except (PermissionMissing, Rejected) as refusal:
                trouble = trouble or type(refusal)(f"Facebook refused the {name}", rule=rule, **refusal.words)
                continue
            done = [*done, name]
            receipt = {**receipt, "done": done}
            yield receipt
        yield from super().follow(account, content, receipt)
        if trouble:
            raise trouble

    def _extras(self, account, content, video):
        """(name, rule, call) of what a public video is to get, each of which does no harm twice."""
        if first(content, video=True) and (image := first(content, video=False)):
            yield "thumbnail", "thumbnail", partial(self._set_thumbnail, account, image, video)
        for page in content.options.get("collaboratorIds", ()):
            yield f"invitation of the Page {page}", "collaborators", partial(
                self.call, account, "POST", f"/{video}/collaborators", query={"target_id": page})

    def _set_thumbnail(self, account, item, video):
        with item.open() as file:
            picture = Upload("source", f"thumbnail.{EXTENSIONS[item.mime_type]}", item.mime_type, file, item.bytes)
            return self.call(account, "POST", f"/{video}/thumbnails", form={"is_preferred": "true"}, files=[picture])

    def _send_parts(self, account, item, receipt):
        """A video of the feed, in the parts that Facebook asks for."""
        if "session" not in receipt:
            answer = self._post(account, "videos", host="video_url", phase="start", file_size=item.bytes)
            receipt = {**receipt, "video": identity(answer, name="video_id"),
                       "session": identity(answer, name="upload_session_id"), **_window(answer, item)}
            yield receipt
        while receipt["start"] < receipt["end"]:
            receipt = {**receipt, **self._send_part(account, item, receipt)}
            yield receipt

    def _send_part(self, account, item, receipt):
        """The part that comes next: the one after, or where this one is not the one that is waited for, that one."""
        start, size = receipt["start"], receipt["end"] - receipt["start"]
        with item.open(start, size) as file:
            answer = self._post(account, "videos", host="video_url", accept=(400,), phase="transfer",
                                upload_session_id=receipt["session"], start_offset=start,
                                files=[Upload("video_file_chunk", "video", "application/octet-stream", file, size)])
        if answer.status != 400:
            window = _window(answer, item)
            if window["start"] <= start:
                raise Unavailable("Facebook does not take the bytes of the video", retry_after=STUCK)
            return window
        error = self.failure(answer)
        window = _window(answer, item, "error", "error_data") if str(error.platform_code).endswith(f"/{WRONG_OFFSET}") else {}
        if not window or window["start"] == start:
            raise error
        return window

    def _send_whole(self, account, item, receipt, kind):
        """A reel, or the video of a story, which goes up in one piece and after an interruption from where it stopped."""
        begun = "video" in receipt
        if not begun:
            answer = self._post(account, EDGES[kind], phase="start")
            receipt = {**receipt, "video": identity(answer, name="video_id")}
            yield receipt
        if not receipt.get("sent"):
            offset = transferred(self._video(account, receipt["video"]), "status") if begun else 0
            self.upload(account, receipt["video"], item, offset)
            receipt = {**receipt, "sent": True}
            yield receipt
        while not self._arrived(answer := self._video(account, receipt["video"]), kind):
            waited = receipt.get("waited", 0)
            receipt = {**receipt, "waited": waited + 1}
            yield Waiting(receipt, pause(waited))
        if is_public(answer):     # by a sending of which we know no end
            yield {**receipt, "published": True}

    def _arrived(self, answer, kind):
        """Whether the last call may be made: for a reel once Facebook has the file, for a story once it has looked at it."""
        if error := _broken(answer):
            if _video_status(answer) == "error":
                raise error
            raise Unavailable("Facebook has lost the uploaded video", receipt={}, platform_message=error.platform_message)
        uploaded = answer.field("status", "uploading_phase", "status", default=None) in DONE
        return _video_status(answer) in ("upload_complete", "ready") or (kind == "reel" and uploaded)

    def _video(self, account, video):
        try:
            return self.call(account, "GET", f"/{video}", query={"fields": "status,permalink_url,published"})
        except Rejected as error:       # a video that is not there yet
            raise _untold(error) from None

    def _video_url(self, answer, video):
        """The permalink, which for videos is a path only."""
        path = answer.field("permalink_url", default="")
        if re.fullmatch(r"/[!-~]{1,500}", path):
            return self.settings["public_url"] + path
        return answer.link("permalink_url", default=f"{self.settings['public_url']}/{video}")


def first(content, *, video):
    """The first file that is a video, or that is none."""
    return next((item for item in content.media if item.is_video == video), None)


def is_public(answer):
    """Whether a video can be seen, by what Facebook tells of it."""
    state, phase = (answer.field("status", "publishing_phase", name, default=None) for name in ("publish_status", "status"))
    if state is None and phase is None:     # as for some videos of the feed
        return _video_status(answer) == "ready" and answer.field("published", kind=bool, default=False)
    return state == "published" or (state is None and phase in DONE)


def succeeded(answer):
    """Raises what a fault of the answer means where it does not say that it was done."""
    if not answer.field("success", kind=bool):
        raise answer.manner.fault()


def _window(answer, item, *path):
    """Which bytes Facebook wants next, from `start` to before `end`; both alike once it has all."""
    offsets = [str(answer.field(*path, name, kind=(str, int))) for name in ("start_offset", "end_offset")]
    if not all(offset.isdecimal() for offset in offsets):
        raise answer.manner.fault()
    start, end = map(int, offsets)
    if not start <= end <= item.bytes:
        raise answer.manner.fault()
    return {"start": start, "end": end}


def _untold(error):
    return Unavailable("Facebook does not tell the state of the video", platform_code=error.platform_code,
                       platform_message=error.platform_message)


def _video_status(answer):
    return answer.field("status", "video_status", default=None)


def _broken(answer):
    """Rejected with Facebook's reason where a video failed, else None."""
    phases = ("uploading_phase", "processing_phase", "publishing_phase")
    failed = [phase for phase in phases if answer.field("status", phase, "status", default=None) == "error"]
    if not failed and _video_status(answer) not in BROKEN:
        return None
    reasons = [answer.field("status", phase, *path, "message", default=None)
               for phase in failed for path in (("error",), ("errors", 0))]
    return Rejected("Facebook could not process the video", rule="video", platform_code=_video_status(answer),
                    platform_message=next(filter(None, reasons), None))
