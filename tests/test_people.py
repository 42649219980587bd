"""People sign in: by password, by link; and the commands that let them, and end it."""

from datetime import UTC, datetime

import click
import pytest

from handlers.identity import sound_redirect
from storage.audit import Entry
from storage.database import database
from storage.models import User
from storage.oauth import Grant
from storage.people import Session, SignInLink
from tests.browser import page
from tests.commands import posthorn, rows
from tests.person import (BACK, PASSWORD, Person, address, answered, app, can_sign_in, form, redeem, refresh, tokens)
from tests.service import Http, start_api


@pytest.fixture
def login(member):
    """The name with which the member's user signs in."""
    login = f"ann.{member.user.id}".lower()
    can_sign_in(member.user, login)
    return login


def is_in(person):
    return "Allow Idea Clipper?" in person.open(address(person.url, app()[0])).raw.decode()


def test_a_person_is_let_in_by_commands_alone(environ, api_url, connection):
    """As an operator does it: a team, a person, a password, an app; then the person signs in and allows it."""
    team = rows(environ, "team", "create", "Cake & Co")[0]
    login = f"Bob+{team['id'][-6:]}@example.net"
    bob = rows(environ, "user", "create", "Bob", "--login", login, "--team", team["id"])[0]
    assert (bob["login"], bob["password"]) == (login.lower(), None)
    assert "12 to 200 characters" in posthorn(
        environ, "user", "password", bob["id"], "--team", team["id"], stdin="short\n", fails=True)
    assert posthorn(environ, "user", "password", login, "--team", team["id"], stdin=f"{PASSWORD}\n").startswith("set")
    assert PASSWORD not in posthorn(environ, "user", "list", "--team", team["id"], "--json")
    made = rows(environ, "oauth-client", "create", "Idea Clipper", "--redirect", BACK, "--scope", "ideas:write")[0]
    assert made["secret"] is None and made["id"] in posthorn(environ, "oauth-client", "list")

    class Made:
        id = made["id"]
    person = Person(api_url)
    asked = person.sign_in(person.open(address(api_url, Made)), login)
    assert "code=" in person.allow(asked)
    assert "somebody else signs in as" in posthorn(
        environ, "user", "login", team["userId"], login, "--team", team["id"], fails=True)
    assert posthorn(environ, "oauth-client", "revoke", made["id"]) == "revoked\n"
    assert page(person.open(address(api_url, Made)), 400)
    assert "no such OAuth client" in posthorn(environ, "oauth-client", "revoke", made["id"], fails=True)


def test_a_link_signs_in_once(environ, member, login, connection):
    link = posthorn(environ, "user", "link", login, "--team", member.team.id).strip()
    assert link.startswith("http://127.0.0.1:8080/sign-in/link?token=in_")
    link = member.url + link.removeprefix("http://127.0.0.1:8080")
    person, other = Person(member.url), Person(member.url)
    asked, same = person.open(link), other.open(link)       # looking at it does not use it up
    assert Http(member.url).request("HEAD", link.removeprefix(member.url)).status == 200
    assert "You are signed in" in page(person.press(asked, "Sign in"), 200) and is_in(person)
    page(other.press(same, "Sign in"), 400)
    assert not is_in(other)
    SignInLink.update(expires_at=datetime.now(UTC)).execute()
    late = posthorn(environ, "user", "link", login, "--team", member.team.id).strip().removeprefix("http://127.0.0.1:8080")
    SignInLink.update(expires_at=datetime.now(UTC)).where(SignInLink.user_id == member.user.id).execute()
    page(other.press(other.open(member.url + late), "Sign in"), 400)


@pytest.mark.parametrize("given", [
    ("{login}", "wrong password"), ("nobody", PASSWORD), ("{login}", ""), ("", ""), ("\0", "\0"), ("{login}", PASSWORD + " "),
    ("'--", PASSWORD), ("é" * 300, "é" * 9000)], ids=lambda given: str(given)[:30])
def test_who_cannot_say_who_they_are_stays_out_and_is_told_nothing(member, login, given):
    person = Person(member.url)
    asked = person.open(address(member.url, app()[0]))
    refused = person.sign_in(asked, *(value.format(login=login) for value in given))
    assert "This name and password do not go together." in page(refused, 403) and not is_in(person)


def test_the_cookie_is_kept_from_scripts_and_other_sites(member, login, environ):
    person = Person(member.url)
    asked = person.open(address(member.url, app()[0]))
    first = asked.headers["Set-Cookie"]
    assert first.startswith("posthorn-form=in_") and "HttpOnly" in first and "SameSite=Lax" in first
    page(person.open(f"{member.url}/sign-in", {"login": login, "password": PASSWORD}), 403)     # from another site: no token
    before = dict(person.cookies)
    person.sign_in(asked, login)
    assert before.keys() < person.cookies.keys() and is_in(person)
    process, url = start_api({**environ, "POSTHORN_BASE_URL": "https://posthorn.example"})
    try:
        cookie = Person(url).open(address(url, app()[0])).headers["Set-Cookie"]
        assert cookie.startswith("__Host-posthorn-form=in_")
        assert "Secure" in cookie and "Path=/" in cookie and "Domain" not in cookie
    finally:
        process.stop()


