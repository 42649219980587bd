"""Connecting accounts in the browser with OAuth 2 (RFC 6749, RFC 7636), as constants of a network's class."""

import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from urllib.parse import quote, urlencode

from platforms.base import Account, Authorization, Connected, Platform
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected

REFRESH_EARLY = 300     # seconds before the end of a token: longer than any call that is made with it
LIFETIME = 3600         # seconds of a token whose answer names none


class OAuthPlatform(Platform):
    """A network whose accounts are connected by authorization code.

    The credentials of an account are `accessToken`, `expiresAt` (epoch seconds; absent = it does not end) and `refreshToken`
    where the network gives one; a network may keep more beside them. The settings need `authorize_url`, `token_url`,
    `client_id` and `client_secret`.
    """

    connects_in_browser = True
    scopes: tuple[str, ...] = ()
    scope_separator = " "
    client_id_parameter = "client_id"
    pkce = True                             # sends a challenge (S256) and its verifier
    basic = False                           # the app's credentials go in the Authorization header rather than the form
    authorize_parameters: dict = {}         # what the network wants in the address beside the standard ones
    # The token endpoint's error codes. A dead refresh token needs a person, the app's own credentials the operator.
    token_verdicts: dict = {"invalid_grant": Disconnected, "invalid_client": Rejected, "unauthorized_client": Rejected}
    # Those of an app that the network does not know, or no more.
    unknown_app = {"invalid_client", "unauthorized_client", "deleted_client", "disabled_client"}

    def authorize(self, redirect_url, state, instance=None):
        """The network's page, with a challenge where it takes one."""
        verifier = secrets.token_urlsafe(48)
        query = {"response_type": "code", self.client_id_parameter: self.app("client_id"), "redirect_uri": redirect_url,
                 "scope": self.scope_separator.join(self.scopes), "state": state, **self.authorize_parameters}
        if self.pkce:
            query |= {"code_challenge": self.challenge(verifier), "code_challenge_method": "S256"}
        return Authorization(f"{self.settings['authorize_url']}?{urlencode(query)}", {"verifier": verifier})

    def redeem(self, answer, redirect_url, kept):
        """Trades the code for tokens and reads whose they are."""
        form = {"grant_type": "authorization_code", "code": given_code(answer, self.title), "redirect_uri": redirect_url}
        if self.pkce:
            form["code_verifier"] = kept["verifier"]
        try:
            return self.choices(self.tokens(form))
        except (Disconnected, PermissionMissing) as refusal:
            raise Rejected(f"{self.title} does not accept this login: begin again, and allow everything that it asks for",
                           rule="declined", platform_code=refusal.platform_code,
                           platform_message=refusal.platform_message) from None

    def choices(self, credentials: dict) -> list[Connected]:
        """The accounts that new credentials are for. Overridden where a login opens several."""
        return [Connected(self.profile(Account("", "", credentials=credentials)), "", credentials)]

    def refresh_due(self, account):
        """Once the present token is about to end."""
        ends = account.credentials.get("expiresAt")
        return ends is not None and ends - time.time() <= REFRESH_EARLY

    def refresh(self, account, force=False):
        """New tokens by the refresh token."""
        credentials = account.credentials
        if not force and not self.refresh_due(account):
            return None
        if "refreshToken" not in credentials:
            return None     # nothing but a person helps; while the token is good, it is used
        return {**credentials, **self.tokens({"grant_type": "refresh_token", "refresh_token": credentials["refreshToken"]})}

    def tokens(self, form: dict) -> dict:
        """Credentials from the token endpoint, which is asked with `form` and the app's own credentials."""
        headers, secret = {}, self.app("client_secret")
        if self.basic:
            pair = f"{quote(self.app('client_id'), safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = "Basic " + b64encode(pair.encode()).decode()
        else:
            form = {**form, self.client_id_parameter: self.app("client_id"), "client_secret": secret}
        hidden = [form[name] for name in ("code", "code_verifier", "refresh_token", "client_secret") if name in form]
        answer = self.http.send("POST", self.settings["token_url"], title=self.title, verdicts=self.token_verdicts,
                                words=self.token_words, headers=headers, form=form, secrets=(secret, *hidden))
        if any(self.token_words(answer)):
            raise answer.error()    # some say no with status 200
        return credentials_from(answer)

    def app_works(self) -> bool | None:
        """Whether the network knows the operator's app; None where it does not tell.

        It is asked with a refresh token that nobody has: who knows the app minds the token, and who does not the app.
        """
        try:
            self.tokens({"grant_type": "refresh_token", "refresh_token": secrets.token_urlsafe(24)})
        except Disconnected:
            return True
        except Rejected as refusal:
            return False if refusal.platform_code in self.unknown_app else None
        except PlatformError:
            pass
        return None

    def token_words(self, answer):
        """The error code and message of the token endpoint (RFC 6749, section 5.2)."""
        return answer.field("error", default=None), answer.field("error_description", default=None)

    def challenge(self, verifier: str) -> str:
        """What the network is shown of the verifier beforehand (RFC 7636, S256)."""
        return s256(verifier)

    def app(self, name: str) -> str:
        """A credential of the operator's app at the network. Raises Rejected where it is not set."""
        value = self.settings.get(name)
        if not value:
            raise Rejected(f"{self.title} is not set up on this server: its operator has to set "
                           f"POSTHORN_{self.name.upper()}_{name.upper()}", rule="app")
        return value


def given_code(answer: dict, title: str) -> str:
    """The code that a browser has brought back from the network of this title. Raises Rejected where it is none."""
    if "code" in answer:
        return answer["code"]
    raise Rejected(f"{title} did not allow the account: it was declined, or the app may not ask for this", rule="declined",
                   platform_code=answer.get("error", "no code")[:100])


def s256(verifier: str) -> str:
    """The challenge for a verifier (RFC 7636, section 4.2)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def credentials_from(answer) -> dict:
    """The credentials in the answer of a token endpoint (RFC 6749, section 5.1)."""
    lifetime = answer.field("expires_in", kind=int, default=LIFETIME)
    credentials = {"accessToken": answer.field("access_token"), "expiresAt": time.time() + lifetime}
    refresh_token = answer.field("refresh_token", default=None)
    return credentials if refresh_token is None else {**credentials, "refreshToken": refresh_token}
