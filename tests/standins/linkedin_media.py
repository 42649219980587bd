"""The uploads of LinkedIn: images whole, videos in parts with a thumbnail beside them, and how their processing goes."""

import secrets
from dataclasses import dataclass, field

from tests.standins.linkedin_rules import AUTHOR, ERRORS, MEDIA, failure, rest
from tests.standins.server import Answer, route, sniff
from tests.standins.shapes import List, Range

PART_BYTES, VIDEO_BYTES, UPLOAD_SECONDS = 4_194_304, (75_000, 500 << 20), 30 * 86_400
IMAGE_UPLOAD = {"initializeUploadRequest!": {"owner!": AUTHOR}}
VIDEO_UPLOAD = {"initializeUploadRequest!": {"owner!": AUTHOR, "fileSizeBytes!": Range(1, 5 << 30), "uploadCaptions": bool,
                                             "uploadThumbnail": bool}}
FINALIZE = {"finalizeUploadRequest!": {"video!": MEDIA, "uploadToken!": str, "uploadedPartIds!": List(str, 1)}}


@dataclass
class Asset:
    """An image or video; `parts` are the bytes that arrived by part, `polls` counts the looks left until it is available."""

    urn: str
    owner: str
    size: int | None = None
    key: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    parts: dict = field(default_factory=dict, repr=False)
    tags: dict = field(default_factory=dict)
    status: str = "WAITING_UPLOAD"
    polls: int = 0
    mime_type: str = ""
    end: float = 0.0
    thumbnail: bytes | None = field(default=None, repr=False)       # b"" = announced

    @property
    def data(self):
        return b"".join(self.parts[number] for number in sorted(self.parts))


