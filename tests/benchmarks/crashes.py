"""What becomes of accepted posts while workers, API and PostgreSQL are killed at random moments, hundreds of times.

Run: python -m tests.benchmarks.crashes --kills 1000 [--minutes 30] [--seed 1]

Clients publish all the while on stand-ins of Mastodon and Bluesky, which count what is public, answer late and lose answers.
A take-over is measured from the death of a worker, or the database's return if that was later, to the journal's line.
"""

import argparse
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from types import SimpleNamespace

from psycopg2.extensions import make_dsn

from handlers import serve, work
from storage.database import database, migrate, open_pool
from storage.embedded import Postgres, Store
from tests.delivery import Desk
from tests.servers import BUCKET, running, short_directory
from tests.service import Http, free_port
from tests.standins.server import HOST
from tests.stage import set_up
from tests.test_crash import NO_ANSWER, PUBLISH, Author, everything_public

WORKERS, CLIENTS, ACCOUNTS = 4, 2, 60
TAKEN_OVER = 5.0            # seconds, as promised
PAUSE = (0.05, 0.45)        # seconds between two kills
KINDS = {"worker": 85, "api": 10, "database": 5}    # of a hundred kills

WRITER = "ALTER TABLE attempts ADD COLUMN writer text DEFAULT current_setting('application_name')"
SWEPT = """
SELECT taken.writer, extract(epoch FROM swept.at)::float, extract(epoch FROM again.at)::float, swept.step
FROM attempts swept
JOIN LATERAL (SELECT writer FROM attempts one WHERE one.target_id = swept.target_id AND one.fence = swept.fence
              ORDER BY id LIMIT 1) taken ON true
LEFT JOIN LATERAL (SELECT min(at) AS at FROM attempts one WHERE one.target_id = swept.target_id AND one.fence = swept.fence + 1)
              again ON true
WHERE swept.note ->> 'lease' = 'ran out'
"""
FOUND = """
SELECT posts.id, posts.caption, targets.platform, accounts.platform_id, targets.status, posts.schedule_at
FROM targets JOIN posts ON posts.id = post_id JOIN accounts ON accounts.id = account_id
"""


class Crew:
    """The processes of the service. They are forked from one that has the code loaded, so that many can be killed."""

    def __init__(self, address, environ):
        self._address, self._environ = address, environ
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["__main__", "handlers.work", "handlers.serve", "handlers.app"])
        self._running, self._started, self.died_at, self.url = {}, 0, {}, None

    def start(self, kind):
        """Starts the API or a worker; waits for nothing."""
        self._started += 1
        name, arguments, command = f"{kind} {self._started}", ["--end-with-parent"], work.command
        if kind == "api":
            port = free_port()
            self.url, arguments, command = f"http://{HOST}:{port}", [*arguments, "--port", str(port)], serve.command
        environ = {**self._environ, "DATABASE_URL": make_dsn(self._address, application_name=name)}
        process = self._context.Process(target=_run, args=(command.name, arguments, environ), daemon=False)
        process.start()
        self._running[name] = process

    def kill(self, kind, chance):
        """Ends one of a kind at once."""
        name = chance.choice([name for name in self._running if name.startswith(kind)])
        process = self._running.pop(name)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
        process.join()
        self.died_at[name] = time.time()

    def end(self):
        """Kills all that is left."""
        for name in list(self._running):
            self.kill(name, random)


def _run(command, arguments, environ):
    os.setsid()
    os.environ.clear()
    os.environ.update(environ)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    {"serve": serve.command, "worker": work.command}[command].main(arguments, standalone_mode=False)


def havoc(crew, server, data, stage, chance, kills, minutes):
    """Kills and starts; returns the number of kills by kind and when the database came back."""
    killed, back_at, deadline = Counter(), [], time.monotonic() + minutes * 60
    while killed.total() < kills and time.monotonic() < deadline:
        network = chance.choice(list(stage.networks.values()))
        network.fault(times=3, delay=chance.uniform(0, 0.3), drop_answer=chance.random() < 0.2)
        time.sleep(chance.uniform(*PAUSE))
        [kind] = chance.choices(list(KINDS), list(KINDS.values()))
        killed[kind] += 1
        if kind == "database":
            os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
            server.start()
            back_at.append(time.time())
        else:
            crew.kill(kind, chance)
            crew.start(kind)
        if killed.total() % 50 == 0:
            print(f"{killed.total()} kills", flush=True)
    return killed, back_at


