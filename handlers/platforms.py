"""What each network takes, from the same numbers that posts are checked against."""

import hashlib
from dataclasses import asdict
from functools import cache

import orjson

from handlers.responses import Answer, ok, unchanged
from platforms.files import sendable

KEPT = {"Cache-Control": "private, no-cache"}     # by the caller alone, and asked for by its ETag before each use


def list_platforms(services, if_none_match):
    """GET /v1/platforms, with an ETag."""
    answer, etag = _answer(services.platforms)
    if unchanged(if_none_match, etag):
        return Answer(304, b"", {"ETag": etag, **KEPT})
    return answer


@cache
def _answer(registry):
    data = {"platforms": [_capability(registry[name]) for name in registry.names]}
    etag = f'"{hashlib.sha256(orjson.dumps(data)).hexdigest()[:32]}"'
    return ok(data, headers={"ETag": etag, **KEPT}), etag


def _capability(platform):
    limits = platform.limits
    kinds = {"image": limits.image, "video": limits.video}
    return {"platform": platform.name, "captionLimit": limits.caption, "maxMediaItems": limits.media_items,
            "mediaTypes": [kind for limit in kinds.values() if limit for kind in sendable(limit)],
            "titleLimit": limits.title, "descriptionLimit": limits.description, "postTypes": list(platform.post_types),
            "media": {kind: _bounds(limit) for kind, limit in kinds.items() if limit},
            "source": limits.source, "reviewedAt": limits.reviewed_at}


def _bounds(limits):
    bounds = {_camel(name): value for name, value in asdict(limits).items() if value is not None}
    return {**bounds, "types": sendable(limits)}


def _camel(name):
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
