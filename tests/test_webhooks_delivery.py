"""Events on their way: signed, sent, tried again, replayed; whatever the receiver does.

Where time passes it is the database's: instead of waiting, each pause is taken from the times of the deliveries.
"""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from platforms.webhooks import Sender, pause
from storage import deliveries, retention
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
