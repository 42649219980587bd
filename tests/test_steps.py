"""The steps of a target: which are legal, which writers still count, and what the journal tells of them."""

import itertools

import pytest
from peewee import IntegrityError

from storage import posts, queue
from storage.database import database
from storage.posts import Post
from tests.delivery import ERROR
from tests.delivery import address, desk, whole_desk  # fixtures


# How a target stands in the database in each of its states.
STATES = {
    "scheduled": {"status": "'scheduled'", "stage": None, "next_at": "clock_timestamp()"},
    "preparing": {"status": "'publishing'", "stage": "'preparing'"},
    "sending": {"status": "'publishing'", "stage": "'sending'"},
    "processing": {"status": "'publishing'", "stage": "'processing'"},
    "published": {"status": "'published'", "stage": None, "next_at": None, "leased_until": None, "platform_post_id": "'1'"},
    "failed": {"status": "'failed'", "stage": None, "next_at": None, "leased_until": None, "error": "'{}'"},
    "unconfirmed": {"status": "'unconfirmed'", "stage": None, "next_at": None, "leased_until": None},
    "canceled": {"status": "'canceled'", "stage": None, "next_at": None, "leased_until": None},
}
WAYS = {
    "scheduled": {"preparing", "canceled"},
    "preparing": {"sending", "scheduled", "failed", "unconfirmed"},
    "sending": {"published", "processing", "failed", "scheduled", "unconfirmed"},
    "processing": {"published", "failed", "unconfirmed"},
    "published": set(),
    "failed": {"scheduled"},
    "unconfirmed": {"published", "failed", "processing", "scheduled"},
    "canceled": set(),
}
# A shortest legal way from `scheduled` to each state.
ROUTES = {"scheduled": [], "canceled": ["canceled"], "preparing": ["preparing"], "sending": ["preparing", "sending"],
          "failed": ["preparing", "failed"], "processing": ["preparing", "sending", "processing"],
          "published": ["preparing", "sending", "published"], "unconfirmed": ["preparing", "sending", "unconfirmed"]}
# Every move that a worker makes, and where a target that is being sent goes with it.
MOVES = {
    "keep": lambda job: queue.keep(job, {"late": 1}),
    "start_sending": queue.start_sending,
    "wait": lambda job: queue.wait(job, {"late": 1}, 1),
    "processing": lambda job: queue.processing(job, {"late": 1}, 1),
    "published": lambda job: queue.published(job, "late", "https://late.example"),
    "failed": lambda job: queue.failed(job, ERROR),
    "put_back": lambda job: queue.put_back(job, 1),
    "unconfirmed": lambda job: queue.unconfirmed(job, ERROR, 1),
    "looked": lambda job: queue.looked_in_vain(job, 1),
    "send_again": queue.send_again,
}
CERTAIN = {"published": "published", "failed": "failed", "put_back": "scheduled", "processing": "publishing"}


@pytest.fixture(autouse=True)
def connection(desk):
    with database.connection_context():
        yield


# Fences.

@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("stage", ["preparing", "sending", "processing", "unconfirmed"])
def test_a_writer_that_slept_past_its_lease_changes_nothing_once_another_has_the_target(desk, stage, move):
    target = desk.target()
    late = desk.claimed(target)
    if stage != "preparing":
        assert queue.start_sending(late)
    if stage == "processing":
        assert queue.processing(late, {}, 0)
        late = desk.claimed(target)
    desk.swept(target)
    if stage == "unconfirmed":
        desk.ago(target, 0, "next_at")
        late = desk.claimed(target)
        desk.swept(target)
    desk.ago(target, 0, "next_at")
    desk.claimed(target, "ben")
    before, journal = desk.row(target), desk.steps(target)
    assert MOVES[move](late) is False
    after = desk.row(target)
    assert {name: value for name, value in vars(after).items() if not name.endswith(("_in", "_for"))} == {
        name: value for name, value in vars(before).items() if not name.endswith(("_in", "_for"))}
    assert desk.steps(target) == journal


@pytest.mark.parametrize("move", MOVES)
def test_a_preparation_that_was_taken_back_is_over(desk, move):
    target = desk.target()
    late = desk.claimed(target)
    desk.swept(target)
    assert MOVES[move](late) is False
    row = desk.row(target)
    assert (row.status, row.stage, row.receipt, row.crashes) == ("scheduled", None, {}, 1)


@pytest.mark.parametrize("move, status", CERTAIN.items())
def test_a_late_but_certain_answer_counts_until_somebody_else_has_looked(desk, move, status):
    target, late = desk.sending()
    desk.swept(target)
    assert MOVES[move](late) is True
    row = desk.row(target)
    assert (row.status, row.leased_until) == (status, None)
    assert (row.platform_post_id, row.url) == (("late", "https://late.example") if move == "published" else (None, None))
    if move == "published":
        assert (row.error, row.next_at) == (None, None) and row.finished_at is not None


@pytest.mark.parametrize("move", CERTAIN)
def test_a_certain_answer_is_too_late_after_somebody_has_looked(desk, move):
    target, late = desk.sending()
    desk.swept(target)
    desk.ago(target, 0, "next_at")
    assert queue.looked_in_vain(desk.claimed(target, "ben"), 120)
    assert MOVES[move](late) is False
    assert desk.row(target).status == "unconfirmed"


