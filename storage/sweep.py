"""Looking after the files in bounded steps: claims become facts, what nobody uses goes, rows and store are compared both ways.

Rows go before their objects, or are marked: what a sweep that is cut short leaves behind is an object without a row, which the
comparison finds. An object is taken for ours only by the form of its key and a team that exists here, so that a store that is
shared, or a database that is the wrong one, costs nobody a file.
"""

import itertools
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from peewee import IntegrityError, fn

from storage import claims
from storage.database import DatabaseAway, database, with_connection
from storage.lineage import gaps
from storage.media import KEY
from storage.models import Media
from storage.objects import PROBE_PREFIX, StoreUnavailable
from storage.renditions import Rendition

EVERY = timedelta(minutes=10)               # one round, of all workers together
BATCH, PAGES, SECONDS = 100, 10, 300.0      # of one round: rows of each kind, pages of the comparison, time
PAGE = 1_000                                # objects of one page, as many as S3 gives at once
UPLOAD = timedelta(hours=1)                 # no upload begins later than that after its claim: handlers.media.UPLOAD_TIME
FIRST_LOOK = timedelta(minutes=15)          # most callers use what they upload, and it is looked at then
SETTLED = timedelta(hours=2)                # neither an upload nor a store that is slow to show it is under way any more
FEW = 5                                     # rows whose objects may be missing, however few there are

GONE = "it is no longer in the store"
OUTLIVED = "it was removed some time after the last post that used it"

# What each step is about. `%(at)s` is now.
# No team's uploads, however many, wait behind those of another.
CLAIMED = """state = 'pending' AND created_at < %(at)s - %(first_look)s
    ORDER BY row_number() OVER (PARTITION BY team_id ORDER BY looked_at NULLS FIRST, created_at), looked_at NULLS FIRST"""
LATE = "state = 'pending' AND created_at < %(at)s - %(missing)s AND looked_at > created_at + %(upload)s ORDER BY looked_at"
REFUSED = "state = 'refused' AND removed_at IS NULL AND created_at < %(at)s - %(settled)s ORDER BY created_at"
UNUSED = """state = 'ready' AND created_at < %(at)s - %(unused)s
    AND NOT EXISTS (SELECT FROM attachments WHERE media_id = media.id) ORDER BY created_at"""
FINISHED = """state = 'ready' AND EXISTS (SELECT FROM attachments WHERE media_id = media.id)
    AND NOT EXISTS (SELECT FROM attachments JOIN targets ON targets.id = target_id WHERE media_id = media.id
                    AND (status NOT IN ('published', 'failed', 'canceled')
                         OR coalesce(finished_at, due_at) > %(at)s - %(finished)s))"""

LOCK = "SELECT FROM media WHERE id = %s FOR UPDATE"     # waits for posts that begin to use it, and they for us: storage.posts
TAKE = "UPDATE sweeps SET next_at = now() + %s WHERE name = 'media' AND next_at <= now() RETURNING after"
GO_ON = "UPDATE sweeps SET after = %s WHERE name = 'media'"
KNOWN = """SELECT key FROM media WHERE key = ANY (%(keys)s) AND removed_at IS NULL
           UNION SELECT key FROM renditions WHERE key = ANY (%(keys)s)"""
BETWEEN = """key COLLATE "C" > %(after)s AND (%(last)s IS NULL OR key COLLATE "C" <= %(last)s)"""
EXPECTED = f"SELECT id, key FROM media WHERE state = 'ready' AND created_at < now() - %(settled)s AND {BETWEEN}"
EXPECTED_RENDITIONS = f"SELECT NULL, key FROM renditions WHERE {BETWEEN}"


@dataclass(frozen=True)
class Retention:
    """How long what is kept: uploads that do not arrive and objects without a row, files that no post uses, and files whose
    posts are all finished (None: for ever).
    """

    missing: timedelta = timedelta(hours=24)
    unused: timedelta = timedelta(days=30)
    finished: timedelta | None = None


@dataclass
class Swept:
    """What a sweep did, or would do."""

    ready: int = 0          # claims that became facts,
    refused: int = 0        # or were refused
    late: int = 0           # claims on uploads that never arrived
    emptied: int = 0        # refused files that were removed
    unused: int = 0
    finished: int = 0
    orphans: int = 0        # objects without a row
    orphan_bytes: int = 0
    lost: int = 0           # rows without an object
    doubts: list[str] = field(default_factory=list)


