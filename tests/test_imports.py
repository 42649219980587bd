"""The walls between the packages, by walking every import."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("handlers", "platforms", "storage")
MAY_IMPORT = {"handlers": {"handlers", "platforms", "storage"}, "platforms": {"platforms", "storage"}, "storage": {"storage"}}
NOT_CONNECTORS = {f"platforms.{name}" for name in ("http", "publisher", "aftermath", "outgoing", "worker", "lines", "captions",
                                                  "chat", "accounts", "metrics", "webhooks", "registry")}
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path):
    """(module, node) of every import of a file; `from a import b` counts as a.b where that is a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = ROOT / node.module.replace(".", "/") / f"{alias.name}.py"
                yield (f"{node.module}.{alias.name}" if inner.exists() else node.module), node


OURS = {name_of(path): {module for module, _ in imports(path) if module.split(".")[0] in PACKAGES} for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path):
    allowed = MAY_IMPORT[path.relative_to(ROOT).parts[0]]
    assert {module for module in OURS[name_of(path)] if module.split(".")[0] not in allowed} == set()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_import_inside_a_function(path):
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert inside == []


def test_no_import_cycle():
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path, module])
        if module in done or module not in OURS:
            return
        path.append(module)
        for imported in OURS[module]:
            visit(imported)
        path.pop()
        done.add(module)

    for module in OURS:
        visit(module)


@pytest.mark.parametrize("path", [path for path in FILES if name_of(path) != "handlers.config"], ids=name_of)
def test_only_the_configuration_reads_the_environment(path):
    assert "environ[" not in path.read_text() or name_of(path) == "handlers.up"
    assert "os.environ" not in path.read_text() and "getenv" not in path.read_text()


def test_connectors_never_touch_storage():
    connectors = {name: found for name, found in OURS.items() if name.startswith("platforms.") and name not in NOT_CONNECTORS}
    assert {name: found for name, found in connectors.items() if any(module.startswith("storage") for module in found)} == {}


def test_storage_knows_no_error_code_of_the_api():
    for path in (ROOT / "storage").rglob("*.py"):
        assert not {"unprocessable", "invalid_state", "payload_too_large"} & set(path.read_text().split('"')), path
