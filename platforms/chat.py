"""One chat endpoint in OpenAI's format: asked within a deadline, again where that helps, and never quoted in an error.

https://platform.openai.com/docs/api-reference/chat. Only `model` and `messages` are sent, which every server knows; what
a provider says of itself (addresses, quotas, parts of keys) stays out of our sentences.
"""

import json
import random
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import toktok

from platforms.http import retry_after
from platforms.metrics import MODEL_ANSWERS
from storage import urls
from storage.fetch import Broken, Fetcher, FetchError, Timeouts, TooLarge, Unreachable
from storage.figures import word

ANSWER_CAP = 1_048_576      # bytes of a model's answer that are read
TRIES = 5
CONNECT = 5.0               # seconds
LONGEST_PAUSE = 8.0         # seconds between two tries, where the provider names none
AGAIN = {429, *range(500, 600)} - {501, 505}
UNKNOWN_MODEL = {"model_not_found", "invalid_model", "not_found_error"}
NO_QUOTA = {"insufficient_quota", "billing_error"}
MOST_TOKENS = 1_000_000_000
SHORT = 6                   # characters of a setting below which it is not looked for in captions
MESSAGE_TOKENS = 4          # what the format adds to each message: OpenAI's own rule of thumb
KEY = re.compile(r"[\x21-\x7e]+")
LOOK = "look at POSTHORN_CAPTION_MODEL and POSTHORN_CAPTION_URL"
REFUSED = "the caption model refused to write about this topic"
FORMAT = "the caption model did not answer in the chat format: look at POSTHORN_CAPTION_URL"


class ModelFailed(Exception):
    """The model gave no usable caption; the sentence is safe to show and names the setting to look at where one may be wrong.

    `tokens_used`: what was spent all the same, as far as it is known.
    """

    tokens_used = 0


class ModelTooSlow(ModelFailed):
    """The model did not answer within the configured time."""


class CallerGone(ModelFailed):
    """Nobody waits for the caption any more."""


class _Again(Exception):
    """This try failed in a way that another one may not; `after` seconds, if the provider said so.

    `begun`: an answer had begun, which costs as much as a whole one; that is tried again only once.
    """

    def __init__(self, failure, after=None, begun=False):
        super().__init__()
        self.failure, self.after, self.begun = failure, after, begun


class Presence:
    """Whether whoever asked is still there. `leave` may come from any thread, and breaks off what is under way for them."""

    def __init__(self):
        self._left, self._lock, self._break_off = threading.Event(), threading.Lock(), None

    @property
    def gone(self):
        return self._left.is_set()

    def leave(self):
        """They have gone."""
        with self._lock:
            self._left.set()
            if self._break_off:
                self._break_off()

    def wait(self, seconds):
        """Waits, at most until they go."""
        self._left.wait(seconds)

    def hold(self, break_off):
        """`break_off` is called when they go, at once if they have gone; None to forget it."""
        with self._lock:
            self._break_off = break_off
            if break_off and self.gone:
                break_off()


@dataclass
class Bill:
    """The tokens that one caption cost over all tries; `estimated` when a part of them was not reported but counted here."""

    tokens: int = 0
    estimated: bool = False

    def add(self, answer, messages):
        """Adds one answer: what it reports, or else a count of the question and of what the model said."""
        reported = _reported(answer)
        if reported is not None:
            self.tokens += reported
        elif _message(answer):
            self.guess(messages, _text_of(answer))

    def guess(self, messages, text=""):
        """Adds a count of ours: of a question that was read, and as much of the answer as is known."""
        self.tokens, self.estimated = self.tokens + count_tokens(messages, text), True


@dataclass(frozen=True)
class Reply:
    """What the model said, and whether it was stopped before it had finished."""

    text: str
    cut_off: bool


def count_tokens(messages, text="") -> int:
    """Tokens of a question and its answer by OpenAI's o200k_base; other models' own tokenizers differ by some tenths."""
    texts = [*(message["content"] for message in messages), text]
    return sum(toktok.batch_count([_sound(one) for one in texts], "o200k_base", 1)) + MESSAGE_TOKENS * len(messages)


