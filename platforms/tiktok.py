"""TikTok: https://developers.tiktok.com/doc/content-posting-api-reference-direct-post"""

from hashlib import sha256
from urllib.parse import quote

from platforms.base import (JPEG, MB, MP4, QUICKTIME, WEBM, WEBP, Absent, ImageLimits, Limits, PostType, Problem, Processing,
                            Profile, Published, VideoLimits)
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable, Unconfirmed
from platforms.http import REQUIRED
from platforms.oauth import OAuthPlatform
from platforms.text import utf16_units

TITLE = 90
PHOTO_CAPTION = 4000            # the field description; the title of a photo post is a field of its own
PHOTO_OPTIONS = ("title", "autoAddMusic", "coverIndex")
DRAFT_OPTIONS = ("draft", "title", "coverIndex")    # what a draft takes along; people choose the rest in TikTok's app

CHUNK = 8_000_000               # bytes of one PUT; TikTok takes 5 to 64 million, and the last may have nearly twice as many
LOST_UPLOAD = (403, 404)        # of a PUT: the address has run out, after an hour, or is unknown
AHEAD = 416                     # of a PUT: TikTok has more, or less, than we think
POLLS = (3.0, 5.0, 10.0, 15.0)              # seconds before the first questions after a post; then half a minute
PATIENT_POLLS, PATIENT = 33, 300.0          # from this question on, after a quarter of an hour: seconds between two
# Seconds between the questions for the id of a complete post: it has one once TikTok has looked through it, mostly in a minute.
SHOWN = (5.0, 10.0, 30.0, 60.0, 120.0)
EVERYBODY = "PUBLIC_TO_EVERYONE"            # the one level whose posts get an id that we are told
# What a creator can have turned off for all posts: our option, and the name in TikTok's fields.
SWITCHES = {"disableComment": "comment", "disableDuet": "duet", "disableStitch": "stitch"}
# Option of ours: field of post_info.
FIELDS = {"privacyLevel": "privacy_level", "coverTimestampMs": "video_cover_timestamp_ms", "isAigc": "is_aigc",
          "autoAddMusic": "auto_add_music"}
DAY = 86_400                    # seconds
MINUTE, HOUR = 60.0, 3600.0     # the window of the rate limits; what to wait where TikTok counts days without telling the rest

# Why a post failed while TikTok worked on it: the rule, and what to do.
REASONS = {
    "file_format_check_failed": ("media_type", "it cannot read the file: MP4 with H.264 is the surest"),
    "duration_check_failed": ("media_duration", "the video is too short or too long"),
    "frame_rate_check_failed": ("media_frame_rate", "the video needs 23 to 60 frames a second"),
    "picture_size_check_failed": ("media_size", "the width or height is not what it takes"),
    "video_pull_failed": ("media_url", "it could not fetch the video"),
    "photo_pull_failed": ("media_url", "it could not fetch the photos: they have to be public, without redirects"),
    "publish_cancelled": ("cancelled", "somebody cancelled it"),
    "spam_risk_too_many_posts": ("quota", "the account has posted as much as it may in a day"),
    "spam_risk_user_banned_from_posting": ("banned", "the account is banned from posting"),
    "spam_risk_text": ("spam", "it takes the text for spam"),
    "spam_risk": ("spam", "it takes the post for spam"),
    "internal": ("internal", "something broke there; it may be sent again"),
}


def _wait(seconds, sentence):
    """A verdict: surely not done, and there is no use in asking again earlier."""
    return lambda message, **words: Unavailable(sentence, retry_after=seconds, throttled=True, **words)


def _refusal(rule, sentence):
    """A verdict: refused, for a reason that can be said better than TikTok does."""
    return lambda message, **words: Rejected(sentence, rule=rule, **words)


