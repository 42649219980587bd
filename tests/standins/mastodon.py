"""Mastodon: one instance of version 4.5, https://docs.joinmastodon.org/api/; English error texts of its server code."""

import html
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from tests.standins.mastodon_login import SCOPES, Logins, Token
from tests.standins.mastodon_rules import (ACCOUNT_STATES, AUDIO_TYPES, DESCRIPTION_CHARACTERS, ERRORS, IMAGE_BYTES,
                                           IMAGE_TYPES, MAX_CHARACTERS, MAX_EXPIRATION, MAX_MEDIA, MAX_OPTIONS,
                                           MIN_EXPIRATION, OPTION_CHARACTERS, PROXY_BYTES, QUOTE_POLICIES, STATUS_PARAMETERS,
                                           UPLOAD, URL_CHARACTERS, VIDEO_BYTES, VIDEO_TYPES, VISIBILITIES, Refusal, integer,
                                           invalid, kind_of, known_language, length, nested, poll_options, poll_problems,
                                           scalar, scheduled_time, stamp, truth)
from tests.standins.server import Answer, Network, Part, parse_json, parse_multipart, route, run

RATES = {
    "account": (1500, 300), "token": (300, 300), "anonymous": (300, 300), "media": (30, 1800), "statuses": (300, 10800),
}
IDEMPOTENCY_SECONDS, SCHEDULE_SECONDS = 3600, 300


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
class Media:
    """One upload; polls counts the answers left until it is processed."""

    id: str
    account: Account
    kind: str
    part: Part
    description: str | None
    focus: tuple | None
    polls: int
    thumbnail: Part | None = None
    attached: bool = False


def api(method: str, path: str, *scopes: str, user: bool = True):
    """Mark a handler(self, request, account). The token needs one of the scopes or a parent; user=False: it may be absent."""
    return route(method, path, scopes={*scopes, *(scope.split(":")[0] for scope in scopes)}, user=user)


