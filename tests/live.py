"""The live connectors, connected to servers that stand in for their networks, and driven as the publisher drives them."""

import io
import json
import ssl
from urllib.parse import parse_qsl, urlsplit

import pytest
import urllib3

from platforms.base import Account, Media, Waiting
from platforms.errors import PlatformError, Unavailable
from platforms.http import Http
from storage.fetch import Fetcher
from tests.standins.server import HOST

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
MP4 = b"\0\0\0\x18ftypmp42" + b"moving picture"
TLS = ssl.create_default_context()      # takes a while to make


def http_for(*nets):
    """A client that may reach these stand-ins and nothing else."""
    allowed = frozenset((HOST, net.port) for net in nets)
    return Http(Fetcher(allow_private=allowed, ssl_context=TLS), allowed)


def fixtures(platform, start, settings, account):
    """The fixtures of a network's tests: its stand-in, a connector, and an account; named as what they are assigned to.

    `start`, `settings` and `account` are those of the network's module in tests/networks.
    """
    @pytest.fixture
    def net():
        with start() as net:
            yield net

    @pytest.fixture
    def connector(net):
        return platform(http_for(net), settings(net))

    @pytest.fixture
    def owner(net):
        return account(net)

    return net, connector, owner


def consented(platform, redirect_url):
    """The arguments of `redeem` once somebody was at the page that `authorize` sends them to."""
    begun = platform.authorize(redirect_url, "state-1")
    page = urllib3.request("GET", begun.url, redirect=False, retries=False)
    answer = dict(parse_qsl(urlsplit(page.headers["Location"]).query))
    assert page.headers["Location"].startswith(redirect_url) and answer.pop("state") == "state-1"
    return answer, redirect_url, begun.kept


def account(connected):
    """The account as a connector sees it later."""
    return Account(connected.profile.platform_id, connected.profile.username, connected.host, connected.credentials)


def part_of(data):
    """What opens a file with these bytes, or with some of them."""
    return lambda offset=0, length=None: io.BytesIO(data[offset:][:length])


def image(number=0, data=PNG, **details):
    """A picture that differs from the others by its `number`."""
    data += bytes([number])
    return Media("image/png", len(data), "u", **{"width": 4, "height": 3, "open": part_of(data), **details})


def video(**details):
    """A short video."""
    return Media("video/mp4", len(MP4), "u", **{"width": 16, "height": 9, "open": part_of(MP4), **details})


def prepared(platform, account, content, receipt=None):
    """The last receipt of a preparation, stored as JSON after each step."""
    receipt = receipt or {}
    for step in platform.prepare(account, content, receipt):
        receipt = json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
    return receipt


def tried(platform, account, content, receipt=None):
    """How a preparation ends that is made again as long as that makes sense: its error or None, and how often it was made."""
    for tries in range(1, 20):
        try:
            prepared(platform, account, content, receipt)
            return None, tries
        except Unavailable as error:
            receipt = error.receipt or receipt
        except PlatformError as error:
            return error, tries
    raise AssertionError("it goes on for ever")


def published(platform, account, content):
    """What comes of a post that has no problems."""
    assert platform.problems(content, account) == []
    return platform.publish(account, content, prepared(platform, account, content))


def made_public(platform, account, content):
    """The receipt with which the publisher goes on after a post that is public."""
    receipt = prepared(platform, account, content)
    outcome = platform.publish(account, content, receipt)
    return {**receipt, "public": {"id": outcome.id, "url": outcome.url}}


def followed(platform, account, content, receipt):
    """The last receipt of what follows a post, stored as JSON after each step."""
    for step in platform.follow(account, content, receipt):
        receipt = json.loads(json.dumps(step))
    return receipt
