"""What an authorization server must refuse: stolen, replayed, mixed up, forged and malformed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from oauthlib.oauth2 import MismatchingStateError
from requests_oauthlib import OAuth2Session

from storage.database import database
from storage.models import Client
from storage.oauth import Code, Grant
from tests.browser import page
from tests.person import (BACK, PASSWORD, VERIFIER, Person, address, answered, app, can_sign_in, form, redeem, refresh, tokens)
from tests.service import Http, Member, start_api


@pytest.fixture
def ann(member):
    """The member's user, signed in."""
    person = Person(member.url)
    login = f"ann.{member.user.id}".lower()
    can_sign_in(member.user, login)
    person.sign_in(person.open(address(member.url, app()[0])), login)
    return person


def code_for(ann, member, client, **changes):
    return answered(ann.allow(ann.open(address(member.url, client, **changes))))["code"]


def works(member, token):
    return Http(member.url, token).get("/v1/ideas/today").status == 200


def test_a_replayed_code_ends_what_it_gave(member, ann):
    client, _ = app()
    code = code_for(ann, member, client, scope="ideas:read")
    given = redeem(member.url, client, code).body
    assert works(member, given["access_token"])
    replayed = redeem(member.url, client, code)
    assert (replayed.status, replayed.body["error"], replayed.headers["Cache-Control"]) == (400, "invalid_grant", "no-store")
    assert not works(member, given["access_token"])
    assert refresh(member.url, client, given["refresh_token"]).body["error"] == "invalid_grant"


def test_a_code_gives_tokens_once_however_many_ask_at_once(member, ann):
    client, _ = app()
    code = code_for(ann, member, client)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: redeem(member.url, client, code).status, range(8)))
    assert sorted(statuses) == [200] + [400] * 7


def test_a_replayed_refresh_token_ends_the_whole_family(member, ann):
    client, _ = app(scopes=["ideas:read"])
    first = tokens(member, client, person=ann)
    second = refresh(member.url, client, first["refresh_token"]).body
    third = refresh(member.url, client, second["refresh_token"]).body
    other = tokens(member, client, person=ann)
    assert all(works(member, given["access_token"]) for given in (first, second, third, other))
    assert refresh(member.url, client, first["refresh_token"]).body["error"] == "invalid_grant"
    assert not any(works(member, given["access_token"]) for given in (first, second, third))
    assert refresh(member.url, client, third["refresh_token"]).body["error"] == "invalid_grant"
    assert works(member, other["access_token"])     # what the person allowed another time is another thing


def test_a_refresh_token_is_good_for_nothing_else(member, ann):
    client, _ = app()
    given = tokens(member, client, person=ann)
    assert Http(member.url, given["refresh_token"]).get("/v1/ideas/today").status == 401
    assert refresh(member.url, client, given["access_token"]).body["error"] == "invalid_grant"
    assert redeem(member.url, client, given["refresh_token"]).body["error"] == "invalid_grant"
    assert refresh(member.url, client, given["refresh_token"], scope="ideas:write posts:write").body["error"] == "invalid_scope"
    assert refresh(member.url, client, given["refresh_token"]).status == 200


@pytest.mark.parametrize("changes, error", [
    ({"code_verifier": "w" * 43}, "invalid_grant"), ({"code_verifier": None}, "invalid_request"),
    ({"code_verifier": VERIFIER + "v"}, "invalid_grant"), ({"code_verifier": "short"}, "invalid_request"),
    ({"redirect_uri": BACK + "/"}, "invalid_grant"), ({"redirect_uri": None}, "invalid_grant"),
    ({"code": "ac_nonsense"}, "invalid_grant"), ({"code": None}, "invalid_request"), ({"code": "é\0"}, "invalid_request"),
    ({"client_id": "app_nobody"}, "invalid_client"), ({"client_id": None}, "invalid_client"),
    ({"client_id": "\0"}, "invalid_request"),
    ({"client_secret": "cs_guess"}, "invalid_client"), ({"grant_type": "password"}, "unsupported_grant_type"),
    ({"grant_type": "implicit\""}, "invalid_request"), ({"grant_type": ["authorization_code", "password"]}, "invalid_request"),
    ({"resource": "https://elsewhere.example"}, "invalid_target")], ids=str)
