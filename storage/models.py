"""The rows, apart from the targets of a post: who exists, what they own, and how each is found, the owner always first."""

from datetime import UTC, datetime, timedelta

from peewee import BigIntegerField, BlobField, BooleanField, DoubleField, IntegerField, Model, TextField, Value, fn
from playhouse.postgres_ext import ArrayField, DateTimeTZField

from storage.database import database, new_id


def wire_time(at: datetime | None) -> str | None:
    """`at` as RFC 3339 in UTC with `Z` and milliseconds; None stays None."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Row(Model):
    """What all tables share: a random text id made by us."""

    prefix = ""
    id = TextField(primary_key=True)

    class Meta:
        database = database
        legacy_table_names = False

    @classmethod
    def add(cls, **values):
        """Inserts a row with a fresh id and returns it as the database has it."""
        query = cls.insert(id=new_id(cls.prefix), **values).returning(cls)
        return next(iter(query.execute()))


class Owned(Row):
    """A row of one team."""

    team_id = TextField()
    created_at = DateTimeTZField()

    @classmethod
    def of(cls, caller):
        """The rows that `caller` (anything with `team_id` and `mode`) may see; every query starts here."""
        query = cls.select().where(cls.team_id == caller.team_id)
        if hasattr(cls, "mode"):
            query = query.where(cls.mode == caller.mode)
        if hasattr(cls, "client_id") and caller.client_id is not None:
            query = query.where(cls.client_id == caller.client_id)
        return query


class Team(Row):
    prefix = "team"
    name = TextField()
    time_zone = TextField()
    plan_expires_at = DateTimeTZField(null=True)
    created_at = DateTimeTZField()

    class Meta:
        table_name = "teams"


class User(Owned):
    """A person of a team. Who has a `login` may sign in (storage.people)."""

    prefix = "user"
    name = TextField()
    login = TextField(null=True)
    password = TextField(null=True)
    disabled_at = DateTimeTZField(null=True)

    class Meta:
        table_name = "users"


class Client(Owned):
    prefix = "client"
    name = TextField()
    status = TextField()

    class Meta:
        table_name = "clients"

    @classmethod
    def of(cls, caller):
        query = super().of(caller)
        return query if caller.client_id is None else query.where(cls.id == caller.client_id)

    def to_dict(self):
        return {"id": self.id, "name": self.name, "status": self.status}


class ApiKey(Owned):
    prefix = "key"
    user_id = TextField()
    client_id = TextField(null=True)
    mode = TextField()
    name = TextField()
    digest = BlobField()
    last_four = TextField()
    scopes = ArrayField(TextField)
    expires_at = DateTimeTZField(null=True)
    revoked_at = DateTimeTZField(null=True)
    last_used_at = DateTimeTZField(null=True)
    replaces = TextField(null=True)

    class Meta:
        table_name = "api_keys"


class Account(Owned):
    """A connected account. `credentials` is sealed (storage.secrets); it leaves the database only for the publisher."""

    prefix = "acct"
    client_id = TextField(null=True)
    platform = TextField()
    host = TextField()
    platform_id = TextField()
    username = TextField()
    display_name = TextField()
    profile_picture = TextField(null=True)
    status = TextField()
    credentials = BlobField(null=True)
    renewing_until = DateTimeTZField(null=True)
    profile_read_at = DateTimeTZField()
    updated_at = DateTimeTZField()

    class Meta:
        table_name = "accounts"

    @classmethod
    def acting(cls, team_id, client_id):
        """The accounts of the client, or of the team itself when `client_id` is None."""
        owner = cls.client_id.is_null() if client_id is None else cls.client_id == client_id
        return cls.select().where(cls.team_id == team_id, owner).order_by(cls.platform, cls.username, cls.id)

    def disconnect(self):
        """Forgets the credentials; the account's posts stay readable. Returns the row as it is then."""
        query = type(self).update(status="disconnected", credentials=None, updated_at=fn.now()).where(Account.id == self.id)
        return next(iter(query.returning(Account).execute()))

    def to_dict(self):
        wire = {"id": self.id, "platform": self.platform, "username": self.username, "displayName": self.display_name,
                "profilePicture": self.profile_picture, "status": self.status, "clientId": self.client_id}
        return {name: value for name, value in wire.items() if value is not None}


