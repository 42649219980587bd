"""Captions with AI."""

from handlers.errors import ExternalServiceError, ExternalTimeout
from handlers.responses import ok
from platforms.captions import ModelFailed, ModelTooSlow, sandbox_caption


def generate_caption(caller, services, body):
    """POST /v1/generate: from the configured model; test keys get a deterministic caption from the sandbox."""
    wish = {"topic": body["topic"], "tone": body.get("tone", "neutral"), "language": body.get("language", "en"),
            "platform": services.platforms[body["platform"]] if "platform" in body else None}
    if caller.mode == "test":
        return ok(_caption(sandbox_caption(**wish)), meta={"sandbox": True})
    try:
        with services.asks.turn():
            caption = services.captions.write(**wish)
    except ModelTooSlow as error:
        raise ExternalTimeout(str(error)) from None
    except ModelFailed as error:
        raise ExternalServiceError(str(error)) from None
    return ok(_caption(caption), meta={"estimated": True} if caption.estimated else None)


def _caption(caption):
    return {"text": caption.text, "tokensUsed": caption.tokens_used}
