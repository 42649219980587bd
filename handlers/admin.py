"""Administration by the command line: the schema, teams, clients, accounts."""

import time
from datetime import UTC, datetime, timedelta

import click

from handlers import connect
from handlers.acts import make_client, make_team
from handlers.console import (as_json, client_of, of_team, on_database, say, settings, show, sure, team_of, user_of,
                              without_asking)
from handlers.errors import ApiError
from handlers.process import data_dir_option
from handlers.stores import open_database, open_store
from platforms.errors import PlatformError
from platforms.accounts import save
from storage import audit
from storage.database import database, migrate as apply_migrations
from storage.models import Account, Client, ConnectRequest, Team, wire_time

HIDDEN = ("password", "token", "secret")    # fields whose names hold one of these are not echoed
SLOWEST = timedelta(minutes=2)              # that a network may take to answer the last one who comes back in time


@click.command()
@data_dir_option
def migrate(data_dir):
    """Bring the database up to date, and make and prepare the bucket."""
    config = settings()
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
@on_database
def create_team(services, name, user, time_zone, as_json):
    """Make a team with its first user."""
    if database.execute_sql("SELECT FROM pg_timezone_names WHERE name = %s", (time_zone,)).fetchone() is None:
        raise click.BadParameter(f"{time_zone} is no time zone", param_hint="--time-zone")
    row, first = make_team(name, user, time_zone=time_zone)
    show([{"id": row.id, "name": row.name, "userId": first.id}], as_json)


@team.command("list")
@as_json
@on_database
def list_teams(services, as_json):
    """List all teams."""
    show([_shown_team(row) for row in Team.select().order_by(Team.created_at)], as_json)


@team.command("plan")
@click.argument("until", metavar="never|now|YYYY-MM-DD")
@without_asking
@of_team
@as_json
@on_database
def set_team_plan(services, until, yes, team_id, as_json):
    """Say until when (UTC) the team has an active plan. Without one, everything but health is forbidden."""
    row = team_of(team_id)
    expires_at = _plan_end(until)
    if expires_at is not None and expires_at <= datetime.now(UTC):
        sure(f"End the plan of {row.name} now?", yes)
    with database.atomic():
        Team.update(plan_expires_at=expires_at).where(Team.id == row.id).execute()
        audit.record(audit.typed(), "team.plan_set", row.id, team_id=row.id, until=until)
    show([_shown_team(Team.get_by_id(row.id))], as_json)


@click.group()
def client():
    """Agency clients of a team."""


@client.command("create")
@click.argument("name")
@of_team
@as_json
@on_database
def create_client(services, name, team_id, as_json):
    """Make an agency client."""
    show([make_client(team_of(team_id), name).to_dict()], as_json)


@client.command("list")
@of_team
@as_json
@on_database
def list_clients(services, team_id, as_json):
    """List the agency clients."""
    show([row.to_dict() for row in Client.select().where(Client.team_id == team_of(team_id).id).order_by(Client.name)], as_json)


@client.command("status")
@click.argument("client_id")
@click.argument("status", type=click.Choice(["active", "suspended", "archived"]))
@without_asking
@of_team
@as_json
@on_database
def set_client_status(services, client_id, status, yes, team_id, as_json):
    """Suspend, archive or activate a client."""
    row = client_of(team_of(team_id), client_id)
    if status != "active":
        sure(f"Make {row.name} {status}? Nobody can act for it then.", yes)
    with database.atomic():
        Client.update(status=status).where(Client.id == row.id).execute()
        audit.record(audit.typed(), "client.status_set", row.id, team_id=row.team_id, status=status)
    show([Client.get_by_id(row.id).to_dict()], as_json)


@click.group()
def account():
    """Connected accounts."""


