"""The network of test mode: behaves like each of the eleven, and never leaves the machine."""

import hashlib
from datetime import timedelta

from platforms.base import Processing, Published
from platforms.errors import Disconnected, Rejected, Unavailable, Unconfirmed

USERNAME = "sandbox"
CHECKS = 2          # times that a [sandbox:processing] post is still being worked on
PAUSE = 1.0         # seconds between two tries or checks


class Sandbox:
    """Stands in for the connector of any network. What it does follows from the caption alone."""

    find_retries = False
    dedupes_for = None
    patience = timedelta(seconds=3)     # a tester waits for the end of [sandbox:unavailable]

    def prepare(self, account, content, receipt):
        """Counts the tries where a magic word depends on them; no file is read, no socket opened."""
        if "[sandbox:rate_limited]" in content.caption:
            yield {"tries": receipt.get("tries", 0) + 1}

    def publish(self, account, content, receipt):
        """Publishes at once, or takes the course that a magic word in the caption asks for."""
        caption = content.caption
        if "[sandbox:rejected]" in caption:
            raise Rejected("the sandbox rejected the post, as its caption asked", platform_code="sandbox_rejected", rule="sandbox")
        if "[sandbox:disconnected]" in caption:
            raise Disconnected("the sandbox account is disconnected, as the caption asked; connect it again")
        if "[sandbox:rate_limited]" in caption and receipt["tries"] == 1:
            raise Unavailable("the sandbox throttled the post, as its caption asked", retry_after=PAUSE, throttled=True)
        if "[sandbox:unavailable]" in caption:
            raise Unavailable("the sandbox is unavailable, as the caption asked", retry_after=PAUSE)
        if "[sandbox:unconfirmed]" in caption:
            raise Unconfirmed("the sandbox gave no trustworthy answer, as the caption asked")
        if "[sandbox:processing]" in caption:
            return Processing({"checks": 0, "key": content.key}, after=PAUSE)
        return _published(content.key)

    def check(self, account, receipt):
        """Done after a few checks."""
        checks = receipt["checks"] + 1
        return _published(receipt["key"]) if checks > CHECKS else Processing({**receipt, "checks": checks}, after=PAUSE)

    def follows(self, options, receipt):
        """Nothing does."""
        return False

    def find(self, account, content, receipt):
        """Nobody can tell."""
        return None

    def refresh(self, account, force=False):
        """There are no credentials."""
        return None


def _published(key):
    name = hashlib.sha256(key.encode()).hexdigest()[:20]
    return Published(id=name, url=f"https://sandbox.invalid/{name}")
