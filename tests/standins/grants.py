"""Codes, access tokens and refresh tokens of one app, for the stand-ins of networks that connect accounts with OAuth 2."""

import secrets
from dataclasses import dataclass, field

CODE_SECONDS = 600


@dataclass
class Token:
    """What an access or refresh token is good for: an account id, scopes, until when (epoch seconds)."""

    account: str
    scopes: set
    ends: float
    partner: str = field(default="", repr=False)    # of an access token, the refresh token that it came with


class Grants:
    """`now` is the network's clock; lifetimes are seconds; `prefix` and `refresh_prefix` begin the tokens.

    A refresh token is good once: using it ends it and the access token that it came with, and gives a new pair.
    """

    def __init__(self, now, *, lifetime, refresh_lifetime, prefix, refresh_prefix):
        self._now, self._lifetime, self._refresh_lifetime = now, lifetime, refresh_lifetime
        self._prefix, self._refresh_prefix = prefix, refresh_prefix
        self.access: dict[str, Token] = {}
        self.refreshing: dict[str, Token] = {}
        self._codes: dict[str, dict] = {}

    def code(self, account: str, scopes: set, **bound) -> str:
        """A code for `account`; what is in `bound` (redirect_uri, challenge, …) comes back when it is redeemed."""
        code = secrets.token_urlsafe(16)
        self._codes[code] = {"account": account, "scopes": scopes, "ends": self._now() + CODE_SECONDS, **bound}
        return code

    def redeem(self, code: str) -> dict | None:
        """What a code stands for, once; None for one that is unknown, used or too old."""
        found = self._codes.pop(code, None)
        return found if found and found["ends"] > self._now() else None

    def issue(self, account: str, scopes: set, access: str | None = None, refresh: str | None = None) -> tuple[str, str]:
        """A pair of tokens, with these texts where given."""
        access = access or self._prefix + secrets.token_urlsafe(16)
        refresh = refresh or self._refresh_prefix + secrets.token_urlsafe(16)
        self.access[access] = Token(account, scopes, self._now() + self._lifetime, refresh)
        self.refreshing[refresh] = Token(account, scopes, self._now() + self._refresh_lifetime)
        return access, refresh

    def renew(self, refresh: str) -> tuple[str, str, Token] | None:
        """A new pair of tokens for a refresh token, and what it is good for; None for one that is dead."""
        old = self.refreshing.pop(refresh, None)
        if old is None or old.ends <= self._now():
            return None
        self.access = {name: token for name, token in self.access.items() if token.partner != refresh}
        return *self.issue(old.account, old.scopes), old

    def token(self, access: str) -> Token | None:
        """What an access token is good for, None when it is not."""
        token = self.access.get(access)
        return token if token and token.ends > self._now() else None

    def expire(self):
        """Ends all access tokens; the refresh tokens stay good."""
        for token in self.access.values():
            token.ends = self._now()
