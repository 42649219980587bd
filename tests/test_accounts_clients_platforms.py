"""Accounts, clients and platforms over the API, and which account a post goes out on."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.models import Account, Client, wire_time
from storage.posts import Target
from storage.secrets import new_key
from tests.service import Member

PLATFORMS = ("instagram", "tiktok", "youtube", "linkedin", "twitter", "facebook", "pinterest", "bluesky", "threads", "mastodon",
             "gbp")
TOMORROW = wire_time(datetime.now(UTC) + timedelta(days=1))
PICTURE = "https://cdn.example.net/ann.jpg"

# As the documentation of each network has it on the day of the last review:
# (caption, media items, title, description, post types).
LIMITS = {
    "instagram": (2200, 10, 0, 0, ["image", "carousel", "reel", "story"]),
    "tiktok": (2200, 35, 90, 4000, ["image", "carousel", "video"]),
    "youtube": (5000, 2, 100, 5000, ["video", "reel"]),
    "linkedin": (3000, 20, 399, 4085, ["text", "image", "carousel", "video", "link", "poll"]),
    "twitter": (280, 4, 0, 0, ["text", "image", "video", "poll"]),
    "facebook": (63_206, 10, 255, 0, ["text", "image", "video", "reel", "story", "link"]),
    "pinterest": (800, 5, 100, 800, ["image", "carousel", "video"]),
    "bluesky": (300, 10, 0, 0, ["text", "image", "video", "link"]),
    "threads": (500, 20, 0, 0, ["text", "image", "video", "carousel", "poll", "link"]),
    "mastodon": (500, 4, 0, 0, ["text", "image", "video", "poll"]),
    "gbp": (1500, 1, 58, 0, ["update", "event", "offer", "image", "video"]),
}


def names(answer):
    return [(account["platform"], account["username"]) for account in answer.data["accounts"]]


def live_post(*targets, **more):
    """A post that no worker takes while the tests run."""
    return {"caption": "Fresh bread", "targets": list(targets), "scheduleAt": TOMORROW, **more}


def test_test_mode_has_the_sandbox_account_of_every_network(member):
    answer = member.test.get("/v1/accounts")
    assert answer.status == 200
    assert answer.body == {"success": True, "data": {"team": {"id": member.team.id, "name": "Bread & Co"}, "accounts": [
        {"id": f"sandbox_{name}", "platform": name, "username": "sandbox", "displayName": "Sandbox", "status": "connected"}
        for name in PLATFORMS]}}
    of_client = member.test.get(f"/v1/accounts?clientId={member.client.id}").data
    assert of_client == {**answer.data, "accounts": [{**one, "clientId": member.client.id} for one in answer.data["accounts"]]}
    assert member.http(client_id=member.client.id).get("/v1/accounts").data == of_client


def test_a_team_without_accounts(member):
    assert member.live.get("/v1/accounts").body == {"success": True, "data": {
        "team": {"id": member.team.id, "name": "Bread & Co"}, "accounts": []}}


def test_live_mode_has_the_connected_accounts_and_shows_no_secret(api_url, member, environ):
    ann = member.account(environ, "mastodon", "ann@example.net", host="https://example.net", platform_id="platform-id-7",
                         profile_picture=PICTURE)
    gone = member.account(environ, "bluesky", "ann.example.net", status="disconnected")
    of_client = member.account(environ, "bluesky", "cafe.example.net", client_id=member.client.id)
    Member(api_url).account(environ, "bluesky", "stranger.example.net")
    answer = member.live.get("/v1/accounts")
    assert answer.data["accounts"] == [
        {"id": gone.id, "platform": "bluesky", "username": "ann.example.net", "displayName": "Ann.Example.Net",
         "status": "disconnected"},
        {"id": ann.id, "platform": "mastodon", "username": "ann@example.net", "displayName": "Ann@Example.Net",
         "profilePicture": PICTURE,
         "status": "connected"}]
    for secret in ("token-of-the-platform", "platform-id-7", "credentials"):
        assert secret.encode() not in answer.raw
    client_only = [{"id": of_client.id, "platform": "bluesky", "username": "cafe.example.net",
                    "displayName": "Cafe.Example.Net",
                    "status": "connected", "clientId": member.client.id}]
    assert member.live.get(f"/v1/accounts?clientId={member.client.id}").data["accounts"] == client_only
    assert member.http(mode="live", client_id=member.client.id).get("/v1/accounts").data["accounts"] == client_only


def test_accounts_stand_in_a_stable_order(member, environ):
    for platform, username in (("mastodon", "b"), ("bluesky", "z"), ("mastodon", "a"), ("gbp", "m"), ("bluesky", "A")):
        member.account(environ, platform, username)
    found = names(member.live.get("/v1/accounts"))
    assert [platform for platform, _ in found] == ["bluesky", "bluesky", "gbp", "mastodon", "mastodon"]
    assert found == names(member.live.get("/v1/accounts"))


@pytest.mark.parametrize("mode", ["test", "live"])
def test_accounts_of_a_client_that_cannot_be_acted_for(api_url, member, mode):
    http, stranger = getattr(member, mode), Member(api_url)
    assert http.get(f"/v1/accounts?clientId={stranger.client.id}").status == 404
    assert http.get("/v1/accounts?clientId=client_0").code == "not_found"
    assert http.get("/v1/accounts?clientId=a%20b").rules == [("clientId", "pattern")]
    for status in ("suspended", "archived"):
        Client.update(status=status).where(Client.id == member.client.id).execute()
        for refused in (http.get(f"/v1/accounts?clientId={member.client.id}"),
                        member.http(mode=mode, client_id=member.client.id).get("/v1/accounts")):
            assert (refused.status, refused.code, status in refused.body["error"]["message"]) == (409, "invalid_state", True)


def test_clients_are_those_of_the_team_by_name(api_url, member):
    Member(api_url)
    more = [Client.add(team_id=member.team.id, name=name, status=status) for name,
            status in (("Attic", "suspended"), ("Zoo", "archived"))]
    expected = [{"id": more[0].id, "name": "Attic", "status": "suspended"},
                {"id": member.client.id, "name": "Corner Café", "status": "active"},
                {"id": more[1].id, "name": "Zoo", "status": "archived"}]
    for http in (member.test, member.live):
        assert http.get("/v1/clients").body == {"success": True, "data": {"clients": expected}}
    assert member.http(client_id=member.client.id).get("/v1/clients").data == {"clients": expected[1:2]}
    assert member.test.get("/v1/clients?clientId=x").rules == [("clientId", "unknown_parameter")]


def test_platforms_are_the_eleven_with_their_limits(member):
    answer = member.test.get("/v1/platforms")
    assert (answer.status, list(answer.body)) == (200, ["success", "data"])
    entries = answer.data["platforms"]
    assert [entry["platform"] for entry in entries] == list(PLATFORMS)
    assert {entry["platform"]: (entry["captionLimit"], entry["maxMediaItems"], entry["titleLimit"], entry["descriptionLimit"],
                                entry["postTypes"])
            for entry in entries} == LIMITS
    for entry in entries:
        assert entry["mediaTypes"] == [kind for limits in entry["media"].values() for kind in limits["types"]]
        assert entry["media"] and entry["media"].keys() <= {"image", "video"}
        assert entry["source"].startswith("https://")
        assert datetime.fromisoformat(entry["reviewedAt"]).date() <= datetime.now(UTC).date() + timedelta(days=1)
    assert next(entry["media"] for entry in entries if entry["platform"] == "gbp") == {
        "image": {"types": ["image/jpeg", "image/png", "image/webp"], "maxBytes": 5 * 1_048_576, "minWidth": 400, "minHeight": 300},
        "video": {"types": ["video/mp4", "video/quicktime"], "maxBytes": 75 * 1_048_576, "minWidth": 720, "minHeight": 720,
                  "maxDuration": 30}}


def test_platforms_have_an_etag_that_holds_for_everybody(api_url, member):
    answers = [http.get("/v1/platforms") for http in (member.test, member.live, Member(api_url).test) for _ in range(4)]
    assert len({(answer.headers["ETag"], answer.raw) for answer in answers}) == 1
    etag = answers[0].headers["ETag"]
    for match in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        fresh = member.test.get("/v1/platforms", headers={"If-None-Match": match})
        assert (fresh.status, fresh.raw, fresh.headers["ETag"]) == (304, b"", etag)
        assert "RateLimit-Remaining" in fresh.headers
    for other in ('"x"', etag.strip('"')[:-1], "W/*"):
        assert member.test.get("/v1/platforms", headers={"If-None-Match": other}).raw == answers[0].raw


def test_live_posts_need_a_connected_account(api_url, member, environ):
    Member(api_url).account(environ, "bluesky", "stranger.example.net")
    member.account(environ, "bluesky", "cafe.example.net", client_id=member.client.id)
    body = live_post({"platform": "bluesky"}, {"platform": "mastodon", "options": {"account": "ann"}})
    details = [("/targets/0/platform", "account"), ("/targets/1/options/account", "account")]
    refused = member.live.post("/v1/posts", body)
    assert (refused.status, refused.rules) == (422, details)
    assert [(one["path"], one["rule"]) for one in member.live.post("/v1/posts/validate", body).data["problems"]] == details
    for username in ("stranger.example.net", "cafe.example.net", "nobody"):
        named = member.live.post("/v1/posts", live_post({"platform": "bluesky", "options": {"account": username}}))
        assert named.body["error"]["details"] == [{"path": "/targets/0/options/account", "rule": "account",
                                                   "message": f"no bluesky account named {username} is connected"}]
    assert not any(member.rows().values())


def test_the_account_is_named_where_there_are_two(member, environ):
    ann, bob = (member.account(environ, "bluesky", f"{name}.example.net") for name in ("ann", "bob"))
    refused = member.live.post("/v1/posts", live_post({"platform": "bluesky"}))
    assert (refused.status, refused.rules) == (422, [("/targets/0/options/account", "account_ambiguous")])
    answer = member.live.post("/v1/posts", live_post(*({"platform": "bluesky",
                                                        "options": {"account": one.username}} for one in (bob, ann))))
    assert answer.status == 202
    rows = Target.select().where(Target.post_id == answer.data["id"]).order_by(Target.position)
    assert [(row.account_id, row.options) for row in rows] == [(bob.id, {}), (ann.id, {})]
    twice = member.live.post("/v1/posts", live_post(*[{"platform": "bluesky", "options": {"account": ann.username}}] * 2))
    assert twice.rules == [("/targets/1", "duplicate")]
    edited = member.live.patch(f"/v1/posts/{answer.data['id']}", {"caption": "Fresh cake"})
    assert (edited.status, edited.data) == (200, answer.data)
    assert [row.account_id for row in rows.clone()] == [bob.id, ann.id]


def test_the_account_of_the_client_is_used_when_acting_for_it(member, environ):
    member.account(environ, "bluesky", "ann.example.net")
    of_client = member.account(environ, "bluesky", "cafe.example.net", client_id=member.client.id)
    answers = [member.live.post("/v1/posts", live_post({"platform": "bluesky"}, clientId=member.client.id)),
               member.http(mode="live", client_id=member.client.id).post("/v1/posts", live_post({"platform": "bluesky"}))]
    posts = [answer.data["id"] for answer in answers]
    assert [row.account_id for row in Target.select().where(Target.post_id.in_(posts))] == [of_client.id] * 2


def test_a_disconnected_account_is_409_unless_something_is_wrong_as_well(member, environ):
    member.account(environ, "bluesky", "ann.example.net", status="disconnected")
    refused = member.live.post("/v1/posts", live_post({"platform": "bluesky"}))
    assert (refused.status, refused.code, refused.rules) == (409, "invalid_state", [("/targets/0", "account_disconnected")])
    problems = member.live.post("/v1/posts/validate", live_post({"platform": "bluesky"})).data["problems"]
    assert problems == refused.body["error"]["details"]
    too_long = member.live.post("/v1/posts", live_post({"platform": "bluesky"}, caption="b" * 301))
    assert (too_long.status, too_long.rules) == (422, [("/caption", "caption_length")])
    assert not any(member.rows().values())


def test_an_account_that_was_disconnected_meanwhile_forbids_the_edit(member, environ):
    account = member.account(environ, "bluesky", "ann.example.net")
    post_id = member.live.post("/v1/posts", live_post({"platform": "bluesky"})).data["id"]
    Account.update(status="disconnected", credentials=None).where(Account.id == account.id).execute()
    assert member.live.patch(f"/v1/posts/{post_id}", {"caption": "x"}).status == 409
    assert member.live.delete(f"/v1/posts/{post_id}").data["status"] == "canceled"


def test_the_limits_of_the_accounts_own_server_hold(member, environ):
    member.account(environ, "mastodon", "ann@example.net", credentials={"accessToken": "t", "instance": {"max_characters": 20}})
    fits, over = (live_post({"platform": "mastodon"}, caption="b" * length) for length in (20, 21))
    assert member.live.post("/v1/posts/validate", fits).data == {"valid": True, "problems": []}
    assert member.live.post("/v1/posts", over).rules == [("/caption", "caption_length")]
    assert member.test.post("/v1/posts/validate", over).data["valid"] is True


def test_credentials_that_cannot_be_opened_break_no_request(member, environ):
    member.account({"POSTHORN_SECRET_KEYS": new_key()}, "mastodon", "ann@example.net")
    assert member.live.post("/v1/posts", live_post({"platform": "mastodon"})).status == 202
    assert names(member.live.get("/v1/accounts")) == [("mastodon", "ann@example.net")]


@pytest.mark.parametrize("account, status", [("sandbox", 202), ("ann", 422), ("Sandbox", 422)])
def test_the_only_account_of_test_mode_is_the_sandbox(member, environ, account, status):
    member.account(environ, "bluesky", "ann")
    answer = member.test.post("/v1/posts", live_post({"platform": "bluesky", "options": {"account": account}}))
    assert answer.status == status
    assert status == 202 or answer.rules == [("/targets/0/options/account", "account")]
