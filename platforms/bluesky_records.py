"""The records that make up a post on Bluesky, as the lexicons app.bsky.* want them, and what they refer to."""

import re

from platforms.base import Problem
from platforms.text import graphemes, utf8_bytes

POST, THREADGATE, POSTGATE = "app.bsky.feed.post", "app.bsky.feed.threadgate", "app.bsky.feed.postgate"
GRID, GALLERY = 4, 10       # images of app.bsky.embed.images; of app.bsky.embed.gallery, which takes 20, as its lexicon wants
REPLY_RULES = {"mentioned": "mentionRule", "followers": "followerRule", "following": "followingRule"}
MAX_RULES = 5               # of a threadgate
MAX_TAG = 64                # graphemes of a tag; lexicon app.bsky.feed.post
MAX_SUBTITLES = 20_000      # bytes of one file; lexicon app.bsky.embed.video#caption
POST_ADDRESS = re.compile(r"(?:at://([^/\s]+)/app\.bsky\.feed\.post|https://[^/\s]+/profile/([^/\s]+)/post)"
                          r"/([A-Za-z0-9._:~-]+)/?")
LIST_ADDRESS = re.compile(r"(?:at://([^/\s]+)/app\.bsky\.graph\.list|https://[^/\s]+/profile/([^/\s]+)/lists)"
                          r"/([A-Za-z0-9._:~-]+)/?")


def option_problems(options):
    """What is wrong with options for themselves and with each other."""
    for name in ("quoteUri", "replyToUri"):
        if name in options and not POST_ADDRESS.fullmatch(options[name]):
            yield Problem(f"options/{name}", "quote" if name == "quoteUri" else "reply",
                          "this is not the address of a post on Bluesky")
    for position, tag in enumerate(options.get("tags", ())):
        if graphemes(tag) > MAX_TAG:
            yield Problem(f"options/tags/{position}", "tag_length",
                          f"the tag has {graphemes(tag)} graphemes; {MAX_TAG} are allowed")
    for position, track in enumerate(options.get("subtitles", ())):
        if not track["text"].startswith("WEBVTT"):
            yield Problem(f"options/subtitles/{position}/text", "subtitles",
                          "subtitles on Bluesky are in the format WebVTT, and begin with WEBVTT")
        if (size := utf8_bytes(track["text"])) > MAX_SUBTITLES:
            yield Problem(f"options/subtitles/{position}/text", "subtitles",
                          f"the subtitles have {size} bytes in UTF-8; Bluesky allows {MAX_SUBTITLES}")
    yield from _reply_problems(options)


def media_embed(content, blobs, captions=()):
    """What a post shows below its text, None where it shows nothing. `blobs` are of its media, `captions` of its subtitles."""
    texts = [*content.options.get("altTexts", ()), *[""] * len(blobs)]
    shown = [{"alt": alt, **_aspect_ratio(item)} for item, alt in zip(content.media, texts, strict=False)]
    if link := content.options.get("link"):
        card = {"uri": link["url"], "title": link.get("title", ""), "description": link.get("description", "")}
        return {"$type": "app.bsky.embed.external", "external": {**card, **({"thumb": blobs[0]} if blobs else {})}}
    if content.media and content.media[0].is_video:
        tracks = [{"lang": track["language"], "file": file}
                  for track, file in zip(content.options.get("subtitles", ()), captions, strict=True)]
        return {"$type": "app.bsky.embed.video", "video": blobs[0], **shown[0], **({"captions": tracks} if tracks else {})}
    images = [{"image": blob, **item} for blob, item in zip(blobs, shown, strict=True)]
    if len(images) > GRID:
        items = [{"$type": "app.bsky.embed.gallery#image", **image} for image in images]
        return {"$type": "app.bsky.embed.gallery", "items": items}
    return {"$type": "app.bsky.embed.images", "images": images} if images else None


def gates(content, receipt, did):
    """The records that say who may reply to the post and quote it; each has the key of its post."""
    about = {"post": f"at://{did}/{POST}/{receipt['rkey']}", "createdAt": receipt["createdAt"]}
    rules, lists, found = content.options.get("replyControl", ()), receipt.get("lists", ()), []
    if rules or lists:
        allow = [{"$type": f"{THREADGATE}#{REPLY_RULES[rule]}"} for rule in rules if rule != "nobody"]
        allow += [{"$type": f"{THREADGATE}#listRule", "list": uri} for uri in lists]
        found.append({"$type": THREADGATE, "allow": allow, **about})
    if content.options.get("disableQuotes"):
        found.append({"$type": POSTGATE, "embeddingRules": [{"$type": f"{POSTGATE}#disableRule"}], **about})
    return found


def _reply_problems(options):
    rules, lists = options.get("replyControl", ()), options.get("replyLists", ())
    for position, address in enumerate(lists):
        if not LIST_ADDRESS.fullmatch(address):
            yield Problem(f"options/replyLists/{position}", "reply_control", "this is not the address of a list on Bluesky")
    if "nobody" in rules and len(rules) + len(lists) > 1:
        yield Problem("options/replyControl", "reply_control", "nobody excludes the others")
    if len(rules) + len(lists) > MAX_RULES:
        yield Problem("options/replyLists", "reply_control", f"Bluesky takes {MAX_RULES} kinds of people who may reply")
    if "replyToUri" in options:
        for name in options.keys() & {"replyControl", "replyLists"}:
            yield Problem(f"options/{name}", "reply_control", "who may reply is said by the post that begins a conversation")


def _aspect_ratio(item):
    return {"aspectRatio": {"width": item.width, "height": item.height}} if item.width and item.height else {}
