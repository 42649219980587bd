"""Platform credentials at rest: encrypted, and bound to the row they belong to."""

import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class Unreadable(Exception):
    """Sealed under a key that is not configured, or for another row."""


class Vault:
    """Seals with the first of `keys` (Fernet keys, urlsafe base64 of 32 bytes) and opens with any of them.

    Raises ValueError when a key is not one.
    """

    def __init__(self, keys: tuple[str, ...]):
        self._first, *_ = fernets = [Fernet(key) for key in keys]
        self._fernet = MultiFernet(fernets)

    def seal(self, owner: str, secret: dict) -> bytes:
        """`secret` encrypted for `owner`, the path of the row that will hold it."""
        # Fernet has no associated data, so the owner goes inside: a sealed value moved to another row does not open there.
        return self._fernet.encrypt(json.dumps({"owner": owner, "secret": secret}).encode())

    def fresh(self, sealed: bytes) -> bytes | None:
        """`sealed` under the first key; None when it is that already. Raises Unreadable."""
        try:
            self._first.decrypt(bytes(sealed))
            return None
        except InvalidToken:
            pass
        try:
            return self._fernet.rotate(bytes(sealed))
        except InvalidToken:
            raise Unreadable("sealed under a key that is not configured") from None

    def open(self, owner: str, sealed: bytes) -> dict:
        """What `seal` was given for the same `owner`. Raises Unreadable."""
        try:
            content = json.loads(self._fernet.decrypt(bytes(sealed)))
        except InvalidToken:
            raise Unreadable("the stored credentials were sealed under a key that is not configured") from None
        if content["owner"] != owner:
            raise Unreadable("the stored credentials belong to another row")
        return content["secret"]


def new_key() -> str:
    """A fresh key for the Vault."""
    return Fernet.generate_key().decode()
