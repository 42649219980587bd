"""When a webhook is given up, and what becomes of its events: time passes as in tests/test_webhooks_delivery.py."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from handlers.config import LogSettings
from handlers.logs import formatter
from storage import deliveries, retention
from storage.audit import trail
from tests.delivery import LEASE
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.sending import plain, post   # fixtures

HOUR, DAY = 3600, 86_400


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
