"""What the tests of webhooks share: a receiver, and a Post that sends to it claim by claim, in the time of the database."""

import json

import pytest

from platforms.webhooks import Sender
from storage import deliveries
from storage.deliveries import Delivery
from storage.fetch import Fetcher
from storage.webhooks import Webhook
from tests.delivery import LEASE
from tests.receiver import receiving

NAME = "b\N{LATIN SMALL LETTER A WITH DIAERESIS}r"
ACCOUNT = {"id": "acct_1", "platform": "bluesky", "username": NAME, "display_name": "B & R", "status": "disconnected"}
TELL = """
INSERT INTO deliveries (team_id, mode, webhook_id, type, subject_id, snapshot)
SELECT team_id, mode, id, 'account.disconnected', gen_random_uuid(), %s FROM webhooks WHERE id = %s RETURNING id
"""
PASS = """
WITH changed AS (UPDATE webhooks SET updated_at = updated_at - %s * interval '1 s')
UPDATE deliveries SET next_at = next_at - step, ends_at = ends_at - step, delivered_at = delivered_at - step
FROM (SELECT %s * interval '1 s' AS step) AS time
"""


@pytest.fixture(scope="module")
def plain():
    """A Receiver of plain HTTP."""
    with receiving() as receiver:
        yield receiver


class Post:
    """Webhooks of the desk at a receiver, and what sends to them, one claim after the other."""

    def __init__(self, desk, receiver, **options):
        self.desk, self.receiver, self.now = desk, receiver, 0.0
        allowed = frozenset({("127.0.0.1", receiver.port)})
        self.sender = Sender(desk.vault, Fetcher(allowed, **options))

    def webhook(self, path="/", url=None, caller=None):
        """A webhook at a path of the receiver, which knows its secret; of the desk's team unless a `caller` is given."""
        with self.desk._connected():
            row, secret = Webhook.create(caller or self.desk.caller, self.desk.vault, 20, url=url or self.receiver.url(path),
                                         client_id=None, events=["account.disconnected"])
        self.receiver.secrets[path] = [secret]
        return row

    def tell(self, webhook):
        """An event for it; returns the id of its delivery."""
        [[id_]] = self.desk.sql(TELL, json.dumps(ACCOUNT), webhook.id)
        self.desk.sql("NOTIFY posthorn_due, 'deliveries'")
        return id_

    def work(self):
        """One claim of all that is due, worked on; returns how many that were."""
        with self.desk._connected():
            jobs = deliveries.claim("one", limit=99, lease=LEASE)
        for job in jobs:
            self.sender.run(job)
        return len(jobs)

    def pass_time(self, seconds):
        """Lets so many seconds go by."""
        self.now += seconds
        self.desk.sql(PASS, seconds, seconds)

    def until_next(self, id_):
        """Lets time go by until the delivery is due; returns how long that was, None when it never is."""
        [[seconds]] = self.desk.sql("SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM deliveries "
                                    "WHERE id = %s", id_)
        if seconds is not None:
            self.pass_time(max(seconds, 0.0) + 0.001)
        return seconds

    def read(self, id_):
        """The delivery as the API shows it, with its attempts."""
        with self.desk._connected():
            [webhook] = Webhook.select().join(Delivery, on=Delivery.webhook_id == Webhook.id).where(Delivery.id == id_)
            [found] = [row for row in deliveries.page(webhook, None, 100, None)[0] if row.id == id_]
        return found.to_dict()

    def tried(self, id_):
        """(status, error) of each of its attempts."""
        return [(attempt.get("status"), attempt.get("error")) for attempt in self.read(id_)["attempts"]]

    def status(self, webhook):
        """That of a webhook, and why."""
        with self.desk._connected():
            row = Webhook.get_by_id(webhook.id)
        return row.status, row.disabled_reason


@pytest.fixture
def post(desk, plain):
    """A Post at the plain receiver."""
    plain.secrets.clear(), plain.answers.clear(), plain.got.clear()
    yield Post(desk, plain)
    assert plain.faults == []
