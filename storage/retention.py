"""Removes what has done its work: rows that only matter for a while. What is kept how long stands here and nowhere else.

A batch at a time, each in a transaction of its own: whoever needs one of these rows waits for milliseconds. Between two
batches as long a rest as the last one took, so that others have the database at least half of the time.
"""

import time
from dataclasses import asdict, dataclass
from datetime import timedelta

from storage.database import database

BATCH = 1_000           # rows
SECONDS = 120.0         # of one round; the next goes on


@dataclass(frozen=True)
class Keep:
    """What the settings say of how long what is kept. None: for ever."""

    idempotency: timedelta = timedelta(hours=24)
    journal: timedelta = timedelta(days=90)         # after the target has come to its end
    webhooks: timedelta = timedelta(days=30)        # an event and its attempts, after it happened
    audit: timedelta | None = None


# In this order: a grant goes after its codes and tokens. An answer is replayed for a day; a bucket that is full is worth no
# more than one that is not there. What a team used up is kept for a look back at the month. Sessions and links end without a trace
# but in the trail; codes and tokens are known for a day longer, in which one that comes again ends what came of it; then their
# grant goes as well, unless it is a program's own, which it has for as long as there is the program.
ENDED = (
    ("idempotency_keys", "started_at < now() - %(idempotency)s - interval '1 hour'"),
    ("buckets", "full_at < now() - interval '1 hour'"),
    ("connect_requests", "expires_at < now() - interval '1 hour'"),
    ("caption_reservations", "ends_at < now() - interval '2 days'"),
    ("caption_days", "day < current_date - 40 AND NOT EXISTS (SELECT FROM caption_reservations AS r "
                     "WHERE r.team_id = t.team_id AND r.day = t.day)"),
    ("sign_in_links", "expires_at < now()"),
    ("sessions", "expires_at < now()"),
    ("oauth_codes", "expires_at < now() - interval '1 day'"),
    ("oauth_tokens", "expires_at < now() - interval '1 day'"),
    ("oauth_tokens", "EXISTS (SELECT FROM oauth_grants AS g "
                     "WHERE g.id = t.grant_id AND g.revoked_at < now() - interval '1 day')"),
    ("oauth_grants", """created_at < now() - interval '1 day'
        AND NOT EXISTS (SELECT FROM oauth_codes AS c WHERE c.grant_id = t.id)
        AND NOT EXISTS (SELECT FROM oauth_tokens AS o WHERE o.grant_id = t.id)
        AND (NOT own OR EXISTS (SELECT FROM oauth_clients AS a
                                WHERE a.id = t.oauth_client_id AND a.revoked_at < now() - interval '1 day'))"""),
    # Its attempts go with it. Where nothing was removed, deliveries are not looked at.
    ("deliveries", """id = ANY (ARRAY(SELECT d.id FROM webhooks AS w
        CROSS JOIN LATERAL (SELECT id FROM deliveries WHERE webhook_id = w.id LIMIT %(batch)s) AS d
        WHERE w.status = 'removed'))"""),
    ("webhooks", "status = 'removed' AND NOT EXISTS (SELECT FROM deliveries AS d WHERE d.webhook_id = t.id)"),
    # One that was asked for again is sent first.
    ("deliveries", "created_at < now() - %(webhooks)s AND (status <> 'pending' OR ends_at < now() - interval '1 day')"),
    ("workers", "seen_at < now() - interval '1 day'"),
)
# A row that somebody writes meanwhile is another one by then, and stays.
DELETE = "DELETE FROM {0} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {0} AS t WHERE {1} LIMIT %(batch)s))"

# Of the next page those rows whose target has come to its end; gives where the page after it begins. The last row of all stays:
# how far the journal has come is what a restored database is known by (storage.lineage).
JOURNAL = """
SELECT set_config('posthorn.journal', 'open', true);
WITH page AS (
    SELECT id, target_id, at FROM attempts WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
), gone AS (
    DELETE FROM attempts WHERE id = ANY (ARRAY(
        SELECT page.id FROM page LEFT JOIN targets ON targets.id = target_id
        WHERE at < now() - %(journal)s AND page.id < (SELECT max(id) FROM attempts)
          AND (targets.id IS NULL OR next_at IS NULL AND coalesce(finished_at, at) < now() - %(journal)s)))
)
SELECT max(id) FROM page HAVING min(at) < now() - %(journal)s
"""

# What enabling the webhook would give up: how much that is must not make the request for it slow.
GIVE_UP = """
UPDATE deliveries SET status = 'failed', next_at = NULL
WHERE status = 'pending' AND leased_until IS NULL AND ends_at < now() AND id = ANY (ARRAY(
    SELECT d.id FROM webhooks AS w CROSS JOIN LATERAL (
        SELECT id FROM deliveries WHERE webhook_id = w.id AND next_at IS NOT NULL AND leased_until IS NULL AND ends_at < now()
        LIMIT %(batch)s) AS d
    WHERE w.status = 'disabled' LIMIT %(batch)s))
"""

# Signed beside the new one until receivers were told.
FORGET = "UPDATE webhooks SET previous_secret = NULL, previous_until = NULL WHERE previous_until < clock_timestamp()"

# The oldest come first; the database itself lets none go that is younger than 30 days.
AUDIT = """
SELECT set_config('posthorn.audit', 'open', true);
DELETE FROM audit WHERE id = ANY (ARRAY(
    SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT %(batch)s) AS oldest WHERE at < now() - %(audit)s))
"""


def tidy(keep: Keep = Keep()) -> None:
    """Removes what is no longer kept, for SECONDS at most; any number of workers may do so."""
    values, deadline = {**asdict(keep), "batch": BATCH}, time.monotonic() + SECONDS
    for table, which in ENDED:
        _repeat(DELETE.format(table, which), values, deadline)
    _repeat(GIVE_UP, values, deadline)
    _run(FORGET, {})
    if keep.audit is not None:
        _repeat(AUDIT, values, deadline)
    after = 0
    while after is not None and time.monotonic() < deadline:
        row = _run(JOURNAL, {**values, "after": after}).fetchone()
        after = row and row[0]


def _repeat(statement, values, deadline):
    """Until it finds no whole batch any more."""
    while time.monotonic() < deadline and _run(statement, values).rowcount == BATCH:
        pass


def _run(statement, values):
    began = time.monotonic()
    done = database.execute_sql(statement, values)
    time.sleep(time.monotonic() - began)
    return done
