"""A database that does not answer: why, as far as that is known, and told as often as is of use."""

import logging
import time

from playhouse.pool import MaxConnectionsExceeded

AGAIN = 60.0        # seconds after which it is told again

# What PostgreSQL and libpq say, in English, and what that means; their own words may name users and hosts.
SIGNS = (
    ("Connection refused", "nobody listens there"),
    ("No such file or directory", "nobody listens there"),
    ("could not translate host name", "the name of its host cannot be looked up"),
    ("timeout expired", "it does not answer in time"),
    ("password authentication failed", "it refuses the password"),
    ("no pg_hba.conf entry", "it refuses this machine"),
    ("does not exist", "it has no such database or user"),
    ("too many clients", "it has no connection left"),
    ("remaining connection slots", "it has no connection left"),
    ("too many connections", "it has no connection left"),
    ("starting up", "it is starting"),
    ("shutting down", "it is stopping"),
    ("terminating connection", "it is stopping, or somebody ended the connection"),
    ("server closed the connection", "it ended the connection"),
    ("read-only transaction", "it takes no writing"),
    ("No space left on device", "its disk is full"),
)


def why(error: BaseException) -> str:
    """What is wrong with the database, in words that are safe to show; where that is not known, the kind of `error`."""
    if isinstance(error, MaxConnectionsExceeded):
        return "all connections of this process are in use"
    said = str(error)
    return next((words for sign, words in SIGNS if sign in said), type(error).__name__)


class Outage:
    """Tells in `log` that something is away, at once and every AGAIN seconds, and for how long it was. For one thread."""

    def __init__(self, log: logging.Logger, what: str):
        self._log, self._what, self._since, self._told = log, what, None, 0.0

    def goes_on(self, error: BaseException) -> None:
        """It is away, as `error` says."""
        now = time.monotonic()
        begins = self._since is None
        if begins:
            self._since = now
        if begins or now - self._told >= AGAIN:
            self._told = now
            self._log.warning("%s is away: %s; trying again", self._what, why(error))

    def is_over(self) -> None:
        """It is there, whether or not it was away."""
        if self._since is not None:
            self._log.info("%s is back after %.0f s", self._what, time.monotonic() - self._since)
            self._since = None
