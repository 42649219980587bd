"""Pinterest: API v5 with its consent page, its token endpoint and the store that takes videos.

Stricter than the real one in this: unknown fields of a body are refused.
"""

import base64
import binascii
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.standins.grants import Grants
from tests.standins.pinterest_rules import ERRORS, LACKING, LINK, TEXTS, TRIAL, Refusal, check_pin, invalid, json_of, xml_of
from tests.standins.server import Answer, Network, parse_multipart, route, run, sniff

SCOPES = "boards:read,boards:write,pins:read,pins:write,user_accounts:read"
KNOWN_SCOPES = {*SCOPES.split(","), "boards:read_secret", "boards:write_secret", "pins:read_secret", "pins:write_secret"}
ACCESS_SECONDS, REFRESH_SECONDS, POLICY_SECONDS = 2_592_000, 5_184_000, 3600
VIDEO_BYTES, PAGE, LARGEST_PAGE = 2 << 30, 25, 250
RATES = {"org_write": (100, 60), "org_read": (1000, 60)}


@dataclass
class Account:
    """One account. `business_name` None = it is no business."""

    id: str
    username: str
    business_name: str | None = None


@dataclass
class Board:
    """One board; `owner` is an account id, `sections` maps their ids to names."""

    id: str
    owner: str
    name: str
    privacy: str = "PUBLIC"
    sections: dict = field(default_factory=dict)


@dataclass
class Video:
    """One registered video; `polls` counts the answers left until it is processed."""

    id: str
    owner: str
    form: dict
    ends: float
    status: str = "registered"
    polls: int = 0


def api(method: str, path: str, *scopes: str, rate: str = "org_read"):
    """Mark a handler(self, request, account id) of a call that needs all of the scopes."""
    return route(method, f"/v5{path}", scopes=set(scopes), rate=rate)


