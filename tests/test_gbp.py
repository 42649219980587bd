"""Posts of Google Business Profile, by a stand-in as strict as the real one."""

import json
from dataclasses import replace

import pytest

from platforms.base import Absent, Content, Processing, Published
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import prepared, published
from tests.networks.gbp import OPEN_DAY, PHOTO, WEEKLY, cafe, gbp, net, repeated  # noqa: F401
from tests.standins.gbp import CREATE, ERRORS, LIST, READ

CONTENT = Content("Fresh bread from 7", post_type="update", key="k-1")
NAME = "accounts/111/locations/222/localPosts/1"
ADDRESS = "https://local.google.com/place?id=1&use=posts&lpsid=1"
LONG_AGO, STEPS = 700.0, 100


def finished(gbp, cafe, outcome):
    """What a post becomes that is processed, and the seconds waited for it."""
    waits = []
    while isinstance(outcome, Processing) and len(waits) < STEPS:
        waits.append(outcome.after)
        outcome = gbp.check(cafe, json.loads(json.dumps(outcome.receipt)))
    return outcome, waits


def sent(net):
    return json.loads(net.calls(CREATE)[-1].body)


# What a post becomes.

def test_update(net, gbp, cafe):
    outcome, waits = finished(gbp, cafe, published(gbp, cafe, CONTENT))
    assert outcome == Published(NAME, ADDRESS) and waits == [10, 10, 10]
    assert sent(net) == {"topicType": "STANDARD", "summary": "Fresh bread from 7"} and len(net.posts) == 1


def test_update_with_all_there_is(net, gbp, cafe):
    options = {"cta": {"actionType": "BOOK", "url": "https://a.example.com"}, "language": "pt-BR"}
    published(gbp, cafe, replace(CONTENT, media=(PHOTO,), options=options))
    assert sent(net) == {
        "topicType": "STANDARD", "summary": "Fresh bread from 7", "languageCode": "pt-BR",
        "callToAction": {"actionType": "BOOK", "url": "https://a.example.com"},
        "media": [{"mediaFormat": "PHOTO", "sourceUrl": "https://media.example.com/a.jpg"}]}


def test_a_call_has_no_address(net, gbp, cafe):
    published(gbp, cafe, replace(CONTENT, options={"cta": {"actionType": "CALL"}}))
    assert sent(net)["callToAction"] == {"actionType": "CALL"}


def test_event(net, gbp, cafe):
    published(gbp, cafe, replace(CONTENT, post_type=None, options={"event": OPEN_DAY}))
    day = {"year": 2026, "month": 12, "day": 1}
    assert sent(net) == {"topicType": "EVENT", "summary": "Fresh bread from 7", "event": {"title": "Open day", "schedule": {
        "startDate": day, "startTime": {"hours": 9, "minutes": 0}, "endDate": day, "endTime": {"hours": 17, "minutes": 30}}}}


@pytest.mark.parametrize("repeat, info", [
    ({"frequency": "daily"}, {"dailyPattern": {}}),
    (WEEKLY, {"weeklyPattern": {"daysOfWeek": ["FRIDAY", "SATURDAY"]}, "seriesEndTime": "2027-03-31T23:59:59+01:00"}),
    ({"frequency": "monthly", "dayOfMonth": 31}, {"monthlyPattern": {"dayOfMonth": 31}}),
    ({"frequency": "monthly", "weekOfMonth": "LAST"}, {"monthlyPattern": {"dayOfWeekOccurrence": "LAST"}}),
])
def test_events_that_repeat(net, gbp, cafe, repeat, info):
    published(gbp, cafe, repeated(**repeat))
    assert sent(net)["event"]["recurrenceInfo"] == info


@pytest.mark.parametrize("repeat, expected", [
    ({"frequency": "weekly"}, [("daysOfWeek", "required")]),
    ({"frequency": "daily", "daysOfWeek": ["MONDAY"], "weekOfMonth": "LAST"}, [
        ("daysOfWeek", "option"), ("weekOfMonth", "option")]),
    ({"frequency": "monthly"}, [("dayOfMonth", "required")]),
    ({"frequency": "monthly", "dayOfMonth": 1, "weekOfMonth": "LAST"}, [("dayOfMonth", "required")]),
    ({"frequency": "monthly", "dayOfMonth": 1, "daysOfWeek": ["MONDAY"]}, [("daysOfWeek", "option")]),
    ({"frequency": "daily", "until": "2026-11-29T23:59:59Z"}, [("until", "event_end")]),
    ({"frequency": "daily", "until": "2026-11-30T23:59:59-10:00"}, []),
])
def test_repeats_that_do_not_fit_their_frequency(gbp, repeat, expected):
    problems = gbp.problems(repeated(**repeat))
    assert [(problem.path, problem.rule) for problem in problems] == [
        (f"options/event/repeat/{path}", rule) for path, rule in expected]


def test_offer(net, gbp, cafe):
    offer = {"couponCode": "BREAD", "redeemUrl": "https://a.example.com/x", "terms": "Once each."}
    published(gbp, cafe, replace(CONTENT, post_type="offer", options={"event": OPEN_DAY, "offer": offer}))
    assert sent(net)["topicType"] == "OFFER" and sent(net)["event"]["title"] == "Open day"
    assert sent(net)["offer"] == {"couponCode": "BREAD", "redeemOnlineUrl": "https://a.example.com/x",
                                  "termsConditions": "Once each."}


def test_a_post_that_is_shown_at_once(net, gbp, cafe):
    net.first = "LIVE"
    assert published(gbp, cafe, CONTENT) == Published(NAME, ADDRESS)


def test_a_post_without_an_address_is_found_on_the_map(net, gbp, cafe):
    net.first, net.links = "LIVE", False
    assert published(gbp, cafe, CONTENT).url == "https://maps.google.com/maps?cid=222"


def test_a_long_look_is_asked_after_ever_more_rarely(net, gbp, cafe):
    net.processing_polls = 22
    _, waits = finished(gbp, cafe, published(gbp, cafe, CONTENT))
    assert waits == [10] * 3 + [30] * 4 + [300] * 12 + [3600] * 4


def test_a_post_that_repeats_is_shown_as_such(net, gbp, cafe):
    net.outcome = "RECURRING"
    outcome, _ = finished(gbp, cafe, published(gbp, cafe, repeated(**WEEKLY)))
    assert outcome.id == NAME and len(net.posts) == 1


@pytest.mark.parametrize("state", ["SCHEDULED", "LOCAL_POST_STATE_UNSPECIFIED", "NEW_STATE"])
def test_other_states_are_asked_after(net, gbp, cafe, state):
    net.first = state
    assert isinstance(published(gbp, cafe, CONTENT), Processing)


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "later"])
def test_a_post_that_breaks_a_rule(net, gbp, cafe, at_once):
    net.first, net.outcome = ("REJECTED" if at_once else "PROCESSING"), "REJECTED"
    with pytest.raises(Rejected) as caught:
        finished(gbp, cafe, published(gbp, cafe, CONTENT))
    assert (caught.value.rule, caught.value.platform_code) == ("policy", "REJECTED") and net.posts == []


def test_a_post_that_is_gone_before_it_was_shown(net, gbp, cafe):
    outcome = published(gbp, cafe, CONTENT)
    net.made.clear()
    with pytest.raises(Rejected):
        gbp.check(cafe, outcome.receipt)


@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"status": 503, "body": ""}, {"status": 200, "body": "<html>"}])
def test_asking_after_a_post_may_fail(net, gbp, cafe, fault):
    outcome = published(gbp, cafe, CONTENT)
    net.fault(READ, **fault)
    if fault.get("status") == 200:
        assert gbp.check(cafe, outcome.receipt).receipt["post"] == NAME
    else:
        with pytest.raises(Unavailable):
            gbp.check(cafe, outcome.receipt)
    assert finished(gbp, cafe, gbp.check(cafe, outcome.receipt))[0] == Published(NAME, ADDRESS)


# At most once.

@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 503, "body": {"error": "busy"}}, False), ({"status": 500, "body": "", "acts": True}, True),
    ({"status": 200, "body": "<html>", "acts": True}, True), ({"status": 200, "body": {"state": "LIVE"}, "acts": True}, True),
    ({"status": 200, "body": {"name": "../../x", "state": "LIVE"}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "503", "500 after acting", "garbage after acting", "no name", "no usable name"])
def test_a_post_in_doubt_is_looked_for(net, gbp, cafe, fault, there):
    receipt = prepared(gbp, cafe, CONTENT)
    net.fault(CREATE, **fault)
    with pytest.raises(Unconfirmed):
        gbp.publish(cafe, CONTENT, receipt)
    found = gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), receipt)
    if there:
        assert found == Processing({"post": NAME}, 1)
        assert finished(gbp, cafe, found)[0] == Published(NAME, ADDRESS)
    else:
        assert found == Absent()
    assert not gbp.find_retries and len(net.made) == there


def test_a_list_may_be_late(net, gbp, cafe):
    assert gbp.find(cafe, replace(CONTENT, sent_ago=150.0), {}) is None
    assert gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {}) == Absent()


