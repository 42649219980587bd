"""No URL, no redirect and no name server leads the guarded fetch inside; every connection of the process is watched."""

import io
from time import monotonic

import pytest

from storage.fetch import Fetcher, Refused, Timeouts, Unreachable
from tests.fetching import OK, PATIENT, PUBLIC, SYSTEM_TRUST, UNREACHED, Server, connects, redirect  # one is a fixture
from tests.names import GARBAGE, SILENCE, NameServer
from tests.url_corpus import ADDRESSES, CORPUS, EMBEDDED


class Chain(Server):
    """Sends whoever asks for /N on to /N-1, and from /1 to `last`; counts what comes to / as having reached the inside."""

    def __init__(self):
        super().__init__(self.hop)
        self.last = None

    def hop(self, sock, number):
        path = self.requests[number].split(b" ")[1].decode()
        left = int(path[1:] or 0)
        sock.sendall(OK if not left else redirect(f"/{left - 1}" if left > 1 else self.last))


@pytest.fixture(scope="module")
def chain():
    server = Chain()
    yield server
    server.close()


@pytest.fixture(scope="module")
def names():
    server = NameServer()
    yield server
    server.close()


def outside(found):
    """The connects that no test should see: all but those to the server that redirects."""
    return [where for where in found if where[0] != "127.0.0.1"]


def test_the_corpus_has_its_size():
    assert len(set(CORPUS)) >= 280 and len(set(EMBEDDED)) >= 89


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_inside_is_refused_in_a_url_and_from_a_name_server(names, connects, address):
    names.zone = {"host.org": [[address]], "mixed.org": [[PUBLIC, address]], "alias.org": ["host.org"]}
    fetcher = Fetcher(resolve=names.resolve, ssl_context=SYSTEM_TRUST)
    for host in (f"[{address}]" if ":" in address else address, "host.org", "mixed.org", "alias.org"):
        with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", f"http://{host}/", timeouts=PATIENT):
            pass
    assert connects() == []


@pytest.mark.parametrize("url", CORPUS, ids=lambda url: ascii(url)[:60])
@pytest.mark.parametrize("hops", [1, 3])
def test_no_redirect_leads_inside(chain, names, connects, url, hops):
    chain.last, names.zone = url, {}
    for name in ("host.org", "127.0.0.1.nip.io", "xn--bcher-kva.org"):
        names.zone[name] = [["127.0.0.1"]]
    before, fetcher = chain.accepted, Fetcher(frozenset({("127.0.0.1", chain.port)}), names.resolve, ssl_context=SYSTEM_TRUST)
    with pytest.raises(Refused):
        fetcher.download(f"http://127.0.0.1:{chain.port}/{hops}", io.BytesIO(), max_bytes=10, timeouts=PATIENT)
    assert connects() == [["127.0.0.1", chain.port]] * hops
    assert chain.accepted - before == hops


@pytest.mark.parametrize("first", [[PUBLIC], [PUBLIC, "2606:4700:4700::1111"]], ids=["one", "both families"])
def test_a_name_server_that_changes_its_answer_gains_nothing(names, connects, first):
    names.zone, names.asked = {"rebind.org": [first, ["127.0.0.1", "::1"], ["10.0.0.1"]]}, type(names.asked)()
    fetcher = Fetcher(resolve=names.resolve, ssl_context=SYSTEM_TRUST)
    with pytest.raises(Unreachable), fetcher.open("GET", "http://rebind.org/", timeouts=PATIENT):
        pass
    assert sorted(connects()) == sorted([address, 80] for address in first)     # all of them checked, and asked for once
    assert set(names.asked.values()) == {1}
    for _ in range(3):
        with pytest.raises(Refused), fetcher.open("GET", "http://rebind.org/", timeouts=PATIENT):
            pass
    assert len(connects()) == len(first)


def test_a_name_that_moves_between_two_redirects_is_checked_again(chain, names, connects):
    # Through "allow", the first two hops lead to the server of this test; the name behind the third has moved by then.
    names.zone, chain.last = {"moved.org": [["127.0.0.1"]]}, f"http://moved.org:{chain.port}/"
    fetcher = Fetcher(frozenset({("127.0.0.1", chain.port)}), names.resolve, ssl_context=SYSTEM_TRUST)
    with pytest.raises(Refused):
        fetcher.download(f"http://127.0.0.1:{chain.port}/2", io.BytesIO(), max_bytes=10, timeouts=PATIENT)
    assert connects() == [["127.0.0.1", chain.port]] * 2


@pytest.mark.parametrize("answer", [SILENCE, GARBAGE, []], ids=["never answers", "answers nonsense", "has no address"])
def test_a_name_server_without_an_answer_costs_its_time_and_no_more(names, connects, answer):
    names.zone = {"mute.org": [answer]}
    fetcher, started = Fetcher(resolve=names.resolve, ssl_context=SYSTEM_TRUST), monotonic()
    with pytest.raises(Unreachable, match=UNREACHED), fetcher.open("GET", "http://mute.org/", timeouts=Timeouts(dns=0.3)):
        pass
    assert (connects(), monotonic() - started < 0.9) == ([], True)


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_a_family_that_leads_inside_taints_the_other(names, connects, family):
    names.zone = {"split.org": [[[PUBLIC, "::1"], ["127.0.0.1", "2606:4700:4700::1111"]][family]]}
    fetcher = Fetcher(resolve=names.resolve, ssl_context=SYSTEM_TRUST)
    with pytest.raises(Refused, match=UNREACHED), fetcher.open("GET", "http://split.org/", timeouts=PATIENT):
        pass
    assert connects() == []


def test_the_watch_sees_what_an_unguarded_fetch_does(names, connects, chain):
    names.zone, chain.last = {"host.org": [["127.0.0.1"]]}, "/"
    fetcher = Fetcher(frozenset({("host.org", chain.port)}), names.resolve, ssl_context=SYSTEM_TRUST)
    with fetcher.open("GET", f"http://host.org:{chain.port}/", timeouts=PATIENT) as response:
        assert response.read(9) == b"ok"
    assert connects() == [["127.0.0.1", chain.port]]
