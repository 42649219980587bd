"""What a worker tells Prometheus about itself and the queue."""

import time

from prometheus_client import REGISTRY, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily

from storage import queue
from storage.database import DatabaseAway, database

CLAIMED = Counter("posthorn_claimed", "Targets taken in hand.")
LEASES_EXPIRED = Counter("posthorn_leases_expired", "Targets taken back from workers that were gone.")
OUTCOMES = Counter("posthorn_outcomes", "Moves of targets, by network and move.", ["platform", "mode", "move"])
LATENESS = Histogram("posthorn_lateness_seconds", "From the time a target was due until it began to be sent.", ["mode"],
                     buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600, 86400))


def count(job, move: str) -> None:
    """Counts one move of a job, and how late its sending began."""
    OUTCOMES.labels(job.platform, job.mode, move).inc()
    if move == "start_sending" and job.tries == 0:
        LATENESS.labels(job.mode).observe(max(0.0, job.late + time.monotonic() - job.claimed_at))


class QueueCollector:
    """Asks the database at every scrape, so that the figures are those of all workers together."""

    def __init__(self, breakers):
        self._breakers = breakers

    def collect(self):
        """Called by prometheus_client."""
        breakers = GaugeMetricFamily("posthorn_breaker_open_seconds", "Seconds for which a server is still left alone.", labels=["server"])
        for server, left in self._breakers.open().items():
            breakers.add_metric([server], left)
        yield breakers
        yield GaugeMetricFamily("posthorn_pool_in_use", "Database connections of this worker in use.", value=len(database._in_use))
        try:
            with database.connection_context():
                health = queue.health()
        except DatabaseAway:
            return
        yield GaugeMetricFamily("posthorn_oldest_due_seconds", "How long the oldest due target has been waiting.", value=health.oldest_due)
        yield GaugeMetricFamily("posthorn_unconfirmed", "Unconfirmed targets that are still looked for.", value=health.unconfirmed)
        yield GaugeMetricFamily("posthorn_in_hand", "Targets that workers have in hand.", value=health.in_hand)


def serve(port: int, host: str, breakers) -> None:
    """Answers scrapes on a port of their own, from a thread of its own."""
    REGISTRY.register(QueueCollector(breakers))
    start_http_server(port, addr=host)