def test_a_rejected_post_is_found_as_such(net, gbp, cafe):
    net.first = "REJECTED"
    net.fault(CREATE, drop_answer=True)
    with pytest.raises(Unconfirmed):
        gbp.publish(cafe, CONTENT, {})
    with pytest.raises(Rejected):
        finished(gbp, cafe, gbp.find(cafe, replace(CONTENT, sent_ago=30.0), {}))


def test_posts_that_only_resemble_ours_are_not_taken_for_it(net, gbp, cafe):
    gbp.publish(cafe, replace(CONTENT, caption="Fresh bread from 8"), {})
    gbp.publish(cafe, replace(CONTENT, post_type="event", options={"event": OPEN_DAY}), {})
    assert gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {}) == Absent()


OFFER = replace(CONTENT, post_type="offer", options={"event": OPEN_DAY, "offer": {"couponCode": "BREAD"}})
CALL = replace(CONTENT, options={"cta": {"actionType": "CALL"}})


@pytest.mark.parametrize("ours, change", [
    (OFFER, {"event": {**OPEN_DAY, "start": "2026-12-01T00:00"}}), (OFFER, {"event": {**OPEN_DAY, "end": "2026-12-08T17:30"}}),
    (OFFER, {"event": {**OPEN_DAY, "title": "Open night"}}), (OFFER, {"offer": {"couponCode": "CAKE"}}), (CALL, {"cta": None}),
    (CALL, {"cta": {"actionType": "BOOK", "url": "https://a.example.com"}}),
], ids=["start", "end", "title", "coupon", "no button", "button"])
def test_posts_of_one_text_are_told_apart_by_what_else_they_say(net, gbp, cafe, ours, change):
    gbp.publish(cafe, replace(ours, options={**ours.options, **change}), {})
    assert gbp.find(cafe, replace(ours, sent_ago=LONG_AGO), {}) == Absent()
    gbp.publish(cafe, ours, {})
    second = f"{NAME[:-1]}2"
    if "event" in ours.options:     # of a number that is zero Google may say nothing
        del net.made[second]["post"]["event"]["schedule"]["startTime"]["minutes"]
    assert gbp.find(cafe, replace(ours, sent_ago=LONG_AGO), {}) == Processing({"post": second}, 1)


def test_one_of_several_posts_that_are_alike_cannot_be_told(net, gbp, cafe):
    for _ in range(2):
        gbp.publish(cafe, OFFER, {})
    assert gbp.find(cafe, replace(OFFER, sent_ago=LONG_AGO), {}) is None


def test_posts_from_before_the_sending_are_not_taken_for_it(net, gbp, cafe):
    gbp.publish(cafe, CONTENT, {})
    net.advance(1000)
    assert gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {}) == Absent()
    assert gbp.find(cafe, replace(CONTENT, sent_ago=990.0), {}) == Processing({"post": NAME}, 1)


@pytest.mark.parametrize("created, is_ours", [("2099-01-01T00:00:00.123456789Z", True), ("2099-01-01T00:00:00Z", True),
                                              ("2020-01-01T00:00:00Z", False), ("yesterday", False)])
def test_times_as_google_writes_them(net, gbp, cafe, created, is_ours):
    gbp.publish(cafe, CONTENT, {})
    net.made[NAME]["post"]["createTime"] = created
    assert isinstance(gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {}), Processing if is_ours else Absent)


def test_a_post_is_found_although_google_stripped_its_text(net, gbp, cafe):
    content = replace(CONTENT, caption=" Fresh  bread\r\nfrom 7\n", sent_ago=30.0)
    gbp.publish(cafe, content, {})
    net.made[NAME]["post"]["summary"] = "Fresh bread\nfrom 7"
    assert gbp.find(cafe, content, {}) == Processing({"post": NAME}, 1)


def test_all_pages_are_looked_through(net, gbp, cafe):
    net.page = 1
    for caption in ("a", "b", "Fresh bread from 7", "d"):
        gbp.publish(cafe, replace(CONTENT, caption=caption), {})
    found = gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {})
    assert found.receipt["post"].endswith("/3") and len(net.calls(LIST)) == 4
    assert gbp.find(cafe, replace(CONTENT, caption="e", sent_ago=LONG_AGO), {}) == Absent() and len(net.calls(LIST)) == 8


def test_a_list_without_an_end_cannot_tell(net, gbp, cafe):
    net.fault(LIST, status=200, body={"nextPageToken": "1"}, times=None)
    assert gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {}) is None and len(net.calls(LIST)) == 50


