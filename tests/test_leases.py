"""For how long a worker has what it claimed, and what becomes of what a dead one had."""

import json
from datetime import timedelta

import pytest
from peewee import OperationalError

from handlers.config import LogSettings
from handlers.logs import formatter
from platforms import worker
from platforms.metrics import OUTCOMES
from storage import queue
from storage.database import database
from tests.delivery import ERROR, LEASE
from tests.delivery import address, desk, whole_desk  # fixtures


@pytest.fixture(autouse=True)
def connection(desk):
    with database.connection_context():
        yield


@pytest.fixture
def impatient(connection):
    """Whoever waits for a lock raises."""
    database.execute_sql("SET lock_timeout = '1s'")
    yield
    database.execute_sql("RESET lock_timeout")


def test_a_claim_is_for_as_long_as_the_lease_and_a_heartbeat_starts_it_anew(desk):
    targets = desk.targets([None, None])
    [mine], [theirs] = desk.claim("ann", limit=1), desk.claim("ben", limit=1)
    assert {mine.id, theirs.id} == set(targets)
    assert 29 < desk.row(mine.id).leased_for <= 30
    queue.beat("ann", [mine], lease=timedelta(seconds=60))
    assert 59 < desk.row(mine.id).leased_for <= 60 and 29 < desk.row(theirs.id).leased_for <= 30
    assert len(queue.sweep(ERROR)) == 0 and desk.claim() == []


def test_a_heartbeat_keeps_what_is_in_hand_and_nothing_else(desk):
    targets = desk.targets([None] * 4)
    held, lost, done, old = jobs = desk.claim()
    assert {job.id for job in jobs} == set(targets)
    assert queue.start_sending(done) and queue.published(done, "1", "https://x.example")
    desk.move(old.id, fence="fence + 1")
    for job in (held, lost, old):
        desk.ago(job.id, 1)
    queue.beat("ann", [held, done, old], lease=LEASE)
    assert desk.row(done.id).leased_until is None
    assert len(queue.sweep(ERROR)) == 2
    assert [desk.row(job.id).status for job in jobs] == ["publishing", "scheduled", "published", "scheduled"]


def test_a_heartbeat_waits_for_nobody_and_what_it_could_not_keep_is_still_its_own(desk, impatient):
    desk.targets([None] * 2)
    kept, held = jobs = desk.claim()
    desk.ago(held.id, 1)
    with desk.session() as (_, cursor):
        cursor.execute("SELECT FROM targets WHERE id = %s FOR UPDATE", (held.id,))
        assert len(queue.sweep(ERROR)) == 0      # nor does a sweep wait
        queue.beat("ann", jobs, lease=timedelta(seconds=60))
        assert 59 < desk.row(kept.id).leased_for <= 60
    assert desk.row(held.id).leased_for < 0 and len(queue.sweep(ERROR)) == 0
    queue.beat("ann", jobs, lease=LEASE)
    assert desk.row(held.id).leased_for > 29
    with desk.session() as (_, cursor):
        cursor.execute("SELECT FROM targets WHERE id = %s FOR UPDATE", (held.id,))
        queue.beat("ann", jobs, lease=LEASE)
    for job in jobs:
        desk.ago(job.id, 1)
    assert len(queue.sweep(ERROR)) == 1          # what it had free and let run out
    desk.sql("UPDATE workers SET seen_at = seen_at - interval '4 s'")
    assert len(queue.sweep(ERROR)) == 1


def test_a_sweep_gives_up_on_what_others_are_in_the_middle_of(desk):
    """For a heart has more to do: the ends of posts with webhooks take turns."""
    target, job = desk.sending()
    desk.sql("INSERT INTO webhooks (id, team_id, mode, user_id, url, events, secret) "
             "VALUES ('wh', %s, 'live', %s, '', '{post.failed}', '')", desk.team.id, desk.caller.user_id)
    desk.ago(target, 1)
    with desk.session() as (_, cursor):
        cursor.execute("SELECT pg_advisory_xact_lock(x'486F6F6B'::int, n) FROM generate_series(0, 1023) AS n")
        with pytest.raises(OperationalError, match="lock timeout"):
            queue.sweep(ERROR)
    assert len(queue.sweep(ERROR)) == 1 and queue.published(job, "1", "https://x.example")


