"""Which answers scripts of other origins may read (CORS, as the Fetch standard has it)."""

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from handlers.oauth import RESOURCE_METADATA, REVOKE, SERVER_METADATA, TOKEN

# A program that runs in a browser trades its code from its own origin. Nothing here goes by a cookie, so all origins may.
OPEN = {TOKEN, REVOKE, SERVER_METADATA, RESOURCE_METADATA}
API = "/v1/"
SHOWN = {"Access-Control-Expose-Headers": "ETag, Idempotent-Replayed, Location, RateLimit-Limit, RateLimit-Remaining, "
                                          "RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-Id"}
ANY = {"Access-Control-Allow-Origin": "*", **SHOWN}
TAKEN = "Authorization, *"      # the star does not stand for Authorization
PREFLIGHT_LASTS = "7200"        # seconds; Chromium keeps none longer


class Origins:
    """Opens the paths of OPEN to every origin, and those of API to the origins of `allowed`; errors and preflights included.

    Never with credentials: a browser sends no cookie, and a script has to know the key. `methods` tells those of a path.
    """

    def __init__(self, app, allowed: frozenset[str], methods: Callable[[str], list[str]]):
        self.app, self.allowed, self.methods = app, allowed, methods

    async def __call__(self, scope, receive, send):
        told = self._told(scope) if scope["type"] == "http" else {}
        if not told:
            await self.app(scope, receive, send)
        elif "Access-Control-Allow-Origin" in told and _is_preflight(scope) and (methods := self.methods(scope["path"])):
            more = {"Access-Control-Allow-Methods": ", ".join(methods), "Access-Control-Allow-Headers": TAKEN,
                    "Access-Control-Max-Age": PREFLIGHT_LASTS}
            await Response(status_code=204, headers={**told, **more})(scope, receive, send)
        else:
            await self.app(scope, receive, _telling(send, told))

    def _told(self, scope):
        """The headers that every answer to this request gets."""
        if scope["path"] in OPEN:
            return ANY
        if not self.allowed or not scope["path"].startswith(API):
            return {}
        if "*" in self.allowed:
            return ANY
        origins = Headers(scope=scope).getlist("origin")
        allows = len(origins) == 1 and origins[0] in self.allowed
        return {"Vary": "Origin", **({"Access-Control-Allow-Origin": origins[0], **SHOWN} if allows else {})}


def _is_preflight(scope):
    return scope["method"] == "OPTIONS" and {"origin", "access-control-request-method"} <= set(Headers(scope=scope))


def _telling(send, told):
    async def telling(message):
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(told)
        await send(message)

    return telling
