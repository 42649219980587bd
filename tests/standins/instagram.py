"""Instagram: professional accounts on the Graph API v25.0, by the login of Facebook and by its own.

https://developers.facebook.com/docs/instagram-platform/content-publishing; graph.facebook.com, graph.instagram.com and
api.instagram.com are one host here.
"""

import re
from dataclasses import dataclass

from tests.standins.containers import ContainerServer
from tests.standins.instagram_errors import CREATE, ERRORS, PUBLISH  # noqa: F401
from tests.standins.meta import ROOT, Refusal, api, flag, page_of, pick, stamp, structure
from tests.standins.meta_pages import Pages
from tests.standins.meta_upload import upload_error
from tests.standins.server import Answer, route, run

PAGE_SCOPES = {"instagram_basic", "instagram_content_publish", "instagram_manage_comments", "pages_show_list",
               "pages_read_engagement", "business_management", "instagram_shopping_tag_products", "catalog_management"}
OWN_SCOPES = {"instagram_business_basic", "instagram_business_content_publish", "instagram_business_manage_comments"}
READ, LIST, STORIES = f"GET {ROOT}/:node", f"GET {ROOT}/:user/media", f"GET {ROOT}/:user/stories"
COMMENT, COMMENTS = f"POST {ROOT}/:media/comments", f"GET {ROOT}/:media/comments"
UPLOAD_ROOT = "/ig-api-upload/v25.0"
UPLOAD, CHANGE = f"POST {UPLOAD_ROOT}/:container", f"POST {ROOT}/:media"
SHOPPING = {"instagram_shopping_tag_products", "catalog_management"}
CAPTION, HASHTAGS, MENTIONS, ALT_TEXT, PRODUCTS, A_DAY, MADE_A_DAY = 2200, 30, 20, 1000, 5, 100, 400
# What each kind of container may have beside its file; what it must have stands in `_check_kind`.
EVERY = {"caption", "collaborators", "location_id", "is_ai_generated", "is_paid_partnership", "branded_content_sponsor_ids"}
FILE, VIDEO = {"user_tags", "product_tags"}, {"video_url", "upload_type"}
TAKES = {
    "IMAGE": EVERY | FILE | {"image_url", "alt_text"},
    "REELS": EVERY | FILE | VIDEO | {"media_type", "thumb_offset", "share_to_feed", "audio_name", "audio_configuration",
                                     "trial_params", "cover_url"},
    "STORIES": VIDEO | {"media_type", "image_url", "user_tags"},
    "CAROUSEL": EVERY | {"media_type", "children"},
    "ITEM": FILE | VIDEO | {"media_type", "image_url", "is_carousel_item", "alt_text"},
}
PARAMETERS = set().union(*TAKES.values())

@dataclass
class Account:
    """One professional account; `page` is the id of its Page, if it has one."""

    id: str
    username: str
    name: str | None = None
    page: str | None = None

    def node(self):
        """Its fields; `id` is another one for every app, but by the login of Facebook."""
        return {"id": self.id if self.page else f"9{self.id}", "user_id": int(self.id), "username": self.username,
                "name": self.name, "account_type": "BUSINESS", "profile_picture_url": f"https://scontent.test/{self.id}.jpg"}


