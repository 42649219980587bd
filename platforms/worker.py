"""The loop that publishes: claim what is due, run it on threads, sleep exactly until something is due again."""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg2
from peewee import PeeweeException

from platforms.errors import describe
from platforms.metrics import CLAIMED, LEASES_EXPIRED
from platforms.publisher import UNCONFIRMED, Publisher
from storage import queue
from storage.database import BELL, DatabaseAway, connection_parameters, database, new_id
from storage.lineage import MARK_EVERY, Lineage
from storage.retention import Keep, tidy

LEASE = timedelta(seconds=3)    # what a dead worker had is taken over when this and a heartbeat have passed: within 5 s
HEARTBEAT = 0.75                # seconds
FALLBACK = 1.0                  # seconds: the longest sleep, for a bell that was not heard
PAUSE = 0.01                    # seconds before a second look at what became due between two looks
ASIDE = 0.02                    # seconds between two looks past a server that has all its threads, which every end of a job would
                                # ask for; ten times what a look takes, where that is longer
TIDY_EVERY = 600.0              # seconds
BATCH = 32                      # targets taken at once
ROOM = 8                        # times its threads for one server: so many servers would have to be slow at once to stop the rest
GRACE = 25.0                    # seconds that a stopping worker waits for what is being sent

log = logging.getLogger("posthorn.worker")


