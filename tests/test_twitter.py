"""Posts on X, by a stand-in as strict as X."""

import json
from dataclasses import replace

import pytest

from platforms.base import GIF, MB, Absent, Content, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import MP4, image, part_of, prepared, published
from tests.networks import twitter as network
from tests.networks.twitter import ann, film, net, twitter  # fixtures
from tests.standins.twitter_rules import APPEND, CREATE, FINALIZE, METADATA_CALL, STATUS

INITIALIZE, TIMELINE = "POST /2/media/upload/initialize", "GET /2/users/:id/tweets"
POLL = {"options": ["yes", "no"], "durationMinutes": 60}
LONG_AGO = 600.0


def sent(net):
    """The bodies of the requests that create posts."""
    return [json.loads(request.body) for request in net.calls(CREATE)]


# What a post becomes.

def test_text(net, twitter, ann):
    result = published(twitter, ann, Content("hi", key="k-1"))
    assert result == Published(net.posts[0]["id"], f"{net.url}/ann/status/{net.posts[0]['id']}")
    assert sent(net) == [{"text": "hi"}] and len(net.requests) == 1


def test_many_options_together(net, twitter, ann):
    other = net.add_post(ann.platform_id, "before")
    options = {"replySettings": "verified", "inReplyToTweetId": other["id"], "communityId": "77", "shareWithFollowers": True,
               "placeId": "5a110d312052166f", "forSuperFollowersOnly": False, "madeWithAi": True, "paidPartnership": True,
               "taggedUserIds": ["12"]}
    published(twitter, ann, Content("hi", media=(image(),), options=options, key="k-1"))
    assert sent(net) == [{
        "text": "hi", "reply_settings": "verified", "community_id": "77", "share_with_followers": True,
        "for_super_followers_only": False, "made_with_ai": True, "paid_partnership": True,
        "geo": {"place_id": "5a110d312052166f"},
        "reply": {"in_reply_to_tweet_id": other["id"]}, "media": {"media_ids": list(net.media), "tagged_user_ids": ["12"]}}]


def test_images_with_alternative_texts(net, twitter, ann):
    content = Content("", media=(image(1), image(2), image(3)), options={"altTexts": ["zwölf", ""]}, key="k-1")
    published(twitter, ann, content)
    media = list(net.media.values())
    assert [(one.data[-1], one.category, one.alt_text) for one in media] == [
        (1, "tweet_image", "zwölf"), (2, "tweet_image", None), (3, "tweet_image", None)]
    assert net.posts[0]["media"] == media and len(net.calls(METADATA_CALL)) == 1 and not net.calls(STATUS)


def test_what_is_said_of_media_goes_in_one_call(net, twitter, ann):
    options = {"altTexts": ["a", ""], "sensitiveMedia": ["adult_content", "other"]}
    published(twitter, ann, Content("", media=(image(1), image(2)), options=options, key="k-1"))
    warning = {"adult_content": True, "other": True}
    assert [(one.alt_text, one.warning) for one in net.media.values()] == [("a", warning), (None, warning)]
    assert len(net.calls(METADATA_CALL)) == 2


@pytest.mark.parametrize("turned", [False, True], ids=["video first", "image first"])
def test_an_image_beside_a_video_is_its_preview(net, twitter, ann, turned):
    media = (image(5), film()) if turned else (film(), image(5))
    content = Content("hi", media=media, options={"sensitiveMedia": ["other"]}, key="k-1", sent_ago=5.0)
    receipt = prepared(twitter, ann, content)
    result = twitter.publish(ann, content, receipt)
    clip, still = sorted(net.media.values(), key=lambda one: one.category, reverse=True)
    assert sent(net)[0]["media"] == {"media_ids": [clip.id], "preview_media_id": still.id}
    assert (clip.warning, still.warning) == ({"other": True}, None)
    assert twitter.find(ann, content, receipt) == result


def test_a_video_with_all_that_x_shows_with_it(net, twitter, ann):
    options = {"title": "How", "description": "By night", "embeddable": False,
               "callToAction": {"type": "WATCH_NOW", "url": "https://bread.example/film"}}
    published(twitter, ann, Content("hi", media=(film(),), options=options, key="k-1"))
    assert sent(net)[0]["media"] == {
        "media_ids": list(net.media), "title": "How", "description": "By night", "embeddable": False,
        "call_to_actions": {"watch_now": {"url": "https://bread.example/film"}}}


