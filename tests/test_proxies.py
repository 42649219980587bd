"""Behind a proxy each person has an address of their own, and nobody chooses it."""

import asyncio
from ipaddress import ip_network

import pytest
from flask import Flask

from handlers.config import Config, ConfigError
from handlers.pages import sign_in
from handlers.proxies import Proxies, counted_for

TRUSTED = [ip_network(text) for text in ("10.0.0.0/8", "192.0.2.1", "2001:db8:1::/48")]


def origin(peer, *forwarded, trusted=TRUSTED):
    """The address that the layers within see."""
    seen = []

    async def within(scope, receive, send):
        seen.append(scope["client"])

    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    asyncio.run(Proxies(within, trusted)({"type": "http", "client": peer and (peer, 1), "headers": headers}, None, None))
    return seen[0] and seen[0][0]


@pytest.mark.parametrize("peer, forwarded, address", [
    ("203.0.113.9", [], "203.0.113.9"),
    ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
    ("10.0.0.1", [], "10.0.0.1"),
    ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
    ("10.0.0.1", ["127.0.0.1, 198.51.100.1"], "198.51.100.1"),
    ("10.0.0.1", ["127.0.0.1", "198.51.100.1"], "198.51.100.1"),
    ("10.0.0.1", ["10.0.0.7, 198.51.100.1, 192.0.2.1,10.1.1.1"], "198.51.100.1"),
    ("10.0.0.1", ["10.0.0.7, 192.0.2.1"], "10.0.0.7"),
    ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
    ("10.0.0.1", ["198.51.100.1, "], "10.0.0.1"),
    ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
    ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
    ("2001:db8:1::5", ["2001:DB8:0::1"], "2001:db8::1"),
    ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
    ("/run/posthorn.sock", ["198.51.100.1"], "/run/posthorn.sock"),
    (None, ["198.51.100.1"], None),
])
def test_an_address_is_believed_as_far_as_trusted_proxies_wrote_it(peer, forwarded, address):
    assert origin(peer, *forwarded) == address


def test_a_proxy_that_nobody_trusts_is_named_once(caplog):
    app = Proxies(None, TRUSTED)
    for peer in ("203.0.113.9", "203.0.113.10"):
        app._origin(ip_network(peer)[0], ["198.51.100.1"])
    assert [record.getMessage().split(" is ignored")[0] for record in caplog.records] == ["X-Forwarded-For from 203.0.113.9"]


@pytest.mark.parametrize("address, counted", [
    ("203.0.113.9", "203.0.113.9"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8:0:0:ffff::2", "2001:db8::/64"),
    ("2001:db8:0:1::1", "2001:db8:0:1::/64"), ("/run/a:b:c.sock", "/run/a:b:c.sock"), (None, "")])
def test_a_customer_of_ipv6_counts_as_one(environ, address, counted):
    assert counted_for(address) == counted
    with Flask("x").test_request_context(environ_base={"REMOTE_ADDR": address}):
        assert sign_in._tries(Config.from_env(environ), "ann")[0][0] == f"sign-in:{counted}"


@pytest.mark.parametrize("value", ["*", "proxy.example.com", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.1 10.0.0.2"])
def test_proxies_are_addresses_and_networks(environ, value):
    with pytest.raises(ConfigError, match="POSTHORN_TRUSTED_PROXIES must be"):
        Config.from_env({**environ, "POSTHORN_TRUSTED_PROXIES": value})
