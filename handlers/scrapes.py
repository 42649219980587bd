"""Where Prometheus asks: a port of its own in each worker, and one for all processes of an API together.

The processes of an API keep their figures in files of one folder (prometheus_client's multiprocess mode). Whichever of them has
the port answers for all; when it ends, another takes the port.
"""

import errno
import logging
import math
import os
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from handlers.config import Config
from handlers.figures import FigureFile
from handlers.readiness import Readiness
from handlers.services import Services
from platforms.metrics import QueueCollector

PAUSE = 1.0         # seconds between two tries to get the port
PATIENCE = 60.0     # seconds until the one before must have ended: it has 40
GONE = "0"          # in the place of a process's number: what all those counted that are gone

log = logging.getLogger("posthorn.metrics")


def serve_worker(config: Config, breakers) -> None:
    """Answers scrapes about this worker and the queue where the settings say so."""
    if config.metrics_port is None:
        return
    for collector in (QueueCollector(breakers), Space()):
        REGISTRY.register(collector)
    _serve(config.metrics_port, config.metrics_host, REGISTRY, patience=PATIENCE)


def serve_api(services: Services) -> None:
    """Answers scrapes about all processes of this API where the settings say so, or waits until this one is needed for that."""
    config = services.config
    if config.api_metrics_port is None:
        return
    registry = CollectorRegistry()
    for collector in (Together(config.api_figures), Ready(services), Space()):
        registry.register(collector)
    _serve(config.api_metrics_port, config.metrics_host, registry, patience=math.inf)


def _serve(port, host, registry, patience):
    threading.Thread(target=_take, args=(port, host, registry, patience), name="metrics", daemon=True).start()


def _take(port, host, registry, patience):
    """Takes the port as soon as it is free: one that is ending may have it, or one beside us that answers for us as well.

    One that is still taken after `patience`, in seconds, is told of.
    """
    told, began = False, time.monotonic()
    while True:
        try:
            start_http_server(port, host, registry)
            return
        except OSError as error:
            late = error.errno != errno.EADDRINUSE or time.monotonic() - began >= patience
            if late and not told:
                # The numbers of a name that is not found are none of the system's errors.
                log.error("metrics cannot be asked for on %s port %d: %s", host, port, error.strerror)
                told = True
            time.sleep(PAUSE)


class Ready:
    """What GET /ready says, at the time of the scrape."""

    def __init__(self, services):
        self._readiness = Readiness(services.objects)

    def collect(self):
        """Called by prometheus_client."""
        ready = GaugeMetricFamily("posthorn_ready", "Whether it is there, as GET /ready says.", labels=["check"])
        for check, there in self._readiness().items():
            ready.add_metric([check], there)
        yield ready


class Space:
    """The room for what is fetched or converted, on its way to the store."""

    def collect(self):
        """Called by prometheus_client."""
        free = shutil.disk_usage(tempfile.gettempdir()).free
        yield GaugeMetricFamily("posthorn_temporary_free_bytes", "Bytes left in the folder for temporary files.", value=free)


class Together:
    """The figures of all processes in `folder`, summed; those of a process that is gone are added to one file and go."""

    def __init__(self, folder: Path):
        self._folder, self._lock = folder, threading.Lock()

    def collect(self):
        """Called by prometheus_client."""
        with self._lock:
            self._bury()
            # An empty one is being made at this moment, or found no room.
            return list(MultiProcessCollector.merge([str(path) for path in self._folder.glob("*.db") if path.stat().st_size]))

    def _bury(self):
        for path in self._folder.glob("*.db"):
            kind, pid = re.fullmatch(r"(.+)_(\d+)\.db", path.name).groups()
            if pid == GONE or _lives(int(pid)):
                continue
            if kind.startswith("gauge") or not path.stat().st_size or _add(path, self._folder / f"{kind}_{GONE}.db"):
                path.unlink()


def _add(path, grave):
    """Adds what one process counted to what all counted that are gone; whether there was room for that."""
    kept, found = FigureFile(str(grave)), list(FigureFile.read_all_values_from_file(str(path)))
    for key, *_ in found:
        kept.read_value(key)        # makes room for it
    for key, value, at, _ in found if kept.kept else ():
        kept.write_value(key, kept.read_value(key)[0] + value, at)
    return kept.kept


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
