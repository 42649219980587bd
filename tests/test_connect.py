"""Connecting accounts in the browser, over real HTTP: the API, the pages, and an instance of Mastodon as strict as real ones."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from handlers.connect import check
from handlers.errors import Unprocessable
from platforms.accounts import owner
from storage.database import database
from storage.models import Account, Client, ConnectRequest
from storage.retention import tidy
from storage.secrets import Vault
from tests.browser import Browser, page
from tests.delivery import Told
from tests.service import Member, start_api
from tests.standins.mastodon import MastodonServer
from tests.standins.server import HOST

PATH, CALLBACK = "/v1/accounts/connect", "/connect/callback"
HOSTILE = "<script>alert('1')</script> \"Ann\" & Söhne"
BACK = "https://agency.example.com/done?customer=17"

browser = Browser()


@pytest.fixture(scope="module")
def net():
    with MastodonServer() as net:
        yield net


@pytest.fixture(scope="module")
def connecting_environ(environ, net):
    return {**environ, "POSTHORN_ALLOW_PRIVATE": f"{HOST}:{net.port}", "POSTHORN_PINTEREST_CLIENT_ID": "",
            "POSTHORN_FETCH_RATE_LIMIT": "10000"}


@pytest.fixture(scope="module")
def service(connecting_environ, net):
    process, url = start_api(connecting_environ)
    yield url
    log = process.log()
    process.stop()
    log += process.log()
    secrets = [*browser.secrets, *net.tokens, *(app.secret for app in net.apps.values())]
    assert len(secrets) > 10 and [secret for secret in secrets if len(secret) > 15 and secret in log] == []
    assert "nothing connected at Mastodon" in log and " ERROR " not in log


@pytest.fixture
def member(service):
    return Member(service)


@pytest.fixture(autouse=True)
def ann(net):
    """A fresh person on the network, who says yes."""
    return net.add_user(f"ann{len(net.accounts)}", display_name=HOSTILE)


def begun(member, net, **more):
    """What the answer to a request to connect holds."""
    answer = member.live.post(PATH, {"platform": "mastodon", "instance": net.url, **more})
    assert answer.status == 201, answer.raw
    browser.secrets.append(answer.data["state"])
    return answer.data


def came_back(member, net, **more):
    """The address to which the network sends the person's browser back."""
    return browser.allow(begun(member, net, **more)["authorizeUrl"])


def accounts(http, query=""):
    return http.get(f"/v1/accounts{query}").data["accounts"]


def age(**columns):
    """Writes the youngest request to connect."""
    youngest = ConnectRequest.select(ConnectRequest.id).order_by(ConnectRequest.created_at.desc()).limit(1)
    with database.connection_context():
        ConnectRequest.update(**columns).where(ConnectRequest.id.in_(youngest)).execute()


# The way there and back.

def test_a_person_goes_to_the_network_comes_back_and_is_shown_what_was_connected(member, net, ann, connecting_environ):
    asked = begun(member, net)
    minutes = (datetime.fromisoformat(asked["expiresAt"]) - datetime.now(UTC)).total_seconds() / 60
    assert 9.5 < minutes <= 10 and re.fullmatch(r"[\w-]{43}", asked["state"])
    address, query = asked["authorizeUrl"].split("?")
    query = parse_qs(query)
    assert address == f"{net.url}/oauth/authorize" and query["state"] == [asked["state"]]
    assert query["redirect_uri"] == [member.url + CALLBACK] and query["code_challenge_method"] == ["S256"]
    assert query["scope"] == ["read:accounts read:statuses write:statuses write:media"]

    text = page(browser.open(browser.allow(asked["authorizeUrl"])), 200)
    assert "Connected with Mastodon" in text and HOSTILE in unescape(text)
    [account] = accounts(member.live)
    username = f"{net.accounts[ann].username}@{HOST}:{net.port}"
    assert account == {"id": account["id"], "platform": "mastodon", "username": username, "displayName": HOSTILE,
                       "profilePicture": f"{net.url}/avatar.png", "status": "connected"}
    with database.connection_context():
        row = Account.get_by_id(account["id"])
    kept = Vault((connecting_environ["POSTHORN_SECRET_KEYS"],)).open(owner(member.team.id, row.id), row.credentials)
    token = net.tokens[kept["accessToken"]]
    assert token.account.id == ann == row.platform_id and len(token.scopes) == 4 and row.host == net.url


