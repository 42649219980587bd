"""LinkedIn: https://learn.microsoft.com/linkedin/marketing/community-management/shares/posts-api"""

import copy
import re
import time
from datetime import timedelta
from urllib.parse import quote, unquote

from platforms.base import (GIF, JPEG, MB, MP4, PNG, Absent, Account, Connected, ImageLimits, Limits, PostType, Problem,
                            Profile, Published, VideoLimits)
from platforms.errors import Disconnected, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.linkedin_media import Uploads
from platforms.linkedin_posts import body, is_ours
from platforms.oauth import OAuthPlatform

MIN_VIDEO_BYTES = 75_000        # shares/videos-api
POSTERS = {"ADMINISTRATOR", "CONTENT_ADMINISTRATOR", "CONTENT_ADMIN", "DIRECT_SPONSORED_CONTENT_POSTER"}
PAGE = "urn:li:organization:"
POST_URN = re.compile(r"urn:li:(?:share|ugcPost):[0-9]{1,25}")
LISTED = 100                    # entries in a page of a list
LISTS = 10                      # pages of such entries that are read when an account is connected
SKEW = 120                      # seconds that the clocks of the database and of LinkedIn may differ
SETTLED = 300                   # seconds after which a post that is there is listed; a careful guess
COMMENTABLE = 600               # seconds after which a post that takes no comment is taken for one that never will
DAY = 86_400


def _throttled(_, **words):
    """Quotas are those of a day, in UTC; other limits, such as that on comments, are short."""
    wait = DAY - time.time() % DAY if "DAY" in (words["platform_message"] or "") else 60
    return Unavailable("LinkedIn asks to slow down", retry_after=wait, throttled=True, **words)


def _unfinished(_, **words):
    return Unavailable("LinkedIn still processes the media", retry_after=30, **words)


def _outdated(_, **words):
    return PlatformError("LinkedIn has ended the version of its API that this server speaks: its operator has to set "
                         "POSTHORN_LINKEDIN_VERSION to a newer one", rule="version", **words)


