"""Hostile requests: unknown paths, wrong methods, odd headers, broken HTTP. Each gets its exact status in the one envelope."""

import json
import re

import pytest
import yaml

from handlers.contract import DOCUMENT
from tests.documented import on
from tests.service import Http, challenge
from tests.wire import head, raw, refused

PATHS = yaml.load(DOCUMENT.read_bytes(), Loader=yaml.CSafeLoader)["paths"]
METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")
IDEA = {"content": "A loaf is a slow conversation.", "sourceUrl": "https://example.net/on-bread"}
VALID = json.dumps(IDEA).encode()


@pytest.fixture(autouse=True)
def unharmed(member):
    """After each test here the service answers, and the team has no row but the ideas that the test itself took for saved."""
    member.saved = 0
    yield
    assert member.test.get("/v1/health").status == 200
    assert member.rows() == {"Post": 0, "Target": 0, "Attachment": 0, "Idea": member.saved, "Media": 0}


@pytest.mark.parametrize("path", [
    "/", "/v1", "/v1/", "/v1/nothing", "//v1/health", "/v1//health", "/v1/health/", "/v1/posts/", "/v1/posts/x/", "/V1/health",
    "/v1/Health", "/v1/health;x=1", "/v1/health%20", "/v1/health%00", "/v1/health%0A", "/v1/posts/a/b", "/v1/posts/a%2Fb",
    "/v1/../v1/health", "/v1/ideas/today/x", "/v2/posts", "/openapi.json", "/v1/ui/", "/static/x", "/ready/", "/v1/openapi.yml",
    "/%2e%2e/etc/passwd", "/v1/" + "x" * 30_000, "http://other.example/v1/nothing"], ids=lambda path: path[:30])
def test_an_unknown_path_is_404_with_and_without_a_credential(member, path):
    for key in (member.test.key, None):
        assert refused(raw(member.url, head("GET", path, key=key)), 404, "not_found")


@pytest.mark.parametrize("path", [*PATHS, "/v1/openapi.yaml", "/v1/openapi.json", "/ready"])
def test_another_method_is_405_with_what_is_allowed(member, path):
    allowed = {method.upper() for method in PATHS.get(path, {"get": None})} & set(METHODS)
    allowed |= {"HEAD"} if "GET" in allowed else set()
    for method in set(METHODS) - allowed:
        answer = raw(member.url, head(method, on("x", path)))
        assert (answer.status, answer.headers["Allow"].split(", ")) == (405, sorted(allowed))
        assert answer.raw == b"" if method == "HEAD" else refused(answer, 405, "bad_request")


@pytest.mark.parametrize("method, path, allowed", [("PATCH", "/v1/ideas/today", "GET, HEAD"),
                                                   ("GET", "/v1/posts/validate", "POST")])
def test_a_literal_path_is_no_id(member, method, path, allowed):
    answer = member.test.request(method, path, {"content": "x"} if method == "PATCH" else None)
    assert refused(answer, 405, "bad_request") and answer.headers["Allow"] == allowed


def test_options_is_a_method_like_others(member):
    answer = raw(member.url, head("OPTIONS", "/v1/posts", "Origin: https://evil.example",
                                  "Access-Control-Request-Method: POST"))
    assert refused(answer, 405, "bad_request")
    assert [name for name in answer.headers if name.lower().startswith("access-control")] == []


@pytest.mark.parametrize("path, private", [("/v1/posts", True), ("/v1/ideas/today", True), ("/v1/accounts", True),
                                           ("/v1/clients", True),
                                           ("/v1/platforms", True), ("/v1/health", False), ("/ready", False)])
def test_head_is_answered_wherever_get_is(member, path, private):
    got, asked = member.test.get(path), member.test.request("HEAD", path)
    assert (asked.status, asked.raw, asked.headers["Content-Length"]) == (got.status, b"", str(len(got.raw)))
    assert (Http(member.url).request("HEAD", path).status == 401) is private


@pytest.mark.parametrize("headers, status", [
    (["Expect: 100-continue"], 201), (["Expect: 200-maybe"], 417), (["Content-Encoding: identity"], 201),
    (["Content-Encoding: gzip"], 415),
    (["Content-Encoding: br, gzip"], 415), (["Accept: text/html"], 201), (["X-HTTP-Method-Override: DELETE"], 201),
    (["Content-Language: xx", "Range: bytes=0-1"], 201), (["Host: other.example"], 400), (["Cookie: " + "c" * 16_378], 201),
    (["Cookie: " + "c" * 16_379], 431), ([f"X-{number}: x" for number in range(96)], 201),
    ([f"X-{number}: x" for number in range(97)], 431)],
    ids=lambda value: str(value)[:40])
def test_headers_of_a_request(member, headers, status):
    request = head("POST", "/v1/ideas", "Content-Type: application/json", f"Content-Length: {len(VALID)}", *headers,
                   key=member.test.key)
    answer = raw(member.url, request + VALID)
    assert answer.status == status and (status == 201 or refused(answer, status, "bad_request"))
    member.saved = int(status == 201)


@pytest.mark.parametrize("hosts", [[], ["Host: a", "Host: b"], ["Host: a", "Host: a"], ["Host:"]],
                         ids=["none", "two", "twice", "empty"])
@pytest.mark.parametrize("line", ["GET /v1/health HTTP/1.1", "GET /v1/nothing HTTP/1.1", "GET /v1/health HTTP/1.0"])
def test_exactly_one_host_is_needed(member, hosts, line):
    assert refused(raw(member.url, "\r\n".join([line, *hosts, "", ""]).encode()), 400, "bad_request")


def test_http_1_0_is_answered(member):
    answer = raw(member.url, b"GET /v1/health HTTP/1.0\r\nHost: a\r\n\r\n")
    assert (answer.status, answer.headers["Connection"]) == (200, "close")


