"""What follows a post on Threads: the further parts of a thread, and the first comment."""

import itertools
import json
from dataclasses import replace

import pytest

from platforms.base import Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.meta import SETTLED
from tests.live import published
from tests.networks.threads import PROFILE, SAMPLES, TOKEN, ann, net, threads  # noqa: F401
from tests.standins.meta import IN_DOUBT
from tests.standins.threads import CREATE, PUBLISH

TEXT = SAMPLES["text"]


SEQUEL = {"thread": ["two", "three"], "firstComment": "More"}


@pytest.fixture
def public(net, threads, ann):
    """A post with a thread and a comment, and its receipt once it is public."""
    content = replace(TEXT, options=SEQUEL)
    post = published(threads, ann, content)
    return content, {"public": {"id": post.id, "url": post.url}}


def follow(threads, ann, content, receipt):
    """What `follow` comes to: the last receipt, and the error that it ended with."""
    try:
        for step in threads.follow(ann, content, receipt):
            if isinstance(step, Waiting):       # the publisher comes back another time
                return follow(threads, ann, content, step.receipt)
            receipt = json.loads(json.dumps(step))
    except PlatformError as error:
        return receipt, error
    return receipt, None


def patiently(threads, ann, content, receipt):
    """The same, tried again as the publisher does, with the waits behind us."""
    for _ in range(20):
        receipt, error = follow(threads, ann, content, receipt)
        if not isinstance(error, Unavailable | Unconfirmed):
            return receipt, error
        if "sentAt" in receipt.get("reply", {}):
            content = replace(content, sent_ago=content.sent_ago + SETTLED)
    raise AssertionError("without end")


def shown(net):
    """The texts of the replies, each with the place of what it answers."""
    places = [post["id"] for post in net.posts]
    return [(post["given"]["text"], places.index(post["replied_to"])) for post in net.posts[1:]]


def test_thread_and_first_comment(net, threads, ann, public):
    receipt, error = patiently(threads, ann, *public)
    assert error is None and shown(net) == [("two", 0), ("three", 1), ("More", 0)]
    assert receipt["replies"] == [post["id"] for post in net.posts[1:]] and "reply" not in receipt
    seen = len(net.requests)
    assert follow(threads, ann, public[0], receipt) == (receipt, None) and len(net.requests) == seen


def test_a_reply_is_waited_for(net, threads, ann, public):
    net.processing_polls = 4
    content, receipt = public
    *_, step = itertools.takewhile(lambda step: not isinstance(step, Waiting), threads.follow(ann, content, receipt))
    assert next(threads.follow(ann, content, step)) == Waiting(step, 2.0) and step["reply"]["container"]
    assert follow(threads, ann, content, step)[1] is None and len(net.calls(CREATE)) == 4


@pytest.mark.parametrize("fault, there", IN_DOUBT)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_reply_in_doubt_is_never_published_twice(net, threads, ann, public, before, fault, there):
    content, receipt = public
    net.processing_polls = 0
    for step in threads.follow(ann, content, receipt):
        receipt = step
        if len(receipt.get("replies", [])) == before and "sentAt" in receipt.get("reply", {}):
            net.fault(PUBLISH, **fault)
            break
    content = replace(content, sent_ago=SETTLED)
    steps = threads.follow(ann, content, receipt)
    receipt = next(steps)
    with pytest.raises(Unconfirmed):
        next(steps)
    assert len(net.posts) == 1 + before + there
    if not there:
        receipt, error = follow(threads, ann, content, receipt)
        assert type(error) is Unavailable and 290 < error.retry_after <= SETTLED and len(net.posts) == 1 + before
    receipt, error = patiently(threads, ann, content, receipt)
    assert error is None and shown(net) == [("two", 0), ("three", 1), ("More", 0)]
    assert receipt["replies"] == [post["id"] for post in net.posts[1:]]


def test_a_run_that_died_after_each_step_is_gone_on_with(net, threads, ann, public):
    content, receipt = public
    for _ in range(60):
        try:
            step = next(threads.follow(ann, content, receipt), None)
        except Unavailable:
            if "sentAt" in receipt.get("reply", {}):
                content = replace(content, sent_ago=content.sent_ago + SETTLED)
            continue
        if step is None:
            break
        receipt = json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
        if "sentAt" in receipt.get("reply", {}):        # it sends before it dies
            threads.publish_container(ann, receipt["reply"]["container"])
    assert shown(net) == [("two", 0), ("three", 1), ("More", 0)]