class Chat:
    """The endpoint below `url`, its base address. `timeout`: seconds for all tries together; `pause`: before the second try.

    Raises ValueError, whose sentence is safe to show, for an address, key or header that cannot be sent.
    """

    def __init__(self, url, key, model, *, timeout, headers=None, pause=0.5):
        base = _base(url)
        if key is not None and not KEY.fullmatch(key):
            raise ValueError("POSTHORN_CAPTION_KEY holds a character that no header can hold")
        self._url, self._model, self._pause = f"{str(base).rstrip('/')}/chat/completions", model, pause
        bearer = {"Authorization": f"Bearer {key}"} if key else {}
        self._headers, self._timeout = {**bearer, **(headers or {}), "Content-Type": "application/json"}, timeout
        # The address comes from the operator alone, never from a user: a model server in the own network is the usual case.
        self._fetcher = Fetcher(allow_private={(base.host, base.port)})
        # Short values and plain words, such as "true" or "mistral", stand in captions for other reasons.
        told = [url, base.authority, key or "", model, *(headers or {}).values()]
        self.secrets = tuple(value for value in told if len(value) >= SHORT and not value.isalpha())

    def deadline(self) -> float:
        """When a caption that is begun now must be there, by the monotonic clock."""
        return monotonic() + self._timeout

    def ask(self, messages, deadline, presence, bill) -> Reply:
        """What the model says to `messages`; every answer is added to `bill`. Raises ModelFailed."""
        begun = 0
        for tried in range(TRIES):
            try:
                return self._ask_once(messages, deadline, presence, bill)
            except _Again as again:
                usual = min(self._pause * 2 ** tried, LONGEST_PAUSE) * random.uniform(0.5, 1)
                pause = usual if again.after is None else again.after
                begun += again.begun
                if tried + 1 == TRIES or begun > 1 or monotonic() + pause >= deadline:
                    raise again.failure from None
                presence.wait(pause)

    def _ask_once(self, messages, deadline, presence, bill):
        body, begun = json.dumps({"model": self._model, "messages": messages}).encode(), False
        try:
            with self._open(body, deadline, presence) as response:
                begun = True
                raw = _read(response)
        except TooLarge as error:
            MODEL_ANSWERS.labels(word(error)).inc()
            bill.guess(messages)
            raise ModelFailed("the caption model answered too much") from None
        except FetchError as error:
            MODEL_ANSWERS.labels(word(error)).inc()
            raise self._unanswered(error, begun, messages, deadline, presence, bill) from None
        MODEL_ANSWERS.labels(f"{response.status // 100}xx").inc()
        if response.status != 200:
            raise _refusal(response.status, raw, response.headers)
        answer = _parsed(raw)
        bill.add(answer, messages)
        return _judged(answer, _text_of(answer))

    @contextmanager
    def _open(self, body, deadline, presence):
        left = deadline - monotonic()
        if presence.gone:
            raise CallerGone("nobody waits for this caption any more")
        timeouts = Timeouts(dns=left, connect=min(CONNECT, left), first_byte=left, total=left)
        try:
            with self._fetcher.open("POST", self._url, headers=self._headers, body=body, ports=None, timeouts=timeouts,
                                    connected=presence.hold) as response:
                yield response
        finally:
            presence.hold(None)

    def _unanswered(self, error, begun, messages, deadline, presence, bill):
        """What to raise when no whole answer came. A provider counts what it has read, whether or not we heard the answer."""
        if isinstance(error, Broken):
            bill.guess(messages)
        if presence.gone:
            return CallerGone("nobody waits for this caption any more")
        if monotonic() >= deadline:
            return ModelTooSlow("the caption model did not answer in time: look at POSTHORN_CAPTION_TIMEOUT")
        if isinstance(error, Broken):
            return _Again(ModelFailed("the caption model broke off its answer"), begun=begun)
        if isinstance(error, Unreachable):
            return ModelFailed("the caption model cannot be reached: look at POSTHORN_CAPTION_URL")
        return ModelFailed("the caption model cannot be asked: look at POSTHORN_CAPTION_URL and POSTHORN_CAPTION_KEY")


def _base(url):
    try:
        base = urls.parse(url)
    except urls.UrlError as error:
        raise ValueError(f"POSTHORN_CAPTION_URL: {error.args[0]}") from None
    if "?" in base.target:
        raise ValueError("POSTHORN_CAPTION_URL: the URL must not hold a query")
    return base


def _parsed(raw):
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) else {}


def _reported(answer):
    """The tokens that the answer says it cost; None where it does not say, or what cannot be."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    parts = ("total_tokens",) if "total_tokens" in usage else ("prompt_tokens", "completion_tokens")
    counts = [usage.get(part) for part in parts]
    sane = all(isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS for count in counts)
    return sum(counts) or None if sane else None


def _first_choice(answer):
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _message(answer):
    message = _first_choice(answer).get("message")
    return message if isinstance(message, dict) else {}


def _text_of(answer):
    """The text of the answer, "" if there is none; reasoning models give a list of parts, of which some are thoughts."""
    content = _message(answer).get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    return _sound(content) if isinstance(content, str) else ""


def _judged(answer, text):
    if "error" in answer and answer["error"]:
        raise ModelFailed("the caption model answered with an error")
    if not _message(answer):
        raise ModelFailed(FORMAT)
    reason = _first_choice(answer).get("finish_reason")
    if _message(answer).get("refusal") or reason == "content_filter":
        raise ModelFailed(REFUSED)
    if not text.strip():
        did = "used up its tokens before it wrote a caption" if reason == "length" else "answered nothing"
        raise ModelFailed(f"the caption model {did}")
    return Reply(text, reason == "length")


def _refusal(status, raw, headers):
    """What a status other than 200 means. Of the body nothing is looked at but the codes that the providers document."""
    error = _parsed(raw).get("error")
    error = error if isinstance(error, dict) else _parsed(raw)
    codes = {value for value in (error.get("code"), error.get("type")) if isinstance(value, str)}
    wish = retry_after(headers, throttled=False)
    if status == 404 or codes & UNKNOWN_MODEL:
        return ModelFailed(f"the caption model is unknown there: {LOOK}")
    if status in (401, 403):
        return ModelFailed("the caption model refused our key: look at POSTHORN_CAPTION_KEY")
    if status == 402 or codes & NO_QUOTA:
        return ModelFailed("the account of the caption model has no quota left")
    if status == 429:
        return _Again(ModelFailed("the caption model takes no more requests at this moment (429)"), wish)
    if status in AGAIN:
        return _Again(ModelFailed(f"the caption model answered {status}"), wish)
    if status == 400:
        return ModelFailed(f"the caption model did not understand our request (400): {LOOK}")
    return ModelFailed(f"the caption model answered {status}: look at POSTHORN_CAPTION_URL")


def _read(response):
    try:
        return response.read(ANSWER_CAP)
    except (Broken, TooLarge):
        if response.status == 200:
            raise
        return b""      # the status has said it


def _sound(text):
    """`text` without halves of surrogate pairs, which JSON can hold and nothing else can."""
    return text.encode("utf-8", "ignore").decode()
