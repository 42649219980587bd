"""The guarded fetch: what it sends, where it connects to, and what it follows."""

import io
import socket
import threading
from ipaddress import ip_network
from time import sleep

import pytest

from handlers import services
from handlers.config import Config, ConfigError
from storage import lookups
from storage.fetch import (MAX_REDIRECTS, USER_AGENT, WEB_PORTS, BadStatus, Broken, Busy, Download, Fetcher, Refused, Timeouts,
                           TooLarge, TooSlow, Unreachable)
from tests.fetching import (OK, PUBLIC, QUICK, SYSTEM_TRUST, UNREACHED, allowing, ask, connects, download, redirect, serve,
                            took_less_than, with_lines)   # two are fixtures


# What is sent

def test_the_request_is_exactly_this(serve):
    server = serve(OK)
    assert ask(server) == (200, b"ok")
    assert sorted(server.requests[0].decode().split("\r\n")) == sorted(
        ["GET / HTTP/1.1", f"User-Agent: {USER_AGENT}", "Accept: */*", f"Host: a.test:{server.port}",
         "Accept-Encoding: identity", "Connection: close", "", ""])


def test_headers_replace_the_defaults_but_not_the_encoding(serve):
    server = serve(OK)
    ask(server, headers={"user-agent": "mine", "ACCEPT": "text/html", "accept-encoding": "gzip", "X-Key": "ü"})
    lines = server.requests[0].decode("latin-1").lower().split("\r\n")
    assert [line for line in lines if line.startswith(("user-agent", "accept", "x-"))] == [
        "user-agent: mine", "accept: text/html", "accept-encoding: identity", "x-key: ü"]


@pytest.mark.parametrize("body, headers", [
    (b"hello", {}), (b"hello", {"content-length": "5"}), (io.BytesIO(b"hello"), {"Content-Length": "5"}),
    ([b"he", b"", b"llo"], {"Content-Length": "5"}), (iter([b"hello"]), {"Content-Length": "5"}),
], ids=["bytes", "bytes with length", "file", "list", "iterator"])
def test_a_body_arrives_with_its_length(serve, body, headers):
    def answer(sock, number):
        while not server.requests[number].endswith(b"hello"):
            server.requests[number] += sock.recv(100)
        sock.sendall(OK)

    server = serve(answer)
    assert ask(server, "POST", headers=headers, body=body) == (200, b"ok")
    head = server.requests[0].lower()
    assert (head.count(b"content-length: 5\r\n"), head.count(b"transfer-encoding")) == (1, 0)


@pytest.mark.parametrize("method, options", [
    ("POST", {"body": [b"x"]}), ("POST", {"body": [b"x"], "headers": {"Content-Length": "-1"}}),
    ("POST", {"body": b"x", "headers": {"Content-Length": "2"}}), ("GET", {"headers": {"Content-Length": "2"}}),
    ("GET", {"headers": {"Host": "b.test"}}), ("GET", {"headers": {"Transfer-Encoding": "chunked"}}), ("GET /", {}),
    ("get", {}),
], ids=["no length", "bad length", "wrong length", "length without body", "host", "chunked", "blank in method", "small method"])
def test_a_request_that_cannot_be_formed_is_a_value_error(serve, connects, method, options):
    server = serve(OK)
    with pytest.raises(ValueError):
        ask(server, method, **options)
    assert connects() == []


@pytest.mark.parametrize("headers", [
    {"X-Key": "hush\r\nX: y"}, {"X-Key": "hush\n"}, {"X-Key": "hush\x00"}, {"X-Key": "hush€"}, {"hush": "\x7f"},
    {"X hush": "y"}, {"": "hush"}, {"X:hush": "y"},
], ids=ascii)
def test_a_header_that_could_split_the_request_is_refused_without_showing_it(serve, connects, headers):
    server = serve(OK)
    with pytest.raises(Refused) as refusal:
        ask(server, headers=headers)
    assert (connects(), "hush" in str(refusal.value)) == ([], False)


