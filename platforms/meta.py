"""What the networks of Meta share: how they name failures, the login of Facebook, and the first comment under a post.

https://developers.facebook.com/docs/graph-api/guides/error-handling
"""

import hashlib
import hmac
import json
import time
from datetime import datetime

from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable
from platforms.http import THROTTLED
from platforms.oauth import REFRESH_EARLY, OAuthPlatform, credentials_from

FAILURES = range(300, 600)          # statuses; the body says more than they do
THROTTLE_PAUSE = 900.0              # seconds, where a network asks to slow down and says not for how long
QUOTA_PAUSE = 3600.0                # seconds, for quotas of a day, which roll
PAUSES = (5.0, 10.0, 20.0, 30.0, 60.0)      # seconds between questions whether a file is processed; none are documented
PAGE = 100                          # entries of a list that are asked for at once, the most that there are
MOST_PAGES = 50
SKEW = 10.0                         # seconds that the clocks of the database and of a network may drift apart
RENEWABLE_AFTER, RENEW_AFTER = 86_400.0, 7 * 86_400.0       # seconds: age at which a token may be, and is, traded for a new one
SETTLED = 300.0                     # seconds after which what is not there yet will not come: calls end after 60
UNSEEN, UNSEEN_PAUSE = "100/33", 10.0       # the code for what is not there, or not yet; seconds until it may be
SECRET = {"client_secret", "code", "access_token", "fb_exchange_token"}     # parameters that nobody may see


class Verdicts(dict):
    """What an error `code/subcode` means: by both, by the subcode alone (key `/subcode`), then by the code alone."""

    def get(self, word, default=None):
        """The error class for what `words` calls an error, or for a status."""
        if not isinstance(word, str):
            return super().get(word, default)
        code, _, subcode = word.partition("/")
        return next((self[key] for key in (word, f"/{subcode}", code) if key in self), default)


class Transient(Unavailable):
    """A hiccup at Meta, after which nobody knows what it has done. Never raised: see `Meta.failure`."""


VERDICTS = Verdicts({
    **dict.fromkeys(("1", "2"), Transient),
    **dict.fromkeys(("102", "190"), Disconnected),
    **dict.fromkeys(("3", "10", *map(str, range(200, 300))), PermissionMissing),
    **dict.fromkeys(("4", "17", "32", "341", "613"), THROTTLED),
    **dict.fromkeys(("100", "101", "368", "506"), Rejected),
    **dict.fromkeys(("OffsetInvalidError", "PartialRequestError"), Unavailable),   # of the upload host
})


