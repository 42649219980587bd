"""What comes after a post, such as its first comment: once, and without a doubt about the post itself."""

import pytest

from platforms.base import Absent, Processing, Waiting
from platforms.errors import Disconnected, PermissionMissing, Rejected, Unavailable, Unconfirmed
from tests.delivery import BUG, DONE, ERROR, Told
from tests.delivery import address, desk, whole_desk  # fixtures

POST = {"id": DONE.id, "url": DONE.url}
SENDING, SENT = {"public": POST, "comment": "sending"}, {"public": POST, "comment": "8"}
OPTIONS = {"firstComment": "More in the shop."}


def posted(desk, network, **options):
    """A target whose post is public, and its publisher."""
    target, publisher = desk.target(desk.account(), options=OPTIONS, **options), desk.publisher(network)
    desk.run(publisher)
    return target, publisher


def test_a_post_without_such_options_is_done_when_it_is_public(desk):
    network = Told(publish=[DONE])
    assert desk.tried(network).status == "published" and network.verbs() == ["prepare", "publish"]


@pytest.mark.parametrize("course, before", [
    ({"prepare": [[{"media": 1}]], "publish": [DONE]}, {"media": 1}),
    ({"publish": [Processing({"ticket": 1}, 0)], "check": [DONE]}, {"ticket": 1}),
    ({"prepare": [[{"media": 1}]], "publish": [Unconfirmed("lost")], "find": [DONE]}, {"media": 1}),
], ids=["published", "processed", "found"])
def test_it_is_done_after_the_post_is_public_and_with_its_receipt(desk, course, before):
    network = Told(follow=[[SENDING, SENT]], **course)
    target, publisher = posted(desk, network)
    while desk.row(target).status != "published":
        desk.run(publisher, target)
    assert network.calls[-1] == ("follow", {**before, "public": POST})
    row = desk.row(target)
    assert (row.platform_post_id, row.url, row.error, row.receipt) == (DONE.id, DONE.url, None, SENT)
    assert desk.steps(target)[-1] == "published"


def test_what_the_preparation_could_not_do_is_done_after_the_post_whatever_its_options(desk):
    class Unfinished(Told):
        def follows(self, options, receipt):
            return "left" in receipt

    network = Unfinished(prepare=[[{"left": 1}]], publish=[DONE], follow=[[Rejected("no thumbnail", rule="thumbnail")]])
    target, publisher = desk.target(desk.account()), desk.publisher(network)
    desk.run(publisher)
    assert desk.row(target).status == "publishing"
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.error["rule"], row.error["message"]) == ("published", "thumbnail", "no thumbnail")


def test_each_sending_is_written_down_before_it_happens(desk):
    seen = []

    class Watched(Told):
        def follow(self, account, content, receipt):
            for step in (SENDING, SENT):
                yield step
                seen.append(desk.row(content.key).receipt)

    target, publisher = posted(desk, Watched(publish=[DONE]))
    assert desk.row(target).status == "publishing"
    desk.run(publisher, target)
    assert seen == [SENDING, SENT] and desk.row(target).status == "published"


@pytest.mark.parametrize("error", [Rejected("no comments here"), PermissionMissing("no"), Disconnected("no")])
def test_the_post_is_public_although_what_follows_is_refused(desk, error):
    network = Told(publish=[DONE], follow=[[SENDING, error]])
    target, publisher = posted(desk, network)
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.platform_post_id, row.next_at) == ("published", DONE.id, None)
    assert (row.error["code"], row.error["retryable"]) == (error.code, False)


def test_credentials_that_end_meanwhile_are_renewed(desk):
    network = Told(publish=[DONE], follow=[[SENDING, Disconnected("no")], [SENT]], **{"refresh!": [{"token": "second"}]})
    target, publisher = posted(desk, network)
    desk.run(publisher, target)
    assert desk.row(target).status == "publishing"
    desk.run(publisher, target)
    assert (desk.row(target).status, desk.row(target).error) == ("published", None)


