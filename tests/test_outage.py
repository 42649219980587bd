"""What is told of a database that is away."""

import logging

import psycopg2
import pytest
from playhouse.pool import MaxConnectionsExceeded

from storage import outage
from storage.outage import AGAIN, Outage, why
from tests.service import free_port


def test_why_it_is_away_is_said_in_words_of_ours(postgres_url):
    for url, words in ((f"postgresql://me@127.0.0.1:{free_port()}/x", "nobody listens there"),
                       (f"{postgres_url.replace('/postgres?', '/nowhere?')}", "it has no such database or user")):
        with pytest.raises(psycopg2.OperationalError) as error:
            psycopg2.connect(url)
        assert why(error.value) == words
    assert why(MaxConnectionsExceeded("20")) == "all connections of this process are in use"
    assert why(psycopg2.OperationalError("canary")) == "OperationalError"


def test_it_is_told_at_once_and_every_minute_and_when_it_is_over(monkeypatch, caplog):
    now = [1000.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    caplog.set_level("INFO")
    away, error = Outage(logging.getLogger("posthorn.test"), "the database"), psycopg2.OperationalError("Connection refused")
    away.is_over()
    for _ in range(130):
        away.goes_on(error)
        now[0] += 1
    away.is_over()
    away.is_over()
    away.goes_on(error)
    told = "the database is away: nobody listens there; trying again"
    assert [record.getMessage() for record in caplog.records] == [
        *[told] * int(1 + 129 // AGAIN), "the database is back after 130 s", told]
