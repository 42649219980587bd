"""A day of an integrator who generates with openapi-python-client; prints what was met, as JSON."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import httpx
from posthorn_client import AuthenticatedClient
from posthorn_client.api.accounts import list_accounts
from posthorn_client.api.captions import generate_caption
from posthorn_client.api.ideas import create_idea, update_idea
from posthorn_client.api.media import create_upload_url
from posthorn_client.api.posts import cancel_post, get_post, list_posts, publish_post
from posthorn_client.api.webhooks import create_webhook, delete_webhook, list_deliveries, rotate_webhook_secret
from posthorn_client.models import (CreateIdeaRequest, CreateWebhookRequest, ErrorResponse, EventType, GenerateRequest,
                                    MastodonOptions, MastodonOptionsVisibility, MastodonTarget, MastodonTargetPlatform,
                                    MediaContentType, PinterestOptions, PinterestTarget, PinterestTargetPlatform,
                                    PlatformId, PostOperation, PostStatus, PublishRequest, UpdateIdeaRequest,
                                    UploadUrlRequest, YouTubeOptions, YouTubeOptionsPrivacyStatus, YouTubeTarget,
                                    YouTubeTargetPlatform)
from posthorn_client.types import Unset

URL, BOARD, HOOK = os.environ["URL"], "549755885175", "https://hooks.example.com/posthorn"
T = TypeVar("T")


def client(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(URL, token=key, raise_on_unexpected_status=True)


def good(answer: T | ErrorResponse | None) -> T:
    """The answer, where it is no failure."""
    assert answer is not None and not isinstance(answer, ErrorResponse), answer
    return answer


def refusal(answer: object) -> ErrorResponse:
    """The failure that the answer is."""
    assert isinstance(answer, ErrorResponse), answer
    return answer


ann, reader, stranger = client(os.environ["KEY"]), client(os.environ["READER"]), client("sk_test_wrong")


def uploaded(path: Path, content_type: MediaContentType) -> str:
    file = path.read_bytes()
    asked = good(create_upload_url.sync(client=ann, body=UploadUrlRequest(content_type, len(file))))
    assert not isinstance(asked.data.upload_url, Unset)
    httpx.put(asked.data.upload_url, content=file, headers=asked.meta.required_headers.to_dict()).raise_for_status()
    return asked.data.public_url


def settled(post: PostOperation) -> PostOperation:
    while post.status in (PostStatus.SCHEDULED, PostStatus.PUBLISHING):
        time.sleep(0.1)
        post = good(get_post.sync(post.id, client=ann)).data
    return post


photo = uploaded(Path("photo.jpg"), MediaContentType.IMAGEJPEG)
clip = uploaded(Path("clip.mp4"), MediaContentType.VIDEOMP4)
youtube = YouTubeTarget(YouTubeTargetPlatform.YOUTUBE, options=YouTubeOptions(
    title="Fresh bread", media=[clip], made_for_kids=False, privacy_status=YouTubeOptionsPrivacyStatus.UNLISTED))
mastodon = MastodonTarget(
    MastodonTargetPlatform.MASTODON, options=MastodonOptions(visibility=MastodonOptionsVisibility.UNLISTED))
pinterest = PinterestTarget(PinterestTargetPlatform.PINTEREST, options=PinterestOptions(board_id=BOARD))
now = settled(good(publish_post.sync(client=ann, idempotency_key="bread-1", body=PublishRequest(
    targets=[youtube, mastodon, pinterest], caption="Fresh bread from eight", media=[photo]))).data)
later = good(publish_post.sync(client=ann, body=PublishRequest(
    targets=[mastodon], caption="Good morning", schedule_at=datetime.now(UTC) + timedelta(days=1)))).data
listed = good(list_posts.sync(client=ann, status=PostStatus.SCHEDULED)).data.posts
canceled = good(cancel_post.sync(later.id, client=ann)).data

idea = good(create_idea.sync(client=ann, body=CreateIdeaRequest(
    content="Rye", source_url="https://bread.example/rye", topic="Bread", platform=PlatformId.THREADS))).data
edited = good(update_idea.sync(
    idea.id, client=ann, body=UpdateIdeaRequest(content="Rye, again", topic=None, platform=None))).data

hook = good(create_webhook.sync(client=ann, body=CreateWebhookRequest(HOOK, [EventType.POST_PUBLISHED]))).data
rotated = good(rotate_webhook_secret.sync(hook.id, client=ann)).data
sent = good(list_deliveries.sync(hook.id, client=ann)).data.deliveries
ended = good(delete_webhook.sync(hook.id, client=ann)).data

good(generate_caption.sync(client=ann, body=GenerateRequest(topic="Bread")))
busy = generate_caption.sync_detailed(client=ann, body=GenerateRequest(topic="Bread"))
wrong = refusal(publish_post.sync(client=ann, body=PublishRequest(targets=[
    MastodonTarget(MastodonTargetPlatform.MASTODON), YouTubeTarget(YouTubeTargetPlatform.YOUTUBE)], caption="Hello")))
assert not isinstance(wrong.error.details, Unset)
refused = [refusal(list_accounts.sync(client=stranger)), refusal(cancel_post.sync(now.id, client=reader)),
           refusal(get_post.sync("post_nobody", client=ann)), refusal(cancel_post.sync(now.id, client=ann)), wrong,
           refusal(busy.parsed)]
print(json.dumps({
    "published": [[target.platform.value, target.status.value] for target in now.targets],
    "links": all(not isinstance(target.url, Unset) for target in now.targets),
    "scheduled": [post.id == later.id for post in listed], "canceled": canceled.status.value,
    "idea": [idea.topic, edited.content, isinstance(edited.topic, Unset), isinstance(edited.platform, Unset)],
    "webhook": [ended.status.value, rotated.secret != hook.secret, len(sent)],
    "refused": [answer.error.code.value for answer in refused],
    "details": [[detail.path, detail.rule] for detail in wrong.error.details], "wait": int(busy.headers["Retry-After"]) > 0}))
