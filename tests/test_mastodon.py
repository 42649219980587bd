"""Posts on Mastodon, by an instance as strict as a real one."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from platforms.base import Absent, Content, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.mastodon import Mastodon
from tests.live import account, followed, image, made_public, prepared, published, tried, video
from tests.networks.mastodon import TOKEN, ann, mastodon, net  # fixtures

POST, UPLOAD, READ_MEDIA = "POST /api/v1/statuses", "POST /api/v2/media", "GET /api/v1/media/:id"
POLL = {"options": ["yes", "no"], "expiresIn": 3600}
LIST = "GET /api/v1/accounts/:id/statuses"


# What a post becomes.

def test_text(net, mastodon, ann):
    result = published(mastodon, ann, Content("hi", key="k-1"))
    post = net.posts[0]
    assert result == Published(post["id"], post["url"])
    assert (post["text"], post["idempotency_key"], post["visibility"], post["sensitive"]) == ("hi", "k-1", "public", False)


def test_text_with_link_mention_and_hashtag(net, mastodon, ann):
    caption = "Grüße 👋🏽 an @ann und @bob@b.example.com, siehe https://example.com/a #neu"
    published(mastodon, ann, Content(caption, key="k-1"))
    assert net.posts[0]["text"] == caption


def test_options(net, mastodon, ann):
    options = {"visibility": "unlisted", "spoilerText": "cw", "sensitive": True, "language": "de", "quotePolicy": "nobody"}
    published(mastodon, ann, Content("hi", options=options, key="k-1"))
    post = net.posts[0]
    assert [post[name] for name in ("visibility", "spoiler_text", "sensitive", "language")] == ["unlisted", "cw", True, "de"]
    assert json.loads(net.calls(POST)[0].body)["quote_approval_policy"] == "nobody"


def test_images(net, mastodon, ann):
    options = {"altTexts": ["zwölf", ""], "focalPoints": [{"x": 0.5, "y": -1}]}
    published(mastodon, ann, Content("hi", media=(image(1), image(2), image(3)), options=options, key="k-1"))
    files = [one.part for one in net.media.values()]
    assert [(part.filename, part.media_type, part.data[-1]) for part in files] == [
        ("1.png", "image/png", 1), ("2.png", "image/png", 2), ("3.png", "image/png", 3)]
    shown = net.posts[0]["media_attachments"]
    assert [one["description"] for one in shown] == ["zwölf", None, None]
    assert [one["meta"] for one in shown] == [{"focus": {"x": 0.5, "y": -1.0}}, {}, {}]
    assert [one["id"] for one in shown] == list(net.media) and not net.calls(READ_MEDIA)


def test_video_is_waited_for(net, mastodon, ann):
    content = Content("hi", media=(video(),), options={"altTexts": ["a horn"]}, key="k-1")
    steps = list(mastodon.prepare(ann, content, {}))
    assert sum(isinstance(step, Waiting) for step in steps) == 2
    assert mastodon.publish(ann, content, steps[-1]).id == net.posts[0]["id"]
    assert [request.status for request in net.calls(READ_MEDIA)] == [206, 206, 200]
    assert net.posts[0]["media_attachments"][0]["description"] == "a horn"


@pytest.mark.parametrize("turned", [False, True], ids=["video first", "image first"])
def test_an_image_beside_a_video_is_its_cover(net, mastodon, ann, turned):
    media = (image(5), video()) if turned else (video(), image(5))
    published(mastodon, ann, Content("hi", media=media, options={"altTexts": ["a", "b"]}, key="k-1"))
    [film] = net.media.values()
    assert (film.kind, film.description, film.thumbnail.media_type, film.thumbnail.data[-1]) == (
        "video", "b" if turned else "a", "image/png", 5)
    assert [one["id"] for one in net.posts[0]["media_attachments"]] == [film.id] and len(net.calls(UPLOAD)) == 1


def test_an_answer_and_its_thread(net, mastodon, ann):
    other = net.add_status(net.add_user("bob"), "Who bakes rye?")
    content = Content("We do", options={"inReplyToId": other["id"], "thread": ["And wheat"]}, key="k-1")
    followed(mastodon, ann, content, made_public(mastodon, ann, content))
    assert [post["in_reply_to_id"] for post in net.posts] == [None, other["id"], net.posts[1]["id"]]


def test_an_answer_to_nothing_is_refused(mastodon, ann):
    with pytest.raises(Rejected) as caught:
        published(mastodon, ann, Content("hi", options={"inReplyToId": "12"}, key="k-1"))
    assert "reply to" in caught.value.platform_message


def test_a_quote_is_of_the_first_part_of_a_thread_alone(net, mastodon, ann):
    other = net.add_status(net.add_user("bob"), "Who bakes rye?")
    content = Content("We do", options={"quotedStatusId": other["id"], "thread": ["And wheat"]}, key="k-1")
    followed(mastodon, ann, content, made_public(mastodon, ann, content))
    assert [bool(post["quote"]) for post in net.posts] == [False, True, False]
    assert net.posts[1]["quote"]["quoted_status"]["id"] == other["id"]


def test_a_content_warning_counts_with_each_part_of_a_thread(net, mastodon, ann):
    content = Content("hi", options={"spoilerText": "x" * 100, "thread": ["a" * 400, "a" * 401]}, key="k-1")
    assert [(one.path, one.rule) for one in mastodon.problems(content, ann)] == [("options/thread/1", "thread_text_length")]
    fitting = replace(content, options={**content.options, "thread": ["a" * 400]})
    followed(mastodon, ann, fitting, made_public(mastodon, ann, fitting))
    assert len(net.posts) == 2


def test_an_instance_that_knows_no_quotes_would_drop_one_without_a_word(net, mastodon):
    net.api_version = 6
    bob = account(mastodon.connect({"host": net.url, "accessToken": TOKEN}))
    content = Content("hi", options={"quotedStatusId": "12"})
    assert [(one.path, one.rule) for one in mastodon.problems(content, bob)] == [("options/quotedStatusId", "quote")]
    assert mastodon.problems(content) == []


def test_poll(net, mastodon, ann):
    content = Content("?", post_type="poll", options={"poll": {**POLL, "multiple": True, "hideTotals": True}}, key="k-1")
    published(mastodon, ann, content)
    poll = net.posts[0]["poll"]
    assert ([one["title"] for one in poll["options"]], poll["multiple"]) == (["yes", "no"], True)
    sent = json.loads(net.calls(POST)[0].body)["poll"]
    assert sent == {"options": ["yes", "no"], "expires_in": 3600, "multiple": True, "hide_totals": True}


# Exactly once.

@pytest.mark.parametrize("media", [(), (image(),)], ids=["text", "image"])
@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 503, "body": {"error": "busy"}}, False), ({"status": 500, "body": "", "acts": True}, True),
    ({"status": 200, "body": "<html>", "acts": True}, True), ({"status": 200, "body": {"id": "1"}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "503", "500 after acting", "garbage after acting", "no address"])
def test_a_post_in_doubt_is_found_out_and_may_be_sent_again(net, mastodon, ann, media, fault, there):
    content = Content("hi ", media=media, options={"spoilerText": "cw"}, key="k-1")
    receipt = prepared(mastodon, ann, content)
    net.fault(POST, **fault)
    with pytest.raises(Unconfirmed):
        mastodon.publish(ann, content, receipt)
    found = mastodon.find(ann, content, receipt)
    assert found == (Published(net.posts[0]["id"], net.posts[0]["url"]) if there else Absent())
    net.advance(mastodon.dedupes_for.total_seconds())
    again = mastodon.publish(ann, content, receipt)
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


def test_the_promise_to_dedupe_ends_before_the_networks_own():
    assert Mastodon.dedupes_for == timedelta(minutes=50)


def test_statuses_that_only_resemble_ours_are_not_taken_for_it(net, mastodon, ann):
    published(mastodon, ann, Content("hi", options={"spoilerText": "cw"}, key="k-1"))
    published(mastodon, ann, Content("hi there", key="k-2"))
    published(mastodon, ann, Content("hi", media=(image(),), key="k-3"))
    for content in (Content("hi", key="k-4"), Content("hi", media=(image(),), key="k-4")):
        assert mastodon.find(ann, content, prepared(mastodon, ann, content)) == Absent()


@pytest.mark.parametrize("sent_ago, found", [(30, False), (400, True)])
def test_statuses_from_before_the_first_sending_are_not_taken_for_it(net, mastodon, ann, sent_ago, found):
    published(mastodon, ann, Content("hi", key="k-1"))
    content = Content("hi", key="k-2", sent_ago=sent_ago)
    receipt = prepared(mastodon, ann, content)
    net.advance(300)
    assert isinstance(mastodon.find(ann, content, receipt), Published) == found


def test_a_status_is_found_by_the_clock_of_its_instance(net, mastodon, ann):
    net.advance(5 * 3600)
    content = Content("hi", key="k-1", sent_ago=1)
    receipt = prepared(mastodon, ann, content)
    assert mastodon.publish(ann, content, receipt) == mastodon.find(ann, content, receipt)
    net.advance(600)
    assert mastodon.find(ann, content, receipt) == Absent()


def test_a_status_is_found_although_the_instance_stripped_its_texts(net, mastodon, ann):
    content = Content(" hi\n", options={"spoilerText": "cw "}, key="k-1")
    receipt = prepared(mastodon, ann, content)
    result = mastodon.publish(ann, content, receipt)
    net.posts[0] |= {"text": "hi", "spoiler_text": "cw"}
    assert mastodon.find(ann, content, receipt) == result


def test_answers_and_quotes_are_told_from_other_statuses_of_the_same_text(net, mastodon, ann):
    other = net.add_status(net.add_user("bob"), "Who?")
    contents = [Content("We", options=options, key=f"k-{number}") for number, options in enumerate(
        ({}, {"inReplyToId": other["id"]}, {"quotedStatusId": other["id"]}))]
    for content in contents:
        receipt = prepared(mastodon, ann, content)
        assert mastodon.find(ann, content, receipt) == Absent()
        result = mastodon.publish(ann, content, receipt)
        assert mastodon.find(ann, content, receipt) == result
    net.posts[-1] |= {"text": "RE: https://b.example/1\n\nWe", "quote": {"state": "pending", "quoted_status": None}}
    assert mastodon.find(ann, contents[2], {"media": []}).id == net.posts[-1]["id"]
    assert mastodon.find(ann, replace(contents[2], caption="They"), {"media": []}) == Absent()


def test_a_private_status_is_found(net, mastodon, ann):
    content = Content("hi", options={"visibility": "private"}, key="k-1")
    receipt = prepared(mastodon, ann, content)
    assert mastodon.publish(ann, content, receipt) == mastodon.find(ann, content, receipt)


def test_a_page_that_is_full_proves_nothing(net, mastodon, ann):
    for number in range(40):
        mastodon.publish(ann, Content(f"{number}", key=f"k-{number}"), {"media": []})
    assert mastodon.find(ann, Content("hi", key="k"), {"media": []}) is None


def test_a_token_that_may_not_read_cannot_tell(net, mastodon):
    net.add_user("bob", "token-bob", scopes="read:accounts write:statuses write:media")
    bob = account(mastodon.connect({"host": net.url, "accessToken": "token-bob"}))
    receipt = prepared(mastodon, bob, Content("hi", key="k-1"))
    assert mastodon.find(bob, Content("hi", key="k-1"), receipt) is None


@pytest.mark.parametrize("body", [{}, "<html>", [{"created_at": 7}], [7]])
def test_a_list_of_nonsense_says_nothing(net, mastodon, ann, body):
    receipt = prepared(mastodon, ann, Content("hi", key="k-1"))
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        mastodon.find(ann, Content("hi", key="k-1"), receipt)


def test_what_was_never_started_was_never_sent(mastodon, ann):
    assert mastodon.find(ann, Content("hi"), {}) == Absent()


def test_a_finished_preparation_asks_for_nothing(net, mastodon, ann):
    content = Content("hi", media=(video(),), key="k-1")
    receipt = prepared(mastodon, ann, content)
    seen = len(net.requests)
    assert list(mastodon.prepare(ann, content, receipt)) == [] and len(net.requests) == seen


def test_a_preparation_goes_on_where_it_stopped(net, mastodon, ann):
    content = Content("hi", media=(image(1), image(2)), key="k-1")
    steps = mastodon.prepare(ann, content, {})
    receipt = [next(steps), next(steps)][-1]
    net.fault(UPLOAD, status=503)
    with pytest.raises(Unavailable):
        next(steps)
    mastodon.publish(ann, content, prepared(mastodon, ann, content, receipt))
    assert len(net.media) == 2 and len(net.posts) == 1


# Media that the instance lost, or has not ready.

def test_media_that_got_lost_are_uploaded_again(net, mastodon, ann):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(mastodon, ann, content)
    net.media.clear()
    with pytest.raises(Unavailable) as caught:
        mastodon.publish(ann, content, receipt)
    assert caught.value.receipt == {**receipt, "media": []}
    renewed = prepared(mastodon, ann, content, caught.value.receipt)
    assert mastodon.publish(ann, content, renewed) and len(net.posts) == 1


def test_media_that_are_gone_because_the_post_is_there(net, mastodon, ann):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(mastodon, ann, content)
    first = mastodon.publish(ann, content, receipt)
    net.advance(3700)       # the key is forgotten
    assert mastodon.publish(ann, replace(content, sent_ago=3700), receipt) == first and len(net.posts) == 1


def test_media_that_are_gone_and_nobody_can_tell_why(net, mastodon, ann):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(mastodon, ann, content)
    net.media.clear()
    net.fault(LIST, status=403, body={"error": "no"})
    with pytest.raises(Unconfirmed):
        mastodon.publish(ann, content, receipt)


def test_media_that_get_lost_while_they_are_processed(net, mastodon, ann):
    content = Content("hi", media=(video(),), key="k-1")
    net.fault(READ_MEDIA, status=404, body={"error": "Record not found"})
    with pytest.raises(Unavailable) as caught:
        prepared(mastodon, ann, content)
    assert caught.value.receipt["media"] == []


def test_media_that_are_not_ready_after_all(net, mastodon, ann):
    content = Content("hi", media=(image(),), key="k-1")
    receipt = prepared(mastodon, ann, content)
    next(iter(net.media.values())).polls = 3
    with pytest.raises(Unavailable) as caught:
        mastodon.publish(ann, content, receipt)
    assert (caught.value.receipt, caught.value.retry_after) == (None, 5)


def test_a_file_that_cannot_be_processed(net, mastodon, ann):
    net.fail("processing_failed")
    with pytest.raises(Rejected) as caught:
        prepared(mastodon, ann, Content("hi", media=(video(),), key="k-1"))
    assert caught.value.platform_message == "Error processing thumbnail for uploaded media"


def test_a_file_that_the_server_fails_over_twice_is_to_blame(net, mastodon, ann):
    content = Content("hi", media=(image(1), image(2)), key="k-1")
    net.fail("media_error", times=2)
    error, tries = tried(mastodon, ann, content)
    assert (type(error), error.rule, tries) == (Rejected, "media", 2)
    net.fail("media_error")
    assert tried(mastodon, ann, content) == (None, 2)


def test_a_file_that_lies_about_its_type(mastodon, ann):
    with pytest.raises(Rejected):
        prepared(mastodon, ann, Content("hi", media=(replace(image(), mime_type="video/mp4"),), key="k-1"))


# Errors.

@pytest.mark.parametrize("row, expected", [
    ("invalid_token", Disconnected), ("revoked_token", Disconnected), ("expired_token", Disconnected),
    ("scope_missing", PermissionMissing), ("disabled", PermissionMissing), ("unconfirmed", PermissionMissing),
    ("pending", PermissionMissing), ("not_allowed", PermissionMissing), ("reply_not_found", Rejected), ("too_long", Rejected),
    ("app_token", Rejected), ("busy", Unconfirmed), ("rate_limited", Unavailable), ("bad_gateway", Unconfirmed),
    ("gateway_timeout", Unconfirmed), ("gone", Unavailable),
])
def test_errors_of_publishing(net, mastodon, ann, row, expected):
    receipt = prepared(mastodon, ann, Content("hi", key="k-1"))
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        mastodon.publish(ann, Content("hi", key="k-1"), receipt)
    error, body = caught.value, net.errors[row]["body"]
    assert type(error) is expected and not net.posts
    assert error.platform_message == (body["error"] if isinstance(body, dict) else None)
    assert error.platform_code == str(net.errors[row]["status"])
    if row == "rate_limited":
        assert error.code == "rate_limited" and error.retry_after > 1_000_000
    assert TOKEN not in repr(vars(error))


@pytest.mark.parametrize("row, expected", [
    ("bad_file", Rejected), ("too_large", Rejected), ("media_error", Unavailable), ("gone", Unavailable),
    ("rate_limited", Unavailable), ("bad_gateway", Unavailable), ("invalid_token", Disconnected),
    ("scope_missing", PermissionMissing), ("processing_failed", Rejected), ("busy", Unavailable),
])
def test_errors_of_uploading(net, mastodon, ann, row, expected):
    net.fail(row, endpoint=UPLOAD)
    with pytest.raises(expected):
        prepared(mastodon, ann, Content("hi", media=(image(),), key="k-1"))


@pytest.mark.parametrize("fault", [
    {"drop_answer": True}, {"status": 200, "body": "<html>"}, {"status": 200, "body": {"id": 7}},
])
def test_an_upload_whose_answer_was_lost_is_made_again(net, mastodon, ann, fault):
    net.fault(UPLOAD, **fault)
    content = Content("hi", media=(image(),), key="k-1")
    with pytest.raises(Unavailable):
        prepared(mastodon, ann, content)
    assert published(mastodon, ann, content) and len(net.posts) == 1
