"""The API as an ASGI application: Connexion routes the document to the handlers, our layers stand around it."""

import asyncio
import copy
import functools
import inspect
import keyword
import logging
import re

from anyio import to_thread
from connexion import AsyncApp, context
from connexion.exceptions import ProblemException, ResolverError
from connexion.lifecycle import ConnexionResponse
from connexion.middleware.context import ContextMiddleware
from connexion.middleware.exceptions import ExceptionMiddleware
from connexion.middleware.lifespan import LifespanMiddleware
from connexion.middleware.response_validation import ResponseValidationMiddleware
from connexion.middleware.routing import RoutingMiddleware
from connexion.middleware.server_error import ServerErrorMiddleware
from connexion.resolver import Resolver
from starlette.exceptions import HTTPException
from starlette.responses import Response

from handlers import accounts, clients, generate, health, ideas, media, plain, platforms, posts
from handlers.config import Config
from handlers.contract import Contract, Validation
from handlers.errors import ApiError, ExternalServiceError, NotFound, ServiceUnavailable
from handlers.exchange import exchange_of
from handlers.files import Files
from handlers.gate import Gate, Paths
from handlers.idempotency import PATIENCE, Once, Overtaken
from handlers.origins import Origins
from handlers.pages import METHODS, Pages
from handlers.responses import failure
from handlers.security import Security
from handlers.services import Services, build
from storage.database import DatabaseAway, with_connection
from storage.objects import StoreUnavailable

MODULES = (posts, generate, media, accounts, clients, platforms, health, ideas)

log = logging.getLogger("posthorn.api")


def create_app(config: Config, services: Services | None = None) -> AsyncApp:
    """The application. Raises ResolverError when an operationId has no handler, ConfigError for an unusable setting."""
    services = services or build(config, connections=config.api_connections)
    contract = Contract()
    middlewares = [
        Gate,
        Origins,
        functools.partial(ServerErrorMiddleware, handler=_answer_error),
        ExceptionMiddleware,
        functools.partial(Files, services=services),
        functools.partial(Paths, contract=contract, beside={**dict.fromkeys(plain.PATHS, ["GET", "HEAD"]), **METHODS}),
        functools.partial(Pages, services=services, scopes=contract.scopes),
        RoutingMiddleware,
        functools.partial(Security, contract=contract, config=config),
        functools.partial(Validation, contract=contract),
        *([ResponseValidationMiddleware] if config.validate_responses else []),
        LifespanMiddleware,
        ContextMiddleware,
    ]
    app = AsyncApp("handlers", middlewares=middlewares, resolver=Resolver(functools.partial(_resolve, services=services)),
                   validate_responses=config.validate_responses)
    app.add_api(copy.deepcopy(contract.document))
    for error in (ProblemException, HTTPException, Exception):
        app.add_error_handler(error, _answer_error)
    for path, view in plain.views(contract, services).items():
        app.add_url_rule(path, view_func=view, methods=["GET"])
    return app


def _resolve(operation_id, services):
    for module in MODULES:
        if hasattr(module, operation_id):
            return _bind(getattr(module, operation_id), services)
    raise ResolverError(f"no handler is named {operation_id}")


def _bind(handler, services):
    """The handler as Connexion calls it: without arguments, since what it needs is in the exchange, checked already."""
    wanted = inspect.signature(handler).parameters.keys()

    async def operation(id=None):   # Connexion hands path parameters over, wanted or not
        exchange = exchange_of(context.scope)
        run = functools.partial(to_thread.run_sync, _run, handler, wanted, exchange, services, context.scope["method"],
                                context.scope["path"])
        answer = await (_attended(run, exchange.presence, context.receive) if "presence" in wanted else run())
        return Response(answer.body, answer.status, answer.headers, "application/json")

    return operation


async def _attended(run, presence, receive):
    """What `run` gives; meanwhile `presence` learns when the caller's connection ends, which its thread cannot see."""
    async def attend():
        while (await receive())["type"] != "http.disconnect":
            pass
        presence.leave()

    attending = asyncio.ensure_future(attend())
    try:
        return await run()
    finally:
        attending.cancel()


def _run(handler, wanted, exchange, services, method, path):
    given = {_argument(name): value for name, value in exchange.values.items()}
    given |= {"caller": exchange.caller, "body": exchange.body, "services": services, "presence": exchange.presence,
              "keep": lambda answer: answer}
    if exchange.caller is None:
        return handler(**{name: given.get(name) for name in wanted})
    with with_connection():
        key = given.get("idempotency_key")
        if key is None or method != "POST":
            return handler(**{name: given.get(name) for name in wanted})
        once = Once(exchange.caller, f"{method} {path}", key, exchange.body, PATIENCE[exchange.limit])
        return once.begin() or _run_once(handler, wanted, {**given, "keep": once.keep}, once, exchange.request_id)


def _run_once(handler, wanted, given, once, request_id):
    try:
        answer = handler(**{name: given.get(name) for name in wanted})
        return answer if "keep" in wanted else once.keep(answer)
    except Overtaken:
        raise
    except Exception as error:
        if isinstance(error, ApiError) and error.status < 500 and not error.passes:
            return once.keep(failure(error, request_id))
        once.forget()
        raise


def _argument(name):
    """A parameter's name in the document as a Python name: clientId -> client_id, If-None-Match -> if_none_match, id -> id_."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name).lower()
    return f"{name}_" if keyword.iskeyword(name) or name == "id" else name


async def _answer_error(request, error):
    """The one place where an exception becomes an answer."""
    exchange = exchange_of(request.scope)
    known = _known(error)
    if known is None:
        log.error("request %s failed", exchange.request_id, exc_info=error)
        known = ApiError("something went wrong on our side; the request id finds it in the logs")
    answer = failure(known, exchange.request_id)
    return ConnexionResponse(status_code=answer.status, content_type="application/json", body=answer.body, headers=answer.headers)


def _known(error):
    if isinstance(error, ApiError):
        return error
    if isinstance(error, DatabaseAway):
        log.warning("the database is away: %s", type(error).__name__)
        return ServiceUnavailable("the database does not answer", headers={"Retry-After": "5"})
    if isinstance(error, StoreUnavailable):
        return ExternalServiceError("the object store does not answer")
    if isinstance(error, HTTPException | ProblemException) and getattr(error, "status_code", None) == 404:
        return NotFound("there is nothing at this path")
    return None
