"""A video of 2 GB through the presigned URL: what it costs the API while it is uploaded, and when a post first uses it.

Run: python -m tests.benchmarks.upload2gb [--megabytes 2048]

Real API, PostgreSQL and store; the file, a short video and an empty box that fills it up, is sent from disk by one connection.
"""

import argparse
import http.client
import struct
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import psutil

from storage.database import migrate, open_pool
from storage.embedded import Store
from storage.objects import Objects
from tests.media_samples import video
from tests.servers import BUCKET, postgres, running, short_directory
from tests.service import Member, environment, start_api
from tests.test_media_api import TOMORROW

MB = 1 << 20


def write(path, size):
    """A sparse file of exactly `size` bytes that is a video."""
    content = video("mp4")
    filling = struct.pack(">I4sQ", 1, b"free", size - len(content))
    path.write_bytes(content + filling)
    with path.open("r+b") as file:
        file.truncate(size)


def send(path, size, url, headers):
    """Uploads the file; returns the status and the seconds."""
    parts, started = urlsplit(url), time.monotonic()
    connection = http.client.HTTPConnection(parts.netloc, timeout=600)
    with path.open("rb") as file:
        connection.blocksize = MB
        connection.request("PUT", f"{parts.path}?{parts.query}", file, headers)
        answer = connection.getresponse()
        answer.read()
    return answer.status, time.monotonic() - started


@contextmanager
def watched(process):
    """What the API costs meanwhile: a dictionary that is filled at the end."""
    family = [psutil.Process(process.popen.pid), *psutil.Process(process.popen.pid).children(recursive=True)]
    cost, over = {}, threading.Event()
    before, peak = _memory(family), [0]
    cpu, read = _cpu(family), _bytes(family)

    def look():
        while not over.wait(0.1):
            peak[0] = max(peak[0], _memory(family))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield cost
    finally:
        over.set()
        watcher.join()
        cost.update(cpu=_cpu(family) - cpu, memory=max(peak[0] - before, 0) / MB, moved=(_bytes(family) - read) / MB)


def _memory(family):
    return sum(one.memory_info().rss for one in family)


def _cpu(family):
    return sum(sum(one.cpu_times()[:2]) for one in family)


def _bytes(family):
    """What passed through their files and sockets, in both directions."""
    return sum(counters.read_chars + counters.write_chars for counters in (one.io_counters() for one in family))


def show(what, seconds, cost):
    print(f"{what:34} {seconds:7.1f} s   API: {cost['cpu']:6.2f} s of CPU, {cost['moved']:9.1f} MB moved, "
          f"grew by {cost['memory']:5.1f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2048)
    size = parser.parse_args().megabytes * MB
    with short_directory() as directory, postgres() as url, running(Store(directory / "store", BUCKET)) as store:
        open_pool(url, connections=5)
        migrate()
        Objects(store.endpoint_url, store.access_key, store.secret_key, store.bucket).prepare()
        path = directory / "video.mp4"
        write(path, size)
        process, address = start_api(environment(url, store))
        try:
            run(Member(address), process, path, size)
        finally:
            process.stop()


def run(member, process, path, size):
    member.test.get("/v1/clients")      # what the first request costs is not the upload's
    with watched(process) as cost:
        time.sleep(5)
    show("nothing", 5, cost)
    with watched(process) as cost:
        asked = member.test.post("/v1/media/upload-url", {"contentType": "video/mp4", "fileSize": size}).body
        status, seconds = send(path, size, asked["data"]["uploadUrl"], asked["meta"]["requiredHeaders"])
    show(f"upload of {size / MB:.0f} MB: {status}, {size / MB / seconds:.0f} MB/s", seconds, cost)
    again, seconds = send(path, size, asked["data"]["uploadUrl"], asked["meta"]["requiredHeaders"])
    print(f"the same a second time: {again}")
    body = {"caption": "x", "media": [asked["data"]["publicUrl"]], "targets": [{"platform": "youtube", "options": {
        "title": "x", "madeForKids": False}}], "scheduleAt": TOMORROW}
    member.test._pool.connection_pool_kw["timeout"] = 600
    with watched(process) as cost:
        started = time.monotonic()
        answer = member.test.post("/v1/posts", body)
    show(f"first use by a post: {answer.status}", time.monotonic() - started, cost)


if __name__ == "__main__":
    main()
