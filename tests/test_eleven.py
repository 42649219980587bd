"""Live mode on all eleven networks at once: one call, the real API and worker, and a stand-in of each network."""

import io
import time
from contextlib import ExitStack
from importlib import import_module

import av
import pytest
from PIL import Image

from platforms.registry import PLATFORMS
from storage.database import database
from tests.delivery import own_database
from tests.service import Member, Process, start_api
from tests.standins.server import HOST
from tests.test_long_videos import LATER

NAMES = [platform.name for platform in PLATFORMS]
MODULES = {name: import_module(f"tests.networks.{name}") for name in NAMES}
# What each network gets of one call with one photo and one film: its post type, and whose media.
KINDS = {"instagram": ("image", "photo"), "tiktok": ("video", "film"), "youtube": ("video", "film"), "linkedin": ("image", "photo"),
         "twitter": ("video", "film"), "facebook": ("image", "photo"), "pinterest": ("image", "photo"), "bluesky": ("image", "photo"),
         "threads": ("text", None), "mastodon": ("video", "film"), "gbp": ("update", "photo")}

NEEDED = {"tiktok": ("privacyLevel",), "youtube": ("title",), "pinterest": ("boardId",)}
CAPTION = "Fresh bread from the oven, every morning at six"


@pytest.fixture(scope="module")
def networks():
    with ExitStack() as running:
        yield {name: running.enter_context(module.start()) for name, module in MODULES.items()}


@pytest.fixture(scope="module")
def live_environ(environ, postgres_url, networks):
    """With a database of its own, and every network's address and app as the operator sets them."""
    addresses = {f"POSTHORN_{name.upper()}_{key.upper()}": value
                 for name, net in networks.items() for key, value in MODULES[name].settings(net).items()}
    with own_database(postgres_url) as address:
        yield {**environ, **addresses, "DATABASE_URL": address, "POSTHORN_API_PROCESSES": "1",
               "POSTHORN_ALLOW_PRIVATE": ",".join(f"{HOST}:{net.port}" for net in networks.values())}


@pytest.fixture(scope="module")
def member(live_environ, networks):
    """A team with an account on each network."""
    api, url = start_api(live_environ)
    worker = Process("worker", live_environ)
    member = Member(url)
    for name, net in networks.items():
        account = MODULES[name].account(net)
        member.account(live_environ, name, account.username, platform_id=account.platform_id, host=account.host,
                       credentials=account.credentials)
    yield member
    logs = worker.log() + api.log()
    worker.stop()
    api.stop()
    assert "canary" not in logs + worker.log() + api.log()


@pytest.fixture(scope="module")
def files(member):
    """The public addresses of a photo and a film."""
    return {"photo": member.live.uploaded(photo(), "image/jpeg"), "film": member.live.uploaded(film(), "video/mp4")}


