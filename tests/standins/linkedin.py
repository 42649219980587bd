"""LinkedIn: its Posts, Images, Videos and Comments APIs, and OAuth 2; https://learn.microsoft.com/linkedin/marketing"""

import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from tests.standins.server import Answer, Network, parse_json, route, run, sniff
from tests.standins.shapes import List, Range, Text, wrongs

CLIENT_ID, CLIENT_SECRET, CALLBACK = "78app", "canary-app-secret", "https://posthorn.test/connect/callback"
MEMBER_SCOPES = "openid profile w_member_social"
PAGE_SCOPES = "w_organization_social r_organization_social rw_organization_admin"
KNOWN_SCOPES = {*MEMBER_SCOPES.split(), *PAGE_SCOPES.split(), "email", "r_basicprofile"}
CODE_SECONDS, TOKEN_SECONDS, REFRESH_SECONDS, UPLOAD_SECONDS = 1800, 5_184_000, 31_536_000, 30 * 86_400
DUPLICATE_SECONDS, DAY = 600, 86_400
PART_BYTES, VIDEO_BYTES = 4_194_304, (75_000, 500 << 20)
VERSIONS = {"202601", "202602", "202603", "202609"}
POSTING_ROLES = {"ADMINISTRATOR", "CONTENT_ADMINISTRATOR", "DIRECT_SPONSORED_CONTENT_POSTER"}
AUTHOR = re.compile("urn:li:(person:[A-Za-z0-9_-]+|organization:[0-9]+)")
IMAGE, MEDIA = re.compile("urn:li:image:[A-Za-z0-9_-]+"), re.compile("urn:li:(image|video|document):[A-Za-z0-9_-]+")
POST = re.compile("urn:li:(share|ugcPost):[0-9]+")
ALT = Text(0, 4086)
IMAGE_UPLOAD = {"initializeUploadRequest!": {"owner!": AUTHOR}}
VIDEO_UPLOAD = {"initializeUploadRequest!": {"owner!": AUTHOR, "fileSizeBytes!": Range(1, 5 << 30), "uploadCaptions": bool,
                                             "uploadThumbnail": bool}}
FINALIZE = {"finalizeUploadRequest!": {"video!": MEDIA, "uploadToken!": str, "uploadedPartIds!": List(str, 1)}}
CREATE_BODY = {
    "author!": AUTHOR, "commentary!": str, "visibility!": {"PUBLIC", "CONNECTIONS", "LOGGED_IN", "CONTAINER"},
    "distribution!": {"feedDistribution!": {"MAIN_FEED", "NONE"}, "targetEntities": List(dict),
                      "thirdPartyDistributionChannels": List(dict)},
    "lifecycleState!": {"PUBLISHED"}, "isReshareDisabledByAuthor": bool, "reshareContext": {"parent!": POST},
    "content": {"media": {"id!": MEDIA, "title": str, "altText": ALT},
                "multiImage": {"images!": List({"id!": IMAGE, "altText": ALT}, 2, 20)},
                "article": {"source!": re.compile("https?://[^ ]+"), "title!": Text(1, 399), "description": Text(0, 4085),
                            "thumbnail": IMAGE},
                "poll": {"question!": Text(1, 140), "options!": List({"text!": Text(1, 30)}, 2, 4),
                         "settings!": {"duration!": {"ONE_DAY", "THREE_DAYS", "SEVEN_DAYS", "FOURTEEN_DAYS"}}}},
}
COMMENT_BODY = {"actor!": AUTHOR, "object!": re.compile("urn:li:(activity|share|ugcPost):[0-9]+"),
                "message!": {"text!": Text(1, 1250), "attributes": List(dict)}, "parentComment": str}
