"""Long videos through a real worker and a real store: in chunks, with little memory, and from where a killed worker left off.

`python -m tests.benchmarks.videos` does the same with 300 MB.
"""

import os
import secrets
import time
from contextlib import contextmanager
from importlib import import_module

import psutil
import pytest

from storage.database import database
from storage.models import Media
from storage.objects import Objects
from tests.delivery import Desk, own_database
from tests.service import Process, environment
from tests.standins.server import HOST

MB = 1 << 20
NETWORKS = ("youtube", "tiktok", "linkedin", "twitter", "bluesky")
HEAD = b"\0\0\0\x18ftypmp42"
CHUNK = 128 * 1024          # bytes from which a request counts as a part of the file
MOST_MEMORY = 64 * MB       # that a worker may grow by
LATER = ("UPDATE targets SET next_at = now() WHERE leased_until IS NULL AND next_at > now() "
         "AND status IN ('publishing', 'unconfirmed')")


class Film:
    """A file of `size` bytes that does not repeat itself, made as it is read."""

    def __init__(self, size):
        self._left, self._start = size, HEAD

    def read(self, size=-1):
        piece = self._start + os.urandom(min(self._left if size < 0 else size, self._left, MB))
        piece, self._start = piece[:min(self._left, max(size, len(self._start)))], b""
        self._left -= len(piece)
        return piece


@contextmanager
def studio(postgres_url, store_address):
    """A desk on a database of its own, and the store."""
    store = Objects(store_address.endpoint_url, store_address.access_key, store_address.secret_key, store_address.bucket,
                    public_url=store_address.public_url)
    store.prepare()
    with own_database(postgres_url) as address:
        desk = Desk(address)
        try:
            yield desk, store, store_address
        finally:
            desk.close()


def send(place, name, size, kill_at=None, within=120.0):
    """Publishes a video of `size` bytes on the network `name`; the worker is killed once `kill_at` bytes have arrived.

    Returns the stand-in's requests that carried parts of the file, and by how much the last worker grew, in bytes.
    """
    desk, store, address = place
    module = import_module(f"tests.networks.{name}")
    with module.start() as net:
        environ = environment(desk.address, address, POSTHORN_SECRET_KEYS=desk.key, POSTHORN_WORKER_THREADS="2",
                              POSTHORN_ALLOW_PRIVATE=f"{HOST}:{net.port}",
                              **{f"POSTHORN_{name.upper()}_{key.upper()}": value for key, value in module.settings(net).items()})
        target = _target(desk, store, module, net, name, size)
        worker, growth = _worker(desk, environ)
        try:
            deadline = time.monotonic() + within
            # A kill during the last chunk leaves the post in doubt, until the network is asked.
            while (row := desk.row(target)).status not in ("published", "failed"):
                assert time.monotonic() < deadline, (row, len(_parts(net)), worker.log())
                if kill_at is not None and sum(request.size for request in _parts(net)) >= kill_at:
                    worker.kill()
                    worker, growth = _worker(desk, environ)
                    kill_at = None
                growth.look()
                net.advance(1)
                desk.sql(LATER)
                time.sleep(0.05)
        finally:
            worker.kill()
        assert (row.status, len(module.public(net))) == ("published", 1), (row, worker.log())
        return _parts(net), growth.most


class Growth:
    """By how much the memory of a process has grown since it was ready."""

    def __init__(self, pid):
        self._process, self.most = psutil.Process(pid), 0
        self._before = self._process.memory_info().rss

    def look(self):
        """Looks once more."""
        self.most = max(self.most, self._process.memory_info().rss - self._before)


def _worker(desk, environ):
    desk.sql("DELETE FROM workers")
    worker = Process("worker", environ)
    desk.wait_for("SELECT 1 FROM workers", within=30)
    return worker, Growth(worker.popen.pid)


def _target(desk, store, module, net, name, size):
    desk.clear()
    content, account = module.SAMPLES["video"], module.account(net)
    key = f"{desk.team.id}/live/{secrets.token_hex(8)}.mp4"
    store.put(key, Film(size), size, "video/mp4")
    film = next(item for item in content.media if item.is_video)
    with database.connection_context():
        media = Media.add(team_id=desk.team.id, mode="live", user_id=desk.caller.user_id, key=key, state="ready",
                          mime_type="video/mp4", bytes=size, width=film.width or 720, height=film.height or 1280,
                          duration=film.duration or 9.0)
    row = desk.account(name, account.host, account.credentials)
    desk.sql("UPDATE accounts SET platform_id = %s, username = %s WHERE id = %s", account.platform_id, account.username, row)
    options = {name: value for name, value in content.options.items() if name != "altTexts"}
    target = desk.target(row, platform=name, caption=content.caption, media=[media], options=options)
    desk.sql("UPDATE targets SET post_type = 'video' WHERE id = %s", target)
    return target


def _parts(net):
    return [request for request in net.requests if request.size >= CHUNK and request.status and request.status < 400]


@pytest.fixture(scope="module")
def place(postgres_url, store_address):
    with studio(postgres_url, store_address) as place:
        yield place


@pytest.mark.parametrize("name", NETWORKS)
def test_a_long_video_survives_the_death_of_its_worker(place, name):
    size = 40 * MB + 12_345
    parts, growth = send(place, name, size, kill_at=size // 2)
    sizes = [request.size for request in parts]
    assert len(sizes) > 3 and max(sizes) < size / 3
    # What was acknowledged is not sent again; what was on its way when the worker died may be.
    assert sum(sizes) <= size + max(sizes) + 100_000
    assert growth < MOST_MEMORY


def test_the_film_has_its_size():
    film, pieces = Film(3 * MB + 7), []
    while piece := film.read(65_536):
        pieces.append(piece)
    assert sum(map(len, pieces)) == 3 * MB + 7 and pieces[0].startswith(HEAD)
