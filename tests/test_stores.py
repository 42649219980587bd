"""Other S3 stores, by configuration: TLS, buckets before the host, an address for uploads, keys that are nowhere written."""

import datetime
import io
import json
import socket
import ssl
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from handlers.config import Config, ConfigError
from handlers.stores import open_store
from storage.embedded import Store
from storage.objects import StoreUnavailable
from tests.links import serving
from tests.servers import BUCKET, running, short_directory

DOMAIN, INSIDE = "s3.posthorn.test", "inside.posthorn.test"


class Elsewhere(Store):
    """A store with TLS and the name `DOMAIN`, whose buckets are names below it."""

    def __init__(self, directory, certificate, key):
        super().__init__(directory, BUCKET)
        self._more = [f"-s3.cert.file={certificate}", f"-s3.key.file={key}", f"-s3.domainName={DOMAIN}"]

    def _command(self, binary, ports):
        return [*super()._command(binary, ports), *self._more]

    def _takes_uploads(self, address):
        return super()._takes_uploads(by_name(address))


def by_name(address):
    url = address.endpoint_url.replace("http://127.0.0.1", f"https://{DOMAIN}")
    return SimpleNamespace(**{**vars(address), "endpoint_url": url})


def settings(address, **more):
    return {"DATABASE_URL": "postgresql://x@127.0.0.1/x", "POSTHORN_SECRET_KEYS": "x", "S3_ENDPOINT_URL": address.endpoint_url,
            "S3_ACCESS_KEY": address.access_key, "S3_SECRET_KEY": address.secret_key, "S3_BUCKET": address.bucket, **more}


def opened(address, **more):
    return open_store(Config.from_env(settings(address, **more)))


@pytest.fixture(scope="module")
def elsewhere():
    """The address of such a store, whose authority is trusted, and whose names lead to this machine."""
    patch, look_up = pytest.MonkeyPatch(), socket.getaddrinfo
    patch.setattr(socket, "getaddrinfo", lambda host, *args, **options: look_up(
        "127.0.0.1" if str(host).endswith(".posthorn.test") else host, *args, **options))
    with short_directory() as directory:
        certificate, key = certified(directory)
        patch.setenv("SSL_CERT_FILE", str(certificate))
        with running(Elsewhere(directory / "store", certificate, key)) as address:
            yield by_name(address)
    patch.undo()


