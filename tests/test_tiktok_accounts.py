"""Accounts of TikTok: connecting them in the browser, and renewing their tokens."""

from dataclasses import replace
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

import pytest

from platforms.base import Profile
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable
from platforms.tiktok import TikTok
from tests.live import consented, http_for
from tests.networks import tiktok as known
from tests.networks.tiktok import ann, tiktok  # noqa: F401
from tests.standins.tiktok import ACCESS_SECONDS
from tests.standins.tiktok_errors import CREATOR, TOKEN, USER

HOME = "https://posthorn.test/callback"


@pytest.fixture
def net():
    with known.start() as net:
        net.redirects = [HOME]
        yield net


def test_connecting(net, tiktok):
    connected, = tiktok.redeem(*consented(tiktok, HOME))
    assert connected.profile == Profile(net.consenting, "ann", "Ann", f"{net.url}/ann.jpg")
    assert net.grants.token(connected.credentials["accessToken"]).account == net.consenting
    assert "canary" not in repr(connected)


def test_the_page_that_asks(tiktok):
    begun = tiktok.authorize(HOME, "state-1")
    query = dict(parse_qsl(urlsplit(begun.url).query))
    assert query == {"client_key": "aw-client-key", "redirect_uri": HOME, "response_type": "code", "state": "state-1",
                     "scope": "user.info.basic,video.publish", "code_challenge_method": "S256",
                     "code_challenge": sha256(begun.kept["verifier"].encode()).hexdigest()}
    assert begun.kept["verifier"] not in repr(begun)


def test_an_operator_whose_app_may_send_drafts_asks_for_that_too(net):
    tiktok = TikTok(http_for(net), {**known.settings(net), "scopes": "user.info.basic video.publish video.upload"})
    connected, = tiktok.redeem(*consented(tiktok, HOME))
    assert net.grants.token(connected.credentials["accessToken"]).scopes == {"user.info.basic", "video.publish", "video.upload"}


def test_a_code_is_only_good_with_its_verifier(tiktok):
    answer, home, kept = consented(tiktok, HOME)
    with pytest.raises(Rejected) as caught:
        tiktok.redeem(answer, home, {"verifier": "another"})
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "invalid_grant")
    assert answer["code"] not in repr(vars(caught.value))


def test_somebody_who_says_no(net, tiktok):
    net.declining = True
    with pytest.raises(Rejected) as caught:
        tiktok.redeem(*consented(tiktok, HOME))
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "access_denied")


def test_somebody_who_does_not_allow_posting(net, tiktok):
    tiktok.settings["scopes"] = "user.info.basic"        # as if the person had unticked the rest
    with pytest.raises(Rejected) as caught:
        tiktok.redeem(*consented(tiktok, HOME))
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "scope_not_authorized")


def test_an_app_whose_secret_is_wrong(net):
    tiktok = TikTok(http_for(net), {**known.settings(net), "client_secret": "canary-wrong"})
    with pytest.raises(Rejected) as caught:
        tiktok.redeem(*consented(tiktok, HOME))
    assert caught.value.platform_code == "invalid_client" and "canary" not in repr(vars(caught.value))


def test_an_account_without_a_display_name_has_its_username(net, tiktok):
    net.add_user("ben")
    assert tiktok.redeem(*consented(tiktok, HOME))[0].profile.display_name == "ben"


@pytest.mark.parametrize("endpoint, body", [
    (USER, {}), (USER, []), (USER, {"data": {"user": {"open_id": 7}}, "error": {"code": "ok"}}),
    (CREATOR, {"data": {}, "error": {"code": "ok"}}), (TOKEN, {}), (TOKEN, "<html>"),
])
def test_nonsense_while_connecting(net, tiktok, endpoint, body):
    came = consented(tiktok, HOME)
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(Unavailable):
        tiktok.redeem(*came)


def test_a_profile_without_the_scope(net, tiktok):
    ben = net.add_user("ben", "act.ben", scopes="video.publish")
    with pytest.raises(PermissionMissing):
        tiktok.profile(replace(known.account(net), platform_id=ben, credentials={"accessToken": "act.ben"}))


def test_tokens_are_renewed_before_they_end(net, tiktok, ann):
    assert tiktok.refresh(ann) is None and not net.calls(TOKEN)
    late = replace(ann, credentials={**ann.credentials, "expiresAt": ann.credentials["expiresAt"] - ACCESS_SECONDS + 200})
    fresh = tiktok.refresh(late)
    assert fresh["refreshToken"] != ann.credentials["refreshToken"]
    assert dict(parse_qsl(net.calls(TOKEN)[0].body.decode())).keys() == {
        "client_key", "client_secret", "grant_type", "refresh_token"}
    assert tiktok.profile(replace(ann, credentials=fresh)).username == "ann"


def test_a_refresh_token_is_good_once(net, tiktok, ann):
    tiktok.refresh(ann, force=True)
    with pytest.raises(Disconnected) as caught:
        tiktok.refresh(ann, force=True)
    assert caught.value.platform_code == "invalid_grant" and "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize("row, expected", [
    ("dead_grant", Disconnected), ("dead_grant_ok", Disconnected), ("bad_client", Rejected), ("bad_request", Rejected),
])
def test_errors_of_renewing(net, tiktok, ann, row, expected):
    net.fail(row)
    with pytest.raises(expected) as caught:
        tiktok.refresh(ann, force=True)
    assert caught.value.platform_code == net.errors[row]["body"]["error"]


def test_a_renewal_while_tiktok_is_away(net, tiktok, ann):
    net.fault(TOKEN, status=503, body="<html>")
    with pytest.raises(Unavailable):
        tiktok.refresh(ann, force=True)
