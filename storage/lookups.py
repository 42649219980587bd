"""Name lookups, which nobody can stop: so many at a time that name servers which do not answer hold up no others."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

LOOKUPS = 128           # of one process; the thread of one that gets no answer is held for some 20 s by the system's resolver
SITE_LOOKUPS = 4        # of the names of one site, whose owner may have as many as he likes, and name servers that are silent


class Exhausted(Exception):
    """As many names are being looked up as may be."""


class Lookups:
    """Looks names up with `resolve`, which may block. Threads may share it."""

    def __init__(self, resolve):
        self._resolve, self._threads = resolve, ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")
        self._ended, self._running = threading.Condition(), Counter()

    def find(self, host, seconds):
        """What `resolve` gives for `host`, or raises. Raises TimeoutError after so many seconds, and Exhausted."""
        site, deadline = _site(host), monotonic() + seconds
        with self._ended:
            self._ended.wait_for(lambda: self._running[site] < SITE_LOOKUPS and self._running.total() < LOOKUPS, seconds)
            if self._running[site] >= SITE_LOOKUPS:
                raise TimeoutError
            if self._running.total() >= LOOKUPS:
                raise Exhausted
            self._running[site] += 1
        return self._threads.submit(self._find, site, host).result(max(0, deadline - monotonic()))

    def _find(self, site, host):
        try:
            return self._resolve(host)
        finally:
            with self._ended:
                self._running = self._running - Counter([site])
                self._ended.notify_all()


def _site(host):
    """The part of a name that somebody registers: what ends like `co.uk` has one label more."""
    labels = host.split(".")
    return ".".join(labels[-3 if len(labels[-1]) == 2 and len(labels[-2:][0]) <= 3 else -2:])