SLOW_DOWN = _wait(MINUTE, "TikTok asks to slow down")
VERDICTS = {
    429: SLOW_DOWN, "rate_limit_exceeded": SLOW_DOWN, "access_token_invalid": Disconnected,
    "scope_not_authorized": PermissionMissing, "scope_permission_missed": PermissionMissing,
    "spam_risk_too_many_posts": _wait(HOUR, "this account has posted on TikTok as much as it may in a day"),
    "spam_risk_too_many_pending_share": _wait(HOUR, "too many drafts wait for the account in TikTok's app"),
    "reached_active_user_cap": _wait(HOUR, "this server's app has posted for as many accounts as TikTok lets it in a day"),
    "spam_risk_user_banned_from_posting": _refusal("banned", "TikTok has banned this account from posting"),
    "unaudited_client_can_only_post_to_private_accounts": _refusal(
        "app", "until TikTok has audited this server's app it posts for private accounts only, and SELF_ONLY"),
    "privacy_level_option_mismatch": _refusal("privacy_level", "TikTok does not let this account post with this privacy level"),
    "url_ownership_unverified": _refusal(
        "app", "TikTok does not know that the address of the media belongs to this server: its operator has to verify the "
               "domain in TikTok's developer portal, under URL properties"),
    "app_version_check_failed": _refusal("app_version", "the account has to update its TikTok app first"),
    # A post whose id TikTok no longer knows may be public.
    "invalid_publish_id": Unconfirmed, "token_not_authorized_for_specified_publish_id": Unconfirmed,
}


