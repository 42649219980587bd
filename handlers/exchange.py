"""What is known of one request on its way to its handler; it travels in the ASGI scope."""

from dataclasses import dataclass, field
from typing import Any

from platforms.chat import Presence
from storage.buckets import Allowance
from storage.keys import Caller

KEY = "posthorn.exchange"


@dataclass
class Exchange:
    """Filled in by each layer in turn: gate (id), security (caller, allowance), contract (values and body)."""

    request_id: str
    limit: str = "requests"     # the rate limit that it counts against
    caller: Caller | None = None
    allowance: Allowance | None = None
    values: dict[str, Any] = field(default_factory=dict)    # path, query and header parameters by their document names
    body: Any = None
    presence: Presence = field(default_factory=Presence)


def exchange_of(scope) -> Exchange:
    """The exchange of an ASGI scope."""
    return scope[KEY]
