"""`posthorn serve`: the API under gunicorn.

The process that watches over the others imports none of the application: it stays small, and a reload takes new code.
"""

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager

import click
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.util import import_app
from uvicorn_worker import UvicornWorker

from handlers.config import FIGURES, Config, ConfigError, LogSettings, environment
from handlers.draining import Draining
from handlers.logs import formatter
from handlers.process import end_with_parent, share_arenas


class ApiWorker(UvicornWorker):
    """One process of the API."""

    # lifespan on: a start that fails ends the process, instead of answering 500 for ever. reset_contextvars: nothing of one
    # request is left for the next on the same connection.
    # proxy_headers: uvicorn would trust whoever connects from this machine; handlers/proxies.py trusts whom the settings name.
    CONFIG_KWARGS = {"loop": "uvloop", "http": "handlers.prompt:Prompt", "ws": "none", "lifespan": "on",
                     "reset_contextvars": True, "server_header": False, "proxy_headers": False, "log_config": None}

    def init_process(self):
        """Called by gunicorn after the fork: ends with the process that watches over it, and leaves no port taken."""
        end_with_parent()
        super().init_process()

    async def _serve(self):
        """As the class above does, with a server of our own."""
        self.config.app = self.wsgi
        server = Draining(self.config)
        self._install_sigquit_handler()
        await server.serve(sockets=self.sockets)
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)


class Log(Logger):
    """gunicorn's log, and uvicorn's with it, without secrets."""

    def setup(self, cfg):
        """Called by gunicorn."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(formatter(LogSettings.from_env(environment())))


class Api(BaseApplication):
    """gunicorn with our settings; it reads no configuration file and no command line."""

    def __init__(self, config: Config, host: str, port: int, folder: str | None = None):
        """`folder`: where its processes keep their figures for each other (handlers/scrapes.py)."""
        self.folder = folder
        self.config, self.bind = config, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().__init__()

    def load_config(self):
        """Called by gunicorn."""
        settings = {"bind": self.bind, "workers": self.config.api_processes, "worker_class": "handlers.serve.ApiWorker",
                    "timeout": 60, "graceful_timeout": 25, "keepalive": 75, "loglevel": "warning", "logger_class": Log,
                    "control_socket_disable": True, "raw_env": [f"{FIGURES}={self.folder}"] if self.folder else []}
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self):
        """Called by gunicorn in each process."""
        try:
            return import_app("handlers.asgi:app")
        except ConfigError as error:        # as handlers.cli says it; gunicorn would show the way of the error as well
            print(f"posthorn: {error}", file=sys.stderr)
            sys.exit(Arbiter.APP_LOAD_ERROR)


@contextmanager
def figures(config):
    """The folder for the figures of the processes, gone in the end; None where nobody asks for them."""
    if config.api_metrics_port is None:
        yield None
        return
    watcher = os.getpid()
    try:
        folder = tempfile.mkdtemp(prefix="posthorn-metrics-")
    except OSError:
        raise ConfigError("POSTHORN_API_METRICS_PORT needs a folder for temporary files that can be written (TMPDIR)") from None
    try:
        yield folder
    finally:
        if os.getpid() == watcher:      # its forks come by here as well
            shutil.rmtree(folder, ignore_errors=True)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="The port to listen on.")
@click.option("--end-with-parent", "tied", is_flag=True, hidden=True)
def command(host, port, tied):
    """Run the API alone."""
    if tied:
        end_with_parent()
    share_arenas()
    config = Config.from_env(environment())
    config.refuse_port(port)
    with figures(config) as folder:
        Api(config, host, port, folder).run()
