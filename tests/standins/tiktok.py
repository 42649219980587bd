"""TikTok: the Content Posting API with its consent page, its token endpoint and the host that takes videos."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.standins.grants import Grants
from tests.standins.server import Answer, Network, parse_json, route, run, sniff
from tests.standins.tiktok_errors import ERRORS, body_of, oauth_error

SCOPES = "user.info.basic,video.publish"
KNOWN_SCOPES = {"user.info.basic", "user.info.profile", "user.info.stats", "video.publish", "video.upload", "video.list"}
ACCESS_SECONDS, REFRESH_SECONDS, UPLOAD_SECONDS = 7200, 15_552_000, 3600
RATES = {"init": (6, 60), "creator": (20, 60), "status": (30, 60), "user": (600, 60)}
TITLE, CAPTION, DESCRIPTION, PHOTOS = 90, 2200, 4000, 35
VIDEO_BYTES, SMALLEST_CHUNK, LARGEST_CHUNK, LARGEST_LAST, CHUNKS = 4 << 30, 5_000_000, 64_000_000, 128_000_000, 1000
VIDEO_TYPES = ("video/mp4", "video/quicktime", "video/webm")
PUBLIC, OWN = "PUBLIC_TO_EVERYONE", "SELF_ONLY"
LEVELS = {  # of a public account, and of a private one
    False: [PUBLIC, "MUTUAL_FOLLOW_FRIENDS", OWN], True: ["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", OWN]}
USER_FIELDS = {"user.info.basic": {"open_id", "union_id", "avatar_url", "avatar_url_100", "avatar_large_url", "display_name"},
               "user.info.profile": {"username", "profile_deep_link", "bio_description", "is_verified"}}
# What post_info may hold: the type of each field.
COMMON = {"privacy_level": str, "title": str, "disable_comment": bool, "brand_content_toggle": bool,
          "brand_organic_toggle": bool}
VIDEO_INFO = COMMON | {"disable_duet": bool, "disable_stitch": bool, "video_cover_timestamp_ms": int, "is_aigc": bool}
PHOTO_INFO = COMMON | {"description": str, "auto_add_music": bool}
DRAFT_INFO = {"title": str, "description": str}
NEEDED_INFO = {"privacy_level", "brand_content_toggle", "brand_organic_toggle"}


class Refusal(Answer):
    """{"data": {}, "error": {code, message, log_id}}."""

    def __init__(self, status: int, code: str, message: str = ""):
        super().__init__(status, body_of(code, message))


@dataclass
class Creator:
    """One account, and what it has turned off for all its posts. `longest` is seconds; `blocked` an error code or None."""

    id: str
    username: str
    display_name: str = ""
    private: bool = False
    off: set = field(default_factory=set)
    longest: int = 300
    blocked: str | None = None


@dataclass
class Task:
    """One publish_id. `uploaded` counts bytes; `asked` the answers since the posting started; `failing` is a fail_reason."""

    id: str
    creator: Creator
    kind: str
    info: dict | None
    source: dict
    ends: float
    uploaded: int = 0
    started: bool = False
    asked: int = 0
    failing: str | None = None
    is_draft: bool = False
    post: str | None = None
    head: bytes = b""
    digest: object = field(default_factory=hashlib.sha256)


def api(method: str, path: str, scope: str, rate: str):
    """Mark a handler(self, request, creator) of a call that needs the scope, or one of those in it."""
    return route(method, path, scopes=set(scope.split()), rate=rate)


class TikTokServer(Network):
    """posts are what TikTok has begun to post, in order; drafts what it has begun to put into somebody's inbox.

    A post is complete after `processing_polls` answers, and one for everybody shows its id after `moderation_polls` more.

    consenting is the id of the account that says yes on the consent page: the last one added; declining: it says no.
    redirects None = any redirect address is registered. verified are the beginnings of addresses that the app has shown to
    be its own. failing is the fail_reason of the posts to come; audited: the app may post for everybody.
    """

    errors = ERRORS

    def __init__(self, port=0, processing_polls=1, moderation_polls=1):
        super().__init__(port)
        self.processing_polls, self.moderation_polls = processing_polls, moderation_polls
        self.client_key, self.client_secret, self.redirects = "aw-client-key", "canary-app-secret", None
        self.consenting, self.declining, self.audited, self.failing = "", False, True, None
        self.verified = ["https://media.test/"]
        self.rates = dict(RATES)
        self.drafts: list[dict] = []
        self.creators: dict[str, Creator] = {}
        self.tasks: dict[str, Task] = {}
        self._uploads: dict[str, Task] = {}
        self.grants = Grants(self.now, lifetime=ACCESS_SECONDS, refresh_lifetime=REFRESH_SECONDS, prefix="act.canary-",
                             refresh_prefix="rft.canary-")
        self._last_post = 7_400_000_000_000_000_000

    def add_user(self, username, token=None, *, refresh_token=None, scopes=SCOPES, **details) -> str:
        """Create an account with a pair of tokens; details as in Creator. Returns its open_id."""
        creator = Creator(f"723f-{len(self.creators) + 1:03}", username, **details)
        self.creators[creator.id], self.consenting = creator, creator.id
        self.grants.issue(creator.id, set(scopes.split(",")), token, refresh_token)
        return creator.id

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        token = self.grants.token(bearer)
        if token is None:
            raise Refusal(401, "access_token_invalid", "The access token is invalid or not found in the request.")
        if self.take(options["rate"], (request.path, bearer)).exceeded:
            raise Refusal(429, "rate_limit_exceeded", "The API rate limit was exceeded. Please try again later.")
        _check_scope(token, options["scopes"])
        if request.method == "POST" and request.headers.get("Content-Type") != "application/json; charset=UTF-8":
            raise Refusal(400, "invalid_params", "The content type is not application/json; charset=UTF-8.")
        return handler(self, request, self.creators[token.account])

    def no_route(self, request, methods):
        return Refusal(404, "invalid_params", "Unsupported path(Janus)")

    @api("GET", "/v2/user/info/", "user.info.basic", "user")
    def user_info(self, request, creator):
        """The fields that are asked for, each with its scope."""
        wanted = set(dict(request.query).get("fields", "").split(","))
        token = self.grants.token(request.headers["Authorization"].removeprefix("Bearer "))
        for scope, fields in USER_FIELDS.items():
            if wanted & fields and scope not in token.scopes:
                raise Refusal(401, "scope_not_authorized", f"{scope} is missing")
        if not wanted <= set().union(*USER_FIELDS.values()):
            raise Refusal(400, "invalid_params", "fields is invalid")
        known = {"open_id": creator.id, "union_id": f"u{creator.id}", "avatar_url": f"{self.url}/{creator.username}.jpg",
                 "display_name": creator.display_name, "username": creator.username}
        return body_of("ok", data={"user": {name: known.get(name, "") for name in wanted}})

    @api("POST", "/v2/post/publish/creator_info/query/", "video.publish", "creator")
    def creator_info(self, request, creator):
        """What the creator allows. Answers with status 200 that posting is blocked."""
        if request.body not in (b"", b"{}"):
            raise Refusal(400, "invalid_params", "the body is not empty")
        if creator.blocked:
            raise Refusal(200, creator.blocked)
        return body_of("ok", data={
            "creator_avatar_url": f"{self.url}/{creator.username}.jpg", "creator_username": creator.username,
            "creator_nickname": creator.display_name, "privacy_level_options": LEVELS[creator.private],
            **{f"{name}_disabled": name in creator.off for name in ("comment", "duet", "stitch")},
            "max_video_post_duration_sec": creator.longest})

    @api("POST", "/v2/post/publish/video/init/", "video.publish", "init")
    def video_init(self, request, creator):
        """Begin an upload, which posts nothing before it is whole."""
        given = _closed(request, {"post_info", "source_info"})
        info, source = given["post_info"], given["source_info"]
        self._check_info(info, VIDEO_INFO, creator)
        if isinstance(source, dict) and source.get("source") == "PULL_FROM_URL":
            _check_keys(source, {"source", "video_url"})
            self._check_url(source["video_url"])
            return body_of("ok", data={"publish_id": self._post(self._task("v_pub_url~", creator, "video", info, source)).id})
        _check_plan(source)
        return self._upload_for(self._task("v_pub_file~", creator, "video", info, source))

    @api("POST", "/v2/post/publish/inbox/video/init/", "video.upload", "init")
    def inbox_init(self, request, creator):
        """Begin the upload of a draft, which nothing is said of."""
        source = _closed(request, {"source_info"})["source_info"]
        _check_plan(source)
        return self._upload_for(self._task("v_inbox_file~", creator, "video", None, source))

    @api("POST", "/v2/post/publish/content/init/", "video.publish video.upload", "init")
    def content_init(self, request, creator):
        """Post photos, which are fetched; or put them into the inbox of their creator."""
        given = _closed(request, {"media_type", "post_mode", "post_info", "source_info"})
        if given["media_type"] != "PHOTO" or given["post_mode"] not in ("DIRECT_POST", "MEDIA_UPLOAD"):
            raise Refusal(400, "invalid_param", "media_type or post_mode is invalid")
        is_draft, info, source = given["post_mode"] == "MEDIA_UPLOAD", given["post_info"], given["source_info"]
        token = self.grants.token(request.headers["Authorization"].removeprefix("Bearer "))
        _check_scope(token, {"video.upload" if is_draft else "video.publish"})
        if is_draft:
            _check_texts(info, DRAFT_INFO, set())
        else:
            self._check_info(info, PHOTO_INFO, creator)
        _check_keys(source, {"source", "photo_cover_index", "photo_images"})
        images, cover = source["photo_images"], source["photo_cover_index"]
        if not isinstance(images, list) or not 1 <= len(images) <= PHOTOS or source["source"] != "PULL_FROM_URL":
            raise Refusal(400, "invalid_param", "photo_images is invalid")
        if type(cover) is not int or not 0 <= cover < len(images):
            raise Refusal(400, "invalid_param", "photo_cover_index is invalid")
        for url in images:
            self._check_url(url)
        task = self._task("p_pub_url~", creator, "photo", info, source)
        task.is_draft = is_draft
        return body_of("ok", data={"publish_id": self._post(task).id})

    @route("PUT", "/video/")
    def upload(self, request):
        """One chunk: where the last one ended, as long as planned. The last one starts the posting."""
        if "Authorization" in request.headers or request.media_type not in VIDEO_TYPES:
            raise Answer(400)
        task = self._uploads.get(dict(request.query).get("upload_token"))
        if task is None:
            raise Answer(404)
        if task.ends <= self.now():
            raise Answer(403)
        size, chunk = task.source["video_size"], task.source["chunk_size"]
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", request.headers.get("Content-Range", ""))
        first, last, total = map(int, found.groups()) if found else (0, -1, 0)
        if total != size or last - first + 1 != len(request.body):
            raise Answer(400)
        if first != task.uploaded:
            raise Answer(416, None, {"Content-Range": f"bytes 0-{task.uploaded}/{size}"})
        is_last = first == (task.source["total_chunk_count"] - 1) * chunk
        if len(request.body) != (size - first if is_last else chunk):
            raise Answer(400)
        task.head, task.uploaded = task.head or request.body[:64], last + 1
        task.digest.update(request.body)
        if is_last:
            task.failing = task.failing or (None if sniff(task.head) in VIDEO_TYPES else "file_format_check_failed")
            self._post(task)
        return Answer(201 if is_last else 206, None, {"Content-Range": f"bytes 0-{last}/{size}"})

    @api("POST", "/v2/post/publish/status/fetch/", "video.publish video.upload", "status")
    def status(self, request, creator):
        """How far a post is."""
        task = self.tasks.get(_closed(request, {"publish_id"})["publish_id"])
        if task is None:
            raise Refusal(400, "invalid_publish_id", "The publish_id does not exist.")
        if task.creator is not creator:
            raise Refusal(400, "token_not_authorized_for_specified_publish_id")
        bytes_of = {"uploaded_bytes": task.uploaded} if task.uploaded else {}
        if not task.started:
            return body_of("ok", data={"status": "PROCESSING_UPLOAD", **bytes_of})
        task.asked += 1
        if task.asked <= self.processing_polls:
            kind = "PROCESSING_UPLOAD" if "upload" in task.source["source"].lower() else "PROCESSING_DOWNLOAD"
            return body_of("ok", data={"status": kind, **bytes_of})
        if task.failing:
            return body_of("ok", data={"status": "FAILED", "fail_reason": task.failing, **bytes_of})
        if task.is_draft:
            return body_of("ok", data={"status": "SEND_TO_USER_INBOX", **bytes_of})
        shown = task.info["privacy_level"] == PUBLIC and task.asked > self.processing_polls + self.moderation_polls
        return body_of("ok", data={"status": "PUBLISH_COMPLETE", **bytes_of,
                                   "publicaly_available_post_id": [int(task.post)] if shown else []})

    # OAuth

    @route("GET", "/v2/auth/authorize/")
    def authorize(self, request):
        """The consent page, with the answer given at once: a redirect with a code."""
        given = dict(request.query)
        scopes, back = set(given.get("scope", "").split(",")), given.get("redirect_uri", "")
        parts = urlsplit(back)
        if given.get("client_key") != self.client_key or parts.scheme != "https" or parts.query or parts.fragment or (
                self.redirects is not None and back not in self.redirects):
            raise Answer(400, "<html>client_key or redirect_uri</html>")
        known = scopes <= KNOWN_SCOPES and given.get("code_challenge_method", "S256") == "S256"
        if given.get("response_type") != "code" or not known:
            raise Answer(400, "<html>response_type, scope or code_challenge_method</html>")
        code = self.grants.code(self.consenting, scopes, redirect_uri=back, challenge=given.get("code_challenge"))
        said = {"error": "access_denied", "error_description": "no"} if self.declining else {
            "code": f"{code}*v!1", "scopes": ",".join(scopes)}
        state = {"state": given["state"]} if "state" in given else {}
        return Answer(302, "", {"Location": f"{back}?{urlencode(said | state)}"})

    @route("POST", "/v2/oauth/token/")
    def issue_token(self, request):
        """Trade a code or a refresh token, once, for a pair of tokens."""
        given = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        if request.media_type != "application/x-www-form-urlencoded":
            raise Answer(400, oauth_error("invalid_request", "Only `application/x-www-form-urlencoded` is accepted."))
        if (given.get("client_key"), given.get("client_secret")) != (self.client_key, self.client_secret):
            raise Answer(401, oauth_error("invalid_client", "Client key or secret is incorrect."))
        match given.get("grant_type"):
            case "authorization_code":
                return self._redeemed(given)
            case "refresh_token":
                renewed = self.grants.renew(given.get("refresh_token", ""))
                if renewed is None:
                    raise Answer(400, ERRORS["dead_grant"]["body"])
                return self._tokens(renewed[2].account, renewed[2].scopes, *renewed[:2])
        raise Answer(400, oauth_error("unsupported_grant_type", "grant_type"))

    def _redeemed(self, given):
        code = self.grants.redeem(given.get("code", "").removesuffix("*v!1"))
        proof = hashlib.sha256(given.get("code_verifier", "").encode()).hexdigest()
        if code is None or code["redirect_uri"] != given.get("redirect_uri") or code["challenge"] not in (None, proof):
            raise Answer(400, oauth_error("invalid_grant", "Authorization code is expired."))
        return self._tokens(code["account"], code["scopes"], *self.grants.issue(code["account"], code["scopes"]))

    def _tokens(self, account, scopes, access, refresh):
        return {"access_token": access, "expires_in": ACCESS_SECONDS, "open_id": account, "refresh_token": refresh,
                "refresh_expires_in": REFRESH_SECONDS, "scope": ",".join(sorted(scopes)), "token_type": "Bearer"}

    def _upload_for(self, task):
        token = f"canary-{secrets.token_hex(8)}"
        self._uploads[token] = task
        return body_of("ok", data={"publish_id": task.id,
                                   "upload_url": f"{self.url}/video/?upload_id={len(self.tasks)}&upload_token={token}"})

    def _task(self, prefix, creator, kind, info, source):
        task = Task(f"{prefix}v2-1.{len(self.tasks) + 1}", creator, kind, info, source, self.now() + UPLOAD_SECONDS,
                    failing=self.failing, is_draft=info is None)
        self.tasks[task.id] = task
        return task

    def _post(self, task):
        task.started = True
        if not task.failing:
            self._last_post += 1
            task.post = str(self._last_post)
            seen = self.drafts if task.is_draft else self.posts
            seen.append({"id": task.post, "publish_id": task.id, "account": task.creator.id, "kind": task.kind,
                               "info": task.info, "source": task.source, "sha256": task.digest.hexdigest()})
        return task

    def _check_info(self, info, fields, creator):
        """Raises the refusal of what a post says of itself."""
        _check_texts(info, fields, NEEDED_INFO)
        level = info["privacy_level"]
        if not self.audited and (level != OWN or not creator.private):
            raise Refusal(403, "unaudited_client_can_only_post_to_private_accounts")
        if level not in LEVELS[creator.private]:
            raise Refusal(403, "privacy_level_option_mismatch")
        if info["brand_content_toggle"] and level == OWN:
            raise Refusal(400, "invalid_param", "branded content cannot be private")
        for name in creator.off:
            if f"disable_{name}" in fields and info.get(f"disable_{name}") is not True:
                raise Refusal(400, "invalid_param", f"disable_{name} is invalid")
        if creator.blocked:
            raise Refusal(403, creator.blocked)

    def _check_url(self, url):
        if not isinstance(url, str) or not url.startswith(tuple(self.verified)):
            raise Refusal(403, "url_ownership_unverified", "Please review our URL ownership verification rules.")


def _closed(request, names):
    """The body, a JSON object with exactly these names."""
    try:
        given = parse_json(request.body)
    except ValueError:
        given = None
    _check_keys(given, names)
    return given


def _check_keys(given, needed, allowed=None):
    if not isinstance(given, dict) or not needed <= given.keys() <= (allowed or needed):
        raise Refusal(400, "invalid_param", f"needs {sorted(needed)} and takes {sorted(allowed or needed)}")


def _check_texts(info, fields, needed):
    """Raises the refusal of fields that are missing, unknown, ill-typed or too long."""
    _check_keys(info, needed, set(fields))
    for name, value in info.items():
        if type(value) is not fields[name]:
            raise Refusal(400, "invalid_param", f"{name} is invalid")
    longest = {"title": CAPTION if fields is VIDEO_INFO else TITLE, "description": DESCRIPTION}
    for name, most in longest.items():
        if len(info.get(name, "").encode("utf-16-le")) // 2 > most:
            raise Refusal(400, "invalid_param", f"{name} is too long")


def _check_scope(token, scopes):
    if not scopes & token.scopes:
        raise Refusal(401, "scope_not_authorized", "The user did not authorize the scope required for this request.")


def _check_plan(source):
    """Raises the refusal of a plan of chunks against the rules of the media transfer guide."""
    _check_keys(source, {"source", "video_size", "chunk_size", "total_chunk_count"})
    size, chunk, count = numbers = [source[name] for name in ("video_size", "chunk_size", "total_chunk_count")]
    if source["source"] != "FILE_UPLOAD" or any(type(number) is not int or number < 1 for number in numbers):
        raise Refusal(400, "invalid_param", "source_info is invalid")
    fits = chunk == size if count == 1 else SMALLEST_CHUNK <= chunk
    if not fits or chunk > LARGEST_CHUNK or size > VIDEO_BYTES or count > CHUNKS:
        raise Refusal(400, "invalid_param", "chunk_size is invalid")
    if count != size // chunk or size - (count - 1) * chunk > LARGEST_LAST:
        raise Refusal(400, "invalid_param", "total_chunk_count is invalid")


if __name__ == "__main__":
    run(TikTokServer)
