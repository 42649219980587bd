"""Webhooks over the API: made, changed, ended; their secrets; what was sent, and sending it again."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from handlers.errors import InvalidState
from handlers.idempotency import Once
from storage.audit import Entry
from storage.database import database
from storage.deliveries import Attempt, Delivery
from storage.models import Client
from storage.secrets import Vault, new_key
from storage.webhooks import Webhook
from tests.service import Member

URL = "https://hooks.example.com/posthorn"
HOOK = {"url": URL, "events": ["post.published", "account.disconnected"]}
ALL = ["post.published", "post.partially_published", "post.failed", "post.unconfirmed", "account.disconnected"]
SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")


def made(http, **more):
    """A fresh webhook, without its secret."""
    answer = http.post("/v1/webhooks", {**HOOK, **more})
    assert answer.status == 201, answer.raw
    return {name: value for name, value in answer.data.items() if name != "secret"}


def acts(member):
    """What the trail says was done to webhooks of the team, as (action, detail)."""
    query = Entry.select().where(Entry.team_id == member.team.id, Entry.action.startswith("webhook.")).order_by(Entry.id)
    return [(entry.action, entry.detail) for entry in query]


def test_a_webhook_is_answered_whole_and_its_secret_once(member, connection):
    answer = member.test.post("/v1/webhooks", {**HOOK, "description": "Corner", "clientId": member.client.id})
    data = answer.data
    secret = data.pop("secret")
    assert answer.status == 201 and SECRET.fullmatch(secret)
    assert data == {"id": data["id"], **HOOK, "description": "Corner", "clientId": member.client.id, "status": "enabled",
                    "createdAt": data["createdAt"], "updatedAt": data["createdAt"]}
    read, listed = member.test.get(f"/v1/webhooks/{data['id']}"), member.test.get("/v1/webhooks")
    assert (read.status, read.data, listed.data) == (200, data, {"webhooks": [data]})
    kept = Webhook.get_by_id(data["id"])
    assert (kept.team_id, kept.user_id, kept.mode, kept.client_id) == (member.team.id, member.user.id, "test", member.client.id)
    row = database.execute_sql("SELECT w::text FROM webhooks AS w WHERE id = %s", (kept.id,)).fetchone()[0]
    assert secret[6:] not in row and secret[6:].encode().hex() not in row


@pytest.mark.parametrize("more", [
    {"url": "https://x.eu"}, {"url": "https://x.eu/" + "b" * 2035}, {"url": "https://x.eu:8443/a?b=c&d=%20"},
    {"url": "https://93.184.215.14/"}, {"url": "https://xn--bcher-kva.example.com/"}, {"events": ALL},
    {"events": ["post.failed"]}, {"description": "\N{BREAD}" * 300}],
    ids=lambda more: str(more)[:40])
def test_the_bounds_of_a_webhook(member, more):
    assert {name: made(member.test, **more)[name] for name in more} == more


UNFIT = {
    "no scheme": ("hooks.example.com", "pattern"), "another scheme": ("ftp://hooks.example.com/", "pattern"),
    "plain": ("http://hooks.example.com/", "url"), "a blank": ("https://a b.example.com", "pattern"),
    "long": (URL + "b" * 2048, "maxLength"), "no ASCII": ("https://hooks.example.com/\N{BREAD}", "format"),
    "a fragment": (f"{URL}#x", "pattern"), "a user": ("https://ann@example.com/", "url"),
    "a user and a password": ("https://a:b@example.com/", "url"), "a port": ("https://example.com:22/", "url"),
    "no port": ("https://example.com:/", "url"), "this machine": ("https://localhost/", "url"),
    "this machine by address": ("https://127.0.0.1/", "url"), "a short form of it": ("https://127.1/", "url"),
    "IPv6": ("https://[::1]/", "url"), "IPv4 in IPv6": ("https://[::ffff:10.0.0.1]/", "url"),
    "our network": ("https://10.0.0.1/", "url"), "the clouds' own": ("https://169.254.169.254/latest/meta-data", "url"),
    "a name of our network": ("https://db.internal/", "url"), "a name without a dot": ("https://intranet/", "url"),
    "a backslash": ("https://example.com\\@10.0.0.1/", "format")}


@pytest.mark.parametrize("url, rule", UNFIT.values(), ids=list(UNFIT))
def test_an_address_that_nothing_would_be_sent_to_is_refused(member, url, rule):
    webhook = made(member.test)
    for answer in (member.test.post("/v1/webhooks", {**HOOK, "url": url}),
                   member.test.patch(f"/v1/webhooks/{webhook['id']}", {"url": url, "events": ["post.failed"]})):
        assert (answer.status, answer.code) == (422, "unprocessable")
        assert ("/url", rule) in answer.rules and {place for place, _ in answer.rules} == {"/url"}
    assert member.test.get("/v1/webhooks").data == {"webhooks": [webhook]}


def test_an_address_of_ones_own_network_where_the_operator_allows_it(fetcher, links):
    assert made(fetcher.test, url=f"{links.url}/hook")["url"] == f"{links.url}/hook"
    other = fetcher.test.post("/v1/webhooks", {**HOOK, "url": "http://127.0.0.1:9/"})
    assert (other.status, other.rules) == (422, [("/url", "url")])


@pytest.mark.parametrize("change, path, rule", [
    ({"url": None}, "/url", "type"), ({"events": []}, "/events", "minItems"), ({"events": None}, "/events", "type"),
    ({"events": ["post.failed"] * 2}, "/events", "uniqueItems"), ({"events": ["post.scheduled"]}, "/events/0", "enum"),
    ({"events": "post.failed"}, "/events", "type"), ({"description": None}, "/description", "type"),
    ({"description": "x" * 301}, "/description", "maxLength"), ({"description": "\0"}, "/description", "pattern"),
    ({"secret": "whsec_x"}, "", "additionalProperties")], ids=lambda value: str(value)[:35] if isinstance(value, dict) else "")
def test_a_rule_that_is_broken_is_told_and_nothing_written(member, change, path, rule):
    webhook = made(member.test)
    for answer in (member.test.post("/v1/webhooks", {**HOOK, **change}),
                   member.test.patch(f"/v1/webhooks/{webhook['id']}", change)):
        assert (answer.status, answer.code) == (422, "unprocessable") and (path, rule) in answer.rules
    assert member.test.get("/v1/webhooks").data == {"webhooks": [webhook]}


def test_what_only_one_of_the_two_bodies_takes(member):
    path = f"/v1/webhooks/{made(member.test)['id']}"
    assert member.test.post("/v1/webhooks", {**HOOK, "status": "disabled"}).rules == [("", "additionalProperties")]
    assert member.test.patch(path, {"clientId": member.client.id}).rules == [("", "additionalProperties")]
    assert member.test.patch(path, {}).rules == [("", "minProperties")]
    assert member.test.patch(path, {"status": "deleted"}).rules == [("/status", "enum")]
    assert {rule for _, rule in member.test.post("/v1/webhooks", {}).rules} == {"required"}


def test_a_change_changes_what_it_names(member):
    webhook = made(member.test, description="Corner")
    path = f"/v1/webhooks/{webhook['id']}"
    for change in ({"url": f"{URL}/2"}, {"events": ["post.failed"]}, {"description": "Café"}):
        answer = member.test.patch(path, change)
        assert (answer.status, answer.data) == (200, {**webhook, **change, "updatedAt": answer.data["updatedAt"]})
        assert answer.data["updatedAt"] > webhook["updatedAt"]
        webhook = answer.data
    cleared = member.test.patch(path, {"description": ""}).data
    assert "description" not in cleared and cleared == member.test.get(path).data


def test_disabled_by_hand_and_enabled_again(member):
    webhook = made(member.test)
    path = f"/v1/webhooks/{webhook['id']}"
    before = datetime.now(UTC) - timedelta(seconds=1)
    disabled = [member.test.patch(path, {"status": "disabled"}).data for _ in range(2)]
    assert {one["status"] for one in disabled} == {"disabled"} and disabled[0]["disabledAt"] == disabled[1]["disabledAt"]
    assert before < datetime.fromisoformat(disabled[0]["disabledAt"]) < datetime.now(UTC) + timedelta(seconds=1)
    assert disabled[0]["disabledReason"] == disabled[1]["disabledReason"] != ""
    enabled = member.test.patch(path, {"status": "enabled"}).data
    assert enabled == {**webhook, "updatedAt": enabled["updatedAt"]}


def test_an_ended_webhook_is_gone(member):
    webhook, other = made(member.test), made(member.test)
    path = f"/v1/webhooks/{webhook['id']}"
    answer = member.test.delete(path)
    assert (answer.status, answer.data) == (200, webhook)
    after = [member.test.delete(path), member.test.get(path), member.test.patch(path, {"status": "enabled"}),
             member.test.get(f"{path}/deliveries"), member.test.post(f"{path}/rotate-secret", None)]
    assert {(one.status, one.code) for one in after} == {(404, "not_found")}
    assert member.test.get("/v1/webhooks").data == {"webhooks": [other]}


def test_a_team_has_twenty_in_each_mode_however_many_ask_at_once(api_url, member):
    for _ in range(18):
        made(member.test)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: member.test.post("/v1/webhooks", HOOK), range(6)))
    assert sorted(answer.status for answer in answers) == [201, 201, 409, 409, 409, 409]
    assert {answer.code for answer in answers if answer.status == 409} == {"invalid_state"}
    assert len(member.test.get("/v1/webhooks").data["webhooks"]) == 20
    assert made(member.live) and made(Member(api_url).test)
    last = member.test.get("/v1/webhooks").data["webhooks"][-1]["id"]
    assert member.test.delete(f"/v1/webhooks/{last}").status == 200 and made(member.test)


def test_webhooks_of_a_client(member, connection):
    limited = member.http(client_id=member.client.id)
    other = Client.add(team_id=member.team.id, name="Other")
    named, implied, own = made(member.test, clientId=member.client.id), made(limited), made(member.test)
    assert named["clientId"] == implied["clientId"] == member.client.id and "clientId" not in own
    assert member.test.get("/v1/webhooks").data == {"webhooks": [own, implied, named]}
    assert member.test.get(f"/v1/webhooks?clientId={member.client.id}").data == limited.get("/v1/webhooks").data == {
        "webhooks": [implied, named]}
    assert member.test.get(f"/v1/webhooks?clientId={other.id}").data == {"webhooks": []}
    Client.update(status="suspended").where(Client.id == other.id).execute()
    assert member.test.post("/v1/webhooks", {**HOOK, "clientId": other.id}).status == 409
    assert member.test.post("/v1/webhooks", {**HOOK, "clientId": "client_none"}).status == 404


def test_a_new_secret(member, connection):
    first = member.test.post("/v1/webhooks", HOOK).data
    answer = member.test.post(f"/v1/webhooks/{first['id']}/rotate-secret", None)
    assert answer.status == 200 and SECRET.fullmatch(answer.data["secret"]) and answer.data["secret"] != first["secret"]
    kept = {name: value for name, value in answer.data.items() if name not in ("secret", "updatedAt")}
    assert kept == {name: first[name] for name in kept} and kept.keys() == first.keys() - {"secret", "updatedAt"}
    rows = Webhook.select(Webhook.secret, Webhook.previous_secret).where(Webhook.id == first["id"])
    [before] = rows.tuples()
    refused = member.test.post(f"/v1/webhooks/{first['id']}/rotate-secret", {})     # by whom the first answer did not reach
    assert (refused.status, refused.code) == (409, "invalid_state") and "endPrevious" in refused.raw.decode()
    assert [bytes(one) for one in rows.tuples()[0]] == [bytes(one) for one in before]
    leaked = member.test.post(f"/v1/webhooks/{first['id']}/rotate-secret", {"endPrevious": True})
    assert leaked.status == 200 and leaked.data["secret"] != answer.data["secret"]
    assert Webhook.get_by_id(first["id"]).previous_secret is None
    assert acts(member)[1:] == [("webhook.secret_rotated", {}), ("webhook.secret_rotated", {"endPrevious": True})]
    assert member.test.post(f"/v1/webhooks/{first['id']}/rotate-secret", None).status == 200


@pytest.mark.parametrize("path, body", [("", HOOK), ("/{}/rotate-secret", None)], ids=["made", "rotated"])
def test_an_answer_with_a_secret_is_kept_sealed_and_replayed(member, connection, path, body):
    path = "/v1/webhooks" + path.format(made(member.test)["id"])
    first, second = (member.test.post(path, body, headers={"Idempotency-Key": "once"}) for _ in range(2))
    assert second.headers["Idempotent-Replayed"] == "true" and second.raw == first.raw
    assert SECRET.fullmatch(first.data["secret"])
    rows = database.execute_sql("SELECT body FROM idempotency_keys WHERE team_id = %s", (member.team.id,)).fetchall()
    assert len(rows) == 1 and first.data["secret"][6:].encode() not in bytes(rows[0][0])
    assert len(member.test.get("/v1/webhooks").data["webhooks"]) == (2 if body else 1)


def test_a_kept_secret_whose_key_is_gone_is_not_told(member, connection):
    caller, answer = member.caller(), member.test.post("/v1/webhooks", HOOK, headers={"Idempotency-Key": "once"})
    again = Once(caller, "POST /v1/webhooks", "once", HOOK, kept=timedelta(days=1), patience=timedelta(minutes=1),
                 vault=Vault((new_key(),)))
    with pytest.raises(InvalidState, match="out of use"):
        again.begin()
    assert answer.status == 201


@pytest.fixture
def hook(member, connection):
    """The path of a webhook at an address that nothing is ever sent to."""
    webhook = made(member.test)
    Webhook.update(url="https://192.0.2.1/").where(Webhook.id == webhook["id"]).execute()
    return f"/v1/webhooks/{webhook['id']}"


def sent(member, hook, status="delivered", *, minutes=0):
    """The id of a delivery that was begun so long ago; of a pending one nothing is due for a day."""
    now = datetime.now(UTC)
    row = {"team_id": member.team.id, "mode": "test", "webhook_id": hook.rpartition("/")[2], "type": "post.failed",
           "status": status, "subject_id": "post_x",
           "snapshot": {"id": "post_x", "targets": [{"platform": "gbp", "status": "failed"}]},
           "created_at": now - timedelta(minutes=minutes), "next_at": now + timedelta(days=1) if status == "pending" else None}
    return next(iter(Delivery.insert(row).returning(Delivery).execute())).id


def ids(answer):
    return [delivery["id"] for delivery in answer.data["deliveries"]]


def test_what_was_sent_newest_first_in_pages(member, hook):
    rows = [sent(member, hook, status, minutes=number) for number, status in enumerate(["delivered", "failed", "pending"] * 2)]
    sent(member, f"/v1/webhooks/{made(member.test)['id']}")
    answer, found = member.test.get(f"{hook}/deliveries?limit=4"), []
    assert len(ids(answer)) == 4
    while answer:
        found += ids(answer)
        more = answer.body["meta"].get("nextCursor")
        answer = more and member.test.get(f"{hook}/deliveries?limit=1&cursor={more}")
    assert found == rows == ids(member.test.get(f"{hook}/deliveries"))
    assert ids(member.test.get(f"{hook}/deliveries?status=failed")) == [rows[1], rows[4]]
    assert member.test.get(f"{hook}/deliveries?cursor=x").rules == [("cursor", "cursor")]


def test_a_delivery_with_its_attempts(member, hook):
    row, at = sent(member, hook, "pending"), datetime(2026, 11, 21, 9, 13, 2, 117_000, tzinfo=UTC)
    attempt, closed = {"delivery_id": row, "at": at}, "the address cannot be reached"
    Attempt.insert_many([{**attempt, "status": None, "duration": 5.0021, "error": closed},
                         {**attempt, "status": 503, "duration": 0.0409, "error": "no"}]).execute()
    [delivery] = member.test.get(f"{hook}/deliveries").data["deliveries"]
    assert delivery == {
        "id": row, "type": "post.failed", "status": "pending", "createdAt": delivery["createdAt"],
        "nextAttemptAt": delivery["nextAttemptAt"], "attempts": [
            {"at": "2026-11-21T09:13:02.117Z", "duration": 5.002, "error": closed},
            {"at": "2026-11-21T09:13:02.117Z", "status": 503, "duration": 0.041, "error": "no"}]}
    Attempt.insert_many([{**attempt, "status": status, "duration": 0.1, "error": None} for status in range(200, 300)]).execute()
    [delivery] = member.test.get(f"{hook}/deliveries").data["deliveries"]
    assert [attempt["status"] for attempt in delivery["attempts"]] == list(range(200, 300))


@pytest.mark.parametrize("status", ["delivered", "failed", "pending"])
def test_one_event_again(member, hook, status):
    row = sent(member, hook, status, minutes=3000)
    before = member.test.get(f"{hook}/deliveries").data["deliveries"][0]
    answer = member.test.post(f"{hook}/deliveries/{row}/replay", None)
    assert (answer.status, answer.data) == (202, {**before, "status": "pending", "nextAttemptAt": answer.data["nextAttemptAt"]})
    assert abs(datetime.fromisoformat(answer.data["nextAttemptAt"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert acts(member)[1:] == [("webhook.replayed", {"deliveryId": row})]


def test_an_event_that_the_webhook_does_not_have(member, hook):
    other = f"/v1/webhooks/{made(member.test)['id']}"
    row = sent(member, hook)
    for answer in (member.test.post(f"{other}/deliveries/{row}/replay", None),
                   member.test.post(f"{hook}/deliveries/evt_none/replay", None),
                   member.test.post(f"/v1/webhooks/wh_none/deliveries/{row}/replay", None)):
        assert (answer.status, answer.code) == (404, "not_found")
    assert member.test.get(f"{hook}/deliveries").data["deliveries"][0]["status"] == "delivered"


def test_the_events_of_a_time_again(member, hook):
    for number, status in enumerate(["delivered", "failed", "pending", "failed", "delivered"]):
        sent(member, hook, status, minutes=10 + 10 * number)
    sent(member, f"/v1/webhooks/{made(member.test)['id']}", minutes=10)

    def replayed(**asked):
        now = datetime.now(UTC)
        times = {name: (now - timedelta(minutes=asked[name])).isoformat() for name in asked.keys() & {"from", "to"}}
        answer = member.test.post(f"{hook}/replay", {**asked, **times})
        assert answer.status == 202, answer.raw
        return answer.data["deliveries"]

    assert replayed(**{"from": 5}) == 0 and replayed(**{"from": 45, "to": 15, "status": "failed"}) == 2
    assert replayed(**{"from": 45, "to": 15}) == 0      # all of them are on their way
    assert replayed(**{"from": 55, "status": "failed"}) == 0 and replayed(**{"from": 55}) == 2
    wrong = member.test.post(f"{hook}/replay", {"from": "2026-11-21T12:00:00Z", "to": "2026-11-21T11:00:00Z"})
    assert (wrong.status, wrong.rules) == (422, [("/from", "order")])
    assert member.test.post(f"{hook}/replay", {"from": "2026-02-30T12:00:00Z"}).rules == [("/from", "format")]


def test_one_request_sends_no_more_than_ten_thousand_again(member, hook):
    database.execute_sql("INSERT INTO deliveries (team_id, mode, webhook_id, type, subject_id, snapshot, status, next_at) "
                         "SELECT team_id, mode, id, 'post.failed', n, '{}', 'failed', NULL FROM webhooks, "
                         "generate_series(1, 10001) AS n WHERE id = %s", (hook.rpartition("/")[2],))
    since = {"from": "2026-01-01T00:00:00Z", "status": "failed"}
    answer = member.test.post(f"{hook}/replay", since)
    assert (answer.status, answer.code) == (409, "invalid_state") and "10000" in answer.raw.decode()
    member.test.post(f"{hook}/deliveries/{ids(member.test.get(f'{hook}/deliveries?limit=1'))[0]}/replay", None)
    assert member.test.post(f"{hook}/replay", since).data == {"deliveries": 10_000}
    member.test.delete(hook)


def test_who_is_enabled_again_gives_up_what_is_too_old_and_nobody_elses(member, hook):
    other = f"/v1/webhooks/{made(member.test)['id']}"
    rows = [sent(member, path, "pending") for path in (hook, other)]
    Delivery.update(ends_at=datetime.now(UTC) - timedelta(hours=1)).where(Delivery.id.in_(rows)).execute()
    for status in ("disabled", "enabled"):
        member.test.patch(hook, {"status": status})
    assert [Delivery.get_by_id(row).status for row in rows] == ["failed", "pending"]


def test_to_a_disabled_webhook_nothing_is_sent_again(member, hook):
    row = sent(member, hook, "failed")
    member.test.patch(hook, {"status": "disabled"})
    for answer in (member.test.post(f"{hook}/deliveries/{row}/replay", None),
                   member.test.post(f"{hook}/replay", {"from": "2026-01-01T00:00:00Z"})):
        assert (answer.status, answer.code) == (409, "invalid_state")
    member.test.patch(hook, {"status": "enabled"})
    assert member.test.post(f"{hook}/replay", {"from": "2026-01-01T00:00:00Z"}).data == {"deliveries": 1}


def test_who_did_what_to_a_webhook(member, connection):
    answer = member.test.post("/v1/webhooks", HOOK)
    path = f"/v1/webhooks/{answer.data['id']}"
    new = member.test.post(f"{path}/rotate-secret", None)
    member.test.patch(path, {"status": "disabled", "description": "x"})
    member.test.patch(path, {"url": "http://x.example.com/"})
    member.test.patch(path, {"status": "enabled"})
    member.test.post(f"{path}/replay", {"from": "2026-01-01T00:00:00Z"})
    member.test.delete(path)
    told = acts(member)
    assert [action for action, _ in told] == ["webhook.created", "webhook.secret_rotated", "webhook.changed", "webhook.changed",
                                              "webhook.replayed", "webhook.deleted"]
    assert told[0][1] == {"events": HOOK["events"]} and told[4][1] == {"deliveries": 0}
    assert told[2][1] == {"fields": ["description", "status"], "status": "disabled"}
    assert not any(secret in repr(told) for secret in (answer.data["secret"], new.data["secret"], URL))
