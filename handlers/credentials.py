"""Administration by the command line: API keys, and the keys that seal what is stored."""

from datetime import UTC, datetime, timedelta

import click

from handlers.acts import make_key, record_key
from handlers.console import (as_json, client_of, of_team, on_database, say, show, show_one, sure, team_of, user_of,
                              without_asking)
from storage import audit, keys
from storage.database import database
from storage.models import ApiKey, Client, User, wire_time
from storage.resealing import reseal
from storage.secrets import new_key

NO_KEY = "the team has no such key in force"


@click.group()
def key():
    """API keys."""


@key.command("create")
@click.option("--mode", type=click.Choice(["live", "test"]), default="test", show_default=True)
@click.option("--name", default="", help="What it is for.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(keys.SCOPES),
              help="A scope it has; all when none is given.")
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
    if user.disabled_at is not None:
        raise click.ClickException("this user is disabled")
    expires_at = days and datetime.now(UTC) + timedelta(days=days)
    token, row = make_key(user, mode, scopes=scopes or keys.SCOPES, client_id=limited_to, name=name, expires_at=expires_at)
    show([{"id": row.id, "key": token}], as_json)


@key.command("list")
@of_team
@as_json
@on_database
def list_keys(services, team_id, as_json):
    """List the keys, never themselves."""
    rows = ApiKey.select().where(ApiKey.team_id == team_of(team_id).id).order_by(ApiKey.created_at)
    show([_shown(row) for row in rows], as_json)


@key.command("show")
@click.argument("key_id", metavar="KEY")
@of_team
@as_json
@on_database
def show_key(services, key_id, team_id, as_json):
    """Show all there is to know of a key, never itself. KEY is its id."""
    row = ApiKey.get_or_none(ApiKey.team_id == team_of(team_id).id, ApiKey.id == key_id)
    if row is None:
        raise click.ClickException("the team has no such key")
    user, successors = User.get_by_id(row.user_id), ApiKey.select(ApiKey.id).where(ApiKey.replaces == row.id)
    client = row.client_id and Client.get_by_id(row.client_id)
    show_one({**_shown(row), "userName": user.name, "userDisabledAt": wire_time(user.disabled_at),
              "clientName": client and client.name, "clientStatus": client and client.status, "replaces": row.replaces,
              "replacedBy": " ".join(other.id for other in successors), "createdAt": wire_time(row.created_at)}, as_json)


@key.command("narrow")
@click.argument("key_id", metavar="KEY")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(keys.SCOPES),
              help="A scope that it keeps; it loses the others.")
@click.option("--client", "client_id", help="The one client for which it may act from now on.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires.")
@of_team
@as_json
@on_database
def narrow_key(services, key_id, scopes, client_id, days, team_id, as_json):
    """Take something from a key, at once; it can never be given more. KEY is its id."""
    if not (scopes or client_id or days):
        raise click.ClickException("say what it keeps: --scope, --client or --days")
    owning = team_of(team_id)
    row = keys.in_force(owning.id, key_id)
    if row is None:
        raise click.ClickException(NO_KEY)
    limited_to = client_of(owning, client_id).id if client_id else None
    expires_at = days and datetime.now(UTC) + timedelta(days=days)
    try:
        with database.atomic():
            row = keys.narrow(row, scopes=scopes, client_id=limited_to, expires_at=expires_at)
            record_key("key.narrowed", row)
    except keys.Ended:
        raise click.ClickException(NO_KEY) from None
    except keys.Wider as error:
        raise click.ClickException(f"a key is never given more: {error}") from None
    show_one(_shown(row), as_json)


@key.command("revoke")
@click.argument("key_id", metavar="KEY")
@without_asking
@of_team
@as_json
@on_database
def revoke_key(services, key_id, yes, team_id, as_json):
    """End a key, at once."""
    sure(f"End {key_id}? Whatever uses it is refused from now on.", yes)
    owning = team_of(team_id)
    with database.atomic():
        if not keys.revoke(owning.id, key_id):
            raise click.ClickException(NO_KEY)
        audit.record(audit.typed(), "key.revoked", key_id, team_id=owning.id)
    say("revoked", {"id": key_id}, as_json)


@key.command("rotate")
@click.argument("key_id", metavar="KEY")
@click.option("--hours", type=click.IntRange(0, 720), default=24, show_default=True, help="How long the old key works on.")
@without_asking
@of_team
@as_json
@on_database
def rotate_key(services, key_id, hours, yes, team_id, as_json):
    """Make a key that replaces another one and may do the same; both work for a while."""
    if not hours:
        sure(f"End {key_id} now? Whatever uses it is refused until it has the new key.", yes)
    row = keys.in_force(team_of(team_id).id, key_id)
    if row is None:
        raise click.ClickException(NO_KEY)
    try:
        with database.atomic():
            token, new = keys.rotate(row, timedelta(hours=hours))
            record_key("key.rotated", new)
    except keys.Ended:
        raise click.ClickException(NO_KEY) from None
    except keys.TwoActive:
        raise click.ClickException("two keys are active already: revoke the one that is used no more") from None
    old = ApiKey.get_by_id(key_id)
    show([{"id": new.id, "key": token, "replaces": key_id, "oldExpiresAt": wire_time(old.expires_at)}], as_json)


def _shown(row):
    return {"id": row.id, "name": row.name, "mode": row.mode, "key": f"sk_{row.mode}_…{row.last_four}",
            "scopes": " ".join(row.scopes), "clientId": row.client_id, "userId": row.user_id,
            "expiresAt": wire_time(row.expires_at), "lastUsedAt": wire_time(row.last_used_at),
            "revokedAt": wire_time(row.revoked_at)}


@click.group()
def secrets():
    """The keys that seal platform credentials."""


@secrets.command("new")
def new_secret():
    """Print a fresh key for POSTHORN_SECRET_KEYS."""
    click.echo(new_key())


@secrets.command("rotate")
@as_json
@on_database
def rotate_secrets(services, as_json):
    """Seal all stored credentials under the first of POSTHORN_SECRET_KEYS.

    Put the new key first and keep the old ones behind it; start API and workers anew; run this; then the old ones can go.
    """
    for progress in reseal(services.vault):
        click.echo(f"{progress.done} of {progress.total}", err=as_json)
    audit.record(audit.typed(), "secrets.rotated", "POSTHORN_SECRET_KEYS", resealed=progress.resealed, of=progress.total)
    if progress.unreadable:
        raise click.ClickException(
            f"no configured key opens {', '.join(progress.unreadable)}: keep the old keys, or connect them again")
    say(f"{progress.resealed} sealed anew, the others were", {"resealed": progress.resealed, "of": progress.total}, as_json)
