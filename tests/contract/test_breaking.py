"""Whoever builds on the released document can go on building on this one."""

import copy
import json
from functools import reduce

import pytest
import yaml

from tests.contract.tools import DOCUMENT, node

RELEASED = sorted((DOCUMENT.parent / "released").glob("*.yaml"), key=lambda path: tuple(map(int, path.stem.split("."))))


def read(path):
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


BEFORE = read(RELEASED[-1])
POST, LIST, SCHEMAS = ("paths", "/v1/posts", "post"), ("paths", "/v1/posts", "get"), ("components", "schemas")
GONE = object()


def broken(after):
    """What breaks between the released document and `after`, one sentence each."""
    run = node("breaking.mjs", given=json.dumps({"before": BEFORE, "after": after}))
    assert run.stderr == "" and run.returncode == bool(run.stdout), run.stderr
    return run.stdout.splitlines()


def changed(*change):
    """The released document with one value changed: the way to it, and what it becomes (a value, GONE, or by a function)."""
    *way, name, value = change
    document = copy.deepcopy(BEFORE)
    node = reduce(lambda node, step: node[step], way, document)
    node[name] = value(node.get(name)) if callable(value) else value
    if value is GONE:
        del node[name]
    return document


def named(change):
    """The way of a change, for the name of its test."""
    return " ".join(step for step in change if isinstance(step, str))


def more(*values):
    """Values at the end of a list."""
    return lambda old: [*old, *values]


def less(value):
    """A list without a value."""
    return lambda old: [item for item in old if item != value]


def test_nothing_breaks_the_released_contract():
    assert broken(read(DOCUMENT)) == []


def test_the_version_is_the_released_one_or_a_later_one_that_breaks_nothing():
    now, then = (tuple(map(int, document["info"]["version"].split("."))) for document in (read(DOCUMENT), BEFORE))
    assert BEFORE["info"]["version"] == RELEASED[-1].stem
    assert now >= then and now[0] == then[0]


@pytest.mark.parametrize("change", [
    ("paths", "/v1/ideas/today", GONE),
    ("paths", "/v1/posts/{id}", "delete", GONE),
    (*POST, "responses", lambda old: {"200" if status == "202" else status: answer for status, answer in old.items()}),
    (*POST, "responses", "202", "headers", "Location", GONE),
    (*POST, "operationId", "create_post"),
    (*POST, "x-required-scope", "posts:read"),
    ("paths", "/v1/health", "get", "security", GONE),
    (*LIST, "parameters", lambda old: [one for one in old if one.get("name") != "status"]),
    (*LIST, "parameters", lambda old: [{**one, "required": True} if one.get("name") == "status" else one for one in old]),
    (*LIST, "parameters", more({"name": "q", "in": "query", "required": True, "schema": {"type": "string"}})),
    (*SCHEMAS, "MediaRecord", "properties", "width", GONE),
    (*SCHEMAS, "GeneratedCaption", "properties", "tokensUsed", {"type": "string", "maxLength": 9}),
    (*SCHEMAS, "PostOperation", "required", less("status")),
    (*SCHEMAS, "PublishRequest", "properties", "clientId", GONE),
    (*SCHEMAS, "InstagramOptions", "properties", "altTexts", GONE),
    (*SCHEMAS, "GenerateRequest", "required", more("tone")),
    (*SCHEMAS, "GenerateRequest", "properties", "topic", "maxLength", 100),
    (*SCHEMAS, "Tone", "enum", less("witty")),
    (*SCHEMAS, "PlatformId", "enum", less("gbp")),
    (*SCHEMAS, "MastodonPostType", "enum", less("poll")),
    (*SCHEMAS, "Target", "oneOf", lambda old: old[:-1]),
    (*SCHEMAS, "UpdateIdeaRequest", "properties", "platform", "oneOf", lambda old: old[:-1]),
    (*SCHEMAS, "UpdateIdeaRequest", "properties", "platform", "oneOf", [{"type": "string", "enum": ["gbp"]}, {"type": "string"}]),
], ids=named)
def test_a_change_that_breaks_is_found(change):
    assert broken(changed(*change))


@pytest.mark.parametrize("change", [
    ("paths", "/v1/new", {"get": {**BEFORE["paths"]["/v1/health"]["get"], "operationId": "get_new"}}),
    (*LIST, "parameters", more({"name": "q", "in": "query", "schema": {"type": "string"}})),
    (*SCHEMAS, "MediaRecord", "properties", "codec", {"type": "string", "maxLength": 9}),
    (*SCHEMAS, "GenerateRequest", "properties", "length", {"type": "integer", "minimum": 1}),
    (*SCHEMAS, "GenerateRequest", "properties", "topic", "maxLength", 3000),
    (*SCHEMAS, "Tone", "enum", more("sober")),
    (*SCHEMAS, "PlatformId", "enum", more("peertube")),
    (*SCHEMAS, "Caption", "description", "Other words."),
], ids=named)
def test_what_the_contract_lets_grow_may_grow(change):
    assert broken(changed(*change)) == []