CREATE, COMMENT, TOKEN = "POST /rest/posts", "POST /rest/socialActions/:urn/comments", "POST /oauth/v2/accessToken"
IMAGES, IMAGE_STATE = "POST /rest/images", "GET /rest/images/:urn"
VIDEOS, VIDEO_STATE = "POST /rest/videos", "GET /rest/videos/:urn"
PUT_IMAGE, PUT_PART = "PUT /dms-uploads/:key", "PUT /dms-uploads/:key/:part"
MARK = re.compile(r"@\[((?:[^\\\]]|\\.)+)\]\((urn:li:(?:person|organization):[^)]+)\)|#(?=\w)|\{hashtag\|\\#\|(\w+)\}"
                  r"|\\(.)|([|{}@\[\]()<>#*_~])", re.DOTALL)


def failure(status: int, message: str, code: str, **more) -> dict:
    """The usual body of an error."""
    return {"message": message, "status": status, "code": code, **more}


def duplicate(urn: str) -> dict:
    """The body for a post that LinkedIn has already."""
    return {"errorDetailType": "com.linkedin.common.error.BadRequest", "status": 422,
            "message": f"Content is a duplicate of {urn}: Content is a duplicate of {urn}",
            "errorDetails": {"inputErrors": [
                {"description": "Duplicate post is detected", "input": {}, "code": "DUPLICATE_POST"}]}}


ERRORS = {name: {"endpoint": endpoint, "status": status, "body": failure(status, message, code)}
          for name, (endpoint, status, code, message) in {
    "empty_token": (CREATE, 401, "EMPTY_ACCESS_TOKEN", "Empty oauth2 access token"),
    "invalid_token": (CREATE, 401, "INVALID_ACCESS_TOKEN", "Invalid access token"),
    "expired_token": (CREATE, 401, "EXPIRED_ACCESS_TOKEN", "The token used in the request has expired"),
    "revoked_token": (CREATE, 401, "REVOKED_ACCESS_TOKEN", "The token has been revoked"),
    "access_denied": (CREATE, 403, "ACCESS_DENIED", "Not enough permissions to access: partnerApiPostsExternal.CREATE"),
    "image_forbidden": (IMAGE_STATE, 403, "ACCESS_DENIED", "Accessing this image resource is forbidden"),
    "missing_field": (CREATE, 400, "MISSING_FIELD", "/author is required"),
    "invalid_value": (CREATE, 400, "INVALID_VALUE_FOR_FIELD", "/visibility is not valid"),
    "too_long": (CREATE, 400, "FIELD_LENGTH_TOO_LONG", "/commentary is too long"),
    "blank": (CREATE, 400, "INVALID_VALUE_BLANK_FIELD", "/commentary is blank"),
    "urn_type": (CREATE, 400, "INVALID_URN_TYPE", "/author has the wrong type"),
    "urn_id": (CREATE, 400, "INVALID_URN_ID", "/author has the wrong id"),
    "unprocessable": (CREATE, 422, "UNPROCESSABLE_ENTITY", "The post cannot be processed"),
    "waiting_upload": (CREATE, 400, "MEDIA_ASSET_WAITING_UPLOAD", "The media asset is waiting for its upload"),
    "processing_failed": (CREATE, 400, "MEDIA_ASSET_PROCESSING_FAILED", "The media asset could not be processed"),
    "invalid_image": (CREATE, 400, "INVALID_IMAGE_ID", "The image id is not valid"),
    "not_found": (CREATE, 404, "NOT_FOUND", "Could not find entity"),
    "conflict": (CREATE, 409, "CONFLICT", "409 Conflict"),
    "version_ended": (CREATE, 426, "NONEXISTENT_VERSION", "Requested version 20250901 is not active"),
    "version_missing": (CREATE, 400, "VERSION_MISSING", "A version must be present"),
    "day_quota": (CREATE, 429, "TOO_MANY_REQUESTS",
                  "Resource level throttle MEMBER DAY limit for calls to this resource is reached."),
    "comment_throttled": (COMMENT, 429, "TOO_MANY_REQUESTS", "Comment create throttled"),
    "comment_too_early": (COMMENT, 404, "NOT_FOUND", "The post does not exist"),
    "no_activity": (CREATE, 500, "INTERNAL_SERVER_ERROR", "Unable to obtain activity"),
    "unavailable": (CREATE, 503, "SERVICE_UNAVAILABLE", "Service Unavailable"),
    "expired_url": (PUT_PART, 400, "EXPIRED_UPLOAD_URL", "The upload URL has expired"),
}.items()} | {
    "bad_gateway": {"endpoint": CREATE, "status": 502, "body": "<html>Bad Gateway</html>"},
    "gateway_timeout": {"endpoint": CREATE, "status": 504, "body": ""},
    "empty_forbidden": {"endpoint": IMAGES, "status": 403, "body": {"message": "", "status": 403}},
    "duplicate": {"endpoint": CREATE, "status": 422, "body": duplicate("urn:li:share:7141138937766391808")},
    "refresh_dead": {"endpoint": TOKEN, "status": 400, "body": {
        "error": "invalid_request",
        "error_description": "The provided authorization grant or refresh token is invalid, expired or revoked."}},
    "client_wrong": {"endpoint": TOKEN, "status": 401, "body": {
        "error": "invalid_client", "error_description": "Client authentication failed"}},
}


