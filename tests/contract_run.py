"""Schemathesis against a running service, as tests/schemathesis.toml has it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.service import Member

CONFIG = Path(__file__).with_name("schemathesis.toml")
UNLIMITED = {"POSTHORN_FETCH_RATE_LIMIT": "100000", "POSTHORN_CAPTION_RATE_LIMIT": "100000"}


def schemathesis(url, folder, seconds, *options):
    """One run with two identities within `seconds`, its files in `folder`; `options` go before those of the configuration.

    Returns the CompletedProcess, whose status is 0 where nothing was found.
    """
    people = [{"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {Member(url).test.key}"}]}
              for name in ("one", "other")]
    credentials = folder / "auth.json"
    credentials.write_text(json.dumps({"auth": people}))
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", CONFIG, "run", f"{url}/v1/openapi.json",
               "--url", url, *options]
    return subprocess.run(command, cwd=folder, env={"PATH": os.environ["PATH"], "CONTRACT_AUTH": str(credentials)}, timeout=seconds,
                          capture_output=True, text=True, check=False)
