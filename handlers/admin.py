"""Administration by the command line: the schema, teams, clients, keys, accounts, secrets."""

import functools
import json
import time
from datetime import UTC, datetime, timedelta

import click

from handlers import connect
from handlers.config import Config, environment
from handlers.errors import ApiError
from handlers.process import data_dir_option
from handlers.services import build
from handlers.stores import open_database, open_store
from platforms.errors import PlatformError
from platforms.accounts import save
from storage import keys
from storage.database import database, migrate as apply_migrations, with_connection
from storage.models import Account, ApiKey, Client, ConnectRequest, Team, User, wire_time
from storage.secrets import new_key

HIDDEN = ("password", "token", "secret")    # fields whose names hold one of these are not echoed
SLOWEST = timedelta(minutes=2)              # that a network may take to answer the last one who comes back in time


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
of_team = click.option("--team", "team_id", help="The team's id; needed only where there are several.")


def _settings() -> Config:
    """The settings for the command that runs: the environment, else what a running `posthorn up` left in its data directory."""
    return Config.from_env(environment(click.get_current_context().params["data_dir"]))


def _on_database(command):
    """A command that works on the database, with --data-dir."""
    @functools.wraps(command)
    def run(data_dir, **options):
        services = build(_settings(), connections=2)
        with with_connection():
            return command(services, **options)

    return data_dir_option(run)


@click.command()
@data_dir_option
def migrate(data_dir):
    """Bring the database up to date, and make and prepare the bucket."""
    config = _settings()
    open_database(config, connections=2)
    for name in apply_migrations() or ["nothing to do"]:
        click.echo(name)
    for warning in open_store(config).prepare():
        click.echo(f"Note: {warning}", err=True)


@click.group()
def team():
    """Teams."""


@team.command("create")
@click.argument("name")
@click.option("--user", default="Me", show_default=True, help="The name of its first user.")
@click.option("--time-zone", default="UTC", show_default=True, help="Where its day begins, as in Europe/Berlin.")
@as_json
@_on_database
def create_team(services, name, user, time_zone, as_json):
    """Make a team with its first user."""
    if database.execute_sql("SELECT FROM pg_timezone_names WHERE name = %s", (time_zone,)).fetchone() is None:
        raise click.BadParameter(f"{time_zone} is no time zone", param_hint="--time-zone")
    with database.atomic():
        row = Team.add(name=name, time_zone=time_zone)
        first = User.add(team_id=row.id, name=user)
    _show([{"id": row.id, "name": row.name, "userId": first.id}], as_json)


@team.command("list")
@as_json
@_on_database
def list_teams(services, as_json):
    """List all teams."""
    _show([{"id": row.id, "name": row.name, "timeZone": row.time_zone, "planExpiresAt": wire_time(row.plan_expires_at)}
           for row in Team.select().order_by(Team.created_at)], as_json)


@click.group()
def client():
    """Agency clients of a team."""


@client.command("create")
@click.argument("name")
@of_team
@as_json
@_on_database
def create_client(services, name, team_id, as_json):
    """Make an agency client."""
    _show([Client.add(team_id=_team(team_id).id, name=name).to_dict()], as_json)


@client.command("list")
@of_team
@as_json
@_on_database
def list_clients(services, team_id, as_json):
    """List the agency clients."""
    _show([row.to_dict() for row in Client.select().where(Client.team_id == _team(team_id).id).order_by(Client.name)], as_json)


@client.command("status")
@click.argument("client_id")
@click.argument("status", type=click.Choice(["active", "suspended", "archived"]))
@of_team
@as_json
@_on_database
def set_client_status(services, client_id, status, team_id, as_json):
    """Suspend, archive or activate a client."""
    row = _client(_team(team_id), client_id)
    Client.update(status=status).where(Client.id == row.id).execute()
    _show([Client.get_by_id(row.id).to_dict()], as_json)


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
@_on_database
def create_key(services, mode, name, scopes, client_id, user_id, days, team_id, as_json):
    """Make a key and show it, this once."""
    owning = _team(team_id)
    user = _user(owning, user_id)
    limited_to = _client(owning, client_id).id if client_id else None
    token, row = keys.create(team_id=owning.id, user_id=user.id, mode=mode, scopes=scopes or keys.SCOPES, client_id=limited_to,
                             name=name, expires_at=days and datetime.now(UTC) + timedelta(days=days))
    _show([{"id": row.id, "key": token}], as_json)


@key.command("list")
@of_team
@as_json
@_on_database
def list_keys(services, team_id, as_json):
    """List the keys, never themselves."""
    rows = ApiKey.select().where(ApiKey.team_id == _team(team_id).id).order_by(ApiKey.created_at)
    _show([{"id": row.id, "name": row.name, "mode": row.mode, "key": f"sk_{row.mode}_…{row.last_four}", "scopes": " ".join(row.scopes),
            "clientId": row.client_id, "expiresAt": wire_time(row.expires_at), "lastUsedAt": wire_time(row.last_used_at),
            "revokedAt": wire_time(row.revoked_at)} for row in rows], as_json)


@key.command("revoke")
@click.argument("key_id")
@of_team
@_on_database
def revoke_key(services, key_id, team_id):
    """End a key, at once."""
    if not keys.revoke(_team(team_id).id, key_id):
        raise click.ClickException("the team has no such key in force")
    click.echo("revoked")


