"""Hostile bodies: each gets its exact status in the one envelope, and nothing is written."""

import json
import socket
import tracemalloc
from urllib.parse import urlsplit

import pytest

from handlers.contract import Contract
from handlers.incoming import parse_json
from tests.documented import on
from tests.wire import chunked, head, raw, refused

WITH_BODY = [operation for operation in Contract().operations.values() if operation.body is not None]
IDEA = {"content": "A loaf is a slow conversation.", "sourceUrl": "https://example.net/on-bread"}
VALID = json.dumps(IDEA).encode()
CAP = 262_144


def word(instead):
    """The idea with other bytes in the middle of its content."""
    return VALID.replace(b"slow", instead)


def member_too(text):
    """The idea with one more member."""
    return VALID[:-1] + b", " + text + b"}"


def idea(member, *headers, body=b""):
    """A POST of an idea with these headers and no others."""
    return raw(member.url, head("POST", "/v1/ideas", *headers, key=member.test.key) + body)


def sent(member, body, kind="application/json"):
    """A POST of an idea as clients send one."""
    return idea(member, f"Content-Type: {kind}", f"Content-Length: {len(body)}", body=body)


@pytest.fixture(autouse=True)
def unharmed(member):
    """After each test here the service answers, and the team has no row but the ideas that the test itself took for saved."""
    member.saved = 0
    yield
    assert member.test.get("/v1/health").status == 200
    assert member.rows() == {"Post": 0, "Target": 0, "Attachment": 0, "Idea": member.saved, "Media": 0}


MEDIA_TYPES = {
    "none": [], "text": ["Content-Type: text/plain"], "form": ["Content-Type: application/x-www-form-urlencoded"],
    "multipart": ["Content-Type: multipart/form-data; boundary=x"], "json-patch": ["Content-Type: application/json-patch+json"],
    "problem": ["Content-Type: application/problem+json"], "longer": ["Content-Type: application/jsonx"],
    "empty": ["Content-Type: "],
    "odd": ["Content-Type: ;application/json"], "a list": ["Content-Type: application/json, text/plain"],
    "two": ["Content-Type: application/json", "Content-Type: application/json"], "any": ["Content-Type: */*"]}


@pytest.mark.parametrize("headers", MEDIA_TYPES.values(), ids=list(MEDIA_TYPES))
def test_another_content_type_is_415(member, headers):
    answer = idea(member, *headers, f"Content-Length: {len(VALID)}", body=VALID)
    assert refused(answer, 415, "bad_request")
    assert answer.headers["RateLimit-Limit"] == "100000"


@pytest.mark.parametrize("kind", ["application/json", "APPLICATION/JSON", "Application/Json; charset=utf-8",
                                  "application/json ; q",
                                  "application/json;charset=UTF-8;x=y", "application/json;"])
def test_json_is_taken_however_its_type_is_written(member, kind):
    assert sent(member, VALID, kind).status == 201
    member.saved = 1


BODIES = {
    "another type": (b"{}", {"Content-Type": "text/plain"}, 415, "bad_request"),
    "cut": (b"{", {}, 400, "bad_request"),
    "no utf-8": (b"\xff", {}, 400, "bad_request"),
    "a list": (b"[]", {}, 422, "unprocessable"),
    "duplicate": (b'{"a": 1, "a": 1}', {}, 400, "bad_request"),
    "unknown member": (b'{"unknown": 1}', {}, 422, "unprocessable"),
    "too large": (b" " * (CAP + 1), {}, 413, "payload_too_large"),
    "encoded": (b"{}", {"Content-Encoding": "gzip"}, 415, "bad_request"),
}


@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.id)
@pytest.mark.parametrize("body, headers, status, code", BODIES.values(), ids=list(BODIES))
def test_every_operation_reads_its_body_alike(member, operation, body, headers, status, code):
    path, headers = on("x", operation.path), {"Content-Type": "application/json", **headers}
    assert refused(member.test.request(operation.method, path, body=body, headers=headers), status, code)


