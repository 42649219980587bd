"""A 300 MB video to every network that takes it in chunks: the time, the worker's memory, and what a killed worker costs.

Run: python -m tests.benchmarks.videos [--megabytes 286]

The default is the most that Bluesky takes. Real worker, PostgreSQL and store; stand-ins of the networks on loopback.
"""

import argparse
import time

from storage.embedded import Store
from tests.servers import BUCKET, postgres, running, short_directory
from tests.test_long_videos import MB, NETWORKS, send, studio


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=286)
    size = parser.parse_args().megabytes * MB
    print(f"{'network':10} {'chunks':>7} {'largest':>9} {'seconds':>8} {'worker grew by':>15} {'sent twice after kill -9':>25}")
    with short_directory() as directory, postgres() as url, running(Store(directory / "store", BUCKET)) as store:
        with studio(url, store) as place:
            for name in NETWORKS:
                started = time.monotonic()
                parts, growth = send(place, name, size, within=600)
                seconds = time.monotonic() - started
                again, _ = send(place, name, size, kill_at=size // 2, within=600)
                twice = sum(request.size for request in again) - sum(request.size for request in parts)
                largest = max(request.size for request in parts)
                print(f"{name:10} {len(parts):7} {largest / MB:6.1f} MB {seconds:8.1f} {growth / MB:12.1f} MB {twice / MB:22.1f} MB",
                      flush=True)


if __name__ == "__main__":
    main()
