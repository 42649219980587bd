"""What Pillow needs to judge a picture, taken out of its file, which is walked to its end and never held whole.

Nearly all of a picture is coded pixels, which nobody looks at here: a file of 50 MB has a skeleton of some hundred bytes, and
none has one of more than MOST. The walk itself says whether the picture is there to its end, and where that is: the functions
in SKELETONS give both, and raise Refused.
"""

import re
import struct
import zlib

WINDOW = 1 << 16
MOST = 4 << 20
PIECES = 100_000        # segments, chunks or blocks of the largest files have some thousand bytes each

JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
JPEG_SCAN, JPEG_END, JPEG_WITHOUT_LENGTH = 0xDA, 0xD9, (0x01, 0xD8, 0xD9)
JPEG_EXIF, JPEG_NOTES = 0xE1, (*range(0xE0, 0xF0), 0xFE)
# The fewest bits of a block of 8 x 8 in a frame with Huffman's codes, whose shortest has one bit: one for its mean and one for
# the end of the rest (ITU T.81 F.1.2), which a progressive frame may say for 32,767 blocks at once (G.1.2.2).
JPEG_FRAMES = {0xC0: 2, 0xC1: 2, 0xC2: 1}
PNG_FILTERS = tuple(bytes([kind]) for kind in range(5))
PNG_KEPT = (b"IHDR", b"PLTE", b"acTL", b"eXIf")
GIF_EXTENSION, GIF_IMAGE, GIF_LARGEST_CODE = 0x21, 0x2C, 12
# RFC 9649. Of a picture its decoder wants, before it decodes, the first of the partitions that RFC 6386 section 9.1 puts in
# front of the others, and that one has less than 2^19 bytes.
WEBP_KEPT = (b"VP8X", b"ANIM", b"VP8 ", b"VP8L", b"ALPH", b"EXIF")
WEBP_ENOUGH, WEBP_FRAMES = (1 << 19) + 16, 2
# The fewest bits of a macroblock there: its two modes of prediction, by the probabilities that sections 11.2 and 11.3 fix, in
# the cheapest case log2(256 / 145) + log2(256 / 142). What is kept back for the last bits makes no more than BACK bytes.
WEBP_BITS, WEBP_BACK = 1.67, 8


class Refused(Exception):
    """The file is not what its first bytes promise; the text goes on "the file starts like image/png, but"."""


class Window:
    """The bytes of a file by their places, as those of a bytes object, of which WINDOW are in memory at a time."""

    def __init__(self, file):
        self._file, self._size = file, file.seek(0, 2)
        self._start, self._block = 0, b""

    def __len__(self):
        return self._size

    def __getitem__(self, at):
        if isinstance(at, slice):
            self._file.seek(at.start or 0)
            return self._file.read(max(0, at.stop - (at.start or 0)))
        if not self._start <= at < self._start + len(self._block):
            self._move(at)
        return self._block[at - self._start]

    def _move(self, at):
        self._file.seek(at)
        self._start, self._block = at, self._file.read(WINDOW)

    def end_of(self, marker, at):
        """Where the next match of a pattern of two bytes ends, from `at` on; None where there is none."""
        while at < self._size - 1:
            if not self._start <= at < self._start + len(self._block) - 1:
                self._move(at)
            if found := marker.search(self._block, at - self._start):
                return self._start + found.end()
            at = self._start + len(self._block) - 1
        return None

    def checksum(self, start, end, value):
        """`value`, a CRC-32, taken on over the bytes from `start` to `end`."""
        for at in range(start, end, WINDOW):
            value = zlib.crc32(self[at : min(at + WINDOW, end)], value)
        return value


class _Skeleton(bytearray):
    """What is kept. Raises Refused when that is more than any real picture needs."""

    def keep(self, *parts):
        for part in parts:
            self += part
        if len(self) > MOST:
            raise Refused("it takes too much memory to read")


def jpeg(data):
    """The skeleton of a JPEG: what stands before its first scan, without notes but EXIF. ITU T.81 B.1."""
    kept, at, scans, least, coded = _Skeleton(b"\xff\xd8"), 2, 0, 0, 0
    for _ in range(PIECES):
        # Segments carry their length, and no marker but a restart stands inside the coded picture.
        content = data.end_of(JPEG_MARKER, at)
        if content is None:
            raise Refused("it ends too early")
        kind = data[content - 1]
        coded += content - 2 - at if scans else 0
        if kind == JPEG_END and scans:
            if 8 * coded < least:
                raise Refused("it holds no whole picture")
            return kept, content
        if kind in JPEG_FRAMES:
            least = JPEG_FRAMES[kind] * _blocks(data[content + 3 : content + 8 + 3 * 4])
        at = content + (0 if kind in JPEG_WITHOUT_LENGTH else max(2, int.from_bytes(data[content : content + 2], "big")))
        if not scans and at > content and (kind not in JPEG_NOTES or _is_exif(data, kind, content)):
            kept.keep(bytes((0xFF, kind)), data[content:at])
        scans += kind == JPEG_SCAN
    raise Refused("it is in too many pieces")


