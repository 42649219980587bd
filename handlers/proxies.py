"""Where a request comes from: the one place that reads X-Forwarded-For, and only as far as trusted proxies wrote it."""

import logging
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers

FORWARDED = "x-forwarded-for"
IGNORED = ("X-Forwarded-For from %s is ignored, so that all its people share one limit: if it is a proxy of yours, name it in "
           "POSTHORN_TRUSTED_PROXIES")

log = logging.getLogger("posthorn.api")


class Proxies:
    """The outermost layer: `client` of the scope becomes the nearest address that is no proxy of `trusted`."""

    def __init__(self, app, trusted: Iterable[IPv4Network | IPv6Network]):
        self.app, self.trusted, self._told = app, tuple(trusted), False

    async def __call__(self, scope, receive, send):
        peer = _peer(scope["client"][0]) if scope["type"] == "http" and scope.get("client") else None
        if peer is not None:
            scope = {**scope, "client": (str(self._origin(peer, Headers(scope=scope).getlist(FORWARDED))), 0)}
        await self.app(scope, receive, send)

    def _origin(self, peer, forwarded):
        """Each proxy adds on the right whom it heard; what a stranger said before that proves nothing."""
        if forwarded and not self._trusts(peer):
            self._tell(peer)
        hops = [_address(hop.strip()) for hop in reversed(",".join(forwarded).split(","))] if self._trusts(peer) else []
        for hop in hops:
            if hop is None or not self._trusts(peer):
                break
            peer = hop
        return peer

    def _trusts(self, address):
        return any(address in network for network in self.trusted)

    def _tell(self, peer):
        """Once: anybody may send this header."""
        if not self._told:
            self._told = True
            log.warning(IGNORED, peer)


def counted_for(host: str | None) -> str:
    """Whom an address counts for where something is limited by it; of IPv6 the 64 bits that one customer has at least."""
    address = _address(host or "")
    return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else host or ""


def _address(text):
    """The address in `text`, which may name a port; None where there is none. IPv4 inside IPv6 is IPv4, as it is written."""
    host = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0] if text.count(":") == 1 else text
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


# The same few are at the other end of all connections. What a header says is not kept: it may be long, and anything.
_peer = lru_cache(1000)(_address)
