"""Processes killed at the points where it matters most, and surely there: the database or the network holds them meanwhile.

A process that waits for its commit is stopped before the commit is let through, so it dies without having heard of it.
"""

import os
import signal
import threading
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from storage import queue
from storage.database import database
from tests.service import Http, start_api
from tests.stage import LOCK, TARGETS, WAITING, eventually, set_up, stage      # the last is a fixture
from tests.test_crash import NO_ANSWER, PUBLISH

TAKEN_OVER = 5.0 + 1.0      # seconds after the death of a worker, and what a busy machine may take on top
LONG = 60.0                 # seconds that a network keeps a sender waiting who will be dead by then
LOOK = {"mastodon": "GET /api/v1/accounts/:id/statuses", "bluesky": "com.atproto.repo.getRecord"}

ANEW = """
SELECT extract(epoch FROM min(at) - %s)::float FROM attempts
JOIN targets ON targets.id = target_id JOIN posts ON posts.id = post_id
WHERE at > %s AND step = %s AND posts.caption = %s GROUP BY target_id
"""


@dataclass(frozen=True)
class Point:
    """Where a worker dies: as it takes the target to `step`, `committed` or not; or in a request with `fault`."""

    step: str | None = None
    committed: bool = True
    fault: dict | None = None
    leaves: str = "published"       # what the target becomes before anybody looks for the post
    public: int = 1                 # posts by then

    @property
    def lock(self):
        """The one it waits for."""
        return LOCK if self.committed else LOCK + 1


# In the order in which they are prepared: first the requests, which wait for nobody, and last what stops the worker's loop.
POINTS = {
    "request arrived": Point(fault={"drop_before": True}, leaves="unconfirmed", public=0),
    "network acted": Point(fault={}, leaves="unconfirmed"),
    "published is committed": Point("published"),
    "prepared": Point("sending", committed=False),
    "sending is committed": Point("sending", leaves="unconfirmed", public=0),
    "claimed": Point("preparing"),
}
TAKEN = {"claimed": "preparing", "prepared": "preparing", "sending is committed": "unconfirmed"}    # the step that says so
Scene = namedtuple("Scene", "first public last public_in_the_end taken_over")


def another(stage, workers):
    """With two workers, one that lives and is stopped. Returns what has it, or else a new one, work on; it says since when."""
    spare = stage.living_worker() if workers == 2 else None
    if spare:
        os.killpg(spare.popen.pid, signal.SIGSTOP)

    def go_on():
        if spare:
            os.killpg(spare.popen.pid, signal.SIGCONT)
            return stage.desk.sql("SELECT clock_timestamp()")[0][0]
        stage.desk.sql("DELETE FROM workers")
        stage.living_worker()
        return stage.desk.sql("SELECT started_at FROM workers")[0][0]

    return go_on


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def workers(request):
    return request.param


@pytest.fixture(scope="module")
def scene(stage, workers):
    """One worker that dies at six points at once, and what another makes of it."""
    stage.clear()
    go_on = another(stage, workers)
    with stage.locks() as kill:
        worker = stage.living_worker()
        arrange(stage, workers)
        died_at = kill(worker)
        lives_at = go_on()
    first, public = stage.settle(), by_point(stage.public(), workers)
    since = max(died_at, lives_at) if workers == 1 else died_at
    taken_over = {name: [row[0] for row in stage.desk.sql(ANEW, since, died_at, step, marked(name, workers))]
                  for name, step in TAKEN.items()}
    last = stage.reconcile()
    yield Scene(by_point(first, workers), public, by_point(last, workers), by_point(stage.public(), workers), taken_over)
    stage.clear()


def marked(name, workers):
    """What was public before stays, so the captions differ."""
    return f"{name} of {workers}"


def by_point(values, workers):
    return {name: [values.get((marked(name, workers), network), 0) for network in PUBLISH] for name in POINTS}


def arrange(stage, workers):
    """Brings the one worker that runs to all points."""
    for name, point in POINTS.items():
        if point.fault is not None:
            send_into(stage, point.fault, marked(name, workers))
        else:
            stage.hold(marked(name, workers), point.step, point.lock)
    eventually(lambda: by_point(stage.public(), workers)["network acted"] == [1, 1])
    *loose, last = [marked(name, workers) for name, point in POINTS.items() if point.fault is None]
    stage.post(*loose)
    stage.wait_for_held(LOCK, 4)
    stage.wait_for_held(LOCK + 1, 2)
    stage.post(last, at=datetime.now(UTC) + timedelta(seconds=0.5))     # at one instant, so that one claim takes both
    stage.wait_for_held(LOCK, 5)


def send_into(stage, fault, caption):
    """A post whose requests have arrived and are not answered."""
    expected = [count + 1 for count in stage.arrived(PUBLISH)]
    stage.fault(PUBLISH, delay=LONG, **fault)
    stage.post(caption)
    eventually(lambda: stage.arrived(PUBLISH) == expected)


@pytest.mark.parametrize("name", POINTS)
def test_a_killed_worker_leaves_what_is_known(scene, name):
    point = POINTS[name]
    assert (scene.first[name], scene.public[name]) == ([point.leaves] * 2, [point.public] * 2)


