"""Files served by the API itself, from a store that nobody else may read."""

import asyncio
import io
import time
from contextlib import ExitStack
from types import SimpleNamespace
from urllib.parse import urlsplit

import psutil
import pytest
import urllib3

from handlers import files
from storage.models import Media
from storage.objects import Objects, StoreUnavailable
from storage.renditions import Rendition
from tests.media_samples import HTML, image
from tests.service import Member, start_api
from tests.test_media_api import ask, using
from tests.wire import raw, refused

MB = 1 << 20
GUARDS = {"x-content-type-options": "nosniff", "content-security-policy": "sandbox; default-src 'none'",
          "cross-origin-resource-policy": "cross-origin"}
VARYING = ("x-request-id", "date")
PNG = image("PNG")


@pytest.fixture(scope="module")
def api(environ):
    """The process of an API that serves the files itself."""
    process, url = start_api({name: value for name, value in environ.items() if name != "S3_PUBLIC_URL"}
                             | {"POSTHORN_API_PROCESSES": "1"})
    process.url = url
    yield process
    process.stop()


@pytest.fixture(scope="module")
def url(api):
    return api.url


@pytest.fixture
def store(store_address):
    at = store_address
    return Objects(at.endpoint_url, at.access_key, at.secret_key, at.bucket, at.region)


@pytest.fixture
def member(url):
    return Member(url)


@pytest.fixture(scope="module")
def file(url):
    """The URL of a file that a post uses."""
    member = Member(url)
    uploaded = member.test.uploaded(PNG, "image/png")
    assert member.test.post("/v1/posts", using(uploaded)).status == 202
    return uploaded


def get(url, method="GET", **headers):
    with urllib3.PoolManager(retries=False) as pool:
        return pool.request(method, url, headers={name.replace("_", "-"): value for name, value in headers.items()},
                            decode_content=False)


def headers(answer):
    return {name.lower(): value for name, value in answer.headers.items() if name.lower() not in VARYING}


def test_a_file_is_shown_as_what_it_is(file, url):
    assert file.startswith(f"{url}/media/team_")
    answer = get(file)
    assert (answer.status, answer.data, answer.headers["Content-Type"]) == (200, PNG, "image/png")
    assert answer.headers["Content-Disposition"] == "inline" and int(answer.headers["Content-Length"]) == len(PNG)
    assert GUARDS.items() <= headers(answer).items()
    assert "Set-Cookie" not in answer.headers and "Server" not in answer.headers


@pytest.mark.parametrize("query", ["response-content-type=text/html", "response-content-disposition=inline%3Bx",
                                   "response-content-encoding=gzip", "response-cache-control=x", "list-type=2", "uploads", "acl"])
def test_no_query_changes_what_it_is(file, query):
    plain, asked = get(file), get(f"{file}?{query}")
    assert (asked.status, asked.data) == (200, PNG) and "Content-Encoding" not in asked.headers
    assert headers(asked) == headers(plain)


@pytest.mark.parametrize("asked, start, end", [("bytes=0-3", 0, 4), ("bytes=5-", 5, None), ("bytes=-7", -7, None),
                                               ("bytes=0-0", 0, 1), ("bytes=4-99999999", 4, None), ("bytes=-99999999", 0, None)])
def test_a_part_is_served(file, asked, start, end):
    answer = get(file, Range=asked)
    first = start % len(PNG)
    whole = PNG[start:end]
    assert answer.data == whole and answer.status == (200 if whole == PNG else 206)
    if whole != PNG:
        assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(whole) - 1}/{len(PNG)}"


@pytest.mark.parametrize("asked", ["bytes=-", "bytes=3-1", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b", "bytes=1-2-3",
                                   "bytes=" + "9" * 30 + "-"])
def test_what_is_no_range_is_ignored(file, asked):
    answer = get(file, Range=asked)
    assert (answer.status, answer.data) == (200, PNG)


@pytest.mark.parametrize("asked", ["bytes={size}-", "bytes=99999999-", "bytes=-0"])
def test_a_part_that_is_not_there(file, asked):
    answer = get(file, Range=asked.format(size=len(PNG)))
    assert (answer.status, answer.headers["Content-Range"], answer.data) == (416, f"bytes */{len(PNG)}", b"")


def test_an_etag_saves_a_second_reading(file):
    etag = get(file).headers["ETag"]
    for asked in (etag, f'"x", W/{etag}', "*"):
        answer = get(file, If_None_Match=asked)
        assert (answer.status, answer.data, answer.headers["ETag"]) == (304, b"", etag)
    assert get(file, If_None_Match='"x"').status == 200
    assert get(file, Range="bytes=0-3", If_Range=etag).status == 206
    assert get(file, Range="bytes=0-3", If_Range='"x"').status == 200


