"""Events on their way to webhooks: claimed by workers, tried until they arrive or 24 hours are over, and sent again on demand.

The events themselves are written by the database (migration 0009), in the transaction of what happened. Times, leases and
fences are as in storage/queue.py; here, what was in hand when a lease ran out is simply tried again, under the same id.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from peewee import SQL, BigIntegerField, DoubleField, IntegerField, Model, TextField, Tuple, Value, fn
from playhouse.postgres_ext import BinaryJSONField, DateTimeTZField

from storage import audit
from storage.database import database, ring
from storage.models import Account, Owned, wire_time
from storage.posts import Target, operation
from storage.webhooks import BELL_WORD, Webhook

MOST_REPLAYED = 10_000              # deliveries by one request, which it is waited for
MOST_ATTEMPTS = 100                 # of one delivery that are shown, the last ones
WINDOW = timedelta(hours=24)        # in which attempts are made
PUT_OFF = timedelta(days=7)         # for which it waits at most until a fault of ours is mended

# From webhook to webhook, whatever else waits for one of them: however much that is, the others are found at once.
READY = """
WITH RECURSIVE waiting (webhook_id) AS (
    SELECT min(webhook_id) FROM deliveries WHERE next_at IS NOT NULL AND leased_until IS NULL
    UNION ALL
    SELECT (SELECT min(webhook_id) FROM deliveries
            WHERE next_at IS NOT NULL AND leased_until IS NULL AND webhook_id > waiting.webhook_id)
    FROM waiting WHERE webhook_id IS NOT NULL
), ready AS (
    SELECT webhooks.* FROM waiting JOIN webhooks ON webhooks.id = webhook_id
    WHERE status = 'enabled' AND webhooks.id <> ALL (%(full)s) AND team_id <> ALL (%(full)s)
)
"""

# Who has least in hand comes first: teams take turns, and so do the webhooks of each, however long one has waited. The time for
# the attempts begins with the first: that nobody worked for a day is no fault of the receiver.
CLAIM = READY + """
, held AS (
    SELECT team_id, webhook_id, count(*) AS jobs FROM deliveries WHERE leased_until IS NOT NULL GROUP BY team_id, webhook_id
), due AS (
    SELECT first.id, first.next_at, ready.team_id,
        coalesce(jobs, 0) + row_number() OVER (PARTITION BY ready.id ORDER BY first.next_at) AS turn
    FROM ready LEFT JOIN held ON webhook_id = ready.id CROSS JOIN LATERAL (
        SELECT id, next_at FROM deliveries
        WHERE webhook_id = ready.id AND next_at <= statement_timestamp() AND leased_until IS NULL
        ORDER BY next_at LIMIT %(limit)s) AS first
), turns AS (
    SELECT id, next_at, row_number() OVER (PARTITION BY team_id ORDER BY turn, next_at)
        + coalesce((SELECT sum(jobs) FROM held WHERE held.team_id = due.team_id), 0) AS turn
    FROM due
), picked AS (
    SELECT deliveries.id AS delivery_id, ends_at AS ended FROM deliveries
    WHERE id = ANY (ARRAY(SELECT id FROM turns ORDER BY turn, next_at LIMIT %(limit)s))
      AND next_at <= statement_timestamp() AND leased_until IS NULL
    FOR UPDATE SKIP LOCKED
)
UPDATE deliveries SET fence = fence + 1, worker = %(worker)s, leased_until = clock_timestamp() + %(lease)s,
    ends_at = CASE WHEN tries > 0 THEN ends_at
        ELSE greatest(ends_at, least(deliveries.created_at + %(most)s, clock_timestamp() + %(window)s)) END
FROM picked, ready WHERE deliveries.id = delivery_id AND ready.id = webhook_id
RETURNING deliveries.id, webhook_id, deliveries.team_id, deliveries.mode, type, deliveries.created_at, tries, fence,
    extract(epoch FROM ends_at - clock_timestamp())::float, extract(epoch FROM clock_timestamp() + %(window)s - ended)::float,
    clock_timestamp(), url, snapshot, secret,
    CASE WHEN previous_until > clock_timestamp() THEN previous_secret END
