"""What every kind of answer means to a connector, against real servers on loopback."""

import io
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from urllib3 import HTTPHeaderDict

from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.http import MAX_ANSWER, THROTTLED, Http, Upload, retry_after
from storage.fetch import Fetcher, Timeouts
from tests.live import http_for
from tests.standins.server import HOST, Network, parse_json, parse_multipart, route

TOKEN = "canary-5b1f"
NOW = 1_795_227_600.0       # 2026-11-21T02:20:00Z


class Echo(Network):
    """Says back what it got."""

    @route("POST", "/post", "post")
    def post(self, request):
        return {"got": request.body.decode("latin-1"), "authorization": request.headers.get("Authorization")}

    @route("PUT", "/put", "put")
    def put(self, request):
        return {}

    @route("GET", "/get", "get")
    def get(self, request):
        return {"query": request.query}


@pytest.fixture
def net():
    with Echo() as net:
        yield net


@pytest.fixture
def http(net):
    return http_for(net)


@contextmanager
def speaking(raw):
    """A server that answers one request, whatever it is, with these bytes; gives its URL and an Http that may reach it."""
    def serve():
        connection, _ = listener.accept()
        connection.settimeout(10)
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            # A socket closed with bytes unread is reset, and the reset can overtake the answer.
            while connection.recv(65536):
                pass

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        allowed = frozenset({(HOST, port)})
        try:
            yield f"http://{HOST}:{port}/", Http(Fetcher(allow_private=allowed), allowed)
        finally:
            thread.join(10)


def words(answer):
    return answer.field("code", default=None), answer.field("text", default=None)


def failure(http, url, **request):
    with pytest.raises(PlatformError) as caught:
        http.send("POST", url, title="Net", words=words, json={}, **request)
    return caught.value


@pytest.mark.parametrize("status, reading, committing", [
    (301, Rejected, Rejected),
    (400, Rejected, Rejected),
    (401, Disconnected, Disconnected),
    (403, PermissionMissing, PermissionMissing),
    (404, Rejected, Rejected),
    (408, Unavailable, Unconfirmed),
    (413, Rejected, Rejected),
    (422, Rejected, Rejected),
    (429, Unavailable, Unavailable),
    (500, Unavailable, Unconfirmed),
    (502, Unavailable, Unconfirmed),
    (503, Unavailable, Unconfirmed),
    (504, Unavailable, Unconfirmed),
])
@pytest.mark.parametrize("commits", [False, True], ids=["reading", "committing"])
def test_a_status_says_whether_the_post_may_be_public(net, http, status, reading, committing, commits):
    net.fault("post", status=status, body={"code": "Nope", "text": "because"})
    error = failure(http, f"{net.url}/post", commits=commits)
    assert type(error) is (committing if commits else reading)
    assert (error.platform_code, error.platform_message) == ("Nope", "because")
    assert error.message.startswith("Net ") and "because" not in error.message


@pytest.mark.parametrize("fault", [
    pytest.param({"drop_before": True}, id="no answer"),
    pytest.param({"drop_answer": True}, id="no answer after acting"),
    pytest.param({"delay": 5}, id="too late"),
])
@pytest.mark.parametrize("commits, expected", [(False, Unavailable), (True, Unconfirmed)])
def test_a_lost_answer_leaves_a_commit_in_doubt(net, http, fault, commits, expected):
    net.fault("post", **fault)
    assert type(failure(http, f"{net.url}/post", commits=commits, timeouts=Timeouts(first_byte=0.3))) is expected


@pytest.mark.parametrize("raw", [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", id="short body"),
    pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (MAX_ANSWER + 1), id="endless body"),
    pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="not HTTP"),
])
def test_half_an_answer_is_no_answer(raw):
    with speaking(raw) as (url, http):
        assert type(failure(http, url, commits=True)) is Unconfirmed


def test_a_refusal_stands_although_its_body_breaks_off():
    with speaking(b"HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\n{") as (url, http):
        error = failure(http, url, commits=True)
    assert (type(error), error.platform_code, error.platform_message) == (Rejected, "422", None)


