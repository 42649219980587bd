"""Files over the API: uploaded into the real store or fetched from a link, looked at, and used by a post."""

import errno
import io
import os
import re
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
import urllib3

from handlers.app import _known
from handlers.errors import ExternalServiceError, ExternalTimeout, RateLimited, Unprocessable
from handlers.media import create_media_from_url
from handlers.services import Turns
from storage.claims import look
from storage.database import with_connection
from storage.fetch import Broken, Busy, TooSlow
from storage.media import NotMedia, Unfinished
from storage.models import Media, wire_time
from storage.objects import ObjectInfo
from tests.links import serving
from tests.media_samples import HEIGHT, HTML, WIDTH, image, video
from tests.service import Member

MB = 1_048_576
FILES = {"image/jpeg": lambda: image("JPEG"), "image/png": lambda: image("PNG"), "image/gif": lambda: image("GIF"),
         "image/webp": lambda: image("WEBP"), "video/mp4": lambda: video("mp4"), "video/quicktime": lambda: video("mov"),
         "video/webm": lambda: video("webm", "libvpx")}
TYPES = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp",
         "video/mp4": "mp4", "video/quicktime": "mov", "video/webm": "webm"}
TOMORROW = wire_time(datetime.now(UTC) + timedelta(days=1))
NOT_REACHABLE = {"path": "/url", "rule": "url",
                 "message": "the link cannot be fetched: it must be a public http or https address"}


def ask(member, mime_type, size):
    return member.test.post("/v1/media/upload-url", {"contentType": mime_type, "fileSize": size})


def put(url, content, headers):
    with urllib3.PoolManager(retries=False) as pool:
        return pool.request("PUT", url, body=content, headers=headers)


def using(*urls, platform="bluesky"):
    return {"caption": "x", "media": list(urls), "targets": [{"platform": platform}], "scheduleAt": TOMORROW}


def media_of(member):
    return [(row.state, row.mime_type, row.bytes, row.width, row.height)
            for row in Media.select().where(Media.team_id == member.team.id).order_by(Media.created_at)]


def fetch(member, url):
    return member.test.post("/v1/media/from-url", {"url": url})


@pytest.mark.parametrize("mime_type", TYPES)
def test_an_upload_url_is_a_whole_record_and_how_to_use_it(member, store_address, connection, mime_type):
    before, minutes = datetime.now(UTC), 15 if mime_type.startswith("image") else 60
    answer = ask(member, mime_type, 5000)
    assert answer.status == 201
    data, meta = answer.data, answer.body["meta"]
    assert answer.body == {"success": True, "data": {
        "publicUrl": f"{store_address.public_url}/{data['key']}", "key": data["key"], "uploadUrl": data["uploadUrl"],
        "mimeType": mime_type, "bytes": 5000}, "meta": {
        "requiredHeaders": {"Content-Type": mime_type, "Content-Length": "5000", "If-None-Match": "*"},
        "expiresAt": meta["expiresAt"]}}
    assert re.fullmatch(rf"{member.team.id}/test/[A-Za-z0-9_-]{{32}}\.{TYPES[mime_type]}", data["key"])
    lasts = datetime.fromisoformat(meta["expiresAt"]) - before
    assert timedelta(minutes=minutes) - timedelta(seconds=1) < lasts < timedelta(minutes=minutes, seconds=10)
    assert media_of(member) == [("pending", mime_type, 5000, None, None)]


@pytest.mark.parametrize("mime_type", TYPES)
def test_an_upload_is_measured_when_a_post_first_uses_it(member, connection, mime_type):
    content = FILES[mime_type]()
    url = member.test.uploaded(content, mime_type)
    assert media_of(member) == [("pending", mime_type, len(content), None, None)]
    answer = member.test.post("/v1/posts", using(url, platform="mastodon"))
    assert answer.status == 202
    assert media_of(member) == [("ready", mime_type, len(content), WIDTH, HEIGHT)]
    with urllib3.PoolManager() as pool:
        public = pool.request("GET", url)
    assert (public.status, public.data, public.headers["Content-Type"]) == (200, content, mime_type)


def test_a_whole_number_may_be_written_as_a_float(member):
    raw = b'{"contentType": "image/png", "fileSize": 1.5e3}'
    answer = member.test.post("/v1/media/upload-url", None, body=raw, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.data["bytes"]) == (201, 1500)
    assert answer.body["meta"]["requiredHeaders"]["Content-Length"] == "1500"


@pytest.mark.parametrize("change", [{"content": b"." * 2000}, {"content": b"." * 999}, {"Content-Type": "image/jpeg"},
                                    {"Content-Type": "text/html"}],
                         ids=["larger", "smaller", "another type", "a page"])
