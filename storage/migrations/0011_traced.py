"""What a worker does about a target can be found by the request that asked for it."""

# Both are null for what was asked for before; a traceparent is W3C's, 55 characters, where traces are switched on.
SCHEMA = """
ALTER TABLE targets ADD COLUMN request_id text, ADD COLUMN traceparent text;
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
