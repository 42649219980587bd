"""Takes out of a picture what it says beside the picture: EXIF with the place, XMP, comments, previews, what hangs on behind.

Only whole pieces of the file are left out, so that the picture itself stays as it is, byte for byte. What describes its
colours stays. The bytes are those of a file that storage.media has found whole; others may end in IndexError or struct.error.
"""

import struct

from storage.skeleton import (GIF_EXTENSION, GIF_IMAGE, JPEG_END, JPEG_MARKER, JPEG_SCAN, JPEG_WITHOUT_LENGTH, color_table,
                           skip_blocks)

JPEG_APPLICATIONS, JPEG_COMMENT = range(0xE0, 0xF0), 0xFE
# Pixel density, colour profile, and how the colours are coded. What else applications write says things about the picture.
JPEG_KEPT = {0xE0: (b"JFIF\x00",), 0xE2: (b"ICC_PROFILE\x00",), 0xEE: (b"Adobe",)}

# PNG, third edition: colours, density, transparency and animation; without those the picture would look different.
PNG_KEPT = {b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"cICP", b"mDCV", b"cLLI", b"bKGD", b"hIST", b"sPLT", b"pHYs",
            b"acTL", b"fcTL", b"fdAT"}
PNG_OPTIONAL = 0x20     # in the first letter of a chunk's name: the picture can be shown without it

# RFC 9649
WEBP_KEPT = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"}
WEBP_SAYS_MORE = 0x08 | 0x04    # in the flags of VP8X: there is EXIF, there is XMP

GIF_COMMENT, GIF_APPLICATION, GIF_END = 0xFE, 0xFF, b";"
GIF_KEPT = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")     # repetition, repetition, colour profile


def without(data, mime_type):
    """The bytes of the picture `data` without its metadata, the orientation in EXIF included."""
    return b"".join(CLEANERS[mime_type](data))


def _jpeg(data):
    start, at, scans = 0, 2, 0
    while marker := JPEG_MARKER.search(data, at):
        at, kind = marker.end(), data[marker.end() - 1]
        if kind == JPEG_END and scans:
            break
        scans += kind == JPEG_SCAN
        content = at + 2
        if kind not in JPEG_WITHOUT_LENGTH:
            at += max(2, int.from_bytes(data[at:content], "big"))
        if kind == JPEG_COMMENT or kind in JPEG_APPLICATIONS and not data.startswith(JPEG_KEPT.get(kind, ()), content):
            yield data[start : marker.start()]
            start = at
    yield data[start:at]


def _png(data):
    yield data[:8]
    at, kind = 8, b""
    while kind != b"IEND" and at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if not kind[0] & PNG_OPTIONAL or kind in PNG_KEPT:
            yield data[at : at + 12 + length]
        at += 12 + length


def _webp(data):
    chunks, at = [], 12
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        end = at + 8 + size + size % 2
        if kind == b"VP8X":
            chunks += [data[at : at + 8], bytes([data[at + 8] & ~WEBP_SAYS_MORE]), data[at + 9 : end]]
        elif kind in WEBP_KEPT:
            chunks.append(data[at:end])
        at = end
    yield struct.pack("<4sI4s", b"RIFF", 4 + sum(map(len, chunks)), b"WEBP")
    yield from chunks


def _gif(data):
    at = 13 + color_table(data[10])
    yield data[:at]
    while at < len(data) and data[at] in (GIF_EXTENSION, GIF_IMAGE):
        image = data[at] == GIF_IMAGE
        end = skip_blocks(data, at + (11 + color_table(data[at + 9]) if image else 2))
        kind = None if image else data[at + 1]
        if kind != GIF_COMMENT and (kind != GIF_APPLICATION or data.startswith(GIF_KEPT, at + 3)):
            yield data[at:end]
        at = end
    yield data[at : at + 1] if data[at : at + 1] == GIF_END else b""


CLEANERS = {"image/jpeg": _jpeg, "image/png": _png, "image/webp": _webp, "image/gif": _gif}
