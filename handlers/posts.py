"""Publishing, and what became of it."""

from contextlib import suppress

from handlers import cursors
from handlers.clients import acting_for
from handlers.contract import parse_span
from handlers.drafts import draft
from handlers.errors import Detail, InvalidState, NotFound, Unprocessable
from handlers.responses import ok
from storage import audit, posts
from storage.database import database
from storage.posts import Post

CHANGES = 5     # times that is tried what was checked and then changed by others


def publish_post(caller, body, services, keep):
    """POST /v1/posts: writes the post; workers publish it when it is due."""
    for _ in range(CHANGES):
        new = _sound(draft(caller, body, services))
        with suppress(posts.ChangedMeanwhile), database.atomic():
            operation = posts.create(caller, client_id=new.client_id, caption=new.caption, schedule_at=new.schedule_at,
                                     targets=new.targets)
            _record(caller, "post.created", operation["id"], clientId=new.client_id)
            return keep(ok(operation, status=202, headers={"Location": f"/v1/posts/{operation['id']}"}))
    raise _contended("the files of the post are")


def validate_post(caller, body, services):
    """POST /v1/posts/validate: what publish_post would refuse."""
    try:
        new = draft(caller, body, services)
        problems = [*new.problems, *new.obstacles]
    except InvalidState as error:       # a client that cannot be acted for: its accounts and files say nothing
        problems = [Detail("/clientId", "client_status", error.message)]
    return ok({"valid": not problems, "problems": [problem.to_dict() for problem in problems]})


def get_post(caller, id_):
    """GET /v1/posts/{id}"""
    found = posts.read(caller, id_)
    if found is None:
        raise _unknown()
    return ok(found)


def list_posts(caller, client_id, status, from_, to, limit, cursor):
    """GET /v1/posts: newest first, in pages."""
    client_id = acting_for(caller, client_id)
    since, until = parse_span(from_, to)
    page, more = posts.page(caller, client_id=client_id, status=status, since=since, until=until, limit=limit or 50,
                            after=cursors.position(cursor))
    meta = {"nextCursor": cursors.after(page[-1])} if more else {}
    return ok({"posts": posts.operations(page)}, meta=meta)


def update_post(caller, id_, body, services):
    """PATCH /v1/posts/{id}: while every target is still scheduled."""
    for _ in range(CHANGES):
        post = _post(caller, id_)
        attached = [file for target in post.targets() for file in target.files()]
        new = _sound(draft(caller, {**_request(post, services), **body}, services, attached=attached))
        try:
            with database.atomic():
                posts.change(post, caption=new.caption, schedule_at=new.schedule_at if "scheduleAt" in body else None,
                             targets=new.targets if "media" in body else None)
                _record(caller, "post.changed", post.id, fields=sorted(body))
            return ok(_post(caller, id_).to_dict())
        except posts.NotScheduled:
            raise InvalidState("the post has targets that are no longer scheduled") from None
        except posts.ChangedMeanwhile:
            continue    # what was checked is not what would be changed: read and check again
    raise _contended("the post is")


def cancel_post(caller, id_):
    """DELETE /v1/posts/{id}: what has not started."""
    post = _post(caller, id_)
    with database.atomic():
        if not posts.cancel(post):
            raise InvalidState("the post has nothing left to cancel")
        _record(caller, "post.canceled", post.id)
    return ok(post.to_dict())


def retry_post(caller, id_, body, keep):
    """POST /v1/posts/{id}/retry: failed targets, and unconfirmed ones only when asked."""
    post = _post(caller, id_)
    acting_for(caller, post.client_id)
    try:
        with database.atomic():
            if not posts.retry(post, include_unconfirmed=(body or {}).get("includeUnconfirmed", False)):
                raise InvalidState("the post has no failed target; one that is unconfirmed may be public, and is tried again only with "
                                   "includeUnconfirmed")
            _record(caller, "post.retried", post.id)
            return keep(ok(post.to_dict(), status=202))
    except posts.ChangedMeanwhile:
        raise InvalidState("a file of the post has been removed, so that it cannot be retried; make it anew") from None


def _post(caller, id_):
    post = Post.of(caller).where(Post.id == id_).get_or_none()
    if post is None:
        raise _unknown()
    return post


def _unknown():
    return NotFound("there is no such post")


def _record(caller, action, post_id, **detail):
    audit.record(audit.by(caller), action, post_id, team_id=caller.team_id, mode=caller.mode, **detail)


def _contended(what):
    return InvalidState(f"{what} being changed by others at this moment", headers={"Retry-After": "1"})


def _sound(new):
    """The draft, if nothing is in its way."""
    if new.problems:
        raise Unprocessable.of(new.problems)
    if new.obstacles:
        raise InvalidState(new.obstacles[0].message, details=new.obstacles)
    return new


def _request(post, services):
    """The publish request that would make `post` as it is, for checking it again with changes."""
    targets = []
    for target in post.targets():
        own = {"account": target.account_username, "caption": target.caption if target.own_caption else None,
               "media": [services.objects.public_url(file.key) for file in target.files()] if target.own_media else None}
        options = {**target.options, **{name: value for name, value in own.items() if value is not None}}
        kind = {"postType": target.asked_type} if target.asked_type else {}
        targets.append({"platform": target.platform, "options": options, **kind})
    shared = next((target.files() for target in post.targets() if not target.own_media), [])
    request = {"targets": targets, "caption": post.caption, "media": [services.objects.public_url(file.key) for file in shared]}
    return request if post.client_id is None else {**request, "clientId": post.client_id}
