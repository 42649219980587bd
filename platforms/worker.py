"""The loop that publishes and tells webhooks: have what is due claimed, sleep exactly until something is due again."""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

import psycopg2
from peewee import OperationalError, PeeweeException
from psycopg2.errors import LockNotAvailable

from platforms.errors import describe
from platforms.lines import FALLBACK, LEASE, Line
from platforms.metrics import CLAIMED, DELIVERIES_CLAIMED, DELIVERY_LEASES_EXPIRED, LEASES_EXPIRED, OUTCOMES
from platforms.publisher import UNCONFIRMED, Publisher
from platforms.webhooks import Sender
from storage import deliveries, queue
from storage.database import BELL, DatabaseAway, connection_parameters, database, new_id
from storage.ids import about
from storage.lineage import MARK_EVERY, Lineage
from storage.outage import Outage
from storage.retention import Keep, tidy
from storage.webhooks import BELL_WORD

HEARTBEAT = 0.75                # seconds
TIDY_EVERY = 600.0              # seconds
ROOM = 8                        # times its threads for one server: so many would have to be slow at once to stop the rest
# Events that one webhook gets at once, all those of a team, and all of them: no team keeps those of the others waiting.
RECEIVER, RECEIVERS_OF_TEAM, RECEIVERS = 4, 32, 128
# Away, restarting, taken over by one that cannot write yet, or standing still while others hold all connections.
AWAY = (PeeweeException, psycopg2.Error, *DatabaseAway)
GRACE = 25.0                    # seconds that a stopping worker waits for what is being sent

log = logging.getLogger("posthorn.worker")


class Worker:
    """Publishes until stopped, on up to `threads` threads for one server. Many may run, on one machine or on many."""

    def __init__(self, publisher: Publisher, database_url: str, *, threads: int, chore: Callable[[], None] | None = None,
                 keep: Keep = Keep(), lineage: Lineage | None = None, sender: Sender | None = None):
        """`chore` is called every TIDY_EVERY seconds on a thread of its own, and may take its time; `keep` says how long what
        is kept that ended; `lineage` whether the database is the one that was worked on; `sender` tells webhooks.
        """
        self._chore, self._keep, self._lineage, self._sure = chore, keep, lineage, False
        self.name = new_id("worker")
        self._publisher, self._url, self._threads = publisher, database_url, threads
        self._posts = Line("", queue, publisher, most={"server": threads}, room=threads * ROOM, beat=self._say_alive,
                           sweep=take_back, claimed=CLAIMED, expired=LEASES_EXPIRED)
        self._lines = [self._posts]
        if sender is not None:
            self._lines.append(Line(BELL_WORD, deliveries, sender, room=RECEIVERS,
                                    most={"webhook_id": RECEIVER, "team_id": RECEIVERS_OF_TEAM},
                                    beat=partial(deliveries.beat, lease=LEASE), sweep=deliveries.sweep,
                                    claimed=DELIVERIES_CLAIMED, expired=DELIVERY_LEASES_EXPIRED))
        self._wake_up, self._waker = socket.socketpair()
        self._wake_up.setblocking(False)
        self._waker.setblocking(False)
        self._stopping, self._over = threading.Event(), threading.Event()
        self._bell, self._outage = None, Outage(log, "the database")

    def run(self) -> None:
        """Works until `stop`; then what is being sent is finished and the rest given back."""
        heart, house, memory = (threading.Thread(target=target, name=target.__name__, daemon=True)
                                for target in (self._beat, self._keep_house, self._remember))
        heart.start()
        house.start()
        memory.start()
        log.info("%s works on %d threads for each server", self.name, self._threads)
        try:
            while not self._stopping.is_set():
                self._try_turn()
            log.info("%s stops: %d in hand", self.name, self._in_hand())
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

    def _try_turn(self):
        try:
            wait = self._turn()
            self._outage.is_over()
            self._sleep(wait)
        except AWAY as error:
            self._outage.goes_on(error)
            self._start_over()
        except Exception:       # the next turn may succeed, and what is in hand needs its heart
            log.exception("a turn failed; trying again")
            self._start_over()

    def _start_over(self):
        database.manual_close()     # not back into the pool: it may belong to a server that no longer writes
        self._sure = False          # and what comes back may be another
        self._hang_up()
        self._rest(FALLBACK)

    def _turn(self):
        """Claims what is due and there are threads for; returns the seconds to sleep at most."""
        self._make_sure()
        self._listen()
        database.connect(reuse_if_open=True)    # kept: the threads of slow jobs may hold all others
        return min(line.turn(self.name, self._wake) for line in self._lines)

    def _make_sure(self):
        """Before anything is claimed, that the database was not restored from a backup."""
        if self._lineage is not None and not self._sure:
            self._lineage.verify()
        self._sure = True

    def _beat(self):
        """Says that we live, keeps our leases, and takes back those of workers that are gone."""
        pause, outage = 0.0, Outage(log, "the database of the heartbeat")
        # The first at once: where all others have died, it is what takes back what they had.
        while not self._over.wait(pause):
            pause = HEARTBEAT
            try:
                database.connect(reuse_if_open=True)    # kept, as the loop's
                for line in self._lines:
                    line.beat()
                for line in self._lines:
                    self._sweep(line)
                outage.is_over()
            except AWAY as error:
                outage.goes_on(error)
                database.manual_close()
            except Exception:       # whatever it was: without a heart, every lease would run out
                log.exception("no heartbeat")
                database.manual_close()
        database.close()

    def _sweep(self, line):
        try:
            if line.sweep():
                self._wake()
        except OperationalError as error:
            if not isinstance(getattr(error, "orig", None), LockNotAvailable):
                raise
            log.warning("somebody holds what a worker that is gone had in hand")

    def _say_alive(self, held):
        claimed_at = self._posts.claimed_at
        queue.beat(self.name, held, lease=LEASE, claimed_ago=None if claimed_at is None else time.monotonic() - claimed_at)

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
            self._stir(line.word for line in self._lines)

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
            self._stir(notice.payload for notice in self._bell.notifies)
            self._bell.notifies.clear()

    def _stir(self, words):
        words = set(words)
        for line in self._lines:
            if line.word in words:
                line.stir()

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
        while self._in_hand() and (left := deadline - time.monotonic()) > 0:
            self._rest(left)
        if self._in_hand():
            log.warning("%d targets were still being sent; they will be unconfirmed", len(self._posts.held))
            os._exit(1)     # threads that hang cannot be ended; their leases run out

    def _in_hand(self):
        return sum(len(line.held) for line in self._lines)


def take_back():
    """Takes back what workers that are gone had in hand; returns how much that was."""
    lost = queue.sweep(describe(UNCONFIRMED))
    for target in lost:
        OUTCOMES.labels(target.platform, target.mode, "unconfirmed" if target.status == "unconfirmed" else "taken_back").inc()
        with about(request_id=target.request_id, target_id=target.id, team_id=target.team_id):
            log.warning("%s: the worker that had it is gone; it is %s", target.platform, target.status)
    return len(lost)