class MastodonServer(Logins, Network):
    """The instance. posts are its statuses in order, as their author sees them, with `text` and `idempotency_key` beside.

    characters is the limit of a status; processing_polls is how often a video, audio or moving GIF is found unfinished.
    api_version is what it says of itself: 7 knows quotes. Whoever was added last is consenting.
    """

    errors = ERRORS

    def __init__(self, port=0, characters=MAX_CHARACTERS, processing_polls=2):
        super().__init__(port)
        self.characters, self.processing_polls, self.api_version = characters, processing_polls, 7
        self.rates = dict(RATES)
        self.accounts: dict[str, Account] = {}
        self.media: dict[str, Media] = {}
        self._replays, self._last_id = {}, 0

    def add_user(self, username, token=None, *, scopes=SCOPES, **details) -> str:
        """Create an account with an access token ("token-<username>" unless given); details as in Account. Returns its id."""
        account = Account(self._id(), username, **details)
        self.accounts[account.id], self.consenting = account, account.id
        self.tokens[token or f"token-{username}"] = Token(account, set(scopes.split()))
        return account.id

    def add_status(self, account_id, text) -> dict:
        """A status that was written elsewhere."""
        draft = self._draft({"status": text}, self.accounts[account_id], [], None, None)
        self.posts.append(draft | {"idempotency_key": None, "time": self.now()})
        return self.posts[-1]

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
            "api_versions": {"mastodon": self.api_version}, "source_url": "https://github.com/mastodon/mastodon",
            "languages": ["en"], "rules": [], "usage": {"users": {"active_month": 1}},
            "thumbnail": {"url": f"{self.url}/thumbnail.png"}, "contact": {"email": "admin@example.com", "account": None},
            "registrations": {"enabled": False, "approval_required": False, "message": None},
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
        low, high = integer(given.get("since_id") or given.get("min_id")), integer(given.get("max_id")) or 2**64
        found = [post for post in reversed(self.posts) if post["account"]["id"] == account.id and self._visible(post, viewer)
                 and low < int(post["id"]) < high and not (truth(given.get("only_media")) and not post["media_attachments"])
                 and not (truth(given.get("exclude_replies")) and post["in_reply_to_account_id"] not in (None, account.id))]
        limit = min(abs(integer(given.get("limit") or 20)), 40)
        return [] if truth(given.get("pinned")) else [_entity(post) for post in found[:limit]]

    # statuses

    @api("POST", "/api/v1/statuses", "write:statuses")
    def create_status(self, request, account):
        """Publish. A known Idempotency-Key gives the first status again, before anything but the reply is looked at."""
        given, key = self._params(request), request.headers.get("Idempotency-Key")
        if unknown := given.keys() - STATUS_PARAMETERS:
            raise Refusal(422, f"No such parameters, which a real instance drops without a word: {', '.join(sorted(unknown))}")
        reply = self._related(given, "in_reply_to_id", "reply to", account)
        quoted = self._related(given, "quoted_status_id", "quote", account)
        self._show_rate(request, self.take("statuses", account.id, points=0))
        replay = self._replays.get((account.id, key))
        if key and replay and replay["end"] > self.now():
            return _entity(replay["post"])
        media = self._attachable(given, account)
        post = self._draft(given, account, media, reply, quoted)
        if due := scheduled_time(given, self.now()):
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
        file, thumbnail, description = given.get("file"), given.get("thumbnail"), scalar(given, "description")
        if not isinstance(file, Part):
            raise invalid("File can't be blank")
        kind = kind_of(file)
        if isinstance(thumbnail, Part) and kind in ("image", "gifv"):
            raise invalid("Thumbnail must be blank")
        if len(description) > DESCRIPTION_CHARACTERS:
            raise invalid(f"Description is too long (maximum is {DESCRIPTION_CHARACTERS} characters)")
        focus = re.fullmatch(r"(-?[\d.]+),(-?[\d.]+)", scalar(given, "focus"))
        media = Media(self._id(), account, kind, file, description or None, focus and tuple(map(float, focus.groups())),
                      0 if kind == "image" else self.processing_polls, thumbnail)
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
                    return nested((part.name, part if part.filename else part.data.decode()) for part in parts)
                case "application/x-www-form-urlencoded":
                    return nested(parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=bool(request.body)))
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
        if not scalar(given, name).strip():
            return None
        try:
            return self._post(scalar(given, name), viewer)
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
        text, spoiler = scalar(given, "status"), scalar(given, "spoiler_text")
        if not text.strip() and spoiler.strip() and not quoted:
            text, spoiler = spoiler, ""
        visibility = scalar(given, "visibility") or account.privacy
        poll = given.get("poll") if isinstance(given.get("poll"), dict) else {}
        problems = ["Text can't be blank"] if not text.strip() and not media and not quoted else []
        if length(text, spoiler) > self.characters:
            problems.append(f"Text character limit of {self.characters} exceeded")
        if visibility not in VISIBILITIES:
            problems.append("Visibility is not included in the list")
        if scalar(given, "quote_approval_policy") not in ("", *QUOTE_POLICIES):
            problems.append("Quote approval policy is not included in the list")
        problems += poll_problems(poll) if poll else []
        if problems:
            raise invalid(*problems)
        visibility = "unlisted" if visibility == "public" and account.silenced else visibility
        return self._status(account, text, spoiler, visibility, reply) | {
            "sensitive": truth(given.get("sensitive")) or bool(scalar(given, "spoiler_text").strip()),
            "language": known_language(scalar(given, "language")) or account.language,
            "media_attachments": [self._attachment(one) for one in media],
            "poll": self._poll(poll) if poll else None,
            "quote": {"state": "accepted", "quoted_status": _entity(quoted)} if quoted else None,
        }

    def _status(self, account, text, spoiler, visibility, reply):
        status_id = self._id()
        return {
            "id": status_id, "created_at": stamp(self.now()), "visibility": visibility, "spoiler_text": spoiler, "text": text,
            "url": f"{self.url}/@{account.username}/{status_id}",
            "uri": f"{self.url}/users/{account.username}/statuses/{status_id}",
            "content": f"<p>{html.escape(text, quote=False)}</p>" if text else "", "account": self._account(account),
            "in_reply_to_id": reply and reply["id"], "in_reply_to_account_id": reply and reply["account"]["id"],
            "reblog": None, "card": None, "edited_at": None, "application": None, "emojis": [], "mentions": [], "tags": [],
            "favourites_count": 0, "reblogs_count": 0, "replies_count": 0, "quotes_count": 0,
        }

    def _poll(self, poll):
        return {"id": self._id(), "expires_at": stamp(self.now() + integer(poll["expires_in"])), "expired": False,
                "multiple": truth(poll.get("multiple")), "votes_count": 0, "voters_count": 0, "emojis": [], "voted": True,
                "own_votes": [], "options": [{"title": option, "votes_count": 0} for option in poll_options(poll)]}

    def _scheduled(self, due, post):
        if due < self.now() + SCHEDULE_SECONDS:
            raise invalid("Scheduled at date must be in the future")
        return {"id": self._id(), "scheduled_at": stamp(due), "media_attachments": post["media_attachments"],
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

def _entity(post):
    return {key: value for key, value in post.items() if key not in ("text", "idempotency_key", "time")}


if __name__ == "__main__":
    run(MastodonServer)