class Sweep:
    """Sweeps the store `objects` (storage.objects.Objects). It holds a database connection only while it needs one."""

    def __init__(self, objects, retention: Retention, *, log=None):
        self._objects, self._retention = objects, retention
        self._log = log or logging.getLogger("posthorn.sweep")

    def round(self) -> Swept | None:
        """One bounded round, or None where it is not its time or another process has it. Raises StoreUnavailable."""
        with with_connection():
            row = database.execute_sql(TAKE, (EVERY,)).fetchone()
        if row is None:
            return None
        run = _Run(self._objects, self._retention, self._log, limit=BATCH, pages=PAGES, deadline=time.monotonic() + SECONDS)
        after = run.everything(after=row[0])
        with with_connection():
            database.execute_sql(GO_ON, (after,))
        return run.swept

    def whole(self, *, dry_run=False) -> Swept:
        """All there is to sweep, however long it takes; with `dry_run` nothing is changed. Raises StoreUnavailable."""
        run = _Run(self._objects, self._retention, self._log, dry_run=dry_run)
        run.everything(after="")
        return run.swept


class _Run:
    """One run over the steps, within `limit` rows of each, `pages` of the comparison, and until `deadline`."""

    def __init__(self, objects, retention, log, *, limit=None, pages=None, deadline=None, dry_run=False):
        self.swept = Swept()
        self._objects, self._retention, self._log = objects, retention, log
        self._limit, self._pages, self._deadline, self._dry = limit, pages, deadline, dry_run
        self._at = datetime.now(UTC)

    def everything(self, after):
        """Takes the steps; gives the key behind which the comparison, that began behind `after`, has to go on."""
        # What others uploaded takes long to look at, if they want it to: the other steps keep half of the time.
        half = None if self._deadline is None else (time.monotonic() + self._deadline) / 2
        self._each(CLAIMED, self._look, half)
        self._each(LATE, self._forget)
        self._each(REFUSED, self._empty)
        self._each(UNUSED, lambda media: self._drop(media, "unused", Media.state == "ready"))
        if self._retention.finished is not None:
            self._each(f"{FINISHED} ORDER BY created_at", self._retire)
        return self._compare(after)

    def _each(self, which, step, deadline=None):
        with with_connection():
            ids = self._ids(f"{which} LIMIT %(limit)s")
            rows = {media.id: media for media in Media.select().where(Media.id.in_(ids))}
        for media_id in filter(rows.get, ids):
            if not self._in_time(deadline):
                return
            with self._alone(media_id):
                step(rows[media_id])

    @contextmanager
    def _alone(self, what):
        """What fails with one file costs the others nothing, now and in the next round; a store that is away ends the run."""
        try:
            yield
        except DatabaseAway:
            raise
        except Exception as error:
            if isinstance(error, StoreUnavailable) and not self._objects.ready():
                raise
            self._log.warning("%s is left for another time: %s: %s", what, type(error).__name__, error)

    def _ids(self, which, **values):
        keep = self._retention
        values |= {"at": self._at, "first_look": FIRST_LOOK, "upload": UPLOAD, "settled": SETTLED, "missing": keep.missing,
                   "unused": keep.unused, "finished": keep.finished, "limit": self._limit}
        return [row[0] for row in database.execute_sql(f"SELECT id FROM media WHERE {which}", values).fetchall()]

    def _in_time(self, deadline=None):
        deadline = deadline or self._deadline
        return deadline is None or time.monotonic() < deadline

    def _look(self, media):
        if not self._dry:
            with with_connection():     # before the look: a file that ends this process is not the next one's first
                _mark(media.id, looked_at=fn.now())
        verdict = claims.look(self._objects, media)
        if verdict is None:
            return
        name = "refused" if verdict.facts is None else "ready"
        setattr(self.swept, name, getattr(self.swept, name) + 1)
        if not self._dry:
            with with_connection():
                media.settle(verdict.facts, verdict.refusal)

    def _forget(self, media):
        # It may have arrived, and have been looked at in vain.
        if self._objects.stat(media.key) is None:
            self._drop(media, "late", Media.state == "pending")

    def _drop(self, media, name, still):
        """Removes the row, and then what it has in the store."""
        if not self._dry:
            try:
                with with_connection(), database.atomic():
                    keys = _take_renditions(media)
                    removed = Media.delete().where(Media.id == media.id, still).execute()
            except IntegrityError:      # a post has just begun to use it
                return
            if not removed:
                return
            self._delete(media, keys)
        setattr(self.swept, name, getattr(self.swept, name) + 1)

    def _empty(self, media):
        """Its bytes count until they are gone."""
        if not self._dry:
            with with_connection():
                keys = _take_renditions(media)
            self._delete(media, keys)
            with with_connection():
                _mark(media.id, removed_at=fn.now())
        self.swept.emptied += 1

    def _retire(self, media):
        """Its row stays, for the posts that show it."""
        if not self._dry:
            with with_connection(), database.atomic():
                database.execute_sql(LOCK, (media.id,))
                if not self._ids(f"id = %(id)s AND {FINISHED}", id=media.id):       # a post uses it again
                    return
                keys = _take_renditions(media)
                _mark(media.id, state="refused", refusal=OUTLIVED, removed_at=fn.now())
            self._delete(media, keys)
        self.swept.finished += 1

    def _delete(self, media, keys):
        for key in {media.key, *keys}:
            self._objects.delete(key)

    def _compare(self, after):
        with with_connection():
            self._gaps = gaps()
        for number in itertools.count():
            if number == self._pages or not self._in_time():
                return after
            page = list(itertools.islice(self._objects.list(after=after or None), PAGE))
            last = page[-1][0] if len(page) == PAGE else None
            self._remove_orphans(page)
            self._refuse_lost({key for key, _, _ in page}, after, last)
            if last is None:
                return ""
            after = last

    def _remove_orphans(self, page):
        old = [(key, size) for key, size, modified in page if modified < self._at - self._orphans_kept(modified)]
        owners = {key: match[1] for key, _ in old if (match := KEY.fullmatch(key))}
        with with_connection():
            known = _column(KNOWN, {"keys": list(owners)})
            teams = _column("SELECT id FROM teams WHERE id = ANY (%(ids)s)", {"ids": list(set(owners.values()))})
        for key, size in old:
            if key.startswith(PROBE_PREFIX) or (key not in known and owners.get(key) in teams):
                with self._alone(key):
                    if not self._dry:
                        self._objects.delete(key)
                    self.swept.orphans += 1
                    self.swept.orphan_bytes += size

    def _orphans_kept(self, modified):
        """How long an object is kept that has no row: longer where the row may be lost, since the database was restored."""
        lost = any(begin - SETTLED < modified < end + SETTLED for begin, end in self._gaps)
        return max(self._retention.missing, self._retention.unused) if lost else self._retention.missing

    def _refuse_lost(self, there, after, last):
        values = {"settled": SETTLED, "after": after, "last": last}
        with with_connection():
            rows = database.execute_sql(f"{EXPECTED} UNION ALL {EXPECTED_RENDITIONS}", values).fetchall()
        lost = [(media_id, key) for media_id, key in rows if key not in there]
        if len(lost) > max(FEW, len(rows) / 2):
            self.swept.doubts.append(f"{len(lost)} of {len(rows)} files are not in the store; nothing is done about them: is "
                                     "S3_BUCKET the right one?")
            return
        for media_id, key in lost:
            with self._alone(key):
                if self._objects.stat(key) is None:
                    self._lose(media_id, key)

    def _lose(self, media_id, key):
        """A file is refused; what was made of one (`media_id` None) can be made again."""
        self.swept.lost += media_id is not None
        if not self._dry:
            with with_connection():
                if media_id is None:
                    Rendition.delete().where(Rendition.key == key).execute()
                else:
                    _mark(media_id, state="refused", refusal=GONE)


def _take_renditions(media):
    """Forgets what was made of the file; gives the keys."""
    return _column("DELETE FROM renditions WHERE media_id = %(id)s RETURNING key", {"id": media.id})


def _mark(media_id, **changes):
    Media.update(**changes).where(Media.id == media_id).execute()


def _column(sql, values):
    return {row[0] for row in database.execute_sql(sql, values).fetchall()}
