"""Accounts of Pinterest: connecting them in the browser, and renewing their tokens."""

import json
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from platforms.base import Profile
from platforms.errors import Disconnected, Rejected, Unavailable
from platforms.pinterest import Pinterest
from tests.live import consented, http_for
from tests.networks import pinterest as known
from tests.networks.pinterest import ann, pinterest  # noqa: F401
from tests.standins.pinterest import ACCESS_SECONDS
from tests.standins.pinterest_rules import TOKEN

HOME = "https://posthorn.test/callback"
ME = "GET /v5/user_account"


@pytest.fixture
def net():
    with known.start() as net:
        net.redirects = [HOME]
        yield net


def test_connecting(net, pinterest):
    connected, = pinterest.redeem(*consented(pinterest, HOME))
    assert connected.profile == Profile(net.consenting, "ann", "Ann's Bakery", f"{net.url}/ann.jpg")
    assert net.grants.token(connected.credentials["accessToken"]).account == net.consenting
    assert dict(parse_qsl(net.calls(TOKEN)[0].body.decode()))["continuous_refresh"] == "true"
    assert "canary" not in repr(connected)


def test_the_page_that_asks(pinterest):
    query = dict(parse_qsl(urlsplit(pinterest.authorize(HOME, "state-1").url).query))
    assert query == {"client_id": "1480001", "redirect_uri": HOME, "response_type": "code", "state": "state-1",
                     "scope": "boards:read,boards:write,pins:read,pins:write,user_accounts:read"}


def test_an_operator_asks_for_secret_boards_too(net):
    scopes = "boards:read boards:write pins:read pins:write user_accounts:read boards:read_secret pins:read_secret"
    pinterest = Pinterest(http_for(net), {**known.settings(net), "scopes": scopes})
    connected, = pinterest.redeem(*consented(pinterest, HOME))
    assert net.grants.token(connected.credentials["accessToken"]).scopes == set(scopes.split())


def test_a_person_has_no_business_name(net, pinterest):
    net.add_user("ben")
    assert pinterest.redeem(*consented(pinterest, HOME))[0].profile.display_name == "ben"


def test_somebody_who_says_no(net, pinterest):
    net.declining = True
    with pytest.raises(Rejected) as caught:
        pinterest.redeem(*consented(pinterest, HOME))
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "access_denied")


def test_a_code_is_good_once(pinterest):
    came = consented(pinterest, HOME)
    pinterest.redeem(*came)
    with pytest.raises(Rejected) as caught:
        pinterest.redeem(*came)
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "283")
    assert came[0]["code"] not in repr(vars(caught.value))


def test_an_app_whose_secret_is_wrong(net):
    pinterest = Pinterest(http_for(net), {**known.settings(net), "client_secret": "canary-wrong"})
    with pytest.raises(Rejected) as caught:
        pinterest.redeem(*consented(pinterest, HOME))
    assert caught.value.rule == "app" and "canary" not in repr(vars(caught.value))


def test_an_app_that_is_not_set_up(net):
    with pytest.raises(Rejected) as caught:
        Pinterest(http_for(net), {"client_id": ""}).authorize(HOME, "s")
    assert caught.value.rule == "app"


@pytest.mark.parametrize("body", [{}, "<html>", {"access_token": 7}])
def test_a_token_endpoint_that_talks_nonsense(net, pinterest, body):
    came = consented(pinterest, HOME)
    net.fault(TOKEN, status=200, body=body)
    with pytest.raises(Unavailable):
        pinterest.redeem(*came)


@pytest.mark.parametrize("body", [{}, {"id": 7, "username": "ann"}, []])
def test_a_profile_of_nonsense(net, pinterest, ann, body):
    net.fault(ME, status=200, body=body)
    with pytest.raises(Unavailable):
        pinterest.profile(ann)


def test_tokens_are_renewed_before_they_end(net, pinterest, ann):
    assert pinterest.refresh(ann) is None and not net.calls(TOKEN)
    late = replace(ann, credentials={**ann.credentials, "expiresAt": ann.credentials["expiresAt"] - ACCESS_SECONDS + 200})
    fresh = pinterest.refresh(late)
    assert fresh["refreshToken"] != ann.credentials["refreshToken"] and net.grants.token(fresh["accessToken"])
    assert "continuous_refresh" not in net.calls(TOKEN)[0].body.decode()
    assert pinterest.profile(replace(ann, credentials=fresh)).username == "ann"


def test_a_refresh_token_is_good_once(net, pinterest, ann):
    pinterest.refresh(ann, force=True)
    with pytest.raises(Disconnected) as caught:
        pinterest.refresh(ann, force=True)
    assert caught.value.platform_code == "283" and "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize("row, status, expected", [("dead_grant", 400, Disconnected), ("bad_client", 401, Rejected)])
def test_errors_of_renewing(net, pinterest, ann, row, status, expected):
    net.fail(row, status=status)
    with pytest.raises(expected):
        pinterest.refresh(ann, force=True)


def test_a_renewal_while_pinterest_is_away(net, pinterest, ann):
    net.fault(TOKEN, status=503, body=json.dumps({"code": 0, "message": "away"}))
    with pytest.raises(Unavailable):
        pinterest.refresh(ann, force=True)
