"""Every setting, its name, type and default, read once from the environment: nothing else in the service reads it."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from handlers.redaction import secrets_of

FILES = "/media"        # below POSTHORN_BASE_URL: where the API itself serves files
CREDENTIALS = ("keys", "environment", "instance")

FIGURES = "PROMETHEUS_MULTIPROC_DIR"     # read by prometheus_client as well, when a process first imports it
LEVELS = ("info", "debug", "warning", "error")

LEFT = "running.env"    # in the data directory of `posthorn up`, readable by its owner alone

CAPTION_TIMEOUT = 90    # seconds at most: an Idempotency-Key takes a request for dead after 120
REGION = re.compile(r"[A-Za-z0-9_-]{1,63}")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")     # RFC 6454, section 6.2
BUCKET = re.compile(r"(?=.{3,63}$)(?!\d+(\.\d+){3}$)[a-z0-9]+([.-][a-z0-9]+|--+[a-z0-9]+)*")      # S3's rules for new ones
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]{0,4000}[\x21-\x7e])?")
HTTP_HEADERS = {"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding",
                "accept-encoding", "expect", "te", "trailer", "upgrade"}


class ConfigError(Exception):
    """A setting is missing or cannot be read; the sentence names the variable, never its value."""


@dataclass(frozen=True)
class LogSettings:
    """How a process logs; read apart from all else, since commands log that need no other setting."""

    format: str     # auto: text where stderr is a terminal, JSON elsewhere
    level: str
    access: bool    # a line for each request
    secrets: tuple[str, ...] = field(repr=False)    # what no line may hold

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "LogSettings":
        """Reads them. Raises ConfigError naming the first variable that is wrong."""
        env = _Env(environ)
        return cls(env.one_of("POSTHORN_LOG_FORMAT", ("auto", "json", "text")), env.one_of("POSTHORN_LOG_LEVEL", LEVELS),
                   env.one_of("POSTHORN_ACCESS_LOG", ("1", "0")) == "1", tuple(secrets_of(environ)))


@dataclass(frozen=True)
class Config:
    """The settings of one process. Rates are requests a minute and credential, waits are seconds."""

    base_url: str
    database_url: str = field(repr=False)
    s3_endpoint_url: str
    s3_access_key: str = field(repr=False)
    s3_secret_key: str = field(repr=False)
    s3_bucket: str
    s3_region: str
    s3_public_url: str
    s3_upload_url: str | None
    s3_addressing: str
    s3_credentials: str
    media_quota: int | None
    media_missing_hours: int
    media_unused_days: int
    media_finished_days: int | None
    journal_days: int
    webhook_days: int
    idempotency_hours: int
    audit_days: int | None
    secret_keys: tuple[str, ...] = field(repr=False)
    allow_private: frozenset[tuple[str, int]]
    refuse_networks: tuple[IPv4Network | IPv6Network, ...]
    rate_limit: int
    fetch_rate_limit: int
    caption_rate_limit: int
    failed_credentials_limit: int
    cors_origins: frozenset[str]
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    caption_url: str | None
    caption_key: str | None = field(repr=False)
    caption_model: str | None
    caption_timeout: int
    caption_headers: dict[str, str] = field(repr=False)
    caption_daily_tokens: int | None
    api_processes: int
    api_connections: int
    worker_threads: int
    metrics_host: str
    metrics_port: int | None
    api_metrics_port: int | None
    api_figures: Path | None    # what `posthorn serve` gives its processes
    otlp_url: str | None
    validate_responses: bool
    platforms: dict[str, dict[str, str]] = field(repr=False)

    def refuse_port(self, port: int) -> None:
        """Raises ConfigError where metrics are to be answered on the port of the API, which might not get it again."""
        for name, taken in (("POSTHORN_METRICS_PORT", self.metrics_port), ("POSTHORN_API_METRICS_PORT", self.api_metrics_port)):
            if taken == port:
                raise ConfigError(f"--port and {name} must be two ports")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Config":
        """Reads all settings. Raises ConfigError naming the first variable that is missing or wrong."""
        env = _Env(environ)
        base_url = env.origin("POSTHORN_BASE_URL", "http://127.0.0.1:8080")
        credentials = env.one_of("S3_CREDENTIALS", CREDENTIALS)
        keys = {} if credentials == "keys" else {"default": ""}
        return cls(
            base_url=base_url,
            database_url=env.text("DATABASE_URL"),
            s3_endpoint_url=env.url("S3_ENDPOINT_URL"),
            s3_access_key=env.text("S3_ACCESS_KEY", **keys),
            s3_secret_key=env.text("S3_SECRET_KEY", **keys),
            s3_bucket=env.matching("S3_BUCKET", "posthorn", BUCKET, "the name of a bucket: 3 to 63 of a-z, 0-9, . and -"),
            s3_region=env.matching("S3_REGION", "us-east-1", REGION, "letters, digits, - and _"),
            s3_public_url=env.url("S3_PUBLIC_URL", None) or base_url + FILES,
            s3_upload_url=env.url("S3_UPLOAD_URL", None),
            s3_addressing=env.one_of("S3_ADDRESSING", ("path", "virtual")),
            s3_credentials=credentials,
            media_quota=env.number("POSTHORN_MEDIA_QUOTA", None, most=10**15),
            media_missing_hours=env.number("POSTHORN_MEDIA_MISSING_HOURS", 24),
            media_unused_days=env.number("POSTHORN_MEDIA_UNUSED_DAYS", 30, most=36_500),
            media_finished_days=env.number("POSTHORN_MEDIA_FINISHED_DAYS", None, most=36_500),
            journal_days=env.number("POSTHORN_JOURNAL_DAYS", 90, most=36_500),
            webhook_days=env.number("POSTHORN_WEBHOOK_DAYS", 30, least=2, most=36_500),
            idempotency_hours=env.number("POSTHORN_IDEMPOTENCY_HOURS", 24, least=24, most=8_760),
            audit_days=env.number("POSTHORN_AUDIT_DAYS", None, least=30, most=36_500),
            secret_keys=env.secrets("POSTHORN_SECRET_KEYS"),
            allow_private=env.hosts("POSTHORN_ALLOW_PRIVATE"),
            refuse_networks=env.networks("POSTHORN_REFUSE_NETWORKS"),
            rate_limit=env.number("POSTHORN_RATE_LIMIT", 600),
            fetch_rate_limit=env.number("POSTHORN_FETCH_RATE_LIMIT", 30),
            caption_rate_limit=env.number("POSTHORN_CAPTION_RATE_LIMIT", 30),
            failed_credentials_limit=env.number("POSTHORN_FAILED_CREDENTIALS_LIMIT", 20),
            cors_origins=env.origins("POSTHORN_CORS_ORIGINS"),
            trusted_proxies=env.networks("POSTHORN_TRUSTED_PROXIES"),
            caption_url=env.url("POSTHORN_CAPTION_URL", None),
            caption_key=env.text("POSTHORN_CAPTION_KEY", None),
            caption_model=env.text("POSTHORN_CAPTION_MODEL", None),
            caption_timeout=env.number("POSTHORN_CAPTION_TIMEOUT", 30, most=CAPTION_TIMEOUT),
            caption_headers=env.headers("POSTHORN_CAPTION_HEADERS"),
            caption_daily_tokens=env.number("POSTHORN_CAPTION_DAILY_TOKENS", None, most=10**12),
            api_processes=env.number("POSTHORN_API_PROCESSES", 2, most=256),
            api_connections=env.number("POSTHORN_API_CONNECTIONS", 20, most=1_000),
            worker_threads=env.number("POSTHORN_WORKER_THREADS", 64, most=1_000),
            metrics_host=env.matching("POSTHORN_METRICS_HOST", "127.0.0.1", HOST, "an address or a name of this machine"),
            metrics_port=env.number("POSTHORN_METRICS_PORT", None, most=65_535),
            api_metrics_port=env.port("POSTHORN_API_METRICS_PORT", unlike="POSTHORN_METRICS_PORT"),
            api_figures=env.path(FIGURES),
            otlp_url=env.url("POSTHORN_OTLP_URL", None) or env.url("OTEL_EXPORTER_OTLP_ENDPOINT", None),
            validate_responses=env.one_of("POSTHORN_VALIDATE_RESPONSES", ("0", "1")) == "1",
            platforms=env.sections(),
        )


def forget_figures() -> None:
    """Takes away the folder of somebody else's figures: every command would look for it, and `posthorn serve` makes its own."""
    os.environ.pop(FIGURES, None)


