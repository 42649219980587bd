"""What our client says of stores that are not as they should be: too careless, too strict, broken, or not there."""

import io
import socket

import pytest

from storage.objects import Objects, StoreUnavailable
from tests.odd_stores import SECRET, Careless, Old, Open, Refusing, answering, serving


def put(objects):
    objects.put("t/a", io.BytesIO(b"0123456789"), 10, "image/png")


def test_prepare_tells_what_a_careless_store_does_not_do():
    with serving(Careless) as objects:
        cors, again, size, kind, beside = objects.prepare()
    assert "CORS" in cors and "replaced" in again and "larger than declared" in size and "another type" in kind
    assert "beside it" in beside


def test_a_store_that_was_told_by_others_whom_to_admit_needs_no_rules_of_ours():
    with serving(Open) as objects:
        assert objects.admits_pages() and not any("CORS" in sentence for sentence in objects.prepare())


@pytest.mark.parametrize("change", [{"origin": "https://other.example"}, {"preflight": 403}, {"telling": ("OPTIONS",)}])
def test_pages_that_are_not_admitted_all_the_way(change):
    with serving(type("Closed", (Open,), change)) as objects:
        assert not objects.admits_pages() and "CORS" in objects.prepare()[0]


def test_prepare_fails_where_nothing_can_be_uploaded():
    with serving(Refusing) as objects, pytest.raises(StoreUnavailable, match="refuses uploads"):
        objects.prepare()


def test_prepare_fails_where_one_upload_could_replace_another_for_want_of_conditions():
    with serving(Old) as objects, pytest.raises(StoreUnavailable, match="knows no If-None-Match"):
        objects.prepare()


def read(objects):
    with objects.open("t/a") as file:
        return file.read()


PAGE = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<h1>Hello<h1>"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nonly this"
DENIED = (b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n"
          b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
FULL = (b"HTTP/1.1 507 x\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n"
        b"<Error><Code>InternalError</Code><Message>no</Message></Error>")


@pytest.mark.parametrize("text, act, sentence", [
    pytest.param(b"", lambda at: at.stat("t/a"), "cannot be reached", id="hangs up"),
    pytest.param(b"220 mail.example ESMTP\r\n", lambda at: at.stat("t/a"), "cannot be reached", id="no HTTP"),
    pytest.param(PAGE % b"200 OK", lambda at: list(at.list()), "does not speak S3", id="a page"),
    pytest.param(PAGE % b"503 Busy", put, "does not speak S3", id="an error page"),
    pytest.param(PAGE % b"404 No", read, "does not speak S3", id="a page that is not there"),
    pytest.param(HALF, read, "broke off", id="half an object"),
    pytest.param(HALF, lambda at: at.fetch_to("t/a", io.BytesIO()), "broke off", id="half a copy"),
    pytest.param(DENIED, read, "refused (AccessDenied)", id="no permission to read"),
    pytest.param(DENIED, lambda at: at.delete("t/a"), "refused (AccessDenied)", id="no permission to delete"),
    pytest.param(DENIED, lambda at: at.prepare(), "refused (AccessDenied)", id="no permission to look at the bucket"),
    pytest.param(FULL, put, "refused (InternalError)", id="full"),
])
def test_every_failure_is_one_sentence(text, act, sentence):
    with answering(text) as objects:
        with pytest.raises(StoreUnavailable) as caught:
            act(objects)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert SECRET not in str(caught.value) + repr(caught.value.__cause__) + repr(objects)


def test_nobody_there():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        objects = Objects(f"http://127.0.0.1:{nobody.getsockname()[1]}", "key", SECRET, "media")
        assert not objects.ready()
        for act in (lambda: objects.stat("t/a"), lambda: put(objects), lambda: list(objects.list()), objects.prepare):
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                act()
