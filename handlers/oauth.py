"""The authorization server of the REST API, on Authlib: OAuth 2.1, that is OAuth 2.0 with PKCE for all and no short cuts.

What Authlib leaves to us is here: who the clients are, what is kept of a grant, and that secrets come once. It calls our
methods; the views are in handlers/pages/authorize.py.
"""

import logging
import re
from dataclasses import dataclass
from functools import cached_property

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import (ClientMixin, InvalidRequestError, InvalidScopeError,
                                    OAuth2Error, OAuth2Payload, OAuth2Request)
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask

from storage import audit, buckets, keys, oauth
from storage.models import User
from storage.oauth import Code, Grant, OAuthClient, Token

AUTHORIZE, TOKEN, REVOKE = "/oauth/authorize", "/oauth/token", "/oauth/revoke"
SERVER_METADATA, RESOURCE_METADATA = "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource"
CLIENT_AUTHENTICATION = ["client_secret_basic", "client_secret_post", "none"]
GRANT_TYPES = ["authorization_code", "refresh_token", "client_credentials"]
PLAIN = re.compile(r"[ !#-\[\]-~]*")       # RFC 6749, section 5.2
REPEATABLE = {"resource"}       # RFC 8707, section 2; everything else may be given once

logging.getLogger("authlib").setLevel("INFO")   # on DEBUG it logs the tokens that it issues


class InvalidTarget(OAuth2Error):
    """RFC 8707, section 2: tokens of ours are for this API alone."""

    error = "invalid_target"


class TooManyTokens(OAuth2Error):
    """Each works for an hour; a program that asks for hundreds a minute forgets those it has."""

    error, status_code = "temporarily_unavailable", 429

    def __init__(self, seconds):
        super().__init__("Too many tokens were asked for.")
        self.seconds = seconds

    def get_headers(self):
        return [*super().get_headers(), ("Retry-After", str(self.seconds))]


@dataclass(frozen=True)
class Consent:
    """A person allows it: `user`, for everything of the team or for the one agency client `client_id`."""

    user: User
    client_id: str | None


class Request(OAuth2Request):
    """A request with its parameters (a werkzeug MultiDict), as Authlib reads one. Raises OAuth2Error for what is not OAuth.

    The URI is the one that the world knows, not that of a connection behind a proxy; plain HTTP is refused but on this machine.
    `allowance` is what is left of the tokens that a grant may give in a minute, where it was asked for one.
    """

    allowance = None

    def __init__(self, base_url, method, path, parameters, headers):
        super().__init__(method, base_url + path, headers=headers)
        self.payload, self._parameters = _Payload(parameters), parameters
        for name, values in parameters.lists():
            if len(values) > 1 and name not in REPEATABLE:
                raise InvalidRequestError("A parameter is given twice.")
            # Authlib repeats what it was given, and breaks on what RFC 6749 does not allow there.
            if name != "state" and not all(PLAIN.fullmatch(text) for text in values):
                raise InvalidRequestError("A parameter has characters that none may have.")
        if set(parameters.getlist("resource")) - {base_url, f"{base_url}/", f"{base_url}/v1"}:
            raise InvalidTarget("There are no tokens for this resource here.")

    @property
    def form(self):
        return self._parameters


class _Payload(OAuth2Payload):
    def __init__(self, parameters):
        self._parameters = parameters

    @property
    def data(self):
        return self._parameters

    @cached_property
    def datalist(self):
        return dict(self._parameters.lists())


class App(ClientMixin):
    """An OAuth client as Authlib asks after one; `row` is what we know of it."""

    def __init__(self, row: OAuthClient):
        self.row = row

    def __repr__(self):
        return self.row.id

    def get_client_id(self):
        return self.row.id

    def get_default_redirect_uri(self):
        return None     # OAuth 2.1, section 4.1.1: whoever has several must say which; here everybody says

    def get_allowed_scope(self, scope):
        # Only where nothing is said it is everything: blanks name no scope, and the page would show none.
        wanted = scope.split() if scope else self.row.scopes
        return " ".join(dict.fromkeys(wanted)) if wanted and set(wanted) <= set(self.row.scopes) else None

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.row.redirect_uris

    def check_client_secret(self, client_secret):
        return self.row.has_secret(client_secret)

    def check_endpoint_auth_method(self, method, endpoint):
        return (method == "none") == (self.row.secret is None)

    def check_response_type(self, response_type):
        return response_type == "code" and bool(self.row.redirect_uris)

    def check_grant_type(self, grant_type):
        return self.row.acts_alone() if grant_type == "client_credentials" else bool(self.row.redirect_uris)


