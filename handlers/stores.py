"""The database and the object store, by the settings."""

from datetime import timedelta

from handlers.config import Config, ConfigError
from platforms.aftermath import RESTORED
from platforms.errors import describe
from storage.credentials import provider
from storage.database import open_pool
from storage.lineage import Lineage
from storage.objects import Objects
from storage.retention import Keep
from storage.sweep import Retention, Sweep


def open_database(config: Config, *, connections: int) -> None:
    """Binds the models to the configured database, with a pool of `connections`. Raises ConfigError."""
    try:
        open_pool(config.database_url, connections=connections)
    except ValueError as error:
        raise ConfigError(f"DATABASE_URL is {error}") from None


def open_store(config: Config) -> Objects:
    """The configured bucket; nothing is contacted yet. Raises ConfigError."""
    try:
        keys = provider(config.s3_credentials, config.s3_access_key, config.s3_secret_key)
        return Objects(config.s3_endpoint_url, config.s3_access_key, config.s3_secret_key, config.s3_bucket,
                       region=config.s3_region, public_url=config.s3_public_url, credentials=keys,
                       upload_url=config.s3_upload_url, virtual_host=config.s3_addressing == "virtual")
    except ValueError as error:
        raise ConfigError(f"S3_ENDPOINT_URL or S3_UPLOAD_URL: {error}") from None


def sweep(config: Config, objects: Objects) -> Sweep:
    """What looks after the files in `objects`, by the settings."""
    days = config.media_finished_days
    return Sweep(objects, Retention(missing=timedelta(hours=config.media_missing_hours),
                                    unused=timedelta(days=config.media_unused_days),
                                    finished=None if days is None else timedelta(days=days)))


def keep(config: Config) -> Keep:
    """How long rows are kept that have done their work, by the settings."""
    days = config.audit_days
    return Keep(idempotency=timedelta(hours=config.idempotency_hours), journal=timedelta(days=config.journal_days),
                webhooks=timedelta(days=config.webhook_days), audit=None if days is None else timedelta(days=days))


def lineage(objects: Objects) -> Lineage:
    """Whether the database is the one that was worked on."""
    return Lineage(objects, describe(RESTORED))
