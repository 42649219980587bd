"""What a picture says beside the picture goes; the picture stays, to the last byte."""

import struct
from contextlib import suppress

import pytest
from PIL import ImageChops

from storage.metadata import without
from tests.media_samples import examine, image
from tests.pictures import CANARY, encoded, exif, opened, profile, quarters, with_chunks, with_riff, with_segments
from tests.test_media import REAL

JPEG, PNG, WEBP, GIF = "image/jpeg", "image/png", "image/webp", "image/gif"
XMP = b"<x:xmpmeta>" + CANARY + b"</x:xmpmeta>"
IMAGES = {name: (data, mime_type) for name, (data, mime_type, *_) in REAL.items() if mime_type.startswith("image/")}
# Not opened by Pillow with its usual bounds, or not as one picture, or too large to be compared.
NOT_COMPARED = ("jpeg-of-", "png-large-colour-profile",
                *(name for name, (_, _, (width, height), _) in REAL.items() if width * height > 10_000))

PLAIN, SCANS = encoded(quarters(), JPEG), encoded(quarters(), JPEG, progressive=True)
MOVING = image("GIF", "P", frames=3, duration=100, loop=0)
SAYING = {
    "jpeg EXIF": (encoded(quarters(), JPEG, exif=exif()), JPEG),
    "jpeg EXIF without JFIF": (b"\xff\xd8" + with_segments(PLAIN, (0xE1, exif()))[20:], JPEG),
    "jpeg progressive": (encoded(quarters(), JPEG, progressive=True, exif=exif(), comment=CANARY), JPEG),
    "jpeg comment": (encoded(quarters(), JPEG, comment=CANARY), JPEG),
    "jpeg XMP": (with_segments(PLAIN, (0xE1, b"http://ns.adobe.com/xap/1.0/\x00" + XMP)), JPEG),
    "jpeg IPTC": (with_segments(PLAIN, (0xED, b"Photoshop 3.0\x00" + CANARY)), JPEG),
    "jpeg preview": (with_segments(PLAIN, (0xE0, b"JFXX\x00\x10" + CANARY)), JPEG),
    "jpeg other profile segment": (with_segments(PLAIN, (0xE2, b"MPF\x00" + CANARY)), JPEG),
    "jpeg every other application": (with_segments(PLAIN, *((kind, CANARY) for kind in range(0xE0, 0xF0))), JPEG),
    "jpeg segments that hold markers": (with_segments(PLAIN, (0xE1, b"\xff\xd9\xff\xda" + CANARY)), JPEG),
    "jpeg between scans": (SCANS.replace(b"\xff\xda", b"\xff\xfe\x00\x10" + CANARY + b"\xff\xda"), JPEG),
    "jpeg film behind": (PLAIN + b"\0\0\0\x18ftypmp42" + CANARY, JPEG),
    "jpeg second picture": (PLAIN + encoded(quarters(), JPEG, comment=CANARY), JPEG),
    "png EXIF": (encoded(quarters(), PNG, exif=exif()), PNG),
    "png texts": (with_chunks(encoded(quarters(), PNG), (b"tEXt", b"GPS\x00" + CANARY), (b"iTXt", b"a\0\0\0\0\0" + XMP),
                              (b"zTXt", b"a\0\0" + CANARY), (b"tIME", CANARY[:7]), (b"caBX", CANARY), (b"prVt", CANARY)), PNG),
    "png behind the end": (encoded(quarters(), PNG) + CANARY, PNG),
    "png animated": (with_chunks(image("PNG", frames=3), (b"tEXt", b"a\x00" + CANARY)), PNG),
    "png transparent palette": (with_chunks(encoded(quarters(mode="P"), PNG, transparency=0), (b"eXIf", CANARY)), PNG),
    "webp EXIF and XMP": (encoded(quarters(), WEBP, exif=exif(), xmp=XMP), WEBP),
    "webp lossy and transparent": (image("WEBP", "RGBA", exif=exif()), WEBP),
    "webp animated": (image("WEBP", frames=3, exif=exif(), xmp=XMP), WEBP),
    "webp unknown chunk of odd size": (with_riff(encoded(quarters(), WEBP, exif=exif()), (b"FOOO", CANARY + b"!")), WEBP),
    "gif comment": (image("GIF", "P", comment=CANARY), GIF),
    "gif XMP": (image("GIF", "P")[:-1] + b"!\xff\x0bXMP DataXMP" + XMP + b"\x01" + bytes(range(255, -1, -1)) + b"\x00;", GIF),
    "gif behind the end": (image("GIF", "P") + CANARY, GIF),
    "gif animated": (MOVING[:-1] + b"!\xfe\x0e" + CANARY + b"\x00;", GIF),
}