def environment(data_dir: Path | None = None) -> dict[str, str]:
    """The environment; with `data_dir` also the settings that a running `posthorn up` left in `data_dir` where none are given.

    So that `posthorn key create` beside a running `posthorn up` finds the same database and store.
    """
    given = dict(os.environ)
    if data_dir is None or "DATABASE_URL" in given or not (data_dir / LEFT).is_file():
        return given
    return dict(line.split("=", 1) for line in (data_dir / LEFT).read_text().splitlines()) | given


def _is_header(name, value):
    sound = isinstance(value, str) and HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value)
    return bool(sound) and name.lower() not in HTTP_HEADERS


def _repeated(pairs):
    return len({name.lower() for name, _ in pairs}) < len(pairs)


def _parts(text):
    """The parts of an address, or None; the scheme is in small letters."""
    try:
        url = urlsplit(text)
        return url if url.port != 0 else None
    except ValueError:
        return None


def _lowered(url):
    """The host in small letters, as browsers send it; a user's name and password as they are."""
    user, at, host = url.netloc.rpartition("@")
    return user + at + host.lower()


_REQUIRED = object()


class _Env:
    """The environment with types. Empty counts as absent, as in compose files."""

    def __init__(self, environ):
        self._environ = environ

    def text(self, name, default=_REQUIRED):
        value = self._environ.get(name, "").strip()
        if value:
            return value
        if default is _REQUIRED:
            raise ConfigError(f"{name} is not set, and no `posthorn up` was found to take it from (is --data-dir missing?)")
        return default

    def number(self, name, default, most=1_000_000, least=1):
        value = self.text(name, default)
        if value is default:
            return default
        if not re.fullmatch("[0-9]{1,18}", value) or not least <= int(value) <= most:
            raise ConfigError(f"{name} must be a whole number from {least} to {most}")
        return int(value)

    def matching(self, name, default, pattern, what):
        value = self.text(name, default)
        if not pattern.fullmatch(value):
            raise ConfigError(f"{name} must be {what}")
        return value

    def path(self, name):
        value = self.text(name, None)
        return value and Path(value)

    def port(self, name, unlike):
        """One that is not that of the setting `unlike`: both may listen on one machine."""
        value = self.number(name, None, most=65_535)
        if value is not None and value == self.number(unlike, None):
            raise ConfigError(f"{name} and {unlike} must be two ports")
        return value

    def one_of(self, name, choices):
        """The first is the default."""
        value = self.text(name, choices[0]).lower()
        if value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}")
        return value

    def headers(self, name):
        try:
            pairs = json.loads(self.text(name, "{}"), object_pairs_hook=tuple)
        except (ValueError, RecursionError):
            pairs = None
        if not isinstance(pairs, tuple) or not all(_is_header(*pair) for pair in pairs) or _repeated(pairs):
            raise ConfigError(f'{name} must be a JSON object of headers, such as {{"x-team": "bread"}}; '
                              f"those of HTTP itself are not taken")
        return dict(pairs)

    def url(self, name, default=_REQUIRED):
        value = self.text(name, default)
        url = value and _parts(value)
        if value and (url is None or url.scheme not in ("http", "https") or not url.hostname):
            raise ConfigError(f"{name} must be an http or https address")
        if value and (not value.isprintable() or re.search(r"[\s?#]", value)):
            raise ConfigError(f"{name} must be an http or https address without blanks and query")
        return value and url._replace(netloc=_lowered(url)).geturl().rstrip("/")

    def origin(self, name, default):
        """An address that has nothing but scheme, host and port: others are put together from it, and compared with it."""
        value = self.url(name, default)
        if _parts(value)[2:] != ("", "", "") or "@" in value:
            raise ConfigError(f"{name} must be an http or https address without a path, query or user")
        return value

    def secrets(self, name):
        """From the variable, or from the file that the variable with _FILE behind its name gives."""
        path = self.text(f"{name}_FILE", None)
        if path is None:
            return tuple(self.text(name).replace(",", " ").split())
        if self.text(name, None) is not None:
            raise ConfigError(f"{name} and {name}_FILE are both set: which one holds?")
        try:
            found = Path(path).read_text().replace(",", " ").split()
        except (OSError, ValueError):
            raise ConfigError(f"the file that {name}_FILE names cannot be read") from None
        if not found:
            raise ConfigError(f"the file that {name}_FILE names is empty")
        return tuple(found)

    def origins(self, name):
        found = frozenset(part.strip() for part in self.text(name, "").split(",") if part.strip())
        if found != {"*"} and not all(ORIGIN.fullmatch(origin) for origin in found):
            raise ConfigError(f"{name} must be a comma-separated list of origins such as https://app.example.com, or *")
        return found

    def networks(self, name):
        try:
            return tuple(ip_network(part.strip()) for part in self.text(name, "").split(",") if part.strip())
        except ValueError:
            raise ConfigError(f"{name} must be a comma-separated list of addresses and networks such as 10.0.0.0/8") from None

    def hosts(self, name):
        pairs = [part.strip().rpartition(":") for part in self.text(name, "").split(",") if part.strip()]
        if not all(host and port.isascii() and port.isdigit() and int(port[:6]) <= 65_535 for host, _, port in pairs):
            raise ConfigError(f"{name} must be a comma-separated list of host:port")
        return frozenset((host.strip("[]").lower(), int(port)) for host, _, port in pairs)

    def sections(self):
        """What POSTHORN_<NAME>_… sets, by <name>, whatever it is: a network takes the section with its name."""
        sections = {}
        for variable, value in self._environ.items():
            prefix, _, rest = variable.partition("_")
            name, _, key = rest.partition("_")
            if prefix == "POSTHORN" and key and value:
                sections.setdefault(name.lower(), {})[key.lower()] = value
        return sections
