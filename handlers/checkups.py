"""What `posthorn doctor` looks at beside database and store: names, clocks, keys, room, the API, models and networks."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from handlers.config import LEFT, Config, ConfigError, LogSettings
from handlers.findings import Finding
from handlers.health import VERSION
from handlers.services import caption_model
from platforms.chat import ModelFailed
from platforms.registry import PLATFORMS, Registry
from storage.database import database
from storage.fetch import Fetcher
from storage.resealing import census
from storage.secrets import Vault

# Only the database's clock says when a post is due. By that of a machine uploads are signed, which stores refuse that see them
# come from a quarter of an hour away, and logins proved, for which some servers allow a minute.
FAR = 60.0                                          # seconds
SCARCE, ROOMY = 256 * 2**20, 4 * 2**30              # bytes: of no use, and of two of the largest files
NEAR = 0.8                                          # of 1, how alike a name is that may be meant
SHOWN = 5                                           # ids of rows in one line

NO_NAME = "take it away, or look for its name in docs/configuration.md"
CLOCK = "let an NTP service set the clocks of all machines, such as chrony or systemd-timesyncd"
NO_KEYS = "`posthorn secrets new` makes one"
LOST = "put the key that sealed them behind the others in POSTHORN_SECRET_KEYS, or connect these accounts again " \
       "(of a webhook, wh_…: POST /v1/webhooks/{id}/rotate-secret)"
MODEL = "see docs/captions.md"
DISK = "make room, or set TMPDIR to a larger disk: a file has up to 2 GB"
PLAIN = "put a proxy with a certificate before the API: nobody can sign in there, and most networks send nobody back to it"
APP = "see docs/networks.md"


class _Asked(dict):
    """An environment that knows which of its variables anybody asks for."""

    def __init__(self, environ):
        super().__init__(environ)
        self.names = set()

    def get(self, name, default=None):
        """Called by what reads settings."""
        self.names.add(name)
        return super().get(name, default)


def names(environ) -> Iterator[Finding]:
    """Variables that look like settings and are none."""
    asked = _Asked(environ)
    for kind in (Config, LogSettings):
        kind.from_env(asked)
    known = {f"POSTHORN_{platform.name}_{name}".upper() for platform in PLATFORMS for name in platform.settings} | asked.names
    sections = [f"POSTHORN_{platform.name}_".upper() for platform in PLATFORMS]
    for name in sorted(name for name in environ if name.startswith("POSTHORN_") and name not in known):
        section = next((prefix for prefix in sections if name.startswith(prefix)), "")
        near = get_close_matches(name, [one for one in known if one.startswith(section)], 1, NEAR)
        yield Finding(None, f"{name} is no setting of Posthorn", f"is {near[0]} meant?" if near else NO_NAME)


def database_clock() -> Finding:
    """That of this machine beside that of the database; to be called on a connection."""
    before = time.time()
    there = database.execute_sql("SELECT extract(epoch FROM clock_timestamp())::float").fetchone()[0]
    return _clock("the database", (before + time.time()) / 2 - there)


def store_clock(config: Config) -> Iterator[Finding]:
    """The same beside that of the store, where it tells."""
    with _pool() as pool:
        try:
            date = pool.request("HEAD", config.s3_endpoint_url).headers.get("Date")
            there = parsedate_to_datetime(date).timestamp()
        except (HTTPError, TypeError, ValueError):      # others say that it is away, and not all stores tell
            return
    yield _clock("the store", time.time() - there)


def _clock(whose, ahead):
    if abs(ahead) <= FAR:
        return Finding(True, f"the clock agrees with that of {whose}")
    how = "ahead of" if ahead > 0 else "behind"
    return Finding(False, f"the clock of this machine is {abs(ahead):.0f} s {how} that of {whose}", CLOCK)


def keys(config: Config) -> Iterator[Finding]:
    """Whether the keys are some, and open what is stored; to be called on a connection."""
    try:
        sealed = census(Vault(config.secret_keys))
    except ValueError:
        yield Finding(False, "POSTHORN_SECRET_KEYS must hold Fernet keys", NO_KEYS)
        return
    if sealed.unreadable:
        more = f" and {len(sealed.unreadable) - SHOWN} more" if len(sealed.unreadable) > SHOWN else ""
        yield Finding(False, f"{len(sealed.unreadable)} of {sealed.total} stored credentials open with no configured key: "
                             f"{', '.join(sealed.unreadable[:SHOWN])}{more}", LOST)
    else:
        yield Finding(True, f"all {sealed.total} stored credentials open with the configured keys")
    if sealed.old:
        yield Finding(None, f"{sealed.old} of {sealed.total} are sealed with an older key", "run `posthorn secrets rotate`")


def room(data_dir: Path) -> Iterator[Finding]:
    """What is left on the disks that files pass through, and on that of `posthorn up`."""
    folders = [Path(tempfile.gettempdir()), *([data_dir] if (data_dir / LEFT).is_file() else [])]
    for folder in folders:
        if not os.access(folder, os.W_OK):
            yield Finding(False, f"{folder} cannot be written to", DISK)
            continue
        free = shutil.disk_usage(folder).free
        what = f"{free / 2**30:.1f} GB are free in {folder}"
        yield Finding(True, what) if free >= ROOMY else Finding(None if free >= SCARCE else False, what, DISK)


def api(config: Config) -> Iterator[Finding]:
    """Whether the address that is told to the world leads to us."""
    url = urlsplit(config.base_url)
    if url.scheme == "http" and not is_private(url.hostname):
        yield Finding(None, f"{config.base_url} is not https", PLAIN)
    with _pool() as pool:
        try:
            answer = pool.request("GET", f"{config.base_url}/v1/health")
            version = json.loads(answer.data)["data"]["version"]
        except HTTPError:
            yield Finding(False, f"nobody answers at {config.base_url}", "start `posthorn serve`, or correct POSTHORN_BASE_URL")
            return
        except (ValueError, LookupError, TypeError):
            yield Finding(False, f"{config.base_url} does not lead to the API (status {answer.status})",
                          "POSTHORN_BASE_URL must be where the API is reached")
            return
    yield Finding(True, f"the API answers at {config.base_url}") if version == VERSION else Finding(
        None, f"the API at {config.base_url} has the version {version}, this command {VERSION}", "finish the upgrade")


def metrics(config: Config) -> Iterator[Finding]:
    """Whether scrapes are answered where they are switched on."""
    for port, who in ((config.metrics_port, "worker"), (config.api_metrics_port, "serve")):
        if port is None:
            continue
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.metrics_host, config.metrics_host)
        with _pool() as pool:
            try:
                good = b"posthorn_" in pool.request("GET", f"http://{host}:{port}/metrics").data
            except HTTPError:
                good = False
        yield Finding(True, f"metrics are answered on port {port}") if good else Finding(
            None, f"nobody answers with metrics at {host}, port {port}", f"start `posthorn {who}`, if it is to run here")


def captions(config: Config) -> Iterator[Finding]:
    """Whether the caption model says a word."""
    if not config.caption_url and not config.caption_model:
        yield Finding(True, "no caption model is set: live keys get no captions")
        return
    try:
        caption_model(config).try_out()
    except (ConfigError, ModelFailed) as error:
        yield Finding(False, str(error), MODEL)
    else:
        yield Finding(True, "the caption model answers")


def networks(config: Config) -> Iterator[Finding]:
    """The credentials of the apps at the networks: whether they are set, and where a network tells, whether it knows them."""
    try:
        registry = Registry(Fetcher(allow_private=config.allow_private, refuse=config.refuse_networks), config.platforms,
                            allow_plain=config.allow_private)
    except ValueError as error:
        yield Finding(False, str(error), APP)
        return
    without = []
    for platform in (registry[name] for name in registry.names):
        given = [name for name in ("client_id", "client_secret") if platform.settings.get(name)]
        if "client_id" not in type(platform).settings:
            continue
        if given:
            yield _app(platform, given)
        else:
            without.append(platform.name)
    if without:
        yield Finding(True, f"no app is set for {', '.join(without)}: no account can be connected there")


def _app(platform, given):
    if len(given) == 1:
        missing = {"client_id": "client_secret", "client_secret": "client_id"}[given[0]]
        named = [f"POSTHORN_{platform.name}_{name}".upper() for name in (given[0], missing)]
        return Finding(False, f"{named[0]} is set, and {named[1]} is not", f"set both: {APP}")
    works = platform.app_works()
    if works is None:
        return Finding(True, f"the app at {platform.title} is set; whether it is known there cannot be told without a person")
    if works:
        return Finding(True, f"{platform.title} knows the app")
    return Finding(False, f"{platform.title} does not know the app",
                   f"correct POSTHORN_{platform.name.upper()}_CLIENT_ID and _CLIENT_SECRET")


def is_private(host) -> bool:
    """Whether no network can reach this host."""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".internal", ".local"))


def _pool():
    return PoolManager(timeout=Timeout(connect=4, read=10), retries=Retry(total=1, redirect=0))
