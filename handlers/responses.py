"""The two envelopes, built here and nowhere else."""

from dataclasses import dataclass, field

import orjson

MESSAGE_LENGTH = 2000   # characters; the document's bound on a sentence


@dataclass(frozen=True)
class Answer:
    """An answer as it goes out, and as an Idempotency-Key keeps it."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    secret: bool = False    # whether its body holds one: then it is sealed where an Idempotency-Key keeps it


def unchanged(if_none_match: str | None, etag: str) -> bool:
    """Whether the caller has this very answer already: the value of If-None-Match, None where there is none (RFC 9110, 13.1.2)."""
    known = [tag.strip() for tag in (if_none_match or "").split(",")]
    return known == ["*"] or etag in [tag.removeprefix("W/") for tag in known]


def ok(data, *, status=200, meta=None, headers=None, secret=False) -> Answer:
    """The success envelope around `data`; `secret`: whether that holds one."""
    envelope = {"success": True, "data": data}
    if meta is not None:
        envelope["meta"] = meta
    return Answer(status, orjson.dumps(envelope), headers or {}, secret)


def failure(error, request_id: str) -> Answer:
    """The failure envelope of an ApiError."""
    body = {"code": error.code, "message": error.message[:MESSAGE_LENGTH]}
    if error.details:
        body["details"] = [detail.to_dict() for detail in error.details]
    return Answer(error.status, orjson.dumps({"success": False, "error": body, "meta": {"requestId": request_id}}), error.headers)
