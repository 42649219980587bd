"""The stand-in for LinkedIn is as strict as LinkedIn: every refusal has a row here."""

from urllib.parse import quote

import pytest
import urllib3

from tests.networks import linkedin as network
from tests.standins.linkedin import CALLBACK, CLIENT_ID, CLIENT_SECRET, DUPLICATE_SECONDS
from tests.standins.linkedin_rules import visible

HTTP = urllib3.PoolManager(retries=False, timeout=5)
PNG, MP4 = b"\x89PNG\r\n\x1a\n" + b"p" * 60, b"\0\0\0\x18ftypisom" + bytes(80_000)
HEAD = {"Linkedin-Version": "202609", "X-Restli-Protocol-Version": "2.0.0"}
FINDER = {**HEAD, "X-RestLi-Method": "FINDER"}
ANN, BOB, PAGE = "canary-access-ann", "canary-access-bob", "urn:li:organization:2414183"
POST = {"author": "urn:li:person:ann", "commentary": "hi", "visibility": "PUBLIC", "lifecycleState": "PUBLISHED",
        "distribution": {"feedDistribution": "MAIN_FEED"}}
POLL = {"question": "?", "options": [{"text": "a"}, {"text": "b"}], "settings": {"duration": "ONE_DAY"}}


@pytest.fixture
def net():
    with network.start() as net:
        network.account(net)
        network.administered(net)
        yield net


def call(net, method, path, token=ANN, headers=HEAD, **content):
    """(status, JSON or None, head) of one call."""
    headers = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
    answer = HTTP.request(method, net.url + path if path.startswith("/") else path, headers=headers, **content)
    return answer.status, answer.json() if answer.data[:1] == b"{" else None, answer.headers


def post(net, token=ANN, **change):
    return call(net, "POST", "/rest/posts", token, json={**POST, **change})


@pytest.mark.parametrize("change, status", [
    ({}, 201), ({"visibility": "CONNECTIONS", "isReshareDisabledByAuthor": True}, 201), ({"content": {"poll": POLL}}, 201),
    ({"content": {"article": {"source": "https://a.test", "title": "A"}}}, 201), ({"commentary": ""}, 201),
    ({"author": "ann"}, 400), ({"author": "urn:li:organization:2414183"}, 403), ({"author": "urn:li:person:bob"}, 403),
    ({"commentary": None}, 400), ({"commentary": "x" * 3001}, 400), ({"visibility": "public"}, 400), ({"text": "hi"}, 400),
    ({"lifecycleState": "DRAFT"}, 400), ({"distribution": {}}, 400), ({"content": {}}, 400), ({"content": {"text": "a"}}, 400),
    ({"content": {"article": {"source": "https://a.test"}}}, 400),
    ({"content": {"article": {"source": "a", "title": "A"}}}, 400),
    ({"content": {"article": {"source": "https://a.test", "title": "A" * 400}}}, 400),
    ({"content": {"poll": {**POLL, "question": "q" * 141}}}, 400),
    ({"content": {"poll": {**POLL, "options": [{"text": "a"}]}}}, 400),
    ({"content": {"poll": {**POLL, "settings": {"duration": "TWO_DAYS"}}}}, 400),
    ({"content": {"media": {"id": "urn:li:image:X"}}}, 403), ({"content": {"media": {"id": "X"}}}, 400),
    ({"content": {"multiImage": {"images": [{"id": "urn:li:image:X"}]}}}, 400),
])
def test_posts(net, change, status):
    assert post(net, **change)[0] == status and len(net.posts) == (status == 201)


@pytest.mark.parametrize("name", ["author", "commentary", "visibility", "distribution", "lifecycleState"])
def test_a_post_needs_all_of_it(net, name):
    assert call(net, "POST", "/rest/posts", json={key: value for key, value in POST.items() if key != name})[0] == 400


@pytest.mark.parametrize("headers, status, code", [
    ({}, 400, "VERSION_MISSING"), ({**HEAD, "Linkedin-Version": "202511"}, 426, "NONEXISTENT_VERSION"),
    ({"Linkedin-Version": "202609"}, 400, "ILLEGAL_ARGUMENT")])
def test_calls_have_a_version(net, headers, status, code):
    answer = call(net, "POST", "/rest/posts", headers=headers, json=POST)
    assert (answer[0], answer[1]["code"]) == (status, code)


