"""X: its API v2 as of version 2.167 and its OAuth 2, https://docs.x.com; error texts as people saw them."""

import base64
import hashlib
import html
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode

from twitter_text import extract_urls_with_indices, parse_tweet

from tests.standins.server import Answer, Network, route, run
from tests.standins.shapes import List, Range, Text
from tests.standins.twitter_media import ID, Uploads
from tests.standins.twitter_rules import ERRORS, api, body, invalid, problem

CLIENT_ID, CLIENT_SECRET, CALLBACK = "app-id", "canary-app_secret", "https://posthorn.test/connect/callback"
SCOPES = "tweet.read tweet.write users.read media.write offline.access"
CODE_SECONDS, TOKEN_SECONDS, DUPLICATE_SECONDS = 30, 7200, 86_400
EDGE_BYTES = 4 << 20        # of a body; 5 MiB were refused
EPOCH = 1_288_834_974_657   # ms; where the times in ids begin
RATES = {"POST /2/tweets": 100, "GET /2/users/me": 75, "GET /2/users/:id/tweets": 900, "POST /2/media/metadata": 500,
         "POST /2/media/subtitles": 500,
         "POST /2/media/upload/initialize": 1875, "POST /2/media/upload/:id/append": 1875,
         "POST /2/media/upload/:id/finalize": 1875, "GET /2/media/upload": 1000}
REPLY_SETTINGS = {"following", "mentionedUsers", "subscribers", "verified"}
LINK = {"url!": re.compile("https://[^ ]+")}
POST = {
    "text": str, "card_uri": str, "community_id": ID, "direct_message_deep_link": str, "geo": {"place_id!": str},
    "edit_options": {"previous_post_id!": ID}, "for_super_followers_only": bool, "made_with_ai": bool, "nullcast": bool,
    "paid_partnership": bool,
    "media": {"media_ids!": List(ID, 1, 4), "tagged_user_ids": List(ID, 0, 10), "title": str, "description": str,
              "embeddable": bool, "preview_media_id": ID, "call_to_actions": {
                  "visit_site": LINK, "watch_now": LINK, "app_install": dict}},
    "poll": {"options!": List(Text(1, 25), 2, 4), "duration_minutes!": Range(5, 10_080), "reply_settings": REPLY_SETTINGS},
    "quote_tweet_id": ID, "reply_settings": REPLY_SETTINGS, "share_with_followers": bool,
    "reply": {"in_reply_to_tweet_id!": ID, "exclude_reply_user_ids": List(str), "auto_populate_reply_metadata": bool},
}
USER_FIELDS = {"id", "name", "username", "profile_image_url", "verified", "verified_type", "subscription_type", "protected"}
TWEET_FIELDS = {"attachments", "author_id", "created_at", "entities", "id", "note_tweet", "referenced_tweets", "text"}


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


