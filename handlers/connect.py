"""Connecting accounts in the browser: a person is sent to the network, and comes back with an answer that is traded for tokens.

What ties the two halves together is the `state` (RFC 6749, section 10.12): 32 random bytes that work once, for ten minutes, for
the team and the client that began, and of which only a digest is kept.
"""

import logging
import secrets
from dataclasses import asdict, dataclass
from datetime import timedelta
from ipaddress import ip_address
from urllib.parse import urlencode

from handlers.errors import Detail, ExternalServiceError, InvalidState, Unprocessable
from platforms.accounts import save
from platforms.base import Connected, Profile
from platforms.errors import PlatformError, Rejected, Unavailable, Unconfirmed
from storage import audit, urls
from storage.database import database, insist, new_id
from storage.keys import digest
from storage.models import ConnectRequest

LIFETIME = timedelta(minutes=10)
CALLBACK = "/connect/callback"
TOKEN_BYTES = 32

log = logging.getLogger("posthorn.connect")


@dataclass(frozen=True)
class Begun:
    """A person may go to `url` now; `request` is the row that waits for them."""

    url: str
    state: str
    request: ConnectRequest


@dataclass(frozen=True)
class Ended:
    """Came back: these are connected now, or none is, and `failure` says why. `address` is where the person is to go on."""

    network: str
    accounts: tuple[Profile, ...] = ()
    failure: str | None = None
    unavailable: bool = False       # the network's fault, rather than the person's
    address: str | None = None


@dataclass(frozen=True)
class Offer:
    """Came back, and several accounts may be connected: the form that says which must carry the token."""

    network: str
    token: str
    profiles: tuple[Profile, ...]
    address: str | None             # where the person goes on after that
    problem: str | None = None


class Over(Exception):
    """The token is unknown, was used, or is too old; which of these, nobody is told."""


def check(connector, instance: str | None, redirect_url: str | None) -> str | None:
    """The redirect URL in normal form. Raises Unprocessable with everything that is wrong with a request to connect."""
    details = [*_ways(connector, instance)]
    try:
        redirect_url = redirect_url and _redirect(redirect_url)
    except urls.UrlError as error:
        details.append(Detail("/redirectUrl", "redirect_url", str(error)))
    if details:
        raise Unprocessable.of(details)
    return redirect_url


def begin(services, *, team_id, user_id, client_id, platform, instance=None, redirect_url=None) -> Begun:
    """Sends somebody off to connect accounts for the team or its client, after `check`.

    Raises InvalidState where the operator has not set up the network's app, Unprocessable for an instance that cannot be used,
    and ExternalServiceError where the network fails.
    """
    state, request_id = secrets.token_urlsafe(TOKEN_BYTES), new_id(ConnectRequest.prefix)
    try:
        with services.connects.turn(team_id):
            authorization = services.platforms[platform].authorize(callback_url(services), state, instance)
    except PlatformError as error:
        raise _refusal(error, instance) from None
    sealed = services.vault.seal(_owner(team_id, request_id), authorization.kept)
    request = ConnectRequest.begin(request_id, LIFETIME, team_id=team_id, user_id=user_id, client_id=client_id,
                                   platform=platform, redirect_url=redirect_url, digest=digest(state), sealed=sealed)
    return Begun(authorization.url, state, request)


def come_back(services, answer: dict[str, str]) -> Ended | Offer:
    """What the network sent the browser back with (its query parameters) is traded for accounts. Raises Over."""
    state = answer.get("state", "")
    request, kept = _take(services, state, choosing=False)
    connector = services.platforms[request.platform]
    given = {name: value for name, value in answer.items() if name != "state"}
    try:
        found = connector.redeem(given, callback_url(services), kept)
        if not found:
            raise Rejected(f"this login at {connector.title} has no account that posts could go out on")
    except PlatformError as error:
        return _fail(request, connector, state, error)
    if len(found) > 1:
        return _offer(services, request, connector, state, [asdict(one) for one in found])
    return _connect(services, request, connector, state, found)


