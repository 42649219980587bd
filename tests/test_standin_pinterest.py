"""That Pinterest's stand-in is as strict as Pinterest."""

import json
from urllib.parse import urlencode

import pytest
import urllib3

from tests.networks import pinterest as known
from tests.networks.pinterest import BOARD, TOKEN

URL = "https://media.test/1.png"
IMAGE = {"source_type": "image_url", "url": URL}
PIN = {"board_id": BOARD, "media_source": IMAGE}
VIDEO = {"source_type": "video_id", "media_id": "1"}
FILE = ("video", b"\0\0\0\x18ftypmp42", "video/mp4")


@pytest.fixture
def net():
    with known.start() as net:
        yield net


def call(net, method, path, body=None, token=TOKEN):
    """(status, body) of a call."""
    headers = {"Authorization": f"Bearer {token}"} | ({"Content-Type": "application/json"} if body else {})
    answer = urllib3.request(method, f"{net.url}/v5{path}", body=json.dumps(body) if body else None, headers=headers)
    return answer.status, answer.json()


@pytest.mark.parametrize("change, status, code", [
    ({}, 201, None), ({"title": None, "dominant_color": "#6e7874"}, 201, None), ({"board_id": "mine"}, 400, 1),
    ({"board_id": 7}, 400, 1), ({"board_id": None}, 400, 1), ({"board_section_id": "x"}, 400, 1),
    ({"title": "x" * 101}, 400, 1), ({"description": "x" * 801}, 400, 1), ({"alt_text": "x" * 501}, 400, 1),
    ({"link": "ftp://x"}, 400, 1),
    ({"dominant_color": "red"}, 400, 1), ({"scheduled": 1}, 400, 1), ({"media_source": None}, 400, 1),
    ({"media_source": {"source_type": "image_url"}}, 400, 1), ({"media_source": IMAGE | {"alt": "x"}}, 400, 1),
    ({"media_source": IMAGE | {"url": "media.test"}}, 400, 235),
    ({"media_source": {"source_type": "multiple_image_urls", "items": [{"url": URL}]}}, 400, 1),
    ({"media_source": {"source_type": "multiple_image_urls", "items": [{"url": URL}] * 6}}, 400, 1),
    ({"media_source": {"source_type": "multiple_image_urls", "items": [{"url": URL, "alt": "x"}] * 2}}, 400, 1),
    ({"media_source": {"source_type": "image_base64", "content_type": "image/png", "data": "data:x"}}, 400, 1),
    ({"media_source": {"source_type": "image_base64", "content_type": "image/png", "data": "iVBORw0KGgo="}}, 201, None),
    ({"media_source": {"source_type": "image_base64", "content_type": "image/jpeg", "data": "iVBORw0KGgo="}}, 400, 1),
    ({"media_source": VIDEO}, 400, 1), ({"media_source": VIDEO | {"cover_image_key_frame_time": 1.5}}, 400, 1),
    ({"media_source": VIDEO | {"cover_image_key_frame_time": 1, "cover_image_url": URL}}, 400, 1),
    ({"media_source": VIDEO | {"cover_image_key_frame_time": 1}}, 404, 50), ({"board_id": "1"}, 404, 40),
    ({"board_section_id": "1"}, 404, 2031),
])
def test_pins(net, change, status, code):
    found = call(net, "POST", "/pins", PIN | change)
    assert (found[0], found[1].get("code")) == (status, code) and len(net.posts) == (status == 201)


def test_who_may_make_pins(net):
    ben = net.add_user("ben", "ben", scopes="boards:read,pins:read")
    assert call(net, "POST", "/pins", PIN, token="nobody") == (401, {"code": 2, "message": "Authentication failed."})
    assert call(net, "POST", "/pins", PIN, token="ben")[1]["code"] == 29
    secret = net.add_board(ben, "Secret", privacy="SECRET")
    assert call(net, "POST", "/pins", PIN | {"board_id": secret.id})[0] == call(net, "GET", f"/boards/{secret.id}")[0] == 404
    assert call(net, "GET", f"/boards/{secret.id}", token="ben")[1]["name"] == "Secret"
    net.tier, net.blocked = "trial", ("https://bad.test/",)
    assert "Trial access" in call(net, "POST", "/pins", PIN)[1]["message"]
    net.tier = "standard"
    assert call(net, "POST", "/pins", PIN | {"link": "https://bad.test/x"})[1]["code"] == 234


def test_pages(net):
    for _ in range(3):
        call(net, "POST", "/pins", PIN)
    first = call(net, "GET", f"/boards/{BOARD}/pins?page_size=2")[1]
    last = call(net, "GET", f"/boards/{BOARD}/pins?page_size=2&bookmark={first['bookmark']}")[1]
    assert [pin["id"] for pin in first["items"] + last["items"]] == [pin["id"] for pin in reversed(net.posts)]
    assert last["bookmark"] is None and call(net, "GET", "/boards?page_size=251")[0] == 400
    assert call(net, "GET", "/boards?bookmark=x")[0] == 400


def store(net, fields, **headers):
    """(status, code) of an upload with these fields, in this order."""
    body, kind = urllib3.encode_multipart_formdata(fields)
    answer = urllib3.request("POST", f"{net.url}/store/", body=body, headers={"Content-Type": kind, **headers})
    return answer.status, answer.data.decode().partition("<Code>")[2].partition("<")[0]


def test_the_store(net):
    assert call(net, "POST", "/media", {"media_type": "image"})[0] == 400
    status, place = call(net, "POST", "/media", {"media_type": "video"})
    form, media = place["upload_parameters"], place["media_id"]
    assert status == 201 and call(net, "GET", f"/media/{media}")[1]["status"] == "registered"
    assert store(net, [*form.items(), ("file", FILE)], Authorization=f"Bearer {TOKEN}") == (400, "InvalidArgument")
    assert store(net, [("file", FILE), *form.items()]) == (400, "InvalidArgument")
    assert store(net, [*list(form.items())[1:], ("file", FILE)]) == (403, "AccessDenied")
    assert store(net, [*(form | {"policy": "x"}).items(), ("file", FILE)]) == (403, "AccessDenied")
    pin = PIN | {"media_source": {"source_type": "video_id", "media_id": media, "cover_image_key_frame_time": 0}}
    assert call(net, "POST", "/pins", pin)[0] == 400
    assert store(net, [*form.items(), ("file", FILE)]) == (204, "")
    states = [call(net, "GET", f"/media/{media}")[1]["status"] for _ in range(3)]
    assert states == ["processing", "processing", "succeeded"] and call(net, "POST", "/pins", pin)[0] == 201
    late = call(net, "POST", "/media", {"media_type": "video"})[1]["upload_parameters"]
    net.advance(3600)
    assert store(net, [*late.items(), ("file", FILE)]) == (403, "AccessDenied")


@pytest.mark.parametrize("form", [
    {"grant_type": "password"}, {"grant_type": "refresh_token"}, {"grant_type": "authorization_code", "code": "x"},
])
def test_grants_that_are_not_whole(net, form):
    headers = urllib3.make_headers(basic_auth=f"{net.client_id}:{net.client_secret}")
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    answer = urllib3.request("POST", f"{net.url}/v5/oauth/token", body=urlencode(form), headers=headers)
    assert (answer.status, answer.json()["code"]) == (400, 1)
