"""Webhooks: addresses that are told of events. What they are told, and how that goes, stands in storage/deliveries.py."""

import base64
import secrets
from datetime import timedelta

from peewee import BlobField, TextField, Value, fn
from playhouse.postgres_ext import ArrayField, DateTimeTZField

from storage.claims import LOCK_TEAM
from storage.database import database, new_id, ring
from storage.models import Owned, wire_time
from storage.secrets import Vault

BY_HAND = "disabled over the API"
REMOVED = "removed"
BELL_WORD = "deliveries"            # with which the workers' bell is rung for what is to be sent
OVERLAP = timedelta(hours=24)       # for which the secret before a rotation still signs

# What waited for longer than its attempts may take is not sent by itself any more.
GIVE_UP_OLD = """
UPDATE deliveries SET status = 'failed', next_at = NULL
WHERE webhook_id = %s AND status = 'pending' AND leased_until IS NULL AND ends_at < clock_timestamp()
"""


class TooMany(Exception):
    """The team has as many webhooks as it may have."""


class TwoSecrets(Exception):
    """The webhook was given a new secret within OVERLAP: the one before, which receivers may have, still signs."""


class Webhook(Owned):
    """An address that is told of events. Its secrets are sealed (storage.secrets); they leave the database only to sign."""

    prefix = "wh"
    mode = TextField()
    client_id = TextField(null=True)
    user_id = TextField()
    url = TextField()
    description = TextField()
    events = ArrayField(TextField)
    status = TextField()
    secret = BlobField()
    previous_secret = BlobField(null=True)
    previous_until = DateTimeTZField(null=True)
    disabled_at = DateTimeTZField(null=True)
    disabled_reason = TextField(null=True)
    updated_at = DateTimeTZField()

    class Meta:
        table_name = "webhooks"

    @classmethod
    def create(cls, caller, vault: Vault, limit: int, **values):
        """A webhook of `caller` with `values` (url, events, description, client_id), and its secret, which is told only now.

        Raises TooMany where the team has `limit` webhooks in this mode already, exactly, however many ask at once.
        """
        webhook_id, secret = new_id(cls.prefix), _new_secret()
        sealed = vault.seal(owner(caller.team_id, webhook_id), {"secret": secret})
        with database.atomic():
            database.execute_sql(LOCK_TEAM, (caller.team_id,))
            rules = cls.team_id == caller.team_id, cls.mode == caller.mode, cls.status != REMOVED
            if cls.select().where(*rules).count() >= limit:
                raise TooMany
            query = cls.insert(id=webhook_id, team_id=caller.team_id, mode=caller.mode, user_id=caller.user_id, secret=sealed,
                               **values).returning(cls)
            return next(iter(query.execute())), secret

    @classmethod
    def of(cls, caller):
        """Those of the caller that were not removed."""
        return super().of(caller).where(cls.status != REMOVED)

    def edit(self, changes: dict):
        """Writes what `changes` names (url, events, description, status); returns the row as it is then, None if it is gone.

        Enabling goes on with what is pending and not too old; what is too old has failed.
        """
        changes = dict(changes)
        with database.atomic():
            present = Webhook.select(Webhook.status).where(Webhook.id == self.id).for_update("FOR NO KEY UPDATE").scalar()
            if (status := changes.get("status")) == present:
                changes.pop("status", None)
            elif status is not None:
                at, reason = (fn.clock_timestamp(), BY_HAND) if status == "disabled" else (None, None)
                changes |= {"disabled_at": at, "disabled_reason": reason}
            row = self._write(**changes)
            if changes.get("status") == "enabled":
                database.execute_sql(GIVE_UP_OLD, (self.id,))
                ring(BELL_WORD)
        return row

    def rotate(self, vault: Vault, *, end_previous: bool = False):
        """Gives it a new secret; returns the row then (None: it is gone), and the secret.

        The present one signs beside it for OVERLAP, or no more. Raises TwoSecrets where one signs beside the present one.
        """
        secret = _new_secret()
        sealed = vault.seal(owner(self.team_id, self.id), {"secret": secret})
        if end_previous:
            return self._write(secret=sealed, previous_secret=None, previous_until=None), secret
        with database.atomic():
            until = Webhook.select(Webhook.previous_until > fn.clock_timestamp()).where(Webhook.id == self.id)
            if until.for_update("FOR NO KEY UPDATE").scalar():
                raise TwoSecrets
            row = self._write(secret=sealed, previous_secret=Webhook.secret,
                              previous_until=fn.clock_timestamp() + Value(OVERLAP, converter=False))
        return row, secret

    def remove(self) -> bool:
        """Ends it; returns whether it was still there. Its deliveries go bit by bit (storage.retention), and then the row.

        All at once, they could take so long that what ends meanwhile waits for longer than a lease.
        """
        return self._write(status=REMOVED, disabled_at=None, disabled_reason=None) is not None

    def _write(self, **changes):
        query = Webhook.update(**changes, updated_at=fn.clock_timestamp()).returning(Webhook)
        return next(iter(query.where(Webhook.id == self.id, Webhook.status != REMOVED).execute()), None)

    def to_dict(self):
        wire = {"id": self.id, "url": self.url, "events": self.events, "description": self.description or None,
                "clientId": self.client_id, "status": self.status, "disabledAt": wire_time(self.disabled_at),
                "disabledReason": self.disabled_reason, "createdAt": wire_time(self.created_at),
                "updatedAt": wire_time(self.updated_at)}
        return {name: value for name, value in wire.items() if value is not None}


def owner(team_id: str, webhook_id: str) -> str:
    """What the sealed secrets of a webhook are bound to."""
    return f"teams/{team_id}/webhooks/{webhook_id}"


def _new_secret():
    # As long as Standard Webhooks recommends for HMAC-SHA256: 24 to 64 bytes.
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
