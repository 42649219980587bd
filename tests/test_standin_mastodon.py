"""The stand-in of Mastodon is as strict as a real instance: every refusal has a row here."""

import base64
import hashlib
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.callers import FAMILY, MP4, PNG, STATUSES, bob     # the last is a fixture
from tests.standins import mastodon

MOVING_GIF = b"GIF89a" + b"\x21\xf9\x04frame" * 2
REFUSED_STATUSES = {
    "nothing": ({}, 422, "Validation failed: Text can't be blank"),
    "blank": ({"status": " "}, 422, "Validation failed: Text can't be blank"),
    "an object as text": ({"status": {"a": 1}}, 422, "Validation failed: Text can't be blank"),
    "501 characters": ({"status": "a" * 501}, 422, "Validation failed: Text character limit of 500 exceeded"),
    "warning counts": ({"status": "a" * 490, "spoiler_text": "b" * 11}, 422,
                       "Validation failed: Text character limit of 500 exceeded"),
    "unknown parameter": ({"status": "a", "colour": "red"}, 422,
                          "No such parameters, which a real instance drops without a word: colour"),
    "unknown visibility": ({"status": "a", "visibility": "secret"}, 422,
                           "Validation failed: Visibility is not included in the list"),
    "reply to nothing": ({"status": "a", "in_reply_to_id": "1"}, 404,
                         "The post you are trying to reply to does not appear to exist."),
    "quote of nothing": ({"status": "a", "quoted_status_id": "1"}, 404,
                         "The post you are trying to quote does not appear to exist."),
    "unknown media": ({"status": "a", "media_ids": ["22", "23"]}, 422,
                      "Media 22, 23 not found or already attached to another post"),
    "5 media": ({"status": "a", "media_ids": list("12345")}, 422, "Cannot attach more than 4 files"),
    "media and poll": ({"status": "a", "media_ids": ["1"], "poll": {"options": ["a", "b"], "expires_in": 600}}, 422,
                       "Cannot attach more than 4 files"),
    "poll without text": ({"poll": {"options": ["a", "b"], "expires_in": 600}}, 422, "Validation failed: Text can't be blank"),
    "one option": ({"status": "a", "poll": {"options": ["a"], "expires_in": 600}}, 422,
                   "Validation failed: Poll options must have more than one item"),
    "five options": ({"status": "a", "poll": {"options": list("abcde"), "expires_in": 600}}, 422,
                     "Validation failed: Poll options can't contain more than 4 items"),
    "same options": ({"status": "a", "poll": {"options": ["a", " a"], "expires_in": 600}}, 422,
                     "Validation failed: Poll options contain duplicate items"),
    "long option": ({"status": "a", "poll": {"options": ["a", "b" * 51], "expires_in": 600}}, 422,
                    "Validation failed: Poll options cannot be longer than 50 characters each"),
    "short poll": ({"status": "a", "poll": {"options": ["a", "b"], "expires_in": 299}}, 422,
                   "Validation failed: Poll expires at is too soon"),
    "long poll": ({"status": "a", "poll": {"options": ["a", "b"], "expires_in": 2629747}}, 422,
                  "Validation failed: Poll expires at is too far into the future"),
    "endless poll": ({"status": "a", "poll": {"options": ["a", "b"]}}, 422,
                     "Validation failed: Poll expires at can't be blank, Poll expires at is too far into the future"),
    "schedule too near": ({"status": "a", "scheduled_at": "NEAR"}, 422,
                          "Validation failed: Scheduled at date must be in the future"),
}


@pytest.mark.parametrize("given, status, error", REFUSED_STATUSES.values(), ids=REFUSED_STATUSES)
def test_mastodon_refuses_a_status(bob, given, status, error):
    if "scheduled_at" in given:
        given = given | {"scheduled_at": (datetime.now(UTC) + timedelta(seconds=100)).isoformat()}
    assert bob.status(given) == (status, {"error": error})
    assert bob.network.posts == []


