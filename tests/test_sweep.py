"""Files that are looked after: retention, and the comparison of the store with the database, on both real ones."""

import io
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from storage import claims
from storage.database import database, new_id, with_connection
from storage.media import new_key
from storage.models import Media, Team, User
from storage.objects import Objects, StoreUnavailable
from storage.posts import Attachment
from storage.renditions import Rendition
from storage.sweep import Retention, Sweep
from tests.commands import posthorn
from tests.media_samples import HTML, image
from tests.servers import BUCKET
from tests.service import Member, as_left
from tests.test_media_api import put

POST = """
INSERT INTO posts (id, team_id, mode, user_id) VALUES (%(post)s, %(team)s, 'live', %(user)s);
INSERT INTO targets (id, team_id, mode, post_id, position, platform, post_type, caption, status, due_at, finished_at,
                     platform_post_id, error)
VALUES (%(target)s, %(team)s, 'live', %(post)s, 0, 'bluesky', 'image', '', %(status)s, %(at)s, %(at)s, '1', '{}');
INSERT INTO attachments VALUES (%(team)s, 'live', %(target)s, 0, %(media)s);
"""
PNG = image("PNG")
DAY = timedelta(days=1)


class Shelf(dict):
    """What a sweep needs of a store, with nothing on it but what the test has put there: key -> bytes, all an hour old."""

    stat = dict.get

    def ready(self):
        return True

    def delete(self, key):
        self.pop(key, None)

    def put(self, key, file, size, content_type):
        self[key] = size

    def list(self, after=None):
        modified = datetime.now(UTC) - timedelta(hours=1)
        return ((key, size, modified) for key, size in sorted(self.items()) if key > (after or ""))


@pytest.fixture(scope="module")
def objects(environ, store_address):
    at = store_address
    return Objects(at.endpoint_url, at.access_key, at.secret_key, at.bucket, at.region)


@pytest.fixture
def team(environ):
    """A team of its own, whose rows are gone afterwards; those of other tests are younger than anything swept."""
    with with_connection():
        row = Team.add(name="T")
        yield SimpleNamespace(team_id=row.id, mode="live", user_id=User.add(team_id=row.id, name="U").id, client_id=None)
        for model in (Rendition, Attachment, Media):
            model.delete().where(model.team_id == row.id).execute()


def sweep(objects, *, dry_run=False, **retention):
    return Sweep(objects, Retention(**retention)).whole(dry_run=dry_run)


def stored(objects, team, content=PNG, *, state="ready", age=timedelta(), row=True, declared=None, there=True, looked=None):
    """A file of the team, `age` old."""
    key = new_key(team, "image/png")
    if there:
        objects.put(key, io.BytesIO(content), len(content), "image/png")
    if not row:
        return key
    return Media.add(team_id=team.team_id, mode=team.mode, user_id=team.user_id, key=key, state=state, mime_type="image/png",
                     bytes=declared or len(content), created_at=datetime.now(UTC) - age, looked_at=looked)


def used(media, team, status="published", finished=timedelta(days=10)):
    """A post that uses the file."""
    post, target, at = new_id("post"), new_id("target"), datetime.now(UTC) - finished
    row = {"post": post, "target": target, "team": team.team_id, "user": team.user_id, "media": media.id, "status": status,
           "at": at}
    with database.atomic():
        database.execute_sql("SET LOCAL session_replication_role = replica")      # no trigger asks how it came so far
        with as_left():
            database.execute_sql(POST, row)


def made(media, team, objects):
    """A picture converted from the file; returns its key."""
    key = stored(objects, team, row=False)
    Rendition.insert(team_id=team.team_id, mode=team.mode, media_id=media.id, recipe="x", key=key, mime_type="image/png",
                     bytes=1, width=1, height=1).execute()
    return key


def now(media):
    """(state, refusal, whether its bytes are gone), or None without a row."""
    row = Media.get_or_none(Media.id == media.id)
    return row and (row.state, row.refusal, row.removed_at is not None)


# Claims

