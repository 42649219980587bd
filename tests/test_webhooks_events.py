"""Events are written by what makes them: one for each change, whatever way it comes about, and for nobody else."""

import itertools
import threading
from types import SimpleNamespace

import psycopg2
import pytest

from platforms.base import Published
from platforms.errors import Rejected, Unconfirmed
from storage import deliveries, posts, queue, retention
from storage.database import database
from storage.models import Account, Client
from storage.posts import Post, Target
from storage.webhooks import Webhook
from tests.delivery import DONE, ERROR, LEASE, Told
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.service import Member

POSTS = ["post.published", "post.partially_published", "post.failed", "post.unconfirmed"]
NO = Rejected("the platform said no")
DOUBT = Unconfirmed("nobody knows")


@pytest.fixture
def hook(desk):
    """Makes a webhook for all events of the desk's team, or as is said."""
    def make(caller=desk.caller, **values):
        with desk._connected():
            return Webhook.create(caller, desk.vault, 20, **{"url": "https://hooks.example.com/", "client_id": None,
                                                             "events": [*POSTS, "account.disconnected"], **values})[0]
    return make


def told(desk, webhook):
    """The types of its events, the oldest first."""
    return [row[0] for row in desk.sql("SELECT type FROM deliveries WHERE webhook_id = %s ORDER BY created_at", webhook.id)]


def events(webhook):
    """What it will be sent, the oldest first."""
    with database.connection_context():
        jobs = sorted(deliveries.claim("one", limit=99, lease=LEASE), key=lambda job: job.created_at)
    return [job.event() for job in jobs if job.webhook_id == webhook.id]


@pytest.mark.parametrize("outcomes, event", [
    ([DONE], "published"), ([NO], "failed"), ([DOUBT], "unconfirmed"), ([DONE, DONE], "published"), ([NO, NO], "failed"),
    ([DONE, NO], "partially_published"), ([DONE, DOUBT], "partially_published"), ([NO, DOUBT], "failed")],
    ids=lambda value: value if isinstance(value, str) else " ".join(type(one).__name__ for one in value))
def test_one_event_says_what_became_of_a_post_as_the_api_does(desk, hook, outcomes, event):
    webhook = hook()
    [first, *_] = desk.targets([desk.account() for _ in outcomes])
    post_id = desk.row(first).post_id
    desk.run(desk.publisher(Told(publish=list(outcomes))))
    with desk._connected():
        read = posts.read(desk.caller, post_id)
    [said] = events(webhook)
    assert (said["type"], said["data"]) == (f"post.{event}", read)
    assert read["status"] == event and len(read["targets"]) == len(outcomes)


def test_a_post_that_is_found_after_all_gives_both_events(desk, hook):
    webhook, network = hook(), Told(publish=[DOUBT], find=[Published("9", "https://told.example/9")])
    target = desk.target(desk.account())
    desk.run(desk.publisher(network))
    desk.run(desk.publisher(network), target)
    first, second = events(webhook)
    assert (first["type"], second["type"]) == ("post.unconfirmed", "post.published")
    assert first["data"]["targets"][0].keys() == {"platform", "status", "error"}
    assert second["data"]["targets"][0]["postId"] == "9" and first["timestamp"] <= second["timestamp"]


def test_what_is_tried_again_is_told_again(desk, hook):
    webhook, target = hook(), desk.target(desk.account())
    for outcome in (NO, NO, DONE):
        desk.run(desk.publisher(Told(publish=[outcome])))
        with desk._connected(), database.atomic():
            posts.retry(Post.get_by_id(desk.row(target).post_id), include_unconfirmed=False)
    assert told(desk, webhook) == ["post.failed", "post.failed", "post.published"]


def test_canceling_the_rest_completes_a_post(desk, hook):
    webhook = hook()
    first, second = desk.targets([desk.account(), desk.account()])
    desk.move(second, next_at="now() + interval '1 hour'")
    desk.run(desk.publisher(Told(publish=[DONE])))
    assert told(desk, webhook) == []
    with desk._connected():
        assert posts.cancel(Post.get_by_id(desk.row(first).post_id)) == 1
    assert told(desk, webhook) == ["post.partially_published"]
    other = desk.target(desk.account())
    with desk._connected():
        posts.cancel(Post.get_by_id(desk.row(other).post_id))
    assert told(desk, webhook) == ["post.partially_published"]      # a canceled post is no news


