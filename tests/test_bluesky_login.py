"""Bluesky by OAuth: logging in in the browser, proofs and nonces, and tokens that rotate."""

import json
import re
from base64 import urlsafe_b64decode
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest
import urllib3

from platforms import dpop
from platforms.base import Content, Profile
from platforms.bluesky import Bluesky
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable, Unconfirmed
from tests.live import account, http_for, image, prepared, published, video
from tests.standins.bluesky_login import TOKEN_SECONDS, BlueskyLogin

BACK = "http://127.0.0.1:8080/connect/callback"
PUBLIC_BACK = "https://posthorn.example.com/connect/callback"
PAR, TOKEN, PUT, UPLOAD = "POST /oauth/par", "POST /oauth/token", "com.atproto.repo.putRecord", "com.atproto.repo.uploadBlob"
DISCOVERY = ("GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-authorization-server")


@pytest.fixture
def net():
    with BlueskyLogin() as net:
        net.add_user("ann.test", display_name="Ann")
        yield net


def connector(net, **settings):
    addresses = {"api_url": net.url, "video_url": net.url, "plc_url": net.url}
    return Bluesky(http_for(net), {**addresses, **settings})


@pytest.fixture
def bluesky(net):
    return connector(net)


def went(authorization):
    """What the browser comes back with."""
    answer = urllib3.request("GET", authorization.url, redirect=False)
    assert answer.status == 303, answer.data
    return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))


def logged_in(bluesky, back=BACK):
    """The account after a login in the browser."""
    authorization = bluesky.authorize(back, "state-1")
    answer = went(authorization)
    assert answer.pop("state") == "state-1"
    kept = json.loads(json.dumps(authorization.kept))
    [connected] = bluesky.redeem(answer, back, kept)
    return connected


@pytest.fixture
def ann(bluesky):
    return account(logged_in(bluesky))


# Logging in.

def test_a_login_tells_who_the_account_is(net, bluesky):
    connected = logged_in(bluesky)
    did = next(iter(net.accounts))
    assert connected.profile == Profile(did, "ann.test", "Ann", None) and connected.host == ""
    kept = connected.credentials
    assert (kept["pds"], kept["issuer"], kept["handle"], "verifier" in kept) == (net.url, net.url, "ann.test", False)
    assert net.logins[kept["accessToken"]]["did"] == did
    shown = repr(connected) + repr(account(connected))
    assert kept["accessToken"] not in shown and kept["proofKey"] not in shown


def test_what_is_asked_is_told_to_the_server_and_not_to_the_browser(net, bluesky):
    authorization = bluesky.authorize(BACK, "state-1")
    shown = dict(parse_qsl(urlsplit(authorization.url).query))
    assert shown.keys() == {"client_id", "request_uri"} and shown["client_id"].startswith("http://localhost?redirect_uri=")
    assert authorization.kept["verifier"] not in authorization.url + repr(authorization)


def test_an_account_of_another_server_is_connected_there(net, bluesky):
    with BlueskyLogin() as other:
        other.add_user("ben.test")
        elsewhere = Bluesky(http_for(net, other), {"api_url": net.url, "plc_url": other.url})
        authorization = elsewhere.authorize(BACK, "s", other.url)
        [connected] = elsewhere.redeem(went(authorization), BACK, authorization.kept)
    assert (connected.credentials["pds"], connected.profile.username) == (other.url, "ben.test")
    assert net.calls(PAR) == []


def test_a_server_that_names_no_other_is_asked_itself(net, bluesky):
    net.fault(DISCOVERY[0], status=404, times=2)
    assert logged_in(bluesky).profile.username == "ann.test"


def test_a_person_who_says_no(net, bluesky):
    net.consenting = None
    authorization = bluesky.authorize(BACK, "s")
    with pytest.raises(Rejected) as caught:
        bluesky.redeem(went(authorization), BACK, authorization.kept)
    assert (caught.value.rule, caught.value.platform_code) == ("declined", "access_denied")


