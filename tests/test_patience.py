"""How long a post waits before it is tried again, and when it is given up."""

from datetime import timedelta

import pytest

from platforms.base import Waiting
from platforms.errors import Unavailable
from tests.delivery import DONE, Told
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.test_publisher import DAY, THROTTLED, wire


@pytest.mark.parametrize("tries, least, most", [(0, 5, 10), (1, 10, 20), (2, 20, 40), (3, 40, 80), (5, 160, 320), (6, 320, 640),
                                                (7, 450, 900), (8, 450, 900), (5000, 450, 900)])
def test_each_pause_is_twice_the_one_before_up_to_a_quarter_of_an_hour(desk, tries, least, most):
    pauses = []
    for _ in range(4):
        network = Told(publish=[Unavailable("no")])
        target = desk.target(desk.account())
        desk.move(target, tries=tries)
        desk.run(desk.publisher(network))
        pauses.append(desk.row(target).next_in)
        assert desk.row(target).tries == tries + 1
    assert least - 0.5 < min(pauses) and max(pauses) <= most
    assert max(pauses) - min(pauses) > 0.01


@pytest.mark.parametrize("wish, least", [(0.001, 1), (1, 1), (90, 90), (DAY, DAY), (10**9, DAY), (float("inf"), DAY)])
def test_the_wish_of_a_network_is_obeyed_between_a_second_and_a_day(desk, wish, least):
    network = Told(publish=[Unavailable("no", retry_after=wish)], patience=timedelta(days=3))
    row = desk.tried(network)
    assert row.status == "scheduled" and least - 0.5 < row.next_in <= least + 0.5


def test_a_network_that_always_asks_for_a_second_is_asked_ever_more_rarely_all_the_same(desk):
    pauses = []
    for tries, wish in ((0, 1), (3, 1), (3, 200)):
        target = desk.target(desk.account())
        desk.move(target, tries=tries)
        desk.run(desk.publisher(Told(publish=[Unavailable("no", retry_after=wish)])))
        pauses.append(desk.row(target).next_in)
    assert pauses[0] < 1.5 and 39 < pauses[1] <= 80 and 199 < pauses[2] <= 200.5


@pytest.mark.parametrize("late, wish, status", [(0, None, "scheduled"), (3590, 5, "scheduled"), (3590, 11, "failed"),
                                                (3601, None, "failed"), (0, 3700, "failed")])
def test_a_post_is_given_up_when_the_next_try_would_be_past_the_networks_patience(desk, late, wish, status):
    network = Told(publish=[Unavailable("no", retry_after=wish)], patience=timedelta(hours=1))
    target = desk.target(desk.account())
    desk.ago(target, late, "begun_at")
    desk.run(desk.publisher(network))
    row = desk.row(target)
    assert (row.status, row.tries) == (status, 1 if status == "scheduled" else 0)
    if status == "failed":
        assert row.error == wire(Unavailable("no"), retryable=True)


def test_a_preparation_does_not_wait_for_ever(desk):
    network = Told(prepare=[[Waiting({}, 0)], [Waiting({}, 0)]], patience=timedelta(hours=1))
    target = desk.tried(network).id
    assert desk.row(target).status == "publishing"
    desk.ago(target, 3601, "begun_at")
    desk.run(desk.publisher(network), target)
    assert (desk.row(target).status, desk.row(target).error["retryable"]) == ("failed", True)


def test_a_post_that_was_due_long_ago_has_all_the_patience_of_its_network(desk):
    network = Told(publish=[THROTTLED, DONE], patience=timedelta(hours=1))
    target = desk.target(desk.account())
    desk.ago(target, 26 * 3600, "due_at")
    publisher = desk.publisher(network)
    desk.run(publisher)
    assert desk.row(target).status == "scheduled"
    desk.run(publisher, target)
    assert desk.row(target).status == "published"
