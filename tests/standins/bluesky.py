"""Bluesky: an account's PDS, the public AppView, the PLC directory and the video service on one port.

Answers were taken from the reference PDS 0.5.35; record rules are the lexicons of 2026-08-20, https://atproto.com/lexicons.
"""

import base64
import hashlib
import re
from dataclasses import dataclass, field

from tests.standins.bluesky_errors import ERRORS
from tests.standins.bluesky_sessions import ACCESS, ACCESS_SECONDS, APP_PASSWORD, Sessions
from tests.standins.bluesky_video import VideoService
from tests.standins.lexicon import (CID, RECORDS, Invalid, Refusal, array, blobs_in, boolean, cid_of, free_object, procedure,
                                    query, record, spans, string, union)
from tests.standins.server import HOST, Answer, Network, parse_json, route, run, sniff

BLOB_SECONDS = 6 * 3600  # an unreferenced blob lives at least one hour; this one six
RECORD_JSON_BYTES = 1_000_000
BLOB_BYTES = 52_428_800
RATES = {
    "ip": (3000, 300), "session 5 min": (30, 300), "session day": (300, 86400),
    "write hour": (5000, 3600), "write day": (35000, 86400), "blob day": (1000, 86400),
}
WRITE_POINTS = {"create": 3, "update": 2, "delete": 1}
REPO, SERVER = "com.atproto.repo.", "com.atproto.server."
TID_LETTERS = "234567abcdefghijklmnopqrstuvwxyz"


@dataclass
class Account:
    """One account and its repository; passwords maps each password to the scope of its tokens."""

    did: str
    handle: str
    email: str
    email_confirmed: bool
    display_name: str | None
    avatar: str | None
    passwords: dict = field(repr=False)
    email_factor: bool = False  # a code by e-mail beside the main password
    status: str | None = None  # "deactivated" or "takendown"
    commit: str = ""
    blobs: dict = field(default_factory=dict, repr=False)  # cid: {"mimeType", "size", "temporary", "time"}


@dataclass
class Write:
    """One checked change of a repository."""

    action: str
    uri: str
    value: dict | None = None
    cid: str | None = None
    status: str | None = None


def writing(nsid, action, body):
    """A procedure that changes the repository and costs points for it."""

    def rates(request, account, data):
        actions = [write["$type"].split("#")[1] for write in data["writes"]] if "writes" in data else [action]
        points = sum(WRITE_POINTS[action] for action in actions)
        return [("write hour", account.did, points), ("write day", account.did, points)]

    return procedure(nsid, body, "access", most=RECORD_JSON_BYTES, rates=rates)


REPO_NAME, COLLECTION, KEY = string(form="AT identifier"), string(form="NSID"), string(form="record key")
SWAPS = {"validate": boolean, "swapCommit": CID}
WRITES = array(union(
    record(REPO + "applyWrites#create", {"collection": COLLECTION, "value": free_object}, {"rkey": KEY}),
    record(REPO + "applyWrites#update", {"collection": COLLECTION, "rkey": KEY, "value": free_object}),
    record(REPO + "applyWrites#delete", {"collection": COLLECTION, "rkey": KEY}),
    closed=True,
))