def test_a_code_is_refused_to_whoever_cannot_prove_it(member, ann, changes, error):
    client, _ = app()
    code = code_for(ann, member, client)
    answer = redeem(member.url, client, code, **changes)
    assert (answer.status in (400, 401), answer.body["error"]) == (True, error)
    assert redeem(member.url, client, code).status == 200


def test_a_code_is_its_own_apps_and_soon_over(member, ann, connection):
    client, other = app()[0], app()[0]
    code = code_for(ann, member, client)
    assert redeem(member.url, other, code).body["error"] == "invalid_grant"
    Code.update(expires_at=datetime.now(UTC) - timedelta(seconds=1)).execute()
    assert redeem(member.url, client, code).body["error"] == "invalid_grant"


def test_a_confidential_app_needs_its_secret_and_the_proof(member, ann):
    client, secret = app(confidential=True)
    code = code_for(ann, member, client)
    for changes in ({}, {"client_secret": app(confidential=True)[1]}, {"client_secret": secret[:-1]}):
        assert redeem(member.url, client, code, **changes).body["error"] == "invalid_client"
    assert redeem(member.url, client, code, client_secret=secret, code_verifier="w" * 43).body["error"] == "invalid_grant"
    given = redeem(member.url, client, code, client_secret=secret).body
    assert refresh(member.url, client, given["refresh_token"]).body["error"] == "invalid_client"
    revoked = form(member.url, "/oauth/revoke", {"token": given["access_token"], "client_id": client.id})
    assert revoked.body["error"] == "invalid_client"
    asked = {"grant_type": "client_credentials", "client_id": client.id, "client_secret": secret}
    own = form(member.url, "/oauth/token", asked)
    assert own.body["error"] == "unauthorized_client"
    broken = form(member.url, "/oauth/token", {"grant_type": "client_credentials"}, headers={"Authorization": "Basic //79"})
    assert (broken.status, broken.body["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("changes", [
    {"redirect_uri": BACK + "/"}, {"redirect_uri": BACK + "?x=1"}, {"redirect_uri": BACK.upper()}, {"redirect_uri": None},
    {"redirect_uri": BACK.replace("https", "http")}, {"redirect_uri": "https://evil.example/"}, {"redirect_uri": [BACK, BACK]},
    {"client_id": "app_nobody"}, {"client_id": None}, {"redirect_uri": "javascript:alert(1)"}, {"redirect_uri": BACK + "\0"},
    {"redirect_uri": "é\"<script>"}, {"response_type": "token é"}], ids=str)
def test_whoever_cannot_be_trusted_with_the_person_is_shown_to_the_person(member, ann, changes):
    answer = ann.open(address(member.url, app()[0], **changes))
    assert "<script>" not in page(answer, 400) and "Location" not in answer.headers


@pytest.mark.parametrize("changes, error", [
    ({"code_challenge": None}, "invalid_request"), ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"), ({"code_challenge": "short"}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"), ({"response_type": None}, "unsupported_response_type"),
    ({"scope": "posts:write"}, "invalid_scope"), ({"scope": "everything"}, "invalid_scope"),
    ({"scope": " "}, "invalid_scope"), ({"scope": "   "}, "invalid_scope")], ids=str)
def test_an_apps_mistake_is_told_to_the_app(member, ann, changes, error):
    for confidential in (False, True):
        answer = ann.open(address(member.url, app(confidential)[0], **changes))
        assert (answer.status, answer.headers["Location"].startswith(BACK + "?")) == (303, True)
        told = answered(answer.headers["Location"])
        assert (told["error"], told["state"], told["iss"], "code" in told) == (error, "s-1", member.url, False)


