"""Threads: the login, and tokens that are traded for new ones."""

import pytest

from platforms.base import Account, Profile
from platforms.errors import Disconnected, Rejected
from platforms.threads import Threads
from tests.live import account, consented, http_for, published
from tests.networks import threads as network
from tests.networks.threads import threads, net  # noqa: F401
from tests.standins.threads import ME

REDIRECT = "https://posthorn.test/connect/callback"
RENEW, DAY = "GET /refresh_access_token", 86_400


def test_login(net, threads):
    found = threads.redeem(*consented(threads, REDIRECT))
    user = next(iter(net.users))
    assert [one.profile for one in found] == [Profile(user, "ann", "Ann", f"https://scontent.test/{user}.jpg")]
    keys = found[0].credentials
    assert set(keys) == {"accessToken", "expiresAt", "renewedAt"} and not net.tokens[keys["accessToken"]].short
    assert net.tokens[keys["accessToken"]].scopes == {"threads_basic", "threads_content_publish", "threads_manage_replies"}
    assert published(threads, account(found[0]), network.SAMPLES["text"]).id == net.posts[0]["id"]


def test_an_operator_asks_for_what_the_app_may(net):
    threads = Threads(http_for(net), {**network.settings(net), "scopes": "threads_basic threads_location_tagging"})
    found = threads.redeem(*consented(threads, REDIRECT))
    assert net.tokens[found[0].credentials["accessToken"]].scopes == {"threads_basic", "threads_location_tagging"}


def test_who_says_no_is_told_so(threads):
    with pytest.raises(Rejected) as caught:
        threads.redeem({"error": "access_denied"}, REDIRECT, {})
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "access_denied")


def test_who_unticks_a_right_is_told_to_begin_again(net, threads):
    net.granted = {"threads_content_publish"}
    with pytest.raises(Rejected) as caught:
        threads.redeem(*consented(threads, REDIRECT))
    assert caught.value.rule == "declined"


def test_a_code_works_once(net, threads):
    arguments = consented(threads, REDIRECT)
    threads.redeem(*arguments)
    with pytest.raises(Rejected) as caught:
        threads.redeem(*arguments)
    assert caught.value.platform_code == "100/36009" and len(net.calls(ME)) == 1


def test_a_wrong_app(net):
    threads = Threads(http_for(net), {**network.settings(net), "client_secret": "canary-wrong"})
    with pytest.raises(Exception) as caught:
        threads.redeem(*consented(threads, REDIRECT))
    assert "canary" not in repr(vars(caught.value)) and caught.value.platform_message == "Error validating client secret."


def test_a_token_is_renewed_every_week(net, threads):
    ann = network.account(net)
    assert not threads.refresh_due(ann) and threads.refresh(ann) is None
    times = {name: ann.credentials[name] - 5 * DAY for name in ("renewedAt", "expiresAt")}
    older = Account(ann.platform_id, ann.username, credentials={**ann.credentials, **times})
    assert threads.refresh_due(older)
    fresh = threads.refresh(older)
    assert fresh["accessToken"] != network.TOKEN and fresh["expiresAt"] > older.credentials["expiresAt"] + 7 * DAY
    renewed = Account(ann.platform_id, ann.username, credentials=fresh)
    assert threads.profile(renewed).username == "ann" and not threads.refresh_due(renewed) and len(net.calls(RENEW)) == 1


def test_a_token_that_is_dead_needs_a_person(net, threads):
    ann = network.account(net)
    network.expire(net)
    with pytest.raises(Disconnected) as caught:
        published(threads, ann, network.SAMPLES["text"])
    assert caught.value.platform_code == "190/463"
    assert threads.refresh(ann, force=True) is None
    older = Account(ann.platform_id, ann.username, credentials={**ann.credentials, "renewedAt": 0})
    with pytest.raises(Disconnected) as caught:
        threads.refresh(older)
    assert "canary" not in repr(vars(caught.value))