def test_targets_that_end_in_one_statement_make_one_event(desk, hook):
    webhook = hook()
    targets = desk.targets([desk.account() for _ in range(3)])
    with desk._connected():
        for job in desk.claim():
            queue.start_sending(job)
    desk.sql("UPDATE targets SET leased_until = now() - interval '1 s'")
    with desk._connected():
        assert len(queue.sweep(ERROR)) == 3
    assert told(desk, webhook) == ["post.unconfirmed"] and len(events(webhook)[0]["data"]["targets"]) == len(targets)


@pytest.mark.parametrize("count", [2, 5])
def test_targets_that_end_at_the_same_instant_make_one_event(desk, hook, count):
    """Each in a transaction that has ended its target before the first of them commits."""
    webhook, targets = hook(), desk.targets([desk.account() for _ in range(count)])
    desk.claim()
    end = ("UPDATE targets SET status = 'published', stage = NULL, leased_until = NULL, next_at = NULL, platform_post_id = '1' "
           "WHERE id = %s")
    desk.sql("UPDATE targets SET stage = 'sending'")
    with desk.session() as (connection, cursor):
        cursor.execute(end, (targets[0],))
        others = [threading.Thread(target=execute, args=(desk.address, end, target)) for target in targets[1:]]
        for thread in others:
            thread.start()
        desk.wait_for("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted HAVING count(*) = %s", count - 1)
        assert told(desk, webhook) == []
        connection.commit()
    for thread in others:
        thread.join()
    assert told(desk, webhook) == ["post.published"]
    assert {target["status"] for target in events(webhook)[0]["data"]["targets"]} == {"published"}


def test_any_number_of_posts_may_end_in_one_statement(desk, hook):
    """The server has room for some thousand locks, whoever takes them."""
    webhook, number = hook(), 2000
    desk.sql("INSERT INTO posts (id, team_id, mode, user_id, caption) SELECT 'p' || n, %s, 'live', %s, '' "
             "FROM generate_series(1, %s) AS n", desk.team.id, desk.caller.user_id, number)
    desk.sql("INSERT INTO targets (id, team_id, mode, post_id, position, platform, post_type, caption, due_at, next_at) "
             "SELECT id, team_id, mode, id, 0, 'told', 'text', '', now(), now() FROM posts")
    with desk.session() as (connection, cursor):
        cursor.execute("UPDATE targets SET status = 'unconfirmed', restored = true")
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert cursor.fetchone()[0] <= 1024
        connection.commit()
    assert told(desk, webhook) == ["post.unconfirmed"] * number


def execute(address, statement, *values):
    """Runs a statement on a connection of its own."""
    connection = psycopg2.connect(address)
    connection.autocommit = True
    connection.cursor().execute(statement, values)
    connection.close()


def test_whoever_changes_the_post_does_not_hold_up_its_end(desk, hook):
    webhook, target = hook(), desk.target(desk.account())
    with desk.session() as (_, cursor):
        cursor.execute("UPDATE posts SET caption = 'new'")      # as PATCH does before it waits for the targets
        desk.run(desk.publisher(Told(publish=[DONE])))
        assert told(desk, webhook) == ["post.published"]
    assert desk.row(target).status == "published"


def test_what_is_rolled_back_was_no_event(desk, hook):
    webhook, account = hook(), desk.account()
    with desk.session() as (connection, cursor):
        cursor.execute("UPDATE accounts SET status = 'disconnected', credentials = NULL")
        cursor.execute("SELECT count(*) FROM deliveries")
        assert cursor.fetchone() == (1,)
        connection.rollback()
    assert told(desk, webhook) == [] and account


def test_no_post_waits_for_a_webhook_that_is_removed_at_this_moment(desk, hook):
    leaving, staying = hook(), hook()
    target = desk.target(desk.account())
    with desk.session() as (connection, cursor):
        cursor.execute("DELETE FROM webhooks WHERE id = %s", (leaving.id,))     # as is done at last
        desk.run(desk.publisher(Told(publish=[DONE])))
        assert desk.row(target).status == "published" and told(desk, staying) == ["post.published"]
        connection.commit()


