"""Cancels that arrive as their posts are due: each target is canceled or sent, never both, and the answer said which."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.service import Http, start_api
from tests.stage import stage      # a fixture
from tests.test_crash import PUBLISH, everything_public

POSTS = 300
GAP = 0.02                  # seconds between two posts
THREADS = 8
AROUND = (-0.06, 0.05)      # seconds from the due time to the request, which evens out what the way takes
AT_ONCE = 50

SPREAD = """
UPDATE targets SET due_at = at, next_at = at FROM (
    SELECT id, now() + interval '1 s' + %s * interval '1 s' * row_number() OVER (ORDER BY created_at) AS at FROM posts
) AS times WHERE times.id = post_id RETURNING post_id, extract(epoch FROM at)::float
"""
FOUND = """
SELECT post_id, position, targets.status, targets.platform, platform_id, posts.caption
FROM targets JOIN posts ON posts.id = post_id JOIN accounts ON accounts.id = account_id
"""


def race(stage, url, key, count, accounts=10, networks=tuple(PUBLISH)):
    """Writes `count` posts of two targets each and cancels each when it is due; returns the answers by post."""
    senders = {name: [stage.account(name)[0] for _ in range(accounts)] for name in networks}
    for number in range(count):
        turn, name = number // len(networks), networks[number % len(networks)]
        pair = [senders[name][turn % accounts], senders[name][(turn + 1) % accounts]]
        stage.desk.targets(pair, caption=f"race {number}", platform=name, at=datetime.now(UTC) + timedelta(days=1))
    due = sorted(set(stage.desk.sql(SPREAD, GAP)), key=lambda row: row[1])
    stage.desk.sql("NOTIFY posthorn_due")

    def cancel(start):
        http, answers = Http(url, key), {}
        for number in range(start, count, THREADS):
            post, at = due[number]
            low, high = AROUND
            time.sleep(max(0.0, at + low + (high - low) * (number * 7 % 100) / 100 - time.time()))
            answers[post] = http.delete(f"/v1/posts/{post}")
        return answers

    with ThreadPoolExecutor(THREADS) as pool:
        return {post: answer for answers in pool.map(cancel, range(THREADS)) for post, answer in answers.items()}


def outcomes(stage, answers):
    """How many targets were (said to be canceled, canceled in the end, public how often), once all are settled."""
    targets = [row[0] for row in stage.desk.sql("SELECT id FROM targets")]
    stage.desk.settled(targets, within=60, until=("published", "canceled"))
    public = everything_public(stage.networks)
    return Counter((said_to_be_canceled(answers[post], position), status == "canceled", len(public.get(tuple(where), ())))
                   for post, position, status, *where in stage.desk.sql(FOUND))


def said_to_be_canceled(answer, position):
    """What the answer said of one target."""
    if answer.status == 409:
        assert answer.code == "invalid_state"
        return False
    assert answer.status == 200, answer.raw
    return answer.data["targets"][position]["status"] == "canceled"


@pytest.fixture
def live(stage):
    """The address of an API beside a worker, and a key."""
    stage.clear()
    stage.living_worker()
    api, url = start_api(stage.environ)
    try:
        yield url, stage.key()
    finally:
        api.kill()


def test_each_target_is_canceled_or_sent_as_the_answer_said(stage, live):
    answers = race(stage, *live, POSTS)
    found = outcomes(stage, answers)
    assert set(found) == {(True, True, 0), (False, False, 1)} and found.total() == 2 * POSTS
    assert min(found.values()) > POSTS / 10


def test_parallel_requests_with_one_key_make_one_post(stage, live):
    url, key = live
    body, headers = stage.body("once"), {"Idempotency-Key": "one"}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda _: Http(url, key).post("/v1/posts", body, headers=headers), range(AT_ONCE)))
    assert Counter(answer.status for answer in answers if answer.headers.get("Idempotent-Replayed") is None)[202] == 1
    assert {answer.status for answer in answers} <= {202, 409}
    assert len({answer.data["id"] for answer in answers if answer.status == 202}) == 1
    assert stage.settle() == {("once", name): "published" for name in PUBLISH}
    assert stage.public_of("once") == {("once", name): 1 for name in PUBLISH}
