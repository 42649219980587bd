"""Channels of YouTube: connecting them by Google's login, and renewing their tokens."""

from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from platforms.base import Account, Profile
from platforms.errors import Disconnected, PlatformError, Rejected, Unavailable
from platforms.youtube import YouTube
from tests.live import http_for
from tests.networks import youtube as network
from tests.networks.youtube import net, youtube  # noqa: F401
from tests.standins.google import REDIRECT

TOKEN, CHANNELS = "POST /token", "GET /youtube/v3/channels"


def logged_in(youtube):
    """What the browser comes back with from Google's page, and what was kept meanwhile."""
    begun = youtube.authorize(REDIRECT, "state-1")
    page = youtube.http.send("GET", begun.url, title="Google", accept=(302,))
    answer = dict(parse_qsl(urlsplit(page.headers["Location"]).query))
    assert answer.pop("state") == "state-1"
    return answer, begun.kept


def connected(youtube):
    answer, kept = logged_in(youtube)
    return youtube.redeem(answer, REDIRECT, kept)


def test_connecting_tells_which_channel_it_is(net, youtube):
    net.add_user("Bread TV", "@breadtv")
    one, = connected(youtube)
    assert one.profile == Profile(net.consenting.id, "breadtv", "Bread TV", f"{net.url}/a=800") and one.host == ""
    assert one.credentials.keys() == {"accessToken", "expiresAt", "refreshToken"}
    assert "canary" not in repr(one)


def test_the_login_asks_for_a_refresh_token_every_time(youtube):
    query = dict(parse_qsl(urlsplit(youtube.authorize(REDIRECT, "s").url).query))
    assert (query["access_type"], query["prompt"], query["code_challenge_method"]) == ("offline", "consent", "S256")
    assert query["scope"] == "https://www.googleapis.com/auth/youtube.force-ssl"


def test_a_channel_without_a_handle_has_its_id(net, youtube):
    net.add_user("Bread TV", None)
    assert connected(youtube)[0].profile.username == net.consenting.id


def test_a_google_account_without_a_channel(net, youtube):
    net.add_user(None)
    with pytest.raises(Rejected) as caught:
        connected(youtube)
    assert caught.value.rule == "no_channel"


def test_a_google_account_that_never_signed_up(net, youtube):
    net.add_user()
    net.fail("signup_required")
    with pytest.raises(Rejected) as caught:
        connected(youtube)
    assert (caught.value.rule, caught.value.platform_code) == ("no_channel", "youtubeSignupRequired")


def test_a_scope_that_was_not_allowed(net, youtube):
    net.add_user()
    net.unticked = set(youtube.scopes)
    with pytest.raises(Rejected) as caught:
        connected(youtube)
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "insufficientPermissions")


def test_a_code_counts_once_and_with_its_verifier(net, youtube):
    net.add_user()
    answer, kept = logged_in(youtube)
    with pytest.raises(Rejected):
        youtube.redeem(answer, REDIRECT, {"verifier": "x" * 43})
    for _ in range(2):
        with pytest.raises(Rejected) as caught:
            youtube.redeem(answer, REDIRECT, kept)
    assert caught.value.platform_code == "invalid_grant" and "canary" not in repr(vars(caught.value))


def test_a_person_who_says_no(youtube):
    with pytest.raises(Rejected) as caught:
        youtube.redeem({"error": "access_denied"}, REDIRECT, {"verifier": "x"})
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "access_denied")


@pytest.mark.parametrize("body", [{}, [], "<html>", {"kind": "k", "items": [{"id": 7}]},
                                  {"kind": "k", "items": [{"id": "UC1"}]}])
def test_a_profile_of_nonsense_does_not_connect(net, youtube, body):
    net.add_user()
    net.fault(CHANNELS, status=200, body=body)
    with pytest.raises(Unavailable):
        connected(youtube)


def test_a_token_is_renewed_before_it_ends_and_keeps_the_refresh_token(net, youtube):
    credentials = net.add_user() | {"extra": 1}
    account = Account("UC1", "ann", credentials=credentials)
    assert youtube.refresh(account) is None
    old = replace(account, credentials={**credentials, "expiresAt": net.now() + 200})
    fresh = youtube.refresh(old)
    assert fresh["accessToken"] != credentials["accessToken"] and fresh["expiresAt"] > net.now() + 3000
    assert (fresh["refreshToken"], fresh["extra"]) == (credentials["refreshToken"], 1)
    assert youtube.profile(replace(account, credentials=fresh))


def test_an_ended_token_is_renewed_when_it_was_refused(net, youtube):
    account = network.account(net)
    network.expire(net)
    with pytest.raises(Disconnected):
        youtube.profile(account)
    assert youtube.profile(replace(account, credentials=youtube.refresh(account, force=True)))


def test_a_revoked_grant_needs_a_person(net, youtube):
    account = network.account(net)
    for grant in net.grants.values():
        grant.revoked = True
    with pytest.raises(Disconnected) as caught:
        youtube.refresh(account, force=True)
    assert caught.value.platform_code == "invalid_grant" and "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize("status, error", [(401, "invalid_client"), (400, "unauthorized_client"), (401, "deleted_client"),
                                           (401, "disabled_client")])
def test_trouble_with_the_app_is_the_operators(net, youtube, status, error):
    account = network.account(net)
    net.fault(TOKEN, status=status, body={"error": error, "error_description": f"no {account.credentials['refreshToken']}"})
    with pytest.raises(Rejected) as caught:
        youtube.refresh(account, force=True)
    assert (caught.value.rule, caught.value.platform_code) == ("app", error) and "canary" not in repr(vars(caught.value))


def test_a_token_endpoint_that_is_down_is_asked_again(net, youtube):
    account = network.account(net)
    net.fault(TOKEN, status=503)
    with pytest.raises(Unavailable):
        youtube.refresh(account, force=True)


def test_a_wrong_secret_of_the_app(net):
    youtube = YouTube(http_for(net), {**network.settings(net), "client_secret": "canary-wrong"})
    with pytest.raises(PlatformError) as caught:
        youtube.refresh(network.account(net), force=True)
    assert caught.value.rule == "app" and "canary" not in repr(vars(caught.value))


def test_an_app_that_is_not_set_up(net):
    with pytest.raises(Rejected) as caught:
        YouTube(http_for(net)).authorize(REDIRECT, "s")
    assert caught.value.rule == "app" and "POSTHORN_YOUTUBE_CLIENT_ID" in caught.value.message
