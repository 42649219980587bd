"""Processes killed at random moments: nothing that was accepted is lost, nothing is published twice."""

import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import urllib3

from platforms.accounts import owner
from platforms.registry import Registry
from storage.database import database, new_id
from storage.fetch import Fetcher
from storage.models import Account, wire_time
from storage.objects import Objects
from storage.secrets import Vault
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.service import PATIENCE, ROOT, Http, Member, Process, environment
from tests.standins.server import HOST

SEED = 11
ROUNDS = 6                      # in each, a worker dies, and in every second one the API as well
ACCOUNTS = 5                    # on each network
SLOW = 0.2                      # seconds from a post being public to the network's answer, in which a kill leaves it in doubt
PUBLISH = {"mastodon": "POST /api/v1/statuses", "bluesky": "com.atproto.repo.putRecord"}
NO_ANSWER = (urllib3.exceptions.HTTPError, ConnectionError)


class StandIn:
    """A network in a process of its own, which counts what is public."""

    def __init__(self, name):
        self.name = name
        self.popen = subprocess.Popen([sys.executable, "-m", f"tests.standins.{name}"], cwd=ROOT, stdout=subprocess.PIPE)
        self.url = json.loads(self.popen.stdout.readline())["url"]
        self.address = self.url.removeprefix("http://")
        self._http = Http(self.url)

    def add_user(self, name):
        """Returns what its connector takes to connect the account."""
        if self.name == "mastodon":
            self._admin("users", {"username": name, "token": f"token-{name}"})
            return {"host": self.url, "accessToken": f"token-{name}"}
        self._admin("users", {"handle": f"{name}.test", "app_password": "pass-word"})
        return {"identifier": f"{name}.test", "appPassword": "pass-word", "host": self.url}

    def fault(self, **details):
        """Something that goes wrong with publishing."""
        self._admin("faults", {"endpoint": PUBLISH[self.name], **details})

    def public(self):
        """When each text became public: a list of epoch seconds for each (account, text)."""
        found = {}
        for post in self._http.get("/_standin/posts").body["posts"]:
            mastodon = self.name == "mastodon"
            account, text = (post["account"]["id"], post["text"]) if mastodon else (post["did"], post["record"]["text"])
            found.setdefault((account, text), []).append(post["time"])
        return found

    def end(self):
        """Stops it."""
        self.popen.terminate()
        self.popen.wait(10)
        self.popen.stdout.close()

    def _admin(self, path, body):
        answer = self._http.post(f"/_standin/{path}", body)
        assert answer.status == 200, answer.raw