class Meta(OAuthPlatform):
    """A network that speaks in the manner of the Graph API. `{version}` in a setting stands for the setting `version`."""

    scope_separator = ","
    pkce = False
    settings = {"client_id": "", "client_secret": "", "scopes": ""}
    verdicts = VERDICTS
    waits = Verdicts()          # seconds, by the network's own error code, where it says nothing itself

    def __init__(self, http=None, settings=None):
        super().__init__(http, settings)
        version = self.settings.get("version", "")
        self.settings = {name: value.replace("{version}", version) for name, value in self.settings.items()}
        if self.settings["scopes"]:     # what an app may ask for depends on what Meta has reviewed
            self.scopes = tuple(self.settings["scopes"].split())

    def app_works(self):
        """There is no grant by which it could be told."""
        return None

    def words(self, answer):
        """The code, with the subcode behind a slash, and the message that is meant for people; or those of the upload host."""
        code = answer.field("error", "code", kind=int, default=None)
        if code is None:
            return answer.field("debug_info", "type", default=None), answer.field("debug_info", "message", default=None)
        subcode = answer.field("error", "error_subcode", kind=int, default=None)
        message = answer.field("error", "error_user_msg", default="") or answer.field("error", "message", default=None)
        return f"{code}/{subcode}" if subcode else f"{code}", message

    def send(self, method, url, accept=(), **request):
        """One request. Nearly all failures have status 400, so that their body decides."""
        answer = super().send(method, url, accept=FAILURES, **request)
        if answer.status in FAILURES and answer.status not in accept:
            raise self.failure(answer)
        return answer

    def failure(self, answer):
        """What an answer means as a failure: what may pass is in doubt where the request makes a post public."""
        error = answer.error()
        words = {"platform_code": error.platform_code, "platform_message": error.platform_message}
        if isinstance(error, Transient) or self._passes(answer, error):
            error = answer.manner.fault()
            error.platform_code, error.platform_message = words.values()
        if error.code == "rate_limited" and error.retry_after is None:
            error.retry_after = self.waits.get(error.platform_code) or _regain(answer.headers)
        return error

    def _passes(self, answer, error):
        """Whether the network itself calls it transient, of an error that we do not know better."""
        places = ("error", "is_transient"), ("debug_info", "retriable")
        flags = [answer.field(*place, kind=bool, default=False) for place in places]
        return isinstance(error, Rejected) and any(flags) and self.verdicts.get(error.platform_code) is None

    def read(self, token, path, **query):
        """The answer to a question at `path` of the API."""
        return self.send("GET", self.settings["api_url"] + path, token=token, query={**query, **self.proof(token)})

    def call(self, account, method, path, *, query=None, host="api_url", **request):
        """One request with the account's token."""
        token = account.credentials["accessToken"]
        query = {**(query or {}), **self.proof(token)}
        return self.send(method, self.settings[host] + path, token=token, query=query, **request)

    def proof(self, token):
        """What goes with a token in the query. Nothing, where no network asks for more."""
        return {}

    def grant(self, url, **query):
        """The answer of an endpoint that gives tokens for what is in `query`, all of which stays out of errors."""
        return self.send("GET", url, query=query, secrets=tuple(query[name] for name in SECRET & query.keys()))


class FacebookLogin(Meta):
    """A network whose accounts belong to Facebook Pages, and are connected by whoever may publish there.

    The credentials of an account are `accessToken`, that of its Page, which does not end by itself, and `userToken`, from
    which it comes, for 60 days.
    """

    settings = {**Meta.settings, "api_url": "https://graph.facebook.com/{version}", "version": "v25.0",
                "authorize_url": "https://www.facebook.com/{version}/dialog/oauth", "public_url": "https://www.facebook.com"}

    def tokens(self, form):
        """A user token of an hour or two for the code, and for that one of 60 days."""
        url = f"{self.settings['api_url']}/oauth/access_token"
        app = {name: self.app(name) for name in ("client_id", "client_secret")}
        short = self.grant(url, **app, redirect_uri=form["redirect_uri"], code=form["code"]).field("access_token")
        return credentials_from(self.grant(url, **app, grant_type="fb_exchange_token", fb_exchange_token=short))

    def upload(self, account, name, item, offset):
        """Sends a video from the byte `offset` on, in one piece, to the upload host, which knows it by this name."""
        if offset >= item.bytes:
            return
        token = account.credentials["accessToken"]
        headers = {"Authorization": f"OAuth {token}", "offset": str(offset), "file_size": str(item.bytes),
                   "Content-Type": "application/octet-stream"}
        with item.open(offset) as file:
            self.send("POST", f"{self.settings['upload_url']}/{name}", headers=headers, body=file, size=item.bytes - offset,
                      secrets=(token,))

    def refresh_due(self, account):
        """Never: the Page's token does not end."""
        return False

    def refresh(self, account, force=False):
        """The Page's token anew from the user token, where the network refused the old one."""
        if not force:
            return None
        page, token = account.credentials["pageId"], account.credentials["userToken"]
        fresh = self.read(token, f"/{page}", fields="access_token").field("access_token", default=None)
        if fresh in (None, account.credentials["accessToken"]):     # none for who lost the role on the Page
            return None
        return {**account.credentials, "accessToken": fresh}

    def proof(self, token):
        """Shows that the app itself uses the token, which an app may demand of every call (`Require App Secret`)."""
        secret = self.settings["client_secret"]
        return {"appsecret_proof": hmac.new(secret.encode(), token.encode(), hashlib.sha256).hexdigest()} if secret else {}

    def pages(self, token, fields):
        """(answer, path) of each Page that the user may publish on: those of businesses are not all in the first list."""
        seen = set()
        for answer, *place in self._all_pages(token, fields):
            page, may = answer.field(*place, "id"), answer.field(*place, "tasks", kind=list, default=["CREATE_CONTENT"])
            if page not in seen and "CREATE_CONTENT" in may and answer.field(*place, "access_token", default=None):
                seen.add(page)
                yield answer, place

    def listed(self, token, path, fields):
        """(answer, "data", position) of each entry of a list, over its pages."""
        query = {"fields": fields, "limit": PAGE}
        for _ in range(MOST_PAGES):
            answer = self.read(token, path, **query)
            for position in range(len(answer.field("data", kind=list))):
                yield answer, "data", position
            query["after"] = answer.field("paging", "cursors", "after", default=None)
            if answer.field("paging", "next", default=None) is None or query["after"] is None:
                return

    def _all_pages(self, token, fields):
        yield from self.listed(token, "/me/accounts", fields)
        businesses = [answer.field(*place, "id") for answer, *place in self._allowed(token, "/me/businesses", "id")]
        for business in businesses:
            for edge in ("owned_pages", "client_pages"):
                yield from self._allowed(token, f"/{business}/{edge}", fields)

    def _allowed(self, token, path, fields):
        """A list of businesses, or of their Pages, as far as the person may and wants to show them."""
        try:
            yield from self.listed(token, path, fields)
        except (PermissionMissing, Rejected):
            return


