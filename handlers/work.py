"""`posthorn worker`: publishes what is due."""

import logging
import signal

import click

from handlers import telemetry
from handlers.config import Config, environment
from handlers.process import end_with_parent, share_arenas
from handlers.scrapes import serve_worker
from handlers.services import build, open_fetcher
from handlers.stores import keep, lineage, sweep
from platforms.publisher import Publisher
from platforms.webhooks import Sender
from platforms.worker import Worker
from storage.database import DatabaseAway
from storage.objects import StoreUnavailable

SPARE = 4           # database connections beside those of the threads: the claim, the heartbeat, some air
MOST = 12           # connections of one worker: a thread holds one for milliseconds only, and the database has few cores

log = logging.getLogger("posthorn.sweep")


def _sender(services):
    """With a fetcher of its own: receivers whose name servers are silent would hold up the lookups of the networks."""
    return Sender(services.vault, open_fetcher(services.config))


class _Chore:
    """A round of the sweep, which one worker at a time takes; before the first, what the store should refuse and does not."""

    def __init__(self, config, objects):
        self._objects, self._sweep, self._asked = objects, sweep(config, objects), False

    def __call__(self):
        try:
            if not self._asked:
                for laxity in self._objects.laxities():
                    log.error("%s; `posthorn doctor` says more", laxity)
                self._asked = True
            swept = self._sweep.round()
        except (StoreUnavailable, *DatabaseAway) as error:
            log.warning("the sweep is put off: %s", error if isinstance(error, StoreUnavailable) else type(error).__name__)
            return
        for doubt in swept.doubts if swept else ():
            log.error("%s", doubt)


@click.command("worker")
@click.option("--end-with-parent", "tied", is_flag=True, hidden=True)
def command(tied):
    """Run a worker: it publishes what is due. Run as many as you like."""
    if tied:
        end_with_parent()
    share_arenas()
    config = Config.from_env(environment())
    services = build(config, connections=min(config.worker_threads, MOST - SPARE) + SPARE)
    telemetry.start(config, "worker")
    publisher = Publisher(services.platforms, services.vault, services.objects)
    serve_worker(config, publisher.breakers)
    worker = Worker(publisher, config.database_url, threads=config.worker_threads, chore=_Chore(config, services.objects),
                    keep=keep(config), lineage=lineage(services.objects), sender=_sender(services))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()
