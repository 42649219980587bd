"""How every process of ours logs, API, worker and commands alike: to stderr, one JSON object a line, or text for people.

No line holds a secret, and none can be forged: what would break or colour it is written as an escape.
"""

import errno
import logging
import os
import re
import sys
import threading
import warnings
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb

import orjson

from handlers.config import ConfigError, LogSettings
from handlers.redaction import redacted
from storage import ids

ROOT = Path(__file__).parents[1]
ACCESS = "posthorn.access"
SHORT = 64          # characters of texts that come again and again: names, routes, ids
# Names of our own errors whose words are safe to show, and needed: they name a setting and never its value.
SPOKEN = (ConfigError,)


def set_up(settings: LogSettings) -> None:
    """Sends all that is logged in this process to stderr, and what ends it unexpectedly as well."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(settings))
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)
    logging.getLogger("posthorn").setLevel(settings.level.upper())
    logging.getLogger(ACCESS).disabled = not settings.access
    # Each try that fails, several of which may be nothing but a server that starts; what comes of them is told by who asked.
    logging.getLogger("urllib3").setLevel("ERROR")
    logging.getLogger("connexion").setLevel("ERROR")
    sys.excepthook = _ended
    threading.excepthook = lambda told: _ended(told.exc_type, told.exc_value, told.exc_traceback)
    # What no line of ours tells need not be found out for each: it takes as long as all the rest.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = logging.logAsyncioTasks = False
    logging._srcfile = None
    # Connexion imports a test client that nobody here uses, and its own dependency complains.
    warnings.filterwarnings("ignore", message="Using `httpx` with `starlette.testclient`")


def formatter(settings: LogSettings) -> logging.Formatter:
    """What makes a line of a record: text in a terminal, JSON elsewhere, unless the settings say which."""
    text = settings.format == "text" or settings.format == "auto" and sys.stderr.isatty()
    return (TextLines if text else JsonLines)(settings.secrets)


def _ended(kind, error, trace):
    logging.getLogger("posthorn").critical("ended by an error that nobody expected", exc_info=(kind, error, trace))


class Lines(logging.Formatter):
    """What both kinds of lines share."""

    def __init__(self, secrets=()):
        super().__init__()
        self._secrets = tuple(secrets)
        self._clean_short = lru_cache(1000)(self._clean)

    def clean(self, text: str) -> str:
        """`text` without secrets, and with escapes for what does not print: ends of lines, colours, changes of direction."""
        return (self._clean_short if len(text) <= SHORT else self._clean)(text)

    def _clean(self, text):
        text = redacted(text, self._secrets)
        return text if text.isprintable() else re.sub(r"[^ -~]", _escape, text)

    def cleaned(self, values: dict) -> dict:
        """`values` with their texts cleaned."""
        return {name: self.clean(value) if isinstance(value, str) else value for name, value in values.items()}

    def context(self, record) -> dict:
        """The ids that were known, and what else the line tells by name."""
        return {**ids.known(), **getattr(record, "fields", {})}


class JsonLines(Lines):
    """One JSON object a line: time, level, logger, message, ids, and of an exception its kind and places."""

    def format(self, record):
        """Called by logging."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told = {"time": at[:-6] + "Z", **self.cleaned({"level": record.levelname, "logger": record.name,
                                                       "message": record.getMessage(), **self.context(record)})}
        if record.exc_info and record.exc_info[1]:
            told["exception"] = [{"kind": self.clean(kind), "place": places[-1] if places else None, "trace": places}
                                 for kind, places in _chain(record.exc_info[1])]
        return orjson.dumps(told, default=str).decode()


class TextLines(Lines):
    """A line for people, with ids at its end; of an exception its kind and places on lines of their own, further in."""

    def format(self, record):
        """Called by logging."""
        at = datetime.fromtimestamp(record.created).astimezone().isoformat(" ", timespec="milliseconds")
        told = self.cleaned({"message": record.getMessage(), **self.context(record)})
        line = f"{at} {record.levelname} {record.name}: {told.pop('message')}"
        if told:
            line += " [" + " ".join(f"{name}={value}" for name, value in told.items()) + "]"
        if record.exc_info and record.exc_info[1]:
            for kind, places in _chain(record.exc_info[1]):
                line += "".join(f"\n    {place}" for place in places) + f"\n  {self.clean(kind)}"
        return line


def _chain(error):
    """(kind, places) of an exception and of those that led to it, these first.

    Without its words: a database's hold the values of the row.
    """
    found = []
    while error is not None:
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        found.insert(0, (kind + _spoken(error), [_place(*step) for step in walk_tb(error.__traceback__)]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def _spoken(error):
    """What is safe to tell of an error: of the system's own, which one it is, and not the name of the file."""
    if isinstance(error, SPOKEN):
        return f": {error}"
    if isinstance(error, OSError) and type(error).__module__ == "builtins" and error.errno in errno.errorcode:
        return f": {errno.errorcode[error.errno]}, {os.strerror(error.errno)}"
    return ""


def _place(frame, line):
    # Not by traceback.extract_tb, which reads the files of all these places, and keeps them in memory for ever.
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line} in {frame.f_code.co_name}"


def _escape(match):
    """Letters of any script stay as they are."""
    character = match[0]
    return character if character.isprintable() else character.encode("unicode_escape").decode()
