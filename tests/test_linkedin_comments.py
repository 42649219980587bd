"""The first comment on LinkedIn, which follows a post and is public at once."""

import pytest

from platforms.base import Content
from platforms.errors import PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import followed, made_public
from tests.networks.linkedin import ann, linkedin, net, page  # fixtures
from tests.standins.linkedin_rules import COMMENT

LIST = "GET /rest/socialActions/:urn/comments"
LONG_AGO = 500.0
TEXT = "More (of it): https://bread.example/a_b #bread"


def post(sent_ago=5.0):
    return Content("hi", options={"firstComment": TEXT}, key="k-1", sent_ago=sent_ago)


@pytest.mark.parametrize("who", ["ann", "page"])
def test_a_comment_is_written_as_it_is(net, linkedin, request, who):
    author = request.getfixturevalue(who)
    assert linkedin.problems(post(), author) == [] and "firstComment" in linkedin.follow_options
    receipt = followed(linkedin, author, post(), made_public(linkedin, author, post()))
    [comment] = net.comments
    assert comment["message"] == {"text": TEXT} and comment["object"] == net.posts[0]["id"]
    assert comment["actor"] == author.platform_id and receipt["comment"] == comment["id"]
    followed(linkedin, author, post(), receipt)
    assert len(net.comments) == 1


def test_it_is_stored_that_a_comment_is_about_to_be_sent(net, linkedin, ann):
    steps = linkedin.follow(ann, post(7.0), made_public(linkedin, ann, post()))
    assert next(steps)["commentAt"] == pytest.approx(7, abs=2) and not net.comments
    assert next(steps)["commentAt"] is None and len(net.comments) == 1


def test_a_post_that_takes_no_comment_yet_gets_it_later(net, linkedin, ann):
    net.shy = 2
    receipt = made_public(linkedin, ann, post())
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            for receipt in linkedin.follow(ann, post(), receipt):
                pass
        assert (caught.value.retry_after, receipt["commentAt"]) == (15, None)
    followed(linkedin, ann, post(40.0), receipt)
    assert len(net.comments) == 1


def test_a_post_that_takes_no_comment_for_long_gets_none(net, linkedin, ann):
    receipt = made_public(linkedin, ann, post())
    net.fail("comment_too_early")
    with pytest.raises(Rejected):
        followed(linkedin, ann, post(600.0), receipt)


@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 503}, False),
    ({"status": 201, "body": "<html>", "acts": True}, True)])
def test_a_comment_of_a_page_in_doubt_is_looked_for(net, linkedin, page, fault, there):
    receipt = made_public(linkedin, page, post())
    net.fault(COMMENT, **fault)
    with pytest.raises(Unconfirmed):
        for receipt in linkedin.follow(page, post(5.0), receipt):
            pass
    assert len(net.comments) == there
    if not there:
        with pytest.raises(Unavailable) as caught:
            followed(linkedin, page, post(65.0), receipt)
        assert caught.value.retry_after == pytest.approx(240, abs=5)
    followed(linkedin, page, post(LONG_AGO), receipt)
    assert [comment["message"]["text"] for comment in net.comments] == [TEXT]


def test_comments_that_only_resemble_ours_are_not_taken_for_it(net, linkedin, page):
    receipt = {**made_public(linkedin, page, post()), "commentAt": 5.0}
    for actor, text in (("urn:li:person:bob", TEXT), (page.platform_id, "other")):
        net.comments.append({"id": "1", "actor": actor, "object": net.posts[0]["id"], "message": {"text": text}})
    followed(linkedin, page, post(LONG_AGO), receipt)
    assert len(net.comments) == 3


def test_a_comment_of_a_member_in_doubt_is_never_sent_again(net, linkedin, ann):
    receipt = made_public(linkedin, ann, post())
    net.fault(COMMENT, drop_answer=True)
    with pytest.raises(Unconfirmed):
        for receipt in linkedin.follow(ann, post(), receipt):
            pass
    with pytest.raises(Rejected) as caught:
        followed(linkedin, ann, post(LONG_AGO), receipt)
    assert caught.value.rule == "comment" and len(net.comments) == 1


def test_a_page_that_is_full_proves_nothing(net, linkedin, page):
    receipt = {**made_public(linkedin, page, post()), "commentAt": 5.0}
    other = {"id": "1", "actor": "urn:li:person:x", "object": net.posts[0]["id"], "message": {"text": "hello"}}
    net.comments += [other] * 100
    with pytest.raises(Rejected) as caught:
        followed(linkedin, page, post(LONG_AGO), receipt)
    assert caught.value.rule == "comment" and len(net.comments) == 100


@pytest.mark.parametrize("row, expected", [
    ("access_denied", PermissionMissing), ("comment_throttled", Unavailable), ("missing_field", Rejected),
    ("unavailable", Unconfirmed), ("day_quota", Unavailable)])
def test_errors_of_commenting(net, linkedin, ann, row, expected):
    receipt = made_public(linkedin, ann, post())
    net.fail(row, endpoint=COMMENT)
    with pytest.raises(PlatformError) as caught:
        for receipt in linkedin.follow(ann, post(), receipt):
            pass
    assert type(caught.value) is expected and "canary" not in repr(vars(caught.value))
    assert (receipt["commentAt"] is None) == (expected is not Unconfirmed)      # whether it was surely not written
    if row == "comment_throttled":
        assert caught.value.retry_after == 60