def test_an_upload_that_nobody_used_is_looked_at(objects, team):
    good, bad, larger, missing, fresh = (
        stored(objects, team, state="pending", age=timedelta(minutes=20)),
        stored(objects, team, HTML, state="pending", age=timedelta(minutes=20)),
        stored(objects, team, state="pending", age=timedelta(minutes=20), declared=5),
        stored(objects, team, state="pending", age=timedelta(minutes=20), there=False),
        stored(objects, team, state="pending"))
    assert (sweep(objects, dry_run=True).ready, now(good)) == (1, ("pending", None, False))
    swept = sweep(objects)
    assert (swept.ready, swept.refused, swept.late) == (1, 2, 0)
    assert now(good) == ("ready", None, False) and Media.get_by_id(good.id).width is not None
    assert now(bad)[0] == "refused" and "5 were declared" in now(larger)[1]
    assert now(missing) == now(fresh) == ("pending", None, False)
    assert Media.get_by_id(missing.id).looked_at is not None


@pytest.mark.parametrize("content_type, header, words", [
    ("image/png", {"Content-Encoding": "gzip"}, "sent with the Content-Encoding gzip"),
    ("text/html", {}, "sent as text/html")])
def test_an_upload_with_a_wrong_label_is_refused_unread(objects, team, monkeypatch, content_type, header, words):
    monkeypatch.setattr(claims, "examine", None)
    media = stored(objects, team, state="pending", age=timedelta(minutes=20), there=False)
    url, headers = objects.presigned_put(media.key, len(PNG), content_type, 60)
    assert put(url, PNG, headers | header).status == 200
    assert sweep(objects).refused == 1 and words in now(media)[1]


def test_every_claim_has_its_turn(team, monkeypatch):
    monkeypatch.setattr("storage.sweep.BATCH", 2)
    Media.update(state="refused").where(Media.state == "pending").execute()     # those of other tests, who would have turns too
    shelf = Shelf()
    rows = [stored(shelf, team, state="pending", age=timedelta(hours=5), there=False) for _ in range(5)]
    looked = []
    for _ in range(3):
        due(0)
        Sweep(shelf, Retention()).round()
        looked.append(sum(Media.get_by_id(row.id).looked_at is not None for row in rows))
    assert looked == [2, 4, 5]


class _Stubborn(Shelf):
    """A store that does not give or remove one of its objects."""

    def __init__(self, key, away=False):
        super().__init__()
        self._key, self._away = key, away

    def ready(self):
        return not self._away

    def _ask(self, key):
        if key == self._key:
            raise StoreUnavailable("the object store refused (AccessDenied)")

    def stat(self, key):
        return self._ask(key) or self.get(key)

    def delete(self, key):
        self._ask(key)
        super().delete(key)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("the child failed"), KeyError("?")])
def test_an_upload_that_cannot_be_looked_at_stops_no_other_and_is_kept(objects, team, monkeypatch, error):
    first, second = (stored(objects, team, state="pending", age=age) for age in (timedelta(hours=25), timedelta(minutes=20)))
    look = claims.look

    def broken(objects, media):
        if media.id == first.id:
            raise error
        return look(objects, media)

    monkeypatch.setattr(claims, "look", broken)
    swept = sweep(objects)
    assert (swept.ready, swept.late, now(second)[0], now(first)[0]) == (1, 0, "ready", "pending")
    assert objects.stat(first.key) and Media.get_by_id(first.id).looked_at is not None


def test_an_object_that_the_store_holds_fast_stops_nothing(team):
    media = stored(Shelf(), team, state="pending", age=timedelta(minutes=30), there=False)
    refused = stored(Shelf(), team, state="refused", age=2 * DAY)
    orphan = stored(Shelf(), team, row=False)
    shelf = _Stubborn(orphan)
    lost, other = stored(shelf, team, there=False, age=DAY), stored(shelf, team, row=False)
    shelf[orphan] = 1
    assert sweep(shelf, missing=timedelta(0)).orphans == 1 and orphan in shelf and other not in shelf
    assert now(lost)[0] == "refused"
    assert sweep(_Stubborn(media.key)).emptied == 1 and now(refused)[2] and now(media)[0] == "pending"
    with pytest.raises(StoreUnavailable):
        sweep(_Stubborn(media.key, away=True))