def test_a_person_may_say_no(member, ann):
    client, _ = app()
    answer = ann.press(ann.open(address(member.url, client)), "Allow", decision="deny")
    told = answered(answer.headers["Location"])
    assert (told["error"], told["state"], told["iss"]) == ("access_denied", "s-1", member.url)


def test_an_app_of_another_team_and_a_client_of_another_team_are_none_of_theirs(member, ann, connection):
    stranger = Member(member.url)
    foreign, _ = app(team_id=stranger.team.id)
    assert answered(ann.open(address(member.url, foreign)).headers["Location"])["error"] == "access_denied"
    client, _ = app()
    answer = ann.press(ann.open(address(member.url, client)), "Allow", decision="allow", client=stranger.client.id)
    assert page(answer, 400) and not Grant.select().where(Grant.oauth_client_id << [client.id, foreign.id]).exists()


@pytest.mark.parametrize("scope", [None, "", "ideas:write  ideas:write", " ideas:read"])
def test_a_token_may_do_what_the_page_said_and_no_more(member, ann, scope):
    client, _ = app()
    shown = page(answer := ann.open(address(member.url, client, scope=scope)), 200)
    given = redeem(member.url, client, answered(ann.allow(answer))["code"]).body["scope"].split()
    named = {"ideas:write": "Save and change ideas", "ideas:read": "See the saved ideas"}
    assert given and set(given) == {scope for scope, words in named.items() if words in shown}


def test_no_scope_is_not_every_scope(member, ann):
    client, secret = app(confidential=True, team_id=member.team.id, user_id=member.user.id)
    proof = {"client_id": client.id, "client_secret": secret, "scope": " "}
    assert form(member.url, "/oauth/token", {**proof, "grant_type": "client_credentials"}).body["error"] == "invalid_scope"
    public, _ = app()
    first = tokens(member, public, person=ann)
    assert refresh(member.url, public, first["refresh_token"], scope=" ").body["error"] == "invalid_scope"


def test_a_client_that_is_not_active_is_no_choice(member, ann, connection):
    client, _ = app()
    asked = ann.open(address(member.url, client))
    assert member.client.name in asked.raw.decode()
    Client.update(status="suspended").where(Client.id == member.client.id).execute()
    page(ann.press(asked, "Allow", decision="allow", client=member.client.id), 400)
    assert member.client.name not in ann.open(address(member.url, client)).raw.decode()


def test_the_page_that_asks_names_nothing_of_another_team(member, ann, connection):
    """Nor what the same person's other teams might have: a person is of one team."""
    stranger = Member(member.url, "Canary Team")
    Client.update(name="Canary Client").where(Client.id == stranger.client.id).execute()
    shown = page(ann.open(address(member.url, app()[0])), 200)
    assert member.client.id in shown
    assert not [word for word in ("Canary", stranger.client.id, stranger.team.id) if word in shown]


def test_no_other_site_can_say_yes_in_a_persons_name(member, ann, connection):
    client, _ = app()
    url = address(member.url, client)
    asked = ann.open(url)
    for token in ("", "0" * 64, "é"):
        page(ann.open(url, {"decision": "allow", "form_token": token}), 403)
    other = Person(member.url)
    stranger = Member(member.url)
    can_sign_in(stranger.user, f"eve.{stranger.user.id}".lower())
    theirs = other.sign_in(other.open(url), f"eve.{stranger.user.id}")
    ann.cookies, other.cookies = other.cookies, ann.cookies
    page(ann.press(asked, "Allow", decision="allow"), 403)
    page(other.press(theirs, "Allow", decision="allow"), 403)
    assert not Grant.select().where(Grant.oauth_client_id == client.id).exists()


