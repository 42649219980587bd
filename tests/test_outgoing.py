"""What the connectors get of a post's files: what fits their network, made once; and what happens where nothing can be made."""

import io
import time
from dataclasses import asdict, replace

from platforms.base import GIF, JPEG, MP4, PNG, Content, ImageLimits, Limits, PostType
from platforms.bluesky import Bluesky
from platforms.errors import Unavailable, Unconfirmed
from platforms.outgoing import media_of
from platforms.publisher import Publisher
from storage import renditions
from storage.database import database
from storage.models import Media
from storage.objects import Objects
from tests.delivery import DONE, Networks, Told
from tests.delivery import address, desk, whole_desk  # fixtures
from tests.live import account, http_for
from tests.media_samples import examine, image, video
from tests.pictures import CANARY, encoded, exif, noise, opened, quarters, turned
from tests.service import free_port
from tests.shelf import store  # fixture
from tests.standins.bluesky import BlueskyServer

PASSWORD = "canary-xxxx-yyyy"


class Gallery(Told):
    """Takes JPEG, in posts of one type only half as large, and keeps what it was given."""

    limits = Limits(caption=100, media_items=4, source="", reviewed_at="", image=ImageLimits(types=(JPEG,)))
    post_types = {"text": PostType(images=(0, 4), videos=(0, 4), mixed=True, image=ImageLimits(types=(JPEG,), max_width=48))}
    here = None

    def __init__(self, **courses):
        super().__init__(**courses)
        self.given = {}

    def for_account(self, account):
        """Itself, or what stands for it where this account has limits of its own."""
        return self.here or self

    def prepare(self, account, content, receipt):
        self._look(content, "prepare")
        yield from super().prepare(account, content, receipt)

    def publish(self, account, content, receipt):
        self._look(content, "publish")
        return super().publish(account, content, receipt)

    def follow(self, account, content, receipt):
        self._look(content, "follow")
        yield from super().follow(account, content, receipt)

    def find(self, account, content, receipt):
        self._look(content, "find")
        return super().find(account, content, receipt)

    def _look(self, content, verb):
        self.given[verb] = [(item.mime_type, item.width, item.height) for item in content.media]
        for item in content.media:
            with item.open() as file:
                data = file.read()
            assert len(data) == item.bytes and item.url.endswith(tuple(".jpg .png .webp .gif .mp4".split()))
            assert CANARY not in data or content.options.get("sandbox")


def stored(desk, store, tmp_path, *files, **lies):
    """The rows of files with these bytes."""
    for number, data in enumerate(files):
        (tmp_path / "file").write_bytes(data)
        facts = examine(tmp_path / "file")
        key = f"{desk.team.id}/live/{time.monotonic_ns()}-{number}.{facts.mime_type.rpartition('/')[2].replace('jpeg', 'jpg')}"
        store.put(key, io.BytesIO(data), len(data), facts.mime_type)
        values = {**asdict(facts), "bytes": len(data), "key": key, "state": "ready", **lies}
        with database.connection_context():
            yield Media.add(team_id=desk.team.id, mode="live", user_id=desk.caller.user_id, **values)


def run(desk, network, store, media, **options):
    """A target with these files after one run, as the database has it."""
    target = desk.target(desk.account(), media=list(media), **options)
    desk.run(Publisher(Networks(network), desk.vault, store))
    return desk.row(target)


FILES = [turned(JPEG, 6), encoded(quarters(), PNG, exif=exif()), image("GIF", "P"), video("mp4")]
FIT = [(JPEG, 48, 32), (JPEG, 48, 32), (GIF, 64, 48), (MP4, 64, 48)]


def test_a_connector_gets_what_fits_its_network(desk, store, tmp_path):
    network = Gallery(publish=[DONE])
    assert run(desk, network, store, stored(desk, store, tmp_path, *FILES)).status == "published"
    assert network.given == {"prepare": FIT, "publish": FIT}


def test_the_limits_of_the_account_decide(desk, store, tmp_path):
    network, narrow = Gallery(publish=[DONE]), Gallery()
    narrow.post_types = {"text": PostType(images=(0, 4))}
    narrow.limits = replace(Gallery.limits, image=ImageLimits(types=(JPEG, PNG), max_height=16))
    network.here = narrow
    run(desk, network, store, stored(desk, store, tmp_path, FILES[1]))
    assert network.given["publish"] == [(JPEG, 24, 16)]


def test_a_network_without_limits_gets_clean_files(desk, store, tmp_path):
    network = Gallery(publish=[DONE])
    network.post_types, network.limits = Told.post_types, Told.limits
    run(desk, network, store, stored(desk, store, tmp_path, *FILES[:2]))
    assert network.given["publish"] == [(JPEG, 96, 64), (PNG, 96, 64)]


def test_the_sandbox_gets_the_originals(desk, store, tmp_path):
    network = Gallery(publish=[DONE])
    target = desk.target(None, media=list(stored(desk, store, tmp_path, *FILES[:2])), options={"sandbox": True})
    desk.run(Publisher(Networks(network), desk.vault, store))
    assert desk.row(target).status == "published" and network.given["publish"] == [(JPEG, 96, 64), (PNG, 96, 64)]
    assert desk.sql("SELECT count(*) FROM renditions JOIN attachments USING (media_id) WHERE target_id = %s", target) == [(0,)]


