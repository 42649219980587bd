"""The real PostgreSQL and the real object store that the tests speak to."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from storage.embedded import Postgres, Store, StoreAddress
from storage.objects import Objects

BUCKET = "media"


@pytest.fixture(scope="session")
def postgres_url():
    """The libpq URL of a PostgreSQL server for the whole run."""
    with postgres() as url:
        yield url


@contextmanager
def postgres():
    """A PostgreSQL server of its own, gone afterwards; gives its libpq URL."""
    with short_directory() as directory, running(Postgres(directory / "postgres")) as url:
        yield url


@pytest.fixture(scope="session")
def store_address():
    """The StoreAddress of an object store for the whole run: of its own, or the one in POSTHORN_TEST_S3."""
    given = os.environ.get("POSTHORN_TEST_S3")
    with short_directory() as directory, running(Given(given) if given else Store(directory / "store", BUCKET)) as address:
        open_to_all(address)
        yield address


class Given:
    """A store that is there already, for trying one by hand: `url` is http://<access key>:<secret key>@<host>:<port>."""

    def __init__(self, url):
        at = urlsplit(url)
        endpoint = at._replace(netloc=at.netloc.rpartition("@")[2]).geturl()
        self._address = StoreAddress(endpoint, unquote(at.username), unquote(at.password), BUCKET, "us-east-1",
                                     f"{endpoint}/{BUCKET}")

    def start(self):
        """Makes the bucket."""
        at = self._address
        Objects(at.endpoint_url, at.access_key, at.secret_key, at.bucket).prepare()
        return at

    def stop(self):
        """The store is not ours to end."""


def open_to_all(address):
    """Makes the bucket as it is where something other than Posthorn serves the files: everybody reads what they know of."""
    Objects(address.endpoint_url, address.access_key, address.secret_key, address.bucket).allow_anonymous_reads()


@contextmanager
def short_directory():
    """A new directory, gone afterwards. Not pytest's own: the path of a Unix socket has room for 100 bytes only."""
    directory = Path(tempfile.mkdtemp(prefix="posthorn-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextmanager
def running(server):
    """Starts a Postgres or a Store, gives what its start gives, and stops it in the end, whatever happens."""
    try:
        yield server.start()
    finally:
        server.stop()
