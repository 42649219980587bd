"""Videos on Bluesky: sent to its video service, which transcodes them and puts them in the account's repository.

https://docs.bsky.app/docs/tutorials/video and the lexicons app.bsky.video.*. A plain upload to the repository would do too,
but its video is processed only after the post is public, and may then turn out broken.
"""

import time

from platforms.base import MP4, QUICKTIME, WEBM, Waiting
from platforms.errors import Disconnected, PlatformError, Rejected, Unavailable

GRANT = 1800                # seconds for the video service to take the file and put it in the repository
GRANT_USED = 1200           # seconds after which a part is sent under a new one
WHOLE = 16 * 1_048_576      # bytes from which a file is sent in parts, as Bluesky's own app does
MOST_PARTS = 10_000
NAMES = {MP4: "mp4", QUICKTIME: "mov", WEBM: "webm"}
REFUSALS = ("validation_failure", "encoding_failure", "pds_upload_unsupported_blob_size", "unconfirmed_email",
            "UnsupportedContentType", "VideoTooLarge", "VideoTooLong", "BadAspectRatio", "UploadForbidden")
LATER = ("DailyLimitExceeded", "TooManyOpenUploads", "ServiceOverloaded")
LOST = ("UploadNotFound", "UploadExpired", "UploadFailed", "UploadAborted")
UNKNOWN = (404, 501)        # a service that knows no uploads in parts
ALL_THERE = ("UploadAlreadyCompleted", "UploadNotReady")


