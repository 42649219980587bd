"""The process that starts the child processes of storage.children, one for each process that needs any.

While Python starts a process, no thread of it goes on until the new one has got a processor and become another program: on a
busy machine that held up everything else an API process did for a tenth of a second. This one has nothing else to do.

Run by its path with a Unix socket as standard input, and ends when the other side of it is closed. Imports nothing of this
project.
"""

import json
import os
import socket
import subprocess
import threading


def serve(file, answer, *out):
    """Runs what is asked for on the socket `answer` with `file` as its input, and answers there: see storage.children.run."""
    with socket.socket(fileno=answer) as asked:
        with asked.makefile("rb") as question:
            command, environment, seconds = json.load(question)
        try:
            child = subprocess.run([*command, *map(str, out)], stdin=file, capture_output=True, env=environment, check=False,
                                   timeout=seconds, pass_fds=out)
            told = child.returncode, child.stdout, child.stderr
        except subprocess.TimeoutExpired as late:
            told = None, late.stdout or b"", b""
        finally:
            for descriptor in (file, *out):
                os.close(descriptor)
        status, output, errors = told
        asked.sendall(json.dumps([status, output.decode("latin-1"), errors.decode("latin-1")]).encode())


if __name__ == "__main__":
    with socket.socket(fileno=0) as asked:
        while True:
            message, descriptors, *_ = socket.recv_fds(asked, 1, 3)
            if not message:
                break
            threading.Thread(target=serve, args=descriptors).start()
