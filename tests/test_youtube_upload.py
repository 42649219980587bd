"""Uploads to YouTube: in chunks, resumed by what the session says of itself."""

import io
import json
import time
from dataclasses import replace

import pytest

from platforms.base import Waiting
from platforms.errors import Disconnected, Unavailable
from platforms.youtube import CHUNK
from tests.live import part_of, prepared, published, video
from tests.networks.youtube import CONTENT, ann, net, only, published_with, youtube  # noqa: F401
from tests.standins.youtube_errors import INSERT, SESSION

LONG = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 256 * 160     # 10 MB: two chunks
TWO_CHUNKS = replace(CONTENT, media=(replace(video(), bytes=len(LONG), open=part_of(LONG)),))


def test_a_large_file_goes_in_chunks(net, youtube, ann):
    steps = list(youtube.prepare(ann, TWO_CHUNKS, {}))
    assert [step.get("offset") for step in steps[:2]] == [0, CHUNK]
    assert [(request.size, request.headers["Content-Range"]) for request in net.calls(SESSION)] == [
        (CHUNK, f"bytes 0-{CHUNK - 1}/{len(LONG)}"),
        (len(LONG) - CHUNK, f"bytes {CHUNK}-{len(LONG) - 1}/{len(LONG)}")]
    assert only(net)["data"] == LONG
    assert "session" not in steps[-1]


def test_a_killed_worker_goes_on_with_the_next_chunk(net, youtube, ann):
    steps = youtube.prepare(ann, TWO_CHUNKS, {})
    receipt = json.loads(json.dumps([next(steps), next(steps)][-1]))
    net.requests.clear()
    assert published_with(youtube, ann, TWO_CHUNKS, receipt) and only(net)["data"] == LONG
    assert [request.headers["Content-Range"].split("/")[0] for request in net.calls(SESSION)] == [
        "bytes *", f"bytes {CHUNK}-{len(LONG) - 1}"]
    assert not net.calls(INSERT)


@pytest.mark.parametrize("fault", [
    {"drop_answer": True}, {"drop_before": True}, {"status": 503, "body": "busy"}, {"status": 500, "body": "", "acts": True},
    {"status": 200, "body": "<html>", "acts": True},
], ids=["lost answer", "lost request", "503", "500 after acting", "garbage after acting"])
@pytest.mark.parametrize("chunks", [0, 1], ids=["first chunk", "last chunk"])
def test_a_chunk_in_doubt_is_asked_after(net, youtube, ann, fault, chunks):
    if chunks == 0 and fault.get("status") == 200:
        fault = {"status": 308, "body": "", "headers": {"Range": "nonsense"}, "acts": True}
    receipt, steps = {}, youtube.prepare(ann, TWO_CHUNKS, {})
    for _ in range(1 + chunks):
        receipt = next(steps)
    net.fault(SESSION, **fault)
    with pytest.raises(Unavailable):
        for receipt in steps:
            pass
    assert published_with(youtube, ann, TWO_CHUNKS, receipt)
    assert only(net)["data"] == LONG and len(net.calls(INSERT)) == 1


def test_a_chunk_that_is_stored_in_part_goes_on_from_there(net, youtube, ann):
    net.keeps = 262_144 * 3
    assert published(youtube, ann, TWO_CHUNKS) and only(net)["data"] == LONG
    assert net.calls(SESSION)[1].headers["Content-Range"].startswith("bytes 786432-")


@pytest.mark.parametrize("stored", [None, "bytes=0-99999999999", "bytes=5-9"])
def test_a_session_that_takes_nothing_is_left_alone(net, youtube, ann, stored):
    net.fault(SESSION, status=308, headers={"Range": stored} if stored else {}, times=None)
    with pytest.raises(Unavailable):
        prepared(youtube, ann, TWO_CHUNKS)
    assert len(net.calls(SESSION)) == 1


@pytest.mark.parametrize("row", ["session_gone", "session_expired"])
def test_a_lost_session_is_begun_anew(net, youtube, ann, row):
    steps = youtube.prepare(ann, TWO_CHUNKS, {})
    next(steps)
    net.fail(row)
    with pytest.raises(Unavailable) as caught:
        next(steps)
    assert caught.value.receipt == {}
    assert published_with(youtube, ann, TWO_CHUNKS, {}) and len(net.posts) == 1


def test_a_session_that_ran_out_while_nobody_looked_is_begun_anew(net, youtube, ann):
    receipt = next(youtube.prepare(ann, CONTENT, {}))
    net.sessions.clear()
    with pytest.raises(Unavailable) as caught:
        prepared(youtube, ann, CONTENT, receipt)
    assert caught.value.receipt == {}


@pytest.mark.parametrize("address", ["", "https://elsewhere.example.com/upload", "http://www.googleapis.com/upload", "/upload",
                                     "https://www.googleapis.com.example.com/", "https://wwwgoogleapis.com/"])
def test_the_token_goes_to_google_alone(net, youtube, ann, address):
    net.fault(INSERT, status=200, headers={"Location": address} if address else {})
    with pytest.raises(Unavailable):
        prepared(youtube, ann, CONTENT)
    assert len(net.requests) == 1


@pytest.mark.parametrize("address", ["https://www.googleapis.com/upload/x?upload_id=1", "https://youtube.googleapis.com/x"])
def test_a_session_may_live_on_any_host_of_googles_apis(youtube, address):
    assert youtube._is_googles(address)


def test_only_one_chunk_is_held_at_a_time(net, youtube, ann):
    asked = []

    def opened(offset=0, length=None):
        asked.append((offset, length))
        return io.BytesIO(LONG[offset:][:length])

    prepared(youtube, ann, replace(CONTENT, media=(replace(video(), bytes=len(LONG), open=opened),)))
    assert asked == [(0, CHUNK), (CHUNK, len(LONG) - CHUNK)]


def test_an_upload_pauses_for_a_new_token(net, youtube, ann):
    soon = replace(ann, credentials={**ann.credentials, "expiresAt": time.time() + 100})
    steps = list(youtube.prepare(soon, TWO_CHUNKS, {}))
    assert isinstance(steps[1], Waiting) and steps[1].after == 0 and steps[1].receipt["offset"] == CHUNK
    lasting = replace(ann, credentials={"accessToken": ann.credentials["accessToken"], "expiresAt": time.time() + 100})
    assert not isinstance(list(youtube.prepare(lasting, TWO_CHUNKS, {}))[1], Waiting)


def test_a_token_that_ends_within_an_upload_is_renewed(net, youtube, ann):
    steps = youtube.prepare(ann, TWO_CHUNKS, {})
    receipt = [next(steps), next(steps)][-1]
    net.expire()
    with pytest.raises(Disconnected):
        next(steps)
    renewed = replace(ann, credentials=youtube.refresh(ann, force=True))
    assert published_with(youtube, renewed, TWO_CHUNKS, receipt) and len(net.videos) == 1
