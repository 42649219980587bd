"""The IP addresses of a host: finds them, tells the public ones by IANA's registries, and connects to them."""

import ipaddress
import socket
from datetime import date
from time import monotonic

# The day whose registries the two tables below repeat row by row; bring both up to date together:
# https://www.iana.org/assignments/iana-ipv4-special-registry/iana-ipv4-special-registry-1.csv
# https://www.iana.org/assignments/iana-ipv6-special-registry/iana-ipv6-special-registry-1.csv
REGISTRY_DATE = date(2026, 9, 17)

# Rows that IANA calls globally reachable are in too: they are anycast services and translators, and nobody keeps media there.
SPECIAL_IPV4 = (
    ("0.0.0.0/8", "This network"),
    ("0.0.0.0/32", "This host on this network"),
    ("10.0.0.0/8", "Private-Use"),
    ("100.64.0.0/10", "Shared Address Space"),
    ("127.0.0.0/8", "Loopback"),
    ("169.254.0.0/16", "Link Local"),
    ("172.16.0.0/12", "Private-Use"),
    ("192.0.0.0/24", "IETF Protocol Assignments"),
    ("192.0.0.0/29", "IPv4 Service Continuity Prefix"),
    ("192.0.0.8/32", "IPv4 dummy address"),
    ("192.0.0.9/32", "Port Control Protocol Anycast"),
    ("192.0.0.10/32", "Traversal Using Relays around NAT Anycast"),
    ("192.0.0.170/32", "NAT64/DNS64 Discovery"),
    ("192.0.0.171/32", "NAT64/DNS64 Discovery"),
    ("192.0.2.0/24", "Documentation (TEST-NET-1)"),
    ("192.31.196.0/24", "AS112-v4"),
    ("192.52.193.0/24", "AMT"),
    ("192.88.99.0/24", "Deprecated (6to4 Relay Anycast)"),
    ("192.88.99.2/32", "6a44-relay anycast address"),
    ("192.168.0.0/16", "Private-Use"),
    ("192.175.48.0/24", "Direct Delegation AS112 Service"),
    ("198.18.0.0/15", "Benchmarking"),
    ("198.51.100.0/24", "Documentation (TEST-NET-2)"),
    ("203.0.113.0/24", "Documentation (TEST-NET-3)"),
    ("240.0.0.0/4", "Reserved"),
    ("255.255.255.255/32", "Limited Broadcast"),
)
SPECIAL_IPV6 = (
    ("::1/128", "Loopback Address"),
    ("::/128", "Unspecified Address"),
    ("::ffff:0:0/96", "IPv4-mapped Address"),
    ("64:ff9b::/96", "IPv4-IPv6 Translat."),
    ("64:ff9b:1::/48", "IPv4-IPv6 Translat."),
    ("100::/64", "Discard-Only Address Block"),
    ("100:0:0:1::/64", "Dummy IPv6 Prefix"),
    ("2001::/23", "IETF Protocol Assignments"),
    ("2001::/32", "TEREDO"),
    ("2001:1::1/128", "Port Control Protocol Anycast"),
    ("2001:1::2/128", "Traversal Using Relays around NAT Anycast"),
    ("2001:1::3/128", "DNS-SD Service Registration Protocol Anycast"),
    ("2001:2::/48", "Benchmarking"),
    ("2001:3::/32", "AMT"),
    ("2001:4:112::/48", "AS112-v6"),
    ("2001:10::/28", "Deprecated (previously ORCHID)"),
    ("2001:20::/28", "ORCHIDv2"),
    ("2001:30::/28", "Drone Remote ID Protocol Entity Tags"),
    ("2001:db8::/32", "Documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "Direct Delegation AS112 Service"),
    ("3fff::/20", "Documentation"),
    ("5f00::/16", "Segment Routing (SRv6) SIDs"),
    ("fc00::/7", "Unique-Local"),
    ("fe80::/10", "Link-Local Unicast"),
)

# Of the internet by their numbers, and of the machine's own cloud by where they lead:
# https://learn.microsoft.com/en-us/azure/virtual-network/what-is-ip-address-168-63-129-16
CLOUD_IPV4 = (("168.63.129.16/32", "Azure's host of each virtual machine"),)

# Multicast has registries of its own: RFC 5771.
_MULTICAST_IPV4 = "224.0.0.0/4"
# IANA hands out global unicast from here only (RFC 4291), so that old wrappers and site-local addresses fall away unnamed.
_UNICAST_IPV6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_IPV4 = tuple(map(ipaddress.IPv4Network, [block for block, _ in SPECIAL_IPV4 + CLOUD_IPV4] + [_MULTICAST_IPV4]))
_REFUSED_IPV6 = tuple(ipaddress.IPv6Network(block) for block, _ in SPECIAL_IPV6)


def is_public(address, besides=()):
    """True when the text `address` is an IPv4 or IPv6 address of the public internet; anything else, a zone id too, is False.

    Addresses that wrap an IPv4 address (mapped, NAT64, 6to4, Teredo) are never public, whatever they wrap. `besides`: networks
    (of ipaddress) that are not public here.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if any(ip in network for network in besides):
        return False
    if ip.version == 4:
        return not any(ip in block for block in _REFUSED_IPV4)
    return ip.scope_id is None and ip in _UNICAST_IPV6 and not any(ip in block for block in _REFUSED_IPV6)


def is_own(address):
    """True when `address`, an IP address as text, belongs to an interface of this machine. Sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Connecting a datagram socket only asks for the route; the kernel answers an own address with that very address.
            probe.connect((address, 9))
            return probe.getsockname()[0] == address
    except OSError:
        return False


def system_addresses(host):
    """All addresses, as texts, that the system's resolver knows for the ASCII name `host`. Raises OSError."""
    # As bytes, because Python would pass a text through its own, older IDNA.
    answers = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [sockaddr[0] for *_, sockaddr in answers]


def connect(addresses, port, seconds):
    """A TCP socket connected to the first of `addresses` that answers; none of them may use up the time of those after it.

    Resolves nothing and judges nothing. Raises OSError when no address answers within `seconds` in all, or there is none.
    """
    deadline = monotonic() + seconds
    failure = OSError("no address")
    for position, address in enumerate(addresses):
        try:
            return _connect(address, port, max(0.001, (deadline - monotonic()) / (len(addresses) - position)))
        except OSError as error:
            failure = error
    raise failure


def _connect(address, port, seconds):
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds)
        sock.connect((address, port))
        # What was checked and what is connected must be one and the same, whatever lies between us and the kernel.
        if ipaddress.ip_address(sock.getpeername()[0]) != ipaddress.ip_address(address):
            raise ConnectionAbortedError("connected to another address than asked for")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        sock.close()
        raise
    return sock
