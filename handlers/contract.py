"""The document at work: which operation a request is, and whether its parameters and body are what the document says.

Everything is compiled once at the start. Connexion loads and routes the same document; its own validation is not used,
since it takes a string "null" for null, ignores formats and answers 500 to hostile JSON.
"""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs
import yaml
from starlette.datastructures import Headers

from handlers.errors import BadRequest, Detail, PayloadTooLarge, Unprocessable, UnsupportedMediaType
from handlers.exchange import exchange_of
from handlers.gate import BODY_CAP

DOCUMENT = Path(__file__).parents[1] / "openapi" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")
MESSAGE_LENGTH = 300
PATH_LENGTH = 500
PROBLEMS = 100          # details in one answer; a hostile body can break more rules than anyone will read
SURROGATE = re.compile("[\ud800-\udfff]")
LAST_YEAR = 9998        # of a time, so that no offset leads out of the calendar
DEPTH = 50              # levels of nesting in a body; the document needs eight


@dataclass(frozen=True)
class Parameter:
    """One path, query or header parameter."""

    name: str
    place: str
    kind: str
    required: bool
    validator: Any

    def read(self, text):
        """The value that `text` stands for; the text itself where it is no such value, for the schema to refuse."""
        if self.kind == "integer" and re.fullmatch(r"-?[0-9]{1,15}", text):
            return int(text)
        return text


@dataclass(frozen=True)
class Operation:
    """One operation of the document, compiled."""

    id: str
    method: str
    path: str
    tag: str
    scope: str | None
    limit: str
    public: bool
    parameters: tuple[Parameter, ...]
    body: Any = None
    body_required: bool = False
    pattern: Any = field(default=None, repr=False)


class Contract:
    """The document, compiled. Raises OSError or yaml.YAMLError when it cannot be read."""

    def __init__(self, path: Path = DOCUMENT):
        self.path = path
        self.document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.schemas = {name: _json_schema(schema) for name, schema in self.document["components"]["schemas"].items()}
        self.operations = {operation.id: operation for operation in self._operations()}
        # What each scope allows, in words: the document is the one place that tells.
        self.scopes = self.document["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]["scopes"]
        # Literal paths come first: /v1/ideas/today is not the idea "today".
        self._routes = sorted(self.operations.values(), key=lambda operation: "{" in operation.path)

    def methods(self, path: str) -> list[str]:
        """The methods that the document allows at `path`, HEAD with every GET; empty for an unknown path."""
        found = next((operation.path for operation in self._routes if operation.pattern.fullmatch(path)), None)
        methods = {operation.method for operation in self._routes if operation.path == found}
        return sorted(methods | ({"HEAD"} if "GET" in methods else set()))

    def of(self, scope) -> Operation | None:
        """The operation that Connexion routed this ASGI scope to; None where it is none."""
        return self.operations.get(scope["extensions"]["connexion_routing"]["operation_id"])

    def validator(self, schema: dict):
        """A compiled validator for `schema`, which may refer to the components of the document."""
        schema = _json_schema(schema)
        whole = {**schema, "components": {"schemas": self._reachable(schema, {})}}
        return jsonschema_rs.Draft202012Validator(whole, validate_formats=True, mask="the value")

    def _reachable(self, schema, found):
        """The component schemas that `schema` refers to, over any number of steps: what each validator keeps in memory."""
        for _, _, name in _walk(schema):
            name = name.removeprefix("#/components/schemas/") if isinstance(name, str) else None
            if name in self.schemas and name not in found:
                found[name] = self.schemas[name]
                self._reachable(found[name], found)
        return found

    def _operations(self):
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield self._operation(path, method, item[method], item.get("parameters", []))

    def _operation(self, path, method, spec, shared):
        body = spec.get("requestBody", {})
        media = body.get("content", {}).get("application/json")
        pattern = re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path))
        return Operation(
            id=spec["operationId"], method=method.upper(), path=path, tag=spec["tags"][0], scope=spec.get("x-required-scope"),
            limit=spec.get("x-rate-limit", "requests"),
            public=spec.get("security") == [], parameters=tuple(self._parameter(one) for one in [*shared, *spec.get("parameters", [])]),
            body=self.validator(media["schema"]) if media else None, body_required=body.get("required", False), pattern=pattern)

    def _parameter(self, spec):
        spec = self._resolve(spec)
        kind = self._resolve(spec["schema"]).get("type")
        return Parameter(spec["name"], spec["in"], kind, spec.get("required", False), self.validator(spec["schema"]))

    def _resolve(self, node):
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node


class Validation:
    """Checks the request against its operation and leaves the values in the exchange. After routing and security."""

    def __init__(self, app, contract):
        self.app, self.contract = app, contract

    async def __call__(self, scope, receive, send):
        operation = self.contract.of(scope) if scope["type"] == "http" else None
        if operation is not None:
            exchange, headers = exchange_of(scope), Headers(scope=scope)
            if operation.body is not None:
                exchange.body = await _body(operation, headers, receive)
            if not operation.public:
                exchange.values = _values(operation, scope, headers)
            # What Connexion takes for a form it parses once more by itself, and breaks on one without a boundary.
            scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"content-type"]}
        await self.app(scope, receive, send)


