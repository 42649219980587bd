"""What the commands of administration share: the settings, the database, the team that is meant, tables and JSON."""

import functools
import json
import sys

import click

from handlers.config import Config, environment
from handlers.process import data_dir_option
from handlers.services import build
from storage.database import with_connection
from storage.models import Client, Team, User

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
of_team = click.option("--team", "team_id", help="The team's id; needed only where there are several.")
without_asking = click.option("--yes", is_flag=True, help="Do not ask.")


def settings() -> Config:
    """The settings for the command that runs: the environment, else what a running `posthorn up` left in its data directory."""
    return Config.from_env(environment(click.get_current_context().params["data_dir"]))


def on_database(command):
    """A command that works on the database, with --data-dir."""
    @functools.wraps(command)
    def run(data_dir, **options):
        services = build(settings(), connections=2)
        with with_connection():
            return command(services, **options)

    return data_dir_option(run)


def sure(question: str, yes: bool) -> None:
    """Asks a person who may be about to break something; scripts, which have no terminal, mean what they say."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True)


def team_of(team_id) -> Team:
    """The team of this id, or the only one there is."""
    teams = list(Team.select().where(Team.id == team_id) if team_id else Team.select().limit(2))
    if len(teams) == 1:
        return teams[0]
    raise click.ClickException(
        "there is no such team" if team_id or not teams else "there are several teams; name one with --team")


def user_of(team, user_id) -> User:
    """The user of this id or sign-in name, or the team's first."""
    query = User.select().where(User.team_id == team.id).order_by(User.created_at)
    user = query.where((User.id == user_id) | (User.login == user_id.lower())).first() if user_id else query.first()
    if user is None:
        raise click.ClickException("the team has no such user")
    return user


def client_of(team, client_id) -> Client:
    """The agency client of this id."""
    row = Client.select().where(Client.team_id == team.id, Client.id == client_id).get_or_none()
    if row is None:
        raise click.ClickException("the team has no such client")
    return row


def show(rows, as_json):
    """A list for scripts, or a table for people: as many columns as have something to say."""
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if any(row.get(name) for row in rows)]
    lines = [names, *([str(row.get(name) or "") for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    for line in lines if rows else []:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def say(word, row, as_json):
    """What was done: a word for people, what it was done to for scripts."""
    show([{**row, "done": word}], True) if as_json else click.echo(word)


def show_one(row, as_json):
    """One row, as `show` has it for scripts; for people a line for each thing that it says."""
    if as_json:
        show([row], as_json)
        return
    said = {name: value for name, value in row.items() if value}
    for name, value in said.items():
        click.echo(f"{name.ljust(max(map(len, said)))}  {value}")