def body_that_fails(error):
    yield b"hel"
    raise error


@pytest.mark.parametrize("body", [
    [b"hel"], [b"hello", b"!"], [b"hello!"], body_that_fails(Unreachable("no")), body_that_fails(TooLarge("no")),
    body_that_fails(OSError("no")),
], ids=["short", "long", "long piece", "fails to reach", "fails too large", "fails to read"])
def test_a_body_that_is_not_as_announced_is_broken_and_never_whole(serve, body):
    server = serve(lambda sock, number: server.receive(sock, number))
    with pytest.raises(Broken):
        ask(server, "POST", headers={"Content-Length": "5"}, body=body)
    server.finish()
    assert server.requests[0].partition(b"\r\n\r\n")[2] in (b"hel", b"hello", b"")


def test_the_environment_has_no_say(serve, monkeypatch):
    server, proxy = serve(OK), serve(OK)
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert (ask(server), proxy.accepted) == ((200, b"ok"), 0)


# Where it connects to

@pytest.mark.parametrize("answers", [
    [PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC, "::1"], [PUBLIC, "::ffff:8.8.8.8"], ["127.0.0.1"],
    [PUBLIC, "fe80::1%lo"], ["64:ff9b::808:808"], [f"93.184.216.{last}" for last in range(33)],
], ids=lambda answers: " ".join(answers)[:40])
def test_one_address_that_is_not_public_refuses_the_whole_answer(connects, answers):
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: answers)
    with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert connects() == []


def test_a_private_host_that_is_none_is_named_by_its_setting(environ, monkeypatch):
    monkeypatch.setattr(services, "open_database", lambda config, connections: None)
    with pytest.raises(ConfigError, match="^POSTHORN_ALLOW_PRIVATE: the URL has a malformed host"):
        services.build(Config.from_env({**environ, "POSTHORN_ALLOW_PRIVATE": "a b:80"}), connections=1)


def test_the_setting_refuses_networks(environ, connects, monkeypatch):
    monkeypatch.setattr(services, "open_database", lambda config, connections: None)
    config = Config.from_env({**environ, "POSTHORN_REFUSE_NETWORKS": f"{PUBLIC}/31, 2a00:64::/96"})
    with pytest.raises(Refused), services.build(config, connections=1).fetcher.open("GET", f"http://{PUBLIC}/"):
        pass
    assert connects() == []


@pytest.mark.parametrize("address", ["203.1.113.9", "2a00:64::a00:1"], ids=["a network", "a translator"])
def test_networks_that_the_operator_refuses_are_not_reached(connects, address):
    refuse = tuple(map(ip_network, ("203.1.113.0/24", "2a00:64::/96")))
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: [PUBLIC, address], refuse=refuse)
    with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert connects() == []


