"""The daily token budget of captions: what each team has used on each of its days, and what is held for captions under way."""

SCHEMA = """
CREATE TABLE caption_days (
    team_id text NOT NULL REFERENCES teams,
    day date NOT NULL,                      -- in the team's time zone
    used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
    PRIMARY KEY (team_id, day)
);

CREATE TABLE caption_reservations (
    id text PRIMARY KEY,
    team_id text NOT NULL,
    day date NOT NULL,
    tokens bigint NOT NULL CHECK (tokens >= 0),
    ends_at timestamptz NOT NULL,           -- after that its process has died, and it counts as used
    FOREIGN KEY (team_id, day) REFERENCES caption_days
);
CREATE INDEX ON caption_reservations (team_id, day);
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
