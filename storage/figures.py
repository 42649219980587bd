"""What is counted of files and other people's servers, for Prometheus. Values of labels are words of ours, never of others."""

import functools
import re
import time
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram

from storage import tracing

POOL = Gauge("posthorn_pool_in_use", "Database connections in use.", multiprocess_mode="livesum")
FETCHES = Counter("posthorn_fetches", "Requests through the guarded fetch, to networks, links and models.", ["outcome"])
FETCH_SECONDS = Histogram("posthorn_fetch_seconds", "From the beginning of a guarded fetch to its end.",
                          buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300))
FETCH_BYTES = Counter("posthorn_fetch_bytes", "Bytes of answers that the guarded fetch has read.")
LOOKS = Counter("posthorn_media_looks", "Files that were looked at, by outcome.", ["outcome"])
LOOK_SECONDS = Histogram("posthorn_media_look_seconds", "From the beginning of a look at a file to its end.",
                         buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15))


def word(error: BaseException) -> str:
    """The kind of an error as a label: TooSlow -> too_slow."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


@contextmanager
def timed(counter, seconds, *, known: tuple[type[Exception], ...], good: str):
    """Counts a piece of work as `good`, as the word for one of the `known` errors, or as "error"; and how long it took."""
    began, outcome = time.monotonic(), "error"
    try:
        yield
        outcome = good
    except known as error:
        outcome = word(error)
        raise
    finally:
        counter.labels(outcome).inc()
        seconds.observe(time.monotonic() - began)
        tracing.note({"posthorn.outcome": outcome})


def watched(known: type[Exception]):
    """For Fetcher.open: counts each use; `known` is the base of the errors of a fetch.

    What the one who asked raises over a good answer is no outcome of the fetch.
    """
    def wrap(open_):
        @functools.wraps(open_)
        @contextmanager
        def watching(self, method, url, **options):
            began, outcome, response = time.monotonic(), "error", None
            with tracing.span("fetch", {"http.request.method": method}):
                try:
                    with open_(self, method, url, **options) as response:
                        outcome = "answered"
                        tracing.note({"http.response.status_code": response.status})
                        yield response
                except known as error:
                    outcome = word(error)
                    raise
                finally:
                    FETCHES.labels(outcome).inc()
                    FETCH_SECONDS.observe(time.monotonic() - began)
                    FETCH_BYTES.inc(response.taken if response else 0)
                    tracing.note({"posthorn.outcome": outcome})
        return watching
    return wrap
