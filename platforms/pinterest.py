"""Pinterest: https://developers.pinterest.com/docs/api/v5/pins-create"""

import re
from datetime import timedelta

from platforms.base import (JPEG, MB, MP4, PNG, QUICKTIME, Absent, ImageLimits, Limits, PostType, Problem, Profile, Published,
                            VideoLimits, Waiting)
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable
from platforms.http import THROTTLED, Upload
from platforms.oauth import OAuthPlatform

SAME_RATIO = 0.01               # how far the ratios of one carousel may differ: a pixel of rounding, no more
OFFERED = 20                    # boards named to somebody who asks for one that is not there
PAGE, PAGES = 250, 4            # Pins of a page, the most that there are; pages of a board that are looked through
SKEW = timedelta(minutes=1)     # that the clocks of the database and of Pinterest may drift apart
SETTLED = 100                   # seconds after which a Pin that was made is in its board's list: by the second look
FETCHES = 2                     # more tries for files that Pinterest could not fetch
POLLS = ((12, 5.0), (28, 15.0))     # how often a video is asked after with which pause (seconds); then every minute
# Option of ours: field of a Pin.
FIELDS = {"boardId": "board_id", "boardSectionId": "board_section_id", "title": "title", "link": "link", "altText": "alt_text",
          "dominantColor": "dominant_color"}
UNFETCHED = re.compile(r"(?i)unable to reach|(could|can)( ?not|'t) (fetch|reach|download)")
STALE_UPLOADS = ("AccessDenied", "ExpiredToken", "RequestTimeout", "SlowDown")


def _our_app(message, **words):
    """A verdict: neither the account nor the post is to blame."""
    return Rejected("Pinterest does not let this server's app do this: its operator has to check POSTHORN_PINTEREST_CLIENT_ID, "
                    "POSTHORN_PINTEREST_CLIENT_SECRET, and that the app has Standard access", rule="app", **words)


def _denied(message, **words):
    """The verdict on code 29, which means two things that only the text tells apart."""
    if "trial" in (words["platform_message"] or "").lower():
        return _our_app(message, **words)
    return PermissionMissing("the account did not allow this on Pinterest: connect it again with all permissions", **words)


def _too_much(message, **words):
    """The verdict on status 429, under which Pinterest puts spam too."""
    if "spam" in (words["platform_message"] or "").lower():
        return Rejected("Pinterest takes this for spam", rule="spam", **words)
    return THROTTLED("Pinterest asks to slow down", **words)


def _stale(message, **words):
    """The verdict on an upload form that has run out: the next try registers anew."""
    return Unavailable("the upload to Pinterest took too long", **words)


