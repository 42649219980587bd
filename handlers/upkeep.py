"""`posthorn media` and `posthorn restored`: looking after the files by hand, and after what a backup brought back."""

import click

from handlers.config import Config, environment
from handlers.console import as_json, on_database, say, sure, without_asking
from handlers.process import data_dir_option
from handlers.stores import lineage, open_database, open_store, sweep as sweep_of
from storage import audit
from storage.models import wire_time
from storage.objects import StoreUnavailable

LINES = (("ready", "uploads that arrived unused were looked at and are ready"), ("refused", "of them were refused"),
         ("late", "uploads that never arrived were forgotten"), ("emptied", "refused files were removed"),
         ("unused", "files that no post uses were removed"), ("finished", "files of finished posts were removed"),
         ("orphans", "objects that no file is known for were removed, {orphan_bytes} bytes"),
         ("lost", "files are missing in the store, and refused from now on"))


@click.group()
def media():
    """The files in the store."""


@media.command("sweep")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@data_dir_option
def sweep(data_dir, dry_run):
    """Look at uploads, remove what has outlived its time, and compare the store with the database: all at once.

    The workers do the same by themselves, a little every ten minutes.
    """
    config = Config.from_env(environment(data_dir))
    open_database(config, connections=2)
    objects = open_store(config)
    if lineage(objects).is_restored():
        raise click.ClickException("this database was restored from a backup: run `posthorn restored` first")
    swept = sweep_of(config, objects).whole(dry_run=dry_run)
    if dry_run:
        click.echo("Nothing was changed; this is what a sweep would have done.")
    for name, words in LINES:
        click.echo(f"{getattr(swept, name):8} {words.format(orphan_bytes=swept.orphan_bytes)}")
    for doubt in swept.doubts:
        raise click.ClickException(doubt)


@click.command("restored")
@click.option("--moved", is_flag=True, help="The database was moved or upgraded, and nothing was sent since the backup: "
                                            "what is due is published.")
@without_asking
@as_json
@on_database
def restored(services, moved, yes, as_json):
    """After a backup was restored: what may have been sent since is in doubt, and never sent again by itself.

    Run it before API and workers start. A worker that finds that the database was restored does the same by itself, but cannot
    see every way of restoring: docs/backup.md.
    """
    history = lineage(services.objects)
    if moved:
        sure("Was nothing sent since the backup was taken, because no worker ran? What was would be sent again.", yes)
        history.go_on(audit.typed())
        return say("the place of the database is noted", {}, as_json)
    if doubt := _doubt(history):
        sure(f"{doubt} Are all posts that are due now in doubt all the same?", yes)
    found = history.begin_anew(actor=audit.typed())
    since = wire_time(found.since)
    return say(f"{found.doubtful} targets may have been sent since {since}; they are looked for and not sent again",
               {"since": since, "doubtful": found.doubtful}, as_json)


def _doubt(history):
    """Why the database may not have been restored; None where it was."""
    try:
        return None if history.is_restored() else "This database does not look restored."
    except StoreUnavailable:
        return "The object store does not answer, which would know whether this database was restored."
