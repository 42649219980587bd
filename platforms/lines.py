"""One kind of work that falls due: taken in hand as far as there are threads for it, run on them, and kept while it runs."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

LEASE = timedelta(seconds=3)    # what a dead worker had is taken over when this and a heartbeat have passed: within 5 s
FALLBACK = 1.0                  # seconds: the longest sleep, for a bell that was not heard
PAUSE = 0.01                    # seconds before a second look at what became due between two looks
ASIDE = 0.02                    # seconds between two looks past a server that has all its threads, which every end of a job
                                # would ask for; ten times what a look takes, where that is longer
BATCH = 32                      # jobs taken at once

log = logging.getLogger("posthorn.worker")


class Line:
    """Jobs of one kind, on as many threads as each server may have and `room` for all; what is slow of another kind is apart.
    """

    def __init__(self, word: str, source, runner, *, most: dict[str, int], room: int, beat: Callable, sweep: Callable, claimed,
                 expired):
        """`word`: how the bell is rung for it (storage.database.ring). `most`: the attributes of a job that say whose speed it
        depends on, or whose they are, and on how many threads such jobs may be at once. `source.claim`,
        `source.seconds_to_next` and `source.give_back` are as in storage.queue. `runner.run` works on a job and raises nothing.
        `beat` is called with the jobs in hand to keep them, `sweep` to take back what others left; it returns how many that
        were. `claimed` and `expired` are Prometheus counters.
        """
        self.word, self.held, self.claimed_at = word, {}, None      # the jobs in hand, by id and fence
        self._source, self._runner, self._most, self._all = source, runner, most, room
        self._keep, self._sweep, self._claimed, self._expired = beat, sweep, claimed, expired
        self._stirred, self._rest_until, self._aside_until = threading.Event(), 0.0, 0.0

    def stir(self) -> None:
        """There may be something to claim: the next turn looks."""
        self._stirred.set()

    def turn(self, worker: str, ended: Callable[[], None]) -> float:
        """Claims what is due and there are threads for, where there may be something; returns the seconds until it looks again.

        `ended` is called, on any thread, when a job has.
        """
        now = time.monotonic()
        if now < self._rest_until and not self._stirred.is_set():
            return self._rest_until - now
        free, full = self._room()
        if free > 0 and full and now < self._aside_until:
            return self._aside_until - now
        self._stirred.clear()
        self._rest_until = 0.0
        wait = self._take(worker, ended, free, full) if free > 0 else FALLBACK
        self._rest_until = time.monotonic() + wait
        return wait

    def beat(self) -> None:
        """Keeps what is in hand."""
        self._keep(list(self.held.values()))

    def sweep(self) -> bool:
        """Takes back what belonged to workers that are gone; returns whether that was anything."""
        swept = self._sweep()
        self._expired.inc(swept)
        if swept:
            self.stir()
        return swept > 0

    def _take(self, worker, ended, free, full):
        began = time.monotonic()
        jobs = self._source.claim(worker, limit=free, lease=LEASE, full=full)
        self.held.update({(job.id, job.fence): job for job in jobs})
        started = self._start(jobs, ended)
        self._claimed.inc(len(jobs))
        wait = 0.0 if len(jobs) == free else self._source.seconds_to_next(full)
        now = time.monotonic()
        self.claimed_at = now if jobs else self.claimed_at
        self._aside_until = now + max(ASIDE, 10 * (now - began))
        if wait is None or wait > FALLBACK:
            return FALLBACK
        if not started:
            return FALLBACK
        # What is due now and was not claimed has just become so, or somebody is changing it.
        return max(wait, 0.0 if jobs else PAUSE)

    def _room(self):
        """How many jobs may be taken in hand now, and the servers for which none may.

        What is slow keeps its own threads alone: a server whose threads are all taken gets no more, the others do, as many as
        the busiest of them still has room for.
        """
        held, left, full = list(self.held.values()), [], []
        for attribute, most in self._most.items():
            busy = Counter(getattr(job, attribute) for job in held)
            full += [server for server, count in busy.items() if count >= most]
            left += [most, *(most - count for count in busy.values() if count < most)]
        return min([BATCH, self._all - len(held), *left]), full

    def _start(self, jobs, ended):
        """On threads that end with their jobs: for each that lives on, malloc keeps what it once freed, more with every hour.

        Returns whether there were enough.
        """
        for number, job in enumerate(jobs):
            try:
                threading.Thread(target=self._run, args=(job, ended), name=self.word or "publish").start()
            except RuntimeError:
                self._give_back(jobs[number:])
                return False
        return True

    def _give_back(self, jobs):
        log.error("this machine gives no more threads; %d jobs have to wait", len(jobs))
        for job in jobs:
            del self.held[job.id, job.fence]
        for job in jobs:
            self._source.give_back(job, FALLBACK)

    def _run(self, job, ended):
        try:
            self._runner.run(job)
        finally:
            del self.held[job.id, job.fence]
            self.stir()
            ended()
