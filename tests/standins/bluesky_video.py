"""Bluesky's video service, the part of the stand-in that takes videos whole or in parts and transcodes them."""

import hashlib
import secrets
from datetime import UTC, datetime

from tests.standins.lexicon import TEXT, Refusal, integer, procedure, query, record, string
from tests.standins.server import Answer

GRANTED = "com.atproto.repo.uploadBlob"
TYPES = ("video/mp4", "video/mpeg", "video/webm", "video/quicktime", "image/gif")
STATES = ("CREATED", "ENCODING", "ENCODED", "SCANNING", "SCANNED", "UPLOADING", "UPLOADED")
VIDEO_DID = "did:web:video.bsky.app"
MAX_BYTES = 300_000_000
PART_BYTES = 8 << 20
OPEN_UPLOADS = 3
UPLOAD_SECONDS = 6 * 3600


class VideoService:
    """Its endpoints. `part_bytes` is the size of a part, `multipart` whether uploads in parts are known at all."""

    part_bytes, multipart = PART_BYTES, True

    @procedure("app.bsky.video.uploadVideo", bytes, types=TYPES)
    def upload_video(self, request, _, data):
        """Take a video for transcoding; bytes that were processed before are told apart."""
        account = self._video_account(request, GRANTED, self._dids())
        named = dict(request.query)
        if named.get("did") != account.did or not named.get("name"):
            raise Answer(400, {"did": "", "error": "did and name are required", "jobId": "", "state": ""})
        if not account.email_confirmed:
            raise Answer(400, {"jobStatus": {"did": "", "error": "unconfirmed_email", "jobId": "", "state": ""}})
        job_id = self._job(account, data)
        if self._jobs[job_id]["again"]:
            return Answer(409, {key: value for key, value in self._job_status(job_id).items() if key != "blob"})
        return self._job_status(job_id)

    @procedure("app.bsky.video.startUpload", record(None, {"sizeBytes": integer(1), "mimeType": string(max_bytes=255)}, {
        "name": string(max_bytes=256), "durationMs": integer(0), "width": integer(0), "height": integer(0)}))
    def start_upload(self, request, _, data):
        """Plan an upload in parts."""
        account = self._granted(request)
        if data["mimeType"] not in TYPES:
            raise Refusal(400, "UnsupportedContentType", "unsupported content type")
        if data["sizeBytes"] > MAX_BYTES:
            raise Refusal(400, "VideoTooLarge", "video too large")
        if sum(one["did"] == account.did and one["state"] == "created" for one in self.uploads.values()) >= OPEN_UPLOADS:
            raise Refusal(429, "TooManyOpenUploads", "too many open uploads")
        upload_id, ends = secrets.token_hex(8), self.now() + UPLOAD_SECONDS
        count = -(-data["sizeBytes"] // self.part_bytes)
        self.uploads[upload_id] = {"did": account.did, "size": data["sizeBytes"], "count": count, "parts": {},
                                   "state": "created", "ends": ends}
        return {"jobId": upload_id, "partSizeBytes": self.part_bytes, "partCount": count,
                "expiresAt": datetime.fromtimestamp(ends, UTC).isoformat()}

    @procedure("app.bsky.video.uploadPart", bytes, types=("application/octet-stream",))
    def upload_part(self, request, _, data):
        """Take one part of exactly its size; the same part may come again."""
        account, named = self._granted(request), dict(request.query)
        upload, number = self._upload(account, named.get("jobId")), int(named.get("partNumber", "0"))
        if not 1 <= number <= upload["count"]:
            raise Refusal(400, "InvalidPartNumber", "part number out of range")
        due = min(self.part_bytes, upload["size"] - (number - 1) * self.part_bytes)
        if len(data) != due:
            raise Refusal(400, "PartSizeMismatch", f"expected {due} bytes")
        upload["parts"][number] = data
        return {"partNumber": number, "sizeBytes": len(data)}

    @procedure("app.bsky.video.finishUpload", record(None, {"jobId": TEXT}))
    def finish_upload(self, request, _, data):
        """Put the parts together and begin to process them."""
        account = self._granted(request)
        upload = self._upload(account, data["jobId"], finishing=True)
        if "job" not in upload:
            missing = [number for number in range(1, upload["count"] + 1) if number not in upload["parts"]]
            if missing:
                raise Refusal(400, "MissingParts", f"missing parts: {missing}")
            whole = b"".join(upload["parts"][number] for number in sorted(upload["parts"]))
            upload |= {"state": "completed", "parts": {}, "job": self._job(account, whole)}
        return {"completedJobId": upload["job"], "jobStatus": self._job_status(upload["job"])}

    @query("app.bsky.video.getJobStatus", record(None, {"jobId": TEXT}))
    def get_job_status(self, request, _, data):
        """One step of a video's way; the last one puts the blob on the account's PDS."""
        job = self._jobs.get(data["jobId"])
        if job is None:
            raise Refusal(400, "InvalidRequest", "job not found")
        job["polls"] += 1
        if job["polls"] > self.video_polls and not job["blob"]:
            job["blob"] = self._store(self.accounts[job["did"]], b"transcoded" + job["data"], "video/mp4")
        return {"jobStatus": self._job_status(data["jobId"])}

    @query("app.bsky.video.getUploadLimits")
    def get_upload_limits(self, request, *_):
        """How much the account may still upload today."""
        account = self._video_account(request, "app.bsky.video.getUploadLimits", (VIDEO_DID, *self._dids()))
        if not account.email_confirmed:
            return {"canUpload": False, "error": "unconfirmed_email", "message": "Confirm your email to upload videos"}
        return {"canUpload": True, "remainingDailyVideos": 25, "remainingDailyBytes": 10_000_000_000}

    def _job(self, account, data):
        job_id = hashlib.sha256(account.did.encode() + data).hexdigest()[:20]
        job = self._jobs.setdefault(job_id, {"did": account.did, "polls": 0, "data": data, "blob": None, "again": False})
        job["again"] = bool(job["blob"])
        return job_id

    def _granted(self, request):
        if not self.multipart:
            raise Refusal(501, "MethodNotImplemented", "Method Not Implemented")
        account = self._video_account(request, GRANTED, self._dids())
        if not account.email_confirmed:
            raise Refusal(403, "UploadForbidden", "confirm your email")
        return account

    def _upload(self, account, upload_id, finishing=False):
        upload = self.uploads.get(upload_id)
        if upload is None or upload["did"] != account.did:
            raise Refusal(404, "UploadNotFound", "upload not found")
        if self.now() > upload["ends"] and upload["state"] == "created":
            raise Refusal(400, "UploadExpired", "upload expired")
        if upload["state"] == "completed" and not finishing:
            raise Refusal(400, "UploadAlreadyCompleted", "upload already completed")
        return upload

    def _video_account(self, request, lxm, audiences):
        def refuse(reason):
            return Answer(401, {"did": "", "error": f"invalid token: {reason}", "jobId": "", "state": ""})

        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise refuse("missing token")
        try:
            claims = self._claims(token, "JWT")
        except Refusal as problem:
            raise refuse(problem.body["message"]) from None
        if claims["aud"] not in audiences:
            raise refuse(f'invalid token audience "{claims["aud"]}", should be the user\'s PDS DID "{audiences[0]}"')
        if claims.get("lxm") != lxm:
            raise refuse(f'invalid token lxm "{claims.get("lxm")}"')
        return self.accounts[claims["iss"]]

    def _job_status(self, job_id):
        job = self._jobs[job_id]
        state = "COMPLETED" if job["blob"] else STATES[min(job["polls"], len(STATES) - 1)]
        again = {"error": "already_exists", "message": "Video already processed"} if job["again"] else {}
        blob_member = {"blob": job["blob"]} if job["blob"] else {}
        return {"jobId": job_id, "did": job["did"], "state": f"JOB_STATE_{state}", **blob_member, **again}
