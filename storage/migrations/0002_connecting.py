"""Connecting accounts in the browser, and looking after the connected ones."""

SCHEMA = """
-- Somebody is connecting an account: gone to the network, or choosing among the accounts that a login has opened.
CREATE TABLE connect_requests (
    id text PRIMARY KEY,
    team_id text NOT NULL,
    user_id text NOT NULL,
    client_id text,
    platform text NOT NULL,
    redirect_url text,                      -- where the person goes in the end; null: to a page of ours
    digest bytea NOT NULL UNIQUE,           -- of the one token that goes on from here
    choosing boolean NOT NULL DEFAULT false,
    sealed bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    account_ids text[],                     -- what came of it: these accounts,
    failure text,                           -- or none, and why
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (account_ids IS NULL OR failure IS NULL),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);
CREATE INDEX ON connect_requests (expires_at);

ALTER TABLE accounts
    ADD COLUMN renewing_until timestamptz,  -- not null: somebody asks the network for new credentials until then at most
    ADD COLUMN profile_read_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX ON accounts (profile_read_at) WHERE status = 'connected';
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
