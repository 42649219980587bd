"""What becomes of a post with everything that a network can do."""

from datetime import timedelta

import pytest

from platforms import publisher as rules
from platforms.base import Absent, Processing, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable, Unconfirmed
from storage import posts
from storage.database import database
from storage.posts import Post
from tests.delivery import BUG, DONE, Told
from tests.delivery import address, desk, whole_desk  # fixtures

THROTTLED = Unavailable("slow down", retry_after=40, throttled=True)
DAY = 86_400


def in_doubt(desk, network):
    """A target whose sending ended in the dark."""
    network.courses.setdefault("publish", []).insert(0, Unconfirmed("no answer"))
    row = desk.tried(network)
    assert row.status == "unconfirmed"
    network.calls.clear()
    return row.id


def wire(error, code=None, retryable=False):
    return {"code": code or error.code, "message": error.message, "retryable": retryable}


# What a network can do, and what becomes of the post: status, stage, seconds to the next step (None: never), calls.

PREPARING = {
    "nothing": ([], ("published", None, None), ["prepare", "publish"]),
    "rejected": ([Rejected("no")], ("failed", None, None), ["prepare"]),
    "permission": ([PermissionMissing("no")], ("failed", None, None), ["prepare"]),
    "disconnected": ([Disconnected("no")], ("failed", None, None), ["prepare"]),
    "unavailable": ([Unavailable("no")], ("scheduled", None, (5, 10)), ["prepare"]),
    "throttled": ([THROTTLED], ("scheduled", None, (40, 40.5)), ["prepare"]),
    "unconfirmed": ([Unconfirmed("no")], ("scheduled", None, (5, 10)), ["prepare"]),
    "a bug": ([BUG], ("scheduled", None, (5, 10)), ["prepare"]),
    "waiting": ([Waiting({"job": 1}, after=7)], ("publishing", "preparing", (6, 7)), ["prepare"]),
}
PUBLISHING = {
    "published": (DONE, ("published", None, None)),
    "processing": (Processing({"ticket": 1}, after=7), ("publishing", "processing", (6, 7))),
    "rejected": (Rejected("no"), ("failed", None, None)),
    "permission": (PermissionMissing("no"), ("failed", None, None)),
    "disconnected": (Disconnected("no"), ("failed", None, None)),
    "unavailable": (Unavailable("no"), ("scheduled", None, (5, 10))),
    "throttled": (THROTTLED, ("scheduled", None, (40, 40.5))),
    "unconfirmed": (Unconfirmed("no"), ("unconfirmed", None, (29, 30))),
    "a bug": (BUG, ("unconfirmed", None, (29, 30))),
}
CHECKING = {
    "published": (DONE, ("published", None, None)),
    "processing": (Processing({"ticket": 2}, after=7), ("publishing", "processing", (6, 7))),
    "rejected": (Rejected("no", rule="policy"), ("failed", None, None)),
    "refused to tell": (Rejected("not found"), ("unconfirmed", None, (29, 30))),
    "permission": (PermissionMissing("no"), ("unconfirmed", None, (29, 30))),
    "disconnected": (Disconnected("no"), ("unconfirmed", None, (29, 30))),
    "unavailable": (Unavailable("no"), ("publishing", "processing", (5, 10))),
    "throttled": (THROTTLED, ("publishing", "processing", (40, 40.5))),
    "unconfirmed": (Unconfirmed("no"), ("publishing", "processing", (5, 10))),
    "a bug": (BUG, ("publishing", "processing", (900, 901))),
}
# With find_retries, without; status, seconds to the next step.
LOOKING = {
    "found": (DONE, ("published", None), ("published", None)),
    "still processed": (Processing({"ticket": 2}, after=7), ("publishing", (6, 7)), ("publishing", (6, 7))),
    "absent": (Absent(), ("scheduled", (-1, 0)), ("failed", None)),
    "cannot tell": (None, ("unconfirmed", (119, 120)), ("unconfirmed", (119, 120))),
    "unavailable": (Unavailable("no"), ("unconfirmed", (119, 120)), ("unconfirmed", (119, 120))),
    "disconnected": (Disconnected("no"), ("unconfirmed", (119, 120)), ("unconfirmed", (119, 120))),
    "rejected": (Rejected("no"), ("unconfirmed", (119, 120)), ("unconfirmed", (119, 120))),
    "a bug": (BUG, ("unconfirmed", (119, 120)), ("unconfirmed", (119, 120))),
}


def stands(row, status, stage, waits):
    assert (row.status, row.stage, row.leased_until) == (status, stage, None)
    if waits is None:
        assert row.next_at is None
    else:
        assert waits[0] - 0.5 <= row.next_in <= waits[1]