def test_the_state_is_kept_as_a_digest_alone(member, net):
    state = begun(member, net)["state"]
    with database.connection_context():
        row = ConnectRequest.get(ConnectRequest.team_id == member.team.id)
    assert state not in repr(row.__data__) and (row.user_id, row.client_id) == (member.user.id, None)


def test_the_account_is_that_of_the_team_and_client_which_began(member, net):
    stranger = Member(member.url)
    browser.open(came_back(member, net, clientId=member.client.id))
    limited = member.http(mode="live", client_id=member.client.id)
    assert [one["clientId"] for one in accounts(limited)] == [member.client.id]
    assert accounts(member.live) == accounts(stranger.live) == [] and accounts(member.live, f"?clientId={member.client.id}")
    browser.open(browser.allow(limited.post(PATH, {"platform": "mastodon", "instance": net.url}).data["authorizeUrl"]))
    assert len(accounts(limited)) == 1 and accounts(member.live) == []


def test_an_account_that_is_connected_again_keeps_its_id(member, net, ann):
    browser.open(came_back(member, net))
    [before] = accounts(member.live)
    assert member.live.delete(f"/v1/accounts/{before['id']}").data["status"] == "disconnected"
    net.accounts[ann].display_name = "Ann again"
    browser.open(came_back(member, net))
    assert accounts(member.live) == [{**before, "displayName": "Ann again"}]


def test_with_a_redirect_url_the_person_ends_there(member, net):
    asked = begun(member, net, redirectUrl=BACK)
    answer = browser.open(browser.allow(asked["authorizeUrl"]))
    [account] = accounts(member.live)
    told = urlencode({"state": asked["state"], "status": "connected", "accountId": account["id"]})
    assert (answer.status, answer.headers["Location"]) == (303, f"{BACK}&{told}")
    assert answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("name", ["redirectUrl", "redirect_url", "redirect_uri", "next", "url"])
def test_nothing_in_the_address_changes_where_the_person_ends(member, net, name):
    answer = browser.open(came_back(member, net) + "&" + urlencode({name: "https://evil.example/"}))
    assert "Location" not in answer.headers and b"evil" not in answer.raw and page(answer, 200)
    answer = browser.open(came_back(member, net, redirectUrl=BACK) + "&" + urlencode({name: "https://evil.example/"}))
    assert answer.headers["Location"].startswith(f"{BACK}&state=") and "evil" not in answer.headers["Location"]


@pytest.mark.parametrize("url, status", [
    ("https://agency.example.com", 201), ("https://agency.example.com:8443/a@b?x=%20", 201),
    ("http://localhost:3000/done", 201), ("http://127.0.0.1/done", 201), ("http://[::1]:3000/", 201), ("http://agency.example.com/", 422),
    ("http://localhost.evil.example/", 422), ("http://127.0.0.1.evil.example/", 422), ("http://2130706433/", 422),
    ("https://user:password@evil.example/", 422), ("https://agency.example.com/#there", 422), ("javascript:alert(1)", 422),
    ("//evil.example/", 422), ("https:evil.example", 422), ("https://evil.example\\@agency.example.com/", 422), ("/done", 422),
    ("https://a.example/\r\nX-Injected: 1", 422), ("data:text/html,x", 422), ("https://", 422), ("ftp://a.example/", 422)])
def test_where_a_person_may_end(member, net, url, status):
    answer = member.live.post(PATH, {"platform": "mastodon", "instance": net.url, "redirectUrl": url})
    assert answer.status == status, answer.raw
    assert status == 201 or {path for path, _ in answer.rules} == {"/redirectUrl"}


# What is refused before anybody goes anywhere.

@pytest.mark.parametrize("body, rules", [
    ({"platform": "mastodon"}, [("/instance", "required")]),
    ({"platform": "pinterest", "instance": "a.example.com"}, [("/instance", "instance")]),
    ({"platform": "mastodon", "redirectUrl": "http://a.example.com"},
     [("/instance", "required"), ("/redirectUrl", "redirect_url")]),
    ({"platform": "mastodon", "instance": "https://10.0.0.1"}, [("/instance", "host")]),
    ({"platform": "mastodon", "instance": "http://social.example.com"}, [("/instance", "host")]),
    ({"platform": "mastodon", "instance": "nowhere.invalid"}, [("/instance", "host")]),
    ({"platform": "mastodon", "instance": "localhost"}, [("/instance", "host")]),
    ({"platform": "mastodon", "instance": "169.254.169.254"}, [("/instance", "host")]),
    ({"platform": "mastodon", "instance": "a_b c"}, [("/instance", "pattern")]),
    ({"platform": "nothing"}, [("/platform", "enum")])])
