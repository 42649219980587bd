"""The tools that run on Node, as `npm ci` has put them beside this file, or into another directory."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "openapi" / "openapi.yaml"
SILENT = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}


def node(program, *arguments, given="", home=HERE):
    """Runs a program of node_modules/.bin in `home`, or a file of that directory, on Node; the finished process."""
    path = home / program if (home / program).is_file() else home / "node_modules" / ".bin" / program
    assert path.exists(), f"the tools are not there: npm ci --prefix {home}"
    return subprocess.run(["node", path, *map(str, arguments)], cwd=home, env={**os.environ, **SILENT}, input=given,
                          timeout=120, capture_output=True, text=True, check=False)