def test_nobody_at_home_is_safe_to_repeat(http):
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    allowed = frozenset({(HOST, port)})
    error = failure(Http(Fetcher(allow_private=allowed), allowed), f"http://{HOST}:{port}/", commits=True)
    assert (type(error), error.message) == (Unavailable, "Net could not be reached")


@pytest.mark.parametrize("url", [
    "https://127.0.0.1/", "https://localhost/", "https://[::1]:99/", "https://u:p@example.com/", "https://",
])
def test_an_address_that_is_not_allowed_is_refused(http, url):
    error = failure(http, url)
    assert (type(error), error.rule) == (Rejected, "host")


def test_a_token_never_travels_in_clear_text():
    with speaking(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, http):
        allowed = frozenset({(HOST, int(url.rpartition(":")[2].strip("/")))})
        error = failure(Http(Fetcher(allow_private=allowed)), url, token=TOKEN)
        assert (type(error), error.rule) == (Rejected, "host")
        http.send("GET", url, title="Net")      # ends the server


@pytest.mark.parametrize("body, expected", [
    pytest.param("<html>", Unconfirmed, id="html"),
    pytest.param("\ufeff{}", Unconfirmed, id="byte order mark"),
    pytest.param("[" * 100_000, Unconfirmed, id="deep nesting"),
    pytest.param('{"id": ' + "9" * 6_000 + "}", Unconfirmed, id="endless number"),
    pytest.param({"id": 7}, Unconfirmed, id="number"),
    pytest.param({"id": None}, Unconfirmed, id="null"),
    pytest.param({"id": ["7"]}, Unconfirmed, id="list"),
    pytest.param({"id": "a\0b"}, Unconfirmed, id="NUL"),
    pytest.param('{"id": "\\ud800"}', Unconfirmed, id="lone surrogate"),
    pytest.param(["id"], Unconfirmed, id="other shape"),
    pytest.param({"id": "7"}, "7", id="as expected"),
])
def test_a_field_is_checked_before_it_is_used(net, http, body, expected):
    net.fault("post", status=200, body=body)
    answer = http.send("POST", f"{net.url}/post", title="Net", commits=True)
    if isinstance(expected, str):
        assert answer.field("id") == expected
    else:
        with pytest.raises(expected):
            answer.field("id")
    assert answer.field("other", default="x") == "x"


@pytest.mark.parametrize("value, kind, fits", [
    (True, int, False), (1, int, True), (True, bool, True), (1, bool, False), ({}, dict, True), ([], dict, False),
    ([], list, True),
])
def test_a_field_has_the_type_that_was_asked_for(net, http, value, kind, fits):
    net.fault("get", status=200, body={"a": [{"b": value}]})
    answer = http.send("GET", f"{net.url}/get", title="Net")
    assert answer.field("a", 0, "b", kind=kind, default="no") == (value if fits else "no")


@pytest.mark.parametrize("value, fits", [
    ("https://example.com/1", True), ("http://example.com", True), ("javascript:alert(1)", False), ("https://a b", False),
    ("https://", False), ("https://example.com/" + "a" * 3_000, False), (7, False),
])
def test_a_link_is_a_web_address(net, http, value, fits):
    net.fault("get", status=200, body={"url": value})
    assert http.send("GET", f"{net.url}/get", title="Net").link("url", default=None) == (value if fits else None)


@pytest.mark.parametrize("status, body, verdicts, expected, code", [
    pytest.param(400, {"code": "Old"}, {"Old": Disconnected}, Disconnected, "invalid_state", id="by the network's code"),
    pytest.param(503, {}, {503: Unavailable}, Unavailable, "external_service_error", id="by status: it promises not to act"),
    pytest.param(403, {"code": "4"}, {"4": THROTTLED, 403: Rejected}, Unavailable, "rate_limited", id="the code goes first"),
])
def test_a_network_may_mean_something_else(net, http, status, body, verdicts, expected, code):
    net.fault("post", status=status, body=body)
    error = failure(http, f"{net.url}/post", commits=True, verdicts=verdicts)
    assert (type(error), error.code) == (expected, code)


def test_accepted_statuses_come_back_as_answers(net, http):
    net.fault("get", status=404, body={"a": "b"})
    answer = http.send("GET", f"{net.url}/get", title="Net", accept=(404,))
    assert (answer.status, answer.field("a")) == (404, "b")


def test_an_answer_can_be_a_failure_with_status_200(net, http):
    net.fault("post", status=200, body={"code": "quota", "text": "later"}, headers={"Retry-After": "9"})
    error = http.send("POST", f"{net.url}/post", title="Net", words=words, verdicts={"quota": THROTTLED}).error()
    assert (type(error), error.retry_after, error.platform_message) == (Unavailable, 9.0, "later")


@pytest.mark.parametrize("headers, throttled, wait", [
    pytest.param({"Retry-After": "17"}, False, 17, id="seconds"),
    pytest.param({"retry-after": "17"}, True, 17, id="any case"),
    pytest.param({"Retry-After": "Sat, 21 Nov 2026 02:21:00 GMT"}, False, 60, id="date"),
    pytest.param({"RateLimit-Reset": "1795227630"}, True, 30, id="epoch"),
    pytest.param({"RateLimit-Reset": "45"}, True, 45, id="delta"),
    pytest.param({"X-RateLimit-Reset": "2026-11-21T02:25:00.123456Z"}, True, 300.123456, id="ISO 8601"),
    pytest.param({"x-rate-limit-reset": "1795227700"}, True, 100, id="X"),
    pytest.param({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "1795227700", "x-app-limit-24hour-remaining": "0",
                  "x-app-limit-24hour-reset": "1795227900"}, True, 300, id="two limits, until the later one ends"),
    pytest.param({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "1795227700", "x-user-limit-24hour-remaining": "3",
                  "x-user-limit-24hour-reset": "1795227900"}, True, 100, id="of which one has something left"),
    pytest.param({"RateLimit-Remaining": "3", "RateLimit-Reset": "45"}, True, None, id="something is left"),
    pytest.param({"Retry-After": "5", "RateLimit-Reset": "45"}, True, 5, id="Retry-After goes first"),
    pytest.param({"RateLimit-Reset": "45"}, False, None, id="a rate is no reason when nothing was throttled"),
    pytest.param({"Retry-After": "-3"}, True, None, id="negative"),
    pytest.param({"Retry-After": "0"}, True, None, id="zero"),
    pytest.param({"X-RateLimit-Reset": "1795227000"}, True, None, id="past"),
    pytest.param({"Retry-After": "soon"}, True, None, id="words"),
    pytest.param({"Retry-After": "inf"}, True, None, id="infinite"),
    pytest.param({"Retry-After": ""}, True, None, id="empty"),
    pytest.param({}, True, None, id="none"),
])
def test_how_long_a_network_asks_to_wait(headers, throttled, wait):
    found = retry_after(HTTPHeaderDict(headers), throttled=throttled, now=NOW)
    assert found == (None if wait is None else pytest.approx(wait))


def test_a_throttled_request_carries_the_wait(net, http):
    net.fault("post", status=429, headers={"X-RateLimit-Reset": "2099-01-01T00:00:00.123456Z"})
    error = failure(http, f"{net.url}/post", commits=True)
    assert (type(error), error.code) == (Unavailable, "rate_limited") and error.retry_after > 1_000_000


def test_secrets_are_never_in_an_error(net, http):
    net.fault("post", status=400, body={"code": f"bad {TOKEN}", "text": f"{TOKEN} and pass-word"})
    error = failure(http, f"{net.url}/post", token=TOKEN, secrets=("pass-word", ""))
    assert (error.platform_code, error.platform_message) == ("bad [secret]", "[secret] and [secret]")
    assert TOKEN not in repr(error)


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX-Evil: 1", "ä", "\0"])
def test_a_token_that_cannot_be_sent_is_no_token(net, http, token):
    error = failure(http, f"{net.url}/post", token=token)
    assert type(error) is Disconnected and not net.requests


