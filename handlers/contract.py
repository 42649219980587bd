"""The document at work: its operations, and what breaks their schemas.

Everything is compiled once at the start. Connexion loads and routes the same document; its own validation is not used,
since it takes a string "null" for null, ignores formats and answers 500 to hostile JSON.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from handlers.errors import Detail, Unprocessable

DOCUMENT = Path(__file__).parents[1] / "openapi" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")
MESSAGE_LENGTH = 300
PATH_LENGTH = 500
PROBLEMS = 100          # details in one answer; a hostile body can break more rules than anyone will read
SURROGATE = re.compile("[\ud800-\udfff]")
LAST_YEAR = 9998        # of a time, so that no offset leads out of the calendar


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


class Contract:
    """The document, compiled. Raises OSError or yaml.YAMLError when it cannot be read."""

    def __init__(self, path: Path = DOCUMENT):
        self.path = path
        self.document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.schemas = {name: _json_schema(schema) for name, schema in self.document["components"]["schemas"].items()}
        self.operations = {operation.id: operation for operation in self._operations()}
        # What each scope allows, in words: the document is the one place that tells.
        self.scopes = self.document["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]["scopes"]
        self._methods, self._patterns = {}, {}
        for path in self.document["paths"]:
            methods = {operation.method for operation in self.operations.values() if operation.path == path}
            allowed = sorted(methods | ({"HEAD"} if "GET" in methods else set()))
            self._methods[path] = allowed
            if "{" in path:
                self._patterns[re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path))] = allowed

    def methods(self, path: str) -> list[str]:
        """The methods that the document allows at `path`, HEAD with every GET; empty for an unknown path."""
        # Literal paths come first: /v1/ideas/today is not the idea "today".
        known = self._methods.get(path)
        return known or next((methods for pattern, methods in self._patterns.items() if pattern.fullmatch(path)), [])

    def validator(self, schema: dict):
        """A compiled validator for `schema`, which may refer to the components of the document."""
        schema = _json_schema(schema)
        whole = {**schema, "components": {"schemas": self._reachable(schema, {})}}
        return jsonschema_rs.Draft202012Validator(whole, validate_formats=True, mask="the value")

    def _reachable(self, schema, found):
        """The component schemas that `schema` refers to, over any number of steps: what each validator keeps in memory."""
        for _, _, name in walk(schema):
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
        return Operation(
            id=spec["operationId"], method=method.upper(), path=path, tag=spec["tags"][0], scope=spec.get("x-required-scope"),
            limit=spec.get("x-rate-limit", "requests"),
            public=spec.get("security") == [], parameters=tuple(self._parameter(one) for one in [*shared, *spec.get("parameters", [])]),
            body=self.validator(media["schema"]) if media else None, body_required=body.get("required", False))

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


def walk(value):
    """Every value inside `value`, member names among them, with its depth and its place: None, or the place around it and a
    name or number. Without recursion, and without a text for each place: nesting and names are the sender's choice."""
    waiting = [(0, None, value)]
    while waiting:
        depth, place, item = waiting.pop()
        yield depth, place, item
        if isinstance(item, dict):
            waiting += [(depth + 1, place, name) for name in item]
            waiting += [(depth + 1, (place, name), inner) for name, inner in item.items()]
        elif isinstance(item, list):
            waiting += [(depth + 1, (place, position), inner) for position, inner in enumerate(item)]


def problems(validator, value, base: str) -> list[Detail]:
    """Every way in which `value` breaks the validator's schema, as Details whose paths start with `base`."""
    # Half a surrogate pair is no text: no pattern sees it, the compiled validators choke on it, and PostgreSQL refuses it.
    broken = (place for _, place, item in walk(value) if isinstance(item, str) and SURROGATE.search(item))
    found = [Detail((base + _pointer(_parts(place)))[:PATH_LENGTH], "unicode", "half a surrogate pair is no character")
             for place in islice(broken, PROBLEMS)]
    if not found:
        found = [Detail(base + _pointer(error.instance_path), _rule(error), shown(error.message[:MESSAGE_LENGTH]))
                 for error in islice(validator.iter_errors(value), PROBLEMS)]
    return found


def _parts(place):
    parts = []
    while place is not None:
        place, part = place
        parts.append(part)
    return reversed(parts)


def _pointer(parts):
    return "".join("/" + _escape(str(part)[:PATH_LENGTH]) for part in parts)[:PATH_LENGTH]


def _escape(name):
    return shown(name.encode("utf-8", "replace").decode().replace("~", "~0").replace("/", "~1"))


def shown(text):
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
    branches = [{"if": {"type": "object", "properties": {name: {"const": value}}, "required": [name]}, "then": {"$ref": schema}}
                for value, schema in mapping.items()]
    return {"type": "object", "required": [name], "properties": {name: {"enum": list(mapping)}}, "allOf": branches}


def parse_span(since: str | None, until: str | None, base: str = "") -> tuple[datetime | None, datetime | None]:
    """The times of a `from` and a `to`, None for what is absent. Raises Unprocessable, also where the first is after the second."""
    since, until = (text and parse_time(text, base + name) for name, text in (("from", since), ("to", until)))
    if since and until and since > until:
        raise Unprocessable.of([Detail(f"{base}from", "order", "from is after to")])
    return since, until


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
