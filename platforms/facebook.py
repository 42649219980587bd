"""Facebook Pages: https://developers.facebook.com/documentation/pages-api/posts"""

import json
import time
from dataclasses import replace
from datetime import datetime

from platforms.base import (GIF, JPEG, MB, MP4, PNG, QUICKTIME, Absent, Connected, ImageLimits, Limits, PostType, Problem,
                            Processing, Profile, Published, VideoLimits)
from platforms.errors import PermissionMissing, PlatformError, Rejected
from platforms.facebook_video import EXTENSIONS, Videos, first, is_public, succeeded
from platforms.http import SENTENCES, THROTTLED, Upload
from platforms.meta import QUOTA_PAUSE, SKEW, VERDICTS, FacebookLogin, Transient, Verdicts, identity, moment, pause, same_text

PHOTO = ImageLimits(types=(JPEG, PNG, GIF), max_bytes=10 * MB)      # docs/graph-api/reference/page/photos; GIFs stand still
THUMBNAIL = replace(PHOTO, types=(JPEG, PNG))       # docs/graph-api/reference/video/thumbnails
# docs/graph-api/video-uploads: 10 GB and 4 hours in chunks, no WebM. No shape is documented today for videos of the feed.
VIDEO = VideoLimits(types=(MP4, QUICKTIME), max_duration=4 * 60 * 60)
# documentation/video-api/guides/reels-publishing: 9:16, which leaves the odd pixel of an encoder undecided.
REEL = VideoLimits(types=(MP4, QUICKTIME), min_width=540, min_height=960, min_aspect_ratio=0.56, max_aspect_ratio=0.57,
                   min_duration=3, max_duration=90)
STORY = replace(REEL, max_duration=60)      # docs/page-stories-api

FOLLOWING = ("firstComment", "firstCommentImageUrl")
OF_POSTS = ("placeId", "sponsorId", "targeting", "backdatedTime", "backdatedTimeGranularity", *FOLLOWING)
PARAMETERS = {"link": "link", "placeId": "place", "sponsorId": "sponsor_id", "title": "title",
              "backdatedTime": "backdated_time", "backdatedTimeGranularity": "backdated_time_granularity"}
PROFILE = "id,name,username,picture.type(large){url}"
KEPT = 20 * 3600            # seconds that photos are relied on; they vanish a day after their upload if no post shows them
NO_VIDEO = "No permission to publish the video"      # of code 100, which speaks of parameters otherwise
LISTED = 25                 # of the newest posts, among which one in doubt is looked for


def of_parameter(sentence, **words):
    """The error for code 100, of which only the message tells whether a permission is missing."""
    if NO_VIDEO in (words["platform_message"] or ""):
        return PermissionMissing(SENTENCES[PermissionMissing].format("Facebook"), **words)
    return Rejected(sentence, **words)


