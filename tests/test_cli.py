"""Administration by the command line."""

import pytest

from storage import keys
from storage.models import ApiKey, Team
from tests.commands import posthorn, rows
from tests.service import Http, free_port


@pytest.fixture
def team(environ, connection):
    return rows(environ, "team", "create", "Bread & Co", "--user", "Ann", "--time-zone", "Europe/Berlin")[0]


def test_a_team_is_made_with_its_first_user(environ, team):
    assert Team.get_by_id(team["id"]).time_zone == "Europe/Berlin" and team["userId"].startswith("user_")
    assert team["id"] in posthorn(environ, "team", "list")
    assert "Nowhere/Land is no time zone" in posthorn(environ, "team", "create", "x", "--time-zone", "Nowhere/Land", fails=True)


def test_a_key_is_shown_once_and_kept_as_a_digest(environ, team, connection):
    made = rows(environ, "key", "create", "--team", team["id"], "--mode", "live", "--scope", "posts:read", "--days", "1")[0]
    assert keys.well_formed(made["key"]) and made["key"].startswith("sk_live_")
    row = ApiKey.get_by_id(made["id"])
    assert bytes(row.digest) == keys.digest(made["key"]) and row.scopes == ["posts:read"] and row.expires_at is not None
    listed = rows(environ, "key", "list", "--team", team["id"])[0]
    assert listed["key"] == f"sk_live_…{made['key'][-4:]}" and made["key"] not in posthorn(environ, "key", "list", "--team", team["id"])


def test_a_revoked_key_is_refused_by_a_running_service_at_once(environ, team, api_url):
    made = rows(environ, "key", "create", "--team", team["id"])[0]
    http = Http(api_url, made["key"])
    assert http.get("/v1/clients").status == 200
    assert posthorn(environ, "key", "revoke", made["id"], "--team", team["id"]) == "revoked\n"
    assert http.get("/v1/clients").status == 401
    assert "no such key in force" in posthorn(environ, "key", "revoke", made["id"], "--team", team["id"], fails=True)


def test_a_key_of_one_client_sees_that_client_alone(environ, team, api_url):
    first, second = (rows(environ, "client", "create", name, "--team", team["id"])[0] for name in ("Café", "Bar"))
    made = rows(environ, "key", "create", "--team", team["id"], "--client", first["id"])[0]
    http = Http(api_url, made["key"])
    assert [client["id"] for client in http.get("/v1/clients").data["clients"]] == [first["id"]]
    assert http.get(f"/v1/accounts?clientId={second['id']}").status == 404
    assert rows(environ, "client", "status", first["id"], "suspended", "--team", team["id"])[0]["status"] == "suspended"
    assert http.get("/v1/accounts").status == 409


@pytest.mark.parametrize("arguments, sentence", [
    (["key", "create", "--team", "team_none"], "there is no such team"),
    (["key", "create", "--scope", "posts:all"], "Invalid value for '--scope'"),
    (["account", "add", "myspace"], "accounts of bluesky, mastodon can be added here"),
    (["account", "add", "mastodon", "nonsense=1"], "Mastodon takes host, accessToken"),
    (["client", "status", "client_none", "active"], "name one with --team"),
    (["dance"], "No such command 'dance'"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_cannot_be_done_ends_in_a_sentence(environ, team, arguments, sentence):
    assert sentence in posthorn(environ, *arguments, fails=True) and "Traceback" not in posthorn(environ, *arguments, fails=True)


def test_a_database_that_is_away_ends_in_one_sentence(environ):
    away = {**environ, "DATABASE_URL": "postgresql://127.0.0.1:9/none"}
    assert posthorn(away, "team", "list", fails=True) == "posthorn: the database does not answer: look at DATABASE_URL"
    nonsense = posthorn({**environ, "DATABASE_URL": "nonsense"}, "migrate", fails=True)
    assert nonsense == "posthorn: DATABASE_URL is not a PostgreSQL connection URL"
    assert posthorn({"PATH": environ["PATH"], "HOME": "/nowhere"}, "serve", fails=True).startswith("posthorn: DATABASE_URL is not set")
    lines = posthorn({**environ, "POSTHORN_SECRET_KEYS": "nonsense"}, "serve", "--port", str(free_port()), fails=True)
    assert "posthorn: POSTHORN_SECRET_KEYS must hold Fernet keys" in lines and "Traceback" not in lines
    assert posthorn(environ, "migrate") == "nothing to do\n"


def test_a_database_that_was_not_migrated_is_named(environ, connection):
    connection.execute_sql("CREATE DATABASE unmigrated")
    settings = {**environ, "DATABASE_URL": environ["DATABASE_URL"].replace("/postgres?", "/unmigrated?")}
    try:
        for command in (["media", "sweep"], ["team", "list"], ["audit", "list"]):
            said = posthorn(settings, *command, fails=True)
            assert said.startswith("posthorn: tables are missing in the database: run `posthorn migrate`") and "\n" not in said
    finally:
        connection.execute_sql("DROP DATABASE unmigrated WITH (FORCE)")
