"""Administration by the command line: what people have allowed programs."""

import click

from handlers.console import as_json, of_team, on_database, say, show, sure, team_of, user_of, without_asking
from storage import audit
from storage.database import database
from storage.models import wire_time
from storage.oauth import Grant, OAuthClient


@click.group()
def grant():
    """What people have allowed programs."""


@grant.command("list")
@click.option("--user", "user_id", help="Only what this user has allowed; an id or a sign-in name.")
@of_team
@as_json
@on_database
def list_grants(services, user_id, team_id, as_json):
    """List who has allowed which program what."""
    owning = team_of(team_id)
    query = Grant.select(Grant, OAuthClient.name).join(OAuthClient, on=(OAuthClient.id == Grant.oauth_client_id), attr="app")
    rows = query.where(Grant.team_id == owning.id, ~Grant.own).order_by(Grant.created_at)
    show([_shown(row) for row in (rows.where(Grant.user_id == user_of(owning, user_id).id) if user_id else rows)], as_json)


@grant.command("revoke")
@click.argument("grant_id", metavar="GRANT")
@without_asking
@of_team
@as_json
@on_database
def revoke_grant(services, grant_id, yes, team_id, as_json):
    """End what somebody has allowed a program, with all its tokens, at once. The program can ask again."""
    owning = team_of(team_id)
    sure(f"End {grant_id}? The program is signed out there.", yes)
    row = Grant.get_or_none(Grant.team_id == owning.id, Grant.id == grant_id, ~Grant.own)
    with database.atomic():
        if row is None or not row.revoke(audit.typed()):
            raise click.ClickException("the team has no such grant in force")
    say("revoked", {"id": grant_id}, as_json)


def _shown(row):
    return {"id": row.id, "program": row.app.name, "oauthClientId": row.oauth_client_id, "userId": row.user_id,
            "clientId": row.client_id, "mode": row.mode, "scopes": " ".join(row.scopes), "createdAt": wire_time(row.created_at),
            "lastUsedAt": wire_time(row.last_used_at), "revokedAt": wire_time(row.revoked_at)}
