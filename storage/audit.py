"""Who did what: written in the transaction that does it, never changed."""

import getpass
from dataclasses import dataclass

from peewee import BigIntegerField, Model, TextField
from playhouse.postgres_ext import BinaryJSONField, DateTimeTZField

from storage.database import database
from storage.models import wire_time


@dataclass(frozen=True)
class Actor:
    """Who does something: a person's id, or what else acts; and with which credential."""

    name: str
    credential_id: str | None = None


WORKER = Actor("worker")
SOMEBODY = Actor("somebody")    # who did not show who they are


class Entry(Model):
    """One line of the trail. The database refuses to change or remove any."""

    id = BigIntegerField(primary_key=True)
    at = DateTimeTZField()
    team_id = TextField(null=True)
    mode = TextField(null=True)
    actor = TextField()
    credential_id = TextField(null=True)
    action = TextField()
    object_id = TextField()
    detail = BinaryJSONField()

    class Meta:
        database = database
        table_name = "audit"

    def to_dict(self):
        return {"at": wire_time(self.at), "teamId": self.team_id, "mode": self.mode, "actor": self.actor,
                "credentialId": self.credential_id, "action": self.action, "objectId": self.object_id, "detail": self.detail}


def by(caller) -> Actor:
    """A caller of the API."""
    return Actor(caller.user_id, caller.credential_id)


def typed() -> Actor:
    """Whoever typed a command on this machine."""
    return Actor(f"command {getpass.getuser()}")


def record(actor: Actor, action: str, object_id: str, *, team_id=None, mode=None, **detail) -> None:
    """Writes a line, in the caller's transaction. `detail` holds ids, names and states; never a secret."""
    Entry.insert(team_id=team_id, mode=mode, actor=actor.name, credential_id=actor.credential_id, action=action,
                 object_id=object_id, detail={name: value for name, value in detail.items() if value is not None}).execute()


def trail(*, team_id=None, object_id=None, limit=100) -> list[Entry]:
    """The last `limit` lines, oldest first; of one team, of one object, or of all."""
    rules = [rule for value, rule in ((team_id, Entry.team_id == team_id), (object_id, Entry.object_id == object_id)) if value]
    query = Entry.select().order_by(Entry.id.desc()).limit(limit)
    return list(query.where(*rules) if rules else query)[::-1]