class SelfRenewing(Meta):
    """A network whose tokens last 60 days, and are traded for new ones while they are good, once they are a day old.

    The credentials of an account are `accessToken`, `expiresAt` and `renewedAt` (epoch seconds).
    """

    exchange, renewal = "", ""          # the kinds of grant

    def tokens(self, form):
        """A token of an hour for the code, and for that one of 60 days."""
        app = {name: self.app(name) for name in ("client_id", "client_secret")}
        code = form["code"].removesuffix("#_")      # which the network appends to its address
        answer = self.send("POST", self.settings["token_url"], secrets=(app["client_secret"], code),
                           form={**app, **form, "code": code})
        wrapped = ("data", 0) if answer.field("data", kind=list, default=[]) else ()        # both shapes are in use
        short = answer.field(*wrapped, "access_token")
        return self._lasting(self.grant(f"{self.settings['exchange_url']}/access_token", grant_type=self.exchange,
                                        client_secret=app["client_secret"], access_token=short))

    def refresh_due(self, account):
        """Once a week."""
        return time.time() - account.credentials["renewedAt"] > RENEW_AFTER

    def refresh(self, account, force=False):
        """A new token for the old one. While that one lasts, it is no harm if there is none today."""
        age = time.time() - account.credentials["renewedAt"]
        if age < RENEWABLE_AFTER or not (force or age > RENEW_AFTER):
            return None
        try:
            answer = self.grant(f"{self.settings['exchange_url']}/refresh_access_token", grant_type=self.renewal,
                                access_token=account.credentials["accessToken"])
        except Disconnected:
            if force:
                return None     # a dead token gets no new one
            raise
        except PlatformError:
            if force or account.credentials["expiresAt"] - time.time() < REFRESH_EARLY:
                raise
            return None
        return {**account.credentials, **self._lasting(answer)}

    def _lasting(self, answer):
        return {**credentials_from(answer), "renewedAt": time.time()}


