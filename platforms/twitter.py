"""X, formerly Twitter: https://docs.x.com/x-api/posts/create-post"""

import copy
import re
import time
from dataclasses import replace

from platforms.base import (GIF, JPEG, MB, MP4, PNG, QUICKTIME, WEBP, Absent, Account, Connected, ImageLimits, Limits, PostType,
                            Problem, Profile, Published, VideoLimits)
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.oauth import OAuthPlatform
from platforms.text import tweet_weight
from platforms.tweets import TWEET_FIELDS, Sought, seek
from platforms.twitter_media import Uploads, digits, lost, preview_id, shown_ids

STILL = ImageLimits(types=(JPEG, PNG, WEBP), max_bytes=5 * MB)
LONG = 25_000                   # weighted characters with Premium; changelog of 2024-08-20
PREMIUM = ("Premium", "PremiumPlus")    # subscription_type; what Basic may is not documented
CASHTAG = re.compile(r"(?<!\S)\$[a-z]{1,6}(?:[._][a-z]{1,2})?(?=$|[\s!-/:-@\[-`{-~])", re.IGNORECASE)     # of twitter-text
INVALID = re.compile("[\uFFFE\uFEFF\uFFFF]")
LISTED = 100                    # posts in a page, the most that there are
SKEW = 120                      # seconds that our clock and that of X may differ
SETTLED = 180                   # seconds after which a post that is there is listed, generously
CAPPED = 3600                   # seconds until a cap on spending, or of a month, is tried again
# Option of ours: parameter of a post.
PARAMETERS = {"replySettings": "reply_settings", "communityId": "community_id", "shareWithFollowers": "share_with_followers",
              "forSuperFollowersOnly": "for_super_followers_only", "madeWithAi": "made_with_ai",
              "paidPartnership": "paid_partnership", "quoteTweetId": "quote_tweet_id"}
FILM = {"title": "title", "description": "description", "embeddable": "embeddable"}     # of the media of a post
CALLS = {"WATCH_NOW": "watch_now", "VISIT_SITE": "visit_site"}
# The ends of the types of problems that the operator solves, in the settings of the app, or a new login.
APP_PROBLEMS = ("unsupported-authentication", "oauth1-permissions", "client-forbidden", "client-not-enrolled", "Forbidden")


def _no_credits(_, **words):
    return PlatformError("this server's app has no credits left at X: its operator has to buy some", rule="credits", **words)


def _capped(_, **words):
    return Unavailable("X's cap on what this server's app may do is reached", retry_after=CAPPED, throttled=True, **words)


