"""What LinkedIn takes, how it refuses, and the answers of its error table."""

import re

from tests.standins.server import route
from tests.standins.shapes import List, Text

AUTHOR = re.compile("urn:li:(person:[A-Za-z0-9_-]+|organization:[0-9]+)")
IMAGE, MEDIA = re.compile("urn:li:image:[A-Za-z0-9_-]+"), re.compile("urn:li:(image|video|document):[A-Za-z0-9_-]+")
POST = re.compile("urn:li:(share|ugcPost):[0-9]+")
ALT = Text(0, 4086)
TARGETS = {name: List(re.compile(f"urn:li:{kind}:[0-9]+"), 1) for name, kind in {
    "geoLocations": "geo", "industries": "industry", "jobFunctions": "function", "seniorities": "seniority"}.items()}
CREATE_BODY = {
    "author!": AUTHOR, "commentary!": str, "visibility!": {"PUBLIC", "CONNECTIONS", "LOGGED_IN", "CONTAINER"},
    "distribution!": {"feedDistribution!": {"MAIN_FEED", "NONE"}, "targetEntities": List(TARGETS, 0, 1),
                      "thirdPartyDistributionChannels": List(dict)},
    "lifecycleState!": {"PUBLISHED"}, "isReshareDisabledByAuthor": bool, "reshareContext": {"parent!": POST},
    "content": {"media": {"id!": MEDIA, "title": str, "altText": ALT},
                "multiImage": {"images!": List({"id!": IMAGE, "altText": ALT}, 2, 20)},
                "article": {"source!": re.compile("https?://[^ ]+"), "title!": Text(1, 399), "description": Text(0, 4085),
                            "thumbnail": IMAGE},
                "poll": {"question!": Text(1, 140), "options!": List({"text!": Text(1, 30)}, 2, 4),
                         "settings!": {"duration!": {"ONE_DAY", "THREE_DAYS", "SEVEN_DAYS", "FOURTEEN_DAYS"}}}},
}
COMMENT_BODY = {"actor!": AUTHOR, "object!": re.compile("urn:li:(activity|share|ugcPost):[0-9]+"),
                "message!": {"text!": Text(1, 1250), "attributes": List(dict)}, "parentComment": str}
CREATE, COMMENT, TOKEN = "POST /rest/posts", "POST /rest/socialActions/:urn/comments", "POST /oauth/v2/accessToken"
IMAGES, IMAGE_STATE = "POST /rest/images", "GET /rest/images/:urn"
VIDEOS, VIDEO_STATE = "POST /rest/videos", "GET /rest/videos/:urn"
PUT_IMAGE, PUT_PART = "PUT /dms-uploads/:key", "PUT /dms-uploads/:key/:part"
PUT_THUMBNAIL = "PUT /dms-uploads/:key/thumbnail/:part"
MARK = re.compile(r"@\[((?:[^\\\]]|\\.)+)\]\((urn:li:(?:person|organization):[^)]+)\)|#(?=\w)|\{hashtag\|\\#\|(\w+)\}"
                  r"|\\(.)|([|{}@\[\]()<>#*_~])", re.DOTALL)


def failure(status: int, message: str, code: str, **more) -> dict:
    """The usual body of an error."""
    return {"message": message, "status": status, "code": code, **more}


def duplicate(urn: str) -> dict:
    """The body for a post that LinkedIn has already."""
    return {"errorDetailType": "com.linkedin.common.error.BadRequest", "status": 422,
            "message": f"Content is a duplicate of {urn}: Content is a duplicate of {urn}",
            "errorDetails": {"inputErrors": [
                {"description": "Duplicate post is detected", "input": {}, "code": "DUPLICATE_POST"}]}}


