"""The answers of Bluesky's servers to what goes wrong, as the reference PDS 0.5.35 gave them."""

REPO, SERVER = "com.atproto.repo.", "com.atproto.server."
ERROR_ROWS = {  # name: (method, status, error, message, headers)
    "expired_token": (REPO + "putRecord", 400, "ExpiredToken", "Token has expired"),
    "revoked": (SERVER + "refreshSession", 400, "ExpiredToken", "Token has been revoked"),
    "invalid_token": (REPO + "putRecord", 400, "InvalidToken", "Token could not be verified"),
    "auth_missing": (REPO + "putRecord", 401, "AuthMissing", "Authentication Required"),
    "wrong_password": (SERVER + "createSession", 401, "AuthenticationRequired", "Invalid identifier or password"),
    "deactivated": (REPO + "putRecord", 401, "AccountDeactivated", "Account is deactivated"),
    "taken_down": (REPO + "putRecord", 401, "AccountTakedown", "Account has been taken down"),
    "invalid_oauth_token": (REPO + "putRecord", 401, "invalid_token", "Invalid token",
                            {"WWW-Authenticate": 'DPoP error="invalid_token"'}),
    "dpop_nonce": (REPO + "putRecord", 401, "use_dpop_nonce", "Resource server requires nonce in DPoP proof",
                   {"WWW-Authenticate": 'DPoP error="use_dpop_nonce"', "DPoP-Nonce": "nonce-1"}),
    "scope_missing": (REPO + "putRecord", 403, "ScopeMissingError",
                      'Missing required scope "repo:app.bsky.feed.post?action=update"'),
    "account_not_found": (REPO + "putRecord", 403, "AccountNotFound", "Account not found"),
    "invalid_record": (REPO + "putRecord", 400, "InvalidRequest",
                       'Invalid app.bsky.feed.post record: Missing required key "alt" at $.record.embed.images[0]'),
    "blob_not_found": (REPO + "putRecord", 400, "BlobNotFound",
                       "Could not find blob: bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"),
    "invalid_swap": (REPO + "putRecord", 400, "InvalidSwap",
                     "Record was at bafyreid56tr5etoz446e2b6ha6jndx5hsyztpx3cmvetmz7yv4wzlhch6y"),
    "payload_too_large": (REPO + "uploadBlob", 413, "PayloadTooLarge", "request entity too large"),
    "rate_limited": (REPO + "putRecord", 429, "RateLimitExceeded", "Rate Limit Exceeded", {
        "RateLimit-Limit": "5000", "RateLimit-Remaining": "0", "RateLimit-Reset": "4102444800",
        "RateLimit-Policy": "5000;w=3600"}),
    "server_error": (REPO + "putRecord", 500, "InternalServerError", "Internal Server Error"),
    "upstream_failure": (REPO + "putRecord", 502, "UpstreamFailure", "Upstream service unreachable"),
}
ERRORS = {
    name: {"endpoint": method, "status": status, "body": {"error": error, "message": message}, "headers": dict(*headers)}
    for name, (method, status, error, message, *headers) in ERROR_ROWS.items()
} | {
    "unavailable": {"endpoint": REPO + "putRecord", "status": 503, "body": "<html>503 Service Unavailable</html>"},
    "gateway_timeout": {"endpoint": REPO + "putRecord", "status": 504, "body": "<html>504 Gateway Time-out</html>"},
    "video_failed": {"endpoint": "app.bsky.video.getJobStatus", "status": 200, "body": {"jobStatus": {
        "jobId": "j", "did": "did:plc:j", "state": "JOB_STATE_FAILED", "error": "video processing error",
        "failureCode": "encoding_failure", "message": "Failed to process video"}}},
}
