"""What the Graph APIs of Meta share: error bodies, tokens, fields, parameters and usage headers.

https://developers.facebook.com/docs/graph-api/guides/error-handling
"""

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode

from tests.standins.server import Answer, Network, Part, parse_json, parse_multipart, route

ROOT = "/v25.0"
SHORT, LONG, CODE_LIFE = 3600, 5_184_000, 3600      # seconds: tokens fresh from a login, exchanged ones, codes
COMMON = ("access_token", "appsecret_proof", "fields", "upload_phase")
# Faults of a request after which its sender cannot know what became of it, and whether the network has acted.
IN_DOUBT = [({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
            ({"status": 500, "body": "", "acts": True}, True), ({"status": 200, "body": "<html>", "acts": True}, True),
            ({"status": 200, "body": {}, "acts": True}, True)]
TOKEN_PROBLEMS = {
    458: "Error validating access token: The user has not authorized application 4711.",
    459: "Error validating access token: The user is in a checkpoint.",
    460: "Error validating access token: The session has been invalidated because the user changed their password.",
    463: "Error validating access token: Session has expired on Friday, 20-Nov-26 10:00:00 PST.",
    467: "Error validating access token: The session is invalid because the user logged out.",
}


def body(code, message, subcode=None, kind="OAuthException", transient=False, user_message=None, **more):
    """The body of an error."""
    error = {"message": message, "type": kind, "code": code, "is_transient": transient, "fbtrace_id": "A6bCd", **more}
    error |= {"error_subcode": subcode} if subcode else {}
    error |= {"error_user_title": "Trouble", "error_user_msg": user_message} if user_message else {}
    return {"error": error}


class Refusal(Answer):
    """An error of the Graph API: code, message and what else `body` takes."""

    def __init__(self, code, message, *, status=400, **more):
        super().__init__(status, body(code, message, **more))


@dataclass
class Token:
    """An access token. kind: user or page; end in epoch seconds, None = none; problem: the subcode of why it is dead."""

    kind: str
    owner: str
    scopes: set
    made: float
    end: float | None = None
    problem: int | None = None
    short: bool = False


def names(fields: str) -> list[str]:
    """The names at the top of a `fields` parameter: `id,picture.type(large){url}` has two. Raises Refusal for bad syntax."""
    found, depth, name = [], 0, ""
    for sign in fields + ",":
        depth += (sign in "({") - (sign in ")}")
        if sign == "," and not depth:
            found.append(re.match(r"\w*", name)[0])
            name = ""
        else:
            name += sign
    if depth or "" in found:
        raise Refusal(2500, "Syntax error in the parameter fields")
    return found


def pick(node: dict, fields: str | None, kind: str) -> dict:
    """The fields of a node that were asked for, its id always; a value of None is left out, as the network does."""
    wanted = names(fields) if fields else ["id"]
    if unknown := [name for name in wanted if name not in node]:
        raise Refusal(100, f"(#100) Tried accessing nonexisting field ({unknown[0]}) on node type ({kind})")
    return {name: node[name] for name in dict.fromkeys(["id", *wanted]) if name in node and node[name] is not None}


def stamp(seconds: float) -> str:
    """A time as the Graph API writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")


class Graph(Network):
    """A Graph API with one app. `secret` is the app's; `consenting` is who says yes at the consent page: the last user added.

    `granted` are the scopes that this person leaves ticked, None = all that are asked for.
    """

    rate = "calls"
    usage_type = "pages"

    def __init__(self, port=0):
        super().__init__(port)
        self.app, self.secret, self.redirects = "4711", "canary-app-secret", ["https://posthorn.test/connect/callback"]
        self.tokens: dict[str, Token] = {}
        self.consenting, self.granted, self.regain = "", None, 0
        self.rates = {self.rate: (4800, 86400)}
        self._codes, self._last_id = {}, 100_000_000_000_000

    def new_id(self) -> str:
        """A fresh id, as long as real ones."""
        self._last_id += 7
        return str(self._last_id)

    def new_token(self, token=None, **details) -> str:
        """An access token, a fresh one unless it is given; details as in Token."""
        token = token or f"EAAcanary{secrets.token_hex(12)}"
        self.tokens[token] = Token(made=self.now(), **details)
        return token

    def _find(self, request):
        """The phases of an upload are endpoints of their own: a phase has to be in the query, where it is known in time."""
        path, phase = request.path, dict(request.query).get("upload_phase")
        request.path = f"{path}/{phase.lower()}" if phase else path
        try:
            return super()._find(request)
        finally:
            request.path = path

    def no_route(self, request, methods):
        return Refusal(100 if methods else 2500, "Unsupported request" if methods else "Unknown path components")

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        given = self.given(request)
        token = self._token(request, given)
        self._check(given, token, options)
        self._count(request, self.tokens[token].owner)
        allowed = set(options["params"]) | set(COMMON)
        if unknown := given.keys() - allowed:
            raise Refusal(100, f"(#100) Unexpected parameter {sorted(unknown)[0]}")
        if missing := [name for name in options["needs"] if given.get(name) is None or not str(given[name]).strip()]:
            raise Refusal(100, f"(#100) The parameter {missing[0]} is required")
        return handler(self, request, self.tokens[token], given)

    def given(self, request) -> dict:
        """The parameters, of the query and of a body as form, JSON or multipart. A body of bytes is none."""
        pairs = list(request.query)
        try:
            match request.media_type:
                case "application/x-www-form-urlencoded":
                    pairs += parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=bool(request.body))
                case "multipart/form-data":
                    parts = parse_multipart(request.headers["Content-Type"], request.body)
                    pairs += [(part.name, part if part.filename else part.data.decode()) for part in parts]
                case "application/json":
                    pairs += list(parse_json(request.body).items())
        except (ValueError, AttributeError):
            raise Refusal(100, "(#100) The body cannot be read") from None
        if len(dict(pairs)) < len(pairs):
            raise Refusal(100, "(#100) A parameter is given twice")
        return dict(pairs)

    def _token(self, request, given):
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        value = value if scheme.lower() in ("bearer", "oauth") else given.get("access_token", "")
        if not value:
            raise Refusal(104, "An access token is required to request this resource.")
        token = self.tokens.get(value)
        if token is None:
            raise Refusal(190, "Invalid OAuth access token - Cannot parse access token", status=401)
        problem = token.problem or (463 if token.end is not None and token.end <= self.now() else None)
        if problem:
            raise Refusal(190, TOKEN_PROBLEMS[problem], subcode=problem, status=401)
        return value

    def _check(self, given, value, options):
        token = self.tokens[value]
        if proof := given.get("appsecret_proof"):
            if proof != hmac.new(self.secret.encode(), value.encode(), hashlib.sha256).hexdigest():
                raise Refusal(100, "Invalid appsecret_proof provided in the API argument", kind="GraphMethodException")
        if options["kind"] not in (None, token.kind):
            raise Refusal(190, "User Access Token Is Not Supported", subcode=2069032)
        if missing := [scope for scope in options["scopes"] if scope not in token.scopes]:
            raise Refusal(200, f"(#200) Requires {missing[0]} permission to manage the object", status=403)

    def _count(self, request, owner):
        window = self.take(self.rate, owner)
        used = 100 * (window.limit - window.remaining) // window.limit
        usage = {"type": self.usage_type, "call_count": used, "total_cputime": 1, "total_time": 1,
                 "estimated_time_to_regain_access": self.regain if window.exceeded else 0}
        request.reply_headers["X-Business-Use-Case-Usage"] = json.dumps({owner: [usage]})
        if window.exceeded:
            raise Refusal(*self.over, status=400)

    over = (80001, "(#80001) There have been too many calls to this Page account. Wait a bit and try again.")

    def consent(self, given: dict, scopes: set) -> Answer:
        """What the consent page does once the person has said yes: a redirect with a code."""
        if given.get("client_id") != self.app or given.get("redirect_uri") not in self.redirects:
            return Answer(400, "<html>URL Blocked: this redirect failed</html>")
        if given.get("response_type") != "code" or unknown(given.get("scope", ""), scopes):
            return Answer(400, "<html>Invalid Scopes</html>")
        code = secrets.token_hex(20)
        asked = set(given["scope"].split(","))
        self._codes[code] = {"user": self.consenting, "end": self.now() + CODE_LIFE, "redirect": given["redirect_uri"],
                             "scopes": asked if self.granted is None else asked & self.granted}
        back = urlencode({"code": code, "state": given["state"]} if "state" in given else {"code": code})
        return Answer(302, "", {"Location": f"{given['redirect_uri']}?{back}#_"})

    def redeem(self, given) -> dict:
        """The code's grant, once."""
        self.check_app(given)
        grant = self._codes.pop(given.get("code"), None)
        if grant is None:
            raise Refusal(100, "This authorization code has been used.", subcode=36009)
        if grant["end"] <= self.now():
            raise Refusal(100, "This authorization code has expired.", subcode=36007)
        if grant["redirect"] != given.get("redirect_uri"):
            raise Refusal(100, "Error validating verification code. Please make sure your redirect_uri is identical to the one "
                               "you used in the OAuth dialog request", subcode=36008)
        return grant

    def check_app(self, given):
        """Refuses a wrong app or secret."""
        if given.get("client_id", self.app) != self.app:
            raise Refusal(101, "Error validating application. Cannot get application info due to a system error.")
        if given.get("client_secret") != self.secret:
            raise Refusal(1, "Error validating client secret.")

    def alive(self, value) -> Token:
        """A token that is exchanged or renewed."""
        token = self.tokens.get(value)
        if token is None or token.problem or (token.end is not None and token.end <= self.now()):
            raise Refusal(190, TOKEN_PROBLEMS[463], subcode=463)
        return token


def unknown(asked: str, scopes: set) -> set:
    """The scopes that do not exist."""
    return set(asked.split(",")) - scopes


def api(method: str, path: str, *scopes: str, params=(), needs=(), kind=None):
    """Mark a handler(self, request, token, given). `params` may and `needs` must be given; `kind` of token that is needed."""
    return route(method, path, scopes=scopes, params=(*params, *needs), needs=needs, kind=kind)


def flag(given: dict, name: str, default: bool) -> bool:
    """A boolean parameter. Raises Refusal for what is none."""
    value = str(given.get(name, default)).lower()
    if value not in ("true", "false", "1", "0"):
        raise Refusal(100, f"(#100) Param {name} must be a boolean")
    return value in ("true", "1")


def structure(given: dict, name: str, kind: type):
    """A parameter that is JSON text, an empty one where it is absent. Raises Refusal for anything else."""
    try:
        value = json.loads(given[name]) if name in given else kind()
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise Refusal(100, f"(#100) Param {name} must be {kind.__name__}")
    return value


def file_of(given: dict, name: str) -> Part:
    """A parameter that is a file."""
    if not isinstance(given.get(name), Part):
        raise Refusal(100, f"(#100) Param {name} must be an uploaded file", subcode=33)
    return given[name]


def page_of(found: list, given: dict, render) -> dict:
    """One page of a list, newest first, by `limit` and `after` (a position)."""
    limit, start = min(int(given.get("limit", 25)), 100), int(given.get("after") or 0)
    shown = {"data": [render(one) for one in found[start:start + limit]]}
    if shown["data"]:
        shown["paging"] = {"cursors": {"before": str(start), "after": str(start + limit)}}
        if len(found) > start + limit:
            shown["paging"]["next"] = "https://graph.facebook.com/next"
    return shown
