"""Two API and two worker machines, restarted one after the other under load: no request is lost, no post is missing or doubled.

Run as root on Linux: python -m tests.benchmarks.rolling [--from COMMIT] [--rounds 2]

Each has a network namespace of its own on a bridge, PostgreSQL and the store share another. All of it is gone when the command
ends, however it ends: bridge and namespaces live in one that ends with it. The machines begin with the code of COMMIT, on the
schema of this one; the first round brings them this code, each further one starts it anew.

The callers take turns between both APIs, over connections that they keep, or over a new one for each request. Only where a
connection was refused, before a byte was sent, do they turn to the other one: that is all a proxy may do with a publish.
"""

import argparse
import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

from storage.database import database, migrate, open_pool
from storage.embedded import SOCKET, Postgres, Store, StoreAddress
from tests.benchmarks.crashes import judged
from tests.benchmarks.figures import line
from tests.benchmarks.namespaces import ip
from tests.benchmarks.traffic import Traffic
from tests.media_samples import image
from tests.servers import BUCKET, running, short_directory
from tests.service import ROOT, Answer
from tests.stage import eventually, set_up

BRIDGE, DATA = "10.77.0.1", "10.77.0.10"
MACHINES = {"api1": "10.77.0.11", "api2": "10.77.0.12", "worker1": "10.77.0.21", "worker2": "10.77.0.22"}
PORT, POSTGRES_PORT, STORE_PORT, LINKS_PORT = 8080, 5432, 8333, 8000
PACES = {"reads": 30, "now": 2, "burst": 1, "uploads": 0.5, "links": 0.4}      # of each of CALLERS, a second
CALLERS, ACCOUNTS = 4, 60
LINK_SECONDS, CALM, GRACE = 1.5, 2.0, 60    # of one fetch of a link; between two restarts; for a start or an end
ANSWER = 0.2                                # seconds that a network takes
REFUSALS = (409, 429, 503)                  # as documented: before anything was done


class Machine:
    """One machine that runs the API or a worker."""

    def __init__(self, name, address, environ):
        self.name, self.address, self._environ = name, address, environ
        self._log, self._popen, self.took = tempfile.TemporaryFile(), None, []

    def start(self, code, desk):
        """Runs the code in that folder; returns when it is ready."""
        more = ["--host", self.address, "--port", str(PORT)] if self.name.startswith("api") else []
        known = set(desk.sql("SELECT id FROM workers"))
        self._popen = subprocess.Popen(["ip", "netns", "exec", self.name, sys.executable, "-m", "handlers",
                                        "serve" if more else "worker", *more], cwd=code, env=self._environ, stderr=self._log)
        ready = self._answers if more else lambda: set(desk.sql("SELECT id FROM workers")) - known
        eventually(lambda: ready() or self._ended(), within=GRACE)

    def stop(self):
        """Has it end as a supervisor does; returns when it was told to and when it had ended."""
        told = time.monotonic()
        self._popen.send_signal(signal.SIGTERM)
        self._popen.wait(GRACE)
        self.took.append((told, time.monotonic()))
        assert self._popen.returncode == 0, (self.name, self._popen.returncode, self.log())

    def log(self):
        """All that it has said."""
        return os.pread(self._log.fileno(), 1 << 24, 0).decode()

    def _answers(self):
        with suppress(OSError, HTTPException):
            connection = HTTPConnection(self.address, PORT, timeout=5)
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        return False

    def _ended(self):
        if self._popen.poll() is not None:
            raise AssertionError(f"{self.name} did not start: {self.log()}")
        return False


