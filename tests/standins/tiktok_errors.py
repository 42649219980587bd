"""The endpoints of TikTok, and the rows of its error tables. https://developers.tiktok.com/doc/tiktok-api-v2-error-handling"""

CREATOR, VIDEO, PHOTO, INBOX = (f"POST /v2/post/publish/{name}/" for name in (
    "creator_info/query", "video/init", "content/init", "inbox/video/init"))
STATUS, USER = "POST /v2/post/publish/status/fetch/", "GET /v2/user/info/"
UPLOAD, TOKEN = "PUT /video/", "POST /v2/oauth/token/"


def body_of(code, message="", data=None):
    """The body of every answer of the data API."""
    return {"data": data or {}, "error": {"code": code, "message": message, "log_id": "20261121100000AB12"}}


def oauth_error(error, description):
    """The body of a refusal of the token endpoint."""
    return {"error": error, "error_description": description, "log_id": "20261121100000AB12"}


ERRORS = {
    code: {"endpoint": PHOTO, "status": status, "body": body_of(code, f"{code}, says TikTok")}
    for code, status in {
        "access_token_invalid": 401, "scope_not_authorized": 401, "scope_permission_missed": 400, "rate_limit_exceeded": 429,
        "spam_risk_too_many_posts": 403, "spam_risk_too_many_pending_share": 403, "reached_active_user_cap": 403,
        "spam_risk_user_banned_from_posting": 403, "unaudited_client_can_only_post_to_private_accounts": 403,
        "privacy_level_option_mismatch": 403, "url_ownership_unverified": 403, "invalid_param": 400, "invalid_params": 400,
        "app_version_check_failed": 400, "invalid_publish_id": 400, "token_not_authorized_for_specified_publish_id": 400,
        "internal_error": 500,
    }.items()
} | {
    "busy_inside": {"endpoint": PHOTO, "status": 200, "body": body_of("internal_error", "try later")},
    "bad_gateway": {"endpoint": PHOTO, "status": 502, "body": "<html>502 Bad Gateway</html>"},
    "dead_grant": {"endpoint": TOKEN, "status": 400,
                   "body": oauth_error("invalid_grant", "Refresh token is invalid or expired.")},
    "dead_grant_ok": {"endpoint": TOKEN, "status": 200, "body": oauth_error("invalid_grant", "Refresh token is expired.")},
    "bad_client": {"endpoint": TOKEN, "status": 401,
                   "body": oauth_error("invalid_client", "Client key or secret is incorrect.")},
    "bad_request": {"endpoint": TOKEN, "status": 400, "body": oauth_error("invalid_request", "The request is malformed.")},
}
