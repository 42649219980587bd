"""Files that are to come: counted against the team's quota at once, looked at when they have arrived."""

import tempfile
from dataclasses import dataclass

from storage import excerpt
from storage.database import database
from storage.media import Facts, NotMedia, examine
from storage.models import Media

# Two claims of one team at once would both see the same rest. What refers to the team needs not wait for this lock.
LOCK_TEAM = "SELECT FROM teams WHERE id = %s FOR NO KEY UPDATE"
USED = "SELECT coalesce(sum(bytes), 0)::bigint FROM media WHERE team_id = %s AND mode = %s AND removed_at IS NULL"


class QuotaFull(Exception):
    """The files of a team would have more bytes than it may have; `used` is what they have now."""

    def __init__(self, used: int):
        super().__init__(used)
        self.used = used


@dataclass(frozen=True)
class Verdict:
    """What came of a look at an upload: its facts, or why it is refused."""

    facts: Facts | None
    refusal: str | None = None


def claim(caller, *, quota: int | None, **values) -> Media:
    """A `pending` row of `caller` for the file that `values` describe, whose `bytes` count from now on.

    `quota` is in bytes for one team and mode, and exact however many claim at once; None: without end. Raises QuotaFull.
    """
    with database.atomic():
        if quota is not None:
            database.execute_sql(LOCK_TEAM, (caller.team_id,))
            used = database.execute_sql(USED, (caller.team_id, caller.mode)).fetchone()[0]
            if used + values["bytes"] > quota:
                raise QuotaFull(used)
        return Media.add(team_id=caller.team_id, mode=caller.mode, user_id=caller.user_id, client_id=caller.client_id,
                         state="pending", **values)


def look(objects, media: Media) -> Verdict | None:
    """Looks at what has arrived for `media` in the store `objects`; None while nothing has.

    Nobody can replace it meanwhile: the store was told to take it once. Raises StoreUnavailable, and RuntimeError where the
    look itself failed.
    """
    found = objects.stat(media.key)
    if found is None:
        return None
    if refusal := _undeclared(found, media):
        return Verdict(None, refusal)
    with tempfile.TemporaryFile(prefix="posthorn-") as spool:
        excerpt.copy(objects, media.key, media.bytes, media.mime_type, spool)
        try:
            facts = examine(spool)
        except NotMedia as error:
            return Verdict(None, str(error))
    if facts.mime_type != media.mime_type:
        return Verdict(None, f"the upload is {facts.mime_type}; {media.mime_type} was declared")
    return Verdict(facts)


def _undeclared(found, media):
    """What of the upload is not as it was declared, whatever its bytes are; None where nothing is."""
    if found.bytes != media.bytes:
        return f"the upload has {found.bytes} bytes; {media.bytes} were declared"
    if found.encoding is not None:      # whoever fetches the file would be told to take its bytes for others
        return f"the upload was sent with the Content-Encoding {found.encoding[:40]}; none is taken"
    if found.content_type.lower() != media.mime_type:
        return f"the upload was sent as {found.content_type[:80]}; {media.mime_type} was declared"
    return None
