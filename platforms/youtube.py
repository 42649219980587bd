"""YouTube: https://developers.google.com/youtube/v3/docs/videos/insert"""

import math
import re
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from urllib.parse import quote, urlsplit

from platforms.base import (JPEG, MB, MP4, PNG, QUICKTIME, WEBM, Absent, ImageLimits, Limits, PostType, Problem, Profile,
                            Published, VideoLimits, Waiting)
from platforms.errors import PermissionMissing, Rejected, Unavailable
from platforms.google import GooglePlatform
from platforms.http import THROTTLED
from platforms.oauth import REFRESH_EARLY
from platforms.text import utf8_bytes

VIDEO = VideoLimits(types=(MP4, QUICKTIME, WEBM), max_bytes=274_877_906_944,
                    max_duration=12 * 60 * 60)      # 15 minutes for channels that have not verified a phone number
# YouTube itself decides what is a Short, by these bounds: https://support.google.com/youtube/answer/15424877
SHORT = replace(VIDEO, max_aspect_ratio=1, max_duration=180)
THUMBNAIL = ImageLimits(types=(JPEG, PNG), max_bytes=50 * MB)     # thumbnails.set, since 2026-09-14
TAGS = 500                      # characters of all tags together
TITLE, TEXT = 100, 5000         # characters of a title, bytes of a description; in other languages as well
PEOPLE_AND_BLOGS = "22"         # a category that every region has

# https://developers.google.com/youtube/v3/guides/using_resumable_upload_protocol: multiples of 256 kB
CHUNK = 8 * MB
INCOMPLETE, LOST = 308, (404, 410)
STORED = re.compile(r"bytes=0-([0-9]{1,15})")
WAITS = (15,) * 4 + (60,) * 10 + (300,)     # seconds between questions whether a video is processed: no interval is published
UNSEEN = 10                             # of these questions a new video may not be listed yet
LISTED = 100                            # comments in a page, the most that there are
LATE = 60                               # seconds after which lists show what was made: not published
DAY = 86_400

# What an update does not name is deleted, and what that makes of it is not documented: so all of it is said, always.
STATUS = {"selfDeclaredMadeForKids": ("madeForKids", False), "containsSyntheticMedia": ("containsSyntheticMedia", False),
          "embeddable": ("embeddable", True), "license": ("license", "youtube"),
          "publicStatsViewable": ("publicStatsViewable", True)}
SNIPPET = {"title": "title", "tags": "tags", "categoryId": "categoryId", "language": "defaultLanguage",
           "audioLanguage": "defaultAudioLanguage"}


def quota_used_up(_, **words):
    """The error for the app's quota of the day, which begins anew at midnight in California."""
    return Unavailable("this server's app has used up what YouTube allows it in a day", throttled=True,
                       retry_after=_to_new_quota(datetime.now(UTC)), **words)


