"""API, delivery and ingest, each in a short version, held against their floors: one table, and an exit status by the limits.

Run: python -m tests.benchmarks [api] [delivery] [ingest]; all of them take five minutes
"""

import os
import sys

from tests.benchmarks import api, delivery, ingest
from tests.benchmarks.figures import SEEN, table

PARTS = {"api": lambda: api.run(rounds=3, seconds=1.5), "delivery": lambda: delivery.run(workers=(1, 2)),
         "ingest": lambda: ingest.run(rounds=3)}


def main(chosen):
    """Runs them; returns the exit status."""
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"no part is named {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in chosen or PARTS:
        print(f"\n{name}", flush=True)
        PARTS[name]()
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} in the end. "
          f"A ratio says how many times worse than the floor ours is.\n\n{table()}")
    return any(row[-1] != "kept" for row in SEEN)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
