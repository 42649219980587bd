"""Links of 50 MB fetched into the store: time beside curl's, memory of the API, and what other requests notice.

Run: python -m tests.benchmarks.ingest [--rounds 7]

The floor is `curl` from the same server into `curl` to the same store, by a presigned URL, in turns with the API. Real API (one
process), PostgreSQL and store; the server of the links and the client that asks for health are processes of their own.
"""

import argparse
import asyncio
import multiprocessing
import os
import shutil
import statistics
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
from urllib3.exceptions import HTTPError

from storage.database import database, migrate, open_pool
from storage.embedded import Store
from storage.media import PROBE
from storage.objects import Objects
from tests.benchmarks.figures import line
from tests.media_samples import image, video
from tests.servers import BUCKET, postgres, running, short_directory
from tests.service import Http, Member, environment, free_port, start_api

MB = 1 << 20
SIZE = 50 * MB              # the most that a link may have
RATIO, ONE, FOUR, HEALTH = 1.5, 48 * MB, 120 * MB, 50.0     # promised; health in ms at p99
DRIPS, DRIP_SECONDS, PACE = 200, 20.0, 0.01
FILES = {"mp4": lambda: video("mp4", movflags="faststart"), "jpg": lambda: image("JPEG")}


class _Source(BaseHTTPRequestHandler):
    """Sends the file that is asked for; of /drip one byte at a time, without end."""

    def __init__(self, folder, *arguments):
        self._folder = folder
        super().__init__(*arguments)

    def do_GET(self):
        self.send_response(200)
        try:
            if self.path == "/drip":
                self.end_headers()
                while True:
                    self.wfile.write(b"x")
                    time.sleep(0.2)
            with open(self._folder / self.path[1:], "rb") as file:
                self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
                self.end_headers()
                shutil.copyfileobj(file, self.wfile, MB)
        except OSError:
            pass    # the reader has gone

    def log_message(self, *_):
        pass


def serve_files(folder, port):
    """Serves the files of a folder, for ever."""
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Source, folder))
    server.daemon_threads = True
    server.serve_forever()