@pytest.mark.parametrize("token, code", [(None, "EMPTY_ACCESS_TOKEN"), ("nothing", "INVALID_ACCESS_TOKEN")])
def test_calls_need_a_token(net, token, code):
    status, body, _ = post(net, token)
    assert (status, body["code"]) == (401, code)


def test_tokens_end_after_sixty_days(net):
    net.advance(60 * 86_400)
    assert post(net)[1]["code"] == "EXPIRED_ACCESS_TOKEN"


def test_the_usual_token_of_a_member_reads_nothing(net):
    for path in ("/rest/posts?q=author&author=urn%3Ali%3Aperson%3Aann", "/rest/organizationAcls?q=roleAssignee", "/v2/me",
                 "/rest/socialActions/urn%3Ali%3Ashare%3A1/comments", "/rest/organizations/2414183",
                 "/rest/images/urn%3Ali%3Aimage%3AX"):
        assert call(net, "GET", path)[0] == 403, path
    assert call(net, "GET", "/v2/userinfo", headers={})[0] == 200


def test_a_role_that_may_not_post(net):
    net.members["bob"].pages = {"2414183": ("ANALYST",)}
    assert post(net, BOB, author=PAGE)[0] == 403
    net.members["bob"].pages = {"2414183": ("CONTENT_ADMINISTRATOR",)}
    assert post(net, BOB, author=PAGE, visibility="CONNECTIONS")[0] == 400
    assert post(net, BOB, author=PAGE)[0] == 201


def test_a_duplicate_is_refused_for_a_while_and_named(net):
    urn = post(net)[2]["x-restli-id"]
    status, body, _ = post(net, visibility="LOGGED_IN")
    assert (status, body["errorDetails"]["inputErrors"][0]["code"]) == (422, "DUPLICATE_POST") and urn in body["message"]
    net.advance(DUPLICATE_SECONDS)
    assert post(net)[0] == 201


@pytest.mark.parametrize("text, seen", [
    ("a", "a"), (r"\(a\) \\ \_", r"(a) \ _"), ("a (b) c", "a "), ("a_b", "a"), ("a @b", "a "), ("#tag #", "#tag "),
    (r"{hashtag|\#|tag} x", "#tag x"), ("@[Acme](urn:li:organization:1) x", "Acme x"),
    (r"@[A \(b\)](urn:li:person:1)", "A (b)"), ("a {b", "a "), ("~", "")])
def test_little_text_ends_at_a_sign_that_is_not_escaped(net, text, seen):
    assert visible(text) == seen and post(net, commentary=text)[0] == 201 and net.posts[0]["text"] == seen


def begun(net, kind, token=ANN, owner="urn:li:person:ann", **details):
    body = {"initializeUploadRequest": {"owner": owner, **details}}
    return call(net, "POST", f"/rest/{kind}?action=initializeUpload", token, json=body)


@pytest.mark.parametrize("kind, details, status", [
    ("images", {}, 200), ("images", {"owner": "urn:li:person:bob"}, 403), ("images", {"size": 9}, 400),
    ("videos", {"fileSizeBytes": 80_000}, 200), ("videos", {}, 400), ("videos", {"fileSizeBytes": "80000"}, 400),
    ("videos", {"fileSizeBytes": 74_999}, 400), ("videos", {"fileSizeBytes": (500 << 20) + 1}, 400)])
def test_uploads_begin(net, kind, details, status):
    assert begun(net, kind, **details)[0] == status
    assert call(net, "POST", f"/rest/{kind}", json={})[0] == 400


def test_an_image_needs_the_token_of_its_owner(net):
    upload = begun(net, "images")[1]["value"]
    assert call(net, "PUT", upload["uploadUrl"], None, body=PNG)[0] == 401
    assert call(net, "PUT", upload["uploadUrl"], BOB, body=PNG)[0] == 403
    assert post(net, content={"media": {"id": upload["image"]}})[1]["code"] == "MEDIA_ASSET_WAITING_UPLOAD"
    assert call(net, "PUT", upload["uploadUrl"], body=PNG)[0] == 201
    assert post(net, content={"media": {"id": upload["image"]}})[0] == 201


def test_an_image_of_another_kind_is_not_taken(net):
    upload = begun(net, "images")[1]["value"]
    assert call(net, "PUT", upload["uploadUrl"], body=b"RIFF0000WEBP")[0] == 201
    assert post(net, content={"media": {"id": upload["image"]}})[1]["code"] == "MEDIA_ASSET_PROCESSING_FAILED"


