"""What answers without a credential: liveness, readiness and the document; and what becomes of the API without its database."""

import json
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from tests.service import PATIENCE, Http, Member, start_api

DOCUMENT = Path(__file__).parents[1] / "openapi" / "openapi.yaml"
ALIVE = {"success": True, "data": {"status": "ok", "version": version("posthorn")}}


@pytest.fixture
def anybody(api_url):
    return Http(api_url)


@pytest.mark.parametrize("path, headers", [("/v1/health", {}), ("/v1/health?x=1&x=2&clientId=%FF", {}),
                                           ("/v1/health", {"Authorization": "Bearer x"}),
                                           ("/v1/health", {"Authorization": "Basic \xff"}),
                                           ("/v1/health", {"Content-Type": "x", "Accept": "x"}),
                                           ("/v1/health", {"Content-Type": "multipart/form-data"}),
                                           ("/v1/health", {"Content-Type": "multipart/form-data; boundary=x",
                                                           "Content-Length": "0"})])
def test_health_asks_for_nothing(anybody, path, headers):
    answer = anybody.get(path, headers=headers)
    assert (answer.status, answer.body) == (200, ALIVE)
    assert answer.headers["Content-Type"] == "application/json"
    assert "RateLimit-Limit" not in answer.headers and answer.headers["Cache-Control"] == "no-store"


def test_a_body_of_health_is_not_read(anybody):
    assert anybody.request("GET", "/v1/health", body=b"{" * 1000).body == ALIVE


def test_head_is_get_without_a_body(anybody):
    answer, same = anybody.request("HEAD", "/v1/health"), anybody.get("/v1/health")
    assert (answer.status, answer.raw, answer.headers["Content-Length"]) == (200, b"", str(len(same.raw)))


def test_health_answers_without_the_database(homeless_api):
    answer = Http(homeless_api).get("/v1/health")
    assert (answer.status, answer.body) == (200, ALIVE)


@pytest.mark.parametrize("method, path, body", [("GET", "/v1/posts", None),
                                                ("POST", "/v1/posts", {"targets": [{"platform": "bluesky"}]}),
                                                ("PATCH", "/v1/ideas/x", {"content": "x"}), ("GET", "/v1/platforms", None)])
def test_everything_else_is_503_without_the_database(homeless_api, member, method, path, body):
    answer = Http(homeless_api, member.test.key).request(method, path, body)
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "internal_error", "5")
    assert answer.body["meta"] == {"requestId": answer.headers["X-Request-Id"]}
    assert b"/nowhere" not in answer.raw


def test_a_key_with_a_wrong_checksum_needs_no_database_to_be_refused(homeless_api, member):
    for wrong in (member.test.key[:-1], member.test.key[:-1] + "-", "at_" + member.test.key[8:-1] + "!"):
        answer = Http(homeless_api, wrong).get("/v1/posts")
        assert (answer.status, answer.code) == (401, "unauthorized") and 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_readiness_says_what_is_missing(homeless_api):
    answer = Http(homeless_api).get("/ready")
    assert (answer.status, answer.body) == (503, {"ready": False, "checks": {"database": False}})


def test_the_service_is_ready_with_database_store_and_worker(anybody, worker):
    deadline = time.monotonic() + PATIENCE      # a worker that has just started may have a queue to empty
    while (answer := anybody.get("/ready")).status != 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    checks = {"database": True, "store": True, "publisher": True}
    assert (answer.status, answer.body) == (200, {"ready": True, "checks": checks})


def test_the_service_is_not_ready_without_the_store(environ):
    process, url = start_api({**environ, "S3_ENDPOINT_URL": "http://127.0.0.1:9",
                              "S3_PUBLIC_URL": "http://127.0.0.1:9/posthorn"})
    try:
        answer = Http(url).get("/ready")
        assert (answer.status, answer.body["checks"]["store"], answer.body["ready"]) == (503, False, False)
        member = Member(url)
        media = {"caption": "x", "media": ["http://127.0.0.1:9/posthorn/a.png"], "targets": [{"platform": "bluesky"}]}
        assert member.test.post("/v1/posts", media).status == 422       # unknown URLs need no store
        url = member.test.post("/v1/media/upload-url", {"contentType": "image/png", "fileSize": 9}).data["publicUrl"]
        failed = member.test.post("/v1/posts", {**media, "media": [url]})
        assert (failed.status, failed.code) == (502, "external_service_error")
        assert member.rows()["Post"] == 0
    finally:
        process.stop()


def test_the_document_is_served_as_it_is_kept(anybody):
    as_yaml, as_json = anybody.get("/v1/openapi.yaml"), anybody.get("/v1/openapi.json")
    assert (as_yaml.status, as_yaml.raw) == (200, DOCUMENT.read_bytes())
    assert (as_json.status, json.loads(as_json.raw)) == (200, yaml.load(DOCUMENT.read_bytes(), Loader=yaml.CSafeLoader))
    assert [answer.headers["Content-Type"] for answer in (as_yaml, as_json)] == ["application/yaml", "application/json"]


@pytest.mark.parametrize("path", ["/v1/openapi.yaml", "/v1/openapi.json"])
def test_the_document_can_be_kept_by_its_etag(anybody, path):
    answer = anybody.get(path)
    again = anybody.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.raw, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])
    assert anybody.get(path, headers={"If-None-Match": '"x"'}).raw == answer.raw
    assert anybody.request("HEAD", path).headers["Content-Length"] == str(len(answer.raw))
