"""Instagram: https://developers.facebook.com/docs/instagram-platform/content-publishing"""

import json
import re
from collections import Counter

from platforms.base import JPEG, MB, MP4, QUICKTIME, Connected, ImageLimits, Limits, PostType, Problem, Profile, VideoLimits
from platforms.containers import Containers
from platforms.errors import Disconnected, Rejected
from platforms.http import THROTTLED
from platforms.meta import (QUOTA_PAUSE, UNSEEN, VERDICTS, Commenting, FacebookLogin, SelfRenewing, Transient, Verdicts,
                            identity, not_yet, transferred, word)

PHOTO = ImageLimits(types=(JPEG,), max_bytes=8 * MB, min_aspect_ratio=4 / 5, max_aspect_ratio=1.91)    # widths are scaled
STORY_PHOTO = ImageLimits(types=(JPEG,), max_bytes=8 * MB)
REEL = VideoLimits(types=(MP4, QUICKTIME), max_bytes=300 * MB, max_width=1920, min_aspect_ratio=0.01, max_aspect_ratio=10,
                   min_duration=3, max_duration=15 * 60)
# Also for the videos of a carousel, whose bounds are no longer documented: these were the last ones given for feed videos.
SHORT = VideoLimits(types=(MP4, QUICKTIME), max_bytes=100 * MB, max_width=1920, min_aspect_ratio=0.1, max_aspect_ratio=10,
                    min_duration=3, max_duration=60)
PRODUCTS = 5        # tags of one file: reference/ig-user/media
FEED = ("collaborators", "locationId", "isAiGenerated", "isPaidPartnership", "brandedContentSponsorIds", "productTags",
        "firstComment", "disableComments")
OF_PAGES = ("productTags", "music")     # what only accounts that are connected through their Page may have

# What Instagram itself takes for a tag is not documented: an address of mail or a fragment of a URL is surely none.
CAPTION_TAGS = (("caption_hashtags", "hashtags", re.compile(r"(?<![\w/&])#\w"), 30),
                ("caption_mentions", "mentions", re.compile(r"(?<![\w.])@\w"), 20))
# Option of ours: parameter of a container, for posts of the feed and reels.
PARAMETERS = {"locationId": "location_id", "isAiGenerated": "is_ai_generated", "isPaidPartnership": "is_paid_partnership",
              "coverUrl": "cover_url", "thumbOffsetMs": "thumb_offset", "shareToFeed": "share_to_feed",
              "audioName": "audio_name"}
LISTS = {"collaborators": "collaborators", "brandedContentSponsorIds": "branded_content_sponsor_ids"}       # the same, as JSON
MUSIC = {"audioId": "audio_id", "audioVolume": "audio_volume", "videoVolume": "video_volume"}
PROFILE = "id,username,name,profile_picture_url"
# The addresses for the setting `login` = `instagram`: accounts that belong to no Facebook Page, without another app's login.
LOGINS = ("facebook", "instagram")
OWN_LOGIN = {"api_url": "https://graph.instagram.com/{version}", "authorize_url": "https://www.instagram.com/oauth/authorize",
             "token_url": "https://api.instagram.com/oauth/access_token", "exchange_url": "https://graph.instagram.com"}
OWN_SCOPES = ("instagram_business_basic", "instagram_business_content_publish", "instagram_business_manage_comments")


