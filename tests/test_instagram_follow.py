"""What follows a post on Instagram: its first comment."""

from dataclasses import replace

import pytest

from platforms.errors import Rejected, Unconfirmed
from platforms.meta import SETTLED
from tests.live import published
from tests.networks.instagram import PROFILE, SAMPLES, ann, instagram, net  # noqa: F401
from tests.standins.instagram import COMMENT, COMMENTS
from tests.standins.meta import IN_DOUBT

IMAGE = SAMPLES["image"]


@pytest.fixture
def public(net, instagram, ann):
    content = replace(IMAGE, options={"firstComment": "More"})
    post = published(instagram, ann, content)
    return content, {"public": {"id": post.id, "url": post.url}}


def texts(net):
    return [comment["text"] for found in net.comments.values() for comment in found]


def test_first_comment(net, instagram, ann, public):
    steps = list(instagram.follow(ann, *public))
    assert texts(net) == ["More"] and steps[-1]["comment"]["id"] == net.comments[net.posts[0]["id"]][0]["id"]
    assert "fields" not in dict(net.calls(COMMENT)[0].query)


@pytest.mark.parametrize("fault, there", IN_DOUBT)
def test_a_comment_in_doubt_is_looked_for_and_never_written_twice(net, instagram, ann, public, fault, there):
    content, receipt = public
    steps = instagram.follow(ann, content, receipt)
    receipt = next(steps)
    net.fault(COMMENT, **fault)
    with pytest.raises(Unconfirmed):
        next(steps)
    assert len(texts(net)) == there
    content = replace(content, sent_ago=SETTLED)
    assert "id" in list(instagram.follow(ann, content, receipt))[-1]["comment"]
    assert texts(net) == ["More"] and len(net.calls(COMMENTS)) == 1


def test_a_strangers_comment_of_the_same_text_is_not_ours(net, instagram, ann, public):
    content, receipt = public
    net.comments[net.posts[0]["id"]] = [{"id": "1", "text": "More", "username": "ben"}]
    receipt = {**receipt, "comment": {"begunAt": 0, "sentAt": 0}}
    done = list(instagram.follow(ann, replace(content, sent_ago=SETTLED), receipt))[-1]
    assert len(net.calls(COMMENT)) == 1 and done["comment"]["id"] == net.comments[net.posts[0]["id"]][1]["id"]


def test_a_post_whose_id_nobody_knows_gets_no_comment(instagram, ann, public):
    with pytest.raises(Rejected) as caught:
        list(instagram.follow(ann, public[0], {"public": {"id": None, "url": PROFILE}}))
    assert caught.value.rule == "comment"
