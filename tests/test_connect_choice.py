"""Several accounts of one login, Bluesky's own kind of login, the command, and trouble of our own, on stand-in networks."""

import re
import subprocess
import sys
import time
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from platforms.accounts import owner
from storage.database import database
from storage.models import Account, ConnectRequest
from storage.secrets import Vault
from tests.browser import Browser, page
from tests.commands import posthorn
from tests.delivery import own_database, take_away
from tests.networks.facebook import settings
from tests.service import ROOT, Member, Process, start_api
from tests.standins.bluesky_login import BlueskyLogin
from tests.standins.facebook import FacebookServer
from tests.standins.mastodon import MastodonServer
from tests.standins.server import HOST

PATH, CALLBACK, CHOICE = "/v1/accounts/connect", "/connect/callback", "/connect/choice"
PAGES = ("Bread & Co", "<script>alert('Rolls')</script>", "Cake")
BACK = "https://agency.example.com:8443/done"

browser = Browser()


@pytest.fixture(scope="module")
def facebook():
    with FacebookServer() as net:
        net.add_user("ann")
        for name in PAGES:
            net.add_page(name, username=None)
        yield net


@pytest.fixture(scope="module")
def mastodon():
    with MastodonServer() as net:
        net.add_user("ann")
        yield net


@pytest.fixture(scope="module")
def bluesky():
    with BlueskyLogin() as net:
        net.add_user("ann.test", display_name="Ann")
        yield net


@pytest.fixture(scope="module")
def address(postgres_url):
    with own_database(postgres_url) as address:
        yield address


@pytest.fixture(scope="module")
def own_environ(environ, address, facebook, mastodon, bluesky):
    there = {f"POSTHORN_FACEBOOK_{name.upper()}": value for name, value in settings(facebook).items()}
    there |= {f"POSTHORN_BLUESKY_{name}_URL": bluesky.url for name in ("API", "PLC", "VIDEO")}
    allowed = ",".join(f"{HOST}:{net.port}" for net in (facebook, mastodon, bluesky))
    return {**environ, **there, "DATABASE_URL": address, "POSTHORN_API_PROCESSES": "1", "POSTHORN_FETCH_RATE_LIMIT": "1000",
            "POSTHORN_ALLOW_PRIVATE": allowed}


@pytest.fixture(scope="module")
def service(own_environ, facebook, bluesky):
    process, url = start_api(own_environ)
    facebook.redirects.append(url + CALLBACK)
    yield url
    log = process.log()
    process.stop()
    secrets = [*browser.secrets, *facebook.tokens, facebook.secret, *bluesky.logins]
    assert len(secrets) > 10 and [secret for secret in secrets if secret in log] == []


@pytest.fixture
def member(service):
    return Member(service)


def came_back(member, **body):
    """The address to which the network sends the browser back."""
    answer = member.live.post(PATH, {"platform": "facebook", **body})
    assert answer.status == 201, answer.raw
    return browser.allow(answer.data["authorizeUrl"])


def token_of(text):
    [token] = re.findall('<input type="hidden" name="token" value="([\\w-]{43})">', text)
    browser.secrets.append(token)
    return token


def offered(member, **body):
    """The token of the page that asks which accounts are meant."""
    return token_of(page(browser.open(came_back(member, **body)), 200))


def chosen(member, token, *positions):
    return browser.open(member.url + CHOICE, [("token", token), *(("account", position) for position in positions)])


def names(member):
    return sorted(account["displayName"] for account in member.live.get("/v1/accounts").data["accounts"])


# Several accounts.

def test_a_person_chooses_which_accounts_are_meant(member, facebook, own_environ):
    text = page(browser.open(came_back(member)), 200)
    labels = re.findall(r'<label><input type="checkbox" name="account" value="(\d)"> <span><bdi>(.*?)</bdi> \(', text)
    assert [(number, unescape(name)) for number, name in labels] == list(zip("012", PAGES, strict=True))
    assert "<fieldset>" in text and "<legend>" in text and names(member) == []

    text = page(chosen(member, token_of(text), "0", "2"), 200)
    assert "Bread &amp; Co" in text and "Cake" in text and names(member) == ["Bread & Co", "Cake"]
    with database.connection_context():
        row = Account.get(Account.team_id == member.team.id, Account.display_name == "Cake")
    kept = Vault((own_environ["POSTHORN_SECRET_KEYS"],)).open(owner(member.team.id, row.id), row.credentials)
    assert kept["accessToken"] == facebook.pages[row.platform_id].token