def test_a_late_answer_does_not_touch_what_the_caller_asked_to_send_again(desk):
    target, late = desk.sending()
    desk.swept(target)
    assert posts.retry(Post.get_by_id(desk.row(target).post_id), include_unconfirmed=True) == 1
    assert queue.published(late, "late", "https://late.example") is False
    assert desk.row(target).status == "scheduled"


def test_writing_the_same_move_twice_does_no_harm(desk):
    target = desk.target()
    job = desk.claimed(target)
    assert [queue.start_sending(job), queue.start_sending(job)] == [True, True]
    assert [queue.put_back(job, 5), queue.put_back(job, 5)] == [True, False]
    assert desk.row(target).tries == 1
    assert desk.steps(target) == ["preparing", "sending", "scheduled"]


# What the database itself refuses.

@pytest.mark.parametrize("state", ["published", "failed", "unconfirmed", "canceled"])
def test_what_has_ended_is_never_claimed(desk, state):
    target = desk.target()
    for step in ROUTES[state]:
        desk.move(target, **STATES[step])
    assert desk.claim() == []
    assert queue.seconds_to_next() is None


@pytest.mark.parametrize("was, goes", list(itertools.product(STATES, STATES)), ids=lambda state: state)
def test_the_map_of_steps(desk, was, goes):
    target = desk.target()
    for step in ROUTES[was]:
        desk.move(target, **STATES[step])
    journal = desk.steps(target)
    query = "UPDATE targets SET " + ", ".join(f"{name} = {value or 'NULL'}" for name, value in STATES[goes].items())
    if goes == was or goes in WAYS[was]:
        database.execute_sql(query)
        assert desk.steps(target) == journal + [goes] * (goes != was)
    else:
        with pytest.raises(IntegrityError, match=f"no way from {was} to {goes}"):
            database.execute_sql(query)
        assert desk.steps(target) == journal


@pytest.mark.parametrize("columns", [
    {"status": "'published'", "stage": None, "next_at": None, "leased_until": None},
    {"status": "'failed'", "stage": None, "next_at": None, "leased_until": None},
    {"status": "'published'", "stage": None, "platform_post_id": "'1'", "leased_until": None, "next_at": "now()"},
    {"status": "'publishing'", "stage": None}, {"status": "'unconfirmed'"}, {"stage": "'queued'"},
    {"status": "'done'", "stage": None},
    {"status": "'scheduled'", "stage": None}],
    ids=["published without an id", "failed without an error", "published and due again", "publishing at no stage",
         "unconfirmed at a stage", "an unknown stage", "an unknown status", "scheduled with a lease"])
def test_a_row_that_contradicts_itself_is_refused(desk, columns):
    target, _ = desk.sending()
    values = ", ".join(f"{name} = {value or 'NULL'}" for name, value in columns.items())
    with pytest.raises(IntegrityError):
        database.execute_sql(f"UPDATE targets SET {values} WHERE id = %s", (target,))


def test_two_targets_of_one_account_cannot_be_in_hand_by_any_path(desk):
    account = desk.account()
    first, second = desk.targets([account, account])
    desk.move(first, **STATES["preparing"], leased_until="now()")
    with pytest.raises(IntegrityError):
        database.execute_sql("UPDATE targets SET status = 'publishing', stage = 'preparing', leased_until = now() "
                             "WHERE id = %s", (second,))


# The journal.

def test_the_journal_tells_each_step_with_its_worker_fence_and_reason(desk):
    target = desk.target()
    job = desk.claimed(target)
    queue.keep(job, {"upload": 1})
    queue.start_sending(job)
    queue.put_back(job, 0, note={"code": "rate_limited"})
    job = desk.claimed(target, "ben")
    queue.start_sending(job)
    desk.swept(target)
    queue.processing(job, {}, 0)
    queue.failed(desk.claimed(target, "cas"), ERROR)
    journal = desk.sql("SELECT step, fence, worker, note, team_id FROM attempts WHERE target_id = %s ORDER BY id", target)
    assert journal == [(*line, desk.team.id) for line in (
        ("preparing", 1, "ann", None), ("sending", 1, "ann", None), ("scheduled", 1, "ann", {"code": "rate_limited"}),
        ("preparing", 2, "ben", None), ("sending", 2, "ben", None), ("unconfirmed", 2, "ben", {"lease": "ran out"}),
        ("processing", 2, "ben", None), ("processing", 3, "cas", None), ("failed", 3, "cas", ERROR))]
    assert desk.row(target).note is None
    times = [row[0] for row in desk.sql("SELECT at FROM attempts WHERE target_id = %s ORDER BY id", target)]
    assert times == sorted(times) and len(set(times)) == len(times)


def test_canceling_and_asking_again_are_in_the_journal(desk):
    first, second = desk.target(), desk.target()
    posts.cancel(Post.get_by_id(desk.row(first).post_id))
    job = desk.claimed(second)
    queue.failed(job, ERROR)
    posts.retry(Post.get_by_id(desk.row(second).post_id), include_unconfirmed=False)
    assert (desk.steps(first), desk.steps(second)) == (["canceled"], ["preparing", "failed", "scheduled"])
