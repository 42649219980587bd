"""The stand-in of Bluesky is as strict as a real server with records, writes and blobs: every refusal has a row here."""

import pytest

from tests.callers import APPLY, CREATE, FAMILY, KEY, LOGIN, OTHER_KEY, PNG, POST, PUT, Caller, ann     # the last is a fixture
from tests.standins import bluesky

POST_CID = "bafyreid56tr5etoz446e2b6ha6jndx5hsyztpx3cmvetmz7yv4wzlhch6y"  # as the reference PDS computed it for POST
BLOB_CID = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
BLOB = {"$type": "blob", "ref": {"$link": BLOB_CID}, "mimeType": "image/png", "size": 5}
REF = {"uri": "at://did:plc:abc/app.bsky.feed.post/3mzzzzzzzzz2b", "cid": POST_CID}


def picture(**change):
    return {"$type": "app.bsky.embed.images", "images": [{"alt": "", "image": BLOB, **change}]}


def facet(**feature):
    return [{"index": {"byteStart": 0, "byteEnd": 3}, "features": [feature]}]


REFUSED_RECORDS = {
    "301 graphemes": ({"text": "a" * 301}, "grapheme too big (maximum 300, got 301) at $.record.text"),
    "7500 bytes": ({"text": FAMILY * 300}, "string too big (maximum 3000, got 7500) at $.record.text"),
    "no text": ({"text": ...}, 'Missing required key "text" at $.record'),
    "number as text": ({"text": 5}, "Expected string value type (got 5) at $.record.text"),
    "no createdAt": ({"createdAt": ...}, 'Missing required key "createdAt" at $.record'),
    "no timezone": ({"createdAt": "2026-11-21T03:00:00"},
                    'Invalid datetime (got "2026-11-21T03:00:00") at $.record.createdAt'),
    "bad language": ({"langs": ["english_us"]}, 'Invalid language (got "english_us") at $.record.langs[0]'),
    "4 languages": ({"langs": ["en"] * 4}, "array too big (maximum 3, got 4) at $.record.langs"),
    "9 tags": ({"tags": ["a"] * 9}, "array too big (maximum 8, got 9) at $.record.tags"),
    "long tag": ({"tags": ["é" * 65]}, "grapheme too big (maximum 64, got 65) at $.record.tags[0]"),
    "11 labels": ({"labels": {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "porn"}] * 11}},
                  "array too big (maximum 10, got 11) at $.record.labels.values"),
    "facet without did": ({"facets": facet(**{"$type": "app.bsky.richtext.facet#mention"})},
                          'Missing required key "did" at $.record.facets[0].features[0]'),
    "handle as did": ({"facets": facet(**{"$type": "app.bsky.richtext.facet#mention", "did": "bob.test"})},
                      'Invalid DID (got "bob.test") at $.record.facets[0].features[0].did'),
    "negative offset": ({"facets": [{"index": {"byteStart": -1, "byteEnd": 3}, "features": []}]},
                        "integer too small (minimum 0, got -1) at $.record.facets[0].index.byteStart"),
    "untyped embed": ({"embed": {"images": []}}, 'Expected an object which includes the "$type" property value type '
                                                 '(got {"images": ...}) at $.record.embed'),
    "5 images": ({"embed": picture() | {"images": picture()["images"] * 5}},
                 "array too big (maximum 4, got 5) at $.record.embed.images"),
    "image without alt": ({"embed": {"$type": "app.bsky.embed.images", "images": [{"image": BLOB}]}},
                          'Missing required key "alt" at $.record.embed.images[0]'),
    "video as image": ({"embed": picture(image=BLOB | {"mimeType": "video/mp4"})},
                       'Expected "image/*" (got "video/mp4") at $.record.embed.images[0].image.mimeType'),
    "image over 2 MB": ({"embed": picture(image=BLOB | {"size": 2000001})},
                        "blob too big (maximum 2000000, got 2000001) at $.record.embed.images[0].image"),
    "blob with a fifth member": ({"embed": picture(image=BLOB | {"url": "x"})},
                                 'Expected blob value type (got {"$type": ..., "ref": ..., ...}) at '
                                 '$.record.embed.images[0].image'),
    "zero aspect": ({"embed": picture(aspectRatio={"width": 0, "height": 3})},
                    "integer too small (minimum 1, got 0) at $.record.embed.images[0].aspectRatio.width"),
    "wrong $type inside": ({"embed": picture(aspectRatio={"$type": "x", "width": 1, "height": 1})},
                           'Expected "app.bsky.embed.defs#aspectRatio" (got "x") at '
                           "$.record.embed.images[0].aspectRatio.$type"),
    "gallery without aspect": ({"embed": {"$type": "app.bsky.embed.gallery", "items": [
        {"$type": "app.bsky.embed.gallery#image", "image": BLOB, "alt": ""}]}},
        'Missing required key "aspectRatio" at $.record.embed.items[0]'),
    "21 in a gallery": ({"embed": {"$type": "app.bsky.embed.gallery", "items": [{}] * 21}},
                        "array too big (maximum 20, got 21) at $.record.embed.items"),
    "video over 300 MB": ({"embed": {"$type": "app.bsky.embed.video",
                                     "video": BLOB | {"mimeType": "video/mp4", "size": 300_000_001}}},
                          "blob too big (maximum 300000000, got 300000001) at $.record.embed.video"),
    "thumb over 1 MB": ({"embed": {"$type": "app.bsky.embed.external", "external": {
        "uri": "https://a.b", "title": "", "description": "", "thumb": BLOB | {"size": 1000001}}}},
        "blob too big (maximum 1000000, got 1000001) at $.record.embed.external.thumb"),
    "card without description": ({"embed": {"$type": "app.bsky.embed.external",
                                            "external": {"uri": "https://a.b", "title": ""}}},
                                 'Missing required key "description" at $.record.embed.external'),
    "quote without cid": ({"embed": {"$type": "app.bsky.embed.record", "record": {"uri": REF["uri"]}}},
                          'Missing required key "cid" at $.record.embed.record'),
    "reply with a bad cid": ({"reply": {"root": REF | {"cid": "nope"}, "parent": REF}},
                             'Invalid CID string (got "nope") at $.record.reply.root.cid'),
    "reply without parent": ({"reply": {"root": REF}}, 'Missing required key "parent" at $.record.reply'),
}


