"""Pictures as the networks take them: made from a file once, and kept beside it."""

SCHEMA = """
ALTER TABLE media ADD COLUMN animated boolean NOT NULL DEFAULT false;   -- a PNG or WebP of several frames

CREATE TABLE renditions (
    team_id text NOT NULL,
    mode text NOT NULL,
    media_id text NOT NULL,
    recipe text NOT NULL,                   -- what was made of it
    key text NOT NULL,                      -- the original's own, where nothing had to be changed
    mime_type text NOT NULL,
    bytes bigint NOT NULL CHECK (bytes > 0),
    width integer NOT NULL,
    height integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (media_id, recipe),
    FOREIGN KEY (team_id, mode, media_id) REFERENCES media (team_id, mode, id)
);
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
