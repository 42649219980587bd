"""Idempotency-Key: the first answer to a request is kept and given again.

The answer is kept in the transaction that does the work, so after a crash either both are there or neither is.
"""

import hashlib
from datetime import timedelta

import orjson
from psycopg2.extras import Json

from handlers.errors import InvalidState
from handlers.responses import Answer
from storage.database import database
from storage.secrets import Unreadable, Vault

SEALED = b"gAAAA"   # how whatever a Vault has sealed begins, and no JSON
# By rate limit, after which a request without an answer is taken to have died: some wait for the servers of others, at most
# 60 s for a file. One that is only slow is overtaken then and changes nothing.
PATIENCE = {"requests": timedelta(seconds=30), "fetches": timedelta(minutes=2), "captions": timedelta(minutes=2)}

# A row that is too old, or whose request died, is taken over as if it were new.
BEGIN = """
INSERT INTO idempotency_keys AS known (team_id, mode, operation, key, body_digest)
VALUES (%(team_id)s, %(mode)s, %(operation)s, %(key)s, %(digest)s)
ON CONFLICT (team_id, mode, operation, key) DO UPDATE
SET started_at = now(), body_digest = excluded.body_digest, status = NULL, headers = NULL, body = NULL
WHERE known.started_at < now() - %(kept)s OR (known.status IS NULL AND known.started_at < now() - %(patience)s)
RETURNING started_at
"""
READ = """
SELECT body_digest, status, headers, body FROM idempotency_keys
WHERE team_id = %(team_id)s AND mode = %(mode)s AND operation = %(operation)s AND key = %(key)s
"""
OURS = "team_id = %(team_id)s AND mode = %(mode)s AND operation = %(operation)s AND key = %(key)s AND started_at = %(started_at)s"
KEEP = f"UPDATE idempotency_keys SET status = %(status)s, headers = %(headers)s, body = %(body)s WHERE {OURS}"
FORGET = f"DELETE FROM idempotency_keys WHERE {OURS} AND status IS NULL"


class Overtaken(InvalidState):
    """The key was taken over while this request still ran: it must not commit."""

    def __init__(self):
        super().__init__("this request took so long that another one with its Idempotency-Key was let through: send it again")


class Once:
    """One use of a key: `begin`, then `keep` in the transaction of the work, or `forget`."""

    def __init__(self, caller, operation: str, key: str, body, *, kept: timedelta, patience: timedelta, vault: Vault):
        self._vault, self._owner = vault, f"teams/{caller.team_id}/{caller.mode}/idempotency_keys/{operation} {key}"
        # A credential of one client means that client without saying so: the same body under another one means another thing.
        self._row = {"team_id": caller.team_id, "mode": caller.mode, "operation": operation, "key": key,
                     "digest": _digest([caller.client_id, body]), "kept": kept, "patience": patience}

    def begin(self) -> Answer | None:
        """The kept answer, or None when the work is ours to do. Raises InvalidState for another body or a running request."""
        begun = database.execute_sql(BEGIN, self._row).fetchone()
        if begun:
            self._row["started_at"] = begun[0]
            return None
        known = database.execute_sql(READ, self._row).fetchone()
        if known is None:       # forgotten between the two statements: its request failed just now
            raise InvalidState("a request with this Idempotency-Key has just failed; send it again", headers={"Retry-After": "1"})
        digest, status, headers, body = known
        if bytes(digest) != self._row["digest"]:
            raise InvalidState("this Idempotency-Key was used with another body")
        if status is None:
            raise InvalidState("a request with this Idempotency-Key is still running", headers={"Retry-After": "1"})
        return Answer(status, self._opened(bytes(body)), {**headers, "Idempotent-Replayed": "true"})

    def keep(self, answer: Answer) -> Answer:
        """Keeps `answer` and returns it. Raises Overtaken, which undoes the transaction around it."""
        body = self._vault.seal(self._owner, {"body": answer.body.decode()}) if answer.secret else answer.body
        row = {**self._row, "status": answer.status, "headers": Json(answer.headers), "body": body}
        if database.execute_sql(KEEP, row).rowcount != 1:
            raise Overtaken
        return answer

    def forget(self) -> None:
        """Lets the key be used again: no work was done."""
        database.execute_sql(FORGET, self._row)

    def _opened(self, body):
        if not body.startswith(SEALED):
            return body
        try:
            return self._vault.open(self._owner, body)["body"].encode()
        except Unreadable:
            raise InvalidState("the answer under this Idempotency-Key held a secret, whose key has been taken out of use") from None


def _digest(body):
    return hashlib.sha256(orjson.dumps(_plain(body), option=orjson.OPT_SORT_KEYS)).digest()


def _plain(value):
    """Bodies are compared as values; orjson takes integers of 64 bits only."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63 else value
