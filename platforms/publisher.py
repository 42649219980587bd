"""From a claimed target to what became of it: prepare, commit the intent, send once, record.

What may be public is never sent again by itself, except where the network tells two sendings of one post apart.
"""

import logging
import random
import threading
from datetime import timedelta
from functools import partial

from platforms import base
from platforms.accounts import Accounts
from platforms.breaker import Breakers
from platforms.errors import Disconnected, OurFault, PlatformError, Unavailable, Unconfirmed
from platforms.metrics import count
from platforms.outgoing import Outgoing
from storage import queue
from storage.database import DatabaseAway, insist

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 900.0    # seconds: at most 12 calls in an outage of 45 minutes
LONGEST_WISH = 86_400.0                     # seconds of a network's Retry-After that are obeyed
LOOKS = (30.0, 120.0, 600.0, 3600.0)        # seconds before each look for an unconfirmed post
CRASHES = 3                                 # workers that may die of preparing one target
ASKING_CRASHES = 10                         # and in all, counted with asking after it, which cannot make a second post
PROCESSING = timedelta(hours=24)            # how long a network may work on a post before nobody knows
SPREAD = 10.0                               # seconds over which posts come back to a network that was left alone
PUBLIC = "public"                           # in a receipt: the post that is public while more is to follow

UNCONFIRMED = Unconfirmed("the platform did not confirm; the post may have been published")

log = logging.getLogger("posthorn.publisher")


class Publisher:
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
        try:
            connector = self._platforms.connector(job.platform, job.mode)
            steps = {"preparing": self._publish, "processing": self._check, None: self._look}
            steps[job.stage](job, connector)
        except DatabaseAway as error:
            log.warning("target %s: the database is away (%s); its lease will run out", job.id, type(error).__name__)
        except Exception:
            log.exception("target %s: the publisher itself failed; its lease will run out", job.id)

    def _publish(self, job, connector):
        if job.crashes >= CRASHES:
            return self._give_up(job, OurFault(f"{CRASHES} workers died while preparing this post"))
        if job.since_sending is not None and not self._may_repeat(job, connector):
            return self._unconfirmed(job, UNCONFIRMED)
        if wait := self.breakers.wait(_server(job)):
            return self._leave_alone(job, connector, wait)
        try:
            account = self._accounts.usable(job.account, connector)
            content = self._content(job, connector, account)
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
        return self._send(job, connector, account, content, receipt)

    def _leave_alone(self, job, connector, wait):
        """The network has not answered for a while; no call is made until its breaker lets one through."""
        pause = wait + random.uniform(0, SPREAD)
        if job.late + pause > connector.patience.total_seconds():
            return self._give_up(job, Unavailable(f"{job.platform} has not answered for a long time"))
        return self._record(queue.put_back, job, pause, note={"breaker": "open"}, counts=False)

    def _prepare(self, job, connector, account, content):
        """The receipt to send with; None when there is nothing to send now."""
        receipt = job.receipt
        steps = connector.prepare(account, content, receipt)
        while not self.stopping.is_set():
            step = next(steps, None)
            if step is None:
                return receipt
            if isinstance(step, base.Waiting):
                if job.late > connector.patience.total_seconds():
                    raise Unavailable("the platform did not finish working on the files in time")
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
            self.breakers.report(_server(job), failed=True)
            return self._unconfirmed(job, error)
        except PlatformError as error:
            return self._not_sent(job, connector, error)
        except Exception:
            log.exception("target %s: sending it failed", job.id)
            return self._unconfirmed(job, UNCONFIRMED)
        self.breakers.report(_server(job), failed=False)
        return self._outcome(job, connector, outcome, receipt)

    def _check(self, job, connector):
        """Asks after a post that the network still works on, or does what comes after one that is public."""
        if job.crashes >= ASKING_CRASHES:
            return self._ask_no_more(job)
        if PUBLIC in job.receipt:
            return self._follow(job, connector)
        try:
            outcome = connector.check(self._accounts.usable(job.account, connector), job.receipt)
        except (Unavailable, Unconfirmed) as error:
            outcome = base.Processing(job.receipt, _long_pause(job, error))
        except Disconnected as error:
            if not self._renewed(job, connector):
                return self._unconfirmed(job, error)
            outcome = base.Processing(job.receipt, _long_pause(job, error))
        except PlatformError as error:
            return self._fail(job, error)
        except DatabaseAway:
            raise
        except Exception:
            log.exception("target %s: asking after it failed", job.id)
            outcome = base.Processing(job.receipt, LONGEST_PAUSE)
        if isinstance(outcome, base.Processing) and job.since_sending > PROCESSING.total_seconds():
            return self._unconfirmed(job, Unconfirmed("the platform has worked on the post for a day"))
        return self._outcome(job, connector, outcome, job.receipt)

    def _follow(self, job, connector):
        """What comes after a post, such as its first comment. The post is public, whatever becomes of that."""
        receipt, trouble = job.receipt, None
        try:
            account = self._accounts.usable(job.account, connector)
            content = self._content(job, connector, account)
            for receipt in connector.follow(account, content, receipt):
                if not self._record(queue.keep, job, receipt):
                    return None
        except (Unavailable, Unconfirmed) as error:
            if job.since_sending < PROCESSING.total_seconds():
                return self._record(queue.processing, job, receipt, _long_pause(job, error))
            trouble = error
        except PlatformError as error:
            trouble = error
        except DatabaseAway:
            raise
        except Exception:
            log.exception("target %s: what comes after the post failed", job.id)
            trouble = OurFault("what comes after the post failed on our side")
        return self._followed(job, trouble)

    def _followed(self, job, trouble):
        """The end of a post that is public, whatever came of what was to follow."""
        post = job.receipt[PUBLIC]
        return self._record(queue.published, job, post["id"], post["url"], trouble and describe(trouble))

    def _ask_no_more(self, job):
        """Whatever it is, workers die of it."""
        fault = OurFault(f"{job.crashes} workers died while looking after this post")
        if PUBLIC in job.receipt:
            return self._followed(job, fault)
        return self._record(queue.unconfirmed, job, describe(fault), None)

    def _look(self, job, connector):
        """Asks whether a post is there whose sending ended in the dark."""
        if job.crashes >= ASKING_CRASHES:
            return self._ask_no_more(job)
        if self._known_there(job, connector):
            return self._record(queue.send_again, job)      # surer than looking, where another post may look alike
        try:
            account = self._accounts.usable(job.account, connector)
            found = connector.find(account, self._content(job, connector, account, convert=False), job.receipt)
        except PlatformError as error:
            log.info("target %s: looking for it failed: %s", job.id, error.message)
            found = None
        except DatabaseAway:
            raise
        except Exception:
            log.exception("target %s: looking for it failed", job.id)
            found = None
        if isinstance(found, base.Published | base.Processing):
            return self._outcome(job, connector, found, job.receipt)
        if not isinstance(found, base.Absent):
            return self._record(queue.looked, job, _next_look(job.looks + 1))
        if connector.find_retries:
            return self._record(queue.send_again, job)
        return self._fail(job, Unavailable("the platform did not take the post; it is surely not there"))

    def _may_repeat(self, job, connector):
        """Whether sending again cannot make a second post although the first may be public, or somebody wants it all the same."""
        return job.asked_again or connector.find_retries or self._known_there(job, connector)

    def _known_there(self, job, connector):
        """Whether the network still knows our key of the first sending, so that a second answers with the first post."""
        return connector.dedupes_for is not None and job.since_sending < connector.dedupes_for.total_seconds()

    def _outcome(self, job, connector, outcome, receipt):
        if isinstance(outcome, base.Processing):
            self._record(queue.processing, job, outcome.receipt, outcome.after)
        elif job.options.keys() & set(connector.follow_options):
            self._record(queue.processing, job, {**receipt, PUBLIC: {"id": outcome.id, "url": outcome.url}}, 0)
        else:
            self._record(queue.published, job, outcome.id, outcome.url)

    def _not_sent(self, job, connector, error):
        """Surely not public: tried again while that makes sense, else failed."""
        if isinstance(error, Disconnected):
            return self._disconnected(job, connector, error)
        if not isinstance(error, Unavailable | Unconfirmed):
            return self._give_up(job, error)
        if not isinstance(error, OurFault):
            self.breakers.report(_server(job), failed=error.code != "rate_limited")
        pause = _pause(job.tries, error)
        if job.late + pause > connector.patience.total_seconds():
            return self._give_up(job, error)
        left = error.receipt if isinstance(error, Unavailable) else None
        return self._record(queue.put_back, job, pause, note=describe(error), receipt=left)

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
        self._record(queue.unconfirmed, job, describe(error), _next_look(job.looks))

    def _record(self, move, job, *values, **named):
        """Writes down a move, stubbornly: an outcome that is known must not be lost to a database that restarts."""
        ours = insist(partial(move, job, *values, **named))
        if ours:
            count(job, move.__name__)
        else:
            log.warning("target %s: came too late with %s; somebody else has it", job.id, move.__name__)
        return ours

    def _content(self, job, connector, account, convert=True):
        """What is to be published; what has to be converted for that is converted now, if at all."""
        media = self._outgoing.of(job, connector.for_account(account) if account else connector, convert=convert)
        return base.Content(caption=job.caption, media=media, post_type=job.post_type, options=job.options, key=job.id,
                            sent_ago=job.since_sending or 0.0)