@click.group()
def account():
    """Connected accounts."""


@account.command("add")
@click.argument("platform")
@click.argument("fields", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--client", "client_id", help="The client whose account it is; the team's own when not given.")
@of_team
@as_json
@_on_database
def add_account(services, platform, fields, client_id, team_id, as_json):
    """Connect an account with an app password or token.

    Fields not given are asked for, secret ones without showing them: Bluesky takes identifier, appPassword and host, Mastodon
    host and accessToken.
    """
    connector = _connector(services, platform)
    given = _fields(connector, fields)
    owning = _team(team_id)
    limited_to = _client(owning, client_id).id if client_id else None
    try:
        connected = connector.connect(given)
    except PlatformError as error:
        raise click.ClickException(error.message) from None
    _show([save(services.vault, owning.id, limited_to, platform, connected).to_dict()], as_json)


@account.command("connect")
@click.argument("platform")
@click.option("--instance", help="The server of the account, where the network has many, such as mastodon.social.")
@click.option("--client", "client_id", help="The client whose account it will be; the team's own when not given.")
@click.option("--no-wait", is_flag=True, help="Print the address and end.")
@of_team
@as_json
@_on_database
def connect_account(services, platform, instance, client_id, no_wait, team_id, as_json):
    """Connect an account in the browser: prints the address to open there, and waits until it is done."""
    if platform not in services.platforms.names:
        raise click.BadParameter(f"the networks are {', '.join(services.platforms.names)}", param_hint="PLATFORM")
    owning = _team(team_id)
    limited_to = _client(owning, client_id).id if client_id else None
    try:
        connect.check(services.platforms[platform], instance, None)
        begun = connect.begin(services, team_id=owning.id, user_id=_user(owning, None).id, client_id=limited_to,
                              platform=platform, instance=instance)
    except ApiError as error:
        raise click.ClickException(error.message) from None
    minutes = int(connect.LIFETIME.total_seconds() // 60)
    click.echo(f"Open this address in a browser within {minutes} minutes:\n\n  {begun.url}\n", err=as_json)
    if not no_wait:
        _show([row.to_dict() for row in _awaited(begun.request)], as_json)


@account.command("list")
@click.option("--client", "client_id", help="The client whose accounts to list; the team's own when not given.")
@of_team
@as_json
@_on_database
def list_accounts(services, client_id, team_id, as_json):
    """List the connected accounts."""
    _show([row.to_dict() for row in Account.acting(_team(team_id).id, client_id)], as_json)


@account.command("remove")
@click.argument("account_id")
@of_team
@_on_database
def remove_account(services, account_id, team_id):
    """Disconnect an account and forget its credentials; its posts stay readable."""
    row = Account.select().where(Account.team_id == _team(team_id).id, Account.id == account_id).get_or_none()
    if row is None:
        raise click.ClickException("the team has no such account")
    row.disconnect()
    click.echo("disconnected")


@click.group()
def secrets():
    """The keys that seal platform credentials."""


@secrets.command("new")
def new_secret():
    """Print a fresh key for POSTHORN_SECRET_KEYS."""
    click.echo(new_key())


def _team(team_id):
    teams = list(Team.select().where(Team.id == team_id) if team_id else Team.select().limit(2))
    if len(teams) == 1:
        return teams[0]
    raise click.ClickException("there is no such team" if team_id or not teams else "there are several teams; name one with --team")


def _user(team, user_id):
    query = User.select().where(User.team_id == team.id).order_by(User.created_at)
    user = query.where(User.id == user_id).first() if user_id else query.first()
    if user is None:
        raise click.ClickException("the team has no such user")
    return user


def _client(team, client_id):
    row = Client.select().where(Client.team_id == team.id, Client.id == client_id).get_or_none()
    if row is None:
        raise click.ClickException("the team has no such client")
    return row


def _connector(services, platform):
    ways = [name for name in services.platforms.names if services.platforms[name].connect_fields]
    if platform not in ways:
        raise click.BadParameter(f"accounts of {', '.join(ways)} can be added here", param_hint="PLATFORM")
    return services.platforms[platform]


def _fields(connector, pairs):
    given = dict(pair.partition("=")[::2] for pair in pairs)
    unknown = given.keys() - set(connector.connect_fields)
    if unknown:
        raise click.BadParameter(f"{connector.title} takes {', '.join(connector.connect_fields)}", param_hint=sorted(unknown)[0])
    for name in connector.connect_fields:
        if name not in given:
            secret = any(word in name.lower() for word in HIDDEN)
            given[name] = click.prompt(name, hide_input=secret, default="" if name == "host" and connector.name == "bluesky" else None)
    return given


def _awaited(request):
    """The accounts that come of a request to connect."""
    while (request := ConnectRequest.get_by_id(request.id)).account_ids is None:
        if request.failure is not None:
            raise click.ClickException(request.failure)
        if datetime.now(UTC) > request.expires_at + SLOWEST:
            raise click.ClickException("nobody has come back in time; begin again")
        time.sleep(1)
    return Account.select().where(Account.id.in_(request.account_ids))


def _show(rows, as_json):
    """A list for scripts, or a table for people: as many columns as have something to say."""
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if any(row.get(name) for row in rows)]
    lines = [names, *([str(row.get(name) or "") for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    for line in lines if rows else []:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
