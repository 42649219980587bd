"""The AT Protocol's rules for records and requests, as a server checks them: https://atproto.com/specs/lexicon"""

import base64
import hashlib
import json
import re

import regex

from tests.standins.server import Answer, route

JSON_BYTES = 150 * 1024
DID = r"did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-]"
HANDLE = r"([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
NSID = r"[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)+\.[a-zA-Z][a-zA-Z0-9]{0,62}"
RKEY = r"(?!\.\.?$)[a-zA-Z0-9_~.:-]{1,512}"
LANGUAGE = (r"(?:i|x)(-[A-Za-z0-9]{1,8})+|[a-z]{2,3}(-[A-Za-z]{3}){0,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?"
            r"(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(-[0-9A-WY-Za-wy-z](-[A-Za-z0-9]{2,8})+)*(-[xX](-[A-Za-z0-9]{1,8})+)?")
FORMATS = {
    "DID": DID, "handle": HANDLE, "AT identifier": f"{DID}|{HANDLE}", "NSID": NSID, "record key": RKEY,
    "at-uri": f"at://({DID}|{HANDLE})(/{NSID}(/{RKEY})?)?", "TID string": "[234567a-j][234567a-z]{12}", "language": LANGUAGE,
    "datetime": r"(?!.*-00:00$)\d{4}-(0[1-9]|1[012])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
                r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    "uri": r"\w+:(//)?[^\s/]\S*", "CID string": "baf[yk]rei[a-z2-7]{52}",
}


class Invalid(Exception):
    """A value that breaks a rule of its lexicon."""

    def __init__(self, message: str, path: str = ""):
        super().__init__(f"{message} at {path}" if path else message)
        self.message = message


def string(max_bytes=None, max_graphemes=None, form=None):
    """A string; form is a key of FORMATS."""

    def check(value, path):
        _expect(isinstance(value, str), "string", value, path)
        _at_most("string", max_bytes, len(value.encode(errors="surrogatepass")), path)
        _at_most("grapheme", max_graphemes, len(regex.findall(r"\X", value)), path)
        if form and not re.fullmatch(FORMATS[form], value, re.ASCII):
            raise Invalid(f"Invalid {form} (got {_show(value)})", path)

    return check


def integer(minimum):
    """A safe JavaScript integer."""

    def check(value, path):
        _expect(_is_integer(value), "integer", value, path)
        if value < minimum:
            raise Invalid(f"integer too small (minimum {minimum}, got {value})", path)

    return check


def array(item, most=None):
    """A list of up to `most` items."""

    def check(value, path):
        _expect(isinstance(value, list), "array", value, path)
        _at_most("array", most, len(value), path)
        for index, entry in enumerate(value):
            item(entry, f"{path}[{index}]")

    return check


def record(kind, required, optional=None):
    """An object with a fixed or absent $type; other members are free, as lexicon objects are open."""

    def check(value, path):
        _expect(isinstance(value, dict), "object", value, path)
        if kind and value.get("$type", kind) != kind:
            raise Invalid(f"Expected {_show(kind)} (got {_show(value['$type'])})", f"{path}.$type")
        for key, rule in {**required, **(optional or {})}.items():
            if key in value:
                rule(value[key], f"{path}.{key}")
            elif key in required:
                raise Invalid(f'Missing required key "{key}"', path)

    check.kind = kind
    return check


def union(*members, closed=False):
    """An object told apart by $type; an open union lets unknown types pass unchecked."""
    kinds = {member.kind: member for member in members}

    def check(value, path):
        typed = isinstance(value, dict) and "$type" in value
        _expect(typed, 'an object which includes the "$type" property', value, path)
        if value["$type"] in kinds:
            kinds[value["$type"]](value, path)
        elif closed:
            *most, last = map(_show, kinds)
            raise Invalid(f"Expected one of {', '.join(most)} or {last} (got {_show(value['$type'])})", f"{path}.$type")

    return check


def blob(accept, max_bytes):
    """A blob reference with exactly its four members."""

    def check(value, path):
        shape = isinstance(value, dict) and set(value) == {"$type", "ref", "mimeType", "size"} and value["$type"] == "blob"
        whole = shape and _is_integer(value["size"]) and "/" in str(value["mimeType"]) and _link(value["ref"])
        _expect(whole, "blob", value, path)
        if not re.fullmatch(accept.replace("*", ".*"), value["mimeType"]):
            raise Invalid(f"Expected {_show(accept)} (got {_show(value['mimeType'])})", f"{path}.mimeType")
        _at_most("blob", max_bytes, value["size"], path)

    return check


