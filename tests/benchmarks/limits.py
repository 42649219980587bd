"""What the rate limit adds to a request: the time of a token, beside that of finding out whose the credential is.

    python -m tests.benchmarks.limits [--rounds 4000]

As a request does it, on a connection of the pool of its own thread. Promised: less than 0.3 ms at the median.
"""

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from storage import buckets, keys
from storage.database import database, migrate, open_pool
from storage.models import Team, User
from tests.servers import postgres

PROMISED = 0.3      # ms
LIMIT = 1_000_000   # tokens a minute: none is refused


def timed(act, *arguments):
    """Milliseconds."""
    started = time.perf_counter()
    act(*arguments)
    return (time.perf_counter() - started) * 1000


def added(tokens, rounds):
    """The milliseconds of both in turns, by one thread: who it is, and a token of theirs."""
    with database.connection_context():
        for token in tokens:
            buckets.take(f"{token[-8:]}:requests", LIMIT)
        turns = [tokens[number % len(tokens)] for number in range(rounds)]
        return [(timed(keys.identify, token), timed(buckets.take, f"{token[-8:]}:requests", LIMIT)) for token in turns]


def report(name, pairs):
    """Prints the medians; returns that of the token."""
    (who, _), (token, late) = (_middle(column) for column in zip(*pairs, strict=True))
    print(f"{name:34} credential p50 {who:6.3f} ms   token p50 {token:6.3f} ms   p95 {late:6.3f} ms", flush=True)
    return token


def _middle(times):
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def main():
    """One thread and one credential, one and many, four threads at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4000)
    rounds = parser.parse_args().rounds
    with postgres() as url:
        open_pool(url, connections=8)
        migrate()
        with database.connection_context():
            team = Team.add(name="x")
            user = User.add(team_id=team.id, name="x")
            tokens = [keys.create(team_id=team.id, user_id=user.id, mode="test")[0] for _ in range(200)]
        cost = report("one credential", added(tokens[:1], rounds))
        report("200 credentials", added(tokens, rounds))
        with ThreadPoolExecutor(4) as pool:
            four = pool.map(added, [tokens[number::4] for number in range(4)], [rounds // 4] * 4)
            report("200 credentials, 4 at once", [pair for pairs in four for pair in pairs])
        database.close_all()
    sys.exit(cost >= PROMISED)


if __name__ == "__main__":
    main()
