"""Settings as people write them."""

import pytest

from handlers.config import Config, ConfigError
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
