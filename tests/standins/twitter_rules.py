"""What X takes, how it refuses, and the answers of its error table; error texts as people saw them."""

from tests.standins.server import Answer, parse_json, route
from tests.standins.shapes import wrongs

CREATE, APPEND, FINALIZE = "POST /2/tweets", "POST /2/media/upload/:id/append", "POST /2/media/upload/:id/finalize"
METADATA_CALL, STATUS, TOKEN = "POST /2/media/metadata", "GET /2/media/upload", "POST /2/oauth2/token"
DUPLICATE = "You are not allowed to create a Tweet with duplicate content."
NOT_PERMITTED = "You are not permitted to perform this action."
NOT_ENGAGED = "You can only reply to or quote posts where you are mentioned or are the author."


def problem(status: int, title: str, detail: str, kind: str = "about:blank") -> dict:
    """A problem: `kind` is the end of its type."""
    kind = kind if kind == "about:blank" else f"https://api.x.com/2/problems/{kind}"
    return {"title": title, "detail": detail, "type": kind, "status": status}


def invalid(message: str, parameters: dict | None = None) -> dict:
    """What X says to parameters that it does not take."""
    return {"errors": [{"message": message, "parameters": parameters or {}}], "title": "Invalid Request",
            "detail": "One or more parameters to your request was invalid.",
            "type": "https://api.x.com/2/problems/invalid-request"}


def _forbidden(detail, kind="about:blank"):
    return CREATE, 403, problem(403, "Forbidden", detail, kind)


ERRORS = {name: {"endpoint": endpoint, "status": status, "body": body} for name, (endpoint, status, body) in {
    "unauthorized": (CREATE, 401, problem(401, "Unauthorized", "Unauthorized")),
    "app_only": _forbidden("Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint.",
                           "unsupported-authentication"),
    "oauth1_permissions": _forbidden("Your client app is not configured with the appropriate oauth1 app permissions for this "
                                     "endpoint.", "oauth1-permissions"),
    "client_forbidden": _forbidden("This client is forbidden.", "client-forbidden"),
    "not_enrolled": _forbidden("The app must be attached to a project.", "client-not-enrolled"),
    "scope_missing": _forbidden("Forbidden"),
    "duplicate": _forbidden(DUPLICATE),
    "not_permitted": _forbidden(NOT_PERMITTED),
    "not_engaged": _forbidden(NOT_ENGAGED, "not-authorized-for-resource"),
    "not_in_conversation": _forbidden("Reply to this conversation is not allowed because you have not been mentioned or "
                                      "otherwise engaged by the author."),
    "cashtags": _forbidden("Posts may have a maximum of one cashtag."),
    "invalid_url": _forbidden("The Post contains an invalid URL."),
    "video_too_long": _forbidden("You are not allowed to post a video longer than 2 minutes."),
    "credits": (CREATE, 402, problem(402, "CreditsDepleted", "Your enrolled account [7] does not have any credits to fulfill "
                                                             "this request.", "credits")),
    "payment": (CREATE, 402, problem(402, "Payment Required", "credits depleted", "credits-depleted")),
    "media_invalid": (CREATE, 400, invalid("Your media IDs are invalid.", {"media.media_ids": ["1"]})),
    "media_invalid_short": (CREATE, 400, problem(400, "Invalid Request", "Your media IDs are invalid.")),
    "invalid": (CREATE, 400, invalid("[nope] is not a valid parameter", {"nope": ["1"]})),
    "too_large": (APPEND, 413, ""), "head_too_large": (APPEND, 431, ""),
    "unknown_media": (STATUS, 404, problem(404, "Not Found Error", "Could not find media with media_id: [1].",
                                           "resource-not-found")),
    "legacy": (CREATE, 429, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}),
    "usage_capped": (CREATE, 429, problem(429, "UsageCapExceeded", "Usage cap exceeded: Monthly product cap", "usage-capped")),
    "server_error": (CREATE, 500, problem(500, "Internal Server Error", "Something is broken.")),
    "bad_gateway": (CREATE, 502, "<html>502 Bad Gateway</html>"),
    "over_capacity": (CREATE, 503, {"errors": [{"code": 130, "message": "Over capacity"}]}),
    "gateway_timeout": (CREATE, 504, ""),
    "refresh_dead": (TOKEN, 400, {"error": "invalid_request",
                                  "error_description": "Value passed for the token was invalid."}),
    "refresh_gone": (TOKEN, 400, {"error": "invalid_grant", "error_description": "The token is gone."}),
    "client_wrong": (TOKEN, 401, {"error": "unauthorized_client", "error_description": "Missing valid authorization header"}),
}.items()} | {"rate_limited": {
    "endpoint": CREATE, "status": 429, "body": problem(429, "Too Many Requests", "Too Many Requests"),
    "headers": {"x-rate-limit-limit": "100", "x-rate-limit-remaining": "0", "x-rate-limit-reset": "4070908800"}}}


def api(method: str, path: str, *scopes: str):
    """Mark a handler(self, request, user) of the API, which needs a user's token with all of these scopes."""
    return route(method, path, scopes=set(scopes))


def body(request, shape):
    """The JSON of a request, which has to be of `shape`."""
    try:
        given = parse_json(request.body) if request.media_type == "application/json" else None
    except ValueError:
        given = None
    if found := wrongs(given, shape):
        raise Answer(400, invalid(f"{found} is not valid", {name: [] for name in found}))
    return given
