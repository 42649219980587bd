"""People who sign in: passwords, one-time links, sessions."""

import logging
from datetime import timedelta

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError
from peewee import BlobField, Model, TextField, Value, fn
from playhouse.postgres_ext import DateTimeTZField

from storage import audit, keys
from storage.database import database
from storage.models import ApiKey, User
from storage.oauth import Grant

# The second of the configurations that OWASP's Password Storage Cheat Sheet holds to be equally strong: little memory for each.
HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
NOBODY = HASHER.hash("nobody has this password")    # so that an unknown login takes as long as a wrong password
PASSWORD_LENGTHS = (12, 200)
LINK_LASTS = timedelta(minutes=15)
SESSION_LASTS = timedelta(hours=12)

log = logging.getLogger("posthorn.people")


class SignInLink(Model):
    """A link that signs a person in, once. Only a digest of its token is kept."""

    digest = BlobField(primary_key=True)
    team_id = TextField()
    user_id = TextField()
    expires_at = DateTimeTZField()

    class Meta:
        database = database
        table_name = "sign_in_links"


class Session(Model):
    """A browser in which a person is signed in. Only a digest of its cookie is kept."""

    digest = BlobField(primary_key=True)
    team_id = TextField()
    user_id = TextField()
    expires_at = DateTimeTZField()

    class Meta:
        database = database
        table_name = "sessions"


def set_password(user: User, password: str) -> None:
    """Gives `user` this password and ends what came of the old one: sessions and links. Raises ValueError for a bad length."""
    shortest, longest = PASSWORD_LENGTHS
    if not shortest <= len(password) <= longest:
        raise ValueError(f"a password has {shortest} to {longest} characters")
    with database.atomic():
        User.update(password=HASHER.hash(password)).where(User.id == user.id).execute()
        for kind in (Session, SignInLink):
            kind.delete().where(kind.user_id == user.id).execute()


def by_password(login: str, password: str, address: str) -> User | None:
    """The user who signs in so; None for an unknown login, a wrong password or a disabled user, all in the same time.

    `address` is where it comes from.
    """
    user = User.get_or_none(User.login == login.strip().lower())
    known = user.password if user is not None and user.disabled_at is None and user.password is not None else NOBODY
    try:
        HASHER.verify(known, password)
        return user
    except (VerifyMismatchError, InvalidHashError):
        _record_failure(user, address)
        return None


def new_link(user: User) -> str:
    """A token that signs `user` in once, within LINK_LASTS."""
    token = keys.fresh("in")
    SignInLink.insert(digest=keys.digest(token), team_id=user.team_id, user_id=user.id,
                      expires_at=fn.now() + Value(LINK_LASTS, converter=False)).execute()
    return token


def by_link(token: str) -> User | None:
    """The user whose link this is, which is used up now; None for any other token."""
    if not keys.well_formed(token, ("in",)):
        return None
    query = SignInLink.delete().where(SignInLink.digest == keys.digest(token), SignInLink.expires_at > fn.now())
    link = next(iter(query.returning(SignInLink).execute()), None)
    return link and User.get_or_none(User.id == link.user_id, User.disabled_at.is_null())


def begin_session(user: User, way: str, address: str) -> str | None:
    """Signs `user` in, who showed in this `way` who they are; returns what the browser at `address` keeps.

    None when the password was changed meanwhile, or the user disabled.
    """
    token = keys.fresh("in")
    same = User.password.is_null() if user.password is None else User.password == user.password
    with database.atomic():
        # Locked: a password that is being changed at this moment ends the session that begins before.
        if not User.select().where(User.id == user.id, User.disabled_at.is_null(), same).for_update("FOR SHARE").exists():
            return None
        Session.insert(digest=keys.digest(token), team_id=user.team_id, user_id=user.id,
                       expires_at=fn.now() + Value(SESSION_LASTS, converter=False)).execute()
        audit.record(audit.Actor(user.id), "user.signed_in", user.id, team_id=user.team_id, way=way, address=address)
    return token


def of_session(token: str) -> User | None:
    """Who is signed in with this cookie."""
    if not keys.well_formed(token, ("in",)):
        return None
    theirs = User.select().join(Session, on=(Session.user_id == User.id)).where(Session.digest == keys.digest(token))
    return theirs.where(Session.expires_at > fn.now(), User.disabled_at.is_null()).get_or_none()


def end_session(token: str) -> None:
    """Signs out."""
    with database.atomic():
        for session in Session.delete().where(Session.digest == keys.digest(token)).returning(Session).execute():
            audit.record(audit.Actor(session.user_id), "user.signed_out", session.user_id, team_id=session.team_id)


def disable(user: User, actor: audit.Actor) -> None:
    """Ends everything that works in this user's name: sessions, links, keys and grants with their tokens, all at once."""
    with database.atomic():
        User.update(disabled_at=fn.now()).where(User.id == user.id, User.disabled_at.is_null()).execute()
        for kind in (Session, SignInLink):
            kind.delete().where(kind.user_id == user.id).execute()
        for kind, action in ((ApiKey, "key.revoked"), (Grant, "grant.revoked")):
            ended = kind.update(revoked_at=fn.now()).where(kind.user_id == user.id, kind.revoked_at.is_null()).returning(kind)
            for row in ended.execute():
                audit.record(actor, action, row.id, team_id=row.team_id, mode=row.mode, userId=user.id)


def _record_failure(user, address):
    if user is None:    # names that nobody has would fill a trail that nothing is taken from; and some are passwords
        log.info("somebody at %s tried to sign in with a name that nobody has", address)
        return
    with database.atomic():
        # To wait for the disk would tell, by the time it takes, that somebody has this name.
        database.execute_sql("SET LOCAL synchronous_commit TO off")
        audit.record(audit.SOMEBODY, "user.sign_in_failed", user.id, team_id=user.team_id, address=address)
