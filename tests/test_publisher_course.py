"""A publisher on its way: what it keeps, whose credentials it uses, how it stops, and that nothing is public twice."""

import io
import random
import time
from datetime import timedelta

import pytest

from platforms.accounts import owner
from platforms.base import Absent, Processing, Published, Waiting
from platforms.errors import Disconnected, Rejected, Unavailable, Unconfirmed
from platforms.publisher import Publisher
from storage import queue
from storage.database import database
from storage.models import Media
from storage.objects import Objects
from storage.secrets import Vault, new_key
from tests.delivery import BUG, DONE, ERROR, Networks, Told, take_away
from tests.delivery import address, desk, whole_desk  # fixtures


# Receipts.

def test_each_finished_step_is_kept_and_the_next_try_goes_on_behind_it(desk):
    network = Told(prepare=[[{"a": 1}, {"a": 1, "b": 2}, Unavailable("no")], [{"a": 1, "b": 2, "c": 3}]], publish=[DONE])
    publisher = desk.publisher(network)
    target = desk.target(desk.account())
    desk.run(publisher)
    assert desk.row(target).receipt == {"a": 1, "b": 2}
    desk.run(publisher, target)
    assert [call for call in network.calls if call[0] != "refresh"] == [
        ("prepare", {}), ("prepare", {"a": 1, "b": 2}), ("publish", {"a": 1, "b": 2, "c": 3})]


def test_a_step_is_in_the_database_before_the_next_begins(desk):
    seen = []

    class Watched(Told):
        def prepare(self, account, content, receipt):
            for number in range(3):
                yield {"step": number}
                seen.append(desk.row(content.key).receipt)

        def publish(self, account, content, receipt):
            row = desk.row(content.key)
            seen.append((row.stage, row.receipt, row.sending_at is not None))
            return DONE

    desk.tried(Watched())
    assert seen == [{"step": 0}, {"step": 1}, {"step": 2}, ("sending", {"step": 2}, True)]


def test_a_waiting_preparation_gives_its_thread_back_and_goes_on_with_its_receipt(desk):
    network = Told(prepare=[[{"a": 1}, Waiting({"a": 1, "job": 2}, 3)], [{"done": 3}]], publish=[DONE])
    publisher = desk.publisher(network)
    target = desk.target(desk.account())
    desk.run(publisher)
    row = desk.row(target)
    assert (row.stage, row.receipt, row.leased_until) == ("preparing", {"a": 1, "job": 2}, None) and 2 < row.next_in <= 3
    assert desk.claim() == []
    desk.run(publisher, target)
    assert desk.row(target).status == "published" and ("prepare", {"a": 1, "job": 2}) in network.calls


def test_what_the_network_has_lost_is_left_out_of_the_receipt(desk):
    network = Told(prepare=[[{"media": [1, 2]}]], publish=[Unavailable("lost", receipt={"media": []})])
    assert desk.tried(network).receipt == {"media": []}


def test_nothing_is_sent_by_a_worker_that_lost_the_target_while_preparing(desk):
    class Slow(Told):
        def prepare(self, account, content, receipt):
            yield {"step": 1}
            desk.swept(content.key)
            desk.claimed(content.key, "ben")

    network = Slow(publish=[DONE])
    row = desk.tried(network)
    assert network.verbs() == [] and (row.worker, row.stage, row.fence) == ("ben", "preparing", 2)


# Accounts.

def test_credentials_are_renewed_and_kept_before_they_are_used(desk):
    used = []

    class Fresh(Told):
        def publish(self, account, content, receipt):
            used.append(account.credentials)
            return DONE

    account = desk.account()
    target = desk.target(account)
    desk.run(desk.publisher(Fresh(refresh=[{"token": "second"}])))
    assert used == [{"token": "second"}] == [desk.credentials(account)] and desk.row(target).status == "published"


def test_refused_credentials_are_renewed_once_and_the_post_is_sent_with_the_new_ones(desk):
    network = Told(publish=[Disconnected("expired"), DONE], **{"refresh!": [{"token": "second"}]})
    account = desk.account()
    target = desk.target(account)
    publisher = desk.publisher(network)
    desk.run(publisher)
    row = desk.row(target)
    assert row.status == "scheduled" and row.next_in <= 0 and desk.credentials(account) == {"token": "second"}
    desk.run(publisher)
    assert desk.row(target).status == "published" and connected(desk, account)
    assert [call for call in network.calls if call[0].startswith("refresh")] == [
        ("refresh", {"token": "first"}), ("refresh!", {"token": "first"}), ("refresh", {"token": "second"})]


def connected(desk, account):
    return desk.sql("SELECT status FROM accounts WHERE id = %s", account) == [("connected",)]


@pytest.mark.parametrize("course", [
    {"publish": [Disconnected("no")]},
    {"publish": [Disconnected("no")], "refresh!": [Disconnected("no")]},
    {"publish": [Disconnected("no")] * 2, "refresh!": [{"token": "second"}]},
    {"prepare": [[Disconnected("no")]] * 2, "refresh!": [{"token": "second"}, {"token": "third"}]},
    {"refresh": [Disconnected("no")]}],
    ids=["no way to renew", "renewing refused", "refused again", "refused again while preparing", "refused before"])
