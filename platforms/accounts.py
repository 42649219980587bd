"""Connected accounts: kept, opened for the moment of use, renewed in time, and looked after once a day."""

import logging
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta

from peewee import Value, fn

from platforms import base
from platforms.errors import Disconnected, PlatformError, Unavailable
from storage import audit
from storage.database import DatabaseAway, database, insist, new_id
from storage.models import Account
from storage.outage import why
from storage.secrets import Unreadable, Vault

RENEWAL = timedelta(seconds=90)     # longer than the longest call: whoever has not come back by then is gone
TURN = 0.2                          # seconds between two looks whether somebody else has renewed the credentials
PROFILES_LAST = timedelta(days=1)
ROUND = 50                          # accounts looked after in one go
NAME_LENGTH = 300                   # characters; the document's bound

log = logging.getLogger("posthorn.accounts")


class Accounts:
    """Opens and keeps the credentials with `vault` (storage.secrets.Vault)."""

    def __init__(self, vault):
        self._vault, self._looking = vault, threading.Lock()

    def usable(self, row, connector) -> base.Account | None:
        """The account with credentials that hold for a while; None for the sandbox. Raises Disconnected."""
        if row is None:
            return None
        account = self._open(row)
        if not connector.refresh_due(account):
            return account
        with self._alone(row):
            self._refresh(row, connector)
        return self._open(row)

    def renew(self, row, connector) -> bool:
        """Credentials that the network just refused, renewed if it gives new ones without a person. Raises PlatformError."""
        if row.status == "disconnected":
            return False
        refused = self._open(row).credentials
        with self._alone(row):
            # Where somebody else has renewed them meanwhile, the new ones have not been refused yet.
            return self._open(row).credentials != refused or self._refresh(row, connector, force=True)

    def disconnect(self, row) -> None:
        """Only a person can make this account work again."""
        with database.connection_context(), database.atomic():
            if Account.update(status="disconnected").where(*_unchanged(row), Account.status == "connected").execute():
                audit.record(audit.WORKER, "account.disconnected", row.id, team_id=row.team_id, platform=row.platform)

    def look_after(self, platforms, stopping: threading.Event) -> None:
        """Reads who some of the connected accounts are now, each once a day. Raises nothing: what fails waits for tomorrow."""
        if not self._looking.acquire(blocking=False):
            return      # a network that is slow is no reason to ask more of it at once
        try:
            for row in _unread():
                if stopping.is_set():
                    break
                self._look_after(row, platforms.connector(row.platform, "live"))
        except DatabaseAway as error:
            log.info("the database is away (%s); accounts are looked after later", why(error))
        finally:
            self._looking.release()

    def _look_after(self, row, connector):
        try:
            connected(row, self._vault)
            profile = self._profile(row, connector)
        except Unreadable:      # a worker that was started with other keys must not take all accounts for ended
            return log.warning("account %s: its credentials cannot be opened", row.id)
        except Disconnected:
            log.info("account %s: %s no longer accepts its credentials", row.id, connector.title)
            return self.disconnect(row)
        except PlatformError as error:
            return log.info("account %s: its profile cannot be read: %s", row.id, error.message)
        except DatabaseAway:
            raise
        except Exception:
            return log.exception("account %s: reading its profile failed", row.id)
        with database.connection_context():
            Account.update(**_shown(profile)).where(Account.id == row.id).execute()

    def _profile(self, row, connector):
        try:
            return connector.profile(self.usable(row, connector))
        except Disconnected:
            if not self.renew(row, connector):
                raise
        return connector.profile(self.usable(row, connector))

    def _refresh(self, row, connector, force=False):
        """Asks for new credentials, and keeps them before anything else happens. Whether there are some."""
        fresh = connector.refresh(self._open(row), force=force)
        if fresh is None:
            return False
        sealed = self._vault.seal(owner(row.team_id, row.id), fresh)
        # Somebody whose refresh came after ours may have taken the account for ended meanwhile.
        if insist(Account.update(credentials=sealed, status="connected").where(*_unchanged(row)).execute):
            row.credentials = sealed
        else:       # a person has connected or disconnected the account meanwhile
            _read(row, insist(lambda: Account.get_by_id(row.id)))
        return True

    @contextmanager
    def _alone(self, row):
        """Nobody else asks for new credentials of this account meanwhile; `row` is read anew. Holds no connection."""
        patience = time.monotonic() + 2 * RENEWAL.total_seconds()
        while (now := _take(row)) is None:
            if time.monotonic() > patience:
                raise Unavailable("the credentials of this account are being renewed")
            time.sleep(TURN)
        try:
            _read(row, now)
            yield
        finally:
            with suppress(DatabaseAway), database.connection_context():     # otherwise it runs out
                ours = Account.id == row.id, Account.renewing_until == now.renewing_until
                Account.update(renewing_until=None).where(*ours).execute()

    def _open(self, row):
        if row.status == "disconnected":
            raise Disconnected("the account is disconnected; connect it again")
        try:
            return connected(row, self._vault)
        except Unreadable as error:
            raise Disconnected(f"{error}; connect the account again, or restore the key") from None


