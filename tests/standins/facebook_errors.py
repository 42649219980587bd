"""The errors of Facebook: https://developers.facebook.com/docs/graph-api/guides/error-handling"""

from tests.standins.meta import ROOT, body
from tests.standins.meta_upload import upload_error

UPLOAD_ROOT = "/video-upload/v25.0"
FEED, UPLOAD = f"POST {ROOT}/:page/feed", f"POST {UPLOAD_ROOT}/:video"

ERRORS = {
    name: {"endpoint": FEED, "status": status, "body": body(code, message, **more)}
    for name, (status, code, message, more) in {
        "expired": (401, 190, "Error validating access token: Session has expired.", {"subcode": 463}),
        "password_changed": (400, 190, "Error validating access token: password changed.", {"subcode": 460}),
        "app_removed": (400, 190, "Error validating access token: app removed.", {"subcode": 458}),
        "checkpoint": (400, 190, "Error validating access token: checkpoint.", {"subcode": 459}),
        "unconfirmed": (400, 190, "Error validating access token: the user is not confirmed.", {"subcode": 464}),
        "logged_out": (400, 190, "Error validating access token: logged out.", {"subcode": 467}),
        "no_role": (400, 190, "Error validating access token: no role on the Page.", {"subcode": 492}),
        "session": (400, 102, "The session key is invalid", {}),
        "permission": (403, 200, "(#200) Permissions error", {}),
        "scope": (403, 283, "(#283) Requires pages_read_engagement permission to manage the object", {}),
        "ability": (400, 10, "(#10) Application does not have permission for this action", {}),
        "capability": (400, 3, "(#3) Application does not have the capability to make this API call.", {}),
        "app_limit": (400, 4, "(#4) Application request limit reached", {"transient": True}),
        "user_limit": (400, 17, "(#17) User request limit reached", {}),
        "page_limit": (400, 32, "(#32) Page request limit reached", {}),
        "feature_limit": (400, 341, "(#341) Feed action request limit reached", {}),
        "call_limit": (400, 613, "(#613) Calls to this api have exceeded the rate limit.", {}),
        "pages_limit": (400, 80001, "(#80001) There have been too many calls to this Page account.", {}),
        "too_fast": (400, 368, "You are posting too fast", {"subcode": 1390008}),
        "blocked": (403, 368, "The action attempted has been deemed abusive", {}),
        "policy": (400, 100, "Content goes against Community Standards", {"subcode": 1346003}),
        "refused": (400, 368, "The content was refused", {"subcode": 1404102}),
        "security_check": (400, 100, "Your account needs a security check", {"subcode": 1404006}),
        "limited": (400, 368, "Your account is limited", {"subcode": 1404112}),
        "duplicate": (400, 506, "(#506) Duplicate status message", {"transient": False}),
        "same_photos": (400, 100, "Photos were already posted.", {"subcode": 1366051}),
        "unknown": (500, 1, "An unknown error occurred", {"transient": True}),
        "unknown_as_400": (400, 1, "An unknown error occurred", {}),
        "service": (503, 2, "Service temporarily unavailable", {"transient": True}),
        "passing": (400, 9999, "Please retry later", {"transient": True}),
        "invalid": (400, 100, "(#100) Invalid parameter", {"user_message": "The link is not one"}),
        "missing": (400, 100, "Unsupported post request. Object does not exist", {"subcode": 33}),
        "bad_photo": (400, 324, "(#324) Missing or invalid image file", {}),
        "big_photo": (400, 100, "The photo is too big, or of a wrong format", {"subcode": 1366046}),
        "bad_file": (400, 100, "The file is invalid", {"subcode": 2069019}),
        "bad_address": (400, 100, "The URL is invalid", {"subcode": 2061006}),
        "spam_link": (400, 368, "The link goes against Community Standards", {"subcode": 1609008}),
        "bad_link": (400, 100, "(#100) Could not scrape the link", {"subcode": 1609005}),
        "authorization": (400, 200, "Page Publishing Authorization is required", {"subcode": 1404078}),
        "identity": (400, 100, "Confirm your identity", {"subcode": 4854002}),
        "no_video": (400, 100, "You cannot upload videos", {"subcode": 1363042}),
        "no_video_permission": (403, 100, "(#100) No permission to publish the video", {}),
        "bad_ratio": (400, 100, "The aspect ratio is not supported", {"subcode": 1363040}),
        "bad_resolution": (400, 100, "The resolution is not supported", {"subcode": 1363127}),
        "bad_duration": (400, 100, "The duration is not supported", {"subcode": 1363128}),
        "bad_frame_rate": (400, 100, "The frame rate is not supported", {"subcode": 1363129}),
        "tiny_video": (400, 100, "The video is too small", {"subcode": 1363022}),
        "huge_video": (400, 100, "The video is too big", {"subcode": 1363023}),
        "upload_hiccup": (400, 100, "There was a problem uploading your video file.", {"subcode": 1363019}),
        "video_hiccup": (400, 100, "Your video could not be processed right now", {"subcode": 1363047}),
        "link_hiccup": (400, 100, "The link could not be read right now", {"subcode": 1609010}),
        "upload_timeout": (400, 100, "Your video upload timed out", {"subcode": 1363030}),
        "upload_problem": (400, 6000, "There was a problem uploading your video file.", {}),
    }.items()
} | {
    "processing_failed": {"endpoint": UPLOAD, "status": 400,
                          "body": upload_error("ProcessingFailedError", "Request processing failed")},
    "partial": {"endpoint": UPLOAD, "status": 400, "body": upload_error("PartialRequestError", "Partial request")},
    "hiccup": {"endpoint": UPLOAD, "status": 400, "body": upload_error("SomethingError", "Try again", True)},
    "not_authorized": {"endpoint": UPLOAD, "status": 401, "body": upload_error("NotAuthorizedError", "Not authorized")},
    "bad_gateway": {"endpoint": FEED, "status": 502, "body": "<html>502</html>"},
}
