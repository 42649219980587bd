"""Facebook Pages: https://developers.facebook.com/documentation/pages-api/posts"""

import json
import re
import time
from dataclasses import replace

from platforms.base import (GIF, JPEG, MB, MP4, PNG, QUICKTIME, Absent, Connected, ImageLimits, Limits, PostType, Processing,
                            Profile, Published, VideoLimits, Waiting)
from platforms.errors import PermissionMissing, PlatformError, Rejected, Unavailable
from platforms.http import THROTTLED, Upload
from platforms.meta import (QUOTA_PAUSE, SKEW, VERDICTS, Commenting, FacebookLogin, Transient, Verdicts, identity, moment,
                            pause, same_text, transferred)

PHOTO = ImageLimits(types=(JPEG, PNG, GIF), max_bytes=10 * MB)      # docs/graph-api/reference/page/photos; GIFs stand still
# docs/graph-api/video-uploads: 10 GB and 4 hours in chunks, no WebM. No shape is documented today for videos of the feed.
VIDEO = VideoLimits(types=(MP4, QUICKTIME), max_duration=4 * 60 * 60)
# documentation/video-api/guides/reels-publishing: 9:16, which leaves the odd pixel of an encoder undecided.
REEL = VideoLimits(types=(MP4, QUICKTIME), min_width=540, min_height=960, min_aspect_ratio=0.56, max_aspect_ratio=0.57,
                   min_duration=3, max_duration=90)
STORY = replace(REEL, max_duration=60)      # docs/page-stories-api

PROFILE = "id,name,username,picture.type(large){url}"
EXTENSIONS = {JPEG: "jpg", PNG: "png", GIF: "gif"}
KEPT = 20 * 3600            # seconds that photos are relied on; they vanish a day after their upload if no post shows them
LISTED = 25                 # of the newest posts, among which one in doubt is looked for
STUCK = 60                  # seconds until a video that makes no progress is sent on
WRONG_OFFSET = "1363037"    # subcode of a part of a video that is not the one that is waited for
EDGES = {"reel": "video_reels", "story": "video_stories"}
DONE = ("complete", "completed")            # both spellings are in use
BROKEN = ("error", "expired", "upload_failed")


