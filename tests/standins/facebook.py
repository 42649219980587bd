"""Facebook: Pages on the Graph API v25.0, https://developers.facebook.com/docs/pages-api/posts.

Its three hosts are one here.
"""

from datetime import datetime

from tests.standins.facebook_errors import ERRORS, FEED, UPLOAD, UPLOAD_ROOT  # noqa: F401
from tests.standins.facebook_media import Photo, Video, hashes  # noqa: F401
from tests.standins.meta import ROOT, Refusal, api, file_of, flag, page_of, pick, stamp, structure
from tests.standins.meta_pages import Pages
from tests.standins.meta_upload import upload_error
from tests.standins.server import Answer, route, run, sniff

SCOPES = {"pages_show_list", "pages_read_engagement", "pages_manage_posts", "pages_manage_engagement", "business_management",
          "pages_read_user_content", "publish_video"}
VIDEO_ROOT = "/video/v25.0"
PHOTOS, REELS = f"POST {ROOT}/:page/photos", f"POST {ROOT}/:page/video_reels/finish"
PHOTO_STORIES, VIDEO_STORIES = f"POST {ROOT}/:page/photo_stories", f"POST {ROOT}/:page/video_stories/finish"
VIDEOS, PARTS = f"POST {VIDEO_ROOT}/:page/videos/finish", f"POST {VIDEO_ROOT}/:page/videos/transfer"
COMMENT, THUMBNAILS, INVITE = (f"POST {ROOT}/:post/comments", f"POST {ROOT}/:video/thumbnails",
                               f"POST {ROOT}/:video/collaborators")
READ, LIST, STORIES, COMMENTS = (f"GET {ROOT}/:node", f"GET {ROOT}/:page/published_posts", f"GET {ROOT}/:page/stories",
                                 f"GET {ROOT}/:post/comments")
TEXT, PHOTO_BYTES, PHOTO_LIFE, ATTACHED = 63_206, 10 << 20, 86_400, 10
PHOTO_TYPES = ("image/jpeg", "image/png", "image/gif")
PART = 1 << 20          # bytes of a part of a video of the feed
REELS_A_DAY, INVITES_A_DAY = (30, 86_400), (10, 86_400)
AGES, GRANULARITIES = (13, 15, 18, 21, 25), ("year", "month", "day", "hour", "min", "none")


