"""The process that starts those which look at files: it comes back when it is killed, and ends with whoever needed it."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from storage import children
from tests.media_samples import examine, image

NEEDS_ONE = """
import os, signal, sys
from tests.media_samples import examine
examine(sys.argv[1])
print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture"
    path.write_bytes(image("PNG"))
    return path


def starters(pid):
    return [child for child in psutil.Process(pid).children() if str(children.STARTER) in child.cmdline()]


def test_one_process_starts_all_others(picture):
    with ThreadPoolExecutor(4) as threads:
        assert {facts.width for facts in threads.map(examine, [picture] * 8)} == {64}
    assert len(starters(os.getpid())) == 1


def test_a_starter_that_was_killed_is_replaced(picture):
    examine(picture)
    old, = starters(os.getpid())
    old.kill()
    psutil.wait_procs([old], timeout=10)
    assert examine(picture).width == 64
    new, = starters(os.getpid())
    assert new.pid != old.pid


def test_a_starter_ends_with_who_needed_it_even_by_kill_9(picture):
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen([sys.executable, "-c", NEEDS_ONE, picture], stdout=subprocess.PIPE, env={"PYTHONPATH": path},
                          cwd=children.STARTER.parents[1]) as needy:
        assert int(needy.stdout.readline()) == needy.pid
        started = starters(needy.pid)
        needy.send_signal(signal.SIGKILL)
    assert len(started) == 1 and psutil.wait_procs(started, timeout=10)[1] == []


def test_what_cannot_be_run_is_an_error_and_ends_nothing(picture, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with open(picture, "rb") as file, pytest.raises(RuntimeError, match="could not be run"):
        children.run("x.py", file=file, seconds=5)
    monkeypatch.undo()
    assert examine(picture).width == 64


def test_a_deadline_ends_what_runs(picture, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text("print('begun', flush=True)\nwhile True: pass")
    started = time.monotonic()
    with open(picture, "rb") as file:
        assert children.run(script, file=file, seconds=1) == (None, b"begun\n", b"")
    assert time.monotonic() - started < 10
