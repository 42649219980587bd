"""The agency clients of a team, and acting for one."""

from handlers.errors import InvalidState, NotFound
from handlers.responses import ok
from storage.models import Client


def list_clients(caller):
    """GET /v1/clients"""
    clients = Client.of(caller).order_by(Client.name, Client.id)
    return ok({"clients": [client.to_dict() for client in clients]})


def acting_for(caller, client_id):
    """The id of the client to act for, None for the team itself.

    A credential of one client acts for it without saying so. Raises NotFound for an unknown or foreign client and
    InvalidState for one that is suspended or archived.
    """
    client_id = client_id or caller.client_id
    if client_id is None:
        return None
    client = Client.of(caller).where(Client.id == client_id).get_or_none()
    if client is None:
        raise NotFound("the team has no such client")
    if client.status != "active":
        raise InvalidState(f"the client is {client.status}")
    return client.id
