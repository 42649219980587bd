"""The child process of storage.media: parses one untrusted file under tight limits and prints what it found as a line of JSON.

Run by its path with the media type as the only argument and the file as standard input. Of this project it imports
nothing but storage.skeleton.
"""

import errno
import io
import json
import os
import re
import resource
import struct
import sys

from storage.skeleton import SKELETONS, Refused, Window

MEGABYTE = 1 << 20
CPU_SECONDS = 10
NICE = 10
# Python with Pillow maps 27 MB and with PyAV 121 MB before it reads anything. A picture takes a few more (storage.skeleton);
# the lists of five million samples, 23 hours of 60 pictures a second, take 90. libwebp reserves two canvases of 4 bytes a pixel
# when it opens a file and does not touch them: 2 GB of addresses at the pixel cap.
ADDRESS_SPACE_IMAGE, ADDRESS_SPACE_VIDEO, ADDRESS_SPACE_WEBP = 128 * MEGABYTE, 320 * MEGABYTE, 2304 * MEGABYTE
MAX_PIXELS = 250_000_000  # cameras of phones reach 200 megapixels

# No codec and no protocol has this name, so that nothing is decoded and no second file or address is opened.
PYAV_OPTIONS = {"codec_whitelist": "none", "protocol_whitelist": "none", "probesize": "5000000", "analyzeduration": "5000000"}
# FFmpeg goes through all samples for each entry of the edit lists. Of these most files have one or two, and some a hundred
# thousand; then it is told to leave them out, and the duration is that of all that was recorded.
MAX_EDITS, WITHOUT_EDITS = 500, {"advanced_editlist": "0"}
MAX_BOXES = 100_000  # 14 hours of one-second fragments; what comes behind them is left to PyAV

EXIF_ORIENTATION, EXIF_ON_ITS_SIDE = 0x0112, (5, 6, 7, 8)
MOVING = ("image/png", "image/webp")    # may hold several frames, and say so without being read whole; GIF does not
# What some program would run, unpack or show if it began where the media ends. Cameras put videos and notes of their own there.
BEHIND = re.compile(rb"\s*(?:PK\x03\x04|%PDF-|\x7fELF|Rar!|#!/|<\?php|<!doctype|<html|<head|<body|<script|<svg)", re.I)
WEBM_SEGMENT = b"\x18\x53\x80\x67"


def measure_image(file, mime_type):
    """`{"width", "height", "animated"}`, in pixels as displayed, of a picture that is there to its end. Raises Refused."""
    data = Window(file)
    skeleton, end = SKELETONS[mime_type](data)
    _check_behind(data[end : end + 64])
    try:
        image = Image.open(io.BytesIO(skeleton), formats=[mime_type.removeprefix("image/")])
        (width, height), exif = image.size, image.info.get("exif", b"")
        animated = mime_type in MOVING and image.is_animated
    except Image.DecompressionBombError:
        raise Refused(f"its picture has more than {MAX_PIXELS // 1_000_000} megapixels") from None
    except Exception:
        raise Refused("it holds no whole picture") from None
    if orientation(exif, Image.Exif()) in EXIF_ON_ITS_SIDE:
        width, height = height, width
    return {"width": width, "height": height, "animated": animated}


def measure_video(file, mime_type, tracks, options):
    """`{"width", "height", "duration"}` in pixels as displayed and seconds, each None where unknown. Raises Refused.

    `tracks` and `options` are what `check_boxes` or `check_segment` found in the same file.
    """
    try:
        form = "matroska" if mime_type == "video/webm" else "mov"
        # Titles in an old encoding are no reason to refuse a video, which PyAV does by default.
        container = av.open(file, format=form, options=options | PYAV_OPTIONS, metadata_errors="replace")
        streams = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
        if not streams or not next(container.demux(streams[0])).size:
            raise Refused("it holds no video")
    except (av.error.FFmpegError, ArithmeticError, LookupError, ValueError, StopIteration):
        raise Refused("it holds no readable video") from None
    except OSError as error:    # a place that no file has; of a disk that cannot be read the file is innocent
        if error.errno not in (errno.EINVAL, errno.EOVERFLOW):
            raise
        raise Refused("it holds no readable video") from None
    turned, track_width, track_height = tracks.get(streams[0].id, (False, 0, 0))
    codec = streams[0].codec_context
    # The size of MPEG-4 part 2 stands in the coded picture alone, which is not decoded here; the track says it too.
    width, height = (codec.width, codec.height) if codec and codec.width else (track_width, track_height)
    if turned:
        width, height = height, width
    duration = (container.duration or 0) / av.time_base
    return {"width": width or None, "height": height or None, "duration": duration if duration > 0 else None}