def test_workers_are_seen_while_they_live(desk):
    desk.sql("DELETE FROM workers")
    assert queue.health().worker_seen == float("inf")
    queue.beat("ann", [], lease=LEASE)
    desk.sql("UPDATE workers SET seen_at = seen_at - interval '9 s'")
    assert 9 <= queue.health().worker_seen < 10
    queue.beat("ann", [], lease=LEASE)
    assert queue.health().worker_seen < 1
    queue.leave("ann")
    assert queue.health().worker_seen == float("inf")


@pytest.mark.parametrize("stage, after, waits, crashes", [
    ("preparing", "scheduled", 0, 1), ("sending", "unconfirmed", 30, 0), ("processing", "publishing", 0, 1)])
def test_what_a_dead_worker_had_in_hand(desk, stage, after, waits, crashes):
    target = desk.target()
    job = desk.claimed(target)
    if stage != "preparing":
        assert queue.start_sending(job)
    if stage == "processing":
        assert queue.processing(job, {"ticket": 7}, 0)
        job = desk.claimed(target)
    desk.swept(target)
    row = desk.row(target)
    assert (row.status, row.leased_until, row.crashes, row.fence) == (after, None, crashes, job.fence)
    assert row.next_in == pytest.approx(waits, abs=1)
    assert row.stage == ("processing" if stage == "processing" else None)
    assert row.receipt == ({"ticket": 7} if stage == "processing" else {})
    assert row.error == (ERROR if stage == "sending" else None)
    assert (row.sending_at is not None) == (stage != "preparing")
    assert len(queue.sweep(ERROR)) == 0


@pytest.mark.parametrize("stage, left", [("preparing", True), ("sending", False)])
def test_a_wish_to_send_again_dies_with_the_sending(desk, stage, left):
    target = desk.target()
    desk.move(target, asked_again="true")
    job = desk.claimed(target)
    assert job.asked_again is True
    if stage == "sending":
        assert queue.start_sending(job)
    desk.swept(target)
    assert desk.row(target).asked_again is left


def test_a_dead_looker_leaves_the_post_unconfirmed(desk):
    target, _ = desk.sending()
    desk.swept(target)
    desk.ago(target, 0, "next_at")
    job = desk.claimed(target, "ben")
    assert (job.stage, job.fence) == (None, 2) and job.since_sending > 0
    desk.swept(target)
    row = desk.row(target)
    assert (row.status, row.stage, row.leased_until, row.error, row.crashes) == ("unconfirmed", None, None, ERROR, 1)


def test_the_account_of_a_dead_worker_is_free_again(desk):
    account = desk.account()
    first, second = desk.target(account), desk.target(account)
    [job] = desk.claim()
    assert job.id == first and desk.claim() == []
    assert queue.start_sending(job)
    desk.swept(first)
    assert [job.id for job in desk.claim()] == [second]


def test_what_a_dead_worker_left_is_told_with_its_ids_and_counted(desk, caplog, monkeypatch):
    monkeypatch.setattr(caplog.handler, "formatter", formatter(LogSettings.from_env({"POSTHORN_LOG_FORMAT": "json"})))
    (target, _), other = desk.sending(), desk.target(desk.account())
    desk.claimed(other)
    desk.ago(target, 1, "leased_until")
    desk.ago(other, 1, "leased_until")
    before = {move: counted(move) for move in ("unconfirmed", "taken_back")}
    assert worker.take_back() == 2
    assert {move: counted(move) - before[move] for move in before} == {"unconfirmed": 1, "taken_back": 1}
    told = {line["target_id"]: line["message"] for line in map(json.loads, caplog.text.splitlines())}
    assert told == {target: "told: the worker that had it is gone; it is unconfirmed",
                    other: "told: the worker that had it is gone; it is scheduled"}


def counted(move):
    return OUTCOMES.labels("told", "live", move)._value.get()


def test_who_freezes_in_a_transaction_keeps_nobody_waiting_for_long(desk):
    assert database.execute_sql("SHOW idle_in_transaction_session_timeout").fetchone() == ("15s",)