def photo():
    """A JPEG that every network takes."""
    file = io.BytesIO()
    Image.effect_noise((1080, 1080), 40).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def film():
    """Five seconds of MP4, upright."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=4, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 720, 1280, "yuv420p"
        for number in range(20):
            picture = Image.new("RGB", (720, 1280), (number * 12, 90, 30))
            container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode())
    return file.getvalue()


def target(name, files):
    """A target of the post type that this network gets, with the options that it needs."""
    kind, file = KINDS[name]
    sample = MODULES[name].SAMPLES[kind]
    options = {key: value for key, value in sample.options.items() if key in NEEDED.get(name, ())}
    return {"platform": name, "postType": kind, "options": {**options, "media": [files[file]] if file else []}}


def published(networks):
    """The ids of what is public, by network."""
    return {name: list(MODULES[name].public(net)) for name, net in networks.items()}


def hurried(member, networks, post_id):
    """The post once nothing is on its way; what the networks are to be asked about later is asked at once."""
    deadline = time.monotonic() + 60
    while (post := member.live.get(f"/v1/posts/{post_id}").data)["status"] in ("scheduled", "publishing"):
        assert time.monotonic() < deadline, post
        for net in networks.values():
            net.advance(5)
        with database.connection_context():
            database.execute_sql(LATER)
        time.sleep(0.1)
    return post


def test_one_call_reaches_all_eleven_networks_once(member, networks, files):
    before = published(networks)
    answer = member.live.post("/v1/posts", {"caption": CAPTION, "targets": [target(name, files) for name in NAMES]})
    assert answer.status == 202, answer.raw
    post = hurried(member, networks, answer.data["id"])
    assert [(one["platform"], one["status"]) for one in post["targets"]] == [(name, "published") for name in NAMES], post
    new = {name: [one for one in ids if one not in before[name]] for name, ids in published(networks).items()}
    assert {one["platform"]: [one["postId"]] for one in post["targets"]} == new
    assert all(one["url"].startswith("http") and "error" not in one for one in post["targets"])


def test_a_photo_beside_a_film_is_its_cover_and_texts_beside_them_go_with_them(member, networks, files):
    link = {"url": "https://bakery.example.com/menu", "title": "Menu"}
    wanted = {
        "linkedin": {"title": "How bread is made", "firstComment": "More on our site"},
        "twitter": {"subtitles": [{"language": "en", "name": "English", "text": "WEBVTT"}], "thread": ["And rolls"]},
        "mastodon": {"altTexts": ["", "Dough on a table"], "thread": ["And rolls"]},
        "bluesky": {"link": link, "media": [files["photo"]], "replyControl": ["nobody"]},
    }
    before = published(networks)
    targets = [{"platform": name, "options": {"media": [files["photo"], files["film"]], **options}}
               for name, options in wanted.items()]
    answer = member.live.post("/v1/posts", {"caption": CAPTION + "!", "targets": targets})
    assert answer.status == 202, answer.raw
    post = hurried(member, networks, answer.data["id"])
    assert [(one["platform"], one["status"], one.get("error")) for one in post["targets"]] == [
        (name, "published", None) for name in wanted], post
    assert {name: len(ids) - len(before[name]) for name, ids in published(networks).items() if name in wanted} == {
        "linkedin": 1, "twitter": 2, "mastodon": 2, "bluesky": 1}
    [film] = [one for one in networks["mastodon"].media.values() if one.thumbnail]
    assert film.description == "Dough on a table" and film.thumbnail.media_type == "image/jpeg"
    assert [len(one.subtitles) for one in networks["twitter"].media.values()].count(1) == 1
    assert [asset.thumbnail[:2] for asset in networks["linkedin"].assets.values() if asset.thumbnail] == [b"\xff\xd8"]
    assert networks["bluesky"].posts[-1]["record"]["embed"]["external"]["thumb"]["mimeType"] == "image/jpeg"


def test_no_credential_is_in_any_answer(member):
    answers = [member.live.get(path).raw for path in ("/v1/accounts", "/v1/posts", "/v1/platforms")]
    assert not any(b"canary" in raw for raw in answers)


def test_what_is_no_post_is_delivered_too_and_a_refused_thumbnail_is_told(member, networks, files, monkeypatch):
    wanted = {
        "youtube": {"title": "Bread", "language": "en", "localizations": [{"language": "de", "title": "Brot"}]},
        "pinterest": MODULES["pinterest"].SAMPLES["image"].options,
    }
    targets = [{"platform": name, "options": {**options, "media": [files["photo"], files["film"]]}}
               for name, options in wanted.items()]
    targets += [{"platform": "tiktok", "options": {"draft": True, "media": [files["film"]]}},
                {"platform": "gbp", "options": {"category": "INTERIOR", "media": [files["photo"]]}}]
    monkeypatch.setattr(networks["youtube"].consenting, "verified", False)
    answer = member.live.post("/v1/posts", {"caption": CAPTION + "?", "targets": targets})
    assert answer.status == 202, answer.raw
    post = hurried(member, networks, answer.data["id"])
    assert [(one["status"], one.get("error", {}).get("rule")) for one in post["targets"]] == [
        ("published", "thumbnail"), ("published", None), ("published", None), ("published", None)], post
    ids = [one["postId"] for one in post["targets"]]
    video = networks["youtube"].videos[ids[0]]
    assert video["localizations"]["de"]["title"] == "Brot" and video in networks["youtube"].posts
    assert networks["pinterest"].posts[-1]["id"] == ids[1]
    assert networks["pinterest"].posts[-1]["source"]["cover_image_url"] == files["photo"]
    assert networks["tiktok"].drafts[-1]["publish_id"] == ids[2]
    assert (networks["gbp"].added[-1]["id"], networks["gbp"].added[-1]["data"][:2]) == (ids[3], b"\xff\xd8")
