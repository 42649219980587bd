"""From a claimed target to what became of it: prepare, commit the intent, send once, record.

What may be public is never sent again by itself, except where the network tells two sendings of one post apart.
"""

import logging
import threading
from dataclasses import replace
from functools import partial

from platforms import base
from platforms.accounts import Accounts
from platforms.aftermath import FOLLOWED, PUBLIC, Aftermath
from platforms.breaker import Breakers
from platforms.errors import Disconnected, OurFault, PlatformError, Unavailable, Unconfirmed, describe
from platforms.metrics import count
from platforms.outgoing import Outgoing
from platforms.pacing import CRASHES, next_look, pause, spread
from storage import queue, tracing
from storage.database import DatabaseAway, insist
from storage.ids import about
from storage.outage import why

UNCONFIRMED = Unconfirmed("the platform did not confirm; the post may have been published")

SPANS = {"preparing": "publish", "processing": "check", None: "look"}     # by the stage in which a target is taken in hand
LEVELS = {queue.start_sending: logging.DEBUG, queue.keep: logging.DEBUG}  # steps on the way to what is told at "info"

log = logging.getLogger("posthorn.publisher")


class Publisher(Aftermath):
    """Runs claimed jobs. `platforms` is the Registry, `vault` opens credentials, `objects` is the store of the files."""

    def __init__(self, platforms, vault, objects):
        self._platforms, self._accounts, self._outgoing = platforms, Accounts(vault), Outgoing(objects)
        self.breakers = Breakers()
        self.stopping = threading.Event()   # set: what has not begun to be sent goes back

    def look_after_accounts(self) -> None:
        """Reads who some of the accounts are now; raises nothing, and does nothing where it still runs."""
        self._accounts.look_after(self._platforms, self.stopping)

    def run(self, job: queue.Job) -> None:
        """Takes `job` as far as it goes now, and writes down how far that was. Raises nothing."""
        told = {"posthorn.platform": job.platform, "posthorn.mode": job.mode, "posthorn.target_id": job.id}
        with (about(request_id=job.request_id, target_id=job.id, team_id=job.team_id),
              tracing.span(SPANS[job.stage], told, parent=job.traceparent)):
            self._run(job)

    def _run(self, job):
        try:
            connector = self._platforms.connector(job.platform, job.mode)
            steps = {"preparing": self._publish, "processing": self._check, None: self._look}
            steps[job.stage](job, connector)
        except DatabaseAway as error:
            log.warning("target %s: the database is away (%s); its lease will run out", job.id, why(error))
        except Exception:
            log.exception("target %s: the publisher itself failed; its lease will run out", job.id)

    def _publish(self, job, connector):
        if job.crashes >= CRASHES:
            return self._give_up(job, OurFault("preparing this post was cut off again and again"))
        if job.since_sending is not None and not self._may_repeat(job, connector):
            return self._unconfirmed(job, UNCONFIRMED)
        if wait := self.breakers.wait(job.breaker):
            return self._leave_alone(job, connector, wait)
        try:
            account = self._accounts.usable(job.account, connector)
            content = self._content(job, connector, account)
            with tracing.span("prepare", {"posthorn.platform": job.platform}):
                receipt = self._prepare(job, connector, account, content)
        except PlatformError as error:
            return self._not_sent(job, connector, error)
        except DatabaseAway:
            raise
        except Exception:
            log.exception("target %s: preparing it failed", job.id)
            return self._not_sent(job, connector, OurFault("preparing this post failed on our side"))
        if receipt is None or not self._record(queue.start_sending, job):
            return None
        with tracing.span("send", {"posthorn.platform": job.platform}):
            return self._send(job, connector, account, content, receipt)

    def _leave_alone(self, job, connector, wait):
        """The network has not answered for a while; no call is made until its breaker lets one through."""
        later = spread(wait)
        if job.trying + later > connector.patience.total_seconds():
            return self._give_up(job, Unavailable(f"{job.platform} has not answered for a long time"))
        return self._record(queue.put_back, job, later, note={"breaker": "open"}, counts=False)

    def _prepare(self, job, connector, account, content):
        """The receipt to send with; None when there is nothing to send now."""
        receipt = job.receipt
        steps = connector.prepare(account, content, receipt)
        while not self.stopping.is_set():
            step = next(steps, None)
            if step is None:
                return receipt
            if isinstance(step, base.Waiting):
                self.breakers.report(job.breaker, failed=False)
                if job.trying > connector.patience.total_seconds():
                    self._give_up(job, Unavailable("the platform did not finish working on the files in time"))
                else:
                    self._record(queue.wait, job, step.receipt, step.after)
                return None
            receipt = step
            if not self._record(queue.keep, job, receipt):
                return None
        self._record(queue.put_back, job, 0, counts=False)
        return None

    def _send(self, job, connector, account, content, receipt):
        """The one sending. Whatever is not known for sure afterwards is unconfirmed."""
        try:
            outcome = connector.publish(account, content, receipt)
        except Unconfirmed as error:
            self._report(job, error)
            return self._unconfirmed(job, error)
        except PlatformError as error:
            return self._not_sent(job, connector, error)
        except Exception:
            log.exception("target %s: sending it failed", job.id)
            return self._unconfirmed(job, UNCONFIRMED)
        self.breakers.report(job.breaker, failed=False)
        return self._outcome(job, connector, outcome, receipt)

    def _may_repeat(self, job, connector):
        """Whether sending again cannot make a second post although the first may be public, or somebody wants it all the same."""
        found = connector.find_retries and not job.restored
        return job.asked_again or found or self._known_there(job, connector)

    def _known_there(self, job, connector):
        """Whether the network still knows our key of the first sending, so that a second answers with the first post."""
        return connector.dedupes_for is not None and job.since_sending < connector.dedupes_for.total_seconds()

    def _outcome(self, job, connector, outcome, receipt):
        if isinstance(outcome, base.Processing):
            self._record(queue.processing, job, outcome.receipt, outcome.after)
        elif job.restored and connector.follows(job.options, receipt):      # it may be there, and would be there twice
            self._followed(replace(job, receipt={PUBLIC: {"id": outcome.id, "url": outcome.url}}), FOLLOWED)
        elif connector.follows(job.options, receipt):
            self._record(queue.processing, job, {**receipt, PUBLIC: {"id": outcome.id, "url": outcome.url}}, 0)
        else:
            self._record(queue.published, job, outcome.id, outcome.url)

    def _not_sent(self, job, connector, error):
        """Surely not public: tried again while that makes sense, else failed."""
        self._report(job, error)
        if isinstance(error, Disconnected):
            return self._disconnected(job, connector, error)
        if not isinstance(error, Unavailable | Unconfirmed):
            return self._give_up(job, error)
        later = pause(job.tries, error)
        if job.trying + later > connector.patience.total_seconds():
            return self._give_up(job, error)
        left = error.receipt if isinstance(error, Unavailable) else None
        return self._record(queue.put_back, job, later, note=describe(error), receipt=left)

    def _report(self, job, error):
        """Tells the breaker whether the network is silent. Where it said something, even a refusal, it is not."""
        if isinstance(error, OurFault):
            return
        silent = isinstance(error, Unavailable | Unconfirmed) and error.code != "rate_limited" and not error.answered
        if silent or error.platform_code is not None:
            self.breakers.report(job.breaker, failed=silent)

    def _disconnected(self, job, connector, error):
        """New credentials where the network gives some without a person, once; else the account waits for one."""
        if job.account is None:
            return self._give_up(job, error)
        try:
            if not job.refreshed and self._accounts.renew(job.account, connector):
                return self._record(queue.put_back, job, 0, note=describe(error), refreshed=True)
        except Disconnected as sure:
            error = sure
        except PlatformError as trouble:
            return self._not_sent(job, connector, trouble)
        self._accounts.disconnect(job.account)
        return self._give_up(job, error)

    def _renewed(self, job, connector):
        """Whether credentials that were refused after the sending may work again; marks the account where a person is needed."""
        if job.account is None:
            return False
        try:
            if self._accounts.renew(job.account, connector):
                return True
        except Disconnected:
            pass
        except PlatformError:
            return True     # nobody knows yet
        self._accounts.disconnect(job.account)
        return False

    def _give_up(self, job, error):
        """Not sent this time; but where an earlier sending is in doubt, the post may be public all the same."""
        if job.since_sending is None:
            self._fail(job, error)
        else:
            self._unconfirmed(job, error)

    def _fail(self, job, error):
        self._record(queue.failed, job, describe(error))

    def _unconfirmed(self, job, error):
        self._record(queue.unconfirmed, job, describe(error), next_look(job.looks))

    def _record(self, move, job, *values, **named):
        """Writes down a move, stubbornly: an outcome that is known must not be lost to a database that restarts."""
        ours = insist(partial(move, job, *values, **named))
        if ours:
            count(job, move.__name__)
            tracing.note({"posthorn.outcome": move.__name__})
            log.log(LEVELS.get(move, logging.INFO), "%s: %s", job.platform, move.__name__)
        else:
            log.warning("target %s: came too late with %s; somebody else has it", job.id, move.__name__)
        return ours

    def _content(self, job, connector, account, convert=True):
        """What is to be published; what has to be converted for that is converted now, if at all."""
        media = self._outgoing.of(job, connector.for_account(account) if account else connector, convert=convert)
        return base.Content(caption=job.caption, media=media, post_type=job.post_type, options=job.options, key=job.id,
                            sent_ago=job.since_sending or 0.0, read_at=job.claimed_at)
