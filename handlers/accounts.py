"""Connected accounts."""

from handlers import connect
from handlers.clients import acting_for
from handlers.errors import InvalidState, NotFound
from handlers.responses import ok
from platforms.sandbox import USERNAME
from storage import audit
from storage.database import database
from storage.models import Account, Team, wire_time

SANDBOX = "in test mode the sandbox account of every platform is always connected; use a live key"


def list_accounts(caller, services, client_id):
    """GET /v1/accounts: those of the team, or of one client. Test mode has the sandbox account of every platform."""
    client_id = acting_for(caller, client_id)
    team = Team.get_by_id(caller.team_id)
    if caller.mode == "test":
        accounts = [_sandbox_account(name, client_id) for name in services.platforms.names]
    else:
        accounts = [account.to_dict() for account in Account.acting(caller.team_id, client_id)]
    return ok({"team": {"id": team.id, "name": team.name}, "accounts": accounts})


def connect_account(caller, body, services):
    """POST /v1/accounts/connect: where to send a person, who comes back to handlers.connect."""
    platform, instance = body["platform"], body.get("instance")
    redirect_url = connect.check(services.platforms[platform], instance, body.get("redirectUrl"))
    client_id = acting_for(caller, body.get("clientId"))
    if caller.mode == "test":
        raise InvalidState(SANDBOX)
    begun = connect.begin(services, team_id=caller.team_id, user_id=caller.user_id, client_id=client_id, platform=platform,
                          instance=instance, redirect_url=redirect_url)
    return ok({"authorizeUrl": begun.url, "state": begun.state, "expiresAt": wire_time(begun.request.expires_at)}, status=201)


def disconnect_account(caller, services, id_):
    """DELETE /v1/accounts/{id}: forgets the credentials. The second time it makes no difference."""
    if caller.mode == "test" and id_ in map(_sandbox_id, services.platforms.names):
        raise InvalidState(SANDBOX)
    row = None if caller.mode == "test" else Account.of(caller).where(Account.id == id_).get_or_none()
    if row is None:
        raise NotFound("there is no such account")
    with database.atomic():
        if row.status == "connected":
            audit.record(audit.by(caller), "account.disconnected", row.id,
                         team_id=row.team_id, mode=caller.mode, platform=row.platform)
        return ok(row.disconnect().to_dict())


def _sandbox_id(platform):
    return f"sandbox_{platform}"


def _sandbox_account(platform, client_id):
    account = {"id": _sandbox_id(platform), "platform": platform, "username": USERNAME, "displayName": "Sandbox", "status": "connected"}
    return account if client_id is None else {**account, "clientId": client_id}
