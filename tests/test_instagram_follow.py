"""What follows a post on Instagram: its first comment, or none at all."""

import time
from dataclasses import replace

import pytest

from platforms.errors import PermissionMissing, Rejected, Unavailable, Unconfirmed
from platforms.meta import SETTLED
from tests.live import published
from tests.networks.instagram import PROFILE, SAMPLES, ann, instagram, net  # noqa: F401
from tests.standins.instagram import CHANGE, COMMENT, COMMENTS
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


# Comments that are closed.

@pytest.fixture
def closing(net, instagram, ann):
    content = replace(IMAGE, options={"disableComments": True}, read_at=time.monotonic())    # IMAGE is as old as this run
    post = published(instagram, ann, content)
    return content, {"public": {"id": post.id, "url": post.url}}


def test_comments_are_closed_once(net, instagram, ann, closing):
    content, receipt = closing
    *_, done = instagram.follow(ann, content, receipt)
    assert net.posts[0]["open"] is False and list(instagram.follow(ann, content, done)) == [] and len(net.calls(CHANGE)) == 1


def test_comments_stay_open_where_nobody_asked(net, instagram, ann, closing):
    assert list(instagram.follow(ann, replace(IMAGE, options={"disableComments": False}), closing[1])) == []
    assert "open" not in net.posts[0]


@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"status": 500}])
def test_closing_in_doubt_is_done_again(net, instagram, ann, closing, fault):
    net.fault(CHANGE, **fault)
    with pytest.raises(Unavailable):
        list(instagram.follow(ann, *closing))
    assert list(instagram.follow(ann, *closing))[-1]["closed"] and net.posts[0]["open"] is False


@pytest.mark.parametrize("ago, expected", [(0, Unavailable), (SETTLED + 1, Rejected)])
def test_a_post_that_is_not_there_yet_is_closed_later(net, instagram, ann, closing, ago, expected):
    content, receipt = closing
    net.fault(CHANGE, status=400, body={"error": {"code": 100, "error_subcode": 33, "message": "does not exist"}})
    with pytest.raises(expected):
        list(instagram.follow(ann, replace(content, sent_ago=ago), receipt))


def test_who_may_not_close_comments_is_told_so(net, instagram, ann, closing):
    net.tokens[ann.credentials["accessToken"]].scopes -= {"instagram_manage_comments"}
    with pytest.raises(PermissionMissing):
        list(instagram.follow(ann, *closing))


def test_a_post_whose_id_nobody_knows_stays_open(instagram, ann, closing):
    with pytest.raises(Rejected) as caught:
        list(instagram.follow(ann, closing[0], {"public": {"id": None, "url": PROFILE}}))
    assert caught.value.rule == "comment"
