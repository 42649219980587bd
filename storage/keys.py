"""API keys and tokens: their form, their digest, and who stands behind one."""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass
from datetime import timedelta

from peewee import Value, fn

from storage.database import BASE62, database
from storage.models import ApiKey

SCOPES = ("posts:read", "posts:write", "captions:write", "media:write", "accounts:read", "accounts:write", "clients:read",
          "platforms:read", "ideas:read", "ideas:write", "webhooks:write")
CREDENTIALS = ("sk_live", "sk_test", "at")   # what comes as a Bearer credential: API keys and OAuth access tokens
FORM = re.compile(r"[0-9A-Za-z]{38}")
RANDOM = 32     # base62 characters, 190 bits
CHECK = 6       # base62 digits of a CRC32, so that a typing error or a scanner's find is told without the database

# One statement each: who it is, and that it was used (at most one write a minute and credential).
IDENTIFY_KEY = """
WITH found AS (
    SELECT k.id, k.team_id, k.user_id, k.client_id, k.mode, k.scopes,
           t.plan_expires_at IS NULL OR t.plan_expires_at > now() AS plan_active
    FROM api_keys AS k JOIN teams AS t ON t.id = k.team_id JOIN users AS u ON u.id = k.user_id
    WHERE k.digest = %(digest)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
    AND u.disabled_at IS NULL
), used AS (
    UPDATE api_keys AS k SET last_used_at = now() FROM found
    WHERE k.id = found.id AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute')
)
SELECT * FROM found
"""
# One person's allowance with one app is one, however many tokens there are.
IDENTIFY_TOKEN = """
WITH found AS (
    SELECT g.id, a.id || '/' || g.user_id AS credential, g.team_id, g.user_id, g.client_id, g.mode, o.scopes,
           t.plan_expires_at IS NULL OR t.plan_expires_at > now() AS plan_active
    FROM oauth_tokens AS o JOIN oauth_grants AS g ON g.id = o.grant_id JOIN oauth_clients AS a ON a.id = g.oauth_client_id
    JOIN teams AS t ON t.id = g.team_id JOIN users AS u ON u.id = g.user_id
    WHERE o.digest = %(digest)s AND o.kind = 'access' AND o.expires_at > now() AND g.revoked_at IS NULL AND a.revoked_at IS NULL
    AND u.disabled_at IS NULL
), used AS (
    UPDATE oauth_grants AS g SET last_used_at = now() FROM found
    WHERE g.id = found.id AND (g.last_used_at IS NULL OR g.last_used_at < now() - interval '1 minute')
)
SELECT credential, team_id, user_id, client_id, mode, scopes, plan_active FROM found
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


class TwoActive(Exception):
    """The key is being replaced already."""


class Ended(Exception):
    """The key was revoked or has expired."""


class Wider(Exception):
    """The key would be able to do what it cannot do now; the words say what."""


def create(*, team_id, user_id, mode, scopes=SCOPES, client_id=None, name="", expires_at=None,
           replaces=None) -> tuple[str, ApiKey]:
    """Makes a key; returns the key itself, which is kept nowhere, and its row."""
    key = fresh(f"sk_{mode}")
    row = ApiKey.add(team_id=team_id, user_id=user_id, client_id=client_id, mode=mode, name=name, digest=digest(key),
                     last_four=key[-4:], scopes=list(scopes), expires_at=expires_at, replaces=replaces)
    return key, row


def rotate(row: ApiKey, overlap: timedelta) -> tuple[str, ApiKey]:
    """A new key with all that `row` may do; the old one works on for `overlap`, or as long as it would have.

    Raises TwoActive when `row` has a successor in force, or is itself one whose predecessor is still in force: of the keys that
    follow upon each other, two work at most. Raises Ended when `row` is not in force itself, any more.
    """
    with database.atomic():
        old = _locked(row)
        kin = (ApiKey.replaces == old.id) | (ApiKey.id == old.replaces)
        if ApiKey.select().where(kin, _in_force()).exists():
            raise TwoActive
        end = fn.least(fn.coalesce(ApiKey.expires_at, "infinity"), fn.now() + Value(overlap, converter=False))
        ApiKey.update(expires_at=end).where(ApiKey.id == old.id).execute()
        return create(team_id=old.team_id, user_id=old.user_id, mode=old.mode, scopes=old.scopes, client_id=old.client_id,
                      name=old.name, expires_at=old.expires_at, replaces=old.id)


def narrow(row: ApiKey, *, scopes=None, client_id=None, expires_at=None) -> ApiKey:
    """Leaves the key `scopes` alone, this agency client alone, or time until `expires_at` alone; None leaves it as it is.

    Returns the row as it is from the next request on. Raises Ended, and Wider for what the key does not have now.
    """
    with database.atomic():
        now = _locked(row)
        if more := set(scopes or ()) - set(now.scopes):
            raise Wider(f"it does not have {', '.join(sorted(more))}")
        if client_id is not None and now.client_id not in (None, client_id):
            raise Wider(f"it acts for {now.client_id} alone")
        if expires_at is not None and now.expires_at is not None and expires_at > now.expires_at:
            raise Wider("it ends before that")
        left = {"scopes": scopes and sorted(set(scopes)), "client_id": client_id, "expires_at": expires_at}
        changes = {name: value for name, value in left.items() if value}
        ApiKey.update(**changes).where(ApiKey.id == now.id).execute()
        return ApiKey.get_by_id(now.id)


def in_force(team_id: str, key_id: str) -> ApiKey | None:
    """The team's key of this id, unless it was revoked or has expired."""
    return ApiKey.get_or_none(ApiKey.team_id == team_id, ApiKey.id == key_id, _in_force())


def _locked(row):
    """The key as it is now, which nobody else changes for the rest of the transaction. Raises Ended."""
    found = ApiKey.select().where(ApiKey.id == row.id, _in_force()).for_update().get_or_none()
    if found is None:
        raise Ended
    return found


def _in_force():
    return ApiKey.revoked_at.is_null() & (ApiKey.expires_at.is_null() | (ApiKey.expires_at > fn.now()))


def revoke(team_id: str, key_id: str) -> bool:
    """Ends a key at once; False when the team has no such key in force."""
    known = ApiKey.team_id == team_id, ApiKey.id == key_id
    return ApiKey.update(revoked_at=fn.now()).where(*known, ApiKey.revoked_at.is_null()).execute() == 1


def identify(token: str) -> Caller | None:
    """Who `token` stands for; None when it is malformed, unknown, revoked or expired."""
    if not well_formed(token):
        return None
    statement = IDENTIFY_TOKEN if token.startswith("at_") else IDENTIFY_KEY
    row = database.execute_sql(statement, {"digest": digest(token)}).fetchone()
    if row is None:
        return None
    *identity, scopes, plan_active = row
    return Caller(*identity, frozenset(scopes), plan_active)


def fresh(kind: str) -> str:
    """A secret that nobody can guess, of a `kind` that everybody can tell: the kind, 32 random characters, a checksum."""
    body = f"{kind}_" + "".join(secrets.choice(BASE62) for _ in range(RANDOM))
    return body + _checksum(body)


def well_formed(token: str, kinds=CREDENTIALS) -> bool:
    """Whether `token` has the form of one of `kinds` and its checksum is right."""
    kind, _, rest = token.rpartition("_")
    return kind in kinds and FORM.fullmatch(rest) is not None and hmac.compare_digest(_checksum(token[:-CHECK]), token[-CHECK:])


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
