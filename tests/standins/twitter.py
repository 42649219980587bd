"""X: its API v2 as of version 2.167 and its OAuth 2, https://docs.x.com; error texts as people saw them."""

import base64
import hashlib
import html
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode

from twitter_text import extract_urls_with_indices, parse_tweet

from tests.standins.server import Answer, Network, parse_json, parse_multipart, route, run, sniff
from tests.standins.shapes import List, Range, Text, wrongs

CLIENT_ID, CLIENT_SECRET, CALLBACK = "app-id", "canary-app_secret", "https://posthorn.test/connect/callback"
SCOPES = "tweet.read tweet.write users.read media.write offline.access"
CODE_SECONDS, TOKEN_SECONDS, MEDIA_SECONDS, DUPLICATE_SECONDS = 30, 7200, 86_400, 86_400
EDGE_BYTES = 4 << 20        # of a body; 5 MiB were refused
EPOCH = 1_288_834_974_657   # ms; where the times in ids begin
RATES = {"POST /2/tweets": 100, "GET /2/users/me": 75, "GET /2/users/:id/tweets": 900, "POST /2/media/metadata": 500,
         "POST /2/media/upload/initialize": 1875, "POST /2/media/upload/:id/append": 1875,
         "POST /2/media/upload/:id/finalize": 1875, "GET /2/media/upload": 1000}
ID = re.compile("[0-9]{1,19}")
REPLY_SETTINGS = {"following", "mentionedUsers", "subscribers", "verified"}
POST = {
    "text": str, "card_uri": str, "community_id": ID, "direct_message_deep_link": str, "geo": {"place_id!": str},
    "edit_options": {"previous_post_id!": ID}, "for_super_followers_only": bool, "made_with_ai": bool, "nullcast": bool,
    "paid_partnership": bool,
    "media": {"media_ids!": List(ID, 1, 4), "tagged_user_ids": List(ID, 0, 10), "title": str, "description": str,
              "embeddable": bool, "preview_media_id": ID},
    "poll": {"options!": List(Text(1, 25), 2, 4), "duration_minutes!": Range(5, 10_080), "reply_settings": REPLY_SETTINGS},
    "quote_tweet_id": ID, "reply_settings": REPLY_SETTINGS, "share_with_followers": bool,
    "reply": {"in_reply_to_tweet_id!": ID, "exclude_reply_user_ids": List(str), "auto_populate_reply_metadata": bool},
}
CATEGORIES = {"image/jpeg": "tweet_image", "image/png": "tweet_image", "image/webp": "tweet_image", "image/gif": "tweet_gif",
              "video/mp4": "tweet_video", "video/quicktime": "tweet_video"}
KEYS = {"tweet_image": 3, "tweet_video": 7, "tweet_gif": 16}
INITIALIZE = {"media_type!": set(CATEGORIES), "total_bytes!": Range(1, 17_179_869_184), "media_category!": set(KEYS),
              "shared": bool, "additional_owners": List(ID)}
METADATA = {"id!": ID, "metadata": {"alt_text": {"text!": Text(0, 1000)}, "sensitive_media_warning": dict}}
USER_FIELDS = {"id", "name", "username", "profile_image_url", "verified", "verified_type", "subscription_type", "protected"}
TWEET_FIELDS = {"attachments", "author_id", "created_at", "entities", "id", "note_tweet", "referenced_tweets", "text"}
CREATE, APPEND, FINALIZE = "POST /2/tweets", "POST /2/media/upload/:id/append", "POST /2/media/upload/:id/finalize"
METADATA_CALL, STATUS, TOKEN = "POST /2/media/metadata", "GET /2/media/upload", "POST /2/oauth2/token"
DUPLICATE = "You are not allowed to create a Tweet with duplicate content."
NOT_PERMITTED = "You are not permitted to perform this action."
NOT_ENGAGED = "You can only reply to or quote posts where you are mentioned or are the author."


def problem(status: int, title: str, detail: str, kind: str = "about:blank") -> dict:
    """A problem: `kind` is the end of its type."""
    kind = kind if kind == "about:blank" else f"https://api.x.com/2/problems/{kind}"
    return {"title": title, "detail": detail, "type": kind, "status": status}


