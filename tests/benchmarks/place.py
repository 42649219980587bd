"""Where a benchmark takes place: a database and a store of its own, and a service on them."""

from contextlib import contextmanager

from storage.database import database, migrate, open_pool
from storage.embedded import Store
from storage.objects import Objects
from tests.servers import BUCKET, postgres, running, short_directory
from tests.service import environment, start_api


@contextmanager
def place(**settings):
    """A prepared database, which this process reaches as well, and a prepared store; all gone afterwards.

    Gives the settings of a service there, `settings` among them, and a folder.
    """
    with short_directory() as folder, postgres() as url, running(Store(folder / "store", BUCKET)) as store:
        open_pool(url, connections=5)
        migrate()
        Objects(store.endpoint_url, store.access_key, store.secret_key, store.bucket, public_url=store.public_url).prepare()
        try:
            yield environment(url, store, **settings), folder
        finally:
            database.close_all()


@contextmanager
def service(**settings):
    """An API there; gives its process, its address and the folder."""
    with place(**settings) as (environ, folder):
        api, url = start_api(environ)
        try:
            yield api, url, folder
        finally:
            api.stop()
