"""The targets as workers see them: claimed, moved step by step, given back. All of it in the database's time.

The database itself holds the map of legal steps and writes the journal (migration 0001). `next_at` says when a worker must
look at a target; `leased_until` says that one has it in hand. Every move names the fence of its claim: a worker that slept
past its lease finds that its moves change nothing. Running out of a lease while sending makes a target `unconfirmed` but
leaves its fence, so that a late but certain answer still counts until somebody else has looked.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from psycopg2.extras import Json

from storage.database import database
from storage.models import Account

CLAIM_LOCK = 0x436C6169                     # any constant of ours
FIRST_LOOK = timedelta(seconds=30)          # after a sending whose worker is gone
FRESH = timedelta(seconds=3)                # a heartbeat that is older says nothing of its worker any more

# Two claims at once could each take a target of one account. In one message with the claim, which makes them one transaction:
# a worker that is stopped between two messages would keep all others waiting.
TAKE_TURNS = "SELECT pg_advisory_xact_lock(%(lock)s);"

# Left out where none is full: it would be asked of every row.
NOT_FULL = """
      AND NOT EXISTS (SELECT FROM unnest(%(platforms)s::text[], %(hosts)s::text[]) AS crowded (platform, host)
                      WHERE crowded.platform = targets.platform
                        AND crowded.host = coalesce((SELECT host FROM accounts WHERE accounts.id = targets.account_id), ''))
"""

# The array makes the planner go by the ids: it thinks that next to nothing is due, and would join all that is otherwise.
CLAIM = """
WITH due AS (
    SELECT id, account_id, due_at, next_at FROM targets
    WHERE next_at <= statement_timestamp() AND leased_until IS NULL
      AND NOT EXISTS (SELECT FROM targets busy WHERE busy.account_id = targets.account_id AND busy.leased_until IS NOT NULL)
      {not_full}
    ORDER BY next_at LIMIT %(window)s
), turns AS (
    SELECT id, next_at, row_number() OVER (PARTITION BY coalesce(account_id, id) ORDER BY due_at, id) AS turn FROM due
), picked AS (
    SELECT targets.id, accounts.status AS account_status, host, platform_id, username, credentials
    FROM targets LEFT JOIN accounts ON accounts.id = targets.account_id
    WHERE targets.id = ANY (ARRAY(SELECT id FROM turns WHERE turn = 1 ORDER BY next_at LIMIT %(limit)s))
      AND next_at <= statement_timestamp() AND leased_until IS NULL
    FOR UPDATE OF targets SKIP LOCKED
)
UPDATE targets SET
    status = CASE targets.status WHEN 'scheduled' THEN 'publishing' ELSE targets.status END,
    stage = CASE targets.status WHEN 'scheduled' THEN 'preparing' ELSE stage END,
    fence = fence + 1, worker = %(worker)s, leased_until = clock_timestamp() + %(lease)s,
    begun_at = coalesce(begun_at, clock_timestamp())
FROM picked WHERE targets.id = picked.id
RETURNING targets.id, targets.team_id, targets.mode, targets.platform, targets.post_type, targets.account_id, targets.options,
    targets.caption, targets.stage, targets.fence, targets.tries, targets.crashes, targets.looks,
    targets.refreshed, targets.asked_again, targets.receipt, extract(epoch FROM clock_timestamp() - targets.due_at)::float,
    extract(epoch FROM clock_timestamp() - targets.begun_at)::float,
    extract(epoch FROM clock_timestamp() - targets.sending_at)::float, targets.has_media, targets.restored,
    request_id, traceparent, account_status, host, platform_id, username, credentials