"""

NEXT_DUE = READY + """
SELECT extract(epoch FROM min(first.next_at) - clock_timestamp())::float FROM ready CROSS JOIN LATERAL (
    SELECT min(next_at) AS next_at FROM deliveries
    WHERE webhook_id = ready.id AND next_at IS NOT NULL AND leased_until IS NULL) AS first
"""

# What somebody holds at this moment is not waited for, or all leases would run out; at worst it is sent twice.
BEAT = """
WITH kept AS (
    SELECT deliveries.id FROM unnest(%(ids)s::text[], %(fences)s::bigint[]) AS held (id, fence)
    JOIN deliveries USING (id, fence) WHERE leased_until IS NOT NULL FOR NO KEY UPDATE OF deliveries SKIP LOCKED
)
UPDATE deliveries SET leased_until = clock_timestamp() + %(lease)s FROM kept WHERE deliveries.id = kept.id
"""

# Claims beyond the tries were cut off: what workers die of again and again comes back later each time.
SWEEP = """
WITH lost AS (SELECT id FROM deliveries WHERE leased_until < clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED)
UPDATE deliveries SET leased_until = NULL,
    next_at = clock_timestamp() + random() * least((fence - tries) * (fence - tries), 30) * interval '1 second'
FROM lost WHERE deliveries.id = lost.id
"""

# Only an attempt that was still ours is written down.
RECORD = """
WITH moved AS (
    UPDATE deliveries SET tries = tries + 1, leased_until = NULL, {}
    WHERE id = %(id)s AND fence = %(fence)s AND status = 'pending' {} RETURNING id
)
INSERT INTO delivery_attempts (delivery_id, at, status, duration, error)
SELECT id, %(at)s, %(status)s, %(duration)s, %(error)s FROM moved
"""

PUT_BACK = """
UPDATE deliveries SET leased_until = NULL, next_at = clock_timestamp() + %(after)s * interval '1 second',
    ends_at = greatest(ends_at, least(created_at + %(most)s, clock_timestamp() + (%(after)s + %(left)s) * interval '1 second'))
WHERE id = %(id)s AND fence = %(fence)s AND leased_until IS NOT NULL
"""

# Not one that was changed since: another address, or that of somebody who has just enabled it, has not had its time yet.
DISABLE = """
UPDATE webhooks SET status = 'disabled', disabled_at = clock_timestamp(), updated_at = clock_timestamp(),
    disabled_reason = %(reason)s
WHERE id = %(webhook)s AND status = 'enabled' AND updated_at <= %(since)s
  AND (%(gone)s OR NOT EXISTS (SELECT FROM deliveries WHERE webhook_id = %(webhook)s AND delivered_at >= %(since)s))
"""

HEALTH = """
SELECT (SELECT count(*) FROM deliveries JOIN webhooks ON webhooks.id = webhook_id
        WHERE next_at IS NOT NULL AND webhooks.status = 'enabled'),
       (SELECT count(*) FROM webhooks WHERE status = 'disabled')
