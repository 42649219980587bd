"""What has ended is removed after a stated time, and nothing that has not; and what the database itself keeps apart."""

from datetime import UTC, datetime, timedelta

import pytest
from peewee import IntegrityError, ProgrammingError

from handlers.config import Config, ConfigError
from handlers.stores import keep
from storage import audit, keys, retention
from storage.models import ApiKey
from storage.oauth import Code, Grant, OAuthClient, Token
from storage.people import Session, SignInLink, begin_session, new_link
from storage.retention import Keep, tidy
from tests.person import BACK, app
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.service import Member

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(scope="module", autouse=True)
def service(environ):
    """Made before the database that some of these tests have of their own, to which the models are bound meanwhile."""


def now():
    return datetime.now(UTC)


@pytest.fixture
def granted(member, connection):
    """Makes a grant of two days ago, with a code and tokens that ended so long ago (None: none of the kind)."""
    def make(*, code=None, token=None, revoked=None, own=False):
        row = app(confidential=own, **({"team_id": member.team.id, "user_id": member.user.id} if own else {}))[0]
        grant = Grant.add(oauth_client_id=row.id, team_id=member.team.id, user_id=member.user.id, mode="test", own=own,
                          scopes=["ideas:read"], created_at=now() - 2 * DAY, revoked_at=revoked and now() - revoked)
        if code is not None:
            Code.issue(value := keys.fresh("ac"), grant, redirect_uri=BACK, code_challenge="x")
            Code.update(expires_at=now() - code).where(Code.digest == keys.digest(value)).execute()
        if token is not None:
            grant.issue("refresh", keys.fresh("rt"), ["ideas:read"], -token)
        return grant
    return make


def left(grant):
    """How many grants, codes and tokens there are of it."""
    tidy()
    return (Grant.select().where(Grant.id == grant.id).count(), Code.select().where(Code.grant_id == grant.id).count(),
            Token.select().where(Token.grant_id == grant.id).count())


@pytest.mark.parametrize("ended, rest", [
    ({"code": 23 * HOUR, "token": 23 * HOUR}, (1, 1, 1)), ({"code": 25 * HOUR, "token": 23 * HOUR}, (1, 0, 1)),
    ({"code": 25 * HOUR, "token": 25 * HOUR}, (0, 0, 0)), ({"code": 25 * HOUR, "token": -29 * DAY}, (1, 0, 1)),
    ({"token": -DAY, "revoked": 23 * HOUR}, (1, 0, 1)), ({"token": -DAY, "revoked": 25 * HOUR}, (0, 0, 0)),
    ({}, (0, 0, 0)), ({"own": True}, (1, 0, 0)), ({"own": True, "token": 25 * HOUR}, (1, 0, 0))], ids=str)
def test_codes_tokens_and_grants_go_a_day_after_their_end(granted, ended, rest):
    assert left(granted(**ended)) == rest


def test_the_grant_of_a_program_goes_a_day_after_the_program(granted):
    grant = granted(own=True)
    for hours, rest in ((23, 1), (25, 0)):
        OAuthClient.update(revoked_at=now() - hours * HOUR).where(OAuthClient.id == grant.oauth_client_id).execute()
        assert left(grant) == (rest, 0, 0)


def test_sessions_and_links_go_with_their_time(member, connection):
    for _ in range(2):
        begin_session(member.user, "link", "here")
        new_link(member.user)
    for kind in (Session, SignInLink):
        one = kind.select(kind.digest).where(kind.user_id == member.user.id).limit(1)
        kind.update(expires_at=now() - timedelta(seconds=1)).where(kind.digest.in_(one)).execute()
    tidy()
    assert [kind.select().where(kind.user_id == member.user.id).count() for kind in (Session, SignInLink)] == [1, 1]


# What is kept for as long as the settings say.

@pytest.fixture
def past(desk):
    """Targets with so many lines of their journal, of so many days ago; returns how many lines each has left."""
    def make(*ages, **columns):
        target = desk.target()
        desk.sql("UPDATE targets SET finished_at = now() - %s, next_at = NULL WHERE id = %s", ages[-1] * DAY, target)
        if columns:
            desk.move(target, **columns)
        for age in ages:
            desk.sql("INSERT INTO attempts (team_id, target_id, fence, step, at) VALUES ('t', %s, 1, 'sending', now() - %s)",
                     target, age * DAY)
        return target
    return make


def lines(desk, *targets):
    return [desk.sql("SELECT count(*) FROM attempts WHERE target_id = %s", target)[0][0] for target in targets]


def test_the_journal_of_a_target_goes_whole_so_many_days_after_its_end(desk, past, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 3)
    targets = [past(400, 95), past(400, 85), past(400, 99, next_at="now()"), past(99, finished_at=None), past(100, 99), past(0)]
    with desk._connected():
        tidy()
        assert lines(desk, *targets) == [0, 2, 2, 0, 0, 1]
        tidy(Keep(journal=80 * DAY))
        assert lines(desk, *targets) == [0, 0, 2, 0, 0, 1]


