"""What is made of a database that was restored from a backup: whose sending is in doubt, what still works, what is kept."""

import json
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from peewee import OperationalError

from handlers.cli import posthorn
from handlers.up import Up
from platforms.base import Absent, Published
from platforms.worker import Worker
from storage import posts
from storage.lineage import PREFIX, Lineage, gaps
from storage.objects import StoreUnavailable
from storage.models import User
from storage.people import begin_session, new_link
from tests.delivery import DONE, ERROR, Told, _bind
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.service import free_port


@pytest.fixture(scope="module", autouse=True)
def service(environ):
    """Made before the database that some of these tests have of their own, to which the models are bound meanwhile."""


class Memory(dict):
    """A store that remembers names, or is away."""

    away, meanwhile = False, None       # `meanwhile` is done once, before the next answer

    def list(self, prefix):
        if self.away:
            raise StoreUnavailable("the object store cannot be reached")
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return [(key, 1, None) for key in sorted(self) if key.startswith(prefix)]

    def put(self, key, file, size, content_type):
        if key in self:
            raise StoreUnavailable("the object store refused (PreconditionFailed)")
        self[key] = file.read()

    delete = dict.pop


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def history(desk, memory):
    desk.sql("DELETE FROM lineages")
    desk.sql("INSERT INTO lineages (begun_at, seen_at) VALUES (now() - interval '9 days', now() - interval '2 hours')")
    return Lineage(memory, ERROR)


def elsewhere(desk):
    desk.sql("UPDATE lineages SET place = 'elsewhere'")


def sent(desk):
    """The journal grows, and it is time to remember that."""
    desk.sql("INSERT INTO attempts (team_id, target_id, fence, step) VALUES ('t', 't', 1, 'sending')")
    desk.sql("UPDATE lineages SET seen_at = now() - interval '1 minute'")


@pytest.fixture
def targets(desk):
    """One in each state that a backup may hold it in, and those that nobody can have sent since."""
    names = ("due", "put off", "preparing", "sending", "processing", "unconfirmed", "not due", "given up", "published",
             "of the sandbox")
    found = {name: desk.target(desk.account()) for name in names}
    due, ahead = "now() - interval '3 hours'", "now() + interval '1 hour'"
    with as_left_there(desk):
        desk.move(found["due"], due_at=due)
        desk.move(found["put off"], due_at=due, next_at=ahead, tries=3)
        for stage in ("preparing", "sending", "processing"):
            desk.move(found[stage], status="'publishing'", stage=f"'{stage}'", leased_until=ahead, sending_at=due, fence=4)
        desk.move(found["unconfirmed"], status="'unconfirmed'", sending_at=due, looks=3)
        desk.move(found["not due"], due_at=ahead, next_at=ahead)
        desk.move(found["given up"], status="'unconfirmed'", next_at=None, sending_at=due)
        desk.move(found["published"], status="'published'", next_at=None, url="'x'", finished_at=due)
        desk.move(found["of the sandbox"], mode="'test'")
    return found


@contextmanager
def as_left_there(desk):
    """As tests.service.as_left, on the connection of the desk."""
    desk.sql("SET session_replication_role = replica")
    yield
    desk.sql("RESET session_replication_role")


def test_what_may_have_been_sent_is_in_doubt_and_nothing_else(desk, history, targets):
    others = {name: desk.row(targets[name]) for name in ("not due", "given up", "published", "of the sandbox")}
    elsewhere(desk)
    assert history.verify().doubtful == 6
    assert history.verify() is None
    for name, target in targets.items():
        row = desk.row(target)
        if name in others:
            assert (row.status, row.fence, row.restored) == (others[name].status, others[name].fence, False)
            continue
        assert (row.status, row.stage, row.leased_until, row.restored) == ("unconfirmed", None, None, True), name
        assert row.next_in <= 0 and row.fence >= 1_000_000 and row.error == ERROR and row.looks == 0
        since = desk.sql("SELECT min(seen_at) FROM lineages")[0][0]     # nobody knows when since
        assert row.sending_at == since if name in ("due", "put off") else row.sending_at < since


def test_nothing_is_in_doubt_where_the_journal_only_grew(desk, history, memory, targets):
    for _ in range(2):
        assert history.verify() is None
        sent(desk)
        history.mark()
        assert len(memory) == 1
    assert Lineage(memory, ERROR).verify() is None and desk.row(targets["due"]).status == "scheduled"
    memory.away = True
    history.mark()


def test_what_others_leave_beside_the_marks_is_none(desk, history, memory):
    assert history.verify() is None
    [[lineage]] = desk.sql("SELECT id FROM lineages")
    strange = {f"{PREFIX}{lineage}/", f"{PREFIX}{lineage}/.keep", f"{PREFIX}{lineage}/old/{10 ** 12:020}"}
    memory.update(dict.fromkeys(strange, b""))
    sent(desk)
    history.mark()
    assert history.verify() is None and not history.is_restored() and len(memory) == 4 and strange < set(memory)