class _CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_AUTHENTICATION

    def generate_authorization_code(self):
        return keys.fresh("ac")

    def save_authorization_code(self, code, request):
        consent, app = request.user, request.client.row
        grant = Grant.add(oauth_client_id=app.id, team_id=consent.user.team_id, user_id=consent.user.id, mode=app.mode,
                          client_id=consent.client_id, scopes=request.scope.split())
        audit.record(audit.Actor(consent.user.id), "grant.given", grant.id, team_id=grant.team_id, mode=grant.mode,
                     oauthClientId=app.id, clientId=grant.client_id, scopes=grant.scopes)
        Code.issue(code, grant, redirect_uri=request.payload.redirect_uri,
                   code_challenge=request.payload.data["code_challenge"])

    def query_authorization_code(self, code, client):
        row = oauth.use(Code, code, client.row.id)
        return row and _Answered(row)

    def authenticate_user(self, authorization_code):
        return authorization_code.row.grant

    def delete_authorization_code(self, authorization_code):
        oauth.use_up(authorization_code.row)


class _Answered:
    """A Code or refresh Token as Authlib asks after one."""

    code_challenge_method = "S256"

    def __init__(self, row):
        self.row = row

    @property
    def code_challenge(self):
        return self.row.code_challenge

    def get_redirect_uri(self):
        return self.row.redirect_uri

    def get_scope(self):
        return " ".join(self.row.grant.scopes)

    def check_client(self, client):
        return self.row.grant.oauth_client_id == client.row.id


class _S256(CodeChallenge):
    """For every client, whether it can keep a secret or not, and never plain."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]

    def validate_code_challenge(self, grant, redirect_uri):
        given = grant.request.payload.data
        if not given.get("code_challenge") or given.get("code_challenge_method") != "S256":
            raise InvalidRequestError("A code_challenge with code_challenge_method=S256 is needed.")
        super().validate_code_challenge(grant, redirect_uri)


class _RefreshGrant(RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_AUTHENTICATION
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        row = oauth.use(Token, refresh_token, self.request.client.row.id)
        return row and _Answered(row)

    def authenticate_user(self, refresh_token):
        return refresh_token.row.grant

    def revoke_old_credential(self, refresh_token):
        oauth.use_up(refresh_token.row)


class _ClientCredentialsGrant(ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_AUTHENTICATION[:2]


class _Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = CLIENT_AUTHENTICATION

    def query_token(self, token_string, token_type_hint):
        row = oauth.find(token_string)
        return row and _Answered(row)

    def revoke_token(self, token, request):
        oauth.revoke(token.row)


class Server(AuthorizationServer):
    """Takes a Request of ours. What is written is written in the caller's transaction."""

    def create_oauth2_request(self, request):
        return request

    def query_client(self, client_id):
        row = OAuthClient.in_force(client_id)
        return row and App(row)

    def generate_token(self, grant_type, client, user=None, scope=None, expires_in=None, include_refresh_token=True):
        scope = client.get_allowed_scope(scope)
        if scope is None:
            raise InvalidScopeError()
        token = {"token_type": "Bearer", "access_token": keys.fresh("at"), "scope": scope,
                 "expires_in": int(oauth.ACCESS_LASTS.total_seconds())}
        return {**token, "refresh_token": keys.fresh("rt")} if include_refresh_token else token

    def save_token(self, token, request):
        grant = request.user if request.user is not None else request.client.row.own_grant()
        request.allowance = buckets.take(f"{grant.id}:tokens", self.limit)
        if not request.allowance.taken:
            raise TooManyTokens(request.allowance.retry_after)
        grant.issue("access", token["access_token"], token["scope"].split(), oauth.ACCESS_LASTS)
        if "refresh_token" in token:    # it goes on with all that was allowed, whatever this access token has of it
            grant.issue("refresh", token["refresh_token"], grant.scopes, oauth.REFRESH_LASTS)


def create_server(app: Flask, scopes, limit: int) -> Server:
    """The authorization server for `scopes`; each grant gives `limit` tokens a minute."""
    server = Server(app)
    server.limit = limit
    server.scopes_supported = list(scopes)
    server.register_grant(_CodeGrant, [_S256()])
    server.register_grant(_RefreshGrant)
    server.register_grant(_ClientCredentialsGrant)
    server.register_endpoint(_Revocation)
    return server


def server_metadata(base_url: str, scopes) -> dict:
    """What clients learn of the authorization server (RFC 8414, RFC 9207)."""
    return {"issuer": base_url, "authorization_endpoint": base_url + AUTHORIZE, "token_endpoint": base_url + TOKEN,
            "revocation_endpoint": base_url + REVOKE, "scopes_supported": list(scopes), "response_types_supported": ["code"],
            "response_modes_supported": ["query"], "grant_types_supported": GRANT_TYPES,
            "token_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
            "revocation_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
            "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True,
            "service_documentation": f"{base_url}/v1/openapi.yaml"}


def resource_metadata(base_url: str, scopes) -> dict:
    """What clients learn of this API (RFC 9728)."""
    return {"resource": base_url, "authorization_servers": [base_url], "scopes_supported": list(scopes),
            "bearer_methods_supported": ["header"], "resource_name": "Posthorn",
            "resource_documentation": f"{base_url}/v1/openapi.yaml"}
