"""Each hostile request has one answer: its status, its code, nothing of what it said, and a connection still in step."""

import contextlib
import socket
from urllib.parse import urlsplit

import pytest

from tests.hostile import ALL, CREDENTIAL, HOST, JSON, LENGTH, VALID, idea, lines
from tests.service import PATIENCE, Member, challenge, start_api
from tests.wire import head, read, refused

LONGEST = 10_000        # bytes of an answer to anything here that is refused: a hundred broken rules


@pytest.fixture(scope="module")
def crowd(api_url):
    """One team for all requests."""
    return Member(api_url)


@contextlib.contextmanager
def connected(url):
    """A connection and a file that reads from it."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as sock, sock.makefile("rb") as reader:
        yield sock, reader


def exchange(member, sent, url=None):
    """The answer to these bytes, and what the connection answers afterwards: None where it is at its end."""
    with connected(url or member.url) as (sock, reader):
        sock.sendall(sent.replace(b"KEY", member.test.key.encode()))
        answer = read(reader)
        if answer.headers.get("Connection") == "close":
            assert reader.read() == b""
            return answer, None
        sock.sendall(head("GET", "/v1/health"))
        return answer, read(reader).status


@pytest.mark.parametrize("hostile", ALL, ids=lambda hostile: hostile.name)
def test_it_has_its_one_answer(crowd, hostile):
    before = crowd.rows()
    answer, after = exchange(crowd, hostile.sent)
    assert (answer.status, after) == (hostile.status, None if hostile.closes else 200), answer.raw
    assert {name: answer.headers.get(name) for name in hostile.headers} == hostile.headers
    assert b"canary" not in answer.raw and b"canary" not in str(answer.headers).encode()
    if hostile.status < 300:
        assert "X-Request-Id" in answer.headers
    elif hostile.code is None:
        assert answer.raw == hostile.words
    else:
        assert refused(answer, hostile.status, hostile.code) and len(answer.raw) < LONGEST
    if hostile.status == 401:
        assert answer.headers["WWW-Authenticate"].startswith(challenge(crowd.url))
    assert crowd.rows() == {**before, "Idea": before["Idea"] + (hostile.status == 201)}


def test_there_are_enough_and_none_is_there_twice():
    assert len({hostile.name for hostile in ALL}) == len({hostile.sent for hostile in ALL}) == len(ALL) >= 120


def test_without_the_database_each_has_its_answer_all_the_same(crowd, homeless_api):
    away = []
    for hostile in ALL:
        answer, _ = exchange(crowd, hostile.sent, homeless_api)
        if answer.status == 503 and (b"KEY" in hostile.sent or hostile.status == 401):
            assert refused(answer, 503, "internal_error") and answer.headers["Retry-After"] == "5"
            away.append(hostile)
        else:
            assert answer.status == hostile.status, hostile.name
            assert hostile.code is None or refused(answer, hostile.status, hostile.code)
    assert len(away) > 50


def test_what_was_refused_by_its_length_is_not_waited_for(crowd):
    """No 100 Continue is wasted on a body that is not wanted."""
    for expected, header in ((413, b"Content-Length: 262145"), (415, b"Content-Type: text/plain")):
        sent = lines(b"POST /v1/ideas HTTP/1.1", HOST, CREDENTIAL, b"Expect: 100-continue", header,
                     *([JSON] if expected == 413 else [LENGTH]))
        with connected(crowd.url) as (sock, reader):
            sock.sendall(sent.replace(b"KEY", crowd.test.key.encode()))
            assert reader.readline().split()[1] == b"%d" % expected


@pytest.mark.parametrize("behind", [b"canary\r\n\r\n", b"GET /v1/health HTTP/3.0\r\n\r\n", b"\x16\x03\x01\x02"])
def test_what_is_no_request_is_not_the_answer_to_the_one_before(crowd, behind):
    with connected(crowd.url) as (sock, reader):
        sock.sendall((idea(LENGTH) + head("GET", "/v1/health")).replace(b"KEY", crowd.test.key.encode()) + behind)
        answers = read(reader), read(reader)
        assert [answer.status for answer in answers] == [201, 200]
        assert answers[1].headers["Connection"] == "close" and reader.read() == b""


def test_a_head_in_pieces_before_a_large_body_is_whole(crowd):
    body = VALID.ljust(262_144)
    whole = idea(b"X: " + b"x" * 16_000, b"Content-Length: 262144", body=body).replace(b"KEY", crowd.test.key.encode())
    with connected(crowd.url) as (sock, reader):
        sock.sendall(whole[:16_000])
        assert crowd.test.get("/v1/health").status == 200
        sock.sendall(whole[16_000:])
        assert read(reader).status == 201


def test_a_body_that_breaks_off_does_nothing(crowd):
    before = crowd.rows()
    with connected(crowd.url) as (sock, _):
        sock.sendall(idea(b"Content-Length: %d" % (len(VALID) + 1)).replace(b"KEY", crowd.test.key.encode()))
    assert crowd.test.get("/v1/ideas/today").status == 200 and crowd.rows() == before


def test_a_process_that_is_ending_answers_what_it_has_begun(environ):
    process, url = start_api({**environ, "POSTHORN_API_PROCESSES": "1"})
    member = Member(url)
    with connected(url) as (idle, ended), connected(url) as (busy, reader):
        idle.sendall(head("GET", "/v1/health"))
        assert read(ended).status == 200
        busy.sendall(idea(LENGTH, body=VALID[:9]).replace(b"KEY", member.test.key.encode()))
        assert member.test.get("/v1/health").status == 200      # one process: it has read the bytes before
        process.popen.terminate()
        assert ended.read() == b""      # the process has begun to end
        busy.sendall(VALID[9:])
        answer = read(reader)
        assert (answer.status, answer.headers["Connection"], reader.read()) == (201, "close", b"")
    assert process.popen.wait(PATIENCE) == 0 and " ERROR " not in process.log()