@pytest.mark.parametrize("case", PREPARING)
def test_what_becomes_of_a_preparation(desk, case):
    course, outcome, calls = PREPARING[case]
    network = Told(prepare=[course], publish=[DONE])
    row = desk.tried(network)
    stands(row, *outcome)
    assert network.verbs() == calls
    assert row.sending_at is None or row.status == "published"
    assert row.tries == (1 if row.status == "scheduled" else 0)


@pytest.mark.parametrize("case", PUBLISHING)
def test_what_becomes_of_a_sending(desk, case):
    outcome, ends = PUBLISHING[case]
    network = Told(publish=[outcome])
    row = desk.tried(network)
    stands(row, *ends)
    assert network.verbs() == ["prepare", "publish"]
    in_doubt_or_there = row.status in ("published", "publishing", "unconfirmed")
    assert (row.sending_at is not None) == in_doubt_or_there or row.status == "failed"
    assert (row.platform_post_id, row.url) == (("7", "https://told.example/7") if row.status == "published" else (None, None))
    if row.status in ("failed", "unconfirmed") and outcome is not BUG:
        assert row.error == wire(outcome)
    elif outcome is BUG:
        assert row.error == wire(rules.UNCONFIRMED)


@pytest.mark.parametrize("case", CHECKING)
def test_what_becomes_of_a_post_that_the_network_works_on(desk, case):
    outcome, ends = CHECKING[case]
    network = Told(publish=[Processing({"ticket": 1}, after=0)], check=[outcome])
    target = desk.tried(network).id
    desk.run(desk.publisher(network), target)
    row = desk.row(target)
    stands(row, *ends)
    assert network.verbs() == ["prepare", "publish", "check"] and ("check", {"ticket": 1}) in network.calls
    assert row.receipt == ({"ticket": 2} if case == "processing" else {"ticket": 1})


@pytest.mark.parametrize("outcome, status", [
    (DONE, "published"), (Processing({}), "unconfirmed"), (Unavailable("no"), "unconfirmed"), (BUG, "unconfirmed"),
    (Rejected("no", rule="policy"), "failed")], ids=["published", "processing", "unavailable", "a bug", "rejected"])
def test_nobody_waits_for_a_network_longer_than_a_day(desk, outcome, status):
    network = Told(publish=[Processing({"ticket": 1}, after=0)], check=[outcome])
    target = desk.tried(network).id
    desk.ago(target, DAY + 60, "sending_at")
    desk.run(desk.publisher(network), target)
    assert desk.row(target).status == status


def test_an_outage_is_asked_after_ever_more_rarely(desk):
    network = Told(publish=[Processing({}, after=0)], check=[Unavailable("no")] * 3 + [Processing({}, after=3), Unavailable("no")])
    target = desk.tried(network).id
    pauses = []
    for _ in range(5):
        desk.run(desk.publisher(network), target)
        pauses.append(desk.row(target).next_in)
    for seen, (least, most) in zip(pauses, ((5, 10), (10, 20), (20, 40), (2.5, 3), (5, 10)), strict=True):
        assert least - 0.5 < seen <= most


@pytest.mark.parametrize("find_retries", [True, False], ids=["may be sent again", "may not"])
@pytest.mark.parametrize("case", LOOKING)
def test_what_becomes_of_a_post_in_doubt(desk, case, find_retries):
    found, *ends = LOOKING[case]
    status, waits = ends[0 if find_retries else 1]
    network = Told(find=[found], find_retries=find_retries)
    target = in_doubt(desk, network)
    desk.run(desk.publisher(network), target)
    row = desk.row(target)
    stands(row, status, "processing" if status == "publishing" else None, waits)
    assert network.verbs() == ["find"]
    if status == "failed":
        assert row.error["retryable"] is True
    if status == "published":
        assert (row.platform_post_id, row.error) == ("7", None)


def test_it_is_looked_for_four_times_and_then_left_to_the_caller(desk):
    network = Told()
    target = in_doubt(desk, network)
    waits = []
    for _ in range(4):
        desk.run(desk.publisher(network), target)
        waits.append(desk.row(target).next_in)
    assert [wait and round(wait / 10) * 10 for wait in waits] == [120, 600, 3600, None]
    assert network.verbs() == ["find"] * 4 and desk.row(target).status == "unconfirmed"


@pytest.mark.parametrize("ago, calls", [(30, []), (2990, []), (3010, ["find"])])
def test_a_network_that_knows_our_key_is_sent_the_same_again_while_it_does(desk, ago, calls):
    network = Told(dedupes_for=timedelta(minutes=50), find=[None], publish=[DONE])
    target = in_doubt(desk, network)
    network.courses["publish"] = [DONE]
    desk.ago(target, ago, "sending_at")
    publisher = desk.publisher(network)
    desk.run(publisher, target)
    assert network.verbs() == calls
    desk.run(publisher)
    assert desk.row(target).status == ("unconfirmed" if calls else "published")


