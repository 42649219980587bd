"""Posts on Instagram, by a Graph API as strict as the real one."""

import json
from dataclasses import replace

import pytest

from platforms.base import Absent, Content, Published, Waiting
from platforms.errors import PermissionMissing, Unavailable, Unconfirmed
from platforms.meta import SETTLED
from tests.live import prepared, published
from tests.networks.instagram import PROFILE, SAMPLES, ann, film, instagram, net, own, photo, post  # noqa: F401
from tests.standins.instagram import CREATE, LIST, PUBLISH, READ, STORIES
from tests.standins.meta import IN_DOUBT

IMAGE, CAROUSEL, REEL, STORY = SAMPLES.values()


def given(net):
    """The parameters of the posts that are public, JSON read."""
    return [{name: json.loads(value) if value[:1] in "[{" else value for name, value in post["given"].items()}
            for post in net.posts]


# What a post becomes.

def test_image(net, instagram, ann):
    options = {"altTexts": ["a loaf"], "userTags": [{"username": "ben", "x": 0.5, "y": 0.25}], "collaborators": ["cid", "dot"],
               "locationId": "900", "isAiGenerated": True, "isPaidPartnership": False}
    result = published(instagram, ann, Content("Grüße 👋🏽 #bread", (photo(),), "image", options, "k-1"))
    assert result.id == net.posts[0]["id"] and result.url.startswith("https://www.instagram.com/p/")
    assert given(net) == [{
        "image_url": "https://media.test/1.jpg", "caption": "Grüße 👋🏽 #bread", "alt_text": "a loaf", "location_id": "900",
        "user_tags": [{"username": "ben", "x": 0.5, "y": 0.25}], "collaborators": ["cid", "dot"], "is_ai_generated": "true",
        "is_paid_partnership": "false"}]


def test_reel(net, instagram, ann):
    options = {"userTags": [{"username": "ben"}], "thumbOffsetMs": 0, "shareToFeed": False, "audioName": "Dough",
               "trialGraduation": "MANUAL"}
    result = published(instagram, ann, Content("hi", (film(),), "reel", options, "k-1"))
    assert result.url.startswith("https://www.instagram.com/reel/")
    assert given(net) == [{
        "media_type": "REELS", "upload_type": "resumable", "caption": "hi", "user_tags": [{"username": "ben"}],
        "thumb_offset": "0", "share_to_feed": "false", "audio_name": "Dough",
        "trial_params": {"graduation_strategy": "MANUAL"}}]


@pytest.mark.parametrize("item, file", [(photo(), {"image_url": "https://media.test/1.jpg"}),
                                        (film(), {"upload_type": "resumable"})])
def test_story(net, instagram, ann, item, file):
    published(instagram, ann, Content("", (item,), "story", {"userTags": [{"username": "ben"}]}, "k-1"))
    assert given(net) == [{"media_type": "STORIES", **file, "user_tags": [{"username": "ben"}]}]


def test_carousel(net, instagram, ann):
    options = {"altTexts": ["a loaf", "", "a roll"], "collaborators": ["ben"], "locationId": "900", "isAiGenerated": True,
               "userTags": [{"username": "cid", "media": 2, "x": 0, "y": 1}]}
    published(instagram, ann, Content("hi", (photo(1), film(2), photo(3)), "carousel", options, "k-1"))
    children = [one.id for one in net.containers.values()][:3]
    assert given(net) == [{"media_type": "CAROUSEL", "children": ",".join(children), "caption": "hi", "collaborators": ["ben"],
                           "location_id": "900", "is_ai_generated": "true"}]
    assert net.posts[0]["files"] == [
        {"is_carousel_item": "true", "image_url": "https://media.test/1.jpg", "alt_text": "a loaf"},
        {"is_carousel_item": "true", "media_type": "VIDEO", "upload_type": "resumable"},
        {"is_carousel_item": "true", "image_url": "https://media.test/3.jpg", "alt_text": "a roll",
         "user_tags": json.dumps([{"username": "cid", "x": 0, "y": 1}])}]


SIX = [{"productId": str(number), "x": 0.5, "y": 0.5} for number in range(6)]