NO_JSON = {
    "empty": b"",
    "blank": b" \r\n\t",
    "byte order mark": b"\xef\xbb\xbf" + VALID,
    "utf-16": VALID.decode().encode("utf-16"),
    "utf-32": VALID.decode().encode("utf-32-le"),
    "bad utf-8": word(b"sl\xf8w"),
    "overlong utf-8": word(b"\xc0\xaf"),
    "surrogate in utf-8": word(b"\xed\xa0\x80"),
    "cut utf-8": VALID[:-1] + b"\xc3",
    "NaN": member_too(b'"topic": NaN'),
    "Infinity": member_too(b'"topic": [-Infinity]'),
    "duplicate": member_too(b'"content": "x"'),
    "duplicate by escape": member_too(b'"\\u0063ontent": "x"'),
    "nested duplicate": member_too(b'"topic": [{"a": {"b": 1, "b": 1}}]'),
    "52 levels": member_too(b'"topic": ' + b"[" * 51 + b"]" * 51),
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "40,000 open levels": b'{"a":' * 40_000,
    "5,000 digits": member_too(b'"topic": ' + b"9" * 5000),
    "trailing comma": VALID[:-1] + b",}",
    "trailing text": VALID + b"x",
    "two values": VALID + VALID,
    "single quotes": VALID.replace(b'"', b"'"),
    "comment": b"/* */" + VALID,
    "no quotes": b"{content: 1}",
    "raw newline": word(b"sl\now"),
    "raw NUL": word(b"sl\0w"),
    "NUL behind": VALID + b"\0",
    "bad escape": word(b"\\x41"),
    "cut escape": word(b"\\u00"),
    "leading zero": member_too(b'"topic": 01'),
    "plus": member_too(b'"topic": +1'),
    "hex": member_too(b'"topic": 0x1'),
    "cut": VALID[:-1],
    "a word": b"nothing",
    "xml": b"<idea/>",
    "form": b"content=x",
    "True": b"True",
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=list(NO_JSON))
def test_what_is_no_json_is_400(member, body):
    assert refused(sent(member, body), 400, "bad_request")


LONG = b"n" * 200_000
WRONG = {
    "null": (b"null", "", "type"),
    "a list": (b"[]", "", "type"),
    "a string": (b'"x"', "", "type"),
    "a number": (b"5", "", "type"),
    "true": (b"true", "", "type"),
    "an empty object": (b"{}", "", "required"),
    "another case": (VALID.replace(b"content", b"Content"), "", "required"),
    "lone surrogate": (word(b"\\ud800"), "/content", "unicode"),
    "swapped surrogates": (word(b"\\udc00\\ud800"), "/content", "unicode"),
    "surrogate in a name": (member_too(b'"\\udfff": 1'), "", "unicode"),
    "surrogate under an odd name": (member_too(b'"a/~\\u0000\\ud800": ["\\ud800"]'), "/a~1~0\ufffd?/0", "unicode"),
    "surrogate under a long name": (b'{"' + LONG + b'": "\\ud800"}', "/" + "n" * 499, "unicode"),
    "NUL": (word(b"\\u0000"), "/content", "pattern"),
    "NUL in a name": (member_too(b'"a\\u0000b": 1'), "", "additionalProperties"),
    "4,000 digits": (member_too(b'"topic": ' + b"9" * 4000), "/topic", "type"),
    "huge float": (member_too(b'"topic": 1e400'), "/topic", "type"),
    "50 levels": (member_too(b'"topic": ' + b"[" * 49 + b"]" * 49), "/topic", "type"),
    "a long name": (member_too(b'"' + LONG + b'": 1'), "", "additionalProperties"),
    "__proto__": (member_too(b'"__proto__": {}'), "", "additionalProperties"),
    "an empty name": (member_too(b'"": 1'), "", "additionalProperties"),
}


@pytest.mark.parametrize("body, path, rule", WRONG.values(), ids=list(WRONG))
def test_json_that_breaks_a_rule_is_422(member, body, path, rule):
    answer = sent(member, body)
    assert refused(answer, 422, "unprocessable")
    assert (path, rule) in answer.rules
    assert len(answer.raw) < 4000 and "\0" not in json.dumps(answer.body, ensure_ascii=False)


def test_a_body_of_very_many_values_is_not_looked_at(member):
    assert refused(member.test.post("/v1/posts", {"targets": [1] * 20_001}), 400, "bad_request")
    assert refused(member.test.post("/v1/posts", {"targets": [1] * 15_000}), 422, "unprocessable")


def test_long_names_around_many_values_cost_no_more_than_their_bytes():
    raw = json.dumps({"a" * 64_000: [1] * 15_000}).encode()
    tracemalloc.start()
    try:
        parse_json(raw)
        assert tracemalloc.get_traced_memory()[1] < 40 * len(raw)
    finally:
        tracemalloc.stop()