def test_the_store_takes_nothing_but_what_was_declared(member, change):
    answer = ask(member, "image/png", 1000)
    headers = {**answer.body["meta"]["requiredHeaders"], **{name: value for name, value in change.items() if name != "content"}}
    content = change.get("content", b"." * 1000)
    assert put(answer.data["uploadUrl"], content, {**headers, "Content-Length": str(len(content))}).status == 403
    assert member.test.post("/v1/posts", using(answer.data["publicUrl"])).status == 409


def test_what_was_uploaded_cannot_be_replaced(member):
    content = image("PNG")
    asked = ask(member, "image/png", len(content)).body
    other = bytes(len(content))
    headers = asked["meta"]["requiredHeaders"]
    assert [put(asked["data"]["uploadUrl"], body, headers).status for body in (content, other)] == [200, 412]
    without = {name: value for name, value in headers.items() if name != "If-None-Match"}
    assert put(asked["data"]["uploadUrl"], other, without).status == 403
    with urllib3.PoolManager() as pool:
        assert pool.request("GET", asked["data"]["publicUrl"]).data == content


def test_an_upload_that_has_not_arrived_is_waited_for(member, connection):
    content = image("PNG")
    asked = ask(member, "image/png", len(content)).body
    body = using(asked["data"]["publicUrl"])
    answer = member.test.post("/v1/posts", body)
    assert (answer.status, answer.code, answer.rules) == (409, "invalid_state", [("/media/0", "media_missing")])
    checked = member.test.post("/v1/posts/validate", body)
    assert [(problem["path"], problem["rule"]) for problem in checked.data["problems"]] == [("/media/0", "media_missing")]
    assert member.rows() == {"Post": 0, "Target": 0, "Attachment": 0, "Idea": 0, "Media": 1}
    assert put(asked["data"]["uploadUrl"], content, asked["meta"]["requiredHeaders"]).status == 200
    assert member.test.post("/v1/posts", body).status == 202


def test_broken_rules_come_before_an_upload_that_has_not_arrived(member):
    url = ask(member, "image/gif", 1000).data["publicUrl"]
    answer = member.test.post("/v1/posts", {**using(url, platform="instagram"), "caption": "x" * 2201})
    assert (answer.status, answer.rules) == (422, [("/caption", "caption_length"), ("/media/0", "media_type")])


@pytest.mark.parametrize("content, mime_type", [(HTML, "image/png"), (image("JPEG"), "image/png"), (video("mp4"), "video/webm"),
                                                (image("PNG")[:-20], "image/png"), (b"\0" * 1000, "video/mp4")],
                         ids=["a page", "another image", "another video", "cut short", "zeros"])
def test_an_upload_that_is_not_what_it_was_declared_to_be_is_refused_for_good(member, connection, content, mime_type):
    url = member.test.uploaded(content, mime_type)
    for _ in range(2):
        answer = member.test.post("/v1/posts", using(url, platform="mastodon"))
        assert (answer.status, answer.code, answer.rules) == (422, "unprocessable", [("/media/0", "media_refused")])
    assert member.rows() == {"Post": 0, "Target": 0, "Attachment": 0, "Idea": 0, "Media": 1}
    assert [row[0] for row in media_of(member)] == ["refused"]


def test_urls_that_are_not_the_callers_look_all_alike(api_url, member, store_address):
    stranger = Member(api_url)
    foreign, live = stranger.test.uploaded(image("PNG"), "image/png"), member.live.uploaded(image("PNG"), "image/png")
    own = member.test.uploaded(image("PNG"), "image/png")
    odd = [foreign, live, f"{store_address.public_url}/{member.team.id}/test/nothing.png", "https://example.net/a.png",
           own + "?x=1", own + "#x",
           own.replace("/test/", "/test/../test/"), own.replace("/test/", "/test%2F"), own.upper().replace("HTTP", "http"),
           own + "%00",
           store_address.public_url + "/"]
    before = member.rows()
    for url in odd:
        answer = member.test.post("/v1/posts", using(own, url))
        assert (answer.status, answer.body["error"]["details"]) == (422, [
            {"path": "/media/1", "rule": "media_unknown", "message": "this is not the URL of a file of yours"}]), url
    assert member.rows() == before


@pytest.mark.parametrize("size, status", [(50 * MB, 201), (50 * MB + 1, 413), (2048 * MB, 413), (2**53 - 1, 413)])
def test_images_have_50_mb_at_most(member, size, status):
    answer = ask(member, "image/png", size)
    assert (answer.status, answer.body.get("error", {}).get("code")) == (status, None if status == 201 else "payload_too_large")
    assert member.rows()["Media"] == (status == 201)


