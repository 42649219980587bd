"""The course of things over time: samples of processes, slopes, and a picture of them."""

import csv
import statistics
import threading
import time

import matplotlib
import psutil
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

EVERY = 10.0        # seconds between two samples
POINTS = 150        # of a line, at most: the picture stays small
MB, HOUR = 1 << 20, 3600.0
STARTER = "starter.py"
TITLES = ("resident memory, MB", "open descriptors", "requests to the API, ms", "lateness of posts, ms")
FIELDS = ("at", "process", "pid", "megabytes", "descriptors", "cpu_seconds")


class Watch(threading.Thread):
    """Samples all processes of the service until stopped, into `rows` (as FIELDS) and a CSV at `path`."""

    def __init__(self, roots, path):
        """`roots` are the numbers of the first processes, by their names."""
        super().__init__(daemon=True)
        self._roots, self._path = {name: psutil.Process(pid) for name, pid in roots.items()}, path
        self.rows, self._stopping = [], threading.Event()

    def run(self):
        """Called by the thread."""
        due = time.monotonic()
        with open(self._path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            while not self._stopping.wait(max(0.0, due - time.monotonic())):
                due += EVERY
                rows = self._sample()
                self.rows += rows
                writer.writerows(rows)
                file.flush()

    def stop(self):
        """Ends the sampling."""
        self._stopping.set()
        self.join()

    def _sample(self):
        at, rows, passing = time.time(), [], 0
        for name, root in self._roots.items():
            for role, process in _family(name, root):
                try:
                    if role is None:
                        passing += process.memory_info().rss
                        continue
                    with process.oneshot():
                        cpu = process.cpu_times()
                        rows.append((at, role, process.pid, process.memory_info().rss / MB, process.num_fds(),
                                     cpu.user + cpu.system))
                except psutil.NoSuchProcess:
                    pass    # those that look at a file live for a moment
        return [*rows, (at, "short-lived", 0, passing / MB, 0, 0.0)]


def _family(name, root):
    """(role or None, process) of a process and its children: None for those that come and go."""
    yield name, root
    for number, child in enumerate(sorted(_children(root), key=lambda one: one.create_time()), 1):
        helper = _is_starter(child)
        role = f"{name}, starter" if helper else f"{name} {number}"
        yield role, child
        for grandchild in _children(child):
            yield (f"{role}, starter", grandchild) if _is_starter(grandchild) else (None, grandchild)
            yield from ((None, last) for last in _children(grandchild))


def _children(process):
    try:
        return process.children()
    except psutil.NoSuchProcess:
        return []


def _is_starter(process):
    try:
        return any(STARTER in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def slope(points):
    """The least squares of (seconds, value), per hour."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope * HOUR if len(points) > 2 else 0.0


def percentile(values, share):
    """The value below which so great a share of them lies; 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def by_minute(points, started):
    """(minute, the values of that minute) of (epoch seconds, value), in order."""
    found = {}
    for at, value in points:
        found.setdefault(int((at - started) // 60), []).append(value)
    return sorted(found.items())


def draw(path, started, rows, requests, lateness, faults):
    """The picture: memory, descriptors, latency and lateness by the minutes since `started`; `faults` are (from, to, what)."""
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "soak", "font.size": 8}
    figure = Figure(figsize=(9, 11), layout="constrained")
    panels = figure.subplots(4, sharex=True)
    for panel, title in zip(panels, TITLES, strict=True):
        panel.set_title(title, loc="left")
        panel.grid(alpha=0.3)
        for since, until, _ in faults:
            panel.axvspan((since - started) / 60, (until - started) / 60, color="0.85", lw=0)
    for role in dict.fromkeys(row[1] for row in rows if row[2]):
        own = [row for row in rows if row[1] == role]
        own = own[::len(own) // POINTS + 1]
        for panel, field in ((panels[0], 3), (panels[1], 4)):
            panel.plot([(row[0] - started) / 60 for row in own], [row[field] for row in own], lw=1, label=role)
    for panel, points in ((panels[2], requests), (panels[3], lateness)):
        minutes = by_minute(points, started)
        for share in (0.5, 0.99):
            panel.plot([minute + 0.5 for minute, _ in minutes], [percentile(values, share) * 1000 for _, values in minutes],
                       lw=1, label=f"p{share * 100:.0f}")
        panel.set_yscale("log")
        for axis in (panel.yaxis.set_major_formatter, panel.yaxis.set_minor_formatter):
            axis(LogFormatter(minor_thresholds=(2, 0.5)))
    for panel in panels:
        panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(bottom=0)
    panels[-1].set_xlabel("minutes; grey: a fault, and half a minute after it")
    figure.savefig(path, format="svg", metadata={"Date": None})