class Facebook(FacebookLogin, Commenting):
    """A Facebook Page. Profiles of persons and groups cannot be published to."""

    name = "facebook"
    title = "Facebook"
    limits = Limits(
        caption=63_206,     # on no page of the documentation: the number that other publishers use
        media_items=10,     # not documented either
        title=255,          # nor this
        image=PHOTO, video=VIDEO,
        source="https://developers.facebook.com/documentation/pages-api/posts", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True, options=("placeId", "firstComment")),
        "image": PostType(images=(1, 10), options=("altTexts", "placeId", "firstComment")),
        "video": PostType(videos=(1, 1), options=("title", "firstComment")),
        "reel": PostType(videos=(1, 1), video=REEL, options=("title", "placeId", "firstComment")),
        "story": PostType(images=(0, 1), videos=(0, 1), total=(1, 1), caption=0, video=STORY),
        "link": PostType(required=("link",), options=("placeId", "firstComment")),
    }
    live = True
    scopes = ("pages_show_list", "pages_read_engagement", "pages_manage_posts", "pages_manage_engagement",
              "business_management")
    settings = {**FacebookLogin.settings, "video_url": "https://graph-video.facebook.com/{version}",
                "upload_url": "https://rupload.facebook.com/video-upload/{version}"}
    verdicts = Verdicts({
        **VERDICTS, "80001": THROTTLED, "/1390008": THROTTLED,
        **dict.fromkeys(("/1404078", "/1363042"), PermissionMissing),       # publishing authorization; videos
        **dict.fromkeys(("6000", "/1363019", "/1363030", "/1363047", "/1609010"), Transient),
        **dict.fromkeys(("/1346003", "/1404006", "/1404102", "/1404112", "/4854002"), Rejected),    # blocked, by what it says
    })
    waits = Verdicts({"/1390008": QUOTA_PAUSE})     # too many posts in a short time
    comment_author = "from{id}"     # without pages_read_user_content it is told of the Page's own comments alone

    def choices(self, credentials):
        """The Pages that this person may publish on."""
        token = credentials["accessToken"]
        found = []
        for answer, place in self.pages(token, f"{PROFILE},access_token,tasks"):
            profile = _profile(answer, *place)
            found.append(Connected(profile, "", {"accessToken": answer.field(*place, "access_token"), "userToken": token,
                                                 "pageId": profile.platform_id}))
        if not found:
            raise Rejected("this login allows no Facebook Page: choose one on which you may publish", rule="pages")
        return found

    def profile(self, account):
        """Who the Page is."""
        return _profile(self.call(account, "GET", f"/{account.credentials['pageId']}", query={"fields": PROFILE}))

    def wrote(self, account, answer, *place):
        """By the id of the Page."""
        return str(answer.field(*place, "from", "id", kind=(str, int), default="")) == account.platform_id

    def prepare(self, account, content, receipt):
        """Uploads the files: photos that nobody sees yet, or a video up to the last call."""
        kind = self._kind(content)
        if kind == "video":
            yield from self._send_parts(account, content.media[0], receipt)
        elif content.media and content.media[0].is_video:
            yield from self._send_whole(account, content.media[0], receipt, kind)
        elif content.media:
            yield from self._send_photos(account, content, receipt)

    def publish(self, account, content, receipt):
        """The post itself, or the last call for a video, which Facebook then still works on."""
        kind = self._kind(content)
        if kind == "story":
            return self._publish_story(account, receipt)
        if receipt.get("published"):
            return Processing(receipt, 0)
        if "video" in receipt:
            return self._publish_video(account, content, receipt, kind)
        form = {"message": content.caption, "link": content.options.get("link"), "place": content.options.get("placeId")}
        if "photos" in receipt:
            form["attached_media"] = json.dumps([{"media_fbid": photo} for photo in receipt["photos"]])
        answer = self._post(account, "feed", commits=True, **form)
        post = identity(answer)
        return Published(post, self._post_url(account, post))

    def check(self, account, receipt):
        """Asks whether a video is processed and public."""
        try:
            answer = self._video(account, receipt["video"])
        except PermissionMissing as error:      # which says nothing of the post
            raise _untold(error) from None
        if _public(answer):
            return Published(receipt["video"], self._video_url(answer, receipt["video"]))
        if error := _broken(answer):
            raise error
        if answer.field("status", "publishing_phase", "publish_status", default=None) == "draft":
            raise Rejected("Facebook kept the video as a draft: publish it there, or post it as a reel", rule="draft")
        asked = receipt.get("asked", 0)
        return Processing({**receipt, "asked": asked + 1}, pause(asked))

    def find(self, account, content, receipt):
        """Asks for the video, or looks through the newest posts or the stories. What is not there may still come: no Absent."""
        if content.media and not receipt:
            return Absent()
        if self._kind(content) == "story":
            return self._find_story(account, receipt)
        if "video" in receipt:
            answer = self._video(account, receipt["video"])
            if _public(answer):
                return Published(receipt["video"], self._video_url(answer, receipt["video"]))
            begun = answer.field("status", "publishing_phase", "status", default=None) == "in_progress"
            return Processing(receipt) if begun else None
        return self._find_post(account, content)

    def _kind(self, content):
        return content.post_type or self.infer(content.media, content.options)

    def _post(self, account, edge, *, phase=None, host="api_url", commits=False, files=None, accept=(), **form):
        form = {name: value for name, value in form.items() if value not in (None, "")}
        query = {"upload_phase": phase} if phase else {}
        return self.call(account, "POST", f"/{account.platform_id}/{edge}", query=query, host=host, form=form, files=files,
                         commits=commits, accept=accept)

    def _send_photos(self, account, content, receipt):
        if receipt.get("photosAt", 0) < time.time() - KEPT:
            receipt = {**receipt, "photos": [], "photosAt": time.time()}
        texts = [*content.options.get("altTexts", ()), *[""] * len(content.media)]
        for position in range(len(receipt["photos"]), len(content.media)):
            item = content.media[position]
            with item.open() as file:
                name = f"{position + 1}.{EXTENSIONS[item.mime_type]}"
                answer = self._post(account, "photos", published="false", alt_text_custom=texts[position],
                                    files=[Upload("source", name, item.mime_type, file, item.bytes)])
            receipt = {**receipt, "photos": [*receipt["photos"], identity(answer)]}
            yield receipt

    def _send_parts(self, account, item, receipt):
        """A video of the feed, in the parts that Facebook asks for."""
        if "session" not in receipt:
            answer = self._post(account, "videos", host="video_url", phase="start", file_size=item.bytes)
            receipt = {**receipt, "video": identity(answer, name="video_id"),
                       "session": identity(answer, name="upload_session_id"), **_window(answer, item)}
            yield receipt
        while receipt["start"] < receipt["end"]:
            receipt = {**receipt, **self._send_part(account, item, receipt)}
            yield receipt

    def _send_part(self, account, item, receipt):
        """The part that comes next: the one after, or where this one is not the one that is waited for, that one."""
        start, size = receipt["start"], receipt["end"] - receipt["start"]
        with item.open(start, size) as file:
            answer = self._post(account, "videos", host="video_url", accept=(400,), phase="transfer",
                                upload_session_id=receipt["session"], start_offset=start,
                                files=[Upload("video_file_chunk", "video", "application/octet-stream", file, size)])
        if answer.status != 400:
            window = _window(answer, item)
            if window["start"] <= start:
                raise Unavailable("Facebook does not take the bytes of the video", retry_after=STUCK)
            return window
        error = self.failure(answer)
        window = _window(answer, item, "error", "error_data") if str(error.platform_code).endswith(f"/{WRONG_OFFSET}") else {}
        if not window or window["start"] == start:
            raise error
        return window

    def _send_whole(self, account, item, receipt, kind):
        """A reel, or the video of a story, which goes up in one piece and after an interruption from where it stopped."""
        begun = "video" in receipt
        if not begun:
            answer = self._post(account, EDGES[kind], phase="start")
            receipt = {**receipt, "video": identity(answer, name="video_id")}
            yield receipt
        if not receipt.get("sent"):
            offset = transferred(self._video(account, receipt["video"]), "status") if begun else 0
            self.upload(account, receipt["video"], item, offset)
            receipt = {**receipt, "sent": True}
            yield receipt
        while not self._arrived(answer := self._video(account, receipt["video"]), kind):
            waited = receipt.get("waited", 0)
            receipt = {**receipt, "waited": waited + 1}
            yield Waiting(receipt, pause(waited))
        if _public(answer):     # by a sending of which we know no end
            yield {**receipt, "published": True}

    def _arrived(self, answer, kind):
        """Whether the last call may be made: for a reel once Facebook has the file, for a story once it has looked at it."""
        if error := _broken(answer):
            if _video_status(answer) == "error":
                raise error
            raise Unavailable("Facebook has lost the uploaded video", receipt={}, platform_message=error.platform_message)
        uploaded = answer.field("status", "uploading_phase", "status", default=None) in DONE
        return _video_status(answer) in ("upload_complete", "ready") or (kind == "reel" and uploaded)

    def _publish_video(self, account, content, receipt, kind):
        form = {"phase": "finish", "description": content.caption, "title": content.options.get("title")}
        if kind == "reel":
            answer = self._post(account, "video_reels", commits=True, video_id=receipt["video"], video_state="PUBLISHED",
                                place=content.options.get("placeId"), **form)
        else:
            answer = self._post(account, "videos", host="video_url", commits=True, upload_session_id=receipt["session"], **form)
        _succeeded(answer)
        return Processing(receipt, pause(0))

    def _publish_story(self, account, receipt):
        if "video" in receipt:
            answer = self._post(account, "video_stories", commits=True, phase="finish", video_id=receipt["video"])
        else:
            answer = self._post(account, "photo_stories", commits=True, photo_id=receipt["photos"][0])
        _succeeded(answer)
        post = identity(answer, name="post_id")
        try:
            return self._find_story(account, receipt) or Published(post, f"{self.settings['public_url']}/{post}")
        except PlatformError:
            return Published(post, f"{self.settings['public_url']}/{post}")

    def _video(self, account, video):
        try:
            return self.call(account, "GET", f"/{video}", query={"fields": "status,permalink_url,published"})
        except Rejected as error:       # a video that is not there yet
            raise _untold(error) from None

    def _video_url(self, answer, video):
        """The permalink, which for videos is a path only."""
        path = answer.field("permalink_url", default="")
        if re.fullmatch(r"/[!-~]{1,500}", path):
            return self.settings["public_url"] + path
        return answer.link("permalink_url", default=f"{self.settings['public_url']}/{video}")

    def _post_url(self, account, post):
        """The permalink. The post is public, whatever becomes of this question."""
        guess = f"{self.settings['public_url']}/{post}"
        try:
            return self.call(account, "GET", f"/{post}", query={"fields": "permalink_url"}).link("permalink_url", default=guess)
        except PlatformError:
            return guess

    def _find_post(self, account, content):
        """The newest post with our text since it was sent; a post without text cannot be told from others."""
        if not content.caption.strip():
            return None
        answer = self.call(account, "GET", f"/{account.platform_id}/published_posts",
                           query={"fields": "id,message,created_time,permalink_url", "limit": LISTED})
        since = answer.moment().timestamp() - content.sent_ago - SKEW
        for position in range(len(answer.field("data", kind=list))):
            text, made = answer.field("data", position, "message", default=""), moment(answer, "data", position, "created_time")
            if made >= since and same_text(text, content.caption):
                return self._listed(answer, "data", position, name="id", link="permalink_url")
        return None

    def _find_story(self, account, receipt):
        """The story that shows our file, which no other can."""
        file = receipt.get("video") or receipt["photos"][0]
        answer = self.call(account, "GET", f"/{account.platform_id}/stories", query={"fields": "post_id,media_id,url"})
        for position in range(len(answer.field("data", kind=list))):
            if str(answer.field("data", position, "media_id", kind=(str, int), default="")) == file:
                return self._listed(answer, "data", position, name="post_id", link="url")
        return None

    def _listed(self, answer, *place, name, link):
        post = identity(answer, *place, name=name)
        return Published(post, answer.link(*place, link, default=f"{self.settings['public_url']}/{post}"))


