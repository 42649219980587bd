"""Threads: profiles on graph.threads.net, https://developers.facebook.com/documentation/threads/posts"""

import regex

from tests.standins.containers import ContainerServer
from tests.standins.meta import Refusal, api, body, flag, page_of, pick, structure
from tests.standins.server import route, run

ROOT = "/v1.0"
SCOPES = {"threads_basic", "threads_content_publish", "threads_manage_replies", "threads_read_replies",
          "threads_location_tagging", "threads_delete", "threads_manage_insights", "threads_share_to_instagram"}
CREATE, PUBLISH = f"POST {ROOT}/:user/threads", f"POST {ROOT}/:user/threads_publish"
READ, LIST, REPLIES, ME = f"GET {ROOT}/:node", f"GET {ROOT}/:user/threads", f"GET {ROOT}/:user/replies", f"GET {ROOT}/me"
TEXT, LINKS, ALT_TEXT, TOPIC, ANSWER = 500, 5, 1000, 50, 25
LONG_TEXT, SPOILERS = 10_000, 10
SHARES = ("crossreshare_to_ig", "crossreshare_to_ig_dark_mode")
RATES = {"posts": (250, 86_400), "replies": (1000, 86_400)}
AUDIENCES = ("everyone", "accounts_you_follow", "mentioned_only", "parent_post_author_only", "followers_only")
EVERY = {"media_type", "text", "reply_control", "reply_to_id", "enable_reply_approvals", "topic_tag", "location_id",
         "quote_post_id", "text_entities", "allowlisted_country_codes", "crossreshare_to_ig", "crossreshare_to_ig_dark_mode"}
STYLES = {"bold", "italic", "highlight", "underline", "strikethrough"}
# What each kind of container may have; ITEM is a file of a carousel.
TAKES = {
    "TEXT": EVERY | {"link_attachment", "poll_attachment", "gif_attachment", "text_attachment", "is_ghost_post"},
    "IMAGE": EVERY | {"image_url", "alt_text", "is_spoiler_media"},
    "VIDEO": EVERY | {"video_url", "alt_text", "is_spoiler_media"},
    "CAROUSEL": EVERY | {"children", "is_spoiler_media"},
    "ITEM": {"media_type", "image_url", "video_url", "alt_text", "is_carousel_item"},
}
PARAMETERS = set().union(*TAKES.values())

ERRORS = {
    name: {"endpoint": PUBLISH, "status": status, "body": body(code, message, **more)}
    for name, (status, code, message, more) in {
        "expired": (400, 190, "Error validating access token: Session has expired.", {"subcode": 463}),
        "logged_out": (400, 190, "Error validating access token: logged out.", {"subcode": 467}),
        "app_removed": (400, 190, "Error validating access token: app removed.", {"subcode": 458}),
        "password_changed": (401, 190, "Error validating access token: password changed.", {"subcode": 460}),
        "session": (400, 102, "Session key invalid", {}),
        "permission": (403, 200, "(#200) Permissions error", {}),
        "ability": (400, 10, "(#10) Application does not have permission for this action", {}),
        "scope": (403, 283, "(#283) Requires threads_content_publish permission", {}),
        "not_found": (400, 24, "The requested resource does not exist", {
            "subcode": 4279009, "user_message": "The media with id 1 cannot be found."}),
        "spam": (400, 4, "Application request limit reached", {"subcode": 2207051}),
        "spam_too": (400, 10, "Blocked", {"subcode": 2207051}),
        "restricted": (400, 10, "The user is restricted", {"subcode": 4279013}),
        "app_limit": (400, 4, "(#4) Application request limit reached", {}),
        "user_limit": (400, 17, "(#17) User request limit reached", {}),
        "page_limit": (400, 32, "(#32) Page request limit reached", {}),
        "call_limit": (400, 613, "(#613) Rate limit", {}),
        "quota": (400, 9, "You have reached the maximum number of posts", {"subcode": 2207042}),
        "too_long": (400, 100, "Param text must be at most 500 characters long.", {}),
        "links": (400, 100, "THREADS_API__LINK_LIMIT_EXCEEDED", {}),
        "unknown": (500, 1, "An unknown error occurred", {"transient": True}),
        "unknown_as_400": (400, 1, "An unknown error occurred", {}),
        "service": (503, 2, "Service temporarily unavailable", {"transient": True}),
        "passing": (400, 9999, "Try again", {"transient": True}),
        "bad_gateway": (502, 2, "Bad gateway", {}),
    }.items()
} | {
    "fetch_failed": {"endpoint": CREATE, "status": 400,
                     "body": body(1, "The media could not be fetched from this URI", subcode=2207052)},
    "fetch_timeout": {"endpoint": CREATE, "status": 400, "body": body(-2, "Media fetch timed out", subcode=2207003)},
}


