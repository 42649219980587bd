"""Workers that send events: beside posts, beside each other, and one after the other where one dies."""

import signal
from threading import Event

from tests.delivery import DONE, Told, WorkerProcess, WorkerThread
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.sending import plain, post   # fixtures
from tests.service import Member
from tests.stage import eventually

HOLD = """
CREATE TABLE held (webhook_id text, step text, lock int);
CREATE FUNCTION hold_delivery() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock) FROM held JOIN deliveries USING (webhook_id)
        WHERE deliveries.id = to_jsonb(NEW) ->> TG_ARGV[1] AND step = TG_ARGV[0];
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold_claim AFTER UPDATE ON deliveries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.fence <> NEW.fence) EXECUTE FUNCTION hold_delivery('claim', 'id');
CREATE CONSTRAINT TRIGGER hold_answer AFTER INSERT ON delivery_attempts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION hold_delivery('answer', 'delivery_id');
"""
LET_THROUGH, BROKEN_OFF = 7, 8      # locks: what waits for them as the worker dies is committed all the same, or is not
WAITING = "FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = %s"


class Stuck(Told):
    """A network that does not answer until it is told to."""

    def __init__(self):
        super().__init__()
        self.go = Event()

    def publish(self, account, content, receipt):
        """Waits."""
        self.go.wait(30)
        return DONE


def test_slow_receivers_and_slow_networks_do_not_wait_for_each_other(post):
    desk, open_ = post.desk, Event()
    slow, quick = post.webhook("/slow"), post.webhook()
    post.receiver.answers["/slow"] = [open_] * 6
    for _ in range(6):
        post.tell(slow)
    network, stuck = Told(publish=[DONE]), Stuck()
    stuck.name = "stuck"
    try:
        with WorkerThread(desk.publisher(network, stuck), desk.address, threads=2, sender=post.sender):
            desk.wait_for("SELECT 1 FROM deliveries WHERE leased_until IS NOT NULL HAVING count(*) = 4")
            busy = [desk.target(desk.account("stuck"), platform="stuck") for _ in range(3)]
            desk.wait_for("SELECT 1 FROM targets WHERE stage = 'sending' HAVING count(*) = 2")
            id_, target = post.tell(quick), desk.target(desk.account())
            desk.settled([target], within=5)
            desk.wait_for("SELECT 1 FROM deliveries WHERE id = %s AND status = 'delivered'", id_)
            assert desk.sql("SELECT count(*) FROM targets WHERE status = 'published'") == [(1,)]
            assert desk.sql("SELECT count(*) FROM deliveries WHERE status = 'delivered'") == [(1,)]
            open_.set(), stuck.go.set()
            desk.settled(busy, within=10)
            desk.wait_for("SELECT 1 FROM deliveries WHERE status = 'delivered' HAVING count(*) = 7")
    finally:
        open_.set(), stuck.go.set()
    assert len(set(post.receiver.at("/slow"))) == len(post.receiver.at("/slow")) == 6


def test_a_team_whose_receivers_are_slow_keeps_no_other_waiting(post):
    desk, open_ = post.desk, Event()
    slow = [post.webhook(f"/slow{number}") for number in range(10)]
    other = post.webhook(caller=Member("").caller("live"))
    for webhook in slow:
        path = webhook.url.removeprefix(post.receiver.url(""))
        post.receiver.answers[path] = [open_] * 4
        for _ in range(4):
            post.tell(webhook)
    try:
        with WorkerThread(desk.publisher(), desk.address, sender=post.sender):
            desk.wait_for("SELECT 1 FROM deliveries WHERE leased_until IS NOT NULL HAVING count(*) = 32")
            id_ = post.tell(other)
            desk.wait_for("SELECT 1 FROM deliveries WHERE id = %s AND status = 'delivered'", id_)
            assert desk.sql("SELECT count(*) FROM deliveries WHERE leased_until IS NOT NULL") == [(32,)]
            open_.set()
            desk.wait_for("SELECT 1 FROM deliveries WHERE status = 'delivered' HAVING count(*) = 41", within=10)
    finally:
        open_.set()