"""

# A target that was being prepared starts over from its receipt; one that was being sent may be public. What workers die of
# again and again comes back later each time, and by chance: so it does not take the same others with it. What a living worker
# could not keep since somebody held it is still its own. What is held at this moment is swept another time: hearts do this.
SWEEP = """
SET LOCAL lock_timeout = '500ms';
WITH lost AS (
    SELECT id FROM targets WHERE leased_until < clock_timestamp()
      AND NOT EXISTS (SELECT FROM workers WHERE workers.id = targets.worker AND targets.id = ANY (hindered)
                      AND seen_at > clock_timestamp() - %(fresh)s)
    FOR NO KEY UPDATE OF targets SKIP LOCKED
)
UPDATE targets SET
    status = CASE stage WHEN 'preparing' THEN 'scheduled' WHEN 'sending' THEN 'unconfirmed' ELSE status END,
    next_at = clock_timestamp() + CASE stage WHEN 'sending' THEN %(first_look)s
                                             ELSE random() * least(crashes * crashes, 30) * interval '1 second' END,
    error = CASE stage WHEN 'sending' THEN %(error)s ELSE error END,
    crashes = crashes + (stage IS DISTINCT FROM 'sending')::int,
    asked_again = asked_again AND stage IS DISTINCT FROM 'sending',
    stage = CASE stage WHEN 'processing' THEN stage END,
    leased_until = NULL, note = '{"lease": "ran out"}'
FROM lost WHERE targets.id = lost.id RETURNING targets.id, team_id, platform, mode, status, request_id
"""

# A claim whose answer was lost on its way is in nobody's hand: its lease has to run out. What somebody holds at this moment is
# not waited for, or all other leases would run out: it is written down for SWEEP.
BEAT = """
WITH mine AS (
    SELECT targets.id, fence FROM unnest(%(ids)s::text[], %(fences)s::bigint[]) AS held (id, fence)
    JOIN targets USING (id, fence) WHERE leased_until IS NOT NULL
), free AS (
    SELECT targets.id FROM targets JOIN mine USING (id, fence) WHERE leased_until IS NOT NULL
    FOR NO KEY UPDATE OF targets SKIP LOCKED
), kept AS (
    UPDATE targets SET leased_until = clock_timestamp() + %(lease)s FROM free WHERE targets.id = free.id
)
INSERT INTO workers AS known (id, claimed_at, hindered)
VALUES (%(worker)s, clock_timestamp() - %(claimed_ago)s * interval '1 second',
        ARRAY(SELECT id FROM mine EXCEPT SELECT id FROM free))
ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), hindered = excluded.hindered,
    claimed_at = greatest(known.claimed_at, excluded.claimed_at)
"""

# Due, not in hand, and not waiting for a target of the same account that is.
HEALTH = """
SELECT (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(next_at)), 0)::float FROM targets
        WHERE next_at < clock_timestamp() AND leased_until IS NULL
          AND NOT EXISTS (SELECT FROM targets busy WHERE busy.account_id = targets.account_id AND busy.leased_until IS NOT NULL)),
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - max(seen_at)), 'infinity')::float FROM workers),
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - max(claimed_at)), 'infinity')::float FROM workers),
       (SELECT count(*) FROM targets WHERE status = 'unconfirmed'),
       (SELECT count(*) FROM targets WHERE leased_until IS NOT NULL)
"""

# What waits for its own account would hide what is due a moment from now.
NEXT_DUE = """
SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM targets
WHERE next_at IS NOT NULL AND leased_until IS NULL
  AND NOT EXISTS (SELECT FROM targets busy WHERE busy.account_id = targets.account_id AND busy.leased_until IS NOT NULL)
  {not_full}
