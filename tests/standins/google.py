"""What the stand-ins of Google's networks share: the login, tokens with scopes, closed requests, and Google's errors."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from tests.standins.server import Answer, Network, parse_json, route

CLIENT_ID, CLIENT_SECRET = "client-1.apps.googleusercontent.com", "GOCSPX-canary-secret"
REDIRECT = "https://posthorn.example.com/connect/callback"
LIFETIME, CODE_SECONDS = 3599, 600
STATUS_NAMES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def error_body(status: int, message: str, reason: str | None = None, domain: str = "global", details=None) -> dict:
    """The body of an error; `reason` adds the older list of errors."""
    error = {"code": status, "message": message, "status": STATUS_NAMES.get(status, "UNKNOWN")}
    if reason:
        error["errors"] = [{"message": message, "domain": domain, "reason": reason}]
    return {"error": error | ({"details": details} if details else {})}


def error_info(reason: str, **metadata) -> list:
    """Details with an ErrorInfo."""
    return [{"@type": ERROR_INFO, "reason": reason, "domain": "googleapis.com", "metadata": metadata}]


class Refusal(Answer):
    """An error of an API."""

    def __init__(self, status, message, reason=None, **more):
        super().__init__(status, error_body(status, message, reason, **more))


class TokenRefusal(Answer):
    """An error of the token endpoint."""

    def __init__(self, status, error, description):
        super().__init__(status, {"error": error, "error_description": description})


UNAUTHENTICATED = {"status": 401, "body": error_body(
    401, "Request had invalid authentication credentials. Expected OAuth 2 access token.", "authError",
    details=error_info("ACCESS_TOKEN_EXPIRED"))}
SCOPE_MISSING = {"status": 403, "body": error_body(
    403, "Request had insufficient authentication scopes.", "insufficientPermissions",
    details=error_info("ACCESS_TOKEN_SCOPE_INSUFFICIENT"))}


@dataclass
class Grant:
    """What a person allowed the app: a refresh token stands for it."""

    user: object
    scopes: set
    revoked: bool = False


@dataclass
class Token:
    """An access token."""

    grant: Grant
    end: float


@dataclass
class Shape:
    """What a request may hold: names and types of its query and of its body; and the query parameters that it must have."""

    query: dict = field(default_factory=dict)
    body: dict | None = None
    required: tuple = ()


def api(method: str, path: str, scopes: tuple, name: str | None = None, **shape):
    """Mark a handler(self, request, user, query, body). The token needs one of the scopes; Shape says what is taken."""
    return route(method, path, name, scopes=set(scopes), shape=Shape(**shape))


class GoogleServer(Network):
    """A network of Google.

    `consenting` is the user who says yes at the login: the last one added; `unticked` are scopes that are not allowed then.
    """

    scopes: tuple = ()

    def __init__(self, port=0):
        super().__init__(port)
        self.tokens: dict[str, Token] = {}
        self.grants: dict[str, Grant] = {}
        self.consenting, self.unticked = None, set()
        self._codes, self._number = {}, 0

    def grant(self, user, scopes=None) -> dict:
        """New credentials of a user, as a login brings them."""
        self._number += 1
        refresh_token = f"1//canary-refresh-{self._number}"
        self.grants[refresh_token] = Grant(user, set(self.scopes if scopes is None else scopes))
        return {"accessToken": self._issue(self.grants[refresh_token]), "expiresAt": self.now() + LIFETIME,
                "refreshToken": refresh_token}

    def expire(self):
        """Ends every access token."""
        self.tokens.clear()

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        user = self._authorize(request, options["scopes"])
        return handler(self, request, user, *self._read(request, options["shape"]))

    def no_route(self, request, methods):
        return Answer(404, "<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title></html>")

    # Login

    @route("GET", "/o/oauth2/v2/auth")
    def authorize(self, request):
        """The consent page, with the consent given at once: a redirect with a code."""
        given = dict(request.query)
        if given.get("client_id") != CLIENT_ID or given.get("redirect_uri") != REDIRECT:
            raise Answer(400, "<html>Error 400: redirect_uri_mismatch</html>")
        scopes = set(given.get("scope", "").split())
        if given.get("response_type") != "code" or not scopes or not scopes <= set(self.scopes):
            raise Answer(400, "<html>Error 400: invalid_scope</html>")
        code = f"4/canary-code-{secrets.token_urlsafe(8)}"
        self._codes[code] = {
            "user": self.consenting, "scopes": scopes - self.unticked, "challenge": given.get("code_challenge"),
            "offline": given.get("access_type") == "offline", "end": self.now() + CODE_SECONDS}
        return Answer(302, "", {"Location": f"{REDIRECT}?{urlencode({'code': code, 'state': given.get('state', '')})}"})

    @route("POST", "/token")
    def token(self, request):
        """Trades a code, once, or a refresh token, which stays as it is."""
        if request.media_type != "application/x-www-form-urlencoded":
            raise TokenRefusal(400, "invalid_request", "The content type is not supported.")
        given = dict(parse_qsl(request.body.decode(), strict_parsing=True))
        if given.get("client_id") != CLIENT_ID:
            raise TokenRefusal(401, "invalid_client", "The OAuth client was not found.")
        if given.get("client_secret") != CLIENT_SECRET:
            raise TokenRefusal(401, "invalid_client", "The provided client secret is invalid.")
        match given.get("grant_type"):
            case "authorization_code":
                return self._redeem(given)
            case "refresh_token":
                grant = self.grants.get(given.get("refresh_token"))
                if grant is None or grant.revoked:
                    raise TokenRefusal(400, "invalid_grant", "Token has been expired or revoked.")
                return self._answer(grant)
        raise TokenRefusal(400, "unsupported_grant_type", "Invalid grant_type")

    def _redeem(self, given):
        code = self._codes.pop(given.get("code"), None)
        if code is None or code["end"] < self.now():
            raise TokenRefusal(400, "invalid_grant", "Malformed auth code.")
        if given.get("redirect_uri") != REDIRECT:
            raise TokenRefusal(400, "redirect_uri_mismatch", "Bad Request")
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        if code["challenge"] not in (None, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()):
            raise TokenRefusal(400, "invalid_grant", "Invalid code verifier.")
        credentials = self.grant(code["user"], code["scopes"])
        grant = self.grants[credentials["refreshToken"]]
        return self._answer(grant) | ({"refresh_token": credentials["refreshToken"]} if code["offline"] else {})

    def _answer(self, grant):
        return {"access_token": self._issue(grant), "expires_in": LIFETIME, "scope": " ".join(sorted(grant.scopes)),
                "token_type": "Bearer"}

    def _issue(self, grant):
        self._number += 1
        token = f"ya29.canary-access-{self._number}"
        self.tokens[token] = Token(grant, self.now() + LIFETIME)
        return token

    # Every call

    def _authorize(self, request, scopes):
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        token = self.tokens.get(value) if kind == "Bearer" else None
        if token is None or token.end < self.now() or token.grant.revoked:
            raise Answer(**UNAUTHENTICATED)
        if not token.grant.scopes & scopes:
            raise Answer(**SCOPE_MISSING)
        return token.grant.user

    def _read(self, request, shape):
        query = {}
        for name, value in request.query:
            if name not in shape.query:
                raise Refusal(400, f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.',
                              "badRequest")
            query[name] = _parameter(name, value, shape.query[name])
        if missing := [name for name in shape.required if name not in query]:
            raise Refusal(400, f"Required parameter: {missing[0]}", "missingRequiredParameter")
        return query, self._body(request, shape.body)

    def _body(self, request, fields):
        if fields is None:
            if request.body and request.method == "GET":
                raise Refusal(400, "Request body must be empty.", "badRequest")
            return None
        if request.media_type != "application/json":
            raise Refusal(400, "Media type is not supported.", "badContent")
        try:
            body = parse_json(request.body)
        except ValueError:
            raise Refusal(400, "Invalid JSON payload received.", "parseError") from None
        _check(body, fields, "")
        return body


def _parameter(name, value, kind):
    if kind is bool and value in ("true", "false"):
        return value == "true"
    if isinstance(kind, range) and value.isdecimal() and int(value) in kind:
        return int(value)
    if isinstance(kind, set) and set(value.split(",")) <= kind:
        return value.split(",")
    if kind is str and value:
        return value
    raise Refusal(400, f"Invalid value at '{name}', \"{value}\"", "invalidParameter")


def _check(value, shape, path):
    """Refuse what a closed message does not have.

    `shape` is a dict of fields ({str: shape} where any name will do), [shape of items], a set of names, or a type.
    """
    if isinstance(shape, dict) and isinstance(value, dict):
        for name, inner in value.items():
            if name not in shape and str not in shape:
                raise Refusal(400, f'Invalid JSON payload received. Unknown name "{name}" at \'{path}\': Cannot find field.',
                              "badRequest")
            _check(inner, shape.get(name, shape.get(str)), f"{path}.{name}".lstrip("."))
    elif isinstance(shape, list) and isinstance(value, list):
        for position, inner in enumerate(value):
            _check(inner, shape[0], f"{path}[{position}]")
    elif not (isinstance(shape, set) and isinstance(value, str) and value in shape) and type(value) is not shape:
        raise Refusal(400, f"Invalid value at '{path}', {value!r}", "badRequest")