@pytest.mark.parametrize("kind, options, problems", [
    ("image", {"productTags": SIX[:5]}, []),
    ("image", {"productTags": SIX}, [("options/productTags/5", "product_tags")]),
    ("image", {"productTags": [{"productId": "7"}]}, [("options/productTags/0", "product_tags")]),
    ("image", {"productTags": [{**SIX[0], "media": 1}]}, [("options/productTags/0/media", "product_tags")]),
    ("carousel", {"productTags": [{**SIX[0], "media": 1}]}, [("options/productTags/0/media", "product_tags")]),
    ("reel", {"productTags": [{"productId": "7"}]}, []),
    ("reel", {"productTags": SIX[:1]}, [("options/productTags/0", "product_tags")]),
    ("story", {"productTags": SIX[:1]}, [("options/productTags", "option")]),
    ("reel", {"coverUrl": "https://a.test/a.jpg", "thumbOffsetMs": 5}, [("options/thumbOffsetMs", "one_cover")]),
    ("image", {"firstComment": "More", "disableComments": True}, [("options/firstComment", "comments")]),
    ("image", {"firstComment": "More", "disableComments": False}, []),
    ("image", {"music": {"audioId": "1"}}, [("options/music", "option")]),
])
def test_what_options_have_to_fit_to(instagram, kind, options, problems):
    assert [(problem.path, problem.rule) for problem in instagram.problems(post(kind, **options))] == problems


def test_what_only_accounts_with_a_page_may_have(own):
    content = post("reel", music={"audioId": "1"}, productTags=[{"productId": "7"}])
    assert [(problem.path, problem.rule) for problem in own.problems(content)] == [
        ("options/productTags", "login"), ("options/music", "login")]


@pytest.mark.parametrize("option, scope", [
    ("productTags", "catalog_management"), ("productTags", "instagram_shopping_tag_products")])
def test_a_right_for_an_option_that_is_missing(net, instagram, ann, option, scope):
    net.tokens[ann.credentials["accessToken"]].scopes -= {scope}
    with pytest.raises(PermissionMissing):
        prepared(instagram, ann, post("image", **{option: SIX[:1]}))


def test_a_container_is_waited_for_with_growing_pauses(net, instagram, ann):
    net.processing_polls = 7
    waits = [step.after for step in instagram.prepare(ann, REEL, {}) if isinstance(step, Waiting)]
    assert waits == [5, 10, 20, 30, 60, 60, 60]


def test_a_wait_goes_on_in_another_run(net, instagram, ann):
    receipt, waits, runs = {}, [], 0
    while True:
        runs += 1
        step = None
        for step in instagram.prepare(ann, CAROUSEL, receipt):
            receipt = json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
            if isinstance(step, Waiting):
                waits.append(step.after)
                break
        if not isinstance(step, Waiting):
            break
    assert len(net.calls(CREATE)) == 3 and waits == [5, 10, 20, 5, 10] and runs == 6
    assert instagram.publish(ann, CAROUSEL, receipt).id == net.posts[0]["id"]


def test_a_finished_preparation_asks_for_the_state_alone(net, instagram, ann):
    receipt = prepared(instagram, ann, CAROUSEL)
    seen = len(net.requests)
    assert list(instagram.prepare(ann, CAROUSEL, receipt)) == []
    assert [request.endpoint for request in net.requests[seen:]] == [READ]


@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"status": 200, "body": {}}, {"status": 500, "body": ""}])
def test_a_container_whose_answer_was_lost_is_made_again(net, instagram, ann, fault):
    steps = instagram.prepare(ann, CAROUSEL, {})
    receipt = next(steps)
    net.fault(CREATE, **fault)
    with pytest.raises(Unavailable):
        next(steps)
    instagram.publish(ann, CAROUSEL, prepared(instagram, ann, CAROUSEL, receipt))
    shown = [file.get("image_url") for file in net.posts[0]["files"]]
    assert len(net.posts) == 1 and shown == ["https://media.test/1.jpg", None]


@pytest.mark.parametrize("fault", [{"status": 500, "body": ""}, {"drop_answer": True}, {"status": 200, "body": {}},
                                   {"status": 400, "body": {"error": {"code": 190}}}])
