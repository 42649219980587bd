"""Ideas over the API: saved, listed for today, and edited by nobody but the user who saved them."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from storage.models import Client, Idea, Team
from tests.service import Member

SOURCE = "https://example.net/on-bread"
IDEA = {"content": "A loaf is a slow conversation.", "topic": "bread", "platform": "threads", "sourceUrl": SOURCE}
BARE = {"content": "A loaf is a slow conversation.", "sourceUrl": SOURCE}
PLATFORMS = ("instagram", "tiktok", "youtube", "linkedin", "twitter", "facebook", "pinterest", "bluesky", "threads", "mastodon",
             "gbp")


def contents(answer):
    return [idea["content"] for idea in answer.data["ideas"]]


def row(answer):
    return Idea.get_by_id(answer.data["id"])


@pytest.fixture
def saved(member):
    """An idea with everything, saved by the member."""
    return member.test.post("/v1/ideas", IDEA).data


def test_a_saved_idea_is_answered_whole(member, connection):
    before = datetime.now(UTC) - timedelta(seconds=1)
    answer = member.test.post("/v1/ideas", IDEA)
    assert answer.status == 201
    data = answer.data
    assert answer.body == {"success": True, "data": {"id": data["id"], **IDEA, "createdAt": data["createdAt"]}}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", data["createdAt"])
    assert before < datetime.fromisoformat(data["createdAt"]) < datetime.now(UTC) + timedelta(seconds=1)
    kept = row(answer)
    assert (kept.team_id, kept.user_id, kept.mode, kept.client_id) == (member.team.id, member.user.id, "test", None)


@pytest.mark.parametrize("more", [{}, {"topic": ""}], ids=["absent", "empty"])
def test_what_is_not_set_is_absent(member, connection, more):
    answer = member.test.post("/v1/ideas", {**BARE, **more})
    assert answer.data == {"id": answer.data["id"], **BARE, "createdAt": answer.data["createdAt"]}
    assert (row(answer).topic, row(answer).platform) == (None, None)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_idea_may_be_for_each_network(member, platform):
    answer = member.test.post("/v1/ideas", {**BARE, "platform": platform})
    assert (answer.status, answer.data["platform"]) == (201, platform)


@pytest.mark.parametrize("more", [{"content": "x"}, {"content": "\U0001f35e" * 5000}, {"topic": "\U0001f35e" * 200},
                                  {"content": " \t\r\n \ufeff\u202e\x7f\x01 %s '; --"}, {"sourceUrl": "http://x"},
                                  {"sourceUrl": "https://x/" + "b" * 2038}, {"sourceUrl": "http://127.0.0.1:5432/private"}],
                         ids=["shortest", "longest in code points", "longest topic", "odd characters", "shortest url",
                              "longest url", "private url"])
def test_the_bounds_of_an_idea(member, more):
    answer = member.test.post("/v1/ideas", {**BARE, **more})
    assert (answer.status, {name: answer.data[name] for name in more}) == (201, more)


@pytest.mark.parametrize("change, path, rule", [
    ({"content": None}, "/content", "type"), ({"content": ""}, "/content", "minLength"),
    ({"content": "x" * 5001}, "/content", "maxLength"),
    ({"content": 7}, "/content", "type"), ({"content": "a\0b"}, "/content", "pattern"), ({"topic": None}, "/topic", "type"),
    ({"topic": "x" * 201}, "/topic", "maxLength"), ({"topic": "\0"}, "/topic", "pattern"),
    ({"platform": None}, "/platform", "type"),
    ({"platform": "myspace"}, "/platform", "enum"), ({"platform": ""}, "/platform", "enum"),
    ({"sourceUrl": None}, "/sourceUrl", "type"),
    ({"sourceUrl": "ftp://example.net/x"}, "/sourceUrl", "pattern"),
    ({"sourceUrl": "javascript:alert(1)"}, "/sourceUrl", "pattern"),
    ({"sourceUrl": "https://exa mple.net"}, "/sourceUrl", "pattern"),
    ({"sourceUrl": "https://x/" + "b" * 2039}, "/sourceUrl", "maxLength"),
    ({"sourceUrl": "http://[::1"}, "/sourceUrl", "format"), ({"clientId": None}, "/clientId", "type"),
    ({"clientId": "a b"}, "/clientId", "pattern"), ({"tags": []}, "", "additionalProperties")],
    ids=lambda value: str(value)[:35] if isinstance(value, dict) else "")
def test_an_idea_that_breaks_a_rule_is_not_saved(member, change, path, rule):
    answer = member.test.post("/v1/ideas", {**BARE, **change})
    assert (answer.status, answer.code) == (422, "unprocessable")
    assert (path, rule) in answer.rules and {place for place, _ in answer.rules} == {path}
    assert not any(member.rows().values())


def test_all_broken_rules_are_told_at_once(member):
    answer = member.test.post("/v1/ideas", {"content": "", "topic": "x" * 201, "platform": "x", "extra": 1})
    assert set(answer.rules) == {("/content", "minLength"), ("/topic", "maxLength"), ("/platform", "enum"),
                                 ("", "additionalProperties"),
                                 ("", "required")}


def test_today_has_the_teams_ideas_newest_first(member):
    for number in range(3):
        member.test.post("/v1/ideas", {**BARE, "content": f"idea {number}"})
    colleague = member.colleague()
    colleague.post("/v1/ideas", {**BARE, "content": "Bob's"})
    for http in (member.test, colleague):
        answer = http.get("/v1/ideas/today")
        assert (answer.status, contents(answer)) == (200, ["Bob's", "idea 2", "idea 1", "idea 0"])
    assert answer.body == {"success": True, "data": {"ideas": answer.data["ideas"]}}


def test_a_quiet_day(member):
    assert member.test.get("/v1/ideas/today").body == {"success": True, "data": {"ideas": []}}


def test_today_is_apart_for_other_teams_and_the_other_mode(api_url, member):
    member.test.post("/v1/ideas", IDEA)
    assert [contents(http.get("/v1/ideas/today")) for http in (Member(api_url).test, member.live)] == [[], []]


def test_today_has_200_ideas_at_most(member, connection):
    now = datetime.now(UTC)
    values = {"team_id": member.team.id, "user_id": member.user.id, "mode": "test", "source_url": SOURCE}
    Team.update(time_zone=quiet_zone(now)).where(Team.id == member.team.id).execute()
    Idea.insert_many([{**values, "id": f"idea_{member.team.id}{number}", "content": str(number),
                       "created_at": now - timedelta(seconds=number)}
                      for number in range(201)]).execute()
    assert contents(member.test.get("/v1/ideas/today")) == [str(number) for number in range(200)]


def quiet_zone(now):
    """A zone in which it is noon at `now`, give or take half an hour, so that no midnight is near."""
    hours = round(12 - now.hour - now.minute / 60)
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kathmandu", "America/New_York",
                                  "Australia/Lord_Howe"])
def test_the_day_begins_at_midnight_in_the_teams_time_zone(member, connection, zone):
    Team.update(time_zone=zone).where(Team.id == member.team.id).execute()
    midnight = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
    for content, at in (("yesterday", midnight - timedelta(milliseconds=1)), ("first", midnight)):
        Idea.add(team_id=member.team.id, user_id=member.user.id, mode="test", content=content, source_url=SOURCE, created_at=at)
    assert contents(member.test.get("/v1/ideas/today")) == ["first"]


def test_ideas_of_a_client(api_url, member, connection):
    limited = member.http(client_id=member.client.id)
    named = member.test.post("/v1/ideas", {**BARE, "content": "named", "clientId": member.client.id})
    implied = limited.post("/v1/ideas", {**BARE, "content": "implied"})
    member.test.post("/v1/ideas", {**BARE, "content": "own"})
    assert {row(answer).client_id for answer in (named, implied)} == {member.client.id}
    assert contents(member.test.get("/v1/ideas/today")) == ["own", "implied", "named"]
    assert contents(member.test.get(f"/v1/ideas/today?clientId={member.client.id}")) == ["implied", "named"]
    assert contents(limited.get("/v1/ideas/today")) == ["implied", "named"]


@pytest.mark.parametrize("status, answer", [("active", (404, "not_found")), ("suspended", (409, "invalid_state")),
                                            ("archived", (409, "invalid_state"))])
def test_acting_for_a_client_that_cannot_be_acted_for(api_url, member, status, answer):
    stranger = Member(api_url)
    Client.update(status=status).where(Client.id == member.client.id).execute()
    client_id = stranger.client.id if status == "active" else member.client.id
    for refused in (member.test.post("/v1/ideas", {**BARE, "clientId": client_id}),
                    member.test.get(f"/v1/ideas/today?clientId={client_id}")):
        assert (refused.status, refused.code) == answer
    assert not any(member.rows().values())


@pytest.mark.parametrize("query, rule", [("clientId=a&clientId=b", "repeated"), ("clientId=", "minLength"),
                                         ("client_id=a", "unknown_parameter"),
                                         ("clientId=%00", "pattern"), ("clientId=%FF", "unicode")])
def test_a_query_that_breaks_a_rule_is_refused(member, query, rule):
    answer = member.test.get(f"/v1/ideas/today?{query}")
    assert (answer.status, answer.code) == (422, "unprocessable")
    assert rule in {broken for _, broken in answer.rules}


@pytest.mark.parametrize("change, gone", [
    ({"content": "New words"}, ()), ({"topic": "cake"}, ()), ({"platform": "gbp"}, ()), ({"topic": None}, ("topic",)),
    ({"topic": ""}, ("topic",)),
    ({"platform": None}, ("platform",)), ({"content": "All", "topic": None, "platform": None}, ("topic", "platform")),
    ({"content": "\U0001f35e" * 5000, "topic": "x" * 200, "platform": "twitter"}, ())], ids=lambda value: str(value)[:40])
def test_an_edit_changes_what_it_names_and_nothing_else(member, saved, change, gone):
    answer = member.test.patch(f"/v1/ideas/{saved['id']}", change)
    expected = {name: value for name, value in {**saved, **change}.items() if name not in gone}
    assert (answer.status, answer.body) == (200, {"success": True, "data": expected})
    assert member.test.get("/v1/ideas/today").data == {"ideas": [expected]}


def test_clearing_what_is_not_set_is_fine(member):
    made = member.test.post("/v1/ideas", BARE).data
    answer = member.test.patch(f"/v1/ideas/{made['id']}", {"topic": None, "platform": None})
    assert (answer.status, answer.data) == (200, made)


@pytest.mark.parametrize("change, path", [
    ({}, ""), ({"content": None}, "/content"), ({"content": "", "topic": "new"}, "/content"),
    ({"content": "x" * 5001}, "/content"),
    ({"topic": "x" * 201, "content": "new"}, "/topic"), ({"topic": 5, "platform": None}, "/topic"), ({"topic": "\0"}, "/topic"),
    ({"platform": ""}, "/platform"), ({"platform": "null"}, "/platform"),
    ({"platform": "Threads"}, "/platform"), ({"content": "new", "sourceUrl": SOURCE}, ""),
    ({"content": "new", "id": "idea_1"}, ""), ([], ""), ("content", ""), (5, "")],
    ids=lambda value: str(value)[:30])
def test_an_edit_is_all_or_nothing(member, saved, connection, change, path):
    before = Idea.get_by_id(saved["id"]).__data__
    answer = member.test.patch(f"/v1/ideas/{saved['id']}", change)
    assert (answer.status, answer.code, {place for place, _ in answer.rules}) == (422, "unprocessable", {path})
    assert Idea.get_by_id(saved["id"]).__data__ == before


def test_any_credential_of_the_user_may_edit(member, saved):
    answer = member.http(scopes=["ideas:write"]).patch(f"/v1/ideas/{saved['id']}", {"content": "From another key"})
    assert (answer.status, answer.data["content"]) == (200, "From another key")


def test_every_idea_but_ones_own_is_unknown(api_url, member, saved, connection):
    before, stranger = Idea.get_by_id(saved["id"]).__data__, Member(api_url)
    others = {"colleague": member.colleague(), "own live key": member.live,
              "key of a client": member.http(client_id=member.client.id),
              "another team": stranger.test, "another team, live": stranger.live}
    for who, http in others.items():
        for change in ({"content": "Mine now"}, {"topic": None}):
            hidden, unknown = (http.patch(f"/v1/ideas/{idea_id}", change, headers={"X-Request-Id": "same"})
                               for idea_id in (saved["id"], "idea_0000000000000000000000"))
            assert (hidden.status, hidden.code, hidden.raw) == (404, "not_found", unknown.raw), who
    assert Idea.get_by_id(saved["id"]).__data__ == before


@pytest.mark.parametrize("idea_id", ["x", "IDEA_1", "a b", "%00", "%FF", "..", "x" * 65, "x" * 5000, "idea_' OR 1=1 --"],
                         ids=lambda value: value[:20])
def test_a_malformed_id_is_unknown(member, saved, idea_id):
    answer = member.test.patch(f"/v1/ideas/{idea_id.replace(' ', '%20')}", {"content": "x"})
    assert (answer.status, answer.code) == (404, "not_found")
    assert member.test.get("/v1/ideas/today").data == {"ideas": [saved]}


def test_ids_are_case_sensitive(member, saved):
    assert member.test.patch(f"/v1/ideas/{saved['id'].swapcase()}", {"content": "x"}).status == 404


def test_two_edits_at_once_lose_nothing_of_each_other(member, saved):
    def edit(name):
        return [member.http().patch(f"/v1/ideas/{saved['id']}", {name: f"{name} {number}"}).status for number in range(10)]

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(edit, ("content", "topic"))) == [[200] * 10] * 2
    assert member.test.get("/v1/ideas/today").data == {"ideas": [{**saved, "content": "content 9", "topic": "topic 9"}]}
