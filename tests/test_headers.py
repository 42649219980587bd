"""The headers of answers: what the document declares for each, and what pages of other origins may read where they may."""

import pytest

from handlers.config import Config, ConfigError
from handlers.contract import Contract
from tests.documented import as_documented, on
from tests.service import Http, Member, start_api, well_formed
from tests.wire import head, raw, refused

OPERATIONS = list(Contract().operations.values())
PAGE, EXTENSION = "https://app.example", "chrome-extension://abcdefghijklmnop"
BROKEN = {415: (b"x", "text/plain"), 400: (b"{", "application/json"), 413: (b" " * 262_145, "application/json"),
          422: (b"[]", "application/json")}


def path_of(operation):
    return on("x", operation.path)


@pytest.fixture(scope="module")
def cors_api(environ):
    """An API that lets two origins read, and takes four requests a minute."""
    process, url = start_api({**environ, "POSTHORN_CORS_ORIGINS": f"{PAGE}, {EXTENSION}", "POSTHORN_RATE_LIMIT": "4",
                              "POSTHORN_FETCH_RATE_LIMIT": "4", "POSTHORN_CAPTION_RATE_LIMIT": "4",
                              "POSTHORN_FAILED_CREDENTIALS_LIMIT": "1"})
    yield url
    process.stop()


@pytest.fixture
def guest(cors_api):
    return Member(cors_api)


@pytest.mark.parametrize("operation", [operation for operation in OPERATIONS if not operation.public], ids=lambda one: one.id)
def test_every_refusal_has_the_headers_that_its_operation_declares(operation, member, homeless_api, guest):
    path, method = path_of(operation), operation.method
    away, nobody = Http(homeless_api, member.test.key), Http(member.url)
    stranger = member.http(scopes=[next(one.scope for one in OPERATIONS if one.scope not in (None, operation.scope))])
    body = b"[]" if operation.body else None
    for asks, status, known in ((nobody, 401, False), (away, 503, False), (stranger, 403, True)):
        answer = asks.request(method, path, body=body, headers={"Content-Type": "application/json"} if body else {})
        assert answer.status == status and as_documented(operation.id, answer, known=known)
    answer = member.test.request(method, f"{path}?unknown=1")
    assert (answer.status == 422 or operation.body) and as_documented(operation.id, answer)
    for status, (body, kind) in BROKEN.items() if operation.body else ():
        answer = member.test.request(method, path, body=body, headers={"Content-Type": kind})
        assert answer.status == status and as_documented(operation.id, answer)
    answers = [guest.test.request(method, f"{path}?unknown=1") for _ in range(5)]
    assert answers[-1].status == 429 and as_documented(operation.id, answers[-1])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_http_that_no_operation_speaks_has_the_answer_that_each_declares(operation, member):
    path, key = path_of(operation), member.test.key
    for status, headers in ((415, ["Content-Encoding: gzip"]), (417, ["Expect: x"]), (400, ["Host: twice"]), (431, ["X: y"] * 100)):
        answer = raw(member.url, head(operation.method, path, *headers, key=key))
        assert refused(answer, status, "bad_request") and as_documented(operation.id, answer, known=False)


def test_health_and_wrong_credentials_have_the_headers_that_are_declared(guest, cors_api):
    assert as_documented("get_health", Http(cors_api).get("/v1/health"), known=False)
    assert as_documented("get_health", raw(cors_api, b"GET /v1/health HTTP/1.1\r\n\r\n"), known=False)
    wrong = Http(cors_api, well_formed(), source="127.0.0.9")
    answers = [wrong.get("/v1/posts") for _ in range(2)]
    assert [answer.status for answer in answers] == [401, 429]
    assert all(as_documented("list_posts", answer, known=False) for answer in answers)


def test_what_has_an_etag_may_be_kept_by_its_caller(member):
    answer = member.test.get("/v1/platforms")
    again = member.test.get("/v1/platforms", headers={"If-None-Match": answer.headers["ETag"]})
    assert (answer.status, again.status, again.raw) == (200, 304, b"")
    assert as_documented("list_platforms", answer) and as_documented("list_platforms", again)
    assert again.headers["Cache-Control"] == answer.headers["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize("origin", [PAGE, EXTENSION])
@pytest.mark.parametrize("path, method, status", [
    ("/v1/posts", "GET", 200), ("/v1/posts/x", "GET", 404), ("/v1/ideas", "POST", 415), ("/v1/posts", "PUT", 405),
    ("/v1/nothing", "GET", 404), ("/v1/health", "GET", 200), ("/v1/openapi.json", "GET", 200)])
def test_pages_of_origins_that_are_named_read_every_answer(guest, origin, path, method, status):
    answer = guest.test.request(method, path, headers={"Origin": origin, "Cookie": "a=b"})
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"], answer.headers["Vary"]) == (status, origin, "Origin")
    shown = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"Location", "Retry-After", "RateLimit-Remaining", "Idempotent-Replayed", "ETag", "X-Request-Id"} <= set(shown)
    assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize("origin", [f"{PAGE}.evil.example", "http://app.example", f"{PAGE}:444", "null", "HTTPS://APP.EXAMPLE", "*",
                                    ""])
def test_pages_of_other_origins_read_nothing(guest, origin):
    for method, path in (("GET", "/v1/posts"), ("OPTIONS", "/v1/posts")):
        answer = guest.test.request(method, path, headers={"Origin": origin, "Access-Control-Request-Method": "GET"})
        assert (answer.status, answer.headers["Vary"]) == (200 if method == "GET" else 405, "Origin")
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_two_origins_are_none(cors_api):
    answer = raw(cors_api, head("GET", "/v1/health", f"Origin: {PAGE}", f"Origin: {PAGE}"))
    assert answer.status == 200 and "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_a_preflight_says_what_the_path_takes(cors_api, operation):
    asked = {"Origin": PAGE, "Access-Control-Request-Method": operation.method}
    answer = Http(cors_api).request("OPTIONS", path_of(operation), headers=asked)
    assert (answer.status, answer.raw, answer.headers["Access-Control-Allow-Origin"]) == (204, b"", PAGE)
    assert operation.method in answer.headers["Access-Control-Allow-Methods"].split(", ")
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"].split(", ")
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_there_is_no_preflight_for_nothing(cors_api):
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "GET"}
    answer = Http(cors_api).request("OPTIONS", "/v1/nothing", headers=asked)
    assert (answer.status, answer.code, answer.headers["Access-Control-Allow-Origin"]) == (404, "not_found", PAGE)


@pytest.mark.parametrize("value", ["https://app.example/", "app.example", "https://", "https://a b", "https://App.example",
                                   "*, https://a", "https://a:b", "https://u@a", "null", "https://*.example"])
def test_origins_are_origins(environ, value):
    with pytest.raises(ConfigError, match="POSTHORN_CORS_ORIGINS must be"):
        Config.from_env({**environ, "POSTHORN_CORS_ORIGINS": value})


def test_all_origins_may_be_named(environ):
    found = [Config.from_env({**environ, "POSTHORN_CORS_ORIGINS": value}).cors_origins
             for value in ("", "*", "http://localhost:3000,http://[::1]:80")]
    assert found == [set(), {"*"}, {"http://localhost:3000", "http://[::1]:80"}]
