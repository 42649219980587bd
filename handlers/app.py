"""The API as an ASGI application: Connexion routes the document to the handlers, our layers stand around it."""

import copy
import errno
import functools
import logging

from connexion import AsyncApp
from connexion.exceptions import ProblemException, ResolverError
from connexion.lifecycle import ConnexionResponse
from connexion.middleware.exceptions import ExceptionMiddleware
from connexion.middleware.lifespan import LifespanMiddleware
from connexion.middleware.response_validation import ResponseValidationMiddleware
from connexion.middleware.routing import RoutingMiddleware
from connexion.middleware.server_error import ServerErrorMiddleware
from connexion.resolver import Resolver
from starlette.exceptions import HTTPException

from handlers import accounts, clients, files, generate, health, ideas, media, plain, platforms, posts, webhooks
from handlers.calls import Calls
from handlers.config import Config
from handlers.contract import Contract
from handlers.errors import ApiError, ExternalServiceError, NotFound, ServiceUnavailable
from handlers.exchange import exchange_of
from handlers.gate import Gate, Paths
from handlers.observe import Observe
from handlers.origins import Origins
from handlers.pages import METHODS, Pages
from handlers.proxies import Proxies
from handlers.responses import failure
from handlers.security import Security
from handlers.services import Services, build
from storage.database import DatabaseAway
from storage.media import Unfinished
from storage.objects import StoreUnavailable
from storage.outage import why

MODULES = (posts, generate, media, accounts, clients, platforms, health, ideas, webhooks)

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)

log = logging.getLogger("posthorn.api")


def create_app(config: Config, services: Services | None = None) -> AsyncApp:
    """The application. Raises ResolverError when an operationId has no handler, ConfigError for an unusable setting."""
    services = services or build(config, connections=config.api_connections)
    contract = Contract()
    app = AsyncApp("handlers", middlewares=_layers(contract, config, services), resolver=Resolver(_resolve),
                   validate_responses=config.validate_responses)
    app.add_api(copy.deepcopy(contract.document))
    for error in (ProblemException, HTTPException, Exception):
        app.add_error_handler(error, _answer_error)
    for path, view in plain.views(contract, services).items():
        app.add_url_rule(path, view_func=view, methods=["GET"])
    return app


def _layers(contract, config, services):
    """From the outermost to the handlers."""
    beside = {**dict.fromkeys(plain.PATHS, ["GET", "HEAD"]), **METHODS}

    def methods(path):
        return beside.get(path) or (files.METHODS if path.startswith(files.PREFIX) else contract.methods(path))

    return [
        functools.partial(Proxies, trusted=config.trusted_proxies),
        Gate,
        functools.partial(Observe, paths=beside, counting=config.api_metrics_port is not None),
        functools.partial(Origins, allowed=config.cors_origins, methods=methods),
        functools.partial(ServerErrorMiddleware, handler=_answer_error),
        ExceptionMiddleware,
        functools.partial(Paths, methods=methods),
        functools.partial(files.Files, services=services),
        functools.partial(Pages, services=services, scopes=contract.scopes),
        RoutingMiddleware,
        *([ResponseValidationMiddleware] if config.validate_responses else []),
        LifespanMiddleware,
        functools.partial(Calls, contract=contract, security=Security(config), services=services),
    ]


def _resolve(operation_id):
    for module in MODULES:
        if hasattr(module, operation_id):
            return getattr(module, operation_id)
    raise ResolverError(f"no handler is named {operation_id}")


async def _answer_error(request, error):
    """The one place where an exception becomes an answer."""
    exchange = exchange_of(request.scope)
    known = _known(error)
    if known is None:
        log.error("request failed", exc_info=error)
        known = ApiError("something went wrong on our side; the request id finds it in the logs")
    answer = failure(known, exchange.request_id)
    return ConnexionResponse(status_code=answer.status, content_type="application/json", body=answer.body, headers=answer.headers)


def _known(error):
    if isinstance(error, ApiError):
        return error
    if isinstance(error, DatabaseAway):
        log.warning("the database is away: %s", why(error))
        return ServiceUnavailable("the database does not answer", headers={"Retry-After": "5"})
    if isinstance(error, StoreUnavailable):
        return ExternalServiceError("the object store does not answer")
    if isinstance(error, Unfinished):
        log.warning("a file was not looked at: %s", error)
        return ServiceUnavailable("there was no time to look at the file", headers={"Retry-After": "30"})
    if isinstance(error, OSError) and error.errno in FULL:
        log.error("this machine has no room", exc_info=error)
        return ServiceUnavailable("there is no room for the file at this moment", headers={"Retry-After": "30"})
    if isinstance(error, HTTPException | ProblemException) and getattr(error, "status_code", None) == 404:
        return NotFound("there is nothing at this path")
    return None
