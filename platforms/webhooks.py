"""Sends events to webhooks: one signed request for an attempt, through the guarded fetch; and when the next one follows."""

import contextlib
import json
import logging
import random
import time
from datetime import timedelta
from functools import partial

from standardwebhooks.webhooks import Webhook as Signer

from platforms.http import retry_after
from platforms.metrics import WEBHOOK_ATTEMPTS, WEBHOOK_LATENESS, WEBHOOKS_DISABLED
from storage import deliveries, tracing
from storage.database import DatabaseAway, insist
from storage.deliveries import Job, Outcome
from storage.fetch import Busy, FetchError, Timeouts
from storage.ids import about
from storage.outage import why
from storage.secrets import Unreadable, Vault
from storage.webhooks import owner

# A lookup cannot be stopped: whoever waits for it as long as for an answer has few others begun meanwhile.
TIMEOUTS = Timeouts(dns=15.0, first_byte=15.0, total=15.0)
ANSWER = 4_096                      # bytes of an answer that are read; only its status counts
# Seconds before each further attempt, as the Standard Webhooks specification recommends; the last one is made shortly before
# the 24 hours are over.
PAUSES = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0)
JITTER = 0.1                        # of a pause, by chance, that not all come back at once
LAST = 60.0                         # seconds before the end at which the last attempt is made
GONE, WAITS = 410, (429, 503)
BUSY, UNSIGNED = 5.0, 300.0         # seconds before the next try where none was made: for want of a lookup, or of a key

log = logging.getLogger("posthorn.webhooks")


class Sender:
    """Runs claimed deliveries. `vault` opens the secrets, `fetcher` (storage.fetch) reaches the receivers."""

    def __init__(self, vault: Vault, fetcher):
        self._vault, self._fetcher = vault, fetcher

    def run(self, job: Job) -> None:
        """Makes one attempt and writes down what came of it. Raises nothing."""
        told = {"posthorn.event": job.type, "posthorn.mode": job.mode, "posthorn.delivery_id": job.id,
                "posthorn.webhook_id": job.webhook_id}
        with (about(delivery_id=job.id, webhook_id=job.webhook_id, team_id=job.team_id), tracing.span("deliver", told)):
            self._run(job)

    def _run(self, job):
        try:
            if job.tries == 0:
                WEBHOOK_LATENESS.labels(job.mode).observe(max(0.0, job.late))
            self._attempt(job)
        except DatabaseAway as error:
            log.warning("the database is away (%s); the lease of a delivery will run out", why(error))
        except Exception:
            log.exception("an event could not be sent, by a fault on our side; the lease of its delivery will run out")

    def _attempt(self, job):
        began, status, wish, later = time.monotonic(), None, None, None
        at = job.at + timedelta(seconds=began - job.claimed_at)
        try:
            status, wish = self._post(job, at)
            error = None if 200 <= status < 300 else f"the receiver answered with status {status}"
        except Busy as failure:
            error, later = failure.args[0], BUSY
        except FetchError as failure:
            error = failure.args[0]
        except Unreadable:
            log.error("the secret of a webhook is sealed under a key that is not configured")
            error, later = "the event could not be signed on our side", UNSIGNED
        outcome = Outcome(at, time.monotonic() - began, status, error)
        if later is None:
            self._settle(job, outcome, wish)
        else:
            self._put_off(job, outcome, later * random.uniform(1 - JITTER, 1 + JITTER))

    def _put_off(self, job, outcome, after):
        """What never left says nothing of the receiver."""
        if job.left > 0:
            insist(partial(deliveries.put_off, job, after))
        else:
            insist(partial(deliveries.failed, job, outcome, None, gone=False))

    def _post(self, job, at):
        body = json.dumps(job.event(), ensure_ascii=False, separators=(",", ":"))
        headers = {"Content-Type": "application/json", "webhook-id": job.id, "webhook-timestamp": str(int(at.timestamp())),
                   "webhook-signature": " ".join(signer.sign(job.id, at, body) for signer in self._signers(job))}
        with self._fetcher.open("POST", job.url, headers=headers, body=body.encode(), timeouts=TIMEOUTS) as response:
            with contextlib.suppress(FetchError):       # a receiver that is cut off while it answers takes that for an error
                response.read(ANSWER)
            wish = retry_after(response.headers, throttled=False, now=at.timestamp()) if response.status in WAITS else None
            return response.status, wish

    def _signers(self, job):
        """The new secret first; the one before signs as well until receivers have been told."""
        path = owner(job.team_id, job.webhook_id)
        return [Signer(self._vault.open(path, sealed)["secret"]) for sealed in (job.secret, job.previous) if sealed is not None]

    def _settle(self, job, outcome, wish):
        left = job.left - (time.monotonic() - job.claimed_at)
        if outcome.error is None:
            move, result = deliveries.delivered, "delivered"
        elif outcome.status != GONE and (after := pause(job.tries, left, wish)) is not None:
            move, result = partial(deliveries.put_back, after=after), "put_back"
        else:
            move, result = self._fail, "failed"
        if insist(partial(move, job, outcome)):
            WEBHOOK_ATTEMPTS.labels(job.mode, result).inc()
            tracing.note({"posthorn.outcome": result})
            log.info("%s: %s", job.type, f"{result}, {outcome.error}" if outcome.error else result)

    def _fail(self, job, outcome):
        gone = outcome.status == GONE
        reason = f"the receiver answered with status {GONE}" if gone else "the receiver took no event for 24 hours"
        # Who was asked once in all that time, since nobody worked, has not refused for a day.
        ours, disabled = deliveries.failed(job, outcome, reason if gone or job.tries else None, gone=gone)
        if disabled:
            WEBHOOKS_DISABLED.labels(job.mode).inc()
            log.warning("a webhook is disabled: %s", reason)
        return ours


def pause(tries: int, left: float, wish: float | None) -> float | None:
    """Seconds until the attempt after `tries` earlier ones and this one; None where this was the last.

    `left` is the seconds until the end, `wish` those before which the receiver wants none.
    """
    if left <= LAST:
        return None
    own = PAUSES[tries] * random.uniform(1 - JITTER, 1 + JITTER) if tries < len(PAUSES) else left
    return min(max(own, wish or 0.0), left - LAST)