ORDER BY next_at LIMIT 1
"""


@dataclass(frozen=True)
class Job:
    """A claimed target: what to publish, and how far it has come. `late`, `trying` and `since_sending` are seconds.

    `late` counts from its time, `trying` from its first claim. `claimed_at` is this process's own monotonic clock. A target that
    is being prepared has `since_sending` only if an earlier sending is in doubt.
    """

    id: str
    team_id: str
    mode: str
    platform: str
    post_type: str
    account_id: str | None
    options: dict
    caption: str
    stage: str | None                       # None: unconfirmed, to be looked for
    fence: int
    tries: int
    crashes: int
    looks: int
    refreshed: bool
    asked_again: bool
    receipt: dict = field(repr=False)
    late: float
    trying: float
    since_sending: float | None
    has_media: bool
    restored: bool                          # the database was: it may have been sent, with another receipt than this
    account: Account | None = field(repr=False)     # None: the sandbox
    claimed_at: float = field(default_factory=time.monotonic)
    request_id: str | None = None           # of the request that asked for it, and where traced the span of that
    traceparent: str | None = None

    @property
    def server(self) -> tuple[str, str]:
        """Whose speed this job depends on: the network, and the server of it where it has many."""
        return self.platform, self.account.host if self.account else ""

    @property
    def breaker(self) -> str | None:
        """The name of what is left alone when it does not answer; None for the sandbox."""
        return self.account and " ".join(filter(None, self.server))


def claim(worker: str, *, limit: int, lease: timedelta, full: Collection = ()) -> list[Job]:
    """Takes up to `limit` due targets for `worker`, none of an account that has one in flight, and returns them.

    They are its own until `lease` has passed without a `beat` that names them. Nothing is taken for the servers in `full`
    (as in Job.server).
    """
    query, values = _apart_from(full, TAKE_TURNS + CLAIM)
    values |= {"lock": CLAIM_LOCK, "window": limit * 8, "limit": limit, "worker": worker, "lease": lease}
    return [_job(row) for row in database.execute_sql(query, values).fetchall()]


def beat(worker: str, held: list[Job], *, lease: timedelta, claimed_ago: float | None = None) -> None:
    """Says that `worker` lives, and keeps the jobs that it has in hand for another `lease`.

    `claimed_ago` is how many seconds ago it last took something in hand; None = it has not yet.
    """
    database.execute_sql(BEAT, {"worker": worker, "lease": lease, "claimed_ago": claimed_ago, "ids": [job.id for job in held],
                                "fences": [job.fence for job in held]})


def leave(worker: str) -> None:
    """Says that `worker` ends; what it still has in hand is left to its lease."""
    database.execute_sql("DELETE FROM workers WHERE id = %s OR seen_at < now() - interval '1 day'", (worker,))


class Lost(NamedTuple):
    """A target whose worker is gone, with the status that it has now."""

    id: str
    team_id: str
    platform: str
    mode: str
    status: str
    request_id: str | None


def sweep(unconfirmed_error: dict) -> list[Lost]:
    """Takes back what workers left behind; returns what that was. Waits for nobody for long: raises then."""
    values = {"first_look": FIRST_LOOK, "fresh": FRESH, "error": Json(unconfirmed_error)}
    return [Lost(*row) for row in database.execute_sql(SWEEP, values).fetchall()]


def seconds_to_next(full: Collection = ()) -> float | None:
    """Seconds until the next target that may be claimed is due: negative when one is waiting, None when there is none."""
    row = database.execute_sql(*_apart_from(full, NEXT_DUE)).fetchone()
    return row and row[0]


def _apart_from(full, query):
    platforms, hosts = ([*column] for column in zip(*full)) if full else ([], [])
    return query.format(not_full=NOT_FULL if full else ""), {"platforms": platforms, "hosts": hosts}


@dataclass(frozen=True)
class Health:
    """How the queue stands: seconds that the oldest due target waits, seconds since any worker lived, and since any took
    something in hand (inf: never), numbers."""

    oldest_due: float
    worker_seen: float
    claimed: float
    unconfirmed: int
    in_hand: int


def health() -> Health:
    """The queue as it stands now."""
    return Health(*database.execute_sql(HEALTH).fetchone())


# The moves. Each returns whether the job was still ours.

MOVE = """
UPDATE targets SET {} WHERE id = %(id)s AND fence = %(fence)s AND (leased_until IS NOT NULL OR status = 'unconfirmed')
"""
FINISHED = "stage = NULL, leased_until = NULL, next_at = NULL, finished_at = clock_timestamp()"
RELEASED = "leased_until = NULL, next_at = clock_timestamp() + %(after)s * interval '1 second'"     # never, where after is null


def give_back(job: Job, after: float) -> bool:
    """It was not begun; somebody may in `after` seconds."""
    return _move(job, RELEASED, after)


def keep(job: Job, receipt: dict) -> bool:
    """Remembers how far it has come."""
    return _move(job, "crashes = 0", receipt=receipt)


def start_sending(job: Job) -> bool:
    """The intent to send, committed before the first byte leaves. Keeps the lease and the time of the very first sending."""
    return _move(job, "stage = 'sending', sending_at = coalesce(sending_at, clock_timestamp())")


def wait(job: Job, receipt: dict, after: float) -> bool:
    """Still preparing, nothing to do for `after` seconds."""
    return _move(job, f"crashes = 0, {RELEASED}", after, receipt=receipt)


def processing(job: Job, receipt: dict, after: float) -> bool:
    """The network took it and still works on it, or more is to follow; go on in `after` seconds.

    A look that brought this counts as any other: the network may work on a post without an end.
    """
    looked = f"looks = looks + {int(job.stage is None)}"
    return _move(job, f"status = 'publishing', stage = 'processing', tries = 0, crashes = 0, {looked}, {RELEASED}", after,
                 receipt=receipt)


def asked_in_vain(job: Job, after: float, *, note: dict, counts: bool = True) -> bool:
    """Asked after it without an answer; ask again in `after` seconds. `counts` as in put_back."""
    return _move(job, f"tries = tries + {int(counts)}, {RELEASED}", after, note=note)


def published(job: Job, post_id: str, url: str, error: dict | None = None) -> bool:
    """Public, with the network's own id and link; `error` says what of that which was to follow did not succeed."""
    note = {"id": post_id, "url": url}
    return _move(job, f"status = 'published', {FINISHED}", platform_post_id=post_id, url=url, error=error, note=note)


