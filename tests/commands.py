"""The command `posthorn`, run as a person runs it."""

import json
import subprocess
import sys

from tests.service import ROOT


def posthorn(environ, *arguments, stdin="", fails=False):
    """Runs `posthorn <arguments>`; returns what it printed, the error text where it is expected to fail."""
    done = subprocess.run([sys.executable, "-m", "handlers", *arguments], env=environ, cwd=ROOT, input=stdin, capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr.strip() if fails else done.stdout


def rows(environ, *arguments, **options):
    """The rows that a command prints with --json."""
    return json.loads(posthorn(environ, *arguments, "--json", **options))
