"""The pages that people see in a browser, as a Flask application beside the API."""

from a2wsgi import WSGIMiddleware
from flask import Flask, redirect, request
from starlette.datastructures import Headers, MutableHeaders
from werkzeug.exceptions import HTTPException

from handlers.connect import CALLBACK, Ended, Offer, Over, choose, come_back
from handlers.incoming import arrived
from handlers.oauth import REVOKE, TOKEN
from handlers.pages import authorize, sign_in
from handlers.pages.render import away, failed, guarded, page
from storage.database import DatabaseAway

CHOICE = "/connect/choice"
METHODS = {CALLBACK: ["GET", "HEAD"], CHOICE: ["POST"], **sign_in.METHODS, **authorize.METHODS}
THREADS = 8             # people of one process whose network is being asked at this moment; as many for all else
FORM_BYTES = 65_536
FORM = "The form is too old, too large, or not one of ours."


class Pages:
    """Answers the paths of METHODS itself and passes everything else on."""

    def __init__(self, app, services, scopes):
        pages = _create(services, scopes)
        # A network that takes its time must keep nobody from signing in, and no program from its tokens.
        connecting, others = (WSGIMiddleware(pages, workers=THREADS) for _ in range(2))
        self.app, self.pages = app, {path: connecting if path in (CALLBACK, CHOICE) else others for path in METHODS}

    async def __call__(self, scope, receive, send):
        page = self.pages.get(scope["path"]) if scope["type"] == "http" else None
        if page is None:
            return await self.app(scope, receive, send)
        form = await whole(Headers(scope=scope), receive)
        if form is None:
            return None
        headers = MutableHeaders(raw=list(scope["headers"]))
        del headers["transfer-encoding"]
        headers["content-length"] = str(len(form))

        async def at_once():
            return {"type": "http.request", "body": form, "more_body": False}

        return await page({**scope, "headers": headers.raw}, at_once, send)


async def whole(headers, receive):
    """The body of a request, before it takes one of the few threads: as handlers.incoming.arrived gives it."""
    if int(headers.get("content-length", "0")) > FORM_BYTES:
        return b" " * (FORM_BYTES + 1)
    return await arrived(receive, FORM_BYTES)


def _create(services, scopes):
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = FORM_BYTES

    @app.get(CALLBACK)
    def callback():
        # A program that looks where a link leads must not use it up.
        return "" if request.method == "HEAD" else _answer(come_back(services, request.args.to_dict()))

    @app.post(CHOICE)
    def choice():
        return _answer(choose(services, request.form.get("token", ""), set(request.form.getlist("account"))))

    sign_in.add(app, services.config)
    authorize.add(app, services.config, scopes)
    app.register_error_handler(Exception, _trouble)
    return app


def _answer(outcome: Ended | Offer):
    if isinstance(outcome, Offer):
        return page("choice.html", 422 if outcome.problem else 200, goes_to=outcome.address, offer=outcome, action=CHOICE)
    if outcome.address is not None:
        return guarded(redirect(outcome.address, 303))
    if outcome.failure is not None:
        return page("failed.html", 502 if outcome.unavailable else 400, outcome=outcome)
    return page("connected.html", 200, outcome=outcome)


def _trouble(error):
    if request.path in (TOKEN, REVOKE):
        return authorize.trouble(error)
    if isinstance(error, Over):
        return page("over.html", 400)
    if isinstance(error, DatabaseAway):
        answer = page("trouble.html", 503, retry="in a moment")
        answer.headers["Retry-After"] = away(error)
        return answer
    connecting = request.path in (CALLBACK, CHOICE)
    if isinstance(error, HTTPException):
        return page("over.html", error.code) if connecting else page("refused.html", error.code, sentence=FORM)
    return page("trouble.html", 500, request_id=failed(error), connecting=connecting)