@dataclass
class Member:
    """A member; `pages` maps the ids of organizations to the member's roles there."""

    id: str
    name: str
    vanity: str
    pages: dict = field(default_factory=dict)


@dataclass
class Token:
    """An access or refresh token."""

    member: Member
    scopes: set
    end: float


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

    @property
    def data(self):
        return b"".join(self.parts[number] for number in sorted(self.parts))


def rest(method: str, path: str, *scopes: str):
    """Mark a handler(self, request, token) of a versioned call, which needs one of the scopes."""
    return route(method, path, scopes=set(scopes), versioned=True)


class LinkedInServer(Network):
    """LinkedIn. posts are all posts in order: `body` as sent, `text` as people see it; `comments` those of all posts.

    `polls` is how often a video is found unfinished, an image half as often. `consenting` is the member who says yes to the
    app: the last one added. `partner`: the app gets refresh tokens. `shy` is how often a new post takes no comment yet.
    """

    errors = ERRORS

    def __init__(self, port=0, polls=2, partner=True, shy=0):
        super().__init__(port)
        self.polls, self.partner, self.shy, self.consenting = polls, partner, shy, ""
        self.app_scopes = set(KNOWN_SCOPES)
        self.rates = {"posts": (150, DAY)}
        self.members: dict[str, Member] = {}
        self.organizations: dict[str, dict] = {}
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, Token] = {}
        self.assets: dict[str, Asset] = {}
        self.comments: list[dict] = []
        self._codes, self._last_id = {}, 0

    def add_user(self, member_id, token=None, *, refresh_token=None, scopes=MEMBER_SCOPES, name=None, vanity=None) -> str:
        """Create a member who allowed the app. Returns the URN."""
        member = Member(member_id, name or member_id.title(), vanity or f"{member_id}-1")
        self.members[member_id], self.consenting = member, member_id
        granted = set(scopes.split())
        self.tokens[token or f"token-{member_id}"] = Token(member, granted, self.now() + TOKEN_SECONDS)
        self.refresh_tokens[refresh_token or f"refresh-{member_id}"] = Token(member, granted, self.now() + REFRESH_SECONDS)
        return f"urn:li:person:{member_id}"

    def add_page(self, page_id, member_id, *roles, name="Acme", vanity="acme") -> str:
        """Create an organization in which a member has roles. Returns the URN."""
        self.organizations[page_id] = {"id": int(page_id), "localizedName": name, "vanityName": vanity}
        self.members[member_id].pages[page_id] = roles or ("ADMINISTRATOR",)
        return f"urn:li:organization:{page_id}"

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        token = self._token(request)
        if options.get("versioned"):
            self._check_version(request)
        if not options["scopes"] & token.scopes:
            raise self._denied(request)
        return handler(self, request, token)

    def no_route(self, request, methods):
        return Answer(405 if methods else 404, failure(404, "No virtual resource found", "RESOURCE_NOT_FOUND"))

    # who

    @route("GET", "/v2/userinfo", scopes={"profile"})
    def userinfo(self, request, token):
        """The member."""
        member = token.member
        return {"sub": member.id, "name": member.name, "given_name": member.name, "family_name": "", "email_verified": True,
                "picture": f"{self.url}/picture.jpg", "locale": {"country": "US", "language": "en"}}

    @route("GET", "/v2/me", scopes={"r_basicprofile"})
    def me(self, request, token):
        """The member, with the name in addresses."""
        return {"id": token.member.id, "vanityName": token.member.vanity, "localizedFirstName": token.member.name}

    @rest("GET", "/rest/organizationAcls", "rw_organization_admin")
    def roles(self, request, token):
        """What the member may do for which organizations."""
        given = dict(request.query)
        if given.get("q") != "roleAssignee" or given.keys() - {"q", "state", "role", "start", "count"}:
            raise Answer(400, failure(400, "q must be roleAssignee", "INVALID_VALUE_FOR_FIELD"))
        start, count = int(given.get("start", 0)), min(int(given.get("count", 10)), 100)
        every = [{"organization": f"urn:li:organization:{page}", "role": role, "state": "APPROVED",
                  "roleAssignee": f"urn:li:person:{token.member.id}"}
                 for page, roles in token.member.pages.items() for role in roles]
        return {"elements": every[start:start + count], "paging": {"start": start, "count": count, "total": len(every)}}

    @rest("GET", "/rest/organizations/:id", "rw_organization_admin", "r_organization_social")
    def organization(self, request, token):
        """One organization, for those who have a role there."""
        if request.args["id"] not in token.member.pages:
            raise self._denied(request)
        return self.organizations[request.args["id"]]

    # media

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
        return {"value": {"uploadUrlsExpireAt": int(asset.end * 1000), "video": asset.urn, "uploadToken": f"t-{asset.key}",
                          "uploadInstructions": parts}}

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

    # posts and comments

    @rest("POST", "/rest/posts", "w_member_social", "w_organization_social")
    def create(self, request, token):
        """Publish."""
        given = self._body(request, CREATE_BODY)
        self._check_actor(request, token, given["author"])
        if self.take("posts", token.member.id, aligned=True).exceeded:
            raise Answer(429, ERRORS["day_quota"]["body"])
        self._check_content(given)
        for post in self.posts:
            if self._alike(post["body"], given) and post["time"] > self.now() - DUPLICATE_SECONDS:
                raise Answer(422, duplicate(post["id"]))
        kind = "ugcPost" if ":video:" in str(given.get("content")) else "share"
        post = {"id": f"urn:li:{kind}:{self._id()}", "body": given, "text": visible(given["commentary"]), "time": self.now(),
                "shy": self.shy}
        self.posts.append(post)
        return Answer(201, None, {"x-restli-id": post["id"], "Location": f"/rest/posts/{post['id'].replace(':', '%3A')}"})

    @rest("GET", "/rest/posts", "r_organization_social", "r_member_social")
    def by_author(self, request, token):
        """The posts of an author, what was changed last first."""
        given = dict(request.query)
        if request.headers.get("X-RestLi-Method") != "FINDER" or given.get("q") != "author":
            raise Answer(400, failure(400, "The finder is not valid", "INVALID_VALUE_FOR_FIELD"))
        if given.keys() - {"q", "author", "start", "count"} or given["author"] not in self._actors(token):
            raise self._denied(request)
        start, count = int(given.get("start", 0)), min(int(given.get("count", 10)), 100)
        found = [self._shown(post) for post in reversed(self.posts) if post["body"]["author"] == given["author"]]
        return {"elements": found[start:start + count], "paging": {"start": start, "count": count, "links": []}}

    @rest("POST", "/rest/socialActions/:urn/comments", "w_member_social", "w_organization_social")
    def comment(self, request, token):
        """Comment on a post."""
        self._check_path(request)
        given = self._body(request, COMMENT_BODY)
        self._check_actor(request, token, given["actor"])
        post = next((post for post in self.posts if post["id"] == request.args["urn"] == given["object"]), None)
        if post is None or post["shy"]:
            if post:
                post["shy"] -= 1
            raise Answer(404, ERRORS["comment_too_early"]["body"])
        comment = {"id": str(self._id()), "actor": given["actor"], "object": given["object"], "message": given["message"]}
        self.comments.append(comment)
        return Answer(201, comment, {"x-restli-id": comment["id"]})

    @rest("GET", "/rest/socialActions/:urn/comments", "r_organization_social", "r_member_social")
    def comments_of(self, request, token):
        """The comments on a post."""
        self._check_path(request)
        count = min(int(dict(request.query).get("count", 10)), 100)
        found = [comment for comment in self.comments if comment["object"] == request.args["urn"]]
        return {"elements": found[:count], "paging": {"start": 0, "count": count}}

    # OAuth 2

    @route("GET", "/oauth/v2/authorization")
    def authorize(self, request):
        """The consent page, with the consent given at once: a redirect with a code, or with an error for a scope too many."""
        given = dict(request.query)
        scopes = set(given.get("scope", "").split())
        if given.get("response_type") != "code" or given.get("client_id") != CLIENT_ID or given.get("redirect_uri") != CALLBACK:
            raise Answer(400, "<html>Bummer, something went wrong.</html>")
        if "code_challenge" in given or not given.get("state") or not scopes or not scopes <= KNOWN_SCOPES:
            raise Answer(400, "<html>Bummer, something went wrong.</html>")
        if not scopes <= self.app_scopes:
            back = {"error": "unauthorized_scope_error", "error_description": "Scope is not authorized for your application"}
        else:
            back = {"code": secrets.token_urlsafe(32)}
            self._codes[back["code"]] = self.members[self.consenting], scopes, self.now() + CODE_SECONDS
        return Answer(302, "", {"Location": f"{CALLBACK}?{urlencode({**back, 'state': given['state']})}"})

    @route("POST", "/oauth/v2/accessToken")
    def issue(self, request):
        """Trade a code, once, or a refresh token, again and again, for an access token."""
        given = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        if request.media_type != "application/x-www-form-urlencoded" or given.get("client_id") != CLIENT_ID \
                or given.get("client_secret") != CLIENT_SECRET:
            raise Answer(401, ERRORS["client_wrong"]["body"])
        refresh = given.get("refresh_token")
        if given.get("grant_type") == "authorization_code" and given.get("redirect_uri") == CALLBACK:
            member, scopes, end = self._codes.pop(given.get("code"), (None, set(), 0))
        elif given.get("grant_type") == "refresh_token" and refresh in self.refresh_tokens:
            old = self.refresh_tokens[refresh]
            member, scopes, end = old.member, old.scopes, old.end
        else:
            member, scopes, end = None, set(), 0
        if member is None or end <= self.now():
            raise Answer(400, ERRORS["refresh_dead"]["body"])
        return self._issue(member, scopes, refresh)

    # private

    def _issue(self, member, scopes, refresh):
        access = f"canary-AQX{secrets.token_urlsafe(300)}"
        self.tokens[access] = Token(member, scopes, self.now() + TOKEN_SECONDS)
        answer = {"access_token": access, "expires_in": TOKEN_SECONDS, "scope": ",".join(sorted(scopes)),
                  "token_type": "Bearer"}
        if self.partner:
            refresh = refresh or f"canary-AQY{secrets.token_urlsafe(300)}"
            self.refresh_tokens.setdefault(refresh, Token(member, scopes, self.now() + REFRESH_SECONDS))
            left = int(self.refresh_tokens[refresh].end - self.now())
            answer |= {"refresh_token": refresh, "refresh_token_expires_in": left}
        return answer

    def _id(self):
        self._last_id = max(self._last_id + 1, int(self.now() * 1000) << 22)
        return self._last_id

    def _token(self, request):
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not value:
            raise Answer(401, ERRORS["empty_token"]["body"])
        token = self.tokens.get(value)
        if token is None:
            raise Answer(401, ERRORS["invalid_token"]["body"])
        if token.end <= self.now():
            raise Answer(401, ERRORS["expired_token"]["body"])
        return token

    def _check_version(self, request):
        version = request.headers.get("Linkedin-Version")
        if version is None:
            raise Answer(400, ERRORS["version_missing"]["body"])
        if version not in VERSIONS:
            raise Answer(426, ERRORS["version_ended"]["body"])
        if request.headers.get("X-Restli-Protocol-Version") != "2.0.0":
            raise Answer(400, failure(400, "Invalid Rest.li protocol version", "ILLEGAL_ARGUMENT"))

    def _check_path(self, request):
        if ":" in request.path:
            raise Answer(400, failure(400, "Syntax exception in path variables", "ILLEGAL_ARGUMENT"))

    def _denied(self, request):
        return Answer(403, failure(403, f"Not enough permissions to access: {request.endpoint}", "ACCESS_DENIED",
                                   serviceErrorCode=100))

    def _actors(self, token):
        """The URNs that a token may act for."""
        pages = [f"urn:li:organization:{page}" for page, roles in token.member.pages.items() if POSTING_ROLES & set(roles)]
        return ([f"urn:li:person:{token.member.id}"] if "w_member_social" in token.scopes else []) + (
            pages if "w_organization_social" in token.scopes else [])

    def _check_actor(self, request, token, actor):
        if actor not in self._actors(token):
            raise self._denied(request)

    def _body(self, request, shape):
        try:
            given = parse_json(request.body) if request.media_type == "application/json" else None
        except ValueError:
            given = None
        if found := wrongs(given, shape):
            raise Answer(400, failure(400, f"{found} is not valid", "INVALID_VALUE_FOR_FIELD"))
        return given

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

    def _check_content(self, given):
        content = given.get("content", {})
        if len(content) > 1 or "content" in given and not content:
            raise Answer(400, failure(400, "/content must have one member", "INVALID_VALUE_FOR_FIELD"))
        if len(visible(given["commentary"])) > 3000:
            raise Answer(400, ERRORS["too_long"]["body"])
        if given["visibility"] == "CONNECTIONS" and ":organization:" in given["author"]:
            raise Answer(400, ERRORS["invalid_value"]["body"])
        for urn in re.findall(MEDIA.pattern.replace("(", "(?:"), str(content)):
            asset = self.assets.get(urn)
            if asset is None or asset.owner != given["author"]:
                raise Answer(403, failure(403, "The media belongs to somebody else", "ACCESS_DENIED"))
            if asset.status == "PROCESSING_FAILED":
                raise Answer(400, ERRORS["processing_failed"]["body"])
            if asset.status == "WAITING_UPLOAD" or asset.size and asset.status != "AVAILABLE":
                raise Answer(400, ERRORS["waiting_upload"]["body"])

    def _alike(self, one, other):
        return [one.get(name) for name in ("author", "commentary", "content")] == [
            other.get(name) for name in ("author", "commentary", "content")]

    def _shown(self, post):
        moment = int(post["time"] * 1000)
        return {"id": post["id"], **post["body"], "createdAt": moment, "publishedAt": moment, "lastModifiedAt": moment}


def visible(text: str) -> str:
    """What people see of little text: it ends before the first reserved sign that is neither escaped nor part of a mark."""
    shown, end = "", 0
    for found in MARK.finditer(text):
        shown += text[end:found.start()]
        name, _, word, sign, reserved = found.groups()
        if reserved:
            return shown
        shown += visible(name) if name else f"#{word}" if word else sign or "#"
        end = found.end()
    return shown + text[end:]


if __name__ == "__main__":
    run(LinkedInServer)
