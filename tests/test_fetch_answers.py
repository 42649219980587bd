"""The guarded fetch against answers that are late, endless, cut or twisted, and against what TLS may meet."""

import tracemalloc

import pytest

from storage.fetch import Broken, Timeouts, TooLarge, TooSlow, Unreachable
from storage.wire import MAX_HEAD
from tests.authority import authority   # a fixture
from tests.fetching import (BARE, CHUNKED, OK, QUICK, UNREACHED, allowing, ask, connects, download, drip, serve, took_less_than,
                            with_lines)   # two are fixtures


SLOW = {
    "silence": drip(b"", b""), "status line": drip(b"x", b"HTTP/1.1 200 "), "headers": drip(b"X: y\r\n"),
    "one header": drip(b"y", BARE + b"X: "), "interim answers": drip(b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    "body": drip(b"x", BARE + b"\r\n"), "body with length": drip(b"x", BARE + b"Content-Length: 999\r\n\r\n"),
    "chunks": drip(b"1\r\nx\r\n", CHUNKED), "chunk size": drip(b"0", CHUNKED),
    "trailers": drip(b"X: y\r\n", CHUNKED + b"0\r\n"),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_a_slow_drip_ends_at_the_deadline(serve, answer):
    server = serve(lambda sock, number: answer(server, sock))
    with took_less_than(1), pytest.raises(TooSlow, match="in time"):
        ask(server, timeouts=QUICK)


def test_a_head_has_less_time_than_a_body(serve):
    server = serve(lambda sock, number: server.drip(sock, b""))
    with took_less_than(2), pytest.raises(Broken):
        ask(server, timeouts=Timeouts(first_byte=0.1, total=3))


def test_a_server_that_does_not_read_holds_a_body_no_longer_than_the_deadline(serve):
    server = serve(lambda sock, number: server.closing.wait())
    with took_less_than(1), pytest.raises(TooSlow, match="in time"):
        ask(server, timeouts=QUICK, body=bytes(50_000_000))


ENDLESS = {
    "headers": (BARE, b"X: " + b"y" * 60000 + b"\r\n"), "short headers": (BARE, b"X: y\r\n" * 1000),
    "header": (BARE, b"y" * 65536), "status line": (b"HTTP/1.1 200 ", b"y" * 65536),
    "interim answers": (b"", b"HTTP/1.1 103 Hints\r\nX: y\r\n\r\n" * 1000), "no HTTP": (b"", b"y" * 65536),
    "body": (BARE + b"\r\n", b"y" * 65536), "chunk": (CHUNKED + b"ffffffff\r\n", b"y" * 65536),
    "chunk size": (CHUNKED, b"0" * 65536), "chunk of negative size": (CHUNKED + b"-1\r\n", b"y" * 65536),
}


@pytest.mark.parametrize("first, more", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_answer_fills_no_memory(serve, first, more):
    def answer(sock, number):
        sock.sendall(first)
        while not server.closing.is_set():
            sock.sendall(more)

    server = serve(answer)
    tracemalloc.start()
    with took_less_than(3), pytest.raises((Broken, TooLarge)):
        ask(server, timeouts=Timeouts(total=1.5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_head_of_usual_size_is_read_and_a_huge_one_is_not(serve):
    line = b"X: " + b"y" * 997
    assert ask(serve(with_lines(*[line] * 40))) == (200, b"ok")
    with pytest.raises(Broken):
        ask(serve(with_lines(*[line] * (MAX_HEAD // len(line) + 1))))


FRAMED = {"with length": BARE + b"Content-Length: 10\r\n\r\n0123456789", "until the end": BARE + b"\r\n0123456789",
          "in chunks": CHUNKED + b"4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\nX: y\r\n\r\n"}


@pytest.mark.parametrize("answer", FRAMED.values(), ids=FRAMED)
def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_too_large(serve, answer):
    assert ask(serve(answer), max_bytes=10) == (200, b"0123456789")
    with pytest.raises(TooLarge):
        ask(serve(answer), max_bytes=9)


def test_a_stated_length_over_the_limit_is_too_large_before_any_of_it_came(serve):
    server = serve(lambda sock, number: drip(b"", BARE + b"Content-Length: 11\r\n\r\n")(server, sock))
    with took_less_than(0.5), pytest.raises(TooLarge):
        download(server)


TWISTED = {
    "closed at once": b"", "no HTTP": b"220 smtp.host.org ESMTP\r\n\r\n", "HTTP/0.9": b"<html>hello</html>",
    "bad status": b"HTTP/1.1 2xx\r\n\r\n", "status 99": b"HTTP/1.1 99 OK\r\n\r\n", "cut head": BARE + b"X: y",
    "cut after a header": BARE + b"X: y\r\n", "cut body": OK[:-1], "cut chunk": CHUNKED + b"5\r\nhel",
    "no last chunk": CHUNKED + b"2\r\nok\r\n", "bad chunk": CHUNKED + b"x\r\nok\r\n",
    "two lengths": with_lines(b"Content-Length: 3"), "length list": OK.replace(b": 2", b": 2, 3"),
    "length -1": OK.replace(b": 2", b": -1"), "length +2": OK.replace(b": 2", b": +2"),
    "unknown coding": CHUNKED.replace(b"chunked", b"gzip, chunked"), "line without colon": with_lines(b"hush"),
    "encoded": with_lines(b"Content-Encoding: gzip"),
}


@pytest.mark.parametrize("answer", TWISTED.values(), ids=TWISTED)
def test_an_answer_that_is_not_whole_and_clear_is_broken_and_asked_for_once(serve, answer):
    server = serve(answer)
    with pytest.raises(Broken) as failure:
        ask(server)
    assert not isinstance(failure.value, TooSlow)
    assert (server.accepted, len(server.requests)) == (1, 1)


def test_a_malformed_answer_leaves_no_secret_behind(serve, caplog):
    caplog.set_level("DEBUG")
    with pytest.raises(Broken) as failure:
        ask(serve(TWISTED["line without colon"]), target="/?token=hush", headers={"X-Key": "hush"})
    assert "hush" not in caplog.text + repr(failure.value)


def test_interim_answers_are_skipped(serve):
    server = serve(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    with allowing(server).open("GET", f"http://a.test:{server.port}/") as response:
        assert (response.status, response.read(2)) == (200, b"ok")
        assert (response.headers.get("Link"), response.headers["content-length"]) == (None, "2")


@pytest.mark.parametrize("method, status", [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_without_a_body_is_whole_whatever_length_it_states(serve, method, status):
    server = serve(OK[:-2].replace(b"200", b"%d" % status))
    with allowing(server).open(method, f"http://a.test:{server.port}/") as response:
        assert (response.status, response.read(0), response.url) == (status, b"", f"http://a.test:{server.port}/")


@pytest.mark.parametrize("status", [200, 413])
def test_an_early_no_counts_and_an_early_yes_does_not(serve, status):
    server = serve(OK.replace(b"200", b"%d" % status))  # and closes with the body unread, which resets the connection
    if status == 413:
        assert ask(server, body=bytes(20_000_000)) == (413, b"ok")
    else:
        with pytest.raises(Broken):
            ask(server, body=bytes(20_000_000))


# TLS

def test_tls_with_the_right_name_is_accepted_and_the_name_stays_the_name(serve, authority, connects):
    trusting, serving = authority
    server = serve(OK, context=serving("a.test"))
    assert ask(server, scheme="https", ssl_context=trusting) == (200, b"ok")
    assert server.names == ["a.test"]
    assert f"\r\nHost: a.test:{server.port}\r\n".encode() in server.requests[0]
    assert connects() == [["127.0.0.1", server.port]]


def test_tls_with_an_address_is_accepted_for_that_address(serve, authority):
    trusting, serving = authority
    server = serve(OK, context=serving("127.0.0.1"))
    with allowing(server, host="127.0.0.1", ssl_context=trusting).open("GET", f"https://127.0.0.1:{server.port}/") as response:
        assert response.read(2) == b"ok"


@pytest.mark.parametrize("name, days, trusted", [
    ("b.test", 9, True), ("*.a.test", 9, True), ("127.0.0.1", 9, True), ("a.test", -1, True), ("a.test", 9, False),
], ids=["other name", "name below", "only the address", "expired", "unknown authority"])
def test_tls_with_a_bad_certificate_is_unreachable_and_sends_nothing(serve, authority, name, days, trusted):
    trusting, serving = authority
    server = serve(OK, context=serving(name, days))
    with pytest.raises(Unreachable, match=UNREACHED):
        ask(server, "POST", scheme="https", body=b"x", ssl_context=trusting if trusted else None)
    server.finish()
    assert (server.accepted, server.requests) == (1, [])


def test_https_to_a_plain_server_is_unreachable_and_http_to_an_https_server_is_broken(serve, authority):
    with took_less_than(1), pytest.raises(Unreachable):
        ask(serve(OK), scheme="https", timeouts=QUICK)
    with took_less_than(1), pytest.raises(Broken):
        ask(serve(OK, context=authority[1]("a.test")), timeouts=QUICK)


def test_a_slow_drip_through_tls_ends_at_the_deadline(serve, authority):
    trusting, serving = authority
    server = serve(lambda sock, number: drip(b"x", BARE + b"\r\n")(server, sock), context=serving("a.test"))
    with took_less_than(1), pytest.raises(TooSlow, match="in time"):
        ask(server, scheme="https", ssl_context=trusting, timeouts=QUICK)
