"""The media files: one bucket of one S3 store, spoken to through the MinIO client."""

import io
import json
import re
import shutil
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import md5
from typing import BinaryIO
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4
from xml.etree.ElementTree import ParseError

from minio import Minio
from minio.credentials import Provider
from minio.error import MinioException, S3Error
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from storage.credentials import NoCredentials, provider
from storage.presign import object_url, presign_put

# A dead store is known after 8 s and a silent one after 10: whoever waits for us gets an answer within 15 s.
TIMEOUT = Timeout(connect=4, read=10)
RETRIES = Retry(total=1, connect=1, read=0, status=0, other=0)
CONNECTIONS = 80        # kept open: one for each reader of files (handlers/files.py), and some for all else
PUT_SECONDS = 3600      # that one upload of ours may take until it has begun
PLAIN = ("", "identity", "aws-chunked")     # the last is how minio-py and others send, and not how anything is stored
NO_PAGES, ADMIT = "the object store lets no web page upload", "allow PUT from all origins there"
NO_CONDITION = "the object store cannot be used: it knows no If-None-Match, without which one upload could replace another"
NO_S3 = "what answers in place of the object store does not speak S3"
PIECE = 1 << 18         # bytes in memory of a file on its way into the store

PROBE_PREFIX, PROBE_TYPE = "posthorn-probe-", "application/octet-stream"

# What a browser asks before it lets a page of this origin upload.
PAGE = "https://page.example"
PREFLIGHT = {"Origin": PAGE, "Access-Control-Request-Method": "PUT",
             "Access-Control-Request-Headers": "content-type,if-none-match"}

# What differs from what was signed, and how to call it.
UNSIGNED = (({"Content-Length": "2"}, b"..", "that are larger than declared"),
            ({"Content-Type": "text/html"}, b".", "of another type than declared"))

# Pages of any origin may upload: what admits them is the signature in the URL.
CORS = b"""<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>\
<AllowedMethod>GET</AllowedMethod><AllowedHeader>*</AllowedHeader><MaxAgeSeconds>3600</MaxAgeSeconds></CORSRule>\
</CORSConfiguration>"""


class StoreUnavailable(Exception):
    """The store did not do what it was asked. The text is one sentence that may be shown to anybody."""


@dataclass(frozen=True)
class ObjectInfo:
    """What the store knows of an object. `bytes` is its size; `content_type` and `encoding` (None: none) were declared when it
    was put, and nobody has checked them.
    """

    bytes: int
    content_type: str
    etag: str
    encoding: str | None = None


