"""The one PostgreSQL database: its pool, its migrations, its clock and its bell."""

import secrets
import select
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import psycopg2
from peewee import InterfaceError, InternalError, OperationalError, ProgrammingError
from playhouse.migrations import Runner
from playhouse.pool import MaxConnectionsExceeded, PooledPostgresqlDatabase
from psycopg2.errors import DeadlockDetected, LockNotAvailable, UndefinedColumn, UndefinedTable
from psycopg2.extensions import parse_dsn

MIGRATIONS = Path(__file__).with_name("migrations")
MIGRATION_LOCK = 0x506F7374     # any constant of ours: pg_advisory_lock key that lets one migration run at a time
# What waits for a table holds up all who come after it: for less than a lease (platforms/worker.py), and for less than
# PostgreSQL takes to end one of two that wait for each other, which is then never the live one.
LOCK_WAIT = "500ms"
HINDERED_TRIES, HINDERED_PAUSE = 30, 2.0    # the pause, in seconds, is for those who were held up
BELL = "posthorn_due"           # the NOTIFY channel that wakes the workers

# What a database that is away, restarting, overrun or read-only (another server takes over) raises; nothing was committed then.
DatabaseAway = (OperationalError, InterfaceError, InternalError, MaxConnectionsExceeded)

STUBBORN = 120                  # tries, half a second apart, to write down what must not be lost

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Pool(PooledPostgresqlDatabase):
    """Peewee's pool, but a connection is handed out without asking the server whether it lives: that costs every request a
    round trip."""

    @staticmethod
    def told(number: int) -> None:
        """Called with the number of connections in use whenever it changes; another function may be put in its place."""

    def _is_closed(self, conn):
        if conn.closed:
            return True
        idle = select.poll()
        idle.register(conn.fileno(), select.POLLIN)
        return bool(idle.poll(0))       # an idle connection has nothing to say but that its server has ended it

    def _connect(self):
        connection = super()._connect()
        self.told(len(self._in_use))
        return connection

    def _close(self, conn, close_conn=False):
        super()._close(conn, close_conn)
        self.told(len(self._in_use))


database = Pool(None)


def open_pool(url: str, *, connections: int) -> None:
    """Binds the models to the database at `url` (a libpq URL) with at most `connections` connections of this process.

    A caller that finds all of them in use waits up to 5 s. Raises ValueError when `url` cannot be read.
    """
    try:
        parameters = connection_parameters(url)
    except psycopg2.ProgrammingError:
        raise ValueError("not a PostgreSQL connection URL") from None
    database.init(parameters.pop("dbname"), max_connections=connections, stale_timeout=300, timeout=5, **parameters)


def connection_parameters(url: str) -> dict:
    """The libpq parameters of `url`, with ours where it names none: UTC, prompt failure, TCP keepalives.

    None of ours does anything else in the middle of a transaction: a process or machine that froze there must not hold what others
    wait for.
    """
    ours = {"dbname": "posthorn", "connect_timeout": "5", "application_name": "posthorn",
            "options": "-c timezone=UTC -c idle_in_transaction_session_timeout=15s",
            "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}
    return {**ours, **parse_dsn(url)}


class MigrationHindered(Exception):
    """Others hold what a migration needs. The text is one sentence for whoever wanted it."""


def migrate() -> list[str]:
    """Applies the migrations that are missing, one process at a time, each whole or not at all; returns their names.

    Whoever uses the tables meanwhile waits half a second at most for one that is hindered, which is then tried again for 75 s.
    Raises MigrationHindered.
    """
    with database.connection_context():
        database.execute_sql("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))
        try:
            database.execute_sql(f"SET lock_timeout = '{LOCK_WAIT}'")
            return _apply(pending_migrations())
        finally:
            database.execute_sql("RESET lock_timeout")
            database.execute_sql("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))


def _apply(missing):
    for tries_left in reversed(range(HINDERED_TRIES)):
        try:
            Runner(database, str(MIGRATIONS), table_name="schema_migrations").up()
            break
        except OperationalError as error:
            if not isinstance(getattr(error, "orig", None), LockNotAvailable | DeadlockDetected):
                raise
            if not tries_left:
                raise MigrationHindered(f"the migration {pending_migrations()[0]} was not done, since somebody else uses for "
                                        "long what it changes: pg_stat_activity says who; then run this again") from None
            time.sleep(HINDERED_PAUSE)
    return missing


def pending_migrations() -> list[str]:
    """The names of the migrations that are missing in the database."""
    runner = Runner(database, str(MIGRATIONS), table_name="schema_migrations")
    return [migration.name for migration in runner.status() if not migration.applied]


def later_migrations() -> list[str]:
    """The names of the migrations in the database that this code does not know: a newer one has been here."""
    runner = Runner(database, str(MIGRATIONS), table_name="schema_migrations")
    return [migration.name for migration in runner.status() if migration.path is None]


def is_unmigrated(error: ProgrammingError) -> bool:
    """Whether it says that the database lacks a table or a column: ours are all there when every migration was applied."""
    return isinstance(getattr(error, "orig", None), UndefinedTable | UndefinedColumn)


@contextmanager
def with_connection():
    """A connection of the pool for this thread, which `without_connection` may give back for a while."""
    database.connect(reuse_if_open=True)
    try:
        yield
    finally:
        database.close()


@contextmanager
def without_connection():
    """Gives this thread's connection back to the pool while it waits for somebody else's server."""
    database.close()
    try:
        yield
    finally:
        database.connect(reuse_if_open=True)


def insist(write: Callable):
    """What `write` returns, called on a connection; again and again for a minute while the database is away."""
    for attempt in range(STUBBORN):
        try:
            with database.connection_context():
                return write()
        except DatabaseAway:
            if attempt == STUBBORN - 1:
                raise
            time.sleep(0.5)


def ring(what: str = "") -> None:
    """Wakes the workers when the present transaction commits; `what` as in platforms.lines.Line, by itself for posts."""
    database.execute_sql(f"NOTIFY {BELL}, '{what}'" if what else f"NOTIFY {BELL}")


def new_id(prefix: str) -> str:
    """A fresh id: `prefix`, an underscore and 22 random base62 characters (131 bits), so that none can be guessed."""
    return f"{prefix}_" + "".join(secrets.choice(BASE62) for _ in range(22))
