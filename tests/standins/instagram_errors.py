"""The errors of Instagram: https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/error-codes"""

from tests.standins.meta import ROOT, body

CREATE, PUBLISH = f"POST {ROOT}/:user/media", f"POST {ROOT}/:user/media_publish"

ERRORS = {
    name: {"endpoint": PUBLISH, "status": status, "body": body(code, message, **more)}
    for name, (status, code, message, more) in {
        "expired": (400, 190, "Error validating access token: Session has expired.", {"subcode": 463}),
        "checkpoint": (400, 190, "Error validating access token: checkpoint.", {"subcode": 459}),
        "password_changed": (401, 190, "Error validating access token: password changed.", {"subcode": 460}),
        "unconfirmed": (400, 190, "Error validating access token: the user is not confirmed.", {"subcode": 464}),
        "logged_out": (400, 190, "Error validating access token: logged out.", {"subcode": 467}),
        "no_role": (400, 190, "Error validating access token: no role on the Page.", {"subcode": 492}),
        "removed": (400, 190, "Error validating access token: app removed.", {"subcode": 458}),
        "session": (400, 102, "Session key invalid", {}),
        "permission": (403, 200, "(#200) Permissions error", {}),
        "ability": (400, 10, "(#10) Application does not have permission for this action", {}),
        "scope": (403, 283, "(#283) Requires instagram_content_publish permission", {}),
        "capability": (400, 3, "(#3) No capability", {}),
        "app_limit": (400, 4, "(#4) Application request limit reached", {}),
        "user_limit": (400, 17, "(#17) User request limit reached", {}),
        "page_limit": (400, 32, "(#32) Page request limit reached", {}),
        "call_limit": (400, 613, "(#613) Rate limit", {}),
        "account_limit": (400, 80002, "(#80002) There have been too many calls to this Instagram account.", {}),
        "quota": (400, 9, "Application request limit reached", {"subcode": 2207042}),
        "spam": (400, 4, "Application request limit reached", {"subcode": 2207051}),
        "restricted": (400, 25, "The account is restricted", {"subcode": 2207050}),
        "not_ready": (400, 9007, "Media ID is not available", {"subcode": 2207027}),
        "not_found": (400, 24, "The requested resource does not exist", {"subcode": 2207008}),
        "media_expired": (400, -2, "The media has expired", {"subcode": 2207020}),
        "no_media": (400, 24, "The requested resource does not exist", {"subcode": 2207006}),
        "server": (400, -1, "Fatal", {"subcode": 2207001}),
        "unknown": (500, 1, "An unknown error occurred", {"transient": True}),
        "unknown_as_400": (400, 1, "An unknown error occurred", {}),
        "service": (503, 2, "Service temporarily unavailable", {"transient": True}),
        "bad_offset": (400, 1, "Thumbnail offset", {"subcode": 2207057}),
        "too_large": (400, 36000, "The image is too large", {"subcode": 2207004}),
        "bad_format": (400, 36001, "The image format is not supported", {"subcode": 2207005}),
        "bad_ratio": (400, 36003, "The aspect ratio is wrong", {"subcode": 2207009, "user_message": "Use 4:5 to 1.91:1"}),
        "bad_video": (400, 352, "The video format is not supported", {"subcode": 2207026}),
        "long_caption": (400, 36004, "The caption was too long", {"subcode": 2207010}),
        "many_mentions": (400, 100, "Too many mentions", {"subcode": 2207040}),
        "bad_type": (400, 100, "Unknown media type", {"subcode": 2207023}),
        "bad_count": (400, 100, "The carousel takes 2 to 10 files", {"subcode": 2207028}),
        "bad_location": (400, 100, "INSTAGRAM_PLATFORM_API__INVALID_LOCATION_ID", {}),
        "bad_product": (400, 100, "The product cannot be tagged", {"subcode": 2207037}),
        "processing": (400, -1, "Media processing failed", {"subcode": 2207076}),
        "download": (400, -1, "Media download failed", {"subcode": 2207077}),
        "no_trial_reels": (400, 100, "The account is not eligible for trial reels", {"subcode": 2207081}),
        "bad_gateway": (502, 2, "Bad gateway", {}),
    }.items()
} | {
    name: {"endpoint": CREATE, "status": 400, "body": body(code, message, subcode=subcode)}
    for name, (code, message, subcode) in {
        "fetch_timeout": (-2, "Takes too long to download the media", 2207003),
        "creation_failed": (-1, "Create media fail, please try to re-create media", 2207032),
        "upload_failed": (-1, "Unknown upload error", 2207053),
        "lost_upload": (-1, "Upload hiccup", 2207082),
        "lost_media": (-1, "Media hiccup", 2207085),
        "media_gone": (-2, "The media has expired", 2207020),
        "fetch_failed": (9004, "Only photo or video can be accepted as media type.", 2207052),
    }.items()
}