class Crew:
    """The processes of the service, any of which may be killed and started again."""

    def __init__(self, environ):
        self._environ, self._running, self.url = environ, {}, None

    def start(self, name):
        """Starts `api` or a worker; waits for nothing."""
        if name == "api":
            port = quiet_port()
            self._running[name] = Process("serve", self._environ, "--port", str(port))
            self.url = f"http://{HOST}:{port}"
        else:
            self._running[name] = Process("worker", self._environ)

    def kill(self, name):
        """Ends all of its processes at once."""
        process = self._running.pop(name)
        process.kill()

    def wait_for_api(self):
        """Returns once it answers."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if Http(self.url).get("/v1/health").status == 200:
                    return
            except NO_ANSWER:
                pass
            time.sleep(0.05)
        raise AssertionError(f"the API does not answer: {self._running['api'].log()}")

    def end(self):
        """Kills all that is left."""
        for name in list(self._running):
            self.kill(name)


def quiet_port():
    """A free port below those that outgoing connections get: a client that knocks too early could meet itself there."""
    while True:
        port = random.randrange(20_000, 32_000)
        try:
            socket.create_server((HOST, port)).close()
            return port
        except OSError:
            continue


class Author(threading.Thread):
    """Posts until told to stop, like a client that sends again under the same key when it gets no answer."""

    def __init__(self, crew, key, accounts, seed):
        super().__init__()
        self.crew, self.key, self.accounts, self.chance = crew, key, accounts, random.Random(seed)
        self.stopping = threading.Event()
        self.asked, self.accepted, self.refused = {}, {}, []

    def run(self):
        """Each post goes to one account of each network."""
        number = 0
        while not self.stopping.is_set():
            caption = f"post {number} of {self.name}"
            chosen = {network: self.chance.choice(rows) for network, rows in self.accounts.items()}
            body = {"caption": caption, "targets": [{"platform": network, "options": {"account": row.username}}
                                                    for network, row in chosen.items()]}
            if self.chance.random() < 0.3:
                body["scheduleAt"] = wire_time(datetime.now(UTC) + timedelta(seconds=self.chance.uniform(1, 4)))
            self.asked[caption] = (chosen, body.get("scheduleAt"))
            self._post(caption, body)
            number += 1
            time.sleep(0.08)

    def _post(self, caption, body):
        for _ in range(60):
            try:
                http = Http(self.crew.url, self.key)
                answer = http.post("/v1/posts", body, headers={"Idempotency-Key": caption.replace(" ", "-")})
            except NO_ANSWER:
                answer = None
            if answer is not None and answer.status == 202:
                self.accepted[caption] = answer.data["id"]
                return
            if answer is not None and answer.status not in (409, 503):
                self.refused.append((answer.status, answer.raw))
                return
            # 409: the request that died is taken to be running for two minutes.
            if answer is not None and answer.status == 409 or self.stopping.wait(0.1):
                return


@pytest.fixture
def networks():
    running = []
    try:
        for name in PUBLISH:
            running.append(StandIn(name))
        yield {network.name: network for network in running}
    finally:
        for network in running:
            network.end()


@pytest.fixture
def environ(address, store_address, networks):
    Objects(store_address.endpoint_url, store_address.access_key, store_address.secret_key, store_address.bucket,
            public_url=store_address.public_url).prepare()
    bluesky = networks["bluesky"].url
    return environment(address, store_address, POSTHORN_WORKER_THREADS="16", POSTHORN_API_PROCESSES="2",
                       POSTHORN_ALLOW_PRIVATE=",".join(network.address for network in networks.values()),
                       POSTHORN_BLUESKY_API_URL=bluesky, POSTHORN_BLUESKY_PUBLIC_URL=bluesky,
                       POSTHORN_BLUESKY_VIDEO_URL=bluesky)


@pytest.fixture
def crew(environ):
    crew = Crew(environ)
    yield crew
    crew.end()


def connect(member, networks, environ):
    """Accounts of the team on every network, as the command `account add` makes them; rows by network."""
    allowed = frozenset((HOST, int(network.address.rpartition(":")[2])) for network in networks.values())
    registry = Registry(Fetcher(allow_private=allowed), {"bluesky": {"api_url": networks["bluesky"].url}}, allow_plain=allowed)
    vault = Vault((environ["POSTHORN_SECRET_KEYS"],))
    rows = {}
    for name, network in networks.items():
        for number in range(ACCOUNTS):
            connected = registry[name].connect(network.add_user(f"ann{number}"))
            profile, account_id = connected.profile, new_id(Account.prefix)
            with database.connection_context():
                Account.insert(id=account_id, team_id=member.team.id, platform=name, host=connected.host,
                               platform_id=profile.platform_id, username=profile.username, display_name=profile.display_name,
                               credentials=vault.seal(owner(member.team.id, account_id), connected.credentials)).execute()
                rows.setdefault(name, []).append(Account.get_by_id(account_id))
    return rows


def havoc(crew, networks, chance):
    """Kills and starts processes, while answers get lost as well; returns how many were killed."""
    killed = 0
    for number in range(ROUNDS):
        chance.choice(list(networks.values())).fault(times=2, drop_answer=True, delay=0.1)
        time.sleep(chance.uniform(0.3, 1.3))
        name = chance.choice(["worker 1", "worker 2"])
        crew.kill(name)
        if number % 2:
            time.sleep(chance.uniform(0, 0.3))
            crew.kill("api")
            crew.start("api")
            killed += 1
        crew.start(name)
        killed += 1
        time.sleep(chance.uniform(0.3, 1.0))
        if number % 2:
            crew.wait_for_api()
    return killed


def everything_public(networks):
    """How often each (network, account, text) is public."""
    return {(name, *key): times for name, network in networks.items() for key, times in network.public().items()}


def test_nothing_accepted_is_lost_and_nothing_is_published_twice(desk, crew, networks, environ):
    member = Member("")
    accounts = connect(member, networks, environ)
    for name in ("api", "worker 1", "worker 2"):
        crew.start(name)
    for network in networks.values():
        network.fault(times=2, drop_before=True)
        network.fault(times=None, delay=SLOW)
    crew.wait_for_api()
    authors = [Author(crew, member.key("live"), accounts, seed) for seed in (SEED, SEED + 1)]
    try:
        for author in authors:
            author.start()
        killed = havoc(crew, networks, random.Random(SEED))
    finally:
        for author in authors:
            author.stopping.set()
        for author in authors:
            author.join(40)
    assert [author.refused for author in authors] == [[], []]
    accepted = {post: caption for author in authors for caption, post in author.accepted.items()}
    asked = {caption: what for author in authors for caption, what in author.asked.items()}
    assert killed == ROUNDS + ROUNDS // 2 and len(accepted) > 20

    first = settle(desk)
    assert set(accepted) <= {post for post, *_ in first}
    assert {status for *_, status in first} <= {"published", "unconfirmed"}
    check_against_networks(first, asked, everything_public(networks))
    assert desk.sql("SELECT count(*) FROM attempts WHERE step = 'unconfirmed'")[0][0] > 0

    last = reconcile(desk)
    assert {status for *_, status in last} == {"published"} and len(last) == len(first)
    check_against_networks(last, asked, everything_public(networks))


def settle(desk, within=25.0):
    """(post, caption, network, account, status) of every target, once none is on its way."""
    targets = [row[0] for row in desk.sql("SELECT id FROM targets")]
    desk.settled(targets, within=within, until=("published", "failed", "unconfirmed"))
    return desk.sql("SELECT posts.id, posts.caption, targets.platform, accounts.platform_id, targets.status FROM targets "
                    "JOIN posts ON posts.id = post_id JOIN accounts ON accounts.id = account_id")


def reconcile(desk):
    """The same after the networks were asked about all that was in doubt, as they are after half a minute."""
    deadline = time.monotonic() + 15
    while desk.sql("SELECT 1 FROM targets WHERE status = 'unconfirmed'") and time.monotonic() < deadline:
        desk.sql("UPDATE targets SET next_at = now() "
                 "WHERE status = 'unconfirmed' AND leased_until IS NULL AND next_at IS NOT NULL")
        time.sleep(1)
    return settle(desk)


def check_against_networks(targets, asked, public):
    """What the service says is what the networks show, once and not before its time."""
    assert {key: len(times) for key, times in public.items() if len(times) > 1} == {}
    known = Counter((network, account, caption) for _, caption, network, account, _ in targets)
    assert set(public) <= set(known) and set(known.values()) == {1}
    for _, caption, network, account, status in targets:
        there = (network, account, caption) in public
        assert there or status == "unconfirmed", (caption, network, status)
        scheduled = asked[caption][1]
        if there and scheduled:
            assert public[network, account, caption][0] >= datetime.fromisoformat(scheduled).timestamp()
