"""What an instance of Mastodon takes: its limits, how it reads parameters, and what its validators say, in its own words."""

import re
from datetime import UTC, datetime

import regex

from tests.standins.server import Answer, sniff

MAX_CHARACTERS, MAX_MEDIA, URL_CHARACTERS = 500, 4, 23
DESCRIPTION_CHARACTERS = 1500
MIN_EXPIRATION, MAX_EXPIRATION, MAX_OPTIONS, OPTION_CHARACTERS = 300, 2629746, 4, 50  # seconds, seconds
IMAGE_BYTES, VIDEO_BYTES, PROXY_BYTES = 16777216, 103809024, 104857600
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/heic", "image/heif", "image/webp", "image/avif")
VIDEO_TYPES = ("video/webm", "video/mp4", "video/quicktime", "video/ogg")
AUDIO_TYPES = ("audio/wav", "audio/ogg", "audio/mpeg", "audio/mp3", "audio/webm", "audio/flac", "audio/aac", "audio/mp4")
VISIBILITIES = ("public", "unlisted", "private", "direct")
QUOTE_POLICIES = ("public", "followers", "nobody")
STATUS_PARAMETERS = {"status", "media_ids", "poll", "in_reply_to_id", "sensitive", "spoiler_text", "visibility", "language",
                     "scheduled_at", "quoted_status_id", "quote_approval_policy"}
