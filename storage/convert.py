"""The child process of storage.renditions: makes one untrusted picture fit, under tight limits, and says how as a line of JSON.

Run by its path; the picture is its standard input, and its last argument the number of the file that takes what comes of it.
"""

import io
import json
import math
import sys

from PIL import Image, ImageCms, PngImagePlugin, WebPImagePlugin  # noqa: F401, else Pillow loads 40 formats to find WebP

from storage.metadata import without
from storage.probe import EXIF_ON_ITS_SIDE, MAX_PIXELS, MEGABYTE, MOVING, orientation, restrict

CPU_SECONDS = 40
# The costliest that is let in, a WebP of 64 megapixels, takes 1.3 GB; a JPEG of 200 megapixels is decoded at half its size.
ADDRESS_SPACE = 2048 * MEGABYTE
RESULT = 64 * MEGABYTE          # larger than any original

JPEG, GIF = "image/jpeg", "image/gif"
QUALITIES = (90, 85, 80, 70, 60)
STEP = 0.8                      # of each side, from one try to the next once the lowest quality is too large
STEPS = 20                      # to less than a hundredth of each side
MOST_DRAWN = 48_000_000         # pixels of what is drawn anew: more than any network shows
LONGEST_SIDE = 65_500           # of a JPEG, as far as its encoder goes
LARGEST_PROFILE = 65_000        # bytes: a larger colour profile is applied, not kept

SPACES = {"RGB": b"RGB ", "L": b"GRAY"}     # of colours, as a profile names its own
# What turns a picture upright, by its EXIF orientation.
UPRIGHT = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
           5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
           8: Image.Transpose.ROTATE_90}


class Refused(Exception):
    """The picture cannot be made to fit; the text is the end of a sentence that begins with "it"."""


def convert(data, mime_type, max_bytes, box=None):
    """What goes out in place of the picture `data`: bytes, media type, size in pixels as displayed. Raises Refused.

    Without `box`, only what is not the picture goes, and a picture that EXIF turns is drawn upright. With one, what comes out
    is a JPEG of this (width, height) at most. Either way it has `max_bytes` at most.
    """
    image = Image.open(io.BytesIO(data), formats=[mime_type.removeprefix("image/")])
    turn = orientation(image.info.get("exif", b""), Image.Exif())
    size = image.size[::-1] if turn in EXIF_ON_ITS_SIDE else image.size
    if mime_type == GIF or turn not in UPRIGHT and (box is None or mime_type == JPEG and box == size):
        clean = without(data, mime_type)
        if len(clean) <= max_bytes:
            return clean, mime_type, size
    if mime_type == GIF or mime_type in MOVING and image.is_animated:
        raise Refused("it is an animation")
    drawn, size = draw(image, turn, _within(size, box), max_bytes)
    return drawn, JPEG, size


def draw(image, turn, size, max_bytes):
    """A picture upright, on white, as a JPEG of this size or less in `max_bytes` at most; and its size. Raises Refused."""
    stored = size[::-1] if turn in EXIF_ON_ITS_SIDE else size
    image.draft(None, stored)       # decodes a JPEG at a half, a quarter or an eighth of its size
    profile = image.info.get("icc_profile", b"")
    image = _flat(_resized(_plain(image), stored))
    if turn in UPRIGHT:
        image = image.transpose(UPRIGHT[turn])
    image, profile = _coloured(image, profile)
    image.info = {}                 # Pillow would write its comment
    for step in range(STEPS):
        smaller = _resized(image, _scaled(size, STEP**step))
        for quality in QUALITIES if step == 0 else QUALITIES[-1:]:
            out = io.BytesIO()
            smaller.save(out, "JPEG", quality=quality, icc_profile=profile)
            if out.tell() <= max_bytes:
                return out.getvalue(), smaller.size
    raise Refused("it cannot be made small enough")


def _within(size, box):
    """The size to draw, for one that may be too large for the box (None: any) or for us."""
    width, height = size
    bounds = [LONGEST_SIDE / max(size), math.sqrt(MOST_DRAWN / (width * height))]
    return _scaled(size, min(1, *bounds, *(most / side for most, side in zip(box or size, size))))


def _scaled(size, scale):
    """A size of the same shape; where that cannot be, nearer to a square, so that no bound on the shape is broken."""
    short, long = sorted(size)
    low = max(1, int(short * scale))
    high = max(1, min(int(long * scale), low * long // short))
    return (low, high) if size[0] == short else (high, low)


def _plain(image):
    """Without palette and with 8 bits for each colour; deeper ones are grey here, since Pillow itself flattens the others."""
    if image.mode.startswith("I"):
        return image.convert("I").point(lambda value: value / 256).convert("L")
    if image.mode in ("P", "PA", "1") or "transparency" in image.info:
        return image.convert("RGBA" if image.has_transparency_data else "RGB")
    return image


def _resized(image, size):
    return image if image.size == size else image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _flat(image):
    """Without transparency: on white."""
    if not image.has_transparency_data:
        return image
    image = image if image.mode == "RGBA" else image.convert("RGBA")
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _coloured(image, profile):
    """In colours that every network shows, with the profile that belongs to them, None for sRGB."""
    if image.mode in SPACES and len(profile) <= LARGEST_PROFILE:
        return image, profile if profile[16:20] == SPACES[image.mode] else None
    try:
        own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        return ImageCms.profileToProfile(image, own, ImageCms.createProfile("sRGB"), outputMode="RGB"), None
    except (ImageCms.PyCMSError, OSError):      # no profile, or none of these colours
        return image.convert("RGB"), None


def _answer(mime_type, max_bytes, *box_and_out):
    """The answer, after what comes of the picture is written; that it goes out as it is, is an answer too."""
    data, (*box, out) = sys.stdin.buffer.read(), map(int, box_and_out)
    try:
        result, kind, (width, height) = convert(data, mime_type, int(max_bytes), tuple(box) or None)
    except Refused as refused:
        return {"refused": str(refused)}
    except MemoryError:
        return {"refused": "it takes too much memory to read"}
    except Exception:       # Pillow has many for a picture that is broken
        return {"refused": "it cannot be read"}
    if result == data:
        return {"same": True, "width": width, "height": height}
    with open(out, "wb") as file:
        file.write(result)
    return {"mime_type": kind, "bytes": len(result), "width": width, "height": height}


if __name__ == "__main__":
    restrict(ADDRESS_SPACE, CPU_SECONDS, RESULT)
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2    # Pillow refuses at twice this number
    PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY  # real colour profiles are larger than its 1 MB
    print(json.dumps(_answer(*sys.argv[1:])))
