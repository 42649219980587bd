"""Who may do what: refused credentials, scopes, plans, expiry, revocation, and what one credential sees of another's."""

import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest

from handlers.contract import Contract
from storage import keys
from storage.models import ApiKey, Team, User
from storage.oauth import Grant, OAuthClient, Token
from tests.documented import on
from tests.media_samples import image
from tests.person import app, tokens
from tests.service import Http, Member, challenge, well_formed

CONTRACT = Contract()
PRIVATE = [operation for operation in CONTRACT.operations.values() if not operation.public]
PUBLIC = [operation for operation in CONTRACT.operations.values() if operation.public]
PAST = datetime(2020, 1, 1, tzinfo=UTC)
TARGETS = {"targets": [{"platform": "bluesky"}], "caption": "x"}

# The scope of each operation, as the decisions of the service name them.
SCOPES = {
    "publish_post": "posts:write", "validate_post": "posts:write", "update_post": "posts:write", "cancel_post": "posts:write",
    "retry_post": "posts:write", "get_post": "posts:read", "list_posts": "posts:read", "generate_caption": "captions:write",
    "create_media_from_url": "media:write", "create_upload_url": "media:write", "list_accounts": "accounts:read",
    "connect_account": "accounts:write", "disconnect_account": "accounts:write",
    "list_clients": "clients:read", "list_platforms": "platforms:read", "create_idea": "ideas:write",
    "update_idea": "ideas:write",
    "list_todays_ideas": "ideas:read",
    **dict.fromkeys(("create_webhook", "list_webhooks", "get_webhook", "update_webhook", "delete_webhook", "rotate_webhook_secret",
                     "list_deliveries", "replay_delivery", "replay_deliveries"), "webhooks:write"),
}


def call(http, operation, **options):
    """The operation on something that does not exist, with an empty body where it takes one."""
    body = {} if operation.body is not None else None
    return http.request(operation.method, on("nothing", operation.path), body, **options)


def test_the_table_of_scopes_is_complete():
    assert SCOPES.keys() == {operation.id for operation in PRIVATE}


def test_keys_have_the_promised_form():
    right = [well_formed("sk_live_"), well_formed("sk_test_"), well_formed("sk_test_", "0Zz" * 10 + "12")]
    assert [keys.well_formed(key) for key in right] == [True] * 3
    wrong = [well_formed("sk_prod_"), well_formed()[:-1], well_formed() + "0", well_formed() + "\n", well_formed().lower(), ""]
    assert [keys.well_formed(key) for key in wrong] == [False] * 6


def test_a_key_is_made_of_62_characters_and_kept_as_a_digest(member, connection):
    key, row = keys.create(team_id=member.team.id, user_id=member.user.id, mode="test", name="laptop")
    assert re.fullmatch(r"sk_test_[0-9A-Za-z]{38}", key) and key == well_formed("sk_test_", key[8:40])
    assert bytes(row.digest) == hashlib.sha256(key.encode()).digest()
    assert (row.last_four, row.last_used_at, key[8:40] in repr(row.__data__)) == (key[-4:], None, False)
    assert Http(member.url, key).get("/v1/clients").status == 200
    assert ApiKey.get_by_id(row.id).last_used_at is not None


@pytest.mark.parametrize("operation", PRIVATE, ids=lambda operation: operation.id)
def test_without_a_credential_there_is_a_plain_challenge(member, operation):
    answer = call(Http(member.url), operation)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, challenge(member.url))
    assert answer.body == {"success": False, "error": {"code": "unauthorized", "message": answer.body["error"]["message"]},
                           "meta": {"requestId": answer.headers["X-Request-Id"]}}
    assert "RateLimit-Limit" not in answer.headers
    assert not any(member.rows().values())


@pytest.mark.parametrize("operation", PUBLIC, ids=lambda operation: operation.id)
def test_what_is_public_needs_none(api_url, operation):
    assert call(Http(api_url), operation).status == 200


@pytest.mark.parametrize("value, error", [
    ("", "invalid_request"), ("Bearer", "invalid_request"), ("Bearer ", "invalid_request"), ("Basic YTpi", "invalid_request"),
    ("Token {key}", "invalid_request"), ("{key}", "invalid_request"), ("Bearer{key}", "invalid_request"),
    ("Bearer x", "invalid_token"), ("Bearer {key}x", "invalid_token"), ("Bearer {key},{key}", "invalid_token"),
    ("Bearer {key} {key}", "invalid_token"),
    (f"Bearer {well_formed()}", "invalid_token"), (f"Bearer {well_formed('sk_test_')}", "invalid_token"),
    ("Bearer at_" + "A" * 43, "invalid_token"),
    ("Bearer {upper}", "invalid_token"), ("Bearer {other_mode}", "invalid_token"), ("Bearer \xe9", "invalid_token"),
    ("Bearer " + "x" * 8000, "invalid_token"),
    ("Bearer ' OR 1=1 --", "invalid_token")], ids=lambda value: str(value)[:25])