@pytest.mark.parametrize("size, status", [(50 * MB + 1, 201), (2048 * MB, 201), (2048 * MB + 1, 413), (2**53 - 1, 413)])
def test_videos_have_2_gb_at_most(member, size, status):
    answer = ask(member, "video/mp4", size)
    assert (answer.status, answer.body.get("error", {}).get("code")) == (status, None if status == 201 else "payload_too_large")
    assert member.rows()["Media"] == (status == 201)


@pytest.mark.parametrize("body, details", [
    ({}, {("", "required")}), ({"contentType": "image/png"}, {("", "required")}), ({"fileSize": 5}, {("", "required")}),
    ({"contentType": "image/svg+xml", "fileSize": 5}, {("/contentType", "enum")}),
    ({"contentType": "IMAGE/PNG", "fileSize": 5}, {("/contentType", "enum")}),
    ({"contentType": "image/png; charset=x", "fileSize": 5}, {("/contentType", "enum")}),
    ({"contentType": "", "fileSize": 5}, {("/contentType", "enum")}),
    ({"contentType": "image/bmp", "fileSize": 2**53 - 1}, {("/contentType", "enum")}),
    ({"contentType": None, "fileSize": 5}, {("/contentType", "enum")}),
    ({"contentType": "image/png", "fileSize": 0}, {("/fileSize", "minimum")}),
    ({"contentType": "image/png", "fileSize": -1}, {("/fileSize", "minimum")}),
    ({"contentType": "image/png", "fileSize": 2**53}, {("/fileSize", "maximum")}),
    ({"contentType": "image/png", "fileSize": 10**400}, {("/fileSize", "maximum")}),
    ({"contentType": "image/png", "fileSize": 1.5}, {("/fileSize", "type")}),
    ({"contentType": "image/png", "fileSize": "5"}, {("/fileSize", "type")}),
    ({"contentType": "image/png", "fileSize": True}, {("/fileSize", "type")}),
    ({"contentType": "image/png", "fileSize": None}, {("/fileSize", "type")}),
    ({"contentType": "image/png", "fileSize": 5, "fileName": "x"}, {("", "additionalProperties")}),
    ({"contentType": "text/html", "fileSize": 0}, {("/contentType", "enum"), ("/fileSize", "minimum")})],
                         ids=lambda value: str(value)[:60])
def test_a_wrong_claim_is_refused(member, body, details):
    answer = member.test.post("/v1/media/upload-url", body)
    assert (answer.status, answer.code) == (422, "unprocessable")
    assert details <= set(answer.rules) and {path for path, _ in answer.rules} == {path for path, _ in details}
    assert not any(member.rows().values())


@pytest.mark.parametrize("mime_type, sent_as", [
    ("image/jpeg", "image/jpeg"), ("image/png", "application/octet-stream"), ("image/webp", "image/jpeg"), ("image/gif", None),
    ("video/mp4", "text/html"), ("video/quicktime", "video/mp4"), ("video/webm", "application/octet-stream")])
def test_a_link_is_fetched_and_its_type_told_by_its_bytes(fetcher, links, connection, mime_type, sent_as):
    content = FILES[mime_type]()
    links.answers["/file"] = (200, {"Content-Type": sent_as}, content)
    answer = fetch(fetcher, f"{links.url}/file")
    assert answer.status == 201
    data = answer.data
    measured = {"width": WIDTH, "height": HEIGHT} | ({"duration": data["duration"]} if mime_type.startswith("video") else {})
    assert answer.body == {"success": True, "data": {"publicUrl": data["publicUrl"], "key": data["key"], "mimeType": mime_type,
                                                     "bytes": len(content), **measured}}
    assert abs(data.get("duration", 1.0) - 1.0) < 0.2
    assert data["key"].startswith(f"{fetcher.team.id}/test/") and data["key"].endswith(f".{TYPES[mime_type]}")
    with urllib3.PoolManager() as pool:
        assert pool.request("GET", data["publicUrl"]).data == content
    assert media_of(fetcher) == [("ready", mime_type, len(content), WIDTH, HEIGHT)]
    assert fetcher.test.post("/v1/posts", using(data["publicUrl"], platform="mastodon")).status == 202
    assert not {"authorization", "cookie", "x-request-id"} & {name.lower() for name in links.asked[0][1]}


