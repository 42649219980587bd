"""Posts and their targets, as the API writes and reads them. What a worker does with them stands in storage/queue.py."""

from dataclasses import dataclass

from peewee import SQL, BigIntegerField, BooleanField, IntegerField, Model, TextField, Tuple, fn
from playhouse.postgres_ext import BinaryJSONField, DateTimeTZField

from storage import tracing
from storage.database import database, new_id, ring
from storage.ids import known
from storage.models import Account, Media, Owned, Row

# Conflicts with the lock under which storage.sweep removes a file that the posts known to it have done with.
HOLD = "SELECT FROM media WHERE id = ANY (%s) AND state = 'ready' ORDER BY id FOR KEY SHARE"


class Post(Owned):
    prefix = "post"
    mode = TextField()
    user_id = TextField()
    client_id = TextField(null=True)
    caption = TextField()
    schedule_at = DateTimeTZField(null=True)
    revision = IntegerField()

    class Meta:
        table_name = "posts"

    def targets(self):
        """Its targets, in the order of the request."""
        return list(Target.select().where(Target.post_id == self.id).order_by(Target.position))

    def to_dict(self):
        return operations([self])[0]


class Target(Row):
    prefix = "target"
    team_id = TextField()
    mode = TextField()
    post_id = TextField()
    position = IntegerField()
    platform = TextField()
    asked_type = TextField(null=True)
    post_type = TextField()
    account_id = TextField(null=True)
    caption = TextField()
    own_caption = BooleanField()
    own_media = BooleanField()
    has_media = BooleanField()
    options = BinaryJSONField()
    status = TextField()
    stage = TextField(null=True)
    due_at = DateTimeTZField()
    next_at = DateTimeTZField(null=True)
    leased_until = DateTimeTZField(null=True)
    worker = TextField(null=True)
    fence = BigIntegerField()
    tries = IntegerField()
    crashes = IntegerField()
    looks = IntegerField()
    refreshed = BooleanField()
    asked_again = BooleanField()
    restored = BooleanField()
    receipt = BinaryJSONField()
    platform_post_id = TextField(null=True)
    url = TextField(null=True)
    error = BinaryJSONField(null=True)
    note = BinaryJSONField(null=True)
    begun_at = DateTimeTZField(null=True)
    sending_at = DateTimeTZField(null=True)
    finished_at = DateTimeTZField(null=True)
    request_id = TextField(null=True)
    traceparent = TextField(null=True)

    class Meta:
        table_name = "targets"

    @property
    def account_username(self):
        """Null for the sandbox."""
        return self.account_id and Account.get_by_id(self.account_id).username

    def files(self):
        """Its media rows, in the order in which they are shown."""
        return Attachment.files(self.id)

    def to_dict(self):
        """Needs no other columns than SHOWN."""
        wire = {"platform": self.platform, "status": self.status, "postId": self.platform_post_id, "url": self.url,
                "error": self.error}
        return {name: value for name, value in wire.items() if value is not None}


SHOWN = (Target.post_id, Target.platform, Target.status, Target.platform_post_id, Target.url, Target.error)


class Attachment(Model):
    """A file of a target, in the order in which it is shown."""

    team_id = TextField()
    mode = TextField()
    target_id = TextField()
    position = IntegerField()
    media_id = TextField()

    class Meta:
        database = database
        table_name = "attachments"
        primary_key = False

    @classmethod
    def files(cls, target_id):
        """The media rows of a target, in order."""
        return list(Media.select().join(cls, on=(cls.media_id == Media.id)).where(cls.target_id == target_id).order_by(cls.position))


def operation(post_id, targets):
    """The post operation of the API."""
    return {"id": post_id, "status": overall([target.status for target in targets]), "targets": [t.to_dict() for t in targets]}


def overall(statuses):
    """The status of a post, derived from those of its targets."""
    for running in ("publishing", "scheduled"):
        if running in statuses:
            return running
    if len(set(statuses)) == 1:
        return statuses[0]
    return "partially_published" if "published" in statuses else "failed"


@dataclass(frozen=True)
class NewTarget:
    """What the API decided about one target before it is written."""

    platform: str
    asked_type: str | None      # as the caller named it; None: inferred from the media
    post_type: str
    account_id: str | None
    caption: str | None
    media: list[Media]
    own_media: bool
    options: dict


def create(caller, *, client_id, caption, schedule_at, targets):
    """Writes a post with its `targets` (NewTarget), wakes the workers and returns the post operation.

    `schedule_at` None means now. Runs in the caller's transaction. Raises ChangedMeanwhile when a file is no longer ready.
    """
    post = Post.add(team_id=caller.team_id, mode=caller.mode, user_id=caller.user_id, client_id=client_id,
                    caption=caption, schedule_at=schedule_at)
    due, by = _due(schedule_at), {"request_id": known().get("request_id"), "traceparent": tracing.traceparent()}
    rows = [{"id": new_id(Target.prefix), "team_id": caller.team_id, "mode": caller.mode, "post_id": post.id, "position": position,
             "platform": new.platform, "asked_type": new.asked_type, "post_type": new.post_type, "account_id": new.account_id,
             "caption": caption if new.caption is None else new.caption, "own_caption": new.caption is not None,
             "own_media": new.own_media, "has_media": bool(new.media), "options": new.options, "status": "scheduled",
             "due_at": due, "next_at": due, **by} for position, new in enumerate(targets)]
    Target.insert_many(rows).execute()
    _attach(post, [(row["id"], new.media) for row, new in zip(rows, targets, strict=True)])
    ring()
    return operation(post.id, [Target(**row) for row in rows])