def test_values_that_are_refused(member, body, rules):
    answer = member.live.post(PATH, body)
    assert (answer.status, answer.rules) == (422, rules), answer.raw


def test_a_network_that_does_not_connect_in_the_browser():
    with pytest.raises(Unprocessable) as caught:
        check(Told(), None, None)
    assert [(detail.path, detail.rule) for detail in caught.value.details] == [("/platform", "browser")]


def test_nobody_learns_what_there_is_in_our_network(member, net):
    net.fault("GET /api/v2/instance", status=200, body="<html>the router</html>")
    asked = [member.live.post(PATH, {"platform": "mastodon", "instance": instance}).body["error"]
             for instance in ("10.0.0.1", "nowhere.invalid", "localhost:5432", net.url)]
    assert len({str(error) for error in asked}) == 1


def test_a_server_that_fails_is_not_the_callers_fault(member, net):
    net.fault("POST /api/v1/apps", status=503, body={"error": "busy"})
    answer = member.live.post(PATH, {"platform": "mastodon", "instance": net.url})
    assert (answer.status, answer.code) == (502, "external_service_error")


def test_an_app_that_the_operator_has_not_set_up_is_named(member):
    answer = member.live.post(PATH, {"platform": "pinterest"})
    assert (answer.status, answer.code) == (409, "invalid_state")
    assert "POSTHORN_PINTEREST_CLIENT_ID" in answer.body["error"]["message"]


def test_the_state_of_things_comes_last(member, net):
    stranger = Member(member.url)
    body = {"platform": "mastodon", "instance": net.url}
    assert (member.test.post(PATH, body).status, member.test.post(PATH, body).code) == (409, "invalid_state")
    assert member.test.post(PATH, {"platform": "mastodon"}).status == 422
    assert member.live.post(PATH, {**body, "clientId": stranger.client.id}).status == 404
    assert member.test.post(PATH, {**body, "clientId": "client_0"}).status == 404
    with database.connection_context():
        Client.update(status="suspended").where(Client.id == member.client.id).execute()
    assert member.live.post(PATH, {**body, "clientId": member.client.id}).status == 409


def test_a_request_to_connect_is_repeated_with_its_key(member, net):
    body, headers = {"platform": "mastodon", "instance": net.url}, {"Idempotency-Key": "connect-1"}
    first, again = (member.live.post(PATH, body, headers=headers) for _ in range(2))
    assert first.raw == again.raw and again.headers["Idempotent-Replayed"] == "true"
    with database.connection_context():
        assert ConnectRequest.select().where(ConnectRequest.team_id == member.team.id).count() == 1


# The callback, and those who try things.

def test_a_state_works_once(member, net):
    back = came_back(member, net)
    page(browser.open(back), 200)
    assert "This link does not work" in page(browser.open(back), 400)
    assert len(accounts(member.live)) == 1


def test_of_two_at_once_one_connects(member, net):
    back = came_back(member, net)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: Browser().open(back), range(8)))
    assert sorted(answer.status for answer in answers) == [200] + [400] * 7
    assert len(accounts(member.live)) == 1


def test_an_account_that_is_connected_twice_at_once_is_one(member, net):
    backs = [came_back(member, net) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda back: Browser().open(back), backs))
    assert [answer.status for answer in answers] == [200] * 6
    assert len(accounts(member.live)) == 1


