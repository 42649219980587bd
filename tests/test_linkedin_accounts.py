"""Accounts of LinkedIn: members and Pages, connected in the browser."""

import time
from dataclasses import replace
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from platforms.base import Content, Profile
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable
from platforms.linkedin import LinkedIn
from tests.live import account, http_for, published
from tests.networks import linkedin as network
from tests.networks.linkedin import net  # fixtures
from tests.standins.linkedin import CALLBACK, CLIENT_SECRET, MEMBER_SCOPES, PAGE_SCOPES
from tests.standins.linkedin_rules import TOKEN

ALL = f"{MEMBER_SCOPES} {PAGE_SCOPES}"
ROLES = "GET /rest/organizationAcls"


def connector(net, scopes=MEMBER_SCOPES, **settings):
    return LinkedIn(http_for(net), {**network.settings(net, scopes), **settings})


def consent(net, linkedin):
    """What a browser brings back after the person said yes, and what was kept for it."""
    authorization = linkedin.authorize(CALLBACK, "state-1")
    answer = linkedin.http.send("GET", f"{net.url}/oauth/v2/authorization", title="LinkedIn", accept=(302,),
                                query=dict(parse_qsl(urlsplit(authorization.url).query)))
    back = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
    assert back.pop("state") == "state-1"
    return back, authorization.kept


def connected(net, linkedin):
    answer, kept = consent(net, linkedin)
    return linkedin.redeem(answer, CALLBACK, kept)


def test_connecting_a_member(net):
    net.add_user("ann", name="Ann Ä.")
    [ann] = connected(net, connector(net))
    assert ann.profile == Profile("urn:li:person:ann", "Ann Ä.", "Ann Ä.", f"{net.url}/picture.jpg") and ann.host == ""
    assert ann.credentials["refreshToken"] and 5_183_000 < ann.credentials["expiresAt"] - time.time() <= 5_184_000
    assert "canary" not in repr(ann) + repr(account(ann))
    assert published(connector(net), account(ann), Content("hi", key="k-1")).id == net.posts[0]["id"]


def test_a_member_has_a_name_in_addresses_where_the_app_may_read_it(net):
    net.add_user("ann", name="Ann Ä.", vanity="ann-a-1")
    [ann] = connected(net, connector(net, f"{MEMBER_SCOPES} r_basicprofile"))
    assert (ann.profile.username, ann.profile.display_name) == ("ann-a-1", "Ann Ä.")


def test_the_page_of_consent_is_asked_for_what_the_operator_set(net):
    query = parse_qs(urlsplit(connector(net, ALL).authorize(CALLBACK, "s").url).query)
    assert query["scope"] == [ALL] and "code_challenge" not in query and CLIENT_SECRET not in str(query)
    assert LinkedIn().scopes == ("openid", "profile", "w_member_social")


def test_connecting_offers_the_member_and_the_pages_that_they_may_post_for(net):
    net.add_user("ann")
    net.add_page("1", "ann", "ADMINISTRATOR", "DIRECT_SPONSORED_CONTENT_POSTER", name="Acme", vanity="acme")
    net.add_page("2", "ann", "CONTENT_ADMINISTRATOR", name="Bakery", vanity="bakery")
    net.add_page("3", "ann", "ANALYST")
    linkedin = connector(net, ALL)
    found = connected(net, linkedin)
    assert [(one.profile.platform_id, one.profile.username, one.profile.display_name) for one in found] == [
        ("urn:li:person:ann", "Ann", "Ann"), ("urn:li:organization:1", "acme", "Acme"),
        ("urn:li:organization:2", "bakery", "Bakery")]
    for one in found:
        assert published(linkedin, account(one), Content("hi", key="k-1"))
        assert linkedin.profile(account(one)) == one.profile
    assert [post["body"]["author"] for post in net.posts] == [one.profile.platform_id for one in found]


def test_more_pages_than_fit_into_one_list(net):
    net.add_user("ann")
    for number in range(101):
        net.add_page(f"{number + 1}", "ann", name=f"Page {number}", vanity=f"page-{number}")
    assert len(connected(net, connector(net, "w_organization_social rw_organization_admin"))) == 101


@pytest.mark.parametrize("name", ["organization", "organizationTarget", "organizationalTarget"])
def test_pages_are_found_under_each_name_of_their_field(net, name):
    net.add_user("ann")
    net.add_page("1", "ann")
    net.fault(ROLES, status=200, body={"elements": [{name: "urn:li:organization:1", "role": "ADMINISTRATOR"}]})
    assert connected(net, connector(net, ALL))[1].profile.platform_id == "urn:li:organization:1"


