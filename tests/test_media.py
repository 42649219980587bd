"""Types and measures of real media files, and the many files that only pretend."""

import signal
import sys

import pytest

from storage.media import TYPES, Facts, NotMedia, _judge, examine, is_video, sniff
from tests import media_samples as samples
from tests.media_samples import HEIGHT, HTML, ORIENTATION_6, WIDTH, box, ftyp, gif, image, png, sound, video

JPEG, PNG, GIF, WEBP, MP4, MOV, WEBM = TYPES
UPRIGHT, TURNED = (WIDTH, HEIGHT), (HEIGHT, WIDTH)
FASTSTART, MPEG4 = {"movflags": "faststart"}, {"codec": "mpeg4"}

REAL = {
    "jpeg": (image("JPEG"), JPEG, UPRIGHT, None),
    "jpeg-progressive": (image("JPEG", progressive=True), JPEG, UPRIGHT, None),
    "jpeg-cmyk": (image("JPEG", "CMYK"), JPEG, UPRIGHT, None),
    "jpeg-grey": (image("JPEG", "L"), JPEG, UPRIGHT, None),
    "jpeg-turned-by-exif": (image("JPEG", exif=ORIENTATION_6), JPEG, TURNED, None),
    "jpeg-broken-exif": (image("JPEG", exif=ORIENTATION_6[:-12]), JPEG, UPRIGHT, None),
    "jpeg-of-two-pictures": (image("MPO", frames=2), JPEG, UPRIGHT, None),
    "jpeg-fill-bytes": (image("JPEG").replace(b"\xff\xe0", b"\xff\xff\xff\xe0", 1), JPEG, UPRIGHT, None),
    "jpeg-with-zip-behind": (image("JPEG") + b"PK\x03\x04" + bytes(100), JPEG, UPRIGHT, None),
    "jpeg-200-megapixels": (samples.jpeg_of_size(16320, 12240), JPEG, (16320, 12240), None),
    "png": (image("PNG"), PNG, UPRIGHT, None),
    "png-16-bit": (samples.png_16_bit(), PNG, UPRIGHT, None),
    "png-palette": (image("PNG", "P"), PNG, UPRIGHT, None),
    "png-transparent": (image("PNG", "RGBA"), PNG, UPRIGHT, None),
    "png-animated": (image("PNG", frames=3), PNG, UPRIGHT, None),
    "png-turned-by-exif": (image("PNG", exif=ORIENTATION_6), PNG, TURNED, None),
    "png-large-colour-profile": (image("PNG", icc_profile=bytes(3 << 20)), PNG, UPRIGHT, None),
    "gif": (image("GIF", "P"), GIF, UPRIGHT, None),
    "gif-animated": (image("GIF", "P", frames=3, duration=100), GIF, UPRIGHT, None),
    "gif-local-colours": (gif(WIDTH, HEIGHT), GIF, UPRIGHT, None),
    "gif-without-trailer": (image("GIF", "P")[:-1], GIF, UPRIGHT, None),
    "gif-html-in-comment": (image("GIF", "P", comment=HTML[:200]), GIF, UPRIGHT, None),
    "webp-lossy": (image("WEBP"), WEBP, UPRIGHT, None),
    "webp-lossless": (image("WEBP", lossless=True), WEBP, UPRIGHT, None),
    "webp-transparent": (image("WEBP", "RGBA"), WEBP, UPRIGHT, None),
    "webp-animated": (image("WEBP", frames=3), WEBP, UPRIGHT, None),
    "webp-turned-by-exif": (image("WEBP", exif=ORIENTATION_6), WEBP, TURNED, None),
    "webp-240-megapixels": (samples.webp_of_size(15000, 16000), WEBP, (15000, 16000), None),
    "mp4-moov-at-end": (video("mp4"), MP4, UPRIGHT, 1.0),
    "mp4-faststart": (video("mp4", **FASTSTART), MP4, UPRIGHT, 1.0),
    "mp4-fragmented": (samples.fragmented(), MP4, UPRIGHT, 3.0),
    "mp4-short-ftyp": (samples.gopro(), MP4, UPRIGHT, 1.0),
    "mp4-turned": (video("mp4", turn=90), MP4, TURNED, 1.0),
    "mp4-upside-down": (video("mp4", turn=180), MP4, UPRIGHT, 1.0),
    "mp4-size-in-track-nothing-decoded": (samples.with_track_size(96, 72), MP4, (96, 72), 1.0),
    "mp4-64-bit-times-turned": (samples.with_long_times(), MP4, TURNED, 1.0),
    "mp4-64-bit-mdat": (samples.with_long_mdat(video("mp4")), MP4, UPRIGHT, 1.0),
    "mp4-mdat-to-the-end": (samples.with_open_end(video("mp4", **FASTSTART), b"mdat"), MP4, UPRIGHT, 1.0),
    "mp4-moov-to-the-end": (samples.with_open_end(video("mp4"), b"moov"), MP4, UPRIGHT, 1.0),
    "mp4-latin-1-title": (samples.with_latin_1_title(), MP4, UPRIGHT, 1.0),
    "mp4-zeros-behind": (video("mp4") + bytes(500), MP4, UPRIGHT, 1.0),
    "mp4-camera-notes-behind": (video("mp4") + b"\x7f\xff\xff\xffSEFT" + b"notes" * 9, MP4, UPRIGHT, 1.0),
    "mov": (video("mov"), MOV, UPRIGHT, 1.0),
    "mov-turned": (video("mov", turn=-90), MOV, TURNED, 1.0),
    "mov-without-ftyp": (samples.without_ftyp(), MOV, UPRIGHT, 1.0),
    "mov-without-ftyp-64-bit-mdat": (samples.with_long_mdat(samples.without_ftyp()), MOV, UPRIGHT, 1.0),
    "mov-without-ftyp-faststart": (samples.without_ftyp(**FASTSTART), MOV, UPRIGHT, 1.0),
    "webm-vp8": (video("webm", "libvpx"), WEBM, UPRIGHT, 1.0),
    "webm-vp9": (video("webm", "libvpx-vp9"), WEBM, UPRIGHT, 1.0),
    "webm-unknown-length": (video("webm", "libvpx", live="1"), WEBM, UPRIGHT, None),
}

