"""No log line holds what opens anything, however it came there."""

import json
import logging

import pytest
from gunicorn.config import Config as GunicornConfig

from handlers.logs import JsonLines, TextLines
from handlers.redaction import secrets_of
from handlers.serve import Log
from storage import keys
from storage.secrets import Vault, new_key

LINES = ["request 5f3a9c failed", "the database is away: it refuses the password; trying again",
         "target of post_mxYPry7LqKWGYEYcfHY6kF: state=publishing code=190",
         "bearer of news", "https://ann.example/a:b@c", "token is missing", "Basic setup", "in_ and at_ and sk_live_",
         "https://s3.example/media/5f3a9c.png?partNumber=3"]


def line(message, *arguments, secrets=()):
    record = logging.LogRecord("posthorn", logging.ERROR, "x.py", 1, message, arguments, None)
    found = json.loads(JsonLines(secrets).format(record))["message"]
    assert TextLines(secrets).format(record).endswith(f" ERROR posthorn: {found}")
    return found


@pytest.mark.parametrize("kind", [*keys.CREDENTIALS, "rt", "ac", "cs", "in"])
def test_no_credential_of_ours_is_logged(kind):
    secret = keys.fresh(kind)
    assert line("a %s b", f"x={secret},y") == f"a x={kind}_…,y b"


@pytest.mark.parametrize("told", [
    "Authorization: Bearer {}", "authorization: bearer {}", "'Authorization': 'DPoP {}'", "Basic {}",
    "https://x.example/?a=b&access_token={}&c=d", "refresh_token={}", '{{"accessJwt": "{}"}}', "{{'client_secret': '{}'}}",
    "https://x.example/cb?code={}&state=1", "https://x.example/cb?state={}", "password={}", "X-Amz-Signature={}",
    "api_key={}", "sk-proj-{}", "ya29.{}", "whsec_{}+a/b=",
    "postgresql://posthorn:{}@db.example/posthorn", "https://{}:x@proxy.example"])
def test_nothing_that_is_said_to_be_secret_is_logged(told):
    secret = "canary-5f1d7c0b9e.4a"
    assert secret not in line(told.format(secret)) and "…" in line(told.format(secret))


def test_keys_and_what_they_sealed_are_not_logged():
    key = new_key()
    sealed = Vault((key,)).seal("x", {"a": "b"}).decode()
    assert line(f"({key}) and {sealed}.") == "(…) and …."


def test_secret_settings_are_not_logged_whatever_they_look_like():
    environ = {"S3_SECRET_KEY": "all lower case words", "POSTHORN_X_CLIENT_SECRET": "hunter2hunter2",
               "S3_ACCESS_KEY": "posthorn",
               "POSTHORN_CAPTION_HEADERS": '{"x-team": "a-secret-of-the-team", "x-key": "and, another"}',
               "OTEL_EXPORTER_OTLP_HEADERS": "x-key=secret-of-traces",
               "POSTHORN_SECRET_KEYS": "first-secret,second-secret", "PATH": "/usr/local/bin"}
    said = ("secret-of-traces all lower case words hunter2hunter2 posthorn first-secret second-secret a-secret-of-the-team "
            "/usr/local/bin")
    assert line(said, secrets=secrets_of(environ)) == "… … … posthorn … … … /usr/local/bin"


@pytest.mark.parametrize("said", LINES)
def test_what_is_no_secret_stays(said):
    assert line(said) == said


def test_the_servers_own_log_is_redacted_too(capsys):
    secret = keys.fresh("at")
    Log(GunicornConfig()).error("request with %s failed", secret)
    assert "request with at_… failed" in capsys.readouterr().err
