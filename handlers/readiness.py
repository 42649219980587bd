"""Whether the service can do its work now."""

from storage.database import DatabaseAway, database
from storage.queue import health

WAITING = 60.0      # seconds that a due target may wait with nobody taking it
SILENCE = 5.0       # seconds without a sign of life of any worker; they give one every second


def readiness(services) -> dict[str, bool]:
    """Whether what the service needs is there, by name."""
    try:
        with database.connection_context():
            queue = health()
    except DatabaseAway:
        return {"database": False}
    # A long queue before a slow network is no reason to turn clients away, as long as somebody works on it.
    moving = min(queue.oldest_due, queue.claimed) < WAITING
    publisher = moving and queue.worker_seen < SILENCE
    return {"database": True, "store": services.objects.ready(), "publisher": publisher}
