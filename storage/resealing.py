"""Sealing anew what was sealed under an older key, while the service runs."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from peewee import fn

from storage.models import Account, ConnectRequest
from storage.secrets import Unreadable, Vault
from storage.webhooks import Webhook

# Every column that a Vault seals.
SEALED = ((Account, "credentials"), (ConnectRequest, "sealed"), (Webhook, "secret"), (Webhook, "previous_secret"))
BATCH = 100
PATIENCE = 5    # seconds between two looks at what a worker was just renewing


@dataclass
class Progress:
    """How far it is. `unreadable` names the rows that no configured key opens."""

    total: int
    done: int = 0
    resealed: int = 0
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Census:
    """How many values are sealed, how many of them under another key than the first, and the rows that no key opens."""

    total: int
    old: int
    unreadable: tuple[str, ...]


def census(vault: Vault) -> Census:
    """Tries to open all that is sealed; changes nothing."""
    total, old, unreadable = 0, 0, []
    for model, column in SEALED:
        for batch in _batches(model, column):
            for row in batch:
                try:
                    old += vault.fresh(getattr(row, column)) is not None
                except Unreadable:
                    unreadable.append(row.id)
            total += len(batch)
    return Census(total, old, tuple(unreadable))


def reseal(vault: Vault) -> Iterator[Progress]:
    """Seals everything under the vault's first key; yields the progress after each batch. May be repeated and interrupted."""
    progress = Progress(sum(_all(model, column).count() for model, column in SEALED))
    yield progress
    for model, column in SEALED:
        for batch in _batches(model, column):
            for row in batch:
                _reseal(vault, model, column, row, progress)
            progress.done += len(batch)
            yield progress


def _reseal(vault, model, column, row, progress):
    while row is not None and (sealed := getattr(row, column)) is not None:
        try:
            fresh = vault.fresh(sealed)
        except Unreadable:
            progress.unreadable += (row.id,)
            return
        if fresh is None:
            return
        if model.update({column: fresh}).where(model.id == row.id, getattr(model, column) == sealed, *_free(model)).execute():
            progress.resealed += 1
            return
        # Somebody else wrote it meanwhile, or a worker asks the network for new ones and must find the row as it was.
        time.sleep(PATIENCE)
        row = model.get_or_none(model.id == row.id)


def _batches(model, column):
    last = ""
    while batch := list(_all(model, column).where(model.id > last).order_by(model.id).limit(BATCH)):
        yield batch
        last = batch[-1].id


def _all(model, column):
    return model.select().where(getattr(model, column).is_null(False))


def _free(model):
    if not hasattr(model, "renewing_until"):
        return []
    return [model.renewing_until.is_null() | (model.renewing_until < fn.clock_timestamp())]
