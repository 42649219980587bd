"""Threads on Bluesky and Mastodon: every part once and in its place, whatever gets lost on the way."""

import json
from dataclasses import replace

import pytest

from platforms.base import Content
from platforms.errors import Rejected, Unavailable, Unconfirmed
from tests.networks import bluesky, mastodon
from tests.scenes import Scene

TEXTS = ["Two: with @ann.test and https://example.com/b", "Three"]
THREAD = Content("One", options={"thread": TEXTS}, key="k-1")
ENDPOINTS = {"bluesky": bluesky.PUBLISH, "mastodon": mastodon.PUBLISH}


@pytest.fixture(params=ENDPOINTS)
def scene(request):
    with {"bluesky": bluesky, "mastodon": mastodon}[request.param].start() as net:
        yield Scene(request.param, net)


@pytest.fixture
def begun(scene):
    """The receipt of a post that is public, whose thread is to follow."""
    assert scene.connector.problems(THREAD, scene.account) == []
    receipt = scene.prepared(THREAD)
    post = scene.sent(THREAD, receipt)
    return {**receipt, "public": {"id": post.id, "url": post.url}}


def followed(scene, receipt, content=THREAD, stop=None):
    """The last receipt, of so many steps where `stop` says so."""
    for number, step in enumerate(scene.connector.follow(scene.account, content, receipt)):
        receipt = json.loads(json.dumps(step))
        if number == stop:
            break
    return receipt


def chain(scene):
    """The texts in their order, each proved to answer the one before."""
    posts = scene.net.posts
    if scene.connector.name == "mastodon":
        assert [post["in_reply_to_id"] for post in posts] == [None, *(post["id"] for post in posts[:-1])]
        return [post["text"] for post in posts]
    answers = [post["record"].get("reply") for post in posts]
    uris = [post["uri"] for post in posts]
    assert [answer and (answer["root"]["uri"], answer["parent"]["uri"]) for answer in answers] == [
        None, *((uris[0], before) for before in uris[:-1])]
    return [post["record"]["text"] for post in posts]


def test_each_part_answers_the_one_before(scene, begun):
    followed(scene, begun)
    assert chain(scene) == ["One", *TEXTS]


@pytest.mark.parametrize("stop", range(4))
def test_a_worker_that_dies_after_a_step_is_followed_by_one_that_goes_on(scene, begun, stop):
    followed(scene, followed(scene, begun, stop=stop))
    assert chain(scene) == ["One", *TEXTS]


@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"drop_before": True}, {"status": 500, "acts": True}])
@pytest.mark.parametrize("part", [0, 1])
def test_a_part_in_doubt_is_there_once_in_the_end(scene, begun, fault, part):
    receipt, steps = begun, scene.connector.follow(scene.account, THREAD, begun)
    for _ in range(2 * part):
        receipt = next(steps)
    scene.net.fault(ENDPOINTS[scene.connector.name], **fault)
    with pytest.raises(Unconfirmed):
        for step in steps:
            receipt = json.loads(json.dumps(step))
    followed(scene, receipt, replace(THREAD, sent_ago=600))
    assert chain(scene) == ["One", *TEXTS]


def test_a_part_that_is_put_off_comes_later(scene, begun):
    scene.net.fault(ENDPOINTS[scene.connector.name], status=429)
    receipt = begun
    with pytest.raises(Unavailable):
        for step in scene.connector.follow(scene.account, THREAD, begun):
            receipt = step
    followed(scene, receipt, replace(THREAD, sent_ago=80_000))
    assert chain(scene) == ["One", *TEXTS]


def test_a_part_whose_key_the_instance_has_forgotten_is_not_sent_again(scene, begun):
    if scene.connector.name == "bluesky":       # keeps its keys for ever
        followed(scene, followed(scene, begun, stop=0), replace(THREAD, sent_ago=80_000))
        assert chain(scene) == ["One", *TEXTS]
        return
    receipt = followed(scene, begun, stop=0)
    with pytest.raises(Rejected) as caught:
        followed(scene, receipt, replace(THREAD, sent_ago=80_000))
    assert caught.value.rule == "thread" and chain(scene) == ["One"]


@pytest.mark.parametrize("texts, problems", [
    (["x" * 501], [("options/thread/0", "thread_text_length")]), (["fine", " "], [("options/thread/1", "thread_text_required")])])
def test_parts_are_counted_as_captions_are(scene, texts, problems):
    content = replace(THREAD, options={"thread": texts})
    assert [(one.path, one.rule) for one in scene.connector.problems(content, scene.account)] == problems
