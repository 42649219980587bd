"""Idempotency-Key: one request, however often it is sent."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from time import sleep

import pytest

from handlers.idempotency import Once
from handlers.responses import Answer
from storage.database import database
from storage.models import Client, Media, wire_time
from storage.posts import Post, Target
from storage.secrets import Vault
from tests.media_samples import image
from tests.service import Http, Member, as_left

TOMORROW = wire_time(datetime.now(UTC) + timedelta(days=1))
POST = {"caption": "Fresh bread", "targets": [{"platform": "bluesky"}], "scheduleAt": TOMORROW}
IDEA = {"content": "A loaf is a slow conversation.", "sourceUrl": "https://example.net/on-bread"}
TOO_LONG = {**POST, "caption": "b" * 301}
# Everything that takes the header: (path, body, status).
OPERATIONS = {"publish": ("/v1/posts", POST, 202), "validate": ("/v1/posts/validate", TOO_LONG, 200),
              "idea": ("/v1/ideas", IDEA, 201),
              "upload": ("/v1/media/upload-url", {"contentType": "image/png", "fileSize": 9}, 201),
              "generate": ("/v1/generate", {"topic": "x"}, 200)}
# Of an answer, all headers but these are part of what is replayed.
OWN = {"x-request-id", "date", "idempotent-replayed", "ratelimit-remaining", "ratelimit-reset"}


def once(http, path, body, key="key-1", **headers):
    return http.post(path, body, headers={"Idempotency-Key": key, **headers})


def replayed(answer):
    return answer.headers.get("Idempotent-Replayed") == "true"


def is_replay(again, first):
    """Whether `again` is `first`, byte for byte, under an id of its own."""
    def fixed(answer):
        return answer.status, answer.raw, {name: value for name, value in answer.headers.items() if name.lower() not in OWN}

    return (replayed(again) and not replayed(first) and fixed(again) == fixed(first)
            and again.headers["X-Request-Id"] != first.headers["X-Request-Id"])


def is_running(answer):
    """Whether the answer says that the first request has not ended."""
    return (answer.status, answer.code, answer.headers.get("Retry-After")) == (409, "invalid_state", "1")


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_answer_is_replayed_byte_for_byte(member, name):
    path, body, status = OPERATIONS[name]
    first = once(member.test, path, body)
    before = member.rows()
    assert first.status == status
    for http in (member.test, member.test, member.http(), member.colleague()):
        assert is_replay(once(http, path, body), first)
    assert member.rows() == before
    fresh = once(member.test, path, body, "key-2")
    assert (fresh.status, replayed(fresh)) == (status, False)


def test_a_retry_is_replayed_with_and_without_a_body(member, connection):
    post = Post.add(team_id=member.team.id, mode="test", user_id=member.user.id)
    error = {"code": "unprocessable", "message": "x", "retryable": False}
    row = {"id": f"t{post.id}", "team_id": member.team.id, "mode": "test", "post_id": post.id, "position": 0, "platform": "gbp",
           "post_type": "update", "caption": "x", "options": {}, "status": "failed", "due_at": datetime.now(UTC), "error": error}
    with as_left():
        Target.insert(**row).execute()
    headers = {"Idempotency-Key": "k"}
    first, again = (member.test.request("POST", f"/v1/posts/{post.id}/retry", headers=headers) for _ in range(2))
    assert first.status == 202 and is_replay(again, first)
    assert member.test.post(f"/v1/posts/{post.id}/retry", {}, headers=headers).code == "invalid_state"


def test_a_link_is_fetched_once(fetcher, links):
    links.answers["/file"] = (200, {}, image("PNG"))
    first, again = (once(fetcher.test, "/v1/media/from-url", {"url": f"{links.url}/file"}) for _ in range(2))
    assert first.status == 201 and is_replay(again, first)
    assert (len(links.asked), fetcher.rows()["Media"]) == (1, 1)


def test_the_location_is_replayed_too_while_reading_shows_the_present(member, worker):
    body = {name: POST[name] for name in ("caption", "targets")}
    first = once(member.test, "/v1/posts", body)
    member.test.settled(first.data["id"])
    again = once(member.test, "/v1/posts", body)
    assert is_replay(again, first) and again.data["status"] == "scheduled"
    assert member.test.get(again.headers["Location"]).data["status"] == "published"


@pytest.mark.parametrize("other", [{**POST, "caption": "Fresh cake"}, {**POST, "clientId": "client_1"}, {**POST, "media": []},
                                   {name: POST[name] for name in ("caption", "targets")}],
                         ids=["value", "more", "more but empty", "less"])
def test_another_body_under_the_same_key_is_409(member, other):
    first = once(member.test, "/v1/posts", POST)
    answer = once(member.test, "/v1/posts", other)
    assert (answer.status, answer.code, replayed(answer)) == (409, "invalid_state", False)
    assert "Retry-After" not in answer.headers
    assert is_replay(once(member.test, "/v1/posts", POST), first)
    assert member.rows()["Post"] == 1


@pytest.mark.parametrize("raw", [b'{"fileSize":1000,"contentType":"image/png"}',
                                 b'{ "contentType": "image\\/png",\n"fileSize": 1000.0 }',
                                 b'{"contentType": "\\u0069mage/png", "fileSize": 1e3}'],
                         ids=["order", "blanks and a float", "escapes"])
def test_bodies_are_compared_as_values(member, raw):
    first = once(member.test, "/v1/media/upload-url", {"contentType": "image/png", "fileSize": 1000})
    headers = {"Idempotency-Key": "key-1", "Content-Type": "application/json; charset=utf-8"}
    assert is_replay(member.test.request("POST", "/v1/media/upload-url", body=raw, headers=headers), first)


def test_a_key_belongs_to_team_mode_and_path(api_url, member):
    first = once(member.test, "/v1/ideas", IDEA)
    others = [once(member.live, "/v1/ideas", IDEA), once(Member(api_url).test, "/v1/ideas", IDEA),
              once(member.test, "/v1/ideas", IDEA, "KEY-1"), once(member.test, "/v1/posts", POST),
              once(member.test, "/v1/posts/validate", POST)]
    assert [answer.status for answer in others] == [201, 201, 201, 202, 200]
    assert not any(replayed(answer) for answer in others)
    assert len({answer.data.get("id") for answer in (first, *others)}) == 6


def test_the_same_key_at_the_same_moment_is_each_ones_own(api_url, member, environ, connection):
    other, vault = Member(api_url), Vault((environ["POSTHORN_SECRET_KEYS"],))
    callers = [member.caller(), member.caller("live"), other.caller(), other.caller("live")]

    def use(caller):
        return Once(caller, "POST /v1/ideas", "key-moment", IDEA, kept=timedelta(days=1), patience=timedelta(minutes=1),
                    vault=vault)

    with connection.atomic():       # in which it is one moment for the database
        uses = [use(caller) for caller in callers]
        assert [one.begin() for one in uses] == [None] * 4
        for number, one in enumerate(uses[1:]):
            one.keep(Answer(201, b"%d" % number))
        uses[0].forget()
    assert [use(caller).begin().body for caller in callers[1:]] == [b"0", b"1", b"2"]
    assert use(callers[0]).begin() is None


def test_credentials_of_two_clients_do_not_answer_for_each_other(member, connection):
    second = Client.add(team_id=member.team.id, name="Second")
    first = once(member.http(client_id=member.client.id), "/v1/posts", POST)
    answer = once(member.http(client_id=second.id), "/v1/posts", POST)
    assert (first.status, answer.status, answer.code) == (202, 409, "invalid_state")
    assert is_replay(once(member.http(client_id=member.client.id), "/v1/posts", POST), first)


def test_a_request_that_still_runs_is_409(fetcher, links):
    links.answers["/file"] = (200, {}, image("PNG"))
    links.open.clear()
    body = {"url": f"{links.url}/file"}
    with ThreadPoolExecutor() as pool:
        running = pool.submit(once, fetcher.test, "/v1/media/from-url", body)
        while not links.asked:
            sleep(0.01)
        meanwhile = [once(fetcher.http(), "/v1/media/from-url", body) for _ in range(2)]
        other = once(fetcher.http(), "/v1/media/from-url", {"url": "http://example.invalid"})
        links.open.set()
        first = running.result()
    assert all(is_running(answer) for answer in meanwhile)
    assert (other.status, other.code, "Retry-After" in other.headers) == (409, "invalid_state", False)
    assert first.status == 201 and is_replay(once(fetcher.test, "/v1/media/from-url", body), first)
    assert (len(links.asked), fetcher.rows()["Media"]) == (1, 1)


def ready(member):
    """How many files the team may use; the claim of one that came too late is removed by the sweep."""
    return Media.select().where(Media.team_id == member.team.id, Media.state == "ready").count()


def test_a_request_that_was_taken_for_dead_changes_nothing(fetcher, links, connection):
    links.answers["/file"] = (200, {}, image("PNG"))
    links.open.clear()
    body = {"url": f"{links.url}/file"}
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(once, fetcher.test, "/v1/media/from-url", body)
        while not links.asked:
            sleep(0.01)
        database.execute_sql("UPDATE idempotency_keys SET started_at = now() - interval '3 minutes' WHERE team_id = %s",
                             (fetcher.team.id,))
        quick = pool.submit(once, fetcher.http(), "/v1/media/from-url", body)
        while len(links.asked) < 2:
            sleep(0.01)
        links.open.set()
        answers = [slow.result(), quick.result()]
    assert [answer.status for answer in answers] == [409, 201] and answers[0].code == "invalid_state"
    assert is_replay(once(fetcher.test, "/v1/media/from-url", body), answers[1]) and ready(fetcher) == 1


@pytest.mark.parametrize("path, body, status, model", [("/v1/posts", POST, 202, "Post"), ("/v1/ideas", IDEA, 201, "Idea")])
def test_twenty_at_once_do_the_work_once(member, path, body, status, model):
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: once(Http(member.url, member.test.key), path, body), range(20)))
    [first] = [answer for answer in answers if answer.status == status and not replayed(answer)]
    others = [answer for answer in answers if answer is not first]
    assert all(is_replay(answer, first) or is_running(answer) for answer in others)
    assert member.rows()[model] == 1
    assert is_replay(once(member.test, path, body), first)


@pytest.mark.parametrize("path, body, status", [
    ("/v1/posts", TOO_LONG, 422), ("/v1/posts", {**POST, "clientId": "client_0"}, 404), ("/v1/posts/post_0/retry", {}, 404),
    ("/v1/ideas", {**IDEA, "clientId": "client_0"}, 404), ("/v1/media/from-url", {"url": "http://127.0.0.1/x"}, 422),
    ("/v1/media/upload-url", {"contentType": "image/png", "fileSize": 2**40}, 413)],
    ids=["broken rule", "no client", "no post", "no client of an idea", "link", "too large"])
def test_a_refusal_of_the_work_is_kept(member, path, body, status):
    first = once(member.test, path, body, **{"X-Request-Id": "first"})
    again = once(member.test, path, body, **{"X-Request-Id": "second"})
    assert (first.status, again.headers["X-Request-Id"], again.body["meta"]["requestId"]) == (status, "second", "first")
    assert is_replay(again, first)
    assert not any(member.rows().values())


def test_a_conflict_is_kept_even_when_it_has_passed(member, connection):
    Client.update(status="suspended").where(Client.id == member.client.id).execute()
    body = {**IDEA, "clientId": member.client.id}
    first = once(member.test, "/v1/ideas", body)
    Client.update(status="active").where(Client.id == member.client.id).execute()
    assert first.status == 409 and is_replay(once(member.test, "/v1/ideas", body), first)
    assert once(member.test, "/v1/ideas", body, "key-2").status == 201


def test_what_comes_before_the_work_is_not_kept(member):
    key, json_type = {"Idempotency-Key": "key-1"}, {"Content-Type": "application/json"}
    refused = [once(Http(member.url), "/v1/ideas", IDEA), once(member.http(scopes=[]), "/v1/ideas", IDEA),
               once(member.test, "/v1/ideas", {**IDEA, "content": ""}),
               member.test.request("POST", "/v1/ideas", body=b"{}", headers=key),
               member.test.request("POST", "/v1/ideas", body=b"{", headers={**key, **json_type})]
    assert [answer.status for answer in refused] == [401, 403, 422, 415, 400]
    answer = once(member.test, "/v1/ideas", IDEA)
    assert (answer.status, replayed(answer)) == (201, False)


def test_a_failure_elsewhere_is_not_kept(member, fetcher, links):
    """A live key has no caption model here, and a link may work the next time."""
    for _ in range(2):
        answer = once(member.live, "/v1/generate", {"topic": "x"})
        assert (answer.status, answer.code, replayed(answer)) == (502, "external_service_error", False)
    body = {"url": f"{links.url}/file"}
    failed = once(fetcher.test, "/v1/media/from-url", body)
    links.answers["/file"] = (200, {}, image("PNG"))
    answer = once(fetcher.test, "/v1/media/from-url", body)
    assert [(one.status, replayed(one)) for one in (failed, answer)] == [(502, False), (201, False)]


@pytest.mark.parametrize("age, answered, fresh", [("23 hours 59 minutes", True, False), ("24 hours 1 minute", True, True),
                                                  ("25 seconds", False, False), ("31 seconds", False, True)],
                         ids=["kept for a day", "forgotten after it", "perhaps still running", "died"])
def test_how_long_a_key_is_remembered(member, connection, age, answered, fresh):
    first = once(member.test, "/v1/ideas", IDEA)
    database.execute_sql("UPDATE idempotency_keys SET started_at = now() - %s::interval WHERE team_id = %s",
                         (age, member.team.id))
    if not answered:
        database.execute_sql("UPDATE idempotency_keys SET status = NULL, body = NULL, headers = NULL WHERE team_id = %s",
                             (member.team.id,))
    again = once(member.test, "/v1/ideas", IDEA)
    if fresh:
        assert (again.status, replayed(again), again.data["id"] != first.data["id"]) == (201, False, True)
    else:
        assert is_replay(again, first) if answered else (again.status, again.headers["Retry-After"]) == (409, "1")
    assert member.rows()["Idea"] == (2 if fresh else 1)


@pytest.mark.parametrize("hours, replays", [(47, True), (49, False)])
def test_a_setting_has_keys_remembered_for_longer(member, connection, hours, replays):
    def use():
        return Once(member.caller(), "POST /v1/ideas", "key-1", IDEA, kept=timedelta(hours=48), patience=timedelta(seconds=30),
                    vault=None)

    first = use()
    assert first.begin() is None
    first.keep(Answer(201, b"{}"))
    database.execute_sql("UPDATE idempotency_keys SET started_at = now() - %s WHERE team_id = %s",
                         (timedelta(hours=hours), member.team.id))
    assert (use().begin() is not None) == replays


@pytest.mark.parametrize("key", ["x", "0", "a_B-9.z:0", "A" * 255, "__proto__", "..", ":"])
def test_keys_that_may_be_used(member, key):
    first = once(member.test, "/v1/ideas", IDEA, key)
    assert first.status == 201 and is_replay(once(member.test, "/v1/ideas", IDEA, key), first)


@pytest.mark.parametrize("key", ["", " ", "A" * 256, "a b", "a/b", "a,b", '"a"', "\xe9", "a;b", "a\tb"],
                         ids=lambda key: repr(key)[:12])
def test_keys_that_may_not_be_used(member, key):
    answer = once(member.test, "/v1/ideas", IDEA, key)
    assert (answer.status, answer.code, {path for path, _ in answer.rules}) == (422, "unprocessable", {"Idempotency-Key"})
    assert not any(member.rows().values())


def test_other_methods_know_no_key(member):
    idea = member.test.post("/v1/ideas", IDEA).data
    headers = {"Idempotency-Key": "not a valid key"}
    for content in ("first", "second"):
        answer = member.test.patch(f"/v1/ideas/{idea['id']}", {"content": content}, headers=headers)
        assert (answer.status, answer.data["content"], replayed(answer)) == (200, content, False)
    assert member.test.get("/v1/posts", headers=headers).status == 200


def test_a_replay_counts_against_the_rate_limit(member):
    answers = [once(member.test, "/v1/generate", {"topic": "x"}) for _ in range(3)]
    left = [(answer.headers["RateLimit-Remaining"], replayed(answer)) for answer in answers]
    assert left == [("29", False), ("28", True), ("27", True)]