def test_answers_of_two_servers_cannot_be_mixed_up(member, ann, environ, monkeypatch):
    """RFC 9207: a program that compares `iss` with the issuer that it asked sees that another one answered."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    process, url = start_api(environ)
    try:
        client, _ = app()
        session = OAuth2Session(client.id, redirect_uri=BACK, scope=["ideas:write"], pkce="S256")
        asked = Http(url).get("/.well-known/oauth-authorization-server").body
        session.authorization_url(asked["authorization_endpoint"])
        back = ann.allow(ann.open(address(member.url, client)))     # but the person was led to the other server
        assert answered(back)["iss"] == member.url != asked["issuer"]
        with pytest.raises(MismatchingStateError):
            session.fetch_token(asked["token_endpoint"], authorization_response=back, include_client_id=True)
        assert redeem(url, client, answered(back)["code"],
                      code_verifier=session._code_verifier).body["error"] == "invalid_grant"
    finally:
        process.stop()


def test_over_plain_http_nothing_is_given_but_on_this_machine(environ, member):
    process, url = start_api({**environ, "POSTHORN_BASE_URL": "http://posthorn.example"})
    try:
        client, _ = app()
        assert "utilize https" in page(Person(url).open(address(url, client)), 400)
        assert redeem(url, client, "ac_x").body["error"] == "insecure_transport"
    finally:
        process.stop()


def test_guessing_is_limited_by_address(environ, member):
    process, url = start_api({**environ, "POSTHORN_FAILED_CREDENTIALS_LIMIT": "4"})
    try:
        client, login = app()[0], f"ann.{member.user.id}".lower()
        can_sign_in(member.user, login)

        def guess():
            body = f"grant_type=refresh_token&refresh_token=rt_x&client_id={client.id}".encode()
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            return Http(url, source="127.0.0.9").request("POST", "/oauth/token", body=body, headers=kind)
        answers = [guess() for _ in range(6)]
        assert [answer.status for answer in answers] == [400] * 4 + [429] * 2 and int(answers[-1].headers["Retry-After"]) >= 1
        person = Person(url)
        asked = person.open(address(url, client))
        assert [person.sign_in(asked, login, "wrong password").status for _ in range(4)] == [403] * 4
        assert person.sign_in(asked, login, PASSWORD).status == 429     # even the right one, so that guessing tells nothing
        _guessing_keeps_nobody_else_out(url, client, login)
    finally:
        process.stop()


def _guessing_keeps_nobody_else_out(url, client, login):
    def bucket(name):
        with database.connection_context():
            return database.execute_sql("SELECT name FROM buckets WHERE name = %s", (f"sign-in:{name}",)).fetchone()

    mallory = Person(url, source="127.0.0.8")
    asked = mallory.open(address(url, client))
    assert [mallory.sign_in(asked, login, "wrong").status for _ in range(6)] == [403] * 4 + [429] * 2
    mallory.sign_in(asked, "nobody.at.all", "wrong")
    assert bucket(sha256(login.encode()).hexdigest()) and not bucket(sha256(b"nobody.at.all").hexdigest())
    for _ in range(6):      # the right password costs nothing
        ann = Person(url, source="127.0.0.10")
        assert "Allow Idea Clipper?" in page(ann.sign_in(ann.open(address(url, client)), login), 200)
    assert not bucket("127.0.0.10")


def test_a_person_is_guarded_from_guesses_of_many_addresses(environ, member):
    process, url = start_api({**environ, "POSTHORN_FAILED_CREDENTIALS_LIMIT": "1"})
    try:
        login = f"ann.{member.user.id}".lower()
        can_sign_in(member.user, login)
        for number in range(10):
            mallory = Person(url, source=f"127.0.1.{number}")
            assert mallory.sign_in(mallory.open(address(url, app()[0])), login, "wrong").status == 403
        ann = Person(url, source="127.0.1.10")
        assert ann.sign_in(ann.open(address(url, app()[0])), login).status == 429
    finally:
        process.stop()
