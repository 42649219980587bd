"""The pages that people see in a browser, as a Flask application beside the API."""

import hashlib
import logging
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

from a2wsgi import WSGIMiddleware
from flask import Flask, make_response, redirect, render_template, request
from werkzeug.exceptions import HTTPException

from handlers.connect import CALLBACK, Ended, Offer, Over, choose, come_back
from handlers.exchange import exchange_of
from storage.database import DatabaseAway

CHOICE = "/connect/choice"
METHODS = {CALLBACK: ["GET", "HEAD"], CHOICE: ["POST"]}
THREADS = 8             # people of one process whose network is being asked at this moment
FORM_BYTES = 65_536
STYLE = Path(__file__).with_name("templates").joinpath("style.css").read_text()
STYLE_HASH = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

log = logging.getLogger("posthorn.pages")


class Pages:
    """Answers the paths of METHODS itself and passes everything else on."""

    def __init__(self, app, services):
        self.app, self.pages = app, WSGIMiddleware(_create(services), workers=THREADS)

    async def __call__(self, scope, receive, send):
        ours = scope["type"] == "http" and scope["path"] in METHODS
        await (self.pages if ours else self.app)(scope, receive, send)


def _create(services):
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = FORM_BYTES

    @app.get(CALLBACK)
    def callback():
        # A program that looks where a link leads must not use it up.
        return "" if request.method == "HEAD" else _answer(come_back(services, request.args.to_dict()))

    @app.post(CHOICE)
    def choice():
        return _answer(choose(services, request.form.get("token", ""), set(request.form.getlist("account"))))

    app.register_error_handler(Exception, _trouble)
    return app


def _answer(outcome: Ended | Offer):
    if isinstance(outcome, Offer):
        return _page("choice.html", 422 if outcome.problem else 200, goes_to=outcome.address, offer=outcome, action=CHOICE)
    if outcome.address is not None:
        return _guarded(redirect(outcome.address, 303))
    if outcome.failure is not None:
        return _page("failed.html", 502 if outcome.unavailable else 400, outcome=outcome)
    return _page("connected.html", 200, outcome=outcome)


def _trouble(error):
    if isinstance(error, Over):
        return _page("over.html", 400)
    if isinstance(error, DatabaseAway):
        log.warning("the database is away: %s", type(error).__name__)
        return _page("trouble.html", 503, retry="in a moment")
    if isinstance(error, HTTPException):
        return _page("over.html", error.code)
    request_id = exchange_of(request.environ.get("asgi.scope")).request_id
    log.error("request %s failed", request_id, exc_info=error)
    return _page("trouble.html", 500, request_id=request_id)


def _page(template, status, *, goes_to=None, **values):
    return _guarded(make_response(render_template(template, style=STYLE, **values), status), goes_to)


def _guarded(response, goes_to=None):
    """No scripts, no pictures, nothing from elsewhere, no frame around it, and no word to anybody of where one came from."""
    # Browsers hold the place to which the answer to a form redirects against form-action as well.
    onward = "" if goes_to is None else " {0.scheme}://{0.netloc}".format(urlsplit(goes_to))
    response.headers["Content-Security-Policy"] = (f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; "
                                                   f"form-action 'self'{onward}; frame-ancestors 'none'; base-uri 'none'")
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