class Objects:
    """The objects of one bucket. To be shared by the threads of a process, and not across a fork."""

    def __init__(self, endpoint_url: str, access_key: str, secret_key: str, bucket: str, region: str = "us-east-1",
                 public_url: str | None = None, *, credentials: Provider | None = None, upload_url: str | None = None,
                 virtual_host: bool = False):
        """Opens no socket. `credentials` (storage.credentials) stand in place of the two keys.

        `public_url` is where the bucket is served to everybody, by default `<endpoint_url>/<bucket>`; `upload_url` is where
        everybody else finds the store, by default `endpoint_url`, which is where we do. `virtual_host` puts the bucket before
        the host and not into the path. Raises ValueError if an address is not `http(s)://host[:port]`.
        """
        parts, _ = _address(endpoint_url), _address(upload_url or endpoint_url)
        self._endpoint_url, self._upload_url = endpoint_url.rstrip("/"), (upload_url or endpoint_url).rstrip("/")
        self._credentials = credentials or provider("keys", access_key, secret_key)
        self._bucket, self._region, self._virtual_host = bucket, region, virtual_host
        self._public_url = (public_url or f"{self._endpoint_url}/{bucket}").rstrip("/")
        self._http = PoolManager(maxsize=CONNECTIONS, timeout=TIMEOUT, retries=RETRIES)
        self._client = Minio(parts.netloc, secure=parts.scheme == "https", region=region, http_client=self._http,
                             credentials=self._credentials)
        # Not told, it goes by the name of the host.
        (self._client.enable_virtual_style_endpoint if virtual_host else self._client.disable_virtual_style_endpoint)()

    def prepare(self) -> list[str]:
        """Makes the bucket if it is missing and tries an upload; returns a sentence for everything that is not as it should be.

        Raises StoreUnavailable if nothing can be uploaded.
        """
        if not self.has_bucket():
            with _failures():
                self._make_bucket()
        return [*self._allow_browsers(), *self.laxities()]

    def laxities(self, *, as_others=False) -> list[str]:
        """Uploads what was signed, over it again and beside it, and what was not: a sentence for all that should be refused.

        `as_others` goes by the address that is given to others. Raises StoreUnavailable, also if the store refuses what was
        signed.
        """
        found = []
        with self._trial(as_others) as (key, url, headers):
            exact = self._asked("PUT", url, headers, b".").status
            if exact == 501:
                raise StoreUnavailable(f"{NO_CONDITION} (status 501)")
            if exact != 200:
                raise StoreUnavailable(f"the object store refuses uploads through signed URLs (status {exact})")
            if self._asked("PUT", url, headers, b".").status == 200:
                found.append("the object store lets an upload be replaced by another")
            for change, body, what in UNSIGNED:
                self.delete(key)
                if self._asked("PUT", url, headers | change, body).status == 200:
                    found.append(f"the object store takes uploads {what}")
            self.delete(key)
            if self._takes_two(url, headers):
                found.append("the object store lets an upload be replaced by another that goes on beside it")
        return found

    def admits_pages(self, *, as_others=False) -> bool:
        """Whether pages of any origin may upload, and see that they have: CORS, asked for as browsers do.

        `as_others` as above. Raises StoreUnavailable.
        """
        with self._trial(as_others) as (_, url, headers):
            before = self._asked("OPTIONS", url, PREFLIGHT)
            after = self._asked("PUT", url, {**headers, "Origin": PAGE}, b".")
        admitted = all(answer.headers.get("Access-Control-Allow-Origin") in ("*", PAGE) for answer in (before, after))
        return admitted and before.status in (200, 204) and "PUT" in before.headers.get("Access-Control-Allow-Methods", "")

    def reserve_reads(self) -> None:
        """Lets nobody but the holders of keys read the bucket any more. Raises StoreUnavailable."""
        with _failures():
            try:
                self._client.delete_bucket_policy(self._bucket)
            except S3Error as error:
                if error.code != "NoSuchBucketPolicy":
                    raise

    def allow_anonymous_reads(self) -> None:
        """Lets everybody read an object whose key they know, and do nothing else. Raises StoreUnavailable."""
        statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
                     "Resource": f"arn:aws:s3:::{self._bucket}/*"}
        with _failures():
            self._client.set_bucket_policy(self._bucket, json.dumps({"Version": "2012-10-17", "Statement": [statement]}))

    def has_bucket(self) -> bool:
        """Whether the bucket is there. Raises StoreUnavailable."""
        with _failures():
            return self._client.bucket_exists(self._bucket)

    def ready(self) -> bool:
        """Whether the store answers and has the bucket."""
        try:
            return self.has_bucket()
        except StoreUnavailable:
            return False

    def put(self, key: str, file: BinaryIO, size: int, content_type: str) -> None:
        """Stores `size` bytes of `file` under `key`, where nothing is yet. Raises StoreUnavailable, and ValueError when short.

        One request, sent as it is read: the parts of minio-py are held in memory and hashed, and take half as long again.
        """
        url, headers = self._signed(self._endpoint_url, key, size, content_type, PUT_SECONDS)
        with _failures():
            answer = self._http.request("PUT", url, body=_exactly(file, size), headers=headers)
        if answer.status != 200:
            code = re.search(rb"<Code>(\w+)</Code>", answer.data)
            raise StoreUnavailable(f"the object store refused ({code[1].decode()})" if code else NO_S3)

    def stat(self, key: str) -> ObjectInfo | None:
        """What the store knows of the object, or None if there is none. Raises StoreUnavailable."""
        try:
            with _failures():
                found = self._client.stat_object(self._bucket, key)
        except _Absent:
            return None
        encoding = found.metadata.get("Content-Encoding", "").strip().lower()
        return ObjectInfo(found.size, found.content_type, found.etag, encoding if encoding not in PLAIN else None)

    def open(self, key: str, offset: int = 0, length: int | None = None) -> BinaryIO:
        """A file on the object's bytes from `offset` on, at most `length` of them. It cannot seek, and must be closed.

        Raises StoreUnavailable, when reading from it too, and also when there is no such object.
        """
        with _failures():
            return io.BufferedReader(_Body(self._client.get_object(self._bucket, key, offset=offset, length=length or 0)))

    def fetch_to(self, key: str, file: BinaryIO) -> None:
        """Copies the whole object into `file`. Raises StoreUnavailable, also when there is no such object."""
        with self.open(key) as body:
            shutil.copyfileobj(body, file)

    def delete(self, key: str) -> None:
        """Removes the object, if there is one. Raises StoreUnavailable."""
        with _failures():
            self._client.remove_object(self._bucket, key)

    def list(self, prefix: str = "", after: str | None = None) -> Iterator[tuple[str, int, datetime]]:
        """Gives (key, bytes, time of the last change, aware) of every object whose key begins with `prefix`, by key.

        Begins behind the key `after`. Asks for the next page as it goes. Raises StoreUnavailable.
        """
        with _failures():
            for found in self._client.list_objects(self._bucket, prefix, recursive=True, start_after=after):
                yield found.object_name, found.size, found.last_modified

    def public_url(self, key: str) -> str:
        """Where everybody can read the object."""
        return f"{self._public_url}/{quote(key)}"

    def own_urls(self, key: str) -> set[str]:
        """Where the store itself has the object (for the key "", the bucket), for us and for others."""
        return {object_url(base, self._bucket, key, virtual_host=self._virtual_host)
                for base in (self._endpoint_url, self._upload_url)}

    def key_of(self, url: str) -> str | None:
        """The key whose public URL this is, written exactly so; None for every other URL."""
        key = unquote(url.removeprefix(f"{self._public_url}/"))
        return key if url == self.public_url(key) else None

    def presigned_put(self, key: str, size: int, content_type: str, expires_seconds: int) -> tuple[str, dict[str, str]]:
        """A URL that takes exactly `size` bytes of `content_type` for so many seconds from now, and the headers to send.

        Raises StoreUnavailable where the keys are had from elsewhere, and cannot be.
        """
        return self._signed(self._upload_url, key, size, content_type, expires_seconds)

    def _signed(self, base, key, size, content_type, expires_seconds):
        with _failures():
            keys = self._credentials.retrieve()
        url = presign_put(base, self._bucket, key, access_key=keys.access_key, secret_key=keys.secret_key,
                          session_token=keys.session_token, region=self._region, size=size, content_type=content_type,
                          expires=expires_seconds, now=datetime.now(UTC), virtual_host=self._virtual_host)
        return url, {"Content-Length": str(size), "Content-Type": content_type, "If-None-Match": "*"}

    @contextmanager
    def _trial(self, as_others):
        """The key, the URL and the headers of an upload of one byte, which is gone afterwards."""
        key = f"{PROBE_PREFIX}{uuid4().hex}"
        try:
            yield key, *self._signed(self._upload_url if as_others else self._endpoint_url, key, 1, PROBE_TYPE, 60)
        finally:
            self.delete(key)

    def _takes_two(self, url, headers):
        """Whether two uploads that overlap are both taken: the first begins, the second is made, the first ends."""
        taken = []

        def meanwhile():    # is asked for the body once the head of the first is sent
            taken.append(self._asked("PUT", url, headers, b".").status)
            yield b"."

        taken.append(self._asked("PUT", url, headers, meanwhile()).status)
        return taken == [200, 200]

    def _asked(self, method, url, headers, body=None):
        with _failures():
            return self._http.request(method, url, body=body, headers=headers)

    def _make_bucket(self):
        try:
            self._client.make_bucket(self._bucket)
        except S3Error as error:
            if error.code != "BucketAlreadyOwnedByYou":     # another process of ours was faster
                raise

    def _allow_browsers(self):
        """Some stores admit pages without being told, or were told by others, and refuse to be told by us."""
        digest = b64encode(md5(CORS, usedforsecurity=False).digest()).decode()
        try:
            # minio-py has no method for this call of S3, which wants the digest.
            self._client._execute("PUT", self._bucket, body=CORS, headers={"Content-MD5": digest}, query_params={"cors": ""})
        except (MinioException, HTTPError, ParseError):
            return [] if self.admits_pages() else [f"{NO_PAGES}, and takes no CORS rules from us; {ADMIT}"]
        return []


