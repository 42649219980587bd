"""What Bluesky and Mastodon refuse before anything is sent."""

from dataclasses import replace

import pytest

from platforms.base import GIF, Content, Problem
from platforms.bluesky import Bluesky
from platforms.mastodon import Mastodon
from tests.live import image, video

POLL = {"options": ["yes", "no"], "expiresIn": 3600}


@pytest.mark.parametrize("content, problems", [
    (Content("x" * 300), []),
    (Content("👨‍👩‍👧‍👧" * 120), []),
    (Content("x" * 301), [("caption", "caption_length")]),
    (Content("👨‍👩‍👧‍👧" * 121), [("caption", "caption_bytes")]),
    (Content(""), [("caption", "caption_required")]),
    (Content("", media=(image(),)), []),
    (Content("", options={"link": {"url": "https://a.com", "title": "A"}}, post_type="link"), []),
    (Content("hi", post_type="link"), [("options/link", "required")]),
    (Content("hi", media=tuple(map(image, range(11)))), [("media", "media_count")]),
    (Content("hi", media=(image(), video())), [("media", "media_count")]),
    (Content("hi", media=(*map(image, range(4)), image(4, width=None))), [("media/4", "media_unmeasured")]),
    (Content("hi", media=(image(),), options={"altTexts": ["a", "b"]}), [("options/altTexts", "media_options")]),
    (Content("hi", options={"altTexts": ["a"]}), [("options/altTexts", "option"), ("options/altTexts", "media_options")]),
    (Content("hi", media=(image(),), options={"link": {"url": "https://a.com", "title": "A"}}), []),
    (Content("hi", media=(image(), image()), options={"link": {"url": "https://a.com", "title": "A"}}),
     [("options/link", "option")]),
    (Content("hi", post_type="link", media=(replace(image(), bytes=1_000_001, mime_type=GIF),),
             options={"link": {"url": "https://a.com", "title": "A"}}), [("media/0", "media_bytes")]),
    (Content("hi", options={"thread": ["x" * 301, " ", "👨‍👩‍👧‍👧" * 121]}),
     [("options/thread/0", "thread_text_length"), ("options/thread/1", "thread_text_required"),
      ("options/thread/2", "thread_text_bytes")]),
    (Content("hi", options={"replyToUri": "https://example.com/"}), [("options/replyToUri", "reply")]),
    (Content("hi", options={"tags": ["ok", "é" * 64, "é" * 65]}), [("options/tags/2", "tag_length")]),
    (Content("hi", media=(video(),), options={"subtitles": [{"language": "en", "text": "1"}]}),
     [("options/subtitles/0/text", "subtitles")]),
    (Content("hi", media=(video(),), options={"subtitles": [{"language": "en", "text": "WEBVTT" + "é" * 9_998}]}),
     [("options/subtitles/0/text", "subtitles")]),
    (Content("hi", options={"subtitles": [{"language": "en", "text": "WEBVTT"}]}), [("options/subtitles", "option")]),
    (Content("hi", options={"replyLists": ["https://bsky.app/x"]}), [("options/replyLists/0", "reply_control")]),
    (Content("hi", options={"replyLists": ["at://ann.test/app.bsky.graph.list/3mz"], "replyControl": ["nobody"]}),
     [("options/replyControl", "reply_control")]),
    (Content("hi", options={"replyLists": [f"at://ann.test/app.bsky.graph.list/3m{number}" for number in range(4)],
                            "replyControl": ["followers", "following"]}), [("options/replyLists", "reply_control")]),
    (Content("hi", options={"replyToUri": "at://ann.test/app.bsky.feed.post/3mz", "replyControl": ["followers"]}),
     [("options/replyControl", "reply_control")]),
    (Content("hi", options={"quoteUri": "https://example.com/"}), [("options/quoteUri", "quote")]),
    (Content("hi", options={"quoteUri": "at://ann.test/app.bsky.feed.like/3mzzzzzzzzz2a"}), [("options/quoteUri", "quote")]),
    (Content("hi", options={"replyControl": ["nobody", "followers"]}), [("options/replyControl", "reply_control")]),
    (Content("hi", post_type="story"), [("postType", "post_type")]),
    (Content("hi", media=(replace(image(), bytes=2_000_001),)), []),
    (Content("hi", media=(replace(image(), bytes=2_000_001, mime_type=GIF),)), [("media/0", "media_bytes")]),
    (Content("hi", media=(replace(image(), bytes=2_000_001, animated=True),)), [("media/0", "media_bytes")]),
    (Content("hi", media=(replace(video(), duration=601.0),)), [("media/0", "media_duration")]),
])
def test_problems_on_bluesky(content, problems):
    found = Bluesky().problems(content)
    assert [(problem.path, problem.rule) for problem in found] == problems
    assert all(isinstance(problem, Problem) and problem.message for problem in found)


@pytest.mark.parametrize("content, problems", [
    (Content("x" * 500), []),
    (Content("x" * 501), [("caption", "caption_length")]),
    (Content("x" * 476 + " https://example.com/" + "a" * 300), []),
    (Content("x" * 498, options={"spoilerText": "cw"}), []),
    (Content("x" * 499, options={"spoilerText": "cw"}), [("caption", "caption_length")]),
    (Content(" "), [("caption", "caption_required")]),
    (Content("", media=(image(),)), []),
    (Content("hi", media=tuple(map(image, range(5)))), [("media", "media_count")]),
    (Content("hi", media=(image(), video())), []),
    (Content("hi", media=(image(), image(), video())), [("media", "media_count")]),
    (Content("hi", media=(video(), video())), [("media", "media_count")]),
    (Content("hi", media=(video(width=8000, height=8000),)), [("media/0", "media_pixels")]),
    (Content("hi", media=(image(), ), options={"altTexts": ["a" * 1501]}), [("options/altTexts/0", "alt_text_length")]),
    (Content("hi", media=(image(), ), options={"altTexts": ["a", "b"]}), [("options/altTexts", "media_options")]),
    (Content("hi", media=(replace(image(), bytes=16 << 20),)), []),
    (Content("hi", media=(replace(image(), width=8000, height=8000),)), []),
    (Content("hi", media=(replace(image(), bytes=16 << 20, mime_type=GIF),)), [("media/0", "media_bytes")]),
    (Content("hi", media=(replace(image(), width=8000, height=8000, mime_type=GIF),)), [("media/0", "media_pixels")]),
    (Content("?", post_type="poll", options={"poll": POLL}), []),
    (Content("?", post_type="poll"), [("options/poll", "required")]),
    (Content("", post_type="poll", options={"poll": POLL}), [("caption", "caption_required")]),
    (Content("?", options={"poll": POLL}), []),
    (Content("hi", post_type="text", options={"poll": POLL}), [("options/poll", "option")]),
    (Content("?", post_type="poll", media=(image(),), options={"poll": POLL}), [("media", "media_count")]),
    (Content("?", post_type="poll", options={"poll": {**POLL, "options": list("abcde")}}),
     [("options/poll/options", "poll_options")]),
    (Content("?", post_type="poll", options={"poll": {**POLL, "options": ["a", "a "]}}),
     [("options/poll/options", "poll_options")]),
    (Content("?", post_type="poll", options={"poll": {**POLL, "options": ["a", "b" * 51]}}),
     [("options/poll/options/1", "poll_option_length")]),
    (Content("?", post_type="poll", options={"poll": {**POLL, "expiresIn": 299}}),
     [("options/poll/expiresIn", "poll_duration")]),
])
def test_problems_on_mastodon(content, problems):
    assert [(problem.path, problem.rule) for problem in Mastodon().problems(content)] == problems
