"""An hour of mixed traffic with faults: memory, descriptors, latency and lateness over time, and what became of each post.

Run: nice python -m tests.benchmarks.soak [--minutes 60] [--picture tests/benchmarks/soak.svg]; with matplotlib, see README.md

Two API processes and a worker, on PostgreSQL, SeaweedFS and stand-ins of Mastodon and Bluesky that count what is public, and a
webhook. Posts at once, bursts at each full minute, uploads, links, captions, reads; every few minutes PostgreSQL is restarted,
or the store stands still, or a network is slow, or its answers get lost. Only the CSV of the samples is left behind, in the
directory for temporary files.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import psutil

from storage.database import database, migrate, open_pool
from storage.embedded import Postgres, Store
from tests.benchmarks.course import HOUR, Watch, draw, percentile, slope
from tests.benchmarks.crashes import judged
from tests.benchmarks.figures import line
from tests.benchmarks.ingest import beside_us, process, serve_files
from tests.benchmarks.traffic import Receiver, Traffic
from tests.delivery import Desk
from tests.media_samples import image
from tests.servers import BUCKET, running, short_directory
from tests.service import Http, free_port, start_api
from tests.stage import eventually, set_up

# A second, by the names of Traffic's methods. A third of two cores, with the networks and the callers themselves.
PACES = {"reads": 60, "now": 2.5, "burst": 1.3, "uploads": 0.4, "links": 0.8, "captions": 1, "beside": 10}
ACCOUNTS = 100              # on each network
ANSWER = 0.05               # seconds that a network takes
CALM, AFTER = 120.0, 30.0   # seconds between two faults, and after one in which its traces are let pass
STILL, SLOW = 6.0, 3.0      # seconds in which the store answers nothing; of a slow network's answer
EVENTS = 400.0              # seconds after the last post in which its event has to be there: two pauses between attempts
WARM = 600.0                # seconds before the slopes begin; a third of a shorter run
MEMORY, DESCRIPTORS = 2.0, 3    # MB an hour for each process; between the medians of the first and the last third
P99, FLAT = 50.0, 1.5       # ms that p99 may always have, or in the last third so many times that of the first
ELSEWHERE = ("from-url", "upload", "beside")      # what waits for other servers has no p99 of its own


LATE = """
SELECT extract(epoch FROM due_at)::float, extract(epoch FROM finished_at - due_at)::float
FROM targets WHERE status = 'published' ORDER BY 1
"""


class Faults:
    """What goes wrong, one kind after the other, and when: `seen` has (from, until, what) in epoch seconds."""

    def __init__(self, server, store_directory):
        self._server, self._store, self._networks, self.seen = server, store_directory, (), []

    def go_on(self, networks, seconds):
        """Disturbs for so long."""
        self._networks, end = networks, time.monotonic() + seconds
        for fault in cycle((self._restart, self._stand_still, self._be_slow, self._lose_answers)):
            rest = end - time.monotonic()
            time.sleep(max(0.0, min(CALM, rest)))
            if rest < CALM + AFTER * 2:     # so that each has its time
                time.sleep(max(0.0, end - time.monotonic()))
                return
            since = time.time()
            fault()
            self.seen.append((since, time.time() + AFTER, fault.__name__))

    def _restart(self):
        self._server.stop()
        time.sleep(1)
        self._server.start()

    def _stand_still(self):
        pid = json.loads((self._store / "state.json").read_bytes())["pid"]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STILL)
        os.kill(pid, signal.SIGCONT)

    def _be_slow(self):
        for network in self._networks:
            network.fault(times=20, delay=SLOW)

    def _lose_answers(self):
        for network in self._networks:
            network.fault(times=3, drop_answer=True)


@contextmanager
def service(address, store, folder):
    """API, worker, networks, the server of the links and the receiver of a webhook; gives the stage and what the run needs."""
    port, idle = free_port(), free_port()
    (folder / "picture.png").write_bytes(image("PNG"))
    with (set_up(address, store) as stage, process(serve_files, folder, port), process(beside_us, idle),
          Receiver() as receiver):
        allowed = f"{stage.environ['POSTHORN_ALLOW_PRIVATE']},127.0.0.1:{port},{receiver.url.split('/')[2]}"
        unlimited = {f"POSTHORN_{name}_LIMIT": "100000" for name in ("FETCH_RATE", "CAPTION_RATE")}
        stage.environ |= {"POSTHORN_API_PROCESSES": "2", "POSTHORN_VALIDATE_RESPONSES": "0", "POSTHORN_ALLOW_PRIVATE": allowed,
                          **unlimited}
        for network in stage.networks.values():
            network.fault(times=None, delay=ANSWER)
        api, url = start_api(stage.environ)
        try:
            hook = {"url": receiver.url, "events": ["post.published"]}
            assert Http(url, stage.key()).post("/v1/webhooks", hook).status == 201
            yield SimpleNamespace(stage=stage, api=api, worker=stage.living_worker(), url=url, receiver=receiver,
                                  link=f"http://127.0.0.1:{port}/picture.png", beside=f"http://127.0.0.1:{idle}/")
        finally:
            api.stop()


def soak(address, store, directory, faults, given):
    """The run itself; returns all that was seen."""
    with service(address, store, directory) as on:
        traffic = Traffic(lambda mode: Http(on.url, on.stage.key(mode)), on.stage, on.link, ACCOUNTS, on.beside)
        watch, started = Watch({"API": on.api.popen.pid, "worker": on.worker.popen.pid}, given.csv), time.time()
        psutil.cpu_percent()
        watch.start()
        traffic.start(PACES)
        try:
            faults.go_on(on.stage.networks.values(), given.minutes * 60)
        finally:
            ended, machine = time.time(), psutil.cpu_percent()
            watch.stop()
            traffic.stop()
        on.stage.desk.close()
        on.stage.desk = Desk(address)
        posts = judged(on.stage, traffic.accepted, within=240)
        with suppress(AssertionError):      # what is missing then is counted below
            eventually(lambda: on.receiver.posts >= set(traffic.accepted), within=EVENTS)
        errors = [one for one in (on.api.log() + on.worker.log()).splitlines() if "ERROR" in one]
        return SimpleNamespace(started=started, ended=ended, machine=machine, rows=watch.rows, traffic=traffic, posts=posts,
                               faults=faults.seen, late=on.stage.desk.sql(LATE), errors=errors, receiver=on.receiver)


def calm(points, faults):
    """The points, by their time, that no fault touched."""
    return [point for point in points if not any(since <= point[0] <= until for since, until, _ in faults)]


def thirds(points, since, until):
    """The values of (time, value) in each third of the time."""
    parts = [[], [], []]
    for at, value, *_ in points:
        if since <= at <= until:
            parts[min(2, int(3 * (at - since) / (until - since)))].append(value)
    return parts


def judge_processes(seen, since):
    """Memory and descriptors of each process after the warm-up; returns whether all is as promised."""
    kept, roles = True, dict.fromkeys(row[1] for row in seen.rows if row[2])
    for role in roles:
        rows = [row for row in seen.rows if row[1] == role and row[0] >= since]
        if len({row[2] for row in rows}) != 1:
            print(f"{role}: was started again, or ended: MISSED")
            kept = False
            continue
        first, *_, last = thirds([(row[0], row[4]) for row in rows], since, rows[-1][0])
        grows = slope([(row[0], row[3]) for row in rows])
        kept &= line(f"{role} ({rows[-1][3]:.0f} MB): memory, in an hour", grows, MEMORY, "MB")
        kept &= line(f"{role} ({rows[-1][4]} open): descriptors more in the last third", median(last) - median(first),
                     DESCRIPTORS, "")
    return kept


def _p99s(points, seen):
    return [percentile(part, 0.99) for part in thirds(calm(points, seen.faults), seen.started, seen.ended)]


def judge_requests(seen):
    """Latency by thirds, and what should not have been answered; returns whether all is as promised."""
    asked = [(at, seconds * 1000) for at, what, status, seconds in seen.traffic.asked if what not in ELSEWHERE and status]
    beside = [(at, seconds * 1000) for at, what, status, seconds in seen.traffic.asked if what == "beside" and status]
    first, second, last = _p99s(asked, seen)
    idle = _p99s(beside, seen)
    every = [ms for _, ms in asked]
    print(f"{len(seen.traffic.asked)} requests, of the API p50 {percentile(every, 0.5):.1f} ms, p99 by thirds {first:.1f}, "
          f"{second:.1f}, {last:.1f} ms; with the faults {percentile(every, 0.99):.1f} ms")
    print("of a program beside it that does nothing else: " + ", ".join(f"{ms:.1f}" for ms in idle) + " ms")
    busier = max(1.0, idle[2] / max(idle[0], 1.0))      # the machine, with others' work
    kept = line("requests: p99 in the last third", last, max(P99, first * FLAT * busier), "ms")
    refused = Counter((what, status) for _, what, status, _ in seen.traffic.refused)
    print("not answered 2xx (0: no answer):", dict(sorted(refused.items())))
    strange = calm(seen.traffic.refused, seen.faults) + [one for one in seen.traffic.refused if one[2] in range(500, 503)]
    for one in strange[:10]:
        print(f"    {one}")
    return line("those far from any fault, and 500 to 502 at any time", len(strange), 0, "") and kept


def judge_posts(seen):
    """Lateness, and whether each accepted post is public once; returns whether all is as promised."""
    late = [seconds for _, seconds in calm(seen.late, seen.faults)]
    print(f"{len(seen.late)} posts, {dict(Counter(seen.posts.statuses.values()))}; lateness far from faults p50 "
          f"{percentile(late, 0.5):.2f} s, p99 {percentile(late, 0.99):.2f} s, of all "
          f"p99 {percentile([seconds for _, seconds in seen.late], 0.99):.2f} s")
    came = seen.receiver.came
    print(f"{len(came)} events came, {sum(number > 1 for number in came.values())} of them more than once")
    left = sum(status != "published" for status in seen.posts.statuses.values())
    figures = {"lost": seen.posts.lost, "doubled": seen.posts.doubled, "early": seen.posts.early, "not public in the end": left,
               "without an event": len(set(seen.traffic.accepted) - seen.receiver.posts)}
    return all([line(f"accepted posts {what}", figure, 0, "") for what, figure in figures.items()])


def report(seen, picture):
    """Prints all figures and draws them; returns whether all is as promised."""
    warm = min(WARM, (seen.ended - seen.started) / 3)
    cpu = sum(max(row[5] for row in seen.rows if row[1] == role) for role in {row[1] for row in seen.rows})
    seconds, kinds = seen.ended - seen.started, dict(Counter(one[2] for one in seen.faults))
    print(f"{seconds / 60:.0f} minutes, faults {kinds}; the machine was busy at {seen.machine:.0f} %, "
          f"our API and worker took {cpu / seconds:.2f} cores")
    kept = [judge_processes(seen, seen.started + warm), judge_requests(seen), judge_posts(seen)]
    print(f"lines of ERROR in the logs: {len(seen.errors)}", *seen.errors[:5], sep="\n    ")
    if picture:
        api = [(at, seconds) for at, what, status, seconds in seen.traffic.asked if what not in ELSEWHERE and status]
        draw(picture, seen.started, seen.rows, api, seen.late, seen.faults)
    return all(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=HOUR / 60)
    parser.add_argument("--picture", type=Path, default=Path(__file__).with_name("soak.svg"))
    parser.add_argument("--csv", type=Path, default=Path(tempfile.gettempdir()) / "posthorn-soak.csv")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    with short_directory() as directory:
        server = Postgres(directory / "postgres")
        with running(server) as address, running(Store(directory / "store", BUCKET)) as store:
            open_pool(address, connections=20)
            migrate()
            try:
                seen = soak(address, store, directory, Faults(server, directory / "store"), given)
            finally:
                database.close_all()
    print(f"samples: {given.csv}")
    raise SystemExit(not report(seen, given.picture))


if __name__ == "__main__":
    main()
