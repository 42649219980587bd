"""Where the keys of the object store come from: settings, the environment, or the machine that this runs on."""

from minio.credentials import Credentials, EnvAWSProvider, IamAwsProvider, Provider, StaticProvider
from urllib3 import PoolManager, Retry, Timeout

# The metadata service is on the same machine, or next to it.
TIMEOUT = Timeout(connect=2, read=5)


class NoCredentials(Exception):
    """There are no keys at this moment."""


def provider(source: str, access_key: str = "", secret_key: str = "") -> Provider:
    """The provider for `source`: keys, environment or instance; nothing is contacted yet.

    `keys` are those given here, `environment` AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, `instance` the
    role of the EC2 machine, ECS task or EKS pod, whose keys are temporary and renewed by themselves.
    """
    if source == "keys":
        return StaticProvider(access_key, secret_key)
    if source == "environment":
        return _Telling(EnvAWSProvider())
    return _Telling(IamAwsProvider(http_client=PoolManager(timeout=TIMEOUT, retries=Retry(total=1, read=0))))


class _Telling(Provider):
    """A provider all of whose failures, which are of any kind, are NoCredentials; they may hold parts of keys."""

    def __init__(self, inner):
        self._inner = inner

    def retrieve(self) -> Credentials:
        """Called by minio, and by whoever signs."""
        try:
            return self._inner.retrieve()
        except Exception as error:
            raise NoCredentials(type(error).__name__) from None
