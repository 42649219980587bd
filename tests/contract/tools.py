"""The tools that run on Node, as `npm ci` has put them beside this file."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "openapi" / "openapi.yaml"
SILENT = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}


def node(program, *arguments, given=""):
    """Runs a program of node_modules/.bin, or a file of this directory, on Node; the finished process."""
    path = HERE / program if (HERE / program).is_file() else HERE / "node_modules" / ".bin" / program
    assert path.exists(), "the tools are not there: npm ci --prefix tests/contract"
    return subprocess.run(["node", path, *map(str, arguments)], cwd=HERE, env={**os.environ, **SILENT}, input=given,
                          timeout=120, capture_output=True, text=True, check=False)