def _blocks(frame):
    """How many blocks of 8 x 8 this header of a frame announces, without those that only fill edges. ITU T.81 A.1.1, B.2.2."""
    height, width, count = struct.unpack_from(">HHB", frame.ljust(5, b"\x00"))
    ways = [(sampling >> 4, sampling & 15) for sampling in frame[6 : 5 + 3 * count : 3]]
    most_across, most_down = (max(1, *column) for column in zip(*ways, (1, 1)))
    return sum(-(-width * across // (8 * most_across)) * -(-height * down // (8 * most_down)) for across, down in ways)


def _is_exif(data, kind, content):
    return kind == JPEG_EXIF and data[content + 2 : content + 8] == b"Exif\x00\x00"


def png(data):
    """The skeleton of a PNG (third edition), all of whose checksums are right: header, colours, EXIF."""
    kept, at, drawn = _Skeleton(data[:8]), 8, b""
    for _ in range(PIECES):
        if at + 12 > len(data):
            break
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        end = at + 8 + length
        if data.checksum(at + 4, min(end, len(data)), 0).to_bytes(4, "big") != data[end : end + 4]:
            break
        if kind in PNG_KEPT and not drawn and length < MOST:
            kept.keep(data[at : end + 4])
        if kind == b"IDAT" and not drawn:
            drawn = _first_byte(data[at + 8 : min(end, at + WINDOW)])
        at = end + 4
        if kind == b"IEND" and drawn in PNG_FILTERS:
            kept.keep(_png_chunk(b"IDAT"), _png_chunk(b"IEND"))
            return kept, at
    raise Refused("it holds no whole picture")


def _first_byte(packed):
    """The first byte of a picture, which is no part of it, but says how its first row is coded."""
    try:
        return zlib.decompressobj().decompress(packed, 1)
    except zlib.error:
        raise Refused("it holds no whole picture") from None


def _png_chunk(kind):
    return bytes(4) + kind + zlib.crc32(kind).to_bytes(4, "big")


def gif(data):
    """The skeleton of a GIF: its screen and the frame of its first picture.

    https://www.w3.org/Graphics/GIF/spec-gif89a.txt; encoders forget the trailer, so whole pictures are enough.
    """
    at = 13 + color_table(data[10])
    kept, images = _Skeleton(data[:at]), 0
    try:
        while at < len(data) and data[at] in (GIF_EXTENSION, GIF_IMAGE):
            if data[at] == GIF_EXTENSION:
                at = skip_blocks(data, at + 2)
                continue
            content = at + 11 + color_table(data[at + 9])
            if not images:
                _check_codes(data[content - 1], data[content + 1 : content + 1 + data[content]])
                kept.keep(data[at:content], b"\x00;")
            at, images = skip_blocks(data, content), images + 1
    except IndexError:
        raise Refused("it ends too early") from None
    if not images:
        raise Refused("it holds no picture")
    return kept, at + 1


def _check_codes(least, block):
    """Refuses a picture whose first block holds no codes of LZW (appendix F there), as no text does. `least` is their size."""
    if not 1 <= least < GIF_LARGEST_CODE:
        raise Refused("it holds no whole picture")
    clear, bits, left = 1 << least, int.from_bytes(block, "little"), 8 * len(block)
    size = 0
    while left >= size:
        if not size:    # at the start, and where the encoder began anew
            known, size, first = clear + 2, least + 1, True
        code, bits, left = bits & (1 << size) - 1, bits >> size, left - size
        if code == clear + 1:
            return
        if code == clear:
            size = 0
            continue
        if code >= (clear if first else known + 1):
            raise Refused("it holds no whole picture")
        known, first = known + (not first), False
        if known == 1 << size and size < GIF_LARGEST_CODE:
            size += 1


def color_table(flags):
    """The bytes of the colour table that these flags of a GIF announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def skip_blocks(data, at):
    """Where the chain of blocks ends that begins at `at` in a GIF. Raises IndexError where it does not end."""
    while length := data[at]:
        at += length + 1
    return at + 1


def webp(data):
    """The skeleton of a WebP: its first two frames, each with the start of its picture."""
    kept, frames, end = _Skeleton(b"WEBP"), 0, 8 + int.from_bytes(data[4:8], "little")
    for kind, start, stop in _chunks(data, 12, end):
        if kind != b"ANMF":
            kept.keep(_shortened(data, kind, start, stop))
        elif frames < WEBP_FRAMES:
            frame = _Skeleton(data[start : start + 16])
            for chunk in _chunks(data, start + 16, stop):
                frame.keep(_shortened(data, *chunk))
            kept.keep(_webp_chunk(kind, frame))
            frames += 1
    return _webp_chunk(b"RIFF", kept), end


def _chunks(data, at, end):
    """(kind, start, end) of what the chunks between two places hold."""
    if end > len(data):
        raise Refused("it ends too early")
    for _ in range(PIECES):
        if at + 8 > end:
            return
        kind, size = struct.unpack("<4sI", data[at : at + 8])
        if at + 8 + size + size % 2 > end:
            raise Refused("it ends too early")
        yield kind, at + 8, at + 8 + size
        at += 8 + size + size % 2
    raise Refused("it is in too many pieces")


def _shortened(data, kind, start, stop):
    if kind == b"VP8 ":
        _check_partition(data[start : min(stop, start + 10)], stop - start)
    return _webp_chunk(kind, data[start : min(stop, start + WEBP_ENOUGH)]) if kind in WEBP_KEPT else b""


def _check_partition(head, size):
    """Refuses a frame whose first partition is not there, or is too small for its macroblocks. RFC 6386 section 9.1."""
    partition = int.from_bytes(head[:3], "little") >> 5
    width, height = (int.from_bytes(head[at : at + 2], "little") & 0x3FFF for at in (6, 8))
    blocks = -(-width // 16) * -(-height // 16)
    if partition > size - 10 or 8 * (partition + WEBP_BACK) < WEBP_BITS * blocks:
        raise Refused("it holds no whole picture")


def _webp_chunk(kind, content):
    return struct.pack("<4sI", kind, len(content)) + content + bytes(len(content) % 2)


SKELETONS = {"image/jpeg": jpeg, "image/png": png, "image/gif": gif, "image/webp": webp}
