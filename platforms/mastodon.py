"""Mastodon, on any instance: https://docs.joinmastodon.org/client/intro/"""

import copy
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from platforms.base import (GIF, JPEG, MP4, PNG, QUICKTIME, WEBM, WEBP, Absent, Account, Authorization, Connected, ImageLimits,
                            Limits, PostType, Problem, Profile, Published, VideoLimits, Waiting)
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.http import Upload
from platforms.oauth import OAuthPlatform
from platforms.text import graphemes, mastodon_length

# What an instance says of itself under `configuration`: the part that it stands in, and what Mastodon's own code has.
TERMS = {
    "max_characters": ("statuses", 500), "max_media_attachments": ("statuses", 4),
    "characters_reserved_per_url": ("statuses", 23),
    "image_size_limit": ("media_attachments", 16_777_216), "image_matrix_limit": ("media_attachments", 33_177_600),
    "video_size_limit": ("media_attachments", 103_809_024),
    "video_matrix_limit": ("media_attachments", 8_294_400), "description_limit": ("media_attachments", 1500),
    "max_options": ("polls", 4), "max_characters_per_option": ("polls", 50),
    "min_expiration": ("polls", 300), "max_expiration": ("polls", 2_629_746),
}
QUOTES_SINCE = 7                    # api_versions.mastodon of version 4.5; older ones drop the parameter without a word
TERMS_LAST = timedelta(days=1)
REDIRECTS = (301, 302, 307, 308)
EXTENSIONS = {JPEG: "jpg", PNG: "png", GIF: "gif", WEBP: "webp", MP4: "mp4", QUICKTIME: "mov", WEBM: "webm"}
APP_NAME, APP_SITE = "Posthorn", "https://github.com/posthorn/posthorn"     # as the person who allows it sees us
LISTED = 40                         # statuses in a page, the most that there are
SKEW = timedelta(minutes=2)         # that the clocks of the database and an instance may drift apart, and answers be late
BROKEN_FILE = "Error processing thumbnail for uploaded media"       # the server's own constant, in no other language
# Option of ours: parameter of a status; the second are for the first part of a thread alone.
PARAMETERS = {"visibility": "visibility", "spoilerText": "spoiler_text", "sensitive": "sensitive", "language": "language",
              "quotePolicy": "quote_approval_policy"}
RELATIONS = {"inReplyToId": "in_reply_to_id", "quotedStatusId": "quoted_status_id"}


