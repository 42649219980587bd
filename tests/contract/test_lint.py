"""The document under the strictest rules of two linters, without a finding; what is excepted is excepted nowhere else."""

import json

import yaml

from tests.contract.tools import DOCUMENT, HERE, node

SPECTRAL = yaml.safe_load((HERE / "spectral.yaml").read_text())
EXCEPTED = {(file.partition("#")[2], rule) for override in SPECTRAL["overrides"] for file in override["files"]
            for rule in override["rules"]}


def spectral(ruleset, document=DOCUMENT):
    run = node("spectral", "lint", "--quiet", "--fail-severity", "hint", "--format", "json", "--ruleset", ruleset, document)
    assert run.stdout.startswith("["), run.stdout + run.stderr
    return json.loads(run.stdout)


def redocly(document):
    run = node("redocly", "lint", "--config", "redocly.yaml", "--format", "json", document)
    assert run.stdout.startswith("{"), run.stdout + run.stderr
    return json.loads(run.stdout)


def pointer(path):
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def test_spectral_finds_nothing():
    assert spectral("spectral.yaml") == []


def test_without_the_exceptions_spectral_finds_what_they_name_and_no_more(tmp_path):
    owasp = HERE / "node_modules" / "@stoplight" / "spectral-owasp-ruleset" / "dist" / "ruleset.mjs"
    (tmp_path / "bare.yaml").write_text(json.dumps({"extends": [["spectral:oas", "all"], [str(owasp), "all"]]}))
    found = {(pointer(finding["path"]), finding["code"]) for finding in spectral(tmp_path / "bare.yaml")}
    hidden = {(place, rule): [at for at, code in found if code == rule and at.startswith(place)] for place, rule in EXCEPTED}
    assert all(hidden.values()), hidden
    assert len(found) == sum(map(len, hidden.values()))


def test_redocly_finds_nothing():
    assert redocly(DOCUMENT)["totals"] == {"errors": 0, "warnings": 0, "ignored": 1}


def test_a_worse_document_has_findings(tmp_path):
    document = yaml.safe_load(DOCUMENT.read_bytes())
    del document["info"]["license"]
    worse = tmp_path / "worse.yaml"
    worse.write_text(yaml.safe_dump(document))
    assert "info-license" in {finding["code"] for finding in spectral("spectral.yaml", worse)}
    assert "info-license" in {problem["ruleId"] for problem in redocly(worse)["problems"]}
