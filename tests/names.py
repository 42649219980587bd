"""A name server on loopback that lies, and the system's own resolver (that of glibc) asking it instead of the real one."""

import ctypes
import ipaddress
import socket
import struct
import threading
from collections import Counter

from storage.addresses import system_addresses

A, CNAME, AAAA, INTERNET, ANSWERED, NO_SUCH_NAME = 1, 5, 28, 1, 0x8180, 0x8183
SILENCE, GARBAGE = "silence", "garbage"
# resolv.h: struct __res_state begins with these; each thread has one of its own.
RETRANS, RETRY, OPTIONS, SERVERS, SERVER = 0, 4, 8, 16, 20
SEARCH_OFF = ~0x280 & 0xFFFFFFFF    # neither RES_DNSRCH nor RES_DEFNAMES
_libc = ctypes.CDLL(None)


class NameServer:
    """Answers over UDP what `zone` says: {name: [what the first lookup gets, what the second gets, ..., and all after it]}.

    What a lookup gets is a list of addresses, a text for the name that it stands for (CNAME), SILENCE or GARBAGE.
    """

    def __init__(self, host="127.0.0.1", port=0):
        self.zone, self.asked = {}, Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, port))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def resolve(self, host):
        """What storage.fetch resolves names with, asking this server."""
        _ask(self.port)
        return system_addresses(host)

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

    def _serve(self):
        while True:
            query, sender = self._socket.recvfrom(4096)
            if not query:
                return
            if (reply := self._reply(query)) is not None:
                self._socket.sendto(reply, sender)

    def _reply(self, query):
        name, end = _name(query)
        kind = struct.unpack_from(">H", query, end)[0]
        turns = self.zone.get(name)
        turn = turns[min(self.asked[name, kind], len(turns) - 1)] if turns else None
        self.asked[name, kind] += 1
        if turn == SILENCE:
            return None
        if turn == GARBAGE:
            return query[:2] + b"\xff" * 40
        records = [] if turn is None else _records(self.zone, turn, kind)
        flags = NO_SUCH_NAME if turn is None else ANSWERED
        head = query[:2] + struct.pack(">5H", flags, 1, len(records), 0, 0)
        return head + query[12 : end + 4] + b"".join(records)


def _records(zone, turn, kind):
    """The records of an answer; what stands behind an alias has the alias's place in them, as resolvers send it."""
    if isinstance(turn, str):
        target = b"".join(bytes([len(label)]) + label.encode() for label in turn.split(".")) + b"\0"
        alias = b"\xc0\x0c" + struct.pack(">2HIH", CNAME, INTERNET, 0, len(target)) + target
        return [alias, *(target + record[2:] for record in _records(zone, zone[turn][0], kind))]
    found = [ipaddress.ip_address(address).packed for address in turn]
    return [b"\xc0\x0c" + struct.pack(">2HIH", kind, INTERNET, 0, len(packed)) + packed
            for packed in found if len(packed) == (4 if kind == A else 16)]


def _name(query):
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode().lower())
        at += 1 + length
    return ".".join(labels), at + 1


def _ask(port):
    """Has the resolver of this thread ask the server at `port`, once and for a second."""
    _libc.__res_state.restype = ctypes.c_void_p
    _libc.__res_init()
    state = _libc.__res_state()
    server = struct.pack("=H", socket.AF_INET) + struct.pack(">H4s", port, b"\x7f\0\0\1") + bytes(8)
    options = ctypes.c_ulong.from_address(state + OPTIONS)
    options.value &= SEARCH_OFF
    for offset, number in ((RETRANS, 1), (RETRY, 1), (SERVERS, 1)):
        ctypes.c_int.from_address(state + offset).value = number
    ctypes.memmove(state + SERVER, server, len(server))
