"""Events on their way: signed, sent, tried again for a day, given up with a notice, replayed; whatever the receiver does.

Where time passes it is the database's: instead of waiting, each pause is taken from the times of the deliveries.
"""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from handlers.config import LogSettings
from handlers.logs import formatter
from platforms.webhooks import Sender, pause
from storage import deliveries, retention
from storage.audit import trail
from storage.database import database
from storage.fetch import Fetcher
from storage.lookups import Exhausted
from storage.resealing import census, reseal
from storage.secrets import Vault, new_key
from storage.webhooks import Webhook
from tests.authority import authority   # a fixture
from tests.delivery import LEASE
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.receiver import receiving
from tests.sending import NAME, Post
from tests.sending import plain, post   # fixtures
from tests.service import Member

HOUR, DAY = 3600, 86_400
UNREACHED = "the address cannot be reached"


def test_an_event_arrives_signed(post):
    webhook = post.webhook("/hook?token=1")
    id_ = post.tell(webhook)
    assert post.work() == 1 and post.work() == 0
    [(path, got, body, headers)] = post.receiver.got
    assert (path, got) == ("/hook?token=1", id_) and headers["Content-Type"] == "application/json"
    assert abs(int(headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 60
    event, shown = json.loads(body), post.read(id_)
    assert event == {"type": "account.disconnected", "timestamp": shown["createdAt"], "data": {
        "id": "acct_1", "platform": "bluesky", "username": NAME, "displayName": "B & R", "status": "disconnected"}}
    [attempt] = shown.pop("attempts")
    assert shown == {"id": id_, "type": "account.disconnected", "status": "delivered", "createdAt": event["timestamp"]}
    assert attempt.keys() == {"at", "status", "duration"} and attempt["status"] == 204 and 0 <= attempt["duration"] < 5


@pytest.mark.parametrize("answer", [500, 404, 401, 301, 304, 300, (503, {"Retry-After": "soon"})], ids=str)
def test_what_is_no_success_is_tried_again(post, answer):
    id_ = post.tell(post.webhook())
    post.receiver.answers["/"] = [answer]
    post.work()
    status = answer[0] if isinstance(answer, tuple) else answer
    assert post.tried(id_) == [(status, f"the receiver answered with status {status}")]
    assert 4 < post.until_next(id_) < 6 and post.work() == 1
    assert post.read(id_)["status"] == "delivered" and len(set(post.receiver.at())) == 1 and len(post.receiver.got) == 2


def test_every_2xx_is_a_success_whatever_else_is_answered(post):
    webhook = post.webhook()
    for answer in (200, 299, (202, {"Content-Length": str(10**9)}), (200, {"Content-Encoding": "gzip"})):
        post.receiver.answers["/"] = [answer]
        id_ = post.tell(webhook)
        post.work()
        assert post.read(id_)["status"] == "delivered", answer


def test_a_receiver_that_is_down_for_an_hour_gets_every_event_once(desk):
    with receiving() as before:
        post = Post(desk, before)
        webhook = post.webhook()
    ids = [post.tell(webhook) for _ in range(3)]
    while post.now < HOUR:
        post.work()
        post.until_next(ids[0])
        post.pass_time(0.25 * post.now)     # the others have other jitters
    assert set(post.tried(ids[0])) == {(None, UNREACHED)} and 3 <= len(post.tried(ids[0])) <= 5
    with receiving(port=before.port) as receiver:
        receiver.secrets = before.secrets
        post.pass_time(3 * HOUR)
        post.work()
        assert sorted(id_ for id_, _ in receiver.at()) == sorted(ids) and receiver.faults == []
    assert {post.read(id_)["status"] for id_ in ids} == {"delivered"} and post.status(webhook) == ("enabled", None)


def test_after_a_day_it_has_failed_and_the_webhook_is_disabled_with_a_notice(post, caplog, monkeypatch):
    monkeypatch.setattr(caplog.handler, "formatter", formatter(LogSettings.from_env({"POSTHORN_LOG_FORMAT": "json"})))
    webhook, other = post.webhook("/dead"), post.webhook()
    post.receiver.answers["/dead"] = [500] * 99
    id_, waits = post.tell(webhook), []
    assert post.work() == 1
    waits.append(post.until_next(id_))
    other_id = post.tell(other)
    assert post.work() == 2 and post.read(other_id)["status"] == "delivered"    # which helps this one nothing
    waits.append(post.until_next(id_))
    while post.read(id_)["status"] == "pending":
        assert post.work() == 1
        waits.append(post.until_next(id_))
    assert waits[:6] == [pytest.approx(wait, rel=0.11) for wait in (5, 300, 1800, 2 * HOUR, 5 * HOUR, 10 * HOUR)]
    assert len(waits) == 8 and DAY - 120 < post.now < DAY
    assert post.read(id_)["status"] == "failed" and len(post.tried(id_)) == 8
    reason = "the receiver took no event for 24 hours"
    assert post.status(webhook) == ("disabled", reason) and post.status(other) == ("enabled", None)
    [line] = [line for line in map(json.loads, caplog.text.splitlines()) if line["level"] != "INFO"]
    said = {"message": f"a webhook is disabled: {reason}", "webhook_id": webhook.id, "team_id": webhook.team_id, "delivery_id": id_}
    assert line.items() >= said.items()
    with post.desk._connected():
        [entry] = trail(object_id=webhook.id)
    assert (entry.action, entry.actor, entry.detail) == ("webhook.disabled", "worker", {"reason": reason})
    assert (entry.team_id, entry.mode) == (webhook.team_id, "live")


@pytest.mark.parametrize("days", [2, 8])
def test_the_day_of_a_receiver_begins_with_the_first_attempt_however_long_nobody_worked(post, days):
    webhook = post.webhook()
    id_ = post.tell(webhook)
    post.desk.sql("UPDATE deliveries SET created_at = created_at - %s * interval '1 day' WHERE id = %s", days, id_)
    post.pass_time(days * DAY)
    post.receiver.answers["/"] = [503] * 2
    assert post.work() == 1 and post.status(webhook) == ("enabled", None)
    if days > 7:        # which is too late for anybody
        assert post.read(id_)["status"] == "failed"
        return
    assert post.until_next(id_) == pytest.approx(5, rel=0.11)
    assert post.work() == 1 and post.until_next(id_) == pytest.approx(300, rel=0.11)
    assert post.work() == 1 and post.read(id_)["status"] == "delivered"


def test_what_was_delivered_meanwhile_keeps_a_webhook_enabled(post):
    webhook = post.webhook()
    post.receiver.answers["/"] = [500]
    id_ = post.tell(webhook)
    post.work()
    post.tell(webhook)
    post.work()
    post.receiver.answers["/"] = [500] * 9
    while post.until_next(id_) is not None:
        post.work()
    assert post.read(id_)["status"] == "failed" and post.status(webhook) == ("enabled", None)
    post.receiver.answers["/"] = [500] * 9
    last = post.tell(webhook)
    while post.until_next(last) is not None:
        post.work()
    assert post.status(webhook)[0] == "disabled"        # what arrived before does not count


def test_who_is_gone_gets_nothing_more(post):
    webhook = post.webhook()
    post.receiver.answers["/"] = [410]
    first = post.tell(webhook)
    post.work()
    second = post.tell(webhook)
    assert post.work() == 0
    assert post.status(webhook) == ("disabled", "the receiver answered with status 410")
    assert [post.read(id_)["status"] for id_ in (first, second)] == ["failed", "pending"] and len(post.receiver.got) == 1


@pytest.mark.parametrize("change", [{"url": "/new"}, {"status": "enabled"}], ids=str)
@pytest.mark.parametrize("left, answer", [(None, 410), (30, 500)], ids=["gone", "for a day"])
def test_what_comes_of_a_webhook_as_it_was_does_not_disable_it_as_it_is(post, change, left, answer):
    webhook = post.webhook("/old")
    post.receiver.answers["/old"] = [answer]
    id_ = post.tell(webhook)
    if left:
        post.desk.sql("UPDATE deliveries SET tries = 1")    # the day begins with the first
        post.pass_time(DAY - left)
    with post.desk._connected():
        [job] = deliveries.claim("one", limit=9, lease=LEASE)
        if "url" in change:
            webhook.edit({"url": post.receiver.url("/new")})
        else:
            post.desk.sql("UPDATE webhooks SET status = 'disabled', disabled_at = now(), disabled_reason = 'x'")
            webhook.edit(change)        # as it was read before: that it is disabled meanwhile, this one does not know
    post.sender.run(job)
    assert post.read(id_)["status"] == "failed" and post.status(webhook) == ("enabled", None)


@pytest.mark.parametrize("status, wish, wait", [(429, "90", 90), (503, "90", 90), (429, "0", 5), (500, "90", 5),
                                                (429, "1000000", DAY - 60)])
def test_who_asks_to_wait_is_left_alone_so_long(post, status, wish, wait):
    id_ = post.tell(post.webhook())
    post.receiver.answers["/"] = [(status, {"Retry-After": wish})]
    post.work()
    assert post.until_next(id_) == pytest.approx(wait, rel=0.11)
    assert post.work() == 1 and post.read(id_)["status"] == "delivered"


def test_a_date_to_wait_for(post):
    id_ = post.tell(post.webhook())
    until = datetime.now(UTC) + timedelta(minutes=10)
    post.receiver.answers["/"] = [(503, {"Retry-After": until.strftime("%a, %d %b %Y %H:%M:%S GMT")})]
    post.work()
    assert 590 < post.until_next(id_) <= 600


@pytest.mark.parametrize("tries, left, wish, between", [
    (0, DAY, None, (4.5, 5.5)), (5, DAY, None, (32_400, 39_600)), (6, 30_000, None, (29_940, 29_940)), (9, 61, None, (1, 1)),
    (9, 60, None, None), (0, -5, 7, None), (1, 3000, 5000, (2940, 2940)), (2, DAY, 10, (1620, 1980))])
def test_pauses(tries, left, wish, between):
    wait = pause(tries, left, wish)
    assert wait is None if between is None else between[0] <= wait <= between[1]


@pytest.mark.parametrize("fault, waits", [("no key", 300), ("no lookup", 5)])
def test_a_fault_on_our_side_is_no_attempt_and_takes_no_time_from_the_others(post, fault, waits):
    webhook = post.webhook()
    post.receiver.answers["/"] = [500]
    id_, sound = post.tell(webhook), post.sender
    post.work()
    post.pass_time(DAY - 100)
    if fault == "no key":
        post.sender = Sender(Vault((new_key(),)), sound._fetcher)
    else:
        post.desk.sql("UPDATE webhooks SET url = 'https://hooks.example.com/'")
        post.sender = Sender(post.desk.vault, Fetcher(resolve=exhausted))
    for _ in range(3):
        post.work()
        assert post.until_next(id_) == pytest.approx(waits, rel=0.11) and post.status(webhook)[0] == "enabled"
    [[left]] = post.desk.sql("SELECT extract(epoch FROM ends_at - clock_timestamp())::float FROM deliveries")
    assert 90 < left <= 100 and len(post.tried(id_)) == 1
    post.desk.sql("UPDATE deliveries SET created_at = now() - interval '8 days'")
    rounds = sum(post.work() for _ in range(40) if post.until_next(id_) is not None)    # not for ever
    assert rounds == pytest.approx(left / waits + 1, abs=4)
    shown = post.read(id_)
    assert (shown["status"], len(shown["attempts"])) == ("failed", 2) and post.status(webhook) == ("enabled", None)
    with post.desk._connected():
        deliveries.replay(webhook, id_)
        webhook.edit({"url": post.receiver.url()})
    post.sender = sound
    assert post.work() == 1 and post.read(id_)["status"] == "delivered"


def exhausted(_host):
    """Is asked while as many names are being looked up as may be."""
    raise Exhausted


def test_a_redirect_inward_is_not_followed(post):
    with receiving() as inner:
        id_ = post.tell(post.webhook())
        post.receiver.answers["/"] = [(307, {"Location": inner.url("/admin")})]
        post.work()
        assert inner.connections == 0
    assert post.tried(id_) == [(307, "the receiver answered with status 307")] and post.until_next(id_) < 6


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}/", "http://localhost:{}/", "http://[::1]:{}/"])
def test_nothing_inside_is_connected_to(post, url):
    with receiving() as inner:
        id_ = post.tell(post.webhook(url=url.format(inner.port)))
        post.work()
        assert inner.connections == 0
    [(status, error)] = post.tried(id_)
    assert status is None and error in (UNREACHED, "the URL has a port that is not allowed")


def test_a_certificate_that_is_not_trusted_gets_no_byte_and_the_mended_one_the_event(desk, authority):
    trusting, serving = authority
    with receiving(serving("127.0.0.1")) as receiver:
        post = Post(desk, receiver, ssl_context=trusting)
        webhook, good = post.webhook(), receiver.context
        first = post.tell(webhook)
        post.work()
        assert post.read(first)["status"] == "delivered"
        second = post.tell(webhook)
        for bad in (serving("other.example"), serving("127.0.0.1", days=-1)):
            receiver.context, before = bad, receiver.connections
            post.work()
            assert (receiver.connections, len(receiver.got)) == (before + 1, 1)
            post.until_next(second)
        assert post.tried(second) == [(None, UNREACHED)] * 2 and post.read(second)["status"] == "pending"
        receiver.context = good
        post.work()
        assert [id_ for id_, _ in receiver.at()] == [first, second] and receiver.faults == []
    assert post.read(second)["status"] == "delivered"


def test_a_new_secret_signs_beside_the_old_one_for_a_day(post):
    webhook = post.webhook()
    old = post.receiver.secrets["/"][0]
    with post.desk._connected():
        webhook, new = webhook.rotate(post.desk.vault)
    post.receiver.secrets["/"] = [new, old]
    post.tell(webhook)
    post.work()
    assert len(post.receiver.got[0][3]["webhook-signature"].split()) == 2
    post.desk.sql("UPDATE webhooks SET previous_until = now() - interval '1 s'")
    post.receiver.secrets["/"] = [new]
    post.tell(webhook)
    post.work()
    assert len(post.receiver.got[1][3]["webhook-signature"].split()) == 1
    with post.desk._connected():
        retention.tidy()
        assert Webhook.get_by_id(webhook.id).previous_secret is None


def test_a_replay_is_the_same_event_again(post):
    webhook = post.webhook()
    ids = [post.tell(webhook) for _ in range(3)]
    post.work()
    with post.desk._connected():
        assert deliveries.replay(webhook, ids[0]).to_dict()["status"] == "pending"
        assert deliveries.replay(webhook, "evt_none") is None
        assert deliveries.replay(post.webhook("/other"), ids[0]) is None
    post.work()
    assert post.receiver.at()[3] == post.receiver.at()[[id_ for id_, _ in post.receiver.at()].index(ids[0])]
    assert len(post.tried(ids[0])) == 2
    start = datetime.now(UTC) - timedelta(hours=1)
    with post.desk._connected():
        assert deliveries.replay_all(webhook, start, start + timedelta(minutes=1), None) == 0
        assert deliveries.replay_all(webhook, start, None, "failed") == 0
        assert deliveries.replay_all(webhook, start, None, "delivered") == 3
        assert deliveries.replay_all(webhook, start, None, None) == 0
    assert post.work() == 3 and len(set(post.receiver.at())) == 3


@pytest.mark.parametrize("tidied", [True, False], ids=["by the house round", "when it is enabled"])
def test_what_happens_while_a_webhook_is_disabled_waits_and_what_is_too_old_wants_a_replay(post, tidied):
    webhook = post.webhook()
    with post.desk._connected():
        webhook = webhook.edit({"status": "disabled"})
    old = post.tell(webhook)
    post.pass_time(DAY + 1)
    young = post.tell(webhook)
    assert post.work() == 0
    with post.desk._connected():
        assert deliveries.seconds_to_next() is None
        if tidied:
            retention.tidy()
    assert (post.read(old)["status"], post.read(young)["status"]) == ("failed" if tidied else "pending", "pending")
    with post.desk._connected():
        webhook = webhook.edit({"status": "enabled"})
    assert post.work() == 1 and [id_ for id_, _ in post.receiver.at()] == [young]
    assert post.read(old)["status"] == "failed" and post.tried(old) == []
    with post.desk._connected():
        assert deliveries.replay_all(webhook, datetime.now(UTC) - timedelta(days=2), None, "failed") == 1
    assert post.work() == 1 and post.read(old)["status"] == "delivered" and post.status(webhook) == ("enabled", None)


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


def test_secrets_are_in_no_row_log_error_or_repr(post, caplog, capfd):
    caplog.set_level(logging.INFO)
    webhook = post.webhook("/?token=canary")
    secret = post.receiver.secrets["/?token=canary"][0]
    post.receiver.answers["/?token=canary"] = [500, 204]
    id_ = post.tell(webhook)
    with post.desk._connected():
        jobs = deliveries.claim("one", limit=9, lease=LEASE)
    for sender in (post.sender, Sender(Vault((new_key(),)), None)):
        for job in jobs:
            sender.run(job)
    rows = post.desk.sql("SELECT d::text FROM deliveries AS d UNION ALL SELECT a::text FROM audit AS a")
    shown = [repr(jobs), repr(webhook), caplog.text, *capfd.readouterr(), json.dumps(post.read(id_)), str(rows)]
    assert not any(word in text for text in shown for word in (secret[6:], "canary", jobs[0].secret.tobytes().decode()))
    assert "sealed under a key that is not configured" in caplog.text
    [[row]] = post.desk.sql("SELECT w::text FROM webhooks AS w")
    assert secret[6:] not in row and secret[6:].encode().hex() not in row


def test_webhooks_are_sealed_anew_with_everything_else(post):
    webhook = post.webhook()
    new = Vault((new_key(), post.desk.key))
    with post.desk._connected():
        webhook, secret = webhook.rotate(post.desk.vault)
        assert census(new).old == 2
        assert list(reseal(new))[-1].resealed == 2 and census(new).old == 0
    post.receiver.secrets["/"].insert(0, secret)
    post.sender._vault = new
    post.tell(webhook)
    assert post.work() == 1 and len(post.receiver.got) == 1


def test_what_is_old_goes_with_its_attempts_and_what_is_to_be_sent_stays(post):
    webhook = post.webhook()
    post.receiver.answers["/"] = [500]
    old, again = (post.tell(webhook) for _ in range(2))
    post.work()
    post.pass_time(31 * DAY)
    post.desk.sql("UPDATE deliveries SET created_at = created_at - interval '31 days'")
    young = post.tell(webhook)
    with post.desk._connected():
        deliveries.replay(webhook, again)
        retention.tidy()
    left = {row[0] for row in post.desk.sql("SELECT id FROM deliveries")}
    assert left == {again, young} and old not in left
    assert {row[0] for row in post.desk.sql("SELECT delivery_id FROM delivery_attempts")} == {again}