def invalid(message: str, parameters: dict | None = None) -> dict:
    """What X says to parameters that it does not take."""
    return {"errors": [{"message": message, "parameters": parameters or {}}], "title": "Invalid Request",
            "detail": "One or more parameters to your request was invalid.",
            "type": "https://api.x.com/2/problems/invalid-request"}


def _forbidden(detail, kind="about:blank"):
    return CREATE, 403, problem(403, "Forbidden", detail, kind)


ERRORS = {name: {"endpoint": endpoint, "status": status, "body": body} for name, (endpoint, status, body) in {
    "unauthorized": (CREATE, 401, problem(401, "Unauthorized", "Unauthorized")),
    "app_only": _forbidden("Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint.",
                           "unsupported-authentication"),
    "oauth1_permissions": _forbidden("Your client app is not configured with the appropriate oauth1 app permissions for this "
                                     "endpoint.", "oauth1-permissions"),
    "client_forbidden": _forbidden("This client is forbidden.", "client-forbidden"),
    "not_enrolled": _forbidden("The app must be attached to a project.", "client-not-enrolled"),
    "scope_missing": _forbidden("Forbidden"),
    "duplicate": _forbidden(DUPLICATE),
    "not_permitted": _forbidden(NOT_PERMITTED),
    "not_engaged": _forbidden(NOT_ENGAGED, "not-authorized-for-resource"),
    "video_too_long": _forbidden("You are not allowed to post a video longer than 2 minutes."),
    "credits": (CREATE, 402, problem(402, "CreditsDepleted", "Your enrolled account [7] does not have any credits to fulfill "
                                                             "this request.", "credits")),
    "payment": (CREATE, 402, problem(402, "Payment Required", "credits depleted", "credits-depleted")),
    "media_invalid": (CREATE, 400, invalid("Your media IDs are invalid.", {"media.media_ids": ["1"]})),
    "media_invalid_short": (CREATE, 400, problem(400, "Invalid Request", "Your media IDs are invalid.")),
    "invalid": (CREATE, 400, invalid("[nope] is not a valid parameter", {"nope": ["1"]})),
    "too_large": (APPEND, 413, ""), "head_too_large": (APPEND, 431, ""),
    "unknown_media": (STATUS, 404, problem(404, "Not Found Error", "Could not find media with media_id: [1].",
                                           "resource-not-found")),
    "legacy": (CREATE, 429, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}),
    "usage_capped": (CREATE, 429, problem(429, "UsageCapExceeded", "Usage cap exceeded: Monthly product cap", "usage-capped")),
    "server_error": (CREATE, 500, problem(500, "Internal Server Error", "Something is broken.")),
    "bad_gateway": (CREATE, 502, "<html>502 Bad Gateway</html>"),
    "over_capacity": (CREATE, 503, {"errors": [{"code": 130, "message": "Over capacity"}]}),
    "gateway_timeout": (CREATE, 504, ""),
    "refresh_dead": (TOKEN, 400, {"error": "invalid_request",
                                  "error_description": "Value passed for the token was invalid."}),
    "refresh_gone": (TOKEN, 400, {"error": "invalid_grant", "error_description": "The token is gone."}),
    "client_wrong": (TOKEN, 401, {"error": "unauthorized_client", "error_description": "Missing valid authorization header"}),
}.items()} | {"rate_limited": {
    "endpoint": CREATE, "status": 429, "body": problem(429, "Too Many Requests", "Too Many Requests"),
    "headers": {"x-rate-limit-limit": "100", "x-rate-limit-remaining": "0", "x-rate-limit-reset": "4070908800"}}}


@dataclass
class User:
    """An account. Its `subscription` is None, Basic, Premium or PremiumPlus, as X writes it."""

    id: str
    username: str
    name: str
    subscription: str = "None"


@dataclass
class Token:
    """An access token."""

    user: User
    scopes: set
    end: float


@dataclass
class Media:
    """An upload; `polls` counts the looks left until it is processed, `end` is None until it is finalized."""

    id: str
    user: User
    media_type: str
    category: str
    total: int
    segments: dict = field(default_factory=dict, repr=False)
    polls: int = 0
    end: float | None = None
    error: dict | None = None
    alt_text: str | None = None

    @property
    def data(self):
        return b"".join(self.segments[number] for number in sorted(self.segments))

    @property
    def key(self):
        return f"{KEYS[self.category]}_{self.id}"


