"""Pictures as they go out to networks: made from a file of ours once, and kept beside it, which stays as it is."""

import json
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from peewee import BigIntegerField, IntegerField, Model, TextField

from storage import children
from storage.database import database
from storage.media import new_key
from storage.objects import StoreUnavailable

CONVERT = Path(__file__).with_name("convert.py")
SECONDS = 60
SMALL = 900_000     # bytes that every network takes: a picture that is turned has no more, or no more than the original
AT_ONCE = 2         # conversions of one process: each may take more than a gigabyte of memory


class Unfit(Exception):
    """A picture cannot be converted; the text is the end of a sentence that begins with "it"."""


@dataclass(frozen=True)
class Recipe:
    """What is made of a picture: without a size, only what is not the picture goes; with one, a JPEG of that size at most."""

    width: int | None = None
    height: int | None = None
    max_bytes: int | None = None

    def __str__(self):
        return "clean" if self.width is None else f"jpeg {self.width}x{self.height} {self.max_bytes}"


class Rendition(Model):
    """What a recipe made of a file."""

    team_id = TextField()
    mode = TextField()
    media_id = TextField()
    recipe = TextField()
    key = TextField()
    mime_type = TextField()
    bytes = BigIntegerField()
    width = IntegerField()
    height = IntegerField()

    class Meta:
        database = database
        table_name = "renditions"
        primary_key = False

    @classmethod
    def of(cls, media, recipe):
        """What there is of the media row `media` by this recipe, or None."""
        with database.connection_context():
            return cls.get_or_none(cls.media_id == media.id, cls.recipe == str(recipe))

    @classmethod
    def keep(cls, media, recipe, **values):
        """What there is by this recipe from now on: this, or what somebody else was faster with."""
        with database.connection_context():
            cls.insert(team_id=media.team_id, mode=media.mode, media_id=media.id, recipe=str(recipe),
                       **values).on_conflict_ignore().execute()
            return cls.get(cls.media_id == media.id, cls.recipe == str(recipe))


class Renditions:
    """Makes them in the store `objects` (storage.objects.Objects). To be shared by the threads of a process."""

    def __init__(self, objects):
        self._objects = objects
        self._turns = [threading.Lock() for _ in range(AT_ONCE)]

    def made(self, media, recipe) -> Rendition:
        """What the recipe makes of the media row, made now if nobody has made it before.

        Raises Unfit, StoreUnavailable, and RuntimeError where the conversion failed through no fault of the file.
        """
        if found := Rendition.of(media, recipe):
            return found
        # Who wants the same has the same turn, and finds it made.
        with self._turns[hash((media.id, recipe)) % AT_ONCE]:
            return Rendition.of(media, recipe) or self._make(media, recipe)

    def _make(self, media, recipe):
        with tempfile.TemporaryFile(prefix="posthorn-") as original, tempfile.TemporaryFile(prefix="posthorn-") as result:
            self._objects.fetch_to(media.key, original)
            original.seek(0)
            values = _converted(original, result, media, recipe)
            if values.pop("same", False):
                return Rendition.keep(media, recipe, key=media.key, mime_type=media.mime_type, bytes=media.bytes, **values)
            key = new_key(media, values["mime_type"])
            result.seek(0)
            self._objects.put(key, result, values["bytes"], values["mime_type"])
        kept = Rendition.keep(media, recipe, key=key, **values)
        if kept.key != key:
            with suppress(StoreUnavailable):        # then it stays, and nobody knows of it
                self._objects.delete(key)
        return kept


def _converted(original, result, media, recipe):
    """What the child says of what it has written into `result`. Raises Unfit and RuntimeError."""
    size = () if recipe.width is None else (recipe.width, recipe.height)
    arguments = (media.mime_type, recipe.max_bytes or max(media.bytes, SMALL), *size)
    status, output, errors = children.run(CONVERT, *arguments, file=original, out=result, seconds=SECONDS)
    if status in children.CRASHED or status == children.TOO_MUCH_WORK:
        raise Unfit("it takes too much work to read")
    if status != 0:
        raise RuntimeError(f"storage/convert.py ended with status {status}: {errors.decode(errors='replace')[-200:]}")
    answer = json.loads(output)
    if "refused" in answer:
        raise Unfit(answer["refused"])
    return answer
