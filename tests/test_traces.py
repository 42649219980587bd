"""Traces, as a receiver of OpenTelemetry gets them: from the request to what a worker did about it, and nothing that is secret."""

import json
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from handlers import otel
from storage import tracing
from tests.links import serving
from tests.service import ROOT, Member, Process, start_api

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CAPTION = "canary-caption-5f1d7c0b9e"


class Receiver(ThreadingHTTPServer):
    """An OTLP receiver over HTTP; `spans` gets each span with the name of its service."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans, self.url = queue.Queue(), f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
        told = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in told.resource_spans:
            service = next(one.value.string_value for one in resource.resource.attributes if one.key == "service.name")
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.server.spans.put((service, span))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def receiver():
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def service(environ, receiver):
    """An API and a worker that tell their traces at once: (address, links that it may fetch)."""
    with serving() as links:
        settings = {**environ, "POSTHORN_OTLP_URL": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "50", "POSTHORN_API_PROCESSES": "1",
                    "POSTHORN_ALLOW_PRIVATE": f"127.0.0.1:{links.server_address[1]}"}
        api, url = start_api(settings)
        worker = Process("worker", settings)
        yield url, links
        worker.stop()
        api.stop()


def attributes(span):
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def told(receiver, trace, until, seconds=15):
    """The spans of a trace, as (service, name) -> span, once `until` is among their names.

    Raises queue.Empty when none comes for so many seconds.
    """
    found = {}
    while not any(name == until for _, name in found):
        service, span = receiver.spans.get(timeout=seconds)
        if span.trace_id.hex() == trace:
            found[service, span.name] = span
    return found


def traceparent(number, flags="01"):
    return {"traceparent": f"00-{TRACE[:-2]}{number:02x}-{PARENT}-{flags}"}, f"{TRACE[:-2]}{number:02x}"


def test_the_trace_of_a_caller_goes_on_through_the_api_and_the_worker(service, receiver):
    url, _ = service
    member = Member(url)
    for number in range(50):    # until the worker that is traced has taken it, and not that of other tests
        headers, trace = traceparent(number)
        answer = member.test.post("/v1/posts", {"caption": CAPTION, "targets": [{"platform": "gbp"}]}, headers=headers)
        member.test.settled(answer.data["id"])
        try:
            found = told(receiver, trace, "publish", seconds=1)
        except queue.Empty:
            continue
        break
    if ("posthorn-api", "publish_post") not in found:   # the worker may be the first to tell
        found |= told(receiver, trace, "publish_post")
    request, publish = found["posthorn-api", "publish_post"], found["posthorn-worker", "publish"]
    assert request.parent_span_id.hex() == PARENT and publish.parent_span_id == request.span_id
    assert attributes(request) == {"http.request.method": "POST", "http.route": "/v1/posts", "http.response.status_code": 202,
                                   "posthorn.request_id": answer.headers["X-Request-Id"]}
    assert attributes(publish).items() >= {"posthorn.platform": "gbp", "posthorn.mode": "test"}.items()
    send, prepare = found["posthorn-worker", "send"], found["posthorn-worker", "prepare"]
    assert send.parent_span_id == prepare.parent_span_id == publish.span_id
    assert attributes(send) == {"posthorn.platform": "gbp", "posthorn.outcome": "published"}
    assert CAPTION not in str(found) and member.test.key not in str(found)


def test_a_fetch_is_a_span_and_its_server_learns_nothing_of_the_trace(service, receiver):
    url, links = service
    headers, trace = traceparent(100)
    answer = Member(url).test.post("/v1/media/from-url", {"url": f"{links.url}/canary?token=canary"}, headers=headers)
    assert answer.status == 502
    found = told(receiver, trace, "create_media_from_url")
    fetch, request = found["posthorn-api", "fetch"], found["posthorn-api", "create_media_from_url"]
    assert fetch.parent_span_id == request.span_id and fetch.status.code == 2
    assert attributes(fetch) == {"http.request.method": "GET", "http.response.status_code": 404, "posthorn.outcome": "bad_status",
                                 "error.type": "bad_status"}
    assert "canary" not in str(found) and "traceparent" not in json.dumps(links.asked).lower()


def test_a_delivery_is_a_span_around_its_fetch(service, receiver):
    url, links = service
    member, found = Member(url), {}
    hook = member.test.post("/v1/webhooks", {"url": f"{links.url}/canary?token=canary", "events": ["post.published"]}).data
    for _ in range(50):     # as above
        post = member.test.post("/v1/posts", {"caption": CAPTION, "targets": [{"platform": "gbp"}]})
        member.test.settled(post.data["id"])
        with suppress(queue.Empty):
            while "posthorn.webhook_id" not in attributes(found.get("deliver", Span())):
                span = receiver.spans.get(timeout=1)[1]
                found[span.name] = span
            break
    assert attributes(found["deliver"]) == {"posthorn.event": "post.published", "posthorn.mode": "test",
                                            "posthorn.webhook_id": hook["id"], "posthorn.outcome": "put_back",
                                            "posthorn.delivery_id": attributes(found["deliver"])["posthorn.delivery_id"]}
    assert found["fetch"].parent_span_id == found["deliver"].span_id
    assert "canary" not in str(found) and "traceparent" not in json.dumps(links.asked).lower()


def test_who_asks_not_to_be_traced_is_not(service, receiver):
    url, _ = service
    member, (unsampled, _), (sampled, trace) = Member(url), traceparent(101, "00"), traceparent(102)
    member.test.get("/v1/posts", headers=unsampled)
    member.test.get("/v1/accounts", headers={"traceparent": "not one"})
    member.test.get("/v1/clients", headers=sampled)
    seen = []
    while not seen or seen[-1].trace_id.hex() != trace:
        seen.append(receiver.spans.get(timeout=15)[1])
    assert "list_posts" not in [span.name for span in seen] and "list_accounts" in [span.name for span in seen]


def test_nothing_of_it_is_imported_unless_it_is_switched_on(environ):
    code = "import handlers.asgi, sys; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", code], env=environ, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_packages_the_service_works_and_says_what_is_missing(environ):
    code = "import sys; sys.modules['opentelemetry'] = None\nimport handlers.asgi"
    settings = {**environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], env=settings, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "pip install '.[otel]' in a clone" in done.stderr


def test_the_variables_of_opentelemetry_name_the_service(monkeypatch):
    assert otel._resource("api").attributes["service.name"] == "posthorn-api"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=ours,deployment.environment=x")
    assert otel._resource("api").attributes["service.name"] == "ours"


def test_switched_off_a_span_is_nothing():
    with tracing.span("x", {"a": 1}, parent="any", server=True) as span:
        tracing.note({"b": 2}, "y")
        assert span is None and tracing.traceparent() is None