@pytest.mark.parametrize("change", [{"iss": "https://evil.example"}, {"iss": None}, {"code": "cod-wrong"}, {"code": ""}])
def test_an_answer_that_is_not_the_servers_own(net, bluesky, change):
    authorization = bluesky.authorize(BACK, "s")
    answer = {name: value for name, value in {**went(authorization), **change}.items() if value is not None}
    with pytest.raises(Rejected) as caught:
        bluesky.redeem(answer, BACK, authorization.kept)
    assert caught.value.rule == "declined" and len(net.calls(TOKEN)) <= ("iss" not in change) * 2


@pytest.mark.parametrize("change", [{"verifier": "x" * 64}, {"proofKey": dpop.new_key()}])
def test_a_code_is_worth_nothing_to_others(net, bluesky, change):
    authorization = bluesky.authorize(BACK, "s")
    with pytest.raises(Rejected):
        bluesky.redeem(went(authorization), BACK, {**authorization.kept, **change})


def test_a_server_speaks_for_its_own_accounts_alone(net, bluesky):
    with BlueskyLogin() as other:
        net.speaks_for[net.consenting] = other.url
        suspicious = Bluesky(http_for(net, other), {"api_url": net.url, "plc_url": net.url})
        authorization = suspicious.authorize(BACK, "s")
        with pytest.raises(Rejected) as caught:
            suspicious.redeem(went(authorization), BACK, authorization.kept)
    assert "does not speak for the account" in caught.value.message and other.calls("com.atproto.server.getSession") == []


@pytest.mark.parametrize("sub", ["did:key:zQ3", "did:web:127.0.0.1%3A1/../x", "ann", "did:plc:short", "did:web:10.0.0.1",
                                 "did:plc:" + "a" * 24])
def test_an_account_that_is_none(net, bluesky, sub):
    authorization = bluesky.authorize(BACK, "s")
    answer = went(authorization)
    net.fault(TOKEN, status=200, body={"access_token": "a", "token_type": "DPoP", "expires_in": 60, "sub": sub})
    with pytest.raises(Rejected):
        bluesky.redeem(answer, BACK, authorization.kept)


def test_a_token_that_anybody_may_use_is_not_taken(net, bluesky):
    authorization = bluesky.authorize(BACK, "s")
    answer = went(authorization)
    net.fault(TOKEN, status=200, body={"access_token": "a", "token_type": "Bearer", "expires_in": 60, "sub": net.consenting})
    with pytest.raises(Unavailable):
        bluesky.redeem(answer, BACK, authorization.kept)


@pytest.mark.parametrize("endpoint, body, expected", [
    (DISCOVERY[0], {}, Unavailable), (DISCOVERY[0], {"authorization_servers": ["http://10.0.0.1"]}, Rejected),
    (DISCOVERY[1], {"issuer": "https://evil.example"}, Rejected), (DISCOVERY[1], {}, Unavailable),
    (DISCOVERY[1], "<html>", Unavailable), (PAR, {}, Unavailable)])
def test_a_server_that_talks_nonsense(net, bluesky, endpoint, body, expected):
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(expected):
        bluesky.authorize(BACK, "s")


@pytest.mark.parametrize("instance", ["10.0.0.1", "http://social.example.com", "not a host"])
def test_a_server_that_cannot_be_asked(bluesky, instance):
    with pytest.raises(Rejected) as caught:
        bluesky.authorize(BACK, "s", instance)
    assert caught.value.rule == "host"


# Who our app is.

def test_an_app_that_the_world_can_reach_describes_itself(net, bluesky):
    about = bluesky.client_metadata(PUBLIC_BACK)
    assert about == {
        "client_id": "https://posthorn.example.com/connect/client-metadata.json", "client_name": "Posthorn",
        "client_uri": "https://posthorn.example.com", "application_type": "web", "redirect_uris": [PUBLIC_BACK],
        "response_types": ["code"], "scope": "atproto transition:generic",
        "grant_types": ["authorization_code", "refresh_token"], "dpop_bound_access_tokens": True,
        "token_endpoint_auth_method": "none"}
    net.clients[about["client_id"]] = about
    assert account(logged_in(bluesky, PUBLIC_BACK)).credentials["clientId"] == about["client_id"]


