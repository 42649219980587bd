"""Which answers scripts of other origins may read (CORS, as the Fetch standard has it)."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from handlers.oauth import RESOURCE_METADATA, REVOKE, SERVER_METADATA, TOKEN

# A program that runs in a browser trades its code from its own origin. Nothing here goes by a cookie, so all origins may.
OPEN = {TOKEN: "POST", REVOKE: "POST", SERVER_METADATA: "GET, HEAD", RESOURCE_METADATA: "GET, HEAD"}
ANY = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After, WWW-Authenticate, X-Request-Id"}
TAKEN = "Authorization, *"      # the star does not stand for Authorization
PREFLIGHT_LASTS = "7200"        # seconds; Chromium keeps none longer


class Origins:
    """Opens the paths of OPEN to every origin, their errors included, and answers the preflights there."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        methods = OPEN.get(scope["path"]) if scope["type"] == "http" else None
        if methods is None:
            await self.app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and {"origin", "access-control-request-method"} <= set(Headers(scope=scope)):
            told = {"Access-Control-Allow-Methods": methods, "Access-Control-Allow-Headers": TAKEN,
                    "Access-Control-Max-Age": PREFLIGHT_LASTS}
            await Response(status_code=204, headers={**ANY, **told})(scope, receive, send)
        else:
            await self.app(scope, receive, _opened(send))


def _opened(send):
    async def opened(message):
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(ANY)
        await send(message)

    return opened