def test_a_wrong_credential_is_told_what_is_wrong(member, value, error):
    key = member.test.key
    sent = value.replace("{key}", key).replace("{upper}", key.swapcase()).replace("{other_mode}", key.replace("test", "live"))
    for method, path, body in (("GET", "/v1/posts", None), ("POST", "/v1/posts", TARGETS)):
        answer = Http(member.url).request(method, path, body, headers={"Authorization": sent})
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == challenge(member.url) + f', error="{error}"'
        assert key.encode() not in answer.raw and "RateLimit-Limit" not in answer.headers
    assert not any(member.rows().values())


@pytest.mark.parametrize("value", ["Bearer {key}", "bearer {key}", "BEARER {key}", "Bearer   {key}", "Bearer {key}  "])
def test_the_scheme_is_read_in_any_case(member, value):
    assert Http(member.url).get("/v1/posts", headers={"Authorization": value.format(key=member.test.key)}).status == 200


@pytest.mark.parametrize("operation", PRIVATE, ids=lambda operation: operation.id)
def test_each_operation_needs_its_scope_and_no_other(member, operation):
    scope = SCOPES[operation.id]
    lacking = member.http(scopes=[other for other in keys.SCOPES if other != scope])
    answer = call(lacking, operation)
    assert (answer.status, answer.code) == (403, "forbidden")
    assert answer.headers["WWW-Authenticate"] == challenge(member.url) + f', error="insufficient_scope", scope="{scope}"'
    assert scope in answer.body["error"]["message"]
    limit = {"captions": "30", "fetches": "30", "requests": "100000"}[operation.limit]
    assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"],
            answer.headers["RateLimit-Reset"]) == (limit, limit, "0")
    assert call(member.http(scopes=[scope]), operation).status not in (401, 403)
    assert not any(member.rows().values())


def test_a_key_without_scopes_may_do_nothing(member):
    http = member.http(scopes=[])
    assert {call(http, operation).status for operation in PRIVATE} == {403}


@pytest.mark.parametrize("mode", ["test", "live"])
def test_without_an_active_plan_everything_is_forbidden(member, mode):
    Team.update(plan_expires_at=datetime.now(UTC) - timedelta(seconds=1)).where(Team.id == member.team.id).execute()
    http = getattr(member, mode)
    for operation in PRIVATE:
        answer = call(http, operation)
        assert (answer.status, answer.code) == (403, "forbidden")
        assert answer.body["error"]["message"] == "the team has no active plan"
    assert http.get("/v1/health").status == 200
    assert not any(member.rows().values())
    Team.update(plan_expires_at=datetime.now(UTC) + timedelta(minutes=1)).where(Team.id == member.team.id).execute()
    assert http.get("/v1/posts").status == 200


def test_a_revoked_key_ends_at_once_in_every_process(member, connection):
    key, row = keys.create(team_id=member.team.id, user_id=member.user.id, mode="test")
    assert all(Http(member.url, key).get("/v1/clients").status == 200 for _ in range(8))
    assert keys.revoke(Member(member.url).team.id, row.id) is False
    assert Http(member.url, key).get("/v1/clients").status == 200
    assert keys.revoke(member.team.id, row.id) is True
    assert {Http(member.url, key).get("/v1/clients").status for _ in range(12)} == {401}
    assert (keys.revoke(member.team.id, row.id), member.test.get("/v1/clients").status) == (False, 200)


@pytest.mark.parametrize("model, values", [
    (ApiKey, {"revoked_at": PAST}), (ApiKey, {"expires_at": PAST}), (User, {"disabled_at": PAST})])
def test_a_refused_key_was_not_used(member, connection, model, values):
    key, row = keys.create(team_id=member.team.id, user_id=member.user.id, mode="test")
    assert model.update(**values).where(model.id == (row.id if model is ApiKey else member.user.id)).execute() == 1
    assert Http(member.url, key).get("/v1/clients").status == 401
    assert ApiKey.get_by_id(row.id).last_used_at is None


@pytest.mark.parametrize("model, values", [
    (Token, {"expires_at": PAST}), (Grant, {"revoked_at": PAST}), (OAuthClient, {"revoked_at": PAST}), (User, {"disabled_at": PAST})])
def test_a_refused_token_was_not_used(member, connection, model, values):
    token = tokens(member, app(scopes=["ideas:read"])[0])["access_token"]
    grant = Grant.get(Grant.user_id == member.user.id)
    assert grant.last_used_at is None
    row = {Token: Token.digest == keys.digest(token), Grant: Grant.id == grant.id,
           OAuthClient: OAuthClient.id == grant.oauth_client_id, User: User.id == member.user.id}[model]
    assert model.update(**values).where(row).execute() == 1
    assert Http(member.url, token).get("/v1/ideas/today").status == 401
    assert Grant.get_by_id(grant.id).last_used_at is None


