"""`posthorn worker`: publishes what is due."""

import signal

import click

from handlers.config import Config, environment
from handlers.process import settle
from handlers.services import build
from platforms import metrics
from platforms.publisher import Publisher
from platforms.worker import Worker

SPARE = 4           # database connections beside those of the threads: the claim, the heartbeat, some air
MOST = 12           # connections of one worker: a thread holds one for milliseconds only, and the database has few cores


@click.command("worker")
@click.option("--end-with-parent", is_flag=True, hidden=True)
def command(end_with_parent):
    """Run a worker: it publishes what is due. Run as many as you like."""
    settle(end_with_parent)
    config = Config.from_env(environment())
    services = build(config, connections=min(config.worker_threads, MOST - SPARE) + SPARE)
    publisher = Publisher(services.platforms, services.vault, services.objects)
    if config.metrics_port is not None:
        metrics.serve(config.metrics_port, config.metrics_host, publisher.breakers)
    worker = Worker(publisher, config.database_url, threads=config.worker_threads)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()
