"""Makes media files, whole and broken, real and pretended; nothing binary is kept in the repository."""

import io
import struct
import zipfile
import zlib
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import av
from av.stream import Disposition
from PIL import Image

from storage import media

WIDTH, HEIGHT = 64, 48
HTML = b"<!DOCTYPE html><html><head><title>Gotcha, a page</title></head><body><script>alert(1)</script></body></html>" * 20
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def examine(path):
    """What the service finds in the file at `path`: storage.media.Facts. Raises NotMedia."""
    with open(path, "rb") as file:
        return media.examine(file)


def orientation(number):
    """EXIF that says how a picture is to be turned, 1 to 8."""
    return b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00%c\x00\x00\x00\x00\x00\x00" % number


ORIENTATION_6 = orientation(6)


@cache
def image(form, mode="RGB", frames=1, **options):
    """The bytes of a 64 by 48 picture, saved by Pillow with its options; several frames make an animation."""
    noise = Image.effect_noise((WIDTH, HEIGHT), 60).convert("RGB")
    pictures = [noise.rotate(90 * turn).convert(mode) for turn in range(frames)]
    if frames > 1:
        options |= {"save_all": True, "append_images": pictures[1:]}
    out = io.BytesIO()
    pictures[0].save(out, form, **options)
    return out.getvalue()


def png_16_bit():
    """A grey picture of 16 bits a pixel."""
    return png(WIDTH, HEIGHT, 16, b"".join(b"\x00" + bytes(2 * WIDTH) for _ in range(HEIGHT)))


def png_colours_16_bit():
    """A picture of 48 bits a pixel, in colours."""
    return png(WIDTH, HEIGHT, 16, b"".join(b"\x00" + bytes(6 * WIDTH) for _ in range(HEIGHT)), colours=2)


def png_interlaced():
    """A grey picture in the seven passes of Adam7."""
    passes = [(len(range(x, WIDTH, right)), len(range(y, HEIGHT, down))) for x, y, right, down in ADAM7]
    return png(WIDTH, HEIGHT, 8, b"".join(bytes(1 + width) * height for width, height in passes), interlaced=1)


def png(width, height, depth, rows, colours=0, interlaced=0, before=()):
    """A grey PNG that declares these measures, whatever rows it has, with the chunks `before` its picture."""
    header = struct.pack(">2I5B", width, height, depth, colours, 0, 0, interlaced)
    pictures = [(b"IDAT", zlib.compress(rows))] if rows is not None else []
    chunks = ((b"IHDR", header), *before, *pictures, (b"IEND", b""))
    parts = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def gif(width, height):
    """A GIF that declares these measures and has one pixel, with a global and a local table of two colours."""
    screen = b"GIF89a" + struct.pack("<2H3B", width, height, 0x80, 0, 0) + bytes(6)
    return screen + b"," + struct.pack("<4HB", 0, 0, 1, 1, 0x80) + b"\xff" * 6 + b"\x02\x02\x44\x01\x00;"


