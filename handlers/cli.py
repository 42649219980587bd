"""The command `posthorn`: each subcommand is imported when it is called for, so that a worker does not carry the API."""

import importlib
import sys
from importlib.metadata import version

import click
from peewee import ProgrammingError

from handlers.config import ConfigError, LogSettings, environment, forget_figures
from handlers.logs import set_up
from handlers.process import keep_temporary_files_together
from storage.database import DatabaseAway, MigrationHindered, is_unmigrated
from storage.objects import StoreUnavailable

COMMANDS = {"account": "handlers.admin:account", "audit": "handlers.admin:trail", "client": "handlers.admin:client",
            "doctor": "handlers.doctor:command", "grant": "handlers.consents:grant", "key": "handlers.credentials:key",
            "media": "handlers.upkeep:media", "migrate": "handlers.admin:migrate",
            "oauth-client": "handlers.identity:oauth_client", "restored": "handlers.upkeep:restored",
            "secrets": "handlers.credentials:secrets", "serve": "handlers.serve:command", "team": "handlers.admin:team",
            "up": "handlers.up:command", "user": "handlers.identity:user", "worker": "handlers.work:command"}


class Commands(click.Group):
    """The subcommands of COMMANDS, by name."""

    def list_commands(self, context):
        """Called by click."""
        return list(COMMANDS)

    def get_command(self, context, name):
        """Called by click."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        return getattr(importlib.import_module(module), attribute)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("posthorn"), prog_name="posthorn")
def posthorn():
    """Self-hosted social publishing: one REST call publishes to eleven networks."""


def main():
    """The console script: expected trouble is one sentence on stderr and exit status 1."""
    forget_figures()
    try:
        keep_temporary_files_together(environment())
        set_up(LogSettings.from_env(environment()))
        posthorn()
    except (ConfigError, MigrationHindered) as error:
        sys.exit(f"posthorn: {error}")
    except DatabaseAway:
        sys.exit("posthorn: the database does not answer: look at DATABASE_URL")
    except ProgrammingError as error:
        if not is_unmigrated(error):
            raise
        sys.exit("posthorn: tables are missing in the database: run `posthorn migrate`, if DATABASE_URL is the right one")
    except StoreUnavailable as error:
        sys.exit(f"posthorn: {error}: look at S3_ENDPOINT_URL and the other S3 settings")