def test_an_app_with_a_key_signs_who_it_is(net):
    key = dpop.new_key()
    bluesky = connector(net, client_key=key)
    about = bluesky.client_metadata(PUBLIC_BACK)
    [public] = about["jwks"]["keys"]
    assert about["token_endpoint_auth_method"] == "private_key_jwt" and "d" not in public and key not in json.dumps(about)
    net.clients[about["client_id"]] = about
    ann = account(logged_in(bluesky, PUBLIC_BACK))
    assert bluesky.refresh(ann, force=True)["accessToken"] != ann.credentials["accessToken"]
    with pytest.raises(Rejected) as caught:
        connector(net, client_key=dpop.new_key()).authorize(PUBLIC_BACK, "s")
    assert caught.value.platform_code == "invalid_client"
    assert account(logged_in(bluesky)).username == "ann.test"       # on a developer's machine there is nothing to sign with


@pytest.mark.parametrize("back", ["http://posthorn.example.com/connect/callback", "http://localhost:8080/connect/callback"])
def test_an_app_that_no_server_would_take_is_for_the_operator_to_mend(bluesky, back):
    with pytest.raises(Rejected) as caught:
        bluesky.authorize(back, "s")
    assert caught.value.rule == "app" and "POSTHORN_BASE_URL" in caught.value.message


@pytest.mark.parametrize("key", ["x", "AAAA", "not base64!", "é"])
def test_a_key_that_is_none_is_named(net, key):
    with pytest.raises(Rejected) as caught:
        connector(net, client_key=key).client_metadata(PUBLIC_BACK)
    assert caught.value.rule == "app" and "POSTHORN_BLUESKY_CLIENT_KEY" in caught.value.message


# Publishing with proofs.

@pytest.mark.parametrize("content", [Content("hi", key="k"), Content("hi", (image(1), image(2)), "image", key="k"),
                                     Content("hi", (video(),), "video", key="k"),
                                     Content("hi", options={"replyControl": ["nobody"]}, key="k")],
                         ids=["text", "images", "video", "gates"])
def test_posts_go_out(net, bluesky, ann, content):
    assert published(bluesky, ann, content).id == net.posts[-1]["uri"] and len(net.posts) == 1
    assert not any(request.headers.get("Authorization", "").startswith("Bearer tok-") for request in net.requests)


def test_each_request_has_a_proof_of_its_own(net, bluesky, ann):
    published(bluesky, ann, Content("hi"))
    proofs = [request.headers["DPoP"] for request in net.requests if request.headers.get("DPoP")]
    claims = [json.loads(urlsafe_b64decode(proof.split(".")[1] + "==")) for proof in proofs]
    assert len({claim["jti"] for claim in claims}) == len(claims) > 4
    assert all("?" not in claim["htu"] for claim in claims)


def test_a_nonce_that_is_too_old_costs_one_more_request_and_makes_no_second_post(net, bluesky, ann):
    content = Content("hi", key="k")
    receipt = prepared(bluesky, ann, content)
    net.nonces += 1
    assert bluesky.publish(ann, content, receipt) and len(net.posts) == 1
    assert [request.status for request in net.calls(PUT)] == [401, 200]


def test_a_nonce_that_nobody_has_told_us_yet_is_asked_for(net, bluesky, ann):
    fresh, content = connector(net), Content("hi", (image(),), "image", key="k")
    before = len(net.requests)
    assert published(fresh, ann, content) and len(net.posts) == 1
    refused = [request.endpoint for request in net.requests[before:] if request.status == 401]
    assert refused == ["com.atproto.server.getSession"]      # and the file was sent once


