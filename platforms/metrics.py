"""What a worker tells Prometheus about itself and the queue, and what captions cost."""

import time

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

from storage import deliveries, queue
from storage.asking import Asking
from storage.database import DatabaseAway, database

CLAIMED = Counter("posthorn_claimed", "Targets taken in hand.")
LEASES_EXPIRED = Counter("posthorn_leases_expired", "Targets taken back from workers that were gone.")
OUTCOMES = Counter("posthorn_outcomes", "Moves of targets, by network and move.", ["platform", "mode", "move"])
LATENESS = Histogram("posthorn_lateness_seconds", "From the time a target was due until it began to be sent.", ["mode"],
                     buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600, 86400))
CAPTIONS = Counter("posthorn_captions", "Captions asked of the model, by outcome.", ["outcome"])
CAPTION_SECONDS = Histogram("posthorn_caption_seconds", "From the wish for a caption to its end.",
                            buckets=(0.5, 1, 2, 5, 10, 20, 30, 60, 90))
CAPTION_TOKENS = Counter("posthorn_caption_tokens", "Tokens that captions cost, with those that came to nothing.")
MODEL_ANSWERS = Counter("posthorn_model_answers", "What the caption model's server answered, by class of the status or fault.",
                        ["outcome"])

DELIVERIES_CLAIMED = Counter("posthorn_deliveries_claimed", "Events for webhooks taken in hand.")
DELIVERY_LEASES_EXPIRED = Counter("posthorn_delivery_leases_expired", "Events taken back from workers that were gone.")
WEBHOOK_ATTEMPTS = Counter("posthorn_webhook_attempts", "Attempts to deliver an event, by result: delivered, put_back (tried "
                                                        "again later), failed (given up).", ["mode", "result"])
WEBHOOK_LATENESS = Histogram("posthorn_webhook_lateness_seconds", "From an event until its first attempt began.", ["mode"],
                             buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300, 3600, 86400))
WEBHOOKS_DISABLED = Counter("posthorn_webhooks_given_up", "Webhooks that were disabled because their receiver took no event.",
                            ["mode"])


def count(job, move: str) -> None:
    """Counts one move of a job, and how late its sending began."""
    OUTCOMES.labels(job.platform, job.mode, move).inc()
    if move == "start_sending" and job.tries == 0:
        LATENESS.labels(job.mode).observe(max(0.0, job.late + time.monotonic() - job.claimed_at))


class QueueCollector:
    """Asks the database at every scrape, so that the figures are those of all workers together."""

    def __init__(self, breakers):
        self._breakers, self._health = breakers, Asking(_health)

    def collect(self):
        """Called by prometheus_client."""
        breakers = GaugeMetricFamily("posthorn_breaker_open_seconds", "Seconds for which a server that did not answer is left alone.",
                                     labels=["server"])
        for server, left in self._breakers.open().items():
            breakers.add_metric([server], left)
        yield breakers
        try:
            health, events = self._health()
        except (*DatabaseAway, TimeoutError):
            return
        yield GaugeMetricFamily("posthorn_oldest_due_seconds", "How long the oldest due target has been waiting.",
                                value=health.oldest_due)
        yield GaugeMetricFamily("posthorn_unconfirmed", "Unconfirmed targets that are still looked for.", value=health.unconfirmed)
        yield GaugeMetricFamily("posthorn_in_hand", "Targets that workers have in hand.", value=health.in_hand)
        yield GaugeMetricFamily("posthorn_deliveries_pending", "Events on their way to enabled webhooks.", value=events.pending)
        yield GaugeMetricFamily("posthorn_webhooks_disabled", "Webhooks that nothing is sent to.", value=events.disabled)


def _health():
    with database.connection_context():
        return queue.health(), deliveries.health()