def test_a_login_that_may_post_for_nobody(net):
    net.add_user("ann")
    with pytest.raises(Rejected) as caught:
        connected(net, connector(net, "w_organization_social rw_organization_admin"))
    assert caught.value.rule == "no_account"


def test_a_scope_that_the_app_may_not_have(net):
    net.add_user("ann")
    net.app_scopes = set(MEMBER_SCOPES.split())
    with pytest.raises(Rejected) as caught:
        connected(net, connector(net, ALL))
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "unauthorized_scope_error")


def test_a_permission_that_is_missing_ends_the_login(net):
    net.add_user("ann")
    net.fail("access_denied", endpoint=ROLES)
    with pytest.raises(Rejected) as caught:
        connected(net, connector(net, ALL))
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "ACCESS_DENIED")


@pytest.mark.parametrize("reason", ["user_cancelled_login", "user_cancelled_authorize"])
def test_a_person_may_say_no(net, reason):
    with pytest.raises(Rejected) as caught:
        connector(net).redeem({"error": reason}, CALLBACK, {"verifier": "v"})
    assert (caught.value.rule, caught.value.platform_code) == ("declined", reason)


def test_a_code_is_good_once(net):
    net.add_user("ann")
    linkedin = connector(net)
    answer, kept = consent(net, linkedin)
    linkedin.redeem(answer, CALLBACK, kept)
    with pytest.raises(Rejected) as caught:
        linkedin.redeem(answer, CALLBACK, kept)
    assert caught.value.platform_code == "invalid_request" and answer["code"] not in repr(vars(caught.value))


@pytest.mark.parametrize("body", [{}, "<html>", {"sub": 7, "name": "Ann"}, {"sub": "ann"}])
def test_nonsense_is_no_profile(net, body):
    net.fault("GET /v2/userinfo", status=200, body=body)
    with pytest.raises(Unavailable):
        connector(net).profile(network.account(net))


def test_a_page_that_the_member_lost(net):
    page = network.administered(net)
    net.members["bob"].pages.clear()
    with pytest.raises(PermissionMissing):
        connector(net, ALL).profile(page)


# Tokens.

def test_a_token_that_is_good_is_kept(net):
    assert connector(net).refresh(network.account(net)) is None and not net.requests


def test_tokens_are_renewed_before_they_end(net):
    ann, linkedin = network.account(net), connector(net)
    old = replace(ann, credentials={**ann.credentials, "expiresAt": time.time() + 200})
    fresh = linkedin.refresh(old)
    assert fresh["refreshToken"] == ann.credentials["refreshToken"] and fresh["accessToken"] != ann.credentials["accessToken"]
    assert published(linkedin, replace(ann, credentials=fresh), Content("hi", key="k-1"))


def test_tokens_of_the_member_serve_the_pages_each_by_itself(net):
    net.add_user("ann")
    net.add_page("1", "ann")
    linkedin = connector(net, ALL)
    for one in connected(net, linkedin):
        fresh = linkedin.refresh(account(one), force=True)
        assert published(linkedin, replace(account(one), credentials=fresh), Content("hi", key="k-1"))


def test_without_a_refresh_token_a_person_has_to_connect_again(net):
    net.partner = False
    net.add_user("ann")
    linkedin = connector(net)
    [ann] = connected(net, linkedin)
    assert "refreshToken" not in ann.credentials
    network.expire(net)
    with pytest.raises(Disconnected):
        published(linkedin, account(ann), Content("hi", key="k-1"))
    assert linkedin.refresh(account(ann), force=True) is None


def test_a_refresh_token_ends_after_a_year(net):
    ann = network.account(net)
    net.advance(366 * 86_400)
    with pytest.raises(Disconnected):
        connector(net).refresh(ann, force=True)


def test_a_wrong_secret_is_the_operators_matter(net):
    with pytest.raises(Rejected) as caught:
        connector(net, client_secret="canary-wrong").refresh(network.account(net), force=True)
    assert caught.value.platform_code == "invalid_client" and "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize("row, expected", [
    ("refresh_dead", Disconnected), ("client_wrong", Rejected), ("bad_gateway", Unavailable)])
def test_errors_of_refreshing(net, row, expected):
    ann, linkedin = network.account(net), connector(net)
    net.fail(row, endpoint=TOKEN)
    with pytest.raises(PlatformError) as caught:
        linkedin.refresh(ann, force=True)
    assert type(caught.value) is expected and "canary" not in repr(vars(caught.value))
    assert linkedin.refresh(ann, force=True)
