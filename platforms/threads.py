"""Threads: https://developers.facebook.com/documentation/threads/posts"""

import json
import re

from platforms.base import (JPEG, MB, MP4, PNG, QUICKTIME, ImageLimits, Limits, PostType, Problem, Profile, Published,
                            VideoLimits, Waiting)
from platforms.containers import FINISHED, IN_PROGRESS, PUBLISHED, Containers
from platforms.errors import PermissionMissing, Rejected, Unavailable
from platforms.http import THROTTLED
from platforms.meta import QUOTA_PAUSE, SETTLED, VERDICTS, Meta, SelfRenewing, Verdicts, identity, not_yet, word
from platforms.text import emoji_as_bytes, utf16_units

PHOTO = ImageLimits(types=(JPEG, PNG), max_bytes=8 * MB, max_aspect_ratio=10)       # widths are scaled
VIDEO = VideoLimits(types=(MP4, QUICKTIME), max_bytes=1024 * MB, max_width=1920, min_aspect_ratio=0.01, max_aspect_ratio=10,
                    max_duration=300)
LINKS = 5       # documentation/threads/create-posts/text-attachments: different ones, those of the text and the attached one
LINK = re.compile(r"(?:https?://|\bwww\.)\S*[^\s.,;:!?)\]'\"]", re.IGNORECASE)
MEDIA_OPTIONS = ("altTexts", "isSpoilerMedia")
# Option of ours: parameter of the container of a post.
PARAMETERS = {"replyControl": "reply_control", "enableReplyApprovals": "enable_reply_approvals", "topicTag": "topic_tag",
              "locationId": "location_id", "quotePostId": "quote_post_id", "linkAttachment": "link_attachment",
              "isSpoilerMedia": "is_spoiler_media", "isGhostPost": "is_ghost_post", "replyToId": "reply_to_id"}
STORIES = {"light": "crossreshare_to_ig", "dark": "crossreshare_to_ig_dark_mode"}       # parameters for shareToInstagram
GHOSTLY = {"isGhostPost", "textSpoilers"}       # documentation/threads/create-posts/ghost-posts: all that a ghost post may have
POLL = {"optionA": "option_a", "optionB": "option_b", "optionC": "option_c", "optionD": "option_d"}
REPLY_PAUSE = 2.0           # seconds until a reply, which is a text, is ready to be published