def answering(url):
    """Whether an API answers there."""
    try:
        return Http(url).get("/v1/health").status == 200
    except NO_ANSWER:
        return False


def publish_meanwhile(crew, stage, work_on):
    """Has clients publish during `work_on`; returns them and what it returned."""
    accounts = {name: [SimpleNamespace(username=stage.account(name)[1]) for _ in range(ACCOUNTS)] for name in PUBLISH}
    key = stage.key()
    crew.start("api")
    for _ in range(WORKERS):
        crew.start("worker")
    while not answering(crew.url):
        time.sleep(0.1)
    clients = [Author(crew, key, accounts, seed) for seed in range(CLIENTS)]
    try:
        for client in clients:
            client.start()
        return clients, work_on()
    finally:
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join(60)


def take_overs(rows, died_at, back_at):
    """The seconds from deaths to the journal's next lines, and how many leases of the living ran out."""
    back, again, living = [0.0], [0.0], 0      # so that there is something to show
    for writer, swept_at, claimed_at, step in rows:
        if writer not in died_at or died_at[writer] > swept_at:
            living += 1
            continue
        since = max([died_at[writer], *(at for at in back_at if at < swept_at)])
        back.append(swept_at - since)
        if step == "scheduled" and claimed_at is not None:
            again.append(claimed_at - since)
    return sorted(back), sorted(again), living


def judged(stage, accepted, within=120):
    """What became of the accepted posts (captions by id), once all is settled: lost, doubled, early, and the statuses."""
    stage.settle(within=within)
    last, public = stage.reconcile(within=within), everything_public(stage.networks)
    rows = stage.desk.sql(FOUND)
    there = {row[0] for row in rows}
    lost = sum(post not in there for post in accepted) + sum(
        status not in ("published", "unconfirmed") or (status == "published" and (name, account, caption) not in public)
        for _, caption, name, account, status, _ in rows)
    early = sum(bool(at) and public.get((name, account, caption), [at.timestamp()])[0] < at.timestamp()
                for _, caption, name, account, _, at in rows)
    return SimpleNamespace(lost=lost, doubled=sum(len(times) > 1 for times in public.values()), early=early, statuses=last)


def report(stage, clients, killed, back_at, crew):
    """Prints what became of everything."""
    accepted = {post: caption for client in clients for caption, post in client.accepted.items()}
    in_doubt = Counter(stage.settle(within=120).values())["unconfirmed"]
    found = judged(stage, accepted)
    last = found.statuses
    back, again, living = take_overs(stage.desk.sql(SWEPT), crew.died_at, back_at)
    ever = stage.desk.sql("SELECT count(DISTINCT target_id) FROM attempts WHERE step = 'unconfirmed'")[0][0]
    print(f"kills {killed.total()}: {dict(killed)}")
    print(f"accepted {len(accepted)} posts; targets {len(last)}: {dict(Counter(last.values()))}")
    left = Counter(last.values())["unconfirmed"]
    print(f"unconfirmed: {ever} for a while, {in_doubt} when the kills ended, {left} in the end")
    print(f"lost {found.lost}   doubled {found.doubled}   early {found.early}")
    print(f"refused {Counter(status for client in clients for status, _ in client.refused)}")
    print(f"leases of the dead {len(back) - 1}, of the living {living}")
    for what, seconds in (("taken back", back), ("unsent ones claimed again", again)):
        slow = sum(one > TAKEN_OVER for one in seconds)
        print(f"{what} after {seconds[len(seconds) // 2]:.2f} s (median), {seconds[-1]:.2f} s (slowest), "
              f"{slow} after more than {TAKEN_OVER:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with short_directory() as directory:
        server, data = Postgres(directory / "postgres"), directory / "postgres" / "data"
        with running(server) as address, running(Store(directory / "store", BUCKET)) as store:
            open_pool(address, connections=20)
            migrate()
            with set_up(address, store) as stage:
                stage.desk.sql(WRITER)
                crew = Crew(address, {**stage.environ, "POSTHORN_VALIDATE_RESPONSES": "0"})
                try:
                    clients, (killed, back_at) = publish_meanwhile(crew, stage, lambda: havoc(
                        crew, server, data, stage, random.Random(given.seed), given.kills, given.minutes))
                    stage.desk.close()
                    stage.desk = Desk(address)
                    report(stage, clients, killed, back_at, crew)
                finally:
                    crew.end()
                    database.close_all()


if __name__ == "__main__":
    main()