class Facebook(Videos):
    """A Facebook Page. Profiles of persons and groups cannot be published to.

    Not offered: what the network would publish at its own time, or keep as a draft, since that is our part; tags of people,
    whose ids no app is told; backgrounds of texts, labels of AI and preferred audiences, whose values or effects are not
    documented any more, or not yet.
    """

    name = "facebook"
    title = "Facebook"
    limits = Limits(
        caption=63_206,     # on no page of the documentation: the number that other publishers use
        media_items=10,     # not documented either
        title=255,          # nor this
        image=PHOTO, video=VIDEO,
        source="https://developers.facebook.com/documentation/pages-api/posts", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True, options=OF_POSTS),
        "image": PostType(images=(1, 10), options=("altTexts", *OF_POSTS)),
        # The image becomes the thumbnail.
        "video": PostType(images=(0, 1), videos=(1, 1), mixed=True, image=THUMBNAIL,
                          options=("title", "sponsorId", "targeting", *FOLLOWING)),
        "reel": PostType(images=(0, 1), videos=(1, 1), mixed=True, image=THUMBNAIL, video=REEL,
                         options=("title", "placeId", "targeting", "collaboratorIds", *FOLLOWING)),
        "story": PostType(images=(0, 1), videos=(0, 1), total=(1, 1), caption=0, video=STORY),
        "link": PostType(required=("link",), options=OF_POSTS),
    }
    follow_options = (*FOLLOWING, "collaboratorIds")
    live = True
    scopes = ("pages_show_list", "pages_read_engagement", "pages_manage_posts", "pages_manage_engagement",
              "business_management")
    settings = {**FacebookLogin.settings, "video_url": "https://graph-video.facebook.com/{version}",
                "upload_url": "https://rupload.facebook.com/video-upload/{version}"}
    verdicts = Verdicts({
        **VERDICTS, "100": of_parameter, "80001": THROTTLED, "/1390008": THROTTLED,
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

    def extra_problems(self, post_type, content):
        """Times that are not past, and options that need another one."""
        options = content.options
        if "backdatedTime" in options and not _is_past(options["backdatedTime"]):
            yield Problem("options/backdatedTime", "past", "this is no time in the past")
        for option, needed in {"backdatedTimeGranularity": "backdatedTime", "firstCommentImageUrl": "firstComment"}.items():
            if option in options and needed not in options:
                yield Problem(f"options/{needed}", "required", f"{option} needs {needed}")

    def comment(self, content):
        """The parameters of the first comment, with its picture."""
        picture = {"attachment_url": url} if (url := content.options.get("firstCommentImageUrl")) else {}
        return {**super().comment(content), **picture}

    def prepare(self, account, content, receipt):
        """Uploads the files: photos that nobody sees yet, or a video up to the last call."""
        kind, video = self._kind(content), first(content, video=True)
        if video and first(content, video=False):
            receipt = {**receipt, "thumbnail": True}
        if kind == "video":
            yield from self._send_parts(account, video, receipt)
        elif video:
            yield from self._send_whole(account, video, receipt, kind)
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
        form = {"message": content.caption, **_parameters(content)}
        if "photos" in receipt:
            form["attached_media"] = json.dumps([{"media_fbid": photo} for photo in receipt["photos"]])
        answer = self._post(account, "feed", commits=True, **form)
        post = identity(answer)
        return Published(post, self._post_url(account, post))

    def find(self, account, content, receipt):
        """Asks for the video, or looks through the newest posts or the stories. What is not there may still come: no Absent."""
        if content.media and not receipt:
            return Absent()
        if self._kind(content) == "story":
            return self._find_story(account, receipt)
        if "video" in receipt:
            answer = self._video(account, receipt["video"])
            if is_public(answer):
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

    def _publish_video(self, account, content, receipt, kind):
        form = {"phase": "finish", "description": content.caption, **_parameters(content)}
        if kind == "reel":
            answer = self._post(account, "video_reels", commits=True, video_id=receipt["video"], video_state="PUBLISHED",
                                **form)
        else:
            answer = self._post(account, "videos", host="video_url", commits=True, upload_session_id=receipt["session"], **form)
        succeeded(answer)
        return Processing(receipt, pause(0))

    def _publish_story(self, account, receipt):
        if "video" in receipt:
            answer = self._post(account, "video_stories", commits=True, phase="finish", video_id=receipt["video"])
        else:
            answer = self._post(account, "photo_stories", commits=True, photo_id=receipt["photos"][0])
        succeeded(answer)
        post = identity(answer, name="post_id")
        try:
            return self._find_story(account, receipt) or Published(post, f"{self.settings['public_url']}/{post}")
        except PlatformError:
            return Published(post, f"{self.settings['public_url']}/{post}")

    def _post_url(self, account, post):
        """The permalink. The post is public, whatever becomes of this question."""
        guess = f"{self.settings['public_url']}/{post}"
        try:
            return self.call(account, "GET", f"/{post}", query={"fields": "permalink_url"}).link("permalink_url", default=guess)
        except PlatformError:
            return guess

    def _find_post(self, account, content):
        """The newest post with our text since it was sent; one without text, or dated back, cannot be told from others."""
        if not content.caption.strip() or "backdatedTime" in content.options:
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


def _parameters(content):
    """The parameters of a post that stand for its options."""
    found = {name: content.options[ours] for ours, name in PARAMETERS.items() if ours in content.options}
    if audience := content.options.get("targeting"):
        places = {"geo_locations": {"countries": audience["countries"]}} if "countries" in audience else {}
        ages = {"age_min": audience["ageMin"]} if "ageMin" in audience else {}
        found["targeting"] = json.dumps({**places, **ages})
    return found


def _is_past(text):
    """Whether a time exists and is over."""
    try:
        return datetime.fromisoformat(text).timestamp() < time.time()
    except (ValueError, OverflowError):
        return False


def _profile(answer, *place):
    page, name = identity(answer, *place), answer.field(*place, "name")
    return Profile(page, answer.field(*place, "username", default="") or page, name,
                   answer.link(*place, "picture", "data", "url", default=None))
