"""What the first bytes of the seven media types look like, strictly."""

import re
import zlib

# ITU T.81 table B.1: the markers that may follow SOI, each with the length of its segment.
JPEG = re.compile(rb"\xff\xd8\xff+[\xc0-\xc7\xc9-\xcf\xdb\xdd\xe0-\xef\xfe](..)", re.DOTALL)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
GIF = (b"GIF87a", b"GIF89a")
EBML = b"\x1a\x45\xdf\xa3"
EBML_DOCTYPE = b"\x42\x82"
EBML_VOID = b"\xec"
ZIP_END, TAIL = b"PK\x05\x06", 65_557     # with the longest comment behind it
WEBM_SEGMENT = b"\x18\x53\x80\x67"

# https://mp4ra.org/registered-types/brands: a file of an unknown major brand is what its compatible brands say,
# unless it is a picture or sound, which share the container. 3GPP is another type, save where a file says it is MP4 as well.
MP4_BRANDS = frozenset(
    b"isom iso2 iso3 iso4 iso5 iso6 iso7 iso8 iso9 isoa isob isoc mp41 mp42 avc1 hvc1 av01 dash msdh cmfc cmf2 cmff "
    b"piff isml ccff mmp4 MSNV XAVC NDSC NDSH NDSM NDSP NDXC NDXH NDXM NDXP NDXS M4VH M4VP".split()
) | {b"M4V ", b"F4V ", b"f4v "}
FOREIGN_BRANDS = frozenset(
    b"heic heix heim heis hevc hevx hevm hevs mif1 mif2 msf1 miaf avif avis avio MA1A MA1B mjp2 mj2s".split()
) | {b"jp2 ", b"jpx ", b"jpm ", b"jxl ", b"crx ", b"M4A ", b"M4B ", b"M4P ", b"F4A ", b"F4B "}
BRANDS_3GPP, MP4_BRANDS_WITH_3GPP = (b"3gp", b"3g2"), frozenset({b"mp41", b"mp42"})
QUICKTIME_BRAND = b"qt  "
# What a QuickTime file from before ftyp (1991 to 2001) may begin with, "QuickTime File Format", chapter "Movie Atoms".
OLD_QUICKTIME = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})


def match(head):
    """The media type whose signature `head` (the first 4,096 bytes or more, or the whole file) bears, or None."""
    found = (check(head) for check in (_jpeg, _png, _gif, _webp, _movie, _webm))
    return next((mime_type for mime_type in found if mime_type), None)


def second(head, tail):
    """What a file is beside media, in words, or None; `tail` is its last TAIL bytes, or the whole file."""
    # Readers of PDF look for its start in the first 1,024 bytes, those of ZIP, which JAR and DOCX are, for its end at the end.
    if b"%PDF-" in head[:1024]:
        return "a PDF document"
    at = tail.rfind(ZIP_END)
    if at >= 0 and at + 22 + int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail):
        return "a ZIP archive"
    return None


def _jpeg(head):
    start = JPEG.match(head)
    if start is None:
        return None
    length = int.from_bytes(start[1], "big")
    following = head[start.start(1) + length :][:1]
    return "image/jpeg" if length >= 2 and following in (b"", b"\xff") else None


def _png(head):
    sizes = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    genuine = head.startswith(PNG) and zlib.crc32(head[12:29]) == int.from_bytes(head[29:33], "big")
    return "image/png" if genuine and all(sizes) else None


def _gif(head):
    if not head.startswith(GIF) or len(head) < 13:
        return None
    width, height, flags = int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"), head[10]
    blocks = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    return "image/gif" if width and height and head[blocks : blocks + 1] in (b"!", b",") else None


def _webp(head):
    # RFC 9649 section 2.6 to 2.8; the bytes behind each chunk name are the first ones that its decoder insists on.
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return None
    lossy = head[12:16] == b"VP8 " and head[23:26] == b"\x9d\x01\x2a"
    lossless = head[12:16] == b"VP8L" and head[20:21] == b"\x2f"
    extended = head[12:20] == b"VP8X\x0a\x00\x00\x00"
    return "image/webp" if lossy or lossless or extended else None


def _movie(head):
    size = int.from_bytes(head[:4], "big")
    if head[4:8] != b"ftyp":
        return "video/quicktime" if _is_old_quicktime(head) else None
    if size % 4 or not 16 <= size <= len(head):
        return None
    major, brands = head[8:12], {head[at : at + 4] for at in (8, *range(16, size, 4))}
    if major in FOREIGN_BRANDS:
        return None
    if major != QUICKTIME_BRAND and brands & (MP4_BRANDS_WITH_3GPP if major.startswith(BRANDS_3GPP) else MP4_BRANDS):
        return "video/mp4"
    return "video/quicktime" if QUICKTIME_BRAND in brands else None


def _is_old_quicktime(head):
    at, seen = 0, set()
    while at + 8 <= len(head):
        size, kind = int.from_bytes(head[at : at + 4], "big"), head[at + 4 : at + 8]
        if size == 1:
            size = int.from_bytes(head[at + 8 : at + 16], "big")
        if kind not in OLD_QUICKTIME or 0 < size < 8:
            return False
        seen.add(kind)
        at += size or len(head)
    return bool(seen & {b"moov", b"mdat"})


def _webm(head):
    # RFC 8794 section 11.2: the EBML header is a list of elements, one of which names the document type.
    if not head.startswith(EBML):
        return None
    size, at = _ebml_size(head, 4)
    end, doctype = at + size, None
    while at < end <= len(head):
        name = head[at : at + 9 - head[at].bit_length()]
        size, at = _ebml_size(head, at + len(name))
        if name == EBML_DOCTYPE:
            doctype = head[at : at + size].rstrip(b"\x00")
        at += size
    return "video/webm" if doctype == b"webm" and head[end:].startswith((WEBM_SEGMENT, EBML_VOID)) else None


def _ebml_size(head, at):
    """The value of the variable-size integer at `at` (RFC 8794 section 4) and the offset behind it."""
    length = 9 - (head[at] if at < len(head) else 0).bit_length()
    return int.from_bytes(head[at : at + length], "big") & (1 << 7 * length) - 1, at + length