class YouTube(GooglePlatform):
    """A YouTube channel.

    A video is uploaded as private, and made public by an update of it. Were it uploaded as public, it would come into being
    with the last byte, and where that answer and then the upload's session got lost, nobody could say whether it had: another
    upload might be a second video. An update names the one video by its id: it can be repeated without harm, `find` reads the
    very video, and nobody sees one that YouTube still processes, goes on to refuse, or could have given its thumbnail.
    Subscribers are told when a video first becomes public: https://support.google.com/youtube/answer/157177

    Left out is `publishAt`, which would be a second schedule beside ours. Posts without a video have no API.
    """

    name = "youtube"
    title = "YouTube"
    limits = Limits(caption=TEXT, media_items=2, title=TITLE, description=TEXT, image=THUMBNAIL, video=VIDEO,
                    source="https://developers.google.com/youtube/v3/docs/videos", reviewed_at="2026-11-21")
    post_types = {      # the image becomes the thumbnail
        "video": PostType(images=(0, 1), videos=(1, 1), mixed=True, required=("title",)),
        "reel": PostType(images=(0, 1), videos=(1, 1), mixed=True, video=SHORT, required=("title",)),
    }
    options = ("tags", "categoryId", "privacyStatus", "madeForKids", "containsSyntheticMedia", "paidPromotion", "embeddable",
               "license", "publicStatsViewable", "language", "audioLanguage", "localizations", "recordingDate",
               "notifySubscribers", "playlistId", "firstComment")
    follow_options = ("playlistId", "firstComment")
    counts = "bytes in UTF-8"
    live = True
    find_retries = True
    patience = timedelta(hours=36)      # a quota may be used up for a day
    # The one scope for all of it, comments included.
    scopes = ("https://www.googleapis.com/auth/youtube.force-ssl",)
    settings = {**GooglePlatform.settings, "api_url": "https://www.googleapis.com/youtube/v3",
                "upload_url": "https://www.googleapis.com/upload/youtube/v3", "public_url": "https://www.youtube.com"}
    verdicts = {
        **GooglePlatform.verdicts,
        "quotaExceeded": quota_used_up, "dailyLimitExceeded": quota_used_up,
        "uploadLimitExceeded": partial(THROTTLED, retry_after=DAY), "uploadRateLimitExceeded": THROTTLED,
        "youtubeSignupRequired": partial(Rejected, rule="no_channel"), "processingFailure": Unavailable,
        **dict.fromkeys(("channelClosed", "channelSuspended", "authenticatedUserAccountSuspended",
                         "authenticatedUserAccountClosed", "forbiddenPrivacySetting", "forbiddenLicenseSetting",
                         "playlistContainsMaximumNumberOfVideos", "commentsDisabled", "ineligibleAccount"), Rejected),
    }

    def measure(self, caption):
        """Bytes in UTF-8."""
        return utf8_bytes(caption)

    def follows(self, options, receipt):
        """A thumbnail that YouTube did not take before, as well."""
        return receipt.get("thumbnail") is False or super().follows(options, receipt)

    def extra_problems(self, post_type, content):
        """Unfit texts, days that do not exist, the length of all tags together, and comments where YouTube allows none."""
        options = content.options
        yield from _text_problems("options/title", "caption", options.get("title"), content.caption)
        yield from _localization_problems(options)
        if "recordingDate" in options and not _is_day(options["recordingDate"]):
            yield Problem("options/recordingDate", "date", f"{options['recordingDate']} is no day of the calendar")
        tags = options.get("tags", ())
        # docs/videos#snippet.tags[]: joined by commas, and in quotes where a space is inside.
        if (length := len(",".join(tags)) + 2 * sum(" " in tag for tag in tags)) > TAGS:
            yield Problem("options/tags", "tags_length", f"the tags have {length} characters; YouTube allows {TAGS}")
        # Private videos: https://support.google.com/youtube/answer/157177
        if (options.get("madeForKids") or _privacy(content) == "private") and "firstComment" in options:
            yield Problem("options/firstComment", "comments_off",
                          "YouTube allows no comments on videos that are made for kids, or private")

    def profile(self, account):
        """The channel that was picked at the login; its id for a name where it has no handle."""
        answer = self._list(account, "channels", part="snippet", mine="true")
        if not _items(answer):
            raise Rejected("this Google account has no YouTube channel", rule="no_channel")
        channel, snippet = answer.field("items", 0, "id"), ("items", 0, "snippet")
        pictures = (answer.link(*snippet, "thumbnails", size, "url", default=None) for size in ("high", "medium", "default"))
        return Profile(channel, answer.field(*snippet, "customUrl", default="").removeprefix("@") or channel,
                       answer.field(*snippet, "title"), next(filter(None, pictures), None))

    def prepare(self, account, content, receipt):
        """Uploads the video as private, waits until YouTube has processed it, and gives it its thumbnail."""
        if "video" not in receipt:
            receipt = yield from self._upload(account, content, receipt)
        if "processed" not in receipt:
            receipt = yield from self._process(account, receipt)
        if any(not item.is_video for item in content.media) and "thumbnail" not in receipt:
            yield {**receipt, "thumbnail": self._takes_thumbnail(account, content, receipt["video"])}

    def publish(self, account, content, receipt):
        """Gives the video the privacy that it is to have."""
        privacy = _privacy(content)
        video = {"id": receipt["video"], "status": _status(content, privacy)}
        answer = self.call(account, "PUT", f"{self.settings['api_url']}/videos", query={"part": "status"}, json=video,
                           commits=True)
        if answer.field("status", "privacyStatus") == "private" != privacy:
            raise Rejected("YouTube keeps the video private: the channel's settings allow nothing else", rule="privacy")
        return self._published(content, receipt)

    def find(self, account, content, receipt):
        """Reads the privacy of the video."""
        if "video" not in receipt:
            return Absent()
        try:
            answer = self._list(account, "videos", part="status", id=receipt["video"])
        except (PermissionMissing, Rejected):
            return None
        if not _items(answer):      # somebody has deleted it
            return None
        is_there = answer.field("items", 0, "status", "privacyStatus") == _privacy(content)
        return self._published(content, receipt) if is_there else Absent()

    def follow(self, account, content, receipt):
        """The first comment, the playlist, a thumbnail not taken before; each is tried although YouTube refuses another."""
        trouble = None
        for option, make, find in (("firstComment", self._comment, self._find_comment),
                                   ("playlistId", self._add, self._find_added)):
            if option in content.options and "id" not in receipt.get(option, {}):
                what = account, receipt["public"]["id"], content.options[option]
                try:
                    receipt = yield from _make_once(partial(make, *what), partial(find, *what), option, receipt)
                except (PermissionMissing, Rejected) as refusal:
                    trouble = trouble or refusal
        if receipt.get("thumbnail") is False:
            try:
                self._set_thumbnail(account, content, receipt["public"]["id"])
            except (PermissionMissing, Rejected) as refusal:
                trouble = trouble or Rejected("YouTube refused the thumbnail: custom ones are for channels with a verified "
                                              "phone number", rule="thumbnail", **refusal.words)
        if trouble:
            raise trouble

    def _upload(self, account, content, receipt):
        """Sends the file chunk by chunk, from where the session says that it has got to."""
        item = next(item for item in content.media if item.is_video)
        if "session" in receipt:        # it may have more than we were told of: all of it, even
            receipt = _progress(receipt, self._to_session(account, item, receipt, "*", body=b""))
        else:
            receipt = {"session": self._open_session(account, content, item), "offset": 0}
        yield receipt
        before = -1
        while "video" not in receipt:
            if not before < receipt["offset"] < item.bytes:
                raise Unavailable("YouTube does not take the bytes of the video")
            before = receipt["offset"]
            receipt = _progress(receipt, self._send_chunk(account, item, receipt))
            # A token lasts an hour, an upload may last longer: between two runs it is renewed.
            yield Waiting(receipt, 0) if _ends_soon(account) else receipt
        return receipt

    def _open_session(self, account, content, item):
        options = content.options
        video = {"snippet": _snippet(content), "status": _status(content, "private")}
        if "paidPromotion" in options:
            video["paidProductPlacementDetails"] = {"hasPaidProductPlacement": options["paidPromotion"]}
        if "recordingDate" in options:
            video["recordingDetails"] = {"recordingDate": f"{options['recordingDate']}T00:00:00Z"}
        if "localizations" in options:
            video["localizations"] = {one["language"]: {"title": one["title"], "description": one.get("description", "")}
                                      for one in options["localizations"]}
        query = {"uploadType": "resumable", "part": ",".join(video),
                 "notifySubscribers": "true" if options.get("notifySubscribers", True) else "false"}
        headers = {"X-Upload-Content-Length": str(item.bytes), "X-Upload-Content-Type": item.mime_type}
        answer = self.call(account, "POST", f"{self.settings['upload_url']}/videos", query=query, json=video, headers=headers)
        address = answer.headers.get("Location", "")
        if not self._is_googles(address):       # the token goes there too
            raise Unavailable("YouTube did not say where the video is to be sent")
        return address

    def _is_googles(self, address):
        there, ours = urlsplit(address), urlsplit(self.settings["upload_url"])
        return (there.scheme, there.netloc) == (ours.scheme, ours.netloc) or (
            there.scheme == "https" and there.netloc.endswith(".googleapis.com"))

    def _send_chunk(self, account, item, receipt):
        start = receipt["offset"]
        length = min(CHUNK, item.bytes - start)
        with item.open(start, length) as file:
            return self._to_session(account, item, receipt, f"{start}-{start + length - 1}", body=file, size=length)

    def _to_session(self, account, item, receipt, span, **body):
        headers = {"Content-Range": f"bytes {span}/{item.bytes}", "Content-Type": item.mime_type}
        return self.call(account, "PUT", receipt["session"], headers=headers, accept=(INCOMPLETE, *LOST),
                         secrets=(receipt["session"],), **body)

    def _process(self, account, receipt):
        """Asks until YouTube has processed the video. Raises Rejected for one that it refuses."""
        while True:
            asked = receipt.get("asked", 0)
            state, reason = self._state(account, receipt["video"])
            if state == "processed":
                receipt = {"video": receipt["video"], "processed": True}
                yield receipt
                return receipt
            if state not in ("uploaded", "unseen") or state == "unseen" and asked >= UNSEEN:
                raise Rejected(f"YouTube has not accepted the video: {reason or state}", rule="video",
                               platform_code=reason or state)
            receipt = {**receipt, "asked": asked + 1}
            yield Waiting(receipt, WAITS[min(asked, len(WAITS) - 1)])

    def _state(self, account, video):
        """What has become of an uploaded video, and why where YouTube refuses it."""
        answer = self._list(account, "videos", part="status", id=video)
        if not _items(answer):
            return "unseen", None
        status = ("items", 0, "status")
        reasons = [answer.field(*status, name, default=None) for name in ("failureReason", "rejectionReason")]
        return answer.field(*status, "uploadStatus"), next(filter(None, reasons), None)

    def _takes_thumbnail(self, account, content, video):
        """Whether YouTube takes the thumbnail before anybody sees the video, which one that it does not take cannot hold up."""
        try:
            self._set_thumbnail(account, content, video)
        except (PermissionMissing, Rejected):
            return False
        except Unavailable as trouble:
            if trouble.code != "rate_limited":      # there is a limit for thumbnails alone
                raise
            return False
        return True

    def _set_thumbnail(self, account, content, video):
        item = next(item for item in content.media if not item.is_video)
        with item.open() as file:
            self.call(account, "POST", f"{self.settings['upload_url']}/thumbnails/set",
                      query={"videoId": video, "uploadType": "media"}, headers={"Content-Type": item.mime_type},
                      body=file, size=item.bytes)

    def _comment(self, account, video, text):
        comment = {"channelId": account.platform_id, "videoId": video, "topLevelComment": {"snippet": {"textOriginal": text}}}
        answer = self.call(account, "POST", f"{self.settings['api_url']}/commentThreads", query={"part": "snippet"},
                           json={"snippet": comment}, commits=True)
        return answer.field("id")

    def _find_comment(self, account, video, text):
        """The id of the channel's own comment with this text. Raises Rejected where there are too many to look through."""
        answer = self._list(account, "commentThreads", part="snippet", videoId=video, order="time", maxResults=LISTED)
        for position in range(len(_items(answer))):
            path = ("items", position, "snippet", "topLevelComment", "snippet")
            author = answer.field(*path, "authorChannelId", "value", default=None)
            if author == account.platform_id and answer.field(*path, "textOriginal", default="").split() == text.split():
                return answer.field("items", position, "id")
        if answer.field("nextPageToken", default=None):
            raise Rejected("nobody can tell whether the first comment is there: it was not sent again")
        return None

    def _add(self, account, video, playlist):
        item = {"playlistId": playlist, "resourceId": {"kind": "youtube#video", "videoId": video}}
        answer = self.call(account, "POST", f"{self.settings['api_url']}/playlistItems", query={"part": "snippet"},
                           json={"snippet": item}, commits=True)
        return answer.field("id")

    def _find_added(self, account, video, playlist):
        answer = self._list(account, "playlistItems", part="id", playlistId=playlist, videoId=video)
        return answer.field("items", 0, "id") if _items(answer) else None

    def _list(self, account, kind, **query):
        return self.call(account, "GET", f"{self.settings['api_url']}/{kind}", query=query)

    def _published(self, content, receipt):
        path = "shorts/" if content.post_type == "reel" else "watch?v="
        return Published(receipt["video"], f"{self.settings['public_url']}/{path}{quote(receipt['video'], safe='')}")