def anything(value, path):
    """Any value of the data model, which has no fractions."""
    for key, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        anything(member, f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}")
    kinds = "one of null, boolean, integer, string, cid, bytes, array or object"
    _expect(not isinstance(value, float | int) or isinstance(value, bool) or _is_integer(value), kinds, value, path)


def free_object(value, path):
    """An object of any shape."""
    _expect(isinstance(value, dict), "object", value, path)
    anything(value, path)


def boolean(value, path):
    """true or false."""
    _expect(isinstance(value, bool), "boolean", value, path)


TEXT, TAG, URI, AT_URI = string(), string(640, 64), string(form="uri"), string(form="at-uri")
CID, DATE, LANG = string(form="CID string"), string(form="datetime"), string(form="language")
STRONG_REF = record("com.atproto.repo.strongRef", {"uri": AT_URI, "cid": CID})
ASPECT = record("app.bsky.embed.defs#aspectRatio", {"width": integer(1), "height": integer(1)})
FACET = record("app.bsky.richtext.facet", {
    "index": record("app.bsky.richtext.facet#byteSlice", {"byteStart": integer(0), "byteEnd": integer(0)}),
    "features": array(union(
        record("app.bsky.richtext.facet#mention", {"did": string(form="DID")}),
        record("app.bsky.richtext.facet#link", {"uri": URI}),
        record("app.bsky.richtext.facet#tag", {"tag": TAG}),
    )),
})
PICTURE = {"image": blob("image/*", 2_000_000), "alt": TEXT}
IMAGES = record("app.bsky.embed.images", {
    "images": array(record("app.bsky.embed.images#image", PICTURE, {"aspectRatio": ASPECT}), 4),
})
GALLERY = record("app.bsky.embed.gallery", {
    "items": array(union(record("app.bsky.embed.gallery#image", {**PICTURE, "aspectRatio": ASPECT})), 20),
})
VIDEO = record("app.bsky.embed.video", {"video": blob("video/mp4", 300_000_000)}, {
    "captions": array(record("app.bsky.embed.video#caption", {"lang": LANG, "file": blob("text/vtt", 20_000)}), 20),
    "alt": TEXT, "aspectRatio": ASPECT, "presentation": TEXT,
})
EXTERNAL = record("app.bsky.embed.external", {
    "external": record("app.bsky.embed.external#external", {"uri": URI, "title": TEXT, "description": TEXT}, {
        "thumb": blob("image/*", 1_000_000), "associatedRefs": array(STRONG_REF),
    }),
})
QUOTE = record("app.bsky.embed.record", {"record": STRONG_REF})
QUOTE_WITH_MEDIA = record("app.bsky.embed.recordWithMedia", {"record": QUOTE, "media": union(IMAGES, VIDEO, GALLERY, EXTERNAL)})
LABELS = record("com.atproto.label.defs#selfLabels", {
    "values": array(record("com.atproto.label.defs#selfLabel", {"val": string(128)}), 10),
})
SLICE = record("app.bsky.feed.post#textSlice", {"start": integer(0), "end": integer(0)})
GATE = "app.bsky.feed.threadgate#"
RECORDS = {
    "app.bsky.feed.post": record(None, {"text": string(3000, 300), "createdAt": DATE}, {
        "entities": array(record("app.bsky.feed.post#entity", {"index": SLICE, "type": TEXT, "value": TEXT})),
        "facets": array(FACET),
        "reply": record("app.bsky.feed.post#replyRef", {"root": STRONG_REF, "parent": STRONG_REF}),
        "embed": union(IMAGES, VIDEO, GALLERY, EXTERNAL, QUOTE, QUOTE_WITH_MEDIA),
        "langs": array(LANG, 3), "labels": union(LABELS), "tags": array(TAG, 8),
    }),
    "app.bsky.feed.threadgate": record(None, {"post": AT_URI, "createdAt": DATE}, {
        "allow": array(union(
            record(GATE + "mentionRule", {}), record(GATE + "followerRule", {}), record(GATE + "followingRule", {}),
            record(GATE + "listRule", {"list": AT_URI}),
        ), 5),
        "hiddenReplies": array(AT_URI, 300),
    }),
    "app.bsky.feed.postgate": record(None, {"post": AT_URI, "createdAt": DATE}, {
        "detachedEmbeddingUris": array(AT_URI, 50),
        "embeddingRules": array(union(record("app.bsky.feed.postgate#disableRule", {})), 5),
    }),
}