@pytest.mark.parametrize("name", POINTS)
def test_every_post_is_public_once_in_the_end(scene, name):
    assert (scene.last[name], scene.public_in_the_end[name]) == (["published"] * 2, [1, 1])


@pytest.mark.parametrize("name", TAKEN)
def test_what_a_killed_worker_had_is_taken_over_in_time(scene, name):
    assert len(scene.taken_over[name]) == 2 and max(scene.taken_over[name]) < TAKEN_OVER, scene.taken_over


@pytest.mark.parametrize("committed", [True, False], ids=["after the sweep", "during the sweep"])
def test_a_worker_killed_as_it_sweeps(stage, workers, committed):
    stage.clear()
    unsent, sending = captions = [f"{what}, {workers}, {committed}" for what in ("unsent", "sending")]
    lock = LOCK if committed else LOCK + 1
    for caption, step in ((unsent, "scheduled"), (sending, "unconfirmed")):
        stage.hold(caption, step, lock)
    go_on = another(stage, workers)
    with stage.locks() as kill:
        orphan(stage, unsent, sending)
        worker = stage.worker()
        stage.desk.wait_for(f"SELECT 1 {WAITING}", lock, within=20)
        kill(worker)
        go_on()
    assert stage.settle() == {(caption, name): status for caption, status in ((unsent, "published"), (sending, "unconfirmed"))
                              for name in PUBLISH}
    assert set(stage.reconcile().values()) == {"published"}
    assert stage.public_of(*captions) == {(caption, name): 1 for caption in captions for name in PUBLISH}
    # The first of each target: on a busy machine the lease of a living worker may run out afterwards as well.
    steps = stage.desk.sql("SELECT step, count(*) FROM (SELECT DISTINCT ON (target_id) step FROM attempts "
                           "WHERE note ->> 'lease' = 'ran out' ORDER BY target_id, id) firsts GROUP BY step ORDER BY step")
    assert steps == [("scheduled", 2), ("unconfirmed", 2)]


def orphan(stage, unsent, sending):
    """Targets of a worker that is gone: claimed, and about to be sent."""
    ids = stage.post(unsent, sending)
    with database.connection_context():
        for job in queue.claim("gone", limit=9, lease=timedelta(seconds=0.05)):
            if job.caption == sending:
                assert queue.start_sending(job)
    assert [stage.desk.row(target).stage for target in ids] == ["preparing"] * 2 + ["sending"] * 2


def test_a_worker_killed_as_it_looks_for_an_unconfirmed_post(stage, workers):
    stage.clear()
    caption = f"looked for by {workers}"
    go_on, worker = another(stage, workers), stage.living_worker()
    stage.fault(PUBLISH, drop_answer=True)
    stage.post(caption)
    assert set(stage.settle().values()) == {"unconfirmed"}
    stage.fault(LOOK, delay=LONG)
    before = [count + 1 for count in stage.arrived(LOOK)]
    # By then Mastodon may have forgotten our key, and has to be asked.
    stage.desk.sql("UPDATE targets SET next_at = now(), sending_at = sending_at - interval '1 hour'")
    eventually(lambda: stage.arrived(LOOK) == before)
    worker.kill()
    died_at = stage.desk.sql("SELECT clock_timestamp()")[0][0]
    lives_at = go_on()
    stage.desk.settled([row[3] for row in stage.desk.sql(TARGETS)], within=15, until=["published"])
    since = max(died_at, lives_at) if workers == 1 else died_at
    assert max(row[0] for row in stage.desk.sql(ANEW, since, died_at, "published", caption)) < TAKEN_OVER
    assert stage.public_of(caption) == {(caption, name): 1 for name in PUBLISH}
    assert stage.desk.sql("SELECT DISTINCT count(*) FROM attempts WHERE step = 'sending' GROUP BY target_id") == [(1,)]


@pytest.fixture(scope="module")
def spare_api(stage):
    process, url = start_api(stage.environ)
    yield url
    process.kill()


def test_an_api_killed_between_its_commit_and_its_answer(stage, workers, spare_api):
    stage.clear()
    caption = f"accepted beside {workers}"
    for _ in range(workers):
        stage.worker()
    key, body = stage.key(), stage.body(caption)
    api, url = start_api(stage.environ)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(url, key, body)))
    try:
        stage.hold(caption, "accepted")
        with stage.locks() as kill:
            asking.start()
            stage.wait_for_held(LOCK, 1)
            kill(api)
    finally:
        api.kill()
        asking.join()
    assert answers == [None]
    again = ask(spare_api, key, body)
    assert (again.status, again.headers.get("Idempotent-Replayed")) == (202, "true")
    assert stage.settle() == {(caption, name): "published" for name in PUBLISH}
    assert stage.public_of(caption) == {(caption, name): 1 for name in PUBLISH}
    assert stage.desk.sql("SELECT id FROM posts") == [(again.data["id"],)]


def ask(url, key, body):
    """The answer, or None."""
    try:
        return Http(url, key).post("/v1/posts", body, headers={"Idempotency-Key": body["caption"].replace(" ", "-")})
    except NO_ANSWER:
        return None
