"""The files in which the processes of an API keep their figures for each other, with room for all that they hold.

prometheus_client maps files with holes: when the disk is full, the kernel ends a process that touches one of them (SIGBUS), and
each that comes after it. To be imported before any figure is made.
"""

import logging
import mmap
import os
import struct
from contextlib import contextmanager, suppress

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

SMALLEST = 1 << 16      # bytes, as in prometheus_client
ENTRY = 32              # bytes at most of an entry beside its key

log = logging.getLogger("posthorn.metrics")


class FigureFile(MmapedDict):
    """As its base, but what finds no room on the disk is counted in memory alone, and not told to anybody then."""

    told = False        # one line for each process is enough

    def __init__(self, filename: str, read_mode: bool = False):
        self._f, self._fname = None, filename
        self._capacity = max(SMALLEST, os.path.getsize(filename) if os.path.exists(filename) else 0)
        self._m = self._mapped()
        self._used = struct.unpack_from("i", self._m)[0] or 8
        struct.pack_into("i", self._m, 0, self._used)
        self._positions = {key: at for key, _, _, at in self._read_all_values()}

    def _init_value(self, key):
        while self._used + len(key.encode()) + ENTRY > self._capacity:
            self._capacity *= 2
            old, self._m = self._m, self._mapped()
            self._m[:self._used] = old[:self._used]
        super()._init_value(key)

    def _mapped(self):
        """The file, which has room for all of itself by now, or as much memory."""
        try:
            before = os.path.getsize(self._fname) if os.path.exists(self._fname) else 0
            with _cut_on_failure(self._fname, before), open(self._fname, "ab+") as file:
                file.write(bytes(self._capacity - before))
                file.flush()
                self.kept = True
                return mmap.mmap(file.fileno(), self._capacity)
        except OSError as error:
            if not FigureFile.told:
                FigureFile.told = True
                log.error("figures are counted, and cannot be asked for: %s", os.strerror(error.errno))
        self.kept = False
        return mmap.mmap(-1, self._capacity)


@contextmanager
def _cut_on_failure(path, size):
    """What was written of what did not fit is room that others need."""
    try:
        yield
    except OSError:
        with suppress(OSError):
            os.truncate(path, size)
        raise


values.MmapedDict = FigureFile
