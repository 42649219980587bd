"""Types and measures of real media files, and the many files that only pretend."""

import signal
import sys

import pytest

from storage.media import TYPES, Facts, NotMedia, Unfinished, _judge, is_video, sniff
from tests.benchmarks.fuzz import fuzz
from tests.media_corpus import ANIMATED, FAKES, MOV, MP4, PNG, REAL, WEBM
from tests.media_samples import box, examine, ftyp, image, with_edits

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
    assert examined(data) == Facts(mime_type, width, height, duration, animated=name in ANIMATED)


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


def test_the_corpus_has_its_size():
    assert len(REAL) >= 120 and len(FAKES) >= 150


def test_spoilt_files_crash_nothing(tmp_path):
    # An hour of the same: python -m tests.benchmarks.fuzz
    ends, failures = fuzz(3, 1, tmp_path)
    assert failures == [] and ends["first bytes alone"] > 100


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


def test_an_edit_list_costs_no_time(examined):
    # FFmpeg would go through 50 billion samples; the child may take 10 s, and what takes longer is refused.
    assert examined(with_edits(1_000_000, 50_000)).duration == 1000.0


@pytest.mark.parametrize("status, output, end", [
    pytest.param(-signal.SIGXCPU, b"", NotMedia, id="too-much-work"),
    pytest.param(-signal.SIGSEGV, b"", NotMedia, id="crashes-the-parser"),
    pytest.param(None, b"", Unfinished, id="a-machine-that-stands-still"),
    pytest.param(-signal.SIGKILL, b"", RuntimeError, id="killed-from-outside"),
    pytest.param(1, b"", RuntimeError, id="broken-installation"),
])
def test_end_of_the_child_decides(status, output, end):
    with pytest.raises(end) as raised:
        _judge(MP4, status, output, b"")
    assert raised.type is end


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
    assert str(broken.value).endswith(f"[0, 0, 10, {128 << 20}] ['PYTHONPATH']\n")


def test_broken_installation_is_not_the_fault_of_the_file(examined, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(RuntimeError, match="No module named"):
        examined(image("PNG"))
