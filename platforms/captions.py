"""Captions from a language model: any OpenAI-compatible chat endpoint, and the sandbox that stands in for one."""

from dataclasses import dataclass

from platforms import prompts
from platforms.base import Content
from platforms.chat import REFUSED, Bill, Chat, ModelFailed, Presence, count_tokens
from platforms.cleaning import clean, refuses
from platforms.cutting import cut
from platforms.metrics import CAPTION_SECONDS, CAPTION_TOKENS, CAPTIONS
from platforms.sandbox_captions import sandbox_text
from platforms.text import graphemes
from storage import tracing
from storage.figures import timed

DEFAULT_LIMIT = 2000        # graphemes, where no platform is named
TINY = 4                    # characters that a caption has at least when it stands in for a longer one
USUAL_ANSWER = 500          # tokens of a caption and a second try at it, for what is held back before it is asked for
TRIAL = [{"role": "system", "content": "Answer with one word."}, {"role": "user", "content": "Say ok."}]
MENDED = {"angle_brackets": str.maketrans("<>", "‹›")}      # rules that another character keeps


@dataclass(frozen=True)
class WrittenCaption:
    """A caption, the tokens it cost over all tries, and whether a part of that number was counted by us."""

    text: str
    tokens_used: int
    estimated: bool = False


class CaptionModel:
    """The configured chat endpoint: `url` is the base address that ends in /v1, `timeout` seconds for a whole caption.

    Without `url` or `model` every caption fails with a sentence that names the setting. Raises ValueError as Chat does.
    """

    def __init__(self, url, key, model, *, timeout, headers=None, pause=0.5):
        self._missing = None if url and model else "POSTHORN_CAPTION_MODEL" if url else "POSTHORN_CAPTION_URL"
        self._chat = None if self._missing else Chat(url, key, model, timeout=timeout, headers=headers, pause=pause)

    def expected_tokens(self, *, topic, platform, tone, language) -> int:
        """About what such a caption costs, for holding it back from a budget."""
        return count_tokens(_question(topic, platform, tone, language)) + USUAL_ANSWER

    def try_out(self) -> None:
        """Asks for one word. Raises ModelFailed."""
        if self._missing:
            raise ModelFailed(f"no caption model is configured: set {self._missing}")
        self._chat.ask(TRIAL, self._chat.deadline(), Presence(), Bill())

    def write(self, *, topic, platform, tone, language, presence=None) -> WrittenCaption:
        """A caption about `topic`, within the limit of `platform` (a Platform or None). Raises ModelFailed.

        `presence`: nothing more is asked once it says that the caller has gone.
        """
        if self._missing:
            raise ModelFailed(f"no caption model is configured: set {self._missing}")
        work = _Work(self._chat, topic, platform, _question(topic, platform, tone, language), presence or Presence())
        try:
            with tracing.span("caption"), timed(CAPTIONS, CAPTION_SECONDS, known=(ModelFailed,), good="written"):
                text = work.text()
        except ModelFailed as error:
            error.tokens_used = work.bill.tokens
            raise
        finally:
            CAPTION_TOKENS.inc(work.bill.tokens)
        return WrittenCaption(text, work.bill.tokens, work.bill.estimated)


class _Work:
    """One caption on its way: the question, at most one question for a shorter one, and what both cost."""

    def __init__(self, chat, topic, platform, messages, presence):
        self.chat, self.topic, self.platform, self.messages, self.presence = chat, topic, platform, messages, presence
        self.bill, self.deadline = Bill(), chat.deadline()

    def text(self):
        text, whole = self.said(self.messages)
        problem = _problem(text, self.platform)
        if problem or not whole:
            text, whole = self.shorter(text, problem or "the caption breaks off") or (text, whole)
        text = cut(text, lambda part: _problem(part, self.platform) is None, whole)
        if not text:
            raise ModelFailed("the caption model wrote one link or tag that is longer than the network allows")
        return text

    def said(self, messages):
        """(caption, whether it is whole) of the model's answer to `messages`."""
        reply = self.chat.ask(messages, self.deadline, self.presence, self.bill)
        text = _mended(clean(reply.text), self.platform)
        if not text:
            raise ModelFailed("the caption model answered nothing but thoughts or marks")
        if refuses(text):
            raise ModelFailed(REFUSED)
        secrets = [secret for secret in self.chat.secrets if secret.casefold() not in self.topic.casefold()]
        if any(secret in text for secret in secrets) or prompts.repeats(text, messages, self.topic):
            raise ModelFailed("the caption model repeated its instructions instead of a caption")
        return text, not reply.cut_off

    def shorter(self, text, problem):
        """What the model makes of its caption when told what is wrong with it; None where nothing came of that."""
        try:
            second, whole = self.said(prompts.shorten(self.messages, text, problem, *_limit(self.platform)))
            return (second, whole) if whole and len(second) >= TINY else None
        except ModelFailed:
            if self.presence.gone:
                raise
            return None     # the first one can be cut


def sandbox_caption(*, topic, platform, tone, language) -> WrittenCaption:
    """What test mode answers: the same for the same wish, in the direction of `language`, and within the platform's limit."""
    text = fit(sandbox_text(topic, platform, tone, language), platform)
    return WrittenCaption(text, count_tokens([], text))


def fit(text, platform) -> str:
    """`text`, cut to what the platform takes by its own counting and rules; "" where one link or tag is longer than that."""
    return cut(text, lambda part: _problem(part, platform) is None)


def _question(topic, platform, tone, language):
    return prompts.question(topic, platform, tone, language, *_limit(platform))


def _limit(platform):
    return (platform.limits.caption, platform.counts) if platform else (DEFAULT_LIMIT, "characters")


def _problem(text, platform):
    """The first thing that the platform would refuse about this caption, as a sentence, None if nothing."""
    limit, counts = _limit(platform)
    length = platform.measure(text) if platform else graphemes(text)
    if length > limit:
        return f"the caption has {length} {counts}; {limit} are allowed"
    return next((problem.message for problem in _rules(text, platform)), None)


def _rules(text, platform):
    """The broken rules about captions that are no number of characters, such as how many hashtags there may be."""
    if platform is None:
        return []
    post_type = next(iter(platform.post_types))     # these rules are the same for all of them
    return [problem for problem in platform.extra_problems(post_type, Content(text)) if problem.path == "caption"]


def _mended(text, platform):
    for problem in _rules(text, platform):
        text = text.translate(MENDED.get(problem.rule, {}))
    return text