async def _answer(reader, writer):
    with suppress(asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
    writer.close()


async def _serve_nothing(port):
    async with await asyncio.start_server(_answer, "127.0.0.1", port) as server:
        await server.serve_forever()


def beside_us(port):
    """A program that does nothing but answer: what it takes under the same load is the machine's doing."""
    asyncio.run(_serve_nothing(port))


def _ask_for_health(url, stopping, pipe):
    """Asks at fixed times until told to stop, and sends the milliseconds from when each was to be asked to its answer."""
    http, times, due = Http(url), [], time.perf_counter()
    while not stopping.is_set():
        due += PACE
        time.sleep(max(0.0, due - time.perf_counter()))
        assert http.get("/v1/health").status == 200
        times.append((time.perf_counter() - due) * 1000)
    pipe.send(times)


@contextmanager
def process(target, *arguments):
    """A process for as long as the context lasts."""
    child = multiprocessing.get_context("spawn").Process(target=target, args=arguments, daemon=True)
    child.start()
    try:
        yield
    finally:
        child.terminate()
        child.join()


@contextmanager
def health(*urls):
    """Asks all of them for health meanwhile; gives a list that has the sorted milliseconds of each in the end."""
    times, stopping = [], multiprocessing.get_context("spawn").Event()
    pipes = [multiprocessing.Pipe(duplex=False) for _ in urls]
    with ExitStack() as askers:
        for url, (_, writer) in zip(urls, pipes, strict=True):
            askers.enter_context(process(_ask_for_health, url, stopping, writer))
        time.sleep(1)       # until they ask
        yield times
        stopping.set()
        times += [sorted(reader.recv()) for reader, _ in pipes]


class Memory:
    """The most resident memory of the API's processes, and of those that they start to look at files, from now on."""

    def __init__(self, pid):
        self._workers = psutil.Process(pid).children()
        self._before, self.most, self.children = self._resident(), 0, 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()

    def _resident(self):
        return sum(worker.memory_info().rss for worker in self._workers)

    def _look(self):
        while not self._stopping.wait(0.02):
            self.most = max(self.most, self._resident() - self._before)
            children = [child for worker in self._workers for child in worker.children(recursive=True)]
            self.children = max(self.children, sum(map(_own_memory, children)))


def _own_memory(process):
    try:
        # Until it is another program, a new process has the memory of the one that makes it.
        return process.memory_full_info().uss if str(PROBE) in process.cmdline() else 0
    except psutil.Error:
        return 0    # it has ended


def curl(store, link):
    """The seconds of the floor."""
    url, headers = store.presigned_put(f"floor-{time.monotonic_ns()}", SIZE, "video/mp4", 600)
    given = [part for header in headers.items() for part in ("-H", ": ".join(header))]
    started = time.monotonic()
    with subprocess.Popen(["curl", "-sS", "--fail", link], stdout=subprocess.PIPE) as source:
        sink = ["curl", "-sS", "--fail", "-o", os.devnull, "-T", "-", "-H", "Transfer-Encoding:", "-H", "Expect:", *given, url]
        subprocess.run(sink, stdin=source.stdout, check=True)
    return time.monotonic() - started


def fetch(http, link):
    """The seconds of the API."""
    started = time.monotonic()
    answer = http.post("/v1/media/from-url", {"url": link})
    assert (answer.status, answer.data["bytes"]) == (201, SIZE), answer.raw
    return time.monotonic() - started


def p99(times):
    return times[int(len(times) * 0.99)]


def show_health(what, times):
    """The promise and, since other work on the machine counts too, how the rest was, and how a program beside it fared."""
    ours, beside = times
    line(f"{what}: health at p99 ({len(ours)} asked)", p99(ours), HEALTH, "ms", f"{p99(beside):.2f} ms")
    print(f"{'':58} {p99(beside):8.2f} ms  at p99 a program beside it that does nothing else; load {os.getloadavg()[0]:.1f}")
    for name, some in (("ours", ours), ("beside", beside)):
        soon = sum(one <= HEALTH for one in some) / len(some)
        print(f"{'':58} {statistics.median(some):8.2f} ms  median, {soon:.1%} within {HEALTH:.0f} ms: {name}")


def measure_time(http, store, source, rounds):
    """API and floor in turns."""
    for name in FILES:
        floor, ours = [], []
        for _ in range(rounds):
            floor.append(curl(store, f"{source}/{name}"))
            ours.append(fetch(http, f"{source}/{name}"))
        ratio = statistics.median(ours) / statistics.median(floor)
        seconds = [f"{statistics.median(times):.2f} s" for times in (floor, ours)]
        print(f"{name}: curl {seconds[0]}, the API {seconds[1]} (medians of {rounds})")
        line(f"from-url of 50 MB ({name}), in times of curl", ratio, RATIO, "x", *seconds)


def measure_memory(api, teams, urls, source, at_once, limit):
    """Fetches `at_once`, in turns for `teams`, and asks for health all the while."""
    for name in FILES:
        with health(*urls) as times, Memory(api.popen.pid) as memory, ThreadPoolExecutor(at_once) as pool:
            started = time.monotonic()
            while time.monotonic() - started < 8:
                list(pool.map(lambda number: fetch(teams[number % 2], f"{source}/{name}"), range(at_once)))
        line(f"{at_once} at once ({name}): the API grows by", memory.most / MB, limit / MB, "MB")
        print(f"{'':58} {memory.children / MB:8.2f} MB  in processes that look at the files, for a moment")
        show_health(f"{at_once} at once ({name})", times)


def measure_nothing(urls):
    """Health alone: what the machine makes of it."""
    with health(*urls) as times:
        time.sleep(5)
    show_health("nothing under way", times)


def measure_drips(http, urls, source):
    """Many links that never end; whoever is refused asks again when it is told to."""
    answers, stopping = [], threading.Event()

    def ask():
        with suppress(HTTPError):   # the API is killed while four of them wait
            while not stopping.is_set():
                answer = http.post("/v1/media/from-url", {"url": f"{source}/drip"})
                answers.append(answer.status)
                stopping.wait(float(answer.headers.get("Retry-After", 1)))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(DRIPS)]
    for thread in threads:
        thread.start()
    with health(*urls) as times:
        time.sleep(DRIP_SECONDS)
    stopping.set()
    print(f"{DRIPS} slow drips: {answers.count(429)} answers of 429, {len(answers) - answers.count(429)} others")
    show_health(f"under {DRIPS} slow drips", times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    run(parser.parse_args().rounds)


def run(rounds):
    """All of it, with so many `rounds` beside curl."""
    with short_directory() as folder, postgres() as database_url, running(Store(folder / "store", BUCKET)) as address:
        for name, make in FILES.items():
            content = make()
            rest = SIZE - len(content)
            (folder / name).write_bytes(content + rest.to_bytes(4, "big") + b"free" + os.urandom(rest - 8))
        open_pool(database_url, connections=4)
        migrate()
        store = Objects(address.endpoint_url, address.access_key, address.secret_key, address.bucket)
        store.prepare()
        port = free_port()
        with process(serve_files, Path(folder), port), process(beside_us, portbeside_us := free_port()):
            settings = {"POSTHORN_ALLOW_PRIVATE": f"127.0.0.1:{port}", "POSTHORN_API_PROCESSES": "1",
                        "POSTHORN_VALIDATE_RESPONSES": "0", "POSTHORN_FETCH_RATE_LIMIT": "100000"}
            api, url = start_api(environment(database_url, address, **settings))
            try:
                report(api, [url, f"http://127.0.0.1:{portbeside_us}"], store, f"http://127.0.0.1:{port}", rounds)
            finally:
                api.kill()
                database.close_all()


def report(api, urls, store, source, rounds):
    """Prints all figures."""
    teams = [Http(urls[0], Member(urls[0]).key()) for _ in range(2)]    # one takes at most half of the turns
    http = teams[0]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    measure_nothing(urls)
    with Memory(api.popen.pid) as memory:
        fetch(http, f"{source}/mp4")
    line("the very first: the API grows by", memory.most / MB, ONE / MB, "MB")
    measure_time(http, store, source, rounds)
    measure_memory(api, teams, urls, source, 1, ONE)
    measure_memory(api, teams, urls, source, 4, FOUR)
    measure_drips(http, urls, source)
    measure_nothing(urls)


if __name__ == "__main__":
    main()
