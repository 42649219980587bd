"""Rate limits of credentials, and of wrong credentials by address, on an API with small ones."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.database import database
from storage.keys import digest
from storage.oauth import Token
from tests.person import app, form, refresh, tokens
from tests.service import Http, Member, start_api, well_formed

LIMITS = {"POSTHORN_RATE_LIMIT": "5", "POSTHORN_FETCH_RATE_LIMIT": "2", "POSTHORN_CAPTION_RATE_LIMIT": "60",
          "POSTHORN_FAILED_CREDENTIALS_LIMIT": "4", "POSTHORN_TRUSTED_PROXIES": "127.0.0.4"}
IDEA = {"content": "x", "sourceUrl": "https://example.net"}


@pytest.fixture(scope="module")
def strict_api(environ):
    """The address of an API with small limits."""
    process, url = start_api({**environ, **LIMITS})
    yield url
    process.stop()


@pytest.fixture
def member(strict_api):
    return Member(strict_api)


def allowance(answer):
    return tuple(int(answer.headers[f"RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))


def test_every_answer_tells_what_is_left(member):
    answers = [member.test.get("/v1/clients") for _ in range(5)]
    assert [allowance(answer)[:2] for answer in answers] == [(5, 4), (5, 3), (5, 2), (5, 1), (5, 0)]
    for used, answer in enumerate(answers, start=1):
        assert 12 * used - 5 < allowance(answer)[2] <= 12 * used
    assert {answer.status for answer in answers} == {200}


def test_what_is_over_the_limit_is_refused_with_the_time_to_wait(member):
    for _ in range(5):
        member.test.post("/v1/ideas", IDEA)
    answer = member.test.post("/v1/ideas", IDEA)
    assert (answer.status, answer.code, allowance(answer)[:2]) == (429, "rate_limited", (5, 0))
    assert 1 <= int(answer.headers["Retry-After"]) <= 12 and 55 < allowance(answer)[2] <= 60
    assert answer.body["meta"] == {"requestId": answer.headers["X-Request-Id"]}
    assert member.rows()["Idea"] == 5


def test_each_credential_has_its_own(member):
    for _ in range(6):
        member.test.get("/v1/clients")
    assert [allowance(http.get("/v1/clients"))[1] for http in (member.live, member.http())] == [4, 4]


def test_the_limit_is_exact_across_processes(member):
    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda _: Http(member.url, member.test.key).get("/v1/clients").status, range(32)))
    assert sorted(statuses) == [200] * 5 + [429] * 27


def test_after_the_time_to_wait_there_is_a_token_again(member):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: Http(member.url, member.test.key).post("/v1/generate", {"topic": "x"}), range(80)))
    refused = [answer for answer in answers if answer.status == 429]
    assert {answer.status for answer in answers} == {200, 429} and {allowance(answer)[0] for answer in answers} == {60}
    assert {int(answer.headers["Retry-After"]) for answer in refused} == {1}
    time.sleep(1)
    assert member.test.post("/v1/generate", {"topic": "x"}).status == 200


def test_fetches_and_captions_have_limits_of_their_own(member):
    fetches = [member.test.post("/v1/media/from-url", {"url": "http://127.0.0.1/x"}) for _ in range(3)]
    assert [(answer.status, allowance(answer)[:2]) for answer in fetches] == [(422, (2, 1)), (422, (2, 0)), (429, (2, 0))]
    assert allowance(member.test.post("/v1/generate", {"topic": "x"}))[:2] == (60, 59)
    assert allowance(member.test.get("/v1/clients"))[:2] == (5, 4)


def test_what_is_forbidden_costs_nothing_and_what_is_refused_later_does(member):
    forbidden = member.http(scopes=["ideas:write"])
    answers = [forbidden.get("/v1/posts") for _ in range(7)]
    assert [(answer.status, allowance(answer)[1]) for answer in answers] == [(403, 5)] * 7
    refused = [forbidden.request("POST", "/v1/ideas", body=b"x"), forbidden.request("POST", "/v1/ideas", body=b"{", headers={
        "Content-Type": "application/json"}), forbidden.post("/v1/ideas", {}), forbidden.patch("/v1/ideas/x", {"content": "x"})]
    assert [(answer.status, allowance(answer)[1]) for answer in refused] == [(415, 4), (400, 3), (422, 2), (404, 1)]
    assert [forbidden.request("POST", "/v1/ideas", body=b"x").status for _ in range(2)] == [415, 429]


def test_what_is_no_operation_and_health_cost_nothing(member):
    for method, path in (("GET", "/v1/health"), ("GET", "/v1/nothing"), ("PUT", "/v1/posts")):
        assert [header for header in member.test.request(method, path).headers if header.lower().startswith("ratelimit")] == []
    assert allowance(member.test.get("/v1/clients"))[1] == 4


def test_a_refusal_for_the_rate_is_not_kept_for_a_key(member):
    headers = {"Idempotency-Key": "once"}
    for _ in range(5):
        member.test.get("/v1/clients")
    assert member.test.post("/v1/ideas", IDEA, headers=headers).status == 429
    other = member.http()
    answer = other.post("/v1/ideas", IDEA, headers=headers)
    assert (answer.status, "Idempotent-Replayed" in answer.headers, member.rows()["Idea"]) == (201, False, 1)


def test_wrong_credentials_are_limited_by_address_and_good_ones_never(member, strict_api):
    """From addresses that no other test comes from, since all share one database."""
    def wrong(source="127.0.0.2", **headers):
        return Http(strict_api, well_formed(), source=source).get("/v1/clients", headers=headers)

    missing, malformed = Http(strict_api, source="127.0.0.2"), {"Authorization": "Basic x"}
    assert [missing.get("/v1/clients").status for _ in range(6)] == [401] * 6
    assert [missing.get("/v1/clients", headers=malformed).status for _ in range(6)] == [401] * 6
    assert [wrong().status for _ in range(4)] == [401] * 4
    limited = wrong()
    assert (limited.status, limited.code, 1 <= int(limited.headers["Retry-After"]) <= 15) == (429, "rate_limited", True)
    assert [wrong(**{"X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.7"}).status for _ in range(2)] == [429] * 2
    assert Http(strict_api, member.test.key, source="127.0.0.2").get("/v1/clients").status == 200
    assert missing.get("/v1/clients").status == 401
    assert wrong("127.0.0.3").status == 401


def test_behind_a_trusted_proxy_each_person_has_an_address(strict_api):
    def wrong(address, source="127.0.0.4"):
        forwarded = {"X-Forwarded-For": f"192.0.2.1, {address}"}
        return Http(strict_api, well_formed(), source=source).get("/v1/clients", headers=forwarded).status

    assert [wrong("198.51.100.1") for _ in range(5)] == [401] * 4 + [429]
    assert [wrong("198.51.100.2"), wrong("198.51.100.1"), wrong("198.51.100.1", "127.0.0.5")] == [401, 429, 401]
    assert [wrong(f"2001:db8:1:2:{number}::1") for number in range(5)] == [401] * 4 + [429]
    assert wrong("2001:db8:1:3::1") == 401


def test_tokens_are_limited_by_grant_and_what_is_refused_is_not_used_up(member):
    own, secret = app(confidential=True, team_id=member.team.id, user_id=member.user.id, redirect_uris=[])
    asked = {"grant_type": "client_credentials", "client_id": own.id, "client_secret": secret}
    answers = [form(member.url, "/oauth/token", asked) for _ in range(7)]
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert [allowance(answer)[:2] for answer in answers] == [(5, 4), (5, 3), (5, 2), (5, 1), (5, 0), (5, 0), (5, 0)]
    assert answers[-1].body["error"] == "temporarily_unavailable" and 1 <= int(answers[-1].headers["Retry-After"]) <= 12
    client, _ = app()
    last = tokens(member, client)
    for _ in range(4):
        last = refresh(member.url, client, last["refresh_token"]).body
    assert refresh(member.url, client, last["refresh_token"]).status == 429
    with database.connection_context():
        assert Token.get(Token.digest == digest(last["refresh_token"])).used_at is None
