"""Faults that were found by trying, each kept from coming back."""

import io
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from PIL import Image

from tests.service import PATIENCE, Member, start_api, well_formed
from tests.standins.chat import KEY, MODEL, ChatServer


def picture(colour="red"):
    file = io.BytesIO()
    Image.new("RGB", (640, 480), colour).save(file, "JPEG")
    return file.getvalue()


def scheduled(member, **more):
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    return member.test.post("/v1/posts", {"caption": "first", "scheduleAt": at, "targets": [{"platform": "bluesky"}], **more}).data["id"]


def test_a_file_that_was_looked_at_cannot_be_replaced_while_its_upload_url_holds(member):
    content = picture()
    answer = member.test.post("/v1/media/upload-url", {"contentType": "image/jpeg", "fileSize": len(content)})
    put = [member.test._pool.request("PUT", answer.data["uploadUrl"], body=body, headers=answer.body["meta"]["requiredHeaders"])
           for body in (content, b"<html>".ljust(len(content)))]
    assert [one.status for one in put] == [200, 412]
    without = {name: value for name, value in answer.body["meta"]["requiredHeaders"].items() if name != "If-None-Match"}
    assert member.test._pool.request("PUT", answer.data["uploadUrl"], body=content, headers=without).status == 403
    assert member.test._pool.request("GET", answer.data["publicUrl"]).data == content


@pytest.mark.parametrize("turn", range(5))
def test_two_changes_at_once_undo_nothing_of_each_other(member, connection, turn):
    post, url = scheduled(member), member.test.uploaded(picture(), "image/jpeg")
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda body: member.test.patch(f"/v1/posts/{post}", body), [{"caption": "second"}, {"media": [url]}]))
    assert [answer.status for answer in answers] == [200, 200]
    caption, files = connection.execute_sql("SELECT caption, (SELECT count(*) FROM attachments WHERE target_id = targets.id)"
                                            " FROM targets WHERE post_id = %s", (post,)).fetchone()
    assert (caption, files) == ("second", 1)


def test_two_changes_that_are_only_right_apart_are_not_both_made(member):
    url = member.test.uploaded(picture(), "image/jpeg")
    post = scheduled(member, media=[url])
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda body: member.test.patch(f"/v1/posts/{post}", body), [{"caption": ""}, {"media": []}]))
    assert sorted(answer.status for answer in answers) == [200, 422]


def test_a_change_is_what_a_claim_reads_even_if_it_came_between(member, connection):
    post = scheduled(member)
    assert member.test.patch(f"/v1/posts/{post}", {"caption": "second"}).status == 200
    assert connection.execute_sql("SELECT caption FROM targets WHERE post_id = %s", (post,)).fetchone() == ("second",)


def test_what_may_be_public_is_never_called_canceled(member, worker):
    post = member.test.post("/v1/posts", {"caption": "[sandbox:unconfirmed]", "targets": [{"platform": "bluesky"}]}).data["id"]
    assert member.test.settled(post)["status"] == "unconfirmed"
    assert member.test.post(f"/v1/posts/{post}/retry", {"includeUnconfirmed": True}).status == 202
    assert member.test.delete(f"/v1/posts/{post}").status == 409
    assert member.test.settled(post)["status"] == "unconfirmed"


def test_slow_models_take_no_connection_from_other_requests(environ):
    with ChatServer() as model:
        model.waits(3)
        settings = {"POSTHORN_CAPTION_URL": model.url, "POSTHORN_CAPTION_KEY": KEY, "POSTHORN_CAPTION_MODEL": MODEL,
                    "POSTHORN_API_PROCESSES": "1", "POSTHORN_API_CONNECTIONS": "2", "POSTHORN_CAPTION_RATE_LIMIT": "1000"}
        api, url = start_api({**environ, **settings})
        try:
            member = Member(url)
            with ThreadPoolExecutor(12) as threads:
                asked = [threads.submit(member.live.post, "/v1/generate", {"topic": "bread"}) for _ in range(12)]
                deadline = time.monotonic() + PATIENCE
                while len(model.requests) < 8:
                    assert member.test.get("/v1/clients").status == 200 and time.monotonic() < deadline
                assert member.test.get("/v1/clients").status == 200
                assert sorted(one.result().status for one in asked) == [200] * 8 + [429] * 4
        finally:
            api.stop()


def test_no_process_of_the_api_outlives_the_one_that_watches_over_it(environ):
    api, _ = start_api(environ)
    children = psutil.Process(api.popen.pid).children()
    os.kill(api.popen.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(children, timeout=15)
    api.kill()
    assert len(gone) == 2 and alive == []


def test_no_one_chooses_the_address_that_wrong_credentials_are_counted_under(environ):
    api, url = start_api({**environ, "POSTHORN_FAILED_CREDENTIALS_LIMIT": "5", "POSTHORN_API_PROCESSES": "1"})
    try:
        http = Member(url).test
        http.key = None
        headers = [{"Authorization": f"Bearer {well_formed()}", "X-Forwarded-For": f"10.1.2.{number}"} for number in range(8)]
        statuses = [http.get("/v1/clients", headers=one).status for one in headers]
        assert statuses.count(429) >= 2
    finally:
        api.stop()
