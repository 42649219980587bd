"""Files of a team in the real store, and what is made of them."""

import io
import time
from types import SimpleNamespace

import pytest

from storage.database import database
from storage.models import Media
from storage.objects import Objects
from storage.renditions import Recipe, Renditions
from tests.media_samples import examine
from tests.pictures import CANARY, opened

CLEAN = Recipe()


@pytest.fixture(scope="module")
def store(store_address):
    store = Objects(store_address.endpoint_url, store_address.access_key, store_address.secret_key, store_address.bucket,
                    public_url=store_address.public_url)
    store.prepare()
    return store


@pytest.fixture
def shelf(desk, store, tmp_path):
    return Shelf(desk, store, tmp_path)


class Shelf:
    """Files of one team, and what is made of them."""

    def __init__(self, desk, store, folder):
        self.desk, self.store, self._folder = desk, store, folder
        self.renditions = Renditions(store)

    def file(self, data, mime_type=None):
        """The row of a stored file, measured unless its type is told."""
        facts = SimpleNamespace(mime_type=mime_type, width=64, height=48, animated=False) if mime_type else self.facts(data)
        key = f"{self.desk.team.id}/live/{time.monotonic_ns()}"
        self.store.put(key, io.BytesIO(data), len(data), facts.mime_type)
        with database.connection_context():
            return Media.add(team_id=self.desk.team.id, mode="live", user_id=self.desk.caller.user_id, key=key, state="ready",
                             mime_type=facts.mime_type, bytes=len(data), width=facts.width, height=facts.height,
                             animated=facts.animated)

    def facts(self, data):
        """What the service finds in these bytes."""
        path = self._folder / "file"
        path.write_bytes(data)
        return examine(path)

    def read(self, key):
        """The bytes of an object."""
        with self.store.open(key) as file:
            return file.read()

    def made(self, data, recipe=CLEAN):
        """What a recipe makes of these bytes: the row and the bytes, which agree with each other; the original is as it was."""
        row = self.file(data)
        found = self.renditions.made(row, recipe)
        result = self.read(found.key)
        facts, stored = self.facts(result), self.store.stat(found.key)
        assert (found.mime_type, found.width, found.height) == (facts.mime_type, facts.width, facts.height)
        assert found.bytes == len(result)
        assert (stored.bytes, stored.content_type) == (found.bytes, found.mime_type)
        assert self.read(row.key) == data
        assert CANARY not in result and not opened(result).getexif() and "exif" not in opened(result).info
        return found, result

    def keys(self):
        """The keys of all objects of the team."""
        return {key for key, *_ in self.store.list(f"{self.desk.team.id}/live/")}

    def rows(self, media):
        """How many renditions of a file there are."""
        return self.desk.sql("SELECT count(*) FROM renditions WHERE media_id = %s", media.id)[0][0]
