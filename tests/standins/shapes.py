"""Closed JSON bodies as compact tables: what a network takes, and where a body differs from it.

A shape is a type, a compiled pattern (of a string), a set of values, a Range of integers, a List, or a dict of fields whose
names end in "!" where they are required.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class List:
    """A list of `least` to `most` items of one shape."""

    item: object
    least: int = 0
    most: int = 10_000


@dataclass(frozen=True)
class Range:
    """An integer from `least` to `most`."""

    least: int
    most: int


@dataclass(frozen=True)
class Text:
    """A string of `least` to `most` code points."""

    least: int
    most: int


def wrongs(value, shape, path="") -> list[str]:
    """The paths, with dots, at which `value` is not of `shape`; [] where all is well."""
    match shape:
        case dict():
            return _fields(value, shape, path)
        case List(item, least, most):
            if not isinstance(value, list) or not least <= len(value) <= most:
                return [path]
            return [wrong for place, one in enumerate(value) for wrong in wrongs(one, item, f"{path}.{place}")]
        case Range(least, most):
            right = type(value) is int and least <= value <= most
        case Text(least, most):
            right = isinstance(value, str) and least <= len(value) <= most
        case set():
            right = isinstance(value, str) and value in shape
        case re.Pattern():
            right = isinstance(value, str) and shape.fullmatch(value) is not None
        case _:
            right = type(value) is shape
    return [] if right else [path]


def _fields(value, shape, path):
    if not isinstance(value, dict):
        return [path]
    shapes = {name.rstrip("!"): one for name, one in shape.items()}
    missing = [name[:-1] for name in shape if name.endswith("!") and name[:-1] not in value]
    found = [f"{path}.{name}" for name in (*missing, *(value.keys() - shapes.keys()))]
    return [wrong.lstrip(".") for wrong in found + [wrong for name in value.keys() & shapes.keys()
                                                    for wrong in wrongs(value[name], shapes[name], f"{path}.{name}")]]
