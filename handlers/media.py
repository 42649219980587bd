"""Bringing files into the store, and finding them again by their URLs."""

import tempfile
from datetime import UTC, datetime, timedelta

from handlers.errors import (Detail, ExternalServiceError, ExternalTimeout, Forbidden, PayloadTooLarge, RateLimited,
                             Unprocessable)
from handlers.responses import ok
from storage import claims
from storage.database import database, with_connection
from storage.fetch import BadStatus, Broken, Busy, Refused, TooLarge, TooSlow, Unreachable
from storage.media import NotMedia, examine, is_video, new_key
from storage.models import Media, wire_time

MB = 1_048_576
FETCH_LIMIT = 50 * MB
UPLOAD_LIMIT = {"image": 50 * MB, "video": 2048 * MB}
UPLOAD_TIME = {"image": timedelta(minutes=15), "video": timedelta(minutes=60)}
NOT_REACHABLE = "the link cannot be fetched: it must be a public http or https address"


def create_media_from_url(caller, services, body, keep):
    """POST /v1/media/from-url: fetches through the guard, looks at the bytes, stores."""
    with services.fetches.turn(caller.team_id), tempfile.TemporaryFile(prefix="posthorn-") as spool:
        download = _download(services.fetcher, body["url"], spool)
        facts = _examined(spool, "/url")
        spool.seek(0)
        media = _stored(caller, services, spool, download.bytes, facts.mime_type)
    with database.atomic():
        media = media.settle(facts)
        return keep(ok(media.to_dict(services.objects.public_url(media.key)), status=201))


def create_upload_url(caller, services, body, keep):
    """POST /v1/media/upload-url: a claim on a key, and a URL that takes exactly the declared size and type."""
    content_type, size = body["contentType"], body["fileSize"]
    kind = "video" if is_video(content_type) else "image"
    if size > UPLOAD_LIMIT[kind]:
        raise PayloadTooLarge(f"a {kind} may have {UPLOAD_LIMIT[kind]} bytes; {size} were declared")
    key, lasts = new_key(caller, content_type), UPLOAD_TIME[kind]
    expires_at = datetime.now(UTC) + lasts
    url, headers = services.objects.presigned_put(key, size, content_type, int(lasts.total_seconds()))
    media = _claimed(caller, services, key=key, mime_type=content_type, bytes=size)
    record = {**media.to_dict(services.objects.public_url(key)), "uploadUrl": url}
    return keep(ok(record, status=201, meta={"requiredHeaders": headers, "expiresAt": wire_time(expires_at)}))


def find(caller, services, urls):
    """The caller's media behind `urls`, by URL. An unknown and a foreign URL are both absent from the answer.

    A file that was uploaded but never looked at is looked at now; one that has not arrived stays `pending`.
    """
    # PostgreSQL takes no NUL, which a URL may hold as %00; no key of ours does.
    keys = {key: url for url in urls if (key := services.objects.key_of(url)) is not None and "\0" not in key}
    rows = Media.of(caller).where(Media.key.in_(list(keys)))
    return {keys[media.key]: _settled(services, media) for media in list(rows)}


def _settled(services, media):
    """`media` as a fact: ready with its measures, or refused for good; as it is while nothing has arrived."""
    if media.state != "pending":
        return media
    with services.looks.turn(media.team_id):
        verdict = claims.look(services.objects, media)
    return media if verdict is None else media.settle(verdict.facts, verdict.refusal)


def _claimed(caller, services, **values):
    quota = services.config.media_quota
    try:
        return claims.claim(caller, quota=quota, **values)
    except claims.QuotaFull as error:
        raise Forbidden(f"your team may keep {quota} bytes of files and has {error.used}; "
                        f"{values['bytes']} more do not fit") from None


def _stored(caller, services, spool, size, mime_type):
    """The claim on a file, stored. Its row is there before it: whatever ends this process, a sweep finds both."""
    with with_connection():
        media = _claimed(caller, services, key=new_key(caller, mime_type), mime_type=mime_type, bytes=size)
    try:
        services.objects.put(media.key, spool, size, mime_type)
    except BaseException:
        with with_connection():
            media.delete_instance()
        raise
    return media


def _download(fetcher, url, spool):
    try:
        return fetcher.download(url, spool, max_bytes=FETCH_LIMIT)
    except Busy as error:
        raise RateLimited(str(error), headers={"Retry-After": "5"}) from None
    except (Refused, Unreachable):
        raise Unprocessable.of([Detail("/url", "url", NOT_REACHABLE)]) from None
    except TooLarge:
        raise PayloadTooLarge(f"the file is over {FETCH_LIMIT} bytes; "
                              "larger ones go through POST /v1/media/upload-url") from None
    except BadStatus as error:
        raise ExternalServiceError(f"the server of the link answered {error.status}") from None
    except TooSlow:
        raise ExternalTimeout("the server of the link did not answer in time") from None
    except Broken:
        raise ExternalServiceError("the server of the link gave no whole answer") from None


def _examined(file, pointer):
    try:
        return examine(file)
    except NotMedia as error:
        raise Unprocessable.of([Detail(pointer, "media_type", str(error))]) from None