class InstagramServer(ContainerServer, Pages):
    """Instagram. `given` of a post are the parameters of its container. The own login's answers are wrapped if `wrapped`."""

    errors, all_scopes = ERRORS, PAGE_SCOPES | OWN_SCOPES
    usage_type = "instagram"
    over = (80002, "(#80002) There have been too many calls to this Instagram account. Wait a bit and try again.")
    state_field, reason_field = "status_code", "status"
    unfetched = (9004, "The media could not be fetched from this URI")

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port, processing_polls)
        self.pages, self.accounts_of, self.wrapped = {}, {}, False
        self.comments: dict[str, list] = {}
        self.rates |= {"posts": (A_DAY, 86_400), "containers": (MADE_A_DAY, 86_400)}

    def add_account(self, username, page_token=None, name=None, **details) -> Account:
        """A professional account with a Page."""
        page = self.add_page(f"Page of {username}", page_token, **details)
        account = Account(self.new_id(), username, name, page.id)
        self.accounts_of[account.id] = account
        page.instagram = {key: value for key, value in account.node().items() if key not in ("user_id", "account_type")}
        return account

    def add_own(self, username, token=None, name=None, scopes=OWN_SCOPES) -> Account:
        """A professional account without a Page, which logs in by itself."""
        account = Account(self.new_id(), username, name)
        self.accounts_of[account.id], self.consenting = account, account.id
        if token:
            self.new_token(token, kind="user", owner=account.id, scopes=set(scopes), end=self.now() + 5_184_000)
        return account

    # login of its own

    @route("GET", "/oauth/authorize")
    def own_dialog(self, request):
        """The consent page, with the consent given at once."""
        return self.consent(dict(request.query), OWN_SCOPES)

    @route("POST", "/oauth/access_token")
    def own_access_token(self, request):
        """A token of an hour for a code."""
        return self.own_token(self.given(request), self.wrapped)

    @route("GET", "/access_token")
    def exchange(self, request):
        """A token of 60 days for that."""
        return self.lasting_token(dict(request.query), "ig_exchange_token")

    @route("GET", "/refresh_access_token")
    def refresh(self, request):
        """Another 60 days."""
        return self.renewed_token(dict(request.query), "ig_refresh_token")

    @api("GET", f"{ROOT}/me", "instagram_business_basic", kind="user")
    def me(self, request, token, given):
        """Who logged in."""
        node = pick(self.accounts_of[token.owner].node(), given.get("fields"), "IGUser")
        return {"data": [node]} if self.wrapped else node

    # posts

    @api("POST", f"{ROOT}/:user/media", params=PARAMETERS)
    def create(self, request, token, given):
        """A container, unseen."""
        account = self._own(request.args["user"], token, "content_publish")
        if self.take("containers", account.id).exceeded:
            raise Refusal(9, "Too many containers", subcode=2207042)
        given = {name: value for name, value in given.items() if name in PARAMETERS}
        kind = self._kind(given)
        self._check_kind(kind, given)
        self._check_rights(account, token, given)
        children = self.children_of(account.id, given, 2, 10) if kind == "CAROUSEL" else ()
        made = self.contain(account.id, given, children)
        address = {"uri": f"https://rupload.facebook.com{UPLOAD_ROOT}/{made['id']}"} if "upload_type" in given else {}
        return made | address

    @route("POST", f"{UPLOAD_ROOT}/:container")
    def upload(self, request):
        """The bytes of a video from `offset` on."""
        page, one = self.uploader(request), self.containers.get(request.args["container"])
        if one is None or one.upload is None or self.accounts_of[one.owner].page != page:
            return Answer(401, upload_error("NotAuthorizedError", "The user is not authorized"))
        if self.state_of(one) != "IN_PROGRESS":
            return Answer(400, upload_error("ProcessingFailedError", "Request processing failed"))
        one.upload.take(request)
        return {"success": True, "message": "Upload successful."}

    @api("POST", f"{ROOT}/:user/media_publish", needs=("creation_id",))
    def media_publish(self, request, token, given):
        """What a container holds becomes public."""
        account = self._own(request.args["user"], token, "content_publish")
        if self.take("posts", account.id, points=0).remaining == 0:
            raise Refusal(9, "The user reached the maximum number of posts", subcode=2207042)
        one = self.to_publish(account.id, given["creation_id"])
        self.take("posts", account.id)
        return {"id": self.show(one, kind=self._kind(one.given))["id"]}

    @api("GET", f"{ROOT}/:user/media", params=("limit", "after"))
    def media(self, request, token, given):
        """The posts of the account, newest first."""
        return self._list(request, token, given, lambda post: post["kind"] != "STORIES")

    @api("GET", f"{ROOT}/:user/stories", params=("limit", "after"))
    def stories(self, request, token, given):
        """The stories of the account."""
        return self._list(request, token, given, lambda post: post["kind"] == "STORIES")

    @api("POST", f"{ROOT}/:media/comments", needs=("message",))
    def comment(self, request, token, given):
        """A comment of the account itself. With `fields` it is written, and the answer is an error all the same."""
        post = self._post(request.args["media"])
        account = self._own(post["owner"], token, "manage_comments")
        if post["kind"] == "STORIES":
            raise Refusal(100, "(#100) Stories take no comments")
        if not post.get("open", True):
            raise Refusal(100, "(#100) Comments are closed")
        one = {"id": self.new_id(), "text": given["message"], "timestamp": stamp(self.now()), "username": account.username}
        self.comments.setdefault(post["id"], []).append(one)
        if "fields" in given:
            raise Refusal(20, "Cannot read the comment", subcode=1772107)
        return {"id": one["id"]}

    @api("POST", f"{ROOT}/:media", needs=("comment_enabled",))
    def change(self, request, token, given):
        """Opens or closes the comments of a post."""
        post = self._post(request.args["media"])
        self._own(post["owner"], token, "manage_comments")
        post["open"] = flag(given, "comment_enabled", True)
        return {"success": True}

    @api("GET", f"{ROOT}/:media/comments", params=("limit", "after"))
    def read_comments(self, request, token, given):
        """The comments under a post."""
        post = self._post(request.args["media"])
        self._own(post["owner"], token, "manage_comments")
        return page_of(self.comments.get(post["id"], []), given, lambda one: pick(one, given.get("fields"), "IGComment"))

    @api("GET", f"{ROOT}/:node")
    def node(self, request, token, given):
        """A Page with its token, an account, a container or a post."""
        name, fields = request.args["node"], given.get("fields")
        if page := self.pages.get(name):
            return pick(self._page_node(page), fields, "Page")
        if account := self.accounts_of.get(name):
            self._own(name, token, "basic")
            return pick(account.node(), fields, "IGUser")
        if one := self.containers.get(name):
            self._own(one.owner, token, "basic")
            sent = one.upload and {"uploading_phase": {"status": "in_progress", "bytes_transferred": len(one.upload.data)}}
            return pick({**self.ask(one), "video_status": sent}, fields, "IGContainer")
        return pick(self._post_node(self._post(name)), fields, "IGMedia")

    # private

    def not_ready(self):
        """The refusal of a container that is not FINISHED."""
        return Refusal(9007, "Media ID is not available", subcode=2207027)

    def unpublishable(self, name):
        """The refusal of a container that is not there, or was published before."""
        return Refusal(24, "The requested resource does not exist", subcode=2207008)

    def _own(self, name, token, right):
        account = self.accounts_of.get(name)
        if account is None or token.owner not in (account.id, account.page):
            raise Refusal(100, f"Unsupported request. Object with ID '{name}' does not exist", subcode=33)
        prefix = "instagram_" if token.kind == "page" else "instagram_business_"
        if f"{prefix}{right}" not in token.scopes:
            raise Refusal(10, f"(#10) Requires {prefix}{right} permission", status=403)
        return account

    def _kind(self, given):
        if "is_carousel_item" in given:
            return "ITEM"
        return given.get("media_type", "IMAGE")

    def _check_kind(self, kind, given):
        if kind not in TAKES or (kind == "ITEM" and given.get("media_type", "VIDEO") != "VIDEO"):
            raise Refusal(100, "The media type is not known", subcode=2207023)
        if wrong := given.keys() - TAKES[kind]:
            raise Refusal(100, f"(#100) A container of {kind} takes no {sorted(wrong)[0]}")
        files = [name for name in ("image_url", "video_url", "upload_type", "children") if given.get(name)]
        needed = {"IMAGE": {"image_url"}, "REELS": VIDEO, "CAROUSEL": {"children"}}.get(kind, VIDEO | {"image_url"})
        if len(files) != 1 or files[0] not in needed or given.get("upload_type", "resumable") != "resumable":
            raise Refusal(100, "(#100) The parameter image_url is required")
        if kind == "ITEM" and (files[0] in VIDEO) != ("media_type" in given):
            raise Refusal(100, "(#100) A video of a carousel needs media_type=VIDEO, an image none")
        self._check_texts(given)
        self._check_options(kind, given)
        self._check_tags(kind, given, "user_tags", "username")
        self._check_tags(kind, given, "product_tags", "product_id")

    def _check_texts(self, given):
        caption = given.get("caption", "")
        if len(caption) > CAPTION or len(re.findall(r"(?<![\w/&])#\w", caption)) > HASHTAGS:
            raise Refusal(36004, "The caption was too long", subcode=2207010)
        if len(re.findall(r"(?<![\w.])@\w", caption)) > MENTIONS:
            raise Refusal(100, "Too many mentions", subcode=2207040)
        if len(given.get("alt_text", "")) > ALT_TEXT or ("alt_text" in given and VIDEO & given.keys()):
            raise Refusal(100, "(#100) alt_text is too long, or not for this file")

    def _check_options(self, kind, given):
        for name in ("is_carousel_item", "is_ai_generated", "is_paid_partnership", "share_to_feed"):
            flag(given, name, False)
        for name, most in {"collaborators": 3, "branded_content_sponsor_ids": 2}.items():
            names = structure(given, name, list)
            if len(names) > most or any(not isinstance(name, str) for name in names):
                raise Refusal(100, f"(#100) Too many {name}")
        music = structure(given, "audio_configuration", dict)
        volumes = [value for name, value in music.items() if name != "audio_id"]
        if music and (not isinstance(music.get("audio_id"), str) or music.keys() - {"audio_id", "audio_volume", "video_volume"}
                      or not all(isinstance(volume, int) and 0 <= volume <= 100 for volume in volumes)):
            raise Refusal(100, "(#100) Invalid audio_configuration")
        if not given.get("cover_url", "https://").startswith(("http://", "https://")):
            raise Refusal(9004, "The cover could not be fetched from this URI", subcode=2207052)
        if "thumb_offset" in given and not given["thumb_offset"].isdecimal():
            raise Refusal(1, "Thumbnail offset", subcode=2207057)
        if "location_id" in given and not given["location_id"].isdecimal():
            raise Refusal(100, "INSTAGRAM_PLATFORM_API__INVALID_LOCATION_ID")
        trial = structure(given, "trial_params", dict)
        if trial and trial.get("graduation_strategy") not in ("MANUAL", "SS_PERFORMANCE"):
            raise Refusal(100, "(#100) Invalid trial_params")

    def _check_tags(self, kind, given, name, whom):
        tags = structure(given, name, list)
        for tag in tags:
            where = {"x", "y"} & tag.keys()
            if not isinstance(tag.get(whom), str) or tag.keys() - {whom, "x", "y"}:
                raise Refusal(100, f"(#100) {name} needs {whom}")
            fits = {"IMAGE": len(where) == 2, "ITEM": len(where) == 2 and "image_url" in given, "REELS": not where}
            if not fits.get(kind, True):
                raise Refusal(100, f"(#100) {name} has positions that do not fit", subcode=2207036)
        if name == "product_tags" and len(tags) > PRODUCTS:
            raise Refusal(100, "(#100) Too many products", subcode=2207037)

    def _check_rights(self, account, token, given):
        if {"upload_type", "audio_configuration", "product_tags"} & given.keys() and account.page is None:
            raise Refusal(100, "(#100) This is for accounts with a Page")
        if "product_tags" in given and not SHOPPING <= token.scopes:
            raise Refusal(10, "(#10) Requires instagram_shopping_tag_products permission", status=403)

    def _post(self, name):
        post = next((post for post in self.posts if post["id"] == name), None)
        if post is None:
            raise self.gone(name)
        return post

    def _list(self, request, token, given, wanted):
        account = self._own(request.args["user"], token, "basic")
        found = [post for post in self.listed(account.id) if wanted(post)]
        return page_of(found, given, lambda post: pick(self._post_node(post), given.get("fields"), "IGMedia"))

    def _post_node(self, post):
        where = {"REELS": "reel", "STORIES": f"stories/{post['owner']}"}.get(post["kind"], "p")
        code = f"C{int(post['id']):x}"
        return {"id": post["id"], "caption": post["given"].get("caption"), "timestamp": self.timestamp(post), "shortcode": code,
                "permalink": f"https://www.instagram.com/{where}/{code}/", "media_type": "IMAGE", "media_product_type": "FEED"}

    def _page_node(self, page):
        return {**super()._page_node(page), "instagram_business_account": page.instagram}


if __name__ == "__main__":
    run(InstagramServer)
