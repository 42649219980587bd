"""Public addresses against all others, and connecting to the first of several that answers."""

import ipaddress
import socket
from contextlib import closing
from datetime import date, timedelta
from time import monotonic

import pytest

from storage.addresses import (CLOUD_IPV4, REGISTRY_DATE, SPECIAL_IPV4, SPECIAL_IPV6, connect, is_own, is_public,
                               system_addresses)

BLOCKS = [*SPECIAL_IPV4, *SPECIAL_IPV6, *CLOUD_IPV4, ("224.0.0.0/4", "Multicast"), ("ff00::/8", "Multicast"),
          ("fec0::/10", "Site-Local")]
PUBLIC = [
    # what lies right beside the special blocks
    "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
    "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.101.0", "203.0.114.0", "223.255.255.255",
    "2001:200::", "2001:db7:ffff::1", "2001:db9::", "2003::1", "2620:4f:7fff::1", "2620:4f:8001::", "3ffe:ffff::1",
    "3fff:1000::1",
    # addresses in real use
    "8.8.8.8", "168.63.129.15", "168.63.129.17", "93.184.216.34", "2606:4700:4700::1111", "2001:4860:4860::8888",
]
WRAPPED_LOOPBACK = {
    "mapped": "::ffff:127.0.0.1", "mapped, in hex": "::ffff:7f00:1", "compatible": "::127.0.0.1",
    "translated": "::ffff:0:127.0.0.1",
    "NAT64": "64:ff9b::127.0.0.1", "NAT64, local": "64:ff9b:1::127.0.0.1", "NAT64, local, /48 form": "64:ff9b:1:7f00:0:1::",
    "6to4": "2002:7f00:1::", "Teredo server": "2001:0:7f00:1::", "Teredo client": "2001:0:808:808:0:0:80ff:fffe",
    "ISATAP, link-local": "fe80::5efe:127.0.0.1",
}
WRAPPED_PUBLIC = {"mapped": "::ffff:8.8.8.8", "compatible": "::8.8.8.8", "NAT64": "64:ff9b::8.8.8.8", "6to4": "2002:808:808::"}
NO_ADDRESS = [
    "", " ", "localhost", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433", "8.8.8.8.", " 8.8.8.8", "8.8.8.8\n", "８.8.8.8",
    "8.8.8.8%eth0", "fe80::1%1", "2606:4700::1%eth0", "[2606:4700::1]", "2606:4700::1/128",
]


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize("block, name", BLOCKS, ids=[block for block, _ in BLOCKS])
def test_no_address_of_a_special_block_is_public(block, name):
    network = ipaddress.ip_network(block)
    middle = network[network.num_addresses // 2]
    assert [is_public(str(address)) for address in (network[0], middle, network[-1])] == [False] * 3


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_beside_the_special_blocks_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize("address", [*WRAPPED_LOOPBACK.values(), *WRAPPED_PUBLIC.values()])
def test_an_address_that_wraps_another_is_never_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_what_is_no_plain_address_is_not_public(text):
    assert not is_public(text)


def test_ipv6_outside_global_unicast_is_not_public():
    outside = [f"{first:x}::1" for first in range(0, 0x10000, 0x400) if not 0x2000 <= first < 0x4000]
    assert [address for address in outside if is_public(address)] == []


def test_the_tables_were_compared_with_iana_in_the_last_180_days():
    assert date.today() - REGISTRY_DATE < timedelta(days=180)


@pytest.mark.parametrize("address, own", [("127.0.0.1", True), ("93.184.216.34", False),
                                          ("2606:4700:4700::1111", False)])
def test_own_addresses_are_told_from_others(address, own):
    assert is_own(address) is own


def test_the_system_knows_localhost_as_loopback_only():
    assert {ipaddress.ip_address(address).is_loopback for address in system_addresses("localhost")} == {True}


def test_connect_goes_on_to_the_next_address_when_one_refuses(listener):
    with closing(connect(["127.0.0.2", "127.0.0.1"], listener.getsockname()[1], 2)) as sock:
        assert sock.getpeername() == listener.getsockname()


def test_an_address_that_swallows_connections_leaves_time_for_the_next():
    with socket.create_server(("127.0.0.1", 0)) as good, socket.socket() as deaf, socket.socket() as filler:
        port = good.getsockname()[1]
        deaf.bind(("127.0.0.2", port))
        deaf.listen(0)
        filler.connect(("127.0.0.2", port))  # the queue of one is full: the kernel drops what comes after
        start = monotonic()
        with closing(connect(["127.0.0.2", "127.0.0.1"], port, 0.6)) as sock:
            assert sock.getpeername() == ("127.0.0.1", port)
        assert 0.2 < monotonic() - start < 0.6
        with pytest.raises(TimeoutError):
            connect(["127.0.0.2"], port, 0.2)


@pytest.mark.parametrize("addresses", [[], ["127.0.0.2"], ["127.0.0.2", "::1"]], ids=["none", "one", "two families"])
def test_connect_raises_when_nobody_answers(addresses):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.2", 0))  # bound, not listening: nobody else can listen there
        with pytest.raises(OSError):
            connect(addresses, reserved.getsockname()[1], 1)
