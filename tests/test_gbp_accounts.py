"""Locations of Google Business Profile: choosing among those of a login."""

from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from platforms.base import Profile
from platforms.errors import Disconnected, Rejected, Unavailable
from tests.live import account
from tests.networks import gbp as network
from tests.networks.gbp import gbp, net  # noqa: F401
from tests.standins.gbp import ACCOUNTS, LOCATION, LOCATIONS, MEDIA
from tests.standins.google import REDIRECT


def connected(gbp):
    """What comes of a login in the browser."""
    begun = gbp.authorize(REDIRECT, "state-1")
    page = gbp.http.send("GET", begun.url, title="Google", accept=(302,))
    answer = dict(parse_qsl(urlsplit(page.headers["Location"]).query))
    return gbp.redeem(answer, REDIRECT, begun.kept)


def test_a_login_offers_every_location_once(net, gbp):
    net.add_user((("111", "Ann"), ("112", "Chain")))
    net.add_location("222", "Acme Cafe", ("111", "112"))
    net.add_location("223", "Acme Bar", ("112",), address={"addressLines": ["Main Street 1", "Floor 2"], "locality": "Graz"})
    net.add_location("224", "Of somebody else", ("113",))
    found = connected(gbp)
    assert [one.profile for one in found] == [
        Profile("accounts/111/locations/222", "222", "Acme Cafe"),
        Profile("accounts/112/locations/223", "223", "Acme Bar, Main Street 1, Graz")]
    assert {one.host for one in found} == {""} and "canary" not in repr(found)
    assert [one.credentials["mapsUrl"] for one in found] == ["https://maps.google.com/maps?cid=222",
                                                             "https://maps.google.com/maps?cid=223"]
    assert gbp.publish(account(found[1]), network.SAMPLES["update"], {})


def test_a_location_that_is_not_on_the_map_has_an_address_all_the_same(net, gbp):
    net.add_user()
    net.add_location("222", "Acme & Sons", metadata={})
    one, = connected(gbp)
    assert one.credentials["mapsUrl"] == "https://www.google.com/maps/search/?api=1&query=Acme+%26+Sons&query_place_id="


def test_all_pages_are_read(net, gbp):
    net.add_user([(str(number), "Group") for number in range(45)])
    for number in range(230):
        net.add_location(str(1000 + number), accounts=("44",))
    assert len(connected(gbp)) == 230
    assert len(net.calls(ACCOUNTS)) == 3 and len(net.calls(LOCATIONS)) == 44 + 3


def test_a_list_without_an_end_is_left(net, gbp):
    net.add_user()
    net.fault(ACCOUNTS, status=200, body={"nextPageToken": "1"}, times=None)
    with pytest.raises(Rejected):
        connected(gbp)
    assert len(net.calls(ACCOUNTS)) == 50


@pytest.mark.parametrize("accounts", [(), (("111", "Ann"),)], ids=["no account", "no location"])
def test_a_login_without_a_location(net, gbp, accounts):
    net.add_user(accounts)
    with pytest.raises(Rejected) as caught:
        connected(gbp)
    assert caught.value.rule == "no_location"


def test_a_project_that_google_has_not_approved(net, gbp):
    net.add_user()
    net.fail("not_approved")
    with pytest.raises(Rejected) as caught:
        connected(gbp)
    assert (caught.value.rule, caught.value.platform_code) == ("app", "quota_limit_value 0")


def test_a_scope_that_was_not_allowed(net, gbp):
    net.add_user()
    net.unticked = set(gbp.scopes)
    with pytest.raises(Rejected) as caught:
        connected(gbp)
    assert caught.value.rule == "declined"


@pytest.mark.parametrize("endpoint, body", [
    (ACCOUNTS, "<html>"), (ACCOUNTS, []), (ACCOUNTS, {"accounts": [{"name": "accounts/../x"}]}), (ACCOUNTS, {"accounts": [{}]}),
    (LOCATIONS, "<html>"), (LOCATIONS, {"locations": [{"name": "locations/222"}]}),
    (LOCATIONS, {"locations": [{"name": "accounts/111/locations/222", "title": "A"}]}),
])
def test_a_server_that_talks_nonsense_does_not_connect(net, gbp, endpoint, body):
    net.add_user()
    net.add_location()
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(Unavailable):
        connected(gbp)


def picture(category, **links):
    return {"name": "x", "locationAssociation": {"category": category}, **links}


def test_profile(net, gbp):
    cafe = network.account(net)
    assert gbp.profile(cafe) == Profile("accounts/111/locations/222", "222", "Acme Cafe")
    net.locations["222"].media = [
        picture("COVER", googleUrl="https://lh3.example.com/c"), picture("ADDITIONAL", googleUrl="https://lh3.example.com/a"),
        picture("LOGO", googleUrl="https://lh3.example.com/l", thumbnailUrl="https://lh3.example.com/t")]
    assert gbp.profile(cafe).picture == "https://lh3.example.com/t"
    net.locations["222"].media.append(picture("PROFILE", googleUrl="https://lh3.example.com/p"))
    assert gbp.profile(cafe).picture == "https://lh3.example.com/p"


@pytest.mark.parametrize("fault", [{"status": 403, "body": ""}, {"status": 200, "body": "<html>"}, {"drop_answer": True},
                                   {"status": 200, "body": {"mediaItems": [7]}}])
def test_a_profile_does_without_its_picture(net, gbp, fault):
    cafe = network.account(net)
    net.fault(MEDIA, **fault)
    assert gbp.profile(cafe) == Profile("accounts/111/locations/222", "222", "Acme Cafe")


def test_a_location_that_is_gone(net, gbp):
    cafe = network.account(net)
    net.fault(LOCATION, status=404, body={"error": {"code": 404, "status": "NOT_FOUND", "message": "gone"}})
    with pytest.raises(Rejected):
        gbp.profile(cafe)


def test_tokens_are_renewed_and_what_else_is_known_stays(net, gbp):
    cafe = network.account(net)
    network.expire(net)
    with pytest.raises(Disconnected):
        gbp.profile(cafe)
    fresh = replace(cafe, credentials=gbp.refresh(cafe, force=True))
    assert gbp.profile(fresh) and fresh.credentials["mapsUrl"] == cafe.credentials["mapsUrl"]
    assert fresh.credentials["refreshToken"] == cafe.credentials["refreshToken"]
