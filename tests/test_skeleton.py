"""What a look at a picture costs: the same little memory for every file, however large and however it is made."""

import io
import itertools
import json
import struct
import subprocess
import sys
import zlib

import pytest
from PIL import Image

from storage.media import PROBE, TYPES, NotMedia
from storage.skeleton import SKELETONS, Refused, Window
from tests.media_samples import examine, image, png, video

JPEG, PNG, GIF, WEBP, MP4, _, WEBM = TYPES
SIZE = 24 << 20
PICTURE_MB, VIDEO_MB = 24, 48       # of the whole process: 17 with Pillow, 35 with PyAV, and what it keeps of the file

# A process of its own, since a child counts as no smaller than what it was started from.
MEASURE = """
import json, resource, subprocess, sys
with open(sys.argv[3], "rb") as file:
    told = subprocess.run([sys.executable, "-P", "-S", *sys.argv[1:3]], stdin=file, capture_output=True, check=True).stdout
print(json.dumps([json.loads(told.splitlines()[-1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""


def riff(*chunks):
    """A WebP of these chunks, (name, content)."""
    content = b"WEBP" + b"".join(struct.pack("<4sI", kind, len(data)) + data + bytes(len(data) % 2) for kind, data in chunks)
    return struct.pack("<4sI", b"RIFF", len(content)) + content


def jpeg_with(piece, before):
    """A JPEG with these bytes before its first marker of this kind, or behind the header of its scan."""
    data = image("JPEG")
    at = data.index(before) + (14 if before == b"\xff\xda" else 0)
    return data[:at] + piece + data[at:]


def gif_with_comment(block):
    """A GIF with SIZE bytes of comment in blocks like this one."""
    data = image("GIF", "P")
    return data[:781] + b"!\xfe" + (bytes([len(block)]) + block) * (SIZE // (len(block) + 1)) + b"\x00" + data[781:]


def large_webp_animation():
    """Two frames, each of half the size."""
    data = image("WEBP", frames=2)
    at = data.index(b"ANMF")
    frame = data[at + 8 : at + 24]
    picture = data[at + 32 : at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")] + bytes(SIZE // 2)
    kind = data[at + 24 : at + 28]
    large = frame + struct.pack("<4sI", kind, len(picture)) + picture + bytes(len(picture) % 2)
    return riff((b"VP8X", data[20:30]), (b"ANIM", bytes(6)), (b"ANMF", large), (b"ANMF", large))


NOTE = b"\xff\xe5\xff\xff" + bytes(65_533)
LARGE = {
    "jpeg-long-scan": (JPEG, lambda: jpeg_with(bytes(SIZE), b"\xff\xda")),
    "jpeg-many-notes": (JPEG, lambda: jpeg_with(NOTE * (SIZE // len(NOTE)), b"\xff\xe0")),
    "png-one-chunk": (PNG, lambda: png(8, 6, 8, None, before=[(b"IDAT", zlib.compress(bytes(SIZE), 0))])),
    "png-long-exif": (PNG, lambda: png(8, 6, 8, bytes(54), before=[(b"eXIf", bytes(SIZE))])),
    "png-text-that-unpacks": (PNG, lambda: png(8, 6, 8, bytes(54), before=[(b"zTXt", b"k\0\0" + zlib.compress(bytes(SIZE)))])),
    "gif-long-comment": (GIF, lambda: gif_with_comment(bytes(255))),
    "webp-long-picture": (WEBP, lambda: riff((b"VP8L", image("WEBP", lossless=True)[20:] + bytes(SIZE)))),
    "webp-long-notes": (WEBP, lambda: riff((b"VP8X", image("WEBP", frames=2)[20:30].replace(b"\x02", b"\x00", 1)),
                                           (b"XMP ", bytes(SIZE)), (b"VP8L", image("WEBP", lossless=True)[20:]))),
    "webp-animation": (WEBP, large_webp_animation),
    "mp4": (MP4, lambda: video("mp4") + struct.pack(">I4s", SIZE, b"free") + bytes(SIZE - 8)),
    "webm": (WEBM, lambda: video("webm", "libvpx") + bytes(SIZE)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_file_takes_little_memory(name, tmp_path):
    (mime_type, make), path = LARGE[name], tmp_path / "file"
    path.write_bytes(make())
    command = [sys.executable, "-c", MEASURE, PROBE, mime_type, path]
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    answer, kilobytes = json.loads(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
    assert "refused" not in answer and answer["width"] > 0
    assert kilobytes / 1024 < (PICTURE_MB if mime_type.startswith("image/") else VIDEO_MB)


@pytest.mark.parametrize("data, sentence", [
    (jpeg_with((b"\xff\xdb\xff\xff" + bytes(65_533)) * 70, b"\xff\xe0"), "too much memory"),
    (jpeg_with(b"\xff\xe5\x00\x02" * 200_000, b"\xff\xe0"), "too many pieces"),
    (png(8, 6, 8, bytes(54), before=[(b"teSt", b"")] * 120_000), "no whole picture"),
    (riff((b"VP8L", image("WEBP", lossless=True)[20:]), *[(b"teSt", b"")] * 120_000), "too many pieces"),
], ids=["jpeg-tables", "jpeg-segments", "png-chunks", "webp-chunks"])
def test_file_of_countless_pieces_is_refused(data, sentence, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(NotMedia, match=sentence):
        examine(path)


def test_text_that_cannot_be_unpacked_spoils_no_picture(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(png(8, 6, 8, bytes(54), before=[(b"zTXt", b"k\0\0 no deflate")]))
    assert examine(path).width == 8


def flat(form, mode="RGB", size=(1000, 1000), **options):
    """A picture of one colour, which no encoder can make smaller."""
    out = io.BytesIO()
    Image.new(mode, size).save(out, form, **options)
    return out.getvalue()


def skeleton_of(mime_type, data):
    return SKELETONS[mime_type](Window(io.BytesIO(data)))


@pytest.mark.parametrize("size", [(1, 1), (17, 33), (1000, 1000), (8, 4001), (4001, 3)], ids=str)
def test_picture_of_one_colour_has_enough_bits(size):
    for mode, sampling, progressive in itertools.product(("L", "RGB", "CMYK"), (0, 1, 2), (False, True)):
        skeleton_of(JPEG, flat("JPEG", mode, size, subsampling=sampling, progressive=progressive, optimize=True, quality=1))
    for method in (0, 4, 6):
        skeleton_of(WEBP, flat("WEBP", size=size, quality=0, method=method))


@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_with_too_few_bits_for_its_blocks_is_refused(progressive):
    data = flat("JPEG", progressive=progressive)
    scan = data.index(b"\xff\xda")
    start = scan + 2 + int.from_bytes(data[scan + 2 : scan + 4], "big")
    with pytest.raises(Refused, match="no whole picture"):
        skeleton_of(JPEG, data[:start] + b"<html>" * 100 + b"\xff\xd9")


@pytest.mark.parametrize("partition", [100, 1 << 18], ids=["too small", "not there"])
def test_webp_without_the_partition_for_its_macroblocks_is_refused(partition):
    picture = bytearray(flat("WEBP")[20:])
    picture[:3] = (int.from_bytes(picture[:3], "little") & 31 | partition << 5).to_bytes(3, "little")
    with pytest.raises(Refused, match="no whole picture"):
        skeleton_of(WEBP, riff((b"VP8 ", bytes(picture))))
