"""The first schema.

Plain SQL, since what matters here is what the database itself must refuse: references across teams or modes (composite
foreign keys), two targets of one account in flight (a partial unique index), and illegal steps of a target (a trigger,
which also keeps the journal, so that no code path can forget it).
"""

SCHEMA = """
CREATE TABLE teams (
    id text PRIMARY KEY,
    name text NOT NULL,
    time_zone text NOT NULL DEFAULT 'UTC',
    plan_expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    id text PRIMARY KEY,
    team_id text NOT NULL REFERENCES teams,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, id)
);

CREATE TABLE clients (
    id text PRIMARY KEY,
    team_id text NOT NULL REFERENCES teams,
    name text NOT NULL,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'archived')),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, id)
);

CREATE TABLE api_keys (
    id text PRIMARY KEY,
    team_id text NOT NULL,
    user_id text NOT NULL,
    client_id text,
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    name text NOT NULL DEFAULT '',
    digest bytea NOT NULL UNIQUE,
    last_four text NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);
CREATE INDEX ON api_keys (team_id);

CREATE TABLE accounts (
    id text PRIMARY KEY,
    team_id text NOT NULL REFERENCES teams,
    client_id text,
    platform text NOT NULL,
    host text NOT NULL DEFAULT '',
    platform_id text NOT NULL,
    username text NOT NULL,
    display_name text NOT NULL,
    profile_picture text,
    status text NOT NULL DEFAULT 'connected' CHECK (status IN ('connected', 'disconnected')),
    credentials bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);
-- One row per account and owner: connecting again renews it.
CREATE UNIQUE INDEX ON accounts (team_id, coalesce(client_id, ''), platform, host, platform_id);

CREATE TABLE media (
    id text PRIMARY KEY,
    team_id text NOT NULL REFERENCES teams,
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    user_id text NOT NULL,
    key text NOT NULL UNIQUE,
    state text NOT NULL CHECK (state IN ('pending', 'ready', 'refused')),
    refusal text,
    mime_type text NOT NULL,
    bytes bigint NOT NULL CHECK (bytes > 0),
    width integer,
    height integer,
    duration double precision,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, mode, id),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id)
);

CREATE TABLE posts (
    id text PRIMARY KEY,
    team_id text NOT NULL REFERENCES teams,
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    user_id text NOT NULL,
    client_id text,
    caption text NOT NULL DEFAULT '',
    schedule_at timestamptz,
    revision integer NOT NULL DEFAULT 0,    -- grows with every change, so that two at once cannot undo each other
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, mode, id),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);
CREATE INDEX ON posts (team_id, mode, created_at DESC, id DESC);

CREATE TABLE targets (
    id text PRIMARY KEY,
    team_id text NOT NULL,
    mode text NOT NULL,
    post_id text NOT NULL,
    position smallint NOT NULL,
    platform text NOT NULL,
    asked_type text,                        -- the post type as the caller named it; null: inferred from the media
    post_type text NOT NULL,
    account_id text,                        -- null: the sandbox, which is no account
    caption text NOT NULL,                  -- what is published here, the post's or its own: a claim reads this row alone
    own_caption boolean NOT NULL DEFAULT false,
    own_media boolean NOT NULL DEFAULT false,
    has_media boolean NOT NULL DEFAULT false,   -- on this row, which a claim locks: attachments may be newer than what it sees
    options jsonb NOT NULL DEFAULT '{}',

    status text NOT NULL DEFAULT 'scheduled'
        CHECK (status IN ('scheduled', 'publishing', 'published', 'failed', 'unconfirmed', 'canceled')),
    stage text CHECK (stage IN ('preparing', 'sending', 'processing')),
    due_at timestamptz NOT NULL,
    next_at timestamptz,                    -- when a worker must look at it next; null: never again by itself
    leased_until timestamptz,               -- not null: a worker has it in hand
    worker text,
    fence bigint NOT NULL DEFAULT 0,        -- grows with every claim: a write with an old fence changes nothing
    tries integer NOT NULL DEFAULT 0,       -- times the network put it off, since it was last asked for
    crashes integer NOT NULL DEFAULT 0,     -- leases that ran out in a row without any progress, while preparing it or asking after it
    begun_at timestamptz,                   -- of the first claim since it was last asked for: patience with a network begins here
    refreshed boolean NOT NULL DEFAULT false,   -- credentials were renewed because the network refused them for this target
    looks integer NOT NULL DEFAULT 0,       -- times the network was asked after an unconfirmed sending
    asked_again boolean NOT NULL DEFAULT false, -- somebody looked and wants it sent again, although it may be public
    receipt jsonb NOT NULL DEFAULT '{}',
    platform_post_id text,
    url text,
    error jsonb,
    note jsonb,                             -- the words that go into the journal with the present step
    sending_at timestamptz,                 -- of the first sending whose outcome is in doubt, or of the one under way
    finished_at timestamptz,

    UNIQUE (post_id, position),
    UNIQUE (team_id, mode, id),
    CHECK ((status = 'publishing') = (stage IS NOT NULL)),
    CHECK (leased_until IS NULL OR status IN ('publishing', 'unconfirmed')),
    CHECK (status NOT IN ('published', 'failed', 'canceled') OR next_at IS NULL),
    CHECK (status <> 'published' OR coalesce(platform_post_id, url) IS NOT NULL),   -- some networks do not always say which post is ours
    CHECK (status <> 'failed' OR error IS NOT NULL),
    FOREIGN KEY (team_id, mode, post_id) REFERENCES posts (team_id, mode, id),
    FOREIGN KEY (team_id, account_id) REFERENCES accounts (team_id, id)
);
-- What the workers ask for: due rows that nobody has, and rows whose worker is gone. Finished rows are in neither.
CREATE INDEX targets_due ON targets (next_at) WHERE next_at IS NOT NULL AND leased_until IS NULL;
CREATE INDEX targets_leased ON targets (leased_until) WHERE leased_until IS NOT NULL;
CREATE UNIQUE INDEX targets_one_in_flight ON targets (account_id) WHERE leased_until IS NOT NULL;
CREATE INDEX ON targets (account_id) WHERE next_at IS NOT NULL;
CREATE INDEX targets_public ON targets (account_id, platform_post_id) WHERE platform_post_id IS NOT NULL;
CREATE INDEX targets_unconfirmed ON targets (id) WHERE status = 'unconfirmed';

CREATE TABLE attachments (
    team_id text NOT NULL,
    mode text NOT NULL,
    target_id text NOT NULL,
    position smallint NOT NULL,
    media_id text NOT NULL,
    PRIMARY KEY (target_id, position),
    FOREIGN KEY (team_id, mode, target_id) REFERENCES targets (team_id, mode, id),
    FOREIGN KEY (team_id, mode, media_id) REFERENCES media (team_id, mode, id)
);
CREATE INDEX ON attachments (media_id);

CREATE TABLE attempts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id text NOT NULL,
    target_id text NOT NULL,
    fence bigint NOT NULL,
    worker text,
    step text NOT NULL,                     -- where the target went: scheduled, preparing, sending, processing, published, ...
    note jsonb,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON attempts (target_id, id);

CREATE FUNCTION target_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was text := coalesce(OLD.stage, OLD.status);
    goes text := coalesce(NEW.stage, NEW.status);
BEGIN
    IF was <> goes AND NOT (was || '>' || goes = ANY (ARRAY[
        'scheduled>preparing', 'scheduled>canceled',
        'preparing>sending', 'preparing>scheduled', 'preparing>failed', 'preparing>unconfirmed',
        'sending>published', 'sending>processing', 'sending>failed', 'sending>scheduled', 'sending>unconfirmed',
        'processing>published', 'processing>failed', 'processing>unconfirmed',
        'unconfirmed>published', 'unconfirmed>failed', 'unconfirmed>processing', 'unconfirmed>scheduled',
        'failed>scheduled'])) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'target ' || OLD.id || ': no way from ' || was || ' to ' || goes;
    END IF;
    IF was <> goes OR OLD.fence <> NEW.fence OR NEW.note IS NOT NULL THEN
        INSERT INTO attempts (team_id, target_id, fence, worker, step, note)
        VALUES (NEW.team_id, NEW.id, NEW.fence, NEW.worker, goes, NEW.note);
    END IF;
    NEW.note := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER target_step BEFORE UPDATE ON targets FOR EACH ROW EXECUTE FUNCTION target_step();

CREATE FUNCTION target_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> 'scheduled' OR NEW.fence <> 0 OR NEW.sending_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'a target begins as scheduled';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER target_begins BEFORE INSERT ON targets FOR EACH ROW EXECUTE FUNCTION target_begins();

-- The journal is only ever added to. Who removes old entries has to say so, with SET posthorn.journal = 'open'.
CREATE FUNCTION journal_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('posthorn.journal', true) = 'open' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'the journal of attempts is only added to';
END $$;
CREATE TRIGGER journal_stays BEFORE UPDATE OR DELETE ON attempts FOR EACH ROW EXECUTE FUNCTION journal_stays();

CREATE TABLE ideas (
    id text PRIMARY KEY,
    team_id text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    user_id text NOT NULL,
    client_id text,
    content text NOT NULL,
    topic text,
    platform text,
    source_url text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);
CREATE INDEX ON ideas (team_id, mode, created_at DESC);

CREATE TABLE idempotency_keys (
    team_id text NOT NULL REFERENCES teams,
    mode text NOT NULL,
    operation text NOT NULL,                -- method and path
    key text NOT NULL,
    body_digest bytea NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    status smallint,                        -- null: the first request is still running
    headers jsonb,
    body bytea,
    PRIMARY KEY (team_id, mode, operation, key)
);
CREATE INDEX ON idempotency_keys (started_at);

-- Token buckets of the rate limits: exact across processes, worthless after a crash, so not logged.
CREATE UNLOGGED TABLE buckets (
    name text PRIMARY KEY,
    full_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE workers (
    id text PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    claimed_at timestamptz                  -- when it last took a target in hand, to the second
);
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