def test_whoever_chooses_none_is_asked_again(member):
    first = offered(member)
    text = page(chosen(member, first), 422)
    assert "Choose at least one account." in text and names(member) == []
    second = token_of(text)
    assert second != first
    page(chosen(member, first, "0"), 400)
    page(chosen(member, second, "7", "-1", "x", "1"), 200)
    assert names(member) == [PAGES[1]]


def test_a_choice_counts_once(member):
    token = offered(member)
    page(chosen(member, token, "0"), 200)
    page(chosen(member, token, "1"), 400)
    assert names(member) == ["Bread & Co"]


def test_a_choice_and_a_way_back_are_different_things(member):
    back = came_back(member)
    [state] = parse_qs(urlsplit(back).query)["state"]
    page(chosen(member, state, "0"), 400)
    token = token_of(page(browser.open(back), 200))
    page(browser.open(f"{member.url}{CALLBACK}?state={token}&code=x"), 400)
    page(browser.open(back), 400)
    page(chosen(member, token, "0"), 200)


@pytest.mark.parametrize("form", [[], [("account", "0")], [("token", ""), ("account", "0")],
                                  [("token", "A" * 43), ("account", "0")], [("token", "\0"), ("account", "\ud800")]], ids=str)
def test_a_form_without_its_token_is_nothing(member, form):
    offered(member)
    form = [(name, value.encode("utf-8", "surrogatepass")) for name, value in form]
    page(browser.open(member.url + CHOICE, form), 400)
    assert names(member) == []


