"""`posthorn media`: looking after the files by hand."""

import click

from handlers.config import Config, environment
from handlers.process import data_dir_option
from handlers.stores import open_database, open_store, sweep as sweep_of

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
    swept = sweep_of(config, open_store(config)).whole(dry_run=dry_run)
    if dry_run:
        click.echo("Nothing was changed; this is what a sweep would have done.")
    for name, words in LINES:
        click.echo(f"{getattr(swept, name):8} {words.format(orphan_bytes=swept.orphan_bytes)}")
    for doubt in swept.doubts:
        raise click.ClickException(doubt)
