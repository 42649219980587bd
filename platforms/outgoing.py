"""The files of a post as its network gets them: images say nothing beside the picture, and are converted where that mends them."""

from dataclasses import replace
from functools import partial

from platforms import base
from platforms.errors import OurFault, Rejected
from platforms.files import mending
from storage.database import database
from storage.objects import StoreUnavailable
from storage.posts import Attachment
from storage.renditions import Recipe, Rendition, Renditions, Unfit


class Outgoing:
    """Reads the files of `objects` (storage.objects.Objects), and makes in it what has to be converted."""

    def __init__(self, objects):
        self._objects, self._renditions = objects, Renditions(objects)

    def of(self, job, platform, *, convert=True) -> tuple[base.Media, ...]:
        """The files of a job on `platform`, which has the limits of the job's account; the originals in the sandbox.

        Without `convert`, what nobody has converted yet stays as it is. Raises Rejected for an image that cannot be converted,
        and OurFault while the store is away.
        """
        if not job.has_media:
            return ()
        with database.connection_context():
            rows = Attachment.files(job.id)
        if job.account is None:
            return tuple(media_of(row, self._objects) for row in rows)
        return tuple(self._fitting(job, platform, position, row, convert) for position, row in enumerate(rows))

    def _fitting(self, job, platform, position, row, convert):
        item = media_of(row, self._objects)
        if item.is_video:
            return item
        recipe = _recipe(platform.media_limits(job.post_type, item), item)
        try:
            found = self._renditions.made(row, recipe) if convert else Rendition.of(row, recipe)
        except Unfit as error:
            raise Rejected(f"image {position + 1} of the post cannot be converted: {error}", rule="media") from None
        except StoreUnavailable as error:
            raise OurFault(str(error)) from error
        return item if found is None else replace(
            item, mime_type=found.mime_type, bytes=found.bytes, width=found.width, height=found.height,
            url=self._objects.public_url(found.key), open=partial(self._objects.open, found.key))


def media_of(row, objects) -> base.Media:
    """A file as the platforms see it, from its row (storage.models.Media) in the store `objects`."""
    return base.Media(mime_type=row.mime_type, bytes=row.bytes, url=objects.public_url(row.key), width=row.width,
                      height=row.height, duration=row.duration, animated=row.animated, open=partial(objects.open, row.key))


def _recipe(limits, item):
    needed = limits and mending(limits, item)
    return Recipe(needed.width, needed.height, needed.max_bytes) if needed else Recipe()