def test_subtitles(net, twitter, ann):
    tracks = [network.TRACK, {"language": "en", "name": "English", "text": "WEBVTT\n\n00:00.000 --> 00:02.000\nFresh"}]
    content = Content("hi", media=(film(),), options={"subtitles": tracks}, key="k-1")
    receipt = prepared(twitter, ann, content)
    seen = len(net.requests)
    assert list(twitter.prepare(ann, content, receipt)) == [] and len(net.requests) == seen
    twitter.publish(ann, content, receipt)
    clip = net.posts[0]["media"][0]
    assert [(one["language_code"], one["display_name"], one["text"]) for one in clip.subtitles] == [
        ("DE", "Deutsch", network.SRT), ("EN", "English", tracks[1]["text"])]
    assert [one.media_type for one in net.media.values()] == ["video/mp4", "text/srt", "text/vtt"]
    assert sent(net)[0]["media"] == {"media_ids": [clip.id]}


def test_gif(net, twitter, ann):
    data = b"GIF89a moving"
    content = Content("hi", media=(replace(image(), mime_type=GIF, bytes=len(data), open=part_of(data)),),
                      options={"altTexts": ["a horn"]}, key="k-1")
    published(twitter, ann, content)
    assert [(one.category, one.alt_text, one.data) for one in net.posts[0]["media"]] == [("tweet_gif", "a horn", data)]


def test_video_is_waited_for(net, twitter, ann):
    content = Content("hi", media=(film(),), key="k-1")
    steps = list(twitter.prepare(ann, content, {}))
    assert [step.after for step in steps if isinstance(step, Waiting)] == [1, 1]
    assert twitter.publish(ann, content, steps[-1]).id == net.posts[0]["id"]
    assert len(net.calls(STATUS)) == 2


@pytest.mark.parametrize("wish, wait", [(0, 1), (7, 7), (9999, 60), ("soon", 5), (None, 5)])
def test_x_may_say_how_long_to_wait_within_reason(net, twitter, ann, wish, wait):
    steps = twitter.prepare(ann, Content("hi", media=(film(),), key="k-1"), {})
    [next(steps) for _ in range(3)]
    info = {"state": "pending", "check_after_secs": wish}
    net.fault(FINALIZE, status=200, body={"data": {"id": next(iter(net.media)), "processing_info": info}})
    assert next(steps).after == wait


def test_large_files_go_in_chunks(net, twitter, ann):
    data = MP4 + bytes(2 * MB + 5)
    content = Content("hi", media=(film(data),), key="k-1")
    published(twitter, ann, content)
    media = net.posts[0]["media"][0]
    assert media.data == data and [len(media.segments[number]) for number in range(3)] == [MB, MB, len(data) - 2 * MB]


def test_poll(net, twitter, ann):
    published(twitter, ann, Content("?", options={"poll": POLL}, key="k-1", post_type="poll"))
    assert sent(net) == [{"text": "?", "poll": {"options": ["yes", "no"], "duration_minutes": 60}}]


def test_errors_beside_a_post_do_not_unmake_it(net, twitter, ann):
    net.fault(CREATE, status=201, body={"data": {"id": "12", "text": "hi"}, "errors": [{"title": "Not Found Error"}]})
    assert published(twitter, ann, Content("hi", key="k-1")).id == "12"


# Exactly once.

CAPTION = "Tom & <Jerry> – see https://example.com/a?b=1&c=2 and example.com/ «ok»\nbye "


@pytest.mark.parametrize("content", [
    Content(CAPTION), Content("漢字。", options={"poll": POLL}, post_type="poll"), Content("hi", media=(image(),)),
    Content("", media=(film(),)),
], ids=["text", "poll", "image", "video without a text"])
@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 503, "body": ""}, False), ({"status": 500, "body": "", "acts": True}, True),
    ({"status": 201, "body": "<html>", "acts": True}, True), ({"status": 200, "body": {"errors": [{"message": "no"}]}}, False),
    ({"status": 201, "body": {"data": {"id": 7}}, "acts": True}, True),
    ({"status": 201, "body": {"data": {"id": "../me"}}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "503", "500 after acting", "garbage", "errors", "no string", "no id"])
