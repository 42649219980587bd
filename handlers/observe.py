"""What is told of every request, right inside the gate: a line in the log, the figures for Prometheus, and a span.

A request goes by the id of its operation, or by a path that we know; never by what somebody else wrote.
"""

import contextlib
import logging
import time

from prometheus_client import Counter, Gauge, Histogram
from starlette.datastructures import Headers

from handlers.exchange import exchange_of
from handlers.files import PREFIX
from handlers.logs import ACCESS
from storage import ids, tracing

IN_FLIGHT = Gauge("posthorn_api_in_flight", "Requests that are being answered.", multiprocess_mode="livesum")
REQUESTS = Counter("posthorn_api_requests", "Requests, by operation and class of the status.", ["operation", "status"])
SECONDS = Histogram("posthorn_api_request_seconds", "From a request's head to the end of its answer.", ["operation"],
                    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60))
REFUSALS = Counter("posthorn_api_refusals", "Answers from 400 on: 429 for a limit, 408, 413, 415 and 422 for a body.",
                   ["status"])

OFF = contextlib.nullcontext()

log = logging.getLogger(ACCESS)


class Observe:
    """Watches requests go by. `paths` are those that answer beside the operations and the files.

    `counting`: whether anybody can ask for the figures.
    """

    def __init__(self, app, paths, counting):
        self.app, self.paths, self.counting = app, frozenset(paths), counting
        self._seconds, self._requests = {}, {}      # looking a child up by its labels takes longer than counting

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        exchange, began, status = exchange_of(scope), time.perf_counter(), 0

        async def watched(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        counted = IN_FLIGHT.track_inprogress() if self.counting else OFF
        with ids.about(request_id=exchange.request_id), self._span(scope), counted:
            try:
                await self.app(scope, receive, watched)
            finally:
                self._tell(scope, exchange, status, time.perf_counter() - began)

    def _span(self, scope):
        parent = Headers(scope=scope).get("traceparent") if tracing.switched_on() else None
        return tracing.span("request", parent=parent, server=True)

    def _tell(self, scope, exchange, status, seconds):
        """`status` 0: they were gone before an answer began."""
        operation = exchange.operation
        route = operation.path if operation else self._route(scope["path"])
        name = operation.id if operation else route
        if self.counting:
            self._count(name, status, seconds)
        tracing.note({"http.request.method": scope["method"], "http.route": route, "http.response.status_code": status,
                      "posthorn.request_id": exchange.request_id}, name)
        # Health is asked for every few seconds, and that it is well is no news.
        if log.isEnabledFor(logging.INFO) and not (operation and operation.public and status < 400):
            fields = {"method": scope["method"], "operation": name, "route": route, "status": status,
                      "ms": round(seconds * 1000, 1)}
            if exchange.caller:
                fields["credential_id"] = exchange.caller.credential_id
            log.info("request", extra={"fields": fields})

    def _count(self, name, status, seconds):
        kind = f"{status // 100}xx" if status else "none"
        counter = self._requests.get((name, kind))
        if counter is None:
            counter = self._requests[name, kind] = REQUESTS.labels(name, kind)
            self._seconds[name] = SECONDS.labels(name)
        counter.inc()
        self._seconds[name].observe(seconds)
        if status >= 400:
            REFUSALS.labels(str(status)).inc()

    def _route(self, path):
        return path if path in self.paths else PREFIX if path.startswith(PREFIX) else "none"