def cid_of(value, codec=0x71) -> str:
    """CIDv1 with SHA-256: of a record as DAG-CBOR, or with codec 0x55 of raw bytes."""
    data = value if codec == 0x55 else _cbor(value)
    digest = bytes([1, codec, 0x12, 0x20]) + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(digest).decode().lower().rstrip("=")


def blobs_in(value):
    """Every blob reference inside a record, in any member."""
    if isinstance(value, dict) and value.get("$type") == "blob":
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from blobs_in(member)


def spans(value: dict) -> list[dict]:
    """What each facet of a post covers. The network stores any range; `text` is None when the range is not whole characters."""
    data, found = value["text"].encode(), []
    for facet in value.get("facets", []):
        start, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
        try:
            text = data[start:end].decode() if start < end <= len(data) else None
        except UnicodeDecodeError:
            text = None
        found.append({"start": start, "end": end, "text": text, "features": facet["features"]})
    return found


class Refusal(Answer):
    """An XRPC error: {"error": name, "message": text}."""

    def __init__(self, status, error, message, headers=None):
        super().__init__(status, {"error": error, "message": message}, headers)


def query(nsid, params=None, auth=None):
    """Mark a handler(self, request, account, params) of GET /xrpc/nsid."""
    return route("GET", f"/xrpc/{nsid}", nsid, params=params or record(None, {}), auth=auth)


def procedure(nsid, body=None, auth=None, types=("application/json",), most=JSON_BYTES, rates=None):
    """Mark a handler(self, request, account, body) of POST /xrpc/nsid; body None takes none, bytes takes raw ones."""
    return route("POST", f"/xrpc/{nsid}", nsid, body=body, auth=auth, types=types, most=most, rates=rates)


def _expect(right, kind, value, path):
    if not right:
        raise Invalid(f"Expected {kind} value type (got {_show(value)})", path)


def _at_most(what, maximum, size, path):
    if maximum is not None and size > maximum:
        raise Invalid(f"{what} too big (maximum {maximum}, got {size})", path)


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _link(value):
    return isinstance(value, dict) and set(value) == {"$link"} and re.fullmatch("bafkrei[a-z2-7]{52}", str(value["$link"]))


def _show(value):
    if isinstance(value, dict):
        members = [f"{json.dumps(key)}: ..." for key in list(value)[:2]]
        return "{" + ", ".join(members + ["..."] * (len(value) > 2)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_show(entry) for entry in value[:2]] + ["..."] * (len(value) > 2)) + "]"
    if isinstance(value, str) and len(value) >= 256:
        value = value[:255] + "…"
    return json.dumps(value, ensure_ascii=False)


def base64url(data):
    """Base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _cbor(value):
    match value:
        case bool() | None:
            return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
        case int():
            return _cbor_head(0, value) if value >= 0 else _cbor_head(1, -1 - value)
        case bytes():
            return _cbor_head(2, len(value)) + value
        case str():
            return _cbor_head(3, len(value.encode())) + value.encode()
        case list():
            return _cbor_head(4, len(value)) + b"".join(map(_cbor, value))
        case {"$link": link, **rest} if not rest:
            return b"\xd8\x2a" + _cbor(b"\0" + base64.b32decode(link[1:].upper() + "=" * (-len(link[1:]) % 8)))
        case {"$bytes": text, **rest} if not rest:
            return _cbor(base64.b64decode(text + "=="))
    keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
    return _cbor_head(5, len(value)) + b"".join(_cbor(key) + _cbor(value[key]) for key in keys)


def _cbor_head(kind, number):
    if number < 24:
        return bytes([kind << 5 | number])
    size = next(size for size in (0, 1, 2, 3) if number < 1 << (8 << size))
    return bytes([kind << 5 | 24 + size]) + number.to_bytes(1 << size)
