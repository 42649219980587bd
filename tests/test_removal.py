"""Files that go after the last post that used them, while another post begins to use them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from peewee import fn

from storage import posts, sweep as module
from storage.database import database
from storage.models import Media
from storage.posts import NewTarget, Post, Target
from tests.media_samples import image
from tests.service import Member
from tests.stage import eventually
from tests.test_media_api import using
from tests.test_sweep import Shelf, now, stored, sweep, team, used  # noqa: F401

DAY = timedelta(days=1)
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
ERROR = {"code": "unprocessable", "message": "no", "retryable": False}
TARGET = {"platform": "bluesky", "asked_type": None, "post_type": "image", "account_id": None, "caption": None,
          "own_media": False, "options": {}}


@pytest.fixture
def file(team):
    """A file of the team that a post has done with, its store, and what makes another post of it."""
    shelf = Shelf()
    media = stored(shelf, team, age=60 * DAY)
    used(media, team)
    yield media, shelf, lambda: posts.create(team, client_id=None, caption="", schedule_at=None,
                                             targets=[NewTarget(**TARGET, media=[media])])
    with database.atomic():
        posts.Attachment.delete().where(posts.Attachment.team_id == team.team_id).execute()
        for model in (Target, Post):
            model.delete().where(model.team_id == team.team_id).execute()


def waiting():
    return database.execute_sql(WAITING).fetchone()[0]


def test_a_file_used_again_since_it_was_found_stays(team, monkeypatch):
    shelf, retire, done = Shelf(), module._Run._retire, []
    rows = [stored(shelf, team, age=60 * DAY) for _ in range(2)]
    for media in rows:
        used(media, team)

    def retire_one(run, media):
        retire(run, media)
        if not done:
            done.append(media)
            [other] = [row for row in rows if row.id != media.id]
            used(other, team, "scheduled", finished=-DAY)

    monkeypatch.setattr(module._Run, "_retire", retire_one)
    assert sweep(shelf, finished=5 * DAY).finished == 1
    assert [(now(media)[0], media.key in shelf) for media in rows] == [
        ("refused", False) if media.id == done[0].id else ("ready", True) for media in rows]


def test_a_removal_waits_for_the_post_that_begins_to_use_the_file(file):
    media, shelf, use = file
    with ThreadPoolExecutor(1) as other:
        with database.atomic():
            use()
            swept = other.submit(sweep, shelf, finished=5 * DAY)
            eventually(waiting)
        assert swept.result().finished == 0 and now(media)[0] == "ready" and media.key in shelf


def test_a_post_waits_for_the_removal_that_has_begun(file, monkeypatch):
    media, shelf, use = file
    begun, go_on, take = threading.Event(), threading.Event(), module._take_renditions

    def take_when_told(media):
        begun.set()
        assert go_on.wait(10)
        return take(media)

    def make():
        with database.connection_context(), database.atomic():
            use()

    monkeypatch.setattr(module, "_take_renditions", take_when_told)
    with ThreadPoolExecutor(2) as others:
        swept = others.submit(sweep, shelf, finished=5 * DAY)
        assert begun.wait(10)
        made = others.submit(make)
        eventually(waiting)
        go_on.set()
        assert swept.result().finished == 1 and isinstance(made.exception(), posts.ChangedMeanwhile)


def test_a_file_removed_while_a_post_is_made_or_retried_is_told(api_url, connection):
    member = Member(api_url)
    url = member.test.uploaded(image("PNG"), "image/png")
    post_id = member.test.post("/v1/posts", using(url)).data["id"]
    with database.atomic():
        database.execute_sql("SET LOCAL session_replication_role = replica")      # no trigger asks how it came so far
        failed = Target.update(status="failed", next_at=None, error=ERROR, finished_at=fn.now())
        failed.where(Target.post_id == post_id).execute()
    Media.update(state="refused", refusal="it was removed").where(Media.team_id == member.team.id).execute()
    answer = member.test.post(f"/v1/posts/{post_id}/retry", {})
    assert (answer.status, answer.code) == (409, "invalid_state") and "has been removed" in answer.body["error"]["message"]
    assert member.test.get(f"/v1/posts/{post_id}").data["status"] == "failed"