class Uploads:
    """The part of LinkedIn that takes files. `polls` is how often a video is found unfinished, an image half as often."""

    def __init__(self, port=0, polls=2):
        super().__init__(port)
        self.polls = polls
        self.assets: dict[str, Asset] = {}

    @rest("POST", "/rest/images", "w_member_social", "w_organization_social")
    def images(self, request, token):
        """Begin the upload of an image."""
        owner = self._action(request, token, IMAGE_UPLOAD, "initializeUpload")["initializeUploadRequest"]["owner"]
        asset = self._asset("image", owner)
        return {"value": {"uploadUrlExpiresAt": int(asset.end * 1000), "image": asset.urn,
                          "uploadUrl": f"{self.url}/dms-uploads/{asset.key}?ca=vector_feedshare"}}

    @rest("POST", "/rest/videos", "w_member_social", "w_organization_social")
    def videos(self, request, token):
        """Begin or end the upload of a video."""
        if dict(request.query).get("action") == "finalizeUpload":
            return self._finalize(self._action(request, token, FINALIZE, "finalizeUpload")["finalizeUploadRequest"])
        wanted = self._action(request, token, VIDEO_UPLOAD, "initializeUpload")["initializeUploadRequest"]
        size = wanted["fileSizeBytes"]
        if not VIDEO_BYTES[0] <= size <= VIDEO_BYTES[1]:
            raise Answer(400, failure(400, "/fileSizeBytes is not valid", "INVALID_VALUE_FOR_FIELD"))
        asset = self._asset("video", wanted["owner"], size)
        parts = [{"uploadUrl": f"{self.url}/dms-uploads/{asset.key}/{number}", "firstByte": start,
                  "lastByte": min(start + PART_BYTES, size) - 1} for number, start in enumerate(range(0, size, PART_BYTES))]
        asset.thumbnail = b"" if wanted.get("uploadThumbnail") else None
        value = {"uploadUrlsExpireAt": int(asset.end * 1000), "video": asset.urn, "uploadToken": f"t-{asset.key}",
                 "uploadInstructions": parts}
        if wanted.get("uploadThumbnail"):
            value["thumbnailUploadUrl"] = f"{self.url}/dms-uploads/{asset.key}/thumbnail/0"
        return {"value": value}

    @route("PUT", "/dms-uploads/:key")
    def put_image(self, request):
        """Take a whole image; another replaces it."""
        asset = self._by_key(request)
        token = self._token(request)
        if asset.owner not in self._actors(token):
            raise Answer(403, "")
        asset.parts, asset.mime_type = {0: request.body}, sniff(request.body)
        supported = asset.mime_type in ("image/jpeg", "image/png", "image/gif")
        asset.status, asset.polls = ("PROCESSING" if supported else "PROCESSING_FAILED"), self.polls // 2
        return Answer(201, None)

    @route("PUT", "/dms-uploads/:key/:part")
    def put_part(self, request):
        """Take one part of a video, by nothing but its address."""
        asset, number = self._by_key(request), int(request.args["part"])
        size = min(PART_BYTES, asset.size - number * PART_BYTES)
        if "Authorization" in request.headers or request.media_type != "application/octet-stream" or request.size != size:
            raise Answer(400, failure(400, "The part is not valid", "INVALID_PART"))
        asset.parts[number], asset.tags[number] = request.body, f'"{secrets.token_hex(8)}"'
        return Answer(200, None, {"ETag": asset.tags[number]})

    @route("PUT", "/dms-uploads/:key/thumbnail/:part")
    def put_thumbnail(self, request):
        """Take the thumbnail that was announced for a video."""
        asset = self._by_key(request)
        if asset.thumbnail is None or asset.owner not in self._actors(self._token(request)):
            raise Answer(403, "")
        if sniff(request.body) not in ("image/jpeg", "image/png", "image/gif"):
            raise Answer(415, "")
        asset.thumbnail = request.body
        return Answer(201, None)

    @rest("GET", "/rest/images/:urn", "w_member_social", "w_organization_social")
    def image_state(self, request, token):
        """How an image is; not for the usual tokens of members."""
        if "r_organization_social" not in token.scopes:
            raise Answer(403, ERRORS["image_forbidden"]["body"])
        return self._state(request)

    @rest("GET", "/rest/videos/:urn", "w_member_social", "w_organization_social")
    def video_state(self, request, token):
        """How a video is."""
        return self._state(request)

    # private

    def _action(self, request, token, shape, action):
        if dict(request.query) != {"action": action}:
            raise Answer(400, failure(400, "The action is not valid", "ILLEGAL_ARGUMENT"))
        given = self._body(request, shape)
        wanted = next(iter(given.values()))
        owner = wanted.get("owner") or getattr(self.assets.get(wanted.get("video")), "owner", "")
        self._check_actor(request, token, owner)
        return given

    def _asset(self, kind, owner, size=None):
        asset = Asset(f"urn:li:{kind}:C4E{secrets.token_urlsafe(9)}", owner, size, end=self.now() + UPLOAD_SECONDS)
        self.assets[asset.urn] = asset
        return asset

    def _by_key(self, request):
        asset = next((asset for asset in self.assets.values() if asset.key == request.args["key"]), None)
        if asset is None or asset.end <= self.now() or (asset.size is None) == ("part" in request.args):
            raise Answer(400, ERRORS["expired_url"]["body"])
        return asset

    def _finalize(self, wanted):
        asset = self.assets[wanted["video"]]
        tags = [asset.tags[number] for number in sorted(asset.tags)]
        if wanted["uploadToken"] != f"t-{asset.key}" or wanted["uploadedPartIds"] != tags or len(asset.data) != asset.size:
            raise Answer(400, failure(400, "The parts are not those of the video", "INVALID_VALUE_FOR_FIELD"))
        if asset.thumbnail == b"":
            raise Answer(400, failure(400, "The thumbnail is missing", "INVALID_VALUE_FOR_FIELD"))
        asset.status, asset.polls = "PROCESSING", self.polls
        if sniff(asset.data) != "video/mp4":
            asset.status = "PROCESSING_FAILED"
        return Answer(200, None)

    def _state(self, request):
        self._check_path(request)
        asset = self.assets.get(request.args["urn"])
        if asset is None:
            raise Answer(404, failure(404, "Could not find entity", "NOT_FOUND"))
        if asset.status == "PROCESSING":
            asset.polls -= 1
            asset.status = "AVAILABLE" if asset.polls < 0 else "PROCESSING"
        failed = {"processingFailureReason": "The codec is not supported"} if asset.status == "PROCESSING_FAILED" else {}
        return {"id": asset.urn, "owner": asset.owner, "status": asset.status, **failed}
