"""The accounts that posts go out on: their credentials, opened for the moment of use and renewed in time."""

from platforms import base
from platforms.errors import Disconnected
from storage.database import database
from storage.models import Account
from storage.secrets import Unreadable


class Accounts:
    """Opens and keeps the credentials with `vault` (storage.secrets.Vault).

    One account has one target in flight at a time, so nobody else renews its credentials meanwhile.
    """

    def __init__(self, vault):
        self._vault = vault

    def usable(self, row, connector) -> base.Account | None:
        """The account with credentials that hold for a while; None for the sandbox. Raises Disconnected."""
        if row is None:
            return None
        if row.status == "disconnected":
            raise Disconnected("the account is disconnected; connect it again")
        account = self._open(row)
        fresh = connector.refresh(account)
        return account if fresh is None else self._keep(row, fresh)

    def renew(self, row, connector) -> bool:
        """Credentials that the network just refused, renewed if it gives new ones without a person. Raises PlatformError."""
        if row.status == "disconnected":
            return False
        fresh = connector.refresh(self._open(row), force=True)
        return fresh is not None and bool(self._keep(row, fresh))

    def disconnect(self, row) -> None:
        """Only a person can make this account work again."""
        with database.connection_context():
            Account.update(status="disconnected").where(*self._unchanged(row)).execute()

    def _open(self, row):
        try:
            return connected(row, self._vault)
        except Unreadable as error:
            raise Disconnected(f"{error}; connect the account again, or restore the key") from None

    def _keep(self, row, credentials):
        sealed = self._vault.seal(owner(row.team_id, row.id), credentials)
        with database.connection_context():
            Account.update(credentials=sealed).where(*self._unchanged(row)).execute()
        row.credentials = sealed
        return self._open(row)

    def _unchanged(self, row):
        # A person may have connected the account again meanwhile: what we know is about the credentials before.
        return Account.id == row.id, Account.credentials == row.credentials


def connected(row, vault) -> base.Account:
    """A row of an account as its connector sees it. Raises storage.secrets.Unreadable."""
    return base.Account(platform_id=row.platform_id, username=row.username, host=row.host,
                        credentials=vault.open(owner(row.team_id, row.id), row.credentials))


def owner(team_id: str, account_id: str) -> str:
    """What the sealed credentials of an account are bound to."""
    return f"teams/{team_id}/accounts/{account_id}"
