"""Removes what has done its work: rows that only matter for a while."""

from storage.database import database

# An answer is replayed for a day; a bucket that is full is worth no more than one that is not there.
TIDY = """
DELETE FROM idempotency_keys WHERE started_at < now() - interval '25 hours';
DELETE FROM buckets WHERE full_at < now() - interval '1 hour';
DELETE FROM workers WHERE seen_at < now() - interval '1 day';
"""


def tidy() -> None:
    """Removes them, in one short transaction; any number of workers may do so."""
    database.execute_sql(TIDY)
