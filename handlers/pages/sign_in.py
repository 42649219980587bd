"""Signing in: by password or one-time link, into a session that a cookie carries."""

import hashlib
import hmac

from flask import abort, redirect, request

from handlers.oauth import AUTHORIZE
from handlers.pages.render import guarded, page
from handlers.proxies import counted_for
from storage import buckets, keys, people
from storage.database import with_connection
from storage.models import Team

SIGN_IN, LINK, SIGN_OUT = "/sign-in", "/sign-in/link", "/sign-out"
METHODS = {SIGN_IN: ["POST"], LINK: ["GET", "HEAD", "POST"], SIGN_OUT: ["POST"]}
SESSION, FORM = "posthorn-session", "posthorn-form"     # cookies
ADDRESSES = 10  # that must try wrong passwords all the time to keep a person from theirs; a link lets them in all the same
WRONG = "This name and password do not go together."
OVER = "This link does not work: it was used already, or its time is over."


def add(app, config):
    """Adds the views to the Flask application."""
    @app.post(SIGN_IN)
    def sign_in():
        _check_form(_cookie(config, FORM))
        login, password = request.form.get("login", "")[:200], request.form.get("password", "")[:people.PASSWORD_LENGTHS[1] + 1]
        with with_connection():
            tries = _tries(config, login)
            if wait := max(buckets.peek(name, limit).retry_after for name, limit in tries):
                return ask(config, 429, f"Too many tries. Wait {wait} seconds.")
            user = None if "\0" in login else people.by_password(login, password, request.remote_addr)
            if user is not None and (begun := _begin(config, user, "password", _onward())):
                return begun
            # An address that has used up what it has uses up nothing of a person's.
            all(buckets.take(name, limit).taken for name, limit in tries)
            return ask(config, 403, WRONG)

    @app.route(LINK, methods=["GET", "POST"])
    def link():
        # A program that looks where a link leads must not use it up: a person presses the button.
        if request.method != "POST":
            return _with_form_cookie(config, lambda token: page("link.html", 200, action=LINK, form_token=token,
                                                                token=request.args.get("token", "")[:100]))
        _check_form(_cookie(config, FORM))
        with with_connection():
            user = people.by_link(request.form.get("token", ""))
            return user and _begin(config, user, "link", None) or page("refused.html", 400, sentence=OVER)

    @app.post(SIGN_OUT)
    def sign_out():
        token = _cookie(config, SESSION)
        _check_form(token)
        with with_connection():
            people.end_session(token)
        answer = redirect(_onward(), 303) if request.query_string else page("signed_out.html", 200)
        answer.delete_cookie(_name(config, SESSION), **_how(config))
        return guarded(answer)


def ask(config, status=200, problem=None):
    """The page that asks who it is; the request to authorize, in the query, goes on after that."""
    # The answer to the form may lead to the app at once, where that did something wrong.
    goes_to = request.args.get("redirect_uri") or None
    return _with_form_cookie(config, lambda token: page(
        "sign_in.html", status, goes_to=goes_to, problem=problem, form_token=token, login=request.form.get("login", ""),
        action=f"{SIGN_IN}?{request.query_string.decode('latin-1')}"))


def signed_in(config):
    """Who is signed in, or None."""
    return people.of_session(_cookie(config, SESSION))


def form_token(config):
    """What a form of a person who is signed in must carry, so that no other site can send it in their name."""
    return _form_token(_cookie(config, SESSION))


def check_form(config):
    """Refuses a form that did not come from a page of ours in this session."""
    _check_form(_cookie(config, SESSION))


def _begin(config, user, way, onward):
    """Goes on with a session; None where the user is not any more who signed in."""
    token = people.begin_session(user, way, request.remote_addr)
    if token is None:
        return None
    if onward is None:
        answer = page("signed_in.html", 200, user=user, team=Team.get_by_id(user.team_id))
    else:
        answer = guarded(redirect(onward, 303), request.args.get("redirect_uri") or None)
    lasts = int(people.SESSION_LASTS.total_seconds())
    answer.set_cookie(_name(config, SESSION), token, max_age=lasts, samesite="Lax", **_how(config))
    return answer


def _onward():
    return f"{AUTHORIZE}?{request.query_string.decode('latin-1')}"


def _tries(config, login):
    """The buckets of wrong tries from this address, and with this name from everywhere, each with its limit."""
    name, limit = hashlib.sha256(login.strip().lower().encode()).hexdigest(), config.failed_credentials_limit
    return (f"sign-in:{counted_for(request.remote_addr)}", limit), (f"sign-in:{name}", limit * ADDRESSES)


def _with_form_cookie(config, render):
    """The page that `render` makes with a token that only this browser's cookie fits to."""
    cookie = _cookie(config, FORM) or keys.fresh("in")
    answer = render(_form_token(cookie))
    answer.set_cookie(_name(config, FORM), cookie, samesite="Lax", **_how(config))
    return answer


def _form_token(cookie):
    return hashlib.sha256(f"form {cookie}".encode()).hexdigest()


def _check_form(cookie):
    given = request.form.get("form_token", "")
    if not cookie or not hmac.compare_digest(_form_token(cookie).encode(), given.encode()):
        abort(403)


def _cookie(config, name):
    cookie = request.cookies.get(_name(config, name), "")
    return cookie if keys.well_formed(cookie, ("in",)) else ""


def _name(config, name):
    # Browsers take a __Host- cookie from this very host alone, by TLS: no neighbour below the same domain can plant one.
    return f"__Host-{name}" if _secure(config) else name


def _how(config):
    return {"secure": _secure(config), "httponly": True, "path": "/"}


def _secure(config):
    return config.base_url.startswith("https:")
