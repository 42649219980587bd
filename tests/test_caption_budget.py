"""A team's tokens for captions run out by the day, counted exactly however many ask at once."""

import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg2
import pytest

from storage import budgets
from storage.database import connection_parameters, database
from storage.models import Team, wire_time
from storage.retention import tidy
from tests.service import Http, Member, start_api
from tests.standins.chat import KEY, MODEL, ChatServer, Reply, completion

LIMIT = 100


@pytest.fixture
def new_team(connection):
    return Team.add(name="Bread & Co")


@pytest.fixture
def team(new_team):
    """A team whose captions are known to cost one token."""
    database.execute_sql("INSERT INTO caption_days (team_id, day, largest) VALUES (%s, current_date - 4, 1)", (new_team.id,))
    return new_team


def held(team, tokens=10, limit=LIMIT, seconds=60):
    return budgets.hold(team.id, limit=limit, tokens=tokens, seconds=seconds)


def used(team):
    """The tokens used on each of the team's days, and those that are held."""
    days = database.execute_sql("SELECT used FROM caption_days WHERE team_id = %s AND NOT (used = 0 AND largest = 1) "
                                "ORDER BY day", (team.id,)).fetchall()
    rest = database.execute_sql("SELECT coalesce(sum(tokens), 0) FROM caption_reservations WHERE team_id = %s",
                                (team.id,)).fetchone()
    return [count for count, in days], rest[0]


def test_what_is_held_is_settled_by_what_was_used(team):
    first, second = held(team, 10), held(team, 20)
    assert used(team) == ([0], 30)
    first.settle(7)
    assert used(team) == ([7], 20)
    second.settle(25)
    assert used(team) == ([32], 0)


def test_a_budget_is_used_to_its_end_and_then_refused_until_midnight(team):
    held(team, 90).settle(99)
    held(team, 90).settle(40)       # one token was left: the last caption goes beyond it
    with pytest.raises(budgets.UsedUp) as refusal:
        held(team)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert (refusal.value.resets_at, refusal.value.held, used(team)) == (midnight, False, ([139], 0))


def test_while_the_rest_is_held_nothing_more_is_given_out(team):
    first = held(team, LIMIT)
    with pytest.raises(budgets.UsedUp) as refusal:
        held(team)
    assert refusal.value.held
    first.settle(1)
    assert held(team).tokens == 10


def test_a_caption_whose_cost_nobody_knows_is_written_alone(new_team):
    first = held(new_team, 1)
    with pytest.raises(budgets.UsedUp) as refusal:
        held(new_team, 1)
    assert refusal.value.held
    first.settle(5)
    assert [held(new_team, 1).tokens for _ in range(3)] == [5, 5, 5]


def test_each_holds_what_the_dearest_of_the_last_seven_days_has_cost(team):
    held(team, 10).settle(30)
    held(team, 10).settle(20)
    assert (held(team, 10).tokens, used(team)) == (30, ([50], 30))
    with pytest.raises(budgets.UsedUp) as refusal:
        held(team, 10)      # 20 of 100 are left
    assert refusal.value.held


@pytest.mark.parametrize("days, tokens", [(6, 30), (8, 10)])
def test_a_cost_is_forgotten_after_seven_days(team, days, tokens):
    held(team).settle(30)
    database.execute_sql("UPDATE caption_days SET day = day - %s WHERE team_id = %s AND used > 0", (days, team.id))
    assert held(team, 10).tokens == tokens


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata", "America/New_York"])
def test_a_day_is_a_day_of_the_team(team, zone):
    Team.update(time_zone=zone).where(Team.id == team.id).execute()
    reservation = held(team, LIMIT)
    today = datetime.now(ZoneInfo(zone)).date()
    assert reservation.day == today
    with pytest.raises(budgets.UsedUp) as refusal:
        held(team)
    tomorrow = datetime.combine(today + timedelta(days=1), datetime.min.time(), ZoneInfo(zone))
    assert refusal.value.resets_at == tomorrow


def test_yesterday_counts_for_yesterday_alone(team):
    held(team, LIMIT).settle(LIMIT)
    late = database.execute_sql("UPDATE caption_days SET day = day - 1 WHERE team_id = %s AND used > 0 RETURNING day",
                                (team.id,)).fetchone()[0]
    assert held(team).tokens == LIMIT
    budgets.Reservation("capres_gone", team.id, late, 0).settle(5)
    assert used(team) == ([LIMIT + 5, 0], LIMIT)


def test_what_a_dead_process_held_counts_as_used_and_a_late_settling_corrects_it(team):
    dead = held(team, 60, seconds=-1)
    held(team, 10).settle(10)
    assert used(team) == ([70], 0)
    dead.settle(15)
    assert used(team) == ([25], 0)


def at_once(number, work):
    """Runs `work` on that many threads with a connection each; returns what each gave or raised."""
    gate, found = threading.Barrier(number), []

    def run():
        with database.connection_context():
            gate.wait()
            try:
                found.append(work())
            except budgets.UsedUp as refusal:
                found.append(refusal)

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_many_at_once_never_get_more_than_there_is_and_every_token_is_counted(team):
    found = at_once(16, lambda: held(team, 10))
    given = [one for one in found if isinstance(one, budgets.Reservation)]
    assert len(given) == 10 and used(team) == ([0], 100)
    waiting = iter(given)
    at_once(10, lambda: next(waiting).settle(3))
    assert used(team) == ([30], 0)
    at_once(12, lambda: held(team, 7, limit=10**6).settle(7))
    assert used(team) == ([30 + 84], 0)


