"""The figures of the API's processes, summed, and those of fetches, files and captions."""

import io
import os
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from prometheus_client import REGISTRY

from handlers import readiness, scrapes
from handlers.config import Config, ConfigError
from handlers.figures import FigureFile
from handlers.scrapes import Together
from handlers.serve import figures
from platforms import metrics
from platforms.captions import CaptionModel
from platforms.chat import ModelFailed
from storage import asking
from storage.fetch import BadStatus, Fetcher, Refused, TooLarge, Unreachable
from storage.media import NotMedia
from storage.media import examine as look
from tests.links import serving
from tests.media_corpus import REAL
from tests.scraping import scraped
from tests.service import Http, Member, free_port, start_api
from tests.standins.chat import KEY, MODEL, ChatServer, Reply, error

WISH = {"topic": "bread", "platform": None, "tone": "neutral", "language": "en"}


@pytest.fixture
def service(environ):
    """An API of two processes that tells its figures: (process, address, port of the figures)."""
    port = free_port()
    process, url = start_api({**environ, "POSTHORN_API_METRICS_PORT": str(port), "POSTHORN_METRICS_PORT": str(port + 1),
                              "POSTHORN_API_PROCESSES": "2"})
    yield process, url, port
    process.stop()


def counted(port, name="health"):
    return scraped(port)[0].get(f'posthorn_api_requests_total{{operation="get_{name}",status="2xx"}}', 0)


def forks(process):
    return {child.pid for child in psutil.Process(process.popen.pid).children()}


def answering(url, pids, seconds=20):
    """Asks on fresh connections until each of the processes has answered; returns how often that was."""
    deadline, asked = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        asked += 1
        assert Http(url).get("/v1/health").status == 200
        if asked >= 20 and all(psutil.pid_exists(pid) for pid in pids):
            return asked
    raise AssertionError("the processes did not answer")


def test_all_processes_are_counted_together_and_nothing_is_lost_with_one_of_them(service):
    process, url, port = service
    before, pids = counted(port), forks(process)
    asked = answering(url, pids)
    assert len(pids) == 2 and counted(port) == before + asked
    file = next(file for pid in pids for file in Path(tempfile.gettempdir()).glob(f"posthorn-metrics-*/counter_{pid}.db"))
    assert all(found.st_blocks * 512 >= found.st_size > 0 for found in map(Path.stat, file.parent.iterdir()))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while (now := forks(process)) & {pid} or len(now) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    again = answering(url, forks(process))
    assert counted(port) == before + asked + again
    left = {path.stem.rpartition("_")[2] for path in file.parent.iterdir()}
    assert left <= {"0", *map(str, forks(process))} and "0" in left     # what the gone ones counted is in one place
    assert scraped(port)[0]["posthorn_api_in_flight"] == 0
    process.stop()
    assert not file.parent.exists()


FULL = Path("/dev/full")        # takes nothing, as a disk without room
# More than one page of figures.
NAMES = [f'["x", "x_total", {{"of": "{number}"}}, "{"help" * 20}"]' for number in range(1000)]


def test_without_room_figures_are_counted_in_memory_and_told_again_once_there_is_some(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(FigureFile, "told", False)
    path = tmp_path / "counter_1.db"
    path.symlink_to(FULL)
    figures = FigureFile(str(path))
    for name in NAMES[:500]:
        figures.write_value(name, 1.0, 0.0)
    assert not figures.kept and caplog.text.count("No space left on device") == 1
    path.unlink()
    for name in NAMES[500:]:
        figures.write_value(name, 2.0, 0.0)
    assert figures.kept and path.stat().st_blocks * 512 >= path.stat().st_size > 1 << 16
    again = FigureFile(str(path))
    assert [again.read_value(name)[0] for name in NAMES] == [1.0] * 500 + [2.0] * 500


def test_without_room_nothing_is_lost_of_a_process_that_is_gone(tmp_path):
    gone, grave = tmp_path / f"counter_{2**22 + 1}.db", tmp_path / "counter_0.db"      # no process has such a number
    FigureFile(str(gone)).write_value(NAMES[0], 3.0, 0.0)
    (tmp_path / "gauge_livesum_1.db").touch()       # of a process that finds no room, or is about to find some
    grave.symlink_to(FULL)

    def told():
        return [sample.value for metric in Together(tmp_path).collect() for sample in metric.samples]

    assert told() == [3.0] and gone.exists()
    grave.unlink()
    assert told() == [3.0] and not gone.exists() and FigureFile(str(grave)).read_value(NAMES[0])[0] == 3.0


def test_a_scrape_does_not_wait_for_what_hangs(monkeypatch):
    hanging, answer = threading.Event(), SimpleNamespace(oldest_due=0.0, claimed=0.0, worker_seen=0.0)
    monkeypatch.setattr(asking, "SECONDS", 0.05)
    monkeypatch.setattr(metrics, "_health", hanging.wait)
    monkeypatch.setattr(readiness, "_queue", hanging.wait)
    store = SimpleNamespace(ready=hanging.wait)
    worker, api = metrics.QueueCollector(SimpleNamespace(open=dict)), readiness.Readiness(store)
    for _ in range(2):
        assert [family.name for family in worker.collect()] == ["posthorn_breaker_open_seconds"]
        assert api() == {"database": False}
    assert len([thread for thread in threading.enumerate() if thread.name == "asking"]) == 2       # one for each, however often
    monkeypatch.setattr(readiness, "_queue", lambda: answer)
    assert readiness.Readiness(store)() == {"database": True, "store": False, "publisher": True}
    hanging.set()
    assert readiness.Readiness(store)()["store"] is True


def test_requests_go_by_names_that_we_know(environ):
    port = free_port()
    process, url = start_api({**environ, "POSTHORN_API_METRICS_PORT": str(port), "POSTHORN_API_PROCESSES": "1",
                              "POSTHORN_RATE_LIMIT": "2"})
    try:
        member = Member(url)
        for path in ("/v1/posts/post_canary", "/v1/accounts?canary=1", "/v1/accounts", "/canary", "/media/canary", "/docs"):
            member.test.get(path)
        member.test.request("POST", "/v1/posts", body=b" " * 300_000)
        found, types = scraped(port)
    finally:
        process.stop()
    requests = {name.partition("{")[2]: value for name, value in found.items() if name.startswith("posthorn_api_requests_total")}
    assert requests.pop('operation="get_health",status="2xx"}') >= 1
    assert requests == {'operation="get_post",status="4xx"}': 1, 'operation="list_accounts",status="4xx"}': 2,
                        'operation="none",status="4xx"}': 1, 'operation="/media/",status="4xx"}': 1,
                        'operation="/docs",status="2xx"}': 1, 'operation="publish_post",status="4xx"}': 1}
    assert found['posthorn_api_refusals_total{status="429"}'] >= 1
    assert found['posthorn_api_request_seconds_count{operation="get_post"}'] == 1 and found["posthorn_pool_in_use"] == 0
    assert types["posthorn_api_request_seconds"] == "histogram" and "canary" not in str(found)


def test_both_ports_on_one_machine_are_two(environ):
    with pytest.raises(ConfigError, match="POSTHORN_API_METRICS_PORT and POSTHORN_METRICS_PORT must be two ports"):
        Config.from_env({**environ, "POSTHORN_API_METRICS_PORT": "9100", "POSTHORN_METRICS_PORT": "9100"})


def test_a_port_that_somebody_else_keeps_is_told_once(monkeypatch, caplog):
    class Enough(Exception):
        pass

    pauses = iter([None, None, Enough()])

    def pause(_):
        if (what := next(pauses)) is not None:
            raise what

    monkeypatch.setattr(scrapes.time, "sleep", pause)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Enough):
        scrapes._take(taken.getsockname()[1], "127.0.0.1", REGISTRY, 0)
    assert caplog.text.count("metrics cannot be asked for") == caplog.text.count("Address already in use") == 1


