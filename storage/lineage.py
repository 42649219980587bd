"""Whether this is the database that was worked on, or one restored from a backup, which does not know what was sent since.

Two witnesses tell a restored database from one that was only away. It lies elsewhere than it says: what pg_restore makes is
another table in another database. Or its journal ends before a place that it had reached already, as the object store
remembers: so it is with a snapshot of a disk, and with a recovery to a point in time. Neither is so after an outage, a crash,
or a failover that lost nothing. What none of them sees stands in docs/backup.md.

What may have been sent since the backup is in doubt then: it is looked for on the networks, and never sent by itself.
"""

import io
import logging
import re
from dataclasses import dataclass
from datetime import datetime

from psycopg2.extras import Json

from storage import audit
from storage.database import database, with_connection
from storage.objects import Objects
from storage.queue import CLAIM_LOCK

PREFIX = "posthorn-lineage-"        # of objects whose names say how far the journal has come; they are empty but for a byte
TIDE = re.compile(r"[0-9]{20}")
UNKNOWN = -1                        # how far that is, while the store does not answer
MARK_EVERY = 10.0                   # seconds, in which what is sent is not remembered yet

PRESENT = """
SELECT id, place = posthorn_place(), (SELECT coalesce(max(id), 0) FROM attempts) AS tide, seen_at
FROM lineages ORDER BY begun_at DESC LIMIT 1
"""
# By one worker of all. Nobody says so who has not noticed yet that the database is another one.
SEEN = """
UPDATE lineages SET seen_at = clock_timestamp()
WHERE id = %(id)s AND NOT EXISTS (SELECT FROM lineages AS later WHERE later.begun_at > lineages.begun_at)
  AND place = posthorn_place()
  AND seen_at NOT BETWEEN clock_timestamp() - %(every)s * interval '1 second' AND clock_timestamp()
  AND (SELECT coalesce(max(id), 0) FROM attempts) >= %(tide)s
RETURNING (SELECT coalesce(max(id), 0) FROM attempts)
"""
# Nothing that was due later can have been sent. What test mode publishes never leaves the machine, and is simply done again.
# The fences run ahead of those that the lost time gave to workers which may still live.
DOUBT = """
UPDATE targets SET status = 'unconfirmed', stage = NULL, restored = true, leased_until = NULL, next_at = clock_timestamp(),
    sending_at = coalesce(sending_at, %(since)s), fence = fence + 1000000, tries = 0, crashes = 0, looks = 0,
    asked_again = false, error = %(error)s, note = '{"restored": true}'
WHERE mode = 'live' AND next_at IS NOT NULL AND (status <> 'scheduled' OR due_at <= clock_timestamp())
"""
# Under another name: the old place may be worked on as well, by somebody who tries something out.
GO_ON = """
UPDATE lineages SET id = gen_random_uuid(), place = posthorn_place()
WHERE NOT EXISTS (SELECT FROM lineages AS later WHERE later.begun_at > lineages.begun_at) RETURNING id
"""
# What works once, or was ended since, must not work again.
FORGET = """
DELETE FROM sessions;
DELETE FROM sign_in_links;
DELETE FROM oauth_codes;
DELETE FROM connect_requests WHERE account_ids IS NULL AND failure IS NULL;
"""
# The last one, also where the clock was ahead when the one before it began.
BEGIN_ANEW = """
INSERT INTO lineages (begun_at) SELECT greatest(clock_timestamp(), max(begun_at) + interval '1 microsecond') FROM lineages
"""
# From when to when a backup knows nothing.
GAPS = """
SELECT seen_at, next FROM (SELECT seen_at, lead(begun_at) OVER (ORDER BY begun_at) AS next FROM lineages) AS known
WHERE next IS NOT NULL
"""

log = logging.getLogger("posthorn.lineage")


@dataclass(frozen=True)
class Restored:
    """What was made of a restored database: nothing is known from `since` on, and `doubtful` targets may have been sent."""

    since: datetime
    doubtful: int


