"""The circuit breaker: opens after five failures in a row, lets one post through a minute later; alone and in a publisher."""

import pytest

from platforms.breaker import FAILURES, OPEN_FOR, Breakers
from platforms.errors import Rejected, Unavailable
from platforms.pacing import LONGEST_PAUSE
from tests.delivery import BUG, DONE, Told
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.test_publisher import THROTTLED


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breakers(clock):
    return Breakers(clock)


def fail(breakers, times, key="mastodon https://a"):
    for _ in range(times):
        assert breakers.wait(key) == 0
        breakers.report(key, failed=True)


def test_it_opens_after_failures_in_a_row_and_only_for_its_server(breakers):
    fail(breakers, FAILURES - 1)
    breakers.report("mastodon https://a", failed=False)
    fail(breakers, FAILURES)
    assert breakers.wait("mastodon https://a") == OPEN_FOR and breakers.wait("mastodon https://b") == 0
    assert breakers.open() == {"mastodon https://a": OPEN_FOR}


def test_after_its_time_one_goes_ahead_and_the_others_wait_for_its_report(breakers, clock):
    fail(breakers, FAILURES)
    clock.now += OPEN_FOR
    assert [breakers.wait("mastodon https://a") for _ in range(3)] == [0, OPEN_FOR, OPEN_FOR]
    breakers.report("mastodon https://a", failed=False)
    assert breakers.wait("mastodon https://a") == 0 and breakers.open() == {}


def test_a_probe_that_fails_opens_it_again(breakers, clock):
    fail(breakers, FAILURES)
    clock.now += OPEN_FOR
    fail(breakers, 1)
    clock.now += OPEN_FOR / 2
    assert breakers.wait("mastodon https://a") == OPEN_FOR / 2


def test_a_probe_that_never_reports_does_not_close_it_for_ever(breakers, clock):
    fail(breakers, FAILURES)
    clock.now += OPEN_FOR
    assert breakers.wait("mastodon https://a") == 0
    clock.now += OPEN_FOR
    assert breakers.wait("mastodon https://a") == 0


def test_it_is_told_until_the_server_answers_or_nobody_asks_any_more(breakers, clock):
    fail(breakers, FAILURES)
    clock.now += OPEN_FOR + LONGEST_PAUSE
    assert breakers.open() == {"mastodon https://a": 0.0}       # an alert must not end while few posts seldom try
    clock.now += LONGEST_PAUSE
    assert breakers.open() == {}
    fail(breakers, 1)
    assert breakers.open() == {"mastodon https://a": OPEN_FOR}
    breakers.report("mastodon https://a", failed=False)
    assert breakers.open() == {}


# In a publisher.

def test_a_network_that_answers_is_not_left_alone(desk):
    network = Told(publish=[Unavailable("not yet", retry_after=2)] * 6)
    publisher = desk.publisher(network)
    for _ in range(6):
        desk.target(desk.account(host="a.example"))
        desk.run(publisher)
    assert publisher.breakers.open() == {}


def test_after_five_failures_in_a_row_a_server_is_left_alone_and_the_others_are_not(desk):
    network = Told(publish=[Unavailable("no")] * 5 + [DONE])
    publisher = desk.publisher(network)
    for _ in range(5):
        desk.target(desk.account(host="a.example"))
        desk.run(publisher)
    network.calls.clear()
    left, served = desk.target(desk.account(host="a.example")), desk.target(desk.account(host="b.example"))
    desk.run(publisher)
    row = desk.row(left)
    assert (row.status, row.tries, row.sending_at) == ("scheduled", 0, None) and 59 < row.next_in <= 70
    assert desk.row(served).status == "published" and network.verbs() == ["prepare", "publish"]


@pytest.mark.parametrize("course", [{"publish": [THROTTLED] * 5}, {"prepare": [[BUG]] * 5}, {"publish": [Rejected("no")] * 5}],
                         ids=["throttled", "a bug of ours", "rejected"])
def test_what_is_no_silence_of_the_server_does_not_leave_it_alone(desk, course):
    network = Told(**course)
    publisher = desk.publisher(network)
    for _ in range(5):
        desk.target(desk.account())
        desk.run(publisher)
    network.courses = {"publish": [DONE]}
    target = desk.target(desk.account())
    desk.run(publisher)
    assert desk.row(target).status == "published"
