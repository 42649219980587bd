"""The ids of what is being done, known to every log line and trace without being handed on from call to call."""

from contextlib import contextmanager
from contextvars import ContextVar

_present: ContextVar[dict[str, str] | None] = ContextVar("posthorn_ids", default=None)


@contextmanager
def about(**ids: str | None):
    """Within it, `ids` are what is known; None counts as unknown. A thread with a copy of the context knows them as well."""
    token = _present.set({name: value for name, value in ids.items() if value is not None})
    try:
        yield
    finally:
        _present.reset(token)


def add(**ids: str) -> None:
    """Adds to what is known, for all who share it: a request's thread tells its event loop. Nothing outside of `about`."""
    if (present := _present.get()) is not None:
        present.update(ids)


def known() -> dict[str, str]:
    """What is known here, by name."""
    return _present.get() or {}
