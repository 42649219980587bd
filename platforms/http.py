"""The one HTTP client of the connectors: every request is sent once, and every failure is judged in one place."""

import json as jsonlib
import math
import re
import secrets as random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from typing import BinaryIO
from urllib.parse import urlencode

from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable, Unconfirmed
from storage import urls
from storage.fetch import Broken, FetchError, Refused, Timeouts, TooLarge, Unreachable

MAX_ANSWER = 1_048_576      # bytes; the largest answers that a connector asks for have some hundred kB
CHUNK = 65_536
CALL = Timeouts(first_byte=30, total=60)    # a post that is slow to be confirmed costs more than a slow worker
SLOWEST_UPLOAD = 250_000    # bytes a second: what is slower counts as stuck
# The headers of rate limits begin so, and end with -Remaining and -Reset. X has limits of a day beside the others.
LIMITS = ("RateLimit", "X-RateLimit", "X-Rate-Limit", "X-App-Limit-24hour", "X-User-Limit-24hour")
REQUIRED = object()

THROTTLED = partial(Unavailable, throttled=True)
SENTENCES = {
    Rejected: "{} refused this",
    Disconnected: "{} no longer accepts the credentials of this account: connect it again",
    PermissionMissing: "{} says that the account lacks a permission for this",
    Unavailable: "{} is not available at the moment",
    Unconfirmed: "{} did not confirm the post: it may have been published",
    THROTTLED: "{} asks to slow down",
}


@dataclass(frozen=True)
class Upload:
    """One file of a multipart form: an open binary `file` with exactly `size` bytes left to read."""

    name: str
    filename: str
    mime_type: str
    file: BinaryIO
    size: int


@dataclass(frozen=True)
class Manner:
    """How one network names its failures, and what is at stake in one request."""

    title: str
    verdicts: Mapping
    words: object
    commits: bool
    secrets: tuple = field(repr=False)

    def fault(self):
        """The error for no answer, or none that can be trusted."""
        outcome = Unconfirmed if self.commits else Unavailable
        return outcome(SENTENCES[outcome].format(self.title))


@dataclass(frozen=True)
class Answer:
    """What a network answered. Its JSON is somebody else's: read it with `field`, which checks what it hands out."""

    status: int
    headers: Mapping
    body: bytes = field(repr=False)
    manner: Manner = field(repr=False)

    @cached_property
    def data(self):
        """The body parsed, None if it is no JSON."""
        try:
            return jsonlib.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def field(self, *path, kind=str, default=REQUIRED):
        """The value of type `kind` at `path` (names and list positions) of the JSON body.

        Absent, of another type, or a string that no database stores: `default`, and without one the error that a
        meaningless answer means for this request (Unconfirmed or Unavailable).
        """
        value = self.data
        for step in path:
            try:
                value = value[step]
            except (LookupError, TypeError):
                value = None
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) and _storable(value)
        return value if right else self._missing(default)

    def link(self, *path, default=REQUIRED):
        """Like `field`, for a web address."""
        value = self.field(*path, default="")
        return value if re.fullmatch(r"https?://[!-~]{1,2000}", value) else self._missing(default)

    def moment(self):
        """When the network gave this answer, aware, by its own clock; by ours where it does not say."""
        return _moment(self.headers.get("Date", "")) or datetime.now(UTC)

    def error(self):
        """What this answer means as a failure; public for networks that put failures into answers with status 200."""
        manner = self.manner
        code, message = (_clean(word, manner.secrets) for word in manner.words(self))
        outcome = manner.verdicts.get(code) or manner.verdicts.get(self.status) or _default(self.status, manner.commits)
        error = outcome(SENTENCES.get(outcome, SENTENCES[Rejected]).format(manner.title),
                        platform_code=code or self.status, platform_message=message)
        if isinstance(error, Unavailable):
            wish = retry_after(self.headers, throttled=error.code == "rate_limited", now=self.moment().timestamp())
            error.retry_after = error.retry_after if wish is None else wish
        error.answered = self.status < 500
        return error

    def _missing(self, default):
        if default is REQUIRED:
            raise self.manner.fault()
        return default


class Http:
    """Sends requests through the guarded fetcher.

    `allow_plain` holds the (host, port) pairs that may be spoken to without TLS: the private ones that the operator allows.
    """

    def __init__(self, fetcher, allow_plain=frozenset()):
        self._fetcher = fetcher
        self._allow_plain = frozenset((urls.normal_host(host.strip("[]")), port) for host, port in allow_plain)

    def send(self, method, url, *, title, verdicts=None, words=None, token=None, headers=None, query=None, json=None, form=None,
             files=None, body=None, size=None, commits=False, accept=(), secrets=(), timeouts=None):
        """One request, once. Returns the Answer with a status of 2xx or in `accept`; raises one of platforms.errors otherwise.

        `title` names the network in messages; `verdicts` maps its own error codes, and statuses, to errors where the
        defaults do not fit; `words(answer)` gives its error code and message. `commits`: this request makes a post public,
        so that an outcome in doubt is Unconfirmed rather than Unavailable. `token` goes out as a bearer; neither it nor
        `secrets` appear in an error. The body is one of `json`, `form` (with `files`, Uploads, as multipart), or `body`,
        bytes or an open file of `size` bytes.
        """
        manner = Manner(title, verdicts or {}, words or _no_words, commits, tuple(filter(None, (token, *secrets))))
        payload, described, size = _payload(json, form, files, body, size)
        headers = {"Accept": "application/json", **described, **(headers or {}), **_bearer(token, title)}
        address = url + ("?" + urlencode(query) if query else "")
        try:
            self._check_scheme(urls.parse(url))
            with self._fetcher.open(method, address, headers=headers, body=payload, ports=None,
                                    timeouts=timeouts or _patience(size)) as response:
                answer = Answer(response.status, response.headers, _read(response), manner)
        except (Refused, urls.UrlError) as refusal:
            raise Rejected(f"{title}: this address cannot be reached from here", rule="host") from refusal
        except Unreachable as fault:
            raise Unavailable(f"{title} could not be reached") from fault
        except FetchError as fault:
            raise manner.fault() from fault
        if 200 <= answer.status < 300 or answer.status in accept:
            return answer
        raise answer.error()

    def origin(self, server):
        """`https://host` or `https://host:port` of a server as people name it: a host, an address there, or user@host.

        Raises Rejected where it names none, or plain HTTP to a host that is not in `allow_plain`.
        """
        text = server.strip()
        try:
            url = urls.parse(text if "://" in text else "https://" + text.rpartition("@")[2])
        except urls.UrlError as error:
            raise Rejected(f"this names no server: {error}", rule="host") from error
        self._check_scheme(url)
        return f"{url.scheme}://{url.authority}"

    def _check_scheme(self, url):
        if url.scheme != "https" and (url.host, url.port) not in self._allow_plain:
            raise Rejected("accounts are only spoken for over HTTPS", rule="host")


