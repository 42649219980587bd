"""What the publisher does about a post that has been sent: asking after it, looking for it, doing what follows it."""

import logging
from functools import partial

from platforms import base
from platforms.errors import Disconnected, OurFault, PlatformError, Rejected, Unavailable, Unconfirmed, describe
from platforms.pacing import ASKING_CRASHES, LONGEST_PAUSE, LOOKS, PROCESSING, next_look, pause, spread
from storage import queue
from storage.database import DatabaseAway, insist

PUBLIC = "public"       # in a receipt: the post that is public while more is to follow
RESTORED = Unconfirmed("the service was restored from a backup; the post may have been published before")
FOLLOWED = Unconfirmed("the service was restored from a backup; what was to follow the post may be there or not")

log = logging.getLogger("posthorn.publisher")


class Aftermath:
    """The part of the Publisher that works on targets which have been sent."""

    def _check(self, job, connector):
        """Asks after a post that the network still works on, or does what comes after one that is public."""
        if job.crashes >= ASKING_CRASHES:
            return self._ask_no_more(job)
        if wait := self.breakers.wait(job.breaker):
            return self._record(queue.asked_in_vain, job, spread(wait), note={"breaker": "open"}, counts=False)
        try:
            outcome = self._asked(job, connector)
        except Disconnected as error:
            return self._in_vain(job, error) if self._renewed(job, connector) else self._no_answer(job, error)
        except (Unavailable, Unconfirmed) as error:
            self._report(job, error)
            return self._in_vain(job, error)
        except PlatformError as error:
            self._report(job, error)
            return self._refused_later(job, error)
        except DatabaseAway:
            raise
        except Exception:
            log.exception("target %s: asking after it failed", job.id)
            fault = OurFault("asking after this post failed on our side", retry_after=LONGEST_PAUSE)
            return self._in_vain(job, fault)
        return self._told(job, connector, outcome)

    def _asked(self, job, connector):
        """What the network says of the post, or where it is public, of what follows it; None where that goes on another time."""
        account = self._accounts.usable(job.account, connector)
        if PUBLIC not in job.receipt:
            return connector.check(account, job.receipt)
        content = self._content(job, connector, account)
        for step in connector.follow(account, content, job.receipt):
            if isinstance(step, base.Waiting):
                self._record(queue.processing, job, step.receipt, step.after)
                return None
            if not self._record(queue.keep, job, step):
                return None
        return base.Published(**job.receipt[PUBLIC])

    def _told(self, job, connector, outcome):
        """Writes down what asking brought."""
        self.breakers.report(job.breaker, failed=False)
        if outcome is None:
            return None
        if PUBLIC in job.receipt:
            return self._followed(job, None)
        if isinstance(outcome, base.Processing) and job.since_sending > PROCESSING.total_seconds():
            return self._unconfirmed(job, Unconfirmed("the platform has worked on the post for a day"))
        return self._outcome(job, connector, outcome, job.receipt)

    def _in_vain(self, job, error):
        """No answer: asked again ever more rarely, for a day."""
        if job.since_sending > PROCESSING.total_seconds():
            return self._no_answer(job, error)
        return self._record(queue.asked_in_vain, job, pause(job.tries, error), note=describe(error))

    def _no_answer(self, job, error):
        """There will be none."""
        return self._followed(job, error) if PUBLIC in job.receipt else self._unconfirmed(job, error)

    def _refused_later(self, job, error):
        """A refusal while asking. Only one that names a rule speaks of the post; any other speaks of the question."""
        if PUBLIC not in job.receipt and isinstance(error, Rejected) and error.rule:
            return self._fail(job, error)
        return self._no_answer(job, error)

    def _followed(self, job, trouble):
        """The end of a post that is public, whatever came of what was to follow."""
        post = job.receipt[PUBLIC]
        # A retry would be one of the post.
        error = trouble and {**describe(trouble), "retryable": False}
        return self._record(queue.published, job, post["id"], post["url"], error)

    def _ask_no_more(self, job):
        """Whatever it is, leases run out over it."""
        fault = OurFault("looking after this post was cut off again and again")
        if PUBLIC in job.receipt:
            return self._followed(job, fault)
        return self._record(queue.unconfirmed, job, describe(fault), None)

    def _look(self, job, connector):
        """Asks whether a post is there whose sending ended in the dark."""
        if job.crashes >= ASKING_CRASHES:
            return self._ask_no_more(job)
        if job.restored and PUBLIC in job.receipt:
            return self._followed(job, FOLLOWED)
        if self._known_there(job, connector):
            return self._record(queue.send_again, job)      # surer than looking, where another post may look alike
        if wait := self.breakers.wait(job.breaker):
            return self._record(queue.looked_in_vain, job, spread(wait), note={"breaker": "open"}, counts=False)
        try:
            account = self._accounts.usable(job.account, connector)
            receipt = {**connector.bare, **job.receipt} if job.restored and not job.has_media else job.receipt
            found = connector.find(account, self._content(job, connector, account, convert=False), receipt)
        except (Unavailable, Unconfirmed) as error:
            self._report(job, error)
            return self._looked_in_vain(job, error)
        except PlatformError as error:
            self._report(job, error)
            return self._record(queue.looked_in_vain, job, next_look(job.looks + 1), note=describe(error))
        except DatabaseAway:
            raise
        except Exception:
            log.exception("target %s: looking for it failed", job.id)
            fault = OurFault("looking for this post failed on our side")
            return self._record(queue.looked_in_vain, job, next_look(job.looks + 1), note=describe(fault))
        return self._found(job, connector, found)

    def _looked_in_vain(self, job, error):
        """The network did not answer, so this was no look; but after a day nobody looks any more."""
        over = job.since_sending > PROCESSING.total_seconds()
        later = None if over else max(pause(job.tries, error), LOOKS[min(job.looks + 1, len(LOOKS) - 1)])
        return self._record(queue.looked_in_vain, job, later, note=describe(error), counts=False)

    def _found(self, job, connector, found):
        """What a look brought: the post, its absence, or no certainty."""
        self.breakers.report(job.breaker, failed=False)
        if isinstance(found, base.Published | base.Processing) and _is_of_another(job, found):
            found = None        # one that looks alike
        if job.restored and isinstance(found, base.Absent):
            found = None        # by a receipt that may not be the one it was sent with
        if isinstance(found, base.Published | base.Processing):
            return self._outcome(job, connector, found, job.receipt)
        if not isinstance(found, base.Absent):
            return self._record(queue.looked_in_vain, job, next_look(job.looks + 1), note={"find": "cannot tell"})
        if connector.find_retries:
            return self._record(queue.send_again, job)
        return self._fail(job, Unavailable("the platform did not take the post; it is surely not there"))


def _is_of_another(job, found):
    """Whether what a look brought is known as the post of another target, be it finished, worked on, or followed by more."""
    post = getattr(found, "id", None)
    receipt = found.receipt if isinstance(found, base.Processing) else post and {PUBLIC: {"id": post}}
    return bool(receipt) and insist(partial(queue.is_of_another, job, post, receipt))
