"""Who gets which delivery, in which order, and whose outcome counts."""

from datetime import UTC, datetime, timedelta

from storage import deliveries
from storage.database import database
from tests.delivery import LEASE
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.sending import plain, post   # fixtures
from tests.service import Member


def test_one_webhook_at_its_limit_does_not_hold_up_the_others(post):
    busy, other = post.webhook("/busy"), post.webhook()
    for _ in range(5):
        post.tell(busy)
    id_ = post.tell(other)
    with post.desk._connected():
        assert [job.id for job in deliveries.claim("one", limit=9, lease=LEASE, full=[busy.id])] == [id_]
        assert deliveries.seconds_to_next([busy.id]) is None and deliveries.seconds_to_next() < 0
        jobs = deliveries.claim("one", limit=3, lease=LEASE)
        assert len(jobs) == 3 and {job.webhook_id for job in jobs} == {busy.id}


def test_who_has_least_in_hand_comes_first(post):
    """Between teams, and between the webhooks of one, whoever waits for how long."""
    busy, calm, other = post.webhook("/busy"), post.webhook("/calm"), post.webhook("/other", caller=Member("").caller("live"))
    told = [webhook.id for webhook in (busy, busy, busy, busy, calm, other) if post.tell(webhook)]
    with post.desk._connected():
        got = [deliveries.claim("one", limit=1, lease=LEASE)[0].webhook_id for _ in told]
        assert got == [busy.id, other.id, calm.id, busy.id, busy.id, busy.id]
        assert deliveries.claim("one", limit=9, lease=LEASE) == []
    post.tell(calm), post.tell(other)
    with post.desk._connected():
        full = [post.desk.team.id]
        assert deliveries.seconds_to_next(full) < 0
        [job] = deliveries.claim("one", limit=9, lease=LEASE, full=full)
        assert job.team_id == other.team_id and deliveries.seconds_to_next(full) is None


def test_an_outcome_counts_for_the_claim_that_it_is_of(post):
    webhook = post.webhook()
    id_, outcome = post.tell(webhook), deliveries.Outcome(datetime.now(UTC), 0.1, 500, "no")
    with post.desk._connected():
        [first] = deliveries.claim("one", limit=9, lease=timedelta(seconds=-1))
        assert deliveries.sweep() == 1 and deliveries.sweep() == 0
        assert not deliveries.put_back(first, outcome, 5)       # its lease ran out
        post.pass_time(1)
        [second] = deliveries.claim("two", limit=9, lease=LEASE)
        assert not deliveries.delivered(first, outcome) and not deliveries.failed(first, outcome, "no", gone=True)[0]
        deliveries.beat([first], lease=timedelta(seconds=-1))
        assert deliveries.sweep() == 0
        assert deliveries.delivered(second, outcome) and not deliveries.delivered(second, outcome)
    assert len(post.tried(id_)) == 1 and post.status(webhook)[0] == "enabled"


def test_what_somebody_holds_keeps_no_heart_waiting(post):
    webhook = post.webhook()
    ids = [post.tell(webhook) for _ in range(3)]
    with post.desk._connected(), post.desk.session() as (_, cursor):
        database.execute_sql("SET lock_timeout = '1s'")
        jobs = deliveries.claim("one", limit=9, lease=timedelta(seconds=-1))
        cursor.execute("SELECT FROM deliveries WHERE id = %s FOR UPDATE", (ids[0],))
        deliveries.beat([job for job in jobs if job.id != ids[1]], lease=LEASE)
        assert deliveries.sweep() == 1
        database.execute_sql("RESET lock_timeout")
    expired = dict(post.desk.sql("SELECT id, leased_until < clock_timestamp() FROM deliveries"))
    assert expired == {ids[0]: True, ids[1]: None, ids[2]: False}


def test_a_late_success_counts_where_nobody_else_has_claimed_it(post):
    id_ = post.tell(post.webhook())
    with post.desk._connected():
        [job] = deliveries.claim("one", limit=9, lease=timedelta(seconds=-1))
        deliveries.sweep()
        assert deliveries.delivered(job, deliveries.Outcome(datetime.now(UTC), 9, 204, None))
    assert post.read(id_)["status"] == "delivered" and post.work() == 0