class PinterestServer(Network):
    """posts are its Pins in order, as its API tells them, with `account` and `source` beside.

    The address of the API is `<url>/v5`. tier is the app's access: "standard" or "trial". consenting is the id of the account
    that says yes at /oauth/: the last one added; declining: it says no. redirects None = any redirect address is registered.
    unreachable holds the beginnings of addresses that Pinterest cannot fetch from, blocked those of links that it refuses.
    """

    errors = ERRORS

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls, self.tier, self.consenting, self.declining = processing_polls, "standard", "", False
        self.client_id, self.client_secret, self.redirects = "1480001", "canary-app-secret", None
        self.unreachable, self.blocked = (), ()
        self.rates = dict(RATES)
        self.accounts: dict[str, Account] = {}
        self.boards: dict[str, Board] = {}
        self.videos: dict[str, Video] = {}
        self.grants = Grants(self.now, lifetime=ACCESS_SECONDS, refresh_lifetime=REFRESH_SECONDS, prefix="pina_canary-",
                             refresh_prefix="pinr_canary-")
        self._last_id = 813744226420790000

    def add_user(self, username, token=None, *, refresh_token=None, scopes=SCOPES, business_name=None) -> str:
        """Create an account with a pair of tokens; returns its id."""
        account = Account(self._id(), username, business_name)
        self.accounts[account.id], self.consenting = account, account.id
        self.grants.issue(account.id, set(scopes.split(",")), token, refresh_token)
        return account.id

    def add_board(self, owner: str, name: str, privacy="PUBLIC", sections: tuple = (), board_id: str | None = None) -> Board:
        """Create a board of the account `owner` (an id), with sections of these names."""
        board = Board(board_id or self._id(), owner, name, privacy, {self._id(): section for section in sections})
        self.boards[board.id] = board
        return board

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        token = self.grants.token(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if token is None:
            raise Refusal(401, 2, "Authentication failed.")
        self._throttle(request, options["rate"], token.account)
        if not options["scopes"] <= token.scopes:
            raise Refusal(403, 29, LACKING)
        return handler(self, request, token.account)

    def no_route(self, request, methods):
        return Refusal(404, 0, "Sorry! We couldn't find that page.")

    # account and boards

    @api("GET", "/user_account", "user_accounts:read")
    def user_account(self, request, account):
        """Who the token's account is."""
        found = self.accounts[account]
        business = {"business_name": found.business_name, "account_type": "BUSINESS"} if found.business_name else {}
        return {"account_type": "PINNER", "id": found.id, "username": found.username, "website_url": "", "about": "",
                "profile_image": f"{self.url}/{found.username}.jpg", "board_count": len(self.boards),
                "pin_count": len(self.posts), "follower_count": 10, "following_count": 3, "monthly_views": 163, **business}

    @api("GET", "/boards", "boards:read")
    def list_boards(self, request, account):
        """The account's boards."""
        return self._page(request, [self._board(board) for board in self.boards.values() if board.owner == account])

    @api("GET", "/boards/:id", "boards:read")
    def read_board(self, request, account):
        """One board; everybody sees those that are public."""
        return self._board(self._visible(request.args["id"], account))

    @api("GET", "/boards/:id/sections", "boards:read")
    def list_sections(self, request, account):
        """The sections of a board."""
        board = self._visible(request.args["id"], account)
        return self._page(request, [{"id": one, "name": name} for one, name in board.sections.items()])

    @api("GET", "/boards/:id/pins", "boards:read", "pins:read")
    def list_pins(self, request, account):
        """The Pins of a board."""
        board = self._visible(request.args["id"], account)
        return self._page(request, [self._pin(pin, account) for pin in reversed(self.posts) if pin["board_id"] == board.id])

    @api("GET", "/boards/:id/sections/:section/pins", "boards:read", "pins:read")
    def list_section_pins(self, request, account):
        """The Pins of a section."""
        board, section = self._visible(request.args["id"], account), request.args["section"]
        if section not in board.sections:
            raise Refusal(404, 2031, "Board section not found.")
        return self._page(request, [self._pin(pin, account) for pin in self.posts if pin["board_section_id"] == section])

    # Pins

    @api("POST", "/pins", "boards:read", "boards:write", "pins:read", "pins:write", rate="org_write")
    def create_pin(self, request, account):
        """Publish."""
        given = json_of(request)
        check_pin(given)
        if self.tier == "trial":
            raise Refusal(403, 29, TRIAL)
        board = self._visible(given.get("board_id"), account)
        if board.owner != account:
            raise Refusal(403, 7, "You are not authorized to access that resource.")
        if given.get("board_section_id") not in (None, *board.sections):
            raise Refusal(404, 2031, "Board section not found.")
        source = given["media_source"]
        for link in filter(None, (given.get("link"), *(item.get("link") for item in source.get("items", ())))):
            if link.startswith(tuple(self.blocked)):
                raise Refusal(400, 234, "Sorry! We blocked this link because it may lead to spam.")
        kind = self._check_source(source, account)
        pin = {name: given.get(name) or None for name in (*TEXTS, "board_id", "board_section_id", "parent_pin_id")}
        pin |= {"id": self._id(), "created_at": _time(self.now()), "board_owner": {"username": self.accounts[account].username},
                "creative_type": {"image": "REGULAR", "video": "VIDEO", "multiple_images": "CAROUSEL"}[kind],
                "is_standard": True, "has_been_promoted": False, "media": {"media_type": kind}}
        self.posts.append({**pin, "account": account, "source": source})
        return Answer(201, self._pin(self.posts[-1], account))

    # videos

    @api("POST", "/media", "pins:read", "pins:write", rate="org_write")
    def register(self, request, account):
        """A place for a video, with the form to upload it."""
        if json_of(request) != {"media_type": "video"}:
            raise invalid("media_type is not 'video'")
        video = Video(self._id(), account, {}, self.now() + POLICY_SECONDS, polls=self.processing_polls)
        video.form = {
            "x-amz-date": "20261121T100000Z", "x-amz-signature": f"canary{secrets.token_hex(8)}",
            "x-amz-security-token": "canary-session", "x-amz-algorithm": "AWS4-HMAC-SHA256", "key": f"uploads/{video.id}",
            "policy": base64.b64encode(b'{"expiration": "soon"}').decode(),
            "x-amz-credential": "ASIA/20261121/us-east-1/s3/aws4_request", "Content-Type": "multipart/form-data"}
        self.videos[video.id] = video
        return Answer(201, {"media_id": video.id, "media_type": "video", "upload_url": f"{self.url}/store/",
                            "upload_parameters": video.form})

    @route("POST", "/store/")
    def upload(self, request):
        """The store: the fields of the form, unchanged, then the file; it knows nothing of Pinterest's tokens."""
        if "Authorization" in request.headers:
            raise Answer(400, xml_of("InvalidArgument", "Only one auth mechanism allowed"))
        try:
            *fields, file = parse_multipart(request.headers.get("Content-Type", ""), request.body)
        except ValueError:
            raise Answer(400, xml_of("MalformedPOSTRequest", "The body is not well-formed multipart/form-data.")) from None
        form = {part.name: part.data.decode() for part in fields}
        if file.name != "file" or file.filename is None:
            raise Answer(400, xml_of("InvalidArgument", "POST requires exactly one file upload, as the last field."))
        video = next((one for one in self.videos.values() if one.form["key"] == form.get("key")), None)
        if video is None or form != video.form:
            raise Answer(403, xml_of("AccessDenied", "Invalid according to Policy: Policy Condition failed"))
        if video.ends <= self.now():
            raise Answer(403, ERRORS["policy_expired"]["body"])
        if len(file.data) > VIDEO_BYTES:
            raise Answer(400, ERRORS["too_large"]["body"])
        video.status = "processing" if sniff(file.data) in ("video/mp4", "video/quicktime") else "failed"
        return Answer(204)

    @api("GET", "/media/:id", "pins:read")
    def read_media(self, request, account):
        """How far a video is."""
        video = self.videos.get(request.args["id"])
        if video is None or video.owner != account:
            raise Refusal(404, 50, "Media not found.")
        if video.status == "processing":
            video.polls -= 1
            video.status = "processing" if video.polls >= 0 else "succeeded"
        return {"media_id": video.id, "media_type": "video", "status": video.status}

    # OAuth

    @route("GET", "/oauth/")
    def authorize(self, request):
        """The consent page, with the answer given at once: a redirect with a code."""
        given = dict(request.query)
        scopes = set(given.get("scope", "").split(","))
        if given.get("client_id") != self.client_id or not self._is_registered(given.get("redirect_uri", "")):
            raise Answer(400, "<html>Invalid client or redirect address</html>")
        if given.get("response_type") != "code" or not scopes <= KNOWN_SCOPES:
            raise Answer(400, "<html>Invalid request</html>")
        code = self.grants.code(self.consenting, scopes, redirect_uri=given["redirect_uri"])
        back = {"error": "access_denied"} if self.declining else {"code": code}
        state = {"state": given["state"]} if "state" in given else {}
        return Answer(302, "", {"Location": f"{given['redirect_uri']}?{urlencode(back | state)}"})

    @route("POST", "/v5/oauth/token")
    def issue_token(self, request):
        """Trade a code or a refresh token, once, for a pair of tokens; the app's credentials are in the header."""
        pair = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {pair}":
            raise Refusal(401, 2, "Authentication failed.")
        given = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        match request.media_type, given.pop("grant_type", None), given.keys():
            case "application/x-www-form-urlencoded", "authorization_code", names if names >= {"code", "redirect_uri"}:
                code = self.grants.redeem(given["code"])
                if code is None or code["redirect_uri"] != given["redirect_uri"]:
                    raise Refusal(400, 283, "The authorization grant is invalid")
                return self._tokens("authorization_code", code["scopes"], *self.grants.issue(code["account"], code["scopes"]))
            case "application/x-www-form-urlencoded", "refresh_token", names if "refresh_token" in names:
                renewed = self.grants.renew(given["refresh_token"])
                if renewed is None:
                    raise Refusal(401, 283, "The authorization grant is invalid")
                return self._tokens("refresh_token", renewed[2].scopes, *renewed[:2])
        raise invalid("unknown grant, or a field of it is missing")

    def _tokens(self, kind, scopes, access, refresh):
        return {"access_token": access, "refresh_token": refresh, "response_type": kind, "token_type": "bearer",
                "expires_in": ACCESS_SECONDS, "refresh_token_expires_in": REFRESH_SECONDS,
                "refresh_token_expires_at": int(self.now()) + REFRESH_SECONDS, "scope": " ".join(sorted(scopes))}

    def _is_registered(self, address):
        return bool(urlsplit(address).scheme) if self.redirects is None else address in self.redirects

    def _throttle(self, request, rate, account):
        window = self.take(rate, account)
        limit = f'{window.limit};w={window.seconds};name="{rate}_app_id_user_id"'
        request.reply_headers |= {
            "x-ratelimit-limit": f'100, 100;w=1;name="safety_net_app_id_user_id", {limit}',
            "x-ratelimit-remaining": str(window.remaining), "x-ratelimit-reset": str(int(window.reset - self.now()) + 1),
            "x-pinterest-rid": secrets.token_hex(8)}
        if window.exceeded:
            raise Refusal(429, 8, "You have exceeded your rate limit. Try again later.")

    def _visible(self, board, account):
        found = self.boards.get(board)
        if found is None or (found.owner != account and found.privacy != "PUBLIC"):
            raise Refusal(404, 40, "Board not found.")
        return found

    def _check_source(self, source, account):
        """The kind of media that a source is. Raises what Pinterest says to one that it cannot get."""
        if source["source_type"] == "video_id":
            video = self.videos.get(source["media_id"])
            if video is None or video.owner != account:
                raise Refusal(404, 50, "Media not found.")
            if video.status != "succeeded":
                raise invalid(f"media {video.id} is {video.status}")
            self._fetch(source.get("cover_image_url"))
            return "video"
        for item in source.get("items", [source]):
            self._fetch(item.get("url"))
        return "multiple_images" if "items" in source else "image"

    def _fetch(self, url):
        if url is not None and (not re.fullmatch(LINK, url) or url.startswith(tuple(self.unreachable))):
            raise Refusal(400, 235, ERRORS["unreachable"]["body"]["message"])

    def _board(self, board):
        return {"id": board.id, "name": board.name, "description": "", "privacy": board.privacy, "collaborator_count": 0,
                "pin_count": sum(pin["board_id"] == board.id for pin in self.posts), "follower_count": 1,
                "owner": {"username": self.accounts[board.owner].username}, "media": {"image_cover_url": None}}

    def _pin(self, pin, viewer):
        return {**{name: value for name, value in pin.items() if name not in ("account", "source")},
                "is_owner": pin["account"] == viewer}

    def _page(self, request, items):
        given = dict(request.query)
        size, start = given.get("page_size", str(PAGE)), 0
        if not size.isdecimal() or not 1 <= int(size) <= LARGEST_PAGE:
            raise invalid(f"{size!r} is not a page_size from 1 to {LARGEST_PAGE}")
        if "bookmark" in given:
            try:
                start = int(base64.b64decode(given["bookmark"], validate=True))
            except (ValueError, binascii.Error):
                raise invalid("unknown bookmark") from None
        end = start + int(size)
        bookmark = base64.b64encode(str(end).encode()).decode() if end < len(items) else None
        return {"items": items[start:end], "bookmark": bookmark}

    def _id(self):
        self._last_id += 101
        return str(self._last_id)


def _time(seconds):
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


if __name__ == "__main__":
    run(PinterestServer)
