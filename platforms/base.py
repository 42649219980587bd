"""What every network is to the rest of the service: its limits as data, and the few verbs of a connector."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

# All that a connector needs comes from here.
from platforms.files import (GIF, IMAGES, JPEG, MB, MP4, PNG, QUICKTIME, VIDEOS, WEBM, WEBP, ImageLimits, Media,  # noqa: F401
                             VideoLimits, names, problems_of)
from platforms.text import code_points


@dataclass(frozen=True)
class PostType:
    """One kind of post: which media it takes, and which limits differ from those of the network as a whole.

    `images` and `videos` are (least, most) of each; `total` bounds both together. `required` and `options` name the
    options that it must and may have, beside those every post type takes.
    """

    images: tuple[int, int] = (0, 0)
    videos: tuple[int, int] = (0, 0)
    total: tuple[int, int] | None = None
    mixed: bool = False                     # images and videos in one post
    caption_required: bool = False
    caption: int | None = None              # this post type's own caption limit; 0 = takes none
    image: ImageLimits | None = None
    video: VideoLimits | None = None
    required: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """The numbers of a network. `source` is the page they come from, `reviewed_at` the day someone last compared them."""

    caption: int
    media_items: int
    source: str
    reviewed_at: str
    title: int = 0
    description: int = 0
    image: ImageLimits | None = None
    video: VideoLimits | None = None


@dataclass(frozen=True)
class Content:
    """What is to be published on one account. `key` is stable for this target over every try, and unique to it.

    `sent_ago` is how many seconds ago, by the database's clock, the sending began whose outcome is in doubt; 0 = none did.
    """

    caption: str = ""
    media: tuple[Media, ...] = ()
    post_type: str | None = None
    options: dict = field(default_factory=dict)
    key: str = ""
    sent_ago: float = 0.0
    read_at: float = field(default_factory=time.monotonic, compare=False, repr=False)

    @property
    def since_sending(self) -> float:
        """`sent_ago` at this moment, rather than when this was read."""
        return self.sent_ago + time.monotonic() - self.read_at


@dataclass(frozen=True)
class Account:
    """A connected account, as a connector sees it. `host` is the server it lives on where the network has many."""

    platform_id: str
    username: str
    host: str = ""
    credentials: dict = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Profile:
    """Who an account is on its network."""

    platform_id: str
    username: str
    display_name: str
    picture: str | None = None


@dataclass(frozen=True)
class Connected:
    """An account that was just connected: who it is, where it lives, and the credentials to store encrypted."""

    profile: Profile
    host: str
    credentials: dict = field(repr=False)


@dataclass(frozen=True)
class Authorization:
    """Where a person goes to allow us an account, and what is needed when they come back: secrets, to be stored sealed."""

    url: str
    kept: dict = field(repr=False)


@dataclass(frozen=True)
class Published:
    """The post is public."""

    id: str
    url: str


@dataclass(frozen=True)
class Processing:
    """The network took the post and still works on it; ask again after so many seconds."""

    receipt: dict
    after: float = 5.0


@dataclass(frozen=True)
class Waiting:
    """A preparation that the network still works on; go on after so many seconds. Yielded by `prepare`."""

    receipt: dict
    after: float = 2.0


@dataclass(frozen=True)
class Absent:
    """The network lists completely, and the post is surely not there."""


@dataclass(frozen=True)
class Problem:
    """One broken rule. `path` is relative to the target: `caption`, `media/2`, `options/title`, `postType`."""

    path: str
    rule: str
    message: str


class Platform:
    """One network. Subclasses set the constants and override the verbs that their network needs.

    A connector returns a result or raises one of `platforms.errors`; it never writes rows, reads the environment,
    sleeps or retries.
    """

    name: str                               # as in the API
    title: str                              # as people write it
    limits: Limits
    post_types: dict[str, PostType]         # in the order in which a missing postType is inferred
    options: tuple[str, ...] = ()           # options that every post type takes
    media_options: tuple[str, ...] = ("altTexts",)      # options that are lists with an entry for each of the media
    follow_options: tuple[str, ...] = ()    # options that ask for something after the post: see `follow`
    counts = "characters"                   # the unit of the caption limit, for messages
    live = False                            # has a connector, not only limits
    find_retries = False                    # may be sent again by itself when `find` says Absent
    dedupes_for: timedelta | None = None    # since its first sending, the same content may be sent again without harm
    bare: dict = {}                         # the least that a receipt held when a post without media was sent
    patience = timedelta(hours=24)          # how long past its time a post is still tried where the network is unavailable
    connect_fields: tuple[str, ...] = ()    # what `connect` takes, where an account is connected without a browser
    connects_in_browser = False             # has `authorize` and `redeem`
    takes_instance = False                  # has many servers: `authorize` may be told which,
    needs_instance = False                  # and has to be
    settings: dict = {}                     # names and defaults of what the operator may set, such as addresses
    verdicts: dict = {}                     # the network's own error code, or a status, to the error that it means

    def __init__(self, http=None, settings=None):
        """`http` is a platforms.http.Http, needed by the verbs; `settings` replaces defaults of the class."""
        self.http = http
        self.settings = {**type(self).settings, **(settings or {})}

    def measure(self, caption: str) -> int:
        """The length of `caption` in this network's own counting."""
        return code_points(caption)

    def infer(self, media, options=()) -> str | None:
        """The post type that fits `media` (a sequence of Media) and the names in `options` when the caller names none.

        Of those that take the media, the one whose needed options are there, the neediest first (a poll before a text), of
        several the one that takes most of the options (an offer before an event); where they are there for none, the first, so
        that the caller hears what it needs. None where no post type takes the media.
        """
        images = sum(not m.is_video for m in media)
        fitting = [name for name, kind in self.post_types.items() if _fits(kind, images, len(media) - images)]
        ready = [name for name in fitting if set(self.post_types[name].required) <= set(options)]
        return max(ready, key=lambda name: _affinity(self.post_types[name], options)) if ready else next(iter(fitting), None)

    def media_limits(self, post_type: str, item: Media) -> ImageLimits | VideoLimits | None:
        """What this file may be in a post of this type; None where the network takes none of its kind."""
        kind = self.post_types[post_type]
        return (kind.video or self.limits.video) if item.is_video else (kind.image or self.limits.image)

    def for_account(self, account: Account) -> "Platform":
        """This network with the limits that hold for `account`, where servers or accounts set their own."""
        return self

    def problems(self, content: Content, account: Account | None = None) -> list[Problem]:
        """Everything about `content` that the network is known to refuse, in the order of the request's fields.

        With `account`, by the limits that hold for that account.
        """
        if account is not None:
            return self.for_account(account).problems(content)
        name = content.post_type or self.infer(content.media, content.options)
        if name is None:
            return [self._no_type(content)]
        if name not in self.post_types:
            return [Problem("postType", "post_type", f"{self.title} takes the post types {names(self.post_types)}, not {name}")]
        kind = self.post_types[name]
        return [*self._option_problems(name, kind, content), *self._caption_problems(name, kind, content),
                *self._media_problems(name, kind, content), *self.extra_problems(name, content)]

    def required(self, kind: PostType, options: dict) -> tuple[str, ...]:
        """The options that a post must have which has these. Overridden where one makes others needless."""
        return kind.required

    def extra_problems(self, post_type: str, content: Content) -> Iterator[Problem]:
        """Rules that no number can say. Overridden where a network has some."""
        return iter(())

    def thread_problems(self, content: Content) -> Iterator[Problem]:
        """What is wrong with the further parts of a thread, each of which counts as the caption does."""
        for position, text in enumerate(content.options.get("thread", ())):
            path, length = f"options/thread/{position}", self.length(replace(content, caption=text))
            if not text.strip():
                yield Problem(path, "thread_text_required", "a part of a thread needs a text")
            elif length > self.limits.caption:
                yield Problem(path, "thread_text_length",
                              f"this part has {length} {self.counts}; {self.title} allows {self.limits.caption}")

    def length(self, content: Content) -> int:
        """What the network counts against the caption limit. Overridden where it counts more than the caption."""
        return self.measure(content.caption)

    # The verbs of a live connector.

    def connect(self, fields: dict) -> Connected:
        """Connects an account with what `connect_fields` names, all strings; an empty or absent one was not given.

        Raises Rejected for credentials that the network does not take.
        """
        raise PlatformNotLive(self.name)

    def authorize(self, redirect_url: str, state: str, instance: str | None = None) -> Authorization:
        """Where a person goes to allow us their accounts, coming back to `redirect_url` with `state`.

        `instance` names the server where the network has many. Raises Rejected where the operator has not set the
        credentials of an app (rule `app`), and for an instance that does not exist.
        """
        raise PlatformNotLive(self.name)

    def client_metadata(self, redirect_url: str) -> dict | None:
        """What describes our app to servers that fetch it from us, at /connect/client-metadata.json; None where none does."""
        return None

    def redeem(self, answer: dict, redirect_url: str, kept: dict) -> list[Connected]:
        """The accounts that a person has just allowed us; more than one where a login offers several to choose from.

        `answer` holds the query parameters that the browser came back with, strings without `state`; `kept` is that of
        the Authorization. Raises Rejected where the person said no or the network does not take the code.
        """
        raise PlatformNotLive(self.name)

    def profile(self, account: Account) -> Profile:
        """Who the account is now."""
        raise PlatformNotLive(self.name)

    def prepare(self, account: Account, content: Content, receipt: dict) -> Iterator[dict | Waiting]:
        """Everything that must be done before the post and shows nothing to the public: uploads, containers.

        Yields the receipt after each step that should not be repeated; it is stored, and a later try gets it back.
        """
        yield from ()

    def publish(self, account: Account, content: Content, receipt: dict) -> Published | Processing:
        """Makes the post public, with one call, sent once."""
        raise PlatformNotLive(self.name)

    def check(self, account: Account, receipt: dict) -> Published | Processing:
        """Asks after a post that was Processing."""
        raise PlatformNotLive(self.name)

    def follow(self, account: Account, content: Content, receipt: dict) -> Iterator[dict]:
        """What `follow_options` ask for once the post is public, such as its first comment or the next parts of a thread.

        `receipt["public"]` is {"id", "url"} of the post. Each step is public at once and may not happen twice: yields the
        receipt with what is about to be sent, which is stored, before each sending, and with its id after it, and Waiting
        where the network takes its time. A receipt that begins with a sending under way comes from a run whose end nobody
        knows: the connector looks for what it sent, and raises Rejected where it cannot tell.
        """
        yield from ()

    def follows(self, options: dict, receipt: dict) -> bool:
        """Whether `follow` has something to do for a post that is public; `receipt` is what was left before it was."""
        return bool(options.keys() & set(self.follow_options))

    def find(self, account: Account, content: Content, receipt: dict) -> Published | Absent | None:
        """Looks for a post whose sending ended without a trustworthy answer. None = the network cannot tell."""
        return None

    def refresh_due(self, account: Account) -> bool:
        """Whether `refresh` has anything to do, told from the credentials alone. True where only `refresh` itself can tell."""
        return True

    def refresh(self, account: Account, force: bool = False) -> dict | None:
        """New credentials to store when the present ones end soon, else None.

        `force`: the network just refused them as no longer valid, whatever they say of themselves; None = there is no
        way to new ones without a person.
        """
        return None

    def words(self, answer) -> tuple[str | None, str | None]:
        """The network's own error code and message in an answer (platforms.http.Answer), None for what it does not say."""
        return None, None

    def send(self, method: str, url: str, **request):
        """One request, whose failure is read in this network's manner: see platforms.http.Http.send."""
        return self.http.send(method, url, title=self.title, verdicts=self.verdicts, words=self.words, **request)

    def _no_type(self, content):
        if not content.media:
            return Problem("media", "media_required", f"{self.title} takes no post without media")
        return Problem("media", "media_count", f"no post type of {self.title} takes these media together")

    def _option_problems(self, name, kind, content):
        for option in self.required(kind, content.options):
            if option not in content.options:
                yield Problem(f"options/{option}", "required",
                              f"{self.title} needs the option {option} for the post type {name}")
        allowed = {*self.options, *kind.required, *kind.options}
        for option in content.options:
            if option not in allowed:
                yield Problem(f"options/{option}", "option",
                              f"the post type {name} of {self.title} does not take the option {option}")
        for option in self.follow_options:      # a network would refuse it after the post is public
            if isinstance(text := content.options.get(option), str) and not text.strip():
                yield Problem(f"options/{option}", "text_required", f"the option {option} needs a text")
        for option in self.media_options:
            if (count := len(content.options.get(option, ()))) > len(content.media):
                yield Problem(f"options/{option}", "media_options",
                              f"there are {count} {option} for {_count(len(content.media), 'file')}")

    def _caption_problems(self, name, kind, content):
        limit = self.limits.caption if kind.caption is None else kind.caption
        length = self.length(content)
        if not content.caption.strip():
            if kind.caption_required:
                yield Problem("caption", "caption_required", f"{self.title} needs a caption for the post type {name}")
        elif length > limit:
            yield Problem("caption", "caption_length", f"the caption has {length} {self.counts}; {self.title} allows {limit}")

    def _media_problems(self, name, kind, content):
        images = sum(not m.is_video for m in content.media)
        videos = len(content.media) - images
        if not _fits(kind, images, videos):
            yield Problem("media", "media_count", f"the post type {name} of {self.title} takes {_takes(kind)}; "
                                                  f"this post has {_count(images, 'image')} and {_count(videos, 'video')}")
        for position, item in enumerate(content.media):
            limits = self.media_limits(name, item)
            if limits is not None:
                yield from (Problem(f"media/{position}", rule, f"{self.title}: {text}")
                            for rule, text in problems_of(limits, item))


class PlatformNotLive(Exception):
    """A verb of a network that has no live connector was called: a mistake of ours, the handlers refuse it before."""


def _affinity(kind, options):
    needed = len(kind.required)
    return needed, needed and len({*kind.required, *kind.options} & set(options))


def _fits(kind, images, videos):
    if images and videos and not kind.mixed:
        return False
    least, most = kind.total or (0, kind.images[1] + kind.videos[1])
    return (kind.images[0] <= images <= kind.images[1] and kind.videos[0] <= videos <= kind.videos[1]
            and least <= images + videos <= most)


def _takes(kind):
    kinds = (kind.images, "image"), (kind.videos, "video")
    parts = [f"{_range(*bounds)} {noun}{'s' * (bounds[1] > 1)}" for bounds, noun in kinds if bounds[1]]
    text = (" and " if kind.mixed else " or ").join(parts) or "no media"
    return text + (f", {_range(*kind.total)} in all" if kind.total else "")


def _range(least, most):
    return str(least) if least == most else f"{least} to {most}"


def _count(number, noun):
    return f"{number} {noun}" + ("" if number == 1 else "s")
