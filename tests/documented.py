"""Whether the headers of an answer are those that the document declares for it; and the paths of its operations."""

import re
from functools import cache

from handlers.contract import Contract, problems

CONTRACT = Contract()
# What HTTP itself and the guard against sniffing add to every answer.
OWN = {"date", "content-type", "content-length", "connection", "x-content-type-options", "vary"}
ALWAYS = {"x-request-id", "cache-control"}
ALLOWANCE = {"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"}


def on(id_, path):
    """A path of the document with `id_` in the place of each id."""
    return re.sub(r"\{\w+\}", id_, path)


def as_documented(operation_id, answer, *, known=True):
    """That every header sent is declared and valid, and every promised one is there; `known`: to a caller with a credential."""
    declared = _declared(operation_id, answer.status)
    sent = {name.lower(): value for name, value in answer.headers.items() if name.lower() not in OWN}
    assert sent.keys() <= declared.keys(), (operation_id, answer.status)
    for name, value in sent.items():
        validator, kind, _ = declared[name]
        assert problems(validator, int(value) if kind == "integer" else value, "") == [], (name, value)
    promised = ALWAYS | {name for name, (_, _, required) in declared.items() if required} | (ALLOWANCE if known else set())
    assert sent.keys() >= promised, (operation_id, answer.status)
    assert known or not ALLOWANCE & sent.keys()
    return True


@cache
def _declared(operation_id, status):
    operation = CONTRACT.operations[operation_id]
    answer = _found(CONTRACT.document["paths"][operation.path][operation.method.lower()]["responses"][str(status)])
    headers = {name.lower(): _found(header) for name, header in answer["headers"].items()}
    return {name: (CONTRACT.validator(header["schema"]), header["schema"]["type"], header.get("required", False))
            for name, header in headers.items()}


def _found(node):
    while "$ref" in node:
        _, kind, name = node["$ref"].removeprefix("#/").split("/")
        node = CONTRACT.document["components"][kind][name]
    return node
