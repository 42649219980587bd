"""Programs get access in a person's name: the whole way, by a program's own library, and what the tokens open."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from requests_oauthlib import OAuth2Session

from handlers.contract import Contract
from storage import keys
from storage.models import Team
from storage.oauth import Code, Grant, OAuthClient, Token
from tests.browser import page
from tests.person import BACK, Person, address, answered, app, can_sign_in, form, redeem, refresh, tokens
from tests.service import Http, Member

IDEA = {"content": "Bread for breakfast", "sourceUrl": "https://example.net/bread"}


def bearer(member, token):
    return Http(member.url, token)


def test_the_browser_extension_signs_in_saves_an_idea_and_edits_it(member, monkeypatch):
    """As the extension of the service's description, with oauthlib, which knows nothing of us but our metadata."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    metadata = Http(member.url).get("/.well-known/oauth-authorization-server").body
    client, _ = app()
    can_sign_in(member.user, f"ann@{member.team.id}".lower())
    session = OAuth2Session(client.id, redirect_uri=BACK, scope=["ideas:write", "ideas:read"], pkce="S256",
                            auto_refresh_url=metadata["token_endpoint"], auto_refresh_kwargs={"client_id": client.id},
                            token_updater=lambda token: setattr(session, "token", token))
    url, state = session.authorization_url(metadata["authorization_endpoint"])

    person = Person(member.url)
    asked = person.sign_in(person.open(url), f"ann@{member.team.id}".upper())
    text = page(asked, 200)
    assert "Allow Idea Clipper?" in text and "Save and change ideas" in text and "See the saved ideas" in text and BACK in text
    assert "Publish" not in text and "in test mode only" in text and member.team.name.replace("&", "&amp;") in text
    back = person.allow(asked)
    assert answered(back)["iss"] == metadata["issuer"] == member.url and answered(back)["state"] == state

    given = session.fetch_token(metadata["token_endpoint"], authorization_response=back, include_client_id=True)
    assert (given["token_type"], given["expires_in"], given["scope"]) == ("Bearer", 3600, ["ideas:write", "ideas:read"])
    assert re.fullmatch("at_[0-9A-Za-z]{38}", given["access_token"])
    assert re.fullmatch("rt_[0-9A-Za-z]{38}", given["refresh_token"])
    idea = session.post(f"{member.url}/v1/ideas", json=IDEA).json()["data"]
    edited = session.patch(f"{member.url}/v1/ideas/{idea['id']}", json={"content": "Bread for supper"}).json()["data"]
    assert edited == {**idea, "content": "Bread for supper"} and member.test.get("/v1/ideas/today").data == {"ideas": [edited]}

    session.token = {**given, "expires_at": 1}      # the library refreshes by itself
    assert session.get(f"{member.url}/v1/ideas/today").json()["data"] == {"ideas": [edited]}
    assert session.token["refresh_token"] != given["refresh_token"]
    assert session.post(f"{member.url}/v1/posts", json={"targets": [{"platform": "gbp"}]}).status_code == 403


def test_metadata_tells_all_a_program_needs(api_url):
    server = Http(api_url).get("/.well-known/oauth-authorization-server").body
    resource = Http(api_url).get("/.well-known/oauth-protected-resource").body
    assert (resource["resource"], resource["authorization_servers"], server["issuer"]) == (api_url, [api_url], api_url)
    assert server["scopes_supported"] == resource["scopes_supported"] == list(Contract().scopes) == list(keys.SCOPES)
    assert (server["code_challenge_methods_supported"], server["response_types_supported"]) == (["S256"], ["code"])
    assert server["authorization_response_iss_parameter_supported"] is True
    assert server["grant_types_supported"] == ["authorization_code", "refresh_token", "client_credentials"]
    ends = {name: server[f"{name}_endpoint"] for name in ("authorization", "token", "revocation")}
    assert ends == {"authorization": f"{api_url}/oauth/authorize", "token": f"{api_url}/oauth/token",
                    "revocation": f"{api_url}/oauth/revoke"}
    challenge = Http(api_url).get("/v1/posts").headers["WWW-Authenticate"]
    assert f'resource_metadata="{api_url}/.well-known/oauth-protected-resource"' in challenge


def test_nothing_that_opens_anything_is_kept_in_the_clear(member, connection):
    client, secret = app(confidential=True)
    person = Person(member.url)
    can_sign_in(member.user, f"ann.{member.user.id}".lower())
    asked = person.sign_in(person.open(address(member.url, client)), f"ann.{member.user.id}")
    code = answered(person.allow(asked))["code"]
    given = redeem(member.url, client, code, client_secret=secret).body
    cookies = list(person.cookies.values())
    rows = [repr(list(model.select().dicts())) for model in (OAuthClient, Grant, Code, Token)]
    rows += [repr(connection.execute_sql(f"SELECT {table}::text FROM {table}").fetchall()) for table in ("sessions", "users")]
    for canary in (secret, code, given["access_token"], given["refresh_token"], *cookies, "correct horse"):
        assert len(canary) > 12 and canary[-20:] not in "".join(rows)


def test_a_token_is_of_the_person_who_allowed_it(member):
    client, _ = app()
    mine = bearer(member, tokens(member, client)["access_token"])
    idea = mine.post("/v1/ideas", IDEA).data
    assert member.test.patch(f"/v1/ideas/{idea['id']}", {"content": "x"}).status == 200    # another credential of the same user
    assert member.colleague().patch(f"/v1/ideas/{idea['id']}", {"content": "y"}).status == 404
    assert member.live.get("/v1/ideas/today").data == {"ideas": []}
    assert Member(member.url).test.get("/v1/ideas/today").data == {"ideas": []}


