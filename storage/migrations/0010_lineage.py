"""Which history this database holds, so that one restored from a backup is known for it; and old lines of the trail may go."""

SCHEMA = """
-- Where this database lies. It is elsewhere once it was restored from a dump, and where it was after any crash or failover. Not
-- every provider tells the first of the three.
CREATE FUNCTION posthorn_place() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    cluster text := '';
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
        NULL;
    END;
    RETURN concat_ws('/', cluster, (SELECT oid FROM pg_database WHERE datname = current_database()), 'targets'::regclass::oid);
END $$;

-- A history goes on until the database is restored, from where on it is another one. The last one begun is the present one.
CREATE TABLE lineages (
    id text PRIMARY KEY DEFAULT gen_random_uuid()::text,    -- under which the store remembers how far it came
    place text NOT NULL DEFAULT posthorn_place(),
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()  -- when a worker was last sure that this is the present one
);
CREATE INDEX ON lineages (begun_at);
INSERT INTO lineages DEFAULT VALUES;

-- It may have been sent by what came after the backup: its receipt says nothing of that.
ALTER TABLE targets ADD COLUMN restored boolean NOT NULL DEFAULT false;

-- As it was, and one step more: what waited in the backup may be public.
CREATE OR REPLACE FUNCTION target_step() RETURNS trigger LANGUAGE plpgsql AS $$
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
        'failed>scheduled'])
        OR was || '>' || goes = 'scheduled>unconfirmed' AND NEW.restored) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'target ' || OLD.id || ': no way from ' || was || ' to ' || goes;
    END IF;
    IF was <> goes OR OLD.fence <> NEW.fence OR NEW.note IS NOT NULL THEN
        INSERT INTO attempts (team_id, target_id, fence, worker, step, note)
        VALUES (NEW.team_id, NEW.id, NEW.fence, NEW.worker, goes, NEW.note);
    END IF;
    NEW.note := NULL;
    RETURN NEW;
END $$;

-- Who removes old lines of the trail has to say so, and none goes that is younger than 30 days.
CREATE OR REPLACE FUNCTION audit_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_LEVEL = 'STATEMENT' AND current_setting('posthorn.audit', true) = 'open' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'what was written down is not changed';
END $$;
CREATE TRIGGER audit_young BEFORE DELETE ON audit FOR EACH ROW WHEN (OLD.at > now() - interval '30 days')
    EXECUTE FUNCTION audit_stands();
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