class Threads(Containers, SelfRenewing):
    """A Threads profile. Not offered: reposts, which are no posts of ours."""

    name = "threads"
    title = "Threads"
    limits = Limits(caption=500, media_items=20, image=PHOTO, video=VIDEO,
                    source="https://developers.facebook.com/documentation/threads/posts", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True, options=("gifId", "textAttachment", "isGhostPost")),
        "image": PostType(images=(1, 1), options=MEDIA_OPTIONS),
        "video": PostType(videos=(1, 1), options=MEDIA_OPTIONS),
        "carousel": PostType(images=(0, 20), videos=(0, 20), total=(2, 20), mixed=True, options=MEDIA_OPTIONS),
        "poll": PostType(caption_required=True, required=("poll",)),
        "link": PostType(required=("linkAttachment",), options=("textAttachment",)),
    }
    options = ("replyControl", "enableReplyApprovals", "topicTag", "textSpoilers", "locationId", "quotePostId", "replyToId",
               "allowlistedCountryCodes", "shareToInstagram", "thread", "firstComment")
    follow_options = ("thread", "firstComment")
    counts = "characters (an emoji counts its UTF-8 bytes)"
    live = True
    # Not every app may ask for threads_location_tagging (places), threads_share_to_instagram, and threads_read_replies (to find
    # an answer to somebody again): see the setting `scopes`.
    scopes = ("threads_basic", "threads_content_publish", "threads_manage_replies")
    settings = {**Meta.settings, "api_url": "https://graph.threads.net/v1.0", "exchange_url": "https://graph.threads.net",
                "authorize_url": "https://threads.com/oauth/authorize",
                "token_url": "https://graph.threads.net/oauth/access_token", "public_url": "https://www.threads.com"}
    exchange, renewal = "th_exchange_token", "th_refresh_token"
    edge, publishing, state, reason, text = "threads", "threads_publish", "status", "error_message", "text"
    passing = re.compile("FAILED_DOWNLOADING_VIDEO|UNKNOWN")
    hiccups = frozenset({"2207052", "2207003"})
    unseen = frozenset({"24/4279009", "100/33"})
    misleading = frozenset({"4/2207051", "10/2207051"})
    verdicts = Verdicts({
        **VERDICTS, "9/2207042": THROTTLED,     # the quota of a day, if it is told as Instagram tells its own
        **dict.fromkeys(("/2207051", "/4279013", "1/2207052"), Rejected),       # spam; a restricted user; a file
    })
    waits = Verdicts({"9/2207042": QUOTA_PAUSE})

    def measure(self, caption):
        """Code points, but emojis in UTF-8 bytes."""
        return emoji_as_bytes(caption)

    def extra_problems(self, post_type, content):
        """At most five links; replies within the limits of a post; passages within their text; what excludes each other."""
        options = content.options
        attachment = options.get("textAttachment", {})
        links = options.get("linkAttachment"), attachment.get("linkAttachmentUrl")
        yield from _link_problems("caption", content.caption, *links)
        yield from _passage_problems("options/textSpoilers", options.get("textSpoilers", ()), content.caption)
        yield from _passage_problems("options/textAttachment/textWithStylingInfo", attachment.get("textWithStylingInfo", ()),
                                     attachment.get("plaintext", ""))
        if all(links):
            yield Problem("options/textAttachment/linkAttachmentUrl", "one_link",
                          "a post with a linkAttachment takes no other one in its textAttachment")
        if options.get("isGhostPost"):
            yield from (Problem(f"options/{name}", "ghost_post", "a ghost post takes no other option than textSpoilers")
                        for name in options if name not in GHOSTLY)
        for path, text in _replies(options):
            yield from _link_problems(path, text)
        yield from self.thread_problems(content)
        if (length := self.measure(options.get("firstComment", ""))) > self.limits.caption:
            yield Problem("options/firstComment", "comment_length",
                          f"the reply has {length} {self.counts}; Threads allows {self.limits.caption}")
        if attachment and not attachment["plaintext"].strip():
            yield Problem("options/textAttachment/plaintext", "text_required", "a long text needs one")
        poll = options.get("poll", {})
        yield from (Problem(f"options/poll/{name}", "text_required", "an option of a poll needs a text")
                    for name, text in poll.items() if not text.strip())
        if "optionD" in poll and "optionC" not in poll:
            yield Problem("options/poll/optionC", "required", "a poll with optionD needs optionC")

    def profile(self, account):
        """Who the account is. Its picture's address ends by itself."""
        fields = "id,username,name,threads_profile_picture_url"
        answer = self.call(account, "GET", "/me", query={"fields": fields})
        username = answer.field("username")
        return Profile(identity(answer), username, answer.field("name", default="") or username,
                       answer.link("threads_profile_picture_url", default=None))

    def page(self, account):
        """Where the account's posts are shown."""
        return f"{self.settings['public_url']}/@{account.username}"

    def posts_of(self, content):
        """Answers are listed by themselves."""
        return "replies" if "replyToId" in content.options else self.edge

    def whole(self, content, children):
        """The parameters of the container of the post."""
        options = content.options
        own = {name: word(options[ours]) for ours, name in PARAMETERS.items() if ours in options}
        own |= {"text": content.caption, "allowlisted_country_codes": ",".join(options.get("allowlistedCountryCodes", ()))}
        if "shareToInstagram" in options:
            own[STORIES[options["shareToInstagram"]]] = "true"
        if "textSpoilers" in options:
            own["text_entities"] = json.dumps([{"entity_type": "SPOILER", **_units(passage, content.caption)}
                                               for passage in options["textSpoilers"]])
        if children:
            return {"media_type": "CAROUSEL", "children": ",".join(children), **own}
        if content.media:
            return {**_file(content, 0), **own}
        return {"media_type": "TEXT", **own, **_attached(options)}

    def part(self, content, position):
        """The parameters of the container of one file of a carousel."""
        return {**_file(content, position), "is_carousel_item": "true"}

    def follow(self, account, content, receipt):
        """Publishes the further parts, each as a reply to the one before, and then the first comment as one to the post."""
        done = receipt.get("replies", [])
        for path, text in list(_replies(content.options))[len(done):]:
            chained = done and path != "options/firstComment"
            target = done[-1] if chained else receipt["public"]["id"]
            if target is None:
                raise Rejected("Threads does not say which post is ours, so that it gets no replies", rule="comment")
            media = yield from self._reply(account, content.since_sending, text, target, receipt)
            done = [*done, media.id]
            receipt = {name: value for name, value in receipt.items() if name != "reply"} | {"replies": done}
            yield receipt

    def _reply(self, account, now, text, target, receipt):
        """Makes a container for a reply, and publishes it unless it is public. `now` is seconds since the post was sent."""
        if "reply" not in receipt:
            receipt = {**receipt, "reply": {"begunAt": now}}
            yield receipt
        reply = receipt["reply"]
        age = now - reply["begunAt"]
        if "container" not in reply:
            parameters = {"media_type": "TEXT", "text": text, "reply_to_id": target}
            reply = {**reply, "container": self._soon(age, self.create, account, parameters)}
            yield {**receipt, "reply": reply}
        while (media := self._settle(account, now, reply, text)) == IN_PROGRESS:
            yield Waiting({**receipt, "reply": reply}, REPLY_PAUSE)
        if media is None:
            yield {**receipt, "reply": {**reply, "sentAt": now}}
            media = Published(self._soon(age, self.publish_container, account, reply["container"]), "")
        return media

    def _settle(self, account, now, reply, text):
        """The reply that a container has become, IN_PROGRESS, or None where it is ready to be published."""
        age = now - reply["begunAt"]
        answer = self._soon(age, self.look, account, reply["container"])
        state = answer.field(self.state)
        if state == PUBLISHED:
            return self._seek_reply(account, text, age)
        if state == IN_PROGRESS:
            return IN_PROGRESS
        if state != FINISHED:
            raise Rejected("Threads could not make a reply", rule="comment", platform_code=state,
                           platform_message=answer.field(self.reason, default=None))
        if "sentAt" in reply and now < (settled := reply["sentAt"] + SETTLED):
            raise Unavailable("Threads has not published a reply yet", retry_after=settled - now)
        return None

    def _seek_reply(self, account, text, age):
        try:
            return self.seek(account, "replies", text, age)
        except PermissionMissing:       # threads_read_replies, which nothing else needs
            return Published(None, self.page(account))

    def _soon(self, age, verb, *arguments):
        """What `verb` brings, which at first may not find the container, or the post that is answered."""
        try:
            return verb(*arguments)
        except Rejected as error:
            raise not_yet(self.title, error, age) if error.platform_code in self.unseen else error