def test_a_key_that_the_network_forgot_while_the_post_waited_is_not_sent_again(desk):
    network = Told(dedupes_for=timedelta(minutes=50))
    target = in_doubt(desk, network)
    publisher = desk.publisher(network)
    desk.run(publisher, target)
    assert desk.row(target).status == "scheduled"
    desk.ago(target, 3600, "sending_at")
    network.courses["publish"] = [DONE]
    desk.run(publisher)
    assert desk.row(target).status == "unconfirmed" and network.verbs() == []


def test_a_post_in_doubt_that_is_refused_when_sent_again_stays_in_doubt(desk):
    network = Told(dedupes_for=timedelta(minutes=50))
    target = in_doubt(desk, network)
    publisher = desk.publisher(network)
    desk.run(publisher, target)
    network.courses["publish"] = [Rejected("no")]
    desk.run(publisher)
    assert desk.row(target).status == "unconfirmed" and network.verbs() == ["prepare", "publish"]


def test_what_may_be_public_is_neither_changed_nor_canceled(desk):
    network = Told(dedupes_for=timedelta(minutes=50))
    target = in_doubt(desk, network)
    desk.run(desk.publisher(network), target)
    assert desk.row(target).status == "scheduled"
    with database.connection_context():
        post = Post.get_by_id(desk.row(target).post_id)
        assert posts.cancel(post) == 0
        with pytest.raises(posts.NotScheduled), database.atomic():
            posts.change(post, caption="other words", schedule_at=None, targets=None)
    assert desk.row(target).status == "scheduled"


def test_the_caller_may_have_a_post_in_doubt_sent_again(desk):
    network = Told()
    target = in_doubt(desk, network)
    with database.connection_context():
        assert posts.retry(Post.get_by_id(desk.row(target).post_id), include_unconfirmed=True) == 1
    network.courses["publish"] = [DONE]
    desk.run(desk.publisher(network))
    assert desk.row(target).status == "published" and network.verbs() == ["prepare", "publish"]


def test_a_wish_to_send_again_is_for_one_sending_alone(desk):
    network = Told(dedupes_for=timedelta(minutes=50), publish=[Unavailable("no"), Unconfirmed("no"), DONE])
    network.courses["publish"].insert(0, Unconfirmed("no"))
    publisher, target = desk.publisher(network), desk.target(desk.account())
    desk.run(publisher)
    desk.ago(target, 3600, "sending_at")
    with database.connection_context():
        posts.retry(Post.get_by_id(desk.row(target).post_id), include_unconfirmed=True)
    desk.run(publisher)
    assert desk.row(target).status == "scheduled"
    desk.run(publisher, target)
    assert (desk.row(target).status, network.verbs().count("publish")) == ("unconfirmed", 3)
    desk.ago(target, 60, "sending_at")
    desk.run(publisher, target)
    assert desk.row(target).status == "scheduled"
    desk.ago(target, 3600, "sending_at")
    desk.run(publisher)
    assert (desk.row(target).status, network.verbs().count("publish")) == ("unconfirmed", 3)


def test_a_look_that_got_no_answer_is_none(desk):
    network = Told(find=[Unavailable("no")] * 6 + [DONE])
    target = in_doubt(desk, network)
    for _ in range(6):
        desk.run(desk.publisher(network), target)
        row = desk.row(target)
        assert (row.status, row.looks) == ("unconfirmed", 0) and 119 < row.next_in <= 120
    desk.run(desk.publisher(network), target)
    assert desk.row(target).status == "published"


def test_a_post_whose_id_the_network_does_not_tell_is_published_all_the_same(desk):
    row = desk.tried(Told(publish=[Published(None, "https://told.example/ann")]))
    assert (row.status, row.platform_post_id, row.url) == ("published", None, "https://told.example/ann")


def test_the_post_of_another_target_is_not_taken_for_the_one_in_doubt(desk):
    account = desk.account()
    network = Told(publish=[DONE, Unconfirmed("no answer")], find=[DONE])
    publisher = desk.publisher(network)
    targets = desk.targets([account, account])
    for _ in range(2):
        desk.run(publisher)
    first, second = sorted(targets, key=lambda target: desk.row(target).status)     # published, unconfirmed
    desk.run(publisher, second)
    assert (desk.row(first).status, desk.row(second).status, desk.row(second).looks) == ("published", "unconfirmed", 1)