def test_a_store_that_was_away_at_the_start_is_asked_until_it_answers(desk, history, memory, targets, caplog):
    [[lineage]] = desk.sql("SELECT id FROM lineages")
    memory[f"{PREFIX}{lineage}/{10 ** 12:020}"] = b"."
    memory.away = True
    assert history.verify() is None and "not known for sure (StoreUnavailable)" in caplog.text
    memory.away = False
    desk.sql("UPDATE lineages SET seen_at = now() - interval '1 minute'")
    history.mark()
    assert desk.row(targets["due"]).restored and desk.sql("SELECT count(*) FROM lineages") == [(2,)]


def test_a_mark_that_is_there_already_is_not_put_again(desk, history, memory, caplog):
    """The store refuses to replace it."""
    other = Lineage(memory, ERROR)
    assert history.verify() is None and other.verify() is None
    sent(desk)
    history.mark()
    desk.sql("UPDATE lineages SET seen_at = now() - interval '1 minute'")
    other.mark()
    assert len(memory) == 1 and not caplog.text


def test_a_journal_that_ends_before_what_the_store_remembers(desk, history, memory, targets):
    assert history.verify() is None
    [[lineage]] = desk.sql("SELECT id FROM lineages")
    memory[f"{PREFIX}{lineage}/{10 ** 12:020}"] = b"."
    assert history.is_restored() and Lineage(memory, ERROR).verify().doubtful == 6 and not history.is_restored()
    desk.sql("UPDATE lineages SET seen_at = now() - interval '1 minute'")
    before = desk.sql("SELECT id, seen_at FROM lineages ORDER BY begun_at")
    history.mark()                          # by a worker that has not heard of it
    assert desk.sql("SELECT id, seen_at FROM lineages ORDER BY begun_at") == before
    history.mark()
    assert any(key.startswith(f"{PREFIX}{before[1][0]}/") for key in memory)


def test_who_starts_beside_a_worker_that_goes_on_sees_no_restore(desk, history, memory, targets):
    """What the other has the store remember while that is asked is newer than what was read of the journal before."""
    def goes_on():
        sent(desk)
        history.mark()

    assert history.verify() is None
    for look in (Lineage(memory, ERROR).is_restored, Lineage(memory, ERROR).verify):
        memory.meanwhile = goes_on
        assert not look() and memory.meanwhile is None and len(memory) == 1
    assert desk.row(targets["due"]).status == "scheduled"


def test_a_history_that_began_by_a_clock_that_was_ahead(desk, history, memory):
    assert history.verify() is None
    desk.sql("UPDATE lineages SET begun_at = begun_at + interval '20 days', seen_at = now() + interval '11 days'")
    desk.sql("INSERT INTO attempts (team_id, target_id, fence, step) VALUES ('t', 't', 1, 'sending')")
    history.mark()
    assert len(memory) == 1
    elsewhere(desk)
    assert history.verify() is not None and history.verify() is None


def test_what_the_store_knows_of_a_history_that_was_ended_says_nothing_of_the_next(desk, history, memory, targets):
    [[lineage]] = desk.sql("SELECT id FROM lineages")
    memory[f"{PREFIX}{lineage}/{10 ** 12:020}"] = b"."
    memory.meanwhile = Lineage(memory, ERROR).verify        # another worker is faster
    assert history.verify() is None and desk.row(targets["due"]).restored
    assert desk.sql("SELECT count(*) FROM lineages") == [(2,)]


def test_two_that_notice_it_at_once_begin_one_history(desk, history, targets):
    elsewhere(desk)
    [[lineage]] = desk.sql("SELECT id FROM lineages")
    assert history.begin_anew(lineage).doubtful == 6 and history.begin_anew(lineage) is None
    [[lineage]] = desk.sql("SELECT id FROM lineages ORDER BY begun_at DESC LIMIT 1")
    assert history.begin_anew(lineage) is None          # nor is anything wrong with the new one
    [(_, seen_at), (begun_at, _)] = desk.sql("SELECT begun_at, seen_at FROM lineages ORDER BY begun_at")
    with desk._connected():
        assert gaps() == [(seen_at, begun_at)]


def test_what_works_once_works_no_more(desk, history):
    with desk._connected():
        user = User.get(User.team_id == desk.team.id)
        begin_session(user, "link", "here")
        new_link(user)
    elsewhere(desk)
    history.verify()
    assert desk.sql("SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM sign_in_links)") == [(0, 0)]
    assert desk.sql("SELECT actor FROM audit WHERE action = 'database.restored' ORDER BY id DESC LIMIT 1") == [("worker",)]


