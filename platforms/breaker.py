"""Leaves a network alone that does not answer: one breaker per server, in the memory of one worker."""

import threading
import time
from dataclasses import dataclass

FAILURES = 5            # in a row
OPEN_FOR = 60.0         # seconds until one post is let through to try
FORGOTTEN = 1_200.0     # seconds after that; posts that wait try more often (platforms.pacing.LONGEST_PAUSE)


@dataclass
class _State:
    failures: int = 0
    closed_at: float = 0.0      # the breaker is open until then


class Breakers:
    """One breaker per key, a network or one server of it; None has none. Thread-safe; `clock` gives seconds and never goes back."""

    def __init__(self, clock=time.monotonic):
        self._clock, self._states, self._lock = clock, {}, threading.Lock()

    def wait(self, key: str | None) -> float:
        """Seconds to leave `key` alone; 0 = go ahead. After the wait one caller goes ahead, the others wait for its report."""
        with self._lock:
            state = self._states.get(key)
            if state is None or state.failures < FAILURES:
                return 0.0
            left = state.closed_at - self._clock()
            if left > 0:
                return left
            # The probe may die without a report; the next one is let through when its time is over as well.
            state.closed_at = self._clock() + OPEN_FOR
            return 0.0

    def report(self, key: str | None, failed: bool) -> None:
        """What came of a call: a failure is the network's own (no answer, a server error), anything else means that it works."""
        with self._lock:
            if key is None:
                return
            if not failed:
                self._states.pop(key, None)
                return
            state = self._states.setdefault(key, _State())
            state.failures += 1
            if state.failures >= FAILURES:
                state.closed_at = self._clock() + OPEN_FOR

    def open(self) -> dict[str, float]:
        """The keys that did not answer last, with the seconds for which they are left alone: 0.0 where the next post may try.

        None for which nobody has tried for long, as when no post is left.
        """
        with self._lock:
            left = {key: state.closed_at - self._clock() for key, state in self._states.items() if state.failures >= FAILURES}
        return {key: max(0.0, seconds) for key, seconds in left.items() if seconds > -FORGOTTEN}
