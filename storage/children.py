"""Child processes that read untrusted files: they know nothing of this process but where its packages are."""

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

STARTER = Path(__file__).with_name("starter.py")

# How a child ends that has used up its time of the processor, or that its parser has ended.
TOO_MUCH_WORK = -signal.SIGXCPU
CRASHED = tuple(-number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))


def run(script, *arguments, file, seconds, out=None):
    """Runs the Python file `script` with the open `file` as its input, for `seconds` at most.

    `out` is another open file that it may write, whose number it gets as its last argument. Returns its exit status, None
    past its deadline, and what it wrote to its output and to its errors. Raises RuntimeError where it could not be run.
    """
    # -P keeps the folder of the script off the path, where secrets.py would stand before the standard library's.
    command = [sys.executable, "-P", "-S", str(script), *map(str, arguments)]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    mine, theirs = socket.socketpair()
    with mine:
        with theirs:
            _starter.send([opened.fileno() for opened in (file, theirs, out) if opened is not None])
        mine.sendall(json.dumps([command, environment, seconds]).encode())
        mine.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(functools.partial(mine.recv, 65536), b""))
    if not answer:
        raise RuntimeError(f"{script} could not be run: storage/starter.py has ended, or cannot start a process")
    status, output, errors = json.loads(answer)
    return status, output.encode("latin-1"), errors.encode("latin-1")


class _Starter:
    """The process of storage/starter.py, started when it is needed first and when it has ended; threads share it."""

    def __init__(self):
        self._process, self._socket, self._lock = None, None, threading.Lock()

    def send(self, descriptors):
        with self._lock:
            try:
                socket.send_fds(self._socket or self._start(), [b"."], descriptors)
            except OSError:
                socket.send_fds(self._start(), [b"."], descriptors)

    def _start(self):
        if self._process is not None:
            self._socket.close()
            self._process.wait()
        self._socket, theirs = socket.socketpair()
        with theirs:
            # A session of its own: what a terminal sends to all is for us to answer.
            command = [sys.executable, "-I", "-S", STARTER]
            self._process = subprocess.Popen(command, stdin=theirs, env={}, start_new_session=True)
        return self._socket


_starter = _Starter()
