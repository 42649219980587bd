"""From a routed request to its handler and back: credential, parameters, body and work, on one thread with one connection.

Connexion resolves each operationId to its handler and routes the requests; what its own decorators find out about a handler
anew with every request is found out once here.
"""

import asyncio
import functools
import inspect
import keyword
import re

from anyio import to_thread
from connexion.middleware.abstract import RoutedAPI, RoutedMiddleware
from starlette.responses import Response

from handlers.errors import ApiError
from handlers.exchange import exchange_of
from handlers.idempotency import PATIENCE, Once, Overtaken
from handlers.incoming import read
from handlers.responses import failure
from handlers.stores import keep
from storage import ids
from storage.database import with_connection


class Calls(RoutedMiddleware):
    """The innermost layer: answers the operations of the document, and passes on what is none."""

    def __init__(self, app, contract, security, services):
        super().__init__(app)
        self.api_cls = functools.partial(_Api, contract=contract, security=security, services=services)


class _Api(RoutedAPI):
    def __init__(self, *arguments, contract, security, services, **options):
        super().__init__(*arguments, **options)
        self._make = lambda operation: Call(operation.function, contract.operations[operation.operation_id], security, services)
        self.add_paths()

    def make_operation(self, operation):
        """Called by Connexion for each operation of the document."""
        return self._make(operation)


class Call:
    """One operation as an ASGI application."""

    def __init__(self, handler, operation, security, services):
        self._handler, self._operation, self._security, self._services = handler, operation, security, services
        self._wanted = frozenset(inspect.signature(handler).parameters)

    async def __call__(self, scope, receive, send):
        exchange_of(scope).operation = self._operation
        answer = self._handler() if self._operation.public else await self._answer(scope, receive)
        await Response(answer.body, answer.status, answer.headers, "application/json")(scope, receive, send)

    async def _answer(self, scope, receive):
        token = self._security.token(scope)     # who brings none is sent away before anything else is read
        incoming = await read(self._operation, scope, receive)
        run = functools.partial(to_thread.run_sync, self._run, exchange_of(scope), token, incoming)
        return await (_attended(run, exchange_of(scope).presence, receive) if "presence" in self._wanted else run())

    def _run(self, exchange, token, incoming):
        with with_connection():
            self._security.admit(exchange, self._operation, token, incoming.scope)
            ids.add(team_id=exchange.caller.team_id)
            body, values = incoming.body(), incoming.values()
            given = {_argument(name): value for name, value in values.items()}
            given |= {"caller": exchange.caller, "body": body, "services": self._services, "presence": exchange.presence,
                      "keep": lambda answer: answer}
            key = given.get("idempotency_key")
            if key is None or self._operation.method != "POST":
                return self._handle(given)
            once = Once(exchange.caller, f"POST {incoming.scope['path']}", key, body, vault=self._services.vault,
                        kept=keep(self._services.config).idempotency, patience=PATIENCE[self._operation.limit])
            return once.begin() or self._handle_once({**given, "keep": once.keep}, once, exchange.request_id)

    def _handle(self, given):
        return self._handler(**{name: given.get(name) for name in self._wanted})

    def _handle_once(self, given, once, request_id):
        try:
            answer = self._handle(given)
            return answer if "keep" in self._wanted else once.keep(answer)
        except Overtaken:
            raise
        except Exception as error:
            if isinstance(error, ApiError) and error.status < 500 and not error.passes:
                return once.keep(failure(error, request_id))
            once.forget()
            raise


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


@functools.cache
def _argument(name):
    """A parameter's name in the document as a Python name: clientId -> client_id, If-None-Match -> if_none_match, id -> id_."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name).lower()
    return f"{name}_" if keyword.iskeyword(name) or name == "id" else name
