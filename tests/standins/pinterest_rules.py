"""What a Pin may be, and the rows of Pinterest's error tables. Unknown fields are refused here, unlike by Pinterest itself."""

import base64
import re

from tests.standins.server import Answer, parse_json, sniff

DIGITS, LINK = r"\d+", r"https?://[^\s]+"
TEXTS = {"title": 100, "description": 800, "alt_text": 500, "link": 2048, "dominant_color": 7}      # field: longest
IDS = ("board_id", "board_section_id", "parent_pin_id", "sponsor_id")
SLIDE = {"title", "description", "link"}
# source_type: (needed fields, other fields), of the source itself.
SOURCES = {
    "image_url": ({"url"}, {"is_standard"}),
    "image_base64": ({"content_type", "data"}, {"is_standard"}),
    "multiple_image_urls": ({"items"}, {"index"}),
    "multiple_image_base64": ({"items"}, {"index"}),
    "video_id": ({"media_id"}, {"is_standard", "cover_image_url", "cover_image_data", "cover_image_content_type",
                                "cover_image_key_frame_time"}),
}
CREATE, REGISTER, STATE, STORE = "POST /v5/pins", "POST /v5/media", "GET /v5/media/:id", "POST /store/"
TOKEN = "POST /v5/oauth/token"


def _row(endpoint, status, code, message, **more):
    return {"endpoint": endpoint, "status": status, "body": {"code": code, "message": message}, **more}


def xml_of(code, message):
    """An error of the store."""
    return f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'