def length(text: str) -> int:
    """Characters, but emojis by their bytes."""
    emoji = regex.compile(r"\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3")
    return sum(len(sign.encode()) if emoji.search(sign) else len(sign) for sign in regex.findall(r"\X", text))


def check_passages(name, passages, text):
    """Refuses passages that are not apart from each other, within the text, in UTF-16 units."""
    free, units = 0, len(text.encode("utf-16-le")) // 2
    for passage in sorted(passages, key=lambda one: one["offset"]):
        if passage.keys() != {"offset", "length"} or passage["offset"] < free or passage["length"] < 1:
            raise Refusal(100, f"Param {name} is not valid")
        free = passage["offset"] + passage["length"]
    if free > units:
        raise Refusal(100, f"Param {name} is not valid")


class ThreadsServer(ContainerServer):
    """Threads. posts hold the replies too: `replied_to` is the id of the post that one answers."""

    errors = ERRORS
    usage_type = "threads"
    over = (4, "Application request limit reached")
    unfetched = (100, "Invalid parameter: the media URL")

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port, processing_polls)
        self.users: dict[str, dict] = {}
        self.rates |= RATES

    def add_user(self, username, token=None, name=None, scopes=SCOPES) -> str:
        """A profile, with a long-lived token if one is given. Returns its id."""
        user = self.new_id()
        self.consenting = user
        self.users[user] = {"id": user, "username": username, "name": name, "is_verified": False,
                            "threads_profile_picture_url": f"https://scontent.test/{user}.jpg", "threads_biography": "",
                            "is_eligible_for_geo_gating": True}
        if token:
            self.new_token(token, kind="user", owner=user, scopes=set(scopes), end=self.now() + 5_184_000)
        return user

    @route("GET", "/oauth/authorize")
    def dialog(self, request):
        """The consent page, with the consent given at once."""
        return self.consent(dict(request.query), SCOPES)

    @route("POST", "/oauth/access_token")
    def access_token(self, request):
        """A token of an hour for a code."""
        return self.own_token(self.given(request), False)

    @route("GET", "/access_token")
    def exchange(self, request):
        """A token of 60 days for that."""
        return self.lasting_token(dict(request.query), "th_exchange_token")

    @route("GET", "/refresh_access_token")
    def refresh(self, request):
        """Another 60 days."""
        return self.renewed_token(dict(request.query), "th_refresh_token")

    @api("GET", f"{ROOT}/me", "threads_basic")
    def me(self, request, token, given):
        """Who logged in."""
        return pick(self.users[token.owner], given.get("fields"), "ThreadsUser")

    @api("POST", f"{ROOT}/:user/threads", "threads_basic", "threads_content_publish", params=PARAMETERS)
    def create(self, request, token, given):
        """A container, unseen."""
        owner = self._own(request, token)
        given = {name: value for name, value in given.items() if name in PARAMETERS}
        kind = "ITEM" if "is_carousel_item" in given else given.get("media_type")
        self._check_kind(kind, given)
        self._check_text(given)
        self._check_attachments(given)
        self._check_rights(token, given)
        children = self.children_of(owner, given, 2, 20) if kind == "CAROUSEL" else ()
        return self.contain(owner, given, children)

    @api("POST", f"{ROOT}/:user/threads_publish", "threads_basic", "threads_content_publish", needs=("creation_id",))
    def publish(self, request, token, given):
        """What a container holds becomes public."""
        owner = self._own(request, token)
        waiting = self.containers.get(given["creation_id"])
        rate = "replies" if waiting and "reply_to_id" in waiting.given else "posts"
        if self.take(rate, owner, points=0).remaining == 0:
            raise Refusal(9, "You have reached the maximum number of posts", subcode=2207042)
        one = self.to_publish(owner, given["creation_id"])
        self.take(rate, owner)
        return {"id": self.show(one, replied_to=one.given.get("reply_to_id"))["id"]}

    @api("GET", f"{ROOT}/:user/threads", "threads_basic", params=("limit", "after", "since", "until"))
    def threads(self, request, token, given):
        """The posts of the profile, newest first."""
        return self._list(request, token, given, lambda post: post["replied_to"] is None)

    @api("GET", f"{ROOT}/:user/replies", "threads_basic", "threads_read_replies", params=("limit", "after", "since", "until"))
    def replies(self, request, token, given):
        """The replies of the profile, newest first."""
        return self._list(request, token, given, lambda post: post["replied_to"] is not None)

    @api("GET", f"{ROOT}/:node", "threads_basic")
    def node(self, request, token, given):
        """A container or a post."""
        name, fields = request.args["node"], given.get("fields")
        if one := self.containers.get(name):
            if one.owner != token.owner:
                raise self.gone(name)
            return pick(self.ask(one), fields, "ThreadsContainer")
        post = next((post for post in self.posts if post["id"] == name), None)
        if post is None:
            raise self.gone(name)
        return pick(self._post_node(post), fields, "ThreadsMedia")

    def not_ready(self):
        """The refusal of a container that is not FINISHED."""
        return self.unpublishable("1")

    def unpublishable(self, name):
        """The refusal of a container that is not there, or was published before."""
        return Refusal(24, "The requested resource does not exist", subcode=4279009,
                       user_message=f"The media with id {name} cannot be found.")

    def _own(self, request, token):
        if request.args["user"] not in (token.owner, "me"):
            raise self.gone(request.args["user"])
        return token.owner

    def _check_kind(self, kind, given):
        if kind not in TAKES or (kind == "ITEM" and given.get("media_type") not in ("IMAGE", "VIDEO")):
            raise Refusal(100, "(#100) Param media_type must be one of {TEXT, IMAGE, VIDEO, CAROUSEL}")
        if wrong := given.keys() - TAKES[kind]:
            raise Refusal(100, f"(#100) A container of {kind} takes no {sorted(wrong)[0]}")
        needed = {"IMAGE": "image_url", "VIDEO": "video_url", "CAROUSEL": "children", "TEXT": "text"}[given["media_type"]]
        alone = given["media_type"] == "TEXT" and "link_attachment" in given      # it needs either of them
        if not ((given.get(needed) or "").strip() or alone) or ("image_url" in given and "video_url" in given):
            raise Refusal(100, f"(#100) The parameter {needed} is required")

    def _check_text(self, given):
        text = given.get("text", "")
        if length(text) > TEXT:
            raise Refusal(100, "Param text must be at most 500 characters long.")
        further = structure(given, "text_attachment", dict).get("link_attachment_url")
        links = {*regex.findall(r"https?://\S*[^\s.,;:!?)]", text), given.get("link_attachment"), further} - {None}
        if len(links) > LINKS:
            raise Refusal(100, "THREADS_API__LINK_LIMIT_EXCEEDED")
        if len(given.get("alt_text", "")) > ALT_TEXT:
            raise Refusal(100, "Param alt_text must be at most 1000 characters long.")
        topic = given.get("topic_tag", "x")
        if not 1 <= len(topic) <= TOPIC or set(".&") & set(topic):
            raise Refusal(100, "Param topic_tag is not valid")
        if given.get("reply_control", AUDIENCES[0]) not in AUDIENCES:
            raise Refusal(100, "Param reply_control must be one of {EVERYONE, …}")
        for name in ("enable_reply_approvals", "is_spoiler_media", "is_carousel_item", *SHARES):
            flag(given, name, False)
        spoilers = structure(given, "text_entities", list)
        if len(spoilers) > SPOILERS or any(spoiler.pop("entity_type", None) != "SPOILER" for spoiler in spoilers):
            raise Refusal(100, "Param text_entities is not valid")
        check_passages("text_entities", spoilers, text)

    def _check_attachments(self, given):
        if flag(given, "is_ghost_post", False) and given.keys() - {"media_type", "text", "is_ghost_post", "text_entities"}:
            raise Refusal(100, "A ghost post takes nothing but text")
        gif = structure(given, "gif_attachment", dict)
        if gif and (gif.keys() != {"gif_id", "provider"} or gif["provider"] != "GIPHY" or not gif["gif_id"].isalnum()):
            raise Refusal(100, "Param gif_attachment is not valid")
        poll = structure(given, "poll_attachment", dict)
        answers = [poll.get(f"option_{letter}") for letter in "abcd"]
        named = [answer for answer in answers if answer is not None]
        if poll and (len(named) < 2 or answers[:len(named)] != named or len(named) < len(poll) or "link_attachment" in given
                     or any(not answer.strip() or len(answer) > ANSWER for answer in named)):
            raise Refusal(100, "Param poll_attachment is not valid")
        long = structure(given, "text_attachment", dict)
        two_links = "link_attachment" in given and "link_attachment_url" in long
        if long and (poll or two_links or not long["plaintext"].strip() or len(long["plaintext"]) > LONG_TEXT
                     or long.keys() - {"plaintext", "link_attachment_url", "text_with_styling_info"}):
            raise Refusal(100, "Param text_attachment is not valid")
        styles = long.get("text_with_styling_info", [])
        if any(not style.get("styling_info") or set(style.pop("styling_info")) - STYLES for style in styles):
            raise Refusal(100, "Param text_with_styling_info is not valid")
        check_passages("text_with_styling_info", styles, long.get("plaintext", ""))

    def _check_rights(self, token, given):
        wanted = {"location_id": "threads_location_tagging", "reply_to_id": "threads_manage_replies",
                  "reply_control": "threads_manage_replies", **dict.fromkeys(SHARES, "threads_share_to_instagram")}
        for name, scope in wanted.items():
            if name in given and scope not in token.scopes:
                raise Refusal(10, f"(#10) Requires {scope} permission", status=403)
        countries = given.get("allowlisted_country_codes")
        if countries and not (regex.fullmatch(r"[A-Z]{2}(,[A-Z]{2})*", countries)
                              and self.users[token.owner]["is_eligible_for_geo_gating"]):
            raise Refusal(100, "Param allowlisted_country_codes is not valid, or not for this profile")
        for name in {"reply_to_id", "quote_post_id"} & given.keys():
            if not any(post["id"] == given[name] for post in self.posts):
                raise self.unpublishable(given[name])

    def _list(self, request, token, given, wanted):
        found = [post for post in self.listed(self._own(request, token)) if wanted(post)]
        return page_of(found, given, lambda post: pick(self._post_node(post), given.get("fields"), "ThreadsMedia"))

    def _post_node(self, post):
        code, username = f"D{int(post['id']):x}", self.users[post["owner"]]["username"]
        return {"id": post["id"], "text": post["given"].get("text"), "timestamp": self.timestamp(post), "shortcode": code,
                "permalink": f"https://www.threads.com/@{username}/post/{code}", "media_product_type": "THREADS",
                "media_type": "TEXT_POST", "username": username}


if __name__ == "__main__":
    run(ThreadsServer)
