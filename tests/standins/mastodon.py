"""Mastodon: one instance of version 4.5, https://docs.joinmastodon.org/api/; English error texts of its server code."""

import base64
import hashlib
import html
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode, urlsplit

import regex

from tests.standins.server import Answer, Network, Part, parse_json, parse_multipart, route, run, sniff

SCOPES = "read:accounts read:statuses write:statuses write:media"
MAX_CHARACTERS, MAX_MEDIA, URL_CHARACTERS = 500, 4, 23
DESCRIPTION_CHARACTERS = 1500
MIN_EXPIRATION, MAX_EXPIRATION, MAX_OPTIONS, OPTION_CHARACTERS = 300, 2629746, 4, 50  # seconds, seconds
IMAGE_BYTES, VIDEO_BYTES, PROXY_BYTES = 16777216, 103809024, 104857600
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/heic", "image/heif", "image/webp", "image/avif")
VIDEO_TYPES = ("video/webm", "video/mp4", "video/quicktime", "video/ogg")
AUDIO_TYPES = ("audio/wav", "audio/ogg", "audio/mpeg", "audio/mp3", "audio/webm", "audio/flac", "audio/aac", "audio/mp4")
RATES = {
    "account": (1500, 300), "token": (300, 300), "anonymous": (300, 300), "media": (30, 1800), "statuses": (300, 10800),
}
IDEMPOTENCY_SECONDS, SCHEDULE_SECONDS, CODE_SECONDS = 3600, 300, 600
VISIBILITIES = ("public", "unlisted", "private", "direct")
KNOWN_SCOPES = re.compile(r"(admin:)?(read|write)(:\w+)*|follow|push|profile")
LANGUAGES = set(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no "
    "nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sn so sq sr ss st su sv sw ta te tg "
    "th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu".split()
)
URL = re.compile(r"https?://[^\s/?#]+\.[^\s/?#]*[^\s<>\"]*[^\s<>\".,;:!?')\]]")
MENTION = re.compile(r"(?<![\w/])@(\w+(?:[\w.-]*\w)?)(?:@\w[\w.-]*\w)?")
ACCOUNT_STATES = {
    "disabled": "Your login is currently disabled",
    "unconfirmed": "Your login is missing a confirmed e-mail address",
    "pending": "Your login is currently pending approval",
}
POST, UPLOAD, READ_MEDIA = "POST /api/v1/statuses", "POST /api/v2/media", "GET /api/v1/media/:id"
ERRORS = {
    name: {"endpoint": endpoint, "status": status, "body": {"error": text}}
    for name, (endpoint, status, text) in {
        "invalid_token": (POST, 401, "The access token is invalid"),
        "revoked_token": (POST, 401, "The access token was revoked"),
        "expired_token": (POST, 401, "The access token expired"),
        "scope_missing": (POST, 403, "This action is outside the authorized scopes"),
        "disabled": (POST, 403, ACCOUNT_STATES["disabled"]),
        "unconfirmed": (POST, 403, ACCOUNT_STATES["unconfirmed"]),
        "pending": (POST, 403, ACCOUNT_STATES["pending"]),
        "not_allowed": (POST, 403, "This action is not allowed"),
        "reply_not_found": (POST, 404, "The post you are trying to reply to does not appear to exist."),
        "media_gone": (POST, 422, "Media 22 not found or already attached to another post"),
        "media_not_ready": (POST, 422, "Cannot attach files that have not finished processing. Try again in a moment!"),
        "too_long": (POST, 422, "Validation failed: Text character limit of 500 exceeded"),
        "app_token": (POST, 422, "This method requires an authenticated user"),
        "bad_file": (UPLOAD, 422, "Validation failed: File content type is invalid"),
        "processing_failed": (READ_MEDIA, 422, "Error processing thumbnail for uploaded media"),
        "media_error": (UPLOAD, 500, "Error processing thumbnail for uploaded media"),
        "busy": (POST, 503, "There was a temporary problem serving your request, please try again"),
    }.items()
} | {
    "too_large": {"endpoint": UPLOAD, "status": 413, "body": "<html><h1>413 Request Entity Too Large</h1></html>"},
    "rate_limited": {"endpoint": POST, "status": 429, "body": {"error": "Too many requests"}, "headers": {
        "X-RateLimit-Limit": "300", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2099-01-01T00:00:00.123456Z"}},
    "bad_gateway": {"endpoint": POST, "status": 502, "body": "<html>502 Bad Gateway</html>"},
    "gateway_timeout": {"endpoint": POST, "status": 504, "body": "<html>504 Gateway Time-out</html>"},
    "gone": {"endpoint": "*", "status": 410, "body": ""},
}


class Refusal(Answer):
    """{"error": text}, with error_description for OAuth."""

    def __init__(self, status: int, error: str, description: str | None = None):
        super().__init__(status, {"error": error} | ({"error_description": description} if description else {}))


def invalid(*problems: str) -> Refusal:
    """The 422 of failed validations."""
    return Refusal(422, f"Validation failed: {', '.join(problems)}")


def length(text: str, spoiler: str = "") -> int:
    """Characters as the instance counts them: graphemes, a URL as 23, a mention without its domain; a warning in full."""
    text = MENTION.sub(r"@\1", URL.sub("x" * URL_CHARACTERS, text))
    return len(regex.findall(r"\X", spoiler + text))


@dataclass
class Account:
    """One local account. state: None or a key of ACCOUNT_STATES."""

    id: str
    username: str
    display_name: str = ""
    silenced: bool = False
    language: str = "en"
    privacy: str = "public"
    state: str | None = None


@dataclass
class Token:
    """An access token; account None is an app's own token. state: valid, revoked or expired."""

    account: Account | None
    scopes: set
    state: str = "valid"


@dataclass
class Media:
    """One upload; polls counts the answers left until it is processed."""

    id: str
    account: Account
    kind: str
    part: Part
    description: str | None
    focus: tuple | None
    polls: int
    attached: bool = False


@dataclass
class App:
    """A registered client."""

    id: str
    secret: str = field(repr=False)
    redirect_uris: list
    scopes: set


def api(method: str, path: str, *scopes: str, user: bool = True):
    """Mark a handler(self, request, account). The token needs one of the scopes or a parent; user=False: it may be absent."""
    return route(method, path, scopes={*scopes, *(scope.split(":")[0] for scope in scopes)}, user=user)


class MastodonServer(Network):
    """The instance. posts are its statuses in order, as their author sees them, with `text` and `idempotency_key` beside.

    characters is the limit of a status; processing_polls is how often a video, audio or moving GIF is found unfinished.
    consenting is the id of the account that says yes at /oauth/authorize: the last one added; None: the person says no.
    """

    errors = ERRORS

    def __init__(self, port=0, characters=MAX_CHARACTERS, processing_polls=2):
        super().__init__(port)
        self.characters, self.processing_polls, self.consenting = characters, processing_polls, ""
        self.rates = dict(RATES)
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}
        self.media: dict[str, Media] = {}
        self.apps: dict[str, App] = {}
        self._codes, self._replays, self._last_id = {}, {}, 0

    def add_user(self, username, token=None, *, scopes=SCOPES, **details) -> str:
        """Create an account with an access token ("token-<username>" unless given); details as in Account. Returns its id."""
        account = Account(self._id(), username, **details)
        self.accounts[account.id], self.consenting = account, account.id
        self.tokens[token or f"token-{username}"] = Token(account, set(scopes.split()))
        return account.id

    def accept(self, request, options):
        if (request.length or 0) > PROXY_BYTES:
            raise Answer(413, ERRORS["too_large"]["body"])

    def call(self, request, options, handler):
        token = self._token(request)
        if request.path.startswith("/api/"):
            self._throttle(request, token)
        if "scopes" not in options:
            return handler(self, request)
        return handler(self, request, self._authorize(token, options))

    def no_route(self, request, methods):
        return Refusal(404, "Not Found")

    # instance and account

    @route("GET", "/api/v2/instance")
    def instance(self, request):
        """Limits and version."""
        return {
            "domain": self.url.removeprefix("http://"), "title": "Stand-in", "version": "4.5.2", "description": "", "icon": [],
            "api_versions": {"mastodon": 7}, "source_url": "https://github.com/mastodon/mastodon", "languages": ["en"],
            "rules": [], "usage": {"users": {"active_month": 1}}, "thumbnail": {"url": f"{self.url}/thumbnail.png"},
            "registrations": {"enabled": False, "approval_required": False, "message": None},
            "contact": {"email": "admin@example.com", "account": None},
            "configuration": {**self._limits(), "urls": {"streaming": None}, "translation": {"enabled": False},
                              "accounts": {"max_featured_tags": 10, "max_pinned_statuses": 5}},
        }

    @route("GET", "/api/v1/instance")
    def old_instance(self, request):
        """The same for old clients."""
        return {
            "uri": self.url.removeprefix("http://"), "title": "Stand-in", "version": "4.5.2", "description": "",
            "short_description": "", "email": "admin@example.com", "languages": ["en"], "rules": [], "registrations": False,
            "approval_required": False, "invites_enabled": False, "urls": {"streaming_api": "wss://stream.example.com"},
            "stats": {"user_count": len(self.accounts), "status_count": len(self.posts), "domain_count": 0},
            "configuration": {**self._limits(), "accounts": {"max_featured_tags": 10}},
        }

    @api("GET", "/api/v1/accounts/verify_credentials", "read:accounts", "profile")
    def verify_credentials(self, request, account):
        """The token's account with its defaults."""
        return self._account(account) | {
            "role": {"id": "-99", "name": "", "permissions": "0", "color": "", "highlighted": False},
            "source": {"privacy": account.privacy, "sensitive": False, "language": account.language, "note": "", "fields": [],
                       "follow_requests_count": 0, "indexable": False, "quote_policy": "public"},
        }

    @api("GET", "/api/v1/accounts/:id/statuses", "read:statuses", user=False)
    def account_statuses(self, request, viewer):
        """Newest first; 20 unless `limit` says so, at most 40."""
        account, given = self.accounts.get(request.args["id"]), dict(request.query)
        if account is None:
            raise Refusal(404, "Record not found")
        low, high = _int(given.get("since_id") or given.get("min_id")), _int(given.get("max_id")) or 2**64
        found = [post for post in reversed(self.posts) if post["account"]["id"] == account.id and self._visible(post, viewer)
                 and low < int(post["id"]) < high and not (_true(given.get("only_media")) and not post["media_attachments"])
                 and not (_true(given.get("exclude_replies")) and post["in_reply_to_account_id"] not in (None, account.id))]
        limit = min(abs(_int(given.get("limit") or 20)), 40)
        return [] if _true(given.get("pinned")) else [_entity(post) for post in found[:limit]]

    # statuses

    @api("POST", "/api/v1/statuses", "write:statuses")
    def create_status(self, request, account):
        """Publish. A known Idempotency-Key gives the first status again, before anything but the reply is looked at."""
        given, key = self._params(request), request.headers.get("Idempotency-Key")
        reply = self._related(given, "in_reply_to_id", "reply to", account)
        quoted = self._related(given, "quoted_status_id", "quote", account)
        self._show_rate(request, self.take("statuses", account.id, points=0))
        replay = self._replays.get((account.id, key))
        if key and replay and replay["end"] > self.now():
            return _entity(replay["post"])
        media = self._attachable(given, account)
        post = self._draft(given, account, media, reply, quoted)
        if due := _future(given, self.now()):
            return self._scheduled(due, post)
        window = self.take("statuses", account.id)
        self._show_rate(request, window)
        if window.exceeded:
            raise Refusal(429, "Too many requests")
        for one in media:
            one.attached = True
        self.posts.append(post | {"idempotency_key": key, "time": self.now()})
        if key:
            self._replays[account.id, key] = {"post": self.posts[-1], "end": self.now() + IDEMPOTENCY_SECONDS}
        return _entity(post)

    @api("GET", "/api/v1/statuses/:id", "read:statuses", user=False)
    def status(self, request, viewer):
        """One status the viewer may see."""
        return _entity(self._post(request.args["id"], viewer))

    @api("GET", "/api/v1/statuses/:id/source", "read:statuses")
    def source(self, request, viewer):
        """The text as it was written."""
        post = self._post(request.args["id"], viewer)
        return {key: post[key] for key in ("id", "text", "spoiler_text")}

    # media

    @api("POST", "/api/v2/media", "write:media")
    def upload(self, request, account):
        """Take a file: 200 when it is ready, 202 when it must be processed first."""
        given = self._params(request)
        file, thumbnail, description = given.get("file"), given.get("thumbnail"), _text(given, "description")
        if not isinstance(file, Part):
            raise invalid("File can't be blank")
        kind = _kind_of(file)
        if isinstance(thumbnail, Part) and kind in ("image", "gifv"):
            raise invalid("Thumbnail must be blank")
        if len(description) > DESCRIPTION_CHARACTERS:
            raise invalid(f"Description is too long (maximum is {DESCRIPTION_CHARACTERS} characters)")
        focus = re.fullmatch(r"(-?[\d.]+),(-?[\d.]+)", _text(given, "focus"))
        media = Media(self._id(), account, kind, file, description or None, focus and tuple(map(float, focus.groups())),
                      0 if kind == "image" else self.processing_polls)
        self.media[media.id] = media
        return Answer(202 if media.polls else 200, self._attachment(media))

    @api("GET", "/api/v1/media/:id", "write:media")
    def read_media(self, request, account):
        """206 while it is processed, 200 then; attached media cannot be read any more."""
        media = self.media.get(request.args["id"])
        if media is None or media.account is not account or media.attached:
            raise Refusal(404, "Record not found")
        answer = Answer(206 if media.polls else 200, self._attachment(media))
        media.polls = max(0, media.polls - 1)
        return answer

    # OAuth

    @route("GET", "/.well-known/oauth-authorization-server")
    def metadata(self, request):
        """Where OAuth lives and what it can."""
        return {
            "issuer": f"{self.url}/", "authorization_endpoint": f"{self.url}/oauth/authorize",
            "token_endpoint": f"{self.url}/oauth/token", "revocation_endpoint": f"{self.url}/oauth/revoke",
            "app_registration_endpoint": f"{self.url}/api/v1/apps",
            "scopes_supported": ["read", "write", "profile", *SCOPES.split()],
            "response_types_supported": ["code"], "grant_types_supported": ["authorization_code", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
        }

    @route("POST", "/api/v1/apps")
    def create_app(self, request):
        """Register a client."""
        given = self._params(request)
        uris = given.get("redirect_uris")
        uris = uris if isinstance(uris, list) else _text(given, "redirect_uris").split()
        scopes = (_text(given, "scopes") or "read").split()
        if not _text(given, "client_name").strip():
            raise invalid("Application name can't be blank")
        if not uris:
            raise invalid("Redirect URI can't be blank")
        if any(not urlsplit(str(uri)).scheme for uri in uris):
            raise invalid("Redirect URI must be an absolute URI.")
        if not all(KNOWN_SCOPES.fullmatch(scope) for scope in scopes):
            raise invalid("Scopes doesn't match configured on the server.")
        app = App(secrets.token_urlsafe(32), secrets.token_urlsafe(32), uris, set(scopes))
        self.apps[app.id] = app
        return {"id": str(len(self.apps)), "name": given["client_name"], "website": _text(given, "website") or None,
                "client_id": app.id, "client_secret": app.secret, "client_secret_expires_at": 0, "scopes": scopes,
                "redirect_uri": "\n".join(uris), "redirect_uris": uris, "vapid_key": ""}

    @route("GET", "/oauth/authorize")
    def authorize(self, request):
        """The consent page, with the consent given at once: a redirect with a code."""
        given = dict(request.query)
        app, scopes = self.apps.get(given.get("client_id")), set(given.get("scope", "read").split())
        if app is None or given.get("redirect_uri") not in app.redirect_uris:
            raise Answer(400, "<html>The redirect URI included is not valid.</html>")
        problem = ("access_denied" if self.consenting is None else
                   "unsupported_response_type" if given.get("response_type") != "code" else
                   "invalid_scope" if not scopes <= app.scopes else
                   "invalid_code_challenge_method" if given.get("code_challenge_method", "S256") != "S256" else None)
        back = {"error": problem} if problem else {"code": secrets.token_urlsafe(16)}
        if not problem:
            self._codes[back["code"]] = {
                "app": app, "redirect_uri": given["redirect_uri"], "challenge": given.get("code_challenge"), "scopes": scopes,
                "account": self.accounts[self.consenting], "end": self.now() + CODE_SECONDS}
        state = {"state": given["state"]} if "state" in given else {}
        return Answer(302, "", {"Location": f"{given['redirect_uri']}?{urlencode(back | state)}"})

    @route("POST", "/oauth/token")
    def issue_token(self, request):
        """Trade a code, once, or the client's own secret for a token that does not expire."""
        given = self._params(request)
        app = self._client(given)
        match _text(given, "grant_type"):
            case "client_credentials":
                account, scopes = None, set((_text(given, "scope") or "read").split())
                if not scopes <= app.scopes:
                    raise Refusal(400, "invalid_scope", "The requested scope is invalid, unknown, or malformed.")
            case "authorization_code":
                account, scopes = self._redeem(app, given)
            case _:
                raise Refusal(400, "unsupported_grant_type",
                              "The authorization grant type is not supported by the authorization server.")
        token = secrets.token_urlsafe(32)
        self.tokens[token] = Token(account, scopes)
        return {"access_token": token, "token_type": "Bearer", "scope": " ".join(sorted(scopes)), "created_at": int(self.now())}

    @route("POST", "/oauth/revoke")
    def revoke(self, request):
        """End a token."""
        given = self._params(request)
        app = self.apps.get(_text(given, "client_id"))
        if app is None or app.secret != _text(given, "client_secret"):
            raise Refusal(403, "unauthorized_client", "You are not authorized to revoke this token")
        if token := self.tokens.get(_text(given, "token")):
            token.state = "revoked"
        return {}

    # private

    def _id(self):
        self._last_id = max(self._last_id + 1, int(self.now() * 1000) << 16)
        return str(self._last_id)

    def _token(self, request):
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        token = self.tokens.get(value) if scheme.lower() == "bearer" else None
        return token or Token(None, set(), "invalid")

    def _throttle(self, request, token):
        windows = [self.take("anonymous", "loopback", aligned=True)]
        if token and token.state == "valid":
            owner = token.account.id if token.account else "app"
            windows = [self.take("account", owner, aligned=True), self.take("token", id(token), aligned=True)]
            if request.endpoint == UPLOAD:
                windows.append(self.take("media", owner, aligned=True))
        tightest = min(windows, key=lambda window: (not window.exceeded, window.remaining))
        self._show_rate(request, tightest)
        if tightest.exceeded:
            raise Refusal(429, "Too many requests")

    def _show_rate(self, request, window):
        if window.remaining <= int(request.reply_headers.get("X-RateLimit-Remaining", window.remaining)):
            reset = datetime.fromtimestamp(window.reset, UTC).isoformat(timespec="microseconds")
            request.reply_headers |= {"X-RateLimit-Limit": str(window.limit), "X-RateLimit-Remaining": str(window.remaining),
                                      "X-RateLimit-Reset": reset.replace("+00:00", "Z")}

    def _authorize(self, token, options):
        if token is None and not options["user"]:
            return None
        state = token.state if token else "invalid"
        if state != "valid":
            text = {"invalid": "is invalid", "revoked": "was revoked", "expired": "expired"}[state]
            raise Refusal(401, f"The access token {text}")
        if not token.scopes & options["scopes"]:
            raise Refusal(403, "This action is outside the authorized scopes")
        if options["user"] and token.account is None:
            raise Refusal(422, "This method requires an authenticated user")
        if options["user"] and token.account.state:
            raise Refusal(403, ACCOUNT_STATES[token.account.state])
        return token.account

    def _params(self, request):
        try:
            match request.media_type:
                case "application/json":
                    given = parse_json(request.body) if request.body else {}
                    return given if isinstance(given, dict) else {}
                case "multipart/form-data":
                    parts = parse_multipart(request.headers["Content-Type"], request.body)
                    return _nested((part.name, part if part.filename else part.data.decode()) for part in parts)
                case "application/x-www-form-urlencoded":
                    return _nested(parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=bool(request.body)))
        except ValueError:
            raise Answer(400, {"status": 400, "error": "Bad Request"}) from None
        return {}

    def _visible(self, post, viewer):
        return post["visibility"] in ("public", "unlisted") or (viewer and viewer.id == post["account"]["id"])

    def _post(self, status_id, viewer):
        post = next((post for post in self.posts if post["id"] == status_id), None)
        if post is None or not self._visible(post, viewer):
            raise Refusal(404, "Record not found")
        return post

    def _related(self, given, name, doing, viewer):
        if not _text(given, name).strip():
            return None
        try:
            return self._post(_text(given, name), viewer)
        except Refusal:
            raise Refusal(404, f"The post you are trying to {doing} does not appear to exist.") from None

    def _attachable(self, given, account):
        ids = given.get("media_ids")
        if not isinstance(ids, list) or not ids:
            return []
        if len(ids) > MAX_MEDIA or given.get("poll"):
            raise Refusal(422, f"Cannot attach more than {MAX_MEDIA} files")
        ids = list(dict.fromkeys(map(str, ids)))
        media = [self.media.get(one) for one in ids]
        lost = [one for one, found in zip(ids, media) if not found or found.account is not account or found.attached]
        if lost:
            raise Refusal(422, f"Media {', '.join(lost)} not found or already attached to another post")
        if len(media) > 1 and any(one.kind in ("video", "audio") for one in media):
            raise Refusal(422, "Cannot attach a video to a post that already contains images")
        if any(one.polls for one in media):
            for one in media:
                one.polls = max(0, one.polls - 1)
            raise Refusal(422, "Cannot attach files that have not finished processing. Try again in a moment!")
        return media

    def _draft(self, given, account, media, reply, quoted):
        text, spoiler = _text(given, "status"), _text(given, "spoiler_text")
        if not text.strip() and spoiler.strip() and not quoted:
            text, spoiler = spoiler, ""
        visibility = _text(given, "visibility") or account.privacy
        poll = given.get("poll") if isinstance(given.get("poll"), dict) else {}
        problems = ["Text can't be blank"] if not text.strip() and not media and not quoted else []
        if length(text, spoiler) > self.characters:
            problems.append(f"Text character limit of {self.characters} exceeded")
        if visibility not in VISIBILITIES:
            problems.append("Visibility is not included in the list")
        problems += _poll_problems(poll) if poll else []
        if problems:
            raise invalid(*problems)
        visibility = "unlisted" if visibility == "public" and account.silenced else visibility
        return self._status(account, text, spoiler, visibility, reply) | {
            "sensitive": _true(given.get("sensitive")) or bool(_text(given, "spoiler_text").strip()),
            "language": _language(_text(given, "language")) or account.language,
            "media_attachments": [self._attachment(one) for one in media],
            "poll": self._poll(poll) if poll else None,
            "quote": {"state": "accepted", "quoted_status": _entity(quoted)} if quoted else None,
        }

    def _status(self, account, text, spoiler, visibility, reply):
        status_id = self._id()
        return {
            "id": status_id, "created_at": _time(self.now()), "visibility": visibility, "spoiler_text": spoiler, "text": text,
            "url": f"{self.url}/@{account.username}/{status_id}",
            "uri": f"{self.url}/users/{account.username}/statuses/{status_id}",
            "content": f"<p>{html.escape(text, quote=False)}</p>" if text else "", "account": self._account(account),
            "in_reply_to_id": reply and reply["id"], "in_reply_to_account_id": reply and reply["account"]["id"],
            "reblog": None, "card": None, "edited_at": None, "application": None, "emojis": [], "mentions": [], "tags": [],
            "favourites_count": 0, "reblogs_count": 0, "replies_count": 0, "quotes_count": 0,
        }

    def _poll(self, poll):
        return {"id": self._id(), "expires_at": _time(self.now() + _int(poll["expires_in"])), "expired": False,
                "multiple": _true(poll.get("multiple")), "votes_count": 0, "voters_count": 0, "emojis": [], "voted": True,
                "own_votes": [], "options": [{"title": option, "votes_count": 0} for option in _options(poll)]}

    def _scheduled(self, due, post):
        if due < self.now() + SCHEDULE_SECONDS:
            raise invalid("Scheduled at date must be in the future")
        return {"id": self._id(), "scheduled_at": _time(due), "media_attachments": post["media_attachments"],
                "params": {"text": post["text"], "visibility": post["visibility"], "application_id": 1,
                           "with_rate_limit": False}}

    def _attachment(self, media):
        url = f"{self.url}/media/{media.id}"
        focus = {"focus": dict(zip("xy", media.focus))} if media.focus else {}
        return {"id": media.id, "type": media.kind, "url": None if media.polls else url, "preview_url": f"{url}/small",
                "remote_url": None, "meta": focus, "description": media.description, "blurhash": None}

    def _account(self, account):
        url, picture = f"{self.url}/@{account.username}", f"{self.url}/avatar.png"
        return {
            "id": account.id, "username": account.username, "acct": account.username, "display_name": account.display_name,
            "url": url, "uri": f"{self.url}/users/{account.username}", "avatar": picture, "avatar_static": picture,
            "header": picture, "header_static": picture, "note": "", "locked": False, "bot": False, "group": False,
            "discoverable": None, "indexable": False, "emojis": [], "fields": [], "created_at": "2026-01-01T00:00:00.000Z",
            "followers_count": 0, "following_count": 0, "last_status_at": None,
            "statuses_count": sum(post["account"]["id"] == account.id for post in self.posts),
        }

    def _limits(self):
        return {
            "statuses": {"max_characters": self.characters, "max_media_attachments": MAX_MEDIA,
                         "characters_reserved_per_url": URL_CHARACTERS},
            "media_attachments": {
                "supported_mime_types": [*IMAGE_TYPES, *VIDEO_TYPES, *AUDIO_TYPES], "description_limit": DESCRIPTION_CHARACTERS,
                "image_size_limit": IMAGE_BYTES, "image_matrix_limit": 33177600, "video_size_limit": VIDEO_BYTES,
                "video_frame_rate_limit": 120, "video_matrix_limit": 8294400},
            "polls": {"max_options": MAX_OPTIONS, "max_characters_per_option": OPTION_CHARACTERS,
                      "min_expiration": MIN_EXPIRATION, "max_expiration": MAX_EXPIRATION},
        }

    def _client(self, given):
        app = self.apps.get(_text(given, "client_id"))
        if app is None or app.secret != _text(given, "client_secret"):
            raise Refusal(401, "invalid_client", "Client authentication failed due to unknown client, "
                                                 "no client authentication included, or unsupported authentication method.")
        return app

    def _redeem(self, app, given):
        code = self._codes.pop(_text(given, "code"), None)
        proof = _base64(hashlib.sha256(_text(given, "code_verifier").encode()).digest())
        if (code is None or code["app"] is not app or code["end"] <= self.now() or code["challenge"] not in (None, proof)
                or code["redirect_uri"] != _text(given, "redirect_uri")):
            raise Refusal(400, "invalid_grant",
                          "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI "
                          "used in the authorization request, or was issued to another client.")
        return code["account"], code["scopes"]


def _time(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _base64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _entity(post):
    return {key: value for key, value in post.items() if key not in ("text", "idempotency_key", "time")}


def _nested(pairs):
    """Rails names: a, a[], a[b], a[b][]."""
    tree = {}
    for name, value in pairs:
        first, *inner = re.findall(r"[^\[\]]+|\[\]", name)
        place = tree
        for key, following in zip([first, *inner], inner):
            place = place.setdefault(key, [] if following == "[]" else {})
        if inner and inner[-1] == "[]":
            place.append(value)
        else:
            place[([first, *inner])[-1]] = value
    return tree


def _text(given, name):
    """A permitted scalar as text; objects and lists are dropped, as strong parameters do."""
    value = given.get(name)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _true(value):
    return value not in (None, "", False, 0, "0", "f", "F", "false", "FALSE", "off", "OFF")


def _int(value):
    """Ruby's to_i."""
    found = re.match(r"\s*(-?\d+)", str(value))
    return int(found[1]) if found else 0


def _language(code):
    return next((tag for tag in (code, re.split("[_-]", code)[0]) if tag in LANGUAGES), None)


def _future(given, now):
    text = _text(given, "scheduled_at")
    try:
        due = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise Refusal(422, "Record invalid") from None
    seconds = due and (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds and seconds > now else None


def _options(poll):
    options = poll.get("options")
    return [str(option).strip() for option in options if str(option).strip()] if isinstance(options, list) else []


def _poll_problems(poll):
    options, seconds = _options(poll), _int(poll.get("expires_in")) if _text(poll, "expires_in") else None
    rules = {
        "options can't be blank": not options,
        "options must have more than one item": len(options) < 2,
        f"options can't contain more than {MAX_OPTIONS} items": len(options) > MAX_OPTIONS,
        f"options cannot be longer than {OPTION_CHARACTERS} characters each":
            any(len(regex.findall(r"\X", option)) > OPTION_CHARACTERS for option in options),
        "options contain duplicate items": len(set(options)) < len(options),
        "expires at can't be blank": seconds is None,
        "expires at is too far into the future": seconds is None or seconds > MAX_EXPIRATION,
        "expires at is too soon": seconds is not None and seconds < MIN_EXPIRATION,
    }
    return [f"Poll {problem}" for problem, broken in rules.items() if broken]


def _kind_of(file):
    """image, gifv, video or audio. Raises what the instance says to a file it does not take."""
    declared, found = file.media_type, sniff(file.data)
    if declared not in (*IMAGE_TYPES, *VIDEO_TYPES, *AUDIO_TYPES):
        raise invalid("File content type is invalid")
    if found is None:
        raise Refusal(422, "File type of uploaded media could not be verified")
    if (declared in IMAGE_TYPES) != (found in IMAGE_TYPES):
        raise invalid("File has contents that are not what they are reported to be")
    if len(file.data) >= (limit := IMAGE_BYTES if declared in IMAGE_TYPES else VIDEO_BYTES):
        raise invalid(f"File file size must be less than {limit >> 20} MB")
    if found == "image/gif" and file.data.count(b"\x21\xf9\x04") > 1:
        return "gifv"
    return "image" if declared in IMAGE_TYPES else "video" if declared in VIDEO_TYPES else "audio"


if __name__ == "__main__":
    run(MastodonServer)