def frames(data):
    """Every frame of a picture, with its time."""
    picture = opened(data)
    for number in range(getattr(picture, "n_frames", 1)):
        picture.seek(number)
        yield picture.convert("RGBA"), picture.info.get("duration")


def same_pictures(one, other):
    """Whether two files show the same, in the same time."""
    pairs = list(zip(frames(one), frames(other), strict=True))
    return all(a[1] == b[1] and a[0].size == b[0].size and ImageChops.difference(a[0], b[0]).getbbox(alpha_only=False) is None
               for a, b in pairs)


@pytest.mark.parametrize("name", SAYING)
def test_what_a_picture_says_is_gone_and_the_picture_is_not(tmp_path, name):
    data, mime_type = SAYING[name]
    assert CANARY[:7] in data
    clean = without(data, mime_type)
    assert CANARY[:7] not in clean and len(clean) < len(data)
    assert not {"exif", "xmp", "comment", "photoshop"} & set(opened(clean).info) and not opened(clean).getexif()
    first = data[: data.index(b"\xff\xd9", 300) + 2] if name == "jpeg second picture" else data
    assert same_pictures(first, clean)
    path = tmp_path / "clean"
    path.write_bytes(clean)
    assert examine(path).mime_type == mime_type


@pytest.mark.parametrize("name", IMAGES)
def test_every_picture_stays_what_it_is(tmp_path, name):
    data, mime_type = IMAGES[name]
    clean = without(data, mime_type)
    assert without(clean, mime_type) == clean
    path = tmp_path / "clean"
    path.write_bytes(clean)
    facts = examine(path)
    assert (facts.mime_type, facts.animated) == (mime_type, name.startswith(("png-animated", "webp-animated")))
    if not name.startswith(NOT_COMPARED):
        assert same_pictures(data, clean)


@pytest.mark.parametrize("data, mime_type", [
    pytest.param(encoded(quarters(), JPEG), JPEG, id="jpeg"),
    pytest.param(encoded(quarters(), JPEG, icc_profile=profile()), JPEG, id="jpeg with a profile"),
    pytest.param(encoded(quarters(mode="CMYK"), JPEG), JPEG, id="jpeg of inks"),
    pytest.param(encoded(quarters(), JPEG, icc_profile=bytes(200_000)), JPEG, id="jpeg with a profile in parts"),
    pytest.param(encoded(quarters(), PNG, icc_profile=profile(), dpi=(300, 300)), PNG, id="png with a profile"),
    pytest.param(encoded(quarters(mode="P"), PNG, transparency=3), PNG, id="png with a transparent colour"),
    pytest.param(image("PNG", frames=3), PNG, id="png that moves"),
    pytest.param(encoded(quarters(), WEBP), WEBP, id="webp"),
    pytest.param(encoded(quarters(), WEBP, icc_profile=profile()), WEBP, id="webp with a profile"),
    pytest.param(image("WEBP", frames=3), WEBP, id="webp that moves"),
    pytest.param(image("GIF", "P"), GIF, id="gif"),
    pytest.param(image("GIF", "P")[:-1], GIF, id="gif without its end"),
    pytest.param(MOVING, GIF, id="gif that moves for ever"),
])
def test_what_says_nothing_stays_byte_for_byte(data, mime_type):
    assert without(data, mime_type) == data


def test_the_flags_of_a_webp_say_what_is_left():
    data = encoded(quarters(), WEBP, exif=exif(), xmp=XMP, icc_profile=profile())
    assert data[20] & 0x0C == 0x0C
    clean = without(data, WEBP)
    assert (clean[12:16], clean[20]) == (b"VP8X", data[20] & ~0x0C) and opened(clean).info["icc_profile"] == profile()


@pytest.mark.parametrize("name", IMAGES)
def test_every_beginning_of_a_picture_is_read_without_end(name):
    data, mime_type = IMAGES[name]
    for length in range(0, min(len(data), 900), 7):
        with suppress(IndexError, struct.error):
            assert len(without(data[:length], mime_type)) <= max(length, 12)