def test_what_was_made_is_there_for_the_next_try_and_for_what_follows(desk, store, tmp_path, monkeypatch):
    network = Gallery(publish=[Unavailable("no"), DONE], follow=[[]])
    media = list(stored(desk, store, tmp_path, *FILES))
    target = run(desk, network, store, media, options={"firstComment": "hi"}).id
    monkeypatch.setattr(renditions, "CONVERT", "there is no such file")
    publisher = Publisher(Networks(network), desk.vault, store)
    desk.run(publisher, target)
    desk.run(publisher, target)
    assert desk.row(target).status == "published" and network.given == {"prepare": FIT, "publish": FIT, "follow": FIT}


def test_looking_for_a_post_converts_nothing(desk, store, tmp_path, monkeypatch):
    network = Gallery(publish=[Unconfirmed("no")], find=[None, DONE])
    media = list(stored(desk, store, tmp_path, *FILES))
    target = run(desk, network, store, media).id
    monkeypatch.setattr(renditions, "CONVERT", "there is no such file")
    publisher = Publisher(Networks(network), desk.vault, store)
    desk.run(publisher, target)
    assert network.given.pop("find") == FIT
    desk.sql("DELETE FROM renditions")
    network._look = lambda content, verb: network.given.update({verb: [item.width for item in content.media]})
    desk.run(publisher, target)
    assert network.given["find"] == [96, 96, 64, 64]     # the originals
    assert desk.row(target).status == "published"


def test_an_image_that_cannot_be_converted_fails_at_once_and_is_named(desk, store, tmp_path):
    network = Gallery(publish=[DONE])
    moving = image("WEBP", frames=3)
    media = [*stored(desk, store, tmp_path, FILES[1]), *stored(desk, store, tmp_path, moving, animated=False)]
    row = run(desk, network, store, media)
    assert (row.status, row.error["code"], row.error["rule"]) == ("failed", "unprocessable", "media")
    assert row.error["message"] == "image 2 of the post cannot be converted: it is an animation"
    assert network.verbs() == []


def test_a_store_that_is_away_puts_the_post_off_and_is_not_held_against_the_network(desk, store, tmp_path):
    network = Gallery(publish=[DONE])
    target = desk.target(desk.account(), media=list(stored(desk, store, tmp_path, FILES[0])))
    publisher = Publisher(Networks(network), desk.vault, Objects(f"http://127.0.0.1:{free_port()}", "a", "b", "media"))
    desk.run(publisher)
    row = desk.row(target)
    assert (row.status, row.tries) == ("scheduled", 1) and publisher.breakers.wait("told") == 0 and network.verbs() == []
    desk.run(Publisher(Networks(network), desk.vault, store), target)
    assert desk.row(target).status == "published"


def test_a_child_that_is_killed_puts_the_post_off(desk, store, tmp_path, monkeypatch):
    network = Gallery(publish=[DONE])
    media = list(stored(desk, store, tmp_path, FILES[0]))
    script = tmp_path / "child.py"
    script.write_text("import os\nos.kill(os.getpid(), 9)\n")
    with monkeypatch.context() as patch:
        patch.setattr(renditions, "CONVERT", script)
        row = run(desk, network, store, media)
    assert row.status == "scheduled" and network.verbs() == []
    desk.run(Publisher(Networks(network), desk.vault, store), row.id)
    assert desk.row(row.id).status == "published" and network.given["publish"] == FIT[:1]


# From end to end.

def test_three_megabytes_of_png_go_out_to_bluesky_under_its_limit(desk, store, tmp_path):
    data = encoded(noise(1100, 900), PNG, exif=exif())
    with BlueskyServer() as net:
        net.add_user("ann.test", PASSWORD)
        bluesky = Bluesky(http_for(net), {"api_url": net.url, "video_url": net.url})
        connected = bluesky.connect({"identifier": "ann.test", "appPassword": PASSWORD})
        [row] = stored(desk, store, tmp_path, data)
        assert row.bytes > 2_900_000 and bluesky.problems(Content("hi", (media_of(row, store),)), account(connected)) == []
        account_id = desk.account("bluesky", credentials=connected.credentials)
        desk.sql("UPDATE accounts SET platform_id = %s WHERE id = %s", connected.profile.platform_id, account_id)
        target = desk.target(account_id, media=[row], platform="bluesky", options={"altTexts": ["noise"]})
        desk.sql("UPDATE targets SET post_type = 'image' WHERE id = %s", target)
        desk.run(Publisher(Networks(bluesky), desk.vault, store))
        assert desk.row(target).status == "published", desk.row(target).error
        [shown] = net.posts[0]["record"]["embed"]["images"]
        [request] = net.calls("com.atproto.repo.uploadBlob")
    assert shown["image"]["mimeType"] == JPEG == request.headers["Content-Type"] and shown["image"]["size"] < 2_000_000
    assert shown["aspectRatio"] == {"width": 1100, "height": 900}
    with store.open(row.key) as file:
        assert file.read() == data
    [[key, size]] = desk.sql("SELECT key, bytes FROM renditions WHERE media_id = %s", row.id)
    with store.open(key) as file:
        sent = file.read()
    assert len(sent) == size == shown["image"]["size"] and opened(sent).size == (1100, 900) and CANARY not in sent