def api(method: str, path: str, *scopes: str):
    """Mark a handler(self, request, user) of the API, which needs a user's token with all of these scopes."""
    return route(method, path, scopes=set(scopes))


class XServer(Network):
    """X. posts are all posts in order, as they are kept: `text` as it was sent, `body` the request.

    `processing_polls` is how often a video or GIF is found unfinished. `consenting` is the user who says yes to the app: the
    last one added. `mentioned` holds the ids of posts that may be answered although they are somebody else's.
    """

    errors = ERRORS

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls, self.consenting = processing_polls, ""
        self.rates = {name: (calls, 900) for name, calls in RATES.items()}
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, tuple] = {}
        self.media: dict[str, Media] = {}
        self.communities, self.mentioned = {"77"}, set()
        self._codes, self._last_id = {}, 0

    def add_user(self, username, token=None, *, refresh_token=None, scopes=SCOPES, name=None, subscription="None") -> str:
        """Create an account that allowed the app: an access token and a refresh token. Returns its id."""
        user = User(self._id(), username, name or username.title(), subscription)
        self.users[user.id], self.consenting = user, user.id
        self.tokens[token or f"token-{username}"] = Token(user, set(scopes.split()), self.now() + TOKEN_SECONDS)
        self.refresh_tokens[refresh_token or f"refresh-{username}"] = user, set(scopes.split())
        return user.id

    def add_post(self, user_id, text, **details) -> dict:
        """A post that was made elsewhere."""
        post = {"id": self._id(), "user": user_id, "text": text, "body": {}, "time": self.now(), "media": [], "reply_to": None,
                **details}
        self.posts.append(post)
        return post

    def accept(self, request, options):
        if (request.length or 0) > EDGE_BYTES:
            raise Answer(413, "")

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        request.reply_headers["api-version"] = "2.167"
        token = self._token(request)
        window = self.take(request.endpoint, token.user.id)
        request.reply_headers |= {"x-rate-limit-limit": str(window.limit), "x-rate-limit-remaining": str(window.remaining),
                                  "x-rate-limit-reset": str(int(window.reset) + 1)}
        if window.exceeded:
            raise Answer(429, problem(429, "Too Many Requests", "Too Many Requests"))
        if not options["scopes"] <= token.scopes:
            raise Answer(403, problem(403, "Forbidden", "Forbidden"))
        return handler(self, request, token.user)

    def no_route(self, request, methods):
        return Answer(405 if methods else 404, problem(404, "Not Found", "Not Found"))

    # posts

    @api("POST", "/2/tweets", "tweet.write", "tweet.read", "users.read")
    def create(self, request, user):
        """Publish."""
        given = _body(request, POST)
        text, media = given.get("text", ""), self._attached(given, user)
        if "media" in given and "poll" in given:
            raise Answer(400, invalid("[media, poll] are mutually exclusive"))
        if not text.strip() and not media:
            raise Answer(400, invalid("Your Post text is missing.", {"text": [text]}))
        if given.get("share_with_followers") and "community_id" not in given:
            raise Answer(400, invalid("share_with_followers needs community_id"))
        self._check_text(text, user)
        reply_to = self._answered(given, user)
        if not media and any(post["user"] == user.id and (post["text"], post["reply_to"], post["media"]) == (text, reply_to, [])
                             and post["time"] > self.now() - DUPLICATE_SECONDS for post in self.posts):
            raise Answer(403, ERRORS["duplicate"]["body"])
        if given.get("community_id", "77") not in self.communities:
            raise Answer(403, ERRORS["not_permitted"]["body"])
        post = self.add_post(user.id, text, body=given, media=media, reply_to=reply_to)
        return Answer(201, {"data": {"id": post["id"], "text": self._shown(post)["text"],
                                     "edit_history_tweet_ids": [post["id"]]}})

    @api("GET", "/2/users/:id/tweets", "tweet.read", "users.read")
    def timeline(self, request, user):
        """What an account posted, newest first."""
        given = dict(request.query)
        fields = set(given.get("tweet.fields", "id,text").split(",")) | {"id", "text"}
        most, start = given.get("max_results", "10"), given.get("start_time")
        if (given.keys() - {"max_results", "start_time", "tweet.fields"} or not fields <= TWEET_FIELDS
                or not most.isdecimal() or not 5 <= int(most) <= 100):
            raise Answer(400, invalid("The query parameters are not valid", given))
        since = _moment(start) if start else 0
        if since > self.now():
            raise Answer(400, invalid("Invalid 'start_time'. It must be in the past.", {"start_time": [start]}))
        found = [post for post in reversed(self.posts) if post["user"] == request.args["id"] and post["time"] >= since]
        page = [{name: value for name, value in self._shown(post).items() if name in fields} for post in found[:int(most)]]
        more = {"next_token": "7140dibdnow9c7btw3w29grvxfcgvpb9n9coehpk7xz5i"} if len(found) > len(page) else {}
        return ({"data": page} if page else {}) | {"meta": {"result_count": len(page), **more}}

    @api("GET", "/2/users/me", "tweet.read", "users.read")
    def me(self, request, user):
        """Who the token's user is."""
        fields = set(dict(request.query).get("user.fields", "id").split(","))
        if not fields <= USER_FIELDS:
            raise Answer(400, invalid("The `user.fields` query parameter value is not valid"))
        known = {"id": user.id, "name": user.name, "username": user.username, "subscription_type": user.subscription,
                 "profile_image_url": f"{self.url}/profile_images/1/a_normal.jpg"}
        return {"data": {name: value for name, value in known.items() if name in fields | {"id", "name", "username"}}}

    # media

    @api("POST", "/2/media/upload/initialize", "media.write")
    def initialize(self, request, user):
        """Begin an upload."""
        given = _body(request, INITIALIZE)
        if CATEGORIES[given["media_type"]] != given["media_category"]:
            raise Answer(400, invalid("The media type does not fit the media category"))
        media = Media(self._id(), user, given["media_type"], given["media_category"], given["total_bytes"])
        self.media[media.id] = media
        return {"data": {"id": media.id, "media_key": media.key, "expires_after_secs": MEDIA_SECONDS}}

    @api("POST", "/2/media/upload/:id/append", "media.write")
    def append(self, request, user):
        """Take one segment; the same again replaces it."""
        media = self._media(request.args["id"], user)
        try:
            parts = {part.name: part for part in parse_multipart(request.headers.get("Content-Type", ""), request.body)}
            number = int(parts["segment_index"].data)
        except (ValueError, KeyError):
            raise Answer(400, invalid("The body is not valid")) from None
        segment = parts.get("media")
        if parts.keys() != {"media", "segment_index"} or not 0 <= number <= 999 or not segment.filename or media.end:
            raise Answer(400, invalid("The segment is not valid"))
        media.segments[number] = segment.data
        if sum(map(len, media.segments.values())) > media.total:
            raise Answer(400, invalid("More bytes than total_bytes", {"total_bytes": [str(media.total)]}))
        return {"data": {"expires_at": int(self.now()) + MEDIA_SECONDS}}

    @api("POST", "/2/media/upload/:id/finalize", "media.write")
    def finalize(self, request, user):
        """End an upload."""
        media = self._media(request.args["id"], user)
        if request.body or sorted(media.segments) != list(range(len(media.segments))) or len(media.data) != media.total:
            raise Answer(400, invalid("Segments do not add up to provided total file size."))
        found = sniff(media.data)
        if media.category == "tweet_image" and found != media.media_type:
            raise Answer(400, invalid("The media type is not what was declared"))
        if found != media.media_type:
            media.error = {"code": 1, "name": "InvalidMedia", "message": "InvalidMedia"}
        media.end = media.end or self.now() + MEDIA_SECONDS
        media.polls = 0 if media.category == "tweet_image" else self.processing_polls
        return {"data": self._progress(media, first=True)}

    @api("GET", "/2/media/upload", "media.write")
    def status(self, request, user):
        """How the processing goes."""
        given = dict(request.query)
        if given.keys() != {"command", "media_id"} or given["command"] != "STATUS":
            raise Answer(400, invalid("The query parameters are not valid"))
        media = self._media(given["media_id"], user)
        if media.end is None:
            raise Answer(400, invalid("The upload is not finalized"))
        media.polls = max(0, media.polls - 1)
        return {"data": self._progress(media)}

    @api("POST", "/2/media/metadata", "media.write")
    def describe(self, request, user):
        """Give media an alternative text."""
        given = _body(request, METADATA)
        media = self._media(given["id"], user)
        if media.end is None or media.category == "tweet_video":
            raise Answer(400, invalid("The media takes no metadata"))
        media.alt_text = given["metadata"]["alt_text"]["text"]
        return {"data": {"id": media.id, "associated_metadata": {"alt_text": {"text": media.alt_text}}}}

    # OAuth 2

    @route("GET", "/i/oauth2/authorize")
    def authorize(self, request):
        """The consent page, with the consent given at once: a redirect with a code."""
        given = dict(request.query)
        scopes = given.get("scope", "").split()
        if (given.get("response_type") != "code" or given.get("client_id") != CLIENT_ID or given.get("redirect_uri") != CALLBACK
                or not 1 <= len(given.get("state", "")) <= 500 or not scopes or not set(scopes) <= set(SCOPES.split())
                or given.get("code_challenge_method") != "S256" or not given.get("code_challenge")):
            raise Answer(400, "<html>Something went wrong. You weren't able to give access to the App.</html>")
        code = secrets.token_urlsafe(32)
        self._codes[code] = self.users[self.consenting], set(scopes), given["code_challenge"], self.now() + CODE_SECONDS
        return Answer(302, "", {"Location": f"{CALLBACK}?{urlencode({'state': given['state'], 'code': code})}"})

    @route("POST", "/2/oauth2/token")
    def issue(self, request):
        """Trade a code or a refresh token, each once, for a new pair."""
        wanted = "Basic " + base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if request.headers.get("Authorization") != wanted:
            raise Answer(401, ERRORS["client_wrong"]["body"])
        given = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        if request.media_type != "application/x-www-form-urlencoded":
            raise Answer(400, {"error": "invalid_request", "error_description": "Unsupported content type"})
        match given.get("grant_type"):
            case "authorization_code":
                user, scopes = self._redeem(given)
            case "refresh_token":
                user, scopes = self.refresh_tokens.pop(given.get("refresh_token"), (None, None))
            case _:
                raise Answer(400, {"error": "unsupported_grant_type", "error_description": ""})
        if user is None:
            raise Answer(400, ERRORS["refresh_dead"]["body"])
        return self._issue(user, scopes)

    # private

    def _issue(self, user, scopes):
        access, refresh = f"canary-access-{secrets.token_urlsafe(30)}", f"canary-refresh-{secrets.token_urlsafe(30)}"
        self.tokens[access] = Token(user, scopes, self.now() + TOKEN_SECONDS)
        if "offline.access" in scopes:
            self.refresh_tokens[refresh] = user, scopes
        return {"token_type": "bearer", "expires_in": TOKEN_SECONDS, "access_token": access, "scope": " ".join(sorted(scopes)),
                **({"refresh_token": refresh} if "offline.access" in scopes else {})}

    def _redeem(self, given):
        user, scopes, challenge, end = self._codes.pop(given.get("code"), (None, None, None, 0))
        proof = base64.urlsafe_b64encode(hashlib.sha256(given.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        if user is None or challenge != proof or end <= self.now() or given.get("redirect_uri") != CALLBACK:
            raise Answer(400, {"error": "invalid_request",
                               "error_description": "Value passed for the authorization code was invalid."})
        return user, scopes

    def _id(self):
        self._last_id = max(self._last_id + 1, int(self.now() * 1000 - EPOCH) << 22)
        return str(self._last_id)

    def _token(self, request):
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        token = self.tokens.get(value) if scheme == "Bearer" else None
        if token is None or token.end <= self.now():
            raise Answer(401, ERRORS["unauthorized"]["body"])
        return token

    def _media(self, media_id, user):
        media = self.media.get(media_id)
        if media is None or media.user is not user:
            raise Answer(404, ERRORS["unknown_media"]["body"])
        return media

    def _progress(self, media, first=False):
        data = {"id": media.id, "media_key": media.key, "size": media.total, "expires_after_secs": MEDIA_SECONDS}
        if media.category == "tweet_image":
            return data
        if media.polls:
            info = {"state": "pending" if first else "in_progress", "check_after_secs": 1, "progress_percent": 50}
        else:
            info = {"state": "failed", "error": media.error} if media.error else {"state": "succeeded", "progress_percent": 100}
        return data | {"processing_info": info}

    def _attached(self, given, user):
        media = [self.media.get(one) for one in given.get("media", {}).get("media_ids", ())]
        if any(one is None or one.user is not user or one.end is None or one.end <= self.now() or one.polls or one.error
               for one in media):
            raise Answer(400, invalid("Your media IDs are invalid.", {"media.media_ids": given["media"]["media_ids"]}))
        if len(media) > 1 and any(one.category != "tweet_image" for one in media):
            raise Answer(400, invalid("Only 4 photos, 1 GIF or 1 video can be attached"))
        return media

    def _check_text(self, text, user):
        parsed = parse_tweet(text)
        if parsed.weightedLength > (25_000 if user.subscription in ("Premium", "PremiumPlus") else 280):
            raise Answer(403, ERRORS["not_permitted"]["body"])
        if re.search("[\ufffe\ufeff\uffff]", text) or len(re.findall(r"(?<!\S)\$[A-Za-z]{1,6}\b", text)) > 1:
            raise Answer(403, problem(403, "Forbidden", "Posts may have a maximum of one cashtag."))

    def _answered(self, given, user):
        if "reply" not in given:
            return None
        post = next((post for post in self.posts if post["id"] == given["reply"]["in_reply_to_tweet_id"]), None)
        if post is None:
            raise Answer(400, invalid("You attempted to reply to a Post that is deleted or not visible to you."))
        if post["user"] != user.id and post["id"] not in self.mentioned:
            raise Answer(403, ERRORS["not_engaged"]["body"])
        return post["id"]

    def _shown(self, post):
        """A post as X shows it: links shortened, the one to its media at the end, signs of HTML escaped."""
        text, urls = _shortened(post)
        user = self.users[post["user"]]
        shown = {"id": post["id"], "author_id": user.id, "created_at": _stamp(post["time"])}
        if answered := next((one for one in self.posts if one["id"] == post["reply_to"]), None):
            shown["referenced_tweets"] = [{"type": "replied_to", "id": answered["id"]}]
            if answered["user"] != post["user"]:
                text = f"@{self.users[answered['user']].username} {text}"
        if post["media"]:
            short = _short(post["id"])
            address = f"https://x.com/{user.username}/status/{post['id']}/photo/1"
            urls.append({"url": short, "expanded_url": address, "media_key": post["media"][0].key})
            text = f"{text} {short}".lstrip()
            shown["attachments"] = {"media_keys": [one.key for one in post["media"]]}
        if "poll" in post["body"]:
            shown["attachments"] = {"poll_ids": [post["id"]]}
        entities = {"entities": {"urls": urls}} if urls else {}
        if parse_tweet(post["text"]).weightedLength > 280:
            return {**shown, "text": text[:270] + "…", "note_tweet": {"text": text, **entities}}
        return {**shown, "text": text, **entities}


def _body(request, shape):
    try:
        given = parse_json(request.body) if request.media_type == "application/json" else None
    except ValueError:
        given = None
    if found := wrongs(given, shape):
        raise Answer(400, invalid(f"{found} is not valid", {name: [] for name in found}))
    return given


def _shortened(post):
    """The text as X shows it and the links in it."""
    text, urls = post["text"], []
    for found in reversed(extract_urls_with_indices(text)):
        start, end = found["indices"]
        address = found["url"] if "://" in found["url"] else f"http://{found['url']}"
        urls.insert(0, {"url": _short(f"{post['id']} {start}"), "expanded_url": address})
        text = text[:start] + urls[0]["url"] + text[end:]
    return html.escape(text, quote=False), urls


def _short(seed):
    return f"https://t.co/{hashlib.sha256(seed.encode()).hexdigest()[:10]}"


def _moment(text):
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise Answer(400, invalid("Invalid 'start_time'", {"start_time": [text]})) from None


def _stamp(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", ".000Z")


if __name__ == "__main__":
    run(XServer)
