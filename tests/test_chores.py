"""What a worker does beside publishing, when it fails: said in words that help, and tried again."""

import logging
from types import SimpleNamespace

import pytest
from peewee import OperationalError

from handlers import work
from handlers.services import open_fetcher
from platforms.worker import Worker
from storage.fetch import Fetcher
from storage.objects import StoreUnavailable


class Chores:
    """A publisher and a chore in one, whose rounds fail in this way; the worker is over after the first."""

    def __init__(self, error):
        self._error, self.worker = error, Worker(self, "", threads=1, chore=self)
        self.worker._over.wait = lambda pause: pause > 0

    def look_after_accounts(self):
        pass

    def __call__(self):
        raise self._error


@pytest.mark.parametrize("error, words", [
    (StoreUnavailable("the object store cannot be reached"), "the sweep is put off: the object store cannot be reached"),
    (OperationalError("secret.internal"), "the sweep is put off: OperationalError")], ids=["store", "database"])
def test_a_sweep_is_put_off_with_the_reason(monkeypatch, caplog, error, words):
    def fails():
        raise error

    monkeypatch.setattr(work, "sweep", lambda config, objects: SimpleNamespace(round=fails))
    work._Chore(None, SimpleNamespace(laxities=lambda: []))()
    assert [record.getMessage() for record in caplog.records] == [words]


def test_events_are_sent_by_a_fetcher_of_their_own():
    """Whoever has receivers with silent name servers holds up no lookup of the networks."""
    config = SimpleNamespace(allow_private=frozenset(), refuse_networks=())
    shared = open_fetcher(config)
    fetcher = work._sender(SimpleNamespace(config=config, vault=None, fetcher=shared))._fetcher
    assert isinstance(fetcher, Fetcher) and fetcher._lookups is not shared._lookups


@pytest.mark.parametrize("error, traced", [(OperationalError("away"), False), (TypeError("ours"), True)])
def test_a_fault_of_ours_is_logged_with_its_place(environ, caplog, error, traced):
    Chores(error).worker._keep_house()
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.getMessage().startswith("tidying up failed") and bool(record.exc_info) == traced
