"""What the handlers work with, built once per process from the settings."""

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

from handlers.config import Config, ConfigError
from handlers.errors import RateLimited
from handlers.stores import open_database, open_store
from platforms.captions import CaptionModel
from platforms.registry import Registry
from storage.database import without_connection
from storage.fetch import Fetcher
from storage.objects import Objects
from storage.secrets import Vault

# What one process does at once of each kind: somebody else's slow server must not take the threads of other requests.
FETCHES, LOOKS, CAPTIONS, CONNECTS = 8, 4, 16, 4


class Turns:
    """At most `number` of something at once, half of them for one team, without a database connection meanwhile.

    The excess is refused with `words`.
    """

    def __init__(self, number, words):
        self._number, self._words = number, words
        self._lock, self._taken = threading.Lock(), Counter()

    @contextmanager
    def turn(self, team_id):
        """One turn of the team. Raises RateLimited when it has its half, or none is free."""
        with self._lock:
            if self._taken.total() >= self._number or self._taken[team_id] >= (self._number + 1) // 2:
                raise RateLimited(self._words, headers={"Retry-After": "5"})
            self._taken[team_id] += 1
        try:
            with without_connection():
                yield
        finally:
            with self._lock:
                self._taken = self._taken - Counter([team_id])


@dataclass(frozen=True)
class Services:
    """Collaborators, handed to every handler that asks for them."""

    config: Config
    objects: Objects
    fetcher: Fetcher
    platforms: Registry
    vault: Vault
    captions: CaptionModel
    fetches: Turns = field(default_factory=lambda: Turns(FETCHES, "too many links are being fetched at this moment"))
    looks: Turns = field(default_factory=lambda: Turns(LOOKS, "too many uploads are being looked at at this moment"))
    asks: Turns = field(default_factory=lambda: Turns(CAPTIONS, "too many captions are being written at this moment"))
    connects: Turns = field(default_factory=lambda: Turns(CONNECTS, "too many accounts are being connected at this moment"))


def build(config: Config, *, connections: int) -> Services:
    """Opens the database pool (of `connections`) and builds the rest; nothing is contacted yet.

    Raises ConfigError naming the setting that cannot be used.
    """
    open_database(config, connections=connections)
    try:
        vault = Vault(config.secret_keys)
    except ValueError:
        raise ConfigError("POSTHORN_SECRET_KEYS must hold Fernet keys; `posthorn secrets new` makes one") from None
    fetcher = open_fetcher(config)
    try:
        registry = Registry(fetcher, config.platforms, allow_plain=config.allow_private)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return Services(config, open_store(config), fetcher, registry, vault, caption_model(config))


def open_fetcher(config: Config) -> Fetcher:
    """A fetcher as the settings have it, which looks names up apart from others. Raises ConfigError as `build` does."""
    try:
        return Fetcher(allow_private=config.allow_private, refuse=config.refuse_networks)
    except ValueError as error:
        raise ConfigError(f"POSTHORN_ALLOW_PRIVATE: {error}") from None


def caption_model(config: Config) -> CaptionModel:
    """The configured caption model; nothing is contacted yet. Raises ConfigError."""
    try:
        return CaptionModel(config.caption_url, config.caption_key, config.caption_model, timeout=config.caption_timeout,
                            headers=config.caption_headers)
    except ValueError as error:
        raise ConfigError(str(error)) from None
