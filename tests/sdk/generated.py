"""The clients that integrators generate, generated from a file that holds the document, each in its own way."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.contract.tools import node

HERE = Path(__file__).parent
# As docs/clients.md tells those who generate Java, who have the library of JsonNullable as well, with which a null can be sent.
JAVA_OPTIONS = "disallowAdditionalPropertiesIfNotPresent=false,containerDefaultToNull=true,openApiNullable=false"
# What every story prints.
MET = {
    "published": [["youtube", "published"], ["mastodon", "published"], ["pinterest", "published"]], "links": True,
    "scheduled": [True], "canceled": "canceled", "idea": ["Bread", "Rye, again", True, True],
    "webhook": ["enabled", True, 0],
    "refused": ["unauthorized", "forbidden", "not_found", "invalid_state", "unprocessable", "rate_limited"],
    "details": [["/media", "media_required"]], "wait": True}


def blocks(page, language):
    """The blocks of a page of documentation in one language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def run(*command, folder, good=(0,), **environ):
    """Runs a program in `folder` to a good end, one of the statuses; returns what it printed."""
    done = subprocess.run([*map(str, command)], cwd=folder, env={**os.environ, **environ}, timeout=170, capture_output=True,
                          text=True, check=False)
    assert done.returncode in good, done.stdout + done.stderr
    return done.stdout


def openapi_generator(document, folder, language, *options):
    """The output of openapi-generator in a folder named after the language."""
    run("openapi-generator-cli", "generate", "--input-spec", document, "--generator-name", language, "--output",
        folder / language, *options, folder=folder)
    return folder / language


def python_sdk(document, folder):
    """The package `posthorn_sdk` of openapi-generator, and its directory."""
    return openapi_generator(document, folder, "python", "--package-name", "posthorn_sdk")


def python_client(document, folder):
    """The package `posthorn_client` of openapi-python-client, and its directory."""
    run("openapi-python-client", "generate", "--path", document, "--meta", "none", "--output-path", folder / "posthorn_client",
        "--fail-on-warning", folder=folder)
    return folder


def java(document, folder):
    """The Java client of openapi-generator on the JDK's own HTTP client."""
    return openapi_generator(document, folder, "java", "--library", "native", "--additional-properties", JAVA_OPTIONS)


def typescript(document, folder):
    """The types of openapi-typescript as `posthorn.d.ts` and the functions of hey-api as `hey`, in a project of their own."""
    (folder / "node_modules").symlink_to(HERE / "node_modules")
    shutil.copy(HERE / "tsconfig.json", folder)
    for program, *arguments in (("openapi-typescript", document, "--output", folder / "posthorn.d.ts"),
                                ("openapi-ts", "--input", document, "--output", folder / "hey", "--plugins",
                                 "@hey-api/typescript", "@hey-api/sdk", "@hey-api/client-fetch")):
        done = node(program, *arguments, home=HERE)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder
