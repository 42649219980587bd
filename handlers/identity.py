"""Administration by the command line: people who sign in, and the OAuth clients that act for them."""

import re
import sys
from contextlib import contextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import click
from peewee import IntegrityError

from handlers.console import as_json, client_of, of_team, on_database, say, show, sure, team_of, user_of, without_asking
from handlers.pages.sign_in import LINK
from storage import audit, keys, people
from storage.database import database
from storage.models import User, wire_time
from storage.oauth import OAuthClient

LOGIN = re.compile(r"[0-9a-z][0-9a-z._@+-]{0,199}")
PRIVATE_SCHEME = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")   # RFC 8252, section 7.1: an app's own domain, backwards
REDIRECT_LENGTH = 2048


@click.group()
def user():
    """People of a team."""


@user.command("create")
@click.argument("name")
@click.option("--login", help="The name to sign in with, such as an e-mail address; whoever has none signs in nowhere.")
@of_team
@as_json
@on_database
def create_user(services, name, login, team_id, as_json):
    """Add somebody to a team. `posthorn user password` or `posthorn user link` lets them in."""
    login = login and _login(login)
    with _nobody_else(login):
        row = User.add(team_id=team_of(team_id).id, name=name, login=login)
        _record("user.created", row)
    show([_shown_user(row)], as_json)


@user.command("login")
@click.argument("user_id", metavar="USER")
@click.argument("login", metavar="NAME")
@of_team
@as_json
@on_database
def set_login(services, user_id, login, team_id, as_json):
    """Give somebody who is there already a name to sign in with."""
    row, login = user_of(team_of(team_id), user_id), _login(login)
    with _nobody_else(login):
        User.update(login=login).where(User.id == row.id).execute()
        _record("user.login_set", row)
    show([_shown_user(User.get_by_id(row.id))], as_json)


@user.command("list")
@of_team
@as_json
@on_database
def list_users(services, team_id, as_json):
    """List the people of a team."""
    rows = User.select().where(User.team_id == team_of(team_id).id).order_by(User.created_at)
    show([_shown_user(row) for row in rows], as_json)


@user.command("password")
@click.argument("user_id", metavar="USER")
@of_team
@as_json
@on_database
def set_password(services, user_id, team_id, as_json):
    """Set somebody's password; USER is their id or sign-in name. It is asked for, or read from standard input."""
    row = _person(team_of(team_id), user_id)
    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    try:
        with database.atomic():
            people.set_password(row, password)
            _record("user.password_set", row)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    say("set; they are signed out everywhere", {"id": row.id}, as_json)


@user.command("link")
@click.argument("user_id", metavar="USER")
@of_team
@as_json
@on_database
def make_link(services, user_id, team_id, as_json):
    """Print a link that signs somebody in, once, within 15 minutes."""
    row = _person(team_of(team_id), user_id)
    with database.atomic():
        token = people.new_link(row)
        _record("user.link_made", row)
    link = f"{services.config.base_url}{LINK}?token={token}"
    show([{"id": row.id, "link": link}], True) if as_json else click.echo(link)


@user.command("disable")
@click.argument("user_id", metavar="USER")
@without_asking
@of_team
@as_json
@on_database
def disable_user(services, user_id, yes, team_id, as_json):
    """End everything that works in somebody's name, at once: sessions, links, API keys, OAuth tokens."""
    row = user_of(team_of(team_id), user_id)
    sure(f"Disable {row.name}? Their API keys and apps stop working.", yes)
    with database.atomic():
        _record("user.disabled", row)
        people.disable(row, audit.typed())
    say("disabled", {"id": row.id}, as_json)


@click.group("oauth-client")
def oauth_client():
    """Programs that ask people for access by OAuth."""


@oauth_client.command("create")
@click.argument("name")
@click.option("--redirect", "redirects", multiple=True, help="An address to which people are sent back; exactly this one.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(keys.SCOPES),
              help="A scope it may ask for; all when none is given.")
