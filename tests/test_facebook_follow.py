"""What follows a post on Facebook: its first comment, and what a video is given once it is public."""

import json
from dataclasses import replace

import pytest

from platforms.errors import PermissionMissing, Rejected, Unavailable, Unconfirmed
from platforms.meta import SETTLED
from tests.live import image, prepared
from tests.networks.facebook import SAMPLES, facebook, finished, net, page, posted  # noqa: F401
from tests.standins.facebook import COMMENT, COMMENTS, INVITE, THUMBNAILS
from tests.standins.meta import IN_DOUBT

TEXT = SAMPLES["text"]


def followed(facebook, page, content, receipt):
    for receipt in facebook.follow(page, content, receipt):
        receipt = json.loads(json.dumps(receipt))
    return receipt


@pytest.fixture
def public(net, facebook, page):
    """A post with a wish for a comment, and its receipt once it is public."""
    content = replace(TEXT, options={"firstComment": "More at the bakery "})
    post = posted(facebook, page, content)
    return content, {"public": {"id": post.id, "url": post.url}}


def written(number, text, author):
    """A comment that somebody wrote."""
    return {"id": str(number), "message": text, "from": {"id": author}}


def texts(net):
    return [comment["message"] for found in net.comments.values() for comment in found]


def test_first_comment(net, facebook, page, public):
    content, receipt = public
    done = followed(facebook, page, content, receipt)
    assert texts(net) == ["More at the bakery "] and list(net.comments) == [net.posts[0]["id"]]
    assert done["comment"]["id"] == net.comments[net.posts[0]["id"]][0]["id"]
    assert followed(facebook, page, content, done) == done and len(net.calls(COMMENT)) == 1


def test_first_comment_of_a_reel(net, facebook, page):
    content = replace(SAMPLES["reel"], options={"firstComment": "More"})
    post = posted(facebook, page, content)
    followed(facebook, page, content, {"public": {"id": post.id, "url": post.url}})
    assert net.comments[post.id][0]["message"] == "More"


@pytest.mark.parametrize("fault, there", IN_DOUBT)
def test_a_comment_in_doubt_is_looked_for_and_never_written_twice(net, facebook, page, public, fault, there):
    content, receipt = public
    steps = facebook.follow(page, content, receipt)
    receipt = next(steps)
    net.fault(COMMENT, **fault)
    with pytest.raises(Unconfirmed):
        next(steps)
    assert len(texts(net)) == there
    if not there:
        with pytest.raises(Unavailable) as caught:
            followed(facebook, page, content, receipt)
        assert 290 < caught.value.retry_after <= SETTLED and not texts(net)
        content = replace(content, sent_ago=SETTLED)
    assert "id" in followed(facebook, page, content, receipt)["comment"] and len(texts(net)) == 1


def test_a_comment_that_surely_was_not_written_is_written_later(net, facebook, page, public):
    content, receipt = public
    net.fail("page_limit", endpoint=COMMENT)
    steps = facebook.follow(page, content, receipt)
    receipt = [next(steps), next(steps)][-1]
    with pytest.raises(Unavailable):
        next(steps)
    assert not texts(net)
    followed(facebook, page, content, receipt)
    assert len(texts(net)) == 1 and not net.calls(COMMENTS)


def test_a_comment_for_a_post_that_is_not_there_yet(net, facebook, page, public):
    content, receipt = public
    net.fail("missing", endpoint=COMMENT, times=2)
    steps = facebook.follow(page, content, receipt)
    receipt = [next(steps), next(steps)][-1]
    with pytest.raises(Unavailable) as caught:
        next(steps)
    assert caught.value.retry_after == 10 and set(receipt["comment"]) == {"begunAt"}
    with pytest.raises(Rejected):
        followed(facebook, page, replace(content, sent_ago=SETTLED + 1), receipt)
    followed(facebook, page, content, receipt)
    assert len(texts(net)) == 1


def test_a_comment_among_more_than_can_be_listed_is_given_up(net, facebook, page, public):
    content, receipt = public
    net.comments[net.posts[0]["id"]] = [written(number, "Yes", page.platform_id) for number in range(101)]
    with pytest.raises(Rejected) as caught:
        followed(facebook, page, content, {**receipt, "comment": {"begunAt": 0, "sentAt": 0}})
    assert caught.value.rule == "comment" and not net.calls(COMMENT)


