"""API keys: their form, their digest, and who stands behind one."""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass

from peewee import fn

from storage.database import BASE62, database
from storage.models import ApiKey

SCOPES = ("posts:read", "posts:write", "captions:write", "media:write", "accounts:read", "accounts:write", "clients:read",
          "platforms:read", "ideas:read", "ideas:write", "webhooks:write")
FORM = re.compile(r"sk_(live|test)_[0-9A-Za-z]{38}")
RANDOM = 32     # base62 characters, 190 bits
CHECK = 6       # base62 digits of a CRC32, so that a typing error or a scanner's find is told without the database

# One statement: who it is, and that the key was used (at most one write a minute and key).
IDENTIFY = """
WITH used AS (
    UPDATE api_keys SET last_used_at = now()
    WHERE digest = %(digest)s AND revoked_at IS NULL AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
)
SELECT api_keys.id, team_id, user_id, client_id, mode, scopes,
       teams.plan_expires_at IS NULL OR teams.plan_expires_at > now()
FROM api_keys JOIN teams ON teams.id = team_id
WHERE digest = %(digest)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""


@dataclass(frozen=True)
class Caller:
    """Who asks: a credential with its team, user, mode and scopes; `client_id` when it may act for that client alone."""

    credential_id: str
    team_id: str
    user_id: str
    client_id: str | None
    mode: str
    scopes: frozenset[str]
    plan_active: bool


def create(*, team_id, user_id, mode, scopes=SCOPES, client_id=None, name="", expires_at=None) -> tuple[str, ApiKey]:
    """Makes a key; returns the key itself, which is kept nowhere, and its row."""
    body = f"sk_{mode}_" + "".join(secrets.choice(BASE62) for _ in range(RANDOM))
    key = body + _checksum(body)
    row = ApiKey.add(team_id=team_id, user_id=user_id, client_id=client_id, mode=mode, name=name, digest=digest(key),
                     last_four=key[-4:], scopes=list(scopes), expires_at=expires_at)
    return key, row


def revoke(team_id: str, key_id: str) -> bool:
    """Ends a key at once; False when the team has no such key in force."""
    query = ApiKey.update(revoked_at=fn.now()).where(ApiKey.team_id == team_id, ApiKey.id == key_id, ApiKey.revoked_at.is_null())
    return query.execute() == 1


def identify(token: str) -> Caller | None:
    """Who `token` stands for; None when it is malformed, unknown, revoked or expired."""
    if not well_formed(token):
        return None
    row = database.execute_sql(IDENTIFY, {"digest": digest(token)}).fetchone()
    if row is None:
        return None
    *identity, scopes, plan_active = row
    return Caller(*identity, frozenset(scopes), plan_active)


def well_formed(token: str) -> bool:
    """Whether `token` has the form of a key and its checksum is right."""
    return FORM.fullmatch(token) is not None and hmac.compare_digest(_checksum(token[:-CHECK]), token[-CHECK:])


def digest(token: str) -> bytes:
    """SHA-256: a key holds 190 random bits, so nothing slower is needed to keep it from being found."""
    return hashlib.sha256(token.encode()).digest()


def _checksum(body):
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(CHECK):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits
