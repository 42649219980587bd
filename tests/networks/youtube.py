"""What the conformance suite and the tests of YouTube need to know of it."""

from dataclasses import replace

from platforms.base import Account, Content
from platforms.youtube import YouTube
from tests.live import fixtures, image, prepared, video
from tests.standins.google import CLIENT_ID, CLIENT_SECRET
from tests.standins.youtube import YouTubeServer
from tests.standins.youtube_errors import UPDATE

SAMPLES = {
    "video": Content("Fresh bread", media=(video(), image()), post_type="video", options={"title": "Bread"}, key="k-1"),
    "reel": Content("Fresh bread", media=(video(width=9, height=16, duration=15.0),), post_type="reel",
                    options={"title": "Bread"}, key="k-1"),
}
PUBLISH = UPDATE
CONTENT = Content("hi", media=(video(),), post_type="video", options={"title": "Bread"}, key="k-1")


def with_options(**options):
    """A post with a title and these options."""
    return replace(CONTENT, options={"title": "Bread", **options})


def _into_playlist(net, account):
    net.consenting.playlists["PL1"] = []
    return with_options(playlistId="PL1"), {"playlistId": "PL1"}


GERMAN = {"language": "de", "title": "Brot", "description": "Frisch"}
OPTIONS = {
    "title": (CONTENT, {"title": "Bread", "description": "hi"}),
    "tags": (with_options(tags=["a", "b c"]), {"tags": ["a", "b c"]}),
    "categoryId": (with_options(categoryId="10"), {"categoryId": "10"}),
    "privacyStatus": (with_options(privacyStatus="unlisted"), {"privacyStatus": "unlisted"}),
    "madeForKids": (with_options(madeForKids=True), {"selfDeclaredMadeForKids": True}),
    "containsSyntheticMedia": (with_options(containsSyntheticMedia=True), {"containsSyntheticMedia": True}),
    "paidPromotion": (with_options(paidPromotion=True), {"hasPaidProductPlacement": True}),
    "embeddable": (with_options(embeddable=False), {"embeddable": False}),
    "license": (with_options(license="creativeCommon"), {"license": "creativeCommon"}),
    "publicStatsViewable": (with_options(publicStatsViewable=False), {"publicStatsViewable": False}),
    "language": (with_options(language="en"), {"defaultLanguage": "en"}),
    "audioLanguage": (with_options(audioLanguage="de-AT"), {"defaultAudioLanguage": "de-AT"}),
    "localizations": (with_options(language="en", localizations=[GERMAN]), {"de": {"title": "Brot", "description": "Frisch"}}),
    "recordingDate": (with_options(recordingDate="2026-11-20"), {"recordingDate": "2026-11-20T00:00:00Z"}),
    "notifySubscribers": (with_options(notifySubscribers=False), {"notifySubscribers": "false"}),
    "playlistId": _into_playlist,
    "firstComment": (with_options(firstComment="First"), {"textOriginal": "First"}),
}


def start():
    """The stand-in."""
    return YouTubeServer()


def settings(net):
    """Connector settings that point at the stand-in."""
    return {"authorize_url": f"{net.url}/o/oauth2/v2/auth", "token_url": f"{net.url}/token", "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET, "api_url": f"{net.url}/youtube/v3", "upload_url": f"{net.url}/upload/youtube/v3"}


def account(net):
    """A channel whose credentials the stand-in knows."""
    credentials = net.add_user()
    return Account(net.consenting.id, "breadtv", credentials=credentials)


def public(net):
    """The ids of the videos that others can see."""
    return [post["id"] for post in net.posts]


def expire(net):
    """Ends the access tokens, as an hour does."""
    net.expire()


net, youtube, ann = fixtures(YouTube, start, settings, account)


def only(net):
    """The one video that there is."""
    assert len(net.videos) == 1
    return next(iter(net.videos.values()))


def published_with(youtube, ann, content, receipt):
    """What comes of a post whose preparation goes on from `receipt`."""
    return youtube.publish(ann, content, prepared(youtube, ann, content, receipt))
