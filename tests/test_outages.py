"""What fails around the service: its database restarts under load, and the clocks of its workers are wrong."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import urllib3

from storage.database import database, open_pool
from storage.embedded import Postgres
from storage.models import wire_time
from tests.delivery import Desk, own_database
from tests.servers import running, short_directory
from tests.service import ROOT, Http, start_api
from tests.stage import TARGETS, eventually, set_up, stage     # the last is a fixture
from tests.test_crash import PUBLISH

RECOVERY = 10.0         # seconds from the start of the database until posts are accepted and published again
AWAY = 1.5              # seconds without a database
CLIENTS = 4
DELAYS = (0, 1, 1.5, 1800, 5400)    # seconds from now
LATE = 1.0              # seconds that a post may be late on a busy machine


class Client(threading.Thread):
    """Publishes and reads without a break, and notes every answer."""

    def __init__(self, url, key, accounts, name):
        super().__init__(name=name)
        self._http, self._accounts = Http(url, key), accounts
        self.stopping = threading.Event()
        self.answers, self.accepted, self.asked = [], {}, []

    def run(self):
        number = 0
        while not self.stopping.wait(0.02):
            number += 1
            name = list(PUBLISH)[number % 2]
            caption = f"{self.name}: {number}"
            account = self._accounts[name][number % 3]
            body = {"caption": caption, "targets": [{"platform": name, "options": {"account": account}}]}
            if number % 5 == 0:
                body["scheduleAt"] = wire_time(datetime.now(UTC) + timedelta(seconds=1.5))
            self.asked.append((caption, name))
            answer = self._ask("POST", "/v1/posts", body)
            if answer is not None and answer.status == 202:
                self.accepted[caption, name] = (answer.data["id"], time.time())
                self._ask("GET", answer.headers["Location"])

    def _ask(self, *request):
        try:
            answer = self._http.request(*request)
        except urllib3.exceptions.HTTPError as error:
            self.answers.append((type(error).__name__, None, None))
            return None
        self.answers.append((answer.status, answer.headers.get("Retry-After"), None if answer.status < 300 else answer.code))
        return answer


@pytest.fixture
def server():
    with short_directory() as directory:
        yield Postgres(directory / "postgres")


@pytest.fixture
def outage(server, store_address, postgres_url):
    """A stage on a database server of its own."""
    try:
        with running(server) as url, own_database(url) as address:
            with set_up(address, store_address) as stage:
                yield stage
                database.close_all()
    finally:
        database.close_all()
        open_pool(postgres_url, connections=20)


def test_the_database_restarts_under_load(outage, server):
    for _ in range(2):
        outage.living_worker()
    api, url = start_api(outage.environ)
    clients = []
    try:
        clients = [Client(url, outage.key(), accounts(outage), f"client {number}") for number in range(CLIENTS)]
        for client in clients:
            client.start()
        time.sleep(1.5)
        server.stop()
        away_at = time.time()
        time.sleep(AWAY)
        server.start()
        back_at = time.time()
        eventually(lambda: any(since > back_at for client in clients for _, since in client.accepted.values()), RECOVERY)
        time.sleep(1)
    finally:
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join(40)
        api.kill()
    outage.desk.close()
    outage.desk = Desk(outage.desk.address)

    answers = {answer for client in clients for answer in client.answers}
    assert answers == {(202, None, None), (200, None, None), (503, "5", "internal_error")}
    accepted = {key: value for client in clients for key, value in client.accepted.items()}
    assert sum(since < away_at for _, since in accepted.values()) > 10
    statuses, public = outage.settle(), outage.public()
    assert {statuses.get(key) for key in accepted} == {"published"}
    assert {public.get(key) for key in accepted} == {1} and set(public.values()) == {1}
    assert set(public) <= {asked for client in clients for asked in client.asked}
    after = [post for post, since in accepted.values() if since > back_at]
    first = "SELECT extract(epoch FROM min(finished_at))::float FROM targets WHERE post_id = ANY(%s)"
    assert outage.desk.sql(first, after)[0][0] - back_at < RECOVERY


def accounts(stage):
    """The usernames of three accounts on each network."""
    return {name: [stage.account(name)[1] for _ in range(3)] for name in PUBLISH}


@contextmanager
def worker_whose_clock_is(seconds, stage):
    """A worker that works, and the time that it believes in."""
    command = [sys.executable, "-m", "tests.shifted", str(seconds), "worker"]
    process = subprocess.Popen(command, cwd=ROOT, env=stage.environ, start_new_session=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        believed = float(process.stdout.readline())
        stage.desk.wait_for("SELECT 1 FROM workers", within=30)
        yield believed
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("hours", [1, -1], ids=["an hour ahead", "an hour behind"])
def test_a_worker_whose_clock_is_wrong_is_neither_early_nor_late(stage, hours):
    stage.clear()
    with worker_whose_clock_is(3600 * hours, stage) as believed:
        assert abs(believed - time.time() - 3600 * hours) < 60
        due = {f"in {seconds} s, {hours}": datetime.now(UTC) + timedelta(seconds=seconds) for seconds in DELAYS}
        for caption, at in due.items():
            stage.post(caption, at=at)
        soon = [row[3] for row in stage.desk.sql(f"{TARGETS} WHERE due_at < now() + interval '10 s'")]
        assert set(stage.desk.settled(soon, within=10, until=["published"]).values()) == {"published"}
        time.sleep(0.5)
    assert {stage.statuses()[key] for key in stage.statuses() if key[0].startswith(("in 1800", "in 5400"))} == {"scheduled"}
    public = {caption: times for network in stage.networks.values() for (_, caption), times in network.public().items()
              if caption in due}
    assert len(public) == 3 and {len(times) for times in public.values()} == {1}
    late = stage.desk.sql("SELECT extract(epoch FROM sending_at - due_at)::float FROM targets WHERE id = ANY(%s)", soon)
    assert all(0 <= seconds < LATE for [seconds] in late)
    assert all(times[0] >= due[caption].timestamp() for caption, times in public.items())
