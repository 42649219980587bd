"""The sessions of a Bluesky server: app passwords, tokens that name their own end, and tokens for other services."""

import base64
import hmac
import json
import re
import secrets

from tests.standins.lexicon import DID, Refusal, base64url, boolean, integer, procedure, query, record, string

ACCESS_SECONDS = 120 * 60
REFRESH_SECONDS = 90 * 86400
GRACE_SECONDS = 2 * 3600  # a used refresh token still yields its successor
SERVICE_TOKEN_SECONDS = 3600
ACCESS, APP_PASSWORD, REFRESH = "com.atproto.access", "com.atproto.appPass", "com.atproto.refresh"
SERVER = "com.atproto.server."
TEXT, METHOD = string(), string(form="NSID")


class Sessions:
    """The part of a server that logs people in. access_seconds is the life of an access token."""

    def __init__(self, port=0, access_seconds=ACCESS_SECONDS):
        super().__init__(port)
        self.access_seconds = access_seconds
        self._sessions, self._key = {}, secrets.token_bytes(32)

    @procedure(SERVER + "createSession",
               record(None, {"identifier": TEXT, "password": TEXT}, {"authFactorToken": TEXT, "allowTakendown": boolean}),
               rates=lambda _, account, data: [(rate, data["identifier"], 1) for rate in ("session 5 min", "session day")])
    def create_session(self, request, _, data):
        """Log in by handle, DID or e-mail; a handle has no @."""
        name = data["identifier"].lower()
        account = self._account(name) or next((one for one in self.accounts.values() if one.email == name), None)
        scope = account and account.passwords.get(data["password"])
        if not scope or (account.status == "takendown" and scope == APP_PASSWORD):
            raise Refusal(401, "AuthenticationRequired", "Invalid identifier or password")
        if account.status == "takendown":
            raise Refusal(401, "AccountTakedown", "Account has been taken down")
        if account.email_factor and scope == ACCESS and not data.get("authFactorToken"):
            raise Refusal(401, "AuthFactorTokenRequired", "A sign in code has been sent to your email address")
        return self._session(account, data["password"], secrets.token_urlsafe(16))

    @procedure(SERVER + "refreshSession", auth="refresh")
    def refresh_session(self, request, account, _):
        """Rotate both tokens; a used refresh token yields the same successor for two hours."""
        if account.status == "takendown":
            raise Refusal(401, "AccountTakedown", "Account has been taken down")
        session = self._sessions.get(request.args["jti"])
        if session is None or session["password"] not in account.passwords or session["end"] <= self.now():
            raise Refusal(400, "ExpiredToken", "Token has been revoked")
        session["end"] = min(session["end"], self.now() + GRACE_SECONDS)
        session["next"] = session["next"] or secrets.token_urlsafe(16)
        return self._session(account, session["password"], session["next"])

    @query(SERVER + "getSession", auth="access")
    def get_session(self, request, account, _):
        """Who the token belongs to."""
        return self._profile_of_session(account)

    @query(SERVER + "getServiceAuth",
           record(None, {"aud": string(2048)}, {"exp": integer(-2**53), "lxm": METHOD}), auth="access")
    def get_service_auth(self, request, account, data):
        """A short token for one method of another service."""
        lxm, left = data.get("lxm"), data.get("exp", self.now() + 60) - self.now()
        if not re.fullmatch(rf"({DID})(#\w+)?", data["aud"]):
            raise Refusal(400, "InvalidRequest", "aud must be a valid atproto DID or did#serviceId reference")
        if lxm and lxm.startswith("chat.bsky.") and request.args["scope"] != ACCESS:
            raise Refusal(400, "InvalidRequest",
                          f"insufficient access to request a service auth token for the following method: {lxm}")
        if left < 0:
            raise Refusal(400, "BadExpiration", "expiration is in past")
        if left > SERVICE_TOKEN_SECONDS:
            raise Refusal(400, "BadExpiration", "cannot request a token with an expiration more than an hour in the future")
        if not lxm and left > 60:
            raise Refusal(400, "BadExpiration",
                          "cannot request a method-less token with an expiration more than a minute in the future")
        claims = {"iss": account.did, "aud": data["aud"], "exp": int(self.now() + left), "jti": secrets.token_hex(8)}
        return {"token": self._sign("JWT", claims | ({"lxm": lxm} if lxm else {}))}

    # private

    def _authenticate(self, request, options):
        auth, header = options.get("auth"), request.headers.get("Authorization")
        if auth is None or (auth == "optional" and not header):
            return None
        if not header:
            raise Refusal(401, "AuthMissing", "Authentication Required")
        scheme, _, token = header.partition(" ")
        if not token or " " in token:
            raise Refusal(400, "InvalidToken", "Malformed authorization header")
        if scheme.lower() == "dpop":
            raise Refusal(401, "invalid_token", "Invalid token", {"WWW-Authenticate": 'DPoP error="invalid_token"'})
        if scheme.lower() != "bearer":
            raise Refusal(400, "InvalidToken", f"Unsupported authorization type: {scheme}")
        claims = self._claims(token, "refresh+jwt" if auth == "refresh" else "at+jwt")
        request.args |= {"scope": claims["scope"], "jti": claims.get("jti")}
        return self.accounts[claims["sub"]]

    def _session(self, account, password, refresh_id):
        now, scope = self.now(), account.passwords[password]
        self._sessions.setdefault(refresh_id, {"password": password, "end": now + REFRESH_SECONDS, "next": None})
        access = {"scope": scope, "aud": self.did, "sub": account.did, "iat": int(now), "exp": int(now + self.access_seconds)}
        refresh = {**access, "scope": REFRESH, "jti": refresh_id, "exp": int(now + REFRESH_SECONDS)}
        tokens = {"accessJwt": self._sign("at+jwt", access), "refreshJwt": self._sign("refresh+jwt", refresh)}
        return tokens | self._profile_of_session(account)

    def _profile_of_session(self, account):
        status = {"status": account.status} if account.status else {}
        return {"did": account.did, "didDoc": self._document(account), "handle": account.handle, "email": account.email,
                "emailConfirmed": account.email_confirmed, "active": not account.status, **status}

    def _document(self, account):
        return {"@context": ["https://www.w3.org/ns/did/v1"], "id": account.did, "alsoKnownAs": [f"at://{account.handle}"],
                "verificationMethod": [], "service": [
                    {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": self.url}]}

    def _sign(self, kind, claims):
        parts = [base64url(json.dumps(part).encode()) for part in ({"typ": kind, "alg": "HS256"}, claims)]
        return ".".join([*parts, self._seal(parts)])

    def _seal(self, parts):
        return base64url(hmac.digest(self._key, ".".join(parts).encode(), "sha256"))

    def _claims(self, token, kind):
        *parts, seal = token.split(".")
        if len(parts) != 2 or not hmac.compare_digest(seal.encode(), self._seal(parts).encode()):
            raise Refusal(400, "InvalidToken", "Token could not be verified")
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in parts)
        if header["typ"] != kind:
            raise Refusal(400, "InvalidToken", "Token could not be verified")
        if claims["exp"] <= self.now():
            raise Refusal(400, "ExpiredToken", "Token has expired")
        return claims