class Pinterest(OAuthPlatform):
    """A Pinterest account, whose Pins go to one of its boards.

    Tags of products, sponsors, and several files in one Pin other than images are closed to apps like ours; comments have no
    API, and what the `index` of a carousel does is not documented. Images are fetched by Pinterest: sent inside the request,
    one of 20 MB would have to be held whole, as text.
    """

    name = "pinterest"
    title = "Pinterest"
    limits = Limits(
        caption=800,            # of the API; the pages for people say 500. The unit is not documented
        media_items=5, title=100, description=800,
        image=ImageLimits(types=(JPEG, PNG), max_bytes=20 * MB),        # GIF and WebP are not documented for the API
        video=VideoLimits(types=(MP4, QUICKTIME), min_aspect_ratio=0.5, max_aspect_ratio=1.91, min_duration=4,
                          max_duration=15 * 60),
        source="https://help.pinterest.com/en/business/article/pinterest-product-specs", reviewed_at="2026-11-21")
    post_types = {
        "image": PostType(images=(1, 1), required=("boardId",)),
        "carousel": PostType(images=(2, 5), required=("boardId",), options=("slides",)),
        "video": PostType(images=(0, 1), videos=(1, 1), mixed=True,     # the image is the cover
                          required=("boardId",), options=("coverImageUrl", "coverSecond")),
    }
    options = ("boardSectionId", "title", "link", "altText", "dominantColor")
    live = True
    settings = {"api_url": "https://api.pinterest.com/v5", "authorize_url": "https://www.pinterest.com/oauth/",
                "token_url": "https://api.pinterest.com/v5/oauth/token", "public_url": "https://www.pinterest.com",
                # Secret boards need boards:read_secret, boards:write_secret, pins:read_secret and pins:write_secret as well.
                "scopes": "boards:read boards:write pins:read pins:write user_accounts:read",
                "client_id": "", "client_secret": ""}
    scope_separator = ","
    pkce = False
    basic = True
    # None of these numbers is documented; they are those that others have met.
    verdicts = {"3": _our_app, "29": _denied, 429: _too_much}
    unknown_app = {"2"}
    token_verdicts = {"283": Disconnected, 400: Disconnected, "2": _our_app, "3": _our_app}
    upload_verdicts = {**dict.fromkeys(STALE_UPLOADS, _stale), 403: Rejected}

    @property
    def scopes(self):
        """What a login asks for, as the operator sets it."""
        return tuple(self.settings["scopes"].split())

    def extra_problems(self, post_type, content):
        """One shape for all images of a carousel, a slide for each at most, one cover for a video."""
        options, media = content.options, content.media
        ratios = [item.width / item.height for item in media if item.width and item.height]
        if post_type == "carousel" and ratios and max(ratios) > min(ratios) * (1 + SAME_RATIO):
            yield Problem("media", "media_aspect_ratio", "Pinterest takes only images of one shape together")
        if len(options.get("slides", ())) > len(media):
            yield Problem("options/slides", "slides", f"{len(options['slides'])} slides for {len(media)} media")
        covers = [option for option in ("coverImageUrl", "coverSecond") if option in options]
        if post_type == "video" and len(covers) + any(not item.is_video for item in media) > 1:
            yield Problem(f"options/{covers[-1]}", "one_cover",
                          "a video has one cover: the image beside it, coverImageUrl or coverSecond")

    def tokens(self, form):
        """Asks for refresh tokens that are renewed with each use, which apps from before September 2025 have to."""
        renewed = {"continuous_refresh": "true"} if form["grant_type"] == "authorization_code" else {}
        return super().tokens({**form, **renewed})

    def token_words(self, answer):
        """The token endpoint speaks like the rest of the API."""
        return self.words(answer)

    def profile(self, account):
        """Who the account is; a business has a name beside that of its account."""
        answer = self._call(account, "GET", "/user_account")
        name = answer.field("username")
        return Profile(answer.field("id"), name, answer.field("business_name", default="") or name,
                       answer.link("profile_image", default=None))

    def prepare(self, account, content, receipt):
        """Makes sure that the board is there, and its section; uploads a video, and waits until Pinterest has processed it."""
        if "board" not in receipt:
            receipt = {"board": self._board(account, content.options["boardId"])}
            if "boardSectionId" in content.options:
                self._check_section(account, content.options["boardId"], content.options["boardSectionId"])
            yield receipt
        film = next((item for item in content.media if item.is_video), None)
        if film is None:
            return
        if "media" not in receipt:
            receipt = {"board": receipt["board"], "media": self._upload(account, film), "polls": 0}
            yield receipt
        while "ready" not in receipt:
            receipt = self._asked(account, receipt)
            yield receipt if "ready" in receipt else Waiting(receipt, _pause(receipt["polls"]))

    def publish(self, account, content, receipt):
        """Makes the Pin, with all that belongs to it. Pinterest fetches images while we wait for its answer."""
        pin = {FIELDS[name]: value for name, value in content.options.items() if name in FIELDS}
        pin |= {"description": content.caption} if content.caption else {}
        try:
            answer = self._call(account, "POST", "/pins", json={**pin, "media_source": _source(content, receipt)}, commits=True)
        except Rejected as refusal:
            if not UNFETCHED.search(refusal.platform_message or ""):
                raise
            if (fetches := receipt.get("fetches", 0)) == FETCHES:
                raise Rejected("Pinterest cannot fetch the media: they have to be public", rule="media_url",
                               **refusal.words) from None
            raise Unavailable("Pinterest could not fetch the media", receipt={**receipt, "fetches": fetches + 1},
                              **refusal.words) from None
        return self._published(answer.field("id"))

    def find(self, account, content, receipt):
        """Looks through the board, or its section, for a Pin with the same texts that is as young as ours.

        None where there is one as young with other texts, which may be ours with its texts changed by Pinterest.
        """
        options, bookmark, strangers = content.options, None, False
        section = f"/sections/{options['boardSectionId']}" if "boardSectionId" in options else ""
        for _ in range(PAGES):
            query = {"page_size": PAGE, **({"bookmark": bookmark} if bookmark else {})}
            try:
                answer = self._call(account, "GET", f"/boards/{options['boardId']}{section}/pins", query=query)
            except (PermissionMissing, Rejected):
                return None
            for position in _since_sending(answer, content):
                if _is_ours(answer, position, content):
                    return self._published(answer.field("items", position, "id"))
                strangers = True
            bookmark = answer.field("bookmark", default=None)
            if not bookmark:
                return None if strangers or content.sent_ago < SETTLED else Absent()
        return None

    def words(self, answer):
        """{"code": number, "message": text}, some with details beside."""
        code = answer.field("code", kind=int, default=None)
        texts = [answer.field(name, default=None) for name in ("message", "message_detail")]
        return None if code is None else str(code), ": ".join(filter(None, texts)) or None

    def _call(self, account, method, path, **request):
        return self.send(method, self.settings["api_url"] + path, token=account.credentials["accessToken"], **request)

    def _board(self, account, board):
        """The name of the board. Raises Rejected where it is not there, with those that are."""
        answer = self._call(account, "GET", f"/boards/{board}", accept=(404,))
        if answer.status != 404:
            return answer.field("name", default="")
        there, _ = _listed(self._call(account, "GET", "/boards", query={"page_size": PAGE}))
        raise Rejected(f"there is no board {board} on Pinterest for this account; it has {there}", rule="board",
                       **answer.error().words)

    def _check_section(self, account, board, section):
        """Raises Rejected where the board has no such section, with those that it has."""
        there, ids = _listed(self._call(account, "GET", f"/boards/{board}/sections", query={"page_size": PAGE}))
        if section not in ids and len(ids) < PAGE:
            raise Rejected(f"the board {board} on Pinterest has no section {section}; it has {there}", rule="section")

    def _upload(self, account, item):
        """The id of the video, registered and uploaded in one go, since the form for the upload soon runs out."""
        answer = self._call(account, "POST", "/media", json={"media_type": "video"})
        media, form = answer.field("media_id"), answer.field("upload_parameters", kind=dict)
        form = {name: answer.field("upload_parameters", name) for name in form}
        with item.open() as file:       # to a store that is not Pinterest's own, and takes fields before the file only
            self.http.send("POST", answer.link("upload_url"), title=self.title, verdicts=self.upload_verdicts,
                           words=_store_words, form=form, files=[Upload("file", "video", item.mime_type, file, item.bytes)],
                           secrets=tuple(form[name] for name in form if name.startswith("x-amz-")))
        return media

    def _asked(self, account, receipt):
        answer = self._call(account, "GET", f"/media/{receipt['media']}", accept=(404,))
        if answer.status == 404:
            words = answer.error().words
            raise Unavailable("Pinterest has lost the uploaded video", receipt={"board": receipt["board"]}, **words)
        status = answer.field("status")
        if status == "failed":
            raise Rejected("Pinterest could not process the video", rule="video",
                           platform_code=answer.field("failure_code", kind=(str, int), default=status))
        return {**receipt, "polls": receipt["polls"] + 1, **({"ready": True} if status == "succeeded" else {})}

    def _published(self, pin):
        return Published(pin, f"{self.settings['public_url']}/pin/{pin}/")


