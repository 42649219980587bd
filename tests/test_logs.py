"""What is logged: one object a line for programs, text for people, whole with its ids, and nothing of what others wrote into it."""

import json
import logging
import ssl
import sys
import threading
import time

import pytest

from handlers.config import ConfigError, LogSettings
from handlers.logs import JsonLines, TextLines, formatter, set_up
from storage import ids, keys
from tests.service import Http, Member, Process, start_api

FORGED = "x\r\n{\"level\":\"CRITICAL\"}\n2026-01-01 CRITICAL posthorn: gone\x1b[31m\x00\u2028\u2029\x85\u202e\udc80é"
CAPTION = "canary-caption-5f1d7c0b9e"


def record(message="it happened", *arguments, error=None, **fields):
    found = logging.LogRecord("posthorn.test", logging.WARNING, "x.py", 1, message, arguments, error and (type(error), error,
                                                                                                       error.__traceback__))
    found.fields = fields
    return found


def raised(error, cause=None):
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_a_line_for_programs_is_one_object_with_the_ids_that_are_known():
    with ids.about(request_id="r1", target_id="target_1", team_id=None):
        ids.add(team_id="team_1")
        line = JsonLines().format(record("waited %d s", 3, status=503))
    told = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told == {"level": "WARNING", "logger": "posthorn.test", "message": "waited 3 s", "request_id": "r1",
                    "target_id": "target_1", "team_id": "team_1", "status": 503}
    assert "request_id" not in JsonLines().format(record())


def test_what_a_thread_learns_is_known_to_whoever_asked_it():
    with ids.about(request_id="r1"):
        thread = threading.Thread(target=lambda: ids.add(team_id="team_1"))
        thread.start()
        thread.join()
        assert ids.known() == {"request_id": "r1"}      # a thread of its own has nothing to do with it
        ids.add(team_id="team_2")
    assert ids.known() == {}


@pytest.mark.parametrize("lines", [JsonLines(), TextLines()])
def test_nobody_writes_a_line_of_their_own(lines):
    with ids.about(request_id=FORGED):
        line = lines.format(record("asked for %s", FORGED, route=FORGED))
    assert line.isprintable() and len(line.splitlines()) == 1 and line.count("é") == 3


def test_of_an_exception_its_kind_and_place_are_told_and_not_its_words():
    error = raised(ValueError("canary of a row"), raised(KeyError("canary of a name")))
    told = json.loads(JsonLines().format(record(error=error)))["exception"]
    assert [one["kind"] for one in told] == ["builtins.KeyError", "builtins.ValueError"]
    assert told[1]["place"].startswith("tests/test_logs.py:") and told[1]["place"].endswith(" in raised")
    text = TextLines().format(record(error=error))
    assert "builtins.ValueError" in text and "canary" not in text + json.dumps(told)
    # Of the system's errors it is told which one it is, without the file; the numbers of others mean something else.
    error = raised(ssl.SSLError(1, "canary"), raised(OSError(28, "canary", "/canary")))
    told = json.loads(JsonLines().format(record(error=error)))
    assert [one["kind"] for one in told["exception"]] == ["builtins.OSError: ENOSPC, No space left on device", "ssl.SSLError"]
    # But of an error of ours about the settings the sentence is told: it names a setting and no value.
    assert "POSTHORN_X is not set" in TextLines().format(record(error=raised(ConfigError("POSTHORN_X is not set"))))


@pytest.mark.parametrize("given, terminal, kind", [("", True, TextLines), ("", False, JsonLines), ("json", True, JsonLines),
                                                   ("text", False, TextLines)])
def test_a_terminal_gets_text_and_all_else_json_unless_the_setting_says(monkeypatch, given, terminal, kind):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert type(formatter(LogSettings.from_env({"POSTHORN_LOG_FORMAT": given}))) is kind