def test_an_account_that_may_not_list_cannot_tell(net, gbp, cafe):
    for row in ("permission_denied", "not_found"):
        net.fail(row, endpoint=LIST)
        assert gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {}) is None


@pytest.mark.parametrize("body", ["<html>", [], {"localPosts": [{"summary": "Fresh bread from 7"}]}])
def test_a_list_of_nonsense_says_nothing(net, gbp, cafe, body):
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        gbp.find(cafe, replace(CONTENT, sent_ago=LONG_AGO), {})


# Errors.

@pytest.mark.parametrize("row, expected, rule, code", [
    ("unauthenticated", Disconnected, None, "authError"), ("scope_missing", PermissionMissing, None, "insufficientPermissions"),
    ("api_off", Rejected, "app", "SERVICE_DISABLED"), ("api_off_of_old", Rejected, "app", "accessNotConfigured"),
    ("permission_denied", PermissionMissing, None, "PERMISSION_DENIED"), ("not_found", Rejected, None, "NOT_FOUND"),
    ("wrong_path", Rejected, None, "404"), ("invalid", Rejected, None, "2"),
    ("unverified", Rejected, "location", "1301"), ("chain", Rejected, "location", "LOCATION_DISABLED_FOR_LOCAL_POST_API"),
    ("unverified_by_name", Rejected, "location", "OPERATION_UNSUPPORTED_UNDER_ACCOUNT_CONDITION"),
    ("exhausted", Unavailable, None, "RESOURCE_EXHAUSTED"), ("rate_limited", Unavailable, None, "RATE_LIMIT_EXCEEDED"),
    ("internal", Unconfirmed, None, "INTERNAL"), ("unavailable", Unconfirmed, None, "UNAVAILABLE"),
    ("deadline", Unconfirmed, None, "DEADLINE_EXCEEDED"),
])
def test_errors_of_publishing(net, gbp, cafe, row, expected, rule, code):
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        gbp.publish(cafe, CONTENT, {})
    error = caught.value
    assert (type(error), error.rule, error.platform_code) == (expected, rule, code) and not net.made
    assert "canary" not in repr(vars(error))
    if expected is Unavailable:
        assert (error.code, error.retry_after) == ("rate_limited", {"exhausted": 60, "rate_limited": 30}[row])


def test_a_refusal_says_what_is_wrong(net, gbp, cafe):
    net.fail("invalid")
    with pytest.raises(Rejected) as caught:
        gbp.publish(cafe, CONTENT, {})
    assert caught.value.platform_message == "Topic type is required."


@pytest.mark.parametrize("row", ["photo_fetch", "photo_upload", "photo_number"])
def test_a_photo_that_google_cannot_fetch_is_tried_once_more(net, gbp, cafe, row):
    net.fail(row, times=2)
    with pytest.raises(Unavailable) as caught:
        gbp.publish(cafe, CONTENT, {})
    again = caught.value.receipt
    with pytest.raises(Rejected) as caught:
        gbp.publish(cafe, CONTENT, again)
    assert caught.value.rule == "media" and caught.value.platform_message == ERRORS[row]["body"]["error"]["details"][0][
        "errorDetails"][0]["message"]
    assert isinstance(gbp.publish(cafe, CONTENT, again), Processing)


def test_a_profile_is_edited_ten_times_a_minute_at_most(net, gbp, cafe):
    for _ in range(10):
        gbp.publish(cafe, CONTENT, {})
    with pytest.raises(Unavailable) as caught:
        gbp.publish(cafe, CONTENT, {})
    assert caught.value.retry_after == 60
    net.advance(60)
    assert gbp.publish(cafe, CONTENT, {})


@pytest.mark.parametrize("details", [7, [7], [{"errorDetails": 7}], [{"errorDetails": [7]}],
                                     [{"metadata": {"quota_limit_value": 0}}]])
def test_errors_of_nonsense(net, gbp, cafe, details):
    net.fault(CREATE, status=400, body={"error": {"status": "INVALID_ARGUMENT", "message": "no", "details": details}})
    with pytest.raises(Rejected) as caught:
        gbp.publish(cafe, CONTENT, {})
    assert (caught.value.platform_code, caught.value.platform_message) == ("INVALID_ARGUMENT", "no")


def test_no_credential_is_in_an_error(net, gbp, cafe):
    token = cafe.credentials["accessToken"]
    details = [{"errorDetails": [{"code": token, "message": token}]}]
    net.fault(CREATE, status=400, body={"error": {"message": "x", "details": details}})
    with pytest.raises(Rejected) as caught:
        gbp.publish(cafe, CONTENT, {})
    assert "canary" not in repr(vars(caught.value)) and caught.value.platform_message == "[secret]"
