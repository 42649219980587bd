"""People who sign in, the apps that act for them, keys that replace others, whose a file is, and who did what."""

SCHEMA = """
ALTER TABLE users
    ADD COLUMN login text UNIQUE CHECK (login = lower(login)),      -- null: does not sign in
    ADD COLUMN password text,               -- an Argon2 hash; null: signs in by link alone
    ADD COLUMN disabled_at timestamptz;     -- not null: no credential of this user works

CREATE TABLE sign_in_links (
    digest bytea PRIMARY KEY,
    team_id text NOT NULL,
    user_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id)
);

CREATE TABLE sessions (
    digest bytea PRIMARY KEY,
    team_id text NOT NULL,
    user_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id)
);
CREATE INDEX ON sessions (user_id);

CREATE TABLE oauth_clients (
    id text PRIMARY KEY,
    team_id text REFERENCES teams,          -- null: people of every team may use it
    user_id text,                           -- as whom it acts by itself; null: only for people who allow it
    client_id text,                         -- the one agency client that it may act for
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    name text NOT NULL,
    secret bytea,                           -- a digest; null: a public client, which can keep none
    redirect_uris text[] NOT NULL,
    scopes text[] NOT NULL,
    revoked_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (user_id IS NULL OR (secret IS NOT NULL AND team_id IS NOT NULL)),
    CHECK (client_id IS NULL OR team_id IS NOT NULL),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);

-- What a person has allowed a client, or what a client may do by itself; all tokens that come of it stand and fall together.
CREATE TABLE oauth_grants (
    id text PRIMARY KEY,
    oauth_client_id text NOT NULL REFERENCES oauth_clients,
    team_id text NOT NULL,
    user_id text NOT NULL,
    client_id text,
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    scopes text[] NOT NULL,
    own boolean NOT NULL DEFAULT false,     -- the client's own, by its credentials
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);
CREATE UNIQUE INDEX ON oauth_grants (oauth_client_id) WHERE own;
CREATE INDEX ON oauth_grants (user_id);

CREATE TABLE oauth_codes (
    digest bytea PRIMARY KEY,
    grant_id text NOT NULL REFERENCES oauth_grants,
    redirect_uri text NOT NULL,
    code_challenge text NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz                     -- kept for a while: a code that comes twice was stolen
);

CREATE TABLE oauth_tokens (
    digest bytea PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('access', 'refresh')),
    grant_id text NOT NULL REFERENCES oauth_grants,
    scopes text[] NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz                     -- of a refresh token, which works once
);
CREATE INDEX ON oauth_tokens (expires_at);

ALTER TABLE api_keys ADD COLUMN replaces text REFERENCES api_keys;

-- Null: the whole team's. What a credential of one agency client stores is that client's.
ALTER TABLE media ADD COLUMN client_id text, ADD FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id);

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    team_id text,                           -- null: of the whole installation
    mode text,
    actor text NOT NULL,                    -- a user's id, or the command line and who typed there, or a worker
    credential_id text,
    action text NOT NULL,
    object_id text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ON audit (team_id, id);
CREATE INDEX ON audit (object_id, id);

CREATE FUNCTION audit_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'what was written down is not changed';
END $$;
CREATE TRIGGER audit_stands BEFORE UPDATE OR DELETE OR TRUNCATE ON audit EXECUTE FUNCTION audit_stands();
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