@pytest.mark.parametrize("given, seen", [
    ({"status": "a", "visibility": "direct"}, {"visibility": "direct", "sensitive": False}),
    ({"status": "a", "spoiler_text": "cw"}, {"text": "a", "spoiler_text": "cw", "sensitive": True}),
    ({"spoiler_text": "cw"}, {"text": "cw", "spoiler_text": "", "sensitive": True}),
    ({"status": "a", "language": "pt-BR"}, {"language": "pt"}), ({"status": "a", "language": "klingon"}, {"language": "en"}),
    ({"status": "a", "media_ids": "22"}, {"text": "a", "media_attachments": []}),
    ({"status": FAMILY * 500}, {"text": FAMILY * 500}),
    ({"status": "a" * 476 + " https://example.com/" + "b" * 400}, {"spoiler_text": ""}),
    ({"status": "a" * 495 + " @bob@a.very.long.example.com"}, {"spoiler_text": ""}),
], ids=lambda value: str(value)[:60])
def test_mastodon_takes_a_status(bob, given, seen):
    assert bob.status(given)[0] == 200
    assert {key: bob.network.posts[0][key] for key in seen} == seen


@pytest.mark.parametrize("text, characters", [
    ("https://a.example/x", 23), ("(https://a.example/x).", 26), ("example.com", 11), ("@ann@b.example hi", 7), ("é🦋", 2),
])
def test_mastodon_counts_characters(text, characters):
    assert mastodon.length(text) == characters


def test_mastodon_answers_a_known_key_with_the_first_status_before_looking_at_the_rest(bob):
    media = bob.media()[1]["id"]
    first = bob.status({"status": "a", "media_ids": [media]}, "k")
    assert first[0] == 200
    assert bob.status({"status": "a", "media_ids": [media]}, "k") == first == bob.status({"status": ""}, "k")
    assert bob.status({"status": "a", "media_ids": [media]}, "other")[0] == 422
    bob.network.add_user("eve")
    assert bob.status({"status": ""}, "k", token="token-eve")[0] == 422
    bob.network.advance(mastodon.IDEMPOTENCY_SECONDS + 1)
    assert bob.status({"status": "b"}, "k")[1]["id"] != first[1]["id"]
    assert [post["idempotency_key"] for post in bob.network.posts] == ["k", "k"]


@pytest.mark.parametrize("state, scopes, status, error", [
    ("revoked", mastodon.SCOPES, 401, "The access token was revoked"),
    ("expired", mastodon.SCOPES, 401, "The access token expired"),
    ("valid", "read write:media", 403, "This action is outside the authorized scopes"),
    ("valid", "write", 200, None),
])
def test_mastodon_tokens(bob, state, scopes, status, error):
    bob.network.tokens["token-bob"].state, bob.network.tokens["token-bob"].scopes = state, set(scopes.split())
    answer = bob.status({"status": "a"})
    assert (answer[0], answer[1].get("error")) == (status, error)


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer nothing"}, {"Authorization": "Token token-bob"}], ids=str)
def test_mastodon_refuses_a_call_without_its_token(bob, header):
    assert bob.send("POST", STATUSES, token=None, headers=header, json={"status": "a"})[:2] == (
        401, {"error": "The access token is invalid"})


@pytest.mark.parametrize("state, error", mastodon.ACCOUNT_STATES.items())
def test_mastodon_refuses_an_account_that_may_not_act(bob, state, error):
    bob.network.accounts[bob.id].state = state
    assert bob.status({"status": "a"}) == (403, {"error": error})


@pytest.mark.parametrize("file, status, error", [
    (("a.png", b"no image", "image/png"), 422, "File type of uploaded media could not be verified"),
    (("a.png", MP4, "image/png"), 422, "Validation failed: File has contents that are not what they are reported to be"),
    (("a.pdf", b"%PDF", "application/pdf"), 422, "Validation failed: File content type is invalid"),
    (("a.png", PNG, ""), 422, "Validation failed: File content type is invalid"),
    ("just text", 422, "Validation failed: File can't be blank"),
    (("a.png", PNG + b"x" * mastodon.IMAGE_BYTES, "image/png"), 422,
     "Validation failed: File file size must be less than 16 MB"),
], ids=["unknown content", "video as image", "pdf", "no type", "no file name", "too large"])
def test_mastodon_refuses_a_file(bob, file, status, error):
    assert bob.send("POST", "/api/v2/media", fields={"file": file})[:2] == (status, {"error": error})


def test_mastodon_refuses_other_media_details(bob):
    assert bob.media(description="a" * 1501)[1]["error"].endswith("Description is too long (maximum is 1500 characters)")
    assert bob.media(thumbnail=("t.png", PNG, "image/png"))[1]["error"] == "Validation failed: Thumbnail must be blank"
    for kind, body in (("multipart/form-data; boundary=b", b"--b\r\n"), ("application/json", b"{x")):
        answer = bob.send("POST", "/api/v2/media", headers={"Content-Type": kind}, body=body)
        assert answer[:2] == (400, {"status": 400, "error": "Bad Request"})


