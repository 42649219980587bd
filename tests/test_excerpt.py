"""A look at a large file in the store reads little of it, and finds what a look at all of it would."""

import io
import os
import struct

import pytest

from storage import excerpt
from storage.media import NotMedia
from tests.media_corpus import FAKES, QUIET_X265, REAL
from tests.media_samples import HTML, box, examine, fragmented, ftyp, video

MB = 1 << 20
LARGE = 80 * MB


class Store:
    """One object, of which it knows how much was read."""

    def __init__(self, data):
        self._data, self.read = data, 0

    def open(self, key, offset=0, length=None):
        piece = self._data[offset : offset + length if length else None]
        self.read += len(piece)
        return io.BytesIO(piece)


def swollen(data, more=LARGE):
    """The same MP4 with an mdat box, before its movie header, that is larger by so much."""
    at = data.index(b"mdat") - 4
    size = struct.unpack_from(">I", data, at)[0]
    return data[:at] + struct.pack(">I", size + more) + data[at + 4 : at + size] + bytes(more) + data[at + size :]


LARGE_FILES = {
    "mp4-moov-at-end": ("video/mp4", swollen(video("mp4"))),
    "mov-iphone": ("video/quicktime", swollen(video("mov", "libx265", tag="hvc1", codec_options=QUIET_X265, turn=90, audio="aac"))),
    "mp4-faststart": ("video/mp4", swollen(video("mp4", movflags="faststart"))),
    "mp4-notes-behind": ("video/mp4", swollen(video("mp4")) + box(b"uuid", bytes(MB))),
    "mp4-open-end": ("video/mp4", video("mp4", movflags="faststart") + struct.pack(">I4s", 0, b"mdat") + bytes(LARGE)),
    "webm": ("video/webm", video("webm", "libvpx", live="1") + b"\xec\x01" + LARGE.to_bytes(7, "big") + bytes(LARGE)),
}
LARGE_FAKES = {
    "html": HTML * (LARGE // len(HTML)), "no-movie-header": ftyp(b"isom", b"mp42") + box(b"mdat", bytes(LARGE)),
    "cut": swollen(video("mp4", movflags="faststart"))[: 70 * MB], "html-in-mdat": ftyp(b"qt  ") + box(b"mdat", HTML * (LARGE // len(HTML))),
    "webm-without-tracks": b"\x1a\x45\xdf\xa3" + HTML * (LARGE // len(HTML)),
}


def seen(store, size, mime_type, path):
    with open(path, "w+b") as file:
        excerpt.copy(store, "key", size, mime_type, file)
    assert os.path.getsize(path) == size
    return examine(path)


@pytest.mark.parametrize("name", LARGE_FILES)
def test_a_large_video_is_measured_by_a_small_part(tmp_path, name):
    mime_type, data = LARGE_FILES[name]
    (tmp_path / "whole").write_bytes(data)
    store, path = Store(data), tmp_path / "excerpt"
    assert seen(store, len(data), mime_type, path) == examine(tmp_path / "whole")
    assert store.read < 12 * MB and os.stat(path).st_blocks * 512 < 12 * MB


@pytest.mark.parametrize("name", LARGE_FAKES)
def test_a_large_fake_is_refused_all_the_same(tmp_path, name):
    data = LARGE_FAKES[name]
    for mime_type in ("video/mp4", "video/webm"):
        with pytest.raises(NotMedia):
            seen(Store(data), len(data), mime_type, tmp_path / "excerpt")


def test_fragments_are_copied_whole_since_only_all_of_them_tell_the_length(tmp_path):
    data = fragmented()
    fragments = data[data.index(b"moof") - 4 :]
    data = data + box(b"free", bytes(LARGE)) + fragments * 12
    store = Store(data)
    (tmp_path / "whole").write_bytes(data)
    assert seen(store, len(data), "video/mp4", tmp_path / "excerpt") == examine(tmp_path / "whole")
    assert store.read >= len(data)


@pytest.mark.parametrize("first, more", [(b"\0\0\0\4moov", 0), (b"\0\0\0\1moov" + b"\xff" * 8, 0), (b"\0\0\0\x0bmdat", 3)],
                         ids=["shorter than its header", "longer than a file can be", "odd"])
def test_boxes_that_lie_end_the_walk(tmp_path, first, more):
    data = ftyp(b"isom", b"mp42") + first + bytes(LARGE)
    with pytest.raises(NotMedia):
        seen(Store(data), len(data), "video/mp4", tmp_path / "excerpt")


def test_small_files_are_copied_whole(tmp_path):
    for data in (REAL["jpeg"][0], REAL["mp4-moov-at-end"][0], FAKES["html"][0]):
        file = io.BytesIO()
        excerpt.copy(Store(data), "key", len(data), "video/mp4", file)
        assert file.getvalue() == data
