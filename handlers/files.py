"""The files, served by the API itself as what the database knows them to be, whatever a query asks for.

For stores that nobody else should read: SeaweedFS, for one, lets any reader choose the Content-Type of the answer, which
makes a page of a file with a script in it. Where much is read, S3_PUBLIC_URL names something better suited.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers

from handlers.config import FILES
from handlers.errors import NotFound, RateLimited
from handlers.proxies import counted_for
from handlers.responses import unchanged
from storage.database import with_connection
from storage.media import KEY
from storage.models import Media
from storage.objects import StoreUnavailable
from storage.renditions import Rendition

PREFIX = f"{FILES}/"
METHODS = ["GET", "HEAD"]
CHUNK = 262_144         # bytes in memory for one reader
READERS = 64            # of one process at once; each holds a connection to the store
SHARE = 16              # of them, from one address
THREADS = 8             # that wait for the store at once: those of other requests are not taken
STALLED = 30.0          # seconds that a reader may take nothing
SLOWEST = 16_384        # bytes a second that one takes on the whole, after the first STALLED seconds

RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
log = logging.getLogger("posthorn.files")

GUARDS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'",
          "Cross-Origin-Resource-Policy": "cross-origin", "Accept-Ranges": "bytes"}


@dataclass(frozen=True)
class _File:
    """A file that may be served. What was not looked at yet is for keeping, not for looking at."""

    key: str
    mime_type: str
    bytes: int
    seen: bool

    @property
    def etag(self):
        """What is stored under a key never changes."""
        return f'"{hashlib.sha256(self.key.encode()).hexdigest()[:32]}"'

    def headers(self):
        """Those of every answer about it."""
        shown = {"Cache-Control": "public, max-age=86400", "Content-Disposition": "inline"} if self.seen else {
            "Cache-Control": "no-store", "Content-Disposition": "attachment"}
        return {**GUARDS, **shown, "Content-Type": self.mime_type, "ETag": self.etag}


class Files:
    """Answers METHODS below FILES itself, and passes everything else on."""

    def __init__(self, app, services):
        self.app, self._objects = app, services.objects
        self._threads, self._reading = CapacityLimiter(THREADS), Counter()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            return await self.app(scope, receive, send)
        file = await self._in_thread(self._find, scope["path"].removeprefix(PREFIX))
        if file is None:
            raise NotFound("there is no file at this path")
        await self._answer(file, scope, receive, send)

    async def _answer(self, file, scope, receive, send):
        asked, headers = Headers(scope=scope), file.headers()
        if unchanged(", ".join(asked.getlist("if-none-match")), file.etag):
            return await _send(send, 304, headers)
        part = _part(asked, file)
        if part is None:
            return await _send(send, 416, {**headers, "Content-Range": f"bytes */{file.bytes}"})
        start, end = part
        headers["Content-Length"] = str(end - start)
        whole = (start, end) == (0, file.bytes)
        if not whole:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.bytes}"
        status = 200 if whole else 206
        if scope["method"] == "HEAD":
            return await _send(send, status, headers)
        with self._place(counted_for(scope["client"] and scope["client"][0])):
            body = await self._in_thread(self._objects.open, file.key, start, end - start)
            try:
                chunk = await self._in_thread(body.read, CHUNK)
                await _send(send, status, headers, more=True)
                await self._pass_on(body, chunk, end - start, receive, send)
            finally:
                await self._in_thread(body.close)

    @contextmanager
    def _place(self, origin):
        if self._reading.total() >= READERS or self._reading[origin] >= SHARE:
            raise RateLimited("too many files are being read at this moment", headers={"Retry-After": "5"})
        self._reading[origin] += 1
        try:
            yield
        finally:
            self._reading = self._reading - Counter([origin])

    async def _pass_on(self, body, chunk, length, receive, send):
        """The answer has begun: what goes wrong now can only end it early, upon which the server closes the connection."""
        gone, since, given = asyncio.ensure_future(_left(receive)), time.monotonic(), 0
        try:
            while chunk and not gone.done():
                given += len(chunk)
                seconds = min(STALLED, since + STALLED + given / SLOWEST - time.monotonic())
                part = {"type": "http.response.body", "body": chunk, "more_body": given < length}
                await asyncio.wait_for(send(part), seconds)
                chunk = await self._in_thread(body.read, CHUNK) if given < length else b""
        except (OSError, StoreUnavailable) as error:
            log.warning("a file was given up after %d of %d bytes: %s", given, length, type(error).__name__)
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)

    async def _in_thread(self, function, *arguments):
        return await to_thread.run_sync(function, *arguments, limiter=self._threads)

    def _find(self, key):
        if KEY.fullmatch(key) is None:
            return None
        with with_connection():
            media = Media.get_or_none(Media.key == key, Media.state != "refused")
            made = Rendition.select().where(Rendition.key == key).first() if media is None else None
        found = media or made
        if found is None or (media is not None and media.state == "pending" and self._objects.stat(key) is None):
            return None
        return _File(key, found.mime_type, found.bytes, seen=made is not None or media.state == "ready")


async def _left(receive):
    """Returns when the reader has gone; the server takes what is sent then in silence."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _part(asked, file):
    """(start, end) of what is asked for, the whole where that is no range of ours, None where there is no such part."""
    match = RANGE.fullmatch(asked.get("range", "").strip())
    if match is None or match[0] == "bytes=-" or asked.get("if-range", file.etag) != file.etag:
        return 0, file.bytes
    first, last = (int(number) if number else None for number in match.groups())
    if first is None:
        return (max(0, file.bytes - last), file.bytes) if last else None
    if first >= file.bytes:
        return None
    if last is not None and last < first:
        return 0, file.bytes
    return first, min(file.bytes, file.bytes if last is None else last + 1)


async def _send(send, status, headers, more=False):
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    if not more:
        await send({"type": "http.response.body", "body": b""})
