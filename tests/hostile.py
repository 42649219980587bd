"""Hostile requests byte by byte, each with the one answer that it gets; see tests/test_hostile.py.

KEY stands for a good key. "canary" in a request is what no answer may repeat. What is here is not in test_envelope.py and
test_bodies.py, which hold unknown paths, wrong methods, media types and broken JSON.
"""

import json
from dataclasses import dataclass, field

DONE = 201
LONG_HEAD = b"The head of the request is too long."
HOST = b"Host: posthorn.test"
IDEA = {"content": "A loaf is a slow conversation.", "sourceUrl": "https://example.net/on-bread"}
VALID = json.dumps(IDEA).encode()
LENGTH = b"Content-Length: %d" % len(VALID)
JSON = b"Content-Type: application/json"
CHUNKS = b"%x\r\n" % len(VALID) + VALID + b"\r\n0\r\n\r\n"
CREDENTIAL = b"Authorization: Bearer KEY"


@dataclass(frozen=True)
class Hostile:
    """A request; the status of its answer; the code of a failure in the envelope; headers of the answer; whether it ends the
    connection. Without a code a failure is the plain refusal of the HTTP server, in these words."""

    name: str
    sent: bytes
    status: int
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    closes: bool = False
    words: bytes = b"Invalid HTTP request received."


def lines(*given):
    """A request without a body."""
    return b"\r\n".join([*given, b"", b""])


def get(path, *headers):
    """GET of a path, as it is."""
    return lines(b"GET " + path + b" HTTP/1.1", HOST, *headers)


def asked(path, *headers):
    """GET with a good credential."""
    return get(path, CREDENTIAL, *headers)


def post(path, body, *headers):
    """POST of a body with a good credential, its length and its type."""
    return lines(b"POST " + path + b" HTTP/1.1", HOST, CREDENTIAL, JSON, *headers, b"Content-Length: %d" % len(body)) + body


def idea(*headers, body=VALID):
    """POST of an idea that says of its length what `headers` say."""
    return lines(b"POST /v1/ideas HTTP/1.1", HOST, CREDENTIAL, JSON, *headers) + body


def chunks(body):
    """POST of an idea in chunks that are these bytes."""
    return idea(b"Transfer-Encoding: chunked", body=body)


def publish(**members):
    """POST of a post with one member changed."""
    return post(b"/v1/posts", json.dumps({"targets": [{"platform": "bluesky"}], "caption": "x", **members}).encode())


def plain(name, sent):
    """What the HTTP server refuses itself."""
    return Hostile(name, sent, 400, closes=True)


def wrong(name, sent, status=422, code="unprocessable", **more):
    """What is refused in the envelope."""
    return Hostile(name, sent, status, code, **more)


def fine(name, sent, status=200, **more):
    """What only looks hostile."""
    return Hostile(name, sent, status, **more)


def unknown(name, path):
    """A path that is none."""
    return wrong(name, get(path), 404, "not_found")


def barred(name, *headers):
    """A credential that is none."""
    return wrong(name, get(b"/v1/posts", *headers), 401, "unauthorized")


