"""LinkedIn's posts as its Posts API writes them: making one, and recognising it among those that are listed.

Their texts are little text: https://learn.microsoft.com/linkedin/marketing/community-management/shares/little-text-format.
There a reserved sign that is not escaped ends the text without a word, in a post that is published all the same.
"""

import json
import re

MEDIA_URN = re.compile(r"urn:li:(?:image|video):[A-Za-z0-9_-]{1,200}")
RESERVED = re.compile(r"[\\|{}@\[\]()<>#*_~]")
# What keeps its meaning: a mention as LinkedIn writes it, and a hashtag.
MARK = re.compile(r"@\[([^\[\]\n]{1,200})\]\((urn:li:(?:person|organization):[A-Za-z0-9_-]{1,100})\)|(?<![\w/&=?#.@-])#(?=\w)")
LINK = re.compile(r"\w\.\w")       # in a word
TEMPLATE = re.compile(r"\{hashtag\|\\?[#\uFF03]\|([^{}|]*)\}")     # the other way in which LinkedIn writes hashtags


def little(text: str) -> str:
    """`text` with everything escaped that is not a mention or a hashtag."""
    parts, end = [], 0
    for mark in MARK.finditer(text):
        parts += _escaped(text[end:mark.start()]), f"@[{_escaped(mark[1])}]({mark[2]})" if mark[1] else "#"
        end = mark.end()
    return "".join(parts) + _escaped(text[end:])


def plain(text: str) -> str:
    """What little text says, for comparing: without escapes, and hashtags in one way of writing."""
    return re.sub(r"\\(.)", r"\1", TEMPLATE.sub(r"#\1", text))


def body(account, content, receipt) -> dict:
    """What creates the post `content`, whose media are those of `receipt`."""
    post = {"author": account.platform_id, "commentary": little(content.caption),
            "visibility": content.options.get("visibility", "PUBLIC"),
            "distribution": {"feedDistribution": "MAIN_FEED", "thirdPartyDistributionChannels": [],
                             "targetEntities": [content.options["targeting"]] if "targeting" in content.options else []},
            "lifecycleState": "PUBLISHED", "isReshareDisabledByAuthor": content.options.get("disableReshare", False)}
    if "reshareUrn" in content.options:
        post["reshareContext"] = {"parent": content.options["reshareUrn"]}
    shown = _shown(content, [one["id"] for one in receipt["media"]])
    return {**post, "content": shown} if shown else post


def is_ours(answer, position, post) -> bool | None:
    """Whether a listed post is the one sent as `post`; None where only links differ, which LinkedIn may have shortened."""
    at, ours = ("elements", position), post.get("content", {})
    theirs = answer.field(*at, "content", kind=dict, default={})
    if media := set(MEDIA_URN.findall(json.dumps(ours))):
        return media <= set(MEDIA_URN.findall(json.dumps(theirs)))      # which no other post can have
    if answer.field(*at, "reshareContext", "parent", default=None) != post.get("reshareContext", {}).get("parent"):
        return False
    marks = (("article", "source"), ("poll", "question"))
    if ours.keys() != theirs.keys() or any(
            answer.field(*at, "content", kind, mark, default=None) != ours.get(kind, {}).get(mark) for kind, mark in marks):
        return False
    shown, sent = (plain(text).strip() for text in (answer.field(*at, "commentary", default=""), post["commentary"]))
    alike = LINK.search(shown) and LINK.search(sent) and _unlinked(shown) == _unlinked(sent)
    return shown == sent or (None if alike else False)


def _shown(content, ids):
    """What a post shows beside its text, None where it shows nothing."""
    options, texts = content.options, [*content.options.get("altTexts", ()), *[""] * len(ids)]
    if poll := options.get("poll"):
        return {"poll": {"question": poll["question"], "options": [{"text": text} for text in poll["options"]],
                         "settings": {"duration": poll["duration"]}}}
    if link := options.get("link"):
        about = {"description": link["description"]} if "description" in link else {}
        return {"article": {"source": link["url"], "title": link["title"], **about, **({"thumbnail": ids[0]} if ids else {})}}
    media = [{"id": urn, **({"altText": text} if text else {})} for urn, text in zip(ids, texts, strict=False)]
    if len(media) > 1:
        return {"multiImage": {"images": media}}
    return {"media": {**media[0], **({"title": options["title"]} if "title" in options else {})}} if media else None


def _unlinked(text):
    """The words that are no links."""
    return [word for word in text.split() if not LINK.search(word)]


def _escaped(text):
    return RESERVED.sub(r"\\\g<0>", text)
