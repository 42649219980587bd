"""Files on their way to LinkedIn: images whole, videos in the parts that it wants.

https://learn.microsoft.com/linkedin/marketing/community-management/shares/images-api and …/videos-api
"""

import re
from urllib.parse import quote

from platforms.base import Waiting
from platforms.errors import Rejected, Unavailable
from platforms.linkedin_posts import MEDIA_URN

BLIND = 15                      # seconds that images take, generously, where the token may not ask
MOST_PATIENT = 300              # seconds between two looks at media that take long: each counts against a quota of a day
LOST = (400, 403, 404, 410)     # what an upload says that is no longer known, or whose address has ended


class Uploads:
    """The part of the LinkedIn connector that has to do with files. The image beside a video becomes its thumbnail."""

    def prepare(self, account, content, receipt):
        """Uploads the media, and waits until LinkedIn has processed them."""
        if "media" not in receipt:
            receipt = {"media": []}
            yield receipt
        cover = _cover(content)
        for position, item in enumerate(item for item in content.media if item is not cover):
            while (one := _at(receipt, position)).get("stage", "upload") == "upload":
                receipt = _with(receipt, position, self._upload(account, item, cover, receipt, one))
                yield receipt
        for position in range(len(receipt["media"])):
            while (one := _at(receipt, position))["stage"] != "ready":
                receipt, wait = self._look(account, receipt, position, one)
                yield receipt if wait is None else Waiting(receipt, wait)

    def _upload(self, account, item, cover, receipt, one):
        """One step with one of the media: all of an image, or a part of a video. Returns what is known of it after that."""
        if not item.is_video:
            answer = self._begin(account, "images")
            urn = _media_urn(answer, "image")
            self._put_image(account, answer.link("value", "uploadUrl"), item)
            return {"id": urn, "stage": "processing", "looks": 0}
        if not one:
            answer = self._begin(account, "videos", fileSizeBytes=item.bytes, uploadCaptions=False, uploadThumbnail=bool(cover))
            return {"id": _media_urn(answer, "video"), "stage": "upload", "etags": [], "parts": _parts(answer, item.bytes),
                    "thumbnail": answer.link("value", "thumbnailUploadUrl") if cover else None,
                    "token": answer.field("value", "uploadToken", default="")}
        if one["parts"]:
            part, *rest = one["parts"]
            return {**one, "parts": rest, "etags": [*one["etags"], self._put(item, receipt, part)]}
        if one.get("thumbnail"):
            _unlost(receipt, self._put_image(account, one["thumbnail"], cover, accept=LOST))
            return {**one, "thumbnail": None}
        _unlost(receipt, self._rest(account, "POST", "videos", query={"action": "finalizeUpload"}, accept=LOST, json={
            "finalizeUploadRequest": {"video": one["id"], "uploadToken": one["token"], "uploadedPartIds": one["etags"]}}))
        return {"id": one["id"], "stage": "processing", "looks": 0}

    def _put_image(self, account, url, item, accept=()):
        """Sends an image whole: a part would replace the one before."""
        with item.open() as file:
            return self.send("PUT", url, token=account.credentials["accessToken"], body=file, size=item.bytes, accept=accept,
                             headers={"Content-Type": item.mime_type})

    def _begin(self, account, kind, **details):
        return self._rest(account, "POST", kind, query={"action": "initializeUpload"},
                          json={"initializeUploadRequest": {"owner": account.platform_id, **details}})

    def _put(self, item, receipt, part):
        """Sends a part of a video; its address is the permission. Returns the tag that LinkedIn gives it."""
        size = part["last"] - part["first"] + 1
        with item.open(part["first"], size) as file:
            answer = self.send("PUT", part["url"], body=file, size=size, accept=LOST,
                               headers={"Content-Type": "application/octet-stream"})
        _unlost(receipt, answer)
        tag = answer.headers.get("ETag", "")
        if not re.fullmatch("[!-~]{1,500}", tag):
            raise answer.manner.fault()
        return tag

    def _look(self, account, receipt, position, one):
        """Asks after one of the media. Returns the receipt after that, and seconds to wait, None for no wait."""
        kind = "videos" if ":video:" in one["id"] else "images"
        answer = self._rest(account, "GET", f"{kind}/{quote(one['id'], safe='')}", accept=(403, 404))
        if answer.status == 403:        # the usual token of a member may not ask after images
            return {**receipt, "media": [{**each, "stage": "ready"} for each in receipt["media"]]}, BLIND
        _unlost(receipt, answer)
        status = answer.field("status")
        if status == "AVAILABLE":
            return _with(receipt, position, {**one, "stage": "ready"}), None
        if status == "PROCESSING_FAILED":
            reason = answer.field("processingFailureReason", default=None)
            raise Rejected("LinkedIn could not process the media", rule="media", platform_code=status,
                           platform_message=reason)
        later = _with(receipt, position, {**one, "looks": one["looks"] + 1})
        return later, min(5 * 2 ** (one["looks"] // 4), MOST_PATIENT)


def _cover(content):
    """The image beside a video; None where there is none, or no video."""
    still = [item for item in content.media if not item.is_video]
    return still[0] if still and len(still) < len(content.media) else None


def _at(receipt, position):
    return receipt["media"][position] if position < len(receipt["media"]) else {}


def _with(receipt, position, one):
    """The receipt with what is known of one of the media now."""
    return {**receipt, "media": [*receipt["media"][:position], one, *receipt["media"][position + 1:]]}


def _unlost(receipt, answer):
    """Raises for an upload that LinkedIn no longer knows, or whose addresses have ended: it is made again, once."""
    if answer.status not in LOST:
        return
    refusal = answer.error()
    if "again" in receipt:
        raise refusal
    raise Unavailable("LinkedIn has lost the uploaded media", receipt={**receipt, "media": [], "again": True}, **refusal.words)


def _media_urn(answer, kind):
    urn = answer.field("value", kind)
    if not MEDIA_URN.fullmatch(urn):
        raise answer.manner.fault()
    return urn


def _parts(answer, size):
    """The parts of a video of `size` bytes as LinkedIn wants them: where each goes, its first and its last byte."""
    count = len(answer.field("value", "uploadInstructions", kind=list))
    at = [("value", "uploadInstructions", number) for number in range(count)]
    parts = [{"url": answer.link(*one, "uploadUrl"), "first": answer.field(*one, "firstByte", kind=int),
              "last": answer.field(*one, "lastByte", kind=int)} for one in at]
    ends = [-1, *(part["last"] for part in parts)]
    if ends[-1] != size - 1 or any(part["first"] != end + 1 or part["last"] <= end for part, end in zip(parts, ends)):
        raise answer.manner.fault()
    return parts
