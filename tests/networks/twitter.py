"""What the conformance suite needs to know of X."""

from dataclasses import replace

from platforms.base import Account, Content
from platforms.twitter import Twitter
from tests.live import MP4, fixtures, image, part_of, video
from tests.standins.twitter import CLIENT_ID, CLIENT_SECRET, XServer
from tests.standins.twitter_rules import CREATE

PUBLISH = CREATE
SRT = "1\n00:00:00,000 --> 00:00:02,000\nFrisch aus dem Ofen\n"
TRACK = {"language": "de", "name": "Deutsch", "text": SRT}


def film(data=MP4):
    """A video that X takes."""
    return replace(video(width=640, height=360), bytes=len(data), open=part_of(data))


def using(caption="hi", media=(), **options):
    """A Content with these options."""
    return Content(caption, media, options=options, key="k-1")


SAMPLES = {
    "text": Content("Fresh bread & rolls: https://bread.example/menu", key="k-1"),
    "image": Content("Fresh bread", media=(image(1), image(2)), options={"altTexts": ["A loaf", ""]}, key="k-1"),
    "video": Content("Fresh bread", media=(replace(film(), duration=9.0),), key="k-1"),
    "poll": Content("Rye or wheat?", post_type="poll", options={"poll": {"options": ["rye", "wheat"], "durationMinutes": 60}},
                    key="k-1"),
}

OPTIONS = {
    "altTexts": (using(media=(image(),), altTexts=["a loaf"]), {"alt_text": {"text": "a loaf"}}),
    "taggedUserIds": (using(media=(image(),), taggedUserIds=["12"]), {"tagged_user_ids": ["12"]}),
    "sensitiveMedia": (using(media=(film(),), sensitiveMedia=["other"]), {"sensitive_media_warning": {"other": True}}),
    "title": (using(media=(film(),), title="How"), {"title": "How"}),
    "description": (using(media=(film(),), description="By night"), {"description": "By night"}),
    "embeddable": (using(media=(film(),), embeddable=True), {"embeddable": True}),
    "callToAction": (using(media=(film(),), callToAction={"type": "VISIT_SITE", "url": "https://bread.example"}), {
        "call_to_actions": {"visit_site": {"url": "https://bread.example"}}}),
    "subtitles": (using(media=(image(), film()), subtitles=[TRACK, TRACK]), {"language_code": "DE", "display_name": "Deutsch"}),
    "poll": (using(poll={"options": ["rye", "wheat"], "durationMinutes": 60}), {
        "poll": {"options": ["rye", "wheat"], "duration_minutes": 60}}),
    "replySettings": (using(replySettings="verified"), {"reply_settings": "verified"}),
    "inReplyToTweetId": lambda net, account: about(net, account, "inReplyToTweetId", "in_reply_to_tweet_id"),
    "excludeReplyUserIds": lambda net, account: about(net, account, "inReplyToTweetId", "in_reply_to_tweet_id",
                                                      excludeReplyUserIds=["12"]),
    "quoteTweetId": lambda net, account: about(net, account, "quoteTweetId", "quote_tweet_id"),
    "communityId": (using(communityId="77"), {"community_id": "77"}),
    "shareWithFollowers": (using(communityId="77", shareWithFollowers=True), {"share_with_followers": True}),
    "placeId": (using(placeId="5a110d312052166f"), {"geo": {"place_id": "5a110d312052166f"}}),
    "forSuperFollowersOnly": (using(forSuperFollowersOnly=True), {"for_super_followers_only": True}),
    "madeWithAi": (using(madeWithAi=True), {"made_with_ai": True}),
    "paidPartnership": (using(paidPartnership=True), {"paid_partnership": True}),
    "thread": (using(thread=["two"]), {"text": "two"}),
}


def start():
    """X, with nobody on it."""
    return XServer()


def settings(net):
    """The settings of a connector to this X."""
    return {"api_url": net.url, "public_url": net.url, "authorize_url": f"{net.url}/i/oauth2/authorize",
            "token_url": f"{net.url}/2/oauth2/token", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


def account(net, username="ann", **details):
    """An account that allowed the app."""
    tokens = {"accessToken": f"canary-access-{username}", "refreshToken": f"canary-refresh-{username}"}
    user = net.add_user(username, tokens["accessToken"], refresh_token=tokens["refreshToken"], **details)
    subscription = {"subscription": details["subscription"]} if "subscription" in details else {}
    return Account(user, username, credentials={**tokens, "expiresAt": net.now() + 7200, **subscription})


def about(net, account, option, parameter, **more):
    """A Content that has to do with another post of the account, and what says so on the wire."""
    other = net.add_post(account.platform_id, "before")
    excluded = {"exclude_reply_user_ids": more["excludeReplyUserIds"]} if more else {}
    return using("We do", **{option: other["id"]}, **more), {parameter: other["id"], **excluded}


def public(net):
    """The ids of all posts."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Ends all access tokens."""
    for token in net.tokens.values():
        token.end = net.now()


net, twitter, ann = fixtures(Twitter, start, settings, account)
