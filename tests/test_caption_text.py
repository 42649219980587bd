"""A model's answer becomes what a person would post: cleaned, and cut where it is too long."""

import time

import pytest
import regex

from platforms.captions import fit
from platforms.cleaning import clean
from platforms.cutting import cut
from platforms.registry import PLATFORMS
from platforms.text import graphemes

NETWORKS = {platform.name: platform() for platform in PLATFORMS}
FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}\u200d\N{BOY}"

CLEANED = {
    "quotes": ('"Fresh bread."', "Fresh bread."), "German quotes": ("„Frisches Brot.“", "Frisches Brot."),
    "guillemets": ("« Du pain. »", "Du pain."), "corner brackets": ("「焼きたて」", "焼きたて"),
    "single": ("'It's fresh.'", "It's fresh."),
    "quotes inside": ('"Bread" and "butter"', '"Bread" and "butter"'),
    "fence": ("```\nFresh bread.\n```", "Fresh bread."),
    "fence with words around": ("Sure:\n```text\nFresh.\n```\nEnjoy!", "Fresh."),
    "blanks, NUL and BOM": ("  \ufeffFresh\x00 bread.\r\n ", "Fresh bread."),
    "half a pair of surrogates": ("Fresh \x07bread.", "Fresh bread."),
    "introduction": ("Here is your caption:\nFresh bread.", "Fresh bread."),
    "introduction in one line": ('Sure! Here\'s a witty caption for X: "Fresh bread."', "Fresh bread."),
    "bold introduction": ("**Here's your caption:**\n\n**Fresh** bread.", "Fresh bread."),
    "nothing but yes": ("Certainly!\n\nFresh bread.", "Fresh bread."), "label": ("Caption: #bread is life", "#bread is life"),
    "de": ("Natürlich! Hier ist deine Bildunterschrift:\n„Brot.“", "Brot."),
    "fr": ("Voici une légende pour Instagram :\n« Du pain. »", "Du pain."),
    "es": ("Aquí tienes una leyenda:\n«Pan.»", "Pan."),
    "pt": ("Aqui está uma legenda:\n“Pão.”", "Pão."), "ja": ("こちらがキャプションです：\n「焼きたて」", "焼きたて"),
    "ar": ("إليك تعليق مناسب:\n«خبز طازج.»", "خبز طازج."), "hi": ("यहाँ आपका कैप्शन है:\n\"ताज़ी रोटी।\"", "ताज़ी रोटी।"),
    "introduction that is the caption": ("Here is what we baked today:\nRye!", "Here is what we baked today:\nRye!"),
    "options": ("**Option 1:**\nFresh bread. #a\n\n**Option 2:**\nOld bread.", "Fresh bread. #a"),
    "several, numbered": ("Here are three captions:\n\n1. Fresh.\n2. Old.\n3. None.", "Fresh."),
    "several, quoted": ('1. "Fresh."\n2. "Old."', "Fresh."), 
    "or": ("Here are two options:\n\nFresh.\n\nOR\n\nOld.", "Fresh."),
    "alternative": ("Fresh.\n\nAlternative caption: Old.", "Fresh."),
    "es, with a yes": ("¡Claro! Aquí tienes una leyenda divertida:\n\nPan fresco.", "Pan fresco."),
    "es, with less": ("¡Claro! Aquí tienes:\n\nPan fresco.", "Pan fresco."), "pt, with less": ("Claro! Aqui está:\nPão.",
    "Pão."),
    "de, with less": ("Gerne! Hier ist dein Beitrag:\nBrot.", "Brot."), "fr, with less": ("Bien sûr ! Voici :\nDu pain.",
    "Du pain."),
    "here you go": ("Sure, here you go:\nFresh bread.", "Fresh bread."),
    "a bold label": ("**Instagram Caption:**\nFresh bread.", "Fresh bread."),
    "a label for a network": ("Caption for Instagram: Fresh bread.", "Fresh bread."),
    "an end mark": ("Fresh bread.<|im_end|>\n<|im_start|>user", "Fresh bread."), "another": ("Fresh bread.</s>",
    "Fresh bread."),
    "JSON": ('{"caption": "Fresh\\nbread."}', "Fresh\nbread."),
    "JSON in a fence": ('```json\n{"text": "Fresh."}\n```', "Fresh."),
    "a note on itself": ("Fresh bread.\n\nNote: this caption has 12 characters.", "Fresh bread."),
    "a list that is the caption": ("Three tips:\n1. Knead\n2. Rest\n3. Bake", "Three tips:\n1. Knead\n2. Rest\n3. Bake"),
    "offer": ("Fresh bread.\n\nLet me know if you'd like a shorter version!", "Fresh bread."),
    "a question that is the caption": ("Fresh bread.\n\nLet me know what you think!",
                                       "Fresh bread.\n\nLet me know what you think!"),
    "note": ("Fresh bread.\n\n**Why this works:** it is short.", "Fresh bread."),
    "count": ("Fresh bread. (12 characters)", "Fresh bread."),
    "ruler": ("Here is a caption:\n\n---\n\nFresh bread.\n\n---\n\nIt is short.", "Fresh bread."),
    "hashtags below a ruler": ("Fresh bread.\n\n---\n\n#bread #rye", "Fresh bread.\n\n#bread #rye"),
    "thoughts": ("<think>They want bread.\n\nShort.</think>\n\nFresh bread.", "Fresh bread."),
    "thoughts without a beginning": ("They want bread.</think>Fresh bread.", "Fresh bread."),
    "thoughts without an end": ("<think>They want bread, so", ""), "only thoughts": ("<thinking>bread</thinking>", ""),
    "emphasis": ("**Fresh** *bread*, __baked__ _today_ ~~now~~ `here`", "Fresh bread, baked today now here"),
    "bold in italics": ("***Fresh*** **_bread_**", "Fresh bread"), "Japanese bold": ("これは**重要**です", "これは重要です"),
    "heading and list": ("# Fresh bread\n* rye\n* wheat\n> said Ann", "Fresh bread\n• rye\n• wheat\nsaid Ann"),
    "link": ("See [our shop](https://a.example/b_c_(d)).", "See our shop https://a.example/b_c_(d)."),
    "bold link": ("**See https://a.example/a_b_c**", "See https://a.example/a_b_c"),
    "what looks like marks": ("#bread_and_butter by @_ann_ 2*3*4 snake_case_name",
                              "#bread_and_butter by @_ann_ 2*3*4 snake_case_name"),
    "escapes": ("We are \\#1 \\*really\\*", "We are #1 *really*"), "blank lines": ("a\n\n\n\n\nb   \nc", "a\n\nb\nc"),
}


