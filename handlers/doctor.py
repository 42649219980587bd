"""`posthorn doctor`: whether database, store and workers do what Posthorn needs, and what to do where they do not."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import click
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from handlers import checkups
from handlers.config import FILES, Config, ConfigError, environment
from handlers.console import as_json, show
from handlers.findings import Finding
from handlers.process import data_dir_option
from handlers.stores import lineage, open_database, open_store
from storage.asking import SECONDS, Asking
from storage.database import DatabaseAway, database, later_migrations, pending_migrations, with_connection
from storage.objects import ADMIT, NO_PAGES, PROBE_PREFIX, StoreUnavailable
from storage.outage import why
from storage.queue import health

OLDEST_POSTGRES = 150_000   # server_version_num
SILENCE, WAITING = 5.0, 60.0    # seconds, as in GET /ready
CONTENT, TYPE = b"posthorn", "image/png"
LISTING = b"<ListBucketResult"
PAGE = "response-content-type=text/html"

SETTINGS = "correct it: docs/configuration.md says what it may be"
MISSING = "set it, or run this beside a running `posthorn up` with the same --data-dir"
S3_SETTINGS = "look at S3_ENDPOINT_URL, S3_BUCKET, S3_REGION, S3_ADDRESSING and the keys"
LAX = "take a store that checks signed headers (S3, R2, Ceph, SeaweedFS); Posthorn still checks each file before its use"
PUBLIC = "see Files in docs/operations.md"


def findings(environ, data_dir: Path) -> Iterator[Finding]:
    """Everything that was looked at, as it comes; `data_dir` is that of a `posthorn up`, which need not be there."""
    try:
        config = Config.from_env(environ)
        objects = open_store(config)
        open_database(config, connections=2)
    except ConfigError as error:
        yield Finding(False, str(error), MISSING if "is not set" in str(error) else SETTINGS)
        return
    yield Finding(True, "the settings can be read")
    yield from checkups.names(environ)
    hangs = _hangs(objects)     # asked once, or each question below would wait for it
    yield from _database(config, None if hangs else objects)
    if hangs:
        yield Finding(False, f"the store gives no answer within {SECONDS:.0f} s", S3_SETTINGS)
    else:
        yield from _store(config, objects)
        yield from checkups.store_clock(config)
    for check in (checkups.api, checkups.metrics, checkups.captions, checkups.networks):
        yield from check(config)
    yield from checkups.room(data_dir)


def _hangs(objects):
    try:
        Asking(objects.ready)()
    except TimeoutError:
        return True
    return False


def _database(config, objects):
    try:
        with with_connection():
            number = database.execute_sql("SELECT current_setting('server_version_num')::int").fetchone()[0]
            missing, newer = pending_migrations(), later_migrations()
            queue = None if missing else health()
            checked = [] if missing else [checkups.database_clock(), *checkups.keys(config)]
    except DatabaseAway as error:
        yield Finding(False, f"the database does not answer as it should: {why(error)}",
                      "look at DATABASE_URL, and whether PostgreSQL runs")
        return
    yield Finding(True, f"the database answers: PostgreSQL {number // 10_000}") if number >= OLDEST_POSTGRES else Finding(
        False, f"PostgreSQL {number // 10_000} is too old", "15 or newer is needed")
    if missing:
        yield Finding(False, f"{len(missing)} migrations are missing", "run `posthorn migrate`")
        return
    yield Finding(True, "the schema is up to date") if not newer else Finding(
        None, f"the schema is {len(newer)} migrations ahead of this code", "upgrade this process as well")
    yield from checked
    if objects is not None:
        yield from _history(objects)
    yield from _workers(queue)


def _history(objects):
    try:
        restored = lineage(objects).is_restored()
    except StoreUnavailable:        # which is told below
        return
    if restored:
        yield Finding(False, "the database was restored from a backup", "stop the workers, and run `posthorn restored`")


def _workers(queue):
    if queue.worker_seen > SILENCE:
        yield Finding(False, "no worker has given a sign of life",
                      "start `posthorn worker`, or look at the log of the one that runs; nothing is published meanwhile")
    else:
        yield Finding(True, "a worker is at work")
    if queue.oldest_due > WAITING:
        yield Finding(None, f"a post is due since {queue.oldest_due:.0f} s", "start more workers, or more threads for each")


def _store(config, objects):
    try:
        if not objects.has_bucket():        # some stores make it with the first upload
            yield Finding(False, f"the store has no bucket {config.s3_bucket}", "run `posthorn migrate`, or correct S3_BUCKET")
            return
        with _probe(objects) as key:
            for check in (_keeping, _enforcement, _serving):
                try:
                    yield from check(config, objects, key)
                except StoreUnavailable as error:
                    yield Finding(False, str(error), S3_SETTINGS)
    except StoreUnavailable as error:
        yield Finding(False, str(error), S3_SETTINGS)


def _keeping(config, objects, key):
    with objects.open(key) as file:
        same = file.read() == CONTENT
    yield Finding(True, "the store keeps what is put into it") if same else Finding(
        False, "the store gives back something else than was put into it", S3_SETTINGS)


@contextmanager
def _probe(objects):
    key = f"{PROBE_PREFIX}{uuid4().hex}.png"
    objects.put(key, io.BytesIO(CONTENT), len(CONTENT), TYPE)
    try:
        yield key
    finally:
        objects.delete(key)


def _enforcement(config, objects, key):
    found = objects.laxities(as_others=True)
    yield from (Finding(False, laxity, LAX) for laxity in found)
    if not found:
        yield Finding(True, "the store takes uploads of exactly the signed size and type, once")
    if not objects.admits_pages(as_others=True):
        yield Finding(None, NO_PAGES, f"for uploads from browsers {ADMIT} (CORS)")


def _serving(config, objects, key):
    """Files are read as everybody reads them. The API serves what it knows of, and the probe is none of that."""
    host = urlsplit(config.s3_public_url).hostname
    if checkups.is_private(host):
        yield Finding(None, f"files are served at {config.s3_public_url}, which no network can reach",
                      "set POSTHORN_BASE_URL or S3_PUBLIC_URL to what the world reaches, for networks that fetch media")
    with PoolManager(timeout=Timeout(connect=4, read=10), retries=Retry(total=1, redirect=0)) as pool:
        try:
            ours, url = config.s3_public_url == config.base_url + FILES, objects.public_url(key)
            yield from _served_by_us(pool, url) if ours else _served_elsewhere(pool, url, config)
        except HTTPError:
            yield Finding(False, f"nobody answers at {config.s3_public_url}", f"start `posthorn serve`, or {PUBLIC}")
            return
        yield from _served_by_the_store(pool, objects, key, ours)


def _served_by_us(pool, url):
    answer = pool.request("GET", url)
    if answer.status == 404 and _code(answer.data) == "not_found":
        yield Finding(True, "the API serves the files")
    else:
        yield Finding(False, f"{url.rpartition('/')[0]} does not lead to the API (status {answer.status})",
                      "POSTHORN_BASE_URL must be where the API is reached, its path /media included")


def _served_elsewhere(pool, url, config):
    answer = pool.request("GET", url)
    if answer.status != 200 or answer.data != CONTENT:
        yield Finding(False, f"files cannot be read at {config.s3_public_url} (status {answer.status})", PUBLIC)
        return
    yield Finding(True, f"files can be read at {config.s3_public_url}")
    if answer.headers.get("Content-Type") != TYPE:
        yield Finding(False, f"files are served as {answer.headers.get('Content-Type')} in place of {TYPE}", PUBLIC)
    if "html" in pool.request("GET", f"{url}?{PAGE}").headers.get("Content-Type", ""):
        yield Finding(False, "a query turns files into pages, which may hold scripts", f"have the query dropped: {PUBLIC}")
    headers = answer.headers
    if headers.get("X-Content-Type-Options") != "nosniff" or "sandbox" not in headers.get("Content-Security-Policy", ""):
        yield Finding(None, "files are served without `nosniff` or a sandboxing Content-Security-Policy", PUBLIC)
    listed = [pool.request("GET", f"{config.s3_public_url}{path}") for path in ("/", "?list-type=2")]
    if any(one.status == 200 and LISTING in one.data for one in listed):
        yield Finding(False, "everybody can list the files", "let everybody GetObject, and not ListBucket")


def _served_by_the_store(pool, objects, key, ours):
    """What the store gives without a signature, past whoever serves the files."""
    for url in objects.own_urls(key) - {objects.public_url(key)}:
        page = _asked(pool, f"{url}?{PAGE}")
        if page is not None and page.status == 200 and (ours or "html" in page.headers.get("Content-Type", "")):
            yield Finding(False, f"everybody can read the files at the store itself, {url.rpartition('/')[0]}",
                          "take the right to read from everybody there: the API, or S3_PUBLIC_URL, serves them")
    for url in objects.own_urls(""):
        listed = _asked(pool, f"{url}?list-type=2")
        if listed is not None and listed.status == 200 and LISTING in listed.data:
            yield Finding(False, f"everybody can list the files at {url}", "let nobody list the bucket")


def _asked(pool, url):
    """The answer, or None where none comes: others may reach what we do not."""
    try:
        return pool.request("GET", url)
    except HTTPError:
        return None


def _code(data):
    try:
        return json.loads(data)["error"]["code"]
    except (ValueError, LookupError, TypeError):
        return None


@click.command("doctor")
@as_json
@data_dir_option
def command(data_dir, as_json):
    """Check settings, database, store, workers, API, models and networks; the exit status is 1 where something is wrong."""
    found = []
    for finding in findings(environment(data_dir), data_dir):
        found.append(finding)
        if not as_json:
            click.echo(str(finding))
    if as_json:
        show([finding.to_dict() for finding in found], True)
    raise SystemExit(any(finding.good is False for finding in found))