def test_a_post_in_doubt_is_found_out(net, twitter, ann, content, fault, there):
    receipt = prepared(twitter, ann, content)
    net.fault(CREATE, **fault)
    with pytest.raises(Unconfirmed):
        twitter.publish(ann, content, receipt)
    assert len(net.posts) == there
    early = twitter.find(ann, replace(content, sent_ago=30.0), receipt)
    late = twitter.find(ann, replace(content, sent_ago=LONG_AGO), receipt)
    if there:
        ours = net.posts[0]["id"]
        assert early == late == Published(ours, f"{net.url}/ann/status/{ours}")
    else:
        assert (early, late) == (None, Absent())


def test_looking_costs_little(net, twitter, ann):
    """Each post that X lists costs money."""
    net.add_post(ann.platform_id, "hi", time=net.now() - 2 * LONG_AGO)
    assert twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []}) == Absent()
    query = dict(net.calls(TIMELINE)[0].query)
    assert query.keys() == {"max_results", "start_time", "tweet.fields"} and net.calls(TIMELINE)[0].status == 200


@pytest.mark.parametrize("other", [
    Content("hi there"), Content("hi", media=(image(9),)), Content("hi", options={"poll": POLL}), Content("see example.com"),
], ids=["longer", "with an image", "a poll", "a link"])
@pytest.mark.parametrize("ours", [Content("hi"), Content("hi", media=(image(),))], ids=["text", "image"])
def test_posts_that_only_resemble_ours_are_not_taken_for_it(net, twitter, ann, other, ours):
    published(twitter, ann, other)
    assert twitter.find(ann, replace(ours, sent_ago=LONG_AGO), prepared(twitter, ann, ours)) == Absent()


def test_an_answer_is_no_post_and_a_post_no_answer(net, twitter, ann):
    first = net.add_post(ann.platform_id, "one")
    net.add_post(ann.platform_id, "hi", reply_to=first["id"])
    look = Content("hi", sent_ago=LONG_AGO)
    assert twitter.find(ann, look, {"media": []}) == Absent()
    assert twitter.find(ann, replace(look, options={"inReplyToTweetId": first["id"]}), {"media": []}).id == net.posts[1]["id"]
    assert twitter.find(ann, replace(look, options={"inReplyToTweetId": "5"}), {"media": []}) == Absent()


def test_a_quote_is_found_and_told_from_others(net, twitter, ann):
    bob = net.add_post(net.add_user("bob"), "hello")
    net.mentioned.add(bob["id"])
    content = Content("hi", options={"quoteTweetId": bob["id"]}, key="k-1", sent_ago=LONG_AGO)
    assert published(twitter, ann, content) == twitter.find(ann, content, {"media": []})
    assert sent(net) == [{"text": "hi", "quote_tweet_id": bob["id"]}]
    # The same is quoted, and how X has written the rest of it is not sure.
    assert twitter.find(ann, replace(content, caption="bye"), {"media": []}) is None
    assert twitter.find(ann, replace(content, options={"quoteTweetId": "7"}), {"media": []}) == Absent()
    net.posts[-1]["quoted"] = None      # somebody has removed what was quoted
    assert twitter.find(ann, content, {"media": []}) is None
    assert twitter.find(ann, replace(content, caption="bye"), {"media": []}) == Absent()


@pytest.mark.parametrize("quoted", [False, True])
def test_an_address_makes_a_quote_as_well(net, twitter, ann, quoted):
    bob = net.add_post(net.add_user("bob"), "hello")
    net.mentioned.add(bob["id"])
    options = {"quoteTweetId": bob["id"]} if quoted else {}
    content = Content(f"hi https://x.com/bob/status/{bob['id']}", options=options, key="k-1", sent_ago=LONG_AGO)
    assert published(twitter, ann, content) == twitter.find(ann, content, {"media": []})
    assert net.posts[-1]["quoted"] == bob["id"]


def test_somebody_elses_post_is_quoted_by_few_apps_alone(net, twitter, ann):
    bob = net.add_post(net.add_user("bob"), "hello")
    with pytest.raises(Rejected) as caught:
        published(twitter, ann, Content("hi", options={"quoteTweetId": bob["id"]}, key="k-1"))
    assert caught.value.platform_code == "not-authorized-for-resource"