class Lineage:
    """The history that a database holds. `objects` remembers how far it came; `error` is what targets in doubt show."""

    def __init__(self, objects: Objects, error: dict):
        self._objects, self._error = objects, error
        # Of which history this process is sure, and how far it had come then; and how far the store knows of.
        self._id, self._tide, self._stored = None, 0, 0

    def verify(self) -> Restored | None:
        """Takes the consequences where the database was restored; None where it was not. To be called before anything is sent.
        """
        found, in_place, tide, stored = self._look(self._remembered)
        if not in_place or tide < stored:
            return self.begin_anew(found, stored)
        self._id, self._tide, self._stored = found, tide, stored
        return None

    def is_restored(self) -> bool:
        """Whether `verify` would find something to do. Raises StoreUnavailable."""
        _, in_place, tide, stored = self._look(self._marked)
        return not in_place or tide < stored

    def begin_anew(self, instead_of: str | None = None, stored: int = 0, actor: audit.Actor = audit.WORKER) -> Restored | None:
        """Begins another history; what may have been sent in the one that was lost is in doubt.

        None where the present history is not `instead_of` (None: any), since somebody else was faster, or nothing is wrong with
        it: it lies in its place, and its journal reaches `stored`.
        """
        with with_connection(), database.atomic():
            database.execute_sql("SELECT pg_advisory_xact_lock(%s)", (CLAIM_LOCK,))
            found, in_place, tide, since = database.execute_sql(PRESENT).fetchone()
            if instead_of is not None and (found != instead_of or in_place and tide >= stored):
                return None
            doubtful = database.execute_sql(DOUBT, {"since": since, "error": Json(self._error)}).rowcount
            database.execute_sql(FORGET)
            database.execute_sql(BEGIN_ANEW)
            audit.record(actor, "database.restored", found, since=since.isoformat(), targets=doubtful)
        log.error("this database was restored from a backup: %d targets may have been sent since %s and are looked for; "
                  "docs/backup.md says what else to do", doubtful, since)
        return Restored(since, doubtful)

    def go_on(self, actor: audit.Actor) -> None:
        """The same history goes on in another place, where nothing was sent between the two."""
        with with_connection(), database.atomic():
            database.execute_sql("SELECT pg_advisory_xact_lock(%s)", (CLAIM_LOCK,))
            audit.record(actor, "database.moved", database.execute_sql(GO_ON).fetchone()[0])

    def mark(self) -> None:
        """Has the store remember how far the history has come that was verified. Raises nothing."""
        try:
            with with_connection():
                values = {"id": self._id, "tide": self._tide, "every": MARK_EVERY}
                row = database.execute_sql(SEEN, values).fetchone()
                present = database.execute_sql(PRESENT).fetchone()[0]
            if present != self._id:     # somebody has begun another
                self.verify()
            elif row is not None and row[0] > self._stored:
                self._put(row[0])
        except Exception as error:      # whatever it was: without a memory, an older database would not be known
            log.warning("how far the journal has come is not remembered (%s)", type(error).__name__)

    def _look(self, marked):
        """The present history, whether it lies in its place, how far its journal comes, and how far it had come by `marked`.

        The journal is read after the store was asked: the workers beside this one go on meanwhile, and say so to the store.
        """
        asked, present = None, _present()
        while present[0] != asked:
            asked = present[0]
            stored = marked(asked)
            present = _present()
        return *present[:3], stored

    def _put(self, tide):
        marks = self._marks(self._id)
        if max(marks, default=0) > tide:    # others were faster, or the store was away when it was asked before
            self.verify()
            return
        if tide not in marks:
            self._objects.put(f"{PREFIX}{self._id}/{tide:020}", io.BytesIO(b"."), 1, "application/octet-stream")
        self._tide = self._stored = tide
        for other, key in marks.items():
            if other < tide:
                self._objects.delete(key)

    def _remembered(self, lineage):
        try:
            return self._marked(lineage)
        except Exception as error:      # whatever it was: it must not end the worker
            log.error("whether this database was restored is not known for sure (%s); asking again", type(error).__name__)
            return UNKNOWN

    def _marked(self, lineage):
        return max(self._marks(lineage), default=0)

    def _marks(self, lineage):
        """The keys of what the store remembers, by how far that is. Copying tools leave objects of their own beside them."""
        prefix = f"{PREFIX}{lineage}/"
        keys = [key for key, _, _ in self._objects.list(prefix)]
        return {int(key.removeprefix(prefix)): key for key in keys if TIDE.fullmatch(key.removeprefix(prefix))}


def _present():
    with with_connection():
        return database.execute_sql(PRESENT).fetchone()


def gaps() -> list[tuple[datetime, datetime]]:
    """The times of which this database knows nothing, since it was restored."""
    return database.execute_sql(GAPS).fetchall()
