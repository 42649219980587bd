"""What a team may keep of files, and what is left of one that could not be kept."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from storage import claims
from storage.database import database
from storage.media import new_key
from storage.models import Media
from tests.service import Member, start_api
from tests.test_media_api import ask, using
from tests.test_sweep import PNG
from tests.test_sweep import team  # fixture


def test_a_quota_is_exact_however_many_claim_at_once(team):
    def claimed(_):
        with database.connection_context():
            try:
                claims.claim(team, quota=1_000, key=new_key(team, "image/png"), mime_type="image/png", bytes=30)
            except claims.QuotaFull:
                return 0
            return 1

    with ThreadPoolExecutor(12) as threads:
        assert sum(threads.map(claimed, range(60))) == 33


def test_a_quota_is_for_one_team_and_mode(environ, fetching_quota):
    api, links = fetching_quota
    member, other = Member(api), Member(api)
    assert ask(member, "video/mp4", 5_000_000).status == 201
    refused = ask(member, "video/mp4", 5_000_001)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert refused.body["error"]["message"] == ("your team may keep 10000000 bytes of files and has 5000000; "
                                                "5000001 more do not fit")
    assert member.rows()["Media"] == 1
    assert ask(other, "video/mp4", 10_000_000).status == 201
    assert member.live.post("/v1/media/upload-url", {"contentType": "video/mp4", "fileSize": 10_000_000}).status == 201
    assert ask(member, "video/mp4", 5_000_000).status == 201
    links.answers["/file"] = (200, {}, PNG)
    link, key = {"url": f"{links.url}/file"}, {"Idempotency-Key": "once"}
    answer = member.test.post("/v1/media/from-url", link, headers=key)
    assert (answer.status, answer.code) == (403, "forbidden") and member.rows()["Media"] == 3
    Media.delete().where(Media.team_id == member.team.id).execute()
    assert member.test.post("/v1/media/from-url", link, headers=key).status == 201      # what has passed was not kept


@pytest.fixture
def fetching_quota(environ, links):
    """The API with a quota of 10 MB, which may fetch from `links`."""
    allowed = {"POSTHORN_ALLOW_PRIVATE": f"127.0.0.1:{links.server_address[1]}", "POSTHORN_API_PROCESSES": "1"}
    process, url = start_api({**environ, **allowed, "POSTHORN_MEDIA_QUOTA": "10000000"})
    yield url, links
    process.stop()


def test_a_file_that_cannot_be_stored_leaves_no_row(environ, links, connection):
    links.answers["/file"] = (200, {}, PNG)
    process, url = start_api({**environ, "S3_SECRET_KEY": "wrong", "POSTHORN_API_PROCESSES": "1",
                              "POSTHORN_ALLOW_PRIVATE": f"127.0.0.1:{links.server_address[1]}"})
    try:
        member = Member(url)
        answer = member.test.post("/v1/media/from-url", {"url": f"{links.url}/file"})
        assert (answer.status, answer.code, member.rows()["Media"]) == (502, "external_service_error", 0)
    finally:
        process.stop()


def test_a_file_that_was_removed_is_refused_with_the_reason(environ, api_url, connection):
    member = Member(api_url)
    url = member.test.uploaded(PNG, "image/png")
    assert member.test.post("/v1/posts", using(url)).status == 202
    Media.update(state="refused", refusal="it is no longer in the store").where(Media.team_id == member.team.id).execute()
    answer = member.test.post("/v1/posts", using(url))
    assert (answer.status, answer.rules) == (422, [("/media/0", "media_refused")])