UNTOUCHED = [
    "Great news!\n\nWe open at six from Monday on.", "Fresh bread.\n\nNote: closed on Monday, open on Tuesday.\n\n#bread",
    "Which one?\nOption 1: rye\nOption 2: wheat", "Option 1: rye\nOption 2: wheat\nWhich one?", "Coffee\nor\ntea?",
    "Coffee\n\nOR\n\ntea?", "Here's the new version of our app: faster than ever.",
    "Here's the new version of our app:\nfaster than ever.", "Here are our best posts of the year:\nBread!",
    "本日の投稿です。パンが焼けました。", "The <thinking> person's bread", "A <thinking> person's </thinking> bread",
    "Do you want longer lasting hair? Try our oil.\n\n#hair", "New.\n\nDo you want longer lasting hair? Try our oil.\n\n#hair",
    "Rain.\n\nAlternative: take the train.", "Of course! Bread on Sunday.", "Caption contest: send us yours!",
    "Fresh.\n\nWhy this works: the dough rests for a day.", "Voici notre nouvelle version : plus rapide.", "<s>9 €</s> 7 €",
    "Hier ist unser neuer Beitrag zum Klima: Brot mit Sonne.", "Aquí tienes nuestro texto: pan.",
    "Sure, we bake: rye and wheat.",
    "Feel free to come by.\n\nI hope to see you there!", '{"bread": 1}', "1. Knead\n2. Rest", "Post your best loaf: #bread",
    "Here's to the bakers: you rock!", "Tip.\n\nNota: cerramos el lunes.",
    "Here are three options for lunch: soup, rye, cheese.",
]


@pytest.mark.parametrize("caption", UNTOUCHED)
def test_what_only_resembles_chatter_is_the_caption(caption):
    assert clean(caption) == caption


def test_what_stands_below_a_ruler_stays():
    assert clean("Fresh bread.\n\n---\n\nOpen from six.") == "Fresh bread.\n\nOpen from six."


@pytest.mark.parametrize("said, kept", CLEANED.values(), ids=CLEANED)
def test_what_models_put_around_a_caption_is_taken_off(said, kept):
    assert clean(said) == kept
    assert clean(kept) == kept or "*really*" in kept