@pytest.mark.parametrize("change, problem", REFUSED_RECORDS.values(), ids=REFUSED_RECORDS)
def test_bluesky_refuses_a_record_that_breaks_its_lexicon(ann, change, problem):
    record = {key: value for key, value in (POST | change).items() if value is not ...}
    expected = {"error": "InvalidRequest", "message": f"Invalid app.bsky.feed.post record: {problem}"}
    assert ann.put(record) == (400, expected)
    assert ann.network.posts == []


@pytest.mark.parametrize("change", [
    {}, {"text": FAMILY * 120}, {"text": ""}, {"text": "a" * 300}, {"createdAt": "2026-11-21T03:00:00.123456+00:00"},
    {"unknown": {"any": [1, None]}}, {"langs": ["en", "zh-Hant", "pt-BR"]}, {"embed": {"$type": "com.example.future"}},
    {"embed": {"$type": "app.bsky.embed.record", "record": REF}}, {"reply": {"root": REF, "parent": REF}}, {"$type": ...},
], ids=str)
def test_bluesky_takes_what_the_lexicon_allows(ann, change):
    record = {key: value for key, value in (POST | change).items() if value is not ...}
    status, answer = ann.put(record)
    assert (status, answer["validationStatus"]) == (200, "valid")
    assert ann.network.posts[0]["record"] == {"$type": "app.bsky.feed.post"} | record


