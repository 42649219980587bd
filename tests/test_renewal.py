"""Credentials are renewed by one at a time and kept before anything else; profiles are read anew once a day."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from platforms.accounts import RENEWAL, Accounts, save
from platforms.base import Connected, Profile
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable
from platforms.registry import PLATFORMS
from storage.database import database
from storage.models import Account
from storage.secrets import Vault, new_key
from tests.delivery import BUG, Networks, Told, WorkerThread, take_away
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.stage import eventually

ANN = Profile("7", "ann@new.example", "Ann B.", "https://cdn.example/ann.jpg")


class Rotating(Told):
    """A network that gives a new token for the present one, once, and takes its time; with `grace` the same one again."""

    def __init__(self, seconds=0.2, act=lambda: None, grace=False):
        super().__init__()
        self.token, self.given, self.seconds, self.act, self.grace = "first", 0, seconds, act, grace

    def refresh_due(self, account):
        """As long as it is the first one."""
        return account.credentials["token"] == "first"

    def refresh(self, account, force=False):
        """Refuses a token that was traded already."""
        assert database.is_closed()     # nobody waits for a connection because we wait for a network
        if not force and not self.refresh_due(account):
            return None
        if account.credentials["token"] != self.token:
            if self.grace:
                return {"token": self.token}
            raise Disconnected("this token was used")
        self.given += 1
        self.token = f"token {self.given}"
        self.act()
        time.sleep(self.seconds)
        return {"token": self.token}


class Killed(BaseException):
    """The end of a process, in the middle of what it does."""


class Named(Told):
    """A network that says who somebody is; its part may be a list of courses."""

    def profile(self, account):
        """Told by the course, else ANN."""
        self.calls.append(("profile", account.credentials))
        step = self._next("profile", ANN)
        if isinstance(step, Exception):
            raise step
        return step


def row_of(account_id):
    with database.connection_context():
        return Account.get_by_id(account_id)


def at_once(number, act):
    """Calls `act` in so many threads with accounts of its own, as different processes have them; returns what came of it."""
    start = threading.Barrier(number)

    def one(_):
        start.wait()
        return act()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def test_of_many_who_want_new_credentials_one_asks_and_all_get_them(desk):
    account, network = desk.account(), Rotating()
    found = at_once(8, lambda: Accounts(desk.vault).usable(row_of(account), network).credentials)
    assert found == [{"token": "token 1"}] * 8 and network.given == 1
    assert desk.credentials(account) == {"token": "token 1"} and row_of(account).renewing_until is None


def test_of_many_whose_credentials_were_refused_one_asks(desk):
    account, network, rows = desk.account(), Rotating(), threading.local()

    def renewed():
        rows.mine = row_of(account)
        time.sleep(0.05)        # all of them have read the first token
        return Accounts(desk.vault).renew(rows.mine, network), Accounts(desk.vault).usable(rows.mine, network).credentials

    assert at_once(6, renewed) == [(True, {"token": "token 1"})] * 6 and network.given == 1


def test_accounts_do_not_wait_for_each_other(desk):
    accounts, network = [desk.account() for _ in range(4)], Told(refresh=[{"token": "second"}] * 4)
    inside = threading.Barrier(4, timeout=5)
    network.refresh = lambda account, force=False: inside.wait() is not None and {"token": "second"}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda account: Accounts(desk.vault).usable(row_of(account), network), accounts))
    assert [desk.credentials(account) for account in accounts] == [{"token": "second"}] * 4


def test_credentials_that_last_cost_no_turn(desk):
    account, network = desk.account(credentials={"token": "good"}), Rotating()
    desk.sql("UPDATE accounts SET renewing_until = clock_timestamp() + interval '1 h' WHERE id = %s", account)
    assert Accounts(desk.vault).usable(row_of(account), network).credentials == {"token": "good"}


def test_the_turn_of_one_who_died_runs_out(desk):
    account, network = desk.account(), Rotating(seconds=0)
    desk.sql("UPDATE accounts SET renewing_until = clock_timestamp() + interval '0.5 s' WHERE id = %s", account)
    started = time.monotonic()
    assert Accounts(desk.vault).usable(row_of(account), network).credentials == {"token": "token 1"}
    assert time.monotonic() - started > 0.4 and RENEWAL.total_seconds() == 90


@pytest.mark.parametrize("grace", [True, False])
def test_new_credentials_that_a_killed_process_took_with_it_are_asked_for_with_the_old_ones(desk, grace, monkeypatch):
    """Some networks answer the old ones again for a while; where they are good for one use, a person has to connect again."""
    account, network = desk.account(), Rotating(seconds=0, grace=grace)
    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(desk.vault, "seal", Mock(side_effect=Killed))
        Accounts(desk.vault).usable(row_of(account), network)
    desk.sql("UPDATE accounts SET renewing_until = clock_timestamp() + interval '0.1 s' WHERE id = %s", account)
    assert (network.token, desk.credentials(account)) == ("token 1", {"token": "first"})
    if grace:
        assert Accounts(desk.vault).usable(row_of(account), network).credentials == {"token": "token 1"}
    else:
        with pytest.raises(Disconnected):
            Accounts(desk.vault).usable(row_of(account), network)
    assert network.given == 1


@pytest.mark.parametrize("error", [Unavailable("no"), Rejected("no"), Disconnected("no"), BUG])
def test_a_turn_that_ends_badly_is_given_back(desk, error):
    account = desk.account()
    with pytest.raises(type(error)):
        Accounts(desk.vault).usable(row_of(account), Told(refresh=[error]))
    assert row_of(account).renewing_until is None and desk.credentials(account) == {"token": "first"}


def test_new_credentials_outlive_a_database_that_is_away(desk, address, postgres_url):
    account, network = desk.account(), Rotating(seconds=0, act=lambda: take_away(address, postgres_url, 1.2))
    row = row_of(account)
    assert Accounts(desk.vault).usable(row, network).credentials == {"token": "token 1"} == desk.credentials(account)


def test_what_a_person_did_meanwhile_counts(desk):
    again = desk.vault.seal
    account = desk.account()
    sealed = again(f"teams/{desk.team.id}/accounts/{account}", {"token": "by a person"})
    network = Rotating(seconds=0, act=lambda: desk.sql("UPDATE accounts SET credentials = %s WHERE id = %s", sealed, account))
    assert Accounts(desk.vault).usable(row_of(account), network).credentials == {"token": "by a person"}
    assert desk.credentials(account) == {"token": "by a person"}

    removed = desk.account()
    network = Rotating(seconds=0, act=lambda: desk.sql(
        "UPDATE accounts SET status = 'disconnected', credentials = NULL WHERE id = %s", removed))
    with pytest.raises(Disconnected):
        Accounts(desk.vault).usable(row_of(removed), network)
    assert row_of(removed).credentials is None


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
def test_a_network_that_renews_in_its_own_manner_says_when_in_its_own_manner(platform):
    assert [one for one in platform.__mro__ if "refresh" in vars(one) and "refresh_due" not in vars(one)] == []


# Profiles.

def aged(desk, **options):
    """An account whose profile was read a day ago."""
    account = desk.account(**options)
    desk.sql("UPDATE accounts SET profile_read_at = now() - interval '25 h' WHERE id = %s", account)
    return account


def looked_after(desk, network, vault=None):
    Accounts(vault or desk.vault).look_after(Networks(network), threading.Event())


def shown(account):
    row = row_of(account)
    return row.username, row.display_name, row.profile_picture, row.status


def test_a_profile_is_read_once_a_day(desk):
    young, old, network = desk.account(), aged(desk), Named()
    for _ in range(2):
        looked_after(desk, network)
    assert [verb for verb, _ in network.calls] == ["refresh", "profile"]
    assert shown(old) == ("ann@new.example", "Ann B.", "https://cdn.example/ann.jpg", "connected")
    assert shown(young) == ("ann", "Ann", None, "connected")


def test_of_many_workers_one_reads_it(desk):
    aged(desk)
    network = Named()
    at_once(6, lambda: looked_after(desk, network))
    assert [verb for verb, _ in network.calls].count("profile") == 1


@pytest.mark.parametrize("trouble", [Unavailable("no"), Rejected("no"), PermissionMissing("no"), BUG])
def test_a_profile_that_cannot_be_read_changes_nothing_and_waits_for_tomorrow(desk, trouble):
    first, second, network = aged(desk), aged(desk), Named(profile=[trouble, trouble])
    for _ in range(2):
        looked_after(desk, network)
    assert [verb for verb, _ in network.calls].count("profile") == 2
    assert shown(first) == shown(second) == ("ann", "Ann", None, "connected")


def test_an_account_that_the_network_has_ended_is_found_out(desk):
    account = aged(desk)
    looked_after(desk, Named(profile=[Disconnected("no")]))
    assert shown(account) == ("ann", "Ann", None, "disconnected")


def test_credentials_that_have_just_ended_are_renewed_first(desk):
    account = aged(desk)
    looked_after(desk, Named(profile=[Disconnected("expired")], **{"refresh!": [{"token": "second"}]}))
    assert shown(account)[0] == "ann@new.example" and desk.credentials(account) == {"token": "second"}


def test_a_worker_with_other_keys_disconnects_nothing(desk):
    account, network = aged(desk), Named()
    looked_after(desk, network, Vault((new_key(),)))
    assert network.calls == [] and shown(account) == ("ann", "Ann", None, "connected")


def test_a_worker_looks_after_accounts_by_itself(desk, address):
    account = aged(desk)
    with WorkerThread(desk.publisher(Named()), address):
        eventually(lambda: shown(account)[0] == "ann@new.example")


# One row for an account.

def test_an_account_that_is_saved_many_times_at_once_is_one(desk):
    connected = Connected(ANN, "https://new.example", {"token": "x"})
    rows = at_once(8, lambda: saved(desk, connected))
    assert len({row.id for row in rows}) == 1 and desk.credentials(rows[0].id) == {"token": "x"}


def test_accounts_of_different_owners_and_servers_are_kept_apart(desk):
    with database.connection_context():
        client = desk.sql("SELECT id FROM clients WHERE team_id = %s", desk.team.id)[0][0]
    rows = [saved(desk, Connected(ANN, host, {"token": "x"}), owner) for host in ("https://a.example", "https://b.example")
            for owner in (None, client)]
    assert len({row.id for row in rows}) == 4


def test_a_name_is_no_longer_than_the_api_says(desk):
    row = saved(desk, Connected(Profile("8", "long", "x" * 1000), "", {"token": "x"}))
    assert row.display_name == "x" * 300


def saved(desk, connected, client_id=None):
    with database.connection_context():
        return save(desk.vault, desk.team.id, client_id, "told", connected)
