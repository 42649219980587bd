"""Workers as they run: woken in time, sharing the work, stopping, dying, and living on when the database does not."""

import json
import signal
import statistics
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from storage import queue
from tests.delivery import Board, WorkerProcess, WorkerThread
from tests.delivery import address, desk, whole_desk  # fixtures

BEATS = """
CREATE FUNCTION note_beat() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public_calls (key, verb) VALUES (NEW.id, 'beat'); RETURN NULL; END $$;
CREATE TRIGGER note_beat AFTER INSERT OR UPDATE ON workers FOR EACH ROW EXECUTE FUNCTION note_beat();
"""
THREADS = 8
POOL_PATIENCE = 5.0 # seconds that one waits for a connection of the pool
TAKEN_OVER = 5.0    # seconds after the death of a worker; a lease and a heartbeat


@pytest.fixture(scope="module", autouse=True)
def noted_beats(whole_desk):
    whole_desk.sql(BEATS)


@pytest.fixture
def start(desk):
    """Starts workers, each a process of its own."""
    running = []

    def start(**options):
        running.append(WorkerProcess(desk, **options))
        return running[-1].__enter__()

    yield start
    for process in running:
        process.__exit__()


@pytest.fixture
def worker(desk, address):
    """A worker in a thread, asleep."""
    with WorkerThread(desk.publisher(Board(address)), address, THREADS) as worker:
        desk.wait_for("SELECT 1 FROM public_calls WHERE verb = 'beat'")
        yield worker


def board(desk, account=None, at=None, **caption):
    return desk.target(account, platform="board", caption=json.dumps(caption), at=at)


def lateness(desk, target):
    """Seconds from the time of a target to its sending."""
    [[seconds]] = desk.sql("SELECT extract(epoch FROM sending_at - due_at)::float FROM targets WHERE id = %s", target)
    return seconds


def published(desk, *targets, within=5.0):
    desk.settled(targets, within=within, until=["published"])


def hears_the_bell(desk):
    late = []
    for _ in range(9):
        time.sleep(0.07)
        target = board(desk)
        published(desk, target)
        late.append(lateness(desk, target))
    # Asleep for a second at most, a worker would be half a second late on average if it heard nothing.
    assert max(late) < 1 and statistics.median(late) < 0.2


def beats(desk):
    return desk.sql("SELECT count(*) FROM public_calls WHERE verb = 'beat'")[0][0]


@contextmanager
def server_that(address, *change, back):
    """The database server after `change`, which `back` takes back."""
    run_on_server(address, *change)
    try:
        yield
    finally:
        run_on_server(address, *back)


def run_on_server(address, *statements):
    connection = psycopg2.connect(**{**parse_dsn(address), "dbname": "postgres"})
    connection.autocommit = True
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.format(name=parse_dsn(address)["dbname"]))
    connection.close()


