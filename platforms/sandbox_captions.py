"""The captions of test mode: no model is asked, the same wish gives the same caption, in the language asked for."""

import re

# {topic} comes in marks that keep its own direction, so that it cannot turn the sentence around it (UAX #9, isolates).
SENTENCES = {
    "en": "A {tone} caption for {place}: {topic}", "de": "Ein Text für {place} ({tone}): {topic}",
    "fr": "Une légende pour {place} ({tone}) : {topic}", "es": "Un texto para {place} ({tone}): {topic}",
    "pt": "Uma legenda para {place} ({tone}): {topic}", "it": "Un testo per {place} ({tone}): {topic}",
    "nl": "Een tekst voor {place} ({tone}): {topic}", "ru": "Подпись для {place} ({tone}): {topic}",
    "ja": "{place}向けの投稿文（{tone}）：{topic}", "zh": "{place}的文案（{tone}）：{topic}", "ko": "{place} 게시글 ({tone}): {topic}",
    "hi": "{place} के लिए कैप्शन ({tone}): {topic}", "ar": "تعليق لـ {place} ({tone}): {topic}",
    "he": "כיתוב עבור {place} ({tone}): {topic}",
    "fa": "متن برای {place} ({tone}): {topic}", "ur": "{place} کے لیے کیپشن ({tone}): {topic}",
}
# Languages written from right to left by default, and the sentence that stands in where there is none of their own.
RIGHT_TO_LEFT = {"ar": "ar", "arc": "ar", "ckb": "ar", "dv": "ar", "fa": "fa", "he": "he", "iw": "he", "ji": "he", "ks": "ur",
                 "nqo": "ar", "prs": "fa", "ps": "ar", "sd": "ar", "syr": "ar", "ug": "ar", "ur": "ur", "yi": "he"}
SCRIPTS = {"arab": "ar", "hebr": "he", "syrc": "ar", "thaa": "ar", "nkoo": "ar", "adlm": "ar", "rohg": "ar", "mand": "ar",
           "samr": "he"}
ANYWHERE = "social media"
ISOLATE, END = "\u2068", "\u2069"
RIGHT_TO_LEFT_MARK = "\u200f"       # where a sentence begins with a Latin name


def sandbox_text(topic, platform, tone, language) -> str:
    """The caption, as long as the topic makes it; marked with [sandbox]."""
    sentence, to_left = _sentence(language.lower())
    kept = (lambda word: f"{ISOLATE}{word}{END}") if to_left else str
    text = sentence.format(place=kept(platform.title if platform else ANYWHERE), tone=kept(tone), topic=kept(topic))
    return f"{RIGHT_TO_LEFT_MARK}[sandbox] {text}" if to_left else f"[sandbox] {text}"


def _sentence(tag):
    """The sentence of a language tag in lower case, and whether it runs from right to left; a script in the tag decides."""
    language, *more = tag.split("-")
    script = more[0] if more and re.fullmatch("[a-z]{4}", more[0]) else None
    own = RIGHT_TO_LEFT.get(language) if script is None or script in SCRIPTS else None
    to_left = own or SCRIPTS.get(script)
    if to_left:
        return SENTENCES[to_left], True
    return SENTENCES["en" if language in RIGHT_TO_LEFT else language if language in SENTENCES else "en"], False