def test_a_late_settling_and_a_new_caption_do_not_block_each_other(team):
    dead = [held(team, 5, limit=10**6, seconds=-1) for _ in range(6)]
    waiting = iter(dead)

    def both():
        held(team, 5, limit=10**6).settle(5)
        next(waiting).settle(2)

    at_once(6, both)
    assert used(team) == ([6 * 5 + 6 * 2], 0)


def test_no_team_uses_waits_for_or_is_measured_by_anothers(team, environ):
    other = Team.add(name="Cake & Co")
    held(other, 80).settle(80)
    held(other, 15, limit=1000, seconds=-1)     # of a process that has died, which only the other's next caption buries
    mine = held(team, 10)
    assert (used(team), used(other)) == (([0], 10), ([80], 80))     # the dearest is held, each one's own
    with closing(psycopg2.connect(**connection_parameters(environ["DATABASE_URL"]))) as busy, busy.cursor() as cursor:
        cursor.execute("SELECT FROM caption_days WHERE team_id = %s FOR UPDATE", (other.id,))
        with database.atomic():
            database.execute_sql("SET LOCAL lock_timeout = '2s'")
            mine.settle(3)
    assert (used(team), used(other)) == (([3], 0), ([80], 80))


def test_old_days_are_tidied_away(team):
    held(team, 10, seconds=-3 * 86_400)
    tidy()
    assert used(team) == ([0], 0)
    database.execute_sql("UPDATE caption_days SET day = day - 50 WHERE team_id = %s", (team.id,))
    tidy()
    assert used(team) == ([], 0)


@pytest.fixture(scope="module")
def live(environ):
    """An API of two processes with a model and a budget of 1,000 tokens a day."""
    with ChatServer() as model:
        settings = {"POSTHORN_CAPTION_URL": model.url, "POSTHORN_CAPTION_KEY": KEY, "POSTHORN_CAPTION_MODEL": MODEL,
                    "POSTHORN_CAPTION_DAILY_TOKENS": "1000", "POSTHORN_CAPTION_RATE_LIMIT": "100000",
                    "POSTHORN_CAPTION_TIMEOUT": "2"}
        process, url = start_api({**environ, **settings})
        yield url, model
        process.stop()


def test_a_team_that_used_up_its_budget_is_forbidden_until_tomorrow(live):
    url, model = live
    caller, other = Member(url), Member(url)
    model.says("A caption.", tokens=400)
    body = {"topic": "bread"}
    assert [caller.live.post("/v1/generate", body).status for _ in range(4)] == [200, 200, 200, 403]
    refused = caller.live.post("/v1/generate", body)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert (refused.code, refused.body["error"]["message"]) == (
        "forbidden", f"your team has used up its 1000 tokens for captions today; the next ones come at {wire_time(midnight)}")
    assert len(model.requests) == 3
    assert caller.test.post("/v1/generate", body).status == 200 and other.live.post("/v1/generate", body).status == 200


def test_a_budget_that_is_used_up_is_not_kept_under_an_idempotency_key(live):
    url, model = live
    caller, body, once = Member(url), {"topic": "bread"}, {"Idempotency-Key": "k"}
    model.says("A caption.", tokens=1000)
    assert caller.live.post("/v1/generate", body).status == 200
    assert caller.live.post("/v1/generate", body, headers=once).status == 403
    with database.connection_context():     # the next day
        database.execute_sql("UPDATE caption_days SET day = day - 1 WHERE team_id = %s", (caller.team.id,))
    assert caller.live.post("/v1/generate", body, headers=once).status == 200


def test_tokens_are_counted_for_failures_but_not_for_replays_and_refusals(live):
    url, model = live
    caller = Member(url)
    model.plans(Reply(raw=completion("", tokens=300)))
    assert caller.live.post("/v1/generate", {"topic": "bread"}).status == 502
    model.says("A caption.", tokens=100)
    for _ in range(3):
        assert caller.live.post("/v1/generate", {"topic": "bread"}, headers={"Idempotency-Key": "k"}).status == 200
    model.plans(Reply(401))
    assert caller.live.post("/v1/generate", {"topic": "bread"}).status == 502
    with database.connection_context():
        assert used(caller.team) == ([400], 0)


def ask_at_once(url, caller, number):
    """The answers to so many requests at the same time."""
    answers = []
    asking = [threading.Thread(target=lambda: answers.append(Http(url, caller.live.key).post("/v1/generate",
                                                                                             {"topic": "bread"})))
              for _ in range(number)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    return answers


def test_a_burst_of_dear_captions_does_not_overrun_the_budget_by_more_than_one(live):
    url, model = live
    caller = Member(url)
    model.says("A caption.", tokens=4000, delay=0.2)
    answers = ask_at_once(url, caller, 14)
    assert sorted({answer.status for answer in answers}) in ([200, 403], [200, 429], [200, 403, 429])
    with database.connection_context():
        assert used(caller.team) == ([4000], 0)


def test_what_many_ask_for_at_once_is_counted_exactly(live):
    url, model = live
    caller = Member(url)
    model.says("A caption.", tokens=10, delay=0.1)
    answers = ask_at_once(url, caller, 12)
    given = [answer for answer in answers if answer.status == 200]
    assert given and {answer.status for answer in answers} <= {200, 429}
    assert {answer.headers["Retry-After"] for answer in answers if answer.status == 429} <= {"5"}
    with database.connection_context():
        assert used(caller.team) == ([10 * len(given)], 0)
