"""Questions to servers that may hang: whoever wants the answer waits for a while only."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

SECONDS = 3.0       # Prometheus gives up a scrape after 10 by default, and two of these may be part of one


class Asking:
    """Asks `question` in a thread of its own, and never again before it has answered: what hangs takes one thread in all."""

    def __init__(self, question: Callable):
        self._question, self._lock, self._answer = question, threading.Lock(), None

    def __call__(self):
        """The answer. Raises TimeoutError when there is none after SECONDS, and whatever the question raises."""
        with self._lock:
            if self._answer is None or self._answer.done():
                self._answer = self._begin()
            answer = self._answer
        return answer.result(SECONDS)

    def _begin(self):
        answer = Future()
        try:
            threading.Thread(target=self._ask, args=(answer,), name="asking", daemon=True).start()
        except RuntimeError as error:       # this machine has no thread to give, at this moment
            raise TimeoutError from error
        return answer

    def _ask(self, answer):
        try:
            answer.set_result(self._question())
        except BaseException as error:
            answer.set_exception(error)
