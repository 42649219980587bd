"""Whether the service can do its work now."""

from storage.asking import Asking
from storage.database import DatabaseAway, database
from storage.queue import health

WAITING = 60.0      # seconds that a due target may wait with nobody taking it
SILENCE = 5.0       # seconds without a sign of life of any worker; they give one every second


class Readiness:
    """To be called for whether what the service needs is there, by name; what hangs counts as away."""

    def __init__(self, objects):
        """`objects` is the store (storage.objects.Objects)."""
        self._queue, self._store = Asking(_queue), Asking(objects.ready)

    def __call__(self) -> dict[str, bool]:
        try:
            queue = self._queue()
        except (*DatabaseAway, TimeoutError):
            return {"database": False}
        try:
            store = self._store()
        except TimeoutError:
            store = False
        # A long queue before a slow network is no reason to turn clients away, as long as somebody works on it.
        moving = min(queue.oldest_due, queue.claimed) < WAITING
        publisher = moving and queue.worker_seen < SILENCE
        return {"database": True, "store": store, "publisher": publisher}


def _queue():
    with database.connection_context():
        return health()
