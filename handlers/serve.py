"""`posthorn serve`: the API under gunicorn.

The process that watches over the others imports none of the application: it stays small, and a reload takes new code.
"""

import click
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.util import import_app
from uvicorn_worker import UvicornWorker

from handlers.config import Config, environment
from handlers.process import end_with_parent, settle
from handlers.redaction import Redacting, secrets_of


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


class Log(Logger):
    """gunicorn's log, and uvicorn's with it, without secrets."""

    def setup(self, cfg):
        """Called by gunicorn."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(Redacting(self.error_fmt, self.datefmt, secrets=secrets_of(environment())))


class Api(BaseApplication):
    """gunicorn with our settings; it reads no configuration file and no command line."""

    def __init__(self, config: Config, host: str, port: int):
        self.config, self.bind = config, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().__init__()

    def load_config(self):
        """Called by gunicorn."""
        settings = {"bind": self.bind, "workers": self.config.api_processes, "worker_class": "handlers.serve.ApiWorker",
                    "timeout": 60, "graceful_timeout": 25, "keepalive": 75, "loglevel": "warning", "logger_class": Log,
                    "control_socket_disable": True}
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self):
        """Called by gunicorn in each process."""
        return import_app("handlers.asgi:app")


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="The port to listen on.")
@click.option("--end-with-parent", is_flag=True, hidden=True)
def command(host, port, end_with_parent):
    """Run the API alone."""
    settle(end_with_parent)
    Api(Config.from_env(environment()), host, port).run()
