"""Certificates for servers of tests, by an authority that lives as long as a test file."""

import ipaddress
import ssl
from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def signed(subject, key, issuer, issuer_key, days=9, names=()):
    """A certificate (PEM) for the `key` of `subject`, that of an authority unless it has `names`, good for `days` from now."""
    now = datetime.now(timezone.utc)
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, issuer))
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), now - timedelta(days=9),
                                      now + timedelta(days=days))
    builder = builder.add_extension(x509.BasicConstraints(not names, None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The context that trusts a new authority, and a function that makes a server's context for a name that it vouches for."""
    root = ec.generate_private_key(ec.SECP256R1())
    certificate = signed("authority", root, "authority", root)

    def serving(name, days=9):
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)]
        chain = tmp_path_factory.mktemp("tls") / "chain.pem"
        chain.write_bytes(signed("server", key, "authority", root, days, names) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context

    return ssl.create_default_context(cadata=certificate.decode()), serving
