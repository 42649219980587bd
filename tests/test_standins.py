"""What all stand-in networks share: faults, records of requests, broken connections, and lives of their own."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import urllib3

from tests.callers import HTTP, PUT, STATUSES, Caller, bob     # the last is a fixture
from tests.standins.bluesky import BlueskyServer
from tests.standins.mastodon import MastodonServer


@pytest.mark.parametrize("network, error", [
    (network, error) for network in (BlueskyServer, MastodonServer) for error in network.errors])
def test_every_row_of_the_error_table_can_be_provoked_by_name(network, error):
    with network() as running:
        fault = running.fail(error)
        method, path = ("GET", f"/xrpc/{fault.endpoint}") if fault.endpoint.startswith("app.bsky") else \
            ("POST", f"/xrpc/{fault.endpoint}") if network is BlueskyServer else \
            ("POST", STATUSES) if fault.endpoint == "*" else fault.endpoint.replace(":id", "1").split()
        status, body, headers = Caller(running).send(method, path)
        assert (status, body) == (fault.status, fault.body)
        assert fault.headers.items() <= headers.items() and running.faults == []


@pytest.mark.parametrize("details, lost, posts", [
    ({"drop_before": True}, True, 0), ({"drop_answer": True}, True, 1), ({"status": 503, "body": {"error": "x"}}, False, 0),
    ({"status": 504, "acts": True}, False, 1), ({"delay": 0.05}, False, 1),
], ids=str)
def test_a_fault_says_whether_the_network_acted_and_what_came_back(bob, details, lost, posts):
    bob.network.fault("POST /api/v1/statuses", **details)
    started = time.monotonic()
    try:
        status = bob.status({"status": "a"})[0]
    except urllib3.exceptions.ProtocolError:
        status = None
    assert status == (None if lost else details.get("status", 200))
    assert len(bob.network.posts) == posts
    assert time.monotonic() - started >= details.get("delay", 0)
    assert [request.status for request in bob.network.calls("POST /api/v1/statuses")] == [status]
    assert bob.status({"status": "b"})[0] == 200


def test_faults_queue_and_unknown_endpoints_are_told(bob):
    bob.network.fault("POST /api/v1/statuses", status=500, times=2)
    bob.network.fault("*", status=502)
    assert [bob.status({"status": "a"})[0] for _ in range(4)] == [500, 500, 502, 200]
    with pytest.raises(ValueError, match="no endpoint"):
        bob.network.fault("POST /api/v1/toots", status=500)


def test_requests_are_recorded_and_secrets_stay_out_of_their_repr(bob):
    bob.status({"status": "a"}, "k")
    request = bob.network.requests[-1]
    assert (request.method, request.path, request.status, request.headers["Idempotency-Key"]) == ("POST", STATUSES, 200, "k")
    assert request.size == len(request.body) > 0 and "token-bob" not in repr(request)


def test_half_a_request_does_nothing(bob):
    with socket.create_connection(("127.0.0.1", bob.network.port)) as connection:
        connection.sendall(b"POST /api/v1/statuses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token-bob\r\n"
                           b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n" + b'{"status": "a"}')
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert bob.network.posts == [] and bob.network.requests[-1].status is None


@pytest.mark.parametrize("header, status", [("Content-Length: many", b"400"), ("Transfer-Encoding: chunked", b"411")])
def test_a_body_of_unknown_length_is_refused(bob, header, status):
    with socket.create_connection(("127.0.0.1", bob.network.port)) as connection:
        connection.sendall(f"POST /api/v1/statuses HTTP/1.1\r\nHost: a\r\n{header}\r\n\r\n".encode())
        assert connection.recv(100).split()[1] == status


def test_many_callers_at_once_get_one_status_for_one_key(bob):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(bob.status({"status": "a"}, "k")[1]["id"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and len(set(answers)) == len(bob.network.posts) == 1


def test_stopping_ends_open_connections_and_waiting_answers_at_once():
    with MastodonServer() as network:
        network.fault("GET /api/v2/instance", delay=60)
        with pytest.raises(urllib3.exceptions.HTTPError):
            HTTP.request("GET", f"{network.url}/api/v2/instance", timeout=0.1)
        HTTP.request("GET", f"{network.url}/api/v1/instance")
        started = time.monotonic()
    assert time.monotonic() - started < 1
    with pytest.raises(urllib3.exceptions.HTTPError):
        HTTP.request("GET", f"{network.url}/api/v1/instance")


@pytest.mark.parametrize("module, user, call", [
    ("bluesky", {"handle": "ann.test", "app_password": "aaaa"}, f"/xrpc/{PUT}"), ("mastodon", {"username": "bob"}, STATUSES)])
def test_a_network_runs_as_a_process_of_its_own(module, user, call):
    command = [sys.executable, "-m", f"tests.standins.{module}", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert HTTP.request("POST", f"{url}/_standin/users", json=user).json()["user"]
            assert HTTP.request("POST", f"{url}/_standin/faults", json={"error": "rate_limited"}).status == 200
            assert HTTP.request("POST", f"{url}/_standin/faults", json={"endpoint": "nothing"}).status == 400
            assert HTTP.request("POST", url + call, json={}).status == 429
            assert HTTP.request("GET", f"{url}/_standin/posts").json() == {"posts": []}
            assert HTTP.request("GET", f"{url}/_standin/requests").json()["requests"][0]["path"] == call
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0
