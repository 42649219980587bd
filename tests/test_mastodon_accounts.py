"""Accounts of Mastodon: connecting them, and the terms of their instances."""

from dataclasses import replace

import pytest

from platforms.base import Content, Profile
from platforms.errors import Rejected, Unavailable
from platforms.mastodon import Mastodon
from tests.live import account, http_for, published
from tests.networks.mastodon import TOKEN, ann, mastodon, net  # fixtures
from tests.standins.mastodon import MastodonServer
from tests.standins.server import HOST

INSTANCE, OLD_INSTANCE, VERIFY = "GET /api/v2/instance", "GET /api/v1/instance", "GET /api/v1/accounts/verify_credentials"


def test_connecting_tells_who_the_account_is(net, mastodon):
    connected = mastodon.connect({"host": f" {net.url}/@ann ", "accessToken": f" {TOKEN} "})
    owner = next(iter(net.accounts))
    assert connected.profile == Profile(owner, f"ann@{HOST}:{net.port}", "Ann", f"{net.url}/avatar.png")
    assert connected.host == net.url and connected.credentials["accessToken"] == TOKEN
    assert TOKEN not in repr(connected) and TOKEN not in repr(account(connected))


def test_an_account_without_a_display_name_has_its_username(net, mastodon):
    net.add_user("bob", "token-bob")
    assert mastodon.connect({"host": net.url, "accessToken": "token-bob"}).profile.display_name == "bob"


def test_the_domain_of_people_may_redirect_to_the_server_of_the_instance(net, mastodon):
    with MastodonServer() as front:
        front.fault(INSTANCE, status=301, headers={"Location": f"{net.url}/api/v2/instance"})
        connected = Mastodon(http_for(net, front)).connect({"host": front.url, "accessToken": TOKEN})
    assert connected.host == net.url and len(front.requests) == 1


@pytest.mark.parametrize("location", ["", "/elsewhere", "http://10.0.0.1/", "https://127.0.0.1:1/"])
def test_a_redirect_to_nowhere_does_not_connect(net, mastodon, location):
    net.fault(INSTANCE, status=302, headers={"Location": location})
    with pytest.raises(Rejected) as caught:
        mastodon.connect({"host": net.url, "accessToken": TOKEN})
    assert caught.value.rule == "host"


def test_older_instances_are_read_at_their_older_address(net, mastodon):
    net.fault(INSTANCE, status=404, body={"error": "Not Found"})
    net.fault(OLD_INSTANCE, status=200, body={"uri": "old.example.com", "version": "2.7.2 (Pleroma)", "max_toot_chars": 5000})
    connected = mastodon.connect({"host": net.url, "accessToken": TOKEN})
    assert connected.profile.username == f"ann@{HOST}:{net.port}"
    assert mastodon.for_account(account(connected)).limits.caption == 5000


@pytest.mark.parametrize("host, token, rule", [
    (None, "wrong", "credentials"), (None, "no-user", "credentials"), (None, "a b", "credentials"),
    ("http://social.example.com", TOKEN, "host"), ("https://10.0.0.1", TOKEN, "host"), ("not a host", TOKEN, "host"),
])
def test_connecting_is_refused(net, mastodon, host, token, rule):
    net.add_user("writer", "no-user", scopes="write:statuses")
    with pytest.raises(Rejected) as caught:
        mastodon.connect({"host": host or net.url, "accessToken": token})
    assert caught.value.rule == rule and token not in str(caught.value.platform_message)


@pytest.mark.parametrize("endpoint, body, expected", [
    (INSTANCE, "<html>", Rejected), (INSTANCE, {"name": "something else"}, Rejected),
    (VERIFY, {}, Unavailable), (VERIFY, {"id": 7, "username": "ann"}, Unavailable), (VERIFY, [], Unavailable),
])
def test_a_server_that_talks_nonsense_does_not_connect(net, mastodon, endpoint, body, expected):
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(expected):
        mastodon.connect({"host": net.url, "accessToken": TOKEN})


def test_the_limits_are_those_of_the_instance(net, mastodon):
    net.characters = 1000
    ann = account(mastodon.connect({"host": net.url, "accessToken": TOKEN}))
    assert [problem.rule for problem in mastodon.problems(Content("x" * 1001), ann)] == ["caption_length"]
    assert mastodon.problems(Content("x" * 1000), ann) == []
    assert [problem.rule for problem in mastodon.problems(Content("x" * 501))] == ["caption_length"]
    assert published(mastodon, ann, Content("x" * 1000))


@pytest.mark.parametrize("said", [{}, {"configuration": []}, {"configuration": {"statuses": {"max_characters": "many"}}}])
def test_what_an_instance_does_not_say_is_as_usual(net, mastodon, said):
    net.fault(INSTANCE, status=200, body={"domain": "a.example.com", "version": "4.5.2", **said})
    ann = account(mastodon.connect({"host": net.url, "accessToken": TOKEN}))
    assert mastodon.for_account(ann).limits == mastodon.limits and ann.username == "ann@a.example.com"


def test_the_terms_of_the_instance_are_asked_for_once_a_day(net, mastodon, ann):
    assert mastodon.refresh(ann) is None
    aged = {**ann.credentials["instance"], "readAt": "2026-01-01T00:00:00.000Z"}
    old = replace(ann, credentials={**ann.credentials, "instance": aged})
    net.characters = 700
    fresh = mastodon.refresh(old)
    assert fresh["accessToken"] == TOKEN and fresh["instance"]["max_characters"] == 700
    net.fault(INSTANCE, status=503)
    assert mastodon.refresh(old) is None
    assert mastodon.refresh(old, force=True) is None        # there is no other token