@pytest.mark.parametrize("piece", [
    "**a ", "_a ", "*a ", "`", "[a](", "\n", " ", "\t", "#", "> ", "a-", "a.", "@a.", "https://a", "Option 1\n",
    "Here is a caption: ", "\n\nLet me know ", "(1 ", '"', "<think>", "</think>", "-", "\u2003", "\u0301",
])
def test_no_answer_takes_long_to_clean_and_to_cut(piece):
    started = time.thread_time()
    said = piece * (30_000 // len(piece))
    assert NETWORKS["twitter"].measure(fit(clean(said), NETWORKS["twitter"])) <= 280
    assert time.thread_time() - started < 8


def at_most(limit, measure=graphemes):
    return lambda text: measure(text) <= limit


@pytest.mark.parametrize("text, limit, kept", [
    ("One. Two. " + "x" * 300, 50, "One. Two."), ("Is it? Yes! " + "x" * 300, 50, "Is it? Yes!"),
    ("It costs 3.50 at example.com today and more", 40, "It costs 3.50 at example.com today and…"),
    ("Hi. " + "word " * 100, 52, "Hi. " + "word " * 8 + "word…"), ("He said (loudly) and went", 18, "He said (loudly)…"),
    ("焼きたて。パンには時間がかかる。もっと", 18, "焼きたて。パンには時間がかかる。"), ("خبز جيد. وقت طويل جدا", 12, "خبز جيد."),
    ("अच्छी रोटी। धीमी रोटी अच्छी होती है", 12, "अच्छी रोटी।"),
    ("Fresh bread is here\n#bread #rye #wheat #spelt", 32, "Fresh bread is here\n#bread #rye"),
    ("a" * 300, 10, "a" * 9 + "…"), (FAMILY * 30, 10, FAMILY * 9 + "…"), ("fits", 4, "fits"), ("fits", 3, "fi…"), ("", 3, ""),
], ids=["sentences", "questions", "a number and a name", "a first sentence that is too short", "brackets", "Japanese",
        "Arabic", "Hindi", "before a hashtag", "one word", "families", "fits", "a short word", "nothing"])
def test_a_cut_is_made_after_a_sentence_else_after_a_word(text, limit, kept):
    assert cut(text, at_most(limit)) == kept


@pytest.mark.parametrize("token", [
    "https://example.com/bread?a=1&b=2", "www.example.com/bread/rolls", "example.com/bread", "#breadandbutter", "＃焼きたて焼きたて",
    "https://youtu.be/dQw4w9WgXc-", "https://de.wikipedia.org/wiki/Brot_(Lebensmittel)", "https://bakery.example/brot/",
    "bread@bakery.example", "@ann@example.social", "#रोटी_और_मक्खन",
])
@pytest.mark.parametrize("before", ["Look here ", "", "見て "])
def test_no_cut_is_made_inside_a_link_a_tag_or_a_mention(before, token):
    text = f"{before}{token} and so on"
    for limit in range(len(text)):
        kept = cut(text, at_most(limit))
        assert graphemes(kept) <= limit
        assert token in kept or before.startswith(kept.removesuffix("…")), kept


@pytest.mark.parametrize("cluster", [FAMILY, "🇩🇪", "1️⃣", "👋🏽", "e" + "\u0301" * 20, "क्षि", "각", "\r\n"], ids=ascii)
def test_no_cut_is_made_inside_a_grapheme(cluster):
    text = cluster * 200
    for limit in range(1, 60):
        kept = cut(text, at_most(limit, len)).removesuffix("…")
        assert kept == "" or regex.findall(r"\X", kept) == regex.findall(r"\X", text)[:graphemes(kept)]


def test_an_answer_that_breaks_off_ends_with_its_last_whole_sentence():
    assert cut("Fresh bread. Baked at ei", at_most(100), whole=False) == "Fresh bread."
    assert cut("Fresh bread", at_most(100), whole=False) == "Fresh…"


def test_a_link_that_is_longer_than_the_network_allows_is_no_caption():
    assert fit("https://example.com/" + "a" * 600, NETWORKS["threads"]) == ""


@pytest.mark.parametrize("name, text, kept", [
    ("instagram", " ".join(f"#tag{number}" for number in range(40)), " ".join(f"#tag{number}" for number in range(30))),
    ("threads", " ".join(f"https://example.com/{number}" for number in range(9)),
     " ".join(f"https://example.com/{number}" for number in range(5))),
    ("twitter", "Up: $AAA. Down: $BBB. Flat.", "Up: $AAA."),
], ids=["hashtags", "links", "cashtags"])
def test_a_network_s_other_rules_about_captions_hold_as_well(name, text, kept):
    assert fit(text, NETWORKS[name]) == kept
