"""LinkedIn: its Posts, Images, Videos and Comments APIs, and OAuth 2; https://learn.microsoft.com/linkedin/marketing"""

import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from tests.standins.linkedin_media import Uploads
from tests.standins.linkedin_rules import COMMENT_BODY, CREATE_BODY, ERRORS, MEDIA, duplicate, failure, rest, visible
from tests.standins.server import Answer, Network, parse_json, route, run
from tests.standins.shapes import wrongs

CLIENT_ID, CLIENT_SECRET, CALLBACK = "78app", "canary-app-secret", "https://posthorn.test/connect/callback"
MEMBER_SCOPES = "openid profile w_member_social"
PAGE_SCOPES = "w_organization_social r_organization_social rw_organization_admin"
KNOWN_SCOPES = {*MEMBER_SCOPES.split(), *PAGE_SCOPES.split(), "email", "r_basicprofile"}
CODE_SECONDS, TOKEN_SECONDS, REFRESH_SECONDS = 1800, 5_184_000, 31_536_000
DUPLICATE_SECONDS, DAY = 600, 86_400
VERSIONS = {"202601", "202602", "202603", "202609"}
POSTING_ROLES = {"ADMINISTRATOR", "CONTENT_ADMINISTRATOR", "DIRECT_SPONSORED_CONTENT_POSTER"}


@dataclass
class Member:
    """A member; `pages` maps the ids of organizations to the member's roles there."""

    id: str
    name: str
    vanity: str
    pages: dict = field(default_factory=dict)


@dataclass
class Token:
    """An access or refresh token."""

    member: Member
    scopes: set
    end: float