def test_bluesky_gives_a_record_the_identifier_that_the_reference_server_gives_it(ann):
    assert ann.put(POST)[1]["cid"] == POST_CID
    query = {"repo": "ann.test", "collection": "app.bsky.feed.post", "rkey": KEY}
    assert ann.xrpc("com.atproto.repo.getRecord", query=query, token=None) == (
        200, {"uri": f"at://{ann.did}/app.bsky.feed.post/{KEY}", "cid": POST_CID, "value": POST})


def test_bluesky_stores_any_facet_range_and_tells_what_it_covers(ann):
    spans = [(6, 10), (6, 8), (4, 99), (3, 3)]
    facets = [{"index": {"byteStart": start, "byteEnd": end}, "features": []} for start, end in spans]
    assert ann.put(POST | {"text": "hello 🦋!", "facets": facets})[0] == 200
    assert [facet["text"] for facet in ann.network.posts[0]["facets"]] == ["🦋", None, None, None]


WHOLE = {"repo": "ann.test", "collection": "app.bsky.feed.post", "rkey": KEY, "record": POST}
REFUSED_WRITES = {
    "rkey that is no TID": ({"rkey": "op-123"}, 400, "InvalidRequest",
                            'Invalid record key for app.bsky.feed.post: Invalid TID string (got "op-123") at $'),
    "rkey with a slash": ({"rkey": "a/b"}, 400, "InvalidRequest", 'Invalid record key (got "a/b") at $.rkey'),
    "no rkey": ({"rkey": ...}, 400, "InvalidRequest", 'Missing required key "rkey" at $'),
    "other $type": ({"record": POST | {"$type": "app.bsky.feed.like"}}, 400, "InvalidRequest",
                    "Invalid $type: expected app.bsky.feed.post, got app.bsky.feed.like"),
    "fraction": ({"record": POST | {"foo": 1.5}}, 400, "InvalidRequest",
                 "Expected one of null, boolean, integer, string, cid, bytes, array or object value type (got 1.5) "
                 "at $.record.foo"),
    "unknown collection": ({"collection": "com.example.thing", "record": {}, "validate": True}, 400, "InvalidRequest",
                           "Unknown lexicon type: com.example.thing"),
    "bad collection": ({"collection": "posts"}, 400, "InvalidRequest", 'Invalid NSID (got "posts") at $.collection'),
    "unknown repo": ({"repo": "did:plc:nobody"}, 403, "AccountNotFound", "Account not found"),
    "another's repo": ({"repo": "eve.test"}, 401, "AuthenticationRequired", "Authentication Required"),
    "swap of something absent": ({"swapRecord": POST_CID}, 400, "InvalidSwap", "Record was at null"),
    "old commit": ({"swapCommit": POST_CID}, 400, "InvalidSwap", "Commit was at {commit}"),
    "unknown blob": ({"record": POST | {"embed": picture()}}, 400, "BlobNotFound",
                     f"Could not find blob: {BLOB_CID}"),
}


@pytest.mark.parametrize("change, status, error, message", REFUSED_WRITES.values(), ids=REFUSED_WRITES)
def test_bluesky_refuses_a_write(ann, change, status, error, message):
    ann.network.add_user("eve.test", "cccc")
    body = {key: value for key, value in (WHOLE | change).items() if value is not ...}
    message = message.format(commit=ann.network.accounts[ann.did].commit)
    assert ann.xrpc(PUT, body) == (status, {"error": error, "message": message})
    assert ann.network.records == {}


def test_bluesky_swap_null_takes_one_record_per_key_and_the_same_bytes_are_no_conflict(ann):
    first = ann.put(POST, swapRecord=None)
    assert first[0] == 200 and "commit" in first[1]
    assert ann.put(POST, swapRecord=None) == (200, {key: value for key, value in first[1].items() if key != "commit"})
    conflict = {"error": "InvalidSwap", "message": f"Record was at {POST_CID}"}
    assert ann.put(POST | {"text": "other"}, swapRecord=None) == (400, conflict)
    assert ann.put(POST | {"text": "other"})[0] == 200
    assert [(post["record"]["text"], post["edits"]) for post in ann.network.posts] == [("other", 1)]