def test_an_account_whose_credentials_have_ended_waits_for_a_person(desk, course):
    network = Told(**course)
    account = desk.account()
    target, next_one = desk.target(account), desk.target(account)
    publisher = desk.publisher(network)
    for _ in range(2):
        desk.run(publisher)
        if desk.row(target).status == "failed":
            break
    row = desk.row(target)
    assert (row.status, row.error) == ("failed", {"code": "invalid_state", "message": "no", "retryable": False})
    assert not connected(desk, account)
    network.calls.clear()
    desk.run(publisher)
    row = desk.row(next_one)
    assert (row.status, row.error["code"], network.calls) == ("failed", "invalid_state", [])


@pytest.mark.parametrize("trouble", [Unavailable("no"), Unconfirmed("no")], ids=["unavailable", "no answer"])
def test_an_outage_while_renewing_does_not_disconnect_the_account(desk, trouble):
    network = Told(publish=[Disconnected("expired"), DONE], **{"refresh!": [trouble]})
    account = desk.account()
    target = desk.target(account)
    publisher = desk.publisher(network)
    desk.run(publisher)
    assert (desk.row(target).status, connected(desk, account)) == ("scheduled", True) and desk.row(target).next_in > 4
    desk.run(publisher, target)
    assert desk.row(target).status == "published"


def test_an_account_that_was_connected_again_meanwhile_stays_connected_and_the_post_goes_out_on_it(desk):
    class Meanwhile(Told):
        def publish(self, account, content, receipt):
            if account.credentials == {"token": "first"}:
                desk.sql("UPDATE accounts SET credentials = %s", sealed)
                raise Disconnected("the old ones")
            return DONE

    account = desk.account()
    sealed = desk.vault.seal(owner(desk.team.id, account), {"token": "by a person"})
    target = desk.target(account)
    publisher = desk.publisher(Meanwhile())
    desk.run(publisher)
    assert desk.row(target).status == "scheduled" and connected(desk, account)
    desk.run(publisher)
    assert desk.row(target).status == "published" and desk.credentials(account) == {"token": "by a person"}


def test_the_posts_of_an_account_that_was_removed_fail_and_no_network_is_called(desk):
    network, account = Told(publish=[DONE]), desk.account()
    target = desk.target(account)
    desk.sql("UPDATE accounts SET status = 'disconnected', credentials = NULL WHERE id = %s", account)
    desk.run(desk.publisher(network))
    row = desk.row(target)
    assert (row.status, row.error["code"], network.calls) == ("failed", "invalid_state", [])


def test_credentials_under_a_lost_key_are_a_matter_for_a_person(desk):
    network, account = Told(publish=[DONE]), desk.account()
    target = desk.target(account)
    desk.run(Publisher(Networks(network), Vault((new_key(),)), None))
    row = desk.row(target)
    assert (row.status, row.error["code"], network.calls) == ("failed", "invalid_state", [])
    assert "key" in row.error["message"] and not connected(desk, account)


# The rest of the way.

def test_the_network_gets_the_files_in_their_order_and_a_key_that_stays_the_same(desk, store_address):
    store = Objects(store_address.endpoint_url, store_address.access_key, store_address.secret_key, store_address.bucket,
                    public_url=store_address.public_url)
    store.prepare()
    seen = []

    class Reader(Told):
        def publish(self, account, content, receipt):
            seen.append((content.key, content.caption, [(item.open().read(), item.bytes) for item in content.media]))
            return DONE

    with database.connection_context():
        files = [Media.add(team_id=desk.team.id, mode="live", user_id=desk.caller.user_id, key=f"media/{desk.team.id}-{number}",
                           state="ready", mime_type="image/png", bytes=number + 3) for number in range(3)]
    for number, file in enumerate(files):
        store.put(file.key, io.BytesIO(b"png" + b"x" * number), number + 3, "image/png")
    order = [files[2], files[0], files[1]]
    target = desk.target(None, caption="Fresh bread", media=order)
    desk.run(Publisher(Networks(Reader()), desk.vault, store))
    assert seen == [(target, "Fresh bread", [(b"pngxx", 5), (b"png", 3), (b"pngx", 4)])]


def test_a_stopping_publisher_gives_back_what_it_has_not_begun_to_send(desk):
    network = Told(prepare=[[{"step": 1}]], publish=[DONE])
    publisher = desk.publisher(network)
    target = desk.target(desk.account())
    publisher.stopping.set()
    desk.run(publisher)
    row = desk.row(target)
    assert (row.status, row.leased_until, row.tries, row.receipt) == ("scheduled", None, 0, {}) and row.next_in <= 0
    assert network.verbs() == [] and desk.steps(target) == ["preparing", "scheduled"]