def test_a_post_stays_published_whatever_becomes_of_the_question_for_its_link(net, instagram, ann, fault):
    receipt = prepared(instagram, ann, IMAGE)
    net.fault(READ, **fault)
    assert instagram.publish(ann, IMAGE, receipt) == Published(net.posts[0]["id"], PROFILE)


# Exactly once.

@pytest.mark.parametrize("fault, there", IN_DOUBT)
@pytest.mark.parametrize("content", SAMPLES.values(), ids=SAMPLES)
def test_of_a_post_in_doubt_the_container_knows(net, instagram, ann, content, fault, there):
    receipt = prepared(instagram, ann, content)
    net.fault(PUBLISH, **fault)
    with pytest.raises(Unconfirmed):
        instagram.publish(ann, content, receipt)
    found = instagram.find(ann, content, receipt)
    assert found == (Published(net.posts[0]["id"], found.url) if there else None)
    later = replace(content, sent_ago=SETTLED + 1)
    assert instagram.find(ann, later, receipt) == (found if there else Absent())
    again = instagram.publish(ann, content, prepared(instagram, ann, content, receipt))
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


@pytest.mark.parametrize("state, expected", [("IN_PROGRESS", None), ("ERROR", None), ("NEWS", None), ("EXPIRED", Absent()),
                                             ("FINISHED", Absent())])
def test_what_the_states_of_a_container_tell(net, instagram, ann, state, expected):
    net.fault(READ, status=200, body={"id": "1", "status_code": state})
    assert instagram.find(ann, replace(IMAGE, sent_ago=SETTLED + 1), {"container": "1"}) == expected


def test_what_was_never_started_was_never_sent(instagram, ann):
    assert instagram.find(ann, IMAGE, {}) == Absent()


def test_a_published_container_whose_post_cannot_be_told_from_others_has_no_id(net, instagram, ann):
    published(instagram, ann, IMAGE)
    receipt = prepared(instagram, ann, IMAGE)
    net.fault(PUBLISH, drop_answer=True)
    with pytest.raises(Unconfirmed):
        instagram.publish(ann, IMAGE, receipt)
    assert instagram.find(ann, IMAGE, receipt) == Published(None, PROFILE)
    net.posts[0]["created"] -= 80
    assert instagram.find(ann, IMAGE, receipt).id == net.posts[1]["id"]
    net.posts[1]["given"]["caption"] = "changed"
    assert instagram.find(ann, IMAGE, receipt) == Published(None, PROFILE)


def test_a_story_is_looked_for_among_the_stories(net, instagram, ann):
    published(instagram, ann, replace(IMAGE, caption=""))
    receipt = prepared(instagram, ann, STORY)
    net.fault(PUBLISH, drop_answer=True)
    with pytest.raises(Unconfirmed):
        instagram.publish(ann, STORY, receipt)
    assert instagram.find(ann, STORY, receipt).id == net.posts[1]["id"] and len(net.calls(STORIES)) == 1


@pytest.mark.parametrize("row", ["spam", "not_found", "bad_ratio", "permission", "app_limit"])
def test_a_refusal_of_a_post_that_was_made_all_the_same(net, instagram, ann, row):
    receipt = prepared(instagram, ann, IMAGE)
    net.fail(row, acts=True)
    assert instagram.publish(ann, IMAGE, receipt).id == net.posts[0]["id"]


def test_a_refusal_that_may_mislead_is_in_doubt_while_the_container_says_nothing(net, instagram, ann):
    receipt = prepared(instagram, ann, IMAGE)
    net.fail("spam")
    net.fault(READ, status=500)
    with pytest.raises(Unconfirmed) as caught:
        instagram.publish(ann, IMAGE, receipt)
    assert caught.value.platform_code == "4/2207051"


@pytest.mark.parametrize("body", ["<html>", {}, {"data": [{"id": "1", "timestamp": "yesterday"}]}, {"data": [7]}])
def test_a_list_of_nonsense_says_nothing(net, instagram, ann, body):
    receipt = prepared(instagram, ann, IMAGE)
    instagram.publish(ann, IMAGE, receipt)
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        instagram.find(ann, IMAGE, receipt)
