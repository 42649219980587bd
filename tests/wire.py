"""HTTP byte by byte, for requests that no client would send."""

import socket
from urllib.parse import urlsplit

import urllib3

from tests.service import Answer


def raw(url, *requests):
    """Sends bytes as they are, all at once, and reads the answer; a list where there are several requests."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as sock, sock.makefile("rb") as reader:
        sock.sendall(b"".join(requests))
        answers = [read(reader, request.startswith(b"HEAD ")) for request in requests]
    return answers[0] if len(answers) == 1 else answers


def head(method, path, *headers, key=None):
    """A request's first line and headers, to the blank line."""
    lines = [f"{method} {path} HTTP/1.1", "Host: posthorn.test", *([f"Authorization: Bearer {key}"] if key else []), *headers,
             "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunked(*chunks):
    """A body in the chunked coding."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def refused(answer, status, code):
    """That the answer is this failure, whole, in the one envelope."""
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json"), answer.raw
    error = answer.body["error"]
    assert answer.body == {"success": False, "error": error, "meta": {"requestId": answer.headers["X-Request-Id"]}}
    assert error["code"] == code and error["message"]
    assert error.keys() == {"code", "message"} | ({"details"} if status == 422 else set())
    assert all(detail.keys() == {"path", "rule", "message"} for detail in error.get("details", []))
    assert (answer.headers["X-Content-Type-Options"], answer.headers["Cache-Control"]) == ("nosniff", "no-store")
    assert b"Traceback" not in answer.raw and b"handlers/" not in answer.raw
    return True


def read(reader, bodiless=False):
    """The next final answer on a connection."""
    status = 100
    while status == 100:
        status = int(reader.readline().split()[1])
        lines = iter(lambda: reader.readline().decode("latin-1").strip(), "")
        headers = urllib3.HTTPHeaderDict([line.split(": ", 1) for line in lines])
    return Answer(status, headers, b"" if bodiless else reader.read(int(headers["Content-Length"])))