def test_an_answer_is_found_although_x_adds_a_mention(net, twitter, ann):
    bob = net.add_post(net.add_user("bob"), "hello")
    net.mentioned.add(bob["id"])
    content = Content("hi", options={"inReplyToTweetId": bob["id"]}, key="k-1", sent_ago=5.0)
    assert published(twitter, ann, content) == twitter.find(ann, content, {"media": []})


def test_a_long_text_is_found(net, twitter):
    cat = network.account(net, "cat", subscription="Premium")
    content = Content("漢 & https://example.com/" + "字" * 300, key="k-1", sent_ago=5.0)
    assert published(twitter, cat, content) == twitter.find(cat, content, {"media": []})


def test_links_that_x_writes_in_another_way_prove_nothing(net, twitter, ann):
    net.add_post(ann.platform_id, "New: https://xn--bcher-kva.de/1 !")
    assert twitter.find(ann, Content("New: https://bücher.de/1 !", sent_ago=LONG_AGO), {"media": []}) is None
    assert twitter.find(ann, Content("New: nothing", sent_ago=LONG_AGO), {"media": []}) == Absent()
    assert twitter.find(ann, Content("Old: https://bücher.de/1 !", sent_ago=LONG_AGO), {"media": []}) == Absent()


def test_posts_from_before_the_first_sending_are_not_taken_for_it(net, twitter, ann):
    net.add_post(ann.platform_id, "hi", time=net.now() - 2 * LONG_AGO)
    assert twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []}) == Absent()
    assert isinstance(twitter.find(ann, Content("hi", sent_ago=3 * LONG_AGO), {"media": []}), Published)


def test_a_page_that_is_full_proves_nothing(net, twitter, ann):
    for number in range(101):
        net.add_post(ann.platform_id, f"{number}")
    assert twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []}) is None


def test_a_clock_that_is_wrong_proves_nothing(net, twitter, ann):
    net.advance(-3600)
    net.users, net.tokens = net.users, {name: replace(token, end=token.end + 1e6) for name, token in net.tokens.items()}
    with pytest.raises(Rejected):       # the start is in the future of X
        twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []})
    net.advance(3600 + 600)
    assert twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []}) is None


@pytest.mark.parametrize("options", [{"communityId": "77"}, {"forSuperFollowersOnly": True}])
def test_what_may_not_be_listed_is_never_surely_absent(net, twitter, ann, options):
    content = Content("hi", options=options, sent_ago=LONG_AGO)
    assert twitter.find(ann, content, {"media": []}) is None
    result = published(twitter, ann, content)
    assert twitter.find(ann, content, {"media": []}) == result


@pytest.mark.parametrize("body", [
    {}, "<html>", [], {"data": [{"id": "1"}]}, {"meta": {"result_count": 1}}, {"meta": {"result_count": "0"}},
    {"data": [{"id": "1"}], "meta": {"result_count": 1}}])
def test_a_list_of_nonsense_says_nothing(net, twitter, ann, body):
    net.fault(TIMELINE, status=200, body=body)
    with pytest.raises(Unavailable):
        twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []})


def test_a_list_with_errors_proves_nothing(net, twitter, ann):
    net.fault(TIMELINE, status=200, body={"meta": {"result_count": 0}, "errors": [{"title": "Not Found Error"}]})
    assert twitter.find(ann, Content("hi", sent_ago=LONG_AGO), {"media": []}) is None


def test_what_was_never_prepared_was_never_sent(twitter, ann):
    assert twitter.find(ann, Content("hi"), {}) == Absent()


def test_the_same_text_again_is_refused(net, twitter, ann):
    published(twitter, ann, Content("hi", key="k-1"))
    with pytest.raises(Rejected) as caught:
        published(twitter, ann, Content("hi", key="k-2"))
    assert "duplicate" in caught.value.platform_message and len(net.posts) == 1


@pytest.mark.parametrize("ago", [60.0, LONG_AGO])
def test_a_post_in_doubt_that_is_sent_again_is_recognised_as_a_duplicate(net, twitter, ann, ago):
    content = Content("hi", key="k-1")
    net.fault(CREATE, drop_answer=True)
    with pytest.raises(Unconfirmed):
        published(twitter, ann, content)
    again = twitter.publish(ann, replace(content, sent_ago=ago), {"media": []})     # somebody asked for it
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


