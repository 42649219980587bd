"""Pictures made to fit, by the real child, store and database: what comes out, and that it is made once."""

import threading

import pytest
from PIL import Image

from storage import renditions
from storage.database import database
from storage.objects import Objects, StoreUnavailable
from storage.renditions import Recipe, Rendition, Renditions, Unfit
from tests import media_samples as samples
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.pictures import (BLUE, CANARY, GREEN, RED, WHITE, corners, encoded, exif, noise, opened, profile, quarters, turned,
                            with_segments)
from tests.shelf import CLEAN
from tests.shelf import shelf, store  # fixtures

JPEG, PNG, WEBP, GIF = "image/jpeg", "image/png", "image/webp", "image/gif"
FOUR = [RED, GREEN, BLUE, WHITE]


# What comes out.

@pytest.mark.parametrize("mime_type", [JPEG, PNG, WEBP])
def test_a_picture_with_nothing_to_lose_goes_out_as_it_is(shelf, mime_type):
    row = shelf.file(encoded(quarters(), mime_type, icc_profile=profile()))
    before = shelf.keys()
    found = shelf.renditions.made(row, CLEAN)
    assert (found.key, found.mime_type, found.bytes, found.width, found.height) == (row.key, mime_type, row.bytes, 96, 64)
    assert shelf.keys() == before


@pytest.mark.parametrize("mime_type", [JPEG, PNG, WEBP])
def test_an_upright_picture_loses_its_metadata_and_no_pixel(shelf, mime_type):
    data = encoded(quarters(), mime_type, exif=exif(), icc_profile=profile())
    found, result = shelf.made(data)
    assert found.mime_type == mime_type and opened(result).tobytes() == opened(data).tobytes()
    assert opened(result).info["icc_profile"] == profile()
    if mime_type == JPEG:
        assert opened(result).quantization == opened(data).quantization


@pytest.mark.parametrize("recipe", [CLEAN, Recipe(48, 48, 100_000)], ids=["clean", "scaled"])
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mime_type", [JPEG, PNG, WEBP])
def test_a_turned_picture_goes_out_upright(shelf, mime_type, orientation, recipe):
    found, result = shelf.made(turned(mime_type, orientation), recipe)
    assert corners(opened(result)) == FOUR
    assert (found.width, found.height) == ((96, 64) if recipe == CLEAN else (48, 32))
    assert found.mime_type == (mime_type if orientation == 1 and recipe == CLEAN else JPEG)


@pytest.mark.parametrize("orientation", [0, 9, 1000])
def test_an_orientation_that_is_none_turns_nothing(shelf, orientation):
    data = encoded(quarters(), JPEG, exif=exif(orientation))
    found, result = shelf.made(data)
    assert opened(result).tobytes() == opened(data).tobytes() and (found.width, found.height) == (96, 64)


def test_a_turned_picture_has_no_more_bytes_than_the_original(shelf):
    data = turned(JPEG, 6, noise(2400, 1600), quality=50)
    found, _ = shelf.made(data)
    assert len(data) > renditions.SMALL and found.bytes <= len(data)
    assert found.width / found.height == pytest.approx(1.5, rel=0.01)


def test_an_orientation_in_xmp_alone_turns_nothing(shelf):
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6"/></x:xmpmeta>'
    data = with_segments(encoded(quarters(), JPEG), (0xE1, b"http://ns.adobe.com/xap/1.0/\x00" + xmp))
    found, result = shelf.made(data, Recipe(48, 48, 100_000))
    assert corners(opened(result)) == FOUR and (found.width, found.height) == (48, 32)


@pytest.mark.parametrize("mime_type", [JPEG, PNG, WEBP])
def test_bytes_come_down_by_quality_first_then_by_size(shelf, mime_type):
    data = encoded(noise(640, 400), mime_type, **({"quality": 100, "subsampling": 0} if mime_type == JPEG else {}))
    sizes = {}
    for limit in (400_000, 160_000, 20_000, 2_000):
        found, _ = shelf.made(data, Recipe(640, 400, limit))
        assert found.bytes <= limit and found.mime_type == JPEG and found.width / found.height == pytest.approx(1.6, rel=0.1)
        sizes[limit] = found.width
    assert sizes[400_000] == sizes[160_000] == 640 > sizes[20_000] > sizes[2_000]