@pytest.mark.parametrize("choice", ["the person's", "the app's"])
def test_a_token_for_one_agency_client_sees_it_alone(member, choice):
    of_team = {"team_id": member.team.id, "client_id": member.client.id} if choice == "the app's" else {}
    client, _ = app(scopes=["clients:read", "ideas:write", "ideas:read"], **of_team)
    chosen = {} if of_team else {"client": member.client.id}
    limited = bearer(member, tokens(member, client, **chosen)["access_token"])
    member.test.post("/v1/ideas", IDEA)
    idea = limited.post("/v1/ideas", IDEA).data
    assert limited.get("/v1/ideas/today").data == {"ideas": [idea]}
    assert limited.get("/v1/clients").data == {"clients": [member.client.to_dict()]}


def test_client_credentials_act_as_their_user(member):
    client, secret = app(confidential=True, team_id=member.team.id, user_id=member.user.id, redirect_uris=[])
    asked = {"grant_type": "client_credentials", "client_id": client.id, "client_secret": secret}
    answer = form(member.url, "/oauth/token", asked)
    assert answer.status == 200 and answer.body.keys() == {"token_type", "access_token", "expires_in", "scope"}
    idea = bearer(member, answer.body["access_token"]).post("/v1/ideas", IDEA).data
    assert member.test.patch(f"/v1/ideas/{idea['id']}", {"topic": "x"}).status == 200
    narrow = form(member.url, "/oauth/token", {**asked, "scope": "ideas:read"}).body
    assert bearer(member, narrow["access_token"]).post("/v1/ideas", IDEA).status == 403


def test_each_program_acts_for_its_own_team(member):
    members = [member, Member(member.url), Member(member.url)]
    for one in members:
        client, secret = app(confidential=True, team_id=one.team.id, user_id=one.user.id, scopes=["accounts:read"])
        asked = {"grant_type": "client_credentials", "client_id": client.id, "client_secret": secret}
        token = form(member.url, "/oauth/token", asked).body["access_token"]
        assert bearer(member, token).get("/v1/accounts").data["team"]["id"] == one.team.id


def test_a_refreshed_token_may_have_less_and_the_next_one_all_again(member):
    client, _ = app()
    given = tokens(member, client)
    less = refresh(member.url, client, given["refresh_token"], scope="ideas:read").body
    assert less["scope"] == "ideas:read" and bearer(member, less["access_token"]).post("/v1/ideas", IDEA).status == 403
    again = refresh(member.url, client, less["refresh_token"]).body
    assert bearer(member, again["access_token"]).post("/v1/ideas", IDEA).status == 201


def test_a_token_ends_with_its_hour_its_app_its_user_and_not_with_its_session(member, connection):
    client, _ = app()
    person = Person(member.url)
    can_sign_in(member.user, f"ann.{member.user.id}".lower())
    given = tokens(member, client, person=person, login=f"ann.{member.user.id}")
    http = bearer(member, given["access_token"])
    assert person.press(person.open(address(member.url, client)), "Sign out").status == 200
    assert http.get("/v1/ideas/today").status == 200
    digest = keys.digest(given["access_token"])
    Token.update(expires_at=datetime.now(UTC) - timedelta(seconds=1)).where(Token.digest == digest).execute()
    assert http.get("/v1/ideas/today").status == 401
    other = bearer(member, refresh(member.url, client, given["refresh_token"]).body["access_token"])
    assert other.get("/v1/ideas/today").status == 200
    OAuthClient.get_by_id(client.id).revoke()
    assert (other.get("/v1/ideas/today").status, person.open(address(member.url, client)).status) == (401, 400)


def test_no_plan_forbids_tokens_as_it_forbids_keys(member, connection):
    http = bearer(member, tokens(member, app()[0])["access_token"])
    Team.update(plan_expires_at=datetime.now(UTC) - timedelta(seconds=1)).where(Team.id == member.team.id).execute()
    assert (http.get("/v1/ideas/today").status, http.get("/v1/ideas/today").code) == (403, "forbidden")


def test_many_tokens_of_one_person_share_one_allowance(member):
    client, _ = app()
    given = tokens(member, client)
    first = bearer(member, given["access_token"]).get("/v1/ideas/today").headers["RateLimit-Remaining"]
    second = bearer(member, refresh(member.url, client, given["refresh_token"]).body["access_token"]).get("/v1/ideas/today")
    assert int(second.headers["RateLimit-Remaining"]) <= int(first)


def test_an_app_gives_its_tokens_back(member):
    client, _ = app()
    given = tokens(member, client)
    http = bearer(member, given["access_token"])
    assert form(member.url, "/oauth/revoke", {"token": given["access_token"], "client_id": client.id}).status == 200
    assert http.get("/v1/ideas/today").status == 401
    second = refresh(member.url, client, given["refresh_token"]).body
    assert form(member.url, "/oauth/revoke", {"token": second["refresh_token"], "client_id": client.id}).status == 200
    assert bearer(member, second["access_token"]).get("/v1/ideas/today").status == 401
    assert refresh(member.url, client, second["refresh_token"]).body["error"] == "invalid_grant"
    for unknown in ("at_nonsense", second["refresh_token"], "\0"):
        assert form(member.url, "/oauth/revoke", {"token": unknown, "client_id": client.id}).status in (200, 400)
    other, _ = app()
    third = tokens(member, client)
    refused = form(member.url, "/oauth/revoke", {"token": third["access_token"], "client_id": other.id})
    assert (refused.status, bearer(member, third["access_token"]).get("/v1/ideas/today").status) == (400, 200)
