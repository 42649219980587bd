"""Facebook Pages: the login, the choice among several, and tokens that end."""

import pytest

from platforms.base import Account, Content, Profile
from platforms.errors import Disconnected, Rejected, Unavailable
from platforms.facebook import Facebook
from tests.live import account, consented, http_for, prepared
from tests.networks import facebook as network
from tests.networks.facebook import facebook, net  # noqa: F401
from tests.standins.facebook import FEED, SCOPES
from tests.standins.meta import ROOT

REDIRECT = "https://posthorn.test/connect/callback"
TOKENS, ACCOUNTS = f"GET {ROOT}/oauth/access_token", f"GET {ROOT}/me/accounts"


def came_back(platform):
    """The query that the browser brings back from the consent page."""
    return consented(platform, REDIRECT)[0]


def connected(platform):
    return platform.redeem(*consented(platform, REDIRECT))


def test_a_login_with_one_page(net, facebook):
    found = connected(facebook)
    page = net.pages[found[0].profile.platform_id]
    assert [one.profile for one in found] == [Profile(page.id, "bread", "Bread", f"https://scontent.test/{page.id}.jpg")]
    credentials = found[0].credentials
    assert set(credentials) == {"accessToken", "userToken", "pageId"} and credentials["accessToken"] == page.token
    assert not net.tokens[credentials["userToken"]].short
    facebook.publish(account(found[0]), Content("hi"), prepared(facebook, account(found[0]), Content("hi")))
    assert net.posts[0]["page"] == page.id


def test_a_login_with_many_pages_offers_all_on_which_one_may_publish(net, facebook):
    for number in range(120):
        net.add_page(f"Page {number}")
    net.add_page("Only numbers", tasks=("ANALYZE",))
    net.add_page("Of a business", business="77")
    names = [one.profile.display_name for one in connected(facebook)]
    assert names == ["Bread", *(f"Page {number}" for number in range(120)), "Of a business"]
    assert len(net.calls(ACCOUNTS)) == 2


def test_a_page_without_a_name_in_addresses_is_called_by_its_id(net, facebook):
    page = net.add_page("Cake")
    assert connected(facebook)[1].profile.username == page.id


def test_who_shows_no_businesses_still_connects_other_pages(net, facebook):
    net.add_page("Of a business", business="77")
    net.granted = SCOPES - {"business_management"}
    assert [one.profile.display_name for one in connected(facebook)] == ["Bread"]


def test_a_business_that_one_may_not_look_into_is_left_out(net, facebook):
    net.add_page("Of a business", business="77")
    net.fault(f"GET {ROOT}/:business/owned_pages", status=403, body={"error": {"code": 200}})
    assert [one.profile.display_name for one in connected(facebook)] == ["Bread"]


def test_a_login_without_a_page_is_refused(net, facebook):
    net.pages.clear()
    with pytest.raises(Rejected) as caught:
        connected(facebook)
    assert caught.value.rule == "pages"


def test_who_does_not_show_the_pages_is_told_to_begin_again(net, facebook):
    net.granted = {"pages_manage_posts"}
    with pytest.raises(Rejected) as caught:
        connected(facebook)
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "200")


def test_who_says_no_is_told_so(facebook):
    with pytest.raises(Rejected) as caught:
        facebook.redeem({"error": "access_denied", "error_reason": "user_denied"}, REDIRECT, {})
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "access_denied")


def test_a_code_works_once_in_time_and_for_its_address(net, facebook):
    answer = came_back(facebook)
    with pytest.raises(Rejected) as caught:
        facebook.redeem(answer, "https://posthorn.test/elsewhere", {})
    assert caught.value.platform_code == "100/36008"
    with pytest.raises(Rejected) as caught:
        facebook.redeem(answer, REDIRECT, {})
    assert caught.value.platform_code == "100/36009"
    answer = came_back(facebook)
    net.advance(3700)
    with pytest.raises(Rejected) as caught:
        facebook.redeem(answer, REDIRECT, {})
    assert caught.value.platform_code == "100/36007"


def test_without_an_app_nobody_connects(net):
    for missing in ("client_id", "client_secret"):
        facebook = Facebook(http_for(net), {**network.settings(net), missing: ""})
        with pytest.raises(Rejected) as caught:
            facebook.redeem({"code": "c"}, REDIRECT, {})
        assert caught.value.rule == "app" and f"POSTHORN_FACEBOOK_{missing.upper()}" in caught.value.message


@pytest.mark.parametrize("place", ["api_url", "authorize_url"])
def test_the_version_of_the_api_is_a_setting(place):
    assert "v99.0" in Facebook(None, {"version": "v99.0"}).settings[place]


def test_what_a_login_says_holds_no_secret(net, facebook):
    answer = came_back(facebook)
    net.fault(TOKENS, status=400, body={"error": {"code": 100, "message": f"{answer['code']} {net.secret} is wrong"}})
    with pytest.raises(Rejected) as caught:
        facebook.redeem(answer, REDIRECT, {})
    assert caught.value.platform_message == "[secret] [secret] is wrong"


@pytest.mark.parametrize("body", ["<html>", {}, {"access_token": 7}])
def test_a_login_that_makes_no_sense_is_tried_again(net, facebook, body):
    net.fault(TOKENS, status=200, body=body)
    with pytest.raises(Unavailable):
        connected(facebook)


def test_profile(net, facebook):
    page = network.account(net)
    picture = f"https://scontent.test/{page.platform_id}.jpg"
    assert facebook.profile(page) == Profile(page.platform_id, "bread", "Bread", picture)


# Tokens.

def test_a_token_of_a_page_does_not_end(net, facebook):
    page = network.account(net)
    assert facebook.refresh_due(page) is False
    net.advance(400 * 86_400)
    assert facebook.refresh(page) is None and facebook.profile(page)


def test_a_refused_token_is_had_anew_from_the_users(net, facebook):
    page = network.account(net)
    network.expire(net)
    with pytest.raises(Disconnected) as caught:
        facebook.publish(page, Content("hi"), {})
    assert caught.value.platform_code == "190/460" and "canary" not in repr(vars(caught.value))
    fresh = facebook.refresh(page, force=True)
    assert fresh == {**page.credentials, "accessToken": net.pages[page.platform_id].token}
    renewed = Account(page.platform_id, page.username, credentials=fresh)
    assert facebook.publish(renewed, Content("hi"), {}).id == net.posts[0]["id"]
    assert len(net.calls(FEED)) == 2


def test_the_same_token_again_is_no_way_out(net, facebook):
    assert facebook.refresh(network.account(net), force=True) is None


def test_who_may_no_longer_publish_on_the_page_has_no_way_out(net, facebook):
    net.pages[network.account(net).platform_id].tasks = ()
    assert facebook.refresh(network.account(net), force=True) is None


def test_when_the_users_token_has_ended_too_a_person_is_needed(net, facebook):
    network.expire(net)
    net.advance(61 * 86_400)
    with pytest.raises(Disconnected):
        facebook.refresh(network.account(net), force=True)