def test_a_published_post_is_told_at_once(post):
    desk = post.desk
    webhook = post.webhook()
    desk.sql("UPDATE webhooks SET events = '{post.published}'")
    with WorkerThread(desk.publisher(Told(publish=[DONE] * 3)), desk.address, sender=post.sender):
        for _ in range(3):
            desk.target(desk.account())
        desk.wait_for("SELECT 1 FROM deliveries WHERE status = 'delivered' HAVING count(*) = 3")
    [(lateness,)] = desk.sql("SELECT max(extract(epoch FROM at - created_at))::float FROM deliveries "
                             "JOIN delivery_attempts ON delivery_id = deliveries.id")
    assert lateness < 0.9 and webhook     # by the bell, rather than by the longest sleep


def test_a_worker_that_is_killed_at_any_point_loses_no_event(post):
    """Before the attempt, while the receiver thinks, and before and after its answer is written down; another takes over."""
    desk, receiver = post.desk, post.receiver
    desk.sql(HOLD)
    hooks = {name: post.webhook(f"/{name}") for name in ("claimed", "sent", "answered", "recorded")}
    for name, step, lock in (("claimed", "claim", LET_THROUGH), ("answered", "answer", BROKEN_OFF),
                             ("recorded", "answer", LET_THROUGH)):
        desk.sql("INSERT INTO held VALUES (%s, %s, %s)", hooks[name].id, step, lock)
    for lock in (LET_THROUGH, BROKEN_OFF):
        desk.sql("SELECT pg_advisory_lock(%s)", lock)
    receiver.answers["/sent"] = [think := Event()]
    try:
        with WorkerProcess(desk, ports=[receiver.port]) as victim:
            ids = {name: post.tell(hooks[name]) for name in ("sent", "answered", "recorded")}
            for lock in (LET_THROUGH, BROKEN_OFF):
                desk.wait_for(f"SELECT 1 {WAITING} HAVING count(*) = 1", lock, within=30)
            eventually(lambda: receiver.at("/sent"))
            ids["claimed"] = post.tell(hooks["claimed"])
            desk.wait_for(f"SELECT 1 {WAITING} HAVING count(*) = 2", LET_THROUGH)
            victim.signal(signal.SIGSTOP)
            desk.sql(f"SELECT pg_terminate_backend(pid, 5000) {WAITING}", BROKEN_OFF)
    finally:
        desk.sql("DELETE FROM held")
        desk.sql("SELECT pg_advisory_unlock_all()")
        think.set()
    assert {name: len(receiver.at(f"/{name}")) for name in hooks} == {"claimed": 0, "sent": 1, "answered": 1, "recorded": 1}
    desk.wait_for("SELECT 1 FROM deliveries WHERE id = %s AND leased_until IS NOT NULL", ids["claimed"])
    desk.wait_for("SELECT 1 FROM deliveries WHERE id = %s AND status = 'delivered'", ids["recorded"])
    with WorkerThread(desk.publisher(), desk.address, sender=post.sender):
        desk.wait_for("SELECT 1 FROM deliveries WHERE status = 'delivered' HAVING count(*) = 4", within=15)
    assert {name: len(receiver.at(f"/{name}")) for name in hooks} == {"claimed": 1, "sent": 2, "answered": 2, "recorded": 1}
    assert {name: {id_ for id_, _ in receiver.at(f"/{name}")} for name in hooks} == {name: {ids[name]} for name in hooks}
    assert all(len(set(receiver.at(f"/{name}"))) == 1 for name in hooks)     # the bodies too


def test_two_workers_share_the_work_and_send_nothing_twice(post):
    desk, webhook = post.desk, post.webhook()
    for _ in range(60):
        post.tell(webhook)
    with WorkerThread(desk.publisher(), desk.address, sender=post.sender), \
            WorkerThread(desk.publisher(), desk.address, sender=post.sender):
        desk.wait_for("SELECT 1 FROM deliveries WHERE status = 'delivered' HAVING count(*) = 60", within=15)
    assert len(post.receiver.got) == 60 == len({id_ for id_, _ in post.receiver.at()})
