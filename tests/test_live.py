"""Live mode from end to end: accounts connected by command, one call, the real API and worker, and the networks' stand-ins."""

import io

import pytest
from PIL import Image

from storage.models import Account
from tests.commands import posthorn, rows
from tests.delivery import own_database
from tests.service import Member, Process, start_api
from tests.standins.bluesky import BlueskyServer
from tests.standins.mastodon import MastodonServer
from tests.standins.server import HOST

PASSWORD, TOKEN = "canary-abcd-efgh-ijkl", "canary-mastodon-token"
CAPTION = "Fresh bread with @ben.test at https://bread.example/menu #sourdough"


@pytest.fixture(scope="module")
def networks():
    with BlueskyServer() as bluesky, MastodonServer() as mastodon:
        bluesky.add_user("ann.test", PASSWORD, display_name="Ann")
        bluesky.add_user("ben.test", "other")
        mastodon.add_user("ann", TOKEN, display_name="Ann")
        yield bluesky, mastodon


@pytest.fixture(scope="module")
def live_environ(environ, postgres_url, networks):
    """With a database of its own: the worker of other tests may not reach these networks, and would refuse for them."""
    allowed = ",".join(f"{HOST}:{network.port}" for network in networks)
    bluesky = networks[0].url
    with own_database(postgres_url) as address:
        yield {**environ, "DATABASE_URL": address, "POSTHORN_ALLOW_PRIVATE": allowed, "POSTHORN_BLUESKY_API_URL": bluesky,
               "POSTHORN_BLUESKY_PUBLIC_URL": bluesky, "POSTHORN_BLUESKY_VIDEO_URL": bluesky, "POSTHORN_API_PROCESSES": "1"}


@pytest.fixture(scope="module")
def member(live_environ):
    api, url = start_api(live_environ)
    worker = Process("worker", live_environ)
    member = Member(url)
    team = ["--team", member.team.id]
    posthorn(live_environ, "account", "add", "bluesky", "identifier=ann.test", "host=", *team, stdin=f"{PASSWORD}\n")
    posthorn(live_environ, "account", "add", "mastodon", f"host={_mastodon_url(live_environ)}",
             *team, stdin=f"{TOKEN}\n")
    yield member
    logs = worker.log() + api.log()
    worker.stop()
    api.stop()
    assert "canary" not in logs + worker.log() + api.log()


def _mastodon_url(environ):
    return "http://" + environ["POSTHORN_ALLOW_PRIVATE"].split(",")[1]


def photo(member):
    """The publicUrl of an uploaded picture."""
    file = io.BytesIO()
    Image.effect_noise((640, 480), 40).convert("RGB").save(file, "JPEG")
    raw = file.getvalue()
    answer = member.live.post("/v1/media/upload-url", {"contentType": "image/jpeg", "fileSize": len(raw)})
    put = member.live._pool.request("PUT", answer.data["uploadUrl"], body=raw, headers=answer.body["meta"]["requiredHeaders"])
    assert put.status == 200
    return answer.data["publicUrl"]


def test_one_call_with_text_link_mention_hashtag_and_image_reaches_both_networks_once(member, networks):
    bluesky, mastodon = networks
    before = len(bluesky.posts), len(mastodon.posts)
    answer = member.live.post("/v1/posts", {"caption": CAPTION, "media": [photo(member)], "targets": [
        {"platform": "bluesky", "options": {"altTexts": ["A loaf"], "languages": ["en"]}},
        {"platform": "mastodon", "options": {"altTexts": ["A loaf"], "visibility": "unlisted"}}]})
    assert answer.status == 202
    post = member.live.settled(answer.data["id"])
    assert post["status"] == "published" and all(target["postId"] and target["url"] for target in post["targets"])

    assert (len(bluesky.posts), len(mastodon.posts)) == (before[0] + 1, before[1] + 1)
    record = bluesky.posts[-1]["record"]
    assert record["text"] == CAPTION and record["embed"]["images"][0]["alt"] == "A loaf"
    assert [facet["text"] for facet in bluesky.posts[-1]["facets"]] == ["@ben.test", "https://bread.example/menu", "#sourdough"]
    status = mastodon.posts[-1]
    assert CAPTION in str(status) and "A loaf" in str(status) and "unlisted" in str(status)


@pytest.mark.parametrize("endpoint, network", [("com.atproto.repo.putRecord", 0), ("POST /api/v1/statuses", 1)], ids=["bluesky", "mastodon"])
def test_a_lost_answer_is_unconfirmed_and_nothing_is_sent_blindly(member, networks, endpoint, network):
    name = ["bluesky", "mastodon"][network]
    before = len(networks[network].posts)
    networks[network].fault(endpoint, drop_answer=True)
    answer = member.live.post("/v1/posts", {"caption": f"lost on {name}", "targets": [{"platform": name}]})
    post = member.live.settled(answer.data["id"])
    assert post["targets"][0]["status"] == "unconfirmed", post
    assert post["targets"][0]["error"]["code"] == "external_service_error"
    assert len(networks[network].posts) == before + 1


def test_a_revoked_password_disconnects_the_account_and_says_what_to_do(member, networks):
    networks[1].tokens[TOKEN].state = "revoked"
    answer = member.live.post("/v1/posts", {"caption": "hello", "targets": [{"platform": "mastodon"}]})
    target = member.live.settled(answer.data["id"])["targets"][0]
    assert target["error"]["code"] == "invalid_state" and "connect it again" in target["error"]["message"]
    accounts = {account["platform"]: account["status"] for account in member.live.get("/v1/accounts").data["accounts"]}
    assert accounts == {"bluesky": "connected", "mastodon": "disconnected"}
    refused = member.live.post("/v1/posts", {"caption": "hello", "targets": [{"platform": "mastodon"}]})
    assert (refused.status, refused.code) == (409, "invalid_state")


def test_an_account_that_is_removed_forgets_its_credentials(member, live_environ, connection):
    account = rows(live_environ, "account", "list", "--team", member.team.id)[0]
    posthorn(live_environ, "account", "remove", account["id"], "--team", member.team.id)
    row = Account.get_by_id(account["id"])
    assert (row.status, row.credentials) == ("disconnected", None)