def test_a_wrong_target_is_wrong_once():
    validator = Contract().operations["publish_post"].body
    assert len(list(validator.iter_errors({"targets": [1] * 50}))) == 50


def test_a_body_that_breaks_thousands_of_rules_gets_a_short_answer(member):
    targets = [{"platform": "x", "y": number} for number in range(50)]
    answer = member.test.post("/v1/posts", {"targets": targets, "media": [7] * 15_000})
    assert refused(answer, 422, "unprocessable")
    assert len(answer.rules) <= 100 and len(answer.raw) < 50_000


def test_names_and_values_are_not_echoed_by_the_kilobyte(member):
    answer = member.test.post("/v1/ideas", {**IDEA, **{f"{number:03}" + "n" * 2000: "secret" for number in range(100)}})
    assert refused(answer, 422, "unprocessable")
    assert len(answer.raw) < 4000 and b"secret" not in answer.raw


@pytest.mark.parametrize("size, status", [(CAP, 201), (CAP + 1, 413)])
def test_a_body_has_262144_bytes_at_most(member, size, status):
    body = VALID + b" " * (size - len(VALID))
    chunks = chunked(body[:100_000], body[100_000:])
    for answer in (sent(member, body), idea(member, "Content-Type: application/json", "Transfer-Encoding: chunked",
                                            body=chunks)):
        assert answer.status == status and (status == 201 or refused(answer, 413, "payload_too_large"))
    member.saved = 2 if status == 201 else 0


@pytest.mark.parametrize("length", [CAP + 1, 10**18])
def test_a_declared_length_over_the_cap_is_refused_before_the_body_comes(member, length):
    answer = idea(member, "Content-Type: application/json", f"Content-Length: {length}")
    assert refused(answer, 413, "payload_too_large")


def test_a_stream_over_the_cap_is_refused_while_it_comes(member):
    endless = b"".join(b"10000\r\n%s\r\n" % (b" " * 65_536) for _ in range(5))
    answer = idea(member, "Content-Type: application/json", "Transfer-Encoding: chunked", body=endless)
    assert refused(answer, 413, "payload_too_large")


@pytest.mark.parametrize("size", [len(VALID), 7, 1])
def test_chunks_are_put_together(member, size):
    body = chunked(*(VALID[at:at + size] for at in range(0, len(VALID), size)))
    assert idea(member, "Content-Type: application/json", "Transfer-Encoding: chunked", body=body).status == 201
    member.saved = 1


@pytest.mark.parametrize("headers, body", [([], b""), (["Transfer-Encoding: chunked"], chunked())],
                         ids=["no length", "no chunk"])
def test_no_body_is_no_json(member, headers, body):
    assert refused(idea(member, "Content-Type: application/json", *headers, body=body), 400, "bad_request")


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded",
                                  ";"])
@pytest.mark.parametrize("body", [b"", b"--x\r\n", b"a=1"], ids=["no body", "cut", "a form"])
@pytest.mark.parametrize("method, path, status", [("GET", "/v1/posts", 200), ("GET", "/v1/posts/x", 404),
                                                  ("DELETE", "/v1/posts/x", 404),
                                                  ("GET", "/v1/health", 200)])
def test_a_body_where_none_is_wanted_is_not_read(member, kind, body, method, path, status):
    request = head(method, path, f"Content-Type: {kind}", f"Content-Length: {len(body)}", key=member.test.key)
    answers = raw(member.url, request + body, head("GET", "/v1/health"))
    assert [answer.status for answer in answers] == [status, 200]


def test_the_rest_of_a_refused_body_is_no_second_request(member):
    length = f"Content-Length: {len(VALID)}"
    smuggled = head("POST", "/v1/ideas", "Content-Type: application/json", length, key=member.test.key) + VALID
    request = head("POST", "/v1/ideas", "Content-Type: text/plain", f"Content-Length: {len(smuggled)}", key=member.test.key)
    answers = raw(member.url, request + smuggled, head("GET", "/v1/health"))
    assert [answer.status for answer in answers] == [415, 200]


def test_a_connection_that_ends_within_the_body_does_nothing(member):
    parts = urlsplit(member.url)
    with socket.create_connection((parts.hostname, parts.port)) as sock:
        request = head("POST", "/v1/ideas", "Content-Type: application/json", f"Content-Length: {len(VALID)}",
                       key=member.test.key)
        sock.sendall(request + VALID[:-1])
    assert member.test.get("/v1/ideas/today").data == {"ideas": []}
