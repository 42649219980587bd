"""Settings as people write them."""

from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from handlers import serve
from handlers.config import Config, ConfigError, LogSettings
from handlers.pages import sign_in
from storage.secrets import new_key


@pytest.mark.parametrize("given, address", [
    ("https://post.example.com", "https://post.example.com"), ("https://post.example.com/", "https://post.example.com"),
    ("HTTPS://Post.Example.COM:8443", "https://post.example.com:8443"), ("http://[::1]:8080", "http://[::1]:8080")])
def test_the_address_of_the_service_is_written_as_browsers_write_it(environ, given, address):
    config = Config.from_env({**environ, "POSTHORN_BASE_URL": given})
    assert config.base_url == address
    assert sign_in._how(config)["secure"] == address.startswith("https:")


@pytest.mark.parametrize("given", ["https://post.example.com/api", "https://post.example.com?x=1", "https://post.example.com#x",
                                   "https://ann:secret@post.example.com", "ftp://post.example.com", "https://",
                                   "post.example.com", "https://[", "https://post.example.com:x", "https://post.example.com:0"])
def test_an_address_of_the_service_that_others_would_not_understand_is_refused(environ, given):
    with pytest.raises(ConfigError, match="POSTHORN_BASE_URL must be an http or https address") as refusal:
        Config.from_env({**environ, "POSTHORN_BASE_URL": given})
    assert "secret" not in str(refusal.value)


def test_other_addresses_keep_their_paths_and_names(environ):
    given = {"S3_PUBLIC_URL": "https://CDN.example.com/Files/", "POSTHORN_CAPTION_URL": "http://Me:Pass@model.example/V1"}
    config = Config.from_env({**environ, **given})
    assert (config.s3_public_url, config.caption_url) == ("https://cdn.example.com/Files", "http://Me:Pass@model.example/V1")


@pytest.mark.parametrize("name, value", [
    ("S3_BUCKET", "Bad Bucket!!"), ("S3_BUCKET", "10.0.0.1"), ("S3_BUCKET", "a..b"), ("S3_BUCKET", "ab"),
    ("S3_BUCKET", "a" * 64),
    ("S3_ENDPOINT_URL", "https://s3.example.com   S3_REGION=eu"), ("S3_PUBLIC_URL", "https://x.example/media?x=1#y"),
    ("S3_REGION", "eu 1"), ("POSTHORN_ALLOW_PRIVATE", "host:65536"), ("S3_UPLOAD_URL", "https://x.example/#"), ("POSTHORN_OTLP_URL", "http://x.example/\udcff"),
    ("POSTHORN_METRICS_HOST", "not a host"), ("POSTHORN_METRICS_HOST", "http://x"),
    ("POSTHORN_API_PROCESSES", "1000000"), ("POSTHORN_API_PROCESSES", "9" * 5000), ("POSTHORN_WORKER_THREADS", "1001")])
def test_nonsense_is_refused_with_the_name_of_the_setting_alone(environ, name, value):
    with pytest.raises(ConfigError, match=f"^{name} must be ") as refusal:
        Config.from_env({**environ, name: value})
    assert value not in str(refusal.value)


@pytest.mark.parametrize("name, value", [("S3_BUCKET", "a-b--c.d1"), ("POSTHORN_METRICS_HOST", "::"),
                                         ("POSTHORN_METRICS_HOST", "0.0.0.0"),
                                         ("POSTHORN_METRICS_HOST", "worker-1.internal"), ("POSTHORN_LOG_LEVEL", "INFO")])
def test_what_makes_sense_is_taken(environ, name, value):
    Config.from_env({**environ, name: value})
    LogSettings.from_env({**environ, name: value})


@pytest.mark.parametrize("name", ["POSTHORN_METRICS_PORT", "POSTHORN_API_METRICS_PORT"])
def test_metrics_are_not_answered_on_the_port_of_the_api(environ, monkeypatch, name):
    monkeypatch.setattr(serve, "share_arenas", lambda: None)
    monkeypatch.setattr(serve, "Api", Mock())
    for port, served in (("8080", False), ("8081", True)):
        said = CliRunner().invoke(serve.command, ["--port", port], env={**environ, name: "8080"}).exception
        assert serve.Api.called == served and (said is None if served else f"--port and {name} must be two ports" == str(said))


def test_keys_come_from_a_file_as_well(environ, tmp_path):
    first, second, file = new_key(), new_key(), tmp_path / "keys"
    file.write_text(f"{first}\n{second}\n")
    del (given := dict(environ))["POSTHORN_SECRET_KEYS"]
    assert Config.from_env({**given, "POSTHORN_SECRET_KEYS": f"{first}, {second}"}).secret_keys == (first, second)
    assert Config.from_env({**given, "POSTHORN_SECRET_KEYS_FILE": str(file)}).secret_keys == (first, second)


@pytest.mark.parametrize("content, more, sentence", [
    (None, {}, "cannot be read"), (b"\xff", {}, "cannot be read"), (b" \n", {}, "is empty"),
    (b"x", {"POSTHORN_SECRET_KEYS": "y"}, "both")])
def test_a_file_without_keys_is_told(environ, tmp_path, content, more, sentence):
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"POSTHORN_SECRET_KEYS_FILE .*{sentence}"):
        Config.from_env({**environ, "POSTHORN_SECRET_KEYS": "", "POSTHORN_SECRET_KEYS_FILE": str(file), **more})
