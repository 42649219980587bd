"""Conversions that fail: nothing is left half-written, and a hostile file costs no more than the limits."""

import os
import threading
import time
from contextlib import suppress

import psutil
import pytest

from storage import children, renditions
from storage.objects import Objects, StoreUnavailable
from storage.renditions import Recipe, Renditions, Unfit
from tests import media_samples as samples
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.pictures import turned
from tests.service import free_port
from tests.shelf import CLEAN
from tests.shelf import shelf, store  # fixtures

JPEG, PNG, WEBP, GIF = "image/jpeg", "image/png", "image/webp", "image/gif"


# Nothing half-written.

def nothing_left(shelf, row, error, renditions_=None, match=None):
    """Whether a conversion ends in this error, and leaves neither row nor object."""
    before = shelf.keys()
    with pytest.raises(error, match=match):
        (renditions_ or shelf.renditions).made(row, CLEAN)
    assert shelf.keys() == before and shelf.rows(row) == 0


@pytest.mark.parametrize("end, error", [
    ("os.kill(os.getpid(), 9)", RuntimeError), ("os.kill(os.getpid(), 11)", Unfit), ("sys.exit(1)", RuntimeError),
    ("time.sleep(60)", RuntimeError), ("restrict(1 << 30, 1, 0)\nwhile True: pass", Unfit),
    ("restrict(1 << 30, 9, 1000)\nwith open(int(sys.argv[-1]), 'wb') as file: file.write(bytes(2000))", RuntimeError),
], ids=["killed", "crashed", "failed", "too slow", "too much work", "too much to write"])
def test_a_child_that_dies_leaves_nothing(shelf, monkeypatch, tmp_path, end, error):
    script = tmp_path / "child.py"
    script.write_text("import os, sys, time\nfrom storage.probe import restrict\n"
                      f"os.write(int(sys.argv[-1]), bytes(500))\n{end}\n")
    row = shelf.file(turned(JPEG, 6))
    with monkeypatch.context() as patch:
        patch.setattr(renditions, "CONVERT", script)
        patch.setattr(renditions, "SECONDS", 0.3 if "sleep" in end else 20)
        nothing_left(shelf, row, error)
    assert shelf.renditions.made(row, CLEAN).width == 96


def test_a_store_that_breaks_off_leaves_nothing(shelf):
    class Broken(Objects):
        """Reads, and does not write."""

        def put(self, *_):
            raise StoreUnavailable("it broke off")

    row = shelf.file(turned(JPEG, 6))
    store = Broken("http://127.0.0.1:1", "a", "b", "media")
    store.open = shelf.store.open
    nothing_left(shelf, row, StoreUnavailable, Renditions(store))


def test_a_store_that_is_away_is_nobodys_fault(shelf):
    row = shelf.file(turned(JPEG, 6))
    nothing_left(shelf, row, StoreUnavailable, Renditions(Objects(f"http://127.0.0.1:{free_port()}", "a", "b", "media")))


def test_a_broken_installation_is_not_the_fault_of_the_file(shelf, monkeypatch):
    row = shelf.file(turned(JPEG, 6))
    monkeypatch.setattr("sys.path", [])
    nothing_left(shelf, row, RuntimeError, match="No module named")


# Files that want no good.

def test_the_child_knows_no_secret_and_has_limits(monkeypatch):
    monkeypatch.setenv("POSTHORN_SECRET_KEYS", "hunter2")
    read, write = os.pipe()
    with open(read, "rb") as picture, open(write, "wb"):    # it waits for the picture that does not come
        options = {"file": picture, "out": picture, "seconds": 20}
        thread = threading.Thread(target=children.run, args=(renditions.CONVERT, PNG, 1000), kwargs=options)
        thread.start()
        deadline = time.monotonic() + 15
        while not (found := limits_of_the_child()) or found["address space"][0] == psutil.RLIM_INFINITY:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    thread.join()
    environment = found.pop("environment")
    assert environment - {"LC_CTYPE"} == {"PYTHONPATH"}
    assert found == {"core": (0, 0), "file": (64 << 20, 64 << 20), "cpu": (40, 41), "address space": (2 << 30, 2 << 30)}


def limits_of_the_child():
    """The limits of the one child that converts, and the names in its environment; None while there is none."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if str(renditions.CONVERT) in child.cmdline():
                kinds = {"core": psutil.RLIMIT_CORE, "file": psutil.RLIMIT_FSIZE, "cpu": psutil.RLIMIT_CPU,
                         "address space": psutil.RLIMIT_AS}
                return {"environment": set(child.environ()), **{name: child.rlimit(kind) for name, kind in kinds.items()}}
    return None



HOSTILE = {
    "jpeg that is a page": (b"\xff\xd8\xff\xe0" + samples.HTML, JPEG),
    "jpeg that ends early": (turned(JPEG, 6)[:-300], JPEG),
    "jpeg that declares more than there is": (samples.jpeg_of_size(60_000, 60_000), JPEG),
    "png that is a page": (samples.image("PNG")[:33] + samples.HTML, PNG),
    "png that declares more than there is": (samples.png(60_000, 60_000, 8, bytes(100)), PNG),
    "png that unpacks to more than there is memory": (samples.png(15_800, 15_800, 16, bytes(15_801 * 2)), PNG),
    "png that is no chunk": (samples.image("PNG")[:8] + b"\xff" * 100, PNG),
    "webp that is a page": (samples.image("WEBP")[:30] + samples.HTML[:200], WEBP),
    "webp that declares more than there is": (samples.webp_of_size(16_384, 16_384), WEBP),
    "webp that unpacks to more than there is memory": (samples.webp_of_size(15_000, 16_000), WEBP),
    "gif that declares more than there is": (samples.gif(65_535, 65_535), GIF),
    "gif that is a page": (b"GIF89a\x01\x00\x01\x00\x00\x00\x00!\xfe" + samples.HTML, GIF),
    "another type": (samples.image("TIFF"), PNG),
    "a film": (samples.video("mp4"), JPEG),
    "one byte": (b"\xff", JPEG),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_fails_plainly_within_the_limits(shelf, name):
    data, mime_type = HOSTILE[name]
    row = shelf.file(data, mime_type)
    before, started = shelf.keys(), time.monotonic()
    with pytest.raises(Unfit) as unfit:
        shelf.renditions.made(row, Recipe(32, 24, 10_000))
    assert str(unfit.value).startswith("it ") and "Gotcha" not in str(unfit.value) and time.monotonic() - started < 20
    assert shelf.keys() == before and shelf.rows(row) == 0
