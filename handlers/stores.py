"""The database and the object store, by the settings."""

from handlers.config import Config, ConfigError
from storage.database import open_pool
from storage.objects import Objects


def open_database(config: Config, *, connections: int) -> None:
    """Binds the models to the configured database, with a pool of `connections`. Raises ConfigError."""
    try:
        open_pool(config.database_url, connections=connections)
    except ValueError as error:
        raise ConfigError(f"DATABASE_URL is {error}") from None


def open_store(config: Config) -> Objects:
    """The configured bucket; nothing is contacted yet. Raises ConfigError."""
    try:
        return Objects(config.s3_endpoint_url, config.s3_access_key, config.s3_secret_key, config.s3_bucket,
                       region=config.s3_region, public_url=config.s3_public_url)
    except ValueError as error:
        raise ConfigError(f"S3_ENDPOINT_URL: {error}") from None
