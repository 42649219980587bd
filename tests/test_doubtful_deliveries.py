"""Posts on TikTok and Pinterest whose answers get lost, from the queue to what becomes of them."""

from dataclasses import replace

import pytest

from platforms.pinterest import Pinterest
from platforms.publisher import Publisher
from platforms.tiktok import TikTok
from tests.delivery import Networks
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.live import http_for
from tests.networks import pinterest, tiktok

LONG = 8        # runs; more than there are looks for a post


class Shop:
    """One target on one network, and the publisher that brings it there."""

    def __init__(self, desk, module, connector, net, kind):
        self.desk, self.net, content = desk, net, module.SAMPLES[kind]

        class Stocked(Publisher):
            """Whose media come from the sample rather than from a store."""

            def _content(self, job, connector, account, convert=True):
                return replace(content, key=job.id, sent_ago=job.since_sending or 0.0)

        network = connector(http_for(net), module.settings(net))
        account = module.account(net)
        row = desk.account(network.name, credentials=account.credentials)
        desk.sql("UPDATE accounts SET platform_id = %s WHERE id = %s", account.platform_id, row)
        self.publisher = Stocked(Networks(network), desk.vault, None)
        self.target = desk.target(row, platform=network.name, options=content.options)

    def course(self):
        """The statuses after each run, until it is settled or has been looked for in vain; five minutes pass between two."""
        found = []
        while not found or found[-1] not in ("published", "failed") and len(found) < LONG:
            self.desk.run(self.publisher, self.target)
            found.append(self.desk.row(self.target).status)
            if self.desk.row(self.target).sending_at is not None:
                self.desk.move(self.target, sending_at="sending_at - interval '5 minutes'")
                self.net.advance(300)
        return found


@pytest.fixture
def shop(desk, request):
    module, connector, kind = request.param
    with module.start() as net:
        yield Shop(desk, module, connector, net, kind)


def on(module, connector, kind):
    return pytest.mark.parametrize("shop", [(module, connector, kind)], indirect=True, ids=[f"{connector.name} {kind}"])


@on(tiktok, TikTok, "video")
@pytest.mark.parametrize("fault, course", [
    ({}, ["publishing", "publishing", "publishing", "published"]),
    ({"drop_answer": True}, ["unconfirmed", "publishing", "publishing", "published"]),
    ({"drop_before": True}, ["unconfirmed", "scheduled", "publishing", "publishing", "publishing", "published"]),
])
def test_a_video_is_posted_once_whatever_gets_lost(shop, fault, course):
    if fault:
        shop.net.fault(tiktok.UPLOAD, **fault)
    assert shop.course() == course
    assert tiktok.public(shop.net) == [shop.desk.row(shop.target).platform_post_id]


@on(tiktok, TikTok, "image")
@pytest.mark.parametrize("fault", ["drop_answer", "drop_before"])
def test_photos_whose_answer_was_lost_are_never_sent_again(shop, fault):
    shop.net.fault(tiktok.PHOTO, **{fault: True})
    assert shop.course() == ["unconfirmed"] * LONG and len(shop.net.calls(tiktok.PHOTO)) == 1


@on(pinterest, Pinterest, "image")
@pytest.mark.parametrize("fault, course", [
    ({"drop_answer": True}, ["unconfirmed", "published"]), ({"drop_before": True}, ["unconfirmed", "failed"]),
])
def test_a_pin_is_found_or_surely_not_there(shop, fault, course):
    shop.net.fault(pinterest.PUBLISH, **fault)
    assert shop.course() == course and len(shop.net.calls(pinterest.PUBLISH)) == 1
    row = shop.desk.row(shop.target)
    assert (row.platform_post_id is None, row.error is None) == (("drop_before" in fault), ("drop_answer" in fault))


@on(pinterest, Pinterest, "video")
def test_a_video_pin_waits_for_its_video(shop):
    assert shop.course() == ["publishing", "publishing", "published"] and len(pinterest.public(shop.net)) == 1
