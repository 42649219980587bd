"""Every option that the document offers reaches its network: none is described, taken and then forgotten.

A network's module in tests/networks has OPTIONS: for each option, and for such members of one as exclude each other (named as
`event/repeat/dayOfMonth`), a Content that uses it and what the stand-in must have got because of it, as a part of one of the
bodies or queries that arrived: a dict of which all members have to be there together.
Where the Content needs something on the network first, a function of the stand-in and the account gives both. ACCOUNTS, where
it is there, has functions of the stand-in that make the account for an option which not every account may use.
"""

import json
from contextlib import contextmanager
from urllib.parse import parse_qsl

import pytest

from handlers.contract import Contract, problems
from tests.scenes import LIVE, MODULES, Scene
from tests.standins.server import parse_multipart

CONTRACT = Contract()
SCHEMAS = CONTRACT.document["components"]["schemas"]
COMMON = {"account", "caption", "media"}        # which every network has, and other tests
CASES = [(name, option) for name in LIVE for option in MODULES[name].OPTIONS]
over_options = pytest.mark.parametrize("name, option", CASES, ids=["-".join(case) for case in CASES])


def names_in(schema):
    """The names of all options, with those of their members as `poll/options`."""
    schema = resolved(schema)
    if "items" in schema:
        return names_in(schema["items"])
    found = {}
    for name, inner in schema.get("properties", {}).items():
        found |= {name: None, **{f"{name}/{deeper}": None for deeper in names_in(inner)}}
    return list(found)


def resolved(schema):
    """The schema itself, where this one only refers to it."""
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def names_used(value):
    """The names in options as a caller gives them, in the same form."""
    if isinstance(value, list):
        return [name for item in value for name in names_used(item)]
    if not isinstance(value, dict):
        return []
    return [name for key, inner in value.items() for name in (key, *(f"{key}/{deeper}" for deeper in names_used(inner)))]


def schema_of(name):
    """The schema of a network's options."""
    return next(schema for title, schema in SCHEMAS.items() if title.lower() == f"{name}options")


def options_of(name):
    """The names of a network's options in the document."""
    return [option for option in names_in(schema_of(name)) if option.split("/")[0] not in COMMON]


def arrived(net):
    """What the stand-in was sent: queries, forms, the texts of multipart forms, JSON."""
    for request in net.requests:
        yield dict(request.query)
        match request.media_type:
            case "application/json":
                yield json.loads(request.body)
            case "application/x-www-form-urlencoded":
                yield dict(parse_qsl(request.body.decode(), keep_blank_values=True))
            case "multipart/form-data":
                parts = parse_multipart(request.headers["Content-Type"], request.body)
                yield {part.name: part.filename or part.data.decode() for part in parts}


def holds(value, wanted):
    """Whether all of `wanted` stands together somewhere in `value`, or in JSON that is written in it."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return holds(json.loads(value), wanted)
    if isinstance(value, list):
        return any(holds(item, wanted) for item in value)
    if not isinstance(value, dict):
        return False
    return all(key in value and value[key] == inner for key, inner in wanted.items()) or any(
        holds(inner, wanted) for inner in value.values())


def exercised(name, option, net=None, account=None):
    """The Content that uses an option, and what must arrive."""
    case = MODULES[name].OPTIONS[option]
    return case(net, account) if callable(case) else case


@pytest.mark.parametrize("name", LIVE)
def test_every_option_of_the_document_is_exercised(name):
    with MODULES[name].start() as net:
        scene, used = Scene(name, net), set()
        for option in MODULES[name].OPTIONS:
            content, _ = exercised(name, option, net, scene.account)
            assert option in names_used(content.options)
            assert problems(CONTRACT.validator(schema_of(name)), content.options, option) == []
            used |= set(names_used(content.options))
    assert used == set(options_of(name))
    assert {option for option in used if "/" not in option} <= set(MODULES[name].OPTIONS)


@contextmanager
def staged(name, option):
    """A scene on which an option may be used, the Content that does, and what must arrive."""
    with MODULES[name].start() as net:
        scene = Scene(name, net)
        if option in getattr(scene.module, "ACCOUNTS", {}):
            scene.account = scene.module.ACCOUNTS[option](net)
        yield scene, *exercised(name, option, net, scene.account)


@over_options
def test_an_option_reaches_its_network(name, option):
    with staged(name, option) as (scene, content, wanted):
        assert scene.connector.problems(content, scene.account) == []
        receipt = scene.prepared(content)
        outcome = scene.sent(content, receipt)
        if option in scene.connector.follow_options:
            scene.followed(content, receipt, outcome)
        assert any(holds(body, wanted) for body in arrived(scene.net)), f"{wanted} did not arrive"


@over_options
def test_a_killed_worker_repeats_no_step_of_an_option(name, option):
    writes = []
    for again in (False, True):
        with staged(name, option) as (scene, content, _):
            scene.sent(content, scene.prepared(content, again=again))
            writes.append(scene.writes())
    assert writes[0] == writes[1]
