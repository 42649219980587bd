"""From a bearer credential to a caller who may do this: credential, plan, scope, rate limit, in this order."""

from handlers.errors import Forbidden, RateLimited, Unauthorized
from handlers.oauth import RESOURCE_METADATA
from handlers.proxies import counted_for
from storage import buckets, keys

REALM = 'Bearer realm="posthorn"'     # RFC 6750 section 3
INVALID = "the API key or access token is not valid"


class Security:
    """Tells who asks and whether they may."""

    def __init__(self, config):
        self.limits = {"requests": config.rate_limit, "fetches": config.fetch_rate_limit, "captions": config.caption_rate_limit}
        self.failed_limit = config.failed_credentials_limit
        self.challenge = f'{REALM}, resource_metadata="{config.base_url}{RESOURCE_METADATA}"'     # RFC 9728 section 5.1

    def token(self, scope) -> str:
        """The bearer token of an ASGI scope. Raises Unauthorized where there is not exactly one, or it has not our form.

        A wrong checksum is told without the database, and not counted: such a token opens nothing, ever.
        """
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            raise Unauthorized("this needs a credential: Authorization: Bearer <API key or access token>",
                               headers={"WWW-Authenticate": self.challenge})
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
            raise self._unauthorized("the Authorization header must be one Bearer credential", "invalid_request")
        if not keys.well_formed(token.strip()):
            raise self._unauthorized(INVALID, "invalid_token")
        return token.strip()

    def admit(self, exchange, operation, token, scope) -> None:
        """Leaves the caller and the allowance in the exchange. Raises Unauthorized, Forbidden or RateLimited."""
        caller = keys.identify(token)
        if caller is None:
            self._refuse_credential(scope["client"] and scope["client"][0])
        exchange.caller = caller
        self._take(exchange, operation)

    def _take(self, exchange, operation):
        """Plan and scope first: what is forbidden costs no token, but its answer tells the allowance as well."""
        caller, limit = exchange.caller, self.limits[operation.limit]
        bucket = f"{caller.credential_id}:{operation.limit}"
        if not caller.plan_active or operation.scope not in caller.scopes:
            exchange.allowance = buckets.peek(bucket, limit)
            self._refuse_permission(caller, operation)
        exchange.allowance = buckets.take(bucket, limit)
        if not exchange.allowance.taken:
            raise RateLimited(f"over {limit} requests a minute", headers={"Retry-After": str(exchange.allowance.retry_after)})

    def _refuse_credential(self, address):
        """Wrong credentials are counted by address, so that nobody tries them by the million; good ones never are."""
        allowance = buckets.take(f"address:{counted_for(address)}", self.failed_limit)
        if not allowance.taken:
            raise RateLimited("too many wrong credentials from this address", headers={"Retry-After": str(allowance.retry_after)})
        raise self._unauthorized(INVALID, "invalid_token")

    def _refuse_permission(self, caller, operation):
        if not caller.plan_active:
            raise Forbidden("the team has no active plan")
        challenge = f'{self.challenge}, error="insufficient_scope", scope="{operation.scope}"'
        raise Forbidden(f"this needs the scope {operation.scope}", headers={"WWW-Authenticate": challenge})

    def _unauthorized(self, message, error):
        return Unauthorized(message, headers={"WWW-Authenticate": f'{self.challenge}, error="{error}"'})