class LinkedInServer(Uploads, Network):
    """LinkedIn. posts are all posts in order: `body` as sent, `text` as people see it; `comments` those of all posts.

    `polls` is how often a video is found unfinished, an image half as often. `consenting` is the member who says yes to the
    app: the last one added. `partner`: the app gets refresh tokens. `shy` is how often a new post takes no comment yet.
    `few` holds the URNs of what fewer than 300 people are.
    """

    errors = ERRORS

    def __init__(self, port=0, polls=2, partner=True, shy=0):
        super().__init__(port, polls)
        self.partner, self.shy, self.consenting = partner, shy, ""
        self.app_scopes = set(KNOWN_SCOPES)
        self.rates = {"posts": (150, DAY)}
        self.members: dict[str, Member] = {}
        self.organizations: dict[str, dict] = {}
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, Token] = {}
        self.few = set()
        self.comments: list[dict] = []
        self._codes, self._last_id = {}, 0

    def add_user(self, member_id, token=None, *, refresh_token=None, scopes=MEMBER_SCOPES, name=None, vanity=None) -> str:
        """Create a member who allowed the app. Returns the URN."""
        member = Member(member_id, name or member_id.title(), vanity or f"{member_id}-1")
        self.members[member_id], self.consenting = member, member_id
        granted = set(scopes.split())
        self.tokens[token or f"token-{member_id}"] = Token(member, granted, self.now() + TOKEN_SECONDS)
        self.refresh_tokens[refresh_token or f"refresh-{member_id}"] = Token(member, granted, self.now() + REFRESH_SECONDS)
        return f"urn:li:person:{member_id}"

    def add_page(self, page_id, member_id, *roles, name="Acme", vanity="acme") -> str:
        """Create an organization in which a member has roles. Returns the URN."""
        self.organizations[page_id] = {"id": int(page_id), "localizedName": name, "vanityName": vanity}
        self.members[member_id].pages[page_id] = roles or ("ADMINISTRATOR",)
        return f"urn:li:organization:{page_id}"

    def add_post(self, author, text, **body) -> dict:
        """A post that was made elsewhere."""
        post = {"id": f"urn:li:share:{self._id()}", "body": {"author": author, "commentary": text, **body}, "text": text,
                "time": self.now(), "shy": 0}
        self.posts.append(post)
        return post

    def call(self, request, options, handler):
        if "scopes" not in options:
            return handler(self, request)
        token = self._token(request)
        if options.get("versioned"):
            self._check_version(request)
        if not options["scopes"] & token.scopes:
            raise self._denied(request)
        return handler(self, request, token)

    def no_route(self, request, methods):
        return Answer(405 if methods else 404, failure(404, "No virtual resource found", "RESOURCE_NOT_FOUND"))

    # who

    @route("GET", "/v2/userinfo", scopes={"profile"})
    def userinfo(self, request, token):
        """The member."""
        member = token.member
        return {"sub": member.id, "name": member.name, "given_name": member.name, "family_name": "", "email_verified": True,
                "picture": f"{self.url}/picture.jpg", "locale": {"country": "US", "language": "en"}}

    @route("GET", "/v2/me", scopes={"r_basicprofile"})
    def me(self, request, token):
        """The member, with the name in addresses."""
        return {"id": token.member.id, "vanityName": token.member.vanity, "localizedFirstName": token.member.name}

    @rest("GET", "/rest/organizationAcls", "rw_organization_admin")
    def roles(self, request, token):
        """What the member may do for which organizations."""
        given = dict(request.query)
        if given.get("q") != "roleAssignee" or given.keys() - {"q", "state", "role", "start", "count"}:
            raise Answer(400, failure(400, "q must be roleAssignee", "INVALID_VALUE_FOR_FIELD"))
        start, count = int(given.get("start", 0)), min(int(given.get("count", 10)), 100)
        every = [{"organization": f"urn:li:organization:{page}", "role": role, "state": "APPROVED",
                  "roleAssignee": f"urn:li:person:{token.member.id}"}
                 for page, roles in token.member.pages.items() for role in roles]
        return {"elements": every[start:start + count], "paging": {"start": start, "count": count, "total": len(every)}}

    @rest("GET", "/rest/organizations/:id", "rw_organization_admin", "r_organization_social")
    def organization(self, request, token):
        """One organization, for those who have a role there."""
        if request.args["id"] not in token.member.pages:
            raise self._denied(request)
        return self.organizations[request.args["id"]]

    # posts and comments

    @rest("POST", "/rest/posts", "w_member_social", "w_organization_social")
    def create(self, request, token):
        """Publish."""
        given = self._body(request, CREATE_BODY)
        self._check_actor(request, token, given["author"])
        if self.take("posts", token.member.id, aligned=True).exceeded:
            raise Answer(429, ERRORS["day_quota"]["body"])
        self._check_audience(given)
        self._check_content(given)
        for post in self.posts:
            if self._alike(post["body"], given) and post["time"] > self.now() - DUPLICATE_SECONDS:
                raise Answer(422, duplicate(post["id"]))
        kind = "ugcPost" if ":video:" in str(given.get("content")) else "share"
        post = {"id": f"urn:li:{kind}:{self._id()}", "body": given, "text": visible(given["commentary"]), "time": self.now(),
                "shy": self.shy}
        self.posts.append(post)
        return Answer(201, None, {"x-restli-id": post["id"], "Location": f"/rest/posts/{post['id'].replace(':', '%3A')}"})

    @rest("GET", "/rest/posts", "r_organization_social", "r_member_social")
    def by_author(self, request, token):
        """The posts of an author, what was changed last first."""
        given = dict(request.query)
        if request.headers.get("X-RestLi-Method") != "FINDER" or given.get("q") != "author":
            raise Answer(400, failure(400, "The finder is not valid", "INVALID_VALUE_FOR_FIELD"))
        if given.keys() - {"q", "author", "start", "count"} or given["author"] not in self._actors(token):
            raise self._denied(request)
        start, count = int(given.get("start", 0)), min(int(given.get("count", 10)), 100)
        found = [self._shown(post) for post in reversed(self.posts) if post["body"]["author"] == given["author"]]
        return {"elements": found[start:start + count], "paging": {"start": start, "count": count, "links": []}}

    @rest("POST", "/rest/socialActions/:urn/comments", "w_member_social", "w_organization_social")
    def comment(self, request, token):
        """Comment on a post."""
        self._check_path(request)
        given = self._body(request, COMMENT_BODY)
        self._check_actor(request, token, given["actor"])
        post = next((post for post in self.posts if post["id"] == request.args["urn"] == given["object"]), None)
        if post is None or post["shy"]:
            if post:
                post["shy"] -= 1
            raise Answer(404, ERRORS["comment_too_early"]["body"])
        comment = {"id": str(self._id()), "actor": given["actor"], "object": given["object"], "message": given["message"]}
        self.comments.append(comment)
        return Answer(201, comment, {"x-restli-id": comment["id"]})

    @rest("GET", "/rest/socialActions/:urn/comments", "r_organization_social", "r_member_social")
    def comments_of(self, request, token):
        """The comments on a post."""
        self._check_path(request)
        count = min(int(dict(request.query).get("count", 10)), 100)
        found = [comment for comment in self.comments if comment["object"] == request.args["urn"]]
        return {"elements": found[:count], "paging": {"start": 0, "count": count}}

    # OAuth 2

    @route("GET", "/oauth/v2/authorization")
    def authorize(self, request):
        """The consent page, with the consent given at once: a redirect with a code, or with an error for a scope too many."""
        given = dict(request.query)
        scopes = set(given.get("scope", "").split())
        if given.get("response_type") != "code" or given.get("client_id") != CLIENT_ID or given.get("redirect_uri") != CALLBACK:
            raise Answer(400, "<html>Bummer, something went wrong.</html>")
        if "code_challenge" in given or not given.get("state") or not scopes or not scopes <= KNOWN_SCOPES:
            raise Answer(400, "<html>Bummer, something went wrong.</html>")
        if not scopes <= self.app_scopes:
            back = {"error": "unauthorized_scope_error", "error_description": "Scope is not authorized for your application"}
        else:
            back = {"code": secrets.token_urlsafe(32)}
            self._codes[back["code"]] = self.members[self.consenting], scopes, self.now() + CODE_SECONDS
        return Answer(302, "", {"Location": f"{CALLBACK}?{urlencode({**back, 'state': given['state']})}"})

    @route("POST", "/oauth/v2/accessToken")
    def issue(self, request):
        """Trade a code, once, or a refresh token, again and again, for an access token."""
        given = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        if request.media_type != "application/x-www-form-urlencoded" or given.get("client_id") != CLIENT_ID \
                or given.get("client_secret") != CLIENT_SECRET:
            raise Answer(401, ERRORS["client_wrong"]["body"])
        refresh = given.get("refresh_token")
        if given.get("grant_type") == "authorization_code" and given.get("redirect_uri") == CALLBACK:
            member, scopes, end = self._codes.pop(given.get("code"), (None, set(), 0))
        elif given.get("grant_type") == "refresh_token" and refresh in self.refresh_tokens:
            old = self.refresh_tokens[refresh]
            member, scopes, end = old.member, old.scopes, old.end
        else:
            member, scopes, end = None, set(), 0
        if member is None or end <= self.now():
            raise Answer(400, ERRORS["refresh_dead"]["body"])
        return self._issue(member, scopes, refresh)

    # private

    def _issue(self, member, scopes, refresh):
        access = f"canary-AQX{secrets.token_urlsafe(300)}"
        self.tokens[access] = Token(member, scopes, self.now() + TOKEN_SECONDS)
        answer = {"access_token": access, "expires_in": TOKEN_SECONDS, "scope": ",".join(sorted(scopes)),
                  "token_type": "Bearer"}
        if self.partner:
            refresh = refresh or f"canary-AQY{secrets.token_urlsafe(300)}"
            self.refresh_tokens.setdefault(refresh, Token(member, scopes, self.now() + REFRESH_SECONDS))
            left = int(self.refresh_tokens[refresh].end - self.now())
            answer |= {"refresh_token": refresh, "refresh_token_expires_in": left}
        return answer

    def _id(self):
        self._last_id = max(self._last_id + 1, int(self.now() * 1000) << 22)
        return self._last_id

    def _token(self, request):
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not value:
            raise Answer(401, ERRORS["empty_token"]["body"])
        token = self.tokens.get(value)
        if token is None:
            raise Answer(401, ERRORS["invalid_token"]["body"])
        if token.end <= self.now():
            raise Answer(401, ERRORS["expired_token"]["body"])
        return token

    def _check_version(self, request):
        version = request.headers.get("Linkedin-Version")
        if version is None:
            raise Answer(400, ERRORS["version_missing"]["body"])
        if version not in VERSIONS:
            raise Answer(426, ERRORS["version_ended"]["body"])
        if request.headers.get("X-Restli-Protocol-Version") != "2.0.0":
            raise Answer(400, failure(400, "Invalid Rest.li protocol version", "ILLEGAL_ARGUMENT"))

    def _check_path(self, request):
        if ":" in request.path:
            raise Answer(400, failure(400, "Syntax exception in path variables", "ILLEGAL_ARGUMENT"))

    def _denied(self, request):
        return Answer(403, failure(403, f"Not enough permissions to access: {request.endpoint}", "ACCESS_DENIED",
                                   serviceErrorCode=100))

    def _actors(self, token):
        """The URNs that a token may act for."""
        pages = [f"urn:li:organization:{page}" for page, roles in token.member.pages.items() if POSTING_ROLES & set(roles)]
        return ([f"urn:li:person:{token.member.id}"] if "w_member_social" in token.scopes else []) + (
            pages if "w_organization_social" in token.scopes else [])

    def _check_actor(self, request, token, actor):
        if actor not in self._actors(token):
            raise self._denied(request)

    def _body(self, request, shape):
        try:
            given = parse_json(request.body) if request.media_type == "application/json" else None
        except ValueError:
            given = None
        if found := wrongs(given, shape):
            raise Answer(400, failure(400, f"{found} is not valid", "INVALID_VALUE_FOR_FIELD"))
        return given

    def _check_audience(self, given):
        targets = {urn for one in given["distribution"].get("targetEntities", ()) for urns in one.values() for urn in urns}
        if targets and ":organization:" not in given["author"]:
            raise Answer(400, failure(400, "/distribution/targetEntities is not valid", "INVALID_VALUE_FOR_FIELD"))
        if targets & self.few:
            raise Answer(422, failure(422, "The target audience is too small", "UNPROCESSABLE_ENTITY"))
        if "reshareContext" in given:
            parent = next((post for post in self.posts if post["id"] == given["reshareContext"]["parent"]), None)
            if parent is None:
                raise Answer(404, ERRORS["not_found"]["body"])
            if parent["body"].get("isReshareDisabledByAuthor") or "content" in given:
                raise Answer(422, ERRORS["unprocessable"]["body"])

    def _check_content(self, given):
        content = given.get("content", {})
        if len(content) > 1 or "content" in given and not content:
            raise Answer(400, failure(400, "/content must have one member", "INVALID_VALUE_FOR_FIELD"))
        if len(visible(given["commentary"])) > 3000:
            raise Answer(400, ERRORS["too_long"]["body"])
        if given["visibility"] == "CONNECTIONS" and ":organization:" in given["author"]:
            raise Answer(400, ERRORS["invalid_value"]["body"])
        for urn in re.findall(MEDIA.pattern.replace("(", "(?:"), str(content)):
            asset = self.assets.get(urn)
            if asset is None or asset.owner != given["author"]:
                raise Answer(403, failure(403, "The media belongs to somebody else", "ACCESS_DENIED"))
            if asset.status == "PROCESSING_FAILED":
                raise Answer(400, ERRORS["processing_failed"]["body"])
            if asset.status == "WAITING_UPLOAD" or asset.size and asset.status != "AVAILABLE":
                raise Answer(400, ERRORS["waiting_upload"]["body"])

    def _alike(self, one, other):
        names = "author", "commentary", "content", "reshareContext"
        return [one.get(name) for name in names] == [other.get(name) for name in names]

    def _shown(self, post):
        moment = int(post["time"] * 1000)
        return {"id": post["id"], **post["body"], "createdAt": moment, "publishedAt": moment, "lastModifiedAt": moment}


if __name__ == "__main__":
    run(LinkedInServer)
