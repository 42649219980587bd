"""The ASGI application, as a server loads it in each of its processes: no connection is shared across a fork."""

import handlers.figures     # noqa: F401 before all that makes figures
from handlers.app import create_app
from handlers.config import Config, environment
from handlers.scrapes import serve_api
from handlers.services import build
from handlers.telemetry import start

config = Config.from_env(environment())
start(config, "api")
services = build(config, connections=config.api_connections)
app = create_app(config, services)
serve_api(services)
