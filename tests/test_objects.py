"""The bucket: what our client does with it, what a signed URL admits, and what everybody may do. On the real store."""

import gzip
import hashlib
import io
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
import pytest

from storage.objects import ObjectInfo, Objects, StoreUnavailable
from storage.presign import presign_put
from tests.odd_stores import SECRET

MB = 1_048_576


@pytest.fixture(scope="module")
def objects(store_address):
    at = store_address
    objects = Objects(at.endpoint_url, at.access_key, at.secret_key, at.bucket, at.region, at.public_url)
    assert objects.prepare() == []
    return objects


@pytest.fixture
def key():
    return f"{uuid4().hex}/live/file.png"


def put(objects, key, content=b"0123456789", content_type="image/png"):
    objects.put(key, io.BytesIO(content), len(content), content_type)


def ask(method, url, body=None, headers=None):
    """(status, headers, body) of one request, sent as it is; a list as body goes out in chunks, without a length."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=20)
    try:
        connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


# The client

@pytest.mark.parametrize("size", [0, 1, 5 * MB, 11 * MB + 1], ids=["empty", "one byte", "one part", "three parts"])
def test_what_was_put_is_there(objects, key, size):
    content = bytes(range(256)) * (size // 256 + 1)
    put(objects, key, content[:size], "video/mp4")
    copy = io.BytesIO()
    objects.fetch_to(key, copy)
    assert hashlib.sha256(copy.getvalue()).digest() == hashlib.sha256(content[:size]).digest()
    found = objects.stat(key)
    assert found == ObjectInfo(size, "video/mp4", found.etag) and found.etag


def test_a_put_replaces_nothing(objects, key):
    put(objects, key, b"first", "image/png")
    with pytest.raises(StoreUnavailable, match="refused .PreconditionFailed."):
        put(objects, key, b"second", "image/gif")
    with objects.open(key) as file:
        assert file.read() == b"first"
    assert objects.stat(key).content_type == "image/png"


def test_a_put_holds_little_and_takes_no_more_than_was_said(objects, key):
    file = io.BytesIO(bytes(3_000_000) + b"more")
    tracemalloc.start()
    objects.put(key, file, 3_000_000, "image/png")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (objects.stat(key).bytes, file.read(), peak < 2_000_000) == (3_000_000, b"more", True)


@pytest.mark.parametrize("offset, length, expected", [
    (0, None, b"0123456789"), (3, None, b"3456789"), (0, 4, b"0123"), (3, 4, b"3456"), (8, 4, b"89"), (9, 1, b"9"),
])
def test_open_gives_a_part(objects, key, offset, length, expected):
    put(objects, key)
    with objects.open(key, offset, length) as file:
        assert file.read() == expected


@pytest.mark.parametrize("label, told", [("gzip", "gzip"), ("gzip, gzip", "gzip, gzip"), ("deflate", "deflate"),
                                         ("Identity", None), ("aws-chunked", None)])
def test_what_is_called_compressed_is_read_as_it_is_stored(objects, key, label, told):
    content = gzip.compress(bytes(MB))
    url, headers = objects.presigned_put(key, len(content), "image/png", 60)
    assert ask("PUT", url, content, headers | {"Content-Encoding": label})[0] == 200
    copy = io.BytesIO()
    objects.fetch_to(key, copy)
    assert copy.getvalue() == content and objects.stat(key).encoding == told
    with objects.open(key, 3, 9) as file:
        assert file.read() == content[3:12]


def test_deleted_is_gone(objects, key):
    put(objects, key)
    objects.delete(key)
    assert objects.stat(key) is None
    objects.delete(key)
    for read in (objects.open, lambda key: objects.fetch_to(key, io.BytesIO())):
        with pytest.raises(StoreUnavailable, match="does not have this file"):
            read(key)


def test_list_gives_what_begins_with_the_prefix(objects):
    team = uuid4().hex
    for name, content in (("live/b.png", b"22"), ("live/a.png", b"1"), ("test/c.png", b"333")):
        put(objects, f"{team}/{name}", content)
    live, every = list(objects.list(f"{team}/live/")), list(objects.list(team))
    assert [row[:2] for row in live] == [(f"{team}/live/a.png", 1), (f"{team}/live/b.png", 2)]
    assert [row[:2] for row in every] == [*(row[:2] for row in live), (f"{team}/test/c.png", 3)]
    assert all(abs(datetime.now(UTC) - modified) < timedelta(minutes=1) for _, _, modified in every)
    assert list(objects.list(uuid4().hex)) == []


def test_list_begins_behind_a_key(objects):
    team = uuid4().hex
    for name in "abc":
        put(objects, f"{team}/live/{name}.png")
    found = [key for key, _, _ in objects.list(f"{team}/", after=f"{team}/live/a.png")]
    assert found == [f"{team}/live/b.png", f"{team}/live/c.png"]
    assert list(objects.list(f"{team}/", after=f"{team}/live/c.png")) == []


def test_list_goes_on_after_the_first_page(objects):
    team = uuid4().hex
    keys = [f"{team}/{number:04}" for number in range(1_001)]       # S3 gives 1,000 at a time
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: put(objects, key, b""), keys))
    assert [key for key, _, _ in objects.list(f"{team}/")] == keys


@pytest.mark.parametrize("name", ["plain.png", "a b+c%20&?#.png", "größe/写真.png", "~_-.'()!*.png"])
def test_public_url_serves_and_leads_back(objects, name):
    key = f"{uuid4().hex}/{name}"
    put(objects, key)
    url = objects.public_url(key)
    assert ask("GET", url)[::2] == (200, b"0123456789")
    assert objects.key_of(url) == key
    assert [found for found, _, _ in objects.list(key)] == [key]


@pytest.mark.parametrize("url", [
    "http://cdn.example/media/t/a%2eb", "http://cdn.example/media/t%2Fa", "http://cdn.example/mediat/a", "t/a", "",
    "http://CDN.example/media/t/a", "https://cdn.example/media/t/a", "http://cdn.example/media/t/a?x",
    "http://cdn.example/media/%ff",
])
def test_key_of_knows_its_own_urls_only(url):
    assert Objects("http://127.0.0.1:1", "a", SECRET, "media", public_url="http://cdn.example/media/").key_of(url) is None


def test_public_url_may_lie_elsewhere():
    at = Objects("http://127.0.0.1:1/", "a", SECRET, "media")
    assert at.public_url("t/a b.png") == "http://127.0.0.1:1/media/t/a%20b.png"
    at = Objects("http://127.0.0.1:1", "a", SECRET, "media", public_url="https://cdn.example/")
    assert at.public_url("t/a b.png") == "https://cdn.example/t/a%20b.png"
    assert at.presigned_put("t/a", 1, "image/png", 60)[0].startswith("http://127.0.0.1:1/media/t/a?")


def test_files_that_are_not_read_to_the_end_leave_nothing_behind(objects, key):
    put(objects, key, bytes(4 * MB))
    before = len(psutil.Process().net_connections())
    for _ in range(20):
        with objects.open(key) as file:
            assert file.read(10) == bytes(10)
    assert len(psutil.Process().net_connections()) <= before + 1
    assert objects.stat(key).bytes == 4 * MB


# Signed uploads

def upload(objects, key, body=b"0123456789", headers=None):
    """The answer to an upload that was signed for 10 bytes of image/png."""
    url, ours = objects.presigned_put(key, 10, "image/png", 60)
    return ask("PUT", url, body, ours if headers is None else headers)


def test_the_declared_upload_is_taken(objects, key):
    url, headers = objects.presigned_put(key, 10, "image/png", 60)
    assert headers == {"Content-Length": "10", "Content-Type": "image/png", "If-None-Match": "*"}
    assert ask("PUT", url, b"0123456789", headers)[0] == 200
    found = objects.stat(key)
    assert found == ObjectInfo(10, "image/png", found.etag)


@pytest.mark.parametrize("body, headers", [
    pytest.param(b"0123456789A", {"Content-Type": "image/png"}, id="one byte more"),
    pytest.param(b"012345678", {"Content-Type": "image/png"}, id="one byte less"),
    pytest.param(b"", {"Content-Type": "image/png"}, id="nothing"),
    pytest.param(b"0123456789", {"Content-Type": "text/html"}, id="other type"),
    pytest.param(b"0123456789", {"Content-Type": "image/png; charset=x"}, id="type with a parameter"),
    pytest.param(b"0123456789", {}, id="no type"),
    pytest.param([b"0123456789"], {"Content-Type": "image/png"}, id="chunked"),
    pytest.param([b"0123456789", bytes(100)], {"Content-Type": "image/png"}, id="chunked and larger"),
])
def test_another_upload_is_refused(objects, key, body, headers):
    headers = headers | {"If-None-Match": "*"}
    assert upload(objects, key, body, headers)[0] == 403
    assert objects.stat(key) is None


@pytest.mark.parametrize("body, headers, status", [
    pytest.param(b"0123456789", {"Content-Type": "image/png", "If-None-Match": "*"}, 412, id="the same"),
    pytest.param(b"9876543210", {"Content-Type": "image/png", "If-None-Match": "*"}, 412, id="another"),
    pytest.param(b"9876543210", {"Content-Type": "image/png"}, 403, id="without the condition"),
    pytest.param(b"9876543210", {"Content-Type": "image/png", "If-None-Match": '"x"'}, 403, id="another condition"),
])
def test_nothing_is_taken_a_second_time(objects, key, body, headers, status):
    first = objects.presigned_put(key, 10, "image/png", 60)
    assert ask("PUT", first[0], b"0123456789", first[1])[0] == 200
    later = objects.presigned_put(key, 10, "image/png", 61)
    for url, _ in (first, later):
        assert ask("PUT", url, body, headers)[0] == status
    with objects.open(key) as file:
        assert file.read() == b"0123456789"


@pytest.mark.parametrize("change", [
    pytest.param(lambda url, key: url.replace(key, "other.png"), id="other key"),
    pytest.param(lambda url, key: url.replace("X-Amz-Expires=60", "X-Amz-Expires=6000"), id="longer time"),
    pytest.param(lambda url, key: url.replace("content-length%3B", ""), id="length not signed"),
    pytest.param(lambda url, key: url.split("&X-Amz-Signature")[0], id="no signature"),
    pytest.param(lambda url, key: url.split("?")[0], id="nothing signed"),
])
def test_a_changed_url_is_refused(objects, key, change):
    url, headers = objects.presigned_put(key, 10, "image/png", 60)
    assert ask("PUT", change(url, key), b"0123456789", headers)[0] in (400, 403)
    assert objects.stat(key) is None and objects.stat("other.png") is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "POST"])
def test_the_url_of_an_upload_is_good_for_nothing_else(objects, key, method):
    put(objects, key)
    url, headers = objects.presigned_put(key, 10, "image/png", 60)
    assert ask(method, url, b"0123456789" if method == "POST" else None, headers if method == "POST" else None)[0] in (403, 405)
    assert objects.stat(key).bytes == 10


@pytest.mark.parametrize("age, status", [(timedelta(seconds=30), 200), (timedelta(seconds=61), 403), (timedelta(days=8), 403)])
def test_an_upload_ends_with_its_time(objects, store_address, key, age, status):
    at = store_address
    url = presign_put(at.endpoint_url, at.bucket, key, access_key=at.access_key, secret_key=at.secret_key, region=at.region,
                      size=10, content_type="image/png", expires=60, now=datetime.now(UTC) - age)
    assert ask("PUT", url, b"0123456789", {"Content-Type": "image/png", "If-None-Match": "*"})[0] == status


def test_a_page_of_another_origin_may_upload(objects, key):
    url, _ = objects.presigned_put(key, 10, "image/png", 60)
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "PUT",
             "Access-Control-Request-Headers": "content-type"}
    status, headers, _ = ask("OPTIONS", url, headers=asked)
    assert (status, headers["Access-Control-Allow-Headers"]) == (200, "content-type")
    assert headers["Access-Control-Allow-Origin"] in ("*", "https://app.example")
    assert "PUT" in headers["Access-Control-Allow-Methods"]
    sent = {"Content-Type": "image/png", "If-None-Match": "*", "Origin": "https://app.example"}
    status, headers, _ = upload(objects, key, headers=sent)
    assert status == 200 and headers["Access-Control-Allow-Origin"] in ("*", "https://app.example")
    assert objects.admits_pages()


# Everybody

def test_everybody_reads_what_they_know_of(objects, store_address, key):
    put(objects, key)
    status, headers, body = ask("GET", objects.public_url(key))
    assert (status, headers["Content-Type"], body) == (200, "image/png", b"0123456789")
    assert ask("GET", objects.public_url(key), headers={"Range": "bytes=3-5"})[::2] == (206, b"345")
    assert ask("HEAD", objects.public_url(key))[0] == 200
    assert ask("GET", objects.public_url(f"{key}.no"))[0] in (403, 404)     # S3 hides from who may not list what is not there


@pytest.mark.parametrize("method, path", [
    ("GET", "/"), ("GET", "/{bucket}"), ("GET", "/{bucket}/"), ("GET", "/{bucket}?list-type=2"), ("GET", "/{bucket}?versions"),
    ("GET", "/{bucket}?uploads"), ("GET", "/{bucket}?acl"), ("GET", "/{bucket}?policy"), ("GET", "/{bucket}?cors"),
    ("GET", "/{bucket}/{key}?acl"), ("GET", "/{bucket}/{key}?tagging"), ("GET", "/{bucket}/{key}?attributes"),
    ("PUT", "/{bucket}/{key}"), ("PUT", "/{bucket}/new"), ("PUT", "/{bucket}/{key}?tagging"), ("PUT", "/{bucket}/{key}?acl"),
    ("POST", "/{bucket}/{key}?uploads"), ("PUT", "/other"), ("PUT", "/{bucket}?policy"), ("PUT", "/{bucket}?cors"),
    ("POST", "/{bucket}?delete"), ("DELETE", "/{bucket}/{key}"), ("DELETE", "/{bucket}"), ("DELETE", "/{bucket}?policy"),
    ("POST", "/?Action=CreateUser&UserName=me&Version=2010-05-08"),
])
def test_everybody_does_nothing_else(objects, store_address, key, method, path):
    put(objects, key)
    url = store_address.endpoint_url + path.format(bucket=store_address.bucket, key=key)
    assert ask(method, url, b"x" if method in ("PUT", "POST") else None)[0] in (400, 403, 405)
    assert objects.stat(key).bytes == 10 and objects.ready()


# Preparing, and what is refused

def test_prepare_makes_the_bucket_and_leaves_no_object(store_address):
    at = store_address
    bucket = f"made-{uuid4().hex}"
    objects = Objects(at.endpoint_url, at.access_key, at.secret_key, bucket)
    assert not objects.ready()
    assert (objects.prepare(), objects.prepare(), objects.ready(), list(objects.list())) == ([], [], True, [])
    put(objects, "t/a")
    assert ask("GET", objects.public_url("t/a"))[0] == 403      # who may read a bucket of theirs is for its owner to say


def test_wrong_keys(store_address):
    objects = Objects(store_address.endpoint_url, store_address.access_key, SECRET, store_address.bucket)
    with pytest.raises(StoreUnavailable, match="refused"):
        put(objects, "t/a")
    assert not objects.ready()


@pytest.mark.parametrize("query", ["", "?response-content-type=text/html"])
def test_a_reserved_bucket_is_read_by_nobody(store_address, query):
    at = store_address
    objects = Objects(at.endpoint_url, at.access_key, at.secret_key, f"kept-{uuid4().hex}")
    objects.prepare()
    put(objects, "t/a")
    objects.allow_anonymous_reads()
    assert ask("GET", objects.public_url("t/a"))[0] == 200
    for _ in range(2):
        objects.reserve_reads()
        assert ask("GET", objects.public_url("t/a") + query)[0] == 403


def test_a_file_that_is_too_short_is_the_callers_fault(objects, key):
    with pytest.raises(ValueError, match="shorter than was said"):
        objects.put(key, io.BytesIO(b"12345"), 10, "image/png")
    assert objects.stat(key) is None


@pytest.mark.parametrize("address", ["127.0.0.1:9000", "ftp://store.example", "https://", "https://store.example/s3", ""])
def test_an_address_that_is_none(address):
    with pytest.raises(ValueError, match="address of an S3 store"):
        Objects(address, "key", SECRET, "media")
