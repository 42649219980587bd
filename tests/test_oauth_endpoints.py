"""The addresses that programs speak to: what they answer when something around them fails, and to scripts of other origins."""

import asyncio
import hashlib
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from handlers import incoming
from handlers.errors import RequestTimeout
from handlers.pages import whole
from storage import keys
from tests.browser import page
from tests.person import BACK, Person, address, answered, app, can_sign_in, form
from tests.service import Answer, Http, start_api
from tests.wire import chunked, head, raw

ORIGIN = {"Origin": "https://app.example"}
METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"
GRANTS = [{"grant_type": "authorization_code", "code": "ac_x", "redirect_uri": BACK, "code_verifier": "v" * 43},
          {"grant_type": "refresh_token", "refresh_token": "rt_x"},
          {"grant_type": "client_credentials", "client_secret": "cs_x"}]
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path, fields", [*(("/oauth/token", grant) for grant in GRANTS), ("/oauth/revoke", {"token": "at_x"})],
                         ids=lambda value: value.get("grant_type", "revoke") if isinstance(value, dict) else "")
def test_without_the_database_a_program_is_told_to_come_back(homeless_api, path, fields):
    answer = form(homeless_api, path, {"client_id": "app_x", **fields})
    assert (answer.status, answer.headers["Retry-After"], answer.headers["Content-Type"]) == (503, "5", "application/json")
    assert answer.body == {"error": "temporarily_unavailable", "error_description": "Try again in a moment."}
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", [METADATA, RESOURCE])
def test_metadata_needs_no_database(homeless_api, api_url, path):
    assert Http(homeless_api).get(path).body.keys() == Http(api_url).get(path).body.keys()


def test_without_the_database_every_page_is_a_plain_page(homeless_api):
    person = Person(homeless_api)
    signing_in = person.open(f"{homeless_api}/sign-in/link?token=x")      # asks nothing of the database yet
    session = keys.fresh("in")
    tokens = {"form_token": hashlib.sha256(f"form {session}".encode()).hexdigest()}
    link = {"token": keys.fresh("in")}
    person.cookies["posthorn-session"] = session
    answers = [person.open(f"{homeless_api}/oauth/authorize?response_type=code&client_id=app_x"),
               person.press(signing_in, "Sign in", **link),
               person.open(f"{homeless_api}/sign-out", tokens),
               person.open(f"{homeless_api}/connect/callback?state=x&code=y"),
               person.open(f"{homeless_api}/connect/choice", {"token": "x"})]
    person.at = f"{homeless_api}/sign-in"
    fields = signing_in.raw.decode().replace('action="/sign-in/link"', 'action="/sign-in"').encode()
    answers.append(person.press(Answer(200, signing_in.headers, fields), "Sign in", login="ann", password="x" * 12))
    for answer in answers:
        text = page(answer, 503)
        assert answer.headers["Retry-After"] == "5" and "Please reload this page in a moment." in text
        assert "nowhere" not in text and "postgres" not in text.lower()


@pytest.mark.parametrize("kind, body", [
    (FORM, b"%ff=%fe&&&=;"), ("application/json", b'{"grant_type": "x"}'), ("multipart/form-data; boundary=x", b"--x\r\n"),
    ("", b""), (FORM, b"\0\xff")])
def test_a_form_that_is_none_is_refused_as_oauth_refuses(api_url, kind, body):
    for path, status, error in (("/oauth/token", 400, "unsupported_grant_type"), ("/oauth/revoke", 401, "invalid_client")):
        answer = Http(api_url).request("POST", path, body=body, headers={"Content-Type": kind})
        assert (answer.status, answer.headers["Content-Type"], answer.body["error"]) == (status, "application/json", error)


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
def test_a_form_that_is_too_large_is_refused_as_oauth_refuses(api_url, path):
    answer = Http(api_url).request("POST", path, body=b"code=" + b"x" * 70_000, headers={"Content-Type": FORM})
    assert (answer.status, answer.headers["Content-Type"], answer.body["error"]) == (413, "application/json", "invalid_request")


def test_a_form_in_chunks_is_a_form(api_url):
    sent = head("POST", "/oauth/token", f"Content-Type: {FORM}", "Transfer-Encoding: chunked")
    answer = raw(api_url, sent + chunked(b"grant_type=", b"password"))
    assert (answer.status, answer.body["error"]) == (400, "unsupported_grant_type")


