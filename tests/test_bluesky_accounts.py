"""Accounts of Bluesky: connecting them, and keeping their tokens alive."""

from dataclasses import replace

import pytest

from platforms.base import Content, Profile
from platforms.bluesky import Bluesky
from platforms.errors import Disconnected, Rejected, Unavailable
from tests.live import account, prepared, published
from tests.networks.bluesky import PASSWORD, ann, bluesky, net  # fixtures

REFRESH, LOGIN = "com.atproto.server.refreshSession", "com.atproto.server.createSession"


def test_connecting_tells_who_the_account_is(net, bluesky):
    connected = bluesky.connect({"identifier": " @ann.test ", "appPassword": f" {PASSWORD} ", "host": ""})
    did = next(iter(net.accounts))
    assert (connected.profile, connected.host) == (Profile(did, "ann.test", "Ann", "https://cdn.example.com/ann.jpg"), "")
    assert [connected.credentials[name] for name in ("did", "pds", "service")] == [did, net.url, net.url]
    assert PASSWORD not in repr(connected) and PASSWORD not in repr(account(connected))


def test_connecting_at_a_server_of_ones_own(net, bluesky):
    elsewhere = Bluesky(bluesky.http, {"api_url": "https://bsky.social"})
    connected = elsewhere.connect({"identifier": "ann.test", "appPassword": PASSWORD, "host": net.url})
    assert connected.profile.username == "ann.test"


def test_a_profile_without_name_and_picture_falls_back_to_the_handle(net, bluesky):
    did = net.add_user("bob.test", "bob-password")
    profile = bluesky.connect({"identifier": "bob.test", "appPassword": "bob-password"}).profile
    assert profile == Profile(did, "bob.test", "bob.test", None)


def test_a_server_without_an_app_view_still_connects(net, bluesky):
    net.fault("app.bsky.actor.getProfile", status=502, body={"error": "UpstreamFailure", "message": "unreachable"})
    assert bluesky.connect({"identifier": "ann.test", "appPassword": PASSWORD}).profile.display_name == "ann.test"


@pytest.mark.parametrize("fields, rule", [
    ({"identifier": "ann.test", "appPassword": "wrong"}, "credentials"),
    ({"identifier": "nobody.test", "appPassword": PASSWORD}, "credentials"),
    ({"identifier": "ann.test", "appPassword": PASSWORD, "host": "http://bsky.example.com"}, "host"),
    ({"identifier": "ann.test", "appPassword": PASSWORD, "host": "https://10.0.0.1"}, "host"),
    ({"identifier": "ann.test", "appPassword": PASSWORD, "host": "not a host"}, "host"),
])
def test_connecting_is_refused(bluesky, fields, rule):
    with pytest.raises(Rejected) as caught:
        bluesky.connect(fields)
    assert caught.value.rule == rule and PASSWORD not in repr(vars(caught.value))


def test_a_server_that_repeats_the_password_does_not_get_it_into_an_error(net, bluesky):
    net.fault(LOGIN, status=400, body={"error": "InvalidRequest", "message": f"not {PASSWORD}"})
    with pytest.raises(Rejected) as caught:
        bluesky.connect({"identifier": "ann.test", "appPassword": PASSWORD})
    assert caught.value.platform_message == "not [secret]"


@pytest.mark.parametrize("body", [{}, {"did": "ann", "handle": "a", "accessJwt": "a", "refreshJwt": "b"}, {"did": 7}, "<html>"])
def test_a_server_that_talks_nonsense_does_not_connect(net, bluesky, body):
    net.fault(LOGIN, status=200, body=body)
    with pytest.raises(Unavailable):
        bluesky.connect({"identifier": "ann.test", "appPassword": PASSWORD})


def test_tokens_are_refreshed_shortly_before_they_end(net, bluesky, ann):
    assert bluesky.refresh(ann) is None
    net.access_seconds = 200
    short = account(bluesky.connect({"identifier": "ann.test", "appPassword": PASSWORD}))
    net.access_seconds = 7200
    fresh = bluesky.refresh(short)
    assert fresh["accessJwt"] != short.credentials["accessJwt"] and fresh["refreshJwt"] != short.credentials["refreshJwt"]
    assert fresh["appPassword"] == PASSWORD and len(net.calls(LOGIN)) == 2


def test_a_refresh_whose_answer_was_lost_may_be_repeated(net, bluesky, ann):
    net.fault(REFRESH, drop_answer=True)
    with pytest.raises(Unavailable):
        bluesky.refresh(ann, force=True)
    assert published(bluesky, replace(ann, credentials=bluesky.refresh(ann, force=True)), Content("hi"))


def test_a_token_that_the_server_ended_early_is_refreshed_by_force(net, bluesky, ann):
    receipt = prepared(bluesky, ann, Content("hi"))
    net.fail("expired_token")
    with pytest.raises(Disconnected):
        bluesky.publish(ann, Content("hi"), receipt)
    again = replace(ann, credentials=bluesky.refresh(ann, force=True))
    assert bluesky.publish(again, Content("hi"), receipt) and len(net.posts) == 1


def test_an_ended_pair_of_tokens_is_replaced_by_one_login(net, bluesky, ann):
    net.advance(91 * 86400)
    fresh = replace(ann, credentials=bluesky.refresh(ann, force=True))
    assert len(net.calls(LOGIN)) == 2 and published(bluesky, fresh, Content("hi"))


@pytest.mark.parametrize("ending", ["revoked", "taken down"])
def test_an_account_that_is_gone_is_disconnected(net, bluesky, ann, ending):
    if ending == "revoked":
        net.revoke(ann.platform_id, PASSWORD)
    else:
        net.accounts[ann.platform_id].status = "takendown"
    with pytest.raises(Disconnected) as caught:
        bluesky.refresh(ann, force=True)
    assert PASSWORD not in repr(vars(caught.value))
    assert len(net.calls(LOGIN)) == (2 if ending == "revoked" else 1)
