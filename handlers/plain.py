"""What answers beside the operations of the document: the document itself and its reference, and readiness for whoever runs the
service."""

import hashlib

import orjson
from anyio import to_thread
from starlette.responses import Response

from handlers import docs
from handlers.config import ConfigError
from handlers.connect import callback_url
from handlers.oauth import RESOURCE_METADATA, SERVER_METADATA, resource_metadata, server_metadata
from handlers.readiness import Readiness
from handlers.responses import unchanged
from platforms.errors import PlatformError

METADATA = "/connect/client-metadata.json"
PATHS = {"/v1/openapi.yaml", "/v1/openapi.json", "/ready", METADATA, SERVER_METADATA, RESOURCE_METADATA, *docs.FILES}


def views(contract, services):
    """The view of each of PATHS, by path."""
    yaml_text, base_url = contract.path.read_bytes(), services.config.base_url
    return {"/v1/openapi.yaml": _document(yaml_text, "application/yaml"),
            "/v1/openapi.json": _document(orjson.dumps(contract.document), "application/json"),
            METADATA: _document(orjson.dumps(_client_metadata(services)), "application/json"),
            SERVER_METADATA: _document(orjson.dumps(server_metadata(base_url, contract.scopes)), "application/json"),
            RESOURCE_METADATA: _document(orjson.dumps(resource_metadata(base_url, contract.scopes)), "application/json"),
            **{path: _document(file.read_bytes(), media_type, docs.HEADERS) for path, (file, media_type) in docs.FILES.items()},
            "/ready": _readiness(services.objects)}


def _client_metadata(services):
    """Of the one network whose servers learn from ourselves who we are."""
    try:
        found = [services.platforms[name].client_metadata(callback_url(services)) for name in services.platforms.names]
    except PlatformError as error:
        raise ConfigError(error.message) from None
    return next(filter(None, found))


def _document(content, media_type, more=None):
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "public, max-age=300", **(more or {})}

    async def view(request):
        if unchanged(", ".join(request.headers.getlist("if-none-match")), etag):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return view


def _readiness(objects):
    readiness = Readiness(objects)

    async def view(request):
        checks = await to_thread.run_sync(readiness)
        return Response(orjson.dumps({"ready": all(checks.values()), "checks": checks}), 200 if all(checks.values()) else 503,
                        media_type="application/json")

    return view