NO_FILE = {
    "a page as an image": ((200, {"Content-Type": "image/png"}, HTML), 422, "unprocessable"),
    "svg": ((200, {"Content-Type": "image/svg+xml"}, b"<svg/>"), 422, "unprocessable"),
    "empty": ((200, {}, b""), 422, "unprocessable"),
    "cut short": ((200, {}, image("PNG")[:-20]), 422, "unprocessable"),
    "404": ((404, {}, image("PNG")), 502, "external_service_error"),
    "500": ((500, {}, b"x"), 502, "external_service_error"),
    "401": ((401, {"WWW-Authenticate": "Basic"}, b"x"), 502, "external_service_error"),
    "204": ((204, {}, b""), 502, "external_service_error"),
    "206": ((206, {"Content-Range": "bytes 0-1/5"}, b"xx"), 502, "external_service_error"),
    "304": ((304, {}, b""), 502, "external_service_error"),
    "too large": ((200, {"Content-Length": str(50 * MB + 1)}, b"x"), 413, "payload_too_large"),
}


@pytest.mark.parametrize("answer, status, code", NO_FILE.values(), ids=list(NO_FILE))
def test_a_link_that_gives_no_file(fetcher, links, answer, status, code):
    links.answers["/file"] = answer
    refused = fetch(fetcher, f"{links.url}/file")
    assert (refused.status, refused.code) == (status, code)
    assert links.url.partition("://")[2] not in refused.body["error"]["message"]
    assert not any(fetcher.rows().values())


def test_a_link_without_a_length_is_cut_off_at_50_mb(fetcher, links):
    chunk = b"100000\r\n" + bytes(MB) + b"\r\n"
    links.answers["/file"] = (200, {"Transfer-Encoding": "chunked", "Content-Length": None}, chunk * 51 + b"0\r\n\r\n")
    answer = fetch(fetcher, f"{links.url}/file")
    assert (answer.status, answer.code) == (413, "payload_too_large")
    assert not any(fetcher.rows().values())


@pytest.mark.parametrize("answer", [(200, {"Content-Length": "5000"}, b"\x89PNG"), (200, {"Content-Encoding": "gzip"}, b"x"),
                                    (200, {"Transfer-Encoding": "chunked", "Content-Length": None}, b"5\r\nab")],
                         ids=["ends early", "encoded", "broken chunks"])
def test_a_server_that_gives_no_whole_answer_is_an_external_failure(fetcher, links, answer):
    links.answers["/file"] = answer
    refused = fetch(fetcher, f"{links.url}/file")
    assert (refused.status, refused.code) == (502, "external_service_error")
    assert not any(fetcher.rows().values())


@pytest.mark.parametrize("error, answer", [(TooSlow("late"), ExternalTimeout), (Broken("cut"), ExternalServiceError),
                                           (Busy("so many"), RateLimited)])
def test_a_fetch_that_fails_says_whose_fault_it_is(environ, error, answer):
    fetcher = Mock(**{"download.side_effect": error})
    with pytest.raises(answer):
        create_media_from_url(Mock(team_id="a"), Mock(fetcher=fetcher, fetches=Turns(1, "")), {"url": "http://host.org/"}, None)
    assert (answer.status, answer.code) == {TooSlow: (504, "external_service_error"), Broken: (502, "external_service_error"),
                                            Busy: (429, "rate_limited")}[type(error)]


def test_a_spool_has_no_name_that_a_killed_process_could_leave(tmp_path, monkeypatch):
    left = []

    def examine(file):
        left.append((os.fstat(file.fileno()).st_size > 0, list(tmp_path.iterdir())))
        raise NotMedia("enough seen")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for module in ("handlers.media", "storage.claims"):
        monkeypatch.setattr(f"{module}.examine", examine)
    fetcher = Mock(download=lambda url, file, **_: file.write(bytes(MB)))
    with pytest.raises(Unprocessable, match="enough seen"):
        create_media_from_url(Mock(), Mock(fetcher=fetcher, fetches=Mock(turn=nullcontext)), {"url": "http://host.org/"}, None)
    store = Mock(stat=lambda key: ObjectInfo(MB, "image/png", "x"), open=lambda *_: io.BytesIO(bytes(MB)))
    assert look(store, Mock(bytes=MB, mime_type="image/png")).refusal == "enough seen"
    assert left == [(True, []), (True, [])]


@pytest.mark.parametrize("error", [Unfinished("nothing was found out"), OSError(errno.ENOSPC, "canary"),
                                   OSError(errno.EMFILE, "canary")])
def test_a_machine_without_time_or_room_for_a_file_says_when_to_come_back(error):
    answer = _known(error)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "30"}) and "canary" not in answer.message
    assert _known(OSError(errno.EIO, "canary")) is None


