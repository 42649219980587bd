"""The v1 document, `openapi.yaml`: the source of truth that the service is built from."""
