"""Posts over the API in test mode: published, scheduled, read back, changed, canceled and tried again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta, timezone

import pytest

from storage.models import wire_time
from storage.posts import Attachment, Post, Target
from tests.media_samples import image
from tests.service import Member, as_left

TOMORROW = wire_time(datetime.now(UTC) + timedelta(days=1))
LATER = wire_time(datetime.now(UTC) + timedelta(days=2))
TEXT = {"caption": "Fresh bread", "targets": [{"platform": "bluesky"}, {"platform": "mastodon"}]}
SCHEDULED = {**TEXT, "scheduleAt": TOMORROW}
NETWORKS = ("bluesky", "mastodon", "threads")
ERROR = {"code": "unprocessable", "message": "the sandbox rejected the post", "retryable": False}


def made(post_id, **values):
    """A target as the network or the worker leaves it: what each status needs beside it."""
    needs = {"publishing": {"stage": "processing", "next_at": datetime.now(UTC) + timedelta(days=1)},
             "published": {"platform_post_id": "p1", "url": "https://sandbox.invalid/p1"},
             "failed": {"error": ERROR}, "unconfirmed": {"error": {**ERROR, "code": "external_service_error"}}}
    return {"id": f"target_{post_id}{values['position']}", "post_id": post_id, "platform": NETWORKS[values["position"]],
            "post_type": "text", "caption": "Fresh bread", "options": {}, "due_at": datetime.now(UTC),
            **needs.get(values["status"], {}), **values}


def post_with(member, *statuses, mode="test", **values):
    """A post of the member whose targets have these statuses already."""
    post = Post.add(team_id=member.team.id, mode=mode, user_id=member.user.id, caption="Fresh bread", **values)
    with as_left():
        for position, status in enumerate(statuses):
            Target.insert(**made(post.id, team_id=member.team.id, mode=mode, position=position, status=status)).execute()
    return post.id


def targets_of(post_id):
    return list(Target.select().where(Target.post_id == post_id).order_by(Target.position))


def ids(answer):
    return [post["id"] for post in answer.data["posts"]]


def test_publishing_answers_202_with_the_post_and_where_to_read_it(member, connection):
    answer = member.test.post("/v1/posts", SCHEDULED)
    post_id = answer.data["id"]
    assert (answer.status, answer.headers["Location"]) == (202, f"/v1/posts/{post_id}")
    expected = {"success": True, "data": {"id": post_id, "status": "scheduled", "targets": [
        {"platform": "bluesky", "status": "scheduled"}, {"platform": "mastodon", "status": "scheduled"}]}}
    assert answer.body == expected
    assert (read := member.test.get(answer.headers["Location"])).status == 200
    assert read.body == expected
    assert member.rows() == {"Post": 1, "Target": 2, "Attachment": 0, "Idea": 0, "Media": 0}


def test_reading_twice_gives_the_same_bytes(member, connection):
    path = f"/v1/posts/{post_with(member, 'published', 'failed')}"
    assert member.test.get(path).raw == member.test.get(path).raw


def test_now_means_now_and_later_is_kept_to_the_microsecond(member, connection):
    before = datetime.now(UTC) - timedelta(seconds=1)
    now = targets_of(member.test.post("/v1/posts", TEXT).data["id"])
    assert all(before < target.due_at < datetime.now(UTC) + timedelta(seconds=1) for target in now)
    at = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=123456)
    elsewhere = at.astimezone(timezone(timedelta(hours=5, minutes=45)))
    later = targets_of(member.test.post("/v1/posts", {**TEXT, "scheduleAt": elsewhere.isoformat()}).data["id"])
    assert {target.due_at for target in later} == {at}


@pytest.mark.parametrize("clock, utc", [("T18:00:00+01:00", time(17)), ("t18:00:00z", time(18)), ("T18:00:00-00:00", time(18)),
                                        ("T18:00:00.5-03:30", time(21, 30, 0, 500_000)),
                                        ("T18:00:00.123456789Z", time(18, 0, 0, 123_456))])
def test_every_spelling_of_a_time_is_understood(member, connection, clock, utc):
    day = datetime.now(UTC).date() + timedelta(days=30)
    answer = member.test.post("/v1/posts", {**TEXT, "scheduleAt": f"{day}{clock}"})
    assert answer.status == 202
    assert {target.due_at for target in targets_of(answer.data["id"])} == {datetime.combine(day, utc, UTC)}


@pytest.mark.parametrize("ago, ahead, rule", [(290, 0, None), (310, 0, "past"), (0, 366 * 86400 - 60, None),
                                              (0, 366 * 86400 + 60, "too_far")],
                         ids=["5 minutes ago", "longer ago", "366 days ahead", "further ahead"])
def test_the_window_of_schedule_at(member, ago, ahead, rule):
    at = wire_time(datetime.now(UTC) + timedelta(seconds=ahead - ago))
    answer = member.test.post("/v1/posts", {**TEXT, "scheduleAt": at})
    assert answer.status == (202 if rule is None else 422)
    assert rule is None or (answer.code, answer.rules) == ("unprocessable", [("/scheduleAt", rule)])
    assert member.rows()["Post"] == (1 if rule is None else 0)


@pytest.mark.parametrize("value", ["2026-12-01T09:00:00", "2026-12-01", "2026-12-31T23:59:60Z", "0000-01-01T00:00:00Z",
                                   "9999-12-31T23:59:59Z", "2026-02-30T09:00:00Z", "2026-12-01T09:00:00+25:00",
                                   "2026-12-01 09:00:00Z",
                                   "2026-12-01T09:00:00+01:00\n", "tomorrow", "", 1767225600, None, ["2026-12-01T09:00:00Z"]],
                         ids=lambda value: repr(value)[:30])
def test_what_is_no_time_is_refused(member, value):
    for path in ("/v1/posts", "/v1/posts/validate"):
        answer = member.test.post(path, {**TEXT, "scheduleAt": value})
        if answer.status == 200:        # validate finds what only a calendar knows
            assert [problem["path"] for problem in answer.data["problems"]] == ["/scheduleAt"]
        else:
            assert (answer.status, answer.code) == (422, "unprocessable")
            assert {place for place, _ in answer.rules} == {"/scheduleAt"}
    assert not any(member.rows().values())


def test_a_time_just_past_is_published_now(member, worker):
    answer = member.test.post("/v1/posts", {**TEXT, "scheduleAt": wire_time(datetime.now(UTC) - timedelta(minutes=4))})
    assert member.test.settled(answer.data["id"])["status"] == "published"


def test_a_scheduled_post_goes_out_at_its_time_and_not_before(member, worker):
    at = datetime.now(UTC) + timedelta(seconds=2)
    post_id = member.test.post("/v1/posts", {**TEXT, "scheduleAt": at.isoformat()}).data["id"]
    post = member.test.get(f"/v1/posts/{post_id}").data
    while post["status"] == "scheduled":
        post = member.test.get(f"/v1/posts/{post_id}").data
    assert at <= datetime.now(UTC) < at + timedelta(seconds=5)
    assert member.test.settled(post_id)["status"] == "published"


@pytest.mark.parametrize("statuses, status", [
    ("scheduled scheduled", "scheduled"), ("scheduled published", "scheduled"), ("scheduled failed canceled", "scheduled"),
    ("publishing", "publishing"), ("publishing scheduled", "publishing"), ("published publishing failed", "publishing"),
    ("published published", "published"), ("failed", "failed"), ("failed failed", "failed"), ("canceled canceled", "canceled"),
    ("unconfirmed", "unconfirmed"), ("unconfirmed unconfirmed", "unconfirmed"),
    ("published failed", "partially_published"), ("published canceled", "partially_published"),
    ("published unconfirmed", "partially_published"), ("failed unconfirmed", "failed"), ("canceled failed", "failed"),
    ("unconfirmed canceled", "failed")])
def test_the_status_of_a_post_follows_from_its_targets(member, connection, statuses, status):
    others = {"scheduled", "publishing", "published", "partially_published", "failed", "unconfirmed", "canceled"} - {status}
    post_id = post_with(member, *statuses.split())
    read = member.test.get(f"/v1/posts/{post_id}").data
    assert (read["status"], [target["status"] for target in read["targets"]]) == (status, statuses.split())
    assert ids(member.test.get(f"/v1/posts?status={status}")) == [post_id]
    assert [other for other in others if ids(member.test.get(f"/v1/posts?status={other}"))] == []


def test_a_target_shows_what_belongs_to_its_status(member, connection):
    read = member.test.get(f"/v1/posts/{post_with(member, 'published', 'failed', 'scheduled')}")
    assert read.data["targets"] == [
        {"platform": "bluesky", "status": "published", "postId": "p1", "url": "https://sandbox.invalid/p1"},
        {"platform": "mastodon", "status": "failed", "error": ERROR},
        {"platform": "threads", "status": "scheduled"}]


def test_lists_are_paged_newest_first(member, connection):
    made = [post_with(member, "published") for _ in range(7)]
    first = member.test.get("/v1/posts?limit=3")
    assert (ids(first), list(first.body["meta"])) == (made[:-4:-1], ["nextCursor"])
    post_with(member, "failed")         # what comes meanwhile moves no page
    second = member.test.get(f"/v1/posts?limit=3&cursor={first.body['meta']['nextCursor']}")
    third = member.test.get(f"/v1/posts?limit=3&cursor={second.body['meta']['nextCursor']}")
    assert ids(first) + ids(second) + ids(third) == made[::-1]
    assert third.body["meta"] == {}
    one = member.test.get(f"/v1/posts/{made[0]}").data
    assert third.body == {"success": True, "data": {"posts": [one]}, "meta": {}}
    assert len(ids(member.test.get("/v1/posts"))) == 8


def test_posts_of_one_instant_are_all_found(member, connection):
    at = datetime.now(UTC)
    made = {post_with(member, "published", created_at=at) for _ in range(5)}
    found, cursor = [], ""
    while cursor is not None:
        page = member.test.get(f"/v1/posts?limit=1{cursor}")
        found += ids(page)
        cursor = f"&cursor={page.body['meta']['nextCursor']}" if page.body["meta"] else None
    assert (set(found), len(found)) == (made, 5)


def test_a_full_last_page_has_no_next_one(member, connection):
    made = [post_with(member, "published") for _ in range(2)]
    assert member.test.get("/v1/posts?limit=2").body["meta"] == {}
    assert len(ids(member.test.get("/v1/posts?limit=100"))) == len(made)


def test_from_and_to_bound_the_time_at_which_a_post_is_due(member, connection):
    day = datetime(2026, 6, 1, tzinfo=UTC)
    older, newer, now = (post_with(member, "scheduled", schedule_at=at) for at in (day, day + timedelta(days=1), None))
    cases = {"from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z": [older],
             "from=2026-06-02T02:00:00%2B02:00&to=2026-06-03T00:00:00Z": [newer],
             "to=2026-06-02T00:00:00Z": [older], "from=2026-06-01T00:00:01Z&to=2026-06-02T00:00:00.001Z": [newer],
             "from=2026-06-02T00:00:00Z&status=scheduled": [now, newer],
             "from=2026-06-01T00:00:00Z&to=2026-06-01T00:00:00Z": [],
             "to=2026-06-01T00:00:00.001-23:59": [older], "to=2026-06-02T00:00:00.001%2B23:59": [older],
             "to=0001-01-01T00:00:00-23:59": [], "from=9998-12-31T23:59:59%2B23:59": [],
             f"from={wire_time(datetime.now(UTC) - timedelta(hours=1))}&to={TOMORROW}": [now]}
    assert {query: ids(member.test.get(f"/v1/posts?{query}")) for query in cases} == cases


def test_a_list_has_the_posts_of_the_client_alone(member, connection):
    own, of_client = post_with(member, "published"), post_with(member, "published", client_id=member.client.id)
    assert ids(member.test.get("/v1/posts")) == [of_client, own]
    assert ids(member.test.get(f"/v1/posts?clientId={member.client.id}")) == [of_client]
    assert ids(member.http(client_id=member.client.id).get("/v1/posts")) == [of_client]


@pytest.mark.parametrize("query, details", [
    ("limit=0", [("limit", "minimum")]), ("limit=101", [("limit", "maximum")]), ("limit=ten", [("limit", "type")]),
    ("limit=1.5", [("limit", "type")]), ("limit=", [("limit", "type")]), ("limit=1&limit=2", [("limit", "repeated")]),
    ("status=pending", [("status", "enum")]), ("status=", [("status", "enum")]), ("from=2026-06-01", [("from", "minLength")]),
    ("from=2026-06-01T00:00:60Z", [("from", "format")]), ("from=9999-06-01T00:00:00Z", [("from", "date_time")]),
    ("from=2026-06-02T00:00:00Z&to=2026-06-01T00:00:00Z", [("from", "order")]),
    ("to=2026-06-01T00:00:00+02:00", [("to", "pattern")]),
    ("to=0001-01-01T00:00:00%2B01:00", [("to", "date_time")]), ("cursor=", [("cursor", "minLength")]),
    ("cursor=abc", [("cursor", "cursor")]), ("cursor=%C3%A9", [("cursor", "pattern")]),
    ("cursor=MjAyNi0wMS0wMVQwMDowMDowMCswMDowMCAA", [("cursor", "cursor")]),
    ("cursor=MjAyNi0wMS0wMSB4", [("cursor", "cursor")]),
    ("clientId=a%20b", [("clientId", "pattern")]), ("page=2", [("page", "unknown_parameter")]),
    ("limit=0&page=2", [("page", "unknown_parameter"), ("limit", "minimum")])])
def test_a_query_that_breaks_a_rule_is_refused(member, query, details):
    answer = member.test.get(f"/v1/posts?{query}")
    assert (answer.status, answer.code) == (422, "unprocessable")
    assert set(details) <= set(answer.rules) and {place for place, _ in answer.rules} == {place for place, _ in details}


@pytest.mark.parametrize("change", [{"caption": "Fresh cake"}, {"scheduleAt": LATER}, {"caption": ""}],
                         ids=["caption", "time", "no caption"])
def test_an_edit_changes_what_it_names_and_nothing_else(member, connection, change):
    picture = member.test.uploaded(image("PNG"), "image/png")
    post_id = member.test.post("/v1/posts", {**SCHEDULED, "media": [picture]}).data["id"]
    before = Post.get_by_id(post_id)
    answer = member.test.patch(f"/v1/posts/{post_id}", change)
    assert (answer.status, answer.body) == (200, member.test.get(f"/v1/posts/{post_id}").body)
    after = Post.get_by_id(post_id)
    wanted = {"caption": before.caption, "scheduleAt": wire_time(before.schedule_at), **change}
    assert {"caption": after.caption, "scheduleAt": wire_time(after.schedule_at)} == wanted
    assert [(wire_time(target.due_at), target.status, len(target.files())) for target in targets_of(post_id)] == \
        [(wanted["scheduleAt"], "scheduled", 1)] * 2


def test_an_edit_of_the_caption_leaves_targets_with_their_own(member, connection):
    targets = [{"platform": "bluesky"}, {"platform": "mastodon", "options": {"caption": "Own words"}},
               {"platform": "facebook", "options": {"caption": "Fresh bread"}}]
    post_id = member.test.post("/v1/posts", {**SCHEDULED, "targets": targets}).data["id"]
    assert [target.caption for target in targets_of(post_id)] == ["Fresh bread", "Own words", "Fresh bread"]
    assert member.test.patch(f"/v1/posts/{post_id}", {"caption": "Fresh cake"}).status == 200
    assert [target.caption for target in targets_of(post_id)] == ["Fresh cake", "Own words", "Fresh bread"]


def test_an_edit_of_media_leaves_targets_with_their_own(member, connection):
    urls = [member.test.uploaded(image("PNG", compress_level=level), "image/png") for level in (1, 5, 9)]
    targets = [{"platform": "bluesky"}, {"platform": "mastodon", "options": {"media": [urls[1]]}}]
    post_id = member.test.post("/v1/posts", {"caption": "x", "targets": targets, "scheduleAt": TOMORROW}).data["id"]
    assert [target.post_type for target in targets_of(post_id)] == ["text", "image"]
    assert member.test.patch(f"/v1/posts/{post_id}", {"media": [urls[2], urls[0]]}).status == 200
    keys = [[file.key for file in target.files()] for target in targets_of(post_id)]
    assert [[key in url for key, url in zip(some, wanted, strict=True)]
            for some, wanted in zip(keys, ([urls[2], urls[0]], [urls[1]]), strict=True)] == [[True, True], [True]]
    assert [target.post_type for target in targets_of(post_id)] == ["image", "image"]
    assert member.test.patch(f"/v1/posts/{post_id}", {"media": []}).status == 200
    assert [len(target.files()) for target in targets_of(post_id)] == [0, 1]
    assert member.rows()["Attachment"] == 1


@pytest.mark.parametrize("change, details", [
    ({}, [("", "minProperties")]), ({"caption": "x" * 301}, [("/caption", "caption_length")]),
    ({"caption": None}, [("/caption", "type")]),
    ({"scheduleAt": "2020-01-01T00:00:00Z"}, [("/scheduleAt", "past")]), ({"scheduleAt": None}, [("/scheduleAt", "type")]),
    ({"targets": [{"platform": "bluesky"}]}, [("", "additionalProperties")]),
    ({"clientId": "c"}, [("", "additionalProperties")]),
    ({"media": ["https://media.example.net/a.png"]}, [("/media/0", "media_unknown")]),
    ({"caption": "\0", "scheduleAt": "soon"}, [("/caption", "pattern"), ("/scheduleAt", "minLength")])],
                         ids=lambda value: str(value)[:40])
def test_an_edit_that_breaks_a_rule_changes_nothing(member, connection, change, details):
    post_id = member.test.post("/v1/posts", SCHEDULED).data["id"]
    before = (Post.get_by_id(post_id).__data__, [target.__data__ for target in targets_of(post_id)])
    answer = member.test.patch(f"/v1/posts/{post_id}", change)
    assert (answer.status, answer.code) == (422, "unprocessable")
    assert set(details) <= set(answer.rules)
    assert (Post.get_by_id(post_id).__data__, [target.__data__ for target in targets_of(post_id)]) == before


@pytest.mark.parametrize("statuses", ["published", "scheduled publishing", "failed", "canceled", "unconfirmed"])
def test_only_a_post_that_is_scheduled_throughout_can_be_edited(member, connection, statuses):
    post_id = post_with(member, *statuses.split(), schedule_at=datetime.now(UTC))
    answer = member.test.patch(f"/v1/posts/{post_id}", {"caption": "Fresh cake", "scheduleAt": TOMORROW})
    assert (answer.status, answer.code) == (409, "invalid_state")
    assert Post.get_by_id(post_id).caption == "Fresh bread"


def test_two_edits_at_once_lose_nothing_of_each_other(member, connection):
    post_id = member.test.post("/v1/posts", SCHEDULED).data["id"]

    def edit(change):
        http, statuses = member.http(), []
        while statuses.count(200) < 5:
            statuses.append(http.patch(f"/v1/posts/{post_id}", change).status)
        return set(statuses)

    with ThreadPoolExecutor() as pool:
        statuses = set.union(*pool.map(edit, ({"caption": "Fresh cake"}, {"scheduleAt": LATER})))
    assert statuses <= {200, 409}
    assert {(target.caption, wire_time(target.due_at)) for target in targets_of(post_id)} == {("Fresh cake", LATER)}


def test_an_edit_of_the_time_to_now_publishes(member, worker):
    post_id = member.test.post("/v1/posts", SCHEDULED).data["id"]
    assert member.test.patch(f"/v1/posts/{post_id}", {"scheduleAt": wire_time(datetime.now(UTC)),
                                                      "caption": "Now"}).status == 200
    assert member.test.settled(post_id)["status"] == "published"


@pytest.mark.parametrize("statuses, after", [("scheduled scheduled", "canceled canceled"),
                                             ("scheduled published", "canceled published"),
                                             ("publishing scheduled", "publishing canceled")])
def test_canceling_takes_back_what_has_not_started(member, connection, statuses, after):
    post_id = post_with(member, *statuses.split())
    answer = member.test.delete(f"/v1/posts/{post_id}")
    assert (answer.status, answer.body) == (200, member.test.get(f"/v1/posts/{post_id}").body)
    assert [target["status"] for target in answer.data["targets"]] == after.split()
    again = member.test.delete(f"/v1/posts/{post_id}")
    assert (again.status, again.code) == (409, "invalid_state")


def test_a_canceled_post_is_never_published(member, worker):
    at = datetime.now(UTC) + timedelta(seconds=2)
    post_id = member.test.post("/v1/posts", {**TEXT, "scheduleAt": at.isoformat()}).data["id"]
    assert member.test.delete(f"/v1/posts/{post_id}").data["status"] == "canceled"
    witness = member.test.post("/v1/posts", {**TEXT, "scheduleAt": (at + timedelta(seconds=0.5)).isoformat()}).data["id"]
    member.test.settled(witness, until=("published",))
    assert member.test.get(f"/v1/posts/{post_id}").data["status"] == "canceled"


@pytest.mark.parametrize("statuses, body, after", [
    ("failed published", None, "scheduled published"), ("failed unconfirmed", {}, "scheduled unconfirmed"),
    ("failed failed canceled", {"includeUnconfirmed": False}, "scheduled scheduled canceled"),
    ("unconfirmed published", {"includeUnconfirmed": True}, "scheduled published")])
def test_a_retry_takes_failed_targets_and_unconfirmed_ones_when_asked(member, worker, connection, statuses, body, after):
    post_id = post_with(member, *statuses.split())
    answer = member.test.request("POST", f"/v1/posts/{post_id}/retry", body)
    assert (answer.status, [target["status"] for target in answer.data["targets"]]) == (202, after.split())
    assert all(target.keys() == {"platform", "status"} for target in answer.data["targets"] if target["status"] == "scheduled")
    settled = member.test.settled(post_id)
    assert [target["status"] for target in settled["targets"]] == after.replace("scheduled", "published").split()


@pytest.mark.parametrize("statuses, body", [("published", None), ("scheduled", None), ("canceled", None), ("unconfirmed", None),
                                            ("unconfirmed published", {"includeUnconfirmed": False}),
                                            ("publishing", {"includeUnconfirmed": True})])
def test_a_retry_of_nothing_is_409(member, connection, statuses, body):
    post_id = post_with(member, *statuses.split(), schedule_at=datetime.now(UTC))
    before = [target.__data__ for target in targets_of(post_id)]
    answer = member.test.request("POST", f"/v1/posts/{post_id}/retry", body)
    assert (answer.status, answer.code) == (409, "invalid_state")
    assert [target.__data__ for target in targets_of(post_id)] == before or statuses == "scheduled"


@pytest.mark.parametrize("body", [{"includeUnconfirmed": "true"}, {"includeUnconfirmed": None}, {"all": True}, [], None])
def test_a_retry_body_that_breaks_a_rule_is_refused(member, connection, body):
    post_id = post_with(member, "failed")
    raw = b"null" if body is None else None
    answer = member.test.request("POST", f"/v1/posts/{post_id}/retry", body, body=raw,
                                 headers={"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (422, "unprocessable")
    assert targets_of(post_id)[0].status == "failed"


def test_what_is_not_the_callers_looks_like_what_does_not_exist(api_url, member, connection):
    stranger = Member(api_url)
    stranger.key(client_id=stranger.client.id)
    post_id = post_with(member, "scheduled", "failed", schedule_at=datetime.now(UTC) + timedelta(days=1))
    foreign = [stranger.test, stranger.live, member.live, member.http(client_id=member.client.id)]
    for http in foreign:
        for method, path, body in (("GET", "", None), ("PATCH", "", {"caption": "x"}), ("DELETE", "", None),
                                   ("POST", "/retry", {})):
            headers = {"X-Request-Id": "same"}
            hidden = http.request(method, f"/v1/posts/{post_id}{path}", body, headers=headers)
            unknown = http.request(method, f"/v1/posts/post_0000000000000000000000{path}", body, headers=headers)
            assert (hidden.status, hidden.code, hidden.raw) == (404, "not_found", unknown.raw)
        assert ids(http.get("/v1/posts")) == []
    assert [target.status for target in targets_of(post_id)] == ["scheduled", "failed"]
    assert Attachment.select().where(Attachment.team_id == stranger.team.id).count() == 0
