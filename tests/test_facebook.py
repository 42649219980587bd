"""Posts on Facebook Pages, by a Graph API as strict as the real one."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from platforms.base import MB, Absent, Content, Processing, Published, Waiting
from platforms.errors import Unavailable, Unconfirmed
from tests.live import image, prepared
from tests.networks import facebook as network
from tests.networks.facebook import (FILM, SAMPLES, WHEN, facebook, film, finished, net, page, post, posted,  # noqa: F401
                                     sent_reel, story)
from tests.standins.facebook import LIST, READ, REELS, STORIES, VIDEO_STORIES, hashes
from tests.standins.meta import IN_DOUBT

TEXT = SAMPLES["text"]


# What a post becomes.

def test_text(net, facebook, page):
    result = posted(facebook, page, Content("Grüße 👋🏽 #bread", options={"placeId": "900"}, key="k-1"))
    post = net.posts[0]
    assert result == Published(post["id"], f"https://www.facebook.com/{page.platform_id}/posts/{post['id'].split('_')[1]}")
    assert (post["message"], post["place"], post["link"], post["photos"]) == ("Grüße 👋🏽 #bread", "900", None, [])


def test_link(net, facebook, page):
    posted(facebook, page, SAMPLES["link"])
    assert (net.posts[0]["message"], net.posts[0]["link"]) == ("hi", "https://bread.example/menu")


def test_a_post_for_some_that_is_dated_back(net, facebook, page):
    options = {"targeting": {"countries": ["AT"]}, "sponsorId": "901", "backdatedTime": WHEN, "backdatedTimeGranularity": "day"}
    posted(facebook, page, replace(TEXT, options=options))
    assert net.posts[0]["targeting"] == {"geo_locations": {"countries": ["AT"]}} and net.posts[0]["sponsor"] == "901"
    assert net.posts[0]["created"] == datetime(1998, 5, 1, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("kind, options, problems", [
    ("text", {"targeting": {"ageMin": 21}}, []),
    ("text", {"backdatedTime": "2999-01-01T00:00:00Z"}, [("options/backdatedTime", "past")]),
    ("text", {"backdatedTime": "2001-02-31T00:00:00Z"}, [("options/backdatedTime", "past")]),
    ("text", {"backdatedTimeGranularity": "day"}, [("options/backdatedTime", "required")]),
    ("text", {"firstCommentImageUrl": "https://a.test/a.jpg"}, [("options/firstComment", "required")]),
    ("video", {"backdatedTime": WHEN, "collaboratorIds": ["1"]},
     [("options/backdatedTime", "option"), ("options/collaboratorIds", "option")]),
    ("reel", {"sponsorId": "1"}, [("options/sponsorId", "option")]),
    ("story", {"targeting": {"ageMin": 21}}, [("options/targeting", "option")]),
])
def test_what_options_have_to_fit_to(facebook, kind, options, problems):
    assert [(problem.path, problem.rule) for problem in facebook.problems(post(kind, **options))] == problems


def test_a_link_needs_no_text(net, facebook, page):
    posted(facebook, page, replace(SAMPLES["link"], caption=""))
    assert (net.posts[0]["message"], net.posts[0]["link"]) == (None, "https://bread.example/menu")


@pytest.mark.parametrize("count", [1, 3])
def test_images(net, facebook, page, count):
    options = {"altTexts": ["a loaf"], "placeId": "900"}
    posted(facebook, page, Content("hi", tuple(map(image, range(count))), "image", options, "k-1"))
    sent = list(net.photos.values())
    assert [photo.data[-1] for photo in sent] == list(range(count))
    assert [photo.alt for photo in sent] == ["a loaf", None, None][:count]
    assert [(post["photos"], post["place"]) for post in net.posts] == [([photo.id for photo in sent], "900")]


def test_a_video_goes_up_in_the_parts_that_facebook_asks_for(net, facebook, page):
    content = film("video", title="A loaf")
    steps = list(facebook.prepare(page, content, {}))
    assert [(step["start"], step["end"]) for step in steps] == [
        (0, MB), (MB, 2 * MB), (2 * MB, len(FILM)), (len(FILM), len(FILM))]
    assert not net.posts
    outcome = facebook.publish(page, content, steps[-1])
    result, asked = finished(facebook, page, outcome)
    assert asked == 3 and hashes(net) == [sha256(FILM).hexdigest()]
    assert result == Published(net.posts[0]["id"], f"https://www.facebook.com/{page.platform_id}/videos/{net.posts[0]['id']}/")
    assert (net.posts[0]["message"], net.posts[0]["title"]) == ("hi", "A loaf")


def test_reel(net, facebook, page):
    result = posted(facebook, page, film("reel", title="A loaf", placeId="900"))
    post = net.posts[0]
    assert result == Published(post["id"], f"https://www.facebook.com/reel/{post['id']}/")
    assert (post["message"], post["title"], post["place"], post["edge"]) == ("hi", "A loaf", "900", "video_reels")
    assert hashes(net) == [sha256(FILM).hexdigest()]


def test_a_story_of_a_photo(net, facebook, page):
    result = posted(facebook, page, story(image()))
    assert result == Published(net.posts[0]["id"], f"https://facebook.com/stories/{net.posts[0]['id']}")
    assert net.posts[0]["media_id"] == next(iter(net.photos))


def test_the_video_of_a_story_is_waited_for(net, facebook, page):
    content = story(film("reel").media[0])
    steps = list(facebook.prepare(page, content, {}))
    assert [step.after for step in steps if isinstance(step, Waiting)] == [5, 10]
    result = facebook.publish(page, content, prepared(facebook, page, content, steps[-1].receipt))
    assert result == Published(net.posts[0]["id"], f"https://facebook.com/stories/{net.posts[0]['id']}")


def test_the_pauses_between_questions_grow(net, facebook, page):
    outcome, seen = Processing({"video": sent_reel(facebook, page)["video"]}), []
    net.videos[outcome.receipt["video"]].polls = 99
    for _ in range(6):
        outcome = facebook.check(page, outcome.receipt)
        seen.append(outcome.after)
    assert seen == [5, 10, 20, 30, 60, 60]


# The link to a post that is public.

@pytest.mark.parametrize("fault", [{"status": 500, "body": ""}, {"drop_answer": True}, {"status": 200, "body": {}},
                                   {"status": 401, "body": {"error": {"code": 190}}}])
def test_a_post_stays_published_whatever_becomes_of_the_question_for_its_link(net, facebook, page, fault):
    net.fault(READ, **fault)
    post = posted(facebook, page, TEXT)
    assert post == Published(net.posts[0]["id"], f"https://www.facebook.com/{net.posts[0]['id']}")


def test_a_story_stays_published_whatever_becomes_of_the_question_for_its_link(net, facebook, page):
    net.fault(STORIES, status=500)
    assert posted(facebook, page, SAMPLES["story"]) == Published(
        net.posts[0]["id"], f"https://www.facebook.com/{net.posts[0]['id']}")


# Exactly once.

@pytest.mark.parametrize("fault, there", IN_DOUBT)
@pytest.mark.parametrize("kind, endpoint", network.PUBLISH.items())
def test_a_post_in_doubt_is_found_or_stays_in_doubt(net, facebook, page, kind, endpoint, fault, there):
    content = SAMPLES[kind]
    receipt = prepared(facebook, page, content)
    net.fault(endpoint, **fault)
    with pytest.raises(Unconfirmed):
        facebook.publish(page, content, receipt)
    for one in net.videos.values():
        one.polls = 0
    found = facebook.find(page, content, receipt)
    assert len(net.posts) == there
    assert found == (Published(net.posts[0]["id"], found.url) if there else None)


def test_a_video_story_in_doubt_is_found(net, facebook, page):
    content = story(film("reel").media[0])
    receipt = prepared(facebook, page, content)
    net.fault(VIDEO_STORIES, drop_answer=True)
    with pytest.raises(Unconfirmed):
        facebook.publish(page, content, receipt)
    assert facebook.find(page, content, receipt).id == net.posts[0]["id"]


def test_a_video_that_is_being_published_is_processing(net, facebook, page):
    receipt = sent_reel(facebook, page)
    net.fault(READ, status=200, body={"id": "1", "status": {"video_status": "processing", "publishing_phase": {
        "status": "in_progress"}}})
    assert facebook.find(page, SAMPLES["reel"], receipt) == Processing(receipt)


@pytest.mark.parametrize("status, there", [
    ({"publishing_phase": {"status": "completed"}}, True), ({"publishing_phase": {"publish_status": "published"}}, True),
    ({"publishing_phase": {"status": "complete", "publish_status": "scheduled"}}, False),
    ({"publishing_phase": {"status": "not_started"}, "video_status": "ready"}, False),
    ({"video_status": "ready"}, True), ({"video_status": "processing"}, False), ({}, False),
])
def test_the_shapes_of_a_video_that_is_public(net, facebook, page, status, there):
    link = "https://fb.example/1"
    net.fault(READ, status=200, body={"id": "1", "status": status, "published": True, "permalink_url": link})
    result = facebook.check(page, {"video": "1"})
    assert result == (Published("1", link) if there else Processing({"video": "1", "asked": 1}, 5))


@pytest.mark.parametrize("kind, expected", [("text", None), ("image", Absent()), ("reel", Absent()), ("story", Absent())])
def test_files_that_were_never_sent_are_in_no_post(facebook, page, kind, expected):
    assert facebook.find(page, SAMPLES[kind], {}) == expected


def test_older_and_other_posts_are_not_taken_for_ours(net, facebook, page):
    posted(facebook, page, TEXT)
    posted(facebook, page, replace(TEXT, caption="hi there"))
    net.posts[0]["created"] -= 60
    assert facebook.find(page, replace(TEXT, sent_ago=30.0), {}) is None
    assert facebook.find(page, replace(TEXT, sent_ago=70.0), {}).id == net.posts[0]["id"]


def test_a_post_that_is_dated_back_cannot_be_told_from_others(net, facebook, page):
    content = replace(TEXT, options={"backdatedTime": WHEN})
    posted(facebook, page, TEXT)
    assert facebook.find(page, content, prepared(facebook, page, content)) is None


def test_a_post_without_text_cannot_be_told_from_others(net, facebook, page):
    content = replace(SAMPLES["image"], caption="")
    posted(facebook, page, content)
    assert facebook.find(page, content, prepared(facebook, page, content)) is None


@pytest.mark.parametrize("body", ["<html>", {}, {"data": [{"id": "1", "created_time": "yesterday"}]}, {"data": [7]}])
def test_a_list_of_nonsense_says_nothing(net, facebook, page, body):
    receipt = prepared(facebook, page, TEXT)
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        facebook.find(page, TEXT, receipt)


def test_a_refusal_that_says_success_is_false_is_in_doubt(net, facebook, page):
    receipt = prepared(facebook, page, SAMPLES["reel"])
    net.fault(REELS, status=200, body={"success": False})
    with pytest.raises(Unconfirmed):
        facebook.publish(page, SAMPLES["reel"], receipt)