HEADER_ONLY = video("mp4", **FASTSTART).partition(b"\x00\x00\x00\x08free")[0]
NO_TYPE = "the file is no JPEG, PNG, GIF, WebP, MP4, MOV or WebM"
FAKES = {
    "empty": (b"", "the file is empty"),
    "one-byte": (b"\xff", NO_TYPE),
    "zeros": (bytes(5000), NO_TYPE),
    "html": (HTML, f"{NO_TYPE}; it may be text/html"),
    "html-behind-blanks": (b"\n" * 20 + HTML, NO_TYPE),
    "html-behind-jpeg-start": (b"\xff\xd8\xff" + HTML, NO_TYPE),
    "html-behind-jpeg-app0": (b"\xff\xd8\xff\xe0" + HTML, "starts like image/jpeg, but it holds no whole picture"),
    "html-behind-jpeg-jfif": (image("JPEG")[:20] + HTML, NO_TYPE),
    "html-behind-jpeg-tables": (image("JPEG")[:300] + HTML + b"\xff\xd9", "starts like image/jpeg, but it ends too early"),
    "html-behind-png-signature": (image("PNG")[:8] + HTML, NO_TYPE),
    "html-behind-png-header": (image("PNG")[:33] + HTML, "starts like image/png, but it holds no whole picture"),
    "png-header-with-wrong-checksum": (image("PNG")[:29] + bytes(4) + image("PNG")[33:], NO_TYPE),
    "html-behind-gif-signature": (b"GIF89a" + HTML, NO_TYPE),
    "html-behind-gif-header": (b"GIF89a\x01\x00\x01\x00\x00\x00\x00!\xfe" + HTML, "starts like image/gif, but it"),
    "script-that-is-a-gif-header": (b"GIF89a/*ab\x00\x00\x00,*/=1;alert(1)" + HTML, "starts like image/gif, but it"),
    "html-behind-webp-name": (b"RIFF\x00\x10\x00\x00WEBP" + HTML, NO_TYPE),
    "html-behind-webp-chunk": (image("WEBP")[:30] + HTML[:200], "starts like image/webp, but it holds no whole picture"),
    "html-that-is-an-ftyp": (b"<!--ftypisom\x00-->" + HTML, f"{NO_TYPE}; it may be text/html"),
    "html-behind-ftyp": (ftyp(b"isom", b"mp41") + HTML, "starts like video/mp4, but it holds no movie header"),
    "html-in-mdat": (ftyp(b"qt  ") + box(b"mdat", HTML), "starts like video/quicktime, but it holds no movie header"),
    "html-in-mdat-without-ftyp": (box(b"mdat", HTML), "starts like video/quicktime, but it holds no movie header"),
    "html-in-moov": (ftyp(b"isom") + box(b"moov", HTML), "starts like video/mp4, but it holds no"),
    "html-behind-ebml": (b"\x1a\x45\xdf\xa3" + HTML, NO_TYPE),
    "html-behind-ebml-header": (video("webm", "libvpx")[:36] + HTML, NO_TYPE),
    "html-behind-segment": (samples.endless_segment() + HTML, "starts like video/webm, but it holds no"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", f"{NO_TYPE}; it may be image/svg+xml"),
    "pdf": (b"%PDF-1.7\n1 0 obj\n", f"{NO_TYPE}; it may be application/pdf"),
    "zip": (b"PK\x03\x04\x14" + bytes(60), NO_TYPE),
    "zip-that-names-a-png": (b"PK\x03\x04\x14" + bytes(21) + b"\x05\x00\x00\x00x.png" + image("PNG"), NO_TYPE),
    "elf": (b"\x7fELF\x02\x01\x01" + bytes(60), NO_TYPE),
    "exe": (b"MZ\x90\x00" + bytes(200), NO_TYPE),
    "php": (b"<?php system($_GET[0]); ?>", NO_TYPE),
    "ffconcat-script": (b"ffconcat version 1.0\nfile /etc/passwd\n", NO_TYPE),
    "sdp": (b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nm=video 5004 RTP/AVP 96\r\n", NO_TYPE),
    "m3u8": (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", NO_TYPE),
    "bmp": (image("BMP"), NO_TYPE),
    "tiff": (image("TIFF"), f"{NO_TYPE}; it may be image/tiff"),
    "jpeg-2000": (image("JPEG2000"), NO_TYPE),
    "avif": (image("AVIF"), NO_TYPE),
    "heic-boxes-behind-mp4-brand": (samples.heic_item(), "starts like video/mp4, but it holds no movie header"),
    "matroska": (video("matroska"), f"{NO_TYPE}; it may be video/x-matroska"),
    "3gpp": (video("3gp", **MPEG4), NO_TYPE),
    "mpeg-ts": (video("mpegts"), NO_TYPE),
    "avi": (video("avi", **MPEG4), NO_TYPE),
    "m4a": (sound("ipod", "aac"), NO_TYPE),
    "mp4-sound-only": (sound("mp4", "aac"), "starts like video/mp4, but it holds no video"),
    "mp4-sound-with-cover": (sound("mp4", "aac", cover=True), "starts like video/mp4, but it holds no video"),
    "webm-sound-only": (sound("webm", "libopus"), "starts like video/webm, but it holds no video"),
    "mov-reference-movie": (samples.reference_movie(), "starts like video/quicktime, but it holds no"),
    "mp4-without-samples": (HEADER_ONLY, "starts like video/mp4, but it holds no"),
    "bomb-jpeg-pixels": (samples.jpeg_of_size(60000, 60000), "more than 250 megapixels"),
    "bomb-png-pixels": (png(60000, 60000, 8, bytes(100)), "more than 250 megapixels"),
    "bomb-gif-pixels": (gif(65535, 65535), "more than 250 megapixels"),
    "bomb-webp-pixels": (samples.webp_of_size(16384, 16384), "more than 250 megapixels"),
    "bomb-mp4-samples": (samples.with_countless_samples(), "it holds no readable video"),
    "bomb-mp4-nested-boxes": (samples.nested_boxes(), "it holds no"),
    "bomb-mp4-huge-boxes": (samples.huge_boxes(), "it holds no"),
    "bomb-mp4-many-boxes": (samples.many_boxes(), "it holds no movie header"),
    "bomb-mp4-many-tracks": (samples.many_tracks(), "it holds no"),
}
WHOLE_OR_NOTHING = ["jpeg", "jpeg-progressive", "png", "png-animated", "gif", "webp-lossy", "webp-animated", "mp4-moov-at-end",
                    "mp4-faststart", "mov", "webm-vp8"]
CUTS = [0.02, 0.3, 0.7, 0.99]

MP4_BRANDS = [[b"isom"], [b"iso6"], [b"mp42"], [b"avc1"], [b"M4V "], [b"dash"], [b"MSNV"], [b"XAVC"], [b"zzzz", b"mp42"],
              [b"zzzz", b"isom"], [b"3gp5", b"mp42"], [b"isom", b"qt  "]]
MOV_BRANDS = [[b"qt  "], [b"qt  ", b"mp42"], [b"mqt ", b"qt  "]]
OTHER_BRANDS = [[b"heic", b"mif1"], [b"mif1", b"heic"], [b"hevc", b"isom"], [b"avif", b"mif1"], [b"avis", b"mp41"],
                [b"crx ", b"isom"], [b"jp2 "], [b"M4A ", b"mp42", b"isom"], [b"M4B ", b"isom"], [b"3gp4", b"isom"],
                [b"3g2a", b"isom"], [b"zzzz"]]


@pytest.fixture
def examined(tmp_path):
    def run(data):
        path = tmp_path / "file"
        path.write_bytes(data)
        return examine(path)

    return run


@pytest.mark.parametrize("name", REAL)
def test_real_file_is_measured(examined, name):
    data, mime_type, (width, height), duration = REAL[name]
    assert examined(data) == Facts(mime_type, width, height, duration, animated=name in ("png-animated", "webp-animated"))


@pytest.mark.parametrize("name", REAL)
def test_type_stands_in_the_first_4096_bytes(name):
    data, mime_type, *_ = REAL[name]
    assert sniff(data[:4096]) == mime_type


@pytest.mark.parametrize("name", FAKES)
def test_pretended_file_is_refused(examined, name):
    data, sentence = FAKES[name]
    with pytest.raises(NotMedia) as refused:
        examined(data)
    assert sentence in str(refused.value)
    assert "Gotcha" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", WHOLE_OR_NOTHING)
def test_truncated_file_is_refused(examined, name, cut):
    data = REAL[name][0]
    with pytest.raises(NotMedia):
        examined(data[: int(len(data) * cut)])


def test_every_beginning_of_a_file_is_sniffed_without_a_crash():
    for data, mime_type, *_ in REAL.values():
        for length in range(min(len(data), 80)):
            try:
                assert sniff(data[:length]) == mime_type
            except NotMedia:
                pass


@pytest.mark.parametrize("brands", MP4_BRANDS, ids=repr)
def test_brand_of_mp4(brands):
    assert sniff(ftyp(*brands) + box(b"free")) == MP4


@pytest.mark.parametrize("brands", MOV_BRANDS, ids=repr)
def test_brand_of_quicktime(brands):
    assert sniff(ftyp(*brands) + box(b"free")) == MOV


@pytest.mark.parametrize("brands", OTHER_BRANDS, ids=repr)
def test_brand_of_something_else_is_refused(brands):
    with pytest.raises(NotMedia):
        sniff(ftyp(*brands) + box(b"free"))


@pytest.mark.parametrize("mime_type", TYPES)
def test_video_or_image(mime_type):
    assert is_video(mime_type) == (mime_type in (MP4, MOV, WEBM))


OUT_OF_TIME, CRASH = -signal.SIGXCPU, -signal.SIGSEGV
UNMEASURED = Facts(MP4, None, None, None)


@pytest.mark.parametrize(
    "mime_type, status, output, outcome",
    [
        pytest.param(MP4, None, b"{}\n", UNMEASURED, id="video-recognised-then-too-slow"),
        pytest.param(MP4, OUT_OF_TIME, b"{}\n", UNMEASURED, id="video-recognised-then-too-much-work"),
        pytest.param(MP4, OUT_OF_TIME, b"", NotMedia, id="video-not-recognised-in-time"),
        pytest.param(MP4, CRASH, b"{}\n", NotMedia, id="video-crashes-the-parser"),
        pytest.param(PNG, CRASH, b"", NotMedia, id="image-crashes-the-parser"),
        pytest.param(PNG, OUT_OF_TIME, b"", NotMedia, id="image-too-much-work"),
        pytest.param(PNG, None, b"", RuntimeError, id="image-on-a-machine-that-stands-still"),
        pytest.param(MP4, None, b"", RuntimeError, id="video-on-a-machine-that-stands-still"),
        pytest.param(MP4, -signal.SIGKILL, b"{}\n", RuntimeError, id="killed-from-outside"),
        pytest.param(MP4, 1, b"", RuntimeError, id="broken-installation"),
    ],
)
def test_end_of_the_child_decides(mime_type, status, output, outcome):
    if isinstance(outcome, Facts):
        assert _judge(mime_type, status, output, b"") == outcome
    else:
        with pytest.raises(outcome):
            _judge(mime_type, status, output, b"")


def test_child_takes_no_module_from_the_current_folder(examined, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert examined(image("PNG")).mime_type == PNG


def test_child_knows_no_secret_and_has_limits(examined, tmp_path, monkeypatch):
    package = tmp_path / "PIL"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import os, resource as r\n"
        "limits = [r.getrlimit(limit)[0] for limit in (r.RLIMIT_CORE, r.RLIMIT_FSIZE, r.RLIMIT_CPU, r.RLIMIT_AS)]\n"
        "raise SystemExit(f'{limits} {sorted(set(os.environ) - {\"LC_CTYPE\"})}')\n"
    )
    monkeypatch.setenv("POSTHORN_SECRET_KEYS", "hunter2")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError) as broken:
        examined(image("PNG"))
    assert str(broken.value).endswith(f"[0, 0, 10, {512 << 20}] ['PYTHONPATH']\n")


def test_broken_installation_is_not_the_fault_of_the_file(examined, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(RuntimeError, match="No module named 'PIL'"):
        examined(image("PNG"))


def test_missing_file_is_an_error_of_the_caller(tmp_path):
    with pytest.raises(FileNotFoundError):
        examine(tmp_path / "missing")
