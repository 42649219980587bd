"""Runs `posthorn` with a wall clock that is wrong and first prints its time: python -m tests.shifted <seconds> <command>."""

import datetime
import runpy
import sys
import time


def shift(seconds):
    """From now on this process's wall clock is so many seconds ahead. What counts seconds stays right."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(time.time(), tz)

    datetime.datetime = Shifted     # before anybody else imports it


if __name__ == "__main__":
    shift(float(sys.argv.pop(1)))
    print(time.time(), flush=True)
    runpy.run_module("handlers", run_name="__main__", alter_sys=True)
