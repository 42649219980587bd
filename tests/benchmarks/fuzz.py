"""Spoilt media files without end: none may crash the process that asks, take its memory or hold it up.

Run: python -m tests.benchmarks.fuzz --minutes 60 [--seed 1]

Every file of the corpus, real and pretended, is the start of mutants: bits turned, bytes overwritten by sizes that lie, pieces cut,
doubled, moved and taken from another file. Each goes the whole way (signature, then structure in the child process), and many
more only through the signatures, which is what runs in the process itself. A failure is kept in the folder that is printed.
"""

import argparse
import random
import resource
import struct
import tempfile
import time
from collections import Counter
from pathlib import Path

from storage.media import PROBE_SECONDS, NotMedia, sniff
from tests.media_corpus import FAKES, REAL
from tests.media_samples import examine

SEEDS = {name: data for name, (data, *_) in {**REAL, **FAKES}.items() if 0 < len(data) < 200_000}
HEADS = 50          # mutants that only pass the signatures, for each that goes the whole way
HEAD_BYTES = 4096
LIES = [0, 1, 7, 8, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
LATE = PROBE_SECONDS + 5


def mutant(chance, data):
    """`data` with one to eight things wrong."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        chance.choice((_turn_bit, _lie, _lie, _cut, _double, _move, _graft, _truncate))(chance, data)
    return bytes(data)


def _turn_bit(chance, data):
    data[_place(chance, data)] ^= 1 << chance.randrange(8)


def _lie(chance, data):
    form = chance.choice((">B", ">H", "<H", ">I", "<I", ">Q"))
    lie = struct.pack(form, chance.choice(LIES) & (1 << 8 * struct.calcsize(form)) - 1)
    at = _place(chance, data)
    data[at : at + len(lie)] = lie


def _cut(chance, data):
    at = _place(chance, data)
    del data[at : at + chance.randint(1, 64)]
    data.extend(b"\0" * (not data))


def _double(chance, data):
    at = _place(chance, data)
    data[at:at] = data[at : at + chance.randint(1, 512)] * chance.choice((1, 1, 9))


def _move(chance, data):
    at, length = _place(chance, data), chance.randint(1, 256)
    piece = data[at : at + length]
    del data[at : at + length]
    to = chance.randint(0, len(data))
    data[to:to] = piece


def _graft(chance, data):
    other = chance.choice(list(SEEDS.values()))
    at, start = _place(chance, data), chance.randrange(len(other))
    data[at:] = other[start : start + 4096] if chance.random() < 0.5 else other[start : start + 64] + data[at:]


def _truncate(chance, data):
    del data[_place(chance, data) + 1 :]


def _place(chance, data):
    """Mostly in the first bytes, where the structure is; in the movie header of files that have it at their end."""
    if not data:
        data.append(0)
    if (moov := data.rfind(b"moov")) > 0 and chance.random() < 0.4:
        return min(len(data) - 1, moov + chance.randrange(800))
    return chance.randrange(min(len(data), chance.choice((64, 1024, len(data)))))


def fuzz(seconds, seed, folder):
    """Tries mutants for so long; returns how each ended, as a Counter, and the failures as (file, what happened)."""
    chance, ends, failures = random.Random(seed), Counter(), []
    deadline, names, path = time.monotonic() + seconds, list(SEEDS), Path(folder) / "mutant"
    while time.monotonic() < deadline:
        name = chance.choice(names)
        data, started = mutant(chance, SEEDS[name]), time.monotonic()
        path.write_bytes(data)
        try:
            facts = examine(path)
            end = "accepted, of a real file" if name in REAL else f"accepted as {facts.mime_type}, of what was refused as {name}"
            if facts.width is None:
                end += ", without measures"
        except NotMedia as refused:
            end = "refused by its " + ("structure" if "starts like" in str(refused) else "first bytes")
        except Exception as error:
            end = "FAILED"
            failures.append((_keep(path, data, len(failures)), f"{name}: {error!r}"))
        if time.monotonic() - started > LATE:
            failures.append((_keep(path, data, len(failures)), f"{name}: took {time.monotonic() - started:.0f} s"))
        ends[end] += 1
        for _ in range(HEADS):
            _sniff(mutant(chance, SEEDS[chance.choice(names)][:HEAD_BYTES]), ends, failures, path)
    return ends, failures


def _sniff(head, ends, failures, path):
    ends["first bytes alone"] += 1
    try:
        sniff(head)
    except NotMedia:
        pass
    except Exception as error:
        failures.append((_keep(path, head, len(failures)), f"first bytes: {error!r}"))


def _keep(path, data, number):
    kept = path.with_name(f"failure-{number}")
    kept.write_bytes(data)
    return kept


def child_megabytes():
    """The most memory that a child of this process ever had."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="posthorn-fuzz-")
    print(f"{len(SEEDS)} files to spoil; failures are kept in {folder}", flush=True)
    ends, failures = fuzz(given.minutes * 60, given.seed, folder)
    for end, number in ends.most_common():
        print(f"{number:9}  {end}")
    print(f"largest child {child_megabytes():.0f} MB, this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    for path, what in failures:
        print(f"FAILURE {path}: {what}")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