"""


class TooManyAtOnce(Exception):
    """More than MOST_REPLAYED deliveries would be sent again."""


class Delivery(Owned):
    """One event for one webhook; its id is the `webhook-id` of every attempt."""

    mode = TextField()
    webhook_id = TextField()
    type = TextField()
    subject_id = TextField()
    snapshot = BinaryJSONField()
    status = TextField()
    tries = IntegerField()
    next_at = DateTimeTZField(null=True)
    ends_at = DateTimeTZField()
    leased_until = DateTimeTZField(null=True)
    fence = BigIntegerField()
    delivered_at = DateTimeTZField(null=True)
    attempts = ()                   # the last MOST_ATTEMPTS, oldest first, where they were read

    class Meta:
        table_name = "deliveries"

    def to_dict(self):
        wire = {"id": self.id, "type": self.type, "status": self.status, "createdAt": wire_time(self.created_at),
                "nextAttemptAt": wire_time(self.next_at), "attempts": [attempt.to_dict() for attempt in self.attempts]}
        return {name: value for name, value in wire.items() if value is not None}


class Attempt(Model):
    """One request to a receiver. `error` tells nothing about the network, and nothing that the receiver said."""

    delivery_id = TextField()
    at = DateTimeTZField()
    status = IntegerField(null=True)
    duration = DoubleField()
    error = TextField(null=True)

    class Meta:
        database = database
        table_name = "delivery_attempts"

    def to_dict(self):
        wire = {"at": wire_time(self.at), "status": self.status, "duration": round(self.duration, 3), "error": self.error}
        return {name: value for name, value in wire.items() if value is not None}


def page(webhook: Webhook, status: str | None, limit: int, after: tuple | None) -> tuple[list[Delivery], bool]:
    """Up to `limit` deliveries of a webhook with their attempts, newest first, and whether more follow.

    `after` is the position (created_at, id) behind which they begin.
    """
    query = Delivery.select().where(Delivery.webhook_id == webhook.id)
    if status is not None:
        query = query.where(Delivery.status == status)
    if after is not None:
        query = query.where(Tuple(Delivery.created_at, Delivery.id) < Tuple(*after))
    found = list(query.order_by(Delivery.created_at.desc(), Delivery.id.desc()).limit(limit + 1))
    return _with_attempts(found[:limit]), len(found) > limit


def replay(webhook: Webhook, delivery_id: str) -> Delivery | None:
    """Sends an event again, at once and for another WINDOW; returns the delivery as it is then, None where there is none.

    One that is in hand at this moment stays as it is.
    """
    own = (Delivery.webhook_id == webhook.id) & (Delivery.id == delivery_id)
    Delivery.update(_again()).where(own, Delivery.leased_until.is_null()).execute()
    ring(BELL_WORD)
    return next(iter(_with_attempts(Delivery.select().where(own))), None)


def replay_all(webhook: Webhook, from_: datetime, to: datetime | None, status: str | None) -> int:
    """Sends all events again that were written from `from_` to before `to`, all or those with this `status`; returns how many.

    What is pending is on its way already, and does not count. Raises TooManyAtOnce, and then nothing is sent again.
    """
    rules = [Delivery.created_at < to] if to else []
    rules += [Delivery.status == status] if status else []
    rules += [Delivery.webhook_id == webhook.id, Delivery.created_at >= from_, Delivery.status != "pending"]
    ids = [row[0] for row in Delivery.select(Delivery.id).where(*rules).limit(MOST_REPLAYED + 1).tuples()]
    if len(ids) > MOST_REPLAYED:
        raise TooManyAtOnce
    count = Delivery.update(_again()).where(Delivery.id.in_(ids), Delivery.status != "pending").execute()
    ring(BELL_WORD)
    return count


def _again():
    # With another fence: what is heard late of an attempt before says nothing of this one.
    return {"status": "pending", "tries": 0, "next_at": fn.clock_timestamp(), "fence": Delivery.fence + 1,
            "ends_at": fn.clock_timestamp() + Value(WINDOW, converter=False)}


def _with_attempts(rows):
    rows = list(rows)
    newest = fn.row_number().over(partition_by=[Attempt.delivery_id], order_by=[Attempt.id.desc()])
    ranked = Attempt.select(Attempt, newest.alias("age")).where(Attempt.delivery_id.in_([row.id for row in rows]))
    found = Attempt.select(SQL("*")).from_(ranked.alias("ranked")).where(SQL("age") <= MOST_ATTEMPTS).order_by(SQL("id"))
    of = {row.id: [] for row in rows}
    for attempt in found:
        of[attempt.delivery_id].append(attempt)
    for row in rows:
        row.attempts = of[row.id]
    return rows


@dataclass(frozen=True)
class Job:
    """A claimed delivery. `left` is the seconds until the last attempt, `late` those to the claim since the event happened, or was
    asked for again, or its first attempt. `at` is the database's time of the claim, `claimed_at` this process's own monotonic
    clock. The secrets are sealed; `previous` None: one signature is enough.
    """

    id: str
    webhook_id: str
    team_id: str
    mode: str
    type: str
    created_at: datetime
    tries: int
    fence: int
    left: float
    late: float
    at: datetime
    url: str = field(repr=False)            # may hold a token
    snapshot: dict = field(repr=False)
    secret: bytes = field(repr=False)
    previous: bytes | None = field(repr=False)
    claimed_at: float = field(default_factory=time.monotonic)

    def event(self) -> dict:
        """What is sent: the same in every attempt."""
        return {"type": self.type, "timestamp": wire_time(self.created_at), "data": _data(self.type, self.snapshot)}


def _data(event_type, snapshot):
    if event_type.startswith("account."):
        return Account(**snapshot).to_dict()
    return operation(snapshot["id"], [Target(**target) for target in snapshot["targets"]])


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: when it began, the seconds it took, the status of the answer (None: none), what was wrong."""

    at: datetime
    duration: float
    status: int | None
    error: str | None