class Twitter(Uploads, OAuthPlatform):
    """An account of X, by the limits of accounts without Premium; Premium adds long texts, and more that is not known here.

    Left out: X's articles, which are drafted and published by calls of their own, edits, and what is for advertisers alone
    (cards, posts that no timeline shows).
    """

    name = "twitter"
    title = "X"
    limits = Limits(
        caption=280,            # LONG with Premium
        media_items=4,
        image=ImageLimits(types=(JPEG, PNG, WEBP, GIF), max_bytes=15 * MB),     # of a GIF; see STILL for the others
        # More with Premium. The page also gives 1280x1024 as the largest frame, but recommends 720x1280: no largest frame here.
        # Another copy of it allows 20 minutes and 8 GB; until that is sure, what is surely taken.
        video=VideoLimits(types=(MP4, QUICKTIME), max_bytes=512 * MB, min_width=32, min_height=32, min_aspect_ratio=1 / 3,
                          max_aspect_ratio=3, min_duration=0.5, max_duration=140),
        source="https://docs.x.com/x-api/media/quickstart/best-practices", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True, options=("quoteTweetId",)),
        "image": PostType(images=(1, 4), options=("altTexts", "taggedUserIds", "sensitiveMedia")),
        "video": PostType(images=(0, 1), videos=(1, 1), mixed=True, image=STILL,        # the image becomes the preview
                          options=(*FILM, "callToAction", "subtitles", "sensitiveMedia")),
        "poll": PostType(caption_required=True, required=("poll",)),
    }
    options = ("replySettings", "inReplyToTweetId", "excludeReplyUserIds", "communityId", "shareWithFollowers", "placeId",
               "forSuperFollowersOnly", "madeWithAi", "paidPartnership", "thread")
    follow_options = ("thread",)
    counts = "weighted characters"
    bare = {"media": []}
    live = True
    scopes = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
    basic = True
    # A dead refresh token; they are good for one use.
    token_verdicts = {**OAuthPlatform.token_verdicts, "invalid_request": Disconnected}
    settings = {"api_url": "https://api.x.com", "authorize_url": "https://x.com/i/oauth2/authorize",
                "token_url": "https://api.x.com/2/oauth2/token", "public_url": "https://x.com",
                "client_id": "", "client_secret": ""}
    verdicts = {402: _no_credits, 403: Rejected, "usage-capped": _capped, **dict.fromkeys(APP_PROBLEMS, PermissionMissing)}

    def measure(self, caption):
        """Weighted characters: a link counts 23, an emoji or a Chinese, Japanese or Korean character 2."""
        return tweet_weight(caption)

    def media_limits(self, post_type, item):
        """A GIF may have more bytes than other images."""
        return STILL if item.mime_type in STILL.types else super().media_limits(post_type, item)

    def for_account(self, account):
        """With the longer texts of Premium, where the account had it when it was connected."""
        if account.credentials.get("subscription") not in PREMIUM:
            return self
        here = copy.copy(self)
        here.limits = replace(self.limits, caption=LONG)
        return here

    def extra_problems(self, post_type, content):
        """Characters and cashtags that X refuses, GIFs, and options that do not fit to each other or the media."""
        yield from _text_problems("caption", "caption", content.caption)
        for position, item in enumerate(content.media):
            yield from _image_problems(f"media/{position}", item, len(content.media))
        if content.options.get("shareWithFollowers") and "communityId" not in content.options:
            yield Problem("options/communityId", "required", "shareWithFollowers is for posts to a community")
        if "excludeReplyUserIds" in content.options and "inReplyToTweetId" not in content.options:
            yield Problem("options/inReplyToTweetId", "required", "excludeReplyUserIds is for answers")
        if "thread" in content.options:
            yield from self.thread_problems(content)
            for option in ("communityId", "forSuperFollowersOnly"):
                if content.options.get(option):
                    yield Problem(f"options/{option}", "thread", "who would see further parts of such a thread is not known")

    def thread_problems(self, content):
        """Of what X refuses in a text, the further parts of a thread may have nothing either."""
        yield from super().thread_problems(content)
        for position, text in enumerate(content.options["thread"]):
            yield from _text_problems(f"options/thread/{position}", "thread_text", text)

    def choices(self, credentials):
        """The one account, with the subscription that it has now."""
        account = Account("", "", credentials=credentials)
        answer = self._me(account)
        kept = {**credentials, "subscription": answer.field("data", "subscription_type", default=None)}
        return [Connected(_profile(answer), "", kept)]

    def profile(self, account):
        """Who the account is."""
        return _profile(self._me(account))

    def publish(self, account, content, receipt):
        """Creates the post."""
        try:
            answer = self._create(account, _post(content, receipt))
        except Rejected as refusal:
            said = (refusal.platform_message or "").lower()
            if receipt["media"] and "media ids" in said:
                return self._published_before(account, content, receipt, refusal)
            if content.sent_ago and "duplicate content" in said:
                return self._duplicated(account, content, receipt, refusal)
            raise
        return self._published(account, digits(answer, "data", "id"))

    def follow(self, account, content, receipt):
        """The further parts of the thread, each an answer to the one before."""
        receipt = {"parts": [], "partAt": None, **receipt}
        texts = content.options["thread"]
        if receipt["partAt"] is not None:
            receipt = self._settled(account, texts[len(receipt["parts"])], receipt, content.since_sending - receipt["partAt"])
            yield receipt
        while len(receipt["parts"]) < len(texts):
            post = {"text": texts[len(receipt["parts"])], "reply": {"in_reply_to_tweet_id": _last(receipt)}}
            yield {**receipt, "partAt": content.since_sending}       # by the database's clock, as the next run knows it too
            try:
                part = digits(self._create(account, post), "data", "id")
            except Unconfirmed:
                raise
            except PlatformError:
                yield receipt       # surely not sent
                raise
            receipt = {**receipt, "parts": [*receipt["parts"], part]}
            yield receipt

    def find(self, account, content, receipt):
        """Looks through what the account posted since the first sending."""
        if "media" not in receipt:
            return Absent()
        sought = Sought(content.caption, content.options.get("inReplyToTweetId"), tuple(shown_ids(content, receipt)),
                        "poll" in content.options, content.options.get("quoteTweetId"))
        found = self._seek(account, sought, content.sent_ago)
        if isinstance(found, str):
            return self._published(account, found)
        # Whether the list of an account's posts has these is not documented.
        hidden = "communityId" in content.options or "forSuperFollowersOnly" in content.options
        return None if hidden else found

    def words(self, answer):
        """https://docs.x.com/x-api/fundamentals/response-codes-and-errors: problems with a type, or an older list of errors."""
        detail, title = answer.field("detail", default=None), answer.field("title", default=None)
        kind = answer.field("type", default="about:blank").rpartition("/")[2]
        if kind == "about:blank":       # says nothing; and a bare "Forbidden" comes for a scope that is missing
            kind = title if title == detail else None
        number = answer.field("errors", 0, "code", kind=int, default=None)
        return kind or (number and str(number)), answer.field("errors", 0, "message", default=detail or title)

    def _call(self, account, method, path, **request):
        return self.send(method, f"{self.settings['api_url']}/2/{path}", token=account.credentials["accessToken"], **request)

    def _me(self, account):
        fields = "id,name,username,profile_image_url,subscription_type"
        return self._call(account, "GET", "users/me", query={"user.fields": fields})

    def _create(self, account, post):
        return self._call(account, "POST", "tweets", json=post, commits=True)

    def _published_before(self, account, content, receipt, refusal):
        """The post that an earlier sending made of media that are gone now; if there is none, they are to be uploaded again."""
        found = self.find(account, content, receipt) if content.sent_ago else Absent()
        if found is None:
            raise Unconfirmed("X no longer knows the media: the post may have been published", **refusal.words) from None
        if isinstance(found, Absent):
            raise lost(receipt, refusal) from None
        return found

    def _duplicated(self, account, content, receipt, refusal):
        """The post of an earlier sending in doubt, of which X calls a new one a duplicate; otherwise it is a real duplicate."""
        found = self.find(account, content, receipt)
        if found is None:
            raise Unconfirmed("X has had this text before: the post may have been published", **refusal.words) from None
        if isinstance(found, Absent):
            raise refusal
        return found

    def _settled(self, account, text, receipt, ago):
        """The receipt after a look for the part of a thread whose sending, so many seconds ago, ended in the dark."""
        found = self._seek(account, Sought(text, _last(receipt)), ago)
        if isinstance(found, str):
            return {**receipt, "parts": [*receipt["parts"], found], "partAt": None}
        if isinstance(found, Absent):
            return {**receipt, "partAt": None}
        if ago <= SETTLED:
            raise Unavailable("X does not list the next part of the thread yet", retry_after=SETTLED - ago)
        raise Rejected("X did not confirm the next part of the thread: whether it is there cannot be found out", rule="thread")

    def _seek(self, account, sought, ago):
        """The id of the `sought` post that was sent so many seconds ago, Absent, or None where that is not sure."""
        now = time.time()
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - ago - SKEW))
        answer = self._call(account, "GET", f"users/{account.platform_id}/tweets",
                            query={"max_results": LISTED, "start_time": start, "tweet.fields": TWEET_FIELDS})
        found = seek(answer, sought)
        # What came too early, or by a clock that is wrong, proves nothing.
        sure = ago > SETTLED and abs(answer.moment().timestamp() - now) < SKEW
        return None if isinstance(found, Absent) and not sure else found

    def _published(self, account, tweet):
        return Published(tweet, f"{self.settings['public_url']}/{account.username}/status/{tweet}")