async def _body(operation, headers, receive):
    """The parsed and valid body; None where an optional one is absent."""
    length = headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > BODY_CAP:
        raise PayloadTooLarge(f"the body is over {BODY_CAP} bytes")
    raw = b""
    kind = headers.get("content-type")
    if kind is not None or operation.body_required:
        _check_media_type(kind, headers.getlist("content-type"))
    more = True
    while more:
        message = await receive()
        raw += message.get("body", b"")
        more = message.get("more_body", False)
    if not raw and not operation.body_required:
        return None
    _check_media_type(kind, headers.getlist("content-type"))
    body = parse_json(raw)
    details = problems(operation.body, body, "")
    if details:
        raise Unprocessable.of(details)
    return body


def _check_media_type(kind, all_of_them):
    if kind is None or len(all_of_them) > 1 or kind.partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("the Content-Type must be application/json")


def _values(operation, scope, headers):
    """Path, query and header parameters by name. Raises Unprocessable with everything that is wrong."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, encoding="utf-8", errors="surrogateescape")
    known = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
    details = [Detail(_shown(name[:100].encode("ascii", "replace").decode()), "unknown_parameter",
                      "this operation has no such query parameter") for name, _ in query if name not in known]
    values = {}
    for parameter in operation.parameters:
        given = _given(parameter, scope, query, headers)
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


def _given(parameter, scope, query, headers):
    if parameter.place == "path":
        return [scope["path_params"][parameter.name]]
    if parameter.place == "header":
        return headers.getlist(parameter.name)
    return [value for name, value in query if name == parameter.name]


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
    if any(depth > DEPTH for depth, _, _ in _walk(body)):
        raise BadRequest("the body is nested too deeply")
    return body


def _walk(value):
    """Every value inside `value` with its depth and pointer. Without recursion: the nesting is the sender's choice."""
    waiting = [(0, "", value)]
    while waiting:
        depth, path, item = waiting.pop()
        yield depth, path, item
        if isinstance(item, dict):
            waiting += [(depth + 1, path, name) for name in item]
            waiting += [(depth + 1, f"{path}/{_escape(name)}", inner) for name, inner in item.items()]
        elif isinstance(item, list):
            waiting += [(depth + 1, f"{path}/{position}", inner) for position, inner in enumerate(item)]


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


def problems(validator, value, base: str) -> list[Detail]:
    """Every way in which `value` breaks the validator's schema, as Details whose paths start with `base`."""
    # Half a surrogate pair is no text: no pattern sees it, the compiled validators choke on it, and PostgreSQL refuses it.
    found = [Detail((base + path)[:PATH_LENGTH], "unicode", "half a surrogate pair is no character")
             for _, path, item in _walk(value) if isinstance(item, str) and SURROGATE.search(item)]
    if not found:
        found = [Detail(base + _pointer(error.instance_path), _rule(error), _shown(error.message[:MESSAGE_LENGTH]))
                 for error in islice(validator.iter_errors(value), PROBLEMS)]
    return found[:PROBLEMS]


def _pointer(path):
    return "".join("/" + _escape(str(part)) for part in path)[:PATH_LENGTH]


def _escape(name):
    return _shown(name.encode("utf-8", "replace").decode().replace("~", "~0").replace("/", "~1"))


def _shown(text):
    """`text` without NUL: a sender may have named a member so, and our answers promise to hold none."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _rule(error):
    rule = next((part for part in reversed(error.schema_path) if isinstance(part, str)), "schema")
    return rule if rule.isalpha() else "schema"


def _json_schema(node):
    """OpenAPI 3.0.3 in terms of JSON Schema 2020-12: nullable becomes a type, a discriminator a chain of conditions."""
    if isinstance(node, list):
        return [_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "discriminator" in node:
        return _discriminated(node["discriminator"])
    out = {name: _json_schema(value) for name, value in node.items() if name not in ("nullable", "example", "default")}
    if node.get("nullable") and "type" in out:
        out["type"] = [out["type"], "null"]
    return out


def _discriminated(discriminator):
    # Only the branch that the value names is judged, so that an error names a member and not "none of eleven schemas".
    name, mapping = discriminator["propertyName"], discriminator["mapping"]
    branches = [{"if": {"properties": {name: {"const": value}}, "required": [name]}, "then": {"$ref": schema}}
                for value, schema in mapping.items()]
    return {"type": "object", "required": [name], "properties": {name: {"enum": list(mapping)}}, "allOf": branches}


def parse_time(text: str, path: str) -> datetime:
    """The time, in UTC, that a schema-valid DateTime stands for. Raises Unprocessable for what no calendar has."""
    try:
        # PostgreSQL takes no offset of 16 hours or more, which RFC 3339 does.
        at = datetime.fromisoformat(text.replace("z", "Z").replace("t", "T")).astimezone(UTC)
    except (ValueError, OverflowError):
        at = None
    if at is None or at.year > LAST_YEAR:
        wrong = f"there is no such time before {LAST_YEAR + 1}; leap seconds are not taken"
        raise Unprocessable.of([Detail(path, "date_time", wrong)])
    return at
