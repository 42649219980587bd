"""A connection that ends by a deadline whatever the other side does, and that another thread can break off."""

import io
import socket
from contextlib import suppress
from math import inf
from time import monotonic

MAX_HEAD = 65536  # bytes of status line and headers, interim answers included
CHUNK = 65536


class Wire(io.RawIOBase):
    """A socket as http.client uses it, where every single read and write ends by `deadline`, so that no drip outlives it."""

    def __init__(self, sock, end):
        self._sock = sock
        self.end = self.deadline = end
        self.allowance = MAX_HEAD  # bytes that may still arrive; without bound once the head is here

    def sendall(self, data):
        view = memoryview(data).cast("B")
        while view:
            self._sock.settimeout(seconds_left(self.deadline))
            view = view[self._sock.send(view[:CHUNK]):]

    def readable(self):
        return True

    def readinto(self, buffer):
        self._sock.settimeout(seconds_left(self.deadline))
        size = self._sock.recv_into(buffer)
        self.allowance -= size
        # http.client takes a head that is cut off for a whole one, and so half a "no" for a "yes".
        if self.allowance < 0 or not size and self.allowance < inf:
            raise ConnectionAbortedError
        return size

    def makefile(self, mode):
        return io.BufferedReader(self, 16384)

    def settimeout(self, seconds):
        """Ignored: the deadline rules."""

    def close(self):
        """Ignored, since http.client closes before the body is read; see hang_up."""

    def break_off(self):
        """Wakes whoever waits here; closing alone would not."""
        with suppress(OSError):
            # Not that of an SSLSocket, which would turn to plain text while another thread reads.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def hang_up(self):
        self._sock.close()


def seconds_left(deadline):
    """Seconds until `deadline`, a time of the monotonic clock. Raises TimeoutError when none are left."""
    seconds = deadline - monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