class Mastodon(OAuthPlatform):
    """A Mastodon account, connected in the browser by an app that registers itself, or with an access token of its own.

    Left out: what only forks of Mastodon take (Markdown), sound, which Posthorn does not store, and `scheduled_at`, with which
    an instance ignores the key that keeps a status from being posted twice: the plan is Posthorn's own.
    """

    name = "mastodon"
    title = "Mastodon"
    terms = {**{name: value for name, (_, value) in TERMS.items()}, "api_version": QUOTES_SINCE}
    limits = Limits(
        caption=500, media_items=4,
        image=ImageLimits(types=(JPEG, PNG, GIF, WEBP), max_bytes=16_777_215,       # the size has to be below the limit
                          max_pixels=33_177_600),
        video=VideoLimits(types=(MP4, QUICKTIME, WEBM), max_bytes=103_809_023),
        source="https://docs.joinmastodon.org/user/posting/", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True),
        "image": PostType(images=(1, 4), options=("altTexts", "focalPoints")),
        "video": PostType(images=(0, 1), videos=(1, 1), mixed=True, options=("altTexts", "focalPoints")),   # the image: a cover
        "poll": PostType(caption_required=True, required=("poll",)),
    }
    options = (*PARAMETERS, *RELATIONS, "thread")
    follow_options = ("thread",)
    media_options = ("altTexts", "focalPoints")
    counts = "characters (URLs and mentions count as Mastodon shortens them)"
    live = True
    # The server answers the same key with the same status for an hour, before it looks at anything else (its
    # PostStatusService); ten minutes of it are left for what is under way.
    dedupes_for = timedelta(minutes=50)
    bare = {"media": []}
    connect_fields = ("host", "accessToken")
    takes_instance = needs_instance = True
    scopes = ("read:accounts", "read:statuses", "write:statuses", "write:media")
    verdicts = {410: Unavailable}       # an instance that moves, or closes

    def measure(self, caption):
        """Grapheme clusters, with a fixed length for URLs and without the domains of mentions."""
        return mastodon_length(caption, url_length=self.terms["characters_reserved_per_url"])

    def length(self, content):
        """A content warning counts with the text."""
        spoiler = content.options.get("spoilerText", "")
        return mastodon_length(content.caption, spoiler, self.terms["characters_reserved_per_url"])

    def for_account(self, account):
        """With the terms of the account's instance, as they were when last asked for."""
        here = copy.copy(self)
        here.terms = {**self.terms, **account.credentials.get("instance", {})}
        most = here.terms["max_media_attachments"]
        here.limits = replace(self.limits, caption=here.terms["max_characters"], media_items=most,
                              image=replace(self.limits.image, max_bytes=here.terms["image_size_limit"] - 1,
                                            max_pixels=here.terms["image_matrix_limit"]),
                              video=replace(self.limits.video, max_bytes=here.terms["video_size_limit"] - 1))
        here.post_types = {**self.post_types, "image": replace(self.post_types["image"], images=(1, most))}
        return here

    def extra_problems(self, post_type, content):
        """The instance's terms for videos, alternative texts, polls and quotes."""
        terms, options = self.terms, content.options
        for position, item in enumerate(content.media):
            if item.is_video and (item.width or 0) * (item.height or 0) > terms["video_matrix_limit"]:
                yield Problem(f"media/{position}", "media_pixels", f"the video has {item.width} x {item.height} pixels; "
                                                                   f"{terms['video_matrix_limit']} are allowed in all")
        for position, text in enumerate(options.get("altTexts", ())):
            if len(text) > terms["description_limit"]:
                yield Problem(f"options/altTexts/{position}", "alt_text_length",
                              f"the alternative text has {len(text)} characters; {terms['description_limit']} are allowed")
        if "poll" in options:
            yield from self._poll_problems(options["poll"])
        if "quotedStatusId" in options and terms["api_version"] < QUOTES_SINCE:
            yield Problem("options/quotedStatusId", "quote", "the instance of this account knows no quotes, which came with "
                                                             "Mastodon 4.5")
        yield from self.thread_problems(content)

    def connect(self, fields):
        """With the `host` of the instance, as people name it, and an `accessToken` that was made in its settings."""
        try:
            return self._connected(self.http.origin(fields["host"]), fields["accessToken"].strip())
        except (Disconnected, PermissionMissing) as refusal:
            raise Rejected("this instance does not accept the access token for reading its account", rule="credentials",
                           platform_code=refusal.platform_code, platform_message=refusal.platform_message) from None

    def authorize(self, redirect_url, state, instance=None):
        """The page of the instance, with which an app is registered for this one time: nobody knows how long it keeps one."""
        try:
            origin, _ = self._read_instance(self.http.origin(instance), None)
            app = self.send("POST", f"{origin}/api/v1/apps", json={"client_name": APP_NAME, "redirect_uris": redirect_url,
                                                                   "scopes": " ".join(self.scopes), "website": APP_SITE})
        except (Disconnected, PermissionMissing) as refusal:
            raise Rejected("this instance registers no apps", rule="host", platform_code=refusal.platform_code,
                           platform_message=refusal.platform_message) from None
        there = {"origin": origin, "client_id": app.field("client_id"), "client_secret": app.field("client_secret")}
        asked = super(Mastodon, self._at(there)).authorize(redirect_url, state)
        return Authorization(asked.url, {**asked.kept, **there})

    def redeem(self, answer, redirect_url, kept):
        """At the instance where the app is registered."""
        return super(Mastodon, self._at(kept)).redeem(answer, redirect_url, kept)

    def choices(self, credentials):
        """The one account that has logged in. Its token does not end, whatever the standard says of answers without a time."""
        return [self._connected(self.settings["origin"], credentials["accessToken"])]

    def profile(self, account):
        """Who the account is; the name with the domain of its instance."""
        answer = self._call(account, "GET", "/api/v1/accounts/verify_credentials")
        name = answer.field("username")
        return Profile(answer.field("id"), f"{name}@{account.credentials['instance']['domain']}",
                       answer.field("display_name", default="") or name, answer.link("avatar", default=None))

    def prepare(self, account, content, receipt):
        """Uploads the media, and waits until the instance has processed them."""
        if "media" not in receipt:
            receipt = {"media": []}
            yield receipt
        for position in _attached(content)[len(receipt["media"]):]:
            receipt = {**receipt, "media": [*receipt["media"], self._upload(account, content, position, receipt)]}
            yield receipt
        for position, one in enumerate(receipt["media"]):
            while not one["ready"]:
                state = self._state(account, one)
                if state == "lost":
                    raise Unavailable("Mastodon has lost the uploaded media", receipt={**receipt, "media": []})
                if state == "ready":
                    one = {**one, "ready": True}
                    receipt = {**receipt, "media": [*receipt["media"][:position], one, *receipt["media"][position + 1:]]}
                yield receipt if one["ready"] else Waiting(receipt)

    def publish(self, account, content, receipt):
        """Posts the status, in every try under the same key."""
        status = {**_parameters(content, {**PARAMETERS, **RELATIONS}), "status": content.caption,
                  "media_ids": [one["id"] for one in receipt["media"]]}
        if poll := content.options.get("poll"):
            status["poll"] = {"options": poll["options"], "expires_in": poll["expiresIn"],
                              "multiple": poll.get("multiple", False), "hide_totals": poll.get("hideTotals", False)}
        try:
            answer = self._post(account, status, content.key)
        except Rejected:
            # The text of a refusal is in the instance's language; whether the media are its reason, they themselves say.
            states = {self._state(account, one) for one in receipt["media"]}
            if "lost" in states:
                return self._published_before(account, content, receipt)
            if "processing" in states:
                raise Unavailable("Mastodon still processes the media", retry_after=5) from None
            raise
        return _published(answer)

    def follow(self, account, content, receipt):
        """The further parts of the thread, each under a key of its own: sent again within the hour, it is the same."""
        receipt = {"parts": [], "partAt": None, **receipt}
        texts, before = content.options["thread"], [receipt["public"]["id"], *receipt["parts"]]
        if receipt["partAt"] is not None and content.since_sending - receipt["partAt"] > self.dedupes_for.total_seconds():
            raise Rejected("Mastodon did not confirm the next part of the thread: whether it is there cannot be found out",
                           rule="thread")
        for number in range(len(receipt["parts"]), len(texts)):
            if receipt["partAt"] is None:
                receipt = {**receipt, "partAt": content.since_sending}      # by the database's clock, as the next run knows it
                yield receipt
            status = {**_parameters(content), "status": texts[number], "in_reply_to_id": before[-1]}
            try:
                before.append(self._post(account, status, f"{content.key}-{number + 1}").field("id"))
            except Unavailable:
                yield {**receipt, "partAt": None}       # surely not sent
                raise
            receipt = {**receipt, "parts": before[1:], "partAt": None}
            yield receipt

    def find(self, account, content, receipt):
        """Looks through the newest statuses of the account; None where the token may not read them."""
        if "media" not in receipt:
            return Absent()
        try:
            answer = self._call(account, "GET", f"/api/v1/accounts/{_segment(account.platform_id)}/statuses",
                                query={"limit": LISTED, "exclude_reblogs": "true"})
            # By the clocks of the database and of the instance: that of this machine may be wrong.
            since = _stamp(answer.moment() - timedelta(seconds=content.sent_ago) - SKEW)
            listed = answer.field(kind=list)
            recent = [position for position in range(len(listed)) if answer.field(position, "created_at") >= since]
            for position in recent:
                if self._is_ours(account, content, receipt, answer, position):
                    return _published(answer, position)
        except (PermissionMissing, Rejected):
            return None
        return Absent() if len(recent) < LISTED else None

    def refresh_due(self, account):
        """Tokens last until somebody revokes them. What gets old are the terms of the instance."""
        return account.credentials["instance"]["readAt"] <= _stamp(datetime.now(UTC) - TERMS_LAST)

    def refresh(self, account, force=False):
        """Reads the terms of the instance anew."""
        if force or not self.refresh_due(account):
            return None
        try:
            _, instance = self._read_instance(account.host, account.credentials["accessToken"])
        except PlatformError:
            return None         # the old ones are better than none
        return {**account.credentials, "instance": instance}

    def words(self, answer):
        """https://docs.joinmastodon.org/entities/Error/: a text in the instance's language, and no code beside the status."""
        return None, answer.field("error", default=None)

    def _at(self, there):
        """This network, with the instance and the app of one login as its settings."""
        here = copy.copy(self)
        here.settings = {**self.settings, **{name: there[name] for name in ("origin", "client_id", "client_secret")},
                         "authorize_url": f"{there['origin']}/oauth/authorize", "token_url": f"{there['origin']}/oauth/token"}
        return here

    def _connected(self, origin, token):
        host, instance = self._read_instance(origin, token)
        account = Account("", "", host, {"accessToken": token, "instance": instance})
        return Connected(self.profile(account), host, account.credentials)

    def _post(self, account, status, key):
        return self._call(account, "POST", "/api/v1/statuses", json=status, commits=True, headers={"Idempotency-Key": key})

    def _call(self, account, method, path, **request):
        return self.send(method, account.host + path, token=account.credentials["accessToken"], **request)

    def _read_instance(self, origin, token):
        """The origin that serves the API, to which an instance's own domain may redirect, and the instance's terms."""
        answer = self.send("GET", f"{origin}/api/v2/instance", token=token, accept=(404, *REDIRECTS))
        if answer.status in REDIRECTS:
            origin = self.http.origin(answer.headers.get("Location", ""))
            answer = self.send("GET", f"{origin}/api/v2/instance", token=token, accept=(404,))
        if answer.status == 404:        # before version 4, and other software
            answer = self.send("GET", f"{origin}/api/v1/instance", token=token)
        if not answer.field("version", default=None):
            raise Rejected("there is no Mastodon instance at this address", rule="host")
        terms = {name: answer.field("configuration", part, name, kind=int, default=usual)
                 for name, (part, usual) in TERMS.items()}
        terms["max_characters"] = answer.field("max_toot_chars", kind=int, default=terms["max_characters"])     # Pleroma's
        domain = answer.field("domain", default=None) or urlsplit(origin).netloc
        terms["api_version"] = answer.field("api_versions", "mastodon", kind=int, default=0)
        return origin, {**terms, "domain": domain, "readAt": _stamp(datetime.now(UTC))}

    def _upload(self, account, content, position, receipt):
        """Sends one of the media with what belongs to it: its description, its focal point, the cover of a video."""
        form, texts, points = {}, content.options.get("altTexts", ()), content.options.get("focalPoints", ())
        if position < len(texts) and texts[position]:
            form["description"] = texts[position]
        if position < len(points):
            form["focus"] = f"{points[position]['x']},{points[position]['y']}"
        item, cover = content.media[position], _cover(content)
        parts = {"file": item, "thumbnail": cover} if cover else {"file": item}
        with ExitStack() as opened:
            files = [Upload(name, f"{position + 1}.{EXTENSIONS[one.mime_type]}", one.mime_type,
                            opened.enter_context(one.open()), one.bytes) for name, one in parts.items()]
            try:
                answer = self._call(account, "POST", "/api/v2/media", form=form, files=files)
            except Unavailable as fault:
                raise _broken(fault, receipt) or fault from None
        return {"id": answer.field("id"), "ready": _is_ready(answer)}

    def _state(self, account, one):
        """Of uploaded media: ready, processing, or lost, which those of a published status are too."""
        answer = self._call(account, "GET", f"/api/v1/media/{_segment(one['id'])}", accept=(404,))
        if answer.status == 404:
            return "lost"
        return "ready" if _is_ready(answer) else "processing"

    def _published_before(self, account, content, receipt):
        """The status that an earlier try made of media that are gone now; if there is none, they have to be uploaded again."""
        found = self.find(account, content, receipt)
        if found is None:
            raise Unconfirmed("Mastodon no longer has the media: the post may have been published")
        if found == Absent():
            raise Unavailable("Mastodon has lost the uploaded media", receipt={**receipt, "media": []})
        return found

    def _is_ours(self, account, content, receipt, answer, position):
        ids = [one["id"] for one in receipt["media"]]
        count = len(answer.field(position, "media_attachments", kind=list, default=[]))
        theirs = [answer.field(position, "media_attachments", number, "id", default=None) for number in range(count)]
        if ids or theirs:
            return ids == theirs        # which no other status can have
        quotes = answer.field(position, "quote", kind=dict, default=None) is not None
        if (answer.field(position, "in_reply_to_id", default=None), quotes) != (
                content.options.get("inReplyToId"), "quotedStatusId" in content.options):
            return False
        # Instances strip both texts.
        if answer.field(position, "spoiler_text", default="").strip() != content.options.get("spoilerText", "").strip():
            return False
        source = self._call(account, "GET", f"/api/v1/statuses/{_segment(answer.field(position, 'id'))}/source")
        text, ours = source.field("text").strip(), content.caption.strip()
        # An instance may put the address of what is quoted in front; what is quoted it shows only once that is allowed.
        return text.endswith(ours) if quotes else text == ours

    def _poll_problems(self, poll):
        terms, answers, seconds = self.terms, poll["options"], poll["expiresIn"]
        if len(answers) > terms["max_options"]:
            yield Problem("options/poll/options", "poll_options",
                          f"the poll has {len(answers)} options; {terms['max_options']} are allowed")
        if len(set(map(str.strip, answers))) < len(answers):
            yield Problem("options/poll/options", "poll_options", "two options of the poll are alike")
        for position, text in enumerate(answers):
            if not 0 < (length := graphemes(text.strip())) <= (most := terms["max_characters_per_option"]):
                yield Problem(f"options/poll/options/{position}", "poll_option_length",
                              f"the option has {length} characters; 1 to {most} are allowed")
        if not terms["min_expiration"] <= seconds <= terms["max_expiration"]:
            yield Problem("options/poll/expiresIn", "poll_duration", f"the poll lasts {seconds} seconds; "
                          f"{terms['min_expiration']} to {terms['max_expiration']} are allowed")