class FacebookServer(Pages):
    """Facebook. posts are what the Pages show, in order: dicts with id, page, kind, message and what belongs to the kind.

    processing_polls is how often a video is found unfinished; `drafts` = videos of the feed end as drafts; `places` are known.
    """

    errors, all_scopes = ERRORS, SCOPES

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls, self.drafts, self.places = processing_polls, False, {"900"}
        self.photos: dict[str, Photo] = {}
        self.videos: dict[str, Video] = {}
        self.comments: dict[str, list] = {}
        self.rates |= {"reels": REELS_A_DAY, "invites": INVITES_A_DAY}

    # posts

    @api("POST", f"{ROOT}/:page/feed", "pages_manage_posts", kind="page",
         params=("message", "link", "place", "attached_media", "targeting", "sponsor_id", "backdated_time",
                 "backdated_time_granularity"))
    def feed(self, request, token, given):
        """A post with a text, a link or photos."""
        page = self._own(request, token)
        photos = [self._photo(one, page) for one in structure(given, "attached_media", list)]
        message = given.get("message")
        if not ((message or "").strip() or given.get("link") or photos):
            raise Refusal(100, "(#100) Missing message or attachment")
        if len(message or "") > TEXT or len(photos) > ATTACHED:
            raise Refusal(100, "(#100) Param message or attached_media is too long")
        if not given.get("link", "http").startswith("http"):
            raise Refusal(100, "(#100) link URL is not properly formatted", subcode=1609005)
        last = next((post for post in reversed(self.posts) if post["page"] == page), {})
        if message and not photos and (last.get("message"), last.get("link")) == (message, given.get("link")):
            raise Refusal(506, "(#506) Duplicate status message")
        post = self._public(page, "feed", message=message, link=given.get("link"), place=self._place(given),
                            photos=[photo.id for photo in photos], **self._choices(given))
        for photo in photos:
            photo.post = post["id"]
        return {"id": post["id"]}

    @api("POST", f"{ROOT}/:page/photos", "pages_manage_posts", kind="page",
         params=("source", "url", "caption", "alt_text_custom", "published", "place"))
    def send_photo(self, request, token, given):
        """A photo, public unless it says otherwise."""
        page, source = self._own(request, token), file_of(given, "source")
        if source.media_type not in PHOTO_TYPES or sniff(source.data) not in PHOTO_TYPES:
            raise Refusal(324, "(#324) Missing or invalid image file")
        if len(source.data) > PHOTO_BYTES:
            raise Refusal(100, "Your photos couldn't be uploaded.", subcode=1366046)
        photo = Photo(self.new_id(), page, source.data, given.get("alt_text_custom"), self.now())
        self.photos[photo.id] = photo
        if not flag(given, "published", True):
            return {"id": photo.id}
        photo.post = self._public(page, "feed", message=given.get("caption"), photos=[photo.id])["id"]
        return {"id": photo.id, "post_id": photo.post}

    @api("POST", f"{VIDEO_ROOT}/:page/videos/start", "pages_manage_posts", kind="page", needs=("file_size",))
    def start_video(self, request, token, given):
        """A video of the feed begins."""
        video = self._start(self._own(request, token), "videos", size=int(given["file_size"]), session=self.new_id())
        return {"upload_session_id": video.session, "video_id": video.id, **self._window(video)}

    @api("POST", f"{VIDEO_ROOT}/:page/videos/transfer", "pages_manage_posts", kind="page",
         needs=("upload_session_id", "start_offset", "video_file_chunk"))
    def transfer_video(self, request, token, given):
        """The part of it that is waited for."""
        video, part = self._session(request, token, given), file_of(given, "video_file_chunk")
        window = self._window(video)
        if given["start_offset"] != window["start_offset"]:
            raise Refusal(100, "There was a problem with the start offset", subcode=1363037, error_data={
                name: int(value) for name, value in window.items()})
        if len(part.data) != int(window["end_offset"]) - int(window["start_offset"]):
            raise Refusal(6000, "There was a problem uploading your video file.", subcode=1363033)
        video.data += part.data
        return self._window(video)

    @api("POST", VIDEOS.removeprefix("POST "), "pages_manage_posts", kind="page", needs=("upload_session_id",),
         params=("title", "description", "targeting", "sponsor_id"))
    def finish_video(self, request, token, given):
        """It is published."""
        video = self._session(request, token, given)
        if len(video.data) < video.size:
            raise Refusal(100, "(#100) The video upload is not complete", subcode=1363031)
        self._finish(video, given)
        return {"success": True}

    @api("POST", f"{ROOT}/:page/video_reels/start", "pages_manage_posts", kind="page")
    def start_reel(self, request, token, given):
        """A reel begins."""
        return self._whole(self._own(request, token), "video_reels")

    @api("POST", REELS.removeprefix("POST "), "pages_manage_posts", kind="page", needs=("video_id", "video_state"),
         params=("title", "description", "place", "targeting"))
    def finish_reel(self, request, token, given):
        """It is published, however often this is said."""
        page = self._own(request, token)
        video = self._uploaded(page, given, "video_reels")
        if given["video_state"] != "PUBLISHED":
            raise Refusal(100, "(#100) Param video_state must be one of {DRAFT, PUBLISHED, SCHEDULED}")
        if self.take("reels", page).exceeded:
            raise Refusal(613, "(#613) Too many reels in 24 hours")
        self._place(given)
        if video.state == "waiting":
            self._finish(video, given)
        return {"success": True}

    @api("POST", f"{ROOT}/:page/video_stories/start", "pages_manage_posts", kind="page")
    def start_story(self, request, token, given):
        """The video of a story begins."""
        return self._whole(self._own(request, token), "video_stories")

    @api("POST", VIDEO_STORIES.removeprefix("POST "), "pages_manage_posts", kind="page", needs=("video_id",))
    def finish_story(self, request, token, given):
        """It is published, once it is processed."""
        page = self._own(request, token)
        video = self._uploaded(page, given, "video_stories")
        if video.state != "waiting" or video.polls:
            raise Refusal(100, "(#100) The video is not ready, or was published before", subcode=1363130)
        video.state = "published"
        post = self._public(page, "story", media_id=video.id)
        return {"success": True, "post_id": int(post["id"])}

    @api("POST", f"{ROOT}/:page/photo_stories", "pages_manage_posts", kind="page", needs=("photo_id",))
    def photo_stories(self, request, token, given):
        """A story of a photo that no post shows."""
        page = self._own(request, token)
        photo = self._photo({"media_fbid": given["photo_id"]}, page)
        photo.post = self._public(page, "story", media_id=photo.id)["id"]
        return {"success": True, "post_id": photo.post}

    @route("POST", f"{UPLOAD_ROOT}/:video")
    def upload(self, request):
        """The bytes of a reel or a story from `offset` on."""
        page, video = self.uploader(request), self.videos.get(request.args["video"])
        if video is None or page != video.page:
            return Answer(401, upload_error("NotAuthorizedError", "The user is not authorized"))
        if video.state != "uploading":
            return Answer(400, upload_error("ProcessingFailedError", "Request processing failed"))
        video.take(request)
        video.state, video.polls = "waiting", self.processing_polls if video.edge == "video_stories" else 0
        return {"success": True}

    @api("POST", f"{ROOT}/:video/thumbnails", "pages_manage_posts", kind="page", needs=("source", "is_preferred"))
    def thumbnails(self, request, token, given):
        """The picture of a video."""
        video, source = self._own_video(request, token), file_of(given, "source")
        kind = sniff(source.data)
        if kind not in PHOTO_TYPES[:2] or source.media_type != kind or len(source.data) > PHOTO_BYTES:
            raise Refusal(100, "(#100) Invalid thumbnail")
        flag(given, "is_preferred", False)
        video.thumbnail = source.data
        return {"success": True}

    @api("POST", f"{ROOT}/:video/collaborators", "pages_manage_posts", kind="page", needs=("target_id",))
    def collaborators(self, request, token, given):
        """Another Page is asked whether a reel is to be its own as well."""
        video = self._own_video(request, token)
        if video.edge != "video_reels" or not given["target_id"].isdecimal() or given["target_id"] in video.invited:
            raise Refusal(100, "(#100) Invalid collaborator")
        if self.take("invites", token.owner).exceeded:
            raise Refusal(613, "(#613) Too many invitations in 24 hours")
        video.invited.append(given["target_id"])
        return {"success": True}

    # reading

    @api("GET", f"{ROOT}/:page/published_posts", "pages_read_engagement", params=("limit", "after"), kind="page")
    def published_posts(self, request, token, given):
        """The posts of the Page, newest first."""
        page = self._own(request, token)
        found = [post for post in reversed(self.posts) if post["page"] == page and post["kind"] != "story"]
        found.sort(key=lambda post: post["created"], reverse=True)
        return page_of(found, given, lambda post: pick(self._post_node(post), given.get("fields"), "PagePost"))

    @api("GET", f"{ROOT}/:page/stories", "pages_read_engagement", params=("limit", "after"), kind="page")
    def stories(self, request, token, given):
        """The stories of the Page, newest first."""
        page = self._own(request, token)
        found = [post for post in reversed(self.posts) if post["page"] == page and post["kind"] == "story"]
        nodes = [{"id": None, "post_id": post["id"], "media_id": post["media_id"], "status": "PUBLISHED",
                  "url": f"https://facebook.com/stories/{post['id']}"} for post in found]
        return page_of(nodes, given, lambda node: pick(node, given.get("fields"), "Stories"))

    @api("GET", f"{ROOT}/:node", params=())
    def node(self, request, token, given):
        """A Page, a post or a video."""
        name, fields = request.args["node"], given.get("fields")
        name = token.owner if name == "me" and token.kind == "page" else name
        if page := self.pages.get(name):
            return pick(self._page_node(page), fields, "Page")
        if video := self.videos.get(name):
            return self._read_video(video, fields)
        post = next((post for post in self.posts if post["id"] == name and post["kind"] == "feed"), None)
        if post is None:
            raise Refusal(100, f"Unsupported get request. Object with ID '{name}' does not exist", subcode=33,
                          kind="GraphMethodException")
        return pick(self._post_node(post), fields, "PagePost")

    @api("POST", f"{ROOT}/:post/comments", "pages_manage_engagement", kind="page", needs=("message",),
         params=("attachment_url",))
    def comment(self, request, token, given):
        """A comment of the Page itself."""
        self._commentable(request.args["post"])
        one = {"id": f"{request.args['post']}_{self.new_id()}", "message": given["message"], "created_time": stamp(self.now()),
               "from": {"id": token.owner}, "attachment": given.get("attachment_url")}
        self.comments.setdefault(request.args["post"], []).append(one)
        return {"id": one["id"]}

    @api("GET", f"{ROOT}/:post/comments", "pages_read_engagement", params=("limit", "after"), kind="page")
    def read_comments(self, request, token, given):
        """The comments under a post."""
        self._commentable(request.args["post"])
        found = self.comments.get(request.args["post"], [])
        if "pages_read_user_content" not in token.scopes:
            found = [one | {"from": one["from"] if one["from"]["id"] == token.owner else None} for one in found]
        return page_of(found, given, lambda one: pick(one, given.get("fields"), "Comment"))

    # private

    def _post_node(self, post):
        name = post["id"].rpartition("_")[2]
        return {"id": post["id"], "message": post["message"], "created_time": stamp(post["created"]),
                "permalink_url": f"https://www.facebook.com/{post['page']}/posts/{name}"}

    def _own(self, request, token):
        if request.args["page"] != token.owner:
            raise Refusal(200, "(#200) The token is not that of the Page", status=403)
        return token.owner

    def _place(self, given):
        if "place" in given and given["place"] not in self.places:
            raise Refusal(100, "(#100) Param place must be a valid place tag ID")
        return given.get("place")

    def _choices(self, given):
        """What a post was given of audience, sponsor and date, checked."""
        audience = structure(given, "targeting", dict)
        countries = audience.get("geo_locations", {}).get("countries", [])
        if (audience.keys() - {"geo_locations", "age_min"} or audience.get("age_min", AGES[0]) not in AGES
                or not all(isinstance(country, str) and len(country) == 2 for country in countries)):
            raise Refusal(100, "(#100) Param targeting is not valid")
        if not given.get("sponsor_id", "1").isdecimal():
            raise Refusal(100, "(#100) Param sponsor_id must be a Page")
        found = {"targeting": audience or None, "sponsor": given.get("sponsor_id")}
        if given.get("backdated_time_granularity", "none") not in GRANULARITIES:
            raise Refusal(100, "(#100) Param backdated_time_granularity is not valid")
        if "backdated_time" in given:
            found["created"] = datetime.fromisoformat(given["backdated_time"]).timestamp()
            if found["created"] > self.now():
                raise Refusal(100, "(#100) Param backdated_time must be in the past")
        return found

    def _own_video(self, request, token):
        video = self.videos.get(request.args["video"])
        if video is None or video.page != token.owner:
            raise Refusal(100, f"Object with ID '{request.args['video']}' does not exist", subcode=33)
        return video

    def _public(self, page, kind, *, message=None, **details):
        name = self.new_id() if kind == "story" else f"{page}_{self.new_id()}"
        post = {"id": name, "page": page, "kind": kind, "message": message, "created": self.now(), **details}
        self.posts.append(post)
        return post

    def _photo(self, item, page):
        photo = self.photos.get(item.get("media_fbid")) if isinstance(item, dict) else None
        if photo is None or photo.page != page or self.now() > photo.made + PHOTO_LIFE:
            raise Refusal(100, "(#100) Invalid photo")
        if photo.post:
            raise Refusal(100, "Photos were already posted.", subcode=1366051)
        return photo

    def _start(self, page, edge, **details):
        video = Video(self.new_id(), page, edge, **details)
        self.videos[video.id] = video
        return video

    def _whole(self, page, edge):
        video = self._start(page, edge)
        return {"video_id": video.id, "upload_url": f"https://rupload.facebook.com{UPLOAD_ROOT}/{video.id}"}

    def _window(self, video):
        start = len(video.data)
        return {"start_offset": str(start), "end_offset": str(min(start + PART, video.size))}

    def _session(self, request, token, given):
        page = self._own(request, token)
        video = next((one for one in self.videos.values() if one.session == given["upload_session_id"]), None)
        if video is None or video.page != page or video.state != "uploading":
            raise Refusal(100, "(#100) Invalid upload session", subcode=1363035)
        return video

    def _uploaded(self, page, given, edge):
        video = self.videos.get(given.get("video_id"))
        if video is None or (video.page, video.edge) != (page, edge) or video.state in ("uploading", "error"):
            raise Refusal(100, "(#100) The video is not uploaded", subcode=1363131)
        return video

    def _finish(self, video, given):
        video.state, video.polls = "publishing", self.processing_polls
        video.title, video.description = given.get("title"), given.get("description")
        if not (self.drafts and video.edge == "videos"):
            post = self._public(video.page, "video", message=video.description, title=video.title, video=video.id,
                                place=given.get("place"), edge=video.edge, **self._choices(given))
            post["id"] = video.id

    def _read_video(self, video, fields):
        node = {"id": video.id, "status": video.status(self.now()), "published": video.state == "published", "post_id": None,
                "description": video.description, "title": video.title,
                "permalink_url": f"/reel/{video.id}/" if video.edge == "video_reels" else f"/{video.page}/videos/{video.id}/"}
        if video.polls:
            video.polls -= 1
        elif video.state == "publishing":
            video.state = "draft" if self.drafts and video.edge == "videos" else "published"
            node |= {"status": video.status(self.now()), "published": video.state == "published"}
        return pick(node, fields, "Video")

    def _commentable(self, name):
        if not any(post["id"] == name and post["kind"] != "story" for post in self.posts):
            raise Refusal(100, f"Object with ID '{name}' does not exist", subcode=33)


if __name__ == "__main__":
    run(FacebookServer)