def test_slow_looks_leave_time_for_the_rest(team, monkeypatch):
    clock, shelf = [0.0], Shelf()

    def look(objects, media):
        clock[0] += 10

    monkeypatch.setattr("storage.sweep.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(claims, "look", look)
    for _ in range(40):
        stored(shelf, team, state="pending", age=timedelta(hours=1))
    stored(shelf, team, age=40 * DAY)
    due(0)
    assert Sweep(shelf, Retention()).round().unused == 1 and clock == [150.0]


def test_no_team_waits_for_the_uploads_of_another(team, monkeypatch):
    monkeypatch.setattr("storage.sweep.BATCH", 2)
    shelf, other = Shelf(), SimpleNamespace(**vars(team))
    other.team_id = Team.add(name="O").id
    other.user_id = User.add(team_id=other.team_id, name="U").id
    for _ in range(5):
        stored(shelf, team, state="pending", age=timedelta(hours=2), there=False)
    mine = stored(shelf, other, state="pending", age=timedelta(hours=1), there=False)
    due(0)
    Sweep(shelf, Retention()).round()
    assert Media.get_by_id(mine.id).looked_at is not None
    mine.delete_instance()


def test_an_upload_that_never_arrived_is_forgotten(objects, team):
    old, arrived, unlooked = (stored(objects, team, state="pending", age=2 * DAY, there=False),
                              stored(objects, team, state="pending", age=2 * DAY),
                              stored(objects, team, state="pending", age=timedelta(hours=23), there=False))
    assert sweep(objects).late == 1
    assert now(old) is None and now(arrived)[0] == "ready" and now(unlooked)[0] == "pending"


def test_what_was_refused_is_removed_and_counts_no_longer(objects, team):
    young, old = (stored(objects, team, HTML, state="refused", age=age) for age in (timedelta(hours=1), timedelta(hours=3)))
    with pytest.raises(claims.QuotaFull):
        claims.claim(team, quota=2 * len(HTML), key=new_key(team, "image/png"), mime_type="image/png", bytes=1)
    assert [sweep(objects).emptied for _ in range(2)] == [1, 0]
    assert (objects.stat(young.key).bytes, objects.stat(old.key)) == (len(HTML), None)
    assert now(old) == ("refused", None, True)
    claims.claim(team, quota=2 * len(HTML), key=new_key(team, "image/png"), mime_type="image/png", bytes=1)


# Retention

def test_what_no_post_uses_goes_and_what_one_uses_stays(objects, team):
    unused, young, kept = (stored(objects, team, age=age) for age in (31 * DAY, 29 * DAY, 400 * DAY))
    used(kept, team, finished=300 * DAY)
    keys = [made(row, team, objects) for row in (unused, kept)]
    assert (sweep(objects, dry_run=True).unused, now(unused)) == (1, ("ready", None, False))
    assert sweep(objects).unused == 1
    assert [now(unused), now(young), now(kept)] == [None, ("ready", None, False), ("ready", None, False)]
    gone = [objects.stat(key) is None for key in (unused.key, keys[0], young.key, kept.key, keys[1])]
    assert gone == [True, True, False, False, False]
    assert Attachment.select().where(Attachment.media_id == kept.id).count() == 1


@pytest.mark.parametrize("statuses, goes", [
    (["published"], True), (["failed", "canceled"], True), (["published", "scheduled"], False), (["unconfirmed"], False)])
def test_files_of_finished_posts_go_where_a_setting_says_so(objects, team, statuses, goes):
    media = stored(objects, team, age=20 * DAY)
    for status in statuses:
        used(media, team, status)
    key = made(media, team, objects)
    assert sweep(objects).finished == sweep(objects, finished=11 * DAY).finished == 0
    assert sweep(objects, finished=9 * DAY).finished == goes
    assert (objects.stat(media.key) is None, objects.stat(key) is None) == (goes, goes)
    assert now(media) == (("refused", "it was removed some time after the last post that used it", True) if goes else
                          ("ready", None, False))


# The comparison

def test_objects_without_a_row_are_removed_after_a_time(objects, team):
    orphan, mine, foreign = stored(objects, team, row=False), stored(objects, team), "somebody-elses/backup.tar"
    stranger = new_key(SimpleNamespace(team_id=new_id("team"), mode="live"), "image/png")
    for key in (foreign, stranger, "posthorn-probe-0"):
        objects.put(key, io.BytesIO(b"x"), 1, "text/plain")
    every = [orphan, mine.key, made(mine, team, objects), foreign, stranger, "posthorn-probe-0"]

    def there():
        return [objects.stat(key) is not None for key in every]

    sweep(objects)
    assert sweep(objects, dry_run=True, missing=timedelta(0)).orphans >= 2 and all(there())
    swept = sweep(objects, missing=timedelta(0))
    assert swept.orphans >= 2 and swept.orphan_bytes > len(PNG)
    assert there() == [False, True, True, True, True, False]


def test_objects_whose_rows_a_restored_database_may_have_lost_stay_as_long_as_unused_files(objects, team, monkeypatch):
    orphan, at = stored(objects, team, row=False), datetime.now(UTC)
    monkeypatch.setattr("storage.sweep.gaps", lambda: [(at - DAY, at - DAY), (at - timedelta(hours=5), at)])
    sweep(objects, missing=timedelta(0))
    assert objects.stat(orphan) is not None
    sweep(objects, missing=timedelta(0), unused=timedelta(0))
    assert objects.stat(orphan) is None


def test_rows_without_an_object_are_refused(team):
    shelf = Shelf()
    rows = [stored(shelf, team, age=DAY, there=number > 0) for number in range(12)]
    fresh = stored(shelf, team, there=False)
    assert sweep(shelf, dry_run=True).lost == 1 and now(rows[0])[0] == "ready"
    assert sweep(shelf).lost == 1
    assert now(rows[0]) == ("refused", "it is no longer in the store", False)
    assert {now(row) for row in (*rows[1:], fresh)} == {("ready", None, False)}


def test_a_rendition_without_an_object_is_forgotten_and_made_again(team):
    shelf = Shelf()
    rows = [stored(shelf, team, age=DAY) for _ in range(2)]
    keys = [made(media, team, shelf) for media in rows]
    del shelf[keys[0]]

    def known():
        return {row.key for row in Rendition.select().where(Rendition.team_id == team.team_id)}

    assert sweep(shelf, dry_run=True).lost == 0 and known() == set(keys)
    assert sweep(shelf).lost == 0 and known() == {keys[1]}
    assert {now(media)[0] for media in rows} == {"ready"}


def test_a_wrong_bucket_costs_no_file(team):
    rows = [stored(Shelf(), team, age=DAY) for _ in range(8)]
    swept = sweep(Shelf())
    assert swept.lost == 0 and "is S3_BUCKET the right one?" in swept.doubts[0]
    assert {now(row)[0] for row in rows} == {"ready"}


def test_a_comparison_goes_on_where_the_last_round_ended(team, monkeypatch):
    monkeypatch.setattr("storage.sweep.PAGE", 2)
    monkeypatch.setattr("storage.sweep.PAGES", 1)
    shelf, left = Shelf(), []
    for _ in range(5):
        stored(shelf, team, row=False)
    lost = stored(shelf, team, there=False, age=DAY)
    for _ in range(4):
        due(0)
        Sweep(shelf, Retention(missing=timedelta(0))).round()
        left.append(len(shelf))
    assert left == [3, 1, 0, 0] and now(lost)[0] == "refused"


# Rounds

def due(seconds):
    """The next round is due in so many seconds."""
    database.execute_sql("UPDATE sweeps SET next_at = now() + %s * interval '1 second'", (seconds,))


def test_one_round_at_a_time(team):
    due(0)

    def taken(_):
        return Sweep(Shelf(), Retention()).round() is not None

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(taken, range(6))) == 1
    assert Sweep(Shelf(), Retention()).round() is None
    due(0)
    assert Sweep(Shelf(), Retention()).round() is not None


def test_the_command_says_what_it_does(environ, connection, api_url):
    member = Member(api_url)
    key = member.test.uploaded(PNG, "image/png").split(f"/{BUCKET}/")[1]
    Media.update(created_at=datetime.now(UTC) - 40 * DAY).where(Media.key == key).execute()
    told = posthorn(environ, "media", "sweep", "--dry-run")
    assert told.startswith("Nothing was changed") and "uploads that arrived unused were looked at and are ready" in told
    assert Media.get(Media.key == key).state == "pending"
    posthorn(environ, "media", "sweep")
    assert Media.get_or_none(Media.key == key) is None