def _to_new_quota(now):
    """Seconds until midnight in California: the one of winter, since not every machine knows when summer is there."""
    midnight = now.replace(hour=8, minute=0, second=0, microsecond=0)
    return (midnight - now).total_seconds() % DAY or DAY


def _text_problems(title_path, text_path, title, text):
    """What is wrong with a title, None where there is none, and with its description."""
    if title is not None and not title.strip():
        yield Problem(title_path, "required", "YouTube needs a title that is not blank")
    for path, words in ((title_path, title or ""), (text_path, text)):
        if "<" in words or ">" in words:
            yield Problem(path, "angle_brackets", "YouTube takes neither < nor >")


def _localization_problems(options):
    languages = [one["language"].lower() for one in options.get("localizations", ())]
    if languages and "language" not in options:
        yield Problem("options/language", "required", "YouTube needs the language of title and caption beside translations")
    for position, one in enumerate(options.get("localizations", ())):
        path, text = f"options/localizations/{position}", one.get("description", "")
        if one["language"].lower() in (options.get("language", "").lower(), *languages[:position]):
            yield Problem(f"{path}/language", "unique", f"there are two texts in the language {one['language']}")
        yield from _text_problems(f"{path}/title", f"{path}/description", one["title"], text)
        if (length := utf8_bytes(text)) > TEXT:
            yield Problem(f"{path}/description", "description_length",
                          f"the description has {length} bytes in UTF-8; YouTube allows {TEXT}")