class Balancer:
    """Requests with one key to both APIs in turns. `log` gets (machine, when, until, status or 0) of each."""

    turns = count()

    def __init__(self, key, log, tally, keeps):
        self._key, self._log, self._tally = key, log, tally
        self._more = {} if keeps else {"Connection": "close"}
        self._connections = {name: HTTPConnection(address, PORT, timeout=30)
                             for name, address in MACHINES.items() if name.startswith("api")}

    def request(self, method, path, json_body=None, *, headers=None):
        """The answer. Raises ConnectionError where there is none."""
        body = None if json_body is None else json.dumps(json_body).encode()
        given = {"Authorization": f"Bearer {self._key}", **({"Content-Type": "application/json"} if body else {}),
                 **(headers or {}), **self._more}
        name, connection = self._connected()
        started, status = time.monotonic(), 0
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            status = answer.status
            return answer
        except (HTTPException, OSError) as error:
            connection.close()
            raise ConnectionError(f"{name}, {'a kept' if self._kept else 'a new'} connection: {error!r}") from error
        finally:
            self._log.append((name, started, time.monotonic(), status))

    def _connected(self):
        first = next(Balancer.turns) % 2
        for name, connection in sorted(self._connections.items(), reverse=bool(first)):
            # A proxy hears of the end of a connection that it keeps, and does not use it any more.
            if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
                self._tally["kept connections that were closed unused"] += 1
                connection.close()
            self._kept = connection.sock is not None
            try:
                if not self._kept:
                    connection.connect()
                return name, connection
            except (ConnectionRefusedError, ConnectionResetError):      # before it was made: nothing was sent
                self._tally["refused connections"] += 1
        raise ConnectionRefusedError("both")


class _SlowLink(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(LINK_SECONDS)
        content = image("PNG")
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


async def _relay(connect, reader, writer):
    """Both ways, until either side ends."""
    async def copy(source, sink):
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        sink.close()

    far_reader, far_writer = await connect()
    await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))


async def _relays(socket_path, store_port):
    """PostgreSQL listens on a Unix socket only and the store on loopback; here both are on the network."""
    ways = {POSTGRES_PORT: lambda: asyncio.open_unix_connection(socket_path),
            STORE_PORT: lambda: asyncio.open_connection("127.0.0.1", store_port)}
    for port, connect in ways.items():
        await asyncio.start_server(lambda reader, writer, connect=connect: _relay(connect, reader, writer), DATA, port)
    print("ready", flush=True)
    await asyncio.Event().wait()


def serve_data(folder):
    """Runs on the machine of PostgreSQL and the store; says on stdout where the store is, and when both answer."""
    with running(Postgres(folder / "postgres")), running(Store(folder / "store", BUCKET)) as store:
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        print(json.dumps(asdict(store)), flush=True)
        relays = _relays(str(folder / "postgres" / "data" / SOCKET), int(store.endpoint_url.rpartition(":")[2]))
        threading.Thread(target=asyncio.run, args=[relays], daemon=True).start()
        ended.wait()


def wire():
    """The bridge, and a namespace for each machine on it."""
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("addr", "add", f"{BRIDGE}/24", "dev", "bridge")
    ip("link", "set", "bridge", "up")
    for name, address in {"data": DATA, **MACHINES}.items():
        ip("netns", "add", name)
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", name, "master", "bridge", "up")
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", name, "link", "set", link, "up")


def older_code(commit, folder):
    """The folder with the code of that commit."""
    code = folder / "older"
    code.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", code], input=archive, check=True)
    return code


