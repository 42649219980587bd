"""What removing a million rows of each kind costs those who work meanwhile.

Run: python -m tests.benchmarks.retention [--rows 1000000]

Claims, heartbeats and questions for a post go on beside the worker's tidying; each is timed, before it and during it.
"""

import argparse
import statistics
import threading
import time
from datetime import timedelta

from storage import queue
from storage.database import database, migrate, open_pool
from storage.retention import Keep, tidy
from tests.servers import postgres
from tests.service import Member

KEEP = Keep(audit=timedelta(days=60))
TABLES = ("attempts", "idempotency_keys", "audit", "buckets", "oauth_tokens")
SAID = "%5.0f s, beside it %.1f ms, p99 %.1f, most %.1f"
FILL = """
SET session_replication_role = replica;
INSERT INTO targets (id, team_id, mode, post_id, position, platform, post_type, caption, status, due_at, finished_at,
                     platform_post_id)
    SELECT 't' || n, %(team)s, 'live', 'p' || n, 0, 'x', 'text', '', 'published', now(), now() - interval '100 days', '1'
    FROM generate_series(1, %(rows)s / 4) n;
INSERT INTO attempts (team_id, target_id, fence, step, at)
    SELECT %(team)s, 't' || 1 + n / 4, 1, 'sending', now() - interval '100 days' FROM generate_series(1, %(rows)s) n;
INSERT INTO idempotency_keys (team_id, mode, operation, key, body_digest, started_at, status, body)
    SELECT %(team)s, 'live', 'POST /v1/posts', n, '\\x00', now() - interval '3 days', 202, convert_to(repeat('x', 300), 'UTF8')
    FROM generate_series(1, %(rows)s) n;
INSERT INTO audit (at, team_id, actor, action, object_id)
    SELECT now() - interval '100 days', %(team)s, 'a', 'b', n FROM generate_series(1, %(rows)s) n;
INSERT INTO buckets SELECT n, now() - interval '1 day' FROM generate_series(1, %(rows)s) n;
INSERT INTO oauth_tokens SELECT decode(md5(n::text), 'hex'), 'access', 'g', '{}', now() - interval '3 days'
    FROM generate_series(1, %(rows)s) n;
RESET session_replication_role;
ANALYZE;
"""


def work(stopping, times):
    """What workers and callers ask all the time."""
    with database.connection_context():
        while not stopping.wait(0.005):
            began = time.perf_counter()
            queue.claim("one", limit=32, lease=timedelta(seconds=3))
            queue.beat("one", [], lease=timedelta(seconds=3))
            database.execute_sql("SELECT status FROM targets WHERE post_id = 'q'").fetchall()
            times.append((time.perf_counter() - began) * 1000)


def timed(do):
    """The seconds that `do` took, and what the work beside it took in milliseconds: median, 99th percentile, most."""
    stopping, times = threading.Event(), []
    beside = threading.Thread(target=work, args=(stopping, times))
    beside.start()
    began = time.monotonic()
    try:
        do()
    finally:
        seconds = time.monotonic() - began
        stopping.set()
        beside.join()
    return seconds, statistics.median(times), statistics.quantiles(times, n=100)[98], max(times)


def main():
    """Fills, works, tidies until nothing is left, and says what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with postgres() as url:
        open_pool(url, connections=5)
        migrate()
        member = Member("")
        with database.connection_context():
            database.execute_sql(FILL, {"team": member.team.id, "rows": rows})
            print("before:  ", SAID % timed(lambda: time.sleep(10)), flush=True)
            while max(left := [database.execute_sql(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]) > 10:
                print("a round: ", SAID % timed(lambda: tidy(KEEP)), "of", dict(zip(TABLES, left, strict=True)), flush=True)
            print("left:    ", sum(left))
        database.close_all()


if __name__ == "__main__":
    main()
