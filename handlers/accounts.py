"""Connected accounts."""

from handlers.clients import acting_for
from handlers.responses import ok
from platforms.sandbox import USERNAME
from storage.models import Account, Team


def list_accounts(caller, services, client_id):
    """GET /v1/accounts: those of the team, or of one client. Test mode has the sandbox account of every platform."""
    client_id = acting_for(caller, client_id)
    team = Team.get_by_id(caller.team_id)
    if caller.mode == "test":
        accounts = [_sandbox_account(name, client_id) for name in services.platforms.names]
    else:
        accounts = [account.to_dict() for account in Account.acting(caller.team_id, client_id)]
    return ok({"team": {"id": team.id, "name": team.name}, "accounts": accounts})


def _sandbox_account(platform, client_id):
    account = {"id": f"sandbox_{platform}", "platform": platform, "username": USERNAME, "displayName": "Sandbox", "status": "connected"}
    return account if client_id is None else {**account, "clientId": client_id}
