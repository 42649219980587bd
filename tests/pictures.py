"""Makes pictures with something to lose: places, comments, orientations, profiles; and finds out what came of them."""

import io
import os
import struct
import zlib
from functools import cache

from PIL import Image, ImageCms

CANARY = b"canary at home"
RED, GREEN, BLUE, WHITE = (230, 20, 20), (20, 200, 20), (20, 20, 230), (255, 255, 255)
FORMS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/gif": "GIF"}
# What has to be done to an upright picture so that EXIF turns it upright again.
STORED = {1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
          5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
          8: Image.Transpose.ROTATE_270}


def quarters(width=96, height=64, mode="RGB"):
    """A picture that shows which way is up: red, green, blue and white, from the upper left to the lower right."""
    image = Image.new("RGB", (width, height))
    for number, colour in enumerate((RED, GREEN, BLUE, WHITE)):
        left, top = number % 2 * (width // 2), number // 2 * (height // 2)
        image.paste(colour, (left, top, left + width - width // 2, top + height - height // 2))
    return image.convert(mode)


@cache
def noise(width, height):
    """A picture that nothing can compress."""
    return Image.frombytes("RGB", (width, height), os.urandom(width * height * 3))


def encoded(image, mime_type, **options):
    """The bytes of a picture; WebP without loss unless asked otherwise."""
    if mime_type == "image/webp":
        options = {"lossless": True, "method": 0, **options}
    out = io.BytesIO()
    image.save(out, FORMS[mime_type], **options)
    return out.getvalue()


def turned(mime_type, orientation, image=None, **options):
    """The bytes of a picture (the quarters) that is upright once its EXIF orientation is obeyed."""
    image = image or quarters()
    stored = image if STORED[orientation] is None else image.transpose(STORED[orientation])
    return encoded(stored, mime_type, exif=exif(orientation), **options)


def exif(orientation=1):
    """EXIF with a place and a comment."""
    tags = Image.Exif()
    tags[0x0112], tags[0x010E] = orientation, CANARY.decode()
    tags.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 36.0), 27: CANARY})
    return tags.tobytes()


@cache
def profile(name="sRGB"):
    """A colour profile."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile(name)).tobytes()


def with_segments(jpeg, *segments):
    """A JPEG with more segments, each (marker, content), behind its first."""
    at = 4 + int.from_bytes(jpeg[4:6], "big")
    added = b"".join(b"\xff" + bytes([kind]) + struct.pack(">H", len(content) + 2) + content for kind, content in segments)
    return jpeg[:at] + added + jpeg[at:]


def with_chunks(png, *chunks):
    """A PNG with more chunks, each (name, content), before its end."""
    added = b"".join(struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
                     for kind, content in chunks)
    return png[:-12] + added + png[-12:]


def with_riff(webp, *chunks):
    """A WebP with more chunks at its end, and flags that say so."""
    added = b"".join(kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2) for kind, content in chunks)
    body = webp[12:] + added
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def opened(data):
    """The picture in these bytes, read whole."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def corners(image):
    """The nearest of the four colours in each quarter, from the upper left to the lower right."""
    (width, height), image = image.size, image.convert("RGB")
    spots = [(width * x // 4, height * y // 4) for y in (1, 3) for x in (1, 3)]
    return [min((RED, GREEN, BLUE, WHITE), key=lambda colour: _distance(colour, image.getpixel(spot))) for spot in spots]


def _distance(one, other):
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))
