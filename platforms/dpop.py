"""Proofs that a token is in the hands it was given to (RFC 9449), as JWTs signed with ES256 by a key of the account's own."""

import hashlib
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

# https://csrc.nist.gov/pubs/fips/186-5/final: the order of P-256
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def new_key() -> str:
    """A fresh private key: 32 random bytes as base64url, as any 32 bytes make one."""
    return encoded(secrets.token_bytes(32))


def public_key(key: str) -> dict:
    """The public half of a private key as a JWK (RFC 7517). Raises ValueError for what is no key."""
    numbers = _private(key).public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", "x": encoded(numbers.x.to_bytes(32)), "y": encoded(numbers.y.to_bytes(32))}


def proof(key: str, method: str, url: str, nonce: str | None = None, token: str | None = None) -> str:
    """The value of a DPoP header for one request to `url`, with the server's latest nonce and the access token if there are."""
    claims = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": url.partition("?")[0], "iat": int(time.time())}
    claims |= {"nonce": nonce} if nonce else {}
    claims |= {"ath": encoded(hashlib.sha256(token.encode()).digest())} if token else {}
    return signed(key, {"typ": "dpop+jwt", "jwk": public_key(key)}, claims)


def signed(key: str, header: dict, claims: dict) -> str:
    """A JWT (RFC 7519) in compact form."""
    content = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "ES256", **header}, claims))
    numbers = decode_dss_signature(_private(key).sign(content.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{content}.{encoded(b''.join(number.to_bytes(32) for number in numbers))}"


def encoded(data: bytes) -> str:
    """base64url without padding, as in all of JOSE."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _private(key):
    data = urlsafe_b64decode(key + "=" * (-len(key) % 4))
    if len(data) != 32:
        raise ValueError("a key has 32 bytes")
    return ec.derive_private_key(int.from_bytes(data) % (ORDER - 1) + 1, ec.SECP256R1())