def certified(directory):
    """The files of a certificate for the store's names, signed by itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, names = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, DOMAIN)]), (DOMAIN, f"*.{DOMAIN}", INSIDE)
    now = datetime.datetime.now(datetime.UTC)
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                   .not_valid_after(now + datetime.timedelta(days=1))
                   .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False)
                   .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256()))
    paths = directory / "cert.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.NoEncryption()))
    return paths


def use(objects):
    """Everything that Posthorn does with a store; returns the address of the upload."""
    assert objects.prepare() == []
    objects.put("t/a.png", io.BytesIO(b"12345"), 5, "image/png")
    assert objects.stat("t/a.png").bytes == 5 and "t/a.png" in [key for key, _, _ in objects.list()]
    with objects.open("t/a.png", 1, 3) as file:
        assert file.read() == b"234"
    url, headers = objects.presigned_put("t/b.png", 3, "image/png", 60)
    with urllib3.PoolManager() as pool:
        assert pool.request("PUT", url, body=b"123", headers=headers).status == 200
    for key in ("t/a.png", "t/b.png"):
        objects.delete(key)
    return urlsplit(url)


def test_tls_and_the_bucket_in_the_path(elsewhere):
    where = use(opened(elsewhere))
    assert (where.scheme, where.hostname, where.path) == ("https", DOMAIN, f"/{BUCKET}/t/b.png")


def test_tls_and_the_bucket_before_the_host(elsewhere):
    where = use(opened(elsewhere, S3_ADDRESSING="virtual"))
    assert (where.scheme, where.hostname, where.path) == ("https", f"{BUCKET}.{DOMAIN}", "/t/b.png")


def test_a_certificate_that_nobody_vouches_for_is_refused(elsewhere, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        opened(elsewhere).stat("t/a.png")
    where = (DOMAIN, urlsplit(elsewhere.endpoint_url).port)
    with pytest.raises(ssl.SSLCertVerificationError), socket.create_connection(where) as plain:
        ssl.create_default_context().wrap_socket(plain, server_hostname=DOMAIN)


def test_a_store_that_others_reach_by_another_name(elsewhere):
    objects = opened(elsewhere, S3_ENDPOINT_URL=elsewhere.endpoint_url.replace(DOMAIN, INSIDE),
                     S3_UPLOAD_URL=elsewhere.endpoint_url, S3_PUBLIC_URL="https://cdn.example")
    assert use(objects).hostname == DOMAIN and objects.laxities(as_others=True) == []
    assert objects.public_url("t/a.png") == "https://cdn.example/t/a.png"


def test_another_region(store_address):
    where = use(opened(store_address, S3_REGION="eu-central-1"))
    assert "%2Feu-central-1%2Fs3%2F" in where.query


def test_keys_of_the_environment(store_address, monkeypatch):
    at = store_address
    objects = opened(at, S3_CREDENTIALS="environment", S3_ACCESS_KEY="", S3_SECRET_KEY="")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for act in (lambda: objects.stat("t/a"), lambda: objects.presigned_put("t/a", 1, "image/png", 60)):
        with pytest.raises(StoreUnavailable, match="the keys of the object store cannot be had"):
            act()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", at.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", at.secret_key)
    use(objects)


def test_keys_of_the_machine_are_renewed_before_they_end(store_address, monkeypatch):
    """As an ECS task or EKS pod gets them, from an address on this machine."""
    at = store_address
    for name in ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with serving() as metadata:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{metadata.url}/keys")
        objects = opened(at, S3_CREDENTIALS="instance", S3_ACCESS_KEY="", S3_SECRET_KEY="")
        metadata.answers["/keys"] = keys_until(at, seconds=3600)
        for _ in range(2):
            assert objects.stat("t/a") is None
        assert len(metadata.asked) == 1
        metadata.answers["/keys"] = keys_until(at, seconds=0)
        ending = opened(at, S3_CREDENTIALS="instance", S3_ACCESS_KEY="", S3_SECRET_KEY="")
        for _ in range(2):
            assert ending.stat("t/a") is None
        assert len(metadata.asked) == 3
        metadata.answers["/keys"] = (500, {}, b"secret words")
        with pytest.raises(StoreUnavailable, match="^the keys of the object store cannot be had$"):
            ending.stat("t/a")


def keys_until(at, seconds):
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return 200, {"Content-Type": "application/json"}, json.dumps({
        "Code": "Success", "AccessKeyId": at.access_key, "SecretAccessKey": at.secret_key, "Token": "",
        "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()


@pytest.mark.parametrize("change, sentence", [
    ({"S3_ACCESS_KEY": ""}, "S3_ACCESS_KEY is not set"),
    ({"S3_CREDENTIALS": "magic"}, "S3_CREDENTIALS must be one of keys, environment, instance"),
    ({"S3_ADDRESSING": "host"}, "S3_ADDRESSING must be one of path, virtual"),
    ({"S3_UPLOAD_URL": "store"}, "S3_UPLOAD_URL must be an http"),
    ({"S3_ENDPOINT_URL": "http://store/path"}, "S3_ENDPOINT_URL or S3_UPLOAD_URL: the address of an S3 store is"),
    ({"POSTHORN_MEDIA_QUOTA": "-1"}, "POSTHORN_MEDIA_QUOTA must be a whole number"),
    ({"POSTHORN_MEDIA_UNUSED_DAYS": "0"}, "POSTHORN_MEDIA_UNUSED_DAYS must be a whole number")])
def test_settings_that_cannot_be(store_address, change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        opened(store_address, **change)


def test_files_are_served_by_the_api_where_nothing_else_is_said(store_address):
    objects = opened(store_address, POSTHORN_BASE_URL="https://post.example/")
    assert objects.public_url("t/a.png") == "https://post.example/media/t/a.png"