def test_a_video_needs_its_parts_their_tags_and_time(net):
    value = begun(net, "videos", fileSizeBytes=len(MP4))[1]["value"]
    [part], urn = value["uploadInstructions"], value["video"]
    binary = {"Content-Type": "application/octet-stream"}
    assert (part["firstByte"], part["lastByte"]) == (0, len(MP4) - 1)

    def finalized(token, *tags):
        body = {"finalizeUploadRequest": {"video": urn, "uploadToken": token, "uploadedPartIds": list(tags)}}
        return call(net, "POST", "/rest/videos?action=finalizeUpload", json=body)[0]

    assert call(net, "PUT", part["uploadUrl"], ANN, binary, body=MP4)[0] == 400
    assert call(net, "PUT", part["uploadUrl"], None, {}, body=MP4)[0] == 400
    assert call(net, "PUT", part["uploadUrl"], None, binary, body=MP4[1:])[0] == 400
    status, _, head = call(net, "PUT", part["uploadUrl"], None, binary, body=MP4)
    assert status == 200 and head["ETag"]
    for token, tags in ((value["uploadToken"], ["x"]), ("x", [head["ETag"]]), (value["uploadToken"], [])):
        assert finalized(token, *tags) == 400
    assert finalized(value["uploadToken"], head["ETag"]) == 200
    assert post(net, content={"media": {"id": urn}})[1]["code"] == "MEDIA_ASSET_WAITING_UPLOAD"
    assert call(net, "GET", f"/rest/videos/{urn}")[0] == 400
    states = [call(net, "GET", f"/rest/videos/{quote(urn)}")[1]["status"] for _ in range(3)]
    assert states == ["PROCESSING", "PROCESSING", "AVAILABLE"]
    assert post(net, content={"media": {"id": urn}})[2]["x-restli-id"].startswith("urn:li:ugcPost:")


def test_comments(net):
    urn = post(net)[2]["x-restli-id"]
    comment = {"actor": "urn:li:person:ann", "object": urn, "message": {"text": "(a)"}}
    path = f"/rest/socialActions/{quote(urn)}/comments"
    for change, status in (({"actor": PAGE}, 403), ({"object": "urn:li:share:1"}, 404), ({"message": {"text": ""}}, 400),
                           ({"message": {"text": "a" * 1251}}, 400), ({"message": "a"}, 400), ({"text": "a"}, 400)):
        assert call(net, "POST", path, json={**comment, **change})[0] == status
    assert call(net, "POST", f"/rest/socialActions/{urn}/comments", json=comment)[0] == 400
    assert call(net, "POST", path, json=comment)[0] == 201 and [one["message"]["text"] for one in net.comments] == ["(a)"]


@pytest.mark.parametrize("query, headers, status", [
    (f"q=author&author={quote(PAGE)}", FINDER, 200), (f"q=author&author={quote(PAGE)}", HEAD, 400),
    ("q=author&author=urn%3Ali%3Aorganization%3A1", FINDER, 403), (f"q=author&author={quote(PAGE)}&limit=1", FINDER, 403)])
def test_posts_are_found_properly(net, query, headers, status):
    assert call(net, "GET", f"/rest/posts?{query}", BOB, headers)[0] == status


@pytest.mark.parametrize("change", [
    {"client_secret": "x"}, {"client_id": "x"}, {"refresh_token": "x"}, {"grant_type": "password"},
    {"grant_type": "authorization_code", "code": "x", "redirect_uri": CALLBACK}])
def test_tokens_are_given_for_something(net, change):
    form = {"grant_type": "refresh_token", "refresh_token": "canary-refresh-ann", "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET, **change}
    status = HTTP.request("POST", f"{net.url}/oauth/v2/accessToken", fields=form, encode_multipart=False).status
    assert status == (401 if change.keys() & {"client_id", "client_secret"} else 400)


@pytest.mark.parametrize("change", [
    {"response_type": "token"}, {"client_id": "x"}, {"redirect_uri": "https://a.test"}, {"scope": "nope"}, {"scope": ""},
    {"state": ""}, {"code_challenge": "x"}])
def test_the_page_of_consent_refuses(net, change):
    query = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}
    answers = [HTTP.request("GET", f"{net.url}/oauth/v2/authorization", fields=fields, redirect=False).status
               for fields in (query, {**query, **change})]
    assert answers == [302, 400]
