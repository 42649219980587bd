"""What API and worker switch on at their start: figures of the pool, and traces where they are asked for."""

import importlib
import logging

from handlers.config import Config
from storage import tracing
from storage.database import database
from storage.figures import POOL

log = logging.getLogger("posthorn")


def start(config: Config, process: str) -> None:
    """`process` names its kind in traces. Without the packages of traces it works on without them, and says so."""
    database.told = POOL.set
    if config.otlp_url is None:
        return
    try:
        otel = importlib.import_module("handlers.otel")
    except ModuleNotFoundError:
        log.error("traces are switched on, and the packages for them are missing: pip install '.[otel]' in a clone brings them")
        return
    tracing.switch_on(otel.Tracer(config.otlp_url, process))