ERRORS = {name: {"endpoint": endpoint, "status": status, "body": failure(status, message, code)}
          for name, (endpoint, status, code, message) in {
    "empty_token": (CREATE, 401, "EMPTY_ACCESS_TOKEN", "Empty oauth2 access token"),
    "invalid_token": (CREATE, 401, "INVALID_ACCESS_TOKEN", "Invalid access token"),
    "expired_token": (CREATE, 401, "EXPIRED_ACCESS_TOKEN", "The token used in the request has expired"),
    "revoked_token": (CREATE, 401, "REVOKED_ACCESS_TOKEN", "The token has been revoked"),
    "access_denied": (CREATE, 403, "ACCESS_DENIED", "Not enough permissions to access: partnerApiPostsExternal.CREATE"),
    "image_forbidden": (IMAGE_STATE, 403, "ACCESS_DENIED", "Accessing this image resource is forbidden"),
    "missing_field": (CREATE, 400, "MISSING_FIELD", "/author is required"),
    "invalid_value": (CREATE, 400, "INVALID_VALUE_FOR_FIELD", "/visibility is not valid"),
    "too_long": (CREATE, 400, "FIELD_LENGTH_TOO_LONG", "/commentary is too long"),
    "blank": (CREATE, 400, "INVALID_VALUE_BLANK_FIELD", "/commentary is blank"),
    "urn_type": (CREATE, 400, "INVALID_URN_TYPE", "/author has the wrong type"),
    "urn_id": (CREATE, 400, "INVALID_URN_ID", "/author has the wrong id"),
    "unprocessable": (CREATE, 422, "UNPROCESSABLE_ENTITY", "The post cannot be processed"),
    "waiting_upload": (CREATE, 400, "MEDIA_ASSET_WAITING_UPLOAD", "The media asset is waiting for its upload"),
    "processing_failed": (CREATE, 400, "MEDIA_ASSET_PROCESSING_FAILED", "The media asset could not be processed"),
    "invalid_image": (CREATE, 400, "INVALID_IMAGE_ID", "The image id is not valid"),
    "not_found": (CREATE, 404, "NOT_FOUND", "Could not find entity"),
    "conflict": (CREATE, 409, "CONFLICT", "409 Conflict"),
    "version_ended": (CREATE, 426, "NONEXISTENT_VERSION", "Requested version 20250901 is not active"),
    "version_missing": (CREATE, 400, "VERSION_MISSING", "A version must be present"),
    "day_quota": (CREATE, 429, "TOO_MANY_REQUESTS",
                  "Resource level throttle MEMBER DAY limit for calls to this resource is reached."),
    "comment_throttled": (COMMENT, 429, "TOO_MANY_REQUESTS", "Comment create throttled"),
    "comment_too_early": (COMMENT, 404, "NOT_FOUND", "The post does not exist"),
    "no_activity": (CREATE, 500, "INTERNAL_SERVER_ERROR", "Unable to obtain activity"),
    "unavailable": (CREATE, 503, "SERVICE_UNAVAILABLE", "Service Unavailable"),
    "too_large": (PUT_IMAGE, 413, "TOO_LARGE", "The file is too large"),
    "unsupported_type": (PUT_IMAGE, 415, "UNSUPPORTED_MEDIA_TYPE", "The file is not supported"),
    "expired_url": (PUT_PART, 400, "EXPIRED_UPLOAD_URL", "The upload URL has expired"),
}.items()} | {
    "bad_gateway": {"endpoint": CREATE, "status": 502, "body": "<html>Bad Gateway</html>"},
    "gateway_timeout": {"endpoint": CREATE, "status": 504, "body": ""},
    "empty_forbidden": {"endpoint": IMAGES, "status": 403, "body": {"message": "", "status": 403}},
    "duplicate": {"endpoint": CREATE, "status": 422, "body": duplicate("urn:li:share:7141138937766391808")},
    "refresh_dead": {"endpoint": TOKEN, "status": 400, "body": {
        "error": "invalid_request",
        "error_description": "The provided authorization grant or refresh token is invalid, expired or revoked."}},
    "client_wrong": {"endpoint": TOKEN, "status": 401, "body": {
        "error": "invalid_client", "error_description": "Client authentication failed"}},
}


def rest(method: str, path: str, *scopes: str):
    """Mark a handler(self, request, token) of a versioned call, which needs one of the scopes."""
    return route(method, path, scopes=set(scopes), versioned=True)


def visible(text: str) -> str:
    """What people see of little text: it ends before the first reserved sign that is neither escaped nor part of a mark."""
    shown, end = "", 0
    for found in MARK.finditer(text):
        shown += text[end:found.start()]
        name, _, word, sign, reserved = found.groups()
        if reserved:
            return shown
        shown += visible(name) if name else f"#{word}" if word else sign or "#"
        end = found.end()
    return shown + text[end:]