class ConnectRequest(Owned):
    """Somebody is connecting accounts in the browser. One token, whose digest is here, goes on from here, once and soon.

    `sealed` (storage.secrets) holds what is needed then. In the end there are `account_ids`, or a `failure` that says why not.
    """

    prefix = "connect"
    user_id = TextField()
    client_id = TextField(null=True)
    platform = TextField()
    redirect_url = TextField(null=True)
    digest = BlobField()
    choosing = BooleanField()
    sealed = BlobField()
    expires_at = DateTimeTZField()
    used_at = DateTimeTZField(null=True)
    account_ids = ArrayField(TextField, null=True)
    failure = TextField(null=True)

    class Meta:
        table_name = "connect_requests"

    @classmethod
    def begin(cls, request_id, lifetime: timedelta, **values):
        """A request under an id that is known already, since `sealed` is bound to it."""
        query = cls.insert(id=request_id, expires_at=fn.now() + Value(lifetime, converter=False), **values)
        return next(iter(query.returning(cls).execute()))

    @classmethod
    def take(cls, digest: bytes, *, choosing: bool):
        """The request that waits for the token with this digest, which is used up now; None for any other token."""
        query = cls.update(used_at=fn.now()).where(cls.digest == digest, cls.choosing == choosing, cls.used_at.is_null(),
                                                   cls.expires_at > fn.now())
        return next(iter(query.returning(cls).execute()), None)

    def go_on(self, digest: bytes, lifetime: timedelta, sealed: bytes):
        """Waits for another token, that of the page on which accounts are chosen."""
        query = type(self).update(digest=digest, sealed=sealed, choosing=True, used_at=None,
                                  expires_at=fn.now() + Value(lifetime, converter=False))
        query.where(ConnectRequest.id == self.id).execute()

    def end(self, *, account_ids=None, failure=None):
        """Writes down what came of it."""
        type(self).update(account_ids=account_ids, failure=failure).where(ConnectRequest.id == self.id).execute()


class Media(Owned):
    """A file in the store. `pending` is a claim (an upload nobody has looked at), `ready` a fact, `refused` final.

    Its `bytes` count until `removed_at`, from when on the store has nothing of it.
    """

    prefix = "media"
    mode = TextField()
    user_id = TextField()
    client_id = TextField(null=True)
    key = TextField()
    state = TextField()
    refusal = TextField(null=True)
    mime_type = TextField()
    bytes = BigIntegerField()
    width = IntegerField(null=True)
    height = IntegerField(null=True)
    duration = DoubleField(null=True)
    animated = BooleanField()
    looked_at = DateTimeTZField(null=True)
    removed_at = DateTimeTZField(null=True)

    class Meta:
        table_name = "media"

    def settle(self, facts, refusal=None):
        """Makes a claim a fact with its measured `facts`, or refuses it for good (`facts` None); only the first word counts."""
        changes = {"state": "refused", "refusal": refusal} if facts is None else {
            "state": "ready", "width": facts.width, "height": facts.height, "duration": facts.duration, "animated": facts.animated}
        type(self).update(**changes).where(Media.id == self.id, Media.state == "pending").execute()
        return type(self).get_by_id(self.id)

    def to_dict(self, public_url):
        wire = {"publicUrl": public_url, "key": self.key, "mimeType": self.mime_type, "bytes": self.bytes,
                "width": self.width, "height": self.height, "duration": self.duration}
        return {name: value for name, value in wire.items() if value is not None}


class Idea(Owned):
    prefix = "idea"
    mode = TextField()
    user_id = TextField()
    client_id = TextField(null=True)
    content = TextField()
    topic = TextField(null=True)
    platform = TextField(null=True)
    source_url = TextField()
    updated_at = DateTimeTZField()

    class Meta:
        table_name = "ideas"

    @classmethod
    def saved_by(cls, caller):
        """The ideas that this very user saved."""
        return cls.of(caller).where(cls.user_id == caller.user_id)

    @classmethod
    def today(cls, caller, client_id, limit=200):
        """What the team (or one client of it) saved since midnight in the team's time zone, newest first."""
        zone = Team.select(Team.time_zone).where(Team.id == caller.team_id)
        midnight = fn.date_trunc("day", fn.now(), zone)
        query = cls.of(caller).where(cls.created_at >= midnight).order_by(cls.created_at.desc(), cls.id.desc()).limit(limit)
        return query if client_id is None else query.where(cls.client_id == client_id)

    def edit(self, changes):
        """Writes the fields that `changes` names, all or nothing: None or "" clears topic and platform."""
        values = {name: changes[name] or None for name in ("content", "topic", "platform") if name in changes}
        query = type(self).update(**values, updated_at=fn.now()).where(Idea.id == self.id).returning(Idea)
        return next(iter(query.execute()), None)

    def to_dict(self):
        wire = {"id": self.id, "content": self.content, "topic": self.topic, "platform": self.platform,
                "sourceUrl": self.source_url, "createdAt": wire_time(self.created_at)}
        return {name: value for name, value in wire.items() if value is not None}
