"""YouTube Data API v3, revision 20261104: what publishing a video needs. https://developers.google.com/youtube/v3/docs"""

import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.standins.google import GoogleServer, Refusal, api
from tests.standins.server import Answer, run, sniff
from tests.standins.youtube_errors import ERRORS

AUTH = "https://www.googleapis.com/auth/youtube"
EDIT = (AUTH, f"{AUTH}.force-ssl")
READ, UPLOAD, COMMENT = (*EDIT, f"{AUTH}.readonly"), (*EDIT, f"{AUTH}.upload"), (f"{AUTH}.force-ssl",)
QUARTER = 262_144                       # bytes that every chunk but the last is a multiple of
MAX_VIDEO, MAX_THUMBNAIL = 274_877_906_944, 52_428_800
SESSION_SECONDS, DAY = 7 * 86_400, 86_400
UPLOADS, UNITS = 100, 10_000            # a day, of one project
RANGE = re.compile(r"bytes (\*|(\d+)-(\d+))/(\d+)")
LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
EPOCH, MOMENT = "1970-01-01T00:00:00Z", re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CATEGORIES = {"1", "2", "10", "15", "17", "19", "20", "22", "23", "24", "25", "26", "27", "28"}
PARTS = {"id", "snippet", "status", "contentDetails", "fileDetails", "processingDetails", "localizations", "player",
         "statistics", "recordingDetails", "paidProductPlacementDetails", "topicDetails", "suggestions", "liveStreamingDetails"}
PRIVACY = {"public", "unlisted", "private"}
STATUS = {"privacyStatus": PRIVACY, "embeddable": bool, "license": {"youtube", "creativeCommon"}, "publicStatsViewable": bool,
          "publishAt": str, "selfDeclaredMadeForKids": bool, "containsSyntheticMedia": bool}
SNIPPET = {"title": str, "description": str, "tags": [str], "categoryId": str, "defaultLanguage": str,
           "defaultAudioLanguage": str}
VIDEO = {"id": str, "snippet": SNIPPET, "status": STATUS, "paidProductPlacementDetails": {"hasPaidProductPlacement": bool},
         "recordingDetails": {"recordingDate": str}, "localizations": {str: {"title": str, "description": str}}}
COMMENT_THREAD = {"snippet": {"channelId": str, "videoId": str, "topLevelComment": {"snippet": {"textOriginal": str}}}}
PLAYLIST_ITEM = {"snippet": {"playlistId": str, "resourceId": {"kind": {"youtube#video"}, "videoId": str}, "position": int}}


@dataclass
class Channel:
    """One channel. `private_only`: its settings let nothing become public. `uploads_left`: its own upload cap of the day."""

    id: str
    title: str
    handle: str | None = None
    private_only: bool = False
    verified: bool = True
    uploads_left: int = 50
    playlists: dict = field(default_factory=dict)


@dataclass
class Session:
    """One resumable upload, `video` once it is complete."""

    owner: Channel
    total: int
    media_type: str
    meta: dict
    parts: list
    end: float
    notify: bool
    data: bytearray = field(default_factory=bytearray, repr=False)
    video: dict | None = None