def test_a_jpeg_that_is_too_large_for_what_it_says_alone_keeps_its_pixels(shelf):
    data = encoded(quarters(), JPEG, exif=exif())
    film = data + b"\0\0\0\x18ftypmp42" + CANARY * 10_000
    found, result = shelf.made(film, Recipe(96, 64, 10_000))
    assert opened(result).tobytes() == opened(data).tobytes() and found.bytes < len(data)


@pytest.mark.parametrize("image, options, colours", [
    pytest.param(quarters(mode="P"), {"transparency": None}, FOUR, id="palette"),
    pytest.param(quarters(mode="L"), {}, None, id="grey"),
    pytest.param(quarters().convert("1"), {}, None, id="black and white"),
    pytest.param(quarters(mode="RGBA"), {}, FOUR, id="opaque"),
])
def test_every_kind_of_png_becomes_a_jpeg(shelf, image, options, colours):
    options = {name: value for name, value in options.items() if value is not None}
    found, result = shelf.made(encoded(image, PNG, **options), Recipe(96, 64, 100_000))
    assert found.mime_type == JPEG and opened(result).size == (96, 64)
    if colours:
        assert corners(opened(result)) == colours


def transparent(mode):
    """A green picture whose left half cannot be seen."""
    image = Image.new("RGBA", (96, 64), (*GREEN, 255))
    image.paste((*RED, 0), (0, 0, 48, 64))
    return image if mode == "RGBA" else image.convert(mode)


@pytest.mark.parametrize("data", [
    pytest.param(encoded(transparent("RGBA"), PNG), id="png"),
    pytest.param(encoded(transparent("RGBA"), WEBP), id="webp"),
    pytest.param(encoded(transparent("RGBA").quantize(8), PNG), id="png palette"),
    pytest.param(encoded(quarters().point(lambda value: value), PNG, transparency=RED), id="png with one transparent colour"),
])
@pytest.mark.parametrize("box", [(96, 64), (48, 32)], ids=["as large", "smaller"])
def test_what_cannot_be_seen_becomes_white(shelf, data, box):
    _, result = shelf.made(data, Recipe(*box, 100_000))
    upper_left, upper_right, *_ = corners(opened(result))
    assert (upper_left, upper_right) == (WHITE, GREEN)


def test_half_transparent_grey_becomes_light(shelf):
    _, result = shelf.made(encoded(Image.new("LA", (64, 64), (0, 128)), PNG), Recipe(64, 64, 100_000))
    assert all(abs(value - 127) < 4 for value in opened(result).convert("RGB").getpixel((32, 32)))


def test_16_bits_a_pixel_become_8_of_the_same_brightness(shelf):
    rows = b"".join(b"\x00" + b"".join((x * 1024).to_bytes(2, "big") for x in range(64)) for _ in range(64))
    _, result = shelf.made(samples.png(64, 64, 16, rows), Recipe(64, 64, 100_000))
    assert all(abs(opened(result).convert("L").getpixel((x, 32)) - x * 4) < 6 for x in range(64))


def test_inks_become_the_colours_of_screens(shelf):
    data = encoded(quarters(mode="CMYK"), JPEG, quality=95)
    assert shelf.made(data)[1] == data
    _, result = shelf.made(data, Recipe(48, 32, 100_000))
    assert opened(result).mode == "RGB" and corners(opened(result)) == FOUR


@pytest.mark.parametrize("mode, given, kept", [
    pytest.param("RGB", profile(), True, id="of its colours"),
    pytest.param("RGB", profile("LAB"), False, id="of other colours"),
    pytest.param("L", profile(), False, id="of colours for grey"),
    pytest.param("RGB", b"not a profile", False, id="none"),
    pytest.param("RGB", profile() + bytes(100_000), False, id="too large"),
    pytest.param("CMYK", profile(), False, id="of colours for inks"),
])
def test_a_profile_stays_where_it_fits(shelf, mode, given, kept):
    data = encoded(quarters(mode=mode), JPEG, icc_profile=given)
    _, result = shelf.made(data, Recipe(48, 32, 20_000))
    assert opened(result).info.get("icc_profile") == (given if kept else None)
    if mode != "L":
        assert corners(opened(result)) == FOUR


