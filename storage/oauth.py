"""OAuth clients, what they were allowed, and the codes and tokens that come of it. Of secrets only digests are kept."""

import hmac
from datetime import timedelta

from peewee import BlobField, BooleanField, Model, TextField, Value, fn
from playhouse.postgres_ext import ArrayField, DateTimeTZField

from storage import audit, keys
from storage.database import database, new_id
from storage.models import Owned, Row, User

CODE_LASTS = timedelta(minutes=1)
ACCESS_LASTS = timedelta(hours=1)
REFRESH_LASTS = timedelta(days=30)      # unused


class OAuthClient(Row):
    """A program that may ask people for access. Without a secret it is public; with a user it may also act by itself."""

    prefix = "app"
    team_id = TextField(null=True)
    user_id = TextField(null=True)
    client_id = TextField(null=True)
    mode = TextField()
    name = TextField()
    secret = BlobField(null=True)
    redirect_uris = ArrayField(TextField)
    scopes = ArrayField(TextField)
    revoked_at = DateTimeTZField(null=True)
    created_at = DateTimeTZField()

    class Meta:
        table_name = "oauth_clients"

    @classmethod
    def create(cls, *, confidential, **values):
        """A new client and its secret, which is shown once; None for a public one."""
        secret = keys.fresh("cs") if confidential else None
        return cls.add(secret=secret and keys.digest(secret), **values), secret

    @classmethod
    def in_force(cls, id_):
        """The client of this id, or None."""
        return cls.get_or_none(cls.id == id_.replace("\0", ""), cls.revoked_at.is_null())

    def has_secret(self, secret: str) -> bool:
        """Whether `secret` is the client's."""
        sound = self.secret is not None and keys.well_formed(secret, ("cs",))
        return sound and hmac.compare_digest(bytes(self.secret), keys.digest(secret))

    def renew_secret(self) -> str | None:
        """A new secret in place of the old one, which ends at once; None for a client that has ended or has none."""
        secret = keys.fresh("cs")
        theirs = OAuthClient.id == self.id, OAuthClient.revoked_at.is_null(), OAuthClient.secret.is_null(False)
        return secret if OAuthClient.update(secret=keys.digest(secret)).where(*theirs).execute() else None

    def acts_alone(self) -> bool:
        """Whether the client may act by itself: as a user, who is not disabled."""
        return User.select().where(User.id == self.user_id, User.disabled_at.is_null()).exists()

    def revoke(self):
        """Ends the client with all its tokens; False when it had ended."""
        query = OAuthClient.update(revoked_at=fn.now()).where(OAuthClient.id == self.id, OAuthClient.revoked_at.is_null())
        return query.execute() == 1

    def own_grant(self):
        """What the client may do by itself, as its user."""
        query = Grant.insert(id=new_id(Grant.prefix), oauth_client_id=self.id, team_id=self.team_id, user_id=self.user_id,
                             client_id=self.client_id, mode=self.mode, scopes=self.scopes, own=True)
        for grant in query.on_conflict_ignore().returning(Grant).execute():
            audit.record(audit.Actor(self.id), "grant.given", grant.id, team_id=self.team_id, mode=self.mode,
                         oauthClientId=self.id, userId=self.user_id, clientId=self.client_id, scopes=self.scopes)
        return Grant.get(Grant.oauth_client_id == self.id, Grant.own)


class Grant(Owned):
    """What a client was allowed. All its tokens end with it."""

    prefix = "grant"
    oauth_client_id = TextField()
    user_id = TextField()
    client_id = TextField(null=True)
    mode = TextField()
    scopes = ArrayField(TextField)
    own = BooleanField()
    revoked_at = DateTimeTZField(null=True)
    last_used_at = DateTimeTZField(null=True)

    class Meta:
        table_name = "oauth_grants"

    def revoke(self, actor: audit.Actor | None = None) -> bool:
        """Ends all tokens of this grant; False when they had ended. `actor` is the client itself when not given."""
        if not Grant.update(revoked_at=fn.now()).where(Grant.id == self.id, Grant.revoked_at.is_null()).execute():
            return False
        audit.record(actor or audit.Actor(self.oauth_client_id), "grant.revoked", self.id, team_id=self.team_id, mode=self.mode,
                     userId=self.user_id)
        return True

    def issue(self, kind, token, scopes, lasts):
        """Keeps a token (its digest) of this grant."""
        Token.insert(digest=keys.digest(token), kind=kind, grant_id=self.id, scopes=scopes, expires_at=_after(lasts)).execute()


class Code(Model):
    """What a person's browser carries to the client, once and soon."""

    digest = BlobField(primary_key=True)
    grant_id = TextField()
    redirect_uri = TextField()
    code_challenge = TextField()
    expires_at = DateTimeTZField()
    used_at = DateTimeTZField(null=True)

    class Meta:
        database = database
        table_name = "oauth_codes"

    @classmethod
    def issue(cls, code, grant, *, redirect_uri, code_challenge):
        """Keeps a code (its digest)."""
        cls.insert(digest=keys.digest(code), grant_id=grant.id, redirect_uri=redirect_uri, code_challenge=code_challenge,
                   expires_at=_after(CODE_LASTS)).execute()


class Token(Model):
    """An access or refresh token."""

    digest = BlobField(primary_key=True)
    kind = TextField()
    grant_id = TextField()
    scopes = ArrayField(TextField)
    expires_at = DateTimeTZField()
    used_at = DateTimeTZField(null=True)

    class Meta:
        database = database
        table_name = "oauth_tokens"


def use(kind, token: str, oauth_client_id: str):
    """The row (with its `grant`) of a Code or refresh Token of this client, locked for the rest of the transaction.

    None for what is unknown, expired, another client's or of a disabled user. One that comes a second time was stolen: its whole
    grant ends.
    """
    query = kind.select(kind, (kind.expires_at > fn.now()).alias("fresh")).where(kind.digest == keys.digest(token))
    row = (query if kind is Code else query.where(Token.kind == "refresh")).for_update().get_or_none()
    if row is None:
        return None
    theirs = Grant.oauth_client_id == oauth_client_id
    enabled = Grant.user_id.in_(User.select(User.id).where(User.disabled_at.is_null()))
    row.grant = Grant.get_or_none(Grant.id == row.grant_id, theirs, enabled, Grant.revoked_at.is_null())
    if row.grant is not None and row.used_at is not None:
        row.grant.revoke()
        return None
    return row if row.grant is not None and row.fresh else None


def use_up(row) -> None:
    """A Code or Token that came once is good no more."""
    kind = type(row)
    kind.update(used_at=fn.now()).where(kind.digest == row.digest).execute()


def find(token: str):
    """The Token row of an access or refresh token, with its `grant`; None where there is none."""
    row = Token.get_or_none(Token.digest == keys.digest(token))
    if row is not None:
        row.grant = Grant.get_by_id(row.grant_id)
    return row


def revoke(row) -> None:
    """Ends a token; a refresh token with all that comes of the same grant (RFC 7009, section 2.1)."""
    if row.kind == "refresh":
        row.grant.revoke()
    elif Token.delete().where(Token.digest == row.digest).execute():
        grant = row.grant
        audit.record(audit.Actor(grant.oauth_client_id), "token.revoked", grant.id, team_id=grant.team_id, mode=grant.mode,
                     userId=grant.user_id)


def _after(lasts):
    return fn.now() + Value(lasts, converter=False)
