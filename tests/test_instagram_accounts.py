"""Instagram: accounts of Pages and accounts that log in by themselves, and tokens that end."""

import pytest

from handlers import services
from handlers.config import Config, ConfigError
from platforms.base import Account, Profile
from platforms.errors import Disconnected, Rejected, Unavailable
from tests.live import account, consented, published
from tests.networks import instagram as network
from tests.networks.instagram import instagram, net, own  # noqa: F401

REDIRECT = "https://posthorn.test/connect/callback"
RENEW, DAY = "GET /refresh_access_token", 86_400


def connected(platform):
    return platform.redeem(*consented(platform, REDIRECT))


def test_a_login_offers_the_accounts_of_all_pages(net, instagram):
    net.add_page("Without an account")
    second = net.add_account("rolls", business="77")
    found = connected(instagram)
    assert [one.profile.username for one in found] == ["bread", "rolls"]
    assert found[1].profile == Profile(second.id, "rolls", "rolls", f"https://scontent.test/{second.id}.jpg")
    keys = found[1].credentials
    assert set(keys) == {"accessToken", "userToken", "pageId"} and keys["accessToken"] == net.pages[second.page].token
    assert published(instagram, account(found[1]), network.SAMPLES["image"]) and net.posts[0]["owner"] == second.id


def test_a_login_without_an_account_is_refused(net, instagram):
    net.pages.clear()
    net.add_page("Without an account")
    with pytest.raises(Rejected) as caught:
        connected(instagram)
    assert caught.value.rule == "accounts"


def test_profile(net, instagram):
    ann = network.account(net)
    assert instagram.profile(ann) == Profile(ann.platform_id, "bread", "Bread", f"https://scontent.test/{ann.platform_id}.jpg")


def test_a_refused_token_is_had_anew_from_the_users(net, instagram):
    ann = network.account(net)
    network.expire(net)
    with pytest.raises(Disconnected):
        instagram.profile(ann)
    assert not instagram.refresh_due(ann) and instagram.refresh(ann) is None
    fresh = Account(ann.platform_id, ann.username, credentials=instagram.refresh(ann, force=True))
    assert instagram.profile(fresh).username == "bread"


def test_every_call_proves_that_the_app_makes_it(net, instagram):
    published(instagram, network.account(net), network.SAMPLES["image"])
    assert all("appsecret_proof" in dict(request.query) for request in net.requests)


# The login of Instagram's own.

@pytest.mark.parametrize("wrapped", [False, True])
def test_an_account_without_a_page(net, own, wrapped):
    net.wrapped = wrapped
    found = connected(own)
    one = net.accounts_of[net.consenting]
    assert [thing.profile for thing in found] == [Profile(one.id, "cake", "Cake", f"https://scontent.test/{one.id}.jpg")]
    keys = found[0].credentials
    assert set(keys) == {"accessToken", "expiresAt", "renewedAt"} and not net.tokens[keys["accessToken"]].short
    cake = account(found[0])
    assert own.profile(cake) == found[0].profile
    assert published(own, cake, network.SAMPLES["reel"]) and net.posts[0]["owner"] == one.id
    assert not any("appsecret_proof" in dict(request.query) for request in net.requests)


def test_who_says_no_is_told_so(own):
    with pytest.raises(Rejected) as caught:
        own.redeem({"error": "access_denied"}, REDIRECT, {})
    assert caught.value.rule == "declined"


def test_a_code_works_once_and_stays_out_of_errors(net, own):
    arguments = consented(own, REDIRECT)
    own.redeem(*arguments)
    with pytest.raises(Rejected) as caught:
        own.redeem(*arguments)
    assert caught.value.platform_code == "100/36009"
    message = f"{arguments[0]['code']} {net.secret}"
    net.fault("POST /oauth/access_token", status=400, body={"error": {"code": 100, "message": message}})
    with pytest.raises(Rejected) as caught:
        own.redeem(*arguments)
    assert caught.value.platform_message == "[secret] [secret]"


def test_a_mark_behind_the_code_is_no_part_of_it(own):
    answer, redirect, kept = consented(own, REDIRECT)
    assert own.redeem({"code": answer["code"] + "#_"}, redirect, kept)


def aged(cake, days):
    """The account as it is when its token is so old."""
    keys = cake.credentials
    return Account(cake.platform_id, cake.username, credentials={
        **keys, "renewedAt": keys["renewedAt"] - days * DAY, "expiresAt": keys["expiresAt"] - days * DAY})


@pytest.mark.parametrize("days, force, renewed", [
    (0, False, False), (6.9, False, False), (7.1, False, True), (0.9, True, False), (1.1, True, True), (59, False, True)])
def test_when_a_token_is_renewed(net, own, days, force, renewed):
    cake = aged(account(connected(own)[0]), days)
    net.advance(days * DAY)
    fresh = own.refresh(cake, force)
    assert (fresh is not None) == renewed == (len(net.calls(RENEW)) == 1)
    assert own.refresh_due(cake) == (days > 7)
    if renewed:
        assert fresh["expiresAt"] > cake.credentials["expiresAt"] and not own.refresh_due(
            Account(cake.platform_id, cake.username, credentials=fresh))


def test_a_token_that_is_still_good_is_used_while_it_cannot_be_renewed(net, own):
    cake = account(connected(own)[0])
    net.advance(8 * DAY)
    for status, code in ((500, 1), (400, 100), (403, 10)):
        net.fault(RENEW, status=status, body={"error": {"code": code}})
        assert own.refresh(aged(cake, 8)) is None
    net.fault(RENEW, status=500)
    with pytest.raises(Unavailable):
        own.refresh(aged(cake, 60))


def test_a_token_that_has_ended_cannot_be_renewed(net, own):
    cake = account(connected(own)[0])
    net.advance(61 * DAY)
    with pytest.raises(Disconnected) as caught:
        own.refresh(aged(cake, 61))
    assert "canary" not in repr(vars(caught.value))


# A login that was changed after accounts were connected.

def test_an_account_that_came_by_the_other_login_has_to_be_connected_again(net, instagram, own):
    cake = account(connected(own)[0])
    for platform, one in ((own, network.account(net)), (instagram, cake)):
        assert platform.refresh_due(one)
        for force in (False, True):
            with pytest.raises(Disconnected) as caught:
                platform.refresh(one, force)
            assert "connect it again" in caught.value.message and "POSTHORN_INSTAGRAM_LOGIN" in caught.value.message
            assert "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize("login", ["Instagram", "instgram"])
def test_a_login_that_there_is_none_of_is_not_taken_for_another(environ, monkeypatch, login):
    monkeypatch.setattr(services, "open_database", lambda config, connections: None)
    with pytest.raises(ConfigError, match="^POSTHORN_INSTAGRAM_LOGIN must be one of facebook, instagram$"):
        services.build(Config.from_env({**environ, "POSTHORN_INSTAGRAM_LOGIN": login}), connections=1)
