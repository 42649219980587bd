"""Old and new code run side by side during an upgrade: a migration only adds, and is never in the way for long."""

import importlib.util
import re
import threading
import time

import psycopg2
import pytest

from storage import database as schema
from storage.database import MIGRATIONS, MigrationHindered, database, migrate, pending_migrations
from tests.commands import posthorn
from tests.delivery import own_database

FIRST_RELEASE = 8       # the migrations up to this one were never applied under running code
LATER = sorted(path for path in MIGRATIONS.glob("[0-9]*.py") if int(path.name[:4]) > FIRST_RELEASE)

# What no older program and none of its writes can stumble over, on a table that was there before. A default that is not the
# same for all rows would have the table written anew.
CONSTANT = r"(?:true|false|-?\d+(?:\.\d+)?|'[^']*'(?:::\w+(?:\[\])?)?|now\(\))"
TYPE = (r"(?:text|boolean|smallint|integer|bigint|double precision|numeric\(\d+\)|jsonb|bytea|uuid|inet|interval|timestamptz)"
        r"(?:\[\])?")
COLUMN = re.compile(rf"add column \w+ {TYPE}(?:(?: not null)? default {CONSTANT})?", re.I)
INDEX = re.compile(r"create index concurrently .+", re.I)
ADDING = re.compile(r"create (?:or replace )?function .+|create trigger .+", re.I | re.S)
NEW_TABLE = re.compile(r"create table (\w+) ", re.I)
ON_TABLE = re.compile(r"(?:create (?:unique )?index (?:\w+ )?on|alter table|insert into) (\w+)", re.I)
TOKENS = re.compile(r"--[^\n]*|\$\$.*?\$\$|'(?:[^']|'')*'|[(),;]|[^-$'(),;]+|.", re.S)


def split(sql, at):
    """The parts of `sql` between `at`, on one line each and without comments; quotes, bodies and parentheses stay whole."""
    parts, depth = [""], 0
    for token in TOKENS.findall(sql):
        depth += (token == "(") - (token == ")")
        if token == at and depth == 0:
            parts.append("")
        elif not token.startswith("--"):
            parts[-1] += token
    return [" ".join(part.split()) for part in parts if part.strip()]


class Recorder:
    """Takes what a migration does."""

    def __init__(self):
        self.statements = []

    def execute_sql(self, sql, parameters=None):
        """In place of the database's."""
        self.statements += split(sql, ";")


def only_adds(statement, new):
    """Whether code that knows nothing of `statement` can go on; `new`: the tables that the migration has made so far."""
    if made := NEW_TABLE.match(statement):
        new.add(made[1])
        return True
    if ADDING.fullmatch(statement):
        return True
    table = ON_TABLE.match(statement)
    if table and table[1] in new or INDEX.fullmatch(statement):
        return True
    altered = re.fullmatch(r"alter table \w+ (.+)", statement, re.I)
    return bool(altered) and all(COLUMN.fullmatch(action) for action in split(altered[1], ","))


def refused(sql):
    new = set()
    return [statement for statement in split(sql, ";") if not only_adds(statement, new)]


@pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)
def test_a_migration_only_adds(path):
    """One that takes away what no code needs any more says so: CONTRACT = "since which release, and why"."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    done = Recorder()
    module.up(None, done)
    says_so = re.match(r"\d+\.\d+\.\d+: .+", getattr(module, "CONTRACT", ""))
    assert done.statements and (says_so or refused(";".join(done.statements)) == [])


@pytest.mark.parametrize("sql", [
    "DROP TABLE posts", "ALTER TABLE posts DROP COLUMN caption", "ALTER TABLE posts RENAME COLUMN caption TO text",
    "ALTER TABLE posts RENAME TO articles", "ALTER TABLE posts ADD COLUMN a text NOT NULL", "TRUNCATE posts",
    "ALTER TABLE posts ALTER COLUMN caption TYPE varchar(10)", "ALTER TABLE posts ALTER COLUMN caption SET NOT NULL",
    "ALTER TABLE posts ADD COLUMN a text, DROP COLUMN b", "ALTER TABLE posts ADD COLUMN a text UNIQUE",
    "ALTER TABLE posts ADD COLUMN a text CHECK (a <> '')", "ALTER TABLE posts ADD COLUMN a text REFERENCES teams",
    "ALTER TABLE posts ADD COLUMN a uuid NOT NULL DEFAULT gen_random_uuid()", "ALTER TABLE posts ADD CHECK (caption <> '')",
    "CREATE INDEX ON posts (caption)", "CREATE UNIQUE INDEX CONCURRENTLY one ON posts (caption)",
    "UPDATE posts SET caption = ''",
    "CREATE TABLE a (id text); DROP TABLE b", "INSERT INTO posts DEFAULT VALUES", "DROP FUNCTION target_step",
    "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT; $$; DROP TRIGGER t ON posts", "ALTER TYPE t RENAME TO u",
])
def test_what_takes_away_is_refused(sql):
    assert len(refused(sql)) == 1


@pytest.mark.parametrize("sql", [
    "CREATE TABLE a (id text PRIMARY KEY, b text NOT NULL CHECK (b IN ('x;y', 'z'))); CREATE UNIQUE INDEX ON a (b);"
    "ALTER TABLE a ADD UNIQUE (b); INSERT INTO a VALUES ('1', 'z') -- done; DROP TABLE posts",
    "ALTER TABLE posts ADD COLUMN a text, ADD COLUMN b boolean NOT NULL DEFAULT false, ADD COLUMN c numeric(4)",
    "alter table posts add column tags text[] not null default '{}'::text[]", "CREATE INDEX CONCURRENTLY ON posts (caption)",
    "CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT 'DROP'; $$",
])
def test_what_adds_is_taken(sql):
    assert refused(sql) == []


def test_two_at_once_share_the_work(environ, connection):
    connection.execute_sql("CREATE DATABASE twice")
    settings = {**environ, "DATABASE_URL": environ["DATABASE_URL"].replace("/postgres?", "/twice?")}
    said = []
    try:
        both = [threading.Thread(target=lambda: said.append(posthorn(settings, "migrate"))) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        names = "".join(f"{path.stem}\n" for path in sorted(MIGRATIONS.glob("[0-9]*.py")))
        assert sorted(said) == sorted(["nothing to do\n", names])
    finally:
        connection.execute_sql("DROP DATABASE twice WITH (FORCE)")


@pytest.fixture
def one_more(postgres_url, tmp_path, monkeypatch):
    """A database that lacks one migration, which adds a table and a column to posts; gives a session that reads these."""
    with own_database(postgres_url) as address:
        sql = "CREATE TABLE more (); ALTER TABLE posts ADD COLUMN more text"
        (tmp_path / "0001_more.py").write_text(f'def up(migrator, db):\n    db.execute_sql("{sql}")\n')
        monkeypatch.setattr(schema, "MIGRATIONS", tmp_path)
        monkeypatch.setattr(schema, "HINDERED_PAUSE", 0.01)
        # Should the migration wait for as long as it takes, this session ends before the test does.
        session = psycopg2.connect(address, options="-c idle_in_transaction_session_timeout=20s")
        session.cursor().execute("SELECT FROM posts")
        yield session
        session.close()


def test_a_migration_that_is_hindered_gives_way_and_is_tried_again(one_more, monkeypatch):
    hindered = []

    def give_up(_):
        hindered.append(1)
        one_more.rollback()

    monkeypatch.setattr(time, "sleep", give_up)
    assert migrate() == ["0001_more"] and hindered == [1]
    with database.connection_context():
        assert pending_migrations() == []
        assert database.execute_sql("SHOW lock_timeout").fetchone() == ("0",)


def test_a_migration_that_stays_hindered_has_done_nothing_and_says_so(one_more, monkeypatch):
    monkeypatch.setattr(schema, "HINDERED_TRIES", 2)
    began = time.monotonic()
    with pytest.raises(MigrationHindered, match="the migration 0001_more was not done, since somebody else uses for long what"):
        migrate()
    assert time.monotonic() - began < 10        # and not for ever
    with database.connection_context():
        assert pending_migrations() == ["0001_more"]
        assert database.execute_sql("SELECT to_regclass('more')").fetchone() == (None,)
