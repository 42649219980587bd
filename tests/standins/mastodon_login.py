"""The OAuth of an instance of Mastodon: apps that register themselves, codes, and tokens without an end."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from tests.standins.mastodon_rules import Refusal, invalid, scalar
from tests.standins.server import Answer, route

SCOPES = "read:accounts read:statuses write:statuses write:media"
CODE_SECONDS = 600
KNOWN_SCOPES = re.compile(r"(admin:)?(read|write)(:\w+)*|follow|push|profile")


@dataclass
class App:
    """A registered client."""

    id: str
    secret: str = field(repr=False)
    redirect_uris: list
    scopes: set


@dataclass
class Token:
    """An access token; account None is an app's own token. state: valid, revoked or expired."""

    account: object
    scopes: set
    state: str = "valid"


class Logins:
    """The part of an instance that gives out tokens. `consenting` is the id of the account that says yes; None: it says no."""

    def __init__(self, port=0):
        super().__init__(port)
        self.consenting = ""
        self.apps: dict[str, App] = {}
        self.tokens: dict[str, Token] = {}
        self._codes = {}

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
        uris = uris if isinstance(uris, list) else scalar(given, "redirect_uris").split()
        scopes = (scalar(given, "scopes") or "read").split()
        if not scalar(given, "client_name").strip():
            raise invalid("Application name can't be blank")
        if not uris:
            raise invalid("Redirect URI can't be blank")
        if any(not urlsplit(str(uri)).scheme for uri in uris):
            raise invalid("Redirect URI must be an absolute URI.")
        if not all(KNOWN_SCOPES.fullmatch(scope) for scope in scopes):
            raise invalid("Scopes doesn't match configured on the server.")
        app = App(secrets.token_urlsafe(32), secrets.token_urlsafe(32), uris, set(scopes))
        self.apps[app.id] = app
        return {"id": str(len(self.apps)), "name": given["client_name"], "website": scalar(given, "website") or None,
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
        match scalar(given, "grant_type"):
            case "client_credentials":
                account, scopes = None, set((scalar(given, "scope") or "read").split())
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
        app = self.apps.get(scalar(given, "client_id"))
        if app is None or app.secret != scalar(given, "client_secret"):
            raise Refusal(403, "unauthorized_client", "You are not authorized to revoke this token")
        if token := self.tokens.get(scalar(given, "token")):
            token.state = "revoked"
        return {}

    # private

    def _client(self, given):
        app = self.apps.get(scalar(given, "client_id"))
        if app is None or app.secret != scalar(given, "client_secret"):
            raise Refusal(401, "invalid_client", "Client authentication failed due to unknown client, "
                                                 "no client authentication included, or unsupported authentication method.")
        return app

    def _redeem(self, app, given):
        code = self._codes.pop(scalar(given, "code"), None)
        proof = _base64(hashlib.sha256(scalar(given, "code_verifier").encode()).digest())
        if (code is None or code["app"] is not app or code["end"] <= self.now() or code["challenge"] not in (None, proof)
                or code["redirect_uri"] != scalar(given, "redirect_uri")):
            raise Refusal(400, "invalid_grant",
                          "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI "
                          "used in the authorization request, or was issued to another client.")
        return code["account"], code["scopes"]


def _base64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
