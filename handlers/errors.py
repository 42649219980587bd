"""Everything that can go wrong with a request: one class per meaning, raised with a sentence for the caller.

The table of error codes and HTTP statuses is these class attributes and nothing else.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Detail:
    """One broken rule: a JSON pointer into the body (or a parameter's name), a stable rule name, a sentence."""

    path: str
    rule: str
    message: str

    def to_dict(self):
        return {"path": self.path, "rule": self.rule, "message": self.message}


class ApiError(Exception):
    """A refused request. `details` are Detail, `headers` go out with the answer."""

    status, code = 500, "internal_error"
    passes = False      # whether the same request may be taken later: such a refusal is not kept under an Idempotency-Key

    def __init__(self, message, *, details=(), headers=None):
        super().__init__(message)
        self.message = message
        self.details = tuple(details)
        self.headers = dict(headers or {})


class BadRequest(ApiError):
    status, code = 400, "bad_request"


class Unauthorized(ApiError):
    status, code = 401, "unauthorized"


class Forbidden(ApiError):
    status, code = 403, "forbidden"
    passes = True


class NotFound(ApiError):
    status, code = 404, "not_found"


class MethodNotAllowed(ApiError):
    status, code = 405, "bad_request"


class RequestTimeout(ApiError):
    status, code = 408, "bad_request"


class InvalidState(ApiError):
    status, code = 409, "invalid_state"


class PayloadTooLarge(ApiError):
    status, code = 413, "payload_too_large"


class UnsupportedMediaType(ApiError):
    status, code = 415, "bad_request"


class ExpectationFailed(ApiError):
    status, code = 417, "bad_request"


class Unprocessable(ApiError):
    status, code = 422, "unprocessable"

    @classmethod
    def of(cls, details):
        """All broken rules in one answer; its message is the first one's, with its place."""
        first = f"{details[0].path}: {details[0].message}" if details[0].path else details[0].message
        more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
        return cls(first + more, details=details)


class RateLimited(ApiError):
    status, code = 429, "rate_limited"
    passes = True


class HeadersTooLarge(ApiError):
    status, code = 431, "bad_request"


class ExternalServiceError(ApiError):
    status, code = 502, "external_service_error"


class ServiceUnavailable(ApiError):
    status, code = 503, "internal_error"


class ExternalTimeout(ApiError):
    status, code = 504, "external_service_error"
