"""The daily token budget of captions, exact across processes and machines.

Tokens are held back before the model is asked and settled after it; both lock the row of the team's day, so that no two see
the same rest. What a process that died held back counts as used: it was probably spent.
"""

from dataclasses import dataclass
from datetime import datetime

from storage.database import database, new_id

# The update changes nothing but takes the lock.
LOCK_TODAY = """
INSERT INTO caption_days AS d (team_id, day) SELECT id, (now() AT TIME ZONE time_zone)::date FROM teams WHERE id = %(team_id)s
ON CONFLICT (team_id, day) DO UPDATE SET used = d.used
RETURNING day, (day + 1)::timestamp AT TIME ZONE (SELECT time_zone FROM teams WHERE id = %(team_id)s)
"""
BURY = """
WITH dead AS (DELETE FROM caption_reservations WHERE team_id = %(team_id)s AND day = %(day)s AND ends_at < clock_timestamp()
              RETURNING tokens)
UPDATE caption_days SET used = used + (SELECT coalesce(sum(tokens), 0) FROM dead)
WHERE team_id = %(team_id)s AND day = %(day)s RETURNING used
"""
HELD = """
SELECT count(*), coalesce(sum(tokens), 0) FROM caption_reservations WHERE team_id = %(team_id)s AND day = %(day)s
"""
LARGEST = "SELECT coalesce(max(largest), 0) FROM caption_days WHERE team_id = %(team_id)s AND day > %(day)s::date - 7"
HOLD = """
INSERT INTO caption_reservations (id, team_id, day, tokens, ends_at)
VALUES (%(id)s, %(team_id)s, %(day)s, %(tokens)s, clock_timestamp() + %(seconds)s * interval '1 second')
"""
LOCK_DAY = "SELECT FROM caption_days WHERE team_id = %(team_id)s AND day = %(day)s FOR UPDATE"
RELEASE = "DELETE FROM caption_reservations WHERE id = %(id)s"
USE = """
UPDATE caption_days SET used = greatest(0, used + %(more)s), largest = greatest(largest, %(used)s)
WHERE team_id = %(team_id)s AND day = %(day)s
"""


class UsedUp(Exception):
    """The budget of today is used up until `resets_at`; or, where `held`, the rest is held for captions under way."""

    def __init__(self, resets_at: datetime, held: bool):
        super().__init__()
        self.resets_at, self.held = resets_at, held


@dataclass(frozen=True)
class Reservation:
    """Tokens held back from a team's day, until they are settled."""

    id: str
    team_id: str
    day: object
    tokens: int

    def settle(self, used: int) -> None:
        """Counts what was used in place of what was held, on the day on which it was held."""
        row = {"id": self.id, "team_id": self.team_id, "day": self.day}
        with database.atomic():
            database.execute_sql(LOCK_DAY, row)
            counted_already = 0 if database.execute_sql(RELEASE, row).rowcount else self.tokens
            database.execute_sql(USE, {**row, "used": used, "more": used - counted_already})


def hold(team_id: str, *, limit: int, tokens: int, seconds: float) -> Reservation:
    """Holds what a caption may cost back from what is left of `limit` today, for at most `seconds`. Raises UsedUp.

    That is `tokens`, or what the team's dearest caption of the last seven days has cost, if that is more. Where less is left,
    or no cost is known yet, a caption may begin as long as it is the only one: a budget is used to its end, and what goes
    beyond it is one caption, not a burst of them.
    """
    row = {"team_id": team_id, "seconds": seconds, "id": new_id("capres")}
    with database.atomic():
        row["day"], resets_at = database.execute_sql(LOCK_TODAY, row).fetchone()
        used = database.execute_sql(BURY, row).fetchone()[0]
        under_way, held = database.execute_sql(HELD, row).fetchone()
        largest = database.execute_sql(LARGEST, row).fetchone()[0]
        row["tokens"] = max(tokens, largest)
        fits = largest and used + held + row["tokens"] <= limit
        if used >= limit or under_way and not fits:
            raise UsedUp(resets_at, held=used < limit)
        database.execute_sql(HOLD, row)
    return Reservation(row["id"], team_id, row["day"], row["tokens"])