@pytest.mark.parametrize("ago, expected", [(30.0, Unconfirmed), (LONG_AGO, Rejected)])
def test_a_duplicate_of_an_older_post_is_refused(net, twitter, ann, ago, expected):
    net.add_post(ann.platform_id, "hi", time=net.now() - 3 * LONG_AGO)
    with pytest.raises(expected):
        twitter.publish(ann, Content("hi", key="k-1", sent_ago=ago), {"media": []})
    assert len(net.posts) == 1


# Errors.

@pytest.mark.parametrize("row, expected, code", [
    ("unauthorized", Disconnected, "Unauthorized"), ("app_only", PermissionMissing, "unsupported-authentication"),
    ("oauth1_permissions", PermissionMissing, "oauth1-permissions"),
    ("client_forbidden", PermissionMissing, "client-forbidden"),
    ("not_enrolled", PermissionMissing, "client-not-enrolled"), ("scope_missing", PermissionMissing, "Forbidden"),
    ("duplicate", Rejected, "403"), ("not_permitted", Rejected, "403"), ("video_too_long", Rejected, "403"),
    ("not_in_conversation", Rejected, "403"), ("cashtags", Rejected, "403"), ("invalid_url", Rejected, "403"),
    ("not_engaged", Rejected, "not-authorized-for-resource"), ("credits", PlatformError, "credits"),
    ("payment", PlatformError, "credits-depleted"), ("invalid", Rejected, "invalid-request"),
    ("rate_limited", Unavailable, "Too Many Requests"), ("legacy", Unavailable, "88"),
    ("usage_capped", Unavailable, "usage-capped"), ("server_error", Unconfirmed, "500"), ("bad_gateway", Unconfirmed, "502"),
    ("over_capacity", Unconfirmed, "130"), ("gateway_timeout", Unconfirmed, "504"),
])
def test_errors_of_publishing(net, twitter, ann, row, expected, code):
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        published(twitter, ann, Content("hi", key="k-1"))
    error, body = caught.value, net.errors[row]["body"]
    assert type(error) is expected and error.platform_code == code and not net.posts
    texts = [] if isinstance(body, str) else [body.get("detail"), *(one["message"] for one in body.get("errors", ()))]
    assert error.platform_message in (texts or [None])
    assert "canary" not in repr(vars(error)) + str(error)
    if expected is Unavailable:
        assert error.code == "rate_limited" and (row != "rate_limited" or error.retry_after > 1_000_000)
    if row == "usage_capped":
        assert error.retry_after == 3600
    if expected is PlatformError:
        assert (error.code, error.rule, error.retryable) == ("external_service_error", "credits", False)


@pytest.mark.parametrize("row, expected", [
    ("unauthorized", Disconnected), ("scope_missing", PermissionMissing), ("credits", PlatformError), ("too_large", Rejected),
    ("head_too_large", Rejected), ("rate_limited", Unavailable), ("server_error", Unavailable), ("bad_gateway", Unavailable),
])
@pytest.mark.parametrize("endpoint", [INITIALIZE, APPEND, FINALIZE, METADATA_CALL])
def test_errors_of_uploading(net, twitter, ann, row, expected, endpoint):
    net.fail(row, endpoint=endpoint)
    with pytest.raises(PlatformError) as caught:
        prepared(twitter, ann, Content("hi", media=(image(),), options={"altTexts": ["a"]}, key="k-1"))
    assert type(caught.value) is expected and "canary" not in repr(vars(caught.value))


def test_the_rate_of_x_is_told(net, twitter, ann):
    net.rates[CREATE] = (1, 900)
    published(twitter, ann, Content("1", key="k-1"))
    with pytest.raises(Unavailable) as caught:
        published(twitter, ann, Content("2", key="k-2"))
    assert 890 < caught.value.retry_after <= 902


@pytest.mark.parametrize("limit", ["user", "app"])
def test_a_limit_of_a_day_is_waited_for_to_its_end(net, twitter, ann, limit):
    net.rates[f"{limit} day"] = (1, 86_400)
    published(twitter, ann, Content("1", key="k-1"))
    with pytest.raises(Unavailable) as caught:
        published(twitter, ann, Content("2", key="k-2"))
    assert caught.value.code == "rate_limited" and 86_390 < caught.value.retry_after <= 86_402