TRIAL = "Apps with Trial access may not create Pins in production. Please use https://api-sandbox.pinterest.com instead."
LACKING = "Authorization failed: your access token does not have sufficient permissions to perform this operation."
ERRORS = {
    "auth_failed": _row(CREATE, 401, 2, "Authentication failed."),
    "not_approved": _row(CREATE, 401, 3, "Your application consumer type is not supported, please contact support."),
    "needs_standard": _row(CREATE, 403, 3, "Your application needs Standard access."),
    "trial": _row(CREATE, 403, 29, TRIAL),
    "scope_missing": _row(CREATE, 403, 29, LACKING),
    "forbidden": _row(CREATE, 403, 7, "You are not authorized to access that resource."),
    "bad_field": _row(CREATE, 400, 1, "Invalid request: 'x' does not match '^\\\\d+$'"),
    "too_many_items": _row(CREATE, 400, 1, "constraint: maxItems=5"),
    "no_cover": _row(CREATE, 400, 1, "cover_image_url or cover_image_content_type and cover_image_data is required"),
    "unreachable": _row(CREATE, 400, 235, "Unable to reach the URL. Please check the URL and try again."),
    "unfetched": _row(CREATE, 400, 1, "Sorry, we could not fetch the image."),
    "blocked_link": _row(CREATE, 400, 234, "Sorry! We blocked this link because it may lead to spam."),
    "board_gone": _row(CREATE, 404, 40, "Board not found."),
    "rate_limited": _row(CREATE, 429, 8, "You have exceeded your rate limit. Try again later.", headers={
        "x-ratelimit-limit": '100, 100;w=60;name="org_write_app_id_user_id"', "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "41"}),
    "spam": {"endpoint": CREATE, "status": 429, "body": {
        "code": 9, "message": "Sorry, this request was blocked.", "message_detail": "It looks like spam."}},
    "server_error": _row(CREATE, 500, 0, "Something went wrong on our end."),
    "bad_gateway": {"endpoint": CREATE, "status": 502, "body": "<html>502 Bad Gateway</html>"},
    "unavailable": {"endpoint": CREATE, "status": 503, "body": "<html>503 Service Unavailable</html>"},
    "media_failed": {"endpoint": STATE, "status": 200, "body": {"media_id": "1", "media_type": "video", "status": "failed"}},
    "media_gone": _row(STATE, 404, 50, "Media not found."),
    "too_large": {"endpoint": STORE, "status": 400,
                  "body": xml_of("EntityTooLarge", "Your proposed upload exceeds the maximum")},
    "policy_expired": {"endpoint": STORE, "status": 403,
                       "body": xml_of("AccessDenied", "Invalid according to Policy: expired.")},
    "bad_signature": {"endpoint": STORE, "status": 403,
                      "body": xml_of("SignatureDoesNotMatch", "The signature does not match.")},
    "dead_grant": _row(TOKEN, 401, 283, "The authorization grant is invalid"),
    "bad_client": _row(TOKEN, 401, 2, "Authentication failed."),
}


class Refusal(Answer):
    """{"code": number, "message": text}."""

    def __init__(self, status: int, code: int, message: str):
        super().__init__(status, {"code": code, "message": message})


def invalid(message: str) -> Refusal:
    """The 400 of a body or query that the schema does not allow."""
    return Refusal(400, 1, f"Invalid request: {message}")


def json_of(request):
    """The JSON object of a request. Raises the 400 of another body."""
    try:
        given = parse_json(request.body)
    except ValueError:
        given = None
    if request.media_type != "application/json" or not isinstance(given, dict):
        raise invalid("the body is no JSON object")
    return given


def check_pin(given):
    """Raises the 400 of a Pin that the schema does not allow."""
    if unknown := given.keys() - {*TEXTS, *IDS, "media_source"}:
        raise invalid(f"unknown fields {sorted(unknown)}")
    for name in IDS:
        value = given.get(name)
        if value is not None and not (isinstance(value, str) and re.fullmatch(DIGITS, value)):
            raise invalid(f"{value!r} does not match '^\\d+$'")
    if not given.get("board_id"):
        raise invalid("board_id is required")
    _check_texts(given)
    source = given.get("media_source")
    kind = source.get("source_type") if isinstance(source, dict) else None
    if kind not in SOURCES:
        raise invalid("media_source is not valid under any of the given schemas")
    _check_keys(source, *SOURCES[kind], {"source_type"})
    _check_kind(kind, source)


def _check_kind(kind, source):
    if kind == "video_id":
        _check_cover(source)
    elif kind.startswith("multiple"):
        items, needed = source["items"], {"url"} if kind == "multiple_image_urls" else {"content_type", "data"}
        if not isinstance(items, list) or not 2 <= len(items) <= 5:
            raise invalid("constraint: maxItems=5")
        for item in items:
            _check_keys(item, needed, SLIDE)
            _check_texts(item)
            _check_image(item)
    else:
        _check_image(source)


def _check_cover(source):
    if not isinstance(source["media_id"], str) or not re.fullmatch(DIGITS, source["media_id"]):
        raise invalid(f"{source['media_id']!r} does not match '^\\d+$'")
    covers = [source.keys() & names for names in ({"cover_image_url"}, {"cover_image_key_frame_time"},
                                                  {"cover_image_data", "cover_image_content_type"})]
    if sum(map(bool, covers)) != 1:
        raise Refusal(400, 1, ERRORS["no_cover"]["body"]["message"])
    second = source.get("cover_image_key_frame_time", 0)
    if type(second) is not int or second < 0:
        raise invalid(f"{second!r} is not of type 'integer'")


def _check_image(source):
    if "url" in source:
        if not isinstance(source["url"], str):
            raise invalid("url is not of type 'string'")
    elif source["content_type"] not in ("image/jpeg", "image/png") or not re.fullmatch(r"[a-zA-Z0-9+/=]+", str(source["data"])):
        raise invalid("data does not match '^[a-zA-Z0-9+/=]+$'")
    elif sniff(base64.b64decode(source["data"])) != source["content_type"]:
        raise Refusal(400, 1, "The image is broken or of another type.")


def _check_keys(given, needed, *others):
    if not isinstance(given, dict) or not needed <= given.keys() or given.keys() - needed.union(*others):
        raise invalid(f"needs {sorted(needed)} and takes {sorted(set().union(*others))} beside")


def _check_texts(given):
    for name, most in TEXTS.items():
        value = given.get(name)
        if value is not None and not (isinstance(value, str) and len(value) <= most):
            raise invalid(f"{name}: constraint: maxLength={most}")
    if given.get("link") and not re.fullmatch(LINK, given["link"]):
        raise invalid("link is not a valid URL")
    if given.get("dominant_color") and not re.fullmatch("#[0-9A-Fa-f]{6}", given["dominant_color"]):
        raise invalid("dominant_color is no hex number")
