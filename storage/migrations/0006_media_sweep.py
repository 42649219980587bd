"""Looking after the files: which uploads were looked for, whose bytes are gone, and where the comparison with the store stands."""

SCHEMA = """
ALTER TABLE media
    ADD COLUMN looked_at timestamptz,       -- when a sweep last looked whether the upload had arrived
    ADD COLUMN removed_at timestamptz;      -- not null: the store has nothing of it any more, and it counts for no quota
CREATE INDEX ON media (looked_at) WHERE state = 'pending';
CREATE INDEX ON media (created_at) WHERE state = 'refused' AND removed_at IS NULL;
CREATE INDEX ON media (team_id, mode) INCLUDE (bytes) WHERE removed_at IS NULL;
CREATE INDEX ON media (key COLLATE "C");    -- the order in which a store lists
CREATE INDEX ON renditions (key);

CREATE TABLE sweeps (
    name text PRIMARY KEY,
    next_at timestamptz NOT NULL DEFAULT now(),
    after text NOT NULL DEFAULT ''          -- the key behind which the comparison goes on
);
INSERT INTO sweeps (name) VALUES ('media');
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