def test_a_removed_webhook_hears_nothing_and_goes_with_its_log_bit_by_bit(desk, hook, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    leaving, staying = hook(), hook()
    for _ in range(3):
        desk.target(desk.account())
        desk.run(desk.publisher(Told(publish=[DONE])))
    with desk._connected():
        assert leaving.remove() and not leaving.remove() and leaving.edit({"status": "disabled"}) is None
    assert told(desk, leaving) == ["post.published"] * 3        # nobody has waited until they were gone
    desk.target(desk.account())
    desk.run(desk.publisher(Told(publish=[DONE])))
    with desk._connected():
        assert {job.webhook_id for job in deliveries.claim("one", limit=99, lease=LEASE)} == {staying.id}
        retention.tidy()
        assert [row.id for row in Webhook.select()] == [staying.id] and told(desk, staying) == ["post.published"] * 4
        assert desk.sql("SELECT count(*) FROM deliveries") == [(4,)]
        staying.remove()
    target = desk.target(desk.account())
    desk.run(desk.publisher(Told(publish=[DONE])))
    assert desk.row(target).status == "published" and desk.sql("SELECT count(*) FROM deliveries") == [(4,)]


def test_an_account_that_needs_a_person(desk, hook):
    webhook, account = hook(), desk.account()
    with desk._connected():
        row = Account.get_by_id(account).disconnect()
        row.disconnect()
        Account.update(status="connected").where(Account.id == account).execute()
    [said] = events(webhook)
    assert (said["type"], said["data"]) == ("account.disconnected", row.to_dict()) and said["data"]["displayName"] == "Ann"


def test_who_is_told(desk, hook):
    """By team, mode, client and what was asked for; accounts are live."""
    with desk._connected():
        other = Member("").caller("live")
        corner, elsewhere = (Client.add(team_id=desk.team.id, name=name).id for name in ("corner", "elsewhere"))
    sandbox = SimpleNamespace(team_id=desk.team.id, mode="test", user_id=desk.caller.user_id)
    hooks = {"all": hook(), "posts": hook(events=["post.published"]), "corner": hook(client_id=corner),
             "elsewhere": hook(client_id=elsewhere), "test": hook(sandbox), "other team": hook(other)}
    for owner in (None, corner):
        desk.target(desk.account())
        desk.sql("UPDATE posts SET client_id = %s WHERE id = (SELECT post_id FROM targets WHERE status = 'scheduled')", owner)
        desk.run(desk.publisher(Told(publish=[DONE])))
    accounts = [desk.account() for _ in range(2)]
    desk.sql("UPDATE accounts SET client_id = %s WHERE id = %s", corner, accounts[0])
    desk.sql("UPDATE accounts SET status = 'disconnected', credentials = NULL WHERE id = ANY (%s)", accounts)
    heard = {name: sorted(told(desk, webhook)) for name, webhook in hooks.items()}
    both = ["account.disconnected", "post.published"]
    assert heard == {"all": sorted(both * 2), "posts": ["post.published"] * 2, "corner": both, "elsewhere": [], "test": [],
                     "other team": []}


def test_without_a_webhook_nothing_is_written(desk):
    target = desk.target(desk.account())
    desk.run(desk.publisher(Told(publish=[DONE])))
    assert desk.row(target).status == "published" and desk.sql("SELECT count(*) FROM deliveries") == [(0,)]


def test_the_database_derives_the_status_of_a_post_as_we_do(desk):
    known = ("scheduled", "publishing", "published", "failed", "unconfirmed", "canceled")
    for count in (1, 2, 3):
        for statuses in itertools.combinations_with_replacement(known, count):
            assert desk.sql("SELECT post_status(%s)", list(statuses)) == [(posts.overall(list(statuses)),)], statuses


def test_a_snapshot_holds_all_that_is_shown(desk, hook):
    webhook = hook()
    desk.target(desk.account())
    desk.run(desk.publisher(Told(publish=[DONE])))
    [[snapshot]] = desk.sql("SELECT snapshot FROM deliveries WHERE webhook_id = %s", webhook.id)
    assert snapshot["targets"][0].keys() == {column.name for column in posts.SHOWN} - {Target.post_id.name}
