"""Finds the links, mentions and tags in a text for Bluesky, whose records say where they are.

The rules are those of the official apps, so that a text looks the same whichever way it was posted:
https://github.com/bluesky-social/atproto/tree/main/packages/api/src/rich-text
"""

from collections.abc import Callable

import regex

from platforms.text import graphemes, is_top_level_domain, utf8_bytes

FACET = "app.bsky.richtext.facet"
MAX_TAG, MAX_TAG_BYTES = 64, 640        # graphemes and UTF-8; lexicon app.bsky.richtext.facet#tag

# \b between ASCII words only, as in JavaScript.
_MENTION = regex.compile(r"(?<![^\s(])@([a-zA-Z0-9.-]+)(?a:\b)")
_LINK = regex.compile(r"(?<![^\s(])(?:[hH][tT][tT][pP][sS]?://\S+|([a-zA-Z][a-zA-Z0-9]*(?:\.[a-zA-Z0-9]+)+)\S*)")
_URI = regex.compile(r"[hH][tT][tT][pP][sS]?://[^\s/]\S*")     # what a record takes: a lone "https://" gets the post refused
# After the emoji of a keycap, or around the invisible signs, a number sign starts no tag.
_TAG = regex.compile(r"(?<!\S)[#＃](?!\uFE0F)([^\s\u00AD\u2060\u200A\u200B\u200C\u200D\u20E2]+)")
_TELLING = regex.compile(r"[^0-9\p{P}]")
_TRAILING = regex.compile(r"\p{P}+$")
_CASHTAG = regex.compile(r"(?<![^\s(])\$([A-Za-z][A-Za-z0-9]{0,4})(?=\s|$|[.,;:!?)\"'\u2019])")


def facets(text: str, resolve: Callable[[str], str | None]) -> list[dict]:
    """The facets of `text` as a post record takes them, in order and without overlaps.

    `resolve` gives the DID of a handle, or None; an unknown handle stays plain text.
    """
    found = sorted([*_mentions(text, resolve), *_links(text), *_tags(text), *_cashtags(text)], key=lambda one: one[:2])
    result, end = [], 0
    for start, stop, feature in found:
        if start >= end:        # of two that overlap, apps show the first and stumble over the second
            index = {"byteStart": utf8_bytes(text[:start]), "byteEnd": utf8_bytes(text[:stop])}
            result.append({"$type": FACET, "index": index, "features": [feature]})
            end = stop
    return result


def _mentions(text, resolve):
    known = {}
    for match in _MENTION.finditer(text):
        handle = match[1]
        if not (_has_tld(handle) or handle.endswith(".test")):
            continue
        if handle not in known:
            known[handle] = resolve(handle)
        if known[handle]:
            yield *match.span(), {"$type": f"{FACET}#mention", "did": known[handle]}


def _links(text):
    for match in _LINK.finditer(text):
        shown, domain = match[0], match[1]
        if domain and not _has_tld(domain):
            continue
        if shown[-1] in ".,;:!?":
            shown = shown[:-1]
        if shown.endswith(")") and "(" not in shown:
            shown = shown[:-1]
        uri = f"https://{shown}" if domain else shown
        if _URI.fullmatch(uri):
            yield match.start(), match.start() + len(shown), {"$type": f"{FACET}#link", "uri": uri}


def _tags(text):
    for match in _TAG.finditer(text):
        tag = _TRAILING.sub("", match[1])
        if _TELLING.search(match[1]) and graphemes(tag) <= MAX_TAG and utf8_bytes(tag) <= MAX_TAG_BYTES:
            yield match.start(), match.start(1) + len(tag), {"$type": f"{FACET}#tag", "tag": tag}


def _cashtags(text):
    for match in _CASHTAG.finditer(text):
        yield *match.span(), {"$type": f"{FACET}#tag", "tag": match[0].upper()}


def _has_tld(domain):
    name, dot, ending = domain.rpartition(".")
    return bool(dot) and is_top_level_domain(ending)
