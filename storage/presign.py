"""Signs the address of one upload: exactly the declared size and type, and never over another (AWS Signature Version 4)."""

import hashlib
import hmac
from datetime import UTC, datetime
from urllib.parse import quote, urlencode, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
SIGNED_HEADERS = "content-length;content-type;host;if-none-match"
DEFAULT_PORTS = {"http": 80, "https": 443}


def presign_put(endpoint_url: str, bucket: str, key: str, *, access_key: str, secret_key: str, region: str, size: int,
                content_type: str, expires: int, now: datetime, session_token: str | None = None,
                virtual_host: bool = False) -> str:
    """The URL to which one PUT of `size` bytes of `content_type` may be made, for `expires` seconds from `now`.

    The bucket stands in its path, or with `virtual_host` before its host. `session_token` belongs to keys that are temporary.

    minio-py signs `host` alone, so a holder of its URL may upload anything; here length, type and `If-None-Match: *` are signed
    too, so that a file that was looked at cannot be replaced while the URL still holds. `now` is an aware datetime. S3 refuses
    `expires` over 604,800, seven days, and ends a URL with the keys that signed it. The steps and their names are those of
    https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
    """
    address = object_url(endpoint_url, bucket, key, virtual_host=virtual_host)
    host, path = _host(address), urlsplit(address).path
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    query = urlencode({
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{access_key}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": expires,
        **({"X-Amz-Security-Token": session_token} if session_token else {}),
        "X-Amz-SignedHeaders": SIGNED_HEADERS,
    }, quote_via=quote, safe="")
    headers = f"content-length:{size}\ncontent-type:{content_type}\nhost:{host}\nif-none-match:*\n"
    request = "\n".join(["PUT", path, query, headers, SIGNED_HEADERS, "UNSIGNED-PAYLOAD"])
    to_sign = "\n".join([ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    signature = _sign(_signing_key(secret_key, scope), to_sign).hex()
    return f"{address}?{query}&X-Amz-Signature={signature}"


def object_url(endpoint_url: str, bucket: str, key: str, *, virtual_host: bool = False) -> str:
    """Where the store has the object; for the key "", the bucket."""
    scheme, _, rest = endpoint_url.rstrip("/").partition("://")
    return f"{scheme}://{bucket}.{rest}{quote(f'/{key}')}" if virtual_host else f"{scheme}://{rest}{quote(f'/{bucket}/{key}')}"


def _host(address):
    """The Host header that every client will send: lower case, and without the port that the scheme implies."""
    parts = urlsplit(address)
    host = parts.netloc.lower()
    return host.removesuffix(f":{DEFAULT_PORTS[parts.scheme]}")


def _signing_key(secret_key, scope):
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = _sign(key, part)
    return key


def _sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