class YouTubeServer(GoogleServer):
    """posts are the videos that are public or unlisted. `videos` has all, with `data`, `thumbnail` and `notified` beside.

    processing_polls: how often a video is found unprocessed. outcome: (uploadStatus, its reason) that processing ends with.
    hides: how often a new video is not listed yet. keeps: bytes of the next chunk that are stored, None for all.
    """

    errors, scopes = ERRORS, (AUTH, f"{AUTH}.force-ssl", f"{AUTH}.upload", f"{AUTH}.readonly")

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls, self.outcome, self.hides, self.keeps = processing_polls, ("processed", None), 0, None
        self.units, self.uploads = UNITS, UPLOADS
        self.videos: dict[str, dict] = {}
        self.sessions: dict[str, Session] = {}
        self.comments: list[dict] = []

    def add_user(self, title="Bread TV", handle="@breadtv", scopes=None, **details) -> dict:
        """Create a channel (None for `title`: a Google account without one) and return its credentials."""
        channel = None if title is None else Channel(f"UC{secrets.token_urlsafe(16)}", title, handle, **details)
        self.consenting = channel
        return self.grant(channel, scopes)

    # Channels and playlists

    @api("GET", "/youtube/v3/channels", READ, required=("part",), query={
        "part": {"id", "snippet", "contentDetails", "status", "statistics"}, "mine": bool, "id": str, "maxResults": range(51)})
    def channels(self, request, user, query, body):
        """The channel of the token."""
        self._spend(1)
        if not query.get("mine"):
            raise Refusal(400, "No filter selected.", "missingRequiredParameter")
        pictures = {size: {"url": f"{self.url}/a={number}"} for size, number in (("default", 88), ("high", 800))}
        snippet = user and {"title": user.title, "description": "", "thumbnails": pictures,
                            **({"customUrl": user.handle} if user.handle else {})}
        items = [{"kind": "youtube#channel", "id": user.id, "snippet": snippet}] if user else None
        return {"kind": "youtube#channelListResponse", "pageInfo": {"totalResults": len(items or [])},
                **({"items": items} if items else {})}      # which is left out when it is empty

    @api("GET", "/youtube/v3/playlistItems", READ, required=("part", "playlistId"), query={
        "part": {"id", "snippet", "contentDetails", "status"}, "playlistId": str, "videoId": str, "maxResults": range(51),
        "pageToken": str})
    def playlist_items(self, request, user, query, body):
        """The items of one playlist."""
        self._spend(1)
        items = [item for item in self._playlist(user, query["playlistId"])
                 if query.get("videoId") in (None, item["snippet"]["resourceId"]["videoId"])]
        return {"kind": "youtube#playlistItemListResponse", "items": items, "pageInfo": {"totalResults": len(items)}}

    @api("POST", "/youtube/v3/playlistItems", EDIT, required=("part",), query={"part": {"snippet", "contentDetails"}},
         body=PLAYLIST_ITEM)
    def add_to_playlist(self, request, user, query, body):
        """Append a video; the same one again if asked to."""
        self._spend(50)
        snippet = body.get("snippet", {})
        playlist = self._playlist(user, snippet.get("playlistId"))
        if snippet.get("resourceId", {}).get("videoId") not in self.videos:
            raise Refusal(404, "Video not found.", "videoNotFound", domain="youtube.playlistItem")
        playlist.append({"kind": "youtube#playlistItem", "id": secrets.token_urlsafe(12), "snippet": snippet})
        return playlist[-1]

    # Videos

    @api("POST", "/upload/youtube/v3/videos", UPLOAD, required=("uploadType", "part"), body=VIDEO, query={
        "uploadType": {"resumable"}, "part": PARTS, "notifySubscribers": bool})
    def insert(self, request, user, query, body):
        """Open a session; nothing is on the channel yet."""
        self._count_upload(user)
        if missing := body.keys() - set(query["part"]):
            raise Refusal(400, f"'{missing.pop()}' is not in part", "unexpectedPart", domain="youtube.part")
        _check_video(body)
        total, kind = request.headers.get("X-Upload-Content-Length", ""), request.headers.get("X-Upload-Content-Type", "")
        if not total.isdecimal() or not 0 < int(total) <= MAX_VIDEO:
            raise Refusal(400, "Invalid X-Upload-Content-Length", "badRequest")
        if not kind.startswith("video/") and kind != "application/octet-stream":
            raise Refusal(400, f"Media type '{kind}' is not supported.", "badContent")
        key = f"canary-{secrets.token_urlsafe(16)}"
        self.sessions[key] = Session(user, int(total), kind, body, query["part"], self.now() + SESSION_SECONDS,
                                     query.get("notifySubscribers", True))
        return Answer(200, None, {"Location": f"{self.url}/upload/youtube/v3/videos?uploadType=resumable&upload_id={key}"})

    @api("PUT", "/upload/youtube/v3/videos", UPLOAD, required=("upload_id",), query={
        "uploadType": {"resumable"}, "upload_id": str})
    def resume(self, request, user, query, body):
        """Take a chunk, or say how much is stored; the last byte makes the video."""
        session, form = self.sessions.get(query["upload_id"]), RANGE.fullmatch(request.headers.get("Content-Range", ""))
        if session is None or session.end < self.now() or session.owner is not user:
            raise Answer(404, "Not Found")
        if not form or int(form[4]) != session.total or request.length is None:
            raise Answer(400, "Failed to parse Content-Range header.")
        if session.video is None and form[1] != "*":
            self._store(session, request, int(form[2]), int(form[3]))
        if session.video is None:
            stored = {"Range": f"bytes=0-{len(session.data) - 1}"} if session.data else {}
            return Answer(308, None, stored)
        return Answer(201 if form[1] != "*" else 200, self._shown(session.video, session.parts))

    @api("GET", "/youtube/v3/videos", READ, required=("part", "id"), query={"part": PARTS, "id": str})
    def list_videos(self, request, user, query, body):
        """One video, as its owner sees it."""
        self._spend(1)
        video = self.videos.get(query["id"])
        items = []
        if video and (video["owner"] is user or video["status"]["privacyStatus"] != "private") and not self._is_hidden(video):
            self._process(video)
            items = [self._shown(video, query["part"])]
        return {"kind": "youtube#videoListResponse", "items": items, "pageInfo": {"totalResults": len(items)}}

    @api("PUT", "/youtube/v3/videos", EDIT, required=("part",), query={"part": PARTS}, body=VIDEO)
    def update(self, request, user, query, body):
        """Replace whole parts of a video: what the body leaves out is deleted."""
        self._spend(50)
        video = self.videos.get(body.get("id"))
        if video is None:
            raise Refusal(404, "The video cannot be found.", "videoNotFound", domain="youtube.video")
        if video["owner"] is not user:
            raise Refusal(403, "Forbidden", "forbidden", domain="youtube.video")
        if body.keys() - {"id"} - set(query["part"]):
            raise Refusal(400, "An object is not in part", "unexpectedPart", domain="youtube.part")
        if "status" in query["part"]:
            self._set_status(video, body.get("status", {}))
        if "snippet" in query["part"]:
            _check_video(body)
            video["snippet"] = {"channelId": user.id, **body["snippet"]}
        self.posts[:] = [one for one in self.videos.values() if one["status"]["privacyStatus"] != "private"]
        return self._shown(video, query["part"])

    @api("POST", "/upload/youtube/v3/thumbnails/set", UPLOAD, required=("videoId", "uploadType"), query={
        "videoId": str, "uploadType": {"media"}})
    def set_thumbnail(self, request, user, query, body):
        """Take a picture for a video that is processed."""
        self._spend(50)
        video = self.videos.get(query["videoId"])
        if video is None:
            raise Refusal(404, "The video cannot be found.", "videoNotFound", domain="youtube.thumbnail")
        if video["owner"] is not user or not user.verified or video["polls"]:
            raise Answer(403, ERRORS["thumbnail_forbidden"]["body"])
        if not request.body:
            raise Refusal(400, "The request has no image.", "mediaBodyRequired", domain="youtube.thumbnail")
        if request.size > MAX_THUMBNAIL or request.media_type not in ("image/jpeg", "image/png") \
                or sniff(request.body) != request.media_type:
            raise Answer(400, ERRORS["invalid_image"]["body"])
        video["thumbnail"] = request.body
        thumbnail = {"url": f"{self.url}/t", "width": 120, "height": 90}
        return {"kind": "youtube#thumbnailSetResponse", "items": [{"default": thumbnail}]}

    # Comments

    @api("POST", "/youtube/v3/commentThreads", COMMENT, required=("part",), query={"part": {"snippet", "id"}},
         body=COMMENT_THREAD)
    def comment(self, request, user, query, body):
        """Write under a video."""
        self._spend(50)
        snippet = body.get("snippet", {})
        video = self.videos.get(snippet.get("videoId"))
        text = snippet.get("topLevelComment", {}).get("snippet", {}).get("textOriginal")
        if video is None or snippet.get("channelId") != video["owner"].id:
            raise Refusal(404, "The video cannot be found.", "videoNotFound", domain="youtube.commentThread")
        if not text or not text.strip():
            raise Refusal(400, "The comment text is required.", "commentTextRequired", domain="youtube.commentThread")
        if len(text) > 10_000:
            raise Answer(400, ERRORS["comment_too_long"]["body"])
        if video["status"].get("selfDeclaredMadeForKids") or video["status"]["privacyStatus"] == "private":
            raise Answer(403, ERRORS["comments_disabled"]["body"])
        self.comments.append({"kind": "youtube#commentThread", "id": f"Ug{secrets.token_urlsafe(12)}", "snippet": {
            "channelId": video["owner"].id, "videoId": snippet["videoId"], "topLevelComment": {"snippet": {
                "textOriginal": text.strip(), "textDisplay": text.strip(), "authorChannelId": {"value": user.id}}}}})
        return self.comments[-1]

    @api("GET", "/youtube/v3/commentThreads", COMMENT, required=("part", "videoId"), query={
        "part": {"snippet", "id", "replies"}, "videoId": str, "order": {"time", "relevance"}, "maxResults": range(1, 101),
        "pageToken": str})
    def comments_of(self, request, user, query, body):
        """The newest comments under a video."""
        self._spend(1)
        found = [one for one in reversed(self.comments) if one["snippet"]["videoId"] == query["videoId"]]
        page = found[:query.get("maxResults", 20)]
        return {"kind": "youtube#commentThreadListResponse", "items": page, "pageInfo": {"totalResults": len(page)},
                **({"nextPageToken": "more"} if len(found) > len(page) else {})}

    # private

    def _spend(self, units):
        self.units -= units
        if self.units < 0:
            raise Answer(403, ERRORS["quota"]["body"])

    def _count_upload(self, user):
        self.uploads -= 1
        if self.uploads < 0:
            raise Answer(403, ERRORS["quota"]["body"])
        if user is None:
            raise Answer(401, ERRORS["signup_required"]["body"])
        if user.uploads_left < 1:
            raise Answer(400, ERRORS["upload_limit"]["body"])

    def _playlist(self, user, name):
        playlist = user.playlists.get(name)
        if playlist is None:
            raise Answer(404, ERRORS["playlist_not_found"]["body"])
        return playlist

    def _store(self, session, request, first, last):
        size = last - first + 1
        if first != len(session.data) or size != request.size or not 0 < size or last >= session.total:
            raise Answer(400, "Failed to parse Content-Range header.")
        if last < session.total - 1 and size % QUARTER:
            raise Answer(400, "The number of bytes uploaded is required to be a multiple of 262144, except for the last.")
        session.data += request.body[:self.keeps]
        self.keeps = None
        if len(session.data) == session.total:
            self._complete(session)

    def _complete(self, session):
        session.owner.uploads_left -= 1
        status = {"privacyStatus": "public", "embeddable": True, "license": "youtube", "publicStatsViewable": True,
                  **session.meta.get("status", {}), "uploadStatus": "uploaded"}
        snippet = {"title": "unknown", "description": "", "categoryId": "22", **session.meta.get("snippet", {}),
                   "channelId": session.owner.id, "publishedAt": datetime.fromtimestamp(self.now(), UTC).isoformat()}
        video = {"id": secrets.token_urlsafe(8)[:11], "snippet": snippet, "status": status, "owner": session.owner,
                 "paid": session.meta.get("paidProductPlacementDetails"), "recorded": session.meta.get("recordingDetails"),
                 "localizations": session.meta.get("localizations"), "polls": self.processing_polls, "hides": self.hides,
                 "data": bytes(session.data), "thumbnail": None, "notify": session.notify, "notified": 0}
        session.video = self.videos[video["id"]] = video
        self._reveal(video)
        self.posts[:] = [one for one in self.videos.values() if one["status"]["privacyStatus"] != "private"]

    def _set_status(self, video, given):
        if "privacyStatus" not in given:
            raise Refusal(400, "The privacy status is invalid.", "invalidVideoMetadata", domain="youtube.video")
        state = {"uploadStatus": video["status"]["uploadStatus"]}
        video["status"] = {"embeddable": False, "publicStatsViewable": False, **given, **state}
        self._reveal(video)

    def _reveal(self, video):
        if video["owner"].private_only:
            video["status"]["privacyStatus"] = "private"
        if video["status"]["privacyStatus"] == "public" and video["notify"]:
            video["notified"] = 1       # the first time only

    def _is_hidden(self, video):
        video["hides"] -= 1
        return video["hides"] >= 0

    def _process(self, video):
        if video["polls"]:
            video["polls"] -= 1
        elif video["status"]["uploadStatus"] == "uploaded":
            state, reason = self.outcome
            word = {"failed": "failureReason", "rejected": "rejectionReason"}.get(state)
            video["status"] |= {"uploadStatus": state, **({word: reason} if word else {})}

    def _shown(self, video, parts):
        known = {"snippet": video["snippet"], "status": video["status"], "paidProductPlacementDetails": video["paid"]}
        return {"kind": "youtube#video", "id": video["id"], **{part: known[part] for part in parts if known.get(part)}}


