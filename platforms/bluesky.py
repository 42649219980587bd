"""Bluesky, on any server of the AT Protocol: https://docs.bsky.app/docs/advanced-guides/posts"""

import base64
import json
import math
import re
import secrets
import time
from datetime import UTC, datetime

from platforms import richtext
from platforms.base import (GIF, JPEG, MP4, PNG, QUICKTIME, WEBM, WEBP, Absent, Account, Connected, ImageLimits, Limits,
                            Platform, PostType, Problem, Profile, Published, VideoLimits)
from platforms.bluesky_login import GRANT_VERDICTS, BrowserLogins
from platforms.bluesky_records import GALLERY, GRID, LIST_ADDRESS, POST, POST_ADDRESS, gates, media_embed, option_problems
from platforms.bluesky_video import Videos, anew, blob
from platforms.errors import Disconnected, Rejected, Unavailable
from platforms.oauth import REFRESH_EARLY
from platforms.text import graphemes, utf8_bytes

MAX_BYTES = 3000            # of a text, beside the graphemes; lexicon app.bsky.feed.post
MAX_FAILURES = 5            # of one file: servers before 0.5 fail over one that is cut off as if it were their own fault
DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]{1,500}")
THUMBNAIL = ImageLimits(types=(JPEG, PNG, WEBP, GIF), max_bytes=1_000_000)          # app.bsky.embed.external#external
BASE32 = "234567abcdefghijklmnopqrstuvwxyz"


