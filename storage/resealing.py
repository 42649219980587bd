"""Sealing anew what was sealed under an older key, while the service runs."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from peewee import fn

from storage.models import Account, ConnectRequest
from storage.secrets import Unreadable, Vault

SEALED = {Account: "credentials", ConnectRequest: "sealed"}     # every column that a Vault seals
BATCH = 100
PATIENCE = 5    # seconds between two looks at what a worker was just renewing


@dataclass
class Progress:
    """How far it is. `unreadable` names the rows that no configured key opens."""

    total: int
    done: int = 0
    resealed: int = 0
    unreadable: tuple[str, ...] = ()


def reseal(vault: Vault) -> Iterator[Progress]:
    """Seals everything under the vault's first key; yields the progress after each batch. May be repeated and interrupted."""
    progress = Progress(sum(_all(model).count() for model in SEALED))
    yield progress
    for model in SEALED:
        last = ""
        while batch := list(_all(model).where(model.id > last).order_by(model.id).limit(BATCH)):
            for row in batch:
                _reseal(vault, model, row, progress)
            last, progress.done = batch[-1].id, progress.done + len(batch)
            yield progress


def _reseal(vault, model, row, progress):
    column = SEALED[model]
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


def _all(model):
    return model.select().where(getattr(model, SEALED[model]).is_null(False))


def _free(model):
    if not hasattr(model, "renewing_until"):
        return []
    return [model.renewing_until.is_null() | (model.renewing_until < fn.clock_timestamp())]