def claim(worker: str, *, limit: int, lease: timedelta, full: Collection[str] = ()) -> list[Job]:
    """Takes up to `limit` due deliveries for `worker`, and returns them; as in storage.queue.

    None of the webhooks and teams in `full`.
    """
    values = {"worker": worker, "limit": limit, "lease": lease, "full": list(full), "most": PUT_OFF, "window": WINDOW}
    return [Job(*row) for row in database.execute_sql(CLAIM, values).fetchall()]


def seconds_to_next(full: Collection[str] = ()) -> float | None:
    """Seconds until the next delivery that may be claimed is due: negative when one is waiting, None when there is none."""
    return database.execute_sql(NEXT_DUE, {"full": list(full)}).fetchone()[0]


def beat(held: list[Job], *, lease: timedelta) -> None:
    """Keeps the jobs in hand for another `lease`."""
    if held:
        database.execute_sql(BEAT, {"lease": lease, "ids": [job.id for job in held], "fences": [job.fence for job in held]})


def sweep() -> int:
    """Takes back what workers left behind; returns how many deliveries that were."""
    return database.execute_sql(SWEEP).rowcount


# The moves. Each returns whether the job was still ours.

def delivered(job: Job, outcome: Outcome) -> bool:
    """It arrived. That is certain, and so counts after the lease as well, as long as nobody else has claimed it."""
    return _record(job, outcome, "status = 'delivered', next_at = NULL, delivered_at = clock_timestamp()", "")


def put_back(job: Job, outcome: Outcome, after: float) -> bool:
    """It did not arrive; the next attempt in `after` seconds."""
    return _record(job, outcome, "next_at = clock_timestamp() + %(after)s * interval '1 second'", after=after)


def put_off(job: Job, after: float) -> bool:
    """There was no attempt, and the fault is ours; the next try in `after` seconds, and as long as before is left for the rest.

    For PUT_OFF after the event at most: what is never mended must not be tried for ever.
    """
    values = {"id": job.id, "fence": job.fence, "after": after, "left": job.left, "most": PUT_OFF}
    return database.execute_sql(PUT_BACK, values).rowcount == 1


def give_back(job: Job, after: float) -> bool:
    """It was not begun; somebody may in `after` seconds."""
    return put_off(job, after)


def failed(job: Job, outcome: Outcome, reason: str | None, *, gone: bool) -> tuple[bool, bool]:
    """It did not arrive, and that was the last attempt. Returns whether the webhook was disabled as well.

    Which it is for `reason` (None: it is not) when its receiver is `gone`, or nothing arrived there since this event was to be
    sent; and it was not changed since.
    """
    with database.atomic():
        # First, as whoever removes it does.
        database.execute_sql("SELECT FROM webhooks WHERE id = %s FOR NO KEY UPDATE", (job.webhook_id,))
        if not _record(job, outcome, "status = 'failed', next_at = NULL"):
            return False, False
        if reason is None:
            return True, False
        since = job.at if gone else job.at - timedelta(seconds=job.late)
        values = {"webhook": job.webhook_id, "reason": reason, "gone": gone, "since": since}
        disabled = database.execute_sql(DISABLE, values).rowcount == 1
        if disabled:
            audit.record(audit.WORKER, "webhook.disabled", job.webhook_id, team_id=job.team_id, mode=job.mode, reason=reason)
        return True, disabled


def _record(job, outcome, changes, which="AND leased_until IS NOT NULL", **values):
    values |= {"id": job.id, "fence": job.fence, "at": outcome.at, "status": outcome.status, "duration": outcome.duration,
               "error": outcome.error}
    return database.execute_sql(RECORD.format(changes, which), values).rowcount == 1


@dataclass(frozen=True)
class Health:
    """How many deliveries to enabled webhooks are on their way, and how many webhooks are disabled."""

    pending: int
    disabled: int


def health() -> Health:
    """The deliveries as they stand now."""
    return Health(*database.execute_sql(HEALTH).fetchone())
