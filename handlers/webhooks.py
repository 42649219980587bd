"""Webhooks: who is told of what, what was sent, and sending it again."""

from handlers import cursors
from handlers.clients import acting_for
from handlers.contract import parse_span
from handlers.errors import Detail, InvalidState, NotFound, Unprocessable
from handlers.responses import ok
from storage import audit, deliveries
from storage.database import database
from storage.fetch import Refused
from storage.webhooks import TooMany, TwoSecrets, Webhook

LIMIT = 20      # webhooks of a team in one mode


def create_webhook(caller, body, services, keep):
    """POST /v1/webhooks: the one answer, beside that of rotate_webhook_secret, that tells the secret."""
    _check_url(services, body)
    client_id = acting_for(caller, body.get("clientId"))
    with database.atomic():
        try:
            webhook, secret = Webhook.create(caller, services.vault, LIMIT, client_id=client_id, url=body["url"],
                                             events=body["events"], description=body.get("description", ""))
        except TooMany:
            raise InvalidState(f"your team has {LIMIT} webhooks in this mode, which is all that it may have") from None
        _record(caller, "webhook.created", webhook, events=webhook.events, clientId=client_id)
        return keep(_told(webhook, secret, status=201))


def list_webhooks(caller, client_id):
    """GET /v1/webhooks: all of the team, or of one client of it, newest first."""
    client_id = acting_for(caller, client_id)
    found = Webhook.of(caller).order_by(Webhook.created_at.desc(), Webhook.id.desc())
    if client_id is not None:
        found = found.where(Webhook.client_id == client_id)
    return ok({"webhooks": [webhook.to_dict() for webhook in found]})


def get_webhook(caller, id_):
    """GET /v1/webhooks/{id}"""
    return ok(_webhook(caller, id_).to_dict())


def update_webhook(caller, id_, body, services):
    """PATCH /v1/webhooks/{id}"""
    _check_url(services, body)
    with database.atomic():
        webhook = _there(_webhook(caller, id_).edit(body))
        _record(caller, "webhook.changed", webhook, fields=sorted(body), status=body.get("status"))
        return ok(webhook.to_dict())


def delete_webhook(caller, id_):
    """DELETE /v1/webhooks/{id}: with all that was or was to be sent."""
    with database.atomic():
        webhook = _webhook(caller, id_)
        _there(webhook.remove())
        _record(caller, "webhook.deleted", webhook)
    return ok(webhook.to_dict())


def rotate_webhook_secret(caller, id_, body, services, keep):
    """POST /v1/webhooks/{id}/rotate-secret: the secret before signs as well for a day, or no more."""
    end_previous = (body or {}).get("endPrevious", False)
    with database.atomic():
        try:
            webhook, secret = _webhook(caller, id_).rotate(services.vault, end_previous=end_previous)
        except TwoSecrets:
            raise InvalidState("the secret was rotated within the last 24 hours, and receivers may still have the one before; "
                               "`endPrevious` ends that") from None
        _there(webhook)
        _record(caller, "webhook.secret_rotated", webhook, endPrevious=end_previous or None)
        return keep(_told(webhook, secret, status=200))


def list_deliveries(caller, id_, status, limit, cursor):
    """GET /v1/webhooks/{id}/deliveries: newest first, in pages."""
    page, more = deliveries.page(_webhook(caller, id_), status=status, limit=limit or 50, after=cursors.position(cursor))
    meta = {"nextCursor": cursors.after(page[-1])} if more else {}
    return ok({"deliveries": [delivery.to_dict() for delivery in page]}, meta=meta)


def replay_delivery(caller, id_, delivery_id, keep):
    """POST /v1/webhooks/{id}/deliveries/{deliveryId}/replay"""
    with database.atomic():
        webhook = _enabled(caller, id_)
        delivery = deliveries.replay(webhook, delivery_id)
        if delivery is None:
            raise NotFound("the webhook has no such delivery")
        _record(caller, "webhook.replayed", webhook, deliveryId=delivery_id)
        return keep(ok(delivery.to_dict(), status=202))


def replay_deliveries(caller, id_, body, keep):
    """POST /v1/webhooks/{id}/replay: all of a time that is not on its way already."""
    since, until = parse_span(body["from"], body.get("to"), "/")
    with database.atomic():
        webhook = _enabled(caller, id_)
        try:
            number = deliveries.replay_all(webhook, since, until, body.get("status"))
        except deliveries.TooManyAtOnce:
            raise InvalidState(f"that time has more than {deliveries.MOST_REPLAYED} events, which is all that one request "
                               "sends again: ask for parts of it") from None
        _record(caller, "webhook.replayed", webhook, deliveries=number)
        return keep(ok({"deliveries": number}, status=202))


def _check_url(services, body):
    try:
        if "url" in body:
            services.fetcher.check(body["url"])
    except Refused as error:
        raise Unprocessable.of([Detail("/url", "url", str(error))]) from None


def _webhook(caller, id_):
    return _there(Webhook.of(caller).where(Webhook.id == id_).get_or_none())


def _there(found):
    """What was found or done; NotFound where the webhook is none, or gone meanwhile."""
    if not found:
        raise NotFound("there is no such webhook")
    return found


def _enabled(caller, id_):
    webhook = _webhook(caller, id_)
    if webhook.status != "enabled":
        raise InvalidState("the webhook is disabled: enable it first")
    return webhook


def _told(webhook, secret, *, status):
    return ok({**webhook.to_dict(), "secret": secret}, status=status, secret=True)


def _record(caller, action, webhook, **detail):
    audit.record(audit.by(caller), action, webhook.id, team_id=caller.team_id, mode=caller.mode, **detail)
