"""Both TypeScript clients: what is generated compiles strictly, so do the programs that use it, and these do what they say."""

import json
import shutil

import pytest

from tests.contract.tools import node
from tests.sdk import generated
from tests.sdk.generated import HERE, MET, run


@pytest.fixture(scope="module")
def project(document, tmp_path_factory):
    """The directory of the project, compiled."""
    folder = generated.typescript(document, tmp_path_factory.mktemp("typescript"))
    for story in (HERE / "stories").glob("*.ts"):
        shutil.copy(story, folder)
    compiled = node("tsc", "--project", folder, home=HERE)
    assert compiled.returncode == 0, compiled.stdout
    return folder


@pytest.mark.parametrize("story", ["openapi_fetch", "hey_api"])
def test_the_story(project, story, integrator, tmp_path):
    assert json.loads(run("node", project / "out" / f"{story}.js", folder=tmp_path, **integrator)) == MET
