"""The running service against its document, with several seeds: every request that schemathesis makes of it, and no failure.

Run: python -m tests.benchmarks.seeds [--seeds 5] [--first 1] [--examples 60]

What tests/test_contract.py does with one fixed seed; `--first` with a number of your own makes it another run.
"""

import argparse
import re
import sys
import time

from tests.benchmarks.place import service
from tests.contract_run import UNLIMITED, schemathesis

SECONDS = 1800
CASES = 3_000       # at least, of each seed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--examples", type=int, default=60)
    options = parser.parse_args()
    with service(**UNLIMITED) as (api, url, folder):
        good = [_run(url, folder, seed, options.examples) for seed in range(options.first, options.first + options.seeds)]
        good.append(" ERROR " not in api.log())
    sys.exit(not all(good))


def _run(url, folder, seed, examples):
    started = time.monotonic()
    run = schemathesis(url, folder, SECONDS, "--seed", str(seed), "--max-examples", str(examples))
    cases = int((re.search(r"(\d+) generated", run.stdout) or ["", "0"])[1])
    kept = run.returncode == 0 and cases >= CASES
    print(f"seed {seed}: {cases} cases in {time.monotonic() - started:.0f} s, {'no failure' if run.returncode == 0 else 'FAILURES'}",
          flush=True)
    if not kept:
        print(run.stdout[-20_000:])
    return kept


if __name__ == "__main__":
    main()
