"""What presign.py signs is what botocore signs."""

from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.config import Config
from botocore.session import Session

from storage.presign import presign_put

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
MOMENT = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)


def presigned(endpoint_url="https://store.example", bucket="media", key="t/1.png", size=10, content_type="image/png",
              region="us-east-1", expires=900, now=MOMENT, **more):
    return presign_put(endpoint_url, bucket, key, access_key=ACCESS_KEY, secret_key=SECRET_KEY, region=region, size=size,
                       content_type=content_type, expires=expires, now=now, **more)


def by_botocore(endpoint_url="https://store.example", bucket="media", key="t/1.png", size=10, content_type="image/png",
                region="us-east-1", expires=900, virtual_host=False, session_token=None):
    client = Session().create_client(
        "s3", endpoint_url=endpoint_url, region_name=region, aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY,
        aws_session_token=session_token,
        config=Config(signature_version="s3v4", s3={"addressing_style": "virtual" if virtual_host else "path"}))
    return client.generate_presigned_url("put_object", ExpiresIn=expires, Params={
        "Bucket": bucket, "Key": key, "ContentLength": size, "ContentType": content_type, "IfNoneMatch": "*"})


@pytest.mark.parametrize("request_", [
    pytest.param({}, id="plain"),
    pytest.param({"endpoint_url": "http://127.0.0.1:9000"}, id="host with a port"),
    pytest.param({"endpoint_url": "https://store.example:443"}, id="the port that https implies"),
    pytest.param({"endpoint_url": "http://store.example:80"}, id="the port that http implies"),
    pytest.param({"endpoint_url": "http://store.example:443"}, id="the port that the other scheme implies"),
    pytest.param({"endpoint_url": "https://store.example/"}, id="slash at the end"),
    pytest.param({"endpoint_url": "http://[::1]:9000"}, id="IPv6"),
    pytest.param({"region": "eu-central-1"}, id="region"),
    pytest.param({"key": "team_1/live/AbC-_9~.webm"}, id="characters that are never escaped"),
    pytest.param({"key": "t/a b+c&d=e?f#g%h;i:j@k,l'm(n)!*.png"}, id="characters that are always escaped"),
    pytest.param({"key": "t/größe/写真.png"}, id="beyond ASCII"),
    pytest.param({"size": 0}, id="empty"),
    pytest.param({"size": 2_147_483_648, "content_type": "video/mp4"}, id="2 GB"),
    pytest.param({"content_type": "text/plain; charset=utf-8"}, id="type with a parameter"),
    pytest.param({"expires": 604_800}, id="the longest time"),
    pytest.param({"virtual_host": True}, id="the bucket before the host"),
    pytest.param({"virtual_host": True, "endpoint_url": "http://store.example:9000/", "key": "t/a b+c.png"},
                 id="before a host with a port"),
    pytest.param({"session_token": "IQoJb3JpZ2lu/+=="}, id="temporary keys"),
])
def test_same_url_as_botocore(request_):
    expected = urlsplit(by_botocore(**request_))
    now = datetime.strptime(parse_qs(expected.query)["X-Amz-Date"][0], "%Y%m%dT%H%M%S%z")
    ours = urlsplit(presigned(**request_, now=now))
    assert ours[:3] == expected[:3] and sorted(ours.query.split("&")) == sorted(expected.query.split("&"))


@pytest.mark.parametrize("change", [
    {"endpoint_url": "https://other.example"}, {"bucket": "other"}, {"key": "t/2.png"}, {"size": 11}, {"expires": 901},
    {"content_type": "image/jpeg"}, {"region": "eu-central-1"}, {"now": MOMENT + timedelta(seconds=1)},
], ids=lambda change: next(iter(change)))
def test_everything_that_is_promised_is_signed(change):
    signature = parse_qs(urlsplit(presigned()).query)["X-Amz-Signature"]
    assert parse_qs(urlsplit(presigned(**change)).query)["X-Amz-Signature"] != signature


def test_a_time_in_another_zone_is_the_same_time():
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert presigned(now=elsewhere) == presigned()


def test_the_secret_is_not_in_the_url():
    assert SECRET_KEY not in presigned() and "wJalrXUtnFEMI" not in presigned()