def _profile(answer):
    name = answer.field("data", "username")
    return Profile(digits(answer, "data", "id"), name, answer.field("data", "name", default="") or name,
                   answer.link("data", "profile_image_url", default=None))


def _post(content, receipt):
    options = content.options
    post = {"text": content.caption, **{PARAMETERS[name]: value for name, value in options.items() if name in PARAMETERS}}
    if receipt["media"]:
        post["media"] = _media(content, receipt)
    if poll := options.get("poll"):
        post["poll"] = {"options": poll["options"], "duration_minutes": poll["durationMinutes"]}
    if "inReplyToTweetId" in options:
        post["reply"] = {"in_reply_to_tweet_id": options["inReplyToTweetId"]}
    if "excludeReplyUserIds" in options:
        post["reply"]["exclude_reply_user_ids"] = options["excludeReplyUserIds"]
    if "placeId" in options:
        post["geo"] = {"place_id": options["placeId"]}
    return post


def _media(content, receipt):
    """The media of a post, and what X shows with them."""
    options = content.options
    media = {"media_ids": shown_ids(content, receipt), **{FILM[name]: options[name] for name in options.keys() & FILM.keys()}}
    if "taggedUserIds" in options:
        media["tagged_user_ids"] = options["taggedUserIds"]
    if preview := preview_id(content, receipt):
        media["preview_media_id"] = preview
    if call := options.get("callToAction"):
        media["call_to_actions"] = {CALLS[call["type"]]: {"url": call["url"]}}
    return media


def _last(receipt):
    """The id of the last part of a thread that is public."""
    return [receipt["public"]["id"], *receipt["parts"]][-1]


def _text_problems(path, rule, text):
    if INVALID.search(text):
        yield Problem(path, f"{rule}_characters", "X takes none of the characters U+FEFF, U+FFFE and U+FFFF")
    if (count := len(CASHTAG.findall(text))) > 1:
        yield Problem(path, f"{rule}_cashtags", f"the text has {count} cashtags; X allows 1")


def _image_problems(path, item, count):
    if item.mime_type == GIF:       # taken for an animated one, since stills are rare and their number of frames is not known
        if count > 1:
            yield Problem(path, "media_count", "X takes a GIF only alone")
        if (item.width or 0) > 1280 or (item.height or 0) > 1080:
            yield Problem(path, "media_size", f"the GIF has {item.width}x{item.height} pixels; X allows 1280x1080")
