"""Signing in against the odds: passwords that change meanwhile, and addresses that somebody made up."""

from datetime import UTC, datetime
from urllib.parse import quote

import click
import pytest

from handlers.identity import sound_redirect
from storage import audit, keys, people
from storage.models import User
from storage.oauth import Grant
from tests.browser import page
from tests.commands import posthorn
from tests.person import PASSWORD, Person, address, app, can_sign_in
from tests.service import Answer


@pytest.fixture
def login(member):
    """The name with which the member's user signs in."""
    login = f"ann.{member.user.id}".lower()
    can_sign_in(member.user, login)
    return login


def test_a_new_password_ends_what_came_of_the_old_one(environ, member, login, connection):
    link = posthorn(environ, "user", "link", login, "--team", member.team.id).strip().rpartition("8080")[2]
    late = people.by_password(login, PASSWORD, "here")      # somebody has just shown the old one
    can_sign_in(member.user, login, "another password")
    assert people.begin_session(late, "password", "here") is None
    person = Person(member.url)
    page(person.press(person.open(member.url + link), "Sign in"), 400)
    now = people.by_password(login, "another password", "here")
    assert people.of_session(people.begin_session(now, "password", "here")) == member.user
    User.update(disabled_at=datetime.now(UTC)).where(User.id == member.user.id).execute()
    assert people.begin_session(now, "link", "here") is None


def test_what_ends_for_one_person_goes_on_for_others(member, connection):
    other = User.add(team_id=member.team.id, name="Bob")
    token = people.begin_session(other, "link", "here")
    can_sign_in(member.user, f"ann.{member.user.id}".lower())
    hers = people.begin_session(ann := User.get_by_id(member.user.id), "link", "here")
    assert (people.of_session(token), people.of_session(hers)) == (other, ann)
    link, key = people.new_link(other), member.key(user_id=other.id)
    granted = {"oauth_client_id": app()[0].id, "team_id": member.team.id, "mode": "test", "scopes": ["ideas:read"]}
    grants = [Grant.add(user_id=user.id, **granted) for user in (other, ann)]
    people.disable(ann, audit.WORKER)
    assert (people.of_session(token), people.of_session(hers)) == (other, None)
    assert [Grant.get_by_id(grant.id).revoked_at is None for grant in grants] == [True, False]
    assert keys.identify(key).user_id == other.id
    assert people.by_link(link) == other
    people.end_session(people.begin_session(other, "link", "here"))
    assert people.of_session(token) == other


@pytest.mark.parametrize("redirect", ["http://[", "https://a;script-src *", "x y", "http://a'b/", "", ":"])
def test_what_is_no_address_is_in_no_policy(member, login, redirect):
    """Nobody has looked yet at the query of the page to which the form goes."""
    person = Person(member.url)
    asked = person.open(address(member.url, app()[0]))
    form = asked.raw.replace(b"redirect_uri=https%3A%2F%2Fabc", b"redirect_uri=" + quote(redirect).encode() + b"&amp;x=")
    assert form != asked.raw
    again = person.sign_in(Answer(200, asked.headers, form), login, "wrong password")
    policy = page(again, 403) and again.headers["Content-Security-Policy"]
    assert not set("*[]xy") & set(policy.partition("form-action 'self'")[2].partition("; frame-ancestors")[0])
    page(person.sign_in(Answer(200, asked.headers, form), login), 400)      # signed in, and the app's mistake is told


@pytest.mark.parametrize("redirect", ["http://[", "https://a:b/", "https://[::1/", "https://a:70000/"])
def test_what_cannot_be_read_as_an_address_is_refused_in_a_sentence(redirect):
    with pytest.raises(click.BadParameter):
        sound_redirect(redirect)