# Ends the sessions of workers and of the tests' own pool, as a server that restarts does.
END_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}' AND application_name = 'posthorn'
"""


# In time.

def test_a_sleeping_worker_is_woken_by_a_post_that_is_due(desk, worker):
    hears_the_bell(desk)


def test_a_scheduled_post_goes_out_at_its_time_and_never_early(desk, worker):
    targets = [board(desk, at=datetime.now(UTC) + timedelta(seconds=1 + number / 7)) for number in range(5)]
    published(desk, *targets)
    late = [lateness(desk, target) for target in targets]
    assert min(late) >= 0 and max(late) < 0.4


def test_accounts_that_are_busy_do_not_make_others_late(desk, worker):
    account = desk.account("board")
    busy = [board(desk, account, send=1.6) for _ in range(2)]
    calm = [board(desk, at=datetime.now(UTC) + timedelta(seconds=0.25 * number)) for number in range(1, 6)]
    published(desk, *calm, *busy)
    assert max(lateness(desk, target) for target in calm) < 0.4
    [first, second] = desk.sql("SELECT sending_at, finished_at FROM targets WHERE account_id IS NOT NULL ORDER BY sending_at")
    assert first[1] <= second[0]


def test_a_network_that_is_slow_does_not_make_others_late(desk, worker):
    at_once = datetime.now(UTC) + timedelta(seconds=1)
    slow = [board(desk, desk.account("board", host="https://slow.example"), at=at_once, send=1.2) for _ in range(THREADS * 5)]
    desk.wait_for("SELECT 1 FROM public_calls WHERE verb = 'publish' HAVING count(*) >= %s", THREADS)
    calm = [board(desk, desk.account("board", host="https://calm.example")) for _ in range(4)]
    published(desk, *calm)
    assert max(lateness(desk, target) for target in calm) < 0.6
    assert desk.sql("SELECT count(*) FROM targets WHERE leased_until IS NOT NULL")[0][0] < 2 * THREADS
    desk.settled(slow, within=15, until=["published"])


# Together.

def test_where_the_machine_has_no_threads_to_give_posts_wait_until_it_has(desk, worker, monkeypatch):
    attempts = iter([RuntimeError("can't start new thread")] * 2)

    def start(thread):
        if thread.name == "publish" and (refusal := next(attempts, None)):
            raise refusal
        begin(thread)

    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    targets = [board(desk) for _ in range(5)]
    published(desk, *targets)
    assert {desk.row(target).crashes for target in targets} == {0} and next(attempts, None) is None


def test_a_turn_that_fails_ends_no_worker(desk, worker, monkeypatch):
    failures = iter([ValueError, LookupError])

    def claim(*arguments, **options):
        if failure := next(failures, None):
            raise failure
        return take(*arguments, **options)

    take = queue.claim
    monkeypatch.setattr(queue, "claim", claim)
    published(desk, board(desk))


def test_two_workers_share_the_work_and_publish_nothing_twice(desk, start):
    for _ in range(2):
        start(threads=8)
    targets = desk.targets([None] * 200, platform="board", caption=json.dumps({"send": 0.02}))
    published(desk, *targets, within=20)
    calls = desk.sql("SELECT key, pid FROM public_calls WHERE verb = 'publish'")
    assert sorted(key for key, _ in calls) == sorted(targets)
    shares = [[pid for _, pid in calls].count(pid) for pid in {pid for _, pid in calls}]
    assert len(shares) == 2 and min(shares) > 20
    assert desk.sql("SELECT DISTINCT fence, status FROM targets") == [(1, "published")]


# Stopping.

def test_a_stopping_worker_finishes_what_is_being_sent_and_gives_the_rest_back(desk, start):
    process = start(threads=3)
    quick, slow, long = board(desk, send=0.6), board(desk, send=1.5), board(desk, steps=[0.5, 0.5, 0.5])
    for key, verb in ((quick, "publish"), (slow, "publish"), (long, "step 0")):
        desk.wait_for("SELECT 1 FROM public_calls WHERE key = %s AND verb = %s", key, verb)
    waiting = [board(desk) for _ in range(3)]
    before, started = beats(desk), time.monotonic()
    process.signal(signal.SIGTERM)
    assert process.popen.wait(10) == 0
    assert time.monotonic() - started < 3.5
    assert beats(desk) - before <= 3
    assert [desk.row(target).status for target in (quick, slow)] == ["published", "published"]
    row = desk.row(long)
    assert (row.status, row.leased_until, row.receipt, row.tries, row.crashes) == ("scheduled", None, {"step": 1}, 0, 0)
    assert [(desk.row(target).status, desk.row(target).fence) for target in waiting] == [("scheduled", 0)] * 3
    assert desk.sql("SELECT 1 FROM workers WHERE id = %s", process.name) == []

    start(threads=3)
    published(desk, long, *waiting)
    assert desk.sql("SELECT verb FROM public_calls WHERE key = %s ORDER BY id", long) == [
        ("step 0",), ("step 1",), ("step 2",), ("publish",)]


def test_an_idle_worker_stops_at_once(desk, start):
    process = start()
    time.sleep(0.3)
    started = time.monotonic()
    process.signal(signal.SIGTERM)
    assert process.popen.wait(10) == 0
    assert time.monotonic() - started < 1.5


def test_a_worker_stops_while_the_database_is_away(desk, start, address):
    process = start()
    with server_that(address, "ALTER DATABASE {name} ALLOW_CONNECTIONS false", END_SESSIONS,
                     back=["ALTER DATABASE {name} ALLOW_CONNECTIONS true"]):
        time.sleep(0.3)
        process.signal(signal.SIGTERM)
        assert process.popen.wait(10) == 0


# Dying.

def test_what_a_killed_worker_had_is_taken_over(desk, start):
    killed = start()
    account = desk.account("board")
    sending = board(desk, account, send=60)
    prepared = [board(desk, steps=[60]) for _ in range(3)]
    for target in (sending, *prepared):
        desk.wait_for("SELECT 1 FROM public_calls WHERE key = %s", target)
    behind = board(desk, account)
    heir = start()
    killed.signal(signal.SIGKILL)
    died = time.monotonic()
    for target in prepared:
        desk.wait_for("SELECT 1 FROM public_calls WHERE key = %s AND pid = %s", target, heir.popen.pid, within=8)
    assert desk.settled([sending], within=1) == {sending: "unconfirmed"}
    published(desk, behind, within=1)
    assert time.monotonic() - died <= TAKEN_OVER
    row = desk.row(sending)
    assert 20 < row.next_in <= 30 and "may have been published" in row.error["message"]
    assert {(desk.row(target).worker, desk.row(target).crashes) for target in prepared} == {(heir.name, 1)}
    assert desk.sql("SELECT count(*) FROM public_calls WHERE key = %s AND verb = 'publish'", sending) == [(1,)]


def test_a_worker_that_was_stopped_for_a_while_does_not_touch_what_another_has_taken(desk, start):
    stopped = start()
    sending, prepared = board(desk, send=0.5), board(desk, steps=[0.5])
    for target in (sending, prepared):
        desk.wait_for("SELECT 1 FROM public_calls WHERE key = %s", target)
    stopped.signal(signal.SIGSTOP)
    start()
    published(desk, prepared, within=8)
    assert desk.row(sending).status == "unconfirmed"
    stopped.signal(signal.SIGCONT)
    # Its answer is certain, and nobody has looked for the post meanwhile.
    published(desk, sending)
    time.sleep(0.3)
    calls = desk.sql("SELECT key FROM public_calls WHERE verb = 'publish'")
    assert sorted(calls) == sorted([(sending,), (prepared,)])
    assert desk.row(prepared).fence == 2 and stopped.popen.poll() is None


def test_a_claim_whose_answer_was_lost_is_taken_over_although_its_worker_is_busy(desk, worker):
    busy = board(desk, send=3.5)
    desk.wait_for("SELECT 1 FROM public_calls WHERE key = %s", busy)
    lost = board(desk, at=datetime.now(UTC) + timedelta(hours=1))
    desk.move(lost, status="'publishing'", stage="'preparing'", next_at="now()", fence="1", worker=f"'{worker.name}'",
              leased_until="clock_timestamp() + interval '1 s'")
    published(desk, lost, within=4)
    assert desk.row(busy).status == "publishing"
    assert (desk.row(lost).fence, desk.row(lost).crashes) == (2, 1)


def test_what_is_being_sent_for_longer_than_a_lease_stays_with_its_worker(desk, worker):
    account = desk.account("board")
    long, behind = board(desk, account, send=4), board(desk, account)
    published(desk, long, behind, within=7)
    assert (desk.row(long).fence, desk.steps(long)) == (1, ["preparing", "sending", "published"])
    assert desk.sql("SELECT count(*) FROM public_calls WHERE key = %s", long) == [(1,)]


# When the database goes and comes.

def test_a_worker_goes_on_when_its_connections_are_ended(desk, start, address):
    process = start()
    for _ in range(3):
        sending = board(desk, send=0.4)
        desk.wait_for("SELECT 1 FROM public_calls WHERE key = %s", sending)
        run_on_server(address, END_SESSIONS)
        due = board(desk)
        published(desk, sending, due, within=4)
    assert process.popen.poll() is None
    assert desk.sql("SELECT DISTINCT crashes, fence FROM targets") == [(0, 1)]
    hears_the_bell(desk)


def test_a_worker_goes_on_after_a_database_that_stood_still(desk, start, address):
    process = start(threads=8)
    busy = [board(desk, steps=[0.2] * 3) for _ in range(20)]
    desk.wait_for("SELECT 1 FROM public_calls WHERE verb = 'step 0' HAVING count(*) >= 8")
    with psycopg2.connect(address) as blocker, blocker.cursor() as cursor:
        cursor.execute("LOCK TABLE targets IN ACCESS EXCLUSIVE MODE")
        time.sleep(POOL_PATIENCE + 1.5)
    blocker.close()
    published(desk, board(desk), *busy, within=20)
    assert process.popen.poll() is None


def test_a_worker_goes_on_after_a_failover_in_which_nothing_could_be_written(desk, start, address):
    process = start()
    published(desk, board(desk))
    with server_that(address, "ALTER DATABASE {name} SET default_transaction_read_only = on", END_SESSIONS,
                     back=["ALTER DATABASE {name} RESET default_transaction_read_only", END_SESSIONS]):
        time.sleep(1.5)
        assert process.popen.poll() is None
    before, target = beats(desk), board(desk)
    published(desk, target, within=4)
    time.sleep(1.2)
    assert process.popen.poll() is None and beats(desk) > before
