"""The running service against the document that it serves, by schemathesis: thousands of requests, valid and not."""

import pytest

from tests.contract_run import UNLIMITED, schemathesis
from tests.service import start_api

SECONDS = 300       # four times what the run takes on two busy cores


@pytest.fixture(scope="module")
def unlimited_api(environ):
    """The address of an API that refuses nothing for its number; its answers are validated (POSTHORN_VALIDATE_RESPONSES)."""
    process, url = start_api({**environ, **UNLIMITED})
    yield url
    process.stop()
    assert " ERROR " not in process.log()


def test_the_service_does_what_the_document_says(unlimited_api, environ, tmp_path):
    assert environ["POSTHORN_VALIDATE_RESPONSES"] == "1"
    run = schemathesis(unlimited_api, tmp_path, SECONDS)
    assert run.returncode == 0, run.stdout[-30_000:] + run.stderr[-5000:]
