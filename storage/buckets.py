"""Rate limits in the database, exact across processes and machines.

A bucket is one timestamp, the moment at which it will be full again (the generic cell rate algorithm): taking a token moves
it on by the time one token takes to come back, and there is none to take when that would lead over a minute ahead.
"""

import math
from dataclasses import dataclass

from storage.database import database

WINDOW = 60.0   # seconds: limits are given a minute

TAKE = """
INSERT INTO buckets AS b (name, full_at) VALUES (%(name)s, statement_timestamp() + %(token)s * interval '1 second')
ON CONFLICT (name) DO UPDATE SET full_at = greatest(b.full_at, statement_timestamp()) + %(token)s * interval '1 second'
WHERE greatest(b.full_at, statement_timestamp()) + %(token)s * interval '1 second' <= statement_timestamp() + interval '1 minute'
RETURNING extract(epoch FROM full_at - statement_timestamp())::float
"""
PEEK = "SELECT extract(epoch FROM full_at - statement_timestamp())::float FROM buckets WHERE name = %(name)s"


@dataclass(frozen=True)
class Allowance:
    """What a bucket said. `reset` = seconds until it is full, `retry_after` = seconds until one token is back (0 if taken)."""

    limit: int
    remaining: int
    reset: int
    retry_after: int

    @property
    def taken(self):
        return self.retry_after == 0


def take(name: str, limit: int) -> Allowance:
    """Takes one of `limit` tokens a minute from the bucket `name`, if one is there."""
    token = WINDOW / limit
    row = database.execute_sql(TAKE, {"name": name, "token": token}).fetchone()
    return _allowance(limit, row[0], taken=True) if row else peek(name, limit)


def peek(name: str, limit: int) -> Allowance:
    """Looks without taking: `retry_after` is over 0 when there would be none to take."""
    row = database.execute_sql(PEEK, {"name": name}).fetchone()
    return _allowance(limit, max(0.0, row[0]) if row else 0.0, taken=False)


def _allowance(limit, until_full, taken):
    token = WINDOW / limit
    remaining = max(0, math.floor((WINDOW - until_full) / token + 1e-6))
    wait = 0 if taken or remaining else max(1, math.ceil(until_full + token - WINDOW))
    return Allowance(limit, remaining, math.ceil(until_full), wait)