def test_bluesky_answers_500_to_a_second_create_under_one_key(ann):
    body = {"repo": ann.did, "collection": "app.bsky.feed.post", "rkey": KEY, "record": POST}
    assert ann.xrpc(CREATE, body)[0] == 200
    assert ann.xrpc(CREATE, body) == (500, {"error": "InternalServerError", "message": "Internal Server Error"})
    assert len(ann.network.posts) == 1


def test_bluesky_applies_all_writes_or_none(ann):
    def create(collection, value):
        return {"$type": f"{APPLY}#create", "collection": collection, "rkey": KEY, "value": value}

    uri = f"at://{ann.did}/app.bsky.feed.post/{KEY}"
    post, gate = create("app.bsky.feed.post", POST), {"post": uri, "allow": [], "createdAt": POST["createdAt"]}
    bad = ann.xrpc(APPLY, {"repo": ann.did, "writes": [post, create("app.bsky.feed.threadgate", gate | {"post": "x"})]})
    assert bad == (400, {"error": "InvalidRequest", "message": "Invalid app.bsky.feed.threadgate record: "
                                                               'Invalid at-uri (got "x") at $.writes[1].record.post'})
    assert ann.network.records == {}
    good = ann.xrpc(APPLY, {"repo": ann.did, "writes": [post, create("app.bsky.feed.threadgate", gate)]})
    assert good[0] == 200 and [result["$type"] for result in good[1]["results"]] == [f"{APPLY}#createResult"] * 2
    assert ann.xrpc(APPLY, {"repo": ann.did, "writes": [post]})[0] == 500
    assert ann.xrpc(APPLY, {"repo": ann.did, "writes": [{"$type": "x"}]})[0] == 400
    assert ann.xrpc(APPLY, {"repo": ann.did, "writes": [post] * 201})[1]["message"] == "Too many writes. Max: 200"
    assert len(ann.network.posts) == 1 and len(ann.network.records) == 2


def test_bluesky_checks_a_blob_against_what_was_uploaded_until_a_record_holds_it(ann):
    blob = ann.upload(kind="image/jpeg")[1]["blob"]
    assert (blob["mimeType"], blob["size"]) == ("image/png", len(PNG))
    for change, error in (({"size": 5}, "InvalidSize"), ({"mimeType": "image/jpeg"}, "InvalidMimeType")):
        status, answer = ann.put(POST | {"embed": picture(image=blob | change)})
        assert (status, answer["error"]) == (400, error)
    assert ann.put(POST | {"embed": picture(image=blob)})[0] == 200
    assert ann.put(POST | {"embed": picture(image=blob | {"size": 5})}, OTHER_KEY)[0] == 200


def test_bluesky_forgets_an_unused_blob_and_knows_only_the_owners(ann):
    ann.network.add_user("eve.test", "cccc")
    eve = Caller(ann.network, ann.xrpc(LOGIN, {"identifier": "eve.test", "password": "cccc"})[1]["accessJwt"])
    theirs = eve.upload()[1]["blob"]
    assert ann.put(POST | {"embed": picture(image=theirs)})[1]["error"] == "BlobNotFound"
    mine = ann.upload()[1]["blob"]
    ann.network.access_seconds = 86400
    ann.token = ann.xrpc(LOGIN, {"identifier": ann.did, "password": "aaaa-bbbb"})[1]["accessJwt"]
    ann.network.advance(bluesky.BLOB_SECONDS + 1)
    assert ann.put(POST | {"embed": picture(image=mine)})[1]["error"] == "BlobNotFound"