def save(vault: Vault, team_id: str, client_id: str | None, platform: str, connected: base.Connected) -> Account:
    """The row of an account that was just connected: a new one, or the one it has where it is connected again."""
    profile = connected.profile
    same = {"team_id": team_id, "client_id": client_id, "platform": platform, "host": connected.host,
            "platform_id": profile.platform_id}
    with database.atomic():
        Account.insert(id=new_id(Account.prefix), **same, **_shown(profile)).on_conflict_ignore().execute()
        row = Account.select().where(*(_equals(name, value) for name, value in same.items())).for_update().get()
        sealed = vault.seal(owner(team_id, row.id), connected.credentials)
        query = Account.update(**_shown(profile), credentials=sealed, status="connected", updated_at=fn.now(),
                               profile_read_at=fn.now())
        return next(iter(query.where(Account.id == row.id).returning(Account).execute()))


def connected(row, vault) -> base.Account:
    """A row of an account as its connector sees it. Raises storage.secrets.Unreadable."""
    return base.Account(platform_id=row.platform_id, username=row.username, host=row.host,
                        credentials=vault.open(owner(row.team_id, row.id), row.credentials))


def owner(team_id: str, account_id: str) -> str:
    """What the sealed credentials of an account are bound to."""
    return f"teams/{team_id}/accounts/{account_id}"


def _equals(name, value):
    return getattr(Account, name).is_null() if value is None else getattr(Account, name) == value


def _shown(profile):
    return {"username": profile.username, "display_name": profile.display_name[:NAME_LENGTH],
            "profile_picture": profile.picture}


def _unchanged(row):
    # A person may have connected the account again meanwhile: what we know is about the credentials before.
    return Account.id == row.id, Account.credentials == row.credentials


def _read(row, now):
    row.status, row.credentials = now.status, now.credentials


def _take(row):
    """The account as it is now, ours alone to renew until we say so or are gone; None while somebody else renews it."""
    now = fn.clock_timestamp()
    free = Account.renewing_until.is_null() | (Account.renewing_until < now)
    query = Account.update(renewing_until=now + Value(RENEWAL, converter=False)).where(Account.id == row.id, free)
    with database.connection_context():
        return next(iter(query.returning(Account).execute()), None)


def _unread():
    """Some accounts whose profiles are a day old, which count as read from now on: each is read by one worker, once."""
    old = (Account.select(Account.id).where(Account.status == "connected", Account.profile_read_at < fn.now() - PROFILES_LAST)
           .order_by(Account.profile_read_at).limit(ROUND).for_update("FOR UPDATE SKIP LOCKED"))
    with database.connection_context():
        return list(Account.update(profile_read_at=fn.now()).where(Account.id.in_(old)).returning(Account).execute())
