"""Threads on X: the parts that follow a post, each of them public at once."""

import pytest

from platforms.base import Content
from platforms.errors import Rejected, Unavailable, Unconfirmed
from tests.live import followed, made_public
from tests.networks.twitter import ann, net, twitter  # fixtures
from tests.standins.twitter_rules import CREATE

TIMELINE = "GET /2/users/:id/tweets"
LONG_AGO = 600.0


def thread(*texts, **details):
    return Content("one", options={"thread": list(texts or ("two", "three"))}, key="k-1", **details)


def parts(net):
    return [(post["text"], post["reply_to"]) for post in net.posts]


def test_a_thread_answers_itself(net, twitter, ann):
    assert twitter.problems(thread(), ann) == []
    receipt = made_public(twitter, ann, thread())
    assert "thread" in twitter.follow_options
    followed(twitter, ann, thread(), receipt)
    ids = [post["id"] for post in net.posts]
    assert parts(net) == [("one", None), ("two", ids[0]), ("three", ids[1])]


def test_a_thread_stores_what_it_is_about_to_send(net, twitter, ann):
    receipt = made_public(twitter, ann, thread())
    steps = twitter.follow(ann, thread(sent_ago=7.0), receipt)
    assert next(steps)["partAt"] == pytest.approx(7, abs=2) and len(net.posts) == 1
    assert (after := next(steps))["parts"] == [net.posts[1]["id"]] and after["partAt"] is None
    followed(twitter, ann, thread(), after)
    assert [text for text, _ in parts(net)] == ["one", "two", "three"]


@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 503}, False)])
def test_a_part_in_doubt_is_looked_for(net, twitter, ann, fault, there):
    receipt = made_public(twitter, ann, thread())
    net.fault(CREATE, **fault)
    with pytest.raises(Unconfirmed):
        for receipt in twitter.follow(ann, thread(sent_ago=5.0), receipt):
            pass
    assert len(net.posts) == 1 + there
    if not there:
        with pytest.raises(Unavailable) as caught:
            followed(twitter, ann, thread(sent_ago=65.0), receipt)
        assert caught.value.retry_after == pytest.approx(120, abs=5)
    followed(twitter, ann, thread(sent_ago=LONG_AGO), receipt)
    ids = [post["id"] for post in net.posts]
    assert parts(net) == [("one", None), ("two", ids[0]), ("three", ids[1])]


def test_a_part_that_surely_was_not_sent_is_not_looked_for(net, twitter, ann):
    receipt = made_public(twitter, ann, thread())
    net.fail("rate_limited")
    with pytest.raises(Unavailable):
        for receipt in twitter.follow(ann, thread(sent_ago=5.0), receipt):
            pass
    assert receipt["partAt"] is None
    followed(twitter, ann, thread(sent_ago=6.0), receipt)
    assert len(net.posts) == 3 and not net.calls(TIMELINE)


def test_a_part_that_cannot_be_found_out_ends_the_thread(net, twitter, ann):
    receipt = {**made_public(twitter, ann, thread()), "partAt": 0.0}
    net.fault(TIMELINE, status=200, body={"meta": {"result_count": 0, "next_token": "more"}})
    with pytest.raises(Rejected) as caught:
        followed(twitter, ann, thread(sent_ago=LONG_AGO), receipt)
    assert caught.value.rule == "thread" and len(net.posts) == 1


@pytest.mark.parametrize("texts, options, problems", [
    (["a" * 280], {}, []),
    (["https://example.com/" + "a" * 300 + " " + "a" * 256], {}, []),
    (["a", "漢" * 141], {}, [("options/thread/1", "thread_text_length")]),
    ([" "], {}, [("options/thread/0", "thread_text_required")]),
    (["a\uFEFF", "$ACME $BRK"], {},
     [("options/thread/0", "thread_text_characters"), ("options/thread/1", "thread_text_cashtags")]),
    (["a"], {"communityId": "77"}, [("options/communityId", "thread")]),
    (["a"], {"forSuperFollowersOnly": True}, [("options/forSuperFollowersOnly", "thread")]),
])
def test_problems_of_threads(twitter, texts, options, problems):
    found = twitter.problems(Content("one", options={"thread": texts, **options}))
    assert [(problem.path, problem.rule) for problem in found] == problems
