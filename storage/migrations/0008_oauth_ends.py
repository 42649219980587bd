"""What ended can be removed quickly; keys and grants cannot refer to another team's."""

SCHEMA = """
CREATE INDEX ON oauth_codes (grant_id);
CREATE INDEX ON oauth_tokens (grant_id);
CREATE INDEX ON oauth_grants (oauth_client_id);

ALTER TABLE api_keys DROP CONSTRAINT api_keys_replaces_fkey;
ALTER TABLE api_keys ADD UNIQUE (team_id, id), ADD FOREIGN KEY (team_id, replaces) REFERENCES api_keys (team_id, id);

-- Grants that came of a blank scope allowed what nobody was shown.
UPDATE oauth_grants SET revoked_at = coalesce(revoked_at, now()) WHERE cardinality(scopes) = 0;
ALTER TABLE oauth_grants ADD CHECK (cardinality(scopes) > 0) NOT VALID;

-- No foreign key can say this, since an app may be everybody's.
CREATE FUNCTION oauth_grant_fits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM oauth_clients AS a WHERE a.id = NEW.oauth_client_id AND a.mode = NEW.mode
                   AND (a.team_id IS NULL OR a.team_id = NEW.team_id)
                   AND (a.client_id IS NULL OR a.client_id = NEW.client_id)) THEN
        RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', MESSAGE = 'this app is not for this grant';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER oauth_grant_fits BEFORE INSERT OR UPDATE OF oauth_client_id, team_id, client_id, mode ON oauth_grants
    FOR EACH ROW EXECUTE FUNCTION oauth_grant_fits();
"""


def up(migrator, db):
    db.execute_sql(SCHEMA)