def jpeg_of_size(width, height):
    """A grey JPEG of these measures, each of whose blocks is like the one before: two bits that are 0."""
    out = io.BytesIO()
    Image.new("L", (8, 8), 128).save(out, "JPEG", optimize=True)
    data = out.getvalue()
    frame, scan = data.index(b"\xff\xc0") + 5, data.index(b"\xff\xda")
    start = scan + 2 + int.from_bytes(data[scan + 2 : scan + 4], "big")
    coded = bytes(-(-width // 8) * -(-height // 8) // 4 + 1)
    return data[:frame] + struct.pack(">2H", height, width) + data[frame + 4 : start] + coded + b"\xff\xd9"


def webp_of_size(width, height):
    """A lossless WebP that declares these measures."""
    data = image("WEBP", lossless=True)
    return data[:21] + struct.pack("<I", width - 1 | height - 1 << 14) + data[25:]


@cache
def video(form, codec="libx264", frames=10, turn=None, title=None, codec_options=(), pixels="yuv420p", audio=None, tag=None,
          **options):
    """The bytes of a 64 by 48 video of 10 frames a second, turned by degrees, made with the options of FFmpeg's muxer.

    `audio` is the codec of a sound track of 0.1 s, `tag` what names the video's codec in the file.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "video"
        with av.open(path, "w", format=form, options=options) as container:
            if title:
                container.metadata["title"] = title
            stream = container.add_stream(codec, rate=10, options=dict(codec_options))
            stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels
            # The threads of VP9's encoder wait for one another without rest: on a busy machine, minutes for one picture.
            stream.codec_context.thread_count = 1
            track = container.add_stream(audio, rate=48000, layout="mono") if audio else None
            if tag:
                stream.codec_context.codec_tag = tag
            if turn is not None:
                stream.set_display_rotation(turn)
            _encode(container, stream, [_picture(number, pixels) for number in range(frames)])
            if track:
                _encode(container, track, [_silence(number, track.format.name) for number in range(5)])
        return path.read_bytes()


@cache
def sound(form, codec, cover=False):
    """The bytes of a sound file in a container that videos use, with a cover picture if asked for."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sound"
        with av.open(path, "w", format=form) as container:
            stream = container.add_stream(codec, rate=48000, layout="mono")
            art = container.add_stream("mjpeg") if cover else None
            if art:
                art.width, art.height, art.pix_fmt = WIDTH, HEIGHT, "yuvj420p"
                art.disposition = Disposition.attached_pic
                _encode(container, art, [_picture(0, "yuvj420p")])
            _encode(container, stream, [_silence(number, stream.format.name) for number in range(5)])
        return path.read_bytes()


def _picture(number, pixels="yuv420p"):
    frame = av.VideoFrame(WIDTH, HEIGHT, pixels)
    for plane in frame.planes:
        plane.update(bytes([number * 20 % 256]) * plane.buffer_size)
    frame.pts, frame.time_base = number, Fraction(1, 10)
    return frame


def _silence(number, samples):
    frame = av.AudioFrame(format=samples, layout="mono", samples=960)
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    frame.pts, frame.sample_rate, frame.time_base = number * 960, 48000, Fraction(1, 48000)
    return frame


def _encode(container, stream, frames):
    for frame in (*frames, None):
        container.mux(stream.encode(frame))


def box(kind, *contents):
    """An ISO 14496-12 box."""
    content = b"".join(contents)
    return struct.pack(">I4s", 8 + len(content), kind) + content


def ftyp(major, *compatible):
    """The first box of an MP4 or QuickTime file."""
    return box(b"ftyp", major, struct.pack(">I", 512), *compatible)


def fragmented():
    """An MP4 of 3 seconds in 6 fragments, without an index at its end."""
    flags = "frag_keyframe+empty_moov+default_base_moof+skip_trailer"
    return video("mp4", frames=30, codec_options=(("g", "5"),), movflags=flags)


def with_ftyp(data, start):
    """The same file behind another ftyp box; a free box keeps all offsets."""
    old = int.from_bytes(data[:4], "big") + (8 if data[36:40] == b"free" else 0)
    return start + box(b"free", bytes(old - len(start) - 8)) + data[old:]


def gopro():
    """An MP4 with the short ftyp box of GoPro cameras."""
    return with_ftyp(video("mp4"), ftyp(b"mp41", b"mp41"))


def without_ftyp(**options):
    """A QuickTime file as it was before 2001."""
    data = video("mov", **options)
    return data[:4] + b"skip" + data[8:]


def with_long_mdat(data):
    """The same file with a size of 64 bits for its mdat box."""
    at = data.index(b"mdat") - 12  # the empty box before it, of 8 bytes, becomes the rest of the longer header
    size = struct.unpack_from(">I", data, at + 8)[0]
    return data[:at] + struct.pack(">I4sQ", 1, b"mdat", size + 8) + data[at + 16 :]


def with_open_end(data, kind):
    """The same file with a last box that goes on to the end of the file, whatever that is."""
    at = data.index(kind) - 4
    return data[:at] + bytes(4) + data[at + 4 :]


def with_track_size(width, height):
    """An MP4 of MPEG-4 part 2 whose track header declares another size than the coded picture."""
    data = video("mp4", codec="mpeg4")
    at = data.index(b"tkhd") + 80
    return data[:at] + struct.pack(">2I", width << 16, height << 16) + data[at + 8 :]


def with_long_times():
    """A turned MP4 whose track header is of version 1, with times of 64 bits."""
    data = video("mp4", turn=90)
    moov, trak, tkhd = (data.index(kind) - 4 for kind in (b"moov", b"trak", b"tkhd"))
    header = data[tkhd + 8 : tkhd + 92]
    longer = bytes(4) + header[4:8] + bytes(4) + header[8:20] + bytes(4) + header[20:]
    grown = {at: struct.unpack_from(">I", data, at)[0] + 12 for at in (moov, trak)}
    data = data[:tkhd] + box(b"tkhd", b"\x01" + header[1:4] + longer) + data[tkhd + 92 :]
    for at, size in grown.items():
        data = data[:at] + struct.pack(">I", size) + data[at + 4 :]
    return data


def with_latin_1_title():
    """An MP4 whose title is no UTF-8."""
    return video("mp4", title="Caf*").replace(b"Caf*", b"Caf\xe9")


def beyond_any_disk():
    """An MP4 in fragments, the last of which has its pictures at a place to which no file can be read."""
    data = video("mp4", movflags="frag_every_frame+empty_moov")
    at = data.rindex(b"tfhd") + 12
    return data[:at] + struct.pack(">Q", (1 << 63) - 2000) + data[at + 8 :]


def with_countless_samples():
    """A fragmented MP4 that declares 50 million samples in its first fragment, which take 1.2 GB when listed."""
    data = fragmented()
    at = data.index(b"trun") + 4
    flags = struct.unpack_from(">I", data, at)[0] & 0x1  # without a size, time or flag for each, they take no room in the file
    return data[:at] + struct.pack(">2I", flags, 50_000_000) + data[at + 8 :]


def with_edits(samples, edits):
    """An MP4 of so many samples, without one of them, and an edit list of which each entry shows nearly all."""
    def full(kind, *contents, flags=0):
        return box(kind, struct.pack(">I", flags), *contents)

    matrix = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    sizes = struct.pack(">2I", WIDTH << 16, HEIGHT << 16)
    track = full(b"tkhd", struct.pack(">5I", 0, 0, 1, 0, samples), bytes(16), matrix, sizes, flags=3)
    list_ = full(b"elst", struct.pack(">I", edits), struct.pack(">Iihh", 2, samples - 2, 1, 0) * edits)
    coded = box(b"avc1", bytes(6), b"\x00\x01", bytes(16), struct.pack(">2H", WIDTH, HEIGHT), bytes(50))
    tables = ((b"stsd", (1,), coded), (b"stts", (1, samples, 1), b""), (b"stsc", (1, 1, samples, 1), b""),
              (b"stsz", (1, samples), b""), (b"stss", (1, 1), b""), (b"stco", (1, 40), b""))
    stbl = box(b"stbl", *[full(kind, struct.pack(f">{len(numbers)}I", *numbers), rest) for kind, numbers, rest in tables])
    here = box(b"dinf", full(b"dref", struct.pack(">I", 1), full(b"url ", flags=1)))
    media = box(b"mdia", full(b"mdhd", struct.pack(">4I2H", 0, 0, 1000, samples, 0, 0)),
                full(b"hdlr", bytes(4), b"vide", bytes(13)), box(b"minf", full(b"vmhd", bytes(8), flags=1), here, stbl))
    movie = full(b"mvhd", struct.pack(">4I", 0, 0, 1000, samples), bytes(80))
    return ftyp(b"isom", b"mp42") + box(b"mdat", HTML) + box(b"moov", movie, box(b"trak", track, box(b"edts", list_), media))


def reference_movie():
    """A QuickTime file that has no pictures and sends the player to an address."""
    address = b"http://127.0.0.1/other.mov\x00"
    reference = box(b"rdrf", bytes(4), b"url ", struct.pack(">I", len(address)), address)
    return ftyp(b"qt  ", b"qt  ") + box(b"moov", box(b"rmra", box(b"rmda", reference)))


def nested_boxes(depth=20_000):
    """An MP4 with boxes in boxes in boxes."""
    size = 8 * depth
    return ftyp(b"isom") + b"".join(struct.pack(">I4s", size - 8 * level, b"moov") for level in range(depth))


def many_boxes(count=1_000_000):
    """An MP4 of 8 MB that consists of empty boxes."""
    return ftyp(b"isom") + box(b"free") * count


def many_tracks(count=100_000):
    """An MP4 that declares more tracks than anybody has."""
    return ftyp(b"isom") + box(b"moov", box(b"trak", box(b"tkhd", bytes(84)), box(b"mdia")) * count) + box(b"mdat")


def huge_boxes():
    """An MP4 with boxes that claim to be larger than a file can be."""
    huge = struct.pack(">I4sQ", 1, b"trak", 2**64 - 1) + struct.pack(">I4sQ", 1, b"free", 2**64 - 99)
    return ftyp(b"isom") + box(b"moov", huge)


def heic_item():
    """The boxes of a HEIC picture behind the brand of a video."""
    return heif(b"isom", b"mif1", b"heic")


def endless_segment():
    """The start of a WebM file of unknown length, up to its first element."""
    data = video("webm", "libvpx", live="1")
    return data[: data.index(b"\x18\x53\x80\x67") + 12]


def void_before_segment():
    """A WebM file with an empty element between its header and its segment."""
    data = video("webm", "libvpx")
    at = data.index(b"\x18\x53\x80\x67")
    return data[:at] + b"\xec\x88" + bytes(8) + data[at:]


def motion_photo():
    """A JPEG with a short video behind it, as Android cameras write them."""
    return image("JPEG") + video("mp4")


def heif(brand, *compatible):
    """The boxes of a HEIF picture: a brand, an item and its bytes."""
    item = box(b"meta", bytes(4), box(b"hdlr", bytes(8), b"pict", bytes(13)), box(b"pitm", bytes(4), b"\x00\x01"))
    return ftyp(brand, *compatible) + item + box(b"mdat", bytes(1000))


def zipped(*names):
    """A ZIP archive with empty files of these names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return out.getvalue()