def test_one_team_has_half_of_the_turns(environ):
    turns = Turns(4, "busy")
    with with_connection(), ExitStack() as others:
        others.enter_context(turns.turn("a"))
        with turns.turn("a"):
            with pytest.raises(RateLimited), turns.turn("a"):
                pass
            others.enter_context(turns.turn("b"))
            others.enter_context(turns.turn("b"))
            with pytest.raises(RateLimited), turns.turn("c"):
                pass
        others.enter_context(turns.turn("c"))
    with with_connection(), turns.turn("b"):
        pass


@pytest.mark.parametrize("hops, status", [(0, 201), (3, 201), (4, 422)])
def test_three_redirects_are_followed(fetcher, links, hops, status):
    links.answers["/0"] = (200, {}, image("PNG"))
    links.answers.update({f"/{hop}": (302, {"Location": f"/{hop - 1}"}, b"") for hop in range(1, 5)})
    assert fetch(fetcher, f"{links.url}/{hops}").status == status
    assert len(links.asked) == min(hops, 3) + 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:{other}/x", "http://127.0.0.1/x", "http://[::1]/x",
                                 "http://169.254.169.254/latest/meta-data",
                                 "http://10.0.0.1/x", "http://0.0.0.0/x", "http://2130706433/x", "http://localhost/x",
                                 "http://x.internal/x",
                                 "http://nothing.invalid/x", "ftp://example.net/x", "file:///etc/passwd",
                                 "http://user:password@127.0.0.1:{port}/x",
                                 "https://127.0.0.1:{other}/x", "http://127.0.0.1:22/x", "http://127.0.0.1:99999/x", "http://",
                                 "x", "//example.net/x",
                                 "http://exa mple.net/x", "javascript:alert(1)", "http://127.0.0.1:{other}/x?secret=1",
                                 "http://[::ffff:127.0.0.1]/x"])
def test_what_may_not_be_fetched_is_refused_in_one_wording(fetcher, links, url):
    with serving() as other:
        other.answers["/x"] = links.answers["/x"] = (200, {}, image("PNG"))
        answer = fetch(fetcher, url.format(other=other.server_address[1], port=links.server_address[1]))
        assert (answer.status, answer.body["error"]["details"]) == (422, [NOT_REACHABLE])
        assert (other.asked, links.asked) == ([], [])
    assert not any(fetcher.rows().values())


def test_a_redirect_to_a_private_address_is_refused_in_the_same_wording(fetcher, links):
    with serving() as other:
        other.answers["/x"] = (200, {}, image("PNG"))
        for status in (301, 302, 303, 307, 308):
            links.answers["/away"] = (status, {"Location": f"{other.url}/x"}, b"")
            answer = fetch(fetcher, f"{links.url}/away")
            assert (answer.status, answer.body["error"]["details"]) == (422, [NOT_REACHABLE])
        assert other.asked == []


def test_nothing_private_is_allowed_by_default(member):
    with serving() as server:
        server.answers["/x"] = (200, {}, image("PNG"))
        answer = fetch(member, f"{server.url}/x")
        assert (answer.status, answer.body["error"]["details"], server.asked) == (422, [NOT_REACHABLE], [])


@pytest.mark.parametrize("body, rule", [({}, "required"), ({"url": None}, "type"), ({"url": ""}, "minLength"),
                                        ({"url": "http://x/\0"}, "pattern"),
                                        ({"url": "http://x/" + "a" * 8192}, "maxLength"),
                                        ({"url": "http://x", "size": 1}, "additionalProperties"),
                                        ({"url": ["http://x"]}, "type")], ids=lambda value: str(value)[:30])
def test_a_body_that_breaks_a_rule_is_refused(member, body, rule):
    answer = member.test.post("/v1/media/from-url", body)
    assert (answer.status, answer.code, rule in {broken for _, broken in answer.rules}) == (422, "unprocessable", True)


def test_what_cannot_be_mended_for_a_network_is_refused_at_once(member):
    still, moving, gif = (member.test.uploaded(image(form, mode, frames=frames), f"image/{form.lower()}")
                          for form, mode, frames in (("WEBP", "RGB", 1), ("WEBP", "RGB", 3), ("GIF", "P", 1)))
    for url, rules in ((still, []), (moving, [("/media/0", "media_type")]), (gif, [("/media/0", "media_type")])):
        body = {"caption": "hi", "media": [url], "targets": [{"platform": "instagram"}, {"platform": "mastodon"}]}
        checked = member.test.post("/v1/posts/validate", body).data
        assert [(one["path"], one["rule"]) for one in checked["problems"]] == rules
        answer = member.test.post("/v1/posts", body)
        assert (answer.status, answer.rules if rules else []) == ((422, rules) if rules else (202, []))
