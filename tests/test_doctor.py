"""`posthorn doctor`, on services that are as they should be, and on some that are not."""

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from handlers import checkups, doctor
from handlers.doctor import findings
from storage.database import database, with_connection
from storage.objects import Objects
from storage.queue import health
from tests.links import serving
from tests.odd_stores import Careless, Refusing, serving as serving_store
from tests.service import ROOT
from tests.stage import eventually

PRIVATE = "doctors"     # a bucket


@pytest.fixture
def healthy(environ, api_url, worker):
    """The settings of a service all of whose parts run, and whose files the API serves, from a bucket nobody else reads."""
    Objects(environ["S3_ENDPOINT_URL"], environ["S3_ACCESS_KEY"], environ["S3_SECRET_KEY"], PRIVATE).prepare()
    return {name: value for name, value in environ.items() if name != "S3_PUBLIC_URL"} | {
        "POSTHORN_BASE_URL": api_url, "S3_BUCKET": PRIVATE}


def said(environ):
    """What the command prints, and its exit status."""
    done = subprocess.run([sys.executable, "-m", "handlers", "doctor"], env=environ, cwd=ROOT, capture_output=True, text=True,
                          timeout=60)
    assert done.stderr == ""
    return done.stdout.splitlines(), done.returncode


@pytest.fixture
def wrong(monkeypatch, tmp_path):
    """What is said to be wrong with these settings, whose database is that of this process."""
    monkeypatch.setattr(doctor, "open_database", lambda config, connections: None)
    monkeypatch.setattr(checkups, "keys", lambda config: ())        # other tests leave what no key opens

    def of(environ):
        found = list(findings(environ, tmp_path))
        assert all(finding.remedy for finding in found if not finding.good)
        return [str(finding) for finding in found if finding.good is False]

    return of


def test_all_is_well(healthy):
    with with_connection():
        eventually(lambda: health().worker_seen < 2, within=20)     # it has just been started
    lines, status = said(healthy)
    assert status == any(line.startswith("FAIL") for line in lines)
    lines = [line for line in lines if "stored credentials" not in line]       # other tests leave what no key opens
    assert "which no network can reach: set POSTHORN_BASE_URL" in lines.pop(7) and " GB are free in /" in lines.pop()
    assert lines.pop().startswith("ok    no app is set for ")
    assert lines == [f"ok    {what}" for what in (
        "the settings can be read", "the database answers: PostgreSQL 18", "the schema is up to date",
        "the clock agrees with that of the database", "a worker is at work", "the store keeps what is put into it",
        "the store takes uploads of exactly the signed size and type, once", "the API serves the files",
        "the clock agrees with that of the store", f"the API answers at {healthy['POSTHORN_BASE_URL']}",
        "no caption model is set: live keys get no captions")]


