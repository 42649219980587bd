"""What the tests of delivery share: a database of their own, posts written below the API, and networks that do as told."""

import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from types import SimpleNamespace

import psycopg2
import pytest
from psycopg2.extensions import make_dsn, parse_dsn
from psycopg2.extras import RealDictCursor

from platforms.accounts import owner
from platforms.base import Limits, Platform, PostType, Published
from platforms.publisher import Publisher
from platforms.webhooks import Sender
from platforms.worker import Worker
from storage import posts, queue
from storage.database import database, migrate, open_pool
from storage.fetch import Fetcher
from storage.models import Account
from storage.posts import NewTarget
from storage.secrets import Vault, new_key
from tests.service import ROOT, Member

LEASE = timedelta(seconds=30)
DONE = Published("7", "https://told.example/7")
BUG = ValueError("secret detail of a bug")
ERROR = {"code": "external_service_error", "message": "no answer"}
PUBLIC = """
CREATE TABLE public_calls (id serial PRIMARY KEY, key text, verb text, pid int, at timestamptz DEFAULT clock_timestamp())
"""


@pytest.fixture(scope="module")
def address(postgres_url):
    """The libpq address of a database for the tests of one file."""
    with own_database(postgres_url) as address:
        yield address


@pytest.fixture(scope="module")
def whole_desk(address):
    """Use `desk`."""
    desk = Desk(address)
    yield desk
    desk.close()


@pytest.fixture
def desk(whole_desk):
    """A team with no posts."""
    whole_desk.clear()
    return whole_desk


