"""How late posts go out when many are due at one instant, against a floor that does the bare work.

Run: python -m tests.benchmarks.delivery

The network is a connector that answers after 50 ms. Lateness is from the time a target was due until the database has its
outcome. The floor has as many threads, knows all targets beforehand, sleeps the same 50 ms and updates one row per target.
"""

import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from psycopg2.pool import ThreadedConnectionPool

from platforms.accounts import owner
from platforms.base import Platform, Published
from platforms.publisher import Publisher
from platforms.webhooks import Sender
from platforms.worker import Worker
from storage.database import connection_parameters, database, migrate, open_pool
from storage.fetch import Fetcher
from storage.models import Team, User
from storage.secrets import Vault
from tests.benchmarks.figures import line
from tests.servers import postgres

ANSWER = 0.05               # seconds
THREADS, CONNECTIONS = 64, 12
PROMISED = {1000: 2000.0, 40: 500.0, 1: 100.0}     # ms at p99, by the number that is due at once
RATIO = 2.5                 # times the floor's p99
LEAD = 3.0                  # seconds between writing the posts and their time
VAULT = Vault(("q0tVPqjE4kWGJPB1V0Q0K4lq0vJ9oTfmQ2gqXb3aT3w=",))

FILL = """
INSERT INTO posts (id, team_id, mode, user_id, caption)
    SELECT %(run)s || n, %(team)s, 'live', %(user)s, 'caption' FROM generate_series(1, %(count)s) n;
INSERT INTO targets (id, team_id, mode, post_id, position, platform, post_type, account_id, caption, due_at, next_at)
    SELECT %(run)s || n, %(team)s, 'live', %(run)s || n, 0, 'bluesky', 'text', 'acct_' || n, 'caption', at, at
    FROM generate_series(1, %(count)s) n, (SELECT now() + %(lead)s * interval '1 second' AS at) due;
NOTIFY posthorn_due;
"""
LATENESS = """
SELECT extract(epoch FROM finished_at - due_at)::float FROM targets WHERE post_id LIKE %s AND status = 'published' ORDER BY 1
"""
ACCOUNT = """
INSERT INTO accounts (id, team_id, platform, platform_id, username, display_name, credentials)
VALUES (%s, %s, 'bluesky', %s, %s, %s, %s)
"""
CLAIMS = "SELECT count(*), count(DISTINCT target_id) FROM attempts WHERE step = 'sending' AND target_id LIKE %s"


class Slow(Platform):
    """Answers after 50 ms."""

    name, title = "bluesky", "Bluesky"

    def publish(self, account, content, receipt):
        time.sleep(ANSWER)
        return Published(content.key, "https://slow.invalid/")


class Network:
    """A registry of one."""

    def connector(self, name, mode):
        return Slow()


def worker(url):
    open_pool(url, connections=CONNECTIONS)
    Worker(Publisher(Network(), VAULT, None), url, threads=THREADS, sender=Sender(VAULT, Fetcher())).run()


def burst(team, user, run, count, lead=LEAD):
    """The sorted lateness, in seconds, of `count` targets of as many accounts, due at one instant."""
    database.execute_sql(FILL, {"run": run, "team": team.id, "user": user.id, "count": count, "lead": lead})
    deadline = time.monotonic() + lead + 60
    while time.monotonic() < deadline:
        late = [row[0] for row in database.execute_sql(LATENESS, (f"{run}%",))]
        if len(late) == count:
            assert database.execute_sql(CLAIMS, (f"{run}%",)).fetchone() == (count, count)
            return late
        time.sleep(0.2)
    raise AssertionError("not all were published in time")


def floor(url, count):
    """The same for the bare work."""
    pool = ThreadedConnectionPool(CONNECTIONS, CONNECTIONS, **connection_parameters(url))
    database.execute_sql("CREATE TABLE IF NOT EXISTS floor (id int PRIMARY KEY, late float)")
    database.execute_sql("TRUNCATE floor")
    database.execute_sql("INSERT INTO floor SELECT n FROM generate_series(1, %s) n", (count,))
    due = time.monotonic() + 0.5

    def work(number):
        time.sleep(max(0.0, due - time.monotonic()) + ANSWER)
        while True:
            try:
                connection = pool.getconn()
                break
            except Exception:       # all in use; psycopg2's pool does not wait
                time.sleep(0.001)
        connection.autocommit = True
        connection.cursor().execute("UPDATE floor SET late = %s WHERE id = %s", (0.0, number))
        pool.putconn(connection)
        return time.monotonic() - due

    with ThreadPoolExecutor(THREADS) as threads:
        late = sorted(threads.map(work, range(1, count + 1)))
    pool.closeall()
    return late


def show(name, late, base=None, due=None):
    """Prints the lateness, beside that of the floor if `base` has it, and what is promised of it."""
    p50, p99 = statistics.median(late) * 1000, late[min(len(late) - 1, int(len(late) * 0.99))] * 1000
    print(f"{name:44} p50 {p50:7.0f} ms   p99 {p99:7.0f} ms", flush=True)
    if base is not None:
        bare = base[int(len(base) * 0.99)] * 1000
        line(f"{name}: p99 in times of the floor's", p99 / bare, RATIO, "x", f"{bare:.0f} ms", f"{p99:.0f} ms")
    if due:
        line(f"{name}: p99", p99, PROMISED[due], "ms")


def run(workers=(1, 2, 4)):
    """All of it, with so many worker processes one after the other."""
    with postgres() as url:
        open_pool(url, connections=2)
        migrate()
        with database.connection_context():
            team = Team.add(name="T")
            user = User.add(team_id=team.id, name="U")
            for number in range(1, 1001):
                name = f"acct_{number}"
                database.execute_sql(ACCOUNT, (name, team.id, name, name, name, VAULT.seal(owner(team.id, name), {})))
            base = floor(url, 1000)
            show("floor, 1,000 due at once", base)
            for processes in workers:
                running = [subprocess.Popen([sys.executable, "-m", "tests.benchmarks.delivery", url]) for _ in range(processes)]
                try:
                    time.sleep(3)
                    late, crew = burst(team, user, f"big{processes}_", 1000), f"{processes} worker{'s' * (processes > 1)}"
                    show(f"{crew}, 1,000 due at once", late, base, 1000)
                    if processes == 1:
                        show("1 worker, 40 due at once", burst(team, user, "small_", 40), due=40)
                        for what, lead in (("due alone", 0.5), ("published at once", 0)):
                            late = sorted(burst(team, user, f"{what[:3]}{n}_", 1, lead)[0] for n in range(20))
                            show(f"1 worker, one {what}", late, due=1)
                finally:
                    for process in running:
                        process.terminate()
                    for process in running:
                        process.wait()


if __name__ == "__main__":
    worker(sys.argv[1]) if len(sys.argv) > 1 else run()