def test_a_request_is_sent_once(net, http):
    net.fault("post", status=503)
    failure(http, f"{net.url}/post", commits=True)
    assert len(net.requests) == 1


def test_json_and_bearer(net, http):
    answer = http.send("POST", f"{net.url}/post", title="Net", token=TOKEN, json={"a": "é"})
    assert parse_json(answer.field("got").encode("latin-1")) == {"a": "é"}
    assert answer.field("authorization") == f"Bearer {TOKEN}"
    assert TOKEN not in repr(answer)
    assert net.requests[0].media_type == "application/json"


def test_query_and_form_are_encoded(net, http):
    assert http.send("GET", f"{net.url}/get", title="Net", query={"a": "b&c=é"}).data == {"query": [["a", "b&c=é"]]}
    answer = http.send("POST", f"{net.url}/post", title="Net", form={"a": "b&c", "d[]": ["1", "2"]})
    assert answer.field("got") == "a=b%26c&d%5B%5D=1&d%5B%5D=2"


def test_a_file_is_streamed_with_its_length(net, http):
    data = bytes(range(256)) * 4000
    http.send("PUT", f"{net.url}/put", title="Net", headers={"Content-Type": "image/png"}, body=Pieces(data), size=len(data))
    request = net.requests[0]
    assert (request.body, request.length, request.media_type) == (data, len(data), "image/png")


def test_a_form_with_files_is_streamed_with_its_length(net, http):
    data = bytes(range(256)) * 1000
    files = [Upload("file", "1.png", "image/png", Pieces(data + b"not this"), len(data)),
             Upload("thumb", "2.gif", "image/gif", io.BytesIO(b"x"), 1)]
    http.send("PUT", f"{net.url}/put", title="Net", form={"text": "zwölf"}, files=files)
    request = net.requests[0]
    parts = parse_multipart(request.headers["Content-Type"], request.body)
    assert request.length == len(request.body)
    assert [(part.name, part.filename, part.media_type) for part in parts] == [
        ("text", None, None), ("file", "1.png", "image/png"), ("thumb", "2.gif", "image/gif")]
    assert [part.data for part in parts] == ["zwölf".encode(), data, b"x"]


@pytest.mark.parametrize("as_form", [False, True], ids=["body", "form"])
def test_a_file_that_ends_early_breaks_the_upload(net, http, as_form):
    file = io.BytesIO(b"12345")
    request = {"files": [Upload("file", "1.png", "image/png", file, 6)]} if as_form else {"body": file, "size": 6}
    with pytest.raises(Unavailable):
        http.send("PUT", f"{net.url}/put", title="Net", **request)
    assert all(request.status is None for request in net.requests)


@pytest.mark.parametrize("named, origin", [
    ("mastodon.example.com", "https://mastodon.example.com"),
    (" Mastodon.Example.COM ", "https://mastodon.example.com"),
    ("https://mastodon.example.com/@ann/1?x#y", "https://mastodon.example.com"),
    ("ann@mastodon.example.com", "https://mastodon.example.com"),
    ("@ann@mastodon.example.com", "https://mastodon.example.com"),
    ("mastodon.example.com:8443", "https://mastodon.example.com:8443"),
    ("bücher.example.com", "https://xn--bcher-kva.example.com"),
    ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
])
def test_servers_as_people_name_them(named, origin):
    assert Http(None, frozenset({("127.0.0.1", 3000)})).origin(named) == origin


@pytest.mark.parametrize("named", ["", "http://mastodon.example.com", "http://127.0.0.1:3001", "ftp://a.example.com", "a b.com",
                                   "https://u:p@a.example.com", "a.example.com:99999", "https://", "a\\b.example.com", "1.2"])
def test_what_names_no_server_is_refused(named):
    with pytest.raises(Rejected) as caught:
        Http(None, frozenset({("127.0.0.1", 3000)})).origin(named)
    assert caught.value.rule == "host"


class Pieces(io.BytesIO):
    """A file that gives less than it is asked for, as network files do."""

    def read(self, size=-1):
        return super().read(min(size, 1000) if size > 0 else size)