class Worker:
    """Publishes until stopped, on up to `threads` threads for one server. Many may run, on one machine or on many."""

    def __init__(self, publisher: Publisher, database_url: str, *, threads: int, chore: Callable[[], None] | None = None,
                 keep: Keep = Keep(), lineage: Lineage | None = None):
        """`chore` is called every TIDY_EVERY seconds on a thread of its own, and may take its time; `keep` says how long what
        is kept that ended; `lineage` whether the database is the one that was worked on.
        """
        self._chore, self._keep, self._lineage, self._sure = chore, keep, lineage, False
        self.name = new_id("worker")
        self._publisher, self._url, self._threads = publisher, database_url, threads
        self._held = {}                     # the jobs in hand by id and fence
        self._wake_up, self._waker = socket.socketpair()
        self._wake_up.setblocking(False)
        self._waker.setblocking(False)
        self._stopping, self._over = threading.Event(), threading.Event()
        self._bell, self._aside_until, self._claimed_at = None, 0.0, None

    def run(self) -> None:
        """Works until `stop`; then what is being sent is finished and the rest given back."""
        heart, house, memory = (threading.Thread(target=target, name=target.__name__, daemon=True)
                                for target in (self._beat, self._keep_house, self._remember))
        heart.start()
        house.start()
        memory.start()
        log.info("%s works on %d threads for each server", self.name, self._threads)
        try:
            with ThreadPoolExecutor(self._threads * ROOM, thread_name_prefix="publish") as pool:
                while not self._stopping.is_set():
                    self._try_turn(pool)
                log.info("%s stops: %d in hand", self.name, len(self._held))
                self._drain()
        finally:
            self._over.set()
            self._hang_up()
            database.close()
        heart.join(HEARTBEAT)
        with contextlib.suppress(DatabaseAway), database.connection_context():
            queue.leave(self.name)

    def stop(self) -> None:
        """Asks `run` to end; safe in a signal handler."""
        self._publisher.stopping.set()
        self._stopping.set()
        self._wake()

    def _try_turn(self, pool):
        try:
            self._sleep(self._turn(pool))
        # Away, restarting, taken over by one that cannot write yet, or standing still while others hold all connections.
        except (PeeweeException, psycopg2.Error, *DatabaseAway) as error:
            log.warning("the database is away (%s); trying again", type(error).__name__)
            database.manual_close()     # not back into the pool: it may belong to a server that no longer writes
            self._sure = False          # and what comes back may be another
            self._hang_up()
            self._rest(FALLBACK)

    def _turn(self, pool):
        """Claims what is due and there are threads for; returns the seconds to sleep at most."""
        self._make_sure()
        self._listen()
        free, full = self._room()
        began = time.monotonic()
        if free <= 0:
            return FALLBACK
        if full and began < self._aside_until:
            return self._aside_until - began
        database.connect(reuse_if_open=True)    # kept: the threads of slow jobs may hold all others
        jobs = queue.claim(self.name, limit=free, lease=LEASE, full=full)
        for job in jobs:
            self._held[job.id, job.fence] = job
            pool.submit(self._work, job)
        CLAIMED.inc(len(jobs))
        wait = 0.0 if len(jobs) == free else queue.seconds_to_next(full)
        now = time.monotonic()
        self._claimed_at = now if jobs else self._claimed_at
        self._aside_until = now + max(ASIDE, 10 * (now - began))
        if wait is None or wait > FALLBACK:
            return FALLBACK
        # What is due now and was not claimed has just become so, or somebody is changing it.
        return max(wait, 0.0 if jobs else PAUSE)

    def _make_sure(self):
        """Before anything is claimed, that the database was not restored from a backup."""
        if self._lineage is not None and not self._sure:
            self._lineage.verify()
        self._sure = True

    def _room(self):
        """How many targets may be taken in hand now, and the servers for which none may.

        What is slow keeps its own threads alone: a server whose threads are all taken gets no more, the others do, as many as
        the busiest of them still has room for.
        """
        busy = Counter(job.server for job in list(self._held.values()))
        full = [server for server, count in busy.items() if count >= self._threads]
        left = [self._threads - count for count in busy.values() if count < self._threads]
        return min([BATCH, self._threads, self._threads * ROOM - busy.total(), *left]), full

    def _work(self, job):
        try:
            self._publisher.run(job)
        finally:
            del self._held[job.id, job.fence]
            self._wake()

    def _beat(self):
        """Says that we live, keeps our leases, and takes back those of workers that are gone."""
        pause = 0.0     # the first at once: where all others have died, it is what takes back what they had
        while not self._over.wait(pause):
            pause = HEARTBEAT
            try:
                database.connect(reuse_if_open=True)    # kept, as the loop's
                claimed_ago = None if self._claimed_at is None else time.monotonic() - self._claimed_at
                queue.beat(self.name, list(self._held.values()), lease=LEASE, claimed_ago=claimed_ago)
                if swept := queue.sweep(describe(UNCONFIRMED)):
                    LEASES_EXPIRED.inc(swept)
                    self._wake()
            except Exception as error:      # whatever it was: without a heart, every lease would run out
                log.warning("no heartbeat (%s)", type(error).__name__)
                database.manual_close()
        database.close()

    def _keep_house(self):
        """What has to be done now and then, and may take its time."""
        pause = 0.0
        while not self._over.wait(pause):
            pause = TIDY_EVERY
            try:
                with database.connection_context():
                    tidy(self._keep)
                self._publisher.look_after_accounts()
                if self._chore is not None:
                    self._chore()
            except DatabaseAway as error:
                log.warning("tidying up failed (%s)", type(error).__name__)
            except Exception:       # the next round may succeed
                log.exception("tidying up failed")

    def _remember(self):
        """How far the database has come, outside of it."""
        while self._lineage is not None and not self._over.wait(MARK_EVERY):
            self._lineage.mark()

    def _listen(self):
        if self._bell is None:
            self._bell = psycopg2.connect(**connection_parameters(self._url))
            self._bell.autocommit = True
            with self._bell.cursor() as cursor:
                cursor.execute(f"LISTEN {BELL}")

    def _hang_up(self):
        if self._bell is not None:
            self._bell.close()
            self._bell = None

    def _sleep(self, seconds):
        """Until the bell rings, a job ends, or the time is over."""
        ready, _, _ = select.select([self._bell, self._wake_up], [], [], seconds)
        if self._wake_up in ready:
            self._wake_up.recv(4096)
        if self._bell in ready:
            self._bell.poll()
            self._bell.notifies.clear()

    def _rest(self, seconds):
        """Until a job ends, `stop` is called, or the time is over."""
        ready, _, _ = select.select([self._wake_up], [], [], seconds)
        if ready:
            self._wake_up.recv(4096)

    def _wake(self):
        try:
            self._waker.send(b"\0")
        except BlockingIOError:
            pass    # full of wake-ups already

    def _drain(self):
        deadline = time.monotonic() + GRACE
        while self._held and (left := deadline - time.monotonic()) > 0:
            self._rest(left)
        if self._held:
            log.warning("%d targets were still being sent; they will be unconfirmed", len(self._held))
            os._exit(1)     # threads that hang cannot be ended; their leases run out