LANGUAGES = set(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no "
    "nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sn so sq sr ss st su sv sw ta te tg "
    "th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu".split()
)
ACCOUNT_STATES = {
    "disabled": "Your login is currently disabled",
    "unconfirmed": "Your login is missing a confirmed e-mail address",
    "pending": "Your login is currently pending approval",
}
POST, UPLOAD, READ_MEDIA = "POST /api/v1/statuses", "POST /api/v2/media", "GET /api/v1/media/:id"
ERRORS = {
    name: {"endpoint": endpoint, "status": status, "body": {"error": text}}
    for name, (endpoint, status, text) in {
        "invalid_token": (POST, 401, "The access token is invalid"),
        "revoked_token": (POST, 401, "The access token was revoked"),
        "expired_token": (POST, 401, "The access token expired"),
        "scope_missing": (POST, 403, "This action is outside the authorized scopes"),
        "disabled": (POST, 403, ACCOUNT_STATES["disabled"]),
        "unconfirmed": (POST, 403, ACCOUNT_STATES["unconfirmed"]),
        "pending": (POST, 403, ACCOUNT_STATES["pending"]),
        "not_allowed": (POST, 403, "This action is not allowed"),
        "reply_not_found": (POST, 404, "The post you are trying to reply to does not appear to exist."),
        "media_gone": (POST, 422, "Media 22 not found or already attached to another post"),
        "media_not_ready": (POST, 422, "Cannot attach files that have not finished processing. Try again in a moment!"),
        "too_long": (POST, 422, "Validation failed: Text character limit of 500 exceeded"),
        "app_token": (POST, 422, "This method requires an authenticated user"),
        "bad_file": (UPLOAD, 422, "Validation failed: File content type is invalid"),
        "processing_failed": (READ_MEDIA, 422, "Error processing thumbnail for uploaded media"),
        "media_error": (UPLOAD, 500, "Error processing thumbnail for uploaded media"),
        "busy": (POST, 503, "There was a temporary problem serving your request, please try again"),
    }.items()
} | {
    "too_large": {"endpoint": UPLOAD, "status": 413, "body": "<html><h1>413 Request Entity Too Large</h1></html>"},
    "rate_limited": {"endpoint": POST, "status": 429, "body": {"error": "Too many requests"}, "headers": {
        "X-RateLimit-Limit": "300", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2099-01-01T00:00:00.123456Z"}},
    "bad_gateway": {"endpoint": POST, "status": 502, "body": "<html>502 Bad Gateway</html>"},
    "gateway_timeout": {"endpoint": POST, "status": 504, "body": "<html>504 Gateway Time-out</html>"},
    "gone": {"endpoint": "*", "status": 410, "body": ""},
}
URL = re.compile(r"https?://[^\s/?#]+\.[^\s/?#]*[^\s<>\"]*[^\s<>\".,;:!?')\]]")
MENTION = re.compile(r"(?<![\w/])@(\w+(?:[\w.-]*\w)?)(?:@\w[\w.-]*\w)?")


class Refusal(Answer):
    """{"error": text}, with error_description for OAuth."""

    def __init__(self, status: int, error: str, description: str | None = None):
        super().__init__(status, {"error": error} | ({"error_description": description} if description else {}))


def invalid(*problems: str) -> Refusal:
    """The 422 of failed validations."""
    return Refusal(422, f"Validation failed: {', '.join(problems)}")


def length(text: str, spoiler: str = "") -> int:
    """Characters as the instance counts them: graphemes, a URL as 23, a mention without its domain; a warning in full."""
    text = MENTION.sub(r"@\1", URL.sub("x" * URL_CHARACTERS, text))
    return len(regex.findall(r"\X", spoiler + text))


def stamp(seconds):
    """As Mastodon writes times."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def nested(pairs):
    """Rails names: a, a[], a[b], a[b][]."""
    tree = {}
    for name, value in pairs:
        first, *inner = re.findall(r"[^\[\]]+|\[\]", name)
        place = tree
        for key, following in zip([first, *inner], inner):
            place = place.setdefault(key, [] if following == "[]" else {})
        if inner and inner[-1] == "[]":
            place.append(value)
        else:
            place[([first, *inner])[-1]] = value
    return tree


def scalar(given, name):
    """A permitted scalar as text; objects and lists are dropped, as strong parameters do."""
    value = given.get(name)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def truth(value):
    """Whether Rails takes a parameter for true."""
    return value not in (None, "", False, 0, "0", "f", "F", "false", "FALSE", "off", "OFF")


def integer(value):
    """Ruby's to_i."""
    found = re.match(r"\s*(-?\d+)", str(value))
    return int(found[1]) if found else 0


def known_language(code):
    """The language of a code as the instance knows it, None for one that it does not."""
    return next((tag for tag in (code, re.split("[_-]", code)[0]) if tag in LANGUAGES), None)


def scheduled_time(given, now):
    """The moment of `scheduled_at` in epoch seconds; None where it is absent or over."""
    text = scalar(given, "scheduled_at")
    try:
        due = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise Refusal(422, "Record invalid") from None
    seconds = due and (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds and seconds > now else None


def poll_options(poll):
    """The options of a poll as they are kept."""
    options = poll.get("options")
    return [str(option).strip() for option in options if str(option).strip()] if isinstance(options, list) else []


def poll_problems(poll):
    """What the validator says of a poll."""
    options, seconds = poll_options(poll), integer(poll.get("expires_in")) if scalar(poll, "expires_in") else None
    rules = {
        "options can't be blank": not options,
        "options must have more than one item": len(options) < 2,
        f"options can't contain more than {MAX_OPTIONS} items": len(options) > MAX_OPTIONS,
        f"options cannot be longer than {OPTION_CHARACTERS} characters each":
            any(len(regex.findall(r"\X", option)) > OPTION_CHARACTERS for option in options),
        "options contain duplicate items": len(set(options)) < len(options),
        "expires at can't be blank": seconds is None,
        "expires at is too far into the future": seconds is None or seconds > MAX_EXPIRATION,
        "expires at is too soon": seconds is not None and seconds < MIN_EXPIRATION,
    }
    return [f"Poll {problem}" for problem, broken in rules.items() if broken]


def kind_of(file):
    """image, gifv, video or audio. Raises what the instance says to a file it does not take."""
    declared, found = file.media_type, sniff(file.data)
    if declared not in (*IMAGE_TYPES, *VIDEO_TYPES, *AUDIO_TYPES):
        raise invalid("File content type is invalid")
    if found is None:
        raise Refusal(422, "File type of uploaded media could not be verified")
    if (declared in IMAGE_TYPES) != (found in IMAGE_TYPES):
        raise invalid("File has contents that are not what they are reported to be")
    if len(file.data) >= (limit := IMAGE_BYTES if declared in IMAGE_TYPES else VIDEO_BYTES):
        raise invalid(f"File file size must be less than {limit >> 20} MB")
    if found == "image/gif" and file.data.count(b"\x21\xf9\x04") > 1:
        return "gifv"
    return "image" if declared in IMAGE_TYPES else "video" if declared in VIDEO_TYPES else "audio"
