"""First comments and playlists, which follow a video on YouTube, and thumbnails that it did not take before."""

import json
from dataclasses import replace

import pytest

from platforms.errors import PermissionMissing, PlatformError, Rejected, Unavailable
from tests.live import image, prepared
from tests.networks.youtube import CONTENT, ann, net, only, with_options, youtube  # noqa: F401
from tests.standins.youtube_errors import ADD, COMMENTS, ERRORS, READ_COMMENTS, READ_ITEMS, THUMBNAIL

REFUSED = {"invalid_image": (Rejected, 400), "thumbnail_forbidden": (Rejected, 403), "thumbnail_gone": (Rejected, 404),
           "thumbnail_empty": (Rejected, 400), "thumbnail_rate": (Unavailable, 429)}


def followed(youtube, ann, content, receipt):
    """The last receipt of what follows, stored as JSON after each step, and the trouble there was."""
    try:
        for step in youtube.follow(ann, content, receipt):
            receipt = json.loads(json.dumps(step))
    except PlatformError as error:
        return receipt, error
    return receipt, None


@pytest.fixture
def public(net, youtube, ann):
    """A post with all that can follow, public, and its receipt."""
    net.consenting.playlists["PL1"] = []
    content = with_options(firstComment=" First \n", playlistId="PL1")
    receipt = prepared(youtube, ann, content)
    post = youtube.publish(ann, content, receipt)
    return content, {**receipt, "public": {"id": post.id, "url": post.url}}


def items(net):
    return [item["snippet"]["resourceId"]["videoId"] for item in net.consenting.playlists["PL1"]]


def comments(net):
    return [(one["snippet"]["videoId"], one["snippet"]["topLevelComment"]["snippet"]["textOriginal"]) for one in net.comments]


def test_a_first_comment_and_a_playlist(net, youtube, ann, public):
    content, receipt = public
    assert youtube.follows(content.options, receipt) and not youtube.follows({"title": "Bread"}, receipt)
    receipt, trouble = followed(youtube, ann, content, receipt)
    video_id = only(net)["id"]
    assert trouble is None and comments(net) == [(video_id, "First")] and items(net) == [video_id]
    assert receipt["firstComment"] == {"id": net.comments[0]["id"]} and receipt["playlistId"]["id"]
    seen = len(net.requests)
    assert followed(youtube, ann, content, receipt) == (receipt, None) and len(net.requests) == seen


@pytest.mark.parametrize("endpoint, option", [(COMMENTS, "firstComment"), (ADD, "playlistId")])
@pytest.mark.parametrize("fault", [{"drop_answer": True}, {"drop_before": True}, {"status": 503, "body": ""},
                                   {"status": 200, "body": "<html>", "acts": True}])
def test_what_follows_in_doubt_is_looked_for_twice(net, youtube, ann, public, endpoint, option, fault):
    content, receipt = public
    net.fault(endpoint, **fault)
    for _ in range(3):
        receipt, trouble = followed(youtube, ann, content, receipt)
        if isinstance(trouble, Unavailable) and "looked" in receipt[option]:
            assert trouble.retry_after == 60
    assert trouble is None and len(comments(net)) == len(items(net)) == 1


def test_a_comment_of_somebody_else_is_not_taken_for_ours(net, youtube, ann, public):
    content, receipt = public
    net.fault(COMMENTS, drop_answer=True)
    receipt, _ = followed(youtube, ann, content, receipt)
    net.comments[0]["snippet"]["topLevelComment"]["snippet"]["authorChannelId"] = {"value": "UCother"}
    for _ in range(2):
        receipt, trouble = followed(youtube, ann, content, receipt)
    assert trouble is None and len(comments(net)) == 2


def test_a_comment_among_too_many_is_not_sent_again(net, youtube, ann, public):
    content, receipt = public
    net.fault(COMMENTS, drop_before=True)
    receipt, _ = followed(youtube, ann, content, receipt)
    net.fault(READ_COMMENTS, status=200, body={"kind": "k", "items": [], "nextPageToken": "more"})
    receipt, trouble = followed(youtube, ann, content, receipt)
    assert isinstance(trouble, Rejected) and comments(net) == [] and len(items(net)) == 1