def choose(services, token: str, positions: set[str]) -> Ended | Offer:
    """Connects those of the offered accounts whose positions were chosen; offers them again where none was. Raises Over."""
    request, kept = _take(services, token, choosing=True)
    connector, state, offered = services.platforms[request.platform], kept["state"], kept["offered"]
    chosen = [_connected(one) for position, one in enumerate(offered) if str(position) in positions]
    if not chosen:
        return _offer(services, request, connector, state, offered, "Choose at least one account.")
    return _connect(services, request, connector, state, chosen)


def callback_url(services) -> str:
    """Where networks send browsers back to."""
    return services.config.base_url + CALLBACK


def _ways(connector, instance):
    if not connector.connects_in_browser:
        way = f"; the command `posthorn account add {connector.name}` connects them" if connector.connect_fields else ""
        yield Detail("/platform", "browser", f"accounts of {connector.title} are not connected in the browser{way}")
    elif connector.needs_instance and not instance:
        yield Detail("/instance", "required", f"{connector.title} has many servers: name that of the account")
    elif instance and not connector.takes_instance:
        yield Detail("/instance", "instance", f"{connector.title} is one place: leave instance out")


def _redirect(text):
    """Never to plain HTTP but on the person's own machine: the address tells which accounts there are."""
    url = urls.parse(text)
    if "#" in text:
        raise urls.UrlError("the URL must not have a fragment")
    if url.scheme != "https" and url.host != "localhost" and not (url.is_address and ip_address(url.host).is_loopback):
        raise urls.UrlError("the URL must be https, or http on this machine itself (localhost, 127.0.0.1)")
    return str(url)


def _refusal(error, instance):
    if error.rule == "app":
        return InvalidState(error.message)
    if instance and (isinstance(error, Rejected) or error.platform_code is None):
        # One wording whether it is not there, does not answer or may not be asked: nobody is told what there is in our network.
        return Unprocessable.of([Detail("/instance", "host", "no server that takes part answers there")])
    return ExternalServiceError(error.message)


def _take(services, token, *, choosing):
    with database.connection_context():
        request = ConnectRequest.take(digest(token), choosing=choosing)
    if request is None:
        raise Over
    return request, services.vault.open(_owner(request.team_id, request.id), request.sealed)


def _connect(services, request, connector, state, found):
    def write():
        with database.atomic():
            rows = [save(services.vault, request.team_id, request.client_id, request.platform, one) for one in found]
            request.end(account_ids=[row.id for row in rows])
            for row in rows:
                audit.record(audit.Actor(request.user_id), "account.connected", row.id, team_id=row.team_id,
                             platform=row.platform, clientId=row.client_id, requestId=request.id)
        return rows

    ids = [row.id for row in insist(write)]     # the network gives these tokens once
    return Ended(connector.title, tuple(one.profile for one in found),
                 address=_onward(request, state=state, status="connected", accountId=ids))


def _fail(request, connector, state, error):
    words = f": {error.platform_message}" if error.platform_message else ""
    failure = f"{error.message}{words}"
    log.info("nothing connected at %s: %s", connector.title, error.message)
    insist(lambda: request.end(failure=failure))
    unavailable = isinstance(error, Unavailable | Unconfirmed)
    address = _onward(request, state=state, status="unavailable" if unavailable else "declined")
    return Ended(connector.title, failure=failure, unavailable=unavailable, address=address)


def _offer(services, request, connector, state, offered, problem=None):
    token = secrets.token_urlsafe(TOKEN_BYTES)
    sealed = services.vault.seal(_owner(request.team_id, request.id), {"state": state, "offered": offered})
    insist(lambda: request.go_on(digest(token), LIFETIME, sealed))
    profiles = tuple(_connected(one).profile for one in offered)
    return Offer(connector.title, token, profiles, request.redirect_url, problem)


def _connected(one):
    return Connected(Profile(**one["profile"]), one["host"], one["credentials"])


def _onward(request, **told):
    if request.redirect_url is None:
        return None
    return request.redirect_url + ("&" if "?" in request.redirect_url else "?") + urlencode(told, doseq=True)


def _owner(team_id, request_id):
    return f"teams/{team_id}/connect_requests/{request_id}"
