"""The service that integrators meet, and its document as it serves it."""

import pytest

from tests import media_samples, pictures
from tests.sdk import generated
from tests.service import Http, Member, start_api


@pytest.fixture(scope="session")
def environ(environ):
    """Events may go where docs/webhooks.md has a receiver."""
    return {**environ, "POSTHORN_ALLOW_PRIVATE": "127.0.0.1:9000"}


@pytest.fixture(scope="session")
def service(environ, worker):
    """The address of an API with a worker, which lets a credential ask for one caption a minute."""
    process, url = start_api({**environ, "POSTHORN_CAPTION_RATE_LIMIT": "1"})
    yield url
    process.stop()


@pytest.fixture(scope="session")
def document(service, tmp_path_factory):
    """The served document in a file."""
    file = tmp_path_factory.mktemp("document") / "openapi.yaml"
    file.write_bytes(Http(service).get("/v1/openapi.yaml").raw)
    return file


@pytest.fixture(scope="session")
def java_client(document, tmp_path_factory):
    """The directory of the Java client."""
    return generated.java(document, tmp_path_factory.mktemp("java"))


@pytest.fixture
def integrator(service, tmp_path):
    """The environment of a program of its own team that finds a picture and a video where it runs: in tmp_path."""
    member = Member(service)
    (tmp_path / "photo.jpg").write_bytes(pictures.encoded(pictures.noise(640, 480), "image/jpeg"))
    (tmp_path / "clip.mp4").write_bytes(media_samples.video("mp4", frames=40))
    return {"URL": service, "KEY": member.key(), "READER": member.key(scopes=["posts:read"])}