class Instagram(Containers, Commenting, FacebookLogin, SelfRenewing):
    """A professional Instagram account, connected through its Facebook Page, or by a login of Instagram's own.

    Not offered: polls and comment prompts, for whose answers the API's documentation names no parameters.
    """

    name = "instagram"
    title = "Instagram"
    limits = Limits(
        caption=2200,       # the unit is not documented
        media_items=10, image=PHOTO, video=REEL,
        source="https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/ig-user/media",
        reviewed_at="2026-11-21")
    post_types = {
        "image": PostType(images=(1, 1), options=("altTexts", *FEED)),
        "carousel": PostType(images=(0, 10), videos=(0, 10), total=(2, 10), mixed=True, video=SHORT,
                             options=("altTexts", *FEED)),
        "reel": PostType(videos=(1, 1), options=(*FEED, "coverUrl", "thumbOffsetMs", "shareToFeed", "audioName", "music",
                                                 "trialGraduation")),
        "story": PostType(images=(0, 1), videos=(0, 1), total=(1, 1), caption=0, image=STORY_PHOTO, video=SHORT),
    }
    options = ("userTags",)
    follow_options = ("firstComment", "disableComments")
    live = True
    settings = {**FacebookLogin.settings, "login": "facebook", "token_url": "", "exchange_url": "",
                "upload_url": "https://rupload.facebook.com/ig-api-upload/{version}", "public_url": "https://www.instagram.com"}
    # Tags of products need instagram_shopping_tag_products and catalog_management as well: see the setting `scopes`.
    scopes = ("instagram_basic", "instagram_content_publish", "instagram_manage_comments", "pages_show_list",
              "pages_read_engagement", "business_management")
    exchange, renewal = "ig_exchange_token", "ig_refresh_token"
    edge, publishing, state, reason, text = "media", "media_publish", "status_code", "status", "caption"
    comment_text, comment_author = "text", "username"
    passing = re.compile("2207003|2207020|2207032|2207052|2207053|2207082|2207085")
    hiccups = frozenset({"2207003", "2207006", "2207020", "2207032", "2207052", "2207053", "2207082", "2207085"})
    unseen = frozenset({"100/33", "24/2207008", "24/2207006", "-2/2207020", "9007/2207027"})
    misleading = frozenset({"4/2207051"})
    verdicts = Verdicts({
        **VERDICTS, **dict.fromkeys(("80002", "9/2207042"), THROTTLED), "-1/2207001": Transient,
        **dict.fromkeys(("4/2207051", "25/2207050", "1/2207057"), Rejected),    # spam; an account that its owner has to see to
    })
    waits = Verdicts({"9/2207042": QUOTA_PAUSE})

    def __init__(self, http=None, settings=None):
        login = (settings or {}).get("login", "facebook")
        if login not in LOGINS:
            raise ValueError(f"POSTHORN_INSTAGRAM_LOGIN must be one of {', '.join(LOGINS)}")
        own = login == "instagram"
        super().__init__(http, {**(OWN_LOGIN if own else {}), **(settings or {})})
        self._login = SelfRenewing if own else FacebookLogin
        if own and not self.settings["scopes"]:
            self.scopes = OWN_SCOPES

    def tokens(self, form):
        """Of the login that is set."""
        return self._login.tokens(self, form)

    def refresh_due(self, account):
        """Of the login that is set; and where the account came by the other one, so that `refresh` says so."""
        return self._of_other_login(account) or self._login.refresh_due(self, account)

    def refresh(self, account, force=False):
        """Of the login that is set. Raises Disconnected for an account that came by the other one."""
        if self._of_other_login(account):
            raise Disconnected("the login of Instagram was changed on this server (POSTHORN_INSTAGRAM_LOGIN) after this "
                               "account was connected: connect it again")
        return self._login.refresh(self, account, force)

    def proof(self, token):
        """Of the login that is set."""
        return self._login.proof(self, token)

    def choices(self, credentials):
        """The accounts of this person's Pages; with Instagram's own login the one that logged in."""
        token = credentials["accessToken"]
        if self._login is SelfRenewing:
            return [Connected(self._me(token), "", credentials)]
        found = []
        for answer, place in self.pages(token, f"id,access_token,tasks,instagram_business_account{{{PROFILE}}}"):
            theirs = (*place, "instagram_business_account")
            if answer.field(*theirs, kind=dict, default=None):
                keys = {"accessToken": answer.field(*place, "access_token"), "userToken": token,
                        "pageId": identity(answer, *place)}
                found.append(Connected(_profile(answer, *theirs), "", keys))
        if not found:
            raise Rejected("this login shows no professional Instagram account: it has to be linked to a Facebook Page that "
                           "you allow here", rule="accounts")
        return found

    def profile(self, account):
        """Who the account is. Its picture's address ends by itself."""
        if self._login is SelfRenewing:
            return self._me(account.credentials["accessToken"])
        return _profile(self.call(account, "GET", f"/{account.platform_id}", query={"fields": PROFILE}))

    def page(self, account):
        """Where the account's posts are shown."""
        return f"{self.settings['public_url']}/{account.username}/"

    def takes_bytes(self, item):
        """Videos of accounts with a Page; for the others the API's documentation names only addresses."""
        return item.is_video and self._login is FacebookLogin

    def fill(self, account, item, container, begun):
        """Sends a video, from where it stopped."""
        offset = 0
        if begun:
            offset = transferred(self.call(account, "GET", f"/{container}", query={"fields": "video_status"}), "video_status")
        self.upload(account, container, item, offset)

    def posts_of(self, content):
        """Stories are listed by themselves."""
        return "stories" if self.kind(content) == "story" else "media"

    def wrote(self, account, answer, *place):
        """By the username."""
        return answer.field(*place, "username", default="") == account.username

    def whole(self, content, children):
        """The parameters of the container of the post."""
        kind, options = self.kind(content), content.options
        if kind == "story":
            return {"media_type": "STORIES", **self._file(content, 0)}
        own = {name: word(options[ours]) for ours, name in PARAMETERS.items() if ours in options}
        own |= {name: json.dumps(options[ours]) for ours, name in LISTS.items() if ours in options}
        own["caption"] = content.caption
        if kind == "carousel":
            return {"media_type": "CAROUSEL", "children": ",".join(children), **own}
        if kind == "image":
            return {**self._image(content, 0), **own}
        if "trialGraduation" in options:
            own["trial_params"] = json.dumps({"graduation_strategy": options["trialGraduation"]})
        if music := options.get("music"):
            own["audio_configuration"] = json.dumps({name: music[ours] for ours, name in MUSIC.items() if ours in music})
        return {"media_type": "REELS", **self._file(content, 0), **own}

    def part(self, content, position):
        """The parameters of the container of one file of a carousel."""
        if content.media[position].is_video:
            return {"media_type": "VIDEO", "is_carousel_item": "true", **self._file(content, position)}
        return {"is_carousel_item": "true", **self._image(content, position)}

    def follow(self, account, content, receipt):
        """Writes the first comment, or closes the comments."""
        yield from super().follow(account, content, receipt)
        if not content.options.get("disableComments") or "closed" in receipt:
            return
        post = receipt["public"]["id"]
        if not post:
            raise Rejected("Instagram does not say which post is ours, so that its comments stay open", rule="comment")
        try:
            self.call(account, "POST", f"/{post}", form={"comment_enabled": "false"})       # twice does no harm
        except Rejected as error:
            raise not_yet(self.title, error, content.since_sending) if error.platform_code == UNSEEN else error
        yield {**receipt, "closed": True}

    def _of_other_login(self, account):
        return ("pageId" in account.credentials) == (self._login is SelfRenewing)

    def _me(self, token):
        """Who logged in; `id` would be another one for every app."""
        answer = self.read(token, "/me", fields="user_id,username,name,profile_picture_url")
        place = ("data", 0) if answer.field("data", kind=list, default=[]) else ()          # both shapes are in use
        return _profile(answer, *place, name="user_id")

    def _image(self, content, position):
        texts = content.options.get("altTexts", ())
        return {**self._file(content, position), "alt_text": texts[position] if position < len(texts) else None}

    def _file(self, content, position):
        """The parameters of a file, and of who and what is tagged in it."""
        item = content.media[position]
        place = {"upload_type": "resumable"} if self.takes_bytes(item) else {
            "video_url" if item.is_video else "image_url": item.url}
        return {**place, "user_tags": _tags(content, "userTags", position),
                "product_tags": _tags(content, "productTags", position)}

    def extra_problems(self, post_type, content):
        """Counts of hashtags and mentions, what tags and texts of files have to fit to, and what excludes each other."""
        for rule, noun, pattern, most in CAPTION_TAGS:
            count = len(pattern.findall(content.caption))
            if count > most:
                yield Problem("caption", rule, f"the caption has {count} {noun}; Instagram allows {most}")
        yield from _alt_text_problems(content)
        yield from _tag_problems("userTags", "user_tags", post_type, content)
        yield from _tag_problems("productTags", "product_tags", post_type, content)
        if self._login is SelfRenewing:
            yield from (Problem(f"options/{name}", "login", f"{name} needs an account that is connected by its Facebook Page")
                        for name in OF_PAGES if name in content.options)
        if content.options.get("disableComments") and "firstComment" in content.options:
            yield Problem("options/firstComment", "comments", "a post without comments has no first one")
        yield from _cover_problems(content)


