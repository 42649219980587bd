"""Liveness."""

from importlib.metadata import version

from handlers.responses import ok

VERSION = version("posthorn")


def get_health():
    """GET /v1/health: answers as long as the process does, without the database."""
    return ok({"status": "ok", "version": VERSION})
