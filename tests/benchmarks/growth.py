"""A million targets in the table: claim and status read must not notice.

Run: python -m tests.benchmarks.growth
"""

import statistics
import time
from datetime import timedelta

from storage import keys, queue
from storage.database import database, migrate, open_pool
from storage.models import Team, User
from storage.posts import Post
from tests.servers import postgres

TARGETS, DUE_LATER, ACCOUNTS = 1_000_000, 10_000, 5_000
ROUNDS, BATCH, LEASE = 300, 32, timedelta(seconds=60)

FILL = """
ALTER TABLE targets DISABLE TRIGGER USER;
INSERT INTO accounts (id, team_id, platform, platform_id, username, display_name)
    SELECT 'acct_' || n, %(team)s, 'bluesky', n::text, 'u' || n, 'U' FROM generate_series(1, %(accounts)s) n;
INSERT INTO posts (id, team_id, mode, user_id, caption, created_at)
    SELECT 'post_' || n, %(team)s, 'live', %(user)s, 'caption ' || n, now() - n * interval '1 second'
    FROM generate_series(1, %(targets)s) n;
INSERT INTO targets (id, team_id, mode, post_id, position, platform, post_type, account_id, caption, status, due_at, next_at, platform_post_id,
                     url, finished_at)
    SELECT 'target_' || n, %(team)s, 'live', 'post_' || n, 0, 'bluesky', 'text', 'acct_' || (1 + n %% %(accounts)s), 'caption',
           CASE WHEN n <= %(later)s THEN 'scheduled' ELSE 'published' END, now() + interval '1 hour' + n * interval '1 second',
           CASE WHEN n <= %(later)s THEN now() + interval '1 hour' + n * interval '1 second' END,
           CASE WHEN n > %(later)s THEN n::text END, CASE WHEN n > %(later)s THEN 'https://bsky.app/' || n END,
           CASE WHEN n > %(later)s THEN now() END
    FROM generate_series(1, %(targets)s) n;
ALTER TABLE targets ENABLE TRIGGER USER;
ANALYZE;
"""
SOME_DUE = f"UPDATE targets SET next_at = now() WHERE id IN (SELECT id FROM targets WHERE next_at > now() LIMIT {BATCH})"
ALL_DUE = "UPDATE targets SET next_at = now() WHERE next_at > now()"


def claim(number):
    return queue.claim("bench", limit=BATCH, lease=LEASE)


def timed(action, *, before=lambda number: None, after=lambda result: None):
    """The milliseconds that `action` takes, ROUNDS times; `before` and `after` are not timed."""
    times = []
    for number in range(ROUNDS):
        before(number)
        started = time.perf_counter()
        result = action(number)
        times.append((time.perf_counter() - started) * 1000)
        after(result)
    return sorted(times)


def publish(jobs):
    for job in jobs:
        queue.start_sending(job)
        queue.published(job, "1", "https://bsky.app/1")


def give_back(jobs):
    for job in jobs:
        queue.put_back(job, 0)


def main():
    with postgres() as url:
        open_pool(url, connections=2)
        migrate()
        with database.connection_context():
            team = Team.add(name="T")
            user = User.add(team_id=team.id, name="U")
            caller = keys.identify(keys.create(team_id=team.id, user_id=user.id, mode="live")[0])
            database.execute_sql(FILL, {"team": team.id, "user": user.id, "targets": TARGETS, "later": DUE_LATER, "accounts": ACCOUNTS})
            figures = {
                "claim, nothing due": timed(claim),
                "claim, 32 due": timed(claim, before=lambda number: database.execute_sql(SOME_DUE), after=publish),
                "seconds to the next": timed(lambda number: queue.seconds_to_next()),
                "status read": timed(lambda number: Post.of(caller).where(Post.id == f"post_{number * 2_000 + 1}").get().to_dict()),
            }
            database.execute_sql(ALL_DUE)
            figures["claim, all rest due"] = timed(claim, after=give_back)
            for name, times in figures.items():
                print(f"{name:24} p50 {statistics.median(times):6.2f} ms   p99 {times[int(len(times) * 0.99)]:6.2f} ms")
            print(plan(queue.CLAIM.format(not_full=""), {"window": 256, "limit": BATCH, "worker": "bench", "lease": LEASE}))


def plan(sql, values):
    """What PostgreSQL does for a statement, which is not carried out."""
    return "\n".join(row[0] for row in database.execute_sql(f"EXPLAIN {sql}", values))


if __name__ == "__main__":
    main()
