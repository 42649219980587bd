"""Keys and secrets change while the service runs: two keys at most, nothing lost, nothing readable by the old one."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from platforms.accounts import connected, owner
from storage import keys
from storage.database import database
from storage.models import Account, ApiKey, Client, ConnectRequest
from storage.resealing import SEALED, reseal
from storage.secrets import Unreadable, Vault, new_key
from tests.commands import posthorn, rows
from tests.service import Http, start_api


def key_of(http):
    return ApiKey.get(ApiKey.digest == keys.digest(http.key))


def test_a_rotated_key_may_do_the_same_and_the_old_one_works_on_for_a_while(environ, member, connection):
    limited = member.http(client_id=member.client.id, scopes=["ideas:read"], name="site")
    old = key_of(limited)
    made = rows(environ, "key", "rotate", old.id, "--hours", "2", "--team", member.team.id)[0]
    new = Http(member.url, made["key"])
    assert [http.get("/v1/ideas/today").status for http in (limited, new)] == [200, 200]
    assert [http.get("/v1/clients").status for http in (limited, new)] == [403, 403]
    row = key_of(new)
    for field in ("team_id", "user_id", "client_id", "mode", "scopes", "name", "expires_at"):
        assert getattr(row, field) == getattr(old, field)
    left = (ApiKey.get_by_id(old.id).expires_at - datetime.now(UTC)).total_seconds()
    assert 7000 < left <= 7200 and made["replaces"] == old.id
    ApiKey.update(expires_at=datetime.now(UTC)).where(ApiKey.id == old.id).execute()
    assert [http.get("/v1/ideas/today").status for http in (limited, new)] == [401, 200]


def test_two_keys_that_follow_upon_each_other_work_and_never_three(member, connection):
    first = key_of(member.test)
    second = keys.rotate(first, timedelta(hours=1))[1]
    for row in (first, second):
        with pytest.raises(keys.TwoActive):
            keys.rotate(row, timedelta(hours=1))
    assert keys.revoke(member.team.id, first.id)
    assert keys.rotate(second, timedelta(0))[1].replaces == second.id
    assert keys.in_force(member.team.id, second.id) is None


def test_a_key_that_ended_meanwhile_is_not_rotated(member, connection):
    ended = {"revoked_at": datetime.now(UTC)}, {"expires_at": datetime.now(UTC)}
    for values in ended:
        row = keys.create(team_id=member.team.id, user_id=member.user.id, mode="test")[1]
        ApiKey.update(**values).where(ApiKey.id == row.id).execute()
        with pytest.raises(keys.Ended):
            keys.rotate(row, timedelta(hours=1))
        assert not ApiKey.select().where(ApiKey.replaces == row.id).exists()


def test_a_rotation_never_makes_a_key_last_longer(member, connection):
    soon = datetime.now(UTC) + timedelta(minutes=5)
    key, row = keys.create(team_id=member.team.id, user_id=member.user.id, mode="test", expires_at=soon)
    new = keys.rotate(row, timedelta(hours=1))[1]
    assert (new.expires_at, ApiKey.get_by_id(row.id).expires_at) == (soon, soon)


def test_a_key_revoked_by_command_is_refused_by_every_process_on_its_next_request(environ, member):
    process, url = start_api({**environ, "POSTHORN_API_PROCESSES": "3"})
    try:
        http = member.http()
        with ThreadPoolExecutor(12) as pool:
            def ask(_):
                return Http(url, http.key).get("/v1/clients").status

            assert set(pool.map(ask, range(24))) == {200}
            with database.connection_context():
                key_id = key_of(http).id
            posthorn(environ, "key", "revoke", key_id, "--team", member.team.id)
            assert set(pool.map(ask, range(48))) == {401}
    finally:
        process.stop()


def test_a_key_can_be_narrowed_at_once_and_never_widened(environ, member):
    """Also while a service runs that knows the key already."""
    http, team = member.http(name="site"), ("--team", member.team.id)
    with database.connection_context():
        key_id = key_of(http).id
    assert [http.get(path).status for path in ("/v1/clients", "/v1/posts", "/v1/ideas/today") for _ in range(4)] == [200] * 12
    narrowed = rows(environ, "key", "narrow", key_id, "--scope", "posts:read", "--scope", "posts:write", *team)[0]
    assert narrowed["scopes"] == "posts:read posts:write"
    assert [http.get(path).status for path in ("/v1/clients", "/v1/posts", "/v1/ideas/today") for _ in range(4)] == (
        [403] * 4 + [200] * 4 + [403] * 4)
    mine = http.post("/v1/posts", {"targets": [{"platform": "gbp"}], "caption": "x"}).data["id"]
    rows(environ, "key", "narrow", key_id, "--client", member.client.id, "--days", "2", *team)
    assert {http.get(f"/v1/posts/{mine}").status for _ in range(8)} == {404}      # it was the team's, and the key is a client's now
    for wider in (["--scope", "clients:read"], ["--days", "3"], ["--client", other_client(member)]):
        assert "a key is never given more" in posthorn(environ, "key", "narrow", key_id, *wider, *team, fails=True)
    assert "say what it keeps" in posthorn(environ, "key", "narrow", key_id, *team, fails=True)
    shown = rows(environ, "key", "show", key_id, *team)[0]
    assert (shown["scopes"], shown["clientId"]) == ("posts:read posts:write", member.client.id)
    assert shown["expiresAt"] and shown["clientName"] == "Corner Café" and shown["userName"] == "Ann" and shown["createdAt"]
    text = posthorn(environ, "key", "show", key_id, *team)
    assert "scopes " in text and shown["key"] in text and http.key[8:40] not in text
    posthorn(environ, "key", "revoke", key_id, *team)
    assert "no such key in force" in posthorn(environ, "key", "narrow", key_id, "--days", "1", *team, fails=True)
    assert "no such key" in posthorn(environ, "key", "show", "key_none", *team, fails=True)


def other_client(member):
    with database.connection_context():
        return Client.add(team_id=member.team.id, name="Other").id


# The keys that seal.

def seal(member, vault, **values):
    """An account of the member, sealed by this vault."""
    row = Account.add(team_id=member.team.id, platform="gbp", username="a", display_name="A", host="", platform_id=new_key(),
                      status="connected", **values)
    sealed = vault.seal(owner(row.team_id, row.id), {"accessToken": "canary"})
    Account.update(credentials=sealed).where(Account.id == row.id).execute()
    return row.id


def test_everything_is_sealed_under_the_new_key_with_progress(member, connection):
    old, new = new_key(), new_key()
    ids = [seal(member, Vault((old,))) for _ in range(3)]
    request = ConnectRequest.begin("connect_" + new_key()[:20], timedelta(minutes=5), team_id=member.team.id,
                                   user_id=member.user.id, platform="gbp", digest=new_key().encode(),
                                   sealed=Vault((old,)).seal("x", {"state": "canary"}))
    seen = list(reseal(Vault((new, old))))
    assert (seen[0].done, seen[-1].done) == (seen[-1].total, seen[-1].total) and seen[-1].total >= 4    # one object, updated
    for id_ in ids:
        assert connected(Account.get_by_id(id_), Vault((new,))).credentials == {"accessToken": "canary"}
        with pytest.raises(Unreadable):
            connected(Account.get_by_id(id_), Vault((old,)))
    assert Vault((new,)).open("x", ConnectRequest.get_by_id(request.id).sealed) == {"state": "canary"}
    again = list(reseal(Vault((new, old))))[-1]
    assert again.resealed == 0
    ConnectRequest.delete().where(ConnectRequest.id == request.id).execute()


def test_the_command_tells_how_far_it_is_and_what_it_could_not_open(environ, member, connection):
    old, new, lost = new_key(), new_key(), new_key()
    kept, gone = seal(member, Vault((old,))), seal(member, Vault((lost,)))
    told = posthorn({**environ, "POSTHORN_SECRET_KEYS": f"{new},{old}"}, "secrets", "rotate", fails=True)
    assert gone in told and kept not in told and "canary" not in told
    assert connected(Account.get_by_id(kept), Vault((new,))).credentials == {"accessToken": "canary"}
    Account.update(credentials=None).where(Account.id << [kept, gone]).execute()


def test_what_a_worker_is_renewing_is_left_until_it_is_done(member, connection, monkeypatch):
    monkeypatch.setattr("storage.resealing.PATIENCE", 0.1)
    old, new = new_key(), new_key()
    id_ = seal(member, Vault((old,)), renewing_until=datetime.now(UTC) + timedelta(seconds=2))
    started = time.monotonic()
    list(reseal(Vault((new, old))))
    assert time.monotonic() - started > 1
    assert connected(Account.get_by_id(id_), Vault((new,))).credentials == {"accessToken": "canary"}
    Account.update(credentials=None).where(Account.id == id_).execute()


def test_every_column_that_is_sealed_is_known(connection):
    columns = connection.execute_sql(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'bytea' "
        "AND column_name NOT LIKE '%%digest%%'").fetchall()
    known = {(model._meta.table_name, column) for model, column in SEALED}
    assert set(columns) == known | {("idempotency_keys", "body"), ("oauth_clients", "secret")}      # an answer, and a digest
