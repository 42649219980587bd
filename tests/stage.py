"""The service on stand-in networks, for tests of what happens when its parts die; the database holds what it is told to."""

import os
import signal
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest

from platforms.registry import Registry
from storage import keys
from storage.database import database
from storage.fetch import Fetcher
from storage.objects import Objects
from tests.delivery import Desk, own_database
from tests.service import Http, Process, environment
from tests.standins.server import HOST
from tests.test_crash import PUBLISH, StandIn, everything_public

LOCK = 7        # of what is let through in the end; one more for what is not

# Waits at the end of the transaction that takes a marked post to a marked step.
HOLD = """
CREATE TABLE held (caption text, step text, lock int);
CREATE FUNCTION hold_post() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock) FROM held WHERE caption = NEW.caption AND step = 'accepted';
    RETURN NULL;
END $$;
CREATE FUNCTION hold_step() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock) FROM held JOIN posts USING (caption) JOIN targets ON post_id = posts.id
        WHERE targets.id = NEW.target_id AND step = NEW.step;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold_post AFTER INSERT ON posts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION hold_post();
CREATE CONSTRAINT TRIGGER hold_step AFTER INSERT ON attempts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION hold_step();
"""
WAITING = "FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted AND database = " \
          "(SELECT oid FROM pg_database WHERE datname = current_database())"
LOOK_NOW = "UPDATE targets SET next_at = now() WHERE status = 'unconfirmed' AND leased_until IS NULL AND next_at > now()"
TARGETS = "SELECT posts.caption, platform, targets.status, targets.id FROM targets JOIN posts ON posts.id = post_id"


@pytest.fixture(scope="module")
def stage(postgres_url, store_address):
    with own_database(postgres_url) as address, set_up(address, store_address) as stage:
        stage.desk.sql(HOLD)
        yield stage


@contextmanager
def set_up(address, store_address):
    """A stage on the database at `address`, on which nothing runs in the end."""
    Objects(store_address.endpoint_url, store_address.access_key, store_address.secret_key, store_address.bucket,
            public_url=store_address.public_url).prepare()
    with ExitStack() as ending:
        networks = {}
        for name in PUBLISH:
            networks[name] = StandIn(name)
            ending.callback(networks[name].end)
        desk = Desk(address)
        ending.callback(desk.close)
        stage = Stage(desk, networks, store_address)
        ending.callback(stage.end)
        yield stage


