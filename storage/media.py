"""What a media file is, decided from its bytes: type, width, height, duration."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import puremagic

from storage import signatures

TYPES = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
HEAD_BYTES = 4096
PROBE = Path(__file__).with_name("probe.py")
PROBE_SECONDS = 15
OUT_OF_TIME = (None, -signal.SIGXCPU)
CRASHED = tuple(-number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))


@dataclass(frozen=True)
class Facts:
    """Measures of a file: pixels as displayed (EXIF orientation and rotation applied), seconds; None where unknown."""

    mime_type: str
    width: int | None
    height: int | None
    duration: float | None


class NotMedia(Exception):
    """The bytes are none of the seven types; the text is one sentence that may be shown."""


def is_video(mime_type):
    """Whether this media type is a video; animated GIF, PNG and WebP are images."""
    return mime_type.startswith("video/")


def sniff(head):
    """The one of TYPES that `head` begins like: the first 4,096 bytes of a file or more, or all that it has.

    The strict table decides. puremagic takes HTML behind three magic bytes for an image, AVIF for MP4, and MP4 of some
    cameras for nothing at all; so it is asked only what refused bytes may be instead. Raises NotMedia.
    """
    if not head:
        raise NotMedia("the file is empty")
    mime_type = signatures.match(head)
    if mime_type is None:
        raise NotMedia(f"the file is no JPEG, PNG, GIF, WebP, MP4, MOV or WebM{_hint(head)}")
    return mime_type


def examine(path):
    """The Facts of the local file `path`: its first bytes and its structure must agree on the type.

    The structure is read by a child process with limits on time and memory. A video whose container was recognised before
    the child ran out of time is taken without measures; everything else that it cannot read raises NotMedia. RuntimeError
    says that the child itself failed, through no fault of the file.
    """
    with open(path, "rb") as file:
        mime_type = sniff(file.read(HEAD_BYTES))
        return _judge(mime_type, *_probe(file, mime_type))


def _hint(head):
    try:
        guesses = [guess.mime_type for guess in puremagic.magic_string(head)]
    except puremagic.PureError:
        return ""
    return next((f"; it may be {guess}" for guess in guesses if guess and guess not in TYPES), "")


def _probe(file, mime_type):
    """The exit status of the child, None past its deadline, and what it wrote to its output and to its errors."""
    # The child finds its packages where this process does and knows nothing else of it. -P keeps this folder off the path,
    # where secrets.py would stand before the standard library's.
    command = [sys.executable, "-P", "-S", str(PROBE), mime_type]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        child = subprocess.run(command, stdin=file, capture_output=True, env=environment, timeout=PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        return None, late.stdout or b"", b""
    return child.returncode, child.stdout, child.stderr


def _judge(mime_type, status, output, errors):
    lines = output.splitlines()
    answer = json.loads(lines[-1]) if lines else None
    if status == 0 and "refused" in answer:
        raise NotMedia(f"the file starts like {mime_type}, but {answer['refused']}")
    if status == 0:
        return Facts(mime_type, answer["width"], answer["height"], answer.get("duration"))
    if status in OUT_OF_TIME and answer == {}:
        return Facts(mime_type, None, None, None)
    if status in CRASHED or status == -signal.SIGXCPU:
        raise NotMedia(f"the file starts like {mime_type}, but it cannot be read")
    raise RuntimeError(f"storage/probe.py ended with status {status}: {errors.decode(errors='replace')[-200:]}")