def in_doubt(desk, history, network, receipt="{}", options=None):
    """What becomes of a target that was in the backup once the network was asked."""
    target = desk.target(desk.account(), options=options)
    desk.sql("UPDATE targets SET receipt = %s WHERE id = %s", receipt, target)
    elsewhere(desk)
    history.verify()
    desk.run(desk.publisher(network))
    return desk.row(target)


def test_an_absence_by_a_lost_receipt_is_no_proof(desk, history):
    network = Told(find=[Absent()], find_retries=True)
    row = in_doubt(desk, history, network)
    assert (row.status, row.looks, network.verbs()) == ("unconfirmed", 1, ["find"])


def test_what_follows_a_post_that_was_found_is_not_made_again(desk, history):
    network = Told(find=[Published("7", "https://told.example/7")])
    row = in_doubt(desk, history, network, options={"firstComment": "hello"})
    assert (row.status, row.platform_post_id, row.error["retryable"], network.verbs()) == ("published", "7", False, ["find"])


def test_a_post_that_was_public_in_the_backup_needs_no_look(desk, history):
    network, public = Told(), {"public": {"id": "8", "url": "https://told.example/8"}}
    row = in_doubt(desk, history, network, receipt=json.dumps(public), options={"firstComment": "hello"})
    assert (row.status, row.platform_post_id, "restored from a backup" in row.error["message"], network.verbs()) == (
        "published", "8", True, [])


def test_a_person_who_looked_may_have_it_sent_again_with_all_that_follows(desk, history):
    network = Told(find=[None], publish=[DONE], follow=[[]])
    target = in_doubt(desk, history, network, options={"firstComment": "hello"})
    with desk._connected():
        posts.retry(posts.Post.get_by_id(target.post_id), include_unconfirmed=True)
    for _ in range(2):
        desk.run(desk.publisher(network), target.id)
    assert desk.row(target.id).status == "published" and network.verbs() == ["find", "prepare", "publish", "follow"]


# The worker.

class Doubtful:
    """Says as often as it is told that nobody knows."""

    def __init__(self, times):
        self.times, self.asked = times, 0

    def verify(self):
        self.asked += 1
        if self.asked <= self.times:
            raise OperationalError("away")


def test_a_worker_claims_nothing_before_it_is_sure_and_is_not_sure_after_the_database_was_away(desk, address, monkeypatch):
    history, target = Doubtful(times=2), desk.target(desk.account())
    worker = Worker(desk.publisher(Told(publish=[DONE])), address, threads=1, lineage=history)
    for name in ("_rest", "_sleep"):
        monkeypatch.setattr(worker, name, lambda seconds: None)
    for fence in (0, 0, 1):
        worker._try_turn()
        assert desk.row(target).fence == fence
    worker._try_turn()
    assert history.asked == 3
    monkeypatch.setattr(worker, "_sleep", lambda seconds: Doubtful(times=1).verify())
    worker._try_turn()
    monkeypatch.setattr(worker, "_sleep", lambda seconds: None)
    worker._try_turn()
    worker._hang_up()
    worker._drain()
    assert history.asked == 4


# The command.

@pytest.fixture
def typed(environ, address, desk):
    def of(*arguments, **settings):
        done = CliRunner().invoke(posthorn, arguments, env={**environ, "DATABASE_URL": address, **settings})
        _bind(address)
        return done.exit_code, done.output
    return of


def test_the_command_does_what_a_worker_would(desk, history, targets, typed):
    assert typed("media", "sweep", "--dry-run")[0] == 0
    elsewhere(desk)
    assert typed("media", "sweep") == (1, "Error: this database was restored from a backup: run `posthorn restored` first\n")
    status, said = typed("restored")
    assert status == 0 and said.startswith("6 targets may have been sent since ") and desk.row(targets["due"]).restored


def test_the_command_needs_no_store(desk, history, targets, typed):
    """What was put back in its old place is known by the store alone."""
    status, said = typed("restored", S3_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}")
    assert status == 0 and said.startswith("6 targets may have been sent since ") and desk.row(targets["due"]).restored


def test_all_of_one_machine_may_have_come_from_a_backup(environ, address, desk, targets, tmp_path):
    said = []
    up = Up(tmp_path, "127.0.0.1", free_port(), {**environ, "DATABASE_URL": address}, said.append, restored=True)
    try:
        up._prepare()
    finally:
        _bind(address)
    assert said[-1] == "6 targets may have been sent since the backup; they are looked for and not sent again"
    assert desk.row(targets["due"]).restored


def test_a_database_that_was_only_moved_publishes_what_is_due(desk, history, targets, typed):
    elsewhere(desk)
    assert typed("restored", "--moved") == (0, "the place of the database is noted\n")
    assert not desk.row(targets["due"]).restored and history.verify() is None