def test_the_last_line_of_the_journal_stays(desk, past):
    past(99), (target := past(99))
    with desk._connected():
        tidy()
    assert desk.sql("SELECT target_id FROM attempts") == [(target,)]


def test_answers_are_kept_as_long_as_they_are_asked_for(desk, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    for hours in (24, 26, 27, 28, 29, 48, 51):
        desk.sql("INSERT INTO idempotency_keys (team_id, mode, operation, key, body_digest, started_at) "
                 "VALUES (%s, 'test', 'POST', %s, '', now() - %s)", desk.team.id, str(hours), hours * HOUR)
    with desk._connected():
        for keep, left in ((Keep(idempotency=2 * DAY), "24 26 27 28 29 48"), (Keep(), "24")):
            tidy(keep)
            assert " ".join(row[0] for row in desk.sql("SELECT key FROM idempotency_keys ORDER BY key")) == left


def test_the_trail_stays_unless_it_is_said_how_long(desk, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    with desk._connected():
        for days in (100, 90, 80, 40, 20, 1):
            audit.record(audit.WORKER, "tested", str(days))
            desk.sql("SET session_replication_role = replica")
            desk.sql("UPDATE audit SET at = now() - %s WHERE object_id = %s", days * DAY, str(days))
            desk.sql("RESET session_replication_role")
        for keep, left in ((Keep(), 6), (Keep(audit=85 * DAY), 4), (Keep(audit=30 * DAY), 2)):
            tidy(keep)
            assert desk.sql("SELECT count(*) FROM audit WHERE action = 'tested'") == [(left,)]
        with pytest.raises(ProgrammingError, match="not changed"):
            tidy(Keep(audit=10 * DAY))      # no setting allows that, and the database neither
    assert desk.sql("SELECT count(*) FROM audit WHERE action = 'tested'") == [(2,)]


@pytest.mark.parametrize("name, given", [("POSTHORN_AUDIT_DAYS", "29"), ("POSTHORN_IDEMPOTENCY_HOURS", "23"),
                                         ("POSTHORN_JOURNAL_DAYS", "0"), ("POSTHORN_WEBHOOK_DAYS", "1")])
def test_what_would_keep_too_little_is_refused(environ, name, given):
    with pytest.raises(ConfigError, match=f"{name} must be a whole number from"):
        Config.from_env({**environ, name: given})


def test_the_settings_say_how_long(environ):
    given = {"POSTHORN_AUDIT_DAYS": "400", "POSTHORN_IDEMPOTENCY_HOURS": "48", "POSTHORN_JOURNAL_DAYS": "7",
             "POSTHORN_WEBHOOK_DAYS": "8"}
    asked = Keep(idempotency=2 * DAY, journal=7 * DAY, webhooks=8 * DAY, audit=400 * DAY)
    assert keep(Config.from_env({**environ, **given})) == asked
    assert keep(Config.from_env(environ)) == Keep()


# Teams apart, by the database itself.

def test_every_reference_to_what_is_a_teams_carries_the_team(connection):
    """But one: an app may be everybody's, so that a trigger looks at the grants."""
    found = connection.execute_sql("""
        SELECT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint AS c
        WHERE c.contype = 'f' AND c.confrelid <> 'teams'::regclass
        AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.conrelid AND attname = 'team_id')
        AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.confrelid AND attname = 'team_id')
        AND NOT EXISTS (SELECT FROM pg_attribute
                        WHERE attrelid = c.conrelid AND attname = 'team_id' AND attnum = ANY (c.conkey))
        """).fetchall()
    assert found == [("oauth_grants", "oauth_clients")]


def test_no_key_replaces_one_of_another_team(member, connection):
    other = ApiKey.get(ApiKey.digest == keys.digest(Member(member.url).test.key))
    with pytest.raises(IntegrityError), connection.atomic():
        keys.create(team_id=member.team.id, user_id=member.user.id, mode="test", replaces=other.id)


@pytest.mark.parametrize("changes", [{"team": "other"}, {"mode": "live"}, {"client_id": None}, {"scopes": []}], ids=str)
def test_no_grant_is_wider_than_its_app(member, connection, changes):
    row = app(team_id=member.team.id, client_id=member.client.id)[0]
    good = {"oauth_client_id": row.id, "team_id": member.team.id, "user_id": member.user.id, "client_id": member.client.id,
            "mode": "test", "scopes": ["ideas:read"]}
    Grant.add(**good)
    if changes.pop("team", None):
        other = Member(member.url)
        changes = {"team_id": other.team.id, "user_id": other.user.id, "client_id": other.client.id}
    with pytest.raises(IntegrityError), connection.atomic():
        Grant.add(**{**good, **changes})