def _is_day(text):
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _privacy(content):
    return content.options.get("privacyStatus", "public")


def _snippet(content):
    given = {field: content.options[name] for name, field in SNIPPET.items() if name in content.options}
    return {"description": content.caption, "categoryId": PEOPLE_AND_BLOGS, **given}


def _status(content, privacy):
    return {"privacyStatus": privacy, **{field: content.options.get(name, usual) for field, (name, usual) in STATUS.items()}}


def _progress(receipt, answer):
    """The receipt with what the session says of itself: the video, where it is complete, or how much it has stored."""
    if answer.status in LOST:           # an upload that nobody saw; another one does no harm
        raise Unavailable("YouTube has lost the unfinished upload", receipt={})
    if answer.status != INCOMPLETE:
        return {"video": answer.field("id")}
    stored = STORED.fullmatch(answer.headers.get("Range", ""))
    return {**receipt, "offset": int(stored[1]) + 1 if stored else 0}


def _ends_soon(account):
    ends = account.credentials.get("expiresAt", math.inf)
    return "refreshToken" in account.credentials and ends - time.time() < REFRESH_EARLY


def _items(answer):
    """The items of a list; none where it leaves them out, as some do that are empty."""
    answer.field("kind")
    return answer.field("items", kind=list, default=[])


def _make_once(make, find, option, receipt):
    """What follows a post, made once. One that is under way since an earlier run is looked for, twice: lists may be late."""
    found, under_way = None, receipt.get(option)
    if under_way is not None:
        found = find()
        if found is None and "looked" not in under_way:
            receipt = {**receipt, option: {"looked": True}}
            yield receipt
            raise Unavailable("YouTube may not show yet what it has", retry_after=LATE)
    if found is None:
        receipt = {**receipt, option: {}}
        yield receipt
        found = make()
    receipt = {**receipt, option: {"id": found}}
    yield receipt
    return receipt
