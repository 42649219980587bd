"""The OAuth of Bluesky's servers: one PDS that is its own authorization server, as the reference PDS 0.5.35 behaves.

https://atproto.com/specs/oauth, RFC 9126 (pushed requests), RFC 9449 (proofs), RFC 7523 (assertions).
"""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tests.standins.bluesky import BlueskyServer
from tests.standins.bluesky_sessions import ACCESS
from tests.standins.lexicon import base64url
from tests.standins.server import Answer, route

SCOPES = {"atproto", "transition:generic"}
REQUEST_SECONDS, CODE_SECONDS, TOKEN_SECONDS = 299, 60, 3599
NONCE_SECONDS = 180             # how long a nonce is taken
ALLOWED_DRIFT = 60              # seconds that a proof may be old


class Problem(Answer):
    """What an OAuth endpoint refuses with."""

    def __init__(self, error, description="", status=400, headers=None):
        super().__init__(status, {"error": error, "error_description": description}, headers)


class BlueskyLogin(BlueskyServer):
    """The network with a login in the browser. `consenting` is the DID of who says yes, None: the person says no.

    `clients` holds the metadata of clients by their https address, as if they had been fetched there. `redeemed` counts the
    tokens that were given for refresh tokens. `speaks_for` may hold another server for an account's DID.
    """

    def __init__(self, port=0, **options):
        super().__init__(port, **options)
        self.consenting, self.clients, self.redeemed, self.speaks_for = None, {}, 0, {}
        self.logins = {}        # access and refresh tokens: the login that they belong to
        self.nonces = 0         # how many were given out of turn
        self._requests, self._login_codes, self._proofs = {}, {}, set()

    def add_user(self, handle, app_password="not used", **details):
        """As in BlueskyServer; whoever was added last is consenting."""
        self.consenting = super().add_user(handle, app_password, **details)
        return self.consenting

    # what is where

    @route("GET", "/.well-known/oauth-protected-resource")
    def resource(self, request, *_):
        """Who issues the tokens for this server."""
        return {"resource": self.url, "authorization_servers": [self.url], "scopes_supported": [],
                "bearer_methods_supported": ["header"]}

    @route("GET", "/.well-known/oauth-authorization-server")
    def authorization_server(self, request, *_):
        """Where OAuth lives and what it can."""
        return {"issuer": self.url, "authorization_endpoint": f"{self.url}/oauth/authorize",
                "token_endpoint": f"{self.url}/oauth/token", "pushed_authorization_request_endpoint": f"{self.url}/oauth/par",
                "require_pushed_authorization_requests": True, "scopes_supported": [*SCOPES],
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "dpop_signing_alg_values_supported": ["ES256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
                "authorization_response_iss_parameter_supported": True, "client_id_metadata_document_supported": True}

    # the login

    @route("POST", "/oauth/par")
    def pushed(self, request, *_):
        """Takes everything about a login before anybody is sent here."""
        given, thumb = self._form(request), self._proof(request, 400)
        client = self._login_client(given)
        if given.get("redirect_uri") not in client["redirect_uris"]:
            raise Problem("invalid_request", "Invalid redirect_uri")
        scopes = set(given.get("scope", "").split())
        if "atproto" not in scopes or not scopes <= set(client["scope"].split()) & SCOPES:
            raise Problem("invalid_scope", "Scope is not allowed")
        if not given.get("code_challenge") or (
                given.get("response_type"), given.get("code_challenge_method")) != ("code", "S256"):
            raise Problem("invalid_request", "A code with a challenge is needed")
        name = f"urn:ietf:params:oauth:request_uri:req-{secrets.token_hex(16)}"
        self._requests[name] = {**given, "thumb": thumb, "end": self.now() + REQUEST_SECONDS}
        return Answer(201, {"request_uri": name, "expires_in": REQUEST_SECONDS})

    @route("GET", "/oauth/authorize")
    def login_page(self, request, *_):
        """The consent page, with the consent given at once."""
        given = dict(request.query)
        asked = self._requests.pop(given.get("request_uri"), None)
        if asked is None or asked["end"] <= self.now() or given.get("client_id") != asked["client_id"] or len(given) != 2:
            return Answer(400, "<html>This request has expired</html>")
        back = {"iss": self.url, "state": asked["state"]}
        if self.consenting is None:
            back |= {"error": "access_denied", "error_description": "The user rejected the request"}
        else:
            back["code"] = f"cod-{secrets.token_hex(24)}"
            self._login_codes[back["code"]] = {**asked, "did": self.consenting, "end": self.now() + CODE_SECONDS}
        return Answer(303, "", {"Location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    @route("POST", "/oauth/token")
    def login_token(self, request, *_):
        """Tokens for a code or for a refresh token, each of which works once."""
        given, thumb = self._form(request), self._proof(request, 400)
        self._login_client(given)
        if given.get("grant_type") == "authorization_code":
            login = self._traded(given, thumb)
        elif given.get("grant_type") == "refresh_token":
            login = self._rotated(given, thumb)
        else:
            raise Problem("unsupported_grant_type")
        access, refresh = f"tok-{secrets.token_hex(24)}", f"ref-{secrets.token_hex(24)}"
        login |= {"access": access, "refresh": refresh, "end": self.now() + TOKEN_SECONDS}
        self.logins |= {access: login, refresh: login}
        return {"access_token": access, "refresh_token": refresh, "token_type": "DPoP", "expires_in": TOKEN_SECONDS,
                "scope": login["scope"], "sub": login["did"]}

    # private

    def _traded(self, given, thumb):
        code = self._login_codes.pop(given.get("code"), None)
        challenge = base64url(hashlib.sha256(given.get("code_verifier", "").encode()).digest())
        if (code is None or code["end"] <= self.now() or code["client_id"] != given["client_id"] or code["thumb"] != thumb
                or code["redirect_uri"] != given.get("redirect_uri") or code["code_challenge"] != challenge):
            raise Problem("invalid_grant", "Invalid code")
        return {"did": code["did"], "client": code["client_id"], "thumb": thumb, "scope": code["scope"], "over": False}

    def _rotated(self, given, thumb):
        login = self.logins.get(given.get("refresh_token"))
        if login is None or login["client"] != given["client_id"] or login["thumb"] != thumb or login["over"]:
            raise Problem("invalid_grant", "Invalid refresh token")
        if login["refresh"] != given["refresh_token"]:
            login["over"] = True
            raise Problem("invalid_grant", "Refresh token replayed")
        self.redeemed += 1
        return login

    def _form(self, request):
        if request.media_type != "application/x-www-form-urlencoded":
            raise Problem("invalid_request", "Unexpected content type", 415)
        given = parse_qsl(request.body.decode(), strict_parsing=True)
        if len(dict(given)) != len(given):
            raise Problem("invalid_request", "A parameter is repeated")
        return dict(given)

    def _login_client(self, given):
        """The metadata of the client that asks, which has to sign who it is if they say so."""
        name = given.get("client_id", "")
        url = urlsplit(name)
        if url.scheme == "http" and url.netloc == "localhost" and url.path in ("", "/"):
            said = parse_qs(url.query)
            redirects = said.get("redirect_uri", ["http://127.0.0.1/", "http://[::1]/"])
            if any(urlsplit(one).hostname not in ("127.0.0.1", "::1") for one in redirects):
                raise Problem("invalid_client_metadata", "Loopback redirects must be to an address")
            return {"redirect_uris": redirects, "scope": said.get("scope", ["atproto"])[0]}
        client = self.clients.get(name)
        if client is None or client["client_id"] != name or not client["dpop_bound_access_tokens"]:
            raise Problem("invalid_client_metadata", "Unable to obtain client metadata")
        if client["token_endpoint_auth_method"] == "private_key_jwt":
            self._assertion(given, client)
        return client

    def _assertion(self, given, client):
        if given.get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
            raise Problem("invalid_client", "client_assertion_type is missing", 401)
        header, claims = self._jwt(given.get("client_assertion", ""), lambda header: next(
            key for key in client["jwks"]["keys"] if key["kid"] == header["kid"]), "invalid_client")
        right = claims["iss"] == claims["sub"] == client["client_id"] and claims["aud"] == self.url
        if not right or claims["jti"] in self._proofs or abs(claims["iat"] - self.now()) > ALLOWED_DRIFT:
            raise Problem("invalid_client", "Invalid client_assertion", 401)
        self._proofs.add(claims["jti"])

    def _proof(self, request, status, token=None):
        """The thumbprint of the key that proves this request (RFC 9449, section 4.3)."""
        proofs = request.headers.get_all("DPoP") or []
        if len(proofs) != 1:
            raise Problem("invalid_dpop_proof", "DPoP proof required", status)
        header, claims = self._jwt(proofs[0], lambda header: header["jwk"], "invalid_dpop_proof")
        if header["typ"] != "dpop+jwt" or "d" in header["jwk"] or abs(claims["iat"] - self.now()) > ALLOWED_DRIFT:
            raise Problem("invalid_dpop_proof", "Invalid proof", status)
        if (claims["htm"], claims["htu"]) != (request.method, self.url + request.path) or claims["jti"] in self._proofs:
            raise Problem("invalid_dpop_proof", "DPoP proof mismatch or replayed", status)
        if token and claims.get("ath") != base64url(hashlib.sha256(token.encode()).digest()):
            raise Problem("invalid_dpop_proof", "DPoP ath mismatch", status)
        self._check_nonce(request, claims, status)
        self._proofs.add(claims["jti"])
        key = {name: header["jwk"][name] for name in ("crv", "kty", "x", "y")}
        return base64url(hashlib.sha256(json.dumps(key, separators=(",", ":")).encode()).digest())

    def _check_nonce(self, request, claims, status):
        current = f"nonce-{self.nonces}-{int(self.now()) // NONCE_SECONDS}"
        request.reply_headers["DPoP-Nonce"] = current
        if claims.get("nonce") != current:
            challenge = {"WWW-Authenticate": 'DPoP error="use_dpop_nonce"'} if status == 401 else {}
            raise Answer(status, {"error": "use_dpop_nonce", "message": "Server requires nonce in DPoP proof"}, challenge)

    def _jwt(self, text, key_of, error):
        """Header and claims of a JWT whose ES256 signature is right."""
        try:
            head, body, signature = text.split(".")
            header, claims = (json.loads(_decoded(part)) for part in (head, body))
            key, signature = key_of(header), _decoded(signature)
            assert header["alg"] == "ES256" and key["kty"] == "EC" and key["crv"] == "P-256" and len(signature) == 64
            x, y, r, s = map(int.from_bytes, (_decoded(key["x"]), _decoded(key["y"]), signature[:32], signature[32:]))
            public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
            public.verify(encode_dss_signature(r, s), f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
            return header, claims
        except (ValueError, KeyError, AssertionError, InvalidSignature, StopIteration) as fault:
            raise Problem(error, f"Invalid JWT: {type(fault).__name__}") from None

    def _authenticate(self, request, options):
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "DPoP" or options.get("auth") not in ("access", "optional"):
            return super()._authenticate(request, options)
        if "login" in request.args:     # looked at before the body was read
            return self.accounts[request.args["login"]["did"]]
        thumb, login = self._proof(request, 401, token), self.logins.get(token)
        if login is None or login["thumb"] != thumb or login["over"] or login["access"] != token or login["end"] <= self.now():
            raise Answer(401, {"error": "invalid_token", "message": "Invalid token"},
                         {"WWW-Authenticate": 'DPoP error="invalid_token"'})
        request.args |= {"scope": ACCESS, "jti": None, "login": login}
        return self.accounts[login["did"]]

    def _document(self, account):
        document = super()._document(account)
        document["service"][0]["serviceEndpoint"] = self.speaks_for.get(account.did, self.url)
        return document


def _decoded(part):
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