def _exactly(file, size):
    while size:
        piece = file.read(min(PIECE, size))
        if not piece:
            raise ValueError("the file is shorter than was said")
        size -= len(piece)
        yield piece


class _Body(io.RawIOBase):
    """The body of an answer as a file, whose failures are StoreUnavailable like all others."""

    def __init__(self, response):
        self._response = response

    def readable(self):
        return True

    def readinto(self, buffer):
        with _failures():
            # As it is stored: whoever put it may have called it gzip, and then it would come out a thousand times as large.
            data = self._response.read(len(buffer), decode_content=False)
        buffer[:len(data)] = data
        return len(data)

    def close(self):
        # What was not read to its end must not reach the next user of the connection, so it is cut first.
        self._response.close()
        self._response.release_conn()
        super().close()


class _Absent(StoreUnavailable):
    """There is no such object."""


def _address(url):
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
        raise ValueError("the address of an S3 store is http://host:port or https://host:port, without a path")
    return parts


@contextmanager
def _failures():
    try:
        yield
    except NoCredentials as error:
        raise StoreUnavailable("the keys of the object store cannot be had") from error
    except S3Error as error:
        if error.code == "NoSuchKey":
            raise _Absent("the object store does not have this file") from error
        raise StoreUnavailable(f"the object store refused ({error.code})") from error
    except HTTPError as error:
        raise StoreUnavailable("the object store cannot be reached, or broke off in the middle of its answer") from error
    except (MinioException, ParseError) as error:
        raise StoreUnavailable(NO_S3) from error