def test_forms_that_do_not_arrive_keep_nobody_out(api_url):
    """Far more of them than there are threads."""
    started = head("POST", "/oauth/token", f"Content-Type: {FORM}", "Content-Length: 5000") + b"grant"
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection(urlsplit(api_url).netloc.split(":"), timeout=20)).sendall(started)
        asked = time.monotonic()
        for _ in range(8):
            page(Http(api_url).get("/oauth/authorize?client_id=app_x"), 400)
        assert time.monotonic() - asked < 5


def test_a_form_that_does_not_arrive_is_given_up(monkeypatch):
    monkeypatch.setattr(incoming, "BODY_TIME", 0.05)

    async def part():
        if not parts:
            await asyncio.sleep(30)
        return parts.pop()

    parts = [{"type": "http.request", "body": b"grant", "more_body": True}]
    with pytest.raises(RequestTimeout):
        asyncio.run(whole({}, part))
    parts = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"grant", "more_body": True}]
    assert asyncio.run(whole({}, part)) is None
    assert len(asyncio.run(whole({"content-length": "65537"}, part))) > 65_536      # nothing is waited for


def preflight(url, path, method):
    asked = {**ORIGIN, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": "authorization,mcp-version"}
    return Http(url).request("OPTIONS", path, headers=asked)


@pytest.mark.parametrize("path, method", [
    ("/oauth/token", "POST"), ("/oauth/revoke", "POST"), (METADATA, "GET"), (RESOURCE, "GET")])
def test_a_script_of_any_origin_may_ask(api_url, homeless_api, path, method):
    for url in (api_url, homeless_api):
        answer = preflight(url, path, method)
        assert (answer.status, answer.raw, answer.headers["Access-Control-Allow-Origin"]) == (204, b"", "*")
        assert method in answer.headers["Access-Control-Allow-Methods"].split(", ")
        assert answer.headers["Access-Control-Allow-Headers"] == "Authorization, *"
    plain = Http(api_url).request("OPTIONS", path)
    assert plain.status == 405 and method in plain.headers["Allow"]


def test_a_script_of_any_origin_trades_its_code_and_reads_why_not(member, homeless_api):
    client, login = app()[0], f"ann.{member.user.id}".lower()
    can_sign_in(member.user, login)
    person = Person(member.url)
    code = answered(person.allow(person.sign_in(person.open(address(member.url, client)), login)))["code"]
    fields = {**GRANTS[0], "client_id": client.id, "code": code}
    good, replayed = (form(member.url, "/oauth/token", fields, headers=ORIGIN) for _ in range(2))
    revoked = form(member.url, "/oauth/revoke", {"client_id": client.id, "token": good.body["access_token"]}, headers=ORIGIN)
    away = form(homeless_api, "/oauth/token", fields, headers=ORIGIN)
    assert [answer.status for answer in (good, replayed, revoked, away)] == [200, 400, 200, 503]
    for answer in (good, replayed, revoked, away, Http(member.url).get(METADATA, headers=ORIGIN)):
        assert answer.headers["Access-Control-Allow-Origin"] == "*" and "Access-Control-Allow-Credentials" not in answer.headers
        assert "X-Request-Id" in answer.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("path", ["/oauth/authorize", "/sign-in", "/sign-in/link", "/sign-out", "/v1/posts", "/connect/choice"])
def test_no_script_of_another_origin_may_read_what_goes_by_a_cookie_or_key(api_url, path):
    for answer in (preflight(api_url, path, "POST"), Http(api_url).get(path, headers=ORIGIN)):
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_what_breaks_within_tells_a_number_and_nothing_else(environ):
    """Here the database has none of our tables."""
    url = environ["DATABASE_URL"]
    elsewhere = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Dnowhere"
    process, broken = start_api({**environ, "DATABASE_URL": elsewhere})
    try:
        for path, fields in (("/oauth/token", GRANTS[1]), ("/oauth/revoke", {"token": "at_canary"})):
            answer = form(broken, path, {"client_id": "app_canary", **fields}, headers=ORIGIN)
            assert (answer.status, answer.body["error"], answer.headers["Cache-Control"]) == (500, "server_error", "no-store")
            assert answer.headers["X-Request-Id"] in answer.body["error_description"]
            assert b"oauth_clients" not in answer.raw and answer.headers["Access-Control-Allow-Origin"] == "*"
        asked = Http(broken).get("/oauth/authorize?response_type=code&client_id=app_canary")
        assert asked.headers["X-Request-Id"] in page(asked, 500) and b"oauth_clients" not in asked.raw
    finally:
        process.stop()
    log = process.log()
    assert asked.headers["X-Request-Id"] in log and "UndefinedTable" in log and "canary" not in log