class BlueskyServer(VideoService, Sessions, Network):
    """The network. posts are the public post records in order of creation, records is every record by its at:// address.

    access_seconds is the life of an access token, blob_bytes the PDS's upload ceiling, video_polls how many getJobStatus
    answers come before a video is ready.
    """

    errors = ERRORS

    def __init__(self, port=0, access_seconds=ACCESS_SECONDS, blob_bytes=BLOB_BYTES, video_polls=2):
        super().__init__(port, access_seconds)
        self.blob_bytes, self.video_polls = blob_bytes, video_polls
        self.rates = dict(RATES)
        self.accounts: dict[str, Account] = {}
        self.records: dict[str, dict] = {}
        self.did = f"did:web:{HOST}"
        self._jobs, self._last_tid = {}, 0
        self.uploads = {}

    def add_user(self, handle, app_password, *, password=None, email=None, email_confirmed=True, display_name=None, avatar=None,
                 email_factor=False) -> str:
        """Create an account and return its DID. `password` is the main one, whose tokens are not limited to an app's scope."""
        did = "did:plc:" + base64.b32encode(hashlib.sha256(handle.encode()).digest()).decode().lower()[:24]
        passwords = {app_password: APP_PASSWORD} | ({password: ACCESS} if password else {})
        self.accounts[did] = Account(did, handle, email or f"{handle}@example.com", email_confirmed, display_name, avatar,
                                     passwords, email_factor, commit=cid_of({"did": did}))
        return did

    def revoke(self, did: str, app_password: str):
        """Delete an app password: refreshing ends at once, an access token goes on until its own end."""
        del self.accounts[did].passwords[app_password]

    def add_post(self, did, text, **members) -> dict:
        """A post that was written elsewhere."""
        value = {"$type": "app.bsky.feed.post", "text": text, "createdAt": "2026-11-20T08:00:00.000Z", **members}
        account = self.accounts[did]
        self._apply(account, self._prepare(account, "create", {"collection": value["$type"]}, value, "$"))
        return self.posts[-1]

    def accept(self, request, options):
        if options.get("body") is bytes and options["auth"]:
            self._authenticate(request, options)
        if "most" in options and (request.length or 0) > (self.blob_bytes if options["body"] is bytes else options["most"]):
            name = "PayloadTooLarge" if options["body"] is bytes else "PayloadTooLargeError"
            raise Refusal(413, name, "request entity too large")

    def call(self, request, options, handler):
        data = self._params(request, options) if "params" in options else None
        account = self._authenticate(request, options)
        if "body" in options:
            data = self._body(request, options)
        charges = options["rates"](request, account, data) if options.get("rates") else []
        self._charge(request, [("ip", "loopback", 1), *charges])
        return handler(self, request, account, data)

    def no_route(self, request, methods):
        if not request.path.startswith("/xrpc/"):
            return Answer(404, f"Cannot {request.method} {request.path}")
        if methods:
            return Refusal(400, "InvalidRequest", f"Incorrect HTTP method ({request.method}) expected {methods[0]}")
        if not request.headers.get("Authorization"):
            return Refusal(401, "AuthMissing", "Authentication Required")
        return Refusal(501, "MethodNotImplemented", "Method Not Implemented")

    @query(SERVER + "describeServer")
    def describe_server(self, *_):
        """The PDS itself."""
        return {"did": self.did, "availableUserDomains": [".test"], "inviteCodeRequired": False,
                "blobUploadLimit": self.blob_bytes, "links": {}, "contact": {}}

    # repository

    @procedure(REPO + "uploadBlob", bytes, "access", types=None,
               rates=lambda request, account, data: [("blob day", account.did, 1)])
    def upload_blob(self, request, account, data):
        """Store bytes for a record to come; the type is corrected by the content, as far as that is known."""
        if account.status == "takendown":
            raise Refusal(401, "AccountTakedown", "Account has been taken down")
        return {"blob": self._store(account, data, sniff(data) or request.media_type)}

    @writing(REPO + "putRecord", "update", record(
        None, {"repo": REPO_NAME, "collection": COLLECTION, "rkey": KEY, "record": free_object},
        {**SWAPS, "swapRecord": lambda value, path: value is None or CID(value, path)}))
    def put_record(self, request, account, data):
        """Create or replace. An identical record changes nothing and is not a conflict, whatever swapRecord says."""
        self._own(account, data["repo"])
        uri = f"at://{account.did}/{data['collection']}/{data['rkey']}"
        current = self.records.get(uri)
        write = self._prepare(account, "update" if current else "create", data, data["record"], "$.record")
        if current and current["cid"] == write.cid:
            return _written(write)
        if "swapRecord" in data and data["swapRecord"] != (current and current["cid"]):
            raise Refusal(400, "InvalidSwap", f"Record was at {current['cid'] if current else 'null'}")
        return _written(write, self._commit(account, [write], data))

    @writing(REPO + "createRecord", "create", record(
        None, {"repo": REPO_NAME, "collection": COLLECTION, "record": free_object}, {**SWAPS, "rkey": KEY}))
    def create_record(self, request, account, data):
        """Create; a key that is taken ends in a 500."""
        self._own(account, data["repo"])
        write = self._prepare(account, "create", data, data["record"], "$.record")
        return _written(write, self._commit(account, [write], data))

    @writing(REPO + "applyWrites", None, record(None, {"repo": REPO_NAME, "writes": WRITES}, SWAPS))
    def apply_writes(self, request, account, data):
        """Several changes in one commit: all or none."""
        self._own(account, data["repo"])
        if len(data["writes"]) > 200:
            raise Refusal(400, "InvalidRequest", "Too many writes. Max: 200")
        writes = []
        for index, change in enumerate(data["writes"]):
            action, details = change["$type"].split("#")[1], {**change, "validate": data.get("validate")}
            writes.append(self._prepare(account, action, details, change.get("value"), f"$.writes[{index}].record"))
        commit = self._commit(account, writes, data)
        return {"commit": commit, "results": [
            {"$type": f"{REPO}applyWrites#{write.action}Result"} | ({} if write.action == "delete" else _written(write))
            for write in writes]}

    @query(REPO + "getRecord", record(None, {"repo": REPO_NAME, "collection": COLLECTION, "rkey": KEY}, {"cid": CID}))
    def get_record(self, request, _, data):
        """One record, for everybody."""
        account = self._account(data["repo"])
        if account is None:
            raise Refusal(400, "InvalidRequest", f"Could not find repo: {data['repo']}")
        uri = f"at://{account.did}/{data['collection']}/{data['rkey']}"
        found = self.records.get(uri)
        if account.status or found is None or data.get("cid", found["cid"]) != found["cid"]:
            raise Refusal(400, "RecordNotFound", f"Could not locate record: {uri}")
        return {"uri": uri, **found}

    # identity and profile

    @query("com.atproto.identity.resolveHandle", record(None, {"handle": string(form="handle")}))
    def resolve_handle(self, request, _, data):
        """Handle to DID."""
        account = self._account(data["handle"].lower())
        if account is None or account.handle != data["handle"].lower():
            raise Refusal(400, "HandleNotFound", "Unable to resolve handle")
        return {"did": account.did}

    @query("app.bsky.actor.getProfile", record(None, {"actor": REPO_NAME}), auth="optional")
    def get_profile(self, request, _, data):
        """What the AppView shows of an account; displayName and avatar only when the account has them."""
        account = self._account(data["actor"].lower())
        if account is None:
            raise Refusal(400, "InvalidRequest", "Profile not found")
        known = {"displayName": account.display_name, "avatar": account.avatar}
        return {"did": account.did, "handle": account.handle, **{key: value for key, value in known.items() if value},
                "followersCount": 0, "followsCount": 0, "indexedAt": "2026-01-01T00:00:00.000Z",
                "postsCount": sum(post["did"] == account.did for post in self.posts)}

    @route("GET", "/:did", "plc")
    def did_document(self, request, *_):
        """The PLC directory's document of a did:plc."""
        account = self.accounts.get(request.args["did"])
        if account is None:
            return Answer(404, {"message": f"DID not registered: {request.args['did']}"})
        return self._document(account)

    # private

    def _params(self, request, options):
        given = dict(request.query)
        if re.fullmatch(r"-?\d+", given.get("exp", "")):
            given["exp"] = int(given["exp"])
        try:
            options["params"](given, "$")
        except Invalid as problem:
            raise Refusal(400, "InvalidRequest", f"Invalid {request.endpoint} params: {problem.message}") from None
        return given

    def _body(self, request, options):
        if options["body"] is None:
            if request.size:
                raise Refusal(400, "InvalidRequest", "A request body was provided when none was expected")
            return None
        if request.length is None or (not request.size and options["body"] is not bytes):
            raise Refusal(400, "InvalidRequest", "A request body is expected but none was provided")
        if "/" not in request.media_type:
            raise Refusal(400, "InvalidRequest", "Request encoding (Content-Type) required but not provided")
        if options["types"] and request.media_type not in options["types"]:
            raise Refusal(400, "InvalidRequest", f"Wrong request encoding (Content-Type): {request.media_type}")
        if options["body"] is bytes:
            return request.body
        try:
            data = parse_json(request.body)
        except ValueError:
            raise Refusal(400, "SyntaxError", "Unexpected token in JSON at position 0") from None
        try:
            options["body"](data, "$")
        except Invalid as problem:
            raise Refusal(400, "InvalidRequest", str(problem)) from None
        return data

    def _charge(self, request, charges):
        windows = [self.take(*charge) for charge in charges]
        tightest = min(windows, key=lambda window: (not window.exceeded, window.remaining))
        request.reply_headers |= {
            "RateLimit-Limit": str(tightest.limit), "RateLimit-Remaining": str(tightest.remaining),
            "RateLimit-Reset": str(int(tightest.reset)), "RateLimit-Policy": f"{tightest.limit};w={tightest.seconds}"}
        if tightest.exceeded:
            raise Refusal(429, "RateLimitExceeded", "Rate Limit Exceeded")

    def _account(self, name):
        return self.accounts.get(name) or next((one for one in self.accounts.values() if one.handle == name.lower()), None)

    def _own(self, account, repo):
        owner = self._account(repo)
        if owner is None:
            raise Refusal(403, "AccountNotFound", "Account not found")
        if owner.status == "takendown":
            raise Refusal(401, "AccountTakedown", "Account has been taken down")
        if owner.status == "deactivated":
            raise Refusal(401, "AccountDeactivated", "Account is deactivated")
        if owner is not account:
            raise Refusal(401, "AuthenticationRequired", "Authentication Required")

    def _dids(self):
        return self.did, f"{self.did}%3A{self.port}"  # a real PDS has no port, so both spellings are right here

    def _tid(self):
        self._last_tid = max(self._last_tid + 1, int(self.now() * 1_000_000))
        number = self._last_tid << 10
        return "".join(TID_LETTERS[number >> shift & 31] for shift in range(60, -1, -5))

    def _prepare(self, account, action, details, value, path):
        collection, validate = details["collection"], details.get("validate")
        rkey = details.get("rkey") or self._tid()
        uri = f"at://{account.did}/{collection}/{rkey}"
        if action == "delete":
            return Write(action, uri)
        if value.get("$type", collection) != collection:
            raise Refusal(400, "InvalidRequest", f"Invalid $type: expected {collection}, got {value['$type']}")
        value = {**value, "$type": collection}
        rules = RECORDS.get(collection)
        if validate and not rules:
            raise Refusal(400, "InvalidRequest", f"Unknown lexicon type: {collection}")
        if rules and validate is not False:
            _check(f"Invalid record key for {collection}", string(form="TID string"), rkey, "$")
            _check(f"Invalid {collection} record", rules, value, path)
        status = None if validate is False else "valid" if rules else "unknown"
        return Write(action, uri, value, cid_of(value), status)

    def _commit(self, account, writes, data):
        if data.get("swapCommit") not in (None, account.commit):
            raise Refusal(400, "InvalidSwap", f"Commit was at {account.commit}")
        present = set(self.records)
        for write in writes:
            if (write.action == "create") == (write.uri in present):
                raise Refusal(500, "InternalServerError", "Internal Server Error")
            present.add(write.uri)
        used = [self._verify(account, reference) for write in writes for reference in blobs_in(write.value)]
        for stored in used:
            stored["temporary"] = False
        for write in writes:
            self._apply(account, write)
        rev = self._tid()
        account.commit = cid_of({"did": account.did, "rev": rev})
        return {"cid": account.commit, "rev": rev}

    def _verify(self, account, reference):
        cid = reference["ref"]["$link"]
        stored = account.blobs.get(cid)
        if stored is None or (stored["temporary"] and self.now() - stored["time"] > BLOB_SECONDS):
            raise Refusal(400, "BlobNotFound", f"Could not find blob: {cid}")
        for key, error, name in (("mimeType", "InvalidMimeType", "Mimetype"), ("size", "InvalidSize", "Size")):
            if stored["temporary"] and reference[key] != stored[key]:
                raise Refusal(400, error, f"Referenced {name} does not match stored blob. "
                                          f"Expected: {stored[key]}, Got: {reference[key]}")
        return stored

    def _apply(self, account, write):
        mine = next((post for post in self.posts if post["uri"] == write.uri), None)
        if write.action == "delete":
            del self.records[write.uri]
            self.posts = [post for post in self.posts if post is not mine]
            return
        self.records[write.uri] = {"cid": write.cid, "value": write.value}
        if write.value["$type"] == "app.bsky.feed.post":
            seen = {"cid": write.cid, "record": write.value, "facets": spans(write.value)}
            if mine:
                mine.update(seen, edits=mine["edits"] + 1)
            else:
                self.posts.append({"uri": write.uri, "did": account.did, "rkey": write.uri.rsplit("/", 1)[1],
                                   "time": self.now(), "edits": 0, **seen})

    def _store(self, account, data, media_type):
        cid = cid_of(data, 0x55)
        stored = {"mimeType": media_type, "size": len(data), "temporary": True, "time": self.now()}
        if account.blobs.setdefault(cid, stored)["temporary"]:
            account.blobs[cid]["time"] = self.now()
        return {"$type": "blob", "ref": {"$link": cid}, "mimeType": media_type, "size": len(data)}


def _written(write, commit=None):
    answer = {"uri": write.uri, "cid": write.cid, "commit": commit, "validationStatus": write.status}
    return {key: value for key, value in answer.items() if value is not None}


def _check(prefix, rule, value, path):
    try:
        rule(value, path)
    except Invalid as problem:
        raise Refusal(400, "InvalidRequest", f"{prefix}: {problem}") from None


if __name__ == "__main__":
    run(BlueskyServer)