class Stage:
    """Workers, and networks with accounts, on a database that holds what it is told to."""

    def __init__(self, desk, networks, store):
        self.desk, self.networks = desk, networks
        allowed = frozenset((HOST, int(network.address.rpartition(":")[2])) for network in networks.values())
        bluesky = networks["bluesky"].url
        self._registry = Registry(Fetcher(allow_private=allowed), {"bluesky": {"api_url": bluesky}}, allow_plain=allowed)
        self.environ = environment(desk.address, store, POSTHORN_SECRET_KEYS=desk.key, POSTHORN_WORKER_THREADS="24",
                                   POSTHORN_API_PROCESSES="1",
                                   POSTHORN_ALLOW_PRIVATE=",".join(network.address for network in networks.values()),
                                   POSTHORN_BLUESKY_API_URL=bluesky, POSTHORN_BLUESKY_PUBLIC_URL=bluesky,
                                   POSTHORN_BLUESKY_VIDEO_URL=bluesky)
        self._users, self._running = 0, []

    def clear(self):
        """No posts and no workers; what was public stays."""
        self.end()
        self.desk.clear()
        self.desk.sql("DELETE FROM workers")

    def end(self):
        """Ends all workers."""
        while self._running:
            self._running.pop().kill()

    def worker(self):
        """Starts one, and waits for nothing."""
        self._running.append(Process("worker", self.environ))
        return self._running[-1]

    def living_worker(self):
        """A worker that works."""
        before = self.desk.sql("SELECT count(*) FROM workers")[0][0]
        process = self.worker()
        self.desk.wait_for("SELECT 1 FROM workers HAVING count(*) > %s", before, within=30)
        return process

    def key(self, mode="live"):
        """A fresh key of the team, for the API."""
        with database.connection_context():
            return keys.create(team_id=self.desk.team.id, user_id=self.desk.caller.user_id, mode=mode)[0]

    def account(self, name):
        """A fresh account on the network; returns its id and its username."""
        self._users += 1
        network = self.networks[name]
        connected = self._registry[name].connect(network.add_user(f"user{self._users}"))
        row = self.desk.account(name, connected.host, connected.credentials)
        self.desk.sql("UPDATE accounts SET platform_id = %s, username = %s WHERE id = %s",
                      connected.profile.platform_id, connected.profile.username, row)
        return row, connected.profile.username

    def post(self, *captions, at=None):
        """Each on both networks and from accounts of its own, due now or `at`; returns the targets' ids."""
        senders = [(caption, name, self.account(name)[0]) for caption in captions for name in PUBLISH]
        return [self.desk.target(account, platform=name, caption=caption, at=at) for caption, name, account in senders]

    def body(self, caption):
        """A request to publish on both networks, from accounts of its own."""
        targets = [{"platform": name, "options": {"account": self.account(name)[1]}} for name in PUBLISH]
        return {"caption": caption, "targets": targets}

    def hold(self, caption, step, lock=LOCK):
        """From now on a transaction that takes the post to `step` waits."""
        self.desk.sql("INSERT INTO held VALUES (%s, %s, %s)", caption, step, lock)

    def wait_for_held(self, lock, count):
        """Returns once so many transactions wait."""
        self.desk.wait_for(f"SELECT 1 {WAITING} HAVING count(*) = %s", lock, count)

    def fault(self, endpoints, **details):
        """Something that goes wrong once on each network."""
        for name, network in self.networks.items():
            answer = Http(network.url).post("/_standin/faults", {"endpoint": endpoints[name], **details})
            assert answer.status == 200, answer.raw

    def arrived(self, endpoints):
        """How many requests came to these endpoints so far, on each network."""
        came = {name: Http(network.url).get("/_standin/requests").body["requests"] for name, network in self.networks.items()}
        return [sum(request["endpoint"] == endpoints[name] for request in requests) for name, requests in came.items()]

    def public(self):
        """How many posts there are with each caption on each network."""
        found = Counter()
        for (name, _, caption), times in everything_public(self.networks).items():
            found[caption, name] += len(times)
        return found

    def public_of(self, *captions):
        """The same for some captions only."""
        return {key: count for key, count in self.public().items() if key[0] in captions}

    def statuses(self):
        """That of each post on each network."""
        return {(caption, name): status for caption, name, status, _ in self.desk.sql(TARGETS)}

    def settle(self, within=20.0):
        """The statuses once nothing is on its way."""
        until = ("published", "unconfirmed", "failed")
        self.desk.settled([row[3] for row in self.desk.sql(TARGETS)], within=within, until=until)
        return self.statuses()

    def reconcile(self, within=15.0):
        """The statuses after the networks were asked, which is otherwise half a minute later."""
        deadline = time.monotonic() + within
        while "unconfirmed" in self.settle().values() and time.monotonic() < deadline:
            self.desk.sql(LOOK_NOW)
            time.sleep(0.1)
        return self.settle()

    @contextmanager
    def locks(self):
        """Holds what has to wait; gives the function that kills a process while it waits, and lets through what may go."""
        for lock in (LOCK, LOCK + 1):
            self.desk.sql("SELECT pg_advisory_lock(%s)", lock)
        try:
            yield self._kill_waiting
        finally:
            self.desk.sql("SELECT pg_advisory_unlock_all()")
            self.desk.sql("DELETE FROM held")

    def _kill_waiting(self, process):
        os.killpg(process.popen.pid, signal.SIGSTOP)
        self.desk.sql(f"SELECT pg_terminate_backend(pid) {WAITING}", LOCK + 1)
        self.desk.sql("SELECT pg_advisory_unlock_all()")
        for lock in (LOCK, LOCK + 1):
            self.wait_for_held(lock, 0)
        # The lock is taken before the commit and let go after it.
        for lock in (LOCK, LOCK + 1):
            self.desk.sql("SELECT pg_advisory_lock(%s)", lock)
        process.kill()
        return self.desk.sql("SELECT clock_timestamp()")[0][0]


def eventually(true, within=5.0):
    """Returns as soon as it is."""
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