def test_a_state_ends_after_ten_minutes_and_is_swept_later(member, net):
    back = came_back(member, net)
    age(expires_at=datetime.now(UTC))
    assert "ten minutes" in page(browser.open(back), 400)
    assert accounts(member.live) == []
    age(expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    with database.connection_context():
        tidy()
        assert ConnectRequest.select().where(ConnectRequest.team_id == member.team.id).count() == 0


@pytest.mark.parametrize("query", [
    "", "?code=x", "?state=", "?state=x&code=y", "?state=" + "A" * 43 + "&code=x", "?state=" + "x" * 9000,
    "?state=%00&code=%00", "?state=%ff%fe&code=%ff", "?state[]=x", "?error=access_denied", "?state=a&state=b",
    "?%22%3E%3Cscript%3Ealert(1)%3C/script%3E=1"])
def test_what_was_never_begun_is_nothing(member, query):
    text = page(browser.open(member.url + CALLBACK + query), 400)
    assert "This link does not work" in text and "alert(1)" not in text


def test_a_code_of_somebody_else_is_refused_by_the_network(member, net):
    stranger = Member(member.url)
    codes = parse_qs(urlsplit(came_back(stranger, net)).query)["code"]
    state = begun(member, net)["state"]
    text = page(browser.open(f"{member.url}{CALLBACK}?" + urlencode({"state": state, "code": codes[0]})), 400)
    assert "Mastodon does not accept this login" in text
    assert accounts(member.live) == accounts(stranger.live) == []


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_and_use_nothing_up(member, net, method):
    back = came_back(member, net)
    answer = browser.open(back, method=method)
    assert (answer.status, answer.headers["Allow"], answer.code) == (405, "GET, HEAD", "bad_request")
    page(browser.open(back), 200)


def test_a_look_at_the_link_does_not_use_it_up(member, net):
    back = came_back(member, net)
    answer = browser.open(back, method="HEAD")
    assert (answer.status, answer.raw) == (200, b"") and accounts(member.live) == []
    page(browser.open(back), 200)


@pytest.mark.parametrize("path", ["/connect", "/connect/", "//connect/callback", "/connect/callback/",
                                  "/connect/Callback", "/connect/callback%00", "/connect/static/style.css"])
def test_there_is_nothing_else_there(member, path):
    assert browser.open(member.url + path).status == 404


def test_a_person_who_says_no_is_told_so(member, net):
    asked = [begun(member, net), begun(member, net, redirectUrl=BACK)]
    net.consenting = None
    text = page(browser.open(browser.allow(asked[0]["authorizeUrl"])), 400)
    assert "Nothing was connected" in text and "Mastodon did not allow the account" in text
    there = browser.open(browser.allow(asked[1]["authorizeUrl"])).headers["Location"]
    assert there == f"{BACK}&" + urlencode({"state": asked[1]["state"], "status": "declined"})
    assert accounts(member.live) == []


@pytest.mark.parametrize("words", ["<b>bold</b>", HOSTILE, "\x00", "javascript:alert(1)"])
def test_what_a_network_says_is_shown_as_text(member, net, words):
    back = came_back(member, net)
    net.fault("POST /oauth/token", status=400, body={"error": "invalid_request", "error_description": words})
    text = page(browser.open(back), 400)
    assert "<b>" not in text and (words in unescape(text) or words == "\x00")


def test_a_network_that_fails_is_nobodys_fault(member, net):
    asked = begun(member, net, redirectUrl=BACK)
    backs = [came_back(member, net), browser.allow(asked["authorizeUrl"])]
    net.fault("POST /oauth/token", status=503, times=2, body="<html>")
    assert "no fault of yours" in page(browser.open(backs[0]), 502)
    assert browser.open(backs[1]).headers["Location"].endswith(f"state={asked['state']}&status=unavailable")


# Disconnecting.

def test_disconnecting_forgets_the_credentials(member, environ):
    row = member.account(environ, "mastodon", "ann@example.net")
    for _ in range(2):
        answer = member.live.delete(f"/v1/accounts/{row.id}")
        assert (answer.status, answer.body) == (200, {"success": True, "data": {**row.to_dict(), "status": "disconnected"}})
    with database.connection_context():
        assert Account.get_by_id(row.id).credentials is None


def test_what_is_not_yours_is_not_there(member, environ):
    stranger = Member(member.url)
    foreign = stranger.account(environ, "mastodon", "ann@example.net")
    own = member.account(environ, "mastodon", "ann@example.net")
    of_client = member.account(environ, "mastodon", "cafe@example.net", client_id=member.client.id)
    limited = member.http(mode="live", client_id=member.client.id)
    hidden = [member.live.delete(f"/v1/accounts/{foreign.id}"), member.live.delete("/v1/accounts/acct_0"),
              limited.delete(f"/v1/accounts/{own.id}"), member.test.delete(f"/v1/accounts/{own.id}")]
    assert [(answer.status, answer.code) for answer in hidden] == [(404, "not_found")] * 4
    assert limited.delete(f"/v1/accounts/{of_client.id}").data["clientId"] == member.client.id
    with database.connection_context():
        assert [row.status for row in Account.select().where(Account.id.in_([foreign.id, own.id]))] == ["connected"] * 2


def test_the_sandbox_stays_connected(member):
    answer = member.test.delete("/v1/accounts/sandbox_gbp")
    assert (answer.status, answer.code) == (409, "invalid_state")
    assert member.test.delete("/v1/accounts/sandbox_nothing").status == 404
    assert member.live.delete("/v1/accounts/sandbox_gbp").status == 404
