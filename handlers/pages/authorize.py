"""The authorization server's views: the page on which a person allows an app, and the addresses that apps speak to."""

from urllib.parse import urlencode

from authlib.oauth2.rfc6749 import AccessDeniedError, InvalidClientError, InvalidRequestError, OAuth2Error
from flask import Response, json, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException

from handlers import oauth
from handlers.exchange import exchange_of
from handlers.oauth import AUTHORIZE, REVOKE, TOKEN, Consent
from handlers.pages import sign_in
from handlers.pages.render import away, failed, guarded, page
from handlers.proxies import counted_for
from storage import buckets
from storage.database import DatabaseAway, database, with_connection
from storage.models import Client, Team

METHODS = {AUTHORIZE: ["GET", "HEAD", "POST"], TOKEN: ["POST"], REVOKE: ["POST"]}
TOO_MANY = "Too many wrong credentials from this address."
TEAM = "team"       # the choice of everything instead of one agency client


def add(app, config, scopes):
    """Adds the views to the Flask application. `scopes`: what each allows, by name."""
    server = oauth.create_server(app, scopes, config.rate_limit)

    @app.route(AUTHORIZE, methods=["GET", "POST"])
    def authorize():
        with with_connection():
            try:
                asked = oauth.Request(config.base_url, request.method, AUTHORIZE, request.args, request.headers)
                grant = server.get_consent_grant(asked)
                return _authorize(config, server, scopes, asked, grant)
            except OAuth2Error as error:
                return _refused(config, error)

    @app.post(TOKEN)
    def token():
        return _machine(config, lambda asked: server.create_token_response(asked))

    @app.post(REVOKE)
    def revoke():
        return _machine(config, lambda asked: server.create_endpoint_response("revocation", asked))


def _authorize(config, server, scopes, asked, grant):
    app = grant.client.row
    user = sign_in.signed_in(config)
    if user is None:
        return sign_in.ask(config)
    if app.team_id not in (None, user.team_id):
        raise AccessDeniedError(redirect_uri=grant.redirect_uri, state=asked.payload.state)
    if request.method != "POST":
        return _ask(config, scopes, asked, grant, user)
    sign_in.check_form(config)
    consent = _consent(app, user) if request.form.get("decision") == "allow" else None
    with database.atomic():
        answer = server.create_authorization_response(asked, grant_user=consent, grant=grant)
    return _back(config, answer.headers["Location"])


def _ask(config, scopes, asked, grant, user):
    app = grant.client.row
    limit = app.client_id and Client.get_by_id(app.client_id)
    return page("consent.html", 200, goes_to=grant.redirect_uri, app=app, user=user, team=Team.get_by_id(user.team_id),
                limit=limit, clients=[] if limit else list(_clients(user)), whole=TEAM, form_token=sign_in.form_token(config),
                scopes=[scopes[name] for name in asked.scope.split()], redirect_uri=grant.redirect_uri,
                sign_out=f"{sign_in.SIGN_OUT}?{request.query_string.decode('latin-1')}")


def _clients(user):
    """The agency clients that a person may choose from."""
    return Client.select().where(Client.team_id == user.team_id, Client.status == "active").order_by(Client.name, Client.id)


def _consent(app, user):
    """What the person allowed."""
    chosen = app.client_id or request.form.get("client", TEAM)
    if chosen == TEAM or chosen == app.client_id:
        return Consent(user, app.client_id)
    if not _clients(user).where(Client.id == chosen.replace("\0", "")).exists():
        raise InvalidRequestError("This was no choice.")
    return Consent(user, chosen)


def _refused(config, error):
    """To the app, where it is known that the address is the app's; else to the person alone."""
    if error.redirect_uri:
        headers = dict(error()[2])
        return _back(config, headers["Location"])
    return page("refused.html", 400, sentence=f"The app that sent you here made a mistake: {error.description or error.error}")


def _back(config, location):
    """Sends the browser to the app; `iss` says who answers, so that answers of two servers cannot be mixed up (RFC 9207)."""
    sep = "&" if "?" in location else "?"
    answer = Response(status=303, headers={"Location": f"{location}{sep}{urlencode({'iss': config.base_url})}"})
    return guarded(answer, location)


def _machine(config, act):
    """What an app gets: errors as RFC 6749 shapes them. Wrong credentials are counted by address; right ones never are."""
    try:
        asked = oauth.Request(config.base_url, request.method, request.path, MultiDict(request.form), request.headers)
        with with_connection(), database.atomic():
            answer = act(asked)
        exchange_of(request.environ.get("asgi.scope")).allowance = asked.allowance
    except UnicodeDecodeError:
        answer = _failure(InvalidClientError(status_code=401))
    except OAuth2Error as error:
        answer = _failure(error)
    answer.headers["Cache-Control"] = "no-store"
    if answer.status_code in (400, 401):
        with with_connection():
            allowance = buckets.take(f"address:{counted_for(request.remote_addr)}", config.failed_credentials_limit)
        if not allowance.taken:
            return _told(429, "temporarily_unavailable", TOO_MANY, retry_after=str(allowance.retry_after))
    return answer


def trouble(error):
    """What an app gets where not its request went wrong, or all of it: as RFC 6749 shapes errors, too."""
    if isinstance(error, DatabaseAway):     # RFC 7009, section 2.2.1: the token that was to be revoked still stands
        return _told(503, "temporarily_unavailable", "Try again in a moment.", retry_after=away(error))
    if isinstance(error, HTTPException):
        return _told(error.code, "invalid_request", "This is no form that can be read.")
    return _told(500, "server_error", f"Something went wrong on our side; the number {failed(error)} finds it in the logs.")


def _told(status, name, description, *, retry_after=None):
    body = json.dumps({"error": name, "error_description": description})
    return Response(body, status, {} if retry_after is None else {"Retry-After": retry_after}, content_type="application/json")


def _failure(error):
    status, body, headers = error()
    return Response(json.dumps(body) if isinstance(body, dict) else body, status, headers)