@contextmanager
def own_database(postgres_url):
    """A fresh, migrated database on the run's server, to which the models are bound meanwhile; gives its libpq address.

    A claim takes whatever is due, so these tests cannot share a database with a running worker.
    """
    name = f"delivery_{secrets.token_hex(6)}"
    address = make_dsn(postgres_url, dbname=name)
    _execute(postgres_url, f"CREATE DATABASE {name}")
    _execute(postgres_url, f"ALTER DATABASE {name} SET synchronous_commit = off")    # the server itself never dies here
    try:
        _bind(address)
        migrate()
        _execute(address, PUBLIC)
        yield address
    finally:
        _bind(postgres_url)
        _execute(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


def take_away(address, postgres_url, seconds):
    """The database at `address` ends all sessions of ours, and takes no new ones for so long."""
    name = parse_dsn(address)["dbname"]
    _execute(postgres_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    _execute(postgres_url, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}' "
                           "AND application_name = 'posthorn'")
    threading.Timer(seconds, _execute, [postgres_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"]).start()


class Desk:
    """A team that writes posts below the API and looks at what becomes of them, on a connection beside the pool."""

    def __init__(self, address):
        self.address, self.key = address, new_key()
        self.vault = Vault((self.key,))
        member = Member("")
        self.team, self.caller = member.team, member.caller("live")
        self._connection = psycopg2.connect(address)
        self._connection.autocommit = True

    def close(self):
        """Ends its connection."""
        self._connection.close()

    def clear(self):
        """Forgets all posts and accounts."""
        self.sql("SET posthorn.journal = 'open'")
        for table in ("webhooks", "attempts", "attachments", "targets", "posts", "accounts", "public_calls"):
            self.sql(f"DELETE FROM {table}")
        self.sql("UPDATE lineages SET id = gen_random_uuid()")     # not the history that the store remembers

    def sql(self, query, *values):
        """Runs one statement; returns its rows as tuples."""
        with self._connection.cursor() as cursor:
            cursor.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def account(self, platform="told", host="", credentials=None):
        """A connected account of the team; returns its id."""
        with self._connected():
            row = Account.add(team_id=self.team.id, platform=platform, host=host, platform_id=secrets.token_hex(8),
                              username="ann", display_name="Ann")
            sealed = self.vault.seal(owner(self.team.id, row.id), credentials or {"token": "first"})
            Account.update(credentials=sealed).where(Account.id == row.id).execute()
        return row.id

    def credentials(self, account_id):
        """What is stored for the account, opened."""
        [[sealed]] = self.sql("SELECT credentials FROM accounts WHERE id = %s", account_id)
        return self.vault.open(owner(self.team.id, account_id), sealed)

    def target(self, account=None, **options):
        """One target, due now unless `at` says so; returns its id."""
        return self.targets([account], **options)[0]

    def targets(self, accounts, *, caption="hello", at=None, platform="told", media=(), options=None):
        """A post with one target for each account (None: without one); returns their ids."""
        new = [NewTarget(platform=platform, asked_type=None, post_type="text", account_id=account, caption=None,
                         media=list(media), own_media=False, options=options or {}) for account in accounts]
        with self._connected(), database.atomic():
            post = posts.create(self.caller, client_id=None, caption=caption, schedule_at=at, targets=new)
        return [row[0] for row in self.sql("SELECT id FROM targets WHERE post_id = %s ORDER BY position", post["id"])]

    def move(self, target_id, **columns):
        """Writes columns as they are, None or SQL expressions, such as next_at="clock_timestamp()"."""
        values = ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in columns.items())
        self.sql(f"UPDATE targets SET {values} WHERE id = %s", target_id)

    def ago(self, target_id, seconds, column="leased_until"):
        """Puts a time of a target so many seconds into the past."""
        self.move(target_id, **{column: f"clock_timestamp() - interval '{seconds} s'"})

    def row(self, target_id):
        """The target as the database has it; beside it `next_in` and `leased_for`, seconds from now."""
        with self._connection.cursor(cursor_factory=RealDictCursor) as cursor:
            cursor.execute("SELECT *, extract(epoch FROM next_at - clock_timestamp())::float AS next_in, "
                           "extract(epoch FROM leased_until - clock_timestamp())::float AS leased_for "
                           "FROM targets WHERE id = %s", [target_id])
            return SimpleNamespace(**cursor.fetchone())

    def steps(self, target_id):
        """The steps in its journal, in order."""
        return [row[0] for row in self.sql("SELECT step FROM attempts WHERE target_id = %s ORDER BY id", target_id)]

    def claim(self, worker="ann", limit=10, lease=LEASE):
        """What a worker of that name gets."""
        with self._connected():
            return queue.claim(worker, limit=limit, lease=lease)

    def claimed(self, target_id, worker="ann"):
        """The job of the one target that is due."""
        [job] = self.claim(worker)
        assert job.id == target_id
        return job

    def sending(self):
        """A target that is being sent, and its job."""
        target = self.target()
        job = self.claimed(target)
        with self._connected():
            assert queue.start_sending(job)
        return target, job

    def swept(self, target_id):
        """Lets the lease of a target run out."""
        self.ago(target_id, 1)
        with self._connected():
            assert len(queue.sweep(ERROR)) == 1

    def publisher(self, *networks):
        """A publisher that can open the credentials of the desk's accounts."""
        return Publisher(Networks(*networks), self.vault, None)

    def run(self, publisher, target_id=None):
        """One claim of all that is due, worked on; with a target, which is made due."""
        if target_id:
            self.ago(target_id, 0, "next_at")
        for job in self.claim():
            publisher.run(job)

    def tried(self, network):
        """A target on a fresh account after one run on `network`, as the database has it."""
        target = self.target(self.account())
        self.run(self.publisher(network))
        return self.row(target)

    def settled(self, target_ids, *, within, until=("published", "failed", "unconfirmed", "canceled")):
        """The statuses of targets by id, once all of them are among `until`."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            found = dict(self.sql("SELECT id, status FROM targets WHERE id = ANY(%s)", list(target_ids)))
            if set(found.values()) <= set(until):
                return found
            time.sleep(0.01)
        raise AssertionError(f"not settled within {within} s: {found}")

    def wait_for(self, query, *values, within=5.0):
        """The first row of a query as soon as there is one."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if rows := self.sql(query, *values):
                return rows[0]
            time.sleep(0.005)
        raise AssertionError(f"nothing came within {within} s of {query} {values}")

    @contextmanager
    def session(self):
        """A connection of its own with a cursor, whose transaction is the test's to end."""
        connection = psycopg2.connect(self.address)
        try:
            yield connection, connection.cursor()
        finally:
            connection.close()

    @contextmanager
    def _connected(self):
        with database.connection_context() if database.is_closed() else nullcontext():
            yield


class Told(Platform):
    """A network that does as told: each verb plays the next part of its course, an error to raise or a value to return.

    A part of the course of `prepare` and `follow` is a list of what it yields. `calls` holds (verb, what it was given).
    """

    name = "told"
    title = "Told"
    limits = Limits(caption=100, media_items=4, source="", reviewed_at="")
    post_types = {"text": PostType()}
    follow_options = ("firstComment",)
    live = True

    def __init__(self, patience=None, find_retries=False, dedupes_for=None, **courses):
        super().__init__()
        self.courses, self.calls = courses, []
        self.patience = patience or self.patience
        self.find_retries, self.dedupes_for = find_retries, dedupes_for

    def prepare(self, account, content, receipt):
        """Its part is a list of steps."""
        self.calls.append(("prepare", dict(receipt)))
        for step in self._next("prepare", ()):
            yield _play(step)

    def publish(self, account, content, receipt):
        """Has to be told."""
        self.calls.append(("publish", dict(receipt)))
        return _play(self._next("publish", AssertionError("nobody told what becomes of it")))

    def follow(self, account, content, receipt):
        """Its part is a list of steps."""
        self.calls.append(("follow", dict(receipt)))
        for step in self._next("follow", ()):
            yield _play(step)

    def check(self, account, receipt):
        """Has to be told."""
        self.calls.append(("check", dict(receipt)))
        return _play(self._next("check", AssertionError("nobody told what becomes of it")))

    def find(self, account, content, receipt):
        """Cannot tell unless told."""
        self.calls.append(("find", dict(receipt)))
        return _play(self._next("find", None))

    def refresh(self, account, force=False):
        """None unless told; the calls say what it was asked with."""
        self.calls.append(("refresh!" if force else "refresh", account.credentials))
        return _play(self._next("refresh!" if force else "refresh", None))

    def verbs(self):
        """The verbs that were called, those that look after credentials aside."""
        return [verb for verb, _ in self.calls if not verb.startswith("refresh")]

    def _next(self, verb, otherwise):
        course = self.courses.get(verb)
        return course.pop(0) if course else otherwise


class Board(Platform):
    """A network whose calls are rows of the table `public_calls`, so that several processes may post on it.

    A caption is JSON: `steps`, the seconds of each step of the preparation, and `send`, those from being public to the answer.
    """

    name = "board"
    title = "Board"
    limits = Limits(caption=1000, media_items=0, source="", reviewed_at="")
    post_types = {"text": PostType()}
    live = True

    def __init__(self, address):
        super().__init__()
        self._connection = psycopg2.connect(address, application_name="board")
        self._connection.autocommit = True

    def prepare(self, account, content, receipt):
        """Takes the steps that are left, after each of which it may be interrupted."""
        steps = json.loads(content.caption).get("steps", [])
        for number in range(receipt.get("step", 0), len(steps)):
            self._write(content.key, f"step {number}")
            time.sleep(steps[number])
            yield {"step": number + 1}

    def publish(self, account, content, receipt):
        """Public first, answered later."""
        self._write(content.key, "publish")
        time.sleep(json.loads(content.caption).get("send", 0))
        return Published(id=f"id-{content.key}", url="https://board.example/1")

    def check(self, account, receipt):
        """Is broken."""
        raise ValueError("this connector has a bug")

    def _write(self, key, verb):
        with self._connection.cursor() as cursor:
            cursor.execute("INSERT INTO public_calls (key, verb, pid) VALUES (%s, %s, %s)", (key, verb, os.getpid()))


class Networks:
    """The registry of a test."""

    def __init__(self, *networks):
        self._networks = {network.name: network for network in networks}

    def connector(self, name, mode):
        """Test mode is the same here."""
        return self._networks[name]


class WorkerThread:
    """A worker in a thread of this process. Only for what ends by itself: a worker that loses patience ends the process."""

    def __init__(self, publisher, address, threads=8, sender=None):
        self.worker = Worker(publisher, address, threads=threads, sender=sender)
        self._thread = threading.Thread(target=self.worker.run)

    def __enter__(self):
        self._thread.start()
        return self.worker

    def __exit__(self, *_):
        self.worker.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()


class WorkerProcess:
    """A worker on the Board in a process of its own, ready when entered; it may send events to these ports of this machine."""

    def __init__(self, desk, threads=8, ports=()):
        self._command = [sys.executable, "-m", "tests.delivery", desk.address, desk.key, str(threads), *map(str, ports)]

    def __enter__(self):
        self.popen = subprocess.Popen(self._command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE)
        self.name = self.popen.stdout.readline().decode().strip()
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGKILL)
        self.popen.wait()
        self.popen.stdout.close()

    def signal(self, number):
        """Sends a signal to all of it, if it still runs."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, number)


def _play(part):
    if isinstance(part, BaseException):
        raise part.with_traceback(None)
    return part


def _bind(address):
    if not database.deferred:
        database.close_all()
    open_pool(address, connections=20)


def _execute(address, statement):
    connection = psycopg2.connect(address)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()


def _main(address, key, threads, *ports):
    """A worker as the command starts it, apart from its network."""
    logging.basicConfig(level="WARNING")
    open_pool(address, connections=threads + 4)
    vault, fetcher = Vault((key,)), Fetcher(frozenset(("127.0.0.1", int(port)) for port in ports))
    worker = Worker(Publisher(Networks(Board(address)), vault, None), address, threads=threads, sender=Sender(vault, fetcher))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    print(worker.name, flush=True)
    worker.run()


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
