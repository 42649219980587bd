"""The outermost layers of the API: what every answer carries, and what is refused before any operation is looked up."""

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders

from handlers.errors import (BadRequest, ExpectationFailed, HeadersTooLarge, MethodNotAllowed, NotFound, PayloadTooLarge,
                             UnsupportedMediaType)
from handlers.exchange import KEY, Exchange

BODY_CAP = 262_144      # bytes of a JSON body
HEADERS = 100
HEADER_CAP = 16_384     # bytes of the name and value of one header
VERSIONS = ("1.1", "1.0")
HOST = re.compile(r"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{0,5})?")
REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Gate:
    """Gives the request its id, and every answer its headers; cuts a body off at the cap while it streams in."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        asked = Headers(scope=scope).get("x-request-id", "")
        exchange = Exchange(asked if REQUEST_ID.fullmatch(asked) else secrets.token_hex(8))
        received = 0

        async def capped():
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > BODY_CAP:
                raise PayloadTooLarge(f"the body is over {BODY_CAP} bytes")
            return message

        async def dressed(message):
            if message["type"] == "http.response.start":
                _dress(MutableHeaders(scope=message), exchange)
            await send(message)

        await self.app({**scope, KEY: exchange}, capped, dressed)


class Paths:
    """Refuses paths and methods that nothing answers, and HTTP that this API does not speak. Inside the error handler.

    `methods` tells those of a path.
    """

    def __init__(self, app, methods):
        self.app, self.methods = app, methods

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self._check_http(scope, headers)
            self._check_path(scope)
            self._check_terms(headers)
        await self.app(scope, receive, send)

    def _check_http(self, scope, headers):
        if len(headers.raw) > HEADERS or any(len(name) + len(value) > HEADER_CAP for name, value in headers.raw):
            raise HeadersTooLarge(f"at most {HEADERS} headers of {HEADER_CAP} bytes each are taken")
        if scope["http_version"] not in VERSIONS:
            raise BadRequest("the version of HTTP must be 1.1 or 1.0")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
            raise BadRequest("exactly one Host header is needed, with a name or an address")

    def _check_path(self, scope):
        method, path = scope["method"], scope["path"]
        # A slash that is written as an escape parts nothing: what a proxy took for one name is not several to us.
        methods = [] if b"%2f" in scope["raw_path"].lower() else self.methods(path)
        if not methods:
            raise NotFound("there is nothing at this path")
        if method not in methods:
            raise MethodNotAllowed(f"this path takes {', '.join(methods)}", headers={"Allow": ", ".join(methods)})

    def _check_terms(self, headers):
        if any(value.lower() != "100-continue" for value in headers.getlist("expect")):
            raise ExpectationFailed("the only expectation that can be met is 100-continue")
        if any(value.lower() != "identity" for value in headers.getlist("content-encoding")):
            raise UnsupportedMediaType("bodies are taken without a Content-Encoding")


def _dress(headers, exchange):
    headers["X-Request-Id"] = exchange.request_id
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Cache-Control", "no-store")
    allowance = exchange.allowance
    if allowance is not None:
        headers["RateLimit-Limit"] = str(allowance.limit)
        headers["RateLimit-Remaining"] = str(allowance.remaining)
        headers["RateLimit-Reset"] = str(allowance.reset)