def test_a_bug_is_met_again_a_day_long_and_told_to_nobody(desk):
    network = Told(publish=[DONE], follow=[[BUG], [BUG]])
    target, publisher = posted(desk, network)
    desk.run(publisher, target)
    assert desk.row(target).status == "publishing" and desk.row(target).next_in > 800
    desk.ago(target, 86_401, "sending_at")
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.error["code"]) == ("published", "internal_error") and "secret" not in str(row.error)


@pytest.mark.parametrize("trouble", [Unavailable("busy"), Unconfirmed("lost"), Unavailable("slow down", retry_after=8)])
def test_it_goes_on_later_with_what_was_written_down_last(desk, trouble):
    network = Told(publish=[DONE], follow=[[SENDING, trouble], [SENT]])
    target, publisher = posted(desk, network)
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.stage, row.receipt) == ("publishing", "processing", SENDING) and 4 < row.next_in <= 10
    desk.run(publisher, target)
    assert network.calls[-1] == ("follow", SENDING) and desk.row(target).status == "published"
    assert network.verbs().count("publish") == 1


def test_after_a_day_it_is_given_up_and_the_post_stays(desk):
    network = Told(publish=[DONE], follow=[[Unavailable("busy")]])
    target, publisher = posted(desk, network)
    desk.ago(target, 86_401, "sending_at")
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.error["message"]) == ("published", "busy")


def test_a_worker_that_dies_in_the_middle_leaves_what_it_wrote_down(desk):
    network = Told(publish=[DONE], follow=[[SENDING, KeyboardInterrupt()], [SENT]])
    target, publisher = posted(desk, network)
    with pytest.raises(KeyboardInterrupt):
        desk.run(publisher, target)
    desk.swept(target)
    row = desk.row(target)
    assert (row.status, row.stage, row.receipt, row.crashes) == ("publishing", "processing", SENDING, 1)
    desk.run(publisher, target)
    assert network.calls[-1] == ("follow", SENDING) and desk.row(target).status == "published"


def test_what_kills_ten_workers_is_given_up_and_the_post_stays(desk):
    network = Told(publish=[DONE], follow=[[SENDING]])
    target, publisher = posted(desk, network)
    desk.move(target, crashes=10)
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.url, row.error["code"]) == ("published", DONE.url, "internal_error")
    assert "follow" not in network.verbs()


def test_a_network_that_takes_its_time_is_come_back_to(desk):
    network = Told(publish=[DONE], follow=[[SENDING, Waiting(SENDING, 7)], [SENT]])
    target, publisher = posted(desk, network)
    desk.move(target, tries=4)
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.status, row.receipt, row.tries) == ("publishing", SENDING, 0) and 6 < row.next_in <= 7
    desk.run(publisher, target)
    assert (desk.row(target).status, desk.row(target).error) == ("published", None)


def test_what_a_worker_that_lost_the_target_still_does_changes_nothing(desk):
    class Slow(Told):
        def follow(self, account, content, receipt):
            desk.swept(content.key)
            desk.claimed(content.key, "ben")
            yield SENDING
            self.calls.append(("sent", {}))

    network = Slow(publish=[DONE])
    target, publisher = posted(desk, network)
    desk.run(publisher, target)
    row = desk.row(target)
    assert (row.worker, row.status, row.stage) == ("ben", "publishing", "processing")
    assert "sent" not in network.verbs() and "comment" not in row.receipt


def test_a_post_that_was_surely_not_made_is_followed_by_nothing(desk):
    network = Told(publish=[Unconfirmed("lost")], find=[Absent()])
    target, publisher = posted(desk, network)
    desk.run(publisher, target)
    assert desk.row(target).status == "failed" and "follow" not in network.verbs()
    assert ERROR["code"] == desk.row(target).error["code"]