def test_two_apps_ask_in_two_tabs_at_once(member, login):
    person = Person(member.url)
    first, second = person.come(address(member.url, app()[0])), person.come(address(member.url, app()[0]))
    for asked in (first, second):
        assert "Allow Idea Clipper?" in page(person.sign_in(asked, login), 200)


def test_a_session_ends_by_itself_and_by_signing_out_and_with_the_password(member, login, connection):
    person, other = Person(member.url), Person(member.url)
    for one in (person, other):
        one.sign_in(one.open(address(member.url, app()[0])), login)
    stolen = dict(person.cookies)
    page(person.open(f"{member.url}/sign-out", {}), 403)
    person.press(person.open(address(member.url, app()[0])), "Sign out")
    person.cookies = stolen
    assert (is_in(person), is_in(other)) == (False, True)
    can_sign_in(member.user, login, "another password")
    assert not is_in(other)
    other.sign_in(other.open(address(member.url, app()[0])), login, "another password")
    assert is_in(other)
    Session.update(expires_at=datetime.now(UTC)).where(Session.user_id == member.user.id).execute()
    assert not is_in(other)


def test_disabling_a_user_ends_everything_at_once(environ, member, login):
    person = Person(member.url)
    token = tokens(member, app(scopes=["ideas:read"])[0], person=person, login=login)["access_token"]
    link = posthorn(environ, "user", "link", login, "--team", member.team.id).strip().removeprefix("http://127.0.0.1:8080")
    key, oauth, colleague = member.test, Http(member.url, token), member.colleague()
    assert [http.get("/v1/ideas/today").status for http in (key, oauth, colleague)] == [200, 200, 200]
    assert posthorn(environ, "user", "disable", login, "--team", member.team.id) == "disabled\n"
    assert [http.get("/v1/ideas/today").status for http in (key, oauth, colleague)] == [401, 401, 200]
    assert not is_in(person)
    page(person.press(person.open(member.url + link), "Sign in"), 400)
    page(person.sign_in(person.open(address(member.url, app()[0])), login), 403)
    assert "this user is disabled" in posthorn(environ, "user", "link", login, "--team", member.team.id, fails=True)
    with database.connection_context():
        assert User.get_by_id(member.user.id).disabled_at is not None


def test_apps_of_a_disabled_user_are_told_that_it_is_over(environ, member, login, connection):
    """And the lists do not say that what ended is in force."""
    person, (public, _) = Person(member.url), app()
    given = tokens(member, public, person=person, login=login)
    code = answered(person.allow(person.open(address(member.url, public))))["code"]
    own, secret = app(confidential=True, team_id=member.team.id, user_id=member.user.id, redirect_uris=[])
    alone = {"grant_type": "client_credentials", "client_id": own.id, "client_secret": secret}
    assert form(member.url, "/oauth/token", alone).status == 200
    for end in (lambda: User.update(disabled_at=datetime.now(UTC)).where(User.id == member.user.id).execute(),
                lambda: posthorn(environ, "user", "disable", login, "--team", member.team.id)):
        end()
        answers = [refresh(member.url, public, given["refresh_token"]), redeem(member.url, public, code),
                   form(member.url, "/oauth/token", alone)]
        assert [(answer.status, answer.body["error"]) for answer in answers] == [
            (400, "invalid_grant"), (400, "invalid_grant"), (400, "unauthorized_client")]
    assert all(key["revokedAt"] for key in rows(environ, "key", "list", "--team", member.team.id))
    assert not Grant.select().where(Grant.user_id == member.user.id, Grant.revoked_at.is_null()).exists()
    ended = [entry.action for entry in Entry.select().where(Entry.team_id == member.team.id) if entry.action.endswith("revoked")]
    assert sorted(ended) == ["grant.revoked"] * 3 + ["key.revoked"] * 2


@pytest.mark.parametrize("redirect", ["http://agency.example/back", "javascript:alert(1)", "data:text/html,x", "https://",
                                      "https://a@b.example/", "https://a.example/#x", "https://*.example/", "myapp:/back",
                                      "https://a.example/ b", "file:///etc"])
def test_no_app_can_send_people_where_others_listen(redirect):
    with pytest.raises(click.BadParameter):
        sound_redirect(redirect)


@pytest.mark.parametrize("redirect", [BACK, "http://127.0.0.1:7000/back", "http://localhost/x", "http://[::1]:1/",
                                      "com.example.app:/back"])
def test_an_app_gets_people_back_where_only_it_listens(redirect):
    assert sound_redirect(redirect) == redirect


@pytest.mark.parametrize("arguments, sentence", [
    (["--redirect", BACK, "--as-user", "x"], "add --confidential"), ([], "without --redirect nobody can use it"),
    (["--confidential", "--as-user", "user_none", "--team", "team_none"], "there is no such team"),
], ids=lambda value: str(value)[:30])
def test_what_makes_no_app_ends_in_a_sentence(environ, arguments, sentence):
    assert sentence in posthorn(environ, "oauth-client", "create", "x", *arguments, fails=True)


def test_a_plan_ends_and_comes_back_by_command(environ, member):
    for until, status in (("now", 403), ("2030-12-31", 200), ("never", 200)):
        shown = rows(environ, "team", "plan", until, "--team", member.team.id)[0]
        assert member.test.get("/v1/clients").status == status and (shown["planExpiresAt"] is None) == (until == "never")
    assert "never, now or a date" in posthorn(environ, "team", "plan", "soon", "--team", member.team.id, fails=True)
