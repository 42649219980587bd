"""The running service against its document, with several seeds: every request that schemathesis makes of it, and no failure.

Run: python -m tests.benchmarks.seeds [--seeds 5] [--first 1] [--examples 40]

What tests/test_contract.py does with one fixed seed; `--first` with a number of your own makes it another run.
"""

import argparse
import re
import sys
import time

from storage.database import database, migrate, open_pool
from storage.embedded import Store
from storage.objects import Objects
from tests.contract_run import UNLIMITED, schemathesis
from tests.servers import BUCKET, postgres, running, short_directory
from tests.service import environment, start_api

SECONDS = 1800
CASES = 3_000       # at least, of each seed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--examples", type=int, default=40)
    options = parser.parse_args()
    with short_directory() as folder, postgres() as database_url, running(Store(folder / "store", BUCKET)) as address:
        open_pool(database_url, connections=4)
        migrate()
        Objects(address.endpoint_url, address.access_key, address.secret_key, address.bucket).prepare()
        api, url = start_api(environment(database_url, address, **UNLIMITED))
        try:
            good = [_run(url, folder, seed, options.examples) for seed in range(options.first, options.first + options.seeds)]
            good.append(" ERROR " not in api.log())
        finally:
            api.kill()
            database.close_all()
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
