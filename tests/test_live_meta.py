"""One call to the networks of Meta, from end to end: the real API and worker, and stand-ins for the networks."""

from contextlib import ExitStack

import pytest

from tests.delivery import own_database
from tests.networks import facebook, instagram, threads
from tests.service import Member, Process, start_api
from tests.standins.server import HOST
from tests.test_eleven import film
from tests.test_live import photo

MODULES = {"facebook": facebook, "instagram": instagram, "threads": threads}
CAPTION = "Fresh bread 🥖 https://bread.example/menu #sourdough"


@pytest.fixture(scope="module")
def nets():
    with ExitStack() as stack:
        yield {name: stack.enter_context(module.start()) for name, module in MODULES.items()}


@pytest.fixture(scope="module")
def member(environ, postgres_url, nets):
    """A team with an account on each of them, beside a running worker."""
    with own_database(postgres_url) as address:
        own = {**environ, "DATABASE_URL": address, "POSTHORN_API_PROCESSES": "1",
               "POSTHORN_ALLOW_PRIVATE": ",".join(f"{HOST}:{net.port}" for net in nets.values())}
        own |= {f"POSTHORN_{name.upper()}_{setting.upper()}": value for name, module in MODULES.items()
                for setting, value in module.settings(nets[name]).items()}
        api, url = start_api(own)
        worker, member = Process("worker", own), Member(url)
        for name, module in MODULES.items():
            account = module.account(nets[name])
            member.account(own, name, account.username, platform_id=account.platform_id, credentials=account.credentials)
        yield member
        worker.stop()
        api.stop()
        assert "canary" not in worker.log() + api.log()


def test_one_call_with_a_picture_reaches_all_three_once_and_what_is_to_follow_follows(member, nets):
    answer = member.live.post("/v1/posts", {"caption": CAPTION, "media": [photo(member)], "targets": [
        {"platform": "facebook", "options": {"altTexts": ["A loaf"], "firstComment": "More inside"}},
        {"platform": "instagram", "options": {"altTexts": ["A loaf"], "firstComment": "More inside"}},
        {"platform": "threads", "options": {"altTexts": ["A loaf"], "thread": ["and rolls", "and cake"],
                                            "firstComment": "More inside"}}]})
    assert answer.status == 202, answer.raw
    post = member.live.settled(answer.data["id"], within=60.0)
    assert post["status"] == "published", post
    for target in post["targets"]:
        assert target["postId"] == nets[target["platform"]].posts[0]["id"] and "error" not in target and target["url"]

    page, feed, chain = nets.values()
    assert [(one["message"], len(one["photos"])) for one in page.posts] == [(CAPTION, 1)]
    assert [one["given"]["caption"] for one in feed.posts] == [CAPTION]
    assert [one["given"]["text"] for one in chain.posts] == [CAPTION, "and rolls", "and cake", "More inside"]
    assert [one["message"] for one in page.comments[page.posts[0]["id"]]] == ["More inside"]
    assert [one["text"] for one in feed.comments[feed.posts[0]["id"]]] == ["More inside"]


def test_a_film_with_a_photo(member, nets):
    for net in nets.values():
        net.processing_polls = 0
    moving = film()
    files = [member.live.uploaded(moving, "video/mp4"), photo(member)]
    answer = member.live.post("/v1/posts", {"caption": "Rye", "media": files, "targets": [
        {"platform": "facebook", "postType": "video", "options": {"targeting": {"countries": ["AT"], "ageMin": 18}}},
        {"platform": "instagram", "options": {
            "disableComments": True, "productTags": [{"productId": "77", "media": 1, "x": 0.5, "y": 0.5}]}},
        {"platform": "threads", "options": {
            "shareToInstagram": "dark", "textSpoilers": [{"offset": 0, "length": 3}]}}]})
    assert answer.status == 202, answer.raw
    post = member.live.settled(answer.data["id"], within=60.0)
    assert post["status"] == "published" and not any("error" in target for target in post["targets"]), post

    page, feed, chain = nets.values()
    video = list(page.videos.values())[-1]
    assert page.posts[-1]["targeting"]["age_min"] == 18 and bytes(video.data) == moving and video.thumbnail
    assert feed.posts[-1]["open"] is False and [sorted(one) for one in feed.posts[-1]["files"]] == [
        ["is_carousel_item", "media_type", "upload_type"], ["image_url", "is_carousel_item", "product_tags"]]
    assert chain.posts[-1]["given"]["crossreshare_to_ig_dark_mode"] == "true" and "text_entities" in chain.posts[-1]["given"]


def test_a_lost_answer_is_unconfirmed_and_nothing_is_sent_blindly(member, nets):
    before = {name: len(net.posts) for name, net in nets.items()}
    for name, module in MODULES.items():
        endpoint = module.PUBLISH if isinstance(module.PUBLISH, str) else module.PUBLISH["image"]
        nets[name].fault(endpoint, drop_answer=True)
    answer = member.live.post("/v1/posts", {"caption": "lost", "media": [photo(member)],
                                            "targets": [{"platform": name} for name in MODULES]})
    post = member.live.settled(answer.data["id"], within=30.0)
    assert [target["status"] for target in post["targets"]] == ["unconfirmed"] * 3, post
    assert {name: len(net.posts) for name, net in nets.items()} == {name: count + 1 for name, count in before.items()}


def test_a_page_whose_token_died_is_published_on_with_a_new_one(member, nets):
    facebook.expire(nets["facebook"])
    answer = member.live.post("/v1/posts", {"caption": "still here", "targets": [{"platform": "facebook"}]})
    assert member.live.settled(answer.data["id"])["status"] == "published"
    assert nets["facebook"].posts[-1]["message"] == "still here"