def test_without_a_place_for_the_figures_the_setting_is_named(environ, monkeypatch):
    def full(**_):
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with figures(Config.from_env(environ)) as folder:
        assert folder is None       # nobody asks
    with pytest.raises(ConfigError, match="POSTHORN_API_METRICS_PORT"), \
            figures(Config.from_env({**environ, "POSTHORN_API_METRICS_PORT": "9100"})):
        pass


def grown(act, name, **labels):
    """By how much a figure of this process grows with `act`."""
    def value():
        return REGISTRY.get_sample_value(name, labels) or 0

    before = value()
    act()
    return value() - before


def failing(kind, act):
    def run():
        with pytest.raises(kind):
            act()
    return run


def test_fetches_are_counted_by_what_came_of_them():
    with serving() as links:
        port = links.server_address[1]
        fetcher = Fetcher(allow_private={("127.0.0.1", port), ("127.0.0.1", 9)})
        links.answers["/file"] = (200, {}, b"12345")

        def get(path="/file", most=10, to=links.url):
            return fetcher.download(f"{to}{path}", io.BytesIO(), max_bytes=most)

        assert grown(get, "posthorn_fetches_total", outcome="answered") == 1
        assert grown(get, "posthorn_fetch_bytes_total") == 5 and grown(get, "posthorn_fetch_seconds_count") == 1
        for kind, outcome, act in ((TooLarge, "too_large", lambda: get(most=4)), (BadStatus, "bad_status", lambda: get("/none")),
                                   (Refused, "refused", lambda: get(to="http://10.0.0.1")),
                                   (Unreachable, "unreachable", lambda: get(to="http://127.0.0.1:9"))):
            assert grown(failing(kind, act), "posthorn_fetches_total", outcome=outcome) == 1


def test_looks_at_files_are_counted_by_what_came_of_them(tmp_path):
    def examine(data):
        (tmp_path / "file").write_bytes(data)
        with open(tmp_path / "file", "rb+") as file:
            look(file)

    picture = REAL["png"][0]
    assert grown(lambda: examine(picture), "posthorn_media_looks_total", outcome="media") == 1
    assert grown(failing(NotMedia, lambda: examine(b"text")), "posthorn_media_looks_total", outcome="not_media") == 1
    assert grown(lambda: examine(picture), "posthorn_media_look_seconds_count") == 1


def test_captions_are_counted_with_what_they_cost():
    with ChatServer() as server:
        model = CaptionModel(server.url, KEY, MODEL, timeout=5, pause=0.01)

        def write():
            return model.write(**WISH)

        server.says("A caption.")
        tokens = write().tokens_used
        assert tokens and grown(write, "posthorn_caption_tokens_total") == tokens
        assert grown(write, "posthorn_captions_total", outcome="written") == 1
        assert grown(write, "posthorn_caption_seconds_count") == grown(write, "posthorn_model_answers_total", outcome="2xx") == 1
        for reply, outcome in ((error(401, "no"), "4xx"), (error(500, "no"), "5xx"), (Reply(manner="drop"), "broken")):
            server.plans(*[reply] * 5)
            assert grown(failing(ModelFailed, write), "posthorn_model_answers_total", outcome=outcome) >= 1
            server.says("A caption.")
        server.plans(error(401, "no"))
        assert grown(failing(ModelFailed, write), "posthorn_captions_total", outcome="model_failed") == 1