REQUEST_LINES = [
    plain("a tab", b"GET\t/v1/health HTTP/1.1\r\nHost: a\r\n\r\n"),
    plain("a blank behind", b"GET /v1/health HTTP/1.1 \r\nHost: a\r\n\r\n"),
    plain("a blank before", b" GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n"),
    plain("a blank in the path", get(b"/v1/he alth")),
    plain("a bare line", b"canary\r\n\r\n"),
    plain("only blanks", b"   \r\n\r\n"),
    plain("HTTP/1.2", b"GET /v1/health HTTP/1.2\r\nHost: a\r\n\r\n"),
    plain("HTTP/9.9", b"GET /v1/health HTTP/9.9\r\nHost: a\r\n\r\n"),
    plain("http/1.1", b"GET /v1/health http/1.1\r\nHost: a\r\n\r\n"),
    plain("HTTP/1.1x", b"GET /v1/health HTTP/1.1x\r\nHost: a\r\n\r\n"),
    plain("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    plain("a tunnel", b"CONNECT canary.example:443 HTTP/1.1\r\nHost: canary.example\r\n\r\n"),
    plain("no slash", get(b"v1/health")),
    plain("NUL in the path", get(b"/v1/\0health")),
    wrong("HTTP/0.9", b"GET /v1/health\r\n\r\n", 400, "bad_request", closes=True),
    wrong("HTTP/2.0", b"GET /v1/health HTTP/2.0\r\nHost: a\r\n\r\n", 400, "bad_request", closes=True),
    wrong("RTSP", b"DESCRIBE rtsp://a/v1/health RTSP/1.0\r\nHost: a\r\n\r\n", 405, "bad_request",
          headers={"Allow": "GET, HEAD"}, closes=True),
    fine("two blanks", b"GET  /v1/health HTTP/1.1\r\nHost: a\r\n\r\n"),
    fine("blank lines first", b"\r\n\r\n" + get(b"/v1/health")),
    fine("an absolute address", get(b"http://canary.example/v1/health")),
    fine("a fragment", get(b"/v1/health#canary")),
    fine("an encoded letter", get(b"/v1/%68ealth")),
    fine("a long query of nothing", get(b"/v1/health?" + b"&" * 60_000)),
    wrong("another method that HTTP knows", lines(b"PURGE /v1/health HTTP/1.1", HOST), 405, "bad_request",
          headers={"Allow": "GET, HEAD"}),
    wrong("a method of WebDAV", lines(b"MOVE /v1/posts/x HTTP/1.1", HOST, b"Destination: /canary"), 405, "bad_request",
          headers={"Allow": "DELETE, GET, HEAD, PATCH"}),
    wrong("OPTIONS of all", lines(b"OPTIONS * HTTP/1.1", HOST), 404, "not_found"),
    wrong("GET of a token", get(b"/oauth/token"), 405, "bad_request", headers={"Allow": "POST"}),
    wrong("POST of a callback", lines(b"POST /connect/callback HTTP/1.1", HOST, b"Content-Length: 0"), 405, "bad_request",
          headers={"Allow": "GET, HEAD"}),
    wrong("DELETE of a file", lines(b"DELETE /media/canary HTTP/1.1", HOST), 405, "bad_request",
          headers={"Allow": "GET, HEAD"}),
]

PATHS = [
    unknown("an encoded slash", b"/v1%2Fhealth"),
    unknown("an encoded slash first", b"/%2Fv1/health"),
    unknown("a slash encoded twice", b"/v1%252Fhealth"),
    unknown("a dot", b"/v1/./health"),
    unknown("two dots, encoded", b"/v1/posts/%2e%2e/health"),
    unknown("a backslash", b"/v1\\health"),
    unknown("a broken escape", b"/v1/%zz"),
    unknown("a percent sign", b"/v1/health%"),
    unknown("an escape of JavaScript", b"/v1/%u0068ealth"),
    unknown("overlong UTF-8", b"/%c0%afv1/health"),
    unknown("a script", b"/v1/<script>canary</script>"),
    unknown("an encoded line break", b"/v1/health%0d%0aX-Canary:%20canary"),
    unknown("a turned letter", b"/v1/%EF%BD%88ealth"),
    unknown("files above", b"/media/../../etc/passwd"),
    unknown("files above, encoded", b"/media/%2e%2e%2f%2e%2e%2fetc/passwd"),
    unknown("all files", b"/media/"),
    unknown("a file's parts", b"/media/canary/live/'--"),
    unknown("a source file", b"/handlers/app.py"),
    unknown("the settings", b"/.env"),
    unknown("git", b"/.git/config"),
    unknown("metrics", b"/metrics"),
    unknown("60 kB", b"/v1/" + b"canary" * 10_000),
]

HEADERS = [
    plain("no colon", get(b"/v1/health", b"canary")),
    plain("no name", get(b"/v1/health", b": canary")),
    plain("a blank in a name", get(b"/v1/health", b"X Y: canary")),
    plain("a bracket in a name", get(b"/v1/health", b"X(Y): canary")),
    plain("UTF-8 in a name", get(b"/v1/health", b"X\xc3\xa9: canary")),
    plain("a blank before the first name", lines(b"GET /v1/health HTTP/1.1", b" Host: a")),
    plain("a bare CR in a value", get(b"/v1/health", b"X: a\rcanary")),
    plain("a bare LF between headers", get(b"/v1/health", b"X: a\nY: b")),
    plain("a control character", get(b"/v1/health", b"X: a\x01canary")),
    wrong("a second encoding", idea(b"Content-Encoding: identity", b"Content-Encoding: gzip", LENGTH), 415, "bad_request"),
    wrong("a second expectation", idea(b"Expect: 100-continue", b"Expect: canary", LENGTH), 417, "bad_request"),
    fine("Latin-1 in a value", get(b"/v1/health", b"X: \xe9\xff")),
    fine("no value", get(b"/v1/health", b"X:")),
    wrong("a name of 16 kB", get(b"/v1/health", b"X" * 16_384 + b": canary"), 431, "bad_request"),
    wrong("a value of 200 kB", get(b"/v1/health", b"X: " + b"canary" * 33_000), 431, "bad_request"),
    *(wrong(f"the host {host.decode('latin-1')}", lines(b"GET /v1/health HTTP/1.1", b"Host: " + host), 400, "bad_request")
      for host in (b"canary/x", b"a b", b"user@canary", b"a\xff", b"a:canary", b"[::1", b"a?b", b"a,b", b"a:123456")),
    *(fine(f"the host {host.decode()}", lines(b"GET /v1/health HTTP/1.1", b"Host: " + host))
      for host in (b"a_b.example", b"[::1]:8080", b"192.0.2.1:80", b"a:")),
    Hostile("a head without end", b"GET /v1/health HTTP/1.1\r\nX: ".ljust(262_145, b"x"), 400, closes=True, words=LONG_HEAD),
    Hostile("a line without end", b"GET /v1/".ljust(262_145, b"x"), 400, closes=True, words=LONG_HEAD),
    fine("h2c with a body", idea(b"Connection: Upgrade", b"Upgrade: h2c", LENGTH), DONE),
    fine("h2c with chunks", idea(b"Connection: Upgrade", b"Upgrade: h2c", b"Transfer-Encoding: chunked", body=CHUNKS), DONE),
    wrong("h2c with a broken body", idea(b"Connection: close, Upgrade", b"Upgrade: h2c", LENGTH, body=b"x" * len(VALID)), 400,
          "bad_request", closes=True),
    fine("h2c", get(b"/v1/health", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c",
                    b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")),
    fine("a web socket", get(b"/v1/health", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
                             b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")),
    fine("other addresses", get(b"/v1/health", b"X-Forwarded-For: canary", b"Forwarded: for=canary",
                                b"X-Original-URL: /v1/posts", b"X-Rewrite-URL: /v1/posts", b"X-Forwarded-Host: canary.x")),
    fine("a range", get(b"/v1/health", b"Range: bytes=0-0, 2-2, 999999999999999999999-")),
    fine("an end to the connection", get(b"/v1/health", b"Connection: close"), headers={"Connection": "close"}, closes=True),
]

LENGTHS = [
    *(plain(f"the length {value.decode('latin-1')!r}", idea(b"Content-Length: " + value))
      for value in (b"+91", b"0x5b", b"9_1", b"91,91", b"91 91", b"\xd9\xa9", b"1e2", b"91;", b"--1")),
    plain("one length twice", idea(LENGTH, LENGTH)),
    *(plain(f"the coding {value.decode()}", idea(b"Transfer-Encoding: " + value, body=b"0\r\n\r\n"))
      for value in (b"identity", b"chunked, gzip", b"chunkedx", b"chunked;q=1", b"canary")),
    plain("two codings", idea(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=b"0\r\n\r\n")),
    *(plain(f"the chunk {size.decode()!r}", chunks(size + b"\r\n" + VALID + b"\r\n0\r\n\r\n"))
      for size in (b"-5b", b"0x5b", b"+5b", b"canary", b"", b" 5b", b"5b 5b", b"f" * 17)),
    plain("a chunk that is longer than it says", chunks(b"1\r\n" + VALID + b"\r\n0\r\n\r\n")),
    plain("a chunk without its end", chunks(b"%x\r\n" % len(VALID) + VALID + b"0\r\n\r\n")),
    plain("chunks with bare line feeds", chunks(b"%x\n" % len(VALID) + VALID + b"\n0\n\n")),
    plain("a broken trailer", chunks(b"%x\r\n" % len(VALID) + VALID + b"\r\n0\r\ncanary\r\n\r\n")),
    fine("the coding CHUNKED",
         idea(b"Transfer-Encoding: CHUNKED", body=b"%X\r\n" % len(VALID) + VALID + b"\r\n0\r\n\r\n"), DONE),
    fine("a chunk that says more", chunks(b"%x;canary=\"x\"\r\n" % len(VALID) + VALID + b"\r\n0\r\n\r\n"), DONE),
    fine("a trailer", chunks(b"%x\r\n" % len(VALID) + VALID + b"\r\n0\r\nX: canary\r\n\r\n"), DONE),
    fine("a second credential in the trailer",
         chunks(b"%x\r\n" % len(VALID) + VALID + b"\r\n0\r\nAuthorization: canary\r\n\r\n"), DONE),
    fine("leading zeros", idea(b"Content-Length: %09d" % len(VALID)), DONE),
    fine("blanks around", idea(b"Content-Length:  \t%d \t" % len(VALID)), DONE),
    wrong("a length of nothing", idea(b"Content-Length: 0", body=b""), 400, "bad_request"),
]

CREDENTIALS = [
    barred("no token", b"Authorization: Bearer"),
    barred("blanks", b"Authorization: Bearer  \t "),
    barred("nothing", b"Authorization:"),
    barred("another scheme", b"Authorization: Token KEY"),
    barred("no scheme", b"Authorization: KEY"),
    barred("two tokens", b"Authorization: Bearer KEY KEY"),
    barred("a comma", b"Authorization: Bearer KEY, Bearer KEY"),
    barred("no ASCII", b"Authorization: Bearer \xff\xfe\xe9"),
    barred("15 kB", b"Authorization: Bearer " + b"canary" * 2500),
    barred("SQL", b"Authorization: Bearer sk_live_' OR 1=1 --"),
    barred("a JWT", b"Authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJjYW5hcnkifQ."),
    barred("in a cookie", b"Cookie: Authorization=Bearer KEY; token=KEY"),
    barred("in a header of its own", b"X-Api-Key: KEY"),
    barred("for a proxy", b"Proxy-Authorization: Bearer KEY"),
    wrong("in the query", get(b"/v1/posts?access_token=KEY"), 401, "unauthorized"),
    wrong("in the address", get(b"http://KEY@canary.example/v1/posts"), 401, "unauthorized"),
    fine("small letters", get(b"/v1/posts", b"authorization: bearer KEY")),
    fine("blanks more than one", get(b"/v1/posts", b"Authorization: BEARER   KEY \t")),
]

PARAMETERS = [
    *(wrong(f"limit={value.decode()}", asked(b"/v1/posts?limit=" + value))
      for value in (b"0", b"101", b"-1", b"%2B1", b"1e1", b"1.0", b"0x1", b"%D9%A3", b"%201", b"1%00", b"9" * 400, b"",
                    b"null")),
    *(wrong(f"cursor={value.decode()}", asked(b"/v1/posts?cursor=" + value))
      for value in (b"canary", b"AAAA", b"..", b"%27--", b"x" * 201)),
    *(wrong(f"from={value.decode()}", asked(b"/v1/posts?from=" + value))
      for value in (b"canary", b"0", b"2026-02-30T00:00:00Z", b"2026-12-01T24:00:00Z", b"2026-12-01T00:00:00%2B99:00",
                    b"9999-12-31T23:59:59-23:59", b"2026-12-01T00:00:00", b"2026-12-01T00:00:00+01:00")),
    wrong("a status in capitals", asked(b"/v1/posts?status=PUBLISHED")),
    wrong("a semicolon", asked(b"/v1/posts?limit=1;cursor=canary")),
    fine("an encoded digit", asked(b"/v1/posts?limit=%31")),
    fine("an encoded name", asked(b"/v1/posts?%6Cimit=1")),
    wrong("a key of nothing", post(b"/v1/ideas", VALID, b"Idempotency-Key:")),
    wrong("a key with a blank", post(b"/v1/ideas", VALID, b"Idempotency-Key: canary canary")),
    wrong("a key that is no ASCII", post(b"/v1/ideas", VALID, b"Idempotency-Key: \xe9")),
    wrong("a key of 256", post(b"/v1/ideas", VALID, b"Idempotency-Key: " + b"k" * 256)),
    wrong("two keys", post(b"/v1/ideas", VALID, b"Idempotency-Key: a", b"Idempotency-Key: a")),
    wrong("two ETags", asked(b"/v1/platforms", b'If-None-Match: "a"', b'If-None-Match: "b"')),
    wrong("an ETag of 201", asked(b"/v1/platforms", b"If-None-Match: " + b"e" * 201)),
]


def upload(size):
    """POST for an upload of a size that is these bytes."""
    return post(b"/v1/media/upload-url", b'{"contentType": "image/png", "fileSize": ' + size + b"}")


VALUES = [
    *(wrong(f"a size of {size.decode()[:20]}", upload(size))
      for size in (b"1e308", b"1e400", b"-1e400", b"1.5", b'"1"', b"true", b"9007199254740992", b"-0.0", b"1" * 4000, b"[1]")),
    wrong("a size of 5,000 digits", upload(b"1" * 5000), 400, "bad_request"),
    wrong("nothing to publish to", publish(targets={"length": 1, "0": {"platform": "bluesky"}})),
    wrong("51 targets", publish(targets=[{"platform": "bluesky"}] * 51)),
    wrong("10,000 targets", publish(targets=[{}] * 10_000)),
    wrong("lists in lists", publish(targets=[[[[{"platform": "bluesky"}]]]])),
    wrong("null for a target", publish(targets=[None])),
    wrong("a platform in capitals", publish(targets=[{"platform": "Bluesky"}])),
    wrong("a platform that is a list", publish(targets=[{"platform": ["bluesky"]}])),
    wrong("a platform with NUL", publish(targets=[{"platform": "bluesky\0"}])),
    wrong("a platform that is an object", publish(targets=[{"platform": {"$ref": "#/canary"}}])),
    wrong("a prototype", publish(targets=[{"platform": "bluesky", "__proto__": {"canary": 1}}])),
    wrong("a constructor", publish(targets=[{"platform": "bluesky", "options": {"constructor": {"prototype": {}}}}])),
    wrong("options that are a string", publish(targets=[{"platform": "bluesky", "options": "canary"}])),
    wrong("options with half a pair", publish(targets=[{"platform": "bluesky", "options": {"altTexts": ["\ud83c"]}}])),
    wrong("options of infinity",
          post(b"/v1/posts", b'{"targets": [{"platform": "tiktok", "options": {"coverTimestampMs": 1e999}}]}')),
    wrong("a time that no calendar has", publish(scheduleAt="2026-02-30T00:00:00Z")),
    wrong("a time before all", publish(scheduleAt="0000-01-01T00:00:00Z")),
    wrong("a time after all", publish(scheduleAt="9999-12-31T23:59:59-23:59")),
    wrong("a leap second", publish(scheduleAt="2026-12-31T23:59:60Z")),
    wrong("a time that is a number", publish(scheduleAt=1_800_000_000)),
    wrong("a file of ours", publish(media=["file:///etc/passwd"])),
    wrong("an address within", publish(media=["http://169.254.169.254/canary"])),
    wrong("a script for media", publish(media=["javascript:canary"])),
    wrong("an address with NUL", publish(media=["http://example.net/\0"])),
    wrong("an address that breaks off", publish(media=["http://[::1"])),
    wrong("a client of nobody", publish(clientId="' OR 1=1 --")),
    wrong("a client that is nobody's", publish(clientId="client_canary"), 404, "not_found"),
    wrong("10,000 levels", post(b"/v1/posts", b'{"targets":' + b"[" * 10_000 + b"]" * 10_000 + b"}"), 400, "bad_request"),
    wrong("a name twice in the depth", post(b"/v1/posts", b'{"targets": [{"platform": "bluesky", "platform": "gbp"}]}'), 400,
          "bad_request"),
    wrong("-Infinity in the depth",
          post(b"/v1/posts", b'{"targets": [{"platform": "bluesky", "options": {"x": -Infinity}}]}'), 400,
          "bad_request"),
]

ALL = [*REQUEST_LINES, *PATHS, *HEADERS, *LENGTHS, *CREDENTIALS, *PARAMETERS, *VALUES]
