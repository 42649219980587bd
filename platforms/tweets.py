"""Recognising a post of ours among those that X lists, which shows texts in another shape than they were sent in."""

import html
import re
import unicodedata
from dataclasses import dataclass

from platforms.base import Absent

TWEET_FIELDS = "attachments,entities,note_tweet,referenced_tweets,text"
MENTIONS = re.compile(r"(?:@\w+ )+")        # that X itself puts before an answer


@dataclass(frozen=True)
class Sought:
    """What a post has to be: its text as it was sent, the id of the post that it answers, the ids of its media, a poll.

    `quoted` is the id of the post that it quotes, None for any: X makes a quote of every post with an address of another.
    """

    text: str
    reply_to: str | None = None
    media: tuple[str, ...] = ()
    poll: bool = False
    quoted: str | None = None


def seek(answer, sought):
    """The id of the `sought` post in an answer of GET /2/users/:id/tweets; Absent where it is not there, None if not sure.

    Raises what the answer means as a failure where it is no such list.
    """
    count = answer.field("meta", "result_count", kind=int)
    if len(answer.field("data", kind=list, default=[])) != count:
        raise answer.manner.fault()
    looks = [_look(answer, position, sought) for position in range(count)]
    if True in looks:
        return answer.field("data", looks.index(True), "id")
    whole = not answer.field("meta", "next_token", default=None) and not answer.field("errors", kind=list, default=[])
    return Absent() if whole and None not in looks else None


def _look(answer, position, sought):
    """Whether a listed post is the sought one; None where only its links differ, which X may have written in another way."""
    at = "data", position
    if _related(answer, "replied_to", *at) != sought.reply_to:
        return False
    quoted = _related(answer, "quoted", *at)
    if sought.quoted and quoted not in (sought.quoted, None):
        return False
    if bool(answer.field(*at, "attachments", "poll_ids", kind=list, default=[])) != sought.poll:
        return False
    media = _media(answer, *at)
    if media or sought.media:
        return media == sought.media        # which no other post can have
    note = ("note_tweet",) if answer.field(*at, "note_tweet", "text", default=None) else ()
    same = _same_text(answer, sought, *at, *note)
    if not sought.quoted:
        return same
    # The text of a quote may end with an address that only X knows; and a quote of what is gone by now looks like none.
    return (same or None) if quoted else (same and None)


def _media(answer, *path):
    """The ids of the media of a post, which are the ends of their keys."""
    count = len(answer.field(*path, "attachments", "media_keys", kind=list, default=[]))
    keys = [answer.field(*path, "attachments", "media_keys", number, default="") for number in range(count)]
    return tuple(key.rpartition("_")[2] for key in keys)


def _related(answer, kind, *path):
    """The id of the post that a post answers or quotes; None where it does no such thing."""
    count = len(answer.field(*path, "referenced_tweets", kind=list, default=[]))
    for number in range(count):
        if answer.field(*path, "referenced_tweets", number, "type", default=None) == kind:
            return answer.field(*path, "referenced_tweets", number, "id")
    return None


def _same_text(answer, sought, *path):
    count = len(answer.field(*path, "entities", "urls", kind=list, default=[]))
    links = [(answer.field(*path, "entities", "urls", number, "url", default=""),
              answer.field(*path, "entities", "urls", number, "expanded_url", default="")) for number in range(count)]
    shown, ours = html.unescape(answer.field(*path, "text")), _plain(sought.text, sought)
    written = shown
    for short, target in links:
        written = written.replace(short, target) if short else written
    if _plain(written, sought) == ours:
        return True
    around = re.split("|".join(re.escape(short) for short, _ in links if short) or "(?!)", shown)
    alike = len(around) > 1 and "." in ours and _holds(ours, [_plain(part, sought) for part in around])
    return None if alike else False


def _plain(text, sought):
    """`text` without what X may write in another way: spaces, ends of links, mentions, the address of what is quoted."""
    if sought.quoted:
        text = re.sub(rf"\S+/status/{sought.quoted}\b\S*", "", text)
    text = " ".join(unicodedata.normalize("NFC", text).split())
    if sought.reply_to:
        text = text[mentions.end():] if (mentions := MENTIONS.match(text)) else text
    return re.sub(r"https?://|/(?=\s|$)", "", text, flags=re.IGNORECASE)


def _holds(text, parts):
    """Whether `text` has all of these `parts` in their order."""
    position = 0
    for part in parts:
        position = text.find(part, position) + len(part)
        if position < len(part):
            return False
    return True