def test_head_says_the_same_without_the_file(file):
    answer = get(file, "HEAD")
    assert (answer.status, answer.data, answer.headers["Content-Type"]) == (200, b"", "image/png")
    assert int(answer.headers["Content-Length"]) == len(PNG)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_else_is_done_to_it(file, method):
    answer = get(file, method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert get(file).data == PNG


@pytest.mark.parametrize("status, lines", [(400, []), (400, ["Host: a", "Host: b"]), (417, ["Host: a", "Expect: x"])])
def test_http_that_nothing_here_speaks_is_refused_for_files_too(file, status, lines):
    asked = "\r\n".join([f"GET {urlsplit(file).path} HTTP/1.1", *lines, "", ""]).encode()
    assert refused(raw(file, asked), status, "bad_request")


def test_what_nobody_has_looked_at_is_for_keeping(member):
    answer = get(member.test.uploaded(HTML.ljust(1000), "image/png"))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/png")
    assert answer.headers["Content-Disposition"] == "attachment" and answer.headers["Cache-Control"] == "no-store"
    assert GUARDS.items() <= headers(answer).items()


def test_what_was_refused_or_never_came_is_not_there(member):
    refused = member.test.uploaded(HTML.ljust(1000), "image/png")
    assert member.test.post("/v1/posts", using(refused)).status == 422
    missing = ask(member, "image/png", 10).data["publicUrl"]
    assert [get(at).status for at in (refused, missing)] == [404, 404]


def test_nothing_can_be_found_by_trying(file, member):
    team = file.split("/media/")[1].split("/")[0]
    root = file.split("/media/")[0] + "/media"
    odd = ["/", "", f"/{team}", f"/{team}/", f"/{team}/test/", f"/{team}/test/%2e%2e/x.png", "/%00", "//etc/passwd",
           f"/{team}/live/" + file.rsplit("/", 1)[1], "/posthorn-probe-1", file.split("/media")[1] + "x",
           file.split("/media")[1].upper(), file.split("/media")[1] + "/", "/" + "a" * 5000]
    assert {path: get(root + path).status for path in odd} == dict.fromkeys(odd, 404)


def test_a_converted_picture_is_served_as_what_it_is(file, url, connection, store):
    media = Media.get(Media.key == file.split("/media/")[1])
    key = f"{media.team_id}/test/{'r' * 32}.jpg"
    Rendition.insert(team_id=media.team_id, mode="test", media_id=media.id, recipe="x", key=key, mime_type="image/jpeg",
                     bytes=5, width=1, height=1).execute()
    assert get(f"{url}/media/{key}").status == 502      # the store does not have it
    store.put(key, io.BytesIO(b"12345"), 5, "text/html")
    answer = get(f"{url}/media/{key}?response-content-type=text/html")
    assert (answer.status, answer.data, answer.headers["Content-Type"]) == (200, b"12345", "image/jpeg")


def test_readers_who_do_not_read_take_little_and_stop_nobody_else(member, api, connection):
    size, opened = 20 * MB, []
    large = member.test.uploaded(bytes(size), "video/mp4")
    process = psutil.Process(api.popen.pid).children()[0]
    before = process.memory_info().rss
    with ExitStack() as pools:
        try:
            for address in range(2, 7):
                source = (f"127.0.0.{address}", 0)
                pool = pools.enter_context(urllib3.PoolManager(retries=False, maxsize=100, source_address=source))
                opened += [pool.request("GET", large, preload_content=False) for _ in range(17)]
                assert get(large, Range="bytes=0-1").status == (206 if address < 5 else 429)
            assert [answer.status for answer in opened] == ([200] * 16 + [429]) * 4 + [429] * 17
            assert process.memory_info().rss - before < 64 * MB         # of 1,280 that they asked for
            assert member.test.get("/v1/health").status == 200
        finally:
            for answer in opened:
                answer.close()
    deadline = time.monotonic() + 10
    while (answer := get(large)).status == 429 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (answer.status, len(answer.data)) == (200, size)


class Broken(io.BytesIO):
    """A body of ten chunks, the last of which the store does not give."""

    def read(self, size):
        if self.tell() == 9 * files.CHUNK:
            raise StoreUnavailable("away")
        return super().read(size)


@pytest.fixture
def passed_on(monkeypatch):
    """How many of ten chunks reach a reader who takes each in so many seconds and leaves after so many chunks."""

    def passed_on(seconds, leaves=99, body=io.BytesIO):
        now, sent = [0.0], []
        monkeypatch.setattr(files, "time", SimpleNamespace(monotonic=lambda: now[0]))

        async def send(message):
            now[0] += seconds
            await asyncio.sleep(0 if seconds < 1e6 else 1e6)
            sent.append(message)

        async def receive():
            while len(sent) < leaves:
                await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def run():
            content = body(bytes(10 * files.CHUNK))
            app = files.Files(None, SimpleNamespace(objects=None))
            await app._pass_on(content, content.read(files.CHUNK), 10 * files.CHUNK, receive, send)

        asyncio.run(run())
        return len(sent)

    return passed_on


@pytest.mark.parametrize("reader, chunks, told", [
    ({"seconds": 0.1}, 10, False), ({"seconds": 15}, 10, False), ({"seconds": 29}, 4, True), ({"seconds": 1e6}, 0, True),
    ({"seconds": 1, "leaves": 4}, 4, False), ({"seconds": 1, "body": Broken}, 9, True)],
    ids=["fast", "slow", "too slow", "stalled", "gone", "the store fails"])
def test_an_answer_that_goes_on_no_longer_ends_in_one_line(passed_on, caplog, monkeypatch, reader, chunks, told):
    if reader["seconds"] == 1e6:
        monkeypatch.setattr(files, "STALLED", 0.01)
    assert passed_on(**reader) == chunks
    assert [record.exc_info for record in caplog.records] == [None] * told
