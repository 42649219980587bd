"""What a request costs the database, counted; and a pool that asks no server whether it lives."""

import select

import psycopg2
import pytest

from handlers.app import create_app
from handlers.config import Config
from storage.database import database
from tests.benchmarks.api import record
from tests.service import Member

POST = b'{"caption":"Fresh bread","targets":[{"platform":"bluesky"}]}'


@pytest.fixture(scope="module")
def app(environ):
    return create_app(Config.from_env(environ))


@pytest.fixture
def key(environ):
    return Member("http://127.0.0.1").key()


def own(statements):
    """Those of the operation itself: the rows it reads or writes, and the transaction around them."""
    return [sql for sql, _ in statements if sql in ("BEGIN", "COMMIT") or sql.startswith(("SELECT", 'INSERT INTO "', "NOTIFY"))]


def test_a_read_costs_three_round_trips(app, key):
    post_id = record(app, "POST", "/v1/posts", key, POST)["ids"][0]
    read = record(app, "GET", f"/v1/posts/{post_id}", key)
    assert read["status"] == 200 and len(read["statements"]) == 3, read
    assert len(own(read["statements"])) == 1


@pytest.mark.parametrize("idempotency_key, around", [(None, 2), ("k-1", 4)])
def test_credential_plan_limit_and_idempotency_cost_a_publish_at_most_four(app, key, idempotency_key, around):
    made = record(app, "POST", "/v1/posts", key, POST, idempotency_key)
    assert made["status"] == 202, made
    assert len(made["statements"]) - len(own(made["statements"])) == around, made["statements"]


def test_a_connection_that_the_server_has_ended_is_not_handed_out_again(environ):
    with database.connection_context():
        victim = database.connection()
    with psycopg2.connect(**database.connect_params, dbname=database.database) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", (victim.info.backend_pid,))
    assert select.select([victim], [], [], 10)[0]
    for _ in range(25):     # more than the pool holds
        with database.connection_context():
            assert database.connection() is not victim
            assert database.execute_sql("SELECT 1").fetchone() == (1,)
