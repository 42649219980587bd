"""A network that is down for three quarters of an hour: no post is lost, and few calls are made for each.

Time is the database's: instead of waiting, each pause is taken from the times of the targets.
"""

import pytest

from platforms.base import Content, Processing
from platforms.breaker import Breakers
from platforms.errors import Unavailable
from tests.delivery import DONE, Told
from tests.delivery import address, desk, whole_desk  # fixtures

OUTAGE = 45 * 60        # seconds
MOST_CALLS = 12         # for one target, the one that succeeds not counted
TARGETS = 12            # on one server, so that its breaker takes part
ON_ITS_WAY = ("scheduled", "publishing")


class Down(Told):
    """Is down until the outage is over, and counts the calls for each post."""

    def __init__(self, verb, wish):
        super().__init__()
        self.verb, self.wish, self.now, self.tried = verb, wish, 0.0, {}

    def prepare(self, account, content, receipt):
        """Fails while it is down, if that is its way."""
        yield {"step": 1}
        if self.verb == "prepare":
            self._call(content)

    def publish(self, account, content, receipt):
        """Fails while it is down."""
        if self.verb == "publish":
            self._call(content)
        return Processing({"key": content.key}, 0) if self.verb == "check" else DONE

    def check(self, account, receipt):
        """Fails while it is down."""
        self._call(Content(key=receipt["key"]))
        return DONE

    def _call(self, content):
        if self.now < OUTAGE:
            self.tried[content.key] = self.tried.get(content.key, 0) + 1
            raise Unavailable("the network is down", retry_after=self.wish)


@pytest.mark.parametrize("verb", ["prepare", "publish", "check"])
@pytest.mark.parametrize("wish", [None, 1, 30], ids=["no wish", "asks for a second", "asks for half a minute"])
@pytest.mark.parametrize("count", [1, TARGETS], ids=["one post", "many posts"])
def test_no_post_is_lost_and_few_calls_are_made(desk, verb, wish, count):
    network = Down(verb, wish)
    publisher = desk.publisher(network)
    publisher.breakers = Breakers(clock=lambda: network.now)
    targets = [desk.target(desk.account(host="https://down.example")) for _ in range(count)]
    while left := [target for target in targets if desk.row(target).status in ON_ITS_WAY]:
        assert network.now < OUTAGE + 1800, "the outage is over, and posts still wait"
        desk.run(publisher)
        waits = [row.next_in for row in map(desk.row, left) if row.status in ON_ITS_WAY]
        if waits:
            pass_time(desk, network, max(min(waits), 0.01))
    assert {desk.row(target).status for target in targets} == {"published"}
    assert 1 <= max(network.tried.values()) <= MOST_CALLS
    assert desk.sql("SELECT count(*) FROM attempts WHERE step = 'published'") == [(count,)]


def pass_time(desk, network, seconds):
    """Lets so many seconds go by."""
    network.now += seconds
    desk.sql("UPDATE targets SET next_at = next_at - %s * interval '1 s', due_at = due_at - %s * interval '1 s' "
             "WHERE status IN ('scheduled', 'publishing')", seconds, seconds)
