"""Connecting Bluesky accounts in the browser: https://atproto.com/specs/oauth"""

import re
import secrets
import time
from urllib.parse import unquote, urlencode, urlsplit

from platforms import dpop
from platforms.base import Account, Authorization, Connected
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable
from platforms.oauth import REFRESH_EARLY, credentials_from, given_code, s256

SCOPE = "atproto transition:generic"
METADATA, CALLBACK = "client-metadata.json", "callback"     # stand side by side
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_LASTS = 60        # seconds
GRANT_VERDICTS = {"invalid_grant": Disconnected, "invalid_client": Rejected, "unauthorized_client": Rejected}


class BrowserLogins:
    """The part of Bluesky that logs in by OAuth, and proves with every request that the token is its own.

    The credentials are `did`, `handle`, `pds`, `issuer`, `tokenUrl`, `clientId`, `proofKey`, and those of an OAuthPlatform.
    What describes our app stands at an address of our own, beside the callback, and needs no registration. With the setting
    `client_key` (32 bytes as base64url) it signs who it is, and a login lasts two years rather than two weeks.
    """

    connects_in_browser = True
    takes_instance = True

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self._nonces = {}       # the latest of each server

    def client_metadata(self, redirect_url):
        """What tells the servers about our app; they fetch it at its client_id."""
        key = self._client_key()
        signs = {"token_endpoint_auth_method": "none"} if not key else {
            "token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": "ES256",
            "jwks": {"keys": [{**dpop.public_key(key), "kid": "1", "use": "sig", "alg": "ES256"}]}}
        client = f"{redirect_url.removesuffix(CALLBACK)}{METADATA}"
        return {"client_id": client, "client_name": "Posthorn", "client_uri": _origin(client), "application_type": "web",
                "redirect_uris": [redirect_url], "response_types": ["code"], "scope": SCOPE,
                "grant_types": ["authorization_code", "refresh_token"], "dpop_bound_access_tokens": True, **signs}

    def authorize(self, redirect_url, state, instance=None):
        """The page of the account's own server, or of Bluesky's, which has been told beforehand what it is about."""
        issuer = self._issuer(self.http.origin(instance or self.settings["api_url"]))
        server = self.send("GET", f"{issuer}/.well-known/oauth-authorization-server")
        if server.field("issuer") != issuer:
            raise Rejected("this server does not speak for itself", rule="host")
        kept = {"issuer": issuer, "tokenUrl": server.link("token_endpoint"), "clientId": self._client(redirect_url),
                "proofKey": dpop.new_key(), "verifier": secrets.token_urlsafe(48)}
        form = {"response_type": "code", "code_challenge": s256(kept["verifier"]), "code_challenge_method": "S256",
                "state": state, "redirect_uri": redirect_url, "scope": SCOPE}
        answer = self._ask(server.link("pushed_authorization_request_endpoint"), kept, form)
        query = urlencode({"client_id": kept["clientId"], "request_uri": answer.field("request_uri")})
        return Authorization(f"{server.link('authorization_endpoint')}?{query}", kept)

    def redeem(self, answer, redirect_url, kept):
        """Trades the code for tokens, and makes sure that the server may speak for the account."""
        code = given_code(answer, self.title)
        if answer.get("iss") != kept["issuer"]:
            raise Rejected("this login comes from another server than it was begun at", rule="declined")
        try:
            tokens = self._tokens(kept, {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_url,
                                         "code_verifier": kept["verifier"]})
            pds = self._pds(tokens["did"])
            if self._issuer(pds) != kept["issuer"]:
                raise Rejected("this server does not speak for the account", rule="declined")
            kept = {name: value for name, value in kept.items() if name != "verifier"}
            account = Account(tokens["did"], "", credentials={**kept, **tokens, "pds": pds})
            account.credentials["handle"] = self._call(account, "GET", "com.atproto.server.getSession").field("handle")
            return [Connected(self.profile(account), "", account.credentials)]
        except (Disconnected, PermissionMissing) as refusal:
            raise Rejected("Bluesky does not accept this login: begin again", rule="declined", **refusal.words) from None

    def login_due(self, credentials: dict) -> bool:
        """Whether the tokens of a login in the browser end soon."""
        return credentials["expiresAt"] - time.time() <= REFRESH_EARLY

    def refresh_login(self, credentials: dict) -> dict:
        """New tokens; the old refresh token may never be shown again, or all of them end."""
        tokens = self._tokens(credentials, {"grant_type": "refresh_token", "refresh_token": credentials["refreshToken"]})
        if tokens["did"] != credentials["did"]:
            raise Disconnected("Bluesky has given the tokens of another account: connect this one again")
        return {**credentials, **tokens}

    def prove(self, method: str, url: str, key: str, token: str | None = None, accept=(), **request):
        """One request with a proof; once more where the server wants its newest nonce in it, since it has done nothing then."""
        server = _origin(url)
        for last in (request.get("size") is not None, True):
            headers = {**request.get("headers", {}), "DPoP": dpop.proof(key, method, url, self._nonces.get(server), token),
                       **({"Authorization": f"DPoP {token}"} if token else {})}
            answer = self.send(method, url, **{**request, "headers": headers, "accept": (400, 401, *accept),
                                               "secrets": (*request.get("secrets", ()), *filter(None, [token]))})
            if nonce := answer.headers.get("DPoP-Nonce"):
                self._nonces[server] = nonce
            if answer.field("error", default=None) != "use_dpop_nonce":
                break
            if last:
                raise Unavailable("Bluesky wants to be asked again", retry_after=1)
        if answer.status in (400, 401) and answer.status not in accept:
            raise answer.error()
        return answer

    def _client_key(self):
        key = self.settings["client_key"]
        try:
            return key and dpop.public_key(key) and key
        except ValueError:
            raise Rejected("POSTHORN_BLUESKY_CLIENT_KEY has to be 32 bytes as base64url; `posthorn secrets new` prints some",
                           rule="app") from None

    def _client(self, redirect_url):
        """Our name: where our metadata are, or on a developer's machine, which no server can fetch from, all that they say."""
        url = urlsplit(redirect_url)
        if url.scheme == "https":
            return self.client_metadata(redirect_url)["client_id"]
        if url.hostname not in ("127.0.0.1", "::1"):
            raise Rejected("Bluesky is not set up on this server: its operator has to set POSTHORN_BASE_URL to its https "
                           "address", rule="app")
        return "http://localhost?" + urlencode({"redirect_uri": redirect_url, "scope": SCOPE})

    def _issuer(self, origin):
        """Who issues the tokens for a server; it itself where it does not say, as Bluesky's own."""
        answer = self.send("GET", f"{origin}/.well-known/oauth-protected-resource", accept=(404,))
        return origin if answer.status == 404 else self.http.origin(answer.field("authorization_servers", 0))

    def _pds(self, did):
        """The server that has the account, from the account's public document."""
        if re.fullmatch(r"did:plc:[a-z2-7]{24}", did):
            answer = self.send("GET", f"{self.settings['plc_url']}/{did}")
        elif re.fullmatch(r"did:web:[A-Za-z0-9.-]+(%3A[0-9]+)?", did):
            answer = self.send("GET", f"{self.http.origin(unquote(did.removeprefix('did:web:')))}/.well-known/did.json")
        else:
            raise Rejected("there are no accounts of this kind", rule="declined")
        if answer.field("id") == did and (pds := self.pds_in(answer)):
            return pds
        raise Rejected("the document of this account names no server", rule="declined")

    def pds_in(self, answer, *path):
        """The server that a DID document, at `path` of an answer, names; None where it names none."""
        for service in answer.field(*path, "service", kind=list, default=[]):
            if isinstance(service, dict) and str(service.get("id")).endswith("#atproto_pds"):
                return self.http.origin(str(service.get("serviceEndpoint")))
        return None

    def _tokens(self, kept, form):
        hidden = [form[name] for name in ("code", "code_verifier", "refresh_token") if name in form]
        answer = self._ask(kept["tokenUrl"], kept, form, hidden)
        if answer.field("token_type").lower() != "dpop":
            raise answer.manner.fault()
        return {**credentials_from(answer), "did": answer.field("sub")}

    def _ask(self, url, kept, form, hidden=()):
        """One request of our app to the server that issues tokens."""
        form = {**form, "client_id": kept["clientId"]}
        if (key := self._client_key()) and kept["clientId"].startswith("https:"):
            now = int(time.time())
            claims = {"iss": kept["clientId"], "sub": kept["clientId"], "aud": kept["issuer"], "jti": secrets.token_urlsafe(16),
                      "iat": now, "exp": now + ASSERTION_LASTS}
            form |= {"client_assertion_type": ASSERTION, "client_assertion": dpop.signed(key, {"kid": "1"}, claims)}
        return self.prove("POST", url, kept["proofKey"], form=form, secrets=tuple(hidden))


def _origin(address):
    return "{0.scheme}://{0.netloc}".format(urlsplit(address))