class TikTok(OAuthPlatform):
    """A TikTok account.

    Posts have no alternative texts, links, places or comments of ours: no part of the API takes them. Videos are sent in
    chunks rather than fetched by TikTok, since an upload can be asked after; photos can only be fetched.
    """

    name = "tiktok"
    title = "TikTok"
    limits = Limits(
        caption=2200, media_items=35, title=TITLE, description=PHOTO_CAPTION,
        image=ImageLimits(types=(JPEG, WEBP), max_bytes=20 * MB, max_width=1920, max_height=1920,
                          max_short_side=1080),     # "1080p" of a photo, upright or lying
        video=VideoLimits(types=(MP4, QUICKTIME, WEBM), max_bytes=4096 * MB, min_width=360, max_width=4096, min_height=360,
                          max_height=4096,
                          min_duration=3,       # not documented, but commonly found
                          max_duration=600),    # many accounts have less, 180 at least
        source="https://developers.tiktok.com/doc/content-posting-api-media-transfer-guide", reviewed_at="2026-11-21")
    post_types = {
        "image": PostType(images=(1, 1), caption=PHOTO_CAPTION, required=("privacyLevel",), options=PHOTO_OPTIONS),
        "carousel": PostType(images=(2, 35), caption=PHOTO_CAPTION, required=("privacyLevel",), options=PHOTO_OPTIONS),
        "video": PostType(videos=(1, 1), required=("privacyLevel",),
                          options=("disableDuet", "disableStitch", "coverTimestampMs", "isAigc")),
    }
    options = ("draft", "disableComment", "brandContentToggle", "brandOrganicToggle")
    counts = "UTF-16 code units"
    live = True
    # Absent is said of videos alone, whose last chunk is sent again to the same upload: it makes one post, however often.
    find_retries = True
    settings = {"api_url": "https://open.tiktokapis.com", "authorize_url": "https://www.tiktok.com/v2/auth/authorize/",
                "token_url": "https://open.tiktokapis.com/v2/oauth/token/", "public_url": "https://www.tiktok.com",
                # Drafts need video.upload as well, which not every app may ask for.
                "scopes": "user.info.basic video.publish", "client_id": "", "client_secret": ""}
    scope_separator = ","
    client_id_parameter = "client_key"
    verdicts = VERDICTS

    @property
    def scopes(self):
        """What a login asks for: the operator's setting, since it depends on what TikTok has approved for the app."""
        return tuple(self.settings["scopes"].split())

    def measure(self, caption):
        """UTF-16 code units."""
        return utf16_units(caption)

    def required(self, kind, options):
        """Nothing for a draft."""
        return () if options.get("draft") else super().required(kind, options)

    def extra_problems(self, post_type, content):
        """The title in UTF-16, options that contradict each other or the media, and those that no draft takes along."""
        options = content.options
        for option in options if options.get("draft") else ():
            if option not in DRAFT_OPTIONS:
                yield Problem(f"options/{option}", "draft", f"a draft takes no {option}: people choose that in TikTok's app")
        if (length := utf16_units(options.get("title", ""))) > TITLE:
            yield Problem("options/title", "title_length", f"the title has {length} {self.counts}; TikTok allows {TITLE}")
        if "coverIndex" in options and options["coverIndex"] >= len(content.media):
            yield Problem("options/coverIndex", "cover_index", f"the post has {len(content.media)} media, counted from 0")
        if options.get("brandContentToggle") and options.get("privacyLevel") == "SELF_ONLY":
            yield Problem("options/privacyLevel", "branded_content", "TikTok keeps no branded content for the account alone")

    def challenge(self, verifier):
        """In TikTok's own manner: hexadecimal."""
        return sha256(verifier.encode()).hexdigest()

    def profile(self, account):
        """Who the account is. Its name at TikTok is told to those who may post for it."""
        answer = self._call(account, "GET", "/v2/user/info/", query={"fields": "open_id,avatar_url,display_name"})
        user, name = ("data", "user"), self._ask_creator(account).field("data", "creator_username")
        return Profile(answer.field(*user, "open_id"), name, answer.field(*user, "display_name", default="") or name,
                       answer.link(*user, "avatar_url", default=None))

    def prepare(self, account, content, receipt):
        """Asks what the creator allows, as TikTok wants it before each post; uploads a video but for its last chunk."""
        if "creator" not in receipt:
            receipt = _drafter(account, content) if content.options.get("draft") else self._creator(account, content)
            yield receipt
        item = content.media[0]
        if not item.is_video:
            return
        if "publishId" not in receipt:
            receipt = self._begin(account, content, receipt)
            yield receipt
        while receipt["sent"] < _last_start(receipt, item):
            receipt = self._go_on(account, item, receipt)
            yield receipt

    def publish(self, account, content, receipt):
        """Sends the last chunk of a video, which TikTok waits for to post it; or has it fetch the photos, which it posts."""
        item = content.media[0]
        if not item.is_video:
            answer = self._call(account, "POST", "/v2/post/publish/content/init/", json=_photos(content, receipt), commits=True)
            return Processing(_under_way(receipt, publishId=answer.field("data", "publish_id")), POLLS[0])
        answer = self._put(item, receipt, commits=True)
        if answer.status in (*LOST_UPLOAD, AHEAD):
            return self._settle(account, content, receipt)
        if answer.status == 206:        # it waits for more, although there is no more
            raise answer.manner.fault()
        return Processing(_under_way(receipt), POLLS[0])

    def check(self, account, receipt):
        """Asks how far TikTok is. Only its own word that the post failed makes it a failure."""
        try:
            answer = self._status(account, receipt)
        except (Rejected, PermissionMissing) as refusal:
            raise Unconfirmed("TikTok does not tell what became of the post", **refusal.words) from None
        state = answer.field("data", "status")
        if state == "FAILED":
            raise _failure(answer)
        if state in ("PUBLISH_COMPLETE", "SEND_TO_USER_INBOX"):
            return self._complete(answer, receipt)
        polls = receipt["polls"] + 1
        pause = POLLS[polls] if polls < len(POLLS) else 30.0 if polls < PATIENT_POLLS else PATIENT
        return Processing({**receipt, "polls": polls}, pause)

    def find(self, account, content, receipt):
        """Asks whether a video is there in whole. None for photos: the answer that was lost had the only name of their post."""
        if "publishId" not in receipt:
            return None
        answer = self._status(account, receipt)
        if content.media[0].is_video and _is_partial(answer, content.media[0]):
            return Absent()
        return Processing(_under_way(receipt), 0) if content.sent_ago < DAY else None   # `check` has asked for a day

    def words(self, answer):
        """{"error": {"code", "message", "log_id"}}, "ok" included; TikTok's support asks for the log_id."""
        code, log = (answer.field("error", name, default=None) for name in ("code", "log_id"))
        message = answer.field("error", "message", default="")
        return code, f"{message} (log_id {log})".strip() if log else message or None

    def _call(self, account, method, path, **request):
        """One call of the data API, whose answers may be failures with status 200."""
        kind = {"Content-Type": "application/json; charset=UTF-8"} if "json" in request else {}
        token = account.credentials["accessToken"]
        answer = self.send(method, self.settings["api_url"] + path, token=token, headers=kind, **request)
        code = answer.field("error", "code")
        if code == "internal_error":
            raise answer.manner.fault()
        if code != "ok":
            raise answer.error()
        return answer

    def _ask_creator(self, account):
        return self._call(account, "POST", "/v2/post/publish/creator_info/query/", json={})

    def _status(self, account, receipt):
        return self._call(account, "POST", "/v2/post/publish/status/fetch/", json={"publish_id": receipt["publishId"]})

    def _creator(self, account, content):
        """The first receipt: the name of the creator, and what is off for all their posts. Raises Rejected by their limits."""
        answer, options, item = self._ask_creator(account), content.options, content.media[0]
        levels = [level for level in answer.field("data", "privacy_level_options", kind=list) if isinstance(level, str)]
        if options["privacyLevel"] not in levels:
            raise Rejected(f"this account may post on TikTok with the privacy levels {', '.join(levels)}, "
                           f"not {options['privacyLevel']}", rule="privacy_level")
        longest = answer.field("data", "max_video_post_duration_sec", kind=(int, float), default=None)
        if longest and (item.duration or 0) > longest:
            raise Rejected(f"this account may post videos of at most {longest} seconds on TikTok; this one has "
                           f"{item.duration:.6g}", rule="media_duration")
        off = [option for option in SWITCHES
               if answer.field("data", f"{SWITCHES[option]}_disabled", kind=bool, default=False)]
        for option in off:
            if options.get(option) is False:
                raise Rejected(f"this account has turned {SWITCHES[option]}s off on TikTok for all its posts: {option} may "
                               "only be true or absent", rule="disabled_by_creator")
        return {"creator": answer.field("data", "creator_username"), "off": off, "privacy": options["privacyLevel"],
                "kind": "video" if item.is_video else "photo"}

    def _begin(self, account, content, receipt):
        """The receipt with an upload, which shows nothing and dies by itself if it is not used."""
        item = content.media[0]
        count = max(1, item.bytes // CHUNK)
        chunk = CHUNK if count > 1 else item.bytes
        source = {"source": "FILE_UPLOAD", "video_size": item.bytes, "chunk_size": chunk, "total_chunk_count": count}
        if content.options.get("draft"):
            path, plan = "/v2/post/publish/inbox/video/init/", {"source_info": source}
        else:
            post = {"title": content.caption, **_post_info(content, receipt, SWITCHES)}
            path, plan = "/v2/post/publish/video/init/", {"post_info": post, "source_info": source}
        answer = self._call(account, "POST", path, json=plan)
        return {**receipt, "publishId": answer.field("data", "publish_id"), "uploadUrl": answer.link("data", "upload_url"),
                "chunk": chunk, "sent": 0}

    def _go_on(self, account, item, receipt):
        """The receipt after one chunk more, or after all that TikTok has where that is more than we know of."""
        answer = self._put(item, receipt)
        if answer.status in LOST_UPLOAD:
            raise Unavailable("the upload to TikTok has run out", receipt=_anew(receipt))
        if answer.status != AHEAD:
            return {**receipt, "sent": receipt["sent"] + receipt["chunk"]}
        uploaded = self._status(account, receipt).field("data", "uploaded_bytes", kind=int, default=0)
        if uploaded <= receipt["sent"] or (uploaded % receipt["chunk"] and uploaded < item.bytes):
            raise Unavailable("TikTok has another part of the video than we sent", receipt=_anew(receipt))
        return {**receipt, "sent": min(uploaded, _last_start(receipt, item))}

    def _put(self, item, receipt, commits=False):
        """Sends the chunk that comes next: the last one, if all others are there, has all the rest."""
        start = receipt["sent"]
        length = item.bytes - start if start == _last_start(receipt, item) else receipt["chunk"]
        headers = {"Content-Type": item.mime_type, "Content-Range": f"bytes {start}-{start + length - 1}/{item.bytes}"}
        with item.open(start, length) as file:      # the address itself is the permission: no token goes there
            return self.http.send("PUT", receipt["uploadUrl"], title=self.title, headers=headers, body=file, size=length,
                                  commits=commits, accept=(*LOST_UPLOAD, AHEAD), secrets=(receipt["uploadUrl"],))

    def _settle(self, account, content, receipt):
        """What to do where the last chunk was not taken: it may be there from an earlier try whose answer was lost."""
        answer = self._status(account, receipt)
        given_up = answer.field("data", "status") == "FAILED" and not _is_refused(answer)
        # TikTok may leave out a zero. It has to be said where an earlier sending is in doubt.
        if given_up or _is_partial(answer, content.media[0], default=REQUIRED if content.sent_ago else 0):
            raise Unavailable("the upload to TikTok has run out", receipt=_anew(receipt))
        return Processing(_under_way(receipt), 0)

    def _complete(self, answer, receipt):
        """A post that is complete, or a draft. One for everybody gets its id a little later; others never have an address."""
        profile = f"{self.settings['public_url']}/@{quote(receipt['creator'], safe='')}"
        ids = [answer.field("data", name, 0, kind=(int, str), default=None)
               for name in ("publicaly_available_post_id", "publicly_available_post_id")]
        if post := next(filter(None, ids), None):
            return Published(str(post), f"{profile}/{receipt['kind']}/{post}")
        shown = receipt["shown"]
        if receipt["privacy"] != EVERYBODY or shown == len(SHOWN):
            return Published(receipt["publishId"], profile)
        return Processing({**receipt, "shown": shown + 1}, SHOWN[shown])


def _drafter(account, content):
    """The first receipt of a draft: nothing that the creator allows or not matters to it."""
    kind = "video" if content.media[0].is_video else "photo"
    return {"creator": account.username, "off": [], "privacy": "draft", "kind": kind}


def _photos(content, receipt):
    options, is_draft = content.options, content.options.get("draft", False)
    texts = {"title": options.get("title"), "description": content.caption}
    return {"media_type": "PHOTO", "post_mode": "MEDIA_UPLOAD" if is_draft else "DIRECT_POST",
            "post_info": {**{name: text for name, text in texts.items() if text},
                          **({} if is_draft else _post_info(content, receipt, ("disableComment",)))},
            "source_info": {"source": "PULL_FROM_URL", "photo_cover_index": options.get("coverIndex", 0),
                            "photo_images": [item.url for item in content.media]}}


def _post_info(content, receipt, switches):
    """What both kinds of posts have. What is off for all posts of the creator has to be off here."""
    options = content.options
    info = {FIELDS[name]: value for name, value in options.items() if name in FIELDS}
    for option in switches:
        if option in receipt["off"] or option in options:
            info[f"disable_{SWITCHES[option]}"] = option in receipt["off"] or options[option]
    return {**info, "brand_content_toggle": options.get("brandContentToggle", False),
            "brand_organic_toggle": options.get("brandOrganicToggle", False)}


def _last_start(receipt, item):
    """Where the last chunk begins, which has the rest that is too short for one of its own."""
    return (item.bytes // receipt["chunk"] - 1) * receipt["chunk"]


def _is_partial(answer, item, default=0):
    """Whether TikTok still waits for a part of the video."""
    if answer.field("data", "status") != "PROCESSING_UPLOAD":
        return False
    return answer.field("data", "uploaded_bytes", kind=int, default=default) < item.bytes


def _anew(receipt):
    """What still holds where the video has to be uploaded from its beginning."""
    return {name: receipt[name] for name in ("creator", "off", "privacy", "kind")}


def _under_way(receipt, **more):
    """What is needed to ask after a post."""
    return {**{name: receipt[name] for name in ("creator", "privacy", "kind", "publishId") if name in receipt}, "polls": 0,
            "shown": 0, **more}


def _is_refused(answer):
    """Whether a post that failed would fail again."""
    return answer.field("data", "fail_reason", default=None) in {*REASONS, "auth_removed"} - {"internal"}


# Nothing was posted, and the same may be taken another time.
AGAIN = ("internal", "photo_pull_failed", "video_pull_failed", "spam_risk_too_many_posts")


def _failure(answer):
    reason = answer.field("data", "fail_reason", default="unknown")
    if reason == "auth_removed":
        return Rejected("the account took its permission back before TikTok had posted this: connect it again",
                        rule="permission", platform_code=reason)
    rule, sentence = REASONS.get(reason, ("failed", "it does not say why"))
    error = Rejected(f"TikTok did not post this: {sentence}", rule=rule, platform_code=reason)
    error.retryable = reason in AGAIN
    return error
