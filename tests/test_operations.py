"""What the operator sees: readiness, and the metrics of a worker."""

import time

import pytest

from tests.scraping import scraped
from tests.service import Http, Member, Process, free_port, start_api


@pytest.fixture
def own_database(environ, connection):
    """An empty database on the same server, so that no other worker gives a sign of life in it."""
    name = f"ops_{time.monotonic_ns()}"
    connection.execute_sql(f"CREATE DATABASE {name}")
    settings = {**environ, "DATABASE_URL": environ["DATABASE_URL"].replace("/postgres?", f"/{name}?"), "POSTHORN_API_PROCESSES": "1"}
    migrating = Process("migrate", settings)
    assert migrating.popen.wait(30) == 0
    migrating.stop()
    yield settings
    connection.execute_sql(f"DROP DATABASE {name} WITH (FORCE)")


def ready(http):
    answer = http.get("/ready")
    return answer.status, answer.body["checks"]["publisher"]


def within(seconds, holds):
    """Waits until `holds()`; returns how long that took."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < seconds
        time.sleep(0.1)
    return time.monotonic() - started


def test_readiness_falls_within_10_s_of_the_last_worker_and_comes_back_with_the_next(own_database):
    api, url = start_api(own_database)
    http = Http(url)
    try:
        assert ready(http) == (503, False)
        worker = Process("worker", own_database)
        within(10, lambda: ready(http) == (200, True))
        worker.kill()
        within(10, lambda: ready(http) == (503, False))
        again = Process("worker", own_database)
        within(10, lambda: ready(http) == (200, True))
        assert again.stop() == 0
    finally:
        api.stop()


def test_a_worker_tells_prometheus_what_it_does(environ, api_url):
    port = free_port()
    worker = Process("worker", {**environ, "POSTHORN_METRICS_PORT": str(port)})
    member = Member(api_url)
    try:
        scraped(port)
        for caption in ("hello", "[sandbox:rejected]", "[sandbox:unconfirmed]"):
            post = member.test.post("/v1/posts", {"caption": caption, "targets": [{"platform": "gbp"}]}).data
            member.test.settled(post["id"])
        for _ in range(50):     # until this worker has taken one, and not only that of other tests
            if (figures := scraped(port)[0])["posthorn_claimed_total"]:
                break
            member.test.settled(member.test.post("/v1/posts", {"caption": "hello", "targets": [{"platform": "gbp"}]}).data["id"])
        assert figures["posthorn_unconfirmed"] >= 1 and figures["posthorn_oldest_due_seconds"] < 1
        moves = {name: value for name, value in figures.items() if name.startswith("posthorn_outcomes_total") and 'mode="test"' in name}
        # The worker of the other tests may have taken some; what this one took, it counted.
        assert figures["posthorn_claimed_total"] == sum(value for name, value in moves.items() if 'move="start_sending"' in name)
        assert figures['posthorn_lateness_seconds_count{mode="test"}'] == figures["posthorn_claimed_total"]
        assert {"posthorn_pool_in_use", "posthorn_in_hand", "posthorn_leases_expired_total"} <= figures.keys()
    finally:
        worker.stop()