class XServer(Uploads, Network):
    """X. posts are all posts in order, as they are kept: `text` as it was sent, `body` the request.

    `processing_polls` is how often a video or GIF is found unfinished. `consenting` is the user who says yes to the app: the
    last one added. `mentioned` holds the ids of posts that may be answered or quoted although they are somebody else's. The
    rates "user day" and "app day", where there are some, are limits of a day on posts, as some plans have them.
    """

    errors = ERRORS

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port, processing_polls)
        self.consenting = ""
        self.rates = {name: (calls, 900) for name, calls in RATES.items()}
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, tuple] = {}
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
                "quoted": None, **details}
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
        given = body(request, POST)
        text, media = given.get("text", ""), self._attached(given, user)
        self._count_day(request, user)
        if len(both := sorted({"media", "poll", "quote_tweet_id", "card_uri"} & given.keys())) > 1:
            raise Answer(400, invalid(f"[{', '.join(both)}] are mutually exclusive"))
        if not text.strip() and not media:
            raise Answer(400, invalid("Your Post text is missing.", {"text": [text]}))
        if given.get("share_with_followers") and "community_id" not in given:
            raise Answer(400, invalid("share_with_followers needs community_id"))
        self._check_text(text, user)
        reply_to = self._related(given.get("reply", {}).get("in_reply_to_tweet_id"), user, "reply to")
        quoted = self._related(given.get("quote_tweet_id"), user, "quote") or self._addressed(text)
        if not media and any(post["user"] == user.id and (post["text"], post["reply_to"], post["media"]) == (text, reply_to, [])
                             and post["time"] > self.now() - DUPLICATE_SECONDS for post in self.posts):
            raise Answer(403, ERRORS["duplicate"]["body"])
        if given.get("community_id", "77") not in self.communities:
            raise Answer(403, ERRORS["not_permitted"]["body"])
        post = self.add_post(user.id, text, body=given, media=media, reply_to=reply_to, quoted=quoted)
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

    def _attached(self, given, user):
        media = [self.media.get(one) for one in given.get("media", {}).get("media_ids", ())]
        previews = [self.media.get(given["media"]["preview_media_id"])] if "preview_media_id" in given.get("media", {}) else []
        if any(one is None or one.user is not user or one.end is None or one.end <= self.now() or one.polls or one.error
               or one.category == "subtitles" for one in (*media, *previews)):
            raise Answer(400, invalid("Your media IDs are invalid.", {"media.media_ids": given["media"]["media_ids"]}))
        if any(one.category != "tweet_image" for one in previews):
            raise Answer(400, invalid("The preview is no image"))
        if len(media) > 1 and any(one.category != "tweet_image" for one in media):
            raise Answer(400, invalid("Only 4 photos, 1 GIF or 1 video can be attached"))
        return media

    def _check_text(self, text, user):
        parsed = parse_tweet(text)
        if parsed.weightedLength > (25_000 if user.subscription in ("Premium", "PremiumPlus") else 280):
            raise Answer(403, ERRORS["not_permitted"]["body"])
        if re.search("[\ufffe\ufeff\uffff]", text) or len(re.findall(r"(?<!\S)\$[A-Za-z]{1,6}\b", text)) > 1:
            raise Answer(403, problem(403, "Forbidden", "Posts may have a maximum of one cashtag."))

    def _related(self, wanted, user, doing):
        """The id of the post that is answered or quoted: one's own, or where one is mentioned; None where there is none."""
        if wanted is None:
            return None
        post = next((post for post in self.posts if post["id"] == wanted), None)
        if post is None:
            raise Answer(400, invalid(f"You attempted to {doing} a Post that is deleted or not visible to you."))
        if post["user"] != user.id and post["id"] not in self.mentioned:
            raise Answer(403, ERRORS["not_engaged"]["body"])
        return post["id"]

    def _addressed(self, text):
        """The id of the post whose address stands in a text, which makes a quote of it."""
        return next((post["id"] for post in self.posts if f"/status/{post['id']}" in text), None)

    def _count_day(self, request, user):
        for name, key in (("user", user.id), ("app", CLIENT_ID)):
            if f"{name} day" in self.rates:
                window, prefix = self.take(f"{name} day", key), f"x-{name}-limit-24hour"
                request.reply_headers |= {f"{prefix}-limit": str(window.limit), f"{prefix}-remaining": str(window.remaining),
                                          f"{prefix}-reset": str(int(window.reset) + 1)}
                if window.exceeded:
                    raise Answer(429, problem(429, "Too Many Requests", "Too Many Requests"))

    def _shown(self, post):
        """A post as X shows it: links shortened, the one to its media at the end, signs of HTML escaped."""
        text, urls = _shortened(post)
        user = self.users[post["user"]]
        shown = {"id": post["id"], "author_id": user.id, "created_at": _stamp(post["time"])}
        if answered := next((one for one in self.posts if one["id"] == post["reply_to"]), None):
            shown["referenced_tweets"] = [{"type": "replied_to", "id": answered["id"]}]
            if answered["user"] != post["user"]:
                text = f"@{self.users[answered['user']].username} {text}"
        if quoted := next((one for one in self.posts if one["id"] == post["quoted"]), None):
            shown.setdefault("referenced_tweets", []).append({"type": "quoted", "id": quoted["id"]})
            if not self._addressed(post["text"]):
                short = _short(f"{post['id']} quoted")
                address = f"https://twitter.com/{self.users[quoted['user']].username}/status/{quoted['id']}"
                urls.append({"url": short, "expanded_url": address})
                text = f"{text} {short}"
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
