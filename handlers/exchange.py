"""What is known of one request on its way to its handler; it travels in the ASGI scope."""

from dataclasses import dataclass, field

from handlers.contract import Operation
from platforms.chat import Presence
from storage.buckets import Allowance
from storage.keys import Caller

KEY = "posthorn.exchange"


@dataclass
class Exchange:
    """Filled in by each layer in turn: gate (id), calls (operation), security (caller, allowance)."""

    request_id: str
    caller: Caller | None = None
    allowance: Allowance | None = None
    presence: Presence = field(default_factory=Presence)
    operation: Operation | None = None


def exchange_of(scope) -> Exchange:
    """The exchange of an ASGI scope."""
    return scope[KEY]
