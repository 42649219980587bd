"""What docs/webhooks.md shows to those who receive events, run as it stands there."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.sdk.generated import HERE, blocks, run
from tests.service import PATIENCE

PAGE = (HERE.parents[1] / "docs" / "webhooks.md").read_text()
START, MAKE, PUBLISH, *LATER = blocks(PAGE, "sh")
RECEIVERS = {"python": (sys.executable, "receiver.py"), "js": ("node", "receiver.mjs")}


@contextlib.contextmanager
def receiving(language, folder, secret):
    """The page's receiver in one language; gives a queue of the lines that it prints."""
    program, file = RECEIVERS[language]
    [text] = blocks(PAGE, language)
    (folder / file).write_text(text)
    lines = queue.Queue()
    process = subprocess.Popen([program, file], cwd=folder, env={**os.environ, "WEBHOOK_SECRET": secret},
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
    reader = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout])
    reader.start()
    try:
        listening()
        yield lines
    finally:
        os.killpg(process.pid, signal.SIGKILL)      # the `node` of the wheel is a program that starts the real one
        process.wait()
        reader.join()
        process.stdout.close()


def listening():
    """Waits until somebody does on the port of the page."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", 9000), 1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("language", RECEIVERS)
def test_the_page(language, integrator, tmp_path):
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    assert "POSTHORN_ALLOW_PRIVATE=127.0.0.1:9000" in START
    secret = run("sh", "-ec", MAKE + "echo $WEBHOOK_SECRET", folder=tmp_path, **integrator).strip()
    with receiving(language, tmp_path, secret) as lines:
        post = run("sh", "-ec", PUBLISH, folder=tmp_path, **integrator)
        event, id_ = lines.get(timeout=PATIENCE).split()
        assert event == "post.published" and id_ in post
        answers = run("sh", "-ec", "".join(LATER), folder=tmp_path, **integrator)
    assert answers.count('"success":true') == 5 and '"success":false' not in answers