def _parameters(content, names=PARAMETERS):
    return {names[name]: value for name, value in content.options.items() if name in names}


def _attached(content):
    """The positions of the media that a status shows: the image beside a video is only its cover."""
    filmed = any(item.is_video for item in content.media)
    return [position for position, item in enumerate(content.media) if item.is_video or not filmed]


def _cover(content):
    """The image beside a video; None where there is none, or no video."""
    still = [item for item in content.media if not item.is_video]
    return still[0] if still and len(still) < len(content.media) else None


def _broken(fault, receipt):
    """What follows from a fault that the server has with the file itself: one more try, in case it was not the file."""
    if fault.platform_message != BROKEN_FILE:
        return None
    if "again" in receipt:
        return Rejected("Mastodon could not process the file", rule="media", **fault.words)
    return Unavailable("Mastodon could not process the file", receipt={**receipt, "again": True}, **fault.words)


def _published(answer, *path):
    return Published(answer.field(*path, "id"), answer.link(*path, "url", default=None) or answer.link(*path, "uri"))


def _is_ready(answer):
    return answer.status == 200 and answer.link("url", default=None) is not None


def _segment(text):
    """One segment of a path: ids are whatever the instance says they are."""
    return quote(text, safe="")


def _stamp(moment):
    """As Mastodon writes times, so that they compare as text."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
