"""Child processes that read untrusted files: they know nothing of this process but where its packages are."""

import os
import signal
import subprocess
import sys

# How a child ends that has used up its time of the processor, or that its parser has ended.
TOO_MUCH_WORK = -signal.SIGXCPU
CRASHED = tuple(-number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))


def run(script, *arguments, file, seconds, out=None):
    """Runs the Python file `script` with the open `file` as its input, for `seconds` at most.

    `out` is another open file that it may write, whose number it gets as its last argument. Returns its exit status, None
    past its deadline, and what it wrote to its output and to its errors.
    """
    # -P keeps the folder of the script off the path, where secrets.py would stand before the standard library's.
    command = [sys.executable, "-P", "-S", str(script), *map(str, arguments)]
    passed = () if out is None else (out.fileno(),)
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        child = subprocess.run([*command, *map(str, passed)], stdin=file, capture_output=True, env=environment, timeout=seconds,
                               check=False, pass_fds=passed)
    except subprocess.TimeoutExpired as late:
        return None, late.stdout or b"", b""
    return child.returncode, child.stdout, child.stderr