class Commenting(Meta):
    """A network whose comments are written with one call: POST /{post}/comments."""

    follow_options = ("firstComment",)
    comment_text = "message"        # the field of a comment that holds its text
    comment_author = ""             # the field that says who wrote it

    def wrote(self, account, answer, *place) -> bool:
        """Whether the comment at `place` is one of the account itself: a stranger's may have the same text."""
        raise NotImplementedError

    def follow(self, account, content, receipt):
        """Writes the first comment."""
        # Times by the database's clock, as the next run knows it too: seconds since the post itself was sent.
        comment = receipt.get("comment", {"begunAt": content.since_sending})
        if "firstComment" not in content.options or "id" in comment:
            return
        post, written = receipt["public"]["id"], None
        if not post:
            raise Rejected(f"{self.title} does not say which post is ours, so that it gets no comment", rule="comment")
        if "sentAt" in comment:
            written = self._written(account, content, post, content.since_sending - comment["sentAt"])
        if written is None:
            yield {**receipt, "comment": {**comment, "sentAt": content.since_sending}}
            try:
                written = self._comment(account, content, post, comment)
            except Unavailable:
                yield {**receipt, "comment": {"begunAt": comment["begunAt"]}}       # surely not written
                raise
        yield {**receipt, "comment": {"id": written}}

    def comment(self, content) -> dict:
        """The parameters of the first comment."""
        return {"message": content.options["firstComment"]}

    def _comment(self, account, content, post, comment):
        try:
            return identity(self.call(account, "POST", f"/{post}/comments", form=self.comment(content), commits=True))
        except Rejected as error:
            if error.platform_code == UNSEEN:
                raise not_yet(self.title, error, content.since_sending - comment["begunAt"]) from None
            raise

    def _written(self, account, content, post, ago):
        """The id of a comment that was sent `ago` seconds ago, None if it surely is not there."""
        fields = f"id,{self.comment_text},{self.comment_author}"
        answer = self.call(account, "GET", f"/{post}/comments", query={"fields": fields, "limit": PAGE})
        for position in range(len(answer.field("data", kind=list))):
            text = answer.field("data", position, self.comment_text, default="")
            if same_text(text, content.options["firstComment"]) and self.wrote(account, answer, "data", position):
                return identity(answer, "data", position)
        if answer.field("paging", "next", default=None) is not None:
            raise Rejected("it cannot be found out whether the first comment was written", rule="comment")
        if ago < SETTLED:
            raise Unavailable(f"{self.title} does not show the first comment yet", retry_after=SETTLED - ago)
        return None


def identity(answer, *path, name="id"):
    """An id, which the networks of Meta write as a string or as a number."""
    return str(answer.field(*path, name, kind=(str, int)))


def transferred(answer, status):
    """How many bytes of a video have arrived, by the object `status` of an answer; the name is spelt in two ways."""
    names = ("bytes_transfered", "bytes_transferred")
    return max(answer.field(status, "uploading_phase", name, kind=int, default=0) for name in names)


def not_yet(title, error, age):
    """`error`, a refusal since something of ours is not there; at an `age` at which it may still come, Unavailable."""
    if age > SETTLED:
        return error
    return Unavailable(f"{title} does not know something yet that was just made", retry_after=UNSEEN_PAUSE,
                       platform_code=error.platform_code, platform_message=error.platform_message)


def word(value):
    """An option as the value of a parameter."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def moment(answer, *path):
    """The time at `path` in epoch seconds."""
    try:
        return datetime.fromisoformat(answer.field(*path)).timestamp()
    except ValueError:
        raise answer.manner.fault() from None


def same_text(one, other):
    """Whether a caption came back as we sent it: line ends and the space around it may differ."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


def pause(count, pauses=PAUSES):
    """Seconds until the next question, after so many."""
    return pauses[min(count, len(pauses) - 1)]


def _regain(headers):
    """Seconds until calls are taken again, by the network's own estimate, which is in minutes."""
    try:
        uses = json.loads(headers.get("X-Business-Use-Case-Usage", "{}")).values()
        minutes = max(float(use["estimated_time_to_regain_access"]) for business in uses for use in business)
    except (ValueError, LookupError, TypeError, AttributeError):
        minutes = 0.0
    return minutes * 60 or THROTTLE_PAUSE