def change(post, *, caption, schedule_at, targets):
    """Changes a post whose targets are all scheduled, and surely not public.

    `schedule_at` None leaves the time; `targets` (NewTarget) None leaves the files. Runs in the caller's transaction. Raises
    NotScheduled when a target is not, and ChangedMeanwhile when `post` or a file is no longer what was read.
    """
    times = {} if schedule_at is None else {"schedule_at": schedule_at}
    known = (Post.id == post.id) & (Post.revision == post.revision)
    if not Post.update(caption=caption, revision=Post.revision + 1, **times).where(known).execute():
        raise ChangedMeanwhile
    waiting = Target.select().where(Target.post_id == post.id).order_by(Target.position).for_update()
    ids = [target.id for target in waiting if target.status == "scheduled" and target.sending_at is None]
    if len(ids) < len(waiting):
        raise NotScheduled
    moved = {} if schedule_at is None else {"due_at": _due(schedule_at), "next_at": _due(schedule_at)}
    # What was prepared before was prepared of other words or files.
    Target.update(receipt={}, begun_at=None, **moved).where(Target.id.in_(ids)).execute()
    Target.update(caption=caption).where(Target.id.in_(ids), ~Target.own_caption).execute()
    if targets is not None:
        Attachment.delete().where(Attachment.target_id.in_(ids)).execute()
        _attach(post, [(target_id, new.media) for target_id, new in zip(ids, targets, strict=True)])
        for target_id, new in zip(ids, targets, strict=True):
            Target.update(post_type=new.post_type, has_media=bool(new.media)).where(Target.id == target_id).execute()
    ring()


class NotScheduled(Exception):
    """A target of the post has begun to be sent, or ended."""


class ChangedMeanwhile(Exception):
    """The post was changed, or a file that it uses removed, since they were read."""


def cancel(post):
    """Cancels what has not started, and is surely not public; returns how many targets that were."""
    query = Target.update(status="canceled", next_at=None, finished_at=fn.clock_timestamp())
    return query.where(Target.post_id == post.id, Target.status == "scheduled", Target.sending_at.is_null()).execute()


def retry(post, *, include_unconfirmed):
    """Schedules failed targets again, at once; returns how many targets that were.

    A failed target starts over. An unconfirmed one stays in doubt and keeps its receipt: where the network knows a post by a
    key of ours, the second sending then cannot make a second post. Runs in the caller's transaction. Raises ChangedMeanwhile
    when a file of one of them is gone.
    """
    again = {"status": "scheduled", "due_at": fn.now(), "next_at": fn.now(), "tries": 0, "crashes": 0, "looks": 0,
             "refreshed": False, "restored": False, "begun_at": None, "error": None, "finished_at": None}
    of_post = Target.post_id == post.id
    failed = Target.update(**again, receipt={}, sending_at=None).where(of_post, Target.status == "failed")
    ids = [target.id for target in failed.returning(Target.id)]
    if include_unconfirmed:
        idle = (Target.status == "unconfirmed") & Target.leased_until.is_null()
        ids += [target.id for target in Target.update(**again, asked_again=True).where(of_post, idle).returning(Target.id)]
    _hold({row.media_id for row in Attachment.select(Attachment.media_id).where(Attachment.target_id.in_(ids))})
    ring()
    return len(ids)


STATUS = "post_status(array_agg(status))"     # migration 0009; the same as `overall`


def page(caller, *, client_id, status, since, until, limit, after):
    """Up to `limit` posts of the caller, newest first, from behind the position `after` (created_at, id); and whether more follow.

    `since` and `until` bound the time at which a post is or was due.
    """
    due = fn.coalesce(Post.schedule_at, Post.created_at)
    rules = [rule for value, rule in ((client_id, Post.client_id == client_id), (since, due >= since), (until, due < until)) if value]
    if after is not None:
        rules.append(Tuple(Post.created_at, Post.id) < Tuple(*after))
    if status is not None:
        rules.append(Target.select(SQL(STATUS)).where(Target.post_id == Post.id) == status)
    query = Post.of(caller).order_by(Post.created_at.desc(), Post.id.desc()).limit(limit + 1)
    found = list(query.where(*rules) if rules else query)
    return found[:limit], len(found) > limit


def read(caller, post_id):
    """The post operation of one of the caller's posts, with one query; None where there is none."""
    query = Post.of(caller).select(*SHOWN).join(Target, on=(Target.post_id == Post.id)).where(Post.id == post_id)
    targets = list(query.order_by(Target.position).objects(Target))
    return operation(post_id, targets) if targets else None


def operations(some):
    """The post operations of several posts, in their order, with one query."""
    targets = {post.id: [] for post in some}
    for target in Target.select(*SHOWN).where(Target.post_id.in_(list(targets))).order_by(Target.position):
        targets[target.post_id].append(target)
    return [operation(post.id, targets[post.id]) for post in some]


def _due(schedule_at):
    # A time in the past (five minutes are allowed) means now; the queue's order and the lateness figures start there.
    return fn.now() if schedule_at is None else fn.greatest(schedule_at, fn.now())


def _hold(media_ids):
    """Keeps files from being removed until the transaction ends. Raises ChangedMeanwhile where one is not ready (any more)."""
    if media_ids and len(database.execute_sql(HOLD, (sorted(media_ids),)).fetchall()) < len(media_ids):
        raise ChangedMeanwhile


def _attach(post, files):
    _hold({item.id for _, items in files for item in items})
    rows = [{"team_id": post.team_id, "mode": post.mode, "target_id": target_id, "position": position, "media_id": item.id}
            for target_id, items in files for position, item in enumerate(items)]
    if rows:
        Attachment.insert_many(rows).execute()
