"""The upload host of Meta: https://developers.facebook.com/documentation/video-api/guides/reels-publishing"""

from tests.standins.server import Answer, sniff


def upload_error(kind, message, retriable=False):
    """The body of a failure of the upload host."""
    return {"debug_info": {"retriable": retriable, "type": kind, "message": message}}


class Upload:
    """A video that goes up in one piece, and after an interruption from where it stopped."""

    def __init__(self):
        self.size, self.data = None, bytearray()

    @property
    def complete(self):
        """Whether all of it is there."""
        return len(self.data) == self.size

    def take(self, request):
        """The bytes of a request, from `offset` on. Raises Answer for what the upload host refuses."""
        size, offset = request.headers.get("file_size"), request.headers.get("offset")
        if request.media_type != "application/octet-stream" or self.complete:
            raise Answer(400, upload_error("ProcessingFailedError", "Request processing failed"))
        if offset != str(len(self.data)) or not (size or "").isdecimal() or self.size not in (None, int(size)):
            raise Answer(400, upload_error("OffsetInvalidError", f"Expected offset {len(self.data)}"))
        self.size = int(size)
        self.data += request.body
        if not self.complete:
            raise Answer(400, upload_error("PartialRequestError", "Partial request (did not match length of file)"))
        if sniff(bytes(self.data[:64])) not in ("video/mp4", "video/quicktime"):
            raise Answer(400, upload_error("ProcessingFailedError", "Request processing failed"))
