"""The endpoints of YouTube, and the rows of its error tables. https://developers.google.com/youtube/v3/docs/errors"""

from tests.standins.google import SCOPE_MISSING, UNAUTHENTICATED, error_body, error_info

INSERT, SESSION, UPDATE = "POST /upload/youtube/v3/videos", "PUT /upload/youtube/v3/videos", "PUT /youtube/v3/videos"
LIST, THUMBNAIL = "GET /youtube/v3/videos", "POST /upload/youtube/v3/thumbnails/set"
COMMENTS, READ_COMMENTS = "POST /youtube/v3/commentThreads", "GET /youtube/v3/commentThreads"
ADD, READ_ITEMS = "POST /youtube/v3/playlistItems", "GET /youtube/v3/playlistItems"


def _row(endpoint, status, reason, message, domain="youtube.common", **more):
    return {"endpoint": endpoint, "status": status, "body": error_body(status, message, reason, domain), **more}


ERRORS = {
    "unauthenticated": {"endpoint": UPDATE, **UNAUTHENTICATED},
    "scope_missing": {"endpoint": UPDATE, **SCOPE_MISSING},
    "signup_required": _row("GET /youtube/v3/channels", 401, "youtubeSignupRequired", "Unauthorized", "youtube.header"),
    "forbidden": _row(UPDATE, 403, "forbidden", "Access forbidden."),
    "channel_closed": _row(UPDATE, 403, "channelClosed", "The channel is closed."),
    "channel_suspended": _row(UPDATE, 403, "channelSuspended", "The channel is suspended."),
    "user_suspended": _row(UPDATE, 403, "authenticatedUserAccountSuspended", "The account is suspended."),
    "api_off": {"endpoint": UPDATE, "status": 403, "body": error_body(
        403, "YouTube Data API v3 has not been used in project 1 or it is disabled.", "accessNotConfigured", "usageLimits",
        error_info("SERVICE_DISABLED", service="youtube.googleapis.com"))},
    "quota": _row(UPDATE, 403, "quotaExceeded", 'The request cannot be completed because you have exceeded your '
                  '<a href="/youtube/v3/getting-started#quota">quota</a>.', "youtube.quota"),
    "daily_limit": _row(UPDATE, 403, "dailyLimitExceeded", "Daily Limit Exceeded", "usageLimits"),
    "rate": _row(UPDATE, 403, "rateLimitExceeded", "Rate Limit Exceeded", "usageLimits"),
    "user_rate": _row(UPDATE, 403, "userRateLimitExceeded", "User Rate Limit Exceeded", "usageLimits"),
    "too_many": _row(UPDATE, 429, "rateLimitExceeded", "Resource has been exhausted", headers={"Retry-After": "7"}),
    "upload_limit": _row(INSERT, 400, "uploadLimitExceeded", "The user has exceeded the number of videos they may upload.",
                         "youtube.video"),
    **{reason: _row(INSERT, 400, reason, "The request metadata is invalid.", "youtube.video") for reason in (
        "invalidTitle", "invalidDescription", "invalidTags", "invalidCategoryId", "invalidPublishAt", "invalidVideoMetadata",
        "invalidFilename", "invalidRecordingDetails", "defaultLanguageNotSet", "mediaBodyRequired")},
    "forbiddenPrivacySetting": _row(UPDATE, 403, "forbiddenPrivacySetting", "The privacy setting is not allowed.",
                                    "youtube.video"),
    "forbiddenLicenseSetting": _row(INSERT, 403, "forbiddenLicenseSetting", "The licence is not allowed.", "youtube.video"),
    "video_not_found": _row(UPDATE, 404, "videoNotFound", "The video cannot be found.", "youtube.video"),
    "invalid_image": _row(THUMBNAIL, 400, "invalidImage", "The provided image content is invalid.", "youtube.thumbnail"),
    "thumbnail_forbidden": _row(THUMBNAIL, 403, "forbidden", "The thumbnail can't be set for the specified video.",
                                "youtube.thumbnail"),
    "thumbnail_rate": _row(THUMBNAIL, 429, "uploadRateLimitExceeded", "The channel has uploaded too many thumbnails recently.",
                           "youtube.thumbnail"),
    "thumbnail_gone": _row(THUMBNAIL, 404, "videoNotFound", "The video cannot be found.", "youtube.thumbnail"),
    "thumbnail_empty": _row(THUMBNAIL, 400, "mediaBodyRequired", "The request has no image.", "youtube.thumbnail"),
    "playlist_full": _row(ADD, 403, "playlistContainsMaximumNumberOfVideos", "Playlist contains maximum number of items.",
                          "youtube.playlistItem"),
    "playlist_forbidden": _row(ADD, 403, "playlistItemsNotAccessible", "Forbidden", "youtube.playlistItem"),
    "playlist_not_found": _row(ADD, 404, "playlistNotFound", "The playlist cannot be found.", "youtube.playlistItem"),
    "sorted_by_hand": _row(ADD, 400, "manualSortRequired", "Manual sort is required.", "youtube.playlistItem"),
    "no_such_position": _row(ADD, 400, "invalidPlaylistItemPosition", "The position is invalid.", "youtube.playlistItem"),
    "nothing_to_add": _row(ADD, 404, "videoNotFound", "Video not found.", "youtube.playlistItem"),
    "comment_empty": _row(COMMENTS, 400, "commentTextRequired", "The comment text is required.", "youtube.commentThread"),
    "comment_on_nothing": _row(COMMENTS, 404, "videoNotFound", "The video cannot be found.", "youtube.commentThread"),
    "comments_disabled": _row(COMMENTS, 403, "commentsDisabled", "The video has disabled comments.", "youtube.commentThread"),
    "comment_forbidden": _row(COMMENTS, 403, "forbidden", "The comment thread cannot be created.", "youtube.commentThread"),
    "comment_ineligible": _row(COMMENTS, 403, "ineligibleAccount", "The account is not eligible.", "youtube.commentThread"),
    "comment_too_long": _row(COMMENTS, 400, "commentTextTooLong", "The comment text is too long.", "youtube.commentThread"),
    "comment_failure": _row(COMMENTS, 400, "processingFailure", "The API server failed to process the request.",
                            "youtube.commentThread"),
    "backend": _row(UPDATE, 503, "backendError", "Backend Error", "global"),
    "internal": _row(UPDATE, 500, "internalError", "Internal error encountered.", "global"),
    "bad_gateway": {"endpoint": UPDATE, "status": 502, "body": "<html>502. That's an error.</html>"},
    "gateway_timeout": {"endpoint": UPDATE, "status": 504, "body": "<html>504. That's an error.</html>"},
    "session_gone": {"endpoint": SESSION, "status": 404, "body": "Not Found"},
    "session_expired": {"endpoint": SESSION, "status": 410, "body": "Gone"},
}