class LinkedIn(Uploads, OAuthPlatform):
    """A member of LinkedIn, or a Page. The id of an account is its URN, the author of its posts.

    Left out: documents, which Posthorn does not store, posts in containers such as groups, posts that only advertisements show,
    and files of subtitles, on whose upload the sources do not agree.
    """

    name = "linkedin"
    title = "LinkedIn"
    limits = Limits(
        caption=3000,           # whether the marks of mentions count is not documented: everything is counted
        media_items=20,
        title=399, description=4085,        # of a link
        # The pixels: shares/images-api. The bytes are not documented: a careful guess.
        image=ImageLimits(types=(JPEG, PNG, GIF), max_bytes=10 * MB, max_pixels=36_152_320 - 1),
        video=VideoLimits(types=(MP4,), max_bytes=500 * MB, min_aspect_ratio=1 / 2.4, max_aspect_ratio=2.4,
                          min_duration=3, max_duration=30 * 60),            # the ratios are those of other publishers
        source="https://learn.microsoft.com/linkedin/marketing/community-management/shares/posts-api", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True, options=("reshareUrn",)),
        "image": PostType(images=(1, 1), options=("altTexts",)),
        "carousel": PostType(images=(2, 20), options=("altTexts",)),
        "video": PostType(images=(0, 1), videos=(1, 1), mixed=True, options=("title",)),     # the image: a thumbnail
        "link": PostType(images=(0, 1), required=("link",)),                # here too
        "poll": PostType(required=("poll",)),
    }
    options = ("visibility", "disableReshare", "targeting", "firstComment")
    follow_options = ("firstComment",)
    bare = {"media": []}
    live = True
    pkce = False
    page = None                 # whether the account is an organization, where that is known
    # A dead refresh token, or one that has been revoked.
    token_verdicts = {**OAuthPlatform.token_verdicts, "invalid_request": Disconnected}
    # Versions live for a year. The scopes are those that every app may have; Pages need the Community Management API and
    # w_organization_social, r_organization_social and rw_organization_admin beside them. LinkedIn refuses to ask for more
    # than an app may have.
    settings = {"api_url": "https://api.linkedin.com", "authorize_url": "https://www.linkedin.com/oauth/v2/authorization",
                "token_url": "https://www.linkedin.com/oauth/v2/accessToken", "public_url": "https://www.linkedin.com",
                "version": "202609", "scopes": "openid profile w_member_social", "client_id": "", "client_secret": ""}
    verdicts = {409: Unavailable, 426: _outdated, 429: _throttled, "VERSION_MISSING": _outdated,
                "MEDIA_ASSET_WAITING_UPLOAD": _unfinished}

    @property
    def scopes(self):
        """What the operator's app may ask for."""
        return tuple(self.settings["scopes"].split())

    def for_account(self, account):
        """Pages have no connections, and may choose who sees their posts."""
        here = copy.copy(self)
        here.page = account.platform_id.startswith(PAGE)
        return here

    def extra_problems(self, post_type, content):
        """The least bytes of videos, who can see a post, and the texts of a poll."""
        for position, item in enumerate(content.media):
            if item.is_video and item.bytes < MIN_VIDEO_BYTES:
                yield Problem(f"media/{position}", "media_bytes",
                              f"LinkedIn: the file has {item.bytes} bytes; at least {MIN_VIDEO_BYTES} are needed")
        if self.page and content.options.get("visibility") == "CONNECTIONS":
            yield Problem("options/visibility", "visibility", "a Page has no connections that could see the post")
        if self.page is False and "targeting" in content.options:
            yield Problem("options/targeting", "targeting", "only a Page can choose who of its followers sees a post")
        if poll := content.options.get("poll"):
            texts = {"question": poll["question"]} | {f"options/{at}": text for at, text in enumerate(poll["options"])}
            yield from (Problem(f"options/poll/{path}", "text_required", "a poll needs a text here")
                        for path, text in texts.items() if not text.strip())

    def choices(self, credentials):
        """The member, and the Pages that they may post for, as far as the app may ask."""
        account, found = Account("", "", credentials=credentials), []
        if any(scope.startswith("w_member_social") for scope in self.scopes):
            found.append(self._member(account))
        if any(scope.startswith("w_organization_social") for scope in self.scopes):
            found += [self._page(account, urn) for urn in self._pages(account)]
        if not found:
            raise Rejected("LinkedIn names no account that this login may post for", rule="no_account")
        return [Connected(profile, "", credentials) for profile in found]

    def profile(self, account):
        """Who the account is. Members have a name of their own in addresses only where the app may read it."""
        urn = account.platform_id
        return self._page(account, urn) if urn.startswith(PAGE) else self._member(account)

    def publish(self, account, content, receipt):
        """Creates the post."""
        try:
            answer = self._rest(account, "POST", "posts", json=body(account, content, receipt), commits=True)
        except Rejected as refusal:
            # The filter knows what an earlier sending in doubt has published; otherwise it is a real duplicate.
            known = POST_URN.search(refusal.platform_message or "")
            if refusal.platform_code == "DUPLICATE_POST" and content.sent_ago and known:
                return self._published(known[0])
            raise
        return self._published(_made(answer))

    def follow(self, account, content, receipt):
        """The first comment."""
        receipt = {"comment": None, "commentAt": None, **receipt}
        if receipt["commentAt"] is not None:
            receipt = self._settled(account, content, receipt, content.since_sending - receipt["commentAt"])
            yield receipt
        if receipt["comment"] is not None:
            return
        yield {**receipt, "commentAt": content.since_sending}        # by the database's clock, as the next run knows it too
        try:
            comment = self._comment(account, content, receipt)
        except Unconfirmed:
            raise
        except PlatformError:
            yield receipt       # surely not written
            raise
        yield {**receipt, "comment": comment}

    def find(self, account, content, receipt):
        """Looks through the newest posts of a Page. What a member posted, LinkedIn does not tell."""
        if "media" not in receipt:
            return Absent()
        if not self._may_read(account):
            return None
        answer = self._rest(account, "GET", "posts", query={"q": "author", "author": account.platform_id, "count": LISTED},
                            headers={"X-RestLi-Method": "FINDER"})
        since = (answer.moment() - timedelta(seconds=content.sent_ago + SKEW)).timestamp() * 1000
        listed = range(len(answer.field("elements", kind=list)))
        times = [answer.field("elements", position, "createdAt", kind=int) for position in listed]
        post = body(account, content, receipt)
        looks = [is_ours(answer, position, post) if times[position] >= since else False for position in listed]
        if True in looks:
            return self._published(answer.field("elements", looks.index(True), "id"))
        # What was changed last comes first.
        whole = len(listed) < LISTED or answer.field("elements", -1, "lastModifiedAt", kind=int) < since
        return Absent() if whole and None not in looks and content.sent_ago > SETTLED else None

    def words(self, answer):
        """https://learn.microsoft.com/linkedin/shared/api-guide/concepts/error-handling"""
        code = answer.field("errorDetails", "inputErrors", 0, "code", default=None) or answer.field("code", default=None)
        message = answer.field("errorDetails", "inputErrors", 0, "description", default=None)
        return code, answer.field("message", default="") or message

    def _rest(self, account, method, path, headers=None, **request):
        return self.send(method, f"{self.settings['api_url']}/rest/{path}", token=account.credentials["accessToken"], **request,
                         headers={"Linkedin-Version": self.settings["version"], "X-Restli-Protocol-Version": "2.0.0",
                                  **(headers or {})})

    def _member(self, account):
        token = account.credentials["accessToken"]
        answer = self.send("GET", f"{self.settings['api_url']}/v2/userinfo", token=token)
        name = answer.field("name")
        username = name
        if "r_basicprofile" in self.scopes:
            me = self.send("GET", f"{self.settings['api_url']}/v2/me", token=token)
            username = me.field("vanityName", default="") or name
        return Profile(f"urn:li:person:{answer.field('sub')}", username, name, answer.link("picture", default=None))

    def _pages(self, account):
        """The URNs of the organizations that the member may post for."""
        found = {}
        for page in range(LISTS):
            answer = self._rest(account, "GET", "organizationAcls", query={
                "q": "roleAssignee", "state": "APPROVED", "count": LISTED, "start": page * LISTED})
            listed = len(answer.field("elements", kind=list))
            for position in range(listed):
                # The name of the field differs between versions.
                names = [answer.field("elements", position, name, default="")
                         for name in ("organization", "organizationTarget", "organizationalTarget")]
                if answer.field("elements", position, "role", default=None) in POSTERS:
                    found |= dict.fromkeys(name for name in names if re.fullmatch(PAGE + "[0-9]{1,25}", name))
            if listed < LISTED:
                break
        return found

    def _page(self, account, urn):
        answer = self._rest(account, "GET", f"organizations/{urn.removeprefix(PAGE)}")
        name = answer.field("localizedName")
        return Profile(urn, answer.field("vanityName", default="") or name, name)

    def _comment(self, account, content, receipt):
        """Writes the first comment, and returns its id."""
        post = receipt["public"]["id"]
        comment = {"actor": account.platform_id, "object": post, "message": {"text": content.options["firstComment"]}}
        answer = self._rest(account, "POST", f"socialActions/{quote(post, safe='')}/comments", commits=True, accept=(404,),
                            json=comment)
        if answer.status == 404 and content.sent_ago < COMMENTABLE:
            raise Unavailable("LinkedIn does not take comments on the post yet", retry_after=15)
        if answer.status == 404:
            raise answer.error()
        return answer.headers.get("x-restli-id") or answer.field("id")

    def _settled(self, account, content, receipt, ago):
        """The receipt after a look for the comment whose sending, so many seconds ago, ended in the dark."""
        unknown = Rejected("LinkedIn did not confirm the first comment, and does not tell whether it is there", rule="comment")
        if not self._may_read(account):
            raise unknown
        answer = self._rest(account, "GET", f"socialActions/{quote(receipt['public']['id'], safe='')}/comments",
                            query={"count": LISTED})
        listed = len(answer.field("elements", kind=list))
        wanted = account.platform_id, content.options["firstComment"].strip()
        for at in (("elements", position) for position in range(listed)):
            if (answer.field(*at, "actor", default=""), answer.field(*at, "message", "text", default="").strip()) == wanted:
                return {**receipt, "comment": answer.field(*at, "id"), "commentAt": None}
        if listed >= LISTED:
            raise unknown
        if ago <= SETTLED:
            raise Unavailable("LinkedIn does not list the first comment yet", retry_after=SETTLED - ago)
        return {**receipt, "commentAt": None}

    def _may_read(self, account):
        """Whether what the account has published can be read: that of members is closed to all but a few apps."""
        return account.platform_id.startswith(PAGE) and any(scope.startswith("r_organization_social") for scope in self.scopes)

    def _published(self, urn):
        return Published(urn, f"{self.settings['public_url']}/feed/update/{urn}/")


def _made(answer):
    """The URN of the post that was made, which stands in the head of the answer alone."""
    urn = answer.headers.get("x-restli-id") or unquote(answer.headers.get("Location", "").rpartition("/")[2])
    if not POST_URN.fullmatch(urn):
        raise answer.manner.fault()
    return urn
