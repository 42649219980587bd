"""`posthorn up`: everything on one machine, from nothing: database, store, API and worker, watched until they are told to stop."""

import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import click

from handlers.acts import make_client, make_key, make_team
from handlers.config import LEFT, Config, environment
from handlers.process import data_dir_option
from handlers.stores import lineage, open_database, open_store
from storage import audit
from storage.database import database, migrate
from storage.embedded import Postgres, StartFailed, Store
from storage.models import Team
from storage.secrets import new_key

PATIENCE = 30.0     # seconds for the API to answer
PAUSE = 1.0         # seconds before a process that ended is started again
STOP = 30.0         # seconds that API and worker have to finish what they are at
BUCKET = "posthorn"

log = logging.getLogger("posthorn.up")


class Up:
    """One run of everything. `data_dir` keeps what must survive; `say` prints a line for the person who waits."""

    def __init__(self, data_dir: Path, host: str, port: int, environ: dict, say=print, *, restored=False):
        self.data_dir, self.host, self.port, self.say, self.restored = data_dir, host, port, say, restored
        self.environ = dict(environ)
        self._servers, self._processes = [], {}
        self._stopping = False

    def run(self) -> None:
        """Starts all, watches, and stops all on SIGINT or SIGTERM. Raises StartFailed or ConfigError with one sentence."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        started = time.monotonic()
        try:
            self._prepare()
            first = self._first_run()
            for command in ("serve", "worker"):
                self._start(command)
            self._wait_for_api()
            self._greet(first, time.monotonic() - started)
            self._watch()
        except _Stopped:
            pass
        finally:
            self._end()

    def _prepare(self):
        self._claim_port()
        self._claim_directory()
        if "DATABASE_URL" not in self.environ:
            self.say("Starting PostgreSQL ...")
            self.environ["DATABASE_URL"] = self._server(Postgres(self.data_dir / "postgres"))
        if "S3_ENDPOINT_URL" not in self.environ:
            self.say("Starting the object store ...")
            self._use(self._server(Store(self.data_dir / "store", BUCKET)))
        if not self.environ.get("POSTHORN_SECRET_KEYS_FILE"):
            self.environ.setdefault("POSTHORN_SECRET_KEYS", self._secret_key())
        self.environ.setdefault("POSTHORN_BASE_URL", self.address)
        self._leave_settings()
        config = Config.from_env(self.environ)
        config.refuse_port(self.port)
        open_database(config, connections=2)
        self.say("Preparing the database ...")
        migrate()
        objects = open_store(config)
        for warning in objects.prepare():
            self.say(f"Note: {warning}")
        if self.restored:       # before anything is published
            doubtful = lineage(objects).begin_anew(actor=audit.typed()).doubtful
            self.say(f"{doubtful} targets may have been sent since the backup; they are looked for and not sent again")

    def _leave_settings(self):
        """For the other commands, run beside this one."""
        left = {name: value for name, value in self.environ.items()
                if name.startswith(("DATABASE_URL", "S3_", "POSTHORN_")) and "\n" not in value}
        _write_secret(self.data_dir / LEFT, "".join(f"{name}={value}\n" for name, value in left.items()))

    @property
    def address(self):
        """Where the API answers on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, f"[{self.host}]" if ":" in self.host else self.host)
        return f"http://{host}:{self.port}"

    def _claim_port(self):
        try:
            with socket.create_server((self.host, self.port), family=socket.AF_INET6 if ":" in self.host else socket.AF_INET):
                pass
        except OSError as error:
            raise StartFailed(f"cannot listen on {self.host} port {self.port}: {os.strerror(error.errno)}; "
                              "choose another with --port") from None

    def _claim_directory(self):
        """For the whole run: two of us on one directory would stop each other's servers."""
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.data_dir / ".lock", "w")
        except OSError as error:
            raise StartFailed(f"cannot write to {self.data_dir}: {error.strerror}; choose another with --data-dir") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StartFailed(f"another `posthorn up` runs on {self.data_dir}; choose another with --data-dir") from None

    def _server(self, server):
        self._servers.append(server)
        return server.start()

    def _use(self, store):
        self.environ |= {"S3_ENDPOINT_URL": store.endpoint_url, "S3_ACCESS_KEY": store.access_key, "S3_SECRET_KEY": store.secret_key,
                         "S3_BUCKET": store.bucket, "S3_REGION": store.region}

    def _secret_key(self):
        path = self.data_dir / "secret.key"
        if not path.exists():
            _write_secret(path, new_key())
        return path.read_text().strip()

    def _first_run(self):
        """The keys of the first team, made when there is no team yet; None later."""
        if Team.select().exists():
            return None
        with database.atomic():
            team, user = make_team("My team", "Me")
            make_client(team, "My first client")
            return {mode: make_key(user, mode, name="first")[0] for mode in ("live", "test")}

    def _start(self, command):
        arguments = ["--host", self.host, "--port", str(self.port)] if command == "serve" else []
        process = subprocess.Popen([sys.executable, "-m", "handlers", command, "--end-with-parent", *arguments], env=self.environ,
                                   start_new_session=True)
        self._processes[command] = process

    def _wait_for_api(self):
        self.say("Starting the API and the worker ...")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for command, process in self._processes.items():
                if process.poll() is not None:
                    raise StartFailed(f"`posthorn {command}` ended at once; its own message stands above")
            try:
                with urllib.request.urlopen(f"{self.address}/v1/health", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise StartFailed(f"the API did not answer within {PATIENCE:.0f} s")

    def _greet(self, first, seconds):
        self.say(f"Posthorn is up at {self.address} after {seconds:.1f} s; its data is in {self.data_dir}. Ctrl-C stops it.")
        if first is None:
            self.say("Your keys are those shown at the first start; `posthorn key create` makes more.")
            return
        self.say(f"\nYour API keys, shown this once:\n  live  {first['live']}\n  test  {first['test']}\n")
        body = json.dumps({"caption": "Hello from Posthorn", "targets": [{"platform": "bluesky"}, {"platform": "mastodon"}]})
        self.say(f"Publish your first post, to the networks' sandboxes:\n\n  curl -s {self.address}/v1/posts -H 'Authorization: Bearer "
                 f"{first['test']}' \\\n    -H 'Content-Type: application/json' -d '{body}'\n")

    def _watch(self):
        """Starts again what ends by itself, until somebody says stop."""
        while True:
            time.sleep(PAUSE)
            for command, process in list(self._processes.items()):
                if process.poll() is not None:
                    log.warning("`posthorn %s` %s; starting it again", command, _end(process.returncode))
                    self._start(command)
            for server in self._servers:
                if not server.alive():
                    self._restart(server)

    def _restart(self, server):
        log.warning("%s ended; starting it again", type(server).__name__)
        address = server.start()
        if isinstance(server, Store) and address.endpoint_url != self.environ["S3_ENDPOINT_URL"]:
            # Its port was taken meanwhile: API and worker start again with the new address, by _watch.
            self._use(address)
            self._leave_settings()
            for process in self._processes.values():
                process.terminate()

    def _stop(self, number, frame):
        if not self._stopping:
            self._stopping = True
            raise _Stopped

    def _end(self):
        self._stopping = True
        if self._processes or self._servers:
            self.say("Stopping ...")
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP
        for process in self._processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for server in reversed(self._servers):
            server.stop()


def _end(status):
    """How a process ended, by its exit status: less than 0 for a signal."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _write_secret(path, text):
    """Whole or not at all, readable by the owner alone."""
    half = path.with_suffix(".new")
    with open(os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        file.write(text)
    half.replace(path)


class _Stopped(Exception):
    """Somebody said stop."""


@click.command("up")
@data_dir_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="The port to listen on.")
@click.option("--restored", is_flag=True, help="The data comes from a backup: what may have been sent since is not sent again.")
def command(data_dir, host, port, restored):
    """Run everything on this machine: database, store, API and worker."""
    try:
        Up(data_dir, host, port, environment(), click.echo, restored=restored).run()
    except StartFailed as error:
        sys.exit(f"posthorn: {error}")
