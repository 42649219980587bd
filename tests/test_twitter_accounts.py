"""Accounts of X: connecting them in the browser, and their tokens, which are good for two hours and refreshed once each."""

import time
from dataclasses import replace
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from platforms.base import Content, Profile
from platforms.errors import Disconnected, PlatformError, Rejected, Unavailable
from platforms.twitter import Twitter
from tests.live import account, http_for, published
from tests.networks import twitter as network
from tests.networks.twitter import ann, net, twitter  # fixtures
from tests.standins.twitter import CALLBACK, CLIENT_ID, CLIENT_SECRET
from tests.standins.twitter_rules import TOKEN

ME = "GET /2/users/me"


def consent(net, twitter, state="state-1"):
    """What a browser brings back after the person said yes, and what was kept for it."""
    authorization = twitter.authorize(CALLBACK, state)
    assert authorization.url.startswith(f"{net.url}/i/oauth2/authorize?")
    answer = twitter.http.send("GET", f"{net.url}/i/oauth2/authorize", title="X", accept=(302,),
                               query=dict(parse_qsl(urlsplit(authorization.url).query)))
    back = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
    assert back.pop("state") == state
    return back, authorization.kept


def test_connecting_in_the_browser(net, twitter):
    ann = net.add_user("ann", name="Ann Ä.")
    answer, kept = consent(net, twitter)
    [connected] = twitter.redeem(answer, CALLBACK, kept)
    assert connected.profile == Profile(ann, "ann", "Ann Ä.", f"{net.url}/profile_images/1/a_normal.jpg")
    assert connected.host == "" and 7100 < connected.credentials["expiresAt"] - time.time() <= 7200
    assert "canary" not in repr(connected) + repr(account(connected))
    assert published(twitter, account(connected), Content("hi", key="k-1")).id == net.posts[0]["id"]


def test_the_page_of_consent_is_asked_for_what_publishing_needs(net, twitter):
    query = parse_qs(urlsplit(twitter.authorize(CALLBACK, "s").url).query)
    assert query["scope"] == ["tweet.read tweet.write users.read media.write offline.access"]
    assert query["code_challenge_method"] == ["S256"] and CLIENT_SECRET not in str(query)


def test_what_the_browser_sees_does_not_redeem(net, twitter):
    net.add_user("ann")
    answer, _ = consent(net, twitter)
    with pytest.raises(Rejected) as caught:
        twitter.redeem(answer, CALLBACK, {"verifier": "another"})
    assert caught.value.rule == "declined" and answer["code"] not in repr(vars(caught.value))


def test_a_code_is_good_once_and_for_half_a_minute(net, twitter):
    net.add_user("ann")
    answer, kept = consent(net, twitter)
    twitter.redeem(answer, CALLBACK, kept)
    with pytest.raises(Rejected):
        twitter.redeem(answer, CALLBACK, kept)
    answer, kept = consent(net, twitter)
    net.advance(31)
    with pytest.raises(Rejected):
        twitter.redeem(answer, CALLBACK, kept)


@pytest.mark.parametrize("answer", [{"error": "access_denied"}, {}])
def test_a_person_may_say_no(net, twitter, answer):
    with pytest.raises(Rejected) as caught:
        twitter.redeem(answer, CALLBACK, {"verifier": "v"})
    assert caught.value.rule == "declined" and not net.requests


@pytest.mark.parametrize("name", ["client_id", "client_secret"])
def test_an_app_is_needed(net, name):
    twitter = Twitter(http_for(net), {**network.settings(net), name: ""})
    with pytest.raises(Rejected) as caught:
        twitter.redeem({"code": "c"}, CALLBACK, {"verifier": "v"})
    assert caught.value.rule == "app" and f"POSTHORN_TWITTER_{name.upper()}" in caught.value.message


def test_a_wrong_secret_is_the_operators_matter(net, ann):
    twitter = Twitter(http_for(net), {**network.settings(net), "client_secret": "canary-wrong"})
    with pytest.raises(Rejected) as caught:
        twitter.refresh(ann, force=True)
    assert caught.value.platform_code == "unauthorized_client" and "canary" not in repr(vars(caught.value))
    assert ann.credentials["refreshToken"] in net.refresh_tokens