@pytest.mark.parametrize("row, expected", [
    ("comments_disabled", Rejected), ("comment_forbidden", PermissionMissing), ("comment_ineligible", Rejected),
    ("comment_too_long", Rejected), ("comment_empty", Rejected), ("comment_on_nothing", Rejected),
])
def test_a_comment_that_is_refused_leaves_the_rest(net, youtube, ann, public, row, expected):
    content, receipt = public
    net.fail(row)
    _, trouble = followed(youtube, ann, content, receipt)
    assert type(trouble) is expected and len(items(net)) == 1
    assert trouble.platform_code == ERRORS[row]["body"]["error"]["errors"][0]["reason"]


@pytest.mark.parametrize("row, expected", [
    ("playlist_full", Rejected), ("playlist_forbidden", PermissionMissing), ("playlist_not_found", Rejected),
    ("sorted_by_hand", Rejected), ("no_such_position", Rejected), ("nothing_to_add", Rejected),
])
def test_a_playlist_that_is_refused_leaves_the_rest(net, youtube, ann, public, row, expected):
    content, receipt = public
    net.fail(row)
    _, trouble = followed(youtube, ann, content, receipt)
    assert type(trouble) is expected and len(comments(net)) == 1


def test_a_comment_that_youtube_failed_to_process_is_tried_again(net, youtube, ann, public):
    content, receipt = public
    net.fail("comment_failure")
    for _ in range(3):
        receipt, trouble = followed(youtube, ann, content, receipt)
    assert trouble is None and len(comments(net)) == 1


def test_a_playlist_is_looked_through_for_this_video(net, youtube, ann, public):
    content, receipt = public
    receipt, _ = followed(youtube, ann, content, receipt)
    again, trouble = followed(youtube, ann, content, {**receipt, "playlistId": {}})
    assert trouble is None and again == receipt and len(items(net)) == 1 and len(net.calls(READ_ITEMS)) == 1


# Thumbnails.

@pytest.fixture
def pictured(net, youtube, ann):
    """What makes a post with an image public while YouTube answers with a row of errors, and gives its receipt then."""
    content = replace(CONTENT, media=(image(), *CONTENT.media))

    def publish(row, **fault):
        net.fail(row, **fault)
        receipt = prepared(youtube, ann, content)
        post = youtube.publish(ann, content, receipt)
        return content, {**receipt, "public": {"id": post.id, "url": post.url}}

    return publish


@pytest.mark.parametrize("row", REFUSED)
def test_a_thumbnail_that_is_refused_keeps_no_video_from_being_public(net, youtube, ann, pictured, row):
    expected, status = REFUSED[row]
    content, receipt = pictured(row, times=2)
    assert net.posts == [only(net)] and youtube.follows(content.options, receipt)
    receipt, trouble = followed(youtube, ann, content, receipt)
    assert type(trouble) is expected and [call.status for call in net.calls(THUMBNAIL)] == [status] * 2
    assert trouble.platform_code == ERRORS[row]["body"]["error"]["errors"][0]["reason"]
    assert trouble.rule == ("thumbnail" if expected is Rejected else None) and "canary" not in repr(vars(trouble))


def test_a_thumbnail_is_tried_once_more_when_the_video_is_public(net, youtube, ann, pictured):
    content, receipt = pictured("thumbnail_rate")
    receipt, trouble = followed(youtube, ann, content, receipt)
    assert trouble is None and only(net)["thumbnail"] == content.media[0].open().read()


def test_a_thumbnail_that_was_taken_needs_nothing_more(net, youtube, ann):
    content = replace(CONTENT, media=(*CONTENT.media, image()))
    receipt = prepared(youtube, ann, content)
    assert receipt["thumbnail"] is True and not youtube.follows(content.options, receipt)


def test_a_refused_thumbnail_leaves_the_rest(net, youtube, ann, public):
    content, receipt = public
    net.consenting.verified = False
    content = replace(content, media=(*content.media, image()))
    _, trouble = followed(youtube, ann, content, {**receipt, "thumbnail": False})
    assert trouble.rule == "thumbnail" and len(comments(net)) == len(items(net)) == 1


def test_a_thumbnail_without_an_answer_is_sent_again_before_anybody_sees_the_video(net, youtube, ann):
    content, receipt = replace(CONTENT, media=(*CONTENT.media, image())), {}
    net.fault(THUMBNAIL, drop_answer=True)
    with pytest.raises(Unavailable):
        for step in youtube.prepare(ann, content, {}):
            receipt = step
    assert prepared(youtube, ann, content, receipt)["thumbnail"] is True and net.posts == []
