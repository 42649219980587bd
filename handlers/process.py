"""What commands share: where things are kept, how memory is taken, and what ends them."""

import contextlib
import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
import platformdirs

from handlers.config import ConfigError

PR_SET_PDEATHSIG = 1    # linux/prctl.h
M_ARENA_MAX = -8        # glibc's malloc.h


def end_with_parent() -> None:
    """Has the kernel end this process when its parent dies, on Linux; a fork starts without that."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit("the process that started this one is gone")


def share_arenas() -> None:
    """Has all threads take their memory from two places: glibc gives each its own, up to eight a core, and hardly returns any.

    To be called before threads are started. Other C libraries have no such places.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def keep_temporary_files_together(environ: Mapping[str, str]) -> None:
    """Has all of them in the folder that TMPDIR names: Python takes another, in the end the current one, when it finds it full.

    Raises ConfigError where there is no such folder.
    """
    tempfile.tempdir = environ.get("TMPDIR") or "/tmp"
    if not os.path.isdir(tempfile.tempdir):
        raise ConfigError("TMPDIR, or /tmp where it is not set, must be a folder")


def _absolute(context, parameter, value):
    # macOS keeps user data below "Application Support", and PostgreSQL's start-up takes no blank in the path of its socket.
    usual = Path.home() / ".posthorn" if sys.platform == "darwin" else Path(platformdirs.user_data_dir("posthorn", appauthor=False))
    return (value or usual).expanduser().resolve()


data_dir_option = click.option("--data-dir", type=click.Path(path_type=Path), callback=_absolute,
                               help="Where `posthorn up` keeps everything (a directory of your own by default).")