@pytest.mark.parametrize("name, data, kind, shown", [
    ("a.mp4", MP4, "video/mp4", "video"), ("a.gif", MOVING_GIF, "image/gif", "gifv"), ("a.mp3", b"ID3", "audio/mpeg", "audio")])
def test_mastodon_processes_before_it_attaches(bob, name, data, kind, shown):
    status, media = bob.media(data, kind, name)
    assert (status, media["type"], media["url"]) == (202, shown, None)
    early = bob.status({"status": "a", "media_ids": [media["id"]]}, "k")
    assert early == (422, {"error": "Cannot attach files that have not finished processing. Try again in a moment!"})
    polls = [bob.send("GET", f"/api/v1/media/{media['id']}")[:2] for _ in range(2)]
    assert [(status, bool(body["url"])) for status, body in polls] == [(206, False), (200, True)]
    assert bob.status({"status": "a", "media_ids": [media["id"]]}, "k")[0] == 200
    assert bob.send("GET", f"/api/v1/media/{media['id']}")[:2] == (404, {"error": "Record not found"})


def test_mastodon_attaches_own_media_only_and_no_video_beside_an_image(bob):
    bob.network.add_user("eve")
    bob.network.processing_polls = 0
    image, video = bob.media(description="alt", focus="-0.5,1")[1], bob.media(MP4, "video/mp4", "a.mp4")[1]
    assert (image["description"], image["meta"]) == ("alt", {"focus": {"x": -0.5, "y": 1.0}})
    assert bob.status({"media_ids": [image["id"], video["id"]]})[1]["error"].startswith("Cannot attach a video")
    assert bob.status({"media_ids": [image["id"]]}, token="token-eve")[1]["error"].startswith(f"Media {image['id']} not found")
    assert bob.send("GET", f"/api/v1/media/{image['id']}", token="token-eve")[0] == 404
    assert bob.status({"media_ids": [image["id"]]})[0] == 200


