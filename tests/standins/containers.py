"""Posts out of containers, as Instagram and Threads make them: states, a life of a day, one publication."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.standins.meta import LONG, SHORT, Graph, Refusal, stamp
from tests.standins.meta_upload import Upload
from tests.standins.server import Answer

LIFE, A_DAY = 86_400, 86_400        # seconds
TOO_YOUNG = "The access token is not at least 24 hours old"


@dataclass
class Container:
    """One container; `state` is what it becomes once `polls` questions are answered with IN_PROGRESS."""

    id: str
    owner: str
    given: dict
    made: float
    polls: int
    state: str = "FINISHED"
    reason: str | None = None
    children: list = field(default_factory=list)
    hidden: int = 0         # questions to which it is not there yet
    upload: Upload | None = None        # the video that it waits for, where it is given no address


class ContainerServer(Graph):
    """processing_polls is how often a container with a video is found unfinished, a picture and a text half as often.

    `broken` maps addresses of files, and "upload", to what their containers end with. `posts` are dicts with id, owner, given,
    created.
    """

    state_field, reason_field = "status", "error_message"
    missing: tuple = ()         # code, message and subcode for a container that is not there, or not any more
    video_words = ("video_url",)

    def __init__(self, port=0, processing_polls=2):
        super().__init__(port)
        self.processing_polls, self.broken, self.latency = processing_polls, {}, 0
        self.containers: dict[str, Container] = {}

    def contain(self, owner, given, children=()) -> dict:
        """Make a container."""
        urls = [value for name, value in given.items() if name in ("image_url", "video_url")]
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.netloc or not url.isascii():
                raise Refusal(*self.unfetched)
        kinds = given.keys() | {name for child in children for name in child.given}
        moving, resumable = kinds & {"video_url", "upload_type"}, "upload_type" in given
        polls = self.processing_polls if moving else self.processing_polls // 2
        sources = ["upload"] if resumable else urls
        broken = next((self.broken[source] for source in sources if source in self.broken), None)
        one = Container(self.new_id(), owner, given, self.now(), polls, reason=broken, hidden=self.latency)
        one.state, one.children, one.upload = "ERROR" if broken else "FINISHED", list(children), Upload() if resumable else None
        self.containers[one.id] = one
        return {"id": one.id}

    unfetched = (9004, "The media could not be fetched from this URI")

    def state_of(self, one) -> str:
        """The state that a question would find."""
        if one.state != "PUBLISHED" and self.now() > one.made + LIFE:
            return "EXPIRED"
        return "IN_PROGRESS" if one.polls or (one.upload and not one.upload.complete) else one.state

    def ask(self, one) -> dict:
        """What a question finds, as a node; the container goes on with its work."""
        if one.hidden:
            one.hidden -= 1
            raise self.gone(one.id)
        state = self.state_of(one)
        one.polls = max(0, one.polls - 1)
        return {"id": one.id, self.state_field: state, self.reason_field: one.reason if state == "ERROR" else None}

    def gone(self, name) -> Refusal:
        """A container that is not there, or not yet."""
        return Refusal(100, f"Unsupported get request. Object with ID '{name}' does not exist", subcode=33,
                       kind="GraphMethodException")

    def children_of(self, owner, given, least, most) -> list[Container]:
        """The finished containers of a carousel's files."""
        found = [self.containers.get(name) for name in given["children"].split(",")]
        if any(one is None or one.owner != owner or one.given.get("is_carousel_item") != "true" for one in found):
            raise Refusal(100, "(#100) Invalid parameter: children")
        if not least <= len(found) <= most:
            raise Refusal(100, f"The carousel takes {least} to {most} files", subcode=2207028)
        if any(self.state_of(one) != "FINISHED" for one in found):
            raise self.not_ready()
        return found

    def to_publish(self, owner, name) -> Container:
        """The container that is ready to be published; it is, from now on."""
        one = self.containers.get(name)
        if one is None or one.owner != owner or self.state_of(one) in ("EXPIRED", "PUBLISHED", "ERROR") or one.hidden:
            raise self.unpublishable(name)
        if self.state_of(one) == "IN_PROGRESS" or one.given.get("is_carousel_item"):
            raise self.not_ready()
        one.state = "PUBLISHED"
        return one

    def show(self, one, **details) -> dict:
        """Put what a container holds in public."""
        files = [child.given for child in one.children] or [one.given]
        post = {"id": self.new_id(), "owner": one.owner, "given": one.given, "files": files, "created": self.now(), **details}
        self.posts.append(post)
        return post

    def listed(self, owner) -> list[dict]:
        """The posts of an account, newest first."""
        return [post for post in reversed(self.posts) if post["owner"] == owner]

    def timestamp(self, post) -> str:
        """When it was published."""
        return stamp(post["created"])

    # tokens that renew themselves

    def own_token(self, given, wrap) -> dict:
        """A token of an hour for a code, once."""
        if given.get("grant_type") != "authorization_code":
            raise Answer(400, {"error_type": "OAuthException", "code": 400, "error_message": "Invalid grant_type"})
        grant = self.redeem(given)
        token = self.new_token(kind="user", owner=grant["user"], scopes=grant["scopes"], end=self.now() + SHORT, short=True)
        flat = {"access_token": token, "user_id": int(grant["user"])}
        return {"data": [{**flat, "permissions": ",".join(sorted(grant["scopes"]))}]} if wrap else flat

    def lasting_token(self, given, kind) -> dict:
        """A token of 60 days for one of an hour."""
        if given.get("grant_type") != kind:
            raise Refusal(100, "(#100) Invalid grant_type")
        self.check_app({"client_secret": given.get("client_secret")})
        old = self.alive(given.get("access_token"))
        if not old.short:
            raise Refusal(452, "Session key invalid. This could be because the token is a long-lived one")
        return self._lasting(old)

    def renewed_token(self, given, kind) -> dict:
        """A token of 60 days for another one that is a day old."""
        if given.get("grant_type") != kind:
            raise Refusal(100, "(#100) Invalid grant_type")
        old = self.alive(given.get("access_token"))
        if old.short or self.now() < old.made + A_DAY:
            raise Refusal(100, TOO_YOUNG)
        return self._lasting(old)

    def _lasting(self, old):
        token = self.new_token(kind="user", owner=old.owner, scopes=old.scopes, end=self.now() + LONG)
        return {"access_token": token, "token_type": "bearer", "expires_in": LONG}
