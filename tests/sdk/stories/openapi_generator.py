"""A day of an integrator who generates with openapi-generator; prints what was met, as JSON."""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import urllib3
from posthorn_sdk import (AccountsApi, ApiClient, CaptionsApi, Configuration, CreateIdeaRequest, CreateWebhookRequest,
                          ErrorResponse, EventType, GenerateRequest, IdeasApi, MastodonOptions, MastodonTarget, MediaApi,
                          MediaContentType, PinterestOptions, PinterestTarget, PlatformId, PostOperation, PostsApi, PostStatus,
                          PublishRequest, Target, UpdateIdeaRequest, UploadUrlRequest, WebhooksApi, YouTubeOptions,
                          YouTubeTarget)
from posthorn_sdk.exceptions import (ApiException, ConflictException, ForbiddenException, NotFoundException,
                                     UnauthorizedException, UnprocessableEntityException)

BOARD, HOOK = "549755885175", "https://hooks.example.com/posthorn"


def client(key: str) -> ApiClient:
    return ApiClient(Configuration(host=os.environ["URL"], access_token=key))


def refusal(expected: type[ApiException], call: Callable[[], object]) -> tuple[ApiException, ErrorResponse]:
    """What the call raises, and the failure that it holds."""
    try:
        answer = call()
    except expected as error:
        assert isinstance(error.data, ErrorResponse), error
        return error, error.data
    raise AssertionError(answer)


ann, reader, stranger = client(os.environ["KEY"]), client(os.environ["READER"]), client("sk_test_wrong")
posts, media, ideas, captions, webhooks = PostsApi(ann), MediaApi(ann), IdeasApi(ann), CaptionsApi(ann), WebhooksApi(ann)


def uploaded(path: Path, content_type: MediaContentType) -> str:
    file = path.read_bytes()
    asked = media.create_upload_url(UploadUrlRequest(content_type=content_type, file_size=len(file)))
    assert asked.data.upload_url
    put = urllib3.request("PUT", asked.data.upload_url, body=file, headers=asked.meta.required_headers.to_dict())
    assert put.status == 200, put.data
    return asked.data.public_url


def settled(post: PostOperation) -> PostOperation:
    while post.status in (PostStatus.SCHEDULED, PostStatus.PUBLISHING):
        time.sleep(0.1)
        post = posts.get_post(post.id).data
    return post


photo = uploaded(Path("photo.jpg"), MediaContentType.IMAGE_SLASH_JPEG)
clip = uploaded(Path("clip.mp4"), MediaContentType.VIDEO_SLASH_MP4)
youtube = Target(YouTubeTarget(platform="youtube", options=YouTubeOptions(
    title="Fresh bread", media=[clip], made_for_kids=False, privacy_status="unlisted")))
mastodon = Target(MastodonTarget(platform="mastodon", options=MastodonOptions(visibility="unlisted")))
pinterest = Target(PinterestTarget(platform="pinterest", options=PinterestOptions(board_id=BOARD)))
now = settled(posts.publish_post(idempotency_key="bread-1", publish_request=PublishRequest(
    targets=[youtube, mastodon, pinterest], caption="Fresh bread from eight", media=[photo])).data)
later = posts.publish_post(PublishRequest(
    targets=[mastodon], caption="Good morning", schedule_at=datetime.now(UTC) + timedelta(days=1))).data
listed = posts.list_posts(status=PostStatus.SCHEDULED).data.posts
canceled = posts.cancel_post(later.id).data

idea = ideas.create_idea(CreateIdeaRequest(
    content="Rye", source_url="https://bread.example/rye", topic="Bread", platform=PlatformId.THREADS)).data
edited = ideas.update_idea(idea.id, UpdateIdeaRequest(content="Rye, again", topic=None, platform=None)).data

hook = webhooks.create_webhook(CreateWebhookRequest(url=HOOK, events=[EventType.POST_DOT_PUBLISHED])).data
rotated = webhooks.rotate_webhook_secret(hook.id).data
sent = webhooks.list_deliveries(hook.id).data.deliveries
ended = webhooks.delete_webhook(hook.id).data

captions.generate_caption(GenerateRequest(topic="Bread"))
bare = PublishRequest(caption="Hello", targets=[
    Target(MastodonTarget(platform="mastodon")), Target(YouTubeTarget(platform="youtube"))])
wrong, told = refusal(UnprocessableEntityException, lambda: posts.publish_post(bare))
busy, wait = refusal(ApiException, lambda: captions.generate_caption(GenerateRequest(topic="Bread")))
refused = [refusal(UnauthorizedException, lambda: AccountsApi(stranger).list_accounts())[1],
           refusal(ForbiddenException, lambda: PostsApi(reader).cancel_post(now.id))[1],
           refusal(NotFoundException, lambda: posts.get_post("post_nobody"))[1],
           refusal(ConflictException, lambda: posts.cancel_post(now.id))[1], told, wait]
assert busy.status == 429 and busy.headers and told.error.details
print(json.dumps({
    "published": [[target.platform.value, target.status.value] for target in now.targets],
    "links": all(target.url for target in now.targets),
    "scheduled": [post.id == later.id for post in listed], "canceled": canceled.status.value,
    "idea": [idea.topic, edited.content, edited.topic is None, edited.platform is None],
    "webhook": [ended.status.value, rotated.secret != hook.secret, len(sent)],
    "refused": [answer.error.code.value for answer in refused],
    "details": [[detail.path, detail.rule] for detail in told.error.details], "wait": int(busy.headers["Retry-After"]) > 0}))
