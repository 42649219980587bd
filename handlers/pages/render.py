"""A page as it goes out: plain HTML, one style, and the headers that protect it."""

import hashlib
import logging
import re
from base64 import b64encode
from pathlib import Path

from flask import make_response, render_template, request

from handlers.exchange import exchange_of
from storage.outage import why

STYLE = Path(__file__).with_name("templates").joinpath("style.css").read_text()
STYLE_HASH = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

# The host with its port, of what has one; the scheme alone of an app's own.
ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]+)?(?=/|\?|#|$)|(?!//))")

log = logging.getLogger("posthorn.pages")


def page(template, status, *, goes_to=None, **values):
    """The rendered template. `goes_to` is the address to which the answer to its form may lead."""
    return guarded(make_response(render_template(template, style=STYLE, **values), status), goes_to)


def guarded(response, goes_to=None):
    """No scripts, no pictures, nothing from elsewhere, no frame around it, and no word to anybody of where one came from."""
    # Browsers hold the place to which the answer to a form redirects against form-action as well.
    onward = "" if goes_to is None else f" {_origin(goes_to)}"
    response.headers["Content-Security-Policy"] = (f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; "
                                                   f"form-action 'self'{onward}; frame-ancestors 'none'; base-uri 'none'")
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def failed(error):
    """Writes down what went wrong; returns the number that finds it in the logs."""
    request_id = exchange_of(request.environ.get("asgi.scope")).request_id
    log.error("request %s failed", request_id, exc_info=error)
    return request_id


def away(error):
    """Writes down that the database is away; returns the seconds after which to try again."""
    log.warning("the database is away: %s", why(error))
    return "5"


def _origin(address):
    """Of an address that somebody may have made up: what does not belong into a policy gives nothing."""
    found = ORIGIN.match(address)
    return found[0] if found else ""
