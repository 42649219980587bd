"""Who gets what: each row of tests/matrix.py with each caller; what is refused changes nothing and tells nothing."""

import pytest
from minio import Minio

from handlers.contract import Contract
from storage.database import database
from tests.documented import as_documented
from tests.matrix import CALLERS, FOREIGN, FRIENDS, REFUSED, ROWS, World

OPERATIONS = Contract().operations
# What a mere look writes: that a credential was used, and that its allowance is less.
UNWATCHED = {"buckets", "schema_migrations", "workers"}


@pytest.fixture(scope="module")
def world(environ, api_url, store_address):
    with database.connection_context():
        return World(api_url, store_address, environ)


@pytest.fixture(scope="module")
def snapshot(environ, store_address, world):
    """A function that gives the state of everything that is a team's; in the end the store is looked at as well."""
    with database.connection_context():
        tables = [name for name, in database.execute_sql(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'team_id'")]
    one = ("SELECT '{0}', team_id, md5(string_agg((to_jsonb(t) - 'last_used_at')::text, '|' ORDER BY to_jsonb(t)::text)) "
           "FROM {0} AS t WHERE team_id = ANY(%(teams)s) GROUP BY team_id")
    query = " UNION ALL ".join(one.format(table) for table in tables if table not in UNWATCHED)
    store = Minio(store_address.endpoint_url.partition("://")[2],
                  store_address.access_key, store_address.secret_key, secure=False)

    def take():
        teams = [world.team.id, world.strangers.id, world.lapsed.id]
        with database.connection_context():
            return {tuple(row) for row in database.execute_sql(query, {"teams": teams}).fetchall()}

    yield take
    # No row stores a file: the one that would is refused by the guard.
    assert [item.object_name for team in (world.team, world.strangers, world.lapsed)
            for item in store.list_objects(store_address.bucket, prefix=f"{team.id}/", recursive=True)] == []


def asked(http, row, objects):
    operation = OPERATIONS[row.operation]
    path = operation.path.replace("{id}", row.id(objects)).replace("{deliveryId}", row.delivery(objects)) + row.query(objects)
    return http.request(operation.method, path, row.body(objects))


def test_every_operation_has_a_row():
    assert {row.operation for row in ROWS} == {operation.id for operation in OPERATIONS.values() if not operation.public}


def test_every_operation_on_an_object_has_a_row_for_each_kind_of_owner():
    with_id = {operation.id for operation in OPERATIONS.values() if "{id}" in operation.path}
    assert with_id == {row.operation for row in ROWS if row.id.__code__.co_names}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation}-{row.object.replace(' ', '_')}")
def test_everybody_gets_what_is_theirs_and_nothing_else(row, world, snapshot):
    with database.connection_context():
        objects = world.objects(row.mode)
        callers = {**world.callers[row.mode], **world.lacking(OPERATIONS[row.operation].scope, row.mode)}
    assert callers.keys() == set(CALLERS)
    state = snapshot()
    for name in (*REFUSED, *FOREIGN):
        answer, before = asked(callers[name], row, objects), state
        told = answer.raw + repr(answer.headers).encode()
        assert (name, answer.status) == (name, row.expected(name)), answer.raw
        assert as_documented(row.operation, answer, known=answer.status != 401)
        assert (name, [secret for secret in world.secrets(objects, name) if secret.encode() in told]) == (name, [])
        state = snapshot()
        changed = {team for _, team, *_ in state ^ before}
        assert answer.status < 300 or (name, changed) == (name, set())
        # What is a stranger's is written in the stranger's world.
        assert name not in ("other team", "other team's token") or (name, changed - {world.strangers.id}) == (name, set())
    for name in FRIENDS:
        with database.connection_context():
            fresh = world.objects(row.mode)
        answer = asked(callers[name], row, fresh)
        assert (name, answer.status) == (name, row.expected(name)), answer.raw
        assert as_documented(row.operation, answer)