def _replies(options):
    """(path, text) of what is to follow the post, in this order."""
    for position, text in enumerate(options.get("thread", ())):
        yield f"options/thread/{position}", text
    if "firstComment" in options:
        yield "options/firstComment", options["firstComment"]


def _link_problems(path, text, *attached):
    links = {*LINK.findall(text), *attached} - {None}
    if len(links) > LINKS:
        yield Problem(path, "caption_links", f"the post has {len(links)} different links; Threads allows {LINKS}")


def _passage_problems(path, passages, text):
    free = 0
    for position, passage in sorted(enumerate(passages), key=lambda numbered: numbered[1]["offset"]):
        end = passage["offset"] + passage["length"]
        if passage["offset"] < free:
            yield Problem(f"{path}/{position}", "passage", "this passage overlaps with the one before it")
        if end > len(text):
            yield Problem(f"{path}/{position}", "passage", f"it ends after the text, which has {len(text)} characters")
        free = max(free, end)


def _units(passage, text):
    """A passage in UTF-16 units: the documentation names none, and publishers have found it to be these."""
    start = passage["offset"]
    return {"offset": utf16_units(text[:start]), "length": utf16_units(text[start:start + passage["length"]])}


def _attached(options):
    """The parameters of what only a text may have."""
    found = {}
    if poll := options.get("poll"):
        found["poll_attachment"] = {name: poll[ours] for ours, name in POLL.items() if ours in poll}
    if "gifId" in options:
        found["gif_attachment"] = {"gif_id": options["gifId"], "provider": "GIPHY"}
    if long := options.get("textAttachment"):
        styles = [{**_units(passage, long["plaintext"]), "styling_info": passage["stylingInfo"]}
                  for passage in long.get("textWithStylingInfo", ())]
        link = {"link_attachment_url": long["linkAttachmentUrl"]} if "linkAttachmentUrl" in long else {}
        looks = {"text_with_styling_info": styles} if styles else {}
        found["text_attachment"] = {"plaintext": long["plaintext"], **link, **looks}
    return {name: json.dumps(value) for name, value in found.items()}


def _file(content, position):
    item, texts = content.media[position], content.options.get("altTexts", ())
    kind = "video" if item.is_video else "image"
    return {"media_type": kind.upper(), f"{kind}_url": item.url, "alt_text": texts[position] if position < len(texts) else None}
