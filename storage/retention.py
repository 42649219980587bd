"""Removes what has done its work: rows that only matter for a while."""

from storage.database import database

# An answer is replayed for a day; a bucket that is full is worth no more than one that is not there.
# What a team used up is kept for a look back at the month. Sessions and links end without a trace but in the trail; codes and
# tokens are known for a day longer, in which one that comes again ends what came of it; then their grant goes as well, unless
# it is a program's own, which it has for as long as there is the program.
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
DELETE FROM oauth_tokens WHERE expires_at < now() - interval '1 day';
DELETE FROM oauth_tokens AS t USING oauth_grants AS g WHERE g.id = t.grant_id AND g.revoked_at < now() - interval '1 day';
DELETE FROM oauth_grants AS g WHERE created_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT FROM oauth_codes AS c WHERE c.grant_id = g.id)
    AND NOT EXISTS (SELECT FROM oauth_tokens AS t WHERE t.grant_id = g.id)
    AND (NOT own OR EXISTS (SELECT FROM oauth_clients AS a
                            WHERE a.id = g.oauth_client_id AND a.revoked_at < now() - interval '1 day'));
DELETE FROM workers WHERE seen_at < now() - interval '1 day';
"""


def tidy() -> None:
    """Removes them, in one short transaction; any number of workers may do so."""
    database.execute_sql(TIDY)