def start_data(folder, ending):
    """PostgreSQL and store on their machine; returns the database's URL and the StoreAddress."""
    command = ["ip", "netns", "exec", "data", sys.executable, "-m", "tests.benchmarks.rolling", "--data", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    ending.callback(process.wait)
    ending.callback(process.terminate)
    store = StoreAddress(**json.loads(process.stdout.readline()))
    assert process.stdout.readline() == b"ready\n"
    url = f"http://{DATA}:{STORE_PORT}"
    store = replace(store, endpoint_url=url, public_url=f"{url}/{BUCKET}")
    return f"postgresql://postgres@{DATA}:{POSTGRES_PORT}/postgres", store


def roll(machines, rounds, desk):
    """Brings this code to all, one after the other, so many times; returns when (epoch seconds) all had it."""
    changed = None
    for number in range(1, rounds + 1):
        for machine in machines:
            time.sleep(CALM)
            machine.stop()
            machine.start(ROOT, desk)
            told, ended = machine.took[-1]
            print(f"round {number}: {machine.name} ended within {ended - told:.1f} s", flush=True)
        changed = changed or time.time()
    time.sleep(CALM)
    return changed


@contextmanager
def prepared(folder):
    """PostgreSQL, store, networks and the server of the links; gives the stage and the settings of the machines."""
    with ExitStack() as ending:
        address, store = start_data(folder, ending)
        open_pool(address, connections=8)
        ending.callback(database.close_all)
        migrate()
        stage = ending.enter_context(set_up(address, store))
        for network in stage.networks.values():
            network.fault(times=None, delay=ANSWER)
        links = ThreadingHTTPServer((BRIDGE, LINKS_PORT), _SlowLink)
        threading.Thread(target=links.serve_forever, daemon=True).start()
        allowed = f"{stage.environ['POSTHORN_ALLOW_PRIVATE']},{BRIDGE}:{LINKS_PORT}"
        yield stage, {**stage.environ, "POSTHORN_API_PROCESSES": "2", "POSTHORN_FETCH_RATE_LIMIT": "100000",
                      "POSTHORN_BASE_URL": f"http://{MACHINES['api1']}:{PORT}", "POSTHORN_ALLOW_PRIVATE": allowed}


def run(options):
    """All rounds; returns whether nothing was lost."""
    wire()
    with short_directory() as folder, prepared(folder) as (stage, environ):
        older = older_code(options.older, folder) if options.older else ROOT
        machines = [Machine(name, address, environ) for name, address in MACHINES.items()]
        for machine in reversed(machines):      # workers first: an API is ready when one works
            machine.start(older, stage.desk)
        log, tally, callers = [], Counter(), count()
        traffic = Traffic(lambda mode: Balancer(stage.key(mode), log, tally, keeps=next(callers) % 4 < 2), stage,
                          f"http://{BRIDGE}:{LINKS_PORT}/picture.png", ACCOUNTS)
        for _ in range(CALLERS):
            traffic.start(PACES)
        changed = roll(machines, options.rounds, stage.desk)
        traffic.stop()
        return report(stage, machines, traffic, log, tally, changed if options.older else 0.0)


def report(stage, machines, traffic, log, tally, since):
    """Prints what became of all; returns whether nothing was lost, but for requests that older code lost before `since`."""
    found = judged(stage, traffic.accepted)
    print(f"{len(log)} requests, answers by status: {dict(sorted(Counter(entry[3] for entry in log).items()))}; {dict(tally)}")
    for machine in machines[:2]:
        for told, _ in machine.took:
            under_way = [status for name, started, until, status in log if name == machine.name and started < told < until]
            print(f"{machine.name}: {len(under_way)} requests under way when it was told to end: {dict(Counter(under_way))}")
    bad = [one for one in traffic.refused if one[2] not in REFUSALS]
    for one in bad[:20]:
        print(f"    {'the older code' if one[0] < since else ''} {one}")
    print(f"{len(traffic.accepted)} accepted posts: {dict(Counter(found.statuses.values()))}")
    errors = [one for machine in machines for one in machine.log().splitlines() if " ERROR " in one or "Traceback" in one]
    print(f"lines of ERROR in the logs: {len(errors)}", *errors[:5], sep="\n    ")
    left = sum(status != "published" for status in found.statuses.values())
    figures = {"requests without a documented answer": sum(one[0] >= since for one in bad), "accepted posts lost": found.lost,
               "accepted posts doubled": found.doubled, "accepted posts not public in the end": left}
    return all([line(what, figure, 0, "") for what, figure in figures.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="older", metavar="COMMIT", help="what the machines run at first; this code by default")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--unshared", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.data:
        return serve_data(options.data)
    if options.unshared:
        raise SystemExit(not run(options))
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        raise SystemExit("no network namespaces can be made here: this needs Linux, root and CAP_SYS_ADMIN; NOTHING was tested")
    command = [*apart, sys.executable, "-m", "tests.benchmarks.rolling", "--unshared", *sys.argv[1:]]
    environ = {**os.environ, "STANDIN_HOST": BRIDGE}
    raise SystemExit(subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode)


if __name__ == "__main__":
    main()