def test_a_name_is_resolved_once_and_only_what_was_checked_is_connected(connects):
    answers = iter([[PUBLIC], ["127.0.0.1"], ["10.0.0.1"]])
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: next(answers))
    with pytest.raises(Unreachable, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert connects() == [[PUBLIC, 80]]
    with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", "http://host.org/"):
        pass
    assert (connects(), next(answers)) == ([[PUBLIC, 80]], ["10.0.0.1"])


def test_a_record_that_moves_after_the_check_moves_nothing(serve, connects):
    checked = serve(OK, host="127.0.0.2")
    other = serve(OK, host="127.0.0.3", port=checked.port)
    answers = iter([["127.0.0.2"], ["127.0.0.3"]])
    with allowing(checked, resolve=lambda host: next(answers)).open("GET", f"http://a.test:{checked.port}/") as response:
        assert response.read(10) == b"ok"
    assert (connects(), other.accepted, next(answers)) == ([["127.0.0.2", checked.port]], 0, ["127.0.0.3"])


def test_what_is_allowed_privately_is_one_host_on_one_port(serve, connects):
    server, other = serve(OK), serve(OK)
    fetcher = Fetcher(frozenset({("LOCALHOST", server.port), ("[::0:1]", 1)}))
    with fetcher.open("GET", f"http://localhost:{server.port}/") as response:
        assert response.read(10) == b"ok"
    for url in (f"http://localhost:{other.port}/", f"http://127.0.0.1:{server.port}/", f"http://a.localhost:{server.port}/"):
        for ports in (None, {server.port, other.port}):
            with pytest.raises(Refused), fetcher.open("GET", url, ports=ports):
                pass
    with pytest.raises(Unreachable), fetcher.open("GET", "http://[::1]:1/"):
        pass
    assert (server.accepted, other.accepted) == (1, 0)


def test_the_defaults_are_those_that_users_are_promised():
    assert Timeouts() == Timeouts(dns=5, connect=5, first_byte=10, total=60)
    assert (WEB_PORTS, MAX_REDIRECTS) == ({80, 443, 8080, 8443}, 3)


def test_only_web_ports_are_open_unless_the_caller_lifts_the_rule(connects):
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=lambda host: [PUBLIC])
    with pytest.raises(Refused, match="port"), fetcher.open("GET", "http://host.org:22/"):
        pass
    for url, options in (("http://host.org:22/", {"ports": None}), ("https://host.org:8443/", {})):
        with pytest.raises(Unreachable), fetcher.open("GET", url, **options):
            pass
    assert connects() == [[PUBLIC, 22], [PUBLIC, 8443]]


# Redirects

INNER = [
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://[::1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "//127.0.0.1:{port}/", "http://127.0.0.1:8080/", "http://localhost:8080/", "http://[::1]:8080/",
    "http://[::ffff:7f00:1]:8080/", "//0.0.0.0:8080/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/",
    "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://2130706433/", "http://0x7f.1:8080/", "http://127.1/",
    "http://①②⑦.⓪.⓪.①/", "http://inner.org/", "http://inner.org:8080/", "https://127.0.0.1:8443/", "http://a.test/",
    "http://a.test@127.0.0.1/", "http://127.0.0.1\\@a.test/", "file:///etc/passwd", "gopher://127.0.0.1/", "http:///",
    "http://a.internal/",
]


