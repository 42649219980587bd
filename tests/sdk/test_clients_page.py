"""What the page for those who want a client of their own shows, run as it stands there."""

import re
import sys
from pathlib import Path

import pytest

from tests.contract.tools import node
from tests.sdk.generated import HERE, blocks, run

SECTION = (HERE.parents[1] / "docs" / "clients.md").read_text()
INSTALL = re.compile(r"^(pip|npm) (install|pkg set) .*\n", re.MULTILINE)


def shell(tool, integrator, folder):
    """Runs the commands that use the tool, all but what installs it."""
    [commands] = [block for block in blocks(SECTION, "sh") if tool in block]
    assert INSTALL.match(commands)
    run("sh", "-ec", INSTALL.sub("", commands), folder=folder, **integrator)


@pytest.fixture
def types(tmp_path):
    """A project in tmp_path as the commands of npm would make it."""
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')


def test_python(integrator, tmp_path):
    shell("openapi-python-client", integrator, tmp_path)
    [program] = blocks(SECTION, "python")
    (tmp_path / "hello.py").write_text(program)
    run(sys.executable, "-m", "mypy", "--config-file", HERE / "mypy.ini", "hello.py", folder=tmp_path)
    assert run(sys.executable, "hello.py", folder=tmp_path, **integrator).startswith("post_")


def test_typescript(integrator, types, tmp_path):
    shell("openapi-typescript", integrator, tmp_path)
    [program] = blocks(SECTION, "ts")
    (tmp_path / "hello.ts").write_text(program)
    assert "npx tsc --module nodenext hello.ts && node hello.js" in SECTION
    compiled = node("tsc", "--strict", "--module", "nodenext", "--types", "node",
                    "--typeRoots", HERE / "node_modules" / "@types", tmp_path / "hello.ts", home=HERE)
    assert compiled.returncode == 0, compiled.stdout
    assert run("node", "hello.js", folder=tmp_path, **integrator).startswith("post_")


def test_java(integrator, tmp_path):
    shell("openapi-generator-cli", integrator, tmp_path)
    assert list(Path(tmp_path, "posthorn-java").rglob("MastodonOptions.java"))