def test_a_store_that_hangs_is_waited_for_once(healthy, wrong, monkeypatch):
    monkeypatch.setattr("storage.asking.SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        found = wrong({**healthy, "S3_ENDPOINT_URL": f"http://127.0.0.1:{hanging.getsockname()[1]}"})
    assert [line for line in found if "store" in line] == [
        "FAIL  the store gives no answer within 3 s: look at S3_ENDPOINT_URL, S3_BUCKET, S3_REGION, S3_ADDRESSING and the keys"]


def test_the_exit_status_says_that_something_is_wrong(healthy):
    lines, status = said({**healthy, "S3_SECRET_KEY": "wrong", "DATABASE_URL": "postgresql://x@127.0.0.1:1/x"})
    assert status == 1 and [line[:4] for line in lines[:3]] == ["ok  ", "FAIL", "FAIL"]
    assert lines[1] == ("FAIL  the database does not answer as it should: nobody listens there: "
                        "look at DATABASE_URL, and whether PostgreSQL runs")


def test_the_embedded_store_read_by_everybody_makes_pages_of_files(environ, healthy, wrong):
    public = {name: environ[name] for name in ("S3_PUBLIC_URL", "S3_BUCKET")}
    assert wrong(healthy | public) == [
        "FAIL  a query turns files into pages, which may hold scripts: have the query dropped: "
        "see Files in docs/operations.md"]
    every = [str(finding) for finding in findings(healthy | public, Path("/nowhere"))]
    assert any(line.startswith("note  files are served without `nosniff`") for line in every)


def test_files_of_ours_that_everybody_can_read_past_us(environ, healthy, wrong):
    url = f"{environ['S3_ENDPOINT_URL']}/{environ['S3_BUCKET']}"
    assert wrong({**healthy, "S3_BUCKET": environ["S3_BUCKET"]}) == [
        f"FAIL  everybody can read the files at the store itself, {url}: take the right to read from everybody there: "
        "the API, or S3_PUBLIC_URL, serves them"]


def test_a_bucket_that_is_not_there_is_not_made(environ, healthy, wrong):
    assert wrong({**healthy, "S3_BUCKET": "mistyped"}) == [
        "FAIL  the store has no bucket mistyped: run `posthorn migrate`, or correct S3_BUCKET"]
    assert not Objects(environ["S3_ENDPOINT_URL"], environ["S3_ACCESS_KEY"], environ["S3_SECRET_KEY"], "mistyped").has_bucket()


@pytest.mark.parametrize("change, sentence", [
    ({"S3_SECRET_KEY": "wrong"}, "the object store refused"),
    ({"S3_ENDPOINT_URL": "http://127.0.0.1:{nobody}"}, "the object store cannot be reached"),
    ({"S3_PUBLIC_URL": "http://127.0.0.1:{nobody}/x"}, "nobody answers at http://127.0.0.1"),
    ({"POSTHORN_BASE_URL": "http://127.0.0.1:{nobody}"}, "nobody answers at http://127.0.0.1"),
    ({"S3_ENDPOINT_URL": ""}, "S3_ENDPOINT_URL is not set"),
    ({"S3_ADDRESSING": "sideways"}, "S3_ADDRESSING must be one of path, virtual"),
    ({"S3_CREDENTIALS": "environment"}, "the keys of the object store cannot be had"),
    ({"S3_UPLOAD_URL": "http://store.example/path"}, "S3_ENDPOINT_URL or S3_UPLOAD_URL: the address of an S3 store"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_what_is_wrong_is_named_with_a_remedy(healthy, wrong, change, sentence):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        found = wrong(healthy | {name: value.format(nobody=port) for name, value in change.items()})
    assert any(sentence in line for line in found), found
    assert not any(healthy["S3_SECRET_KEY"] in line for line in found)


def test_files_that_the_public_address_does_not_lead_to(healthy, wrong):
    with serving() as elsewhere:
        assert ["cannot be read at" in line for line in wrong({**healthy, "S3_PUBLIC_URL": elsewhere.url})] == [True]
        found = wrong({**healthy, "POSTHORN_BASE_URL": elsewhere.url})
        assert ["does not lead to the API" in line for line in found] == [True, True]


class Forgetful(Careless):
    """A store that takes everything and gives nothing."""

    do_GET = Careless.answer


@pytest.mark.parametrize("handler, sentences", [
    (Forgetful, ["something else than was put in", "lets an upload be replaced", "larger than declared", "another type"]),
    (Refusing, ["does not speak S3"])])
def test_a_store_that_does_not_enforce_is_named(healthy, wrong, handler, sentences):
    with serving_store(handler) as objects:
        found = wrong({**healthy, "S3_ENDPOINT_URL": objects.public_url("")[:-len("/media/")], "S3_BUCKET": "media"})
    assert [sentence in line for sentence, line in zip(sentences, found, strict=False)] == [True] * len(sentences), found


def test_a_store_that_admits_no_pages(healthy, monkeypatch):
    monkeypatch.setattr(Objects, "admits_pages", lambda *_, as_others: not as_others)
    monkeypatch.setattr(doctor, "open_database", lambda config, connections: None)
    assert [str(finding) for finding in findings(healthy, Path("/nowhere")) if "no web page" in finding.what] == [
        "note  the object store lets no web page upload: for uploads from browsers allow PUT from all origins there (CORS)"]


def test_a_database_that_was_not_migrated(environ, healthy):
    name = "doctors"
    with with_connection():
        database.execute_sql(f"CREATE DATABASE {name}")
    try:
        lines, status = said({**healthy, "DATABASE_URL": environ["DATABASE_URL"].replace("/postgres?", f"/{name}?")})
        assert status == 1 and lines[2].startswith("FAIL  ") and lines[2].endswith(" migrations are missing: run `posthorn migrate`")
    finally:
        with with_connection():
            database.execute_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("oldest, seen, good", [(0, 1, [True]), (0, 6, [False]), (61, 1, [True, None]), (61, 6, [False, None])])
def test_workers(oldest, seen, good):
    assert [finding.good for finding in doctor._workers(SimpleNamespace(oldest_due=oldest, worker_seen=seen))] == good


@pytest.mark.parametrize("host, private", [("127.0.0.1", True), ("::1", True), ("10.1.2.3", True), ("localhost", True),
                                           ("a.internal", True), ("cdn.example.com", False), ("8.8.8.8", False)])
def test_addresses_that_no_network_reaches(host, private):
    assert checkups.is_private(host) == private