def failed(job: Job, error: dict) -> bool:
    """Refused, or given up; `error` as the API shows it."""
    return _move(job, f"status = 'failed', {FINISHED}", error=error, note=error)


def put_back(job: Job, after: float, *, note: dict | None = None, counts: bool = True, refreshed: bool = False,
             receipt: dict | None = None) -> bool:
    """Surely not done now: scheduled again in `after` seconds. `counts` = the network put it off, rather than we.

    `refreshed` = with new credentials; `receipt` = what is left of it, None for all.
    """
    changes = f"status = 'scheduled', stage = NULL, {RELEASED}, tries = tries + {int(counts)}, refreshed = refreshed OR {refreshed}"
    if job.since_sending is None:
        changes += ", sending_at = NULL"    # this sending came to nothing, and no earlier one is in doubt
    return _move(job, changes, after, note=note, **({} if receipt is None else {"receipt": receipt}))


def unconfirmed(job: Job, error: dict, after: float | None) -> bool:
    """It may be public; look for it in `after` seconds, or never (again). A wish to send it again was for this once."""
    return _move(job, f"status = 'unconfirmed', stage = NULL, asked_again = false, {RELEASED}", after, error=error, note=error)


def is_of_another(job: Job, post_id: str | None, receipt: dict) -> bool:
    """Whether another target of the same account is known to be this post, by its id or by what is in its `receipt`."""
    query = ("SELECT 1 FROM targets WHERE account_id = %s AND id <> %s AND (platform_post_id = %s "
             "OR (platform_post_id IS NOT NULL OR next_at IS NOT NULL) AND receipt @> %s) LIMIT 1")
    return database.execute_sql(query, (job.account_id, job.id, post_id, Json(receipt))).fetchone() is not None


def looked_in_vain(job: Job, after: float | None, *, note: dict | None = None, counts: bool = True) -> bool:
    """Looked for without finding out; look again in `after` seconds, or never. `counts` = the network did answer."""
    return _move(job, f"looks = looks + {int(counts)}, {RELEASED}", after, note=note)


def send_again(job: Job) -> bool:
    """Surely not public, or the network knows it by a key of ours: back to the start, with its receipt."""
    return _move(job, f"status = 'scheduled', stage = NULL, looks = looks + 1, crashes = 0, error = NULL, {RELEASED}", 0)


def _move(job, changes="", after=None, **values):
    # Plain SQL: building the same with the query builder takes eight times as long, for every step of every post.
    columns = ", ".join(filter(None, [changes, *(f"{name} = %({name})s" for name in values)]))
    values = {name: Json(value) if isinstance(value, dict) else value for name, value in values.items()}
    return database.execute_sql(MOVE.format(columns), {"id": job.id, "fence": job.fence, "after": after, **values}).rowcount == 1


def _job(row):
    *target, request_id, traceparent, status, host, platform_id, username, credentials = row
    job = Job(*target, account=None, request_id=request_id, traceparent=traceparent)
    if job.account_id is None:
        return job
    account = Account(id=job.account_id, team_id=job.team_id, platform=job.platform, host=host, platform_id=platform_id,
                      username=username, status=status, credentials=credentials)
    return replace(job, account=account)