@pytest.mark.parametrize("scopes", [set(), {"pages_read_user_content"}])
def test_a_strangers_comment_of_the_same_text_is_not_ours(net, facebook, page, public, scopes):
    content, receipt = public
    token = net.tokens[page.credentials["accessToken"]]
    token.scopes = token.scopes - {"pages_read_user_content"} | scopes
    net.comments[net.posts[0]["id"]] = [written(1, "More at the bakery", "77")]
    receipt = {**receipt, "comment": {"begunAt": 0, "sentAt": 0}}
    done = followed(facebook, page, replace(content, sent_ago=SETTLED), receipt)
    assert len(net.calls(COMMENT)) == 1 and done["comment"]["id"] == net.comments[net.posts[0]["id"]][1]["id"]


def test_a_comment_that_is_not_allowed(net, facebook, page, public):
    net.tokens[page.credentials["accessToken"]].scopes -= {"pages_manage_engagement"}
    with pytest.raises(PermissionMissing):
        followed(facebook, page, *public)


def test_without_the_option_nothing_follows(net, facebook, page):
    assert list(facebook.follow(page, TEXT, {"public": {"id": "1", "url": "u"}})) == []


# What a video is given once it is public.

def pictured(kind, **options):
    """A video with a picture, which is to become its thumbnail."""
    return replace(SAMPLES[kind], media=(*SAMPLES[kind].media, image(7)), options=options)


def shown(facebook, page, content):
    """The receipt of a video that is public."""
    receipt = prepared(facebook, page, content)
    post = finished(facebook, page, facebook.publish(page, content, receipt))[0]
    return {**receipt, "public": {"id": post.id, "url": post.url}}


@pytest.mark.parametrize("kind", ["video", "reel"])
def test_the_image_beside_a_video_becomes_its_thumbnail(net, facebook, page, kind):
    content = pictured(kind)
    assert facebook.problems(content) == []
    receipt = shown(facebook, page, content)
    assert facebook.follows(content.options, receipt) and not net.calls(THUMBNAILS)
    done = followed(facebook, page, content, receipt)
    assert net.videos[receipt["public"]["id"]].thumbnail == content.media[1].open().read()
    assert followed(facebook, page, content, done) == done and len(net.calls(THUMBNAILS)) == 1


def test_a_video_without_a_picture_is_left_alone(net, facebook, page):
    receipt = shown(facebook, page, SAMPLES["video"])
    assert not facebook.follows({}, receipt) and list(facebook.follow(page, SAMPLES["video"], receipt)) == []


def test_other_pages_are_invited_once(net, facebook, page):
    content = replace(SAMPLES["reel"], options={"collaboratorIds": ["77", "78"]})
    receipt = shown(facebook, page, content)
    steps = facebook.follow(page, content, receipt)
    receipt = next(steps)
    net.fault(INVITE, status=500)
    with pytest.raises(Unavailable):
        next(steps)
    followed(facebook, page, content, receipt)
    assert net.videos[receipt["public"]["id"]].invited == ["77", "78"] and len(net.calls(INVITE)) == 3


@pytest.mark.parametrize("fault, expected", [
    ({"status": 400, "body": {"error": {"code": 100, "message": "no"}}}, Rejected),
    ({"status": 403, "body": {"error": {"code": 200, "message": "no"}}}, PermissionMissing)])
def test_a_refusal_holds_up_nothing_else(net, facebook, page, fault, expected):
    content = pictured("reel", collaboratorIds=["77"], firstComment="More")
    receipt = shown(facebook, page, content)
    net.fault(THUMBNAILS, **fault)
    with pytest.raises(expected) as caught:
        followed(facebook, page, content, receipt)
    assert (caught.value.rule, caught.value.message) == ("thumbnail", "Facebook refused the thumbnail")
    assert net.videos[receipt["public"]["id"]].invited == ["77"] and texts(net) == ["More"]


def test_more_invitations_than_a_day_has_are_put_off(net, facebook, page):
    net.rates["invites"] = (1, 86_400)
    content = replace(SAMPLES["reel"], options={"collaboratorIds": ["77", "78"]})
    receipt = shown(facebook, page, content)
    with pytest.raises(Unavailable) as caught:
        followed(facebook, page, content, receipt)
    assert caught.value.code == "rate_limited" and net.videos[receipt["public"]["id"]].invited == ["77"]


def test_an_answer_that_does_not_say_done_is_none(net, facebook, page):
    content = pictured("video")
    receipt = shown(facebook, page, content)
    net.fault(THUMBNAILS, status=200, body={"success": False})
    with pytest.raises(Unavailable):
        followed(facebook, page, content, receipt)


def test_a_picture_in_the_first_comment(net, facebook, page, public):
    content = replace(public[0], options={"firstComment": "More", "firstCommentImageUrl": "https://media.test/menu.jpg"})
    followed(facebook, page, content, public[1])
    assert [comment["attachment"] for comment in net.comments[net.posts[0]["id"]]] == ["https://media.test/menu.jpg"]