@click.option("--mode", type=click.Choice(["live", "test"]), default="live", show_default=True)
@click.option("--confidential", is_flag=True, help="It runs on a server and can keep a secret, which is shown once.")
@click.option("--team", "team_id", help="Only people of this team may use it; everybody when not given.")
@click.option("--as-user", help="It may also act by itself (client credentials), as this user of the team.")
@click.option("--client", "client_id", help="The one agency client of the team that it may act for.")
@as_json
@on_database
def create_oauth_client(services, name, redirects, scopes, mode, confidential, team_id, as_user, client_id, as_json):
    """Register a program, such as the browser extension."""
    redirects = [sound_redirect(text) for text in redirects]
    if not redirects and not as_user:
        raise click.ClickException("without --redirect nobody can use it; without --as-user it cannot act by itself")
    if as_user and not confidential:
        raise click.ClickException("whoever acts by itself must keep a secret: add --confidential")
    owning = team_of(team_id) if team_id or as_user or client_id else None
    with database.atomic():
        row, secret = OAuthClient.create(
            confidential=confidential, name=name, mode=mode, redirect_uris=redirects, scopes=list(scopes or keys.SCOPES),
            team_id=owning and owning.id, user_id=user_of(owning, as_user).id if as_user else None,
            client_id=client_of(owning, client_id).id if client_id else None)
        audit.record(audit.typed(), "oauth_client.created", row.id, team_id=row.team_id, mode=mode, userId=row.user_id)
    show([{"id": row.id, "secret": secret}], as_json)


@oauth_client.command("list")
@as_json
@on_database
def list_oauth_clients(services, as_json):
    """List the programs, never their secrets."""
    rows = OAuthClient.select().order_by(OAuthClient.created_at)
    show([{"id": row.id, "name": row.name, "mode": row.mode, "kind": "public" if row.secret is None else "confidential",
           "teamId": row.team_id, "userId": row.user_id, "clientId": row.client_id, "redirectUris": " ".join(row.redirect_uris),
           "scopes": " ".join(row.scopes), "revokedAt": wire_time(row.revoked_at)} for row in rows], as_json)


@oauth_client.command("revoke")
@click.argument("oauth_client_id", metavar="ID")
@without_asking
@as_json
@on_database
def revoke_oauth_client(services, oauth_client_id, yes, as_json):
    """End a program with all its tokens, at once."""
    sure(f"End {oauth_client_id}? Everybody who uses it is signed out of it.", yes)
    row = OAuthClient.in_force(oauth_client_id)
    with database.atomic():
        if row is None or not row.revoke():
            raise click.ClickException("there is no such OAuth client in force")
        audit.record(audit.typed(), "oauth_client.revoked", row.id, team_id=row.team_id, mode=row.mode)
    say("revoked", {"id": oauth_client_id}, as_json)


@oauth_client.command("rotate")
@click.argument("oauth_client_id", metavar="ID")
@without_asking
@as_json
@on_database
def rotate_oauth_client(services, oauth_client_id, yes, as_json):
    """Give a program a new secret and show it, this once; the old one ends at once, and what people allowed stays."""
    sure(f"End the secret of {oauth_client_id} now? It is refused until it has the new one.", yes)
    row = OAuthClient.in_force(oauth_client_id)
    with database.atomic():
        secret = row and row.renew_secret()
        if secret is None:
            raise click.ClickException("there is no such OAuth client in force that has a secret")
        audit.record(audit.typed(), "oauth_client.rotated", row.id, team_id=row.team_id, mode=row.mode)
    show([{"id": row.id, "secret": secret}], as_json)


def sound_redirect(text: str) -> str:
    """The address itself: TLS, this machine, or a scheme that belongs to an app alone. Raises click.BadParameter otherwise."""
    plain = len(text) <= REDIRECT_LENGTH and text.isascii() and text.isprintable() and not set(' "\\#*') & set(text)
    if plain and _is_apps(text):
        return text
    raise click.BadParameter(f"{text} is no https address, no http address of this machine, and no scheme of an app's own",
                             param_hint="--redirect")


def _is_apps(text):
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        return False
    if "@" in url.netloc:
        return False
    local = url.scheme == "http" and _is_local(host or "")
    return bool(url.scheme == "https" and host or local or PRIVATE_SCHEME.fullmatch(url.scheme))


def _person(team, user_id):
    row = user_of(team, user_id)
    if row.login is None or row.disabled_at is not None:
        raise click.ClickException("this user has no sign-in name" if row.login is None else "this user is disabled")
    return row


@contextmanager
def _nobody_else(login):
    try:
        with database.atomic():
            yield
    except IntegrityError:
        raise click.ClickException(f"somebody else signs in as {login}") from None


def _login(text):
    login = text.strip().lower()
    if not LOGIN.fullmatch(login):
        raise click.BadParameter("up to 200 of a-z 0-9 . _ @ + -", param_hint="--login")
    return login


def _is_local(host):
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _record(action, row):
    audit.record(audit.typed(), action, row.id, team_id=row.team_id)


def _shown_user(row):
    return {"id": row.id, "name": row.name, "login": row.login, "password": "set" if row.password else None,
            "disabledAt": wire_time(row.disabled_at)}
