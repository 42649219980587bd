"""What has ended is removed after a stated time, and nothing that has not; and what the database itself keeps apart."""

from datetime import UTC, datetime, timedelta

import pytest
from peewee import IntegrityError

from storage import keys
from storage.models import ApiKey
from storage.oauth import Code, Grant, OAuthClient, Token
from storage.people import Session, SignInLink, begin_session, new_link
from storage.retention import tidy
from tests.person import BACK, app
from tests.service import Member

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


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