def test_the_profile(net, twitter, ann):
    assert twitter.profile(ann) == Profile(ann.platform_id, "ann", "Ann", f"{net.url}/profile_images/1/a_normal.jpg")


@pytest.mark.parametrize("body", [{}, "<html>", {"data": {"id": 7, "username": "ann"}}, {"data": {"id": "7"}},
                                  {"data": {"id": "a/b", "username": "ann"}}])
def test_nonsense_is_no_profile(net, twitter, ann, body):
    net.fault(ME, status=200, body=body)
    with pytest.raises(Unavailable):
        twitter.profile(ann)


# Tokens.

def test_a_token_that_is_good_is_kept(net, twitter, ann):
    assert twitter.refresh(ann) is None and not net.requests


def test_tokens_are_renewed_before_they_end_and_each_refresh_token_once(net, twitter, ann):
    old = replace(ann, credentials={**ann.credentials, "expiresAt": time.time() + 200})
    fresh = twitter.refresh(old)
    assert fresh["refreshToken"] != old.credentials["refreshToken"] and fresh["accessToken"] != old.credentials["accessToken"]
    assert fresh["expiresAt"] - time.time() > 7000
    assert twitter.profile(replace(ann, credentials=fresh))
    with pytest.raises(Disconnected) as caught:
        twitter.refresh(old)
    assert caught.value.platform_code == "invalid_request" and "canary" not in repr(vars(caught.value))
    assert twitter.refresh(replace(ann, credentials=fresh), force=True)


def test_a_refresh_is_sent_as_x_wants_it(net, twitter, ann):
    twitter.refresh(ann, force=True)
    request = net.calls(TOKEN)[0]
    assert dict(parse_qsl(request.body.decode())) == {"grant_type": "refresh_token",
                                                      "refresh_token": ann.credentials["refreshToken"]}
    assert request.headers["Authorization"].startswith("Basic ")


def test_a_token_that_ended_meanwhile_is_renewed_by_force(net, twitter, ann):
    network.expire(net)
    with pytest.raises(Disconnected):
        twitter.profile(ann)
    fresh = twitter.refresh(ann, force=True)
    assert published(twitter, replace(ann, credentials=fresh), Content("hi", key="k-1"))


@pytest.mark.parametrize("row, expected", [
    ("refresh_dead", Disconnected), ("refresh_gone", Disconnected), ("client_wrong", Rejected), ("rate_limited", Unavailable),
    ("bad_gateway", Unavailable)])
def test_errors_of_refreshing(net, twitter, ann, row, expected):
    net.fail(row, endpoint=TOKEN)
    with pytest.raises(PlatformError) as caught:
        twitter.refresh(ann, force=True)
    assert type(caught.value) is expected and "canary" not in repr(vars(caught.value))
    assert twitter.refresh(ann, force=True)


@pytest.mark.parametrize("fault", [{"drop_before": True}, {"status": 200, "body": "<html>"}, {"status": 200, "body": {}}])
def test_a_refresh_without_an_answer_is_tried_again(net, twitter, ann, fault):
    net.fault(TOKEN, **fault)
    with pytest.raises(Unavailable):
        twitter.refresh(ann, force=True)
    assert twitter.refresh(ann, force=True)["accessToken"]


# Premium.

@pytest.mark.parametrize("subscription, limit", [("None", 280), ("Basic", 280), ("Premium", 25_000), ("PremiumPlus", 25_000)])
def test_premium_has_longer_texts(net, twitter, subscription, limit):
    net.add_user("cat", subscription=subscription)
    answer, kept = consent(net, twitter)
    [connected] = twitter.redeem(answer, CALLBACK, kept)
    cat = account(connected)
    assert twitter.problems(Content("x" * limit, options={"thread": ["x" * limit]}), cat) == []
    found = twitter.problems(Content("x" * (limit + 1), options={"thread": ["x" * (limit + 1)]}), cat)
    assert [problem.rule for problem in found] == ["caption_length", "thread_text_length"]
    assert published(twitter, cat, Content("x" * limit, key="k-1"))
    fresh = twitter.refresh(cat, force=True)
    assert fresh["subscription"] == subscription and CLIENT_ID not in fresh.values()