@pytest.mark.parametrize("name, value", [("POSTHORN_LOG_FORMAT", "xml"), ("POSTHORN_LOG_LEVEL", "loud"), ("POSTHORN_ACCESS_LOG", "no")])
def test_settings_of_logs_that_nobody_understands_are_told_in_one_sentence(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be one of"):
        LogSettings.from_env({name: value})


def test_levels_hold_for_what_is_ours():
    root = logging.getLogger()
    before = root.handlers[:], root.level, sys.excepthook, threading.excepthook
    try:
        set_up(LogSettings.from_env({"POSTHORN_LOG_LEVEL": "debug", "POSTHORN_ACCESS_LOG": "0"}))
        assert logging.getLogger("posthorn.any").isEnabledFor(logging.DEBUG)
        assert not logging.getLogger("peewee").isEnabledFor(logging.INFO)       # it logs values
        assert not logging.getLogger("urllib3.connectionpool").isEnabledFor(logging.WARNING)    # addresses whole, and each try
        assert not logging.getLogger("posthorn.access").isEnabledFor(logging.CRITICAL)
    finally:
        root.handlers, root.level, sys.excepthook, threading.excepthook = before
        logging.getLogger("posthorn").setLevel(logging.NOTSET)
        logging.getLogger("posthorn.access").disabled = False


@pytest.fixture(scope="module")
def service(environ):
    """An API and a worker that log for programs; gives the address and what both have said since the last time, parsed."""
    settings = {**environ, "POSTHORN_LOG_FORMAT": "json", "POSTHORN_API_PROCESSES": "1"}
    api, url = start_api(settings)
    worker = Process("worker", settings)

    def said():
        return [json.loads(line) for process in (api, worker) for line in process.log().splitlines()]

    yield url, said
    worker.stop()
    api.stop()


def test_who_quotes_a_request_id_is_found_by_one_search(service):
    url, said = service
    member = Member(url)
    for _ in range(50):     # until the worker that is listened to has taken it, and not that of other tests
        answer = member.test.post("/v1/posts", {"caption": CAPTION, "targets": [{"platform": "gbp"}]})
        member.test.settled(answer.data["id"])
        lines = [line for line in said() if line.get("request_id") == answer.headers["X-Request-Id"]]
        if moves := [line for line in lines if line["logger"] == "posthorn.publisher"]:
            break
    access = [line for line in lines if line["logger"] == "posthorn.access"]
    assert [(line["method"], line["operation"], line["route"], line["status"]) for line in access] == [
        ("POST", "publish_post", "/v1/posts", 202)]
    assert access[0]["team_id"] == member.team.id and access[0]["credential_id"].startswith("key_") and access[0]["ms"] > 0
    assert [(line["message"], line["team_id"]) for line in moves] == [("gbp: published", member.team.id)]
    assert moves[0]["target_id"].startswith("target_")


def test_what_callers_send_is_in_no_line(service, environ):
    url, said = service
    member, unknown = Member(url), keys.fresh("sk_live")
    hostile = Http(url, unknown)
    hostile.get(f"/v1/posts?cursor={unknown}")
    hostile.get(f"/v1/posts/{unknown}")
    hostile.get(f"/{CAPTION}%0d%0a%7B%22level%22:1%7D")
    member.test.post("/v1/posts", {"caption": CAPTION, "targets": [{"platform": CAPTION}]}, headers={"X-Request-Id": f"{CAPTION} x"})
    member.test.request("POST", "/v1/posts", body=CAPTION.encode(), headers={"Content-Type": CAPTION})
    found, routes, deadline = [], [], time.monotonic() + 10
    while len(routes) < 5 and time.monotonic() < deadline:      # a line is written once its answer is on the way
        found += said()
        routes = [(line["route"], line["status"]) for line in found if line.get("status", 0) >= 400]
    assert routes == [("/v1/posts", 401), ("/v1/posts/{id}", 401), ("none", 404), ("/v1/posts", 422), ("/v1/posts", 415)]
    text = json.dumps(found)
    assert not [secret for secret in (CAPTION, unknown, member.test.key, environ["POSTHORN_SECRET_KEYS"]) if secret in text]
