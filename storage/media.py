"""What a media file is, decided from its bytes: type, width, height, duration."""

import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

import puremagic

from storage import children, signatures
from storage.figures import LOOK_SECONDS, LOOKS, timed

TYPES = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
# What new_key makes; the group is the team.
KEY = re.compile(rf"(team_[0-9A-Za-z]{{22}})/(?:live|test)/[\w-]{{32}}\.(?:{'|'.join(TYPES.values())})", re.ASCII)
HEAD_BYTES = 4096
PROBE = Path(__file__).with_name("probe.py")
PROBE_SECONDS = 15


@dataclass(frozen=True)
class Facts:
    """Measures of a file: pixels as displayed (EXIF orientation and rotation applied), seconds; None where unknown.

    `animated` is a PNG or WebP of several frames; of a GIF it is not known.
    """

    mime_type: str
    width: int | None
    height: int | None
    duration: float | None
    animated: bool = False


class NotMedia(Exception):
    """The bytes are none of the seven types; the text is one sentence that may be shown."""


class Unfinished(RuntimeError):
    """A look was broken off at its deadline, without having taken the time that it may; it may be tried again."""


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


def examine(file):
    """The Facts of the open `file` (binary, and one of the system's): its first bytes and its structure must agree on the type.

    The structure is read by a child process with limits on time and memory. Raises NotMedia where it cannot read the file
    within them, Unfinished where this machine gave it no time, and RuntimeError where it failed through no fault of the file.
    """
    with timed(LOOKS, LOOK_SECONDS, known=(NotMedia, Unfinished), good="media"):
        return _examine(file)


def _examine(file):
    file.flush()
    head, size = os.pread(file.fileno(), HEAD_BYTES, 0), os.fstat(file.fileno()).st_size
    mime_type = sniff(head)
    if second := signatures.second(head, os.pread(file.fileno(), signatures.TAIL, max(0, size - signatures.TAIL))):
        raise NotMedia(f"the file starts like {mime_type}, but it is {second} as well")
    return _judge(mime_type, *children.run(PROBE, mime_type, file=file, seconds=PROBE_SECONDS))


def new_key(owner, mime_type):
    """A key that nobody can guess, under the prefix of the owner's `team_id` and `mode`; the extension comes from our table."""
    return f"{owner.team_id}/{owner.mode}/{secrets.token_urlsafe(24)}.{TYPES[mime_type]}"


def _hint(head):
    try:
        guesses = [guess.mime_type for guess in puremagic.magic_string(head)]
    except puremagic.PureError:
        return ""
    return next((f"; it may be {guess}" for guess in guesses if guess and guess not in TYPES), "")


def _judge(mime_type, status, output, errors):
    if status in children.CRASHED or status == children.TOO_MUCH_WORK:
        raise NotMedia(f"the file starts like {mime_type}, but it cannot be read")
    if status is None:
        raise Unfinished(f"nothing was found out about the file in {PROBE_SECONDS} s")
    if status != 0:
        raise RuntimeError(f"storage/probe.py ended with status {status}: {errors.decode(errors='replace')[-200:]}")
    answer = json.loads(output)
    if "refused" in answer:
        raise NotMedia(f"the file starts like {mime_type}, but {answer['refused']}")
    return Facts(mime_type, answer["width"], answer["height"], answer.get("duration"), answer.get("animated", False))
