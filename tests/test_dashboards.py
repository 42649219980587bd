"""The example dashboard and the alert rules speak of what our processes really export, and of remedies that are there."""

import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from peewee import OperationalError
from prometheus_client import REGISTRY

from handlers import observe
from platforms import metrics
from storage import figures, queue
from tests.scraping import scraped
from tests.service import Http, Process, free_port, start_api

DOCS = Path(__file__).parents[1] / "docs"
RULES = [rule for group in yaml.safe_load((DOCS / "prometheus" / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
PANELS = json.loads((DOCS / "grafana" / "posthorn.json").read_text())["panels"]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [target["expr"] for panel in PANELS for target in panel["targets"]]
SELECTOR = re.compile(r"(posthorn_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
OF_COLLECTORS = {"posthorn_ready": {"check"}, "posthorn_breaker_open_seconds": {"server"}}


@pytest.fixture(scope="module")
def exported(environ):
    """The names of all series that an API and a worker export."""
    ports, settings = (free_port(), free_port()), {**environ, "POSTHORN_API_PROCESSES": "1"}
    api, url = start_api({**settings, "POSTHORN_API_METRICS_PORT": str(ports[0])})
    worker = Process("worker", {**settings, "POSTHORN_METRICS_PORT": str(ports[1])})
    try:
        Http(url).get("/nowhere")
        found = [scraped(port)[1] for port in ports]
    finally:
        worker.stop()
        api.stop()
    return {name + suffix for types in found for name, kind in types.items() for suffix in SUFFIXES.get(kind, ())}


def test_every_series_that_is_named_is_exported(exported):
    named = {name for expression in EXPRESSIONS for name, _ in SELECTOR.findall(expression)}
    assert len(named) > 25 and named - exported == set()


def test_every_series_of_ours_is_shown(exported):
    ours = {name.removesuffix("_bucket") for name in exported
            if name.startswith("posthorn_") and not name.endswith(("_count", "_sum", "_created"))}
    assert ours - {name.removesuffix("_bucket") for panel in PANELS for target in panel["targets"]
                   for name, _ in SELECTOR.findall(target["expr"])} == set()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_labels_and_their_values_are_ours(expression):
    known = {name: set(collector._labelnames) for name, collector in REGISTRY._names_to_collectors.items()
             if hasattr(collector, "_labelnames")} | OF_COLLECTORS
    assert {observe, metrics, figures} and expression.count("(") == expression.count(")")
    for name, matchers in SELECTOR.findall(expression):
        for label, value in MATCHER.findall(matchers):
            assert label in known.get(name.removesuffix("_bucket"), known.get(name, set())), (name, label)
            if label == "move":
                assert all(callable(getattr(queue, move)) for move in value.split("|"))


def test_a_database_that_is_away_is_one_alert_and_not_that_of_the_workers_too(monkeypatch):
    def away():
        raise OperationalError

    monkeypatch.setattr(metrics, "_health", lambda: (Mock(), Mock()))
    there = {family.name for family in metrics.QueueCollector(Mock(open=dict)).collect()}
    monkeypatch.setattr(metrics, "_health", away)
    missing = there - {family.name for family in metrics.QueueCollector(Mock(open=dict)).collect()}
    waiting = [rule["expr"] for rule in RULES if any(f"absent({name}" in rule["expr"] for name in missing)]
    assert len(waiting) == 1 and 'unless on() max(posthorn_ready{check="database"}) == 0' in waiting[0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_rule_says_what_was_promised_and_leads_to_a_remedy(rule):
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"} and rule["labels"]["severity"] in ("warning", "critical")
    told = rule["annotations"]
    assert told.keys() == {"summary", "promise", "remedy"} and all(told.values())
    page, _, anchor = told["remedy"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS.parent / page).read_text(), re.M)
    assert anchor in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