@pytest.mark.parametrize("size, box, expected", [
    ((1, 1), (1, 1), (1, 1)), ((1, 3000), (1, 1000), (1, 1000)), ((3000, 1), (1500, 1), (1500, 1)),
    ((2, 3000), (2, 1000), (1, 1000)),
    ((1910, 1000), (955, 955), (955, 500)), ((1081, 566), (700, 700), (699, 366)), ((566, 1081), (700, 700), (366, 699)),
    ((70_000, 3), (70_000, 3), (46_666, 2)),
])
def test_sizes_are_rounded_towards_a_square(shelf, size, box, expected):
    found, _ = shelf.made(encoded(Image.new("L", size, 90), PNG), Recipe(*box, 1_000_000))
    assert (found.width, found.height) == expected


@pytest.mark.parametrize("recipe, orientation", [(Recipe(32, 24, 100_000), 1), (CLEAN, 6)], ids=["smaller", "upright"])
@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_what_moves_is_never_drawn_anew(shelf, form, recipe, orientation):
    row = shelf.file(samples.image(form, frames=3, exif=exif(orientation)))
    before = shelf.keys()
    with pytest.raises(Unfit, match="animation"):
        shelf.renditions.made(row, recipe)
    assert shelf.keys() == before and shelf.rows(row) == 0


def test_a_gif_stays_one(shelf):
    row = shelf.file(samples.image("GIF", "P"))
    assert shelf.renditions.made(row, CLEAN).key == row.key
    with pytest.raises(Unfit, match="animation"):
        shelf.renditions.made(row, Recipe(32, 24, 100))


def test_an_animation_loses_its_metadata_and_no_frame(shelf):
    data = samples.image("WEBP", frames=3, exif=exif())
    _, result = shelf.made(data)
    assert opened(result).n_frames == 3 and len(result) < len(data)


def test_a_key_holds_nothing_of_the_users(shelf):
    found, _ = shelf.made(encoded(quarters(), PNG, exif=exif()))
    team, mode, name = found.key.split("/")
    assert (team, mode) == (shelf.desk.team.id, "live") and name.endswith(".png") and len(name) == 36


# Made once.

def at_once(*calls):
    """What each of these brings, all of them begun at one moment."""
    barrier, found = threading.Barrier(len(calls)), [None] * len(calls)

    def run(position, call):
        barrier.wait()
        found[position] = call()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_eight_threads_make_one(shelf):
    row = shelf.file(turned(JPEG, 6))
    before = shelf.keys()
    found = at_once(*[lambda: shelf.renditions.made(row, CLEAN)] * 8)
    assert len({one.key for one in found}) == 1 == shelf.rows(row)
    assert shelf.keys() - before == {found[0].key}


def test_eight_workers_keep_one_and_leave_nothing(shelf):
    row = shelf.file(turned(JPEG, 6))
    before = shelf.keys()
    found = at_once(*[lambda: Renditions(shelf.store).made(row, CLEAN) for _ in range(8)])
    assert len({one.key for one in found}) == 1 == shelf.rows(row)
    assert shelf.keys() - before == {found[0].key}


def test_each_recipe_is_made_once(shelf, monkeypatch):
    row = shelf.file(turned(JPEG, 3))
    recipes = [CLEAN, Recipe(48, 32, 10_000), Recipe(48, 32, 9_000)]
    first = [shelf.renditions.made(row, recipe).key for recipe in recipes]
    monkeypatch.setattr(renditions, "CONVERT", "there is no such file")
    assert [shelf.renditions.made(row, recipe).key for recipe in recipes] == first and len(set(first)) == 3


def test_the_loser_of_a_race_whose_object_cannot_be_removed_uses_the_winners(shelf):
    class Sticky(Objects):
        """Takes a file, and then lets somebody else be faster."""

        def put(self, key, *values):
            shelf.store.put(key, *values)
            with database.connection_context():
                Rendition.insert(team_id=row.team_id, mode="live", media_id=row.id, recipe="clean", key="the winner's",
                                 mime_type=JPEG, bytes=1, width=1, height=1).execute()

        def delete(self, key):
            raise StoreUnavailable("no")

    row = shelf.file(turned(JPEG, 6))
    store = Sticky("http://127.0.0.1:1", "a", "b", "media")
    store.open = shelf.store.open
    assert Renditions(store).made(row, CLEAN).key == "the winner's" and shelf.rows(row) == 1
