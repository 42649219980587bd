"""Where spans are made: nothing comes of them, and next to nothing is spent, unless traces are switched on (handlers/otel.py).

Attributes hold ids, names of ours and outcomes; never captions, credentials or addresses with a query.
"""

from contextlib import AbstractContextManager, nullcontext

_OFF = nullcontext()
_tracer = None


def switch_on(tracer) -> None:
    """From now on spans go to `tracer`, which has the three functions below as its methods; None switches off."""
    global _tracer
    _tracer = tracer


def switched_on() -> bool:
    """Whether anything comes of spans."""
    return _tracer is not None


def span(name: str, attributes: dict | None = None, *, parent: str | None = None,
         server: bool = False) -> AbstractContextManager:
    """A span around a piece of work, inside the one around it, or in the trace of `parent`, a W3C traceparent.

    `server`: somebody outside asked for this work. What ends it by an exception marks it as failed, with its kind alone.
    """
    return _OFF if _tracer is None else _tracer.span(name, attributes or {}, parent=parent, server=server)


def note(attributes: dict, name: str | None = None) -> None:
    """Adds to the innermost span what is known only now: attributes, and its name."""
    if _tracer is not None:
        _tracer.note(attributes, name)


def traceparent() -> str | None:
    """The innermost span as a W3C traceparent, for whoever goes on with this later; None where nothing is traced."""
    return None if _tracer is None else _tracer.traceparent()
