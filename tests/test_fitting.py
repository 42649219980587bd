"""Every network gets images that it takes, whatever was uploaded: what is to be done is told from its limits, and done."""

import tempfile
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from PIL import Image

from platforms.files import GIF, JPEG, MP4, PNG, STILLS, WEBM, WEBP, ImageLimits, Media, Mending, mending, problems_of, sendable
from platforms.registry import PLATFORMS
from storage.renditions import Recipe, _converted
from tests.media_samples import examine
from tests.pictures import CANARY, encoded, exif, noise

MB = 1_048_576
LARGE = 1_600       # each side of a noise of 7.7 MB
IMAGE_KINDS = [(network(), name) for network in PLATFORMS for name, kind in network.post_types.items() if kind.images[1]]


def bounds(**values):
    return ImageLimits(max_bytes=9, **values)


def still(mime_type=JPEG, size=MB, width=1080, height=1080, **more):
    return Media(mime_type, size, "https://media.test/still", width, height, **more)


def limits_of(platform, name, mime_type=JPEG):
    """What an image of this type may be in a post of this type."""
    return platform.media_limits(name, still(mime_type))


@pytest.mark.parametrize("limits, item, needed", [
    pytest.param(ImageLimits(), still(), None, id="within"),
    pytest.param(ImageLimits(max_bytes=MB), still(), None, id="just within"),
    pytest.param(ImageLimits(types=(JPEG,), max_bytes=9), still(PNG, 5), Mending(1080, 1080, 9), id="of another type"),
    pytest.param(ImageLimits(max_bytes=MB), still(PNG, MB + 1), Mending(1080, 1080, MB), id="too many bytes"),
    pytest.param(bounds(max_width=540), still(height=600), Mending(540, 300, 9), id="too wide"),
    pytest.param(bounds(max_height=540), still(width=600), Mending(300, 540, 9), id="too high"),
    pytest.param(bounds(max_pixels=90_000), still(width=600, height=600), Mending(300, 300, 9), id="too many pixels"),
    pytest.param(bounds(max_short_side=500), still(width=2000, height=1000), Mending(1000, 500, 9), id="short side"),
    pytest.param(bounds(max_width=100, max_height=50), still(width=1000, height=900), Mending(55, 50, 9), id="the tightest"),
    pytest.param(bounds(max_width=10), still(width=1000, height=3), Mending(10, 1, 9), id="thin"),
    pytest.param(ImageLimits(types=(PNG,)), still(), None, id="network without JPEG"),
    pytest.param(ImageLimits(types=(JPEG,)), still(GIF), None, id="GIF"),
    pytest.param(ImageLimits(types=(JPEG,)), still(WEBP, animated=True), None, id="animation"),
    pytest.param(ImageLimits(types=(JPEG,)), still(PNG, width=None, height=None), None, id="unmeasured"),
    pytest.param(ImageLimits(types=(JPEG,)), still(PNG, width=8000, height=8001), None, id="too large to decode"),
    pytest.param(bounds(), still(width=16_000, height=15_000), Mending(16_000, 15_000, 9), id="JPEG of any size"),
    pytest.param(ImageLimits(types=(JPEG,)), still(MP4), None, id="video"),
])
def test_what_is_to_be_done(limits, item, needed):
    assert mending(limits, item) == needed


@pytest.mark.parametrize("types, sent", [
    ((JPEG,), [JPEG, PNG, WEBP]), ((JPEG, PNG, GIF), [JPEG, PNG, GIF, WEBP]), ((PNG, GIF), [PNG, GIF]),
    ((MP4, WEBM), [MP4, WEBM])])
def test_what_may_be_sent(types, sent):
    assert list(sendable(ImageLimits(types=types))) == sent


@pytest.mark.parametrize("platform, name", IMAGE_KINDS, ids=lambda value: getattr(value, "name", value))
def test_a_network_with_images_takes_jpeg(platform, name):
    assert all(JPEG in limits_of(platform, name, mime_type).types for mime_type in STILLS)


@cache
def original(form, large):
    """A picture of many bytes, or of many pixels, with what is to be lost; and what the service knows of it."""
    if large:
        image, options = noise(LARGE, LARGE), {"quality": 100, "subsampling": 0} if form == JPEG else {}
    else:
        image, options = Image.new("RGB", (6200, 5900), (200, 90, 30)), {}
    data = encoded(image, form, exif=exif(), **options)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        facts = examine(file.name)
    return data, still(form, len(data), facts.width, facts.height)


def converted(data, item, needed):
    """What comes of it, as the networks see it, and its bytes."""
    recipe = Recipe(needed.width, needed.height, needed.max_bytes) if needed else Recipe()
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as result:
        file.write(data)
        file.seek(0)
        found = _converted(file, result, SimpleNamespace(mime_type=item.mime_type, bytes=item.bytes), recipe)
        result.seek(0)
        bytes_ = data if found.pop("same", False) else result.read()
    values = {"mime_type": found.get("mime_type", item.mime_type), "bytes": len(bytes_)}
    return replace(item, **values, width=found["width"], height=found["height"]), bytes_


def cases():
    """One case for each different thing to do. Where more bytes are allowed than our large pictures have, it is 2 MB."""
    seen = set()
    for platform, name in IMAGE_KINDS:
        for form in STILLS:
            limits = limits_of(platform, name, form)
            for large in (True, False):
                tight = replace(limits, max_bytes=min(limits.max_bytes, 2 * MB)) if large else limits
                needed = mending(tight, original_item(form, large))
                what = form, large, needed, form in limits.types
                if what not in seen:
                    seen.add(what)
                    trouble = "bytes" if large else "pixels"
                    yield pytest.param(form, large, tight, id=f"{platform.name}-{name}-{form[6:]}-{trouble}")


def original_item(form, large):
    """As much of it as decides what is to be done, without making it."""
    return still(form, 6 * MB, LARGE, LARGE) if large else still(form, MB, 6200, 5900)


@pytest.mark.parametrize("form, large, limits", cases())
def test_what_comes_out_is_what_the_network_takes(form, large, limits):
    data, item = original(form, large)
    assert not large or item.bytes > limits.max_bytes
    assert [problem for problem in problems_of(replace(limits, min_aspect_ratio=None), item)] == []
    result, bytes_ = converted(data, item, mending(limits, item))
    assert mending(limits, result) is None and list(problems_of(limits, result)) == []
    assert result.mime_type in limits.types and result.bytes <= limits.max_bytes and CANARY not in bytes_
    assert result.width / result.height == pytest.approx(item.width / item.height, rel=0.01)
