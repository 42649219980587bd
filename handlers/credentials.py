"""Administration by the command line: API keys, and the keys that seal what is stored."""

from datetime import UTC, datetime, timedelta

import click

from handlers.console import as_json, client_of, of_team, on_database, show, sure, team_of, user_of, without_asking
from storage import keys
from storage.models import ApiKey, wire_time
from storage.secrets import new_key


@click.group()
def key():
    """API keys."""


@key.command("create")
@click.option("--mode", type=click.Choice(["live", "test"]), default="test", show_default=True)
@click.option("--name", default="", help="What it is for.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(keys.SCOPES), help="A scope it has; all when none is given.")
@click.option("--client", "client_id", help="The one client that it may act for.")
@click.option("--user", "user_id", help="The user whose key it is; the team's first when not given.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires; never when not given.")
@of_team
@as_json
@on_database
def create_key(services, mode, name, scopes, client_id, user_id, days, team_id, as_json):
    """Make a key and show it, this once."""
    owning = team_of(team_id)
    user = user_of(owning, user_id)
    limited_to = client_of(owning, client_id).id if client_id else None
    token, row = keys.create(team_id=owning.id, user_id=user.id, mode=mode, scopes=scopes or keys.SCOPES, client_id=limited_to,
                             name=name, expires_at=days and datetime.now(UTC) + timedelta(days=days))
    show([{"id": row.id, "key": token}], as_json)


@key.command("list")
@of_team
@as_json
@on_database
def list_keys(services, team_id, as_json):
    """List the keys, never themselves."""
    rows = ApiKey.select().where(ApiKey.team_id == team_of(team_id).id).order_by(ApiKey.created_at)
    show([{"id": row.id, "name": row.name, "mode": row.mode, "key": f"sk_{row.mode}_…{row.last_four}", "scopes": " ".join(row.scopes),
           "clientId": row.client_id, "userId": row.user_id, "expiresAt": wire_time(row.expires_at),
           "lastUsedAt": wire_time(row.last_used_at), "revokedAt": wire_time(row.revoked_at)} for row in rows], as_json)


@key.command("revoke")
@click.argument("key_id")
@without_asking
@of_team
@on_database
def revoke_key(services, key_id, yes, team_id):
    """End a key, at once."""
    sure(f"End {key_id}? Whatever uses it is refused from now on.", yes)
    if not keys.revoke(team_of(team_id).id, key_id):
        raise click.ClickException("the team has no such key in force")
    click.echo("revoked")


@click.group()
def secrets():
    """The keys that seal platform credentials."""


@secrets.command("new")
def new_secret():
    """Print a fresh key for POSTHORN_SECRET_KEYS."""
    click.echo(new_key())