@pytest.mark.parametrize("second", ["Authorization: Bearer {key}", "Authorization: Basic x", "authorization: Bearer wrong"])
def test_two_credentials_are_none(member, second):
    headers = [second.format(key=member.test.key), "Content-Type: application/json", f"Content-Length: {len(VALID)}"]
    answer = raw(member.url, head("POST", "/v1/ideas", *headers, key=member.test.key) + VALID)
    assert refused(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == challenge(member.url) + ', error="invalid_request"'


@pytest.mark.parametrize("query, path, rule", [
    ("x=1", "x", "unknown_parameter"), ("x", "x", "unknown_parameter"), ("=1", "", "unknown_parameter"),
    ("clientId=a&clientId=a", "clientId", "repeated"), ("client%49d=a&clientId=b", "clientId", "repeated"),
    ("clientId=a&ClientId=b", "ClientId", "unknown_parameter"), ("clientId[]=a", "clientId[]", "unknown_parameter"),
    ("clientId=", "clientId", "minLength"), ("clientId=%00", "clientId", "pattern"), ("clientId=%FF", "clientId", "unicode"),
    ("clientId=a/b", "clientId", "pattern"), ("clientId=" + "a" * 65, "clientId", "maxLength"),
    ("%FF=1", "?", "unknown_parameter"),
    ("%00=1", "\ufffd", "unknown_parameter"), ("&".join(f"p{number}=1" for number in range(900)), "p99", "unknown_parameter")],
    ids=lambda value: str(value)[:25])
def test_a_query_that_breaks_a_rule_is_422(member, query, path, rule):
    answer = member.test.get(f"/v1/accounts?{query}")
    assert refused(answer, 422, "unprocessable")
    assert (path, rule) in answer.rules and len(answer.rules) <= 100


@pytest.mark.parametrize("method, path, body", [
    ("GET", "/v1/posts/x", None), ("DELETE", "/v1/posts/x", None), ("POST", "/v1/ideas", IDEA),
    ("PATCH", "/v1/ideas/x", {"content": "x"}),
    ("GET", "/v1/clients", None), ("GET", "/v1/platforms", None), ("POST", "/v1/posts/x/retry", {})])
def test_operations_without_parameters_take_none(member, method, path, body):
    answer = member.test.request(method, f"{path}?clientId=x", body)
    assert refused(answer, 422, "unprocessable")
    assert answer.rules == [("clientId", "unknown_parameter")]


@pytest.mark.parametrize("post_id", ["x", "x" * 65, "x" * 20_000, "%00", "%FF", "%F0%9F%8D%9E", "..", "'%20OR%201=1",
                                     "post_%0A", "a%20b", "%2e",
                                     "-1", "post_*"], ids=lambda value: value[:12])
def test_a_malformed_id_is_unknown(member, post_id):
    for method, path, body in (("GET", "", None), ("PATCH", "", {"caption": "x"}), ("DELETE", "", None),
                               ("POST", "/retry", {})):
        assert refused(member.test.request(method, f"/v1/posts/{post_id}{path}", body), 404, "not_found")


@pytest.mark.parametrize("given, echoed", [
    ("a", True), ("A-b_c.9", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a b", False), ("a/b", False),
    ("\xe9", False),
    ("<script>", False), ("a,b", False)], ids=lambda value: repr(value)[:15])
def test_a_request_id_is_echoed_if_it_is_one(member, given, echoed):
    for path, key in (("/v1/health", None), ("/v1/nothing", None), ("/v1/posts", member.test.key), ("/v1/posts", None)):
        answer = raw(member.url, head("GET", path, f"X-Request-Id: {given}", key=key))
        found = answer.headers["X-Request-Id"]
        assert found == given if echoed else re.fullmatch("[0-9a-f]{16}", found)
        assert answer.body.get("meta", {}).get("requestId", found) == found


def test_every_answer_has_an_id_of_its_own(member):
    assert len({member.test.get("/v1/health").headers["X-Request-Id"] for _ in range(20)}) == 20


NOT_HTTP = {
    "unknown method": b"FOO /v1/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "small letters": b"get /v1/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "two lengths": b"POST /v1/ideas HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "length and chunks": b"POST /v1/ideas HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    "negative length": b"POST /v1/ideas HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "length of 26 digits": b"POST /v1/ideas HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 26 + b"\r\n\r\n",
    "unknown coding": b"POST /v1/ideas HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
    "blank before colon": b"GET /v1/health HTTP/1.1\r\nHost : a\r\n\r\n",
    "folded header": b"GET /v1/health HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
    "NUL in a header": b"GET /v1/health HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
    "bare line feeds": b"GET /v1/health HTTP/1.1\nHost: a\n\n",
    "raw bytes in the path": b"GET /v1/\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "no version": b"GET /v1/health HTTP/\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", NOT_HTTP.values(), ids=list(NOT_HTTP))
def test_what_is_no_http_is_refused_by_the_server_itself_and_the_connection_closed(member, request_bytes):
    answer = raw(member.url, request_bytes)
    assert (answer.status, answer.headers["Connection"], answer.raw) == (400, "close", b"Invalid HTTP request received.")


def test_requests_on_one_connection_know_nothing_of_each_other(member):
    """A path that no router knows must not inherit the caller, nor the operation, of the request before it."""
    good = head("GET", "/v1/posts", key=member.test.key)
    for bad, status in ((head("GET", "//v1/posts"), 404), (head("GET", "/v1/posts"), 401), (head("GET", "/v1/posts/x"), 401)):
        answers = raw(member.url, good, bad, good)
        assert [answer.status for answer in answers] == [200, status, 200]
        assert "RateLimit-Limit" not in answers[1].headers