def retry_after(headers: Mapping, *, throttled: bool, now: float | None = None) -> float | None:
    """The seconds that a network asks to wait for, None if it says nothing usable. `now` is in epoch seconds.

    `Retry-After` holds seconds or a date. When `throttled`, the time at which a rate limit starts anew is taken too: epoch
    seconds at Bluesky and X, ISO 8601 at Mastodon, seconds from now in the IETF's draft; all are told by their looks. Of
    several limits the one that ends last counts, unless its headers say that something is left of it.
    """
    now = time.time() if now is None else now
    wait = _until(headers, "Retry-After", now)
    if wait <= 0 and throttled:
        spent = [name for name in LIMITS if str(headers.get(f"{name}-Remaining", "0")).strip() == "0"]
        wait = max((_until(headers, f"{name}-Reset", now) for name in spent), default=0)
    return wait if wait > 0 else None


def _until(headers, name, now):
    return _seconds(str(headers.get(name, "")).strip(), now) or 0


def _seconds(value, now):
    try:
        number = float(value)
    except ValueError:
        moment = _moment(value)
        return None if moment is None else moment.timestamp() - now
    if not math.isfinite(number):
        return None
    return number - now if number > 1_000_000_000 else number


def _moment(value):
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
        except (ValueError, TypeError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _default(status, commits):
    if status == 429:
        return THROTTLED
    if status >= 500 or status == 408:
        return Unconfirmed if commits else Unavailable
    return {401: Disconnected, 403: PermissionMissing}.get(status, Rejected)


def _no_words(answer):
    return None, None


def _clean(word, secrets):
    if word is None:
        return None
    for secret in secrets:
        word = word.replace(secret, "[secret]")
    return word


def _storable(value):
    """PostgreSQL takes neither NUL nor lone surrogates."""
    if not isinstance(value, str):
        return True
    return "\0" not in value and not re.search("[\ud800-\udfff]", value)


def _read(response):
    try:
        return response.read(MAX_ANSWER)
    except (Broken, TooLarge):
        if response.status < 400:
            raise
        return b""      # the status has said it


def _bearer(token, title):
    if token is None:
        return {}
    if not re.fullmatch(r"[!-~]+", token):      # anything else would break the header
        raise Disconnected(SENTENCES[Disconnected].format(title))
    return {"Authorization": f"Bearer {token}"}


def _patience(size):
    if size <= MAX_ANSWER:
        return CALL
    return Timeouts(first_byte=60, total=CALL.total + size / SLOWEST_UPLOAD)


def _payload(json, form, files, body, size):
    """The body of the request, the headers that describe it, and its size in bytes."""
    if files is not None:
        return _multipart(form or {}, files)
    if json is not None:
        body, kind = jsonlib.dumps(json).encode(), {"Content-Type": "application/json"}
    elif form is not None:
        body, kind = urlencode(form, doseq=True).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
    elif body is None or isinstance(body, bytes):
        kind = {}
    else:
        return body, {"Content-Length": str(size)}, size
    return body, kind, len(body or b"")


def _multipart(form, files):
    boundary = random.token_hex(16)
    start = f'--{boundary}\r\nContent-Disposition: form-data; name="%s"'
    texts = "".join(f"{start % name}\r\n\r\n{value}\r\n" for name, value in form.items()).encode()
    heads = [f'{start % upload.name}; filename="{upload.filename}"\r\nContent-Type: {upload.mime_type}\r\n\r\n'.encode()
             for upload in files]
    end = f"--{boundary}--\r\n".encode()
    size = len(texts) + sum(len(head) + upload.size + 2 for head, upload in zip(heads, files, strict=True)) + len(end)

    def stream():
        yield texts
        for head, upload in zip(heads, files, strict=True):
            yield head
            yield from _pieces(upload)
            yield b"\r\n"
        yield end

    return stream(), {"Content-Type": f"multipart/form-data; boundary={boundary}", "Content-Length": str(size)}, size


def _pieces(upload):
    """What the file holds, up to its size: the fetcher breaks a request that turns out shorter than it said."""
    left = upload.size
    while left and (piece := upload.file.read(min(CHUNK, left))):
        left -= len(piece)
        yield piece