def test_a_form_of_another_kind_is_nothing(member):
    token = offered(member)
    for kind, body in (("text/plain", f"token={token}&account=0"), ("application/json", f'{{"token": "{token}"}}')):
        answer = member.live._pool.request("POST", member.url + CHOICE, body=body, headers={"Content-Type": kind})
        assert (answer.status, names(member)) == (400, [])
    large = member.live._pool.request("POST", member.url + CHOICE, body=b"token=" + b"x" * 70_000,
                                      headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert large.status == 413
    answer = browser.open(member.url + CHOICE)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_a_choice_ends_at_the_redirect_url_which_browsers_allow_for_this_form_alone(member):
    answer = browser.open(came_back(member, redirectUrl=BACK))
    assert "form-action 'self' https://agency.example.com:8443;" in answer.headers["Content-Security-Policy"]
    answer = chosen(member, token_of(page(answer, 200)), "0", "1")
    told = parse_qs(urlsplit(answer.headers["Location"]).query)
    ids = [account["id"] for account in member.live.get("/v1/accounts").data["accounts"]]
    assert answer.status == 303 and answer.headers["Location"].startswith(f"{BACK}?")
    assert told["status"] == ["connected"] and sorted(told["accountId"]) == sorted(ids) and len(ids) == 2
    alone = browser.open(came_back(member)).headers["Content-Security-Policy"]
    assert "form-action 'self';" in alone


def test_one_account_needs_no_choice_and_none_is_said(member, facebook):
    pages, facebook.pages = facebook.pages, dict(list(facebook.pages.items())[:1])
    try:
        page(browser.open(came_back(member)), 200)
        assert names(member) == ["Bread & Co"]
        facebook.pages = {}
        assert "no Facebook Page" in page(browser.open(came_back(member)), 400)
    finally:
        facebook.pages = pages


def test_the_code_of_one_network_is_worth_nothing_at_another(member, mastodon):
    asked = member.live.post(PATH, {"platform": "mastodon", "instance": mastodon.url}).data
    [code] = parse_qs(urlsplit(browser.allow(asked["authorizeUrl"])).query)["code"]
    [state] = parse_qs(urlsplit(came_back(member)).query)["state"]
    page(browser.open(f"{member.url}{CALLBACK}?state={state}&code={code}"), 400)
    assert names(member) == []


# Bluesky, whose servers fetch from us who we are.

def test_an_account_of_bluesky_is_connected_and_publishes(member, own_environ, bluesky):
    asked = member.live.post(PATH, {"platform": "bluesky"})
    assert "Ann" in page(browser.open(browser.allow(asked.data["authorizeUrl"])), 200)
    assert [account["username"] for account in member.live.get("/v1/accounts").data["accounts"]] == ["ann.test"]
    worker = Process("worker", own_environ)
    try:
        post = member.live.post("/v1/posts", {"caption": "by OAuth", "targets": [{"platform": "bluesky"}]}).data
        target = member.live.settled(post["id"])["targets"][0]
    finally:
        worker.stop()
    assert (target["status"], target["postId"]) == ("published", bluesky.posts[-1]["uri"]), target
    assert [token for token in bluesky.logins if token in worker.log()] == []


def test_an_account_of_another_server_of_bluesky_is_named(member, own_environ, bluesky):
    assert member.live.post(PATH, {"platform": "bluesky", "instance": bluesky.url}).status == 201
    refused = member.live.post(PATH, {"platform": "bluesky", "instance": "10.0.0.1"})
    assert (refused.status, refused.rules) == (422, [("/instance", "host")])


def test_servers_learn_from_ourselves_who_we_are(member):
    answer = member.live.get("/connect/client-metadata.json")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.body["client_id"] == f"{member.url}/connect/client-metadata.json"
    assert answer.body["redirect_uris"] == [member.url + CALLBACK] and answer.body["dpop_bound_access_tokens"] is True


# The command.

class Command:
    """`posthorn account connect` of a person who has read the address."""

    def __init__(self, environ, member, *arguments):
        command = [sys.executable, "-m", "handlers", "account", "connect", *arguments, "--team", member.team.id]
        self.popen = subprocess.Popen(command, env={**environ, "POSTHORN_BASE_URL": member.url}, cwd=ROOT, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.address = next(line.strip() for line in self.popen.stdout if "http" in line and "Open" not in line)

    def end(self):
        """What it says until it ends, and its exit status."""
        output, errors = self.popen.communicate(timeout=30)
        return output + errors, self.popen.returncode


def test_the_command_waits_for_the_account(member, own_environ, mastodon):
    command = Command(own_environ, member, "mastodon", "--instance", mastodon.url)
    page(browser.open(browser.allow(command.address)), 200)
    output, status = command.end()
    assert status == 0 and f"ann@{HOST}:{mastodon.port}" in output and "connected" in output


def test_the_command_says_what_went_wrong(member, own_environ, mastodon):
    command = Command(own_environ, member, "mastodon", "--instance", mastodon.url)
    mastodon.consenting, ann = None, mastodon.consenting
    page(browser.open(browser.allow(command.address)), 400)
    mastodon.consenting = ann
    output, status = command.end()
    assert status == 1 and "Mastodon did not allow the account" in output


def test_the_command_does_not_wait_for_ever(member, own_environ, mastodon):
    command = Command(own_environ, member, "mastodon", "--instance", mastodon.url)
    with database.connection_context():
        database.execute_sql("UPDATE connect_requests SET expires_at = now() - interval '3 minutes'")
    assert command.end() == ("Error: nobody has come back in time; begin again\n", 1)


def test_the_command_need_not_wait(member, own_environ, mastodon):
    output = posthorn({**own_environ, "POSTHORN_BASE_URL": member.url}, "account", "connect", "mastodon", "--instance",
                      mastodon.url, "--client", member.client.id, "--no-wait", "--team", member.team.id)
    assert "within 10 minutes" in output
    browser.open(browser.allow(re.search(r"https?://\S+", output)[0]))
    with database.connection_context():
        assert Account.get(Account.team_id == member.team.id).client_id == member.client.id


@pytest.mark.parametrize("arguments, words", [
    (["nothing"], "the networks are"), (["linkedin", "--instance", "x"], "leave instance out"),
    (["mastodon"], "name that of the account"),
    (["pinterest"], "POSTHORN_PINTEREST_CLIENT_ID"), (["mastodon", "--instance", "10.0.0.1"], "no server that takes part"),
    (["facebook", "--client", "client_0"], "no such client")])
def test_the_command_refuses_as_the_api_does(member, own_environ, arguments, words):
    assert words in posthorn(own_environ, "account", "connect", *arguments, "--team", member.team.id, fails=True)


# Trouble of our own.

def test_while_the_database_is_away_nothing_is_used_up(member, address, postgres_url):
    back = came_back(member)
    take_away(address, postgres_url, 1.5)
    assert "reload this page" in page(browser.open(back), 503)
    time.sleep(2)
    page(browser.open(back), 200)


def test_what_nobody_has_thought_of_says_nothing_but_a_number(member):
    back = came_back(member)
    with database.connection_context():
        ConnectRequest.update(sealed=b"under another key").where(ConnectRequest.team_id == member.team.id).execute()
    answer = browser.open(back)
    text = page(answer, 500)
    assert answer.headers["X-Request-Id"] in text and "sealed" not in text and "Traceback" not in text