@pytest.mark.parametrize("location", INNER)
def test_a_redirect_to_the_inside_is_refused(serve, connects, location):
    inner = serve(OK)
    server = serve(redirect(location.format(port=inner.port)))
    with pytest.raises(Refused):
        download(server)
    assert (connects(), inner.accepted) == ([["127.0.0.1", server.port]], 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_three_redirects_are_followed_and_each_is_resolved_anew(serve, status):
    locations, lookups = ["/b?x=ü", "//a.test:{port}/c/", "../d"], []

    def answer(sock, number):
        if number < 3:
            sock.sendall(redirect(locations[number].format(port=server.port), status))
        else:
            sock.sendall(with_lines(b"Content-Type: Image/PNG; q=1"))

    server, file = serve(answer), io.BytesIO()
    brought = download(server, file, resolve=lambda host: lookups.append(host) or ["127.0.0.1"])
    assert brought == Download(2, f"http://a.test:{server.port}/d", "image/png")
    assert [request.split(b" ")[1] for request in server.requests] == [b"/a", b"/b?x=%C3%BC", b"/c/", b"/d"]
    assert (file.getvalue(), lookups) == (b"ok", ["a.test"] * 4)


def test_a_fourth_redirect_is_refused(serve):
    server = serve(redirect("/"))
    with pytest.raises(Refused, match="more than 3 times"):
        download(server)
    assert server.accepted == 4


@pytest.mark.parametrize("answer, status", [
    (redirect("/", 300), 300), (redirect("/", 304), 304), (redirect("/", 201), 201), (redirect(""), 302),
    (b"HTTP/1.1 404 No\r\n\r\n", 404), (b"HTTP/1.1 206 Part\r\n\r\n", 206),
])
def test_a_download_ends_well_with_200_only(serve, answer, status):
    server, file = serve(answer), io.BytesIO()
    with pytest.raises(BadStatus) as failure:
        download(server, file)
    assert (failure.value.status, file.getvalue(), server.accepted) == (status, b"", 1)


def test_the_body_of_a_redirect_is_not_read(serve):
    def answer(sock, number):
        sock.sendall(OK if number else redirect("/b").replace(b"Content-Length: 5", b"Content-Length: 99999999"))
        if not number:
            server.drip(sock, b"x" * 65536)

    server = serve(answer)
    with took_less_than(1):
        assert download(server).bytes == 2


def test_one_deadline_holds_for_all_redirects_together(serve):
    def answer(sock, number):
        sleep(0.3)
        sock.sendall(redirect("/"))

    server = serve(answer)
    with took_less_than(1), pytest.raises(Broken, match="in time"):
        download(server, timeouts=Timeouts(total=0.5))


def test_a_deadline_that_ends_between_two_hops_is_one_of_the_other_server(serve):
    lookups = iter([None, threading.Event()])

    def resolve(name):
        if gate := next(lookups):
            gate.wait(2)
        return ["127.0.0.1"]

    server = serve(redirect("/"))
    with took_less_than(1), pytest.raises(TooSlow, match="in time"):
        download(server, resolve=resolve, timeouts=Timeouts(total=0.4))


# No connection, so that surely nothing was sent

def raising(error):
    def resolve(host):
        raise error
    return resolve


@pytest.mark.parametrize("resolve", [
    raising(socket.gaierror(-2, "hush")), raising(TimeoutError()), raising(ValueError("hush")), lambda host: [],
    lambda host: None, lambda host: ["localhost"], lambda host: sleep(1),
], ids=["unknown", "timed out", "fails", "no address", "nothing", "a name", "slow"])
def test_a_name_without_a_usable_answer_is_unreachable(connects, resolve):
    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=resolve)
    with took_less_than(0.9), pytest.raises(Unreachable, match=UNREACHED):
        with fetcher.open("GET", "http://host.org/", timeouts=QUICK):
            pass
    assert connects() == []


@pytest.fixture
def silent(monkeypatch):
    """What a fetcher makes of a URL for names of which those of slow sites have silent name servers; and who was asked for."""
    gate, asked = threading.Event(), []
    monkeypatch.setattr(lookups, "LOOKUPS", 9)

    def resolve(host):
        asked.append(host)
        if "slow" in host:
            gate.wait(20)
        return ["127.0.0.1"]

    fetcher = Fetcher(ssl_context=SYSTEM_TRUST, resolve=resolve)

    def failure(host, dns=0.05):
        with pytest.raises((Unreachable, Refused)) as raised:
            with fetcher.open("GET", f"http://{host}/", timeouts=Timeouts(dns=dns)):
                pass
        return raised.type

    yield failure, asked
    gate.set()


def test_a_silent_name_server_holds_up_no_other_site(silent):
    failure, asked = silent
    assert [failure(f"{number}.{site}") for site in ("slow.org", "slow.co.uk") for number in range(6)] == [Unreachable] * 12
    assert asked == [f"{number}.{site}" for site in ("slow.org", "slow.co.uk") for number in range(4)]
    assert [failure(host, dns=5) for host in ("honest.org", "honest.co.uk", "org")] == [Refused] * 3     # of its address


def test_where_no_name_can_be_looked_up_that_is_said(silent):
    failure, asked = silent
    assert [failure(f"slow{number}.org") for number in range(10)] == [Unreachable] * 9 + [Busy]
    assert failure("honest.org") is Busy and len(asked) == 9


def test_a_refused_port_is_unreachable():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can listen there
        port = reserved.getsockname()[1]
        fetcher = Fetcher(frozenset({("127.0.0.1", port)}), ssl_context=SYSTEM_TRUST)
        with pytest.raises(Unreachable, match=UNREACHED), fetcher.open("POST", f"http://127.0.0.1:{port}/", body=b"x"):
            pass