@pytest.mark.parametrize("course, options", [
    ({"publish": [Processing({"post": "7"}, 60)], "check": [Processing({"post": "7", "asked": 1}, 60), DONE],
      "find": [Processing({"post": "7"}, 0)]}, {}),
    ({"publish": [DONE], "follow": [[Waiting({"public": {"id": "7", "url": DONE.url}}, 60)]], "find": [DONE]},
     {"options": {"firstComment": "hi"}}),
], ids=["worked on", "more to follow"])
def test_the_post_of_another_target_that_is_under_way_is_not_taken_for_the_one_in_doubt(desk, course, options):
    account = desk.account()
    network = Told(**{**course, "publish": [*course["publish"], Unconfirmed("no answer")]})
    publisher = desk.publisher(network)
    first, second = desk.target(account, **options), desk.target(account)
    desk.move(second, next_at=None)
    for target in (first, first, second, second):
        desk.run(publisher, target)
    assert (desk.row(first).stage, desk.row(second).status, desk.row(second).looks) == ("processing", "unconfirmed", 1)


def test_after_a_day_without_an_answer_nobody_looks_any_more(desk):
    network = Told(find=[Unavailable("no")])
    target = in_doubt(desk, network)
    desk.ago(target, DAY + 60, "sending_at")
    desk.run(desk.publisher(network), target)
    assert (desk.row(target).status, desk.row(target).next_at) == ("unconfirmed", None)


def test_a_post_that_a_network_works_on_without_an_end_is_not_looked_for_without_an_end(desk):
    network = Told(find=[Processing({"post": "7"}, 1)] * 9, check=[Processing({"post": "7"}, 300)] * 9)
    target = in_doubt(desk, network)
    desk.ago(target, DAY + 60, "sending_at")
    for _ in range(8):
        assert desk.row(target).next_at is not None
        desk.run(desk.publisher(network), target)
    row = desk.row(target)
    assert (row.status, row.looks, row.next_at) == ("unconfirmed", 4, None)
    assert network.verbs() == ["find", "check"] * 4


def test_progress_makes_good_for_leases_that_ran_out(desk):
    network = Told(prepare=[[{"step": 1}, Waiting({"step": 2}, 0)], []], publish=[DONE])
    target = desk.target(desk.account())
    desk.move(target, crashes=4)
    desk.run(desk.publisher(network))
    assert desk.row(target).crashes == 0
    desk.run(desk.publisher(network), target)
    assert desk.row(target).status == "published"


def test_a_post_of_which_five_workers_died_is_not_touched_again(desk):
    network = Told(publish=[DONE])
    target = desk.target(desk.account())
    publisher = desk.publisher(network)
    for _ in range(5):
        desk.ago(target, 0, "next_at")
        desk.claimed(target, "dead")
        desk.swept(target)
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.error["code"], network.calls) == ("failed", "internal_error", [])


@pytest.mark.parametrize("stage", ["processing", "unconfirmed"])
@pytest.mark.parametrize("crashes, asked", [(9, 1), (10, 0)])
def test_a_post_that_kills_ten_workers_is_asked_after_no_more(desk, stage, crashes, asked):
    ending = Processing({"ticket": 1}, 0) if stage == "processing" else Unconfirmed("no answer")
    network = Told(publish=[ending], check=[Processing({"ticket": 1}, 9)])
    target = desk.tried(network).id
    desk.move(target, crashes=crashes)
    desk.run(desk.publisher(network), target)
    assert len(network.verbs()) == 2 + asked
    row = desk.row(target)
    assert asked or (row.status, row.next_at, row.error["code"]) == ("unconfirmed", None, "internal_error")


@pytest.mark.parametrize("renewed, status, account", [
    ([{"token": "second"}], "publishing", "connected"), ([None], "unconfirmed", "disconnected"),
    ([Disconnected("ended")], "unconfirmed", "disconnected"), ([Unavailable("busy")], "publishing", "connected")])
def test_credentials_that_end_while_a_network_works_on_a_post(desk, renewed, status, account):
    network = Told(publish=[Processing({"ticket": 1}, 0)], check=[Disconnected("expired")], **{"refresh!": renewed})
    owner = desk.account()
    target = desk.target(owner)
    publisher = desk.publisher(network)
    desk.run(publisher)
    desk.run(publisher, target)
    assert desk.row(target).status == status
    assert desk.sql("SELECT status FROM accounts WHERE id = %s", owner) == [(account,)]


def test_a_bug_is_told_to_nobody_outside(desk, caplog):
    row = desk.tried(Told(prepare=[[BUG]], patience=timedelta(seconds=1)))
    assert row.status == "failed" and row.error["code"] == "internal_error" and "secret" not in str(row.error)
    assert "secret detail" in caplog.text
