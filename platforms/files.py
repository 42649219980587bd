"""What a file of a post may be on a network, and what is done to an image so that it fits."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

JPEG, PNG, GIF, WEBP = "image/jpeg", "image/png", "image/gif", "image/webp"
MP4, QUICKTIME, WEBM = "video/mp4", "video/quicktime", "video/webm"
IMAGES, VIDEOS = (JPEG, PNG, GIF, WEBP), (MP4, QUICKTIME, WEBM)
STILLS = (JPEG, PNG, WEBP)      # what can be drawn anew, as a JPEG

MB = 1_048_576
MEASURES = {"width": ("width", "pixels"), "height": ("height", "pixels"), "pixels": ("number of pixels", ""),
            "short_side": ("shorter side", "pixels"), "aspect_ratio": ("aspect ratio", ""), "duration": ("duration", "seconds")}
SCALED = ("width", "height", "pixels", "short_side")
MOST_DECODED = 64_000_000       # pixels of a PNG or WebP that is drawn anew, which take 1.3 GB; a JPEG has no such bound


@dataclass(frozen=True)
class ImageLimits:
    """What one image may be: bytes, pixels and width/height ratios. None = the network sets no such bound.

    A still image is converted where it is of another type or over a bound (`mending`), not where it is under one.
    `max_pixels` bounds width times height, `max_short_side` the lesser of the two.
    """

    types: tuple[str, ...] = IMAGES
    max_bytes: int = 50 * MB
    min_width: int | None = None
    max_width: int | None = None
    min_height: int | None = None
    max_height: int | None = None
    max_pixels: int | None = None
    max_short_side: int | None = None
    min_aspect_ratio: float | None = None
    max_aspect_ratio: float | None = None


@dataclass(frozen=True)
class VideoLimits:
    """What one video may be: bytes, pixels, width/height ratios and seconds. None = the network sets no such bound."""

    types: tuple[str, ...] = VIDEOS
    max_bytes: int = 2048 * MB
    min_width: int | None = None
    max_width: int | None = None
    min_height: int | None = None
    max_height: int | None = None
    min_aspect_ratio: float | None = None
    max_aspect_ratio: float | None = None
    min_duration: float | None = None
    max_duration: float | None = None


@dataclass(frozen=True)
class Media:
    """One ready file of a post. `width`, `height` (pixels as displayed) and `duration` (seconds) are None if unknown.

    `animated` is a PNG or WebP of several frames.
    """

    mime_type: str
    bytes: int
    url: str
    width: int | None = None
    height: int | None = None
    duration: float | None = None
    animated: bool = False
    # open(offset=0, length=None): a file on these bytes of it, to be read forwards and closed.
    open: Callable[..., BinaryIO] | None = field(default=None, compare=False)

    @property
    def is_video(self):
        return self.mime_type.startswith("video/")


@dataclass(frozen=True)
class Mending:
    """How an image is made to fit: as a JPEG of at most so many pixels, as displayed, and bytes."""

    width: int
    height: int
    max_bytes: int


def sendable(limits: ImageLimits | VideoLimits) -> tuple[str, ...]:
    """The types that a caller may send: those that the network takes, and those that are converted to one of them."""
    return (*limits.types, *(kind for kind in STILLS if JPEG in limits.types and kind not in limits.types))


def mending(limits: ImageLimits, item: Media) -> Mending | None:
    """What makes an image fit that is of another type or over a bound; None where it is neither, or cannot be mended."""
    sizes = _sizes(item)
    if not sizes or not _mendable(limits, item):
        return None
    scales = {measure: most / sizes[measure] for measure in SCALED if (most := getattr(limits, f"max_{measure}"))}
    if "pixels" in scales:
        scales["pixels"] = math.sqrt(scales["pixels"])
    scale = min([1.0, *scales.values()])
    if scale == 1 and item.mime_type in limits.types and item.bytes <= limits.max_bytes:
        return None
    return Mending(max(1, int(item.width * scale)), max(1, int(item.height * scale)), limits.max_bytes)


def _mendable(limits, item):
    """Whether an image can be drawn anew as a JPEG; what moves cannot."""
    decodable = item.mime_type == JPEG or (item.width or 0) * (item.height or 0) <= MOST_DECODED
    return item.mime_type in STILLS and not item.animated and JPEG in limits.types and decodable


def _sizes(item):
    """The measures of a picture, none where its width and height are not known."""
    if not (item.width and item.height):
        return {}
    return {"width": item.width, "height": item.height, "pixels": item.width * item.height,
            "short_side": min(item.width, item.height), "aspect_ratio": item.width / item.height}


def problems_of(limits: ImageLimits | VideoLimits, item: Media) -> Iterator[tuple[str, str]]:
    """(rule, sentence) of everything that is wrong with a file, and cannot be mended."""
    mended = _mendable(limits, item)
    if item.mime_type not in limits.types and not mended:
        yield "media_type", f"takes {names(limits.types)} here, not {item.mime_type}"
    if item.bytes > limits.max_bytes and not mended:
        yield "media_bytes", f"the file has {item.bytes} bytes; {limits.max_bytes} are allowed"
    sizes = _sizes(item)
    for measure, value in (sizes if item.duration is None else {**sizes, "duration": item.duration}).items():
        least, most = getattr(limits, f"min_{measure}", None), getattr(limits, f"max_{measure}", None)
        noun, unit = MEASURES[measure]
        is_so = f"the {noun} is {_number(value)} {unit}".rstrip()
        if least is not None and value < least:
            yield f"media_{measure}", f"{is_so}; at least {_number(least)} is needed"
        if most is not None and value > most and not (mended and measure in SCALED):
            yield f"media_{measure}", f"{is_so}; at most {_number(most)} is allowed"


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def names(values) -> str:
    """A list, as people write it."""
    return ", ".join(values)
