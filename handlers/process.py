"""What commands share: where things are kept, how they log, and what ends them."""

import ctypes
import logging
import os
import signal
import sys
import traceback
import warnings
from pathlib import Path

import click
import platformdirs

from handlers.config import environment
from handlers.redaction import Redacting, secrets_of

PR_SET_PDEATHSIG = 1    # linux/prctl.h


def settle(tied: bool) -> None:
    """Logs plain lines to stderr; `tied` has the kernel end this process when its parent dies (on Linux)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Discreet("%(asctime)s %(levelname)s %(name)s: %(message)s", secrets=secrets_of(environment())))
    logging.basicConfig(level="INFO", handlers=[handler])
    logging.getLogger("connexion").setLevel("ERROR")
    # Connexion imports a test client that nobody here uses, and its own dependency complains.
    warnings.filterwarnings("ignore", message="Using `httpx` with `starlette.testclient`")
    if tied:
        end_with_parent()


def end_with_parent() -> None:
    """Has the kernel end this process when its parent dies, on Linux; a fork starts without that."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit("the process that started this one is gone")


class Discreet(Redacting):
    """Logs of an exception its kind and where it was raised, and not its words: a database's hold the values of the row."""

    def formatException(self, info):
        """Called by logging."""
        lines, error = [], info[1]
        while error is not None:
            lines = [*traceback.format_tb(error.__traceback__), f"{type(error).__module__}.{type(error).__qualname__}\n", *lines]
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "".join(lines).rstrip()


def _absolute(context, parameter, value):
    # macOS keeps user data below "Application Support", and PostgreSQL's start-up takes no blank in the path of its socket.
    usual = Path.home() / ".posthorn" if sys.platform == "darwin" else Path(platformdirs.user_data_dir("posthorn", appauthor=False))
    return (value or usual).expanduser().resolve()


data_dir_option = click.option("--data-dir", type=click.Path(path_type=Path), callback=_absolute,
                               help="Where `posthorn up` keeps everything (a directory of your own by default).")
