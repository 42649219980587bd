"""Webhooks, and the events for them: written by the very change that makes them, so that none is forgotten and none lost."""

SCHEMA = """
-- What a worker has in hand and cannot keep at this moment, since somebody else changes it.
ALTER TABLE workers ADD COLUMN hindered text[] NOT NULL DEFAULT '{}';

CREATE TABLE webhooks (
    id text PRIMARY KEY,
    team_id text NOT NULL REFERENCES teams,
    mode text NOT NULL CHECK (mode IN ('live', 'test')),
    client_id text,                         -- null: of the whole team
    user_id text NOT NULL,
    url text NOT NULL,
    description text NOT NULL DEFAULT '',
    events text[] NOT NULL CHECK (cardinality(events) > 0),
    status text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled', 'removed')),     -- removed: to be tidied up
    secret bytea NOT NULL,                  -- sealed (storage.secrets), as is the one before
    previous_secret bytea,
    previous_until timestamptz,             -- until when that one signs as well
    disabled_at timestamptz,
    disabled_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, mode, id),
    CHECK ((status = 'disabled') = (disabled_at IS NOT NULL AND disabled_reason IS NOT NULL)),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    FOREIGN KEY (team_id, user_id) REFERENCES users (team_id, id),
    FOREIGN KEY (team_id, client_id) REFERENCES clients (team_id, id)
);

-- One event for one webhook.
CREATE TABLE deliveries (
    id text PRIMARY KEY DEFAULT 'evt_' || replace(gen_random_uuid()::text, '-', ''),
    team_id text NOT NULL,
    mode text NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL,
    subject_id text NOT NULL,               -- the post or account that it is of
    snapshot jsonb NOT NULL,                -- the columns of it at that moment, from which every attempt makes the same body
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
    tries integer NOT NULL DEFAULT 0,       -- attempts since it was asked for
    next_at timestamptz DEFAULT clock_timestamp(),
    ends_at timestamptz NOT NULL DEFAULT clock_timestamp() + interval '24 hours',  -- after this, no more attempts
    leased_until timestamptz,               -- not null: a worker has it in hand
    worker text,
    fence bigint NOT NULL DEFAULT 0,        -- grows with every claim: a write with an old fence changes nothing
    delivered_at timestamptz,               -- the last time that it was
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (webhook_id, subject_id, type, transaction_id),  -- however many targets of a post one statement changes
    CHECK ((status = 'pending') = (next_at IS NOT NULL)),
    CHECK (leased_until IS NULL OR status = 'pending'),
    FOREIGN KEY (team_id, mode, webhook_id) REFERENCES webhooks (team_id, mode, id) ON DELETE CASCADE
);
CREATE INDEX deliveries_due ON deliveries (webhook_id, next_at) WHERE next_at IS NOT NULL AND leased_until IS NULL;
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE leased_until IS NOT NULL;
CREATE INDEX deliveries_delivered ON deliveries (webhook_id, delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX ON deliveries (webhook_id, created_at DESC, id DESC);
CREATE INDEX ON deliveries (created_at);

-- Only ever added to; goes with its delivery.
CREATE TABLE delivery_attempts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id text NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    at timestamptz NOT NULL,
    status smallint,                        -- of the answer; null: none came
    duration double precision NOT NULL,     -- seconds
    error text                              -- null: delivered
);
CREATE INDEX ON delivery_attempts (delivery_id, id);

-- The status of a post, from those of its targets.
CREATE FUNCTION post_status(statuses text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN 'publishing' = ANY (statuses) THEN 'publishing'
                WHEN 'scheduled' = ANY (statuses) THEN 'scheduled'
                WHEN statuses[1] = ALL (statuses) THEN statuses[1]
                WHEN 'published' = ANY (statuses) THEN 'partially_published'
                ELSE 'failed' END
$$;

-- Nobody waits for a webhook that is being deleted at this moment; it gets nothing.
CREATE FUNCTION tell_webhooks(team text, in_mode text, client text, event text, subject text, shown jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deliveries (team_id, mode, webhook_id, type, subject_id, snapshot)
    SELECT team, in_mode, id, event, subject, shown FROM webhooks
    WHERE team_id = team AND mode = in_mode AND event = ANY (events) AND (client_id IS NULL OR client_id = client)
      AND status <> 'removed'
    FOR KEY SHARE SKIP LOCKED
    ON CONFLICT (webhook_id, subject_id, type, transaction_id) DO NOTHING;
    IF FOUND THEN
        PERFORM pg_notify('posthorn_due', 'deliveries');
    END IF;
END $$;

-- Targets of one post that end at the same instant take turns, so that the last one sees what the others have become. Not by a
-- lock on the post: who changes a post holds that and waits for its targets. Posts share 1024 locks: one statement may end any
-- number of posts, and the server has room for some thousand locks, whoever takes them.
CREATE FUNCTION post_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was text;
    is_now text;
    shown jsonb;
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks
                   WHERE team_id = NEW.team_id AND mode = NEW.mode AND status <> 'removed') THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(x'486F6F6B'::int, hashtext(NEW.post_id) & 1023);
    SELECT post_status(array_agg(CASE id WHEN NEW.id THEN OLD.status ELSE status END)), post_status(array_agg(status)),
           jsonb_build_object('id', NEW.post_id, 'targets', jsonb_agg(
               jsonb_build_object('platform', platform, 'status', status, 'platform_post_id', platform_post_id, 'url', url,
                                  'error', error) ORDER BY position))
    INTO was, is_now, shown FROM targets WHERE post_id = NEW.post_id;
    IF was <> is_now THEN
        PERFORM tell_webhooks(NEW.team_id, NEW.mode, (SELECT client_id FROM posts WHERE id = NEW.post_id), 'post.' || is_now,
                              NEW.post_id, shown);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER post_event AFTER UPDATE ON targets FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('published', 'failed', 'unconfirmed', 'canceled'))
    EXECUTE FUNCTION post_event();

CREATE FUNCTION account_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_webhooks(NEW.team_id, 'live', NEW.client_id, 'account.disconnected', NEW.id, jsonb_build_object(
        'id', NEW.id, 'platform', NEW.platform, 'username', NEW.username, 'display_name', NEW.display_name,
        'profile_picture', NEW.profile_picture, 'status', NEW.status, 'client_id', NEW.client_id));
    RETURN NULL;
END $$;
CREATE TRIGGER account_event AFTER UPDATE ON accounts FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'disconnected') EXECUTE FUNCTION account_event();
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
