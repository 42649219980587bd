"""What a request brings: its body, read to the cap and parsed strictly, and its parameters; all of it against its operation."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers

from handlers.contract import PROBLEMS, Operation, problems, shown, walk
from handlers.errors import ApiError, BadRequest, Detail, PayloadTooLarge, RequestTimeout, Unprocessable, UnsupportedMediaType
from handlers.gate import BODY_CAP

DEPTH = 50              # levels of nesting in a body; the document needs eight
VALUES = 20_000         # in a body, member names among them: each may be wrong, and each that is takes time to tell
BODY_TIME = 15.0        # seconds in which a body must have arrived


@dataclass(frozen=True)
class Incoming:
    """A request that was read and not understood yet; `refusal` is what kept its body from being read."""

    operation: Operation
    scope: dict
    headers: Headers
    raw: bytes = b""
    refusal: ApiError | None = None

    def body(self) -> Any:
        """The parsed and valid body; None where an optional one is absent. Raises what is wrong with it as an ApiError."""
        if self.refusal is not None:
            raise self.refusal
        if self.operation.body is None or (not self.raw and not self.operation.body_required):
            return None
        _check_media_type(self.headers)
        body = parse_json(self.raw)
        details = problems(self.operation.body, body, "")
        if details:
            raise Unprocessable.of(details)
        return body

    def values(self) -> dict[str, Any]:
        """Path, query and header parameters by name. Raises Unprocessable with everything that is wrong."""
        query = self.scope["query_string"].decode("latin-1")
        query = parse_qsl(query, keep_blank_values=True, encoding="utf-8", errors="surrogateescape") if query else []
        known = {parameter.name for parameter in self.operation.parameters if parameter.place == "query"}
        details = [Detail(shown(name[:100].encode("ascii", "replace").decode()), "unknown_parameter",
                          "this operation has no such query parameter") for name, _ in query if name not in known]
        values = {}
        for parameter in self.operation.parameters:
            given = self._given(parameter, query)
            if len(given) > 1:
                details.append(Detail(parameter.name, "repeated", f"{parameter.name} may be given once"))
            elif given:
                value = parameter.read(given[0])
                wrong = problems(parameter.validator, value, "")
                if wrong and parameter.place == "path":
                    value, wrong = "", []       # an id that nobody has: malformed and unknown get the same answer
                details += [Detail(parameter.name, detail.rule, detail.message) for detail in wrong]
                values[parameter.name] = value
        if details:
            raise Unprocessable.of(details[:PROBLEMS])
        return values

    def _given(self, parameter, query):
        if parameter.place == "path":
            return [self.scope["path_params"][parameter.name]]
        if parameter.place == "header":
            return self.headers.getlist(parameter.name)
        return [value for name, value in query if name == parameter.name]


async def read(operation: Operation, scope, receive) -> Incoming:
    """The request with its body. What is wrong with that waits: who asks is looked at first."""
    headers = Headers(scope=scope)
    if operation.body is None:
        return Incoming(operation, scope, headers)
    try:
        return Incoming(operation, scope, headers, raw=await _body(operation, headers, receive))
    except ApiError as refusal:
        return Incoming(operation, scope, headers, refusal=refusal)


async def _body(operation, headers, receive):
    length = headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > BODY_CAP:
        raise PayloadTooLarge(f"the body is over {BODY_CAP} bytes")
    if "content-type" in headers or operation.body_required:
        _check_media_type(headers)
    raw = await arrived(receive, BODY_CAP)
    if raw is None:
        raise BadRequest("the body ended before it was whole")
    return raw


async def arrived(receive, most: int) -> bytes | None:
    """The body of a request; of one that is larger than `most` bytes, so much that this shows.

    None when the caller has gone. Raises RequestTimeout for what does not arrive within BODY_TIME.
    """
    raw, more = b"", True
    try:
        async with asyncio.timeout(BODY_TIME):
            while more and len(raw) <= most:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                raw, more = raw + message.get("body", b""), message.get("more_body", False)
    except TimeoutError:
        raise RequestTimeout(f"the body did not arrive within {BODY_TIME:g} seconds", headers={"Connection": "close"}) from None
    return raw


def _check_media_type(headers):
    kinds = headers.getlist("content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("the Content-Type must be application/json")


def parse_json(raw: bytes) -> Any:
    """The JSON value in `raw`. Raises BadRequest for what is not JSON of RFC 8259 with unique names, 50 levels deep at most."""
    try:
        body = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_float=_number, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadRequest("the body is not UTF-8") from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply") from None
    except ValueError as error:
        raise BadRequest(str(error) if isinstance(error, _Refused) else "the body is not valid JSON") from None
    for number, (depth, _, _) in enumerate(walk(body), 1):
        if depth > DEPTH:
            raise BadRequest("the body is nested too deeply")
        if number > VALUES:
            raise BadRequest(f"the body holds more than {VALUES} values")
    return body


class _Refused(ValueError):
    """JSON that Python would take and we do not; the text may be shown."""


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("the body names a member twice in one object")
    return found


def _number(text):
    """1.0 and 1e3 are integers, in JSON Schema and for whoever sent them."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _no_constant(name):
    raise _Refused(f"{name} is not JSON")