def test_mastodon_reads_rails_forms(bob):
    media = [bob.media()[1]["id"] for _ in range(2)]
    form = {"status": "a", "media_ids[]": media, "sensitive": "false"}
    status, body, _ = bob.send("POST", STATUSES, body=urlencode(form, doseq=True),
                               headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (status, [one["id"] for one in body["media_attachments"]], body["sensitive"]) == (200, media, False)


def test_mastodon_limits_statuses_and_says_so_in_iso_time(bob):
    bob.network.rates["statuses"] = (2, 10800)
    answers = [bob.send("POST", STATUSES, headers={"Idempotency-Key": key}, json={"status": key}) for key in "aabc"]
    assert [(status, headers["X-RateLimit-Remaining"]) for status, _, headers in answers] == [
        (200, "1"), (200, "1"), (200, "0"), (429, "0")]
    assert answers[-1][1] == {"error": "Too many requests"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", answers[-1][2]["X-RateLimit-Reset"])


def test_mastodon_shows_statuses_to_those_who_may_see_them(bob):
    bob.network.add_user("eve")
    public = bob.status({"status": "<one>"})[1]
    private = bob.status({"status": "two", "visibility": "private"})[1]
    path = f"/api/v1/accounts/{bob.id}/statuses?limit=20&exclude_reblogs=true"
    assert bob.send("GET", path)[1] == [private, public]
    assert bob.send("GET", path, token=None)[1] == bob.send("GET", path, token="token-eve")[1] == [public]
    assert bob.send("GET", f"{STATUSES}/{private['id']}", token="token-eve")[:2] == (404, {"error": "Record not found"})
    assert bob.send("GET", f"{STATUSES}/{public['id']}", token=None)[1]["content"] == "<p>&lt;one&gt;</p>"
    assert bob.send("GET", f"{STATUSES}/{public['id']}/source")[1] == {"id": public["id"], "text": "<one>", "spoiler_text": ""}
    assert bob.send("GET", f"{STATUSES}/{public['id']}/source", token=None)[0] == 401
    bob.network.accounts[bob.id].silenced = True
    assert bob.status({"status": "three"})[1]["visibility"] == "unlisted"


class Login:
    """A registered app that asks for Bob's consent."""

    verifier, back = "v" * 43, "https://p.example/cb"

    def __init__(self, bob):
        self.bob = bob
        app = bob.send("POST", "/api/v1/apps", token=None, json={
            "client_name": "P", "redirect_uris": self.back, "scopes": mastodon.SCOPES})[1]
        self.secrets = {"client_id": app["client_id"], "client_secret": app["client_secret"]}

    def consent(self, **change):
        """(status, parameters sent back) of the consent page."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        asked = {"response_type": "code", "client_id": self.secrets["client_id"], "redirect_uri": self.back, "state": "s",
                 "scope": mastodon.SCOPES, "code_challenge": challenge, "code_challenge_method": "S256"}
        status, _, headers = self.bob.send("GET", f"/oauth/authorize?{urlencode(asked | change)}", token=None)
        return status, dict(parse_qs(urlsplit(headers.get("Location", "")).query))

    def trade(self, **change):
        """(status, error, access token) of a code's exchange, with a fresh code unless one is given."""
        form = self.secrets | {"grant_type": "authorization_code", "redirect_uri": self.back, "code_verifier": self.verifier,
                               "code": self.consent()[1]["code"][0]} | change
        status, answer, _ = self.bob.send("POST", "/oauth/token", token=None, json=form)
        return status, answer.get("error"), answer.get("access_token")


@pytest.mark.parametrize("change, status, error", [
    ({"code_verifier": "no"}, 400, "invalid_grant"), ({"code": "no"}, 400, "invalid_grant"),
    ({"redirect_uri": "https://x"}, 400, "invalid_grant"), ({"client_secret": "no"}, 401, "invalid_client"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ({"grant_type": "client_credentials", "scope": "admin:read"}, 400, "invalid_scope"),
], ids=str)
def test_mastodon_refuses_a_token(bob, change, status, error):
    assert Login(bob).trade(**change) == (status, error, None)


def test_mastodon_consent_checks_client_address_and_scope(bob):
    login = Login(bob)
    assert login.consent(scope="admin:read") == (302, {"error": ["invalid_scope"], "state": ["s"]})
    assert login.consent(code_challenge_method="plain")[1]["error"] == ["invalid_code_challenge_method"]
    assert login.consent(redirect_uri="https://evil.example")[0] == login.consent(client_id="no")[0] == 400


def test_mastodon_code_works_once_and_its_token_until_it_is_revoked(bob):
    login = Login(bob)
    code = login.consent()[1]["code"][0]
    status, _, token = login.trade(code=code)
    assert status == 200 and login.trade(code=code)[:2] == (400, "invalid_grant")
    assert bob.send("GET", "/api/v1/accounts/verify_credentials", token=token)[1]["username"] == "bob"
    assert bob.send("POST", "/oauth/revoke", json={"client_id": "no", "token": token})[0] == 403
    assert bob.send("POST", "/oauth/revoke", json=login.secrets | {"token": token})[0] == 200
    assert bob.status({"status": "a"}, token=token) == (401, {"error": "The access token was revoked"})


def test_mastodon_token_of_an_app_is_no_user(bob):
    own = Login(bob).trade(grant_type="client_credentials", scope="write:statuses")[2]
    assert bob.status({"status": "a"}, token=own) == (422, {"error": "This method requires an authenticated user"})


@pytest.mark.parametrize("given, problem", [
    ({"redirect_uris": "https://p/cb"}, "Application name can't be blank"),
    ({"client_name": "P"}, "Redirect URI can't be blank"),
    ({"client_name": "P", "redirect_uris": ["cb"]}, "Redirect URI must be an absolute URI."),
    ({"client_name": "P", "redirect_uris": ["https://p/cb"], "scopes": "everything"},
     "Scopes doesn't match configured on the server."),
], ids=str)
def test_mastodon_refuses_to_register_an_app(bob, given, problem):
    assert bob.send("POST", "/api/v1/apps", json=given)[:2] == (422, {"error": f"Validation failed: {problem}"})


def test_mastodon_tells_its_limits_and_knows_no_other_path(bob):
    for path in ("/api/v2/instance", "/api/v1/instance"):
        assert bob.send("GET", path, token=None)[1]["configuration"]["statuses"] == {
            "max_characters": 500, "max_media_attachments": 4, "characters_reserved_per_url": 23}
    assert bob.send("GET", "/api/v1/nothing")[:2] == bob.send("PUT", STATUSES)[:2] == (404, {"error": "Not Found"})
