"""Who did what: every change of credentials, accounts and posts is in the trail, once, and stays there."""

from datetime import UTC, datetime, timedelta

import pytest
from peewee import InternalError, ProgrammingError

from storage import keys
from storage.audit import Entry
from storage.models import ApiKey
from tests.commands import posthorn, rows
from tests.person import BACK, Person, address, app, can_sign_in, form, refresh, tokens

POST = {"caption": "x", "targets": [{"platform": "gbp"}]}


def trail(member, object_id=None):
    """What the trail says of the member's team as (actor, credential, action, object)."""
    query = Entry.select().where(Entry.team_id == member.team.id).order_by(Entry.id)
    return [(entry.actor, entry.credential_id, entry.action, entry.object_id)
            for entry in (query if object_id is None else query.where(Entry.object_id == object_id))]


def test_what_becomes_of_a_post_by_whose_hand(member, connection):
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    http = member.test
    me, key = member.user.id, ApiKey.get(ApiKey.digest == keys.digest(http.key)).id
    post = http.post("/v1/posts", {**POST, "scheduleAt": later}, headers={"Idempotency-Key": "once"}).data["id"]
    assert http.post("/v1/posts", {**POST, "scheduleAt": later}, headers={"Idempotency-Key": "once"}).data["id"] == post
    colleague = member.colleague()
    other = ApiKey.get(ApiKey.digest == keys.digest(colleague.key))
    assert colleague.patch(f"/v1/posts/{post}", {"caption": "y"}).status == 200
    refused = [http.post("/v1/posts", {**POST, "media": ["https://x.example/y"]}),
               http.patch(f"/v1/posts/{post}", {"scheduleAt": "2020-01-01T00:00:00Z"}),
               member.live.delete(f"/v1/posts/{post}")]
    assert {answer.status for answer in refused} == {404, 422} and http.delete(f"/v1/posts/{post}").status == 200
    assert http.delete(f"/v1/posts/{post}").status == 409
    assert trail(member) == [(me, key, "post.created", post), (other.user_id, other.id, "post.changed", post),
                             (me, key, "post.canceled", post)]


def test_what_becomes_of_an_account(member, environ, connection):
    row = member.account(environ, "gbp", "ann")
    key = ApiKey.get(ApiKey.digest == keys.digest(member.live.key)).id
    assert [member.live.delete(f"/v1/accounts/{row.id}").status for _ in range(2)] == [200, 200]
    assert trail(member, row.id) == [(member.user.id, key, "account.disconnected", row.id)]


def test_what_becomes_of_credentials(member, environ, connection):
    team = ("--team", member.team.id)
    made = rows(environ, "key", "create", *team)[0]
    new = rows(environ, "key", "rotate", made["id"], *team)[0]
    posthorn(environ, "key", "revoke", made["id"], *team)
    posthorn(environ, "user", "disable", member.user.id, *team)
    acts = [(actor.split()[0], action, id_) for actor, _, action, id_ in trail(member)]
    assert acts[:4] == [("command", "key.created", made["id"]), ("command", "key.rotated", new["id"]),
                        ("command", "key.revoked", made["id"]), ("command", "user.disabled", member.user.id)]
    left = [new["id"], *(ApiKey.get(ApiKey.digest == keys.digest(http.key)).id for http in (member.test, member.live))]
    assert sorted(acts[4:]) == sorted(("command", "key.revoked", id_) for id_ in left)
    listed = rows(environ, "audit", "list", *team)
    assert [(entry["action"], entry["objectId"]) for entry in listed] == [act[1:] for act in acts]
    assert listed[1]["detail"]["replaces"] == made["id"] and new["id"] in posthorn(
        environ, "audit", "list", "--object", new["id"])
    text = posthorn(environ, "audit", "list", *team)
    assert made["key"][8:] not in text and new["key"][8:] not in text


def test_what_a_person_allows_and_what_ends_it(member, connection):
    client, _ = app()
    given = tokens(member, client)
    second = refresh(member.url, client, given["refresh_token"]).body
    refresh(member.url, client, given["refresh_token"])
    _, (me, _, first, grant), (who, _, last, same) = trail(member)
    assert (me, first, who, last, grant) == (member.user.id, "grant.given", client.id, "grant.revoked", same)
    assert not any(token in repr(list(Entry.select().dicts())) for token in (given["access_token"], second["refresh_token"]))


def test_what_a_program_gets_by_itself_and_gives_back(member, connection):
    client, secret = app(confidential=True, team_id=member.team.id, user_id=member.user.id, redirect_uris=[])
    proof = {"client_id": client.id, "client_secret": secret}
    given = [form(member.url, "/oauth/token", {**proof, "grant_type": "client_credentials"}).body for _ in range(2)]
    for _ in range(2):
        form(member.url, "/oauth/revoke", {**proof, "token": given[0]["access_token"]})
    (me, _, first, grant), (who, _, last, same) = trail(member)     # the second token and the second try say nothing new
    assert (me, first, who, last, grant) == (client.id, "grant.given", client.id, "token.revoked", same)


def test_who_signs_in_who_tries_to_and_who_leaves(member, environ, connection):
    """A name that nobody has is in the log alone, without the name: strangers would fill the trail, some with passwords."""
    person, login = Person(member.url), f"ann.{member.user.id}".lower()
    can_sign_in(member.user, login)
    tried = Entry.select().where(Entry.action == "user.sign_in_failed")
    asked, before = person.open(address(member.url, app()[0])), tried.count()
    person.sign_in(asked, "hunter2 of nobody", "wrong password")
    assert tried.count() == before
    person.sign_in(asked, login, "wrong password")
    person.press(person.sign_in(asked, login), "Sign out")
    link = posthorn(environ, "user", "link", login, "--team", member.team.id).strip().rpartition("8080")[2]
    person.press(person.open(member.url + link), "Sign in")
    posthorn(environ, "user", "disable", login, "--team", member.team.id)
    person.sign_in(person.open(address(member.url, app()[0])), login)
    me, here = member.user.id, {"address": "127.0.0.1"}
    how = [entry.detail for entry in Entry.select().where(Entry.object_id == me).order_by(Entry.id)]
    assert [(actor.split()[0], action) for actor, _, action, _ in trail(member, me)] == [
        ("somebody", "user.sign_in_failed"), (me, "user.signed_in"), (me, "user.signed_out"), ("command", "user.link_made"),
        (me, "user.signed_in"), ("command", "user.disabled"), ("somebody", "user.sign_in_failed")]
    assert how == [here, {**here, "way": "password"}, {}, {}, {**here, "way": "link"}, {}, here]


def test_what_was_written_down_stays(member, connection):
    keys.create(team_id=member.team.id, user_id=member.user.id, mode="test")
    for statement in ("UPDATE audit SET actor = 'nobody'", "DELETE FROM audit", "TRUNCATE audit"):
        with pytest.raises((InternalError, ProgrammingError)), connection.atomic():
            connection.execute_sql(statement)


def test_what_is_undone_was_never_done(member, environ, connection):
    before = Entry.select().count()
    posthorn(environ, "key", "revoke", "key_none", "--team", member.team.id, fails=True)
    posthorn(environ, "oauth-client", "create", "x", "--redirect", BACK, "--team", "team_none", fails=True)
    assert Entry.select().where(Entry.team_id == member.team.id).count() == 0 and Entry.select().count() >= before
