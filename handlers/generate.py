"""Captions with AI."""

import logging
from contextlib import contextmanager

from handlers.errors import ExternalServiceError, ExternalTimeout, Forbidden, RateLimited
from handlers.responses import ok
from platforms.captions import sandbox_caption
from platforms.chat import ModelFailed, ModelTooSlow
from storage import budgets
from storage.models import wire_time

HELD_ON = 60    # seconds after the model's own time in which what it cost is surely settled

log = logging.getLogger("posthorn.captions")


def generate_caption(caller, services, body, presence):
    """POST /v1/generate: from the configured model; test keys get a deterministic caption from the sandbox."""
    wish = {"topic": body["topic"], "tone": body.get("tone", "neutral"), "language": body.get("language", "en"),
            "platform": services.platforms[body["platform"]] if "platform" in body else None}
    if caller.mode == "test":
        return ok(_caption(sandbox_caption(**wish)), meta={"sandbox": True})
    with _budget(caller, services, wish) as spent:
        try:
            with services.asks.turn(caller.team_id):
                caption = services.captions.write(**wish, presence=presence)
        except ModelFailed as error:
            spent(error.tokens_used)
            log.warning("no caption: %s", error)
            raise (ExternalTimeout if isinstance(error, ModelTooSlow) else ExternalServiceError)(str(error)) from None
        spent(caption.tokens_used)
    return ok(_caption(caption), meta={"estimated": True} if caption.estimated else None)


def _caption(caption):
    return {"text": caption.text, "tokensUsed": caption.tokens_used}


@contextmanager
def _budget(caller, services, wish):
    """Holds the expected tokens back from the team's day; gives the function that is told what was really spent.

    Raises Forbidden when the day's budget is used up.
    """
    limit, used = services.config.caption_daily_tokens, [0]
    if limit is None:
        yield used.append
        return
    try:
        held = budgets.hold(caller.team_id, limit=limit, tokens=services.captions.expected_tokens(**wish),
                            seconds=services.config.caption_timeout + HELD_ON)
    except budgets.UsedUp as error:
        raise _refused(error, limit) from None
    try:
        yield used.append
    finally:
        held.settle(sum(used))


def _refused(error, limit):
    if error.held:
        return RateLimited("the rest of your team's tokens for captions today is held for captions under way",
                           headers={"Retry-After": "5"})
    return Forbidden(f"your team has used up its {limit} tokens for captions today; "
                     f"the next ones come at {wire_time(error.resets_at)}")