def test_a_reply_that_is_not_there_at_once(net, threads, ann, public):
    net.latency = 1
    receipt, error = follow(threads, ann, *public)
    assert type(error) is Unavailable and error.retry_after == 10
    assert patiently(threads, ann, public[0], receipt)[1] is None and len(net.posts) == 4


def test_a_reply_to_a_post_that_is_not_there_yet(net, threads, ann, public):
    content, receipt = public
    net.fail("not_found", endpoint=CREATE, times=2)
    receipt, error = follow(threads, ann, content, receipt)
    assert type(error) is Unavailable and error.retry_after == 10
    assert type(follow(threads, ann, replace(content, sent_ago=SETTLED + 1), receipt)[1]) is Rejected
    assert patiently(threads, ann, content, receipt)[1] is None and len(net.posts) == 4


def test_a_reply_that_cannot_be_published_yet(net, threads, ann, public):
    net.processing_polls = 0
    net.fail("not_found")
    receipt, error = follow(threads, ann, *public)
    assert type(error) is Unavailable and error.retry_after == 10
    assert patiently(threads, ann, public[0], receipt)[1] is None and len(net.posts) == 4


@pytest.mark.parametrize("row, expected", [
    ("too_long", Rejected), ("permission", PermissionMissing), ("expired", Disconnected)])
def test_a_reply_that_is_refused(net, threads, ann, public, row, expected):
    net.fail(row, endpoint=CREATE)
    assert type(patiently(threads, ann, *public)[1]) is expected and len(net.posts) == 1


def test_a_reply_that_expired_while_threads_was_away(net, threads, ann, public):
    steps = threads.follow(ann, *public)
    receipt = [next(steps), next(steps)][-1]
    net.advance(86_401)
    error = patiently(threads, ann, public[0], receipt)[1]
    assert (type(error), error.rule, error.platform_code) == (Rejected, "comment", "EXPIRED")


def test_after_a_reply_whose_id_nobody_knows_the_thread_ends(net, threads, ann, public):
    content, receipt = public
    net.processing_polls = 0
    steps = threads.follow(ann, content, receipt)
    receipt = [next(steps), next(steps), next(steps)][-1]
    threads.publish_container(ann, receipt["reply"]["container"])
    net.posts[1]["given"]["text"] = "changed"
    receipt, error = patiently(threads, ann, content, receipt)
    assert type(error) is Rejected and error.rule == "comment" and receipt["replies"] == [None] and len(net.posts) == 2


def test_the_id_of_a_comment_need_not_be_known(net, threads, ann, public):
    content, receipt = replace(public[0], options={"firstComment": "More"}), public[1]
    net.processing_polls = 0
    net.tokens[TOKEN].scopes -= {"threads_read_replies"}
    net.fault(PUBLISH, drop_answer=True)
    receipt, error = patiently(threads, ann, content, receipt)
    assert error is None and receipt["replies"] == [None] and shown(net) == [("More", 0)]


def test_a_post_whose_id_nobody_knows_gets_no_replies(threads, ann):
    content = replace(TEXT, options=SEQUEL)
    assert follow(threads, ann, content, {"public": {"id": None, "url": PROFILE}})[1].rule == "comment"


@pytest.mark.parametrize("options, problems", [
    (SEQUEL, []),
    ({"thread": ["x" * 501, "x" * 500]}, [("options/thread/0", "thread_text_length")]),
    ({"thread": ["ok", "😀" * 126]}, [("options/thread/1", "thread_text_length")]),
    ({"firstComment": "x" * 501}, [("options/firstComment", "comment_length")]),
    ({"thread": ["ok", " "], "firstComment": "\n"}, [
        ("options/firstComment", "text_required"), ("options/thread/1", "thread_text_required")]),
    ({"thread": [" ".join(f"https://{letter}.test" for letter in "abcdef")]}, [("options/thread/0", "caption_links")]),
])
def test_what_follows_is_within_the_limits_of_a_post(threads, options, problems):
    found = threads.problems(replace(TEXT, options=options))
    assert [(problem.path, problem.rule) for problem in found] == problems