@account.command("add")
@click.argument("platform")
@click.argument("fields", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--client", "client_id", help="The client whose account it is; the team's own when not given.")
@of_team
@as_json
@on_database
def add_account(services, platform, fields, client_id, team_id, as_json):
    """Connect an account with an app password or token.

    Fields not given are asked for, secret ones without showing them: Bluesky takes identifier, appPassword and host, Mastodon
    host and accessToken.
    """
    connector = _connector(services, platform)
    given = _fields(connector, fields)
    owning = team_of(team_id)
    limited_to = client_of(owning, client_id).id if client_id else None
    try:
        connected = connector.connect(given)
    except PlatformError as error:
        raise click.ClickException(error.message) from None
    with database.atomic():
        row = save(services.vault, owning.id, limited_to, platform, connected)
        audit.record(audit.typed(), "account.connected", row.id, team_id=owning.id, platform=platform, clientId=limited_to)
    show([row.to_dict()], as_json)


@account.command("connect")
@click.argument("platform")
@click.option("--instance", help="The server of the account, where the network has many, such as mastodon.social.")
@click.option("--client", "client_id", help="The client whose account it will be; the team's own when not given.")
@click.option("--no-wait", is_flag=True, help="Print the address and end.")
@of_team
@as_json
@on_database
def connect_account(services, platform, instance, client_id, no_wait, team_id, as_json):
    """Connect an account in the browser: prints the address to open there, and waits until it is done."""
    if platform not in services.platforms.names:
        raise click.BadParameter(f"the networks are {', '.join(services.platforms.names)}", param_hint="PLATFORM")
    owning = team_of(team_id)
    limited_to = client_of(owning, client_id).id if client_id else None
    try:
        connect.check(services.platforms[platform], instance, None)
        begun = connect.begin(services, team_id=owning.id, user_id=user_of(owning, None).id, client_id=limited_to,
                              platform=platform, instance=instance)
    except ApiError as error:
        raise click.ClickException(error.message) from None
    audit.record(audit.typed(), "account.connecting", begun.request.id, team_id=owning.id, platform=platform,
                 clientId=limited_to)
    minutes = int(connect.LIFETIME.total_seconds() // 60)
    click.echo(f"Open this address in a browser within {minutes} minutes:\n\n  {begun.url}\n", err=as_json)
    if not no_wait:
        show([row.to_dict() for row in _awaited(begun.request)], as_json)
    elif as_json:
        show([{"address": begun.url, "expiresAt": wire_time(begun.request.expires_at)}], as_json)


@account.command("list")
@click.option("--client", "client_id", help="The client whose accounts to list; the team's own when not given.")
@of_team
@as_json
@on_database
def list_accounts(services, client_id, team_id, as_json):
    """List the connected accounts."""
    show([row.to_dict() for row in Account.acting(team_of(team_id).id, client_id)], as_json)


@account.command("remove")
@click.argument("account_id")
@without_asking
@of_team
@as_json
@on_database
def remove_account(services, account_id, yes, team_id, as_json):
    """Disconnect an account and forget its credentials; its posts stay readable."""
    row = Account.select().where(Account.team_id == team_of(team_id).id, Account.id == account_id).get_or_none()
    if row is None:
        raise click.ClickException("the team has no such account")
    sure(f"Disconnect {row.username} at {row.platform}? What is scheduled there will fail.", yes)
    with database.atomic():
        row.disconnect()
        audit.record(audit.typed(), "account.disconnected", row.id, team_id=row.team_id, platform=row.platform)
    say("disconnected", {"id": row.id}, as_json)


@click.group()
def trail():
    """Who did what."""


@trail.command("list")
@click.option("--object", "object_id", help="Only what was done to this: the id of a key, an account, a post, a user, an app.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many lines, the last ones.")
@click.option("--team", "team_id", help="Only what was done in this team.")
@as_json
@on_database
def list_trail(services, object_id, limit, team_id, as_json):
    """List who did what to credentials, accounts and posts, oldest first."""
    rows = [entry.to_dict() for entry in audit.trail(team_id=team_id, object_id=object_id, limit=limit)]
    for row in [] if as_json else rows:
        row["detail"] = " ".join(f"{name}={value}" for name, value in row["detail"].items())
    show(rows, as_json)


def _plan_end(text):
    if text == "never":
        return None
    try:
        return datetime.now(UTC) if text == "now" else datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise click.BadParameter("give never, now or a date such as 2027-12-31", param_hint="UNTIL") from None


def _shown_team(row):
    return {"id": row.id, "name": row.name, "timeZone": row.time_zone, "planExpiresAt": wire_time(row.plan_expires_at)}


def _connector(services, platform):
    ways = [name for name in services.platforms.names if services.platforms[name].connect_fields]
    if platform not in ways:
        raise click.BadParameter(f"accounts of {', '.join(ways)} can be added here", param_hint="PLATFORM")
    return services.platforms[platform]


def _fields(connector, pairs):
    given = dict(pair.partition("=")[::2] for pair in pairs)
    unknown = given.keys() - set(connector.connect_fields)
    if unknown:
        taken = ", ".join(connector.connect_fields)
        raise click.BadParameter(f"{connector.title} takes {taken}", param_hint=sorted(unknown)[0])
    for name in connector.connect_fields:
        optional = name == "host" and connector.name == "bluesky"
        if name not in given and not (optional and pairs):      # who gives any by hand, as a script does, is asked for no more
            secret = any(word in name.lower() for word in HIDDEN)
            given[name] = click.prompt(name, hide_input=secret, default="" if optional else None)
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