def test_a_publisher_that_stops_in_the_middle_keeps_the_finished_steps(desk):
    class Stopping(Told):
        def prepare(self, account, content, receipt):
            yield {"step": 1}
            publisher.stopping.set()
            yield {"step": 2}
            self.calls.append(("third step", {}))

    network = Stopping(publish=[DONE])
    publisher = desk.publisher(network)
    target = desk.target(desk.account())
    desk.run(publisher)
    row = desk.row(target)
    assert (row.status, row.receipt, row.tries, network.verbs()) == ("scheduled", {"step": 2}, 0, [])


def test_a_publisher_that_stops_while_sending_writes_down_what_came_of_it(desk):
    class Stopping(Told):
        def publish(self, account, content, receipt):
            publisher.stopping.set()
            return DONE

    publisher = desk.publisher(Stopping())
    target = desk.target(desk.account())
    desk.run(publisher)
    assert desk.row(target).status == "published"


def test_an_answer_that_makes_no_sense_leaves_the_post_in_doubt(desk):
    for nonsense in (None, "published", Published(None, None)):
        target = desk.tried(Told(publish=[nonsense])).id
        desk.swept(target)
        assert desk.row(target).status == "unconfirmed"


def test_what_came_of_a_sending_is_written_down_although_the_database_was_away(desk, address, postgres_url):
    class Outage(Told):
        def publish(self, account, content, receipt):
            take_away(address, postgres_url, 0.8)
            return DONE

    started = time.monotonic()
    row = desk.tried(Outage())
    assert (row.status, row.platform_post_id) == ("published", "7")
    assert 0.8 < time.monotonic() - started < 3


# Whatever happens, in whatever order.

class Fickle(Told):
    """A network of which nobody knows what it does next, and which counts what it really made public."""

    def __init__(self, chance, **abilities):
        super().__init__(**abilities)
        self.chance, self.public = chance, {}

    def prepare(self, account, content, receipt):
        """Sometimes ends in the middle."""
        for number in range(receipt.get("step", 0), 2):
            self._trouble(0.15, Unavailable("no"), BUG, Disconnected("no"))
            yield Waiting({"step": number}, 0) if self.chance.random() < 0.1 else {"step": number + 1}

    def publish(self, account, content, receipt):
        """Public or not, whatever it then says of it as far as it is honest."""
        self._trouble(0.3, Unavailable("no"), Rejected("no"), Disconnected("no"))
        if self.dedupes_for is None or content.key not in self.public:
            self.public[content.key] = self.public.get(content.key, 0) + (self.chance.random() < 0.7)
        if not self.public[content.key]:
            raise self.chance.choice([Unconfirmed("no"), BUG])
        self._trouble(0.5, Unconfirmed("no"), BUG, SystemExit("the worker dies"))
        return self.chance.choice([DONE, Processing({}, 0)])

    def check(self, account, receipt):
        """Answers in the end."""
        self._trouble(0.4, Unavailable("no"), BUG, SystemExit("the worker dies"))
        return DONE

    def find(self, account, content, receipt):
        """Lists completely, or cannot tell."""
        self._trouble(0.4, Unavailable("no"), BUG, SystemExit("the worker dies"))
        if self.chance.random() < 0.3:
            return None
        return DONE if self.public.get(content.key) else Absent()

    def refresh(self, account, force=False):
        """Works now and then."""
        return {"token": "next"} if force and self.chance.random() < 0.5 else None

    def _trouble(self, likelihood, *errors):
        if self.chance.random() < likelihood:
            raise self.chance.choice(errors)


@pytest.mark.parametrize("abilities", [{}, {"find_retries": True}, {"dedupes_for": timedelta(hours=1)}],
                         ids=["nothing sure", "lists completely", "knows our keys"])
def test_no_course_of_events_makes_a_post_public_twice_or_leaves_it_without_an_end(desk, abilities):
    network = Fickle(random.Random(7), **abilities)
    publisher = desk.publisher(network)
    targets = [desk.target(desk.account()) for _ in range(40)]
    for _ in range(60):
        desk.sql("UPDATE targets SET next_at = now() WHERE next_at IS NOT NULL")
        for job in desk.claim(limit=50):
            publisher.breakers.report("told", failed=False)
            try:
                publisher.run(job)
            except SystemExit:
                desk.ago(job.id, 1)
        desk.sql("UPDATE targets SET leased_until = now() - interval '1 s' WHERE leased_until IS NOT NULL")
        with database.connection_context():
            queue.sweep(ERROR)
    rows = [desk.row(target) for target in targets]
    assert [row.id for row in rows if row.next_at is not None] == []
    assert {row.status for row in rows} <= {"published", "failed", "unconfirmed"}
    assert max(network.public.values()) == 1
    wrong = {row.id: row.status for row in rows if (row.status == "published") > network.public.get(row.id, 0)
             or row.status == "failed" and network.public.get(row.id)}
    assert wrong == {}
    assert sum(row.status == "published" for row in rows) > 10
