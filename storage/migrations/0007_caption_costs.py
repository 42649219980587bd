"""What the dearest caption of a team's day has cost: so much is held for each that is under way, before its own cost is known."""

SCHEMA = """
ALTER TABLE caption_days ADD COLUMN largest bigint NOT NULL DEFAULT 0;      -- tokens; 0 while none has been settled
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