def _check_video(body):
    snippet, tags = body.get("snippet", {}), body.get("snippet", {}).get("tags", [])
    others = body.get("localizations", {})
    texts = [(one.get("title", ""), one.get("description", "")) for one in (snippet, *others.values())]
    problems = {
        "invalidTitle": any(not title.strip() or len(title) > 100 or re.search("[<>]", title) for title, _ in texts),
        "invalidDescription": any(len(text.encode()) > 5000 or re.search("[<>]", text) for _, text in texts),
        "defaultLanguageNotSet": others and "defaultLanguage" not in snippet,
        "invalidRecordingDetails": not MOMENT.fullmatch(body.get("recordingDetails", {}).get("recordingDate", EPOCH)),
        "invalidTags": len(",".join(tags)) + 2 * sum(" " in tag for tag in tags) > 500 or re.search("[<>]", "".join(tags)),
        "invalidCategoryId": snippet.get("categoryId", "22") not in CATEGORIES,
        "invalidVideoMetadata": not all(map(LANGUAGE.fullmatch, (
            snippet.get("defaultLanguage", "en"), snippet.get("defaultAudioLanguage", "en"), *others))),
    }
    if found := next((reason for reason, is_so in problems.items() if is_so), None):
        raise Refusal(400, "The request metadata is invalid.", found, domain="youtube.video")


if __name__ == "__main__":
    run(YouTubeServer)