def _profile(answer, *place):
    page, name = identity(answer, *place), answer.field(*place, "name")
    return Profile(page, answer.field(*place, "username", default="") or page, name,
                   answer.link(*place, "picture", "data", "url", default=None))


def _window(answer, item, *path):
    """Which bytes Facebook wants next, from `start` to before `end`; both alike once it has all."""
    offsets = [str(answer.field(*path, name, kind=(str, int))) for name in ("start_offset", "end_offset")]
    if not all(offset.isdecimal() for offset in offsets):
        raise answer.manner.fault()
    start, end = map(int, offsets)
    if not start <= end <= item.bytes:
        raise answer.manner.fault()
    return {"start": start, "end": end}


def _untold(error):
    return Unavailable("Facebook does not tell the state of the video", platform_code=error.platform_code,
                       platform_message=error.platform_message)


def _video_status(answer):
    return answer.field("status", "video_status", default=None)


def _public(answer):
    state, phase = (answer.field("status", "publishing_phase", name, default=None) for name in ("publish_status", "status"))
    if state is None and phase is None:     # as for some videos of the feed
        return _video_status(answer) == "ready" and answer.field("published", kind=bool, default=False)
    return state == "published" or (state is None and phase in DONE)


def _broken(answer):
    """Rejected with Facebook's reason where a video failed, else None."""
    phases = ("uploading_phase", "processing_phase", "publishing_phase")
    failed = [phase for phase in phases if answer.field("status", phase, "status", default=None) == "error"]
    if not failed and _video_status(answer) not in BROKEN:
        return None
    reasons = [answer.field("status", phase, *path, "message", default=None)
               for phase in failed for path in (("error",), ("errors", 0))]
    return Rejected("Facebook could not process the video", rule="video", platform_code=_video_status(answer),
                    platform_message=next(filter(None, reasons), None))


def _succeeded(answer):
    if not answer.field("success", kind=bool):
        raise answer.manner.fault()
