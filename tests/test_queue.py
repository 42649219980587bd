"""The queue below the workers: who gets which target, and when it is looked at next."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from storage import posts, queue
from storage.database import database
from storage.posts import Post
from tests.delivery import ERROR, LEASE
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.service import ROOT

STOPPED_CLAIMER = """
import sys
from storage import queue
from storage.database import database, open_pool
open_pool(sys.argv[1], connections=2)
print("ready", flush=True)
with database.connection_context():
    while True:
        queue.claim("stopped", limit=1, lease=timedelta(seconds=1))
"""


@pytest.fixture(autouse=True)
def connection(desk):
    with database.connection_context():
        yield


# Who gets what.

def test_what_is_due_longest_goes_first_and_no_more_than_asked_for(desk):
    targets = desk.targets([None] * 7)
    for position, target in enumerate(targets):
        desk.ago(target, 100 - 10 * position, "next_at")
    order = [targets[:3], targets[3:6], targets[6:], []]
    assert [sorted(job.id for job in desk.claim(limit=3)) for _ in order] == [sorted(part) for part in order]


def test_what_is_not_due_yet_is_nobodys(desk):
    target = desk.target()
    desk.move(target, next_at="clock_timestamp() + interval '300 ms'")
    assert desk.claim() == []
    assert 0.2 < queue.seconds_to_next() <= 0.3
    time.sleep(0.31)
    assert [job.id for job in desk.claim()] == [target]


def test_posts_of_one_account_go_out_in_the_order_of_their_times(desk):
    targets = desk.targets([desk.account()] * 6)
    for position, target in enumerate(targets):
        desk.ago(target, 90 - position, "due_at")
        desk.ago(target, 20 + position, "next_at")
    order = []
    while jobs := desk.claim():
        [job] = jobs
        order.append(job.id)
        assert queue.start_sending(job) and queue.published(job, "1", "https://x.example")
    assert order == targets


def test_an_account_with_many_posts_does_not_keep_the_others_waiting(desk):
    busy, calm = desk.account(), desk.account()
    first = desk.targets([busy] * 60)
    for target in first:
        desk.ago(target, 60, "next_at")
    other = desk.target(calm)
    assert {job.account_id for _ in range(2) for job in desk.claim(limit=2)} == {busy, calm}
    assert desk.row(other).leased_until is not None
    assert desk.claim(limit=2) == []


def test_a_job_says_all_that_there_is_to_know(desk):
    account = desk.account()
    target = desk.target(account, caption="Fresh bread")
    desk.ago(target, 90, "due_at")
    job = desk.claimed(target)
    assert (job.team_id, job.mode, job.platform, job.post_type, job.account_id, job.options) == (
        desk.team.id, "live", "told", "text", account, {})
    assert (job.caption, job.stage, job.fence, job.tries, job.crashes, job.looks, job.receipt) == (
        "Fresh bread", "preparing", 1, 0, 0, 0, {})
    assert 90 <= job.late < 92 and 0 <= job.trying < 2 and job.since_sending is None and not job.refreshed


def test_two_claimers_at_once_never_hold_two_targets_of_one_account(desk):
    accounts = [desk.account() for _ in range(10)]
    targets = desk.targets(accounts * 8)
    taken, overlaps, deadline = [], [], time.monotonic() + 60

    def work(name):
        with database.connection_context():
            while len(taken) < len(targets) and time.monotonic() < deadline:
                for job in desk.claim(name, limit=4):
                    held = desk.sql("SELECT id FROM targets WHERE account_id = %s AND leased_until IS NOT NULL", job.account_id)
                    overlaps.extend(held if held != [(job.id,)] else [])
                    taken.append(job.id)
                    queue.start_sending(job)
                    queue.published(job, "1", "https://x.example")

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(work, name) for name in ("ann", "ben", "cas")]:
            done.result(70)
    assert overlaps == []
    assert sorted(taken) == sorted(targets)
    assert desk.sql("SELECT DISTINCT status, fence FROM targets") == [("published", 1)]


def test_a_post_is_claimed_or_canceled_but_never_both(desk):
    targets = desk.targets([None] * 60)
    ids = [row[0] for row in desk.sql("SELECT DISTINCT post_id FROM targets")]
    jobs = []

    def cancel():
        with database.connection_context():
            posts.cancel(Post.get_by_id(ids[0]))

    thread = threading.Thread(target=cancel)
    for number in range(20):
        if number == 7:
            thread.start()
        jobs += desk.claim(limit=2)
    thread.join()
    canceled = {row[0] for row in desk.sql("SELECT id FROM targets WHERE status = 'canceled'")}
    assert canceled and {job.id for job in jobs} & canceled == set()
    assert {job.id for job in jobs} | canceled == set(targets)


def test_a_claimer_that_stops_for_a_while_does_not_stop_the_others(desk, address):
    process = subprocess.Popen([sys.executable, "-c", STOPPED_CLAIMER, address], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        slowest = 0.0
        for _ in range(25):
            process.send_signal(signal.SIGSTOP)
            started = time.monotonic()
            database.execute_sql("SET statement_timeout = '2s'")
            desk.claim("other", limit=1)
            slowest = max(slowest, time.monotonic() - started)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.011)
        assert slowest < 1
    finally:
        database.execute_sql("RESET statement_timeout")
        process.kill()
        process.wait()
        process.stdout.close()


# When it is looked at next.

@pytest.mark.parametrize("after", [0, 0.25, 12.5, 86400])
@pytest.mark.parametrize("move", [lambda job, after: queue.wait(job, {}, after), lambda job, after: queue.put_back(job, after),
                                  lambda job, after: queue.start_sending(job) and queue.processing(job, {}, after),
                                  lambda job, after: queue.unconfirmed(job, ERROR, after)],
                         ids=["wait", "put_back", "processing", "unconfirmed"])
def test_it_is_looked_at_again_after_so_many_seconds(desk, move, after):
    target = desk.target()
    assert move(desk.claimed(target), after)
    row = desk.row(target)
    assert row.leased_until is None
    assert after - 0.5 < row.next_in <= after
    assert row.due_at < row.next_at


def test_what_is_looked_for_no_more_has_no_next_time(desk):
    target, job = desk.sending()
    assert queue.unconfirmed(job, ERROR, 0)
    job = desk.claimed(target)
    assert queue.looked_in_vain(job, None)
    row = desk.row(target)
    assert (row.status, row.next_at, row.looks) == ("unconfirmed", None, 1)
    assert (queue.seconds_to_next(), queue.health().oldest_due, queue.health().unconfirmed) == (None, 0, 1)


def test_tries_count_what_the_network_put_off_alone(desk):
    target = desk.target()
    for counts in (True, False, True):
        assert queue.put_back(desk.claimed(target), 0, counts=counts)
    assert desk.row(target).tries == 2


def test_how_long_the_oldest_has_been_waiting(desk):
    assert (queue.seconds_to_next(), queue.health().oldest_due) == (None, 0)
    first, second = desk.targets([None, None])
    desk.ago(first, 40, "next_at")
    desk.move(second, next_at="clock_timestamp() + interval '9 s'")
    assert -41 < queue.seconds_to_next() < -39 and 39 < queue.health().oldest_due < 41
    desk.claimed(first)
    assert 8 < queue.seconds_to_next() < 9 and (queue.health().oldest_due, queue.health().in_hand) == (0, 1)


def test_what_waits_for_its_own_account_does_not_hide_when_the_next_is_due(desk):
    account = desk.account()
    desk.targets([account] * 3)
    later = desk.target()
    desk.move(later, next_at="clock_timestamp() + interval '9 s'")
    assert len(desk.claim()) == 1
    assert 8 < queue.seconds_to_next() < 9


def test_nothing_is_taken_for_a_server_that_is_full(desk):
    accounts = {host: desk.account(host=host) for host in ("https://a.example", "https://b.example")}
    elsewhere, sandbox = desk.account("other", host="https://a.example"), desk.target()
    full = [("told", "https://a.example"), ("told", "")]
    here = {desk.target(account, platform=platform) for account, platform in ((accounts["https://b.example"], "told"),
                                                                            (elsewhere, "other"))}
    left = {desk.target(accounts["https://a.example"]), sandbox}
    assert queue.seconds_to_next(full) < 0
    jobs = queue.claim("ann", limit=10, lease=LEASE, full=full)
    assert {job.id for job in jobs} == here and {job.server for job in jobs}.isdisjoint(full)
    assert queue.seconds_to_next(full) is None and queue.seconds_to_next() < 0
    assert {job.id for job in desk.claim()} == left


def test_readiness_knows_when_somebody_last_took_something_in_hand(desk):
    desk.sql("DELETE FROM workers")
    queue.beat("ann", [], lease=LEASE)
    assert queue.health().claimed == float("inf")
    queue.beat("ann", [], lease=LEASE, claimed_ago=7)
    queue.beat("ben", [], lease=LEASE, claimed_ago=90)
    assert 7 <= queue.health().claimed < 9
    queue.beat("ann", [], lease=LEASE, claimed_ago=None)
    assert 7 <= queue.health().claimed < 9


@pytest.mark.parametrize("statement", ["UPDATE attempts SET step = 'published'", "DELETE FROM attempts",
                                       "INSERT INTO targets SELECT (jsonb_populate_record(t, '{\"id\": \"target_x\", \"position\": 9}')).* "
                                       "FROM targets t"], ids=["update", "delete", "a target that is published at once"])
def test_the_journal_cannot_be_gone_around(desk, statement):
    _, job = desk.sending()
    assert queue.published(job, "1", "https://told.example/1")
    desk.sql("RESET posthorn.journal")
    with pytest.raises(psycopg2.errors.CheckViolation):
        desk.sql(statement)


# Whose clock.

@pytest.mark.parametrize("hours", [-1, 1])
def test_only_the_clock_of_the_database_counts(desk, address, hours):
    shift = "SELECT pg_catalog.{}() + interval '%s hours'" % hours
    for name in ("now", "clock_timestamp", "statement_timestamp"):
        desk.sql("CREATE SCHEMA IF NOT EXISTS shifted")
        desk.sql(f"CREATE OR REPLACE FUNCTION shifted.{name}() RETURNS timestamptz LANGUAGE sql AS $$ {shift.format(name)} $$")
    database.execute_sql("SET search_path = shifted, pg_catalog, public")
    try:
        here = desk.target()
        [[ahead]] = desk.sql("SELECT extract(epoch FROM due_at - now()) / 3600 FROM targets WHERE id = %s", here)
        assert round(ahead) == hours
        ours, theirs = desk.target(), desk.target()
        desk.ago(ours, 1800, "next_at")
        desk.move(theirs, next_at="clock_timestamp() + interval '1800 s'")
        due = {here, ours, theirs} if hours > 0 else {here}
        jobs = desk.claim()
        assert {job.id for job in jobs} == due
        assert len(queue.sweep(ERROR)) == 0
        assert queue.put_back(next(job for job in jobs if job.id == here), 5)
        assert 3600 * hours < desk.row(here).next_in < 3600 * hours + 6
    finally:
        database.execute_sql("RESET search_path")
        desk.sql("DROP SCHEMA shifted CASCADE")


# What was written before a change.

def test_a_post_that_was_put_off_and_then_changed_is_prepared_anew(desk):
    target = desk.target()
    job = desk.claimed(target)
    queue.keep(job, {"record": {"text": "hello"}})
    queue.start_sending(job)
    queue.put_back(job, 0)
    assert desk.row(target).receipt == {"record": {"text": "hello"}}
    posts.change(Post.get_by_id(desk.row(target).post_id), caption="goodbye", schedule_at=None, targets=None)
    job = desk.claimed(target)
    assert (job.caption, job.receipt) == ("goodbye", {})


def test_a_failed_post_that_is_asked_for_again_starts_over(desk):
    target, job = desk.sending()
    desk.move(target, tries=3, crashes=3, looks=2, refreshed="true")
    queue.failed(job, ERROR)
    assert posts.retry(Post.get_by_id(desk.row(target).post_id), include_unconfirmed=False) == 1
    again = desk.claimed(target)
    assert (again.tries, again.crashes, again.looks, again.refreshed) == (0, 0, 0, False)
    assert (again.receipt, again.since_sending, again.fence) == ({}, None, 2) and again.late < 5