def _cover_problems(content):
    offset = content.options.get("thumbOffsetMs")
    if offset is not None:
        if "coverUrl" in content.options:
            yield Problem("options/thumbOffsetMs", "one_cover", "a reel has one cover: coverUrl or thumbOffsetMs")
        if any(item.duration is not None and offset >= item.duration * 1000 for item in content.media):
            yield Problem("options/thumbOffsetMs", "thumb_offset", f"the video ends before {offset} milliseconds")


def _alt_text_problems(content):
    texts = content.options.get("altTexts", ())
    for position, (text, item) in enumerate(zip(texts, content.media)):
        if text and item.is_video:
            yield Problem(f"options/altTexts/{position}", "alt_texts", "Instagram takes alternative texts of images only")


def _tag_problems(option, rule, post_type, content):
    """What is wrong with the tags of people, or of products, whose places are the same but that stories have none of them."""
    counts = Counter()
    for position, tag in enumerate(content.options.get(option, ())):
        path, index = f"options/{option}/{position}", tag.get("media", 0)
        counts[index] += 1
        if index >= len(content.media):
            yield Problem(f"{path}/media", rule, f"the post has {len(content.media)} media, counted from 0")
        elif option == "productTags" and counts[index] == PRODUCTS + 1:
            yield Problem(path, rule, f"Instagram takes {PRODUCTS} products on one of the media")
        elif post_type == "carousel" and content.media[index].is_video:
            yield Problem(f"{path}/media", rule, "Instagram takes no tags on a video of a carousel")
        elif post_type in ("image", "carousel") and not {"x", "y"} <= tag.keys():
            yield Problem(path, rule, "a tag on an image needs x and y")
        elif post_type == "reel" and {"x", "y"} & tag.keys():
            yield Problem(path, rule, "a tag on a reel takes neither x nor y")


def _profile(answer, *place, name="id"):
    username = answer.field(*place, "username")
    return Profile(identity(answer, *place, name=name), username, answer.field(*place, "name", default="") or username,
                   answer.link(*place, "profile_picture_url", default=None))


def _tags(content, option, position):
    tags = [{{"productId": "product_id"}.get(name, name): value for name, value in tag.items() if name != "media"}
            for tag in content.options.get(option, ()) if tag.get("media", 0) == position]
    return json.dumps(tags) if tags else None