class Videos:
    """The part of the Bluesky connector that has to do with videos."""

    def _process(self, account, item, receipt):
        """Has the video service process the file. Yields receipts; returns the one with the blob."""
        if "job" not in receipt:
            receipt = yield from self._send_video(account, item, receipt)
        while not receipt["blobs"]:
            try:
                answer = self._video("GET", "getJobStatus", query={"jobId": receipt["job"]})
            except Rejected as refusal:
                raise Unavailable("Bluesky has lost the uploaded video", receipt=anew(receipt), **refusal.words) from None
            receipt = self._job(answer, receipt)
            if not receipt["blobs"]:
                yield Waiting(receipt)
        return receipt

    def _send_video(self, account, item, receipt):
        if item.bytes > WHOLE and "whole" not in receipt:
            if "upload" not in receipt:
                receipt = self._start(account, item, receipt)
                yield receipt
            if "upload" in receipt:
                return (yield from self._send_parts(account, item, receipt))
        receipt = self._job(self._send_whole(account, item, receipt), receipt)
        yield receipt
        return receipt

    def _send_whole(self, account, item, receipt):
        with item.open() as file:       # 409: these bytes were processed before
            return self._video("POST", "uploadVideo", token=self._grant(account), accept=(409,), body=file, size=item.bytes,
                               query={"did": account.platform_id, "name": _name(item, receipt)},
                               headers={"Content-Type": item.mime_type})

    def _start(self, account, item, receipt):
        """The receipt with the plan of an upload in parts; without one where the service knows no such thing."""
        wish = {"sizeBytes": item.bytes, "mimeType": item.mime_type, "name": _name(item, receipt)}
        try:
            answer = self._video("POST", "startUpload", token=self._grant(account), accept=UNKNOWN, json=wish)
        except Rejected as refusal:
            if refusal.platform_code in REFUSALS:
                raise
            if refusal.platform_code in LATER:
                raise Unavailable("Bluesky's video service takes no more at the moment", **refusal.words) from None
            return {**receipt, "whole": True}
        if answer.status in UNKNOWN:
            return {**receipt, "whole": True}
        size, count = answer.field("partSizeBytes", kind=int), answer.field("partCount", kind=int)
        if not (0 < count <= MOST_PARTS and (count - 1) * size < item.bytes <= count * size):
            raise answer.manner.fault()
        return {**receipt, "upload": {"id": answer.field("jobId"), "size": size, "count": count, "sent": 0}}

    def _send_parts(self, account, item, receipt):
        """Sends the parts that are left, one by one, and has them put together."""
        token, since = self._grant(account), time.monotonic()
        try:
            while (upload := receipt["upload"])["sent"] < upload["count"]:
                if time.monotonic() - since > GRANT_USED:
                    token, since = self._grant(account), time.monotonic()
                if not self._send_part(token, item, upload):
                    break
                receipt = {**receipt, "upload": {**upload, "sent": upload["sent"] + 1}}
                yield receipt
            answer = self._video("POST", "finishUpload", token=self._grant(account), json={"jobId": upload["id"]})
        except Rejected as refusal:
            if refusal.platform_code in LOST:
                raise Unavailable("Bluesky has lost the upload", receipt=anew(receipt), **refusal.words) from None
            if refusal.platform_code == "MissingParts":     # parts may be sent again
                left = {**receipt, "upload": {**receipt["upload"], "sent": 0}}
                raise Unavailable("Bluesky misses parts of the video", receipt=left, **refusal.words) from None
            if refusal.platform_code in (*LATER, *ALL_THERE):
                raise Unavailable("Bluesky's video service is busy", **refusal.words) from None
            raise
        receipt = {**self._job(answer, receipt), "job": answer.field("completedJobId")}     # another one, for known bytes
        yield receipt
        return receipt

    def _send_part(self, token, item, upload):
        """Sends the next part; False where the service has all of them already."""
        start = upload["sent"] * upload["size"]
        length = min(upload["size"], item.bytes - start)
        try:
            with item.open(start, length) as file:
                self._video("POST", "uploadPart", token=token, body=file, size=length,
                            query={"jobId": upload["id"], "partNumber": upload["sent"] + 1},
                            headers={"Content-Type": "application/octet-stream"})
        except Rejected as refusal:
            if refusal.platform_code in ALL_THERE:
                return False
            raise
        return True

    def _grant(self, account):
        """A token for the video service, which it also needs to reach the account's repository."""
        server = account.credentials["pds"].partition("://")[2].replace(":", "%3A")     # the port, as did:web has it
        # By the server's clock, since ours may be wrong.
        ends = int(self._call(account, "GET", "com.atproto.server.getSession").moment().timestamp()) + GRANT
        return self._call(account, "GET", "com.atproto.server.getServiceAuth", query={
            "aud": f"did:web:{server}", "lxm": "com.atproto.repo.uploadBlob", "exp": ends}).field("token")

    def _video(self, method, name, **request):
        try:
            return self.send(method, f"{self.settings['video_url']}/xrpc/app.bsky.video.{name}", **request)
        except Disconnected as refusal:     # which says nothing of the account's own credentials
            raise Rejected("Bluesky's video service does not serve this account", rule="video", **refusal.words) from None

    def _job(self, answer, receipt):
        """The receipt with what the status of a video job brings: the blob, whatever else it says, or the job's id."""
        path = ("jobStatus",) if answer.field("jobStatus", kind=dict, default=None) else ()     # both shapes are in use
        if found := blob(answer, *path, "blob"):
            return {**receipt, "blobs": [found]}
        if answer.field(*path, "state", default=None) == "JOB_STATE_FAILED":
            raise self._failure(answer, path, receipt)
        return {**receipt, "job": answer.field(*path, "jobId")}

    def _failure(self, answer, path, receipt) -> PlatformError:
        codes = [answer.field(*path, name, default=None) for name in ("failureCode", "error")]
        message = answer.field(*path, "message", default=codes[1])
        words = {"platform_code": codes[0] or codes[1], "platform_message": message}
        if any(code in REFUSALS for code in codes):
            return Rejected("Bluesky could not process the video", rule="video", **words)
        return Unavailable("Bluesky could not process the video", receipt=anew(receipt), **words)


def blob(answer, *path):
    """The reference to uploaded bytes at `path`, built anew from the parts that it consists of; None if one is missing."""
    link = answer.field(*path, "ref", "$link", default=None)
    mime_type = answer.field(*path, "mimeType", default=None)
    size = answer.field(*path, "size", kind=int, default=None)
    if not (link and mime_type and size):
        return None
    return {"$type": "blob", "ref": {"$link": link}, "mimeType": mime_type, "size": size}


def anew(receipt):
    """What still holds when the media have to be uploaded again: where and when the post is."""
    return {"rkey": receipt["rkey"], "createdAt": receipt["createdAt"], "blobs": []}


def _name(item, receipt):
    return f"{receipt['rkey']}.{NAMES[item.mime_type]}"