def check_boxes(file):
    """The tracks of an MP4 or QuickTime file, {track id: (lies on its side, width, height)}, and options for PyAV.

    ISO/IEC 14496-12. Raises Refused for a file without movie header and one that ends within its media.
    """
    tracks, size = None, file.seek(0, 2)
    for kind, start, end in _boxes(file, 0, size):
        if kind in (b"moov", b"moof", b"mdat") and end > size:
            raise Refused("it ends too early")
        if end > size:      # most likely no box at all
            file.seek(start - 8)
            _check_behind(file.read(64))
        if kind == b"moov":
            tracks, edits = dict(_tracks(file, start, end)), sum(_edits(file, start, end))
    if tracks is None:
        raise Refused("it holds no movie header")
    return tracks, WITHOUT_EDITS if edits > MAX_EDITS else {}


def check_segment(file):
    """The same of a WebM file, of which neither is needed. Raises Refused for a file that ends within its segment."""
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(4096)
    _, name, rest = head.partition(WEBM_SEGMENT)
    if name:
        length = 9 - int.from_bytes(rest[:1], "big").bit_length()
        unknown = (1 << 7 * length) - 1  # RFC 8794 section 6.2
        declared = int.from_bytes(rest[:length], "big") & unknown
        end = len(head) - len(rest) + length + declared
        if declared != unknown and end > size:
            raise Refused("it ends too early")
        if declared != unknown:
            file.seek(end)
            _check_behind(file.read(64))
    return {}, {}


def _check_behind(data):
    if BEHIND.match(data):
        raise Refused("something else hangs on behind it")


def orientation(exif, tags):
    """The orientation in an EXIF block, 1 (upright) to 8; anything else says nothing. `tags` is an empty PIL.Image.Exif."""
    try:
        tags.load(exif)
        return tags.get(EXIF_ORIENTATION)
    except Exception:  # a broken note about the picture does not break the picture
        return None


def _boxes(file, start, limit):
    """(type, start of the content, end) of the boxes from `start` on; the last one may claim to end behind `limit`."""
    for _ in range(MAX_BOXES):
        if start + 8 > limit:
            return
        file.seek(start)
        header = file.read(16)
        (size, kind), content = struct.unpack_from(">I4s", header), 8
        if size == 1:
            size, content = int.from_bytes(header[8:], "big"), 16
        elif size == 0:
            size = limit - start
        if size < content:
            return
        yield kind, start + content, start + size
        start += size


def _tracks(file, start, end):
    for content in _inside(file, start, end, b"trak", b"tkhd"):
        file.seek(content)
        yield _track(file.read(96).ljust(96, b"\x00"))


def _edits(file, start, end):
    """The number of entries of each edit list: ISO/IEC 14496-12 section 8.6.6."""
    for content in _inside(file, start, end, b"trak", b"edts", b"elst"):
        file.seek(content + 4)
        yield int.from_bytes(file.read(4), "big")


def _inside(file, start, end, *path):
    """Where the content begins of each box that lies on this path of types."""
    kind, *rest = path
    for name, content, box_end in _boxes(file, start, end):
        if name == kind:
            yield from _inside(file, content, min(box_end, end), *rest) if rest else (content,)


def _track(header):
    # ISO/IEC 14496-12 section 8.3.2; in version 1 three times are 4 bytes longer, two of them before the track id.
    times = 4 if header[0] == 1 else 0
    track_id = int.from_bytes(header[12 + 2 * times :][:4], "big")
    a, b, *_, width, height = struct.unpack_from(">9i2I", header, 40 + 3 * times)
    # In a quarter turn b and c of the matrix (a b u c d v x y w) take the place of a and d. Sizes are 16.16 numbers.
    return track_id, (abs(b) > abs(a), width >> 16, height >> 16)


def restrict(address_space, cpu_seconds=CPU_SECONDS, file_size=0):
    """Limits this process from now on; bytes of memory, and of the largest file that it may write. Others go before it."""
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    if sys.platform == "linux":  # macOS maps more than this before the program begins, and refuses the limit
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


def _answer(mime_type, file):
    try:
        if mime_type.startswith("image/"):
            return measure_image(file, mime_type)
        found = (check_segment if mime_type == "video/webm" else check_boxes)(file)
        file.seek(0)
        return measure_video(file, mime_type, *found)
    except Refused as refused:
        return {"refused": str(refused)}
    except MemoryError:
        return {"refused": "it takes too much memory to read"}


if __name__ == "__main__":
    # Only one of the two is loaded: together they double the time that a picture takes.
    if sys.argv[1].startswith("image/"):
        restrict(ADDRESS_SPACE_WEBP if sys.argv[1] == "image/webp" else ADDRESS_SPACE_IMAGE)
        from PIL import Image, WebPImagePlugin  # noqa: F401, else Pillow loads 40 formats to find WebP

        Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2  # Pillow refuses at twice this number
    else:
        restrict(ADDRESS_SPACE_VIDEO)
        import av
    print(json.dumps(_answer(sys.argv[1], sys.stdin.buffer)))