def test_a_server_that_never_takes_a_nonce_is_tried_later(net, bluesky, ann):
    for endpoint in (PUT, UPLOAD):
        net.fail("dpop_nonce", endpoint=endpoint, times=2)
    with pytest.raises(Unavailable):
        published(bluesky, ann, Content("hi", key="k"))
    with pytest.raises(Unavailable):
        prepared(bluesky, ann, Content("hi", (image(),), "image", key="k"))
    assert net.posts == [] and len(net.calls(UPLOAD)) == 1


@pytest.mark.parametrize("fault, expected", [
    ({"drop_answer": True}, Unconfirmed), ({"status": 502, "acts": True}, Unconfirmed), ({"drop_before": True}, Unconfirmed),
    ({"status": 401, "body": {"error": "invalid_token", "message": "no"}}, Disconnected),
    ({"status": 403, "body": {"error": "ScopeMissingError", "message": "no"}}, PermissionMissing),
    ({"status": 400, "body": {"error": "InvalidRequest", "message": "no"}}, Rejected), ({"status": 429}, Unavailable)])
def test_failures_mean_what_they_mean_with_an_app_password(net, bluesky, ann, fault, expected):
    receipt = prepared(bluesky, ann, Content("hi", key="k"))
    net.fault(PUT, **fault)
    with pytest.raises(expected) as caught:
        bluesky.publish(ann, Content("hi", key="k"), receipt)
    words = f"{caught.value!r} {caught.value.__dict__}"
    assert ann.credentials["accessToken"] not in words and ann.credentials["proofKey"] not in words
    assert len(net.posts) == (1 if fault.get("drop_answer") or fault.get("acts") else 0)


# Tokens.

def test_tokens_are_renewed_shortly_before_they_end(net, bluesky, ann):
    assert not bluesky.refresh_due(ann) and bluesky.refresh(ann) is None
    short = replace(ann, credentials={**ann.credentials, "expiresAt": ann.credentials["expiresAt"] - TOKEN_SECONDS + 299})
    assert bluesky.refresh_due(short)
    fresh = replace(ann, credentials=bluesky.refresh(short))
    assert published(bluesky, fresh, Content("hi")) and net.redeemed == 1
    with pytest.raises(Disconnected):
        bluesky.profile(ann)


def test_a_refresh_token_that_was_used_ends_all(net, bluesky, ann):
    fresh = replace(ann, credentials=bluesky.refresh(ann, force=True))
    with pytest.raises(Disconnected) as caught:
        bluesky.refresh(ann, force=True)
    assert caught.value.platform_code == "invalid_grant" and caught.value.platform_message == "Refresh token replayed"
    with pytest.raises(Disconnected):
        bluesky.refresh(fresh, force=True)


@pytest.mark.parametrize("fault, expected", [({"status": 503}, Unavailable), ({"drop_answer": True}, Unavailable),
                                             ({"status": 400, "body": {"error": "invalid_client"}}, Rejected)])
def test_a_refresh_that_fails(net, bluesky, ann, fault, expected):
    net.fault(TOKEN, **fault)
    with pytest.raises(expected) as caught:
        bluesky.refresh(ann, force=True)
    assert ann.credentials["refreshToken"] not in repr(caught.value.__dict__)


def test_the_tokens_of_somebody_else_are_not_kept(net, bluesky, ann):
    body = {"access_token": "a", "refresh_token": "r", "token_type": "DPoP", "expires_in": 60, "sub": "did:plc:" + "z" * 24}
    net.fault(TOKEN, status=200, body=body)
    with pytest.raises(Disconnected):
        bluesky.refresh(ann, force=True)


# Keys.

def test_any_32_bytes_make_a_key():
    for key in (dpop.encoded(bytes(32)), dpop.encoded(b"\xff" * 32), dpop.new_key(), dpop.new_key() + "="):
        assert re.fullmatch(r"[\w-]{43}", dpop.public_key(key)["x"])
    assert dpop.new_key() != dpop.new_key()
