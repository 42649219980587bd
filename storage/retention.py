"""Removes what has done its work: rows that only matter for a while."""

from storage.database import database

# An answer is replayed for a day; a bucket that is full is worth no more than one that is not there.
# What a team used up is kept for a look back at the month.
TIDY = """
DELETE FROM idempotency_keys WHERE started_at < now() - interval '25 hours';
DELETE FROM buckets WHERE full_at < now() - interval '1 hour';
DELETE FROM connect_requests WHERE expires_at < now() - interval '1 hour';
DELETE FROM caption_reservations WHERE ends_at < now() - interval '2 days';
DELETE FROM caption_days AS d WHERE day < current_date - 40
    AND NOT EXISTS (SELECT FROM caption_reservations AS r WHERE r.team_id = d.team_id AND r.day = d.day);
DELETE FROM sign_in_links WHERE expires_at < now();
DELETE FROM sessions WHERE expires_at < now();
DELETE FROM oauth_codes WHERE expires_at < now() - interval '1 day';
DELETE FROM oauth_tokens WHERE expires_at < now();
DELETE FROM workers WHERE seen_at < now() - interval '1 day';
"""


def tidy() -> None:
    """Removes them, in one short transaction; any number of workers may do so."""
    database.execute_sql(TIDY)
