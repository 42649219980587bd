"""What a look at a stored file needs of it, in a file with holes: of a video of 2 GB, mostly a few megabytes."""

import shutil
import struct

MEGABYTE = 1 << 20
WHOLE = 64 * MEGABYTE       # up to here a file is copied whole; pictures are never larger
HEAD = 8 * MEGABYTE         # what storage/probe.py lets PyAV read to find the tracks is less
TAIL = MEGABYTE             # WebM's list of places and names, and what tells an archive
STRUCTURE = 64 * MEGABYTE   # of boxes behind the head; the movie header of ten hours has 20 MB
BOXES = 64                  # a file of more is one of fragments, whose length only all of them together tell

MEDIA_BOXES = (b"mdat", b"free", b"skip", b"wide")


class _Spread(Exception):
    """What matters is all over the file."""


def copy(objects, key, size, mime_type, file):
    """Copies from the store into the empty `file` what storage.media.examine needs of the object, all at its place.

    `file` has the object's `size` afterwards, with holes where the pictures of a video are, which nobody looks at; small files
    and those in fragments are copied whole. Raises StoreUnavailable.
    """
    parts = [(0, size)]
    if size > WHOLE:
        try:
            parts = [(0, HEAD), *(_structure(objects, key, size) if mime_type != "video/webm" else ()), (size - TAIL, size)]
        except _Spread:
            pass
    for start, end in parts:
        file.seek(start)
        with objects.open(key, start, end - start) as body:
            shutil.copyfileobj(body, file)
    file.truncate(size)


def _structure(objects, key, size):
    """(start, end) of what lies behind the head of an MP4 or QuickTime file and is no picture. ISO/IEC 14496-12 section 4.2."""
    at, parts = 0, []
    for _ in range(BOXES):
        if at + 8 > size:
            return parts
        kind, end = _box(objects, key, at, size)
        if kind not in MEDIA_BOXES and end > HEAD or at >= HEAD:
            # Of a box of pictures behind the head, its own header.
            parts.append((at, end if kind not in MEDIA_BOXES else min(at + 16, end)))
        if sum(end - start for start, end in parts) > STRUCTURE:
            break
        at = end
    raise _Spread


def _box(objects, key, at, size):
    with objects.open(key, at, min(16, size - at)) as body:
        header = body.read(16)
    (length, kind), least = struct.unpack_from(">I4s", header), 8
    if length == 1:
        length, least = int.from_bytes(header[8:], "big"), 16
    # A box that goes on to the end, or claims to go further, or to be shorter than its header, which ends every reading.
    end = at + length if length >= least else size
    return kind, min(end, size)
