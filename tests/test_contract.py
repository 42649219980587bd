"""The running service against the document that it serves, by schemathesis: thousands of requests, valid and not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service import Member, start_api

CONFIG = Path(__file__).with_name("schemathesis.toml")
SECONDS = 300       # four times what the run takes on two busy cores
UNLIMITED = {"POSTHORN_FETCH_RATE_LIMIT": "100000", "POSTHORN_CAPTION_RATE_LIMIT": "100000"}


@pytest.fixture(scope="module")
def unlimited_api(environ):
    """The address of an API that refuses nothing for its number; its answers are validated (POSTHORN_VALIDATE_RESPONSES)."""
    process, url = start_api({**environ, **UNLIMITED})
    yield url
    process.stop()
    assert " ERROR " not in process.log()


def test_the_service_does_what_the_document_says(unlimited_api, environ, tmp_path):
    assert environ["POSTHORN_VALIDATE_RESPONSES"] == "1"
    people = [{"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {Member(unlimited_api).test.key}"}]}
              for name in ("one", "other")]
    credentials = tmp_path / "auth.json"
    credentials.write_text(json.dumps({"auth": people}))
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", CONFIG, "run",
               f"{unlimited_api}/v1/openapi.json",
               "--url", unlimited_api]
    run = subprocess.run(command, cwd=tmp_path, env={"PATH": environ["PATH"], "CONTRACT_AUTH": str(credentials)},
                         timeout=SECONDS,
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-30_000:] + run.stderr[-5000:]
