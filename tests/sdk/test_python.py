"""Both Python clients: what is generated type-checks, and so does the program that uses it, which then does what it says."""

import json
import re
import sys

import pytest

from tests.sdk import generated
from tests.sdk.generated import HERE, MET, run

STRICT = ("--config-file", HERE / "mypy.ini")
# Of the generators' own making, the same for any document: a TypedDict whose every key a server variable has to have, and
# arguments handed through as `*args: object`.
EXCUSED = {"posthorn_sdk": {("posthorn_sdk/configuration.py", "typeddict-item")},
           "posthorn_client": {("posthorn_client/client.py", "arg-type")}}


@pytest.fixture(scope="module")
def packages(document, tmp_path_factory):
    """Where each of the two packages lies."""
    folder = tmp_path_factory.mktemp("python")
    return {"posthorn_sdk": generated.python_sdk(document, folder),
            "posthorn_client": generated.python_client(document, folder)}


def complaints(folder, *arguments):
    """What mypy finds, as (file, code)."""
    found = run(sys.executable, "-m", "mypy", "--no-error-summary", *arguments, folder=folder, good=(0, 1),
                MYPYPATH=str(folder))
    return set(re.findall(r"^(\S+?):\d+: error: .*\[([a-z-]+)\]$", found, re.MULTILINE)), found


@pytest.mark.parametrize("package, strictness", [("posthorn_sdk", ["--config-file", "pyproject.toml"]),
                                                 ("posthorn_client", ["--strict"])])
def test_what_is_generated_type_checks(packages, package, strictness):
    found, said = complaints(packages[package], *strictness, package)
    assert found == EXCUSED[package], said


@pytest.mark.parametrize("package", ["posthorn_sdk", "posthorn_client"])
def test_an_option_of_another_network_does_not_type_check(packages, package, tmp_path):
    program = tmp_path / "confused.py"
    program.write_text(f"from {package}.models.mastodon_options import MastodonOptions\nMastodonOptions(board_id='1')\n")
    found, said = complaints(packages[package], *STRICT, program)
    assert {code for _, code in found} == {"call-arg"}, said


@pytest.mark.parametrize("package, story", [("posthorn_sdk", "openapi_generator.py"),
                                            ("posthorn_client", "python_client.py")])
def test_the_story(packages, package, story, integrator, tmp_path):
    assert complaints(packages[package], *STRICT, HERE / "stories" / story) == (set(), "")
    printed = run(sys.executable, HERE / "stories" / story, folder=tmp_path, PYTHONPATH=str(packages[package]), **integrator)
    assert json.loads(printed) == MET