class Bluesky(BrowserLogins, Videos, Platform):
    """A Bluesky account, connected in the browser or with an app password.

    Posts there are public, without polls, and stay as they are: apps show no later edit of a record.
    """

    name = "bluesky"
    title = "Bluesky"
    limits = Limits(
        caption=300, media_items=GALLERY,
        image=ImageLimits(types=(JPEG, PNG, WEBP, GIF), max_bytes=2_000_000),               # GIFs stand still
        video=VideoLimits(types=(MP4, QUICKTIME, WEBM), max_bytes=300_000_000, max_duration=600),
        source="https://github.com/bluesky-social/atproto/tree/main/lexicons/app/bsky", reviewed_at="2026-11-21")
    post_types = {
        "text": PostType(caption_required=True),
        "image": PostType(images=(1, GALLERY), options=("altTexts",)),
        "video": PostType(videos=(1, 1), options=("altTexts", "subtitles")),
        "link": PostType(images=(0, 1), required=("link",), image=THUMBNAIL),       # the image becomes the thumbnail
    }
    options = ("languages", "labels", "tags", "quoteUri", "replyToUri", "replyControl", "replyLists", "disableQuotes", "thread")
    follow_options = ("thread",)
    counts = "graphemes"
    live = True
    find_retries = True
    connect_fields = ("identifier", "appPassword", "host")
    settings = {"api_url": "https://bsky.social", "public_url": "https://bsky.app", "video_url": "https://video.bsky.app",
                "plc_url": "https://plc.directory", "client_key": ""}
    verdicts = {**GRANT_VERDICTS, "ExpiredToken": Disconnected, "InvalidToken": Disconnected, "AccountNotFound": Disconnected}

    def measure(self, caption):
        """Grapheme clusters."""
        return graphemes(caption)

    def extra_problems(self, post_type, content):
        """The second limit of texts, and options that do not fit the media or each other."""
        options = content.options
        if (size := utf8_bytes(content.caption)) > MAX_BYTES:
            yield Problem("caption", "caption_bytes", f"the caption has {size} bytes in UTF-8; Bluesky allows {MAX_BYTES}")
        if len(content.media) > GRID:
            for position, item in enumerate(content.media):
                if not (item.width and item.height):
                    yield Problem(f"media/{position}", "media_unmeasured",
                                  f"Bluesky needs to know the width and height of each of more than {GRID} images")
        yield from option_problems(options)
        yield from self.thread_problems(content)

    def thread_problems(self, content):
        """The second limit of texts holds for them too."""
        yield from super().thread_problems(content)
        for position, text in enumerate(content.options.get("thread", ())):
            if (size := utf8_bytes(text)) > MAX_BYTES:
                yield Problem(f"options/thread/{position}", "thread_text_bytes",
                              f"this part has {size} bytes in UTF-8; Bluesky allows {MAX_BYTES}")

    def connect(self, fields):
        """With an `identifier` (handle, DID, e-mail), an `appPassword`, and the `host` to log in at if not Bluesky's own."""
        service = self.http.origin(fields.get("host") or self.settings["api_url"])
        identifier = fields["identifier"].strip().removeprefix("@")     # which the server does not know
        try:
            credentials = self._log_in(service, identifier, fields["appPassword"].strip())
            account = Account(credentials["did"], credentials["handle"], credentials=credentials)
            return Connected(self.profile(account), "", credentials)    # no host: a DID names the account wherever it lives
        except Disconnected as refusal:
            raise Rejected("Bluesky does not accept this name with this app password", rule="credentials",
                           **refusal.words) from None

    def profile(self, account):
        """Who the account is; the bare handle where the server has no view of profiles."""
        handle = account.credentials["handle"]
        try:
            answer = self._call(account, "GET", "app.bsky.actor.getProfile", query={"actor": account.platform_id})
        except (Unavailable, Rejected):
            return Profile(account.platform_id, handle, handle)
        handle = answer.field("handle", default=handle)
        return Profile(account.platform_id, handle, answer.field("displayName", default="") or handle,
                       answer.link("avatar", default=None))

    def prepare(self, account, content, receipt):
        """Uploads the media and finishes the record, under a key and with a time of its own.

        Every try sends these same bytes to this same key: so the server itself says whether the post is there.
        """
        if "record" in receipt:
            return
        if "rkey" not in receipt:
            receipt = {"rkey": _tid(), "createdAt": _now(), "blobs": []}
            yield receipt
        for item in content.media[len(receipt["blobs"]):]:
            if item.is_video:
                receipt = yield from self._process(account, item, receipt)
            else:
                receipt = {**receipt, "blobs": [*receipt["blobs"], self._upload_image(account, item, receipt)]}
            yield receipt
        for track in content.options.get("subtitles", ())[len(receipt.get("captions", ())):]:
            data = track["text"].encode()
            found = self._upload(account, "text/vtt", data, len(data))
            receipt = {**receipt, "captions": [*receipt.get("captions", ()), found]}
            yield receipt
        lists = [self._list(account, address) for address in content.options.get("replyLists", ())]
        yield {**receipt, "record": self._record(account, content, receipt), **({"lists": lists} if lists else {})}

    def publish(self, account, content, receipt):
        """Writes the record where nothing is yet, together with its gates."""
        try:
            if guards := gates(content, receipt, account.platform_id):
                # One commit, since a gate that came later would let the first replies through, and one that came earlier
                # is not applied by the app view, which marks the post that it finds. A key that is taken makes this fail
                # with status 500 and without a change: unconfirmed, and `find` then knows.
                writes = [{"$type": "com.atproto.repo.applyWrites#create", "collection": record["$type"],
                           "rkey": receipt["rkey"], "value": record} for record in (receipt["record"], *guards)]
                answer = self._call(account, "POST", "com.atproto.repo.applyWrites", commits=True,
                                    json={"repo": account.platform_id, "writes": writes})
                answer.field("results", 0, "uri")
            else:
                self._put(account, receipt["rkey"], receipt["record"])
        except Rejected as refusal:
            if refusal.platform_code == "BlobNotFound":     # after some hours, since nothing refers to them yet
                raise Unavailable("Bluesky has lost the uploaded media", receipt=anew(receipt), **refusal.words) from None
            raise
        return self._published(account, receipt)

    def follow(self, account, content, receipt):
        """The further parts of the thread. Each has a key and a time of its own before it is sent, as the post itself."""
        parent = self._reference(account, account.platform_id, receipt["rkey"])
        root = receipt["record"].get("reply", {"root": parent})["root"]
        receipt = {"parts": [], **receipt}
        for number, text in enumerate(content.options["thread"]):
            if number == len(receipt["parts"]):
                receipt = {**receipt, "parts": [*receipt["parts"], {"rkey": _tid(), "createdAt": _now()}]}
                yield receipt
            part = receipt["parts"][number]
            if "sent" not in part:
                part = {**part, "sent": True}
                self._put(account, part["rkey"], {
                    **self._text_record(account, text, content.options, part), "reply": {"root": root, "parent": parent}})
                receipt = {**receipt, "parts": [*receipt["parts"][:-1], part]}
                yield receipt
            parent = self._reference(account, account.platform_id, part["rkey"])

    def find(self, account, content, receipt):
        """Asks for the record under its key; needs no credentials."""
        if "record" not in receipt:
            return Absent()
        query = {"repo": account.platform_id, "collection": POST, "rkey": receipt["rkey"]}
        try:
            answer = self.send("GET", f"{account.credentials['pds']}/xrpc/com.atproto.repo.getRecord", query=query)
        except Rejected as refusal:
            # Older servers have no name for it.
            missing = "RecordNotFound" == refusal.platform_code or "not locate record" in (refusal.platform_message or "")
            return Absent() if missing else None
        return self._published(account, receipt) if answer.field("cid", default=None) else None

    def refresh_due(self, account):
        """Shortly before the end of the access token, which that of an app password names itself."""
        credentials = account.credentials
        if "proofKey" in credentials:
            return self.login_due(credentials)
        return _seconds_left(credentials["accessJwt"]) <= REFRESH_EARLY

    def refresh(self, account, force=False):
        """A new pair of tokens; once the old pair has ended, by logging in again, which the network allows 300 times a day."""
        credentials = account.credentials
        if not force and not self.refresh_due(account):
            return None
        if "proofKey" in credentials:
            return self.refresh_login(credentials)
        try:
            answer = self._call(account, "POST", "com.atproto.server.refreshSession", token=credentials["refreshJwt"])
        except Disconnected as refusal:
            if refusal.platform_code not in ("ExpiredToken", "InvalidToken"):
                raise
            return self._log_in(credentials["service"], account.platform_id, credentials["appPassword"])
        return {**credentials, **self._session(answer, credentials["pds"])}

    def words(self, answer):
        """https://atproto.com/specs/xrpc#error-responses, and the status of a job that was not taken on."""
        code = answer.field("error", default=None) or answer.field("jobStatus", "error", default=None)
        return code, answer.field("message", default=None) or answer.field("error_description", default=None)

    def _call(self, account, method, name, token=None, **request):
        credentials = account.credentials
        url = f"{credentials['pds']}/xrpc/{name}"
        if "proofKey" not in credentials:
            return self.send(method, url, token=token or credentials["accessJwt"], **request)
        if "size" in request:       # a file can be sent once only, so not with a nonce that may be too old
            self._call(account, "GET", "com.atproto.server.getSession")
        return self.prove(method, url, credentials["proofKey"], credentials["accessToken"], **request)

    def _log_in(self, service, identifier, password):
        answer = self.send("POST", f"{service}/xrpc/com.atproto.server.createSession", secrets=(password,),
                           json={"identifier": identifier, "password": password})
        return {"service": service, "appPassword": password, **self._session(answer, service)}

    def _session(self, answer, pds):
        """The session in an answer; `pds` is the server to go on with when the answer does not name the account's own."""
        did = answer.field("did")
        if not DID.fullmatch(did):
            raise answer.manner.fault()
        return {"did": did, "handle": answer.field("handle"), "pds": self.pds_in(answer, "didDoc") or pds,
                "accessJwt": answer.field("accessJwt"), "refreshJwt": answer.field("refreshJwt")}

    def _put(self, account, rkey, record):
        """Writes a record under its key, where nothing is yet."""
        try:
            answer = self._call(account, "POST", "com.atproto.repo.putRecord", commits=True, json={
                "repo": account.platform_id, "collection": POST, "rkey": rkey, "record": record, "swapRecord": None})
            answer.field("uri")
        except Rejected as refusal:
            if refusal.platform_code != "InvalidSwap":      # which says that the key is taken: by our own earlier try
                raise

    def _get(self, account, did, rkey):
        return self._call(account, "GET", "com.atproto.repo.getRecord", query={"repo": did, "collection": POST, "rkey": rkey})

    def _reference(self, account, did, rkey):
        """What other records name a post by."""
        return {"uri": f"at://{did}/{POST}/{rkey}", "cid": self._get(account, did, rkey).field("cid")}

    def _upload_image(self, account, item, receipt):
        try:
            with item.open() as file:
                return self._upload(account, item.mime_type, file, item.bytes)
        except Unavailable as fault:
            if fault.platform_code != "InternalServerError":
                raise
            failures = receipt.get("failures", 0) + 1
            if failures >= MAX_FAILURES:
                raise Rejected("Bluesky could not take the file", rule="media", **fault.words) from None
            raise Unavailable(fault.message, receipt={**receipt, "failures": failures}, **fault.words) from None

    def _upload(self, account, mime_type, body, size):
        answer = self._call(account, "POST", "com.atproto.repo.uploadBlob", headers={"Content-Type": mime_type}, body=body,
                            size=size)
        if found := blob(answer, "blob"):
            return found
        raise answer.manner.fault()

    def _record(self, account, content, receipt):
        record, options = self._text_record(account, content.caption, content.options, receipt), content.options
        if embed := self._embed(account, content, receipt):
            record["embed"] = embed
        if "replyToUri" in options:
            record["reply"] = self._reply(account, options["replyToUri"])
        return {**record, "tags": options["tags"]} if "tags" in options else record

    def _text_record(self, account, text, options, receipt):
        record = {"$type": POST, "text": text, "createdAt": receipt["createdAt"], "langs": options.get("languages"),
                  "facets": richtext.facets(text, lambda handle: self._did(account, handle))}
        if labels := options.get("labels"):
            record["labels"] = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": label} for label in labels]}
        return {name: value for name, value in record.items() if value or name == "text"}

    def _embed(self, account, content, receipt):
        media = media_embed(content, receipt["blobs"], receipt.get("captions", ()))
        if "quoteUri" not in content.options:
            return media
        quoted, _ = self._post_at(account, content.options["quoteUri"], "quote", "the quoted post was not found on Bluesky")
        quote = {"$type": "app.bsky.embed.record", "record": quoted}
        return {"$type": "app.bsky.embed.recordWithMedia", "record": quote, "media": media} if media else quote

    def _reply(self, account, address):
        """The post that is answered, and the one that began the conversation."""
        parent, answer = self._post_at(account, address, "reply", "the post to answer was not found on Bluesky")
        root = {name: answer.field("value", "reply", "root", name, default=None) for name in ("uri", "cid")}
        return {"root": root if all(root.values()) else parent, "parent": parent}

    def _post_at(self, account, address, rule, missing):
        """What names the post at an address, and the answer with its record; Rejected with `missing` where there is none."""
        at, web, rkey = POST_ADDRESS.fullmatch(address).groups()
        did = self._author(account, at or web)
        try:
            answer = self._get(account, did or at or web, rkey)
        except Rejected as refusal:
            raise Rejected(missing, rule=rule, **refusal.words) from None
        return {"uri": f"at://{did or at or web}/{POST}/{rkey}", "cid": answer.field("cid")}, answer

    def _list(self, account, address):
        """The at:// address of a list."""
        at, web, rkey = LIST_ADDRESS.fullmatch(address).groups()
        if did := self._author(account, at or web):
            return f"at://{did}/app.bsky.graph.list/{rkey}"
        raise Rejected("the owner of a list was not found on Bluesky", rule="reply_control")

    def _author(self, account, name):
        return name if name.startswith("did:") else self._did(account, name)

    def _did(self, account, handle):
        """The DID of `handle`, None if it names nobody."""
        try:
            did = self._call(account, "GET", "com.atproto.identity.resolveHandle", query={"handle": handle}).field("did")
        except Rejected:
            return None
        return did if DID.fullmatch(did) else None

    def _published(self, account, receipt):
        return Published(f"at://{account.platform_id}/{POST}/{receipt['rkey']}",
                         f"{self.settings['public_url']}/profile/{account.platform_id}/post/{receipt['rkey']}")


def _seconds_left(token):
    """Until a JWT ends; infinite for one that does not say."""
    try:
        payload = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"] - time.time()
    except (LookupError, ValueError, TypeError, RecursionError):
        return math.inf


def _tid():
    """A fresh record key: microseconds and ten random bits, in 13 sortable signs. https://atproto.com/specs/tid"""
    number = time.time_ns() // 1000 << 10 | secrets.randbits(10)
    return "".join(BASE32[number >> shift & 31] for shift in range(60, -1, -5))


def _now():
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