def _server(job):
    """What one breaker stands for: a network, or one server of it. None for the sandbox."""
    return job.account and f"{job.platform} {job.account.host}".strip()


def describe(error: PlatformError) -> dict:
    """A target's error as the API shows it."""
    wire = {"code": error.code, "message": error.message, "retryable": error.retryable, "rule": error.rule,
            "platformCode": error.platform_code, "platformMessage": error.platform_message}
    return {name: value for name, value in wire.items() if value is not None}


def _pause(tries, error):
    """Seconds until the next try: the network's wish, else doubling from 10 s to 15 min, half of it by chance.

    The first wish is taken at its word. Later ones can only make the pause longer: a network that keeps asking to be called
    again in a second does not know how long it will be down.
    """
    wish = getattr(error, "retry_after", None)
    step = min(FIRST_PAUSE * 2**min(tries, 20), LONGEST_PAUSE)
    pause = step / 2 + random.uniform(0, step / 2)
    if wish is None:
        return pause
    wish = min(max(wish, 1.0), LONGEST_WISH) + random.uniform(0, 0.5)
    return wish if tries == 0 else max(wish, pause)


def _long_pause(job, error):
    """Seconds until a network is asked after a post again: a quarter of the time so far, since nothing counts these.

    An outage of hours is no reason to ask every few seconds.
    """
    return max(_pause(job.tries, error), min(job.since_sending / 4, LONGEST_PAUSE))


def _next_look(looks):
    return LOOKS[looks] if looks < len(LOOKS) else None
