"""One real database, one real store, one API and one worker for the whole run; every test brings a team of its own."""

import signal

import pytest

from storage.database import database, migrate, open_pool
from storage.objects import Objects
from tests.links import fetcher, fetching_api, links  # fixtures
from tests.servers import postgres_url, store_address  # fixtures
from tests.service import Member, Process, environment, start_api


def pytest_configure():
    """A run that is told to end does so as with Ctrl-C, and leaves no server behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def environ(postgres_url, store_address):
    """The settings of the service under test, on a prepared database and store, which the tests reach as well."""
    open_pool(postgres_url, connections=20)
    migrate()
    Objects(store_address.endpoint_url, store_address.access_key, store_address.secret_key, store_address.bucket,
            public_url=store_address.public_url).prepare()
    yield environment(postgres_url, store_address)
    database.close_all()


@pytest.fixture(scope="session")
def api_url(environ):
    """The address of a running API."""
    process, url = start_api(environ)
    yield url
    process.stop()


@pytest.fixture(scope="session")
def homeless_api(environ):
    """The address of an API whose database is nowhere."""
    process, url = start_api({**environ, "DATABASE_URL": "postgresql://postgres@/posthorn?host=/nowhere"})
    yield url
    process.stop()


@pytest.fixture(scope="session")
def worker(environ):
    """A running worker."""
    process = Process("worker", environ)
    yield process
    process.stop()


@pytest.fixture
def member(api_url):
    """A team of its own for this test."""
    return Member(api_url)


@pytest.fixture
def connection(environ):
    """The database, for looking below the API."""
    with database.connection_context():
        yield database