def _listed(answer):
    """The first of a list of boards or sections as people read them, and the ids of all."""
    items = [("items", position) for position in range(len(answer.field("items", kind=list)))]
    ids = [answer.field(*item, "id") for item in items]
    names = [f"{one} ({answer.field(*item, 'name', default='')})" for one, item in zip(ids, items, strict=True)]
    return ", ".join(names[:OFFERED]) or "none", ids


def _source(content, receipt):
    options, media = content.options, content.media
    if any(item.is_video for item in media):
        address = options.get("coverImageUrl") or next((item.url for item in media if not item.is_video), None)
        cover = {"cover_image_url": address} if address else {"cover_image_key_frame_time": options.get("coverSecond", 0)}
        return {"source_type": "video_id", "media_id": receipt["media"], **cover}
    if len(media) == 1:
        return {"source_type": "image_url", "url": media[0].url}
    slides = [*options.get("slides", ()), *[{}] * len(media)]
    return {"source_type": "multiple_image_urls",
            "items": [{"url": item.url, **slide} for item, slide in zip(media, slides, strict=False)]}


def _since_sending(answer, content):
    """The positions of the account's own Pins on this page that are no older than the sending."""
    since = answer.moment() - timedelta(seconds=content.sent_ago) - SKEW
    stamp = since.strftime("%Y-%m-%dT%H:%M:%S")     # Pinterest's own manner, in UTC without a zone
    positions = range(len(answer.field("items", kind=list)))
    return [position for position in positions if answer.field("items", position, "created_at") >= stamp
            and answer.field("items", position, "is_owner", kind=bool, default=True)]


def _is_ours(answer, position, content):
    ours = {"description": content.caption, **{name: content.options.get(name, "") for name in ("title", "link")}}
    return all((answer.field("items", position, name, default="") or "").strip() == text.strip() for name, text in ours.items())


def _store_words(answer):
    """The store answers in XML: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""
    found = [re.search(rf"<{name}>([^<]*)</{name}>".encode(), answer.body) for name in ("Code", "Message")]
    return tuple(match and match[1].decode(errors="replace") for match in found)


def _pause(polls):
    return next((pause for least, pause in POLLS if polls <= least), 60.0)