def test_a_key_ends_when_it_expires(member, connection):
    now = datetime.now(UTC)
    expired = member.http(expires_at=now - timedelta(milliseconds=1)).get("/v1/clients")
    assert (expired.status, expired.headers["WWW-Authenticate"]) == (401, challenge(member.url) + ', error="invalid_token"')
    assert member.http(expires_at=now + timedelta(minutes=1)).get("/v1/clients").status == 200
    soon = member.http(expires_at=datetime.now(UTC) + timedelta(seconds=2))
    statuses = [soon.get("/v1/clients").status]
    while statuses[-1] != 401 and datetime.now(UTC) < now + timedelta(seconds=20):
        statuses.append(soon.get("/v1/clients").status)
    assert (statuses[0], set(statuses[:-1]), statuses[-1]) == (200, {200}, 401)
    assert datetime.now(UTC) > now + timedelta(seconds=2)


def test_the_credential_is_judged_before_anything_in_the_request(member):
    broken = {"body": b"{", "headers": {"Content-Type": "text/plain", "Idempotency-Key": "a b"}}
    for operation in PRIVATE:
        options = broken if operation.body is not None else {"headers": broken["headers"]}
        path = on("%00", operation.path) + "?x=1"
        assert Http(member.url).request(operation.method, path, **options).status == 401
        assert member.http(scopes=[]).request(operation.method, path, **options).status == 403


def test_what_is_no_operation_comes_before_the_credential(member):
    for method, path, status in (("GET", "/v1/nothing", 404), ("PUT", "/v1/posts", 405), ("DELETE", "/v1/health", 405)):
        assert Http(member.url, "wrong").request(method, path).status == status


def test_test_and_live_are_two_worlds(member):
    """What one mode makes, the other cannot see, use or change; both keys belong to the same user."""
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    picture = member.test.uploaded(image("PNG"), "image/png")
    idea = member.test.post("/v1/ideas", {"content": "x", "sourceUrl": "https://example.net"}).data
    post = member.test.post("/v1/posts", {**TARGETS, "media": [picture], "scheduleAt": later}).data
    assert member.live.get("/v1/posts").data == {"posts": []}
    assert member.live.get("/v1/ideas/today").data == {"ideas": []}
    assert member.live.get("/v1/accounts").data["accounts"] == []
    hidden = [member.live.get(f"/v1/posts/{post['id']}"), member.live.patch(f"/v1/posts/{post['id']}", {"caption": "y"}),
              member.live.delete(f"/v1/posts/{post['id']}"), member.live.request("POST", f"/v1/posts/{post['id']}/retry"),
              member.live.patch(f"/v1/ideas/{idea['id']}", {"content": "y"})]
    assert [(answer.status, answer.code) for answer in hidden] == [(404, "not_found")] * 5
    assert ("/media/0", "media_unknown") in member.live.post("/v1/posts", {**TARGETS, "media": [picture]}).rules
    assert member.test.get("/v1/posts").data == {"posts": [post]}
    assert member.test.get("/v1/ideas/today").data == {"ideas": [idea]}


def test_a_credential_of_one_client_reaches_nothing_else(member):
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    limited = member.http(client_id=member.client.id)
    teams = member.test.post("/v1/posts", {**TARGETS, "scheduleAt": later}).data
    own = limited.post("/v1/posts", {**TARGETS, "scheduleAt": later}).data
    idea = member.test.post("/v1/ideas", {"content": "x", "sourceUrl": "https://example.net"}).data
    assert limited.get("/v1/posts").data == {"posts": [own]}
    assert limited.get("/v1/clients").data["clients"] == [member.client.to_dict()]
    assert limited.get("/v1/ideas/today").data == {"ideas": []}
    hidden = [limited.get(f"/v1/posts/{teams['id']}"), limited.delete(f"/v1/posts/{teams['id']}"),
              limited.patch(f"/v1/ideas/{idea['id']}", {"content": "y"})]
    assert [(answer.status, answer.code) for answer in hidden] == [(404, "not_found")] * 3
    assert member.test.get(f"/v1/posts/{teams['id']}").data == teams


@pytest.mark.parametrize("path", ["/v1/posts", "/v1/ideas/today", "/v1/accounts"])
def test_teams_see_nothing_of_each_other(api_url, member, path):
    stranger = Member(api_url, name="Cake & Co")
    for http in (member.test, member.live):
        http.post("/v1/ideas", {"content": "x", "sourceUrl": "https://example.net"})
        http.post("/v1/posts", {**TARGETS, "scheduleAt": (datetime.now(UTC) + timedelta(days=1)).isoformat()})
    answer = stranger.test.get(path)
    assert member.team.id.encode() not in answer.raw and answer.data.get("posts", answer.data.get("ideas", [])) == []
