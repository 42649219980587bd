"""A crash in any layer is a 500 in the envelope: it tells nothing but the request id, which finds it in the log."""

import asyncio
import json

import peewee
import pytest
import urllib3

from handlers.app import create_app
from handlers.config import Config, LogSettings
from handlers.logs import formatter
from tests.service import Answer, Member
from tests.wire import refused

SECRET = 'relation "team_secrets" at 10.0.0.7 in /srv/posthorn/handlers/app.py'
IDEA = {"content": "A loaf is a slow conversation.", "sourceUrl": "https://example.net/on-bread"}


@pytest.fixture(scope="module")
def app(environ):
    """The API in this process."""
    return create_app(Config.from_env(environ))


@pytest.fixture
def member(environ):
    return Member("http://127.0.0.1")


def ask(app, method, path, key, **headers):
    """What the API answers to an idea."""
    body, parts = json.dumps(IDEA).encode(), []
    given = {"host": "a", "authorization": f"Bearer {key}", "content-type": "application/json", **headers}

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        parts.append(message)

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
             "raw_path": path.encode(), "query_string": b"", "scheme": "http", "client": ("127.0.0.1", 1),
             "server": ("127.0.0.1", 80), "headers": [(name.encode(), value.encode()) for name, value in given.items()]}
    asyncio.run(app(scope, receive, send))
    told = [(name.decode(), value.decode()) for name, value in parts[0]["headers"]]
    return Answer(parts[0]["status"], urllib3.HTTPHeaderDict(told), b"".join(part.get("body", b"") for part in parts[1:]))


@pytest.mark.parametrize("error", [RuntimeError, peewee.ProgrammingError, KeyError, RecursionError])
@pytest.mark.parametrize("layer, path", [
    ("handlers.gate.Paths._check_terms", "/v1/ideas"), ("handlers.files.Files._find", "/media/a/test/b"),
    ("handlers.security.Security.token", "/v1/ideas"), ("storage.keys.identify", "/v1/ideas"),
    ("storage.buckets.take", "/v1/ideas"), ("handlers.incoming.parse_json", "/v1/ideas"),
    ("handlers.incoming.Incoming.values", "/v1/ideas"), ("handlers.idempotency.Once.begin", "/v1/ideas"),
    ("storage.models.Idea.add", "/v1/ideas"), ("handlers.ideas.ok", "/v1/ideas"), ("handlers.idempotency.Once.keep", "/v1/ideas")])
def test_a_crash_tells_its_request_id_alone(app, member, monkeypatch, caplog, layer, path, error):
    def crash(*_, **__):
        raise error(SECRET)

    monkeypatch.setattr(layer, crash)
    monkeypatch.setattr(caplog.handler, "formatter", formatter(LogSettings.from_env({"POSTHORN_LOG_FORMAT": "json"})))
    answer = ask(app, "GET" if path.startswith("/media") else "POST", path, member.key(), **{"idempotency-key": "once"})
    assert refused(answer, 500, "internal_error")
    assert not any(word in answer.raw for word in (b"team_", b"10.0", b"srv", b".py"))
    logged = [line for line in map(json.loads, caplog.text.splitlines()) if line["level"] == "ERROR"]
    assert [(line["message"], line["request_id"]) for line in logged] == [("request failed", answer.headers["X-Request-Id"])]
    assert SECRET not in caplog.text


def test_after_a_crash_the_same_key_tries_again(app, member, monkeypatch):
    key = member.key()
    with monkeypatch.context() as patched:
        patched.setattr("handlers.ideas.ok", lambda *_, **__: 1 / 0)
        assert ask(app, "POST", "/v1/ideas", key, **{"idempotency-key": "once"}).status == 500
    assert member.rows()["Idea"] == 0
    answers = [ask(app, "POST", "/v1/ideas", key, **{"idempotency-key": "once"}) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 201] and member.rows()["Idea"] == 1
    assert answers[1].headers["Idempotent-Replayed"] == "true"
