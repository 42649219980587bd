"""What becomes of posts that are canceled at the moment they are due, thousands of times.

Run: python -m tests.benchmarks.cancels --posts 10000

Each post has two targets on a stand-in of Mastodon, which counts what is public. Bluesky takes 3,000 calls in five minutes
from one address, too few for so many posts.
"""

import argparse
import time
from collections import Counter

from storage.database import database, open_pool
from storage.embedded import Store
from tests.delivery import own_database
from tests.servers import BUCKET, postgres, running, short_directory
from tests.service import start_api
from tests.stage import set_up
from tests.test_cancel_race import outcomes, race

ACCOUNTS = 200      # Mastodon takes 300 posts of one in three hours


def report(answers, found, seconds):
    """Prints how often the answer, the database and the network agreed."""
    statuses = Counter(answer.status for answer in answers.values())
    print(f"posts {len(answers)}, targets {found.total()}, {seconds:.0f} s; answers {dict(statuses)}")
    canceled, sent = found.pop((True, True, 0), 0), found.pop((False, False, 1), 0)
    print(f"canceled, said so, and not public: {canceled}")
    print(f"sent, said so, and public once: {sent}")
    print(f"anything else: {found.total()} {dict(found)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--posts", type=int, default=10_000)
    given = parser.parse_args()
    with short_directory() as directory, postgres() as url, running(Store(directory / "store", BUCKET)) as store:
        open_pool(url, connections=20)
        with own_database(url) as address, set_up(address, store) as stage:
            stage.living_worker()
            api, api_url = start_api(stage.environ)
            try:
                started = time.monotonic()
                answers = race(stage, api_url, stage.key(), given.posts, ACCOUNTS, ("mastodon",))
                report(answers, outcomes(stage, answers), time.monotonic() - started)
            finally:
                api.kill()
        database.close_all()


if __name__ == "__main__":
    main()
