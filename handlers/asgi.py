"""The ASGI application, as a server loads it in each of its processes: no connection is shared across a fork."""

from handlers.app import create_app
from handlers.config import Config, environment

app = create_app(Config.from_env(environment()))
