"""Posts on Bluesky, by a server as strict as the real one."""

from dataclasses import replace

import pytest

from platforms.base import Absent, Content, Published, Waiting
from platforms.errors import Rejected, Unavailable, Unconfirmed
from tests.live import MP4, PNG, followed, image, made_public, prepared, published, video
from tests.networks.bluesky import VTT, ann, bluesky, net  # fixtures

PUT, APPLY, UPLOAD = "com.atproto.repo.putRecord", "com.atproto.repo.applyWrites", "com.atproto.repo.uploadBlob"
GET, LOGIN = "com.atproto.repo.getRecord", "com.atproto.server.createSession"
SEND_VIDEO = "app.bsky.video.uploadVideo"
GATES = {"replyControl": ["followers"], "disableQuotes": True}


def record(net, bluesky, ann, caption="hi", **content):
    """The one record that a post ends up as, without its time."""
    published(bluesky, ann, Content(caption, **content))
    found = dict(net.posts[-1]["record"])
    assert found.pop("createdAt").endswith("Z")
    return found


# What a post becomes.

def test_text(net, bluesky, ann):
    result = published(bluesky, ann, Content("hi"))
    post = net.posts[0]
    assert result == Published(post["uri"], f"https://bsky.app/profile/{ann.platform_id}/post/{post['rkey']}")
    assert post["record"].keys() == {"$type", "text", "createdAt"} and len(net.calls(PUT)) == 1


def test_text_with_link_mention_and_tags(net, bluesky, ann):
    caption = "Grüße 👋🏽 von @ann.test (siehe https://example.com/a). #Neu ＃日本 @nobody.test $aapl!"
    published(bluesky, ann, Content(caption))
    found = [(facet["text"], *facet["features"][0].values()) for facet in net.posts[0]["facets"]]
    facet = "app.bsky.richtext.facet#"
    assert found == [
        ("@ann.test", f"{facet}mention", ann.platform_id), ("https://example.com/a", f"{facet}link", "https://example.com/a"),
        ("#Neu", f"{facet}tag", "Neu"), ("＃日本", f"{facet}tag", "日本"), ("$aapl", f"{facet}tag", "$AAPL")]
    assert net.posts[0]["record"]["text"] == caption


@pytest.mark.parametrize("answer", [{"status": 200, "body": {"did": "ann.test"}}, {"status": 400, "body": "no"}],
                         ids=["no DID", "refused"])
def test_a_mention_that_cannot_be_resolved_stays_text(net, bluesky, ann, answer):
    net.fault("com.atproto.identity.resolveHandle", **answer)
    assert "facets" not in record(net, bluesky, ann, "@ann.test")


def test_images(net, bluesky, ann):
    found = record(net, bluesky, ann, media=(image(1), image(2, width=None)), options={"altTexts": ["one"]})
    images = found["embed"]["images"]
    assert found["embed"]["$type"] == "app.bsky.embed.images"
    assert [one["alt"] for one in images] == ["one", ""]
    assert [one.get("aspectRatio") for one in images] == [{"width": 4, "height": 3}, None]
    assert [one["image"]["size"] for one in images] == [len(PNG) + 1] * 2


def test_more_than_four_images_become_a_gallery(net, bluesky, ann):
    found = record(net, bluesky, ann, media=tuple(map(image, range(10))), options={"altTexts": ["first"]})
    assert found["embed"]["$type"] == "app.bsky.embed.gallery"
    assert [one["alt"] for one in found["embed"]["items"]] == ["first", *[""] * 9]
    assert len({one["image"]["ref"]["$link"] for one in found["embed"]["items"]}) == 10


def test_video(net, bluesky, ann):
    content = Content("hi", media=(video(),), options={"altTexts": ["a horn"]})
    steps = list(bluesky.prepare(ann, content, {}))
    assert [step.receipt["job"] for step in steps if isinstance(step, Waiting)] == [steps[1]["job"]] * 2
    bluesky.publish(ann, content, steps[-1])
    embed = net.posts[0]["record"]["embed"]
    assert (embed["$type"], embed["alt"]) == ("app.bsky.embed.video", "a horn")
    assert embed["aspectRatio"] == {"width": 16, "height": 9}
    sent, = net.calls(SEND_VIDEO)
    assert sent.body == MP4 and not net.calls(UPLOAD)


def test_a_video_that_the_service_knows_already(net, bluesky, ann):
    published(bluesky, ann, Content("one", media=(video(),)))
    published(bluesky, ann, Content("two", media=(video(),)))
    assert [request.status for request in net.calls(SEND_VIDEO)] == [200, 409] and len(net.posts) == 2


def test_link_card(net, bluesky, ann):
    link = {"url": "https://example.com/a", "title": "A", "description": "About a"}
    for post_type in (None, "link"):
        found = record(net, bluesky, ann, post_type=post_type, options={"link": link})
        external = {"uri": "https://example.com/a", "title": "A", "description": "About a"}
        assert found["embed"] == {"$type": "app.bsky.embed.external", "external": external}
    assert {request.endpoint for request in net.requests} == {LOGIN, "app.bsky.actor.getProfile", PUT}


def test_link_card_with_a_picture_and_a_quote(net, bluesky, ann):
    quoted = net.add_post(ann.platform_id, "quote me")
    found = record(net, bluesky, ann, media=(image(),), post_type="link",
                   options={"link": {"url": "https://example.com/a", "title": "A"}, "quoteUri": quoted["uri"]})
    external = found["embed"]["media"]["external"]
    assert external["thumb"]["size"] == len(PNG) + 1 and external["description"] == ""
    assert found["embed"]["record"]["record"]["uri"] == quoted["uri"]


def test_a_picture_of_a_link_is_made_small_enough(bluesky):
    limits = bluesky.media_limits("link", image())
    assert (limits.max_bytes, bluesky.media_limits("image", image()).max_bytes) == (1_000_000, 2_000_000)


def test_subtitles(net, bluesky, ann):
    tracks = [{"language": "de", "text": VTT}, {"language": "pt-BR", "text": VTT + " pão"}]
    content = Content("hi", media=(video(),), options={"subtitles": tracks})
    receipt = prepared(bluesky, ann, content)
    assert prepared(bluesky, ann, content, {name: value for name, value in receipt.items() if name != "record"}) == receipt
    bluesky.publish(ann, content, receipt)
    shown = net.posts[0]["record"]["embed"]["captions"]
    assert [(one["lang"], one["file"]["mimeType"], one["file"]["size"]) for one in shown] == [
        ("de", "text/vtt", len(VTT)), ("pt-BR", "text/vtt", len(VTT) + 5)]
    assert [request.body.decode() for request in net.calls(UPLOAD)] == [track["text"] for track in tracks]


def test_hidden_tags_are_of_the_first_part_of_a_thread_alone(net, bluesky, ann):
    content = Content("one", options={"tags": ["bread", "Brötchen"], "thread": ["two"]})
    followed(bluesky, ann, content, made_public(bluesky, ann, content))
    assert [post["record"].get("tags") for post in net.posts] == [["bread", "Brötchen"], None]


@pytest.mark.parametrize("web", [False, True], ids=["at", "web"])
def test_an_answer_names_the_beginning_of_the_conversation_and_so_does_its_thread(net, bluesky, ann, web):
    names = [{"uri": post["uri"], "cid": post["cid"]} for post in [net.add_post(ann.platform_id, "one")]]
    answer = net.add_post(ann.platform_id, "two", reply={"root": names[0], "parent": names[0]})
    address = f"https://bsky.app/profile/ann.test/post/{answer['rkey']}" if web else answer["uri"]
    content = Content("three", options={"replyToUri": address, "thread": ["four"]})
    followed(bluesky, ann, content, made_public(bluesky, ann, content))
    replies = [post["record"]["reply"] for post in net.posts[2:]]
    assert [one["root"] for one in replies] == names * 2
    assert [one["parent"]["uri"] for one in replies] == [answer["uri"], net.posts[2]["uri"]]


@pytest.mark.parametrize("option, rule", [("quoteUri", "quote"), ("replyToUri", "reply")])
def test_a_post_that_is_not_there_is_neither_quoted_nor_answered(net, bluesky, ann, option, rule):
    with pytest.raises(Rejected) as caught:
        prepared(bluesky, ann, Content("hi", options={option: f"at://{ann.platform_id}/app.bsky.feed.post/3mzzzzzzzzz2a"}))
    assert caught.value.rule == rule and not net.posts


@pytest.mark.parametrize("form", ["at", "web", "web with handle"])
@pytest.mark.parametrize("media", [(), (image(),)], ids=["alone", "with image"])
def test_quote(net, bluesky, ann, form, media):
    quoted = published(bluesky, ann, Content("quote me"))
    uri = {"at": quoted.id, "web": quoted.url, "web with handle": quoted.url.replace(ann.platform_id, "ann.test")}[form]
    embed = record(net, bluesky, ann, media=media, options={"quoteUri": uri})["embed"]
    reference = {"$type": "app.bsky.embed.record", "record": {"uri": quoted.id, "cid": net.posts[0]["cid"]}}
    assert (embed["record"] if media else embed) == reference
    assert embed["$type"] == ("app.bsky.embed.recordWithMedia" if media else "app.bsky.embed.record")


@pytest.mark.parametrize("author", ["ann.test", "nobody.test", "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"])
def test_a_quote_of_nothing_is_refused(bluesky, ann, author):
    content = Content("hi", options={"quoteUri": f"https://bsky.app/profile/{author}/post/3mzzzzzzzzz2a"})
    with pytest.raises(Rejected) as caught:
        prepared(bluesky, ann, content)
    assert caught.value.rule == "quote"


def test_languages_and_labels(net, bluesky, ann):
    found = record(net, bluesky, ann, options={"languages": ["en", "pt-BR"], "labels": ["nudity", "graphic-media"]})
    assert found["langs"] == ["en", "pt-BR"]
    values = [{"val": "nudity"}, {"val": "graphic-media"}]
    assert found["labels"] == {"$type": "com.atproto.label.defs#selfLabels", "values": values}


@pytest.mark.parametrize("rules, allow", [
    (["nobody"], []), (["mentioned", "following"], ["mentionRule", "followingRule"]), (["followers"], ["followerRule"])])
def test_who_may_reply_is_written_in_the_same_commit(net, bluesky, ann, rules, allow):
    result = published(bluesky, ann, Content("hi", options={"replyControl": rules}))
    gate = net.records[result.id.replace("feed.post", "feed.threadgate")]["value"]
    assert gate["post"] == result.id
    assert gate["allow"] == [{"$type": f"app.bsky.feed.threadgate#{rule}"} for rule in allow]
    assert len(net.calls(APPLY)) == 1 and not net.calls(PUT)


def test_people_on_lists_may_reply(net, bluesky, ann):
    lists = [f"at://{ann.platform_id}/app.bsky.graph.list/3mzzzzzzzzz2a",
             "https://bsky.app/profile/ann.test/lists/3mzzzzzzzzz2b"]
    result = published(bluesky, ann, Content("hi", options={"replyControl": ["following"], "replyLists": lists}))
    gate = net.records[result.id.replace("feed.post", "feed.threadgate")]["value"]
    assert [one["$type"].partition("#")[2] for one in gate["allow"]] == ["followingRule", "listRule", "listRule"]
    assert [one["list"] for one in gate["allow"][1:]] == [lists[0], lists[0][:-1] + "b"]


def test_a_list_of_nobody_is_refused(bluesky, ann):
    with pytest.raises(Rejected) as caught:
        prepared(bluesky, ann, Content("hi", options={"replyLists": ["https://bsky.app/profile/nobody.test/lists/3mzz"]}))
    assert caught.value.rule == "reply_control"


def test_who_may_quote_is_written_in_the_same_commit(net, bluesky, ann):
    result = published(bluesky, ann, Content("hi", options={"disableQuotes": True}))
    gate = net.records[result.id.replace("feed.post", "feed.postgate")]["value"]
    assert (gate["post"], gate["embeddingRules"]) == (result.id, [{"$type": "app.bsky.feed.postgate#disableRule"}])
    assert len(net.calls(APPLY)) == 1


# Exactly once.

@pytest.mark.parametrize("options", [{}, GATES], ids=["plain", "with gates"])
@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 500, "body": {"error": "InternalServerError"}, "acts": True}, True),
    ({"status": 200, "body": "{}", "acts": True}, True),
], ids=["lost answer", "lost request", "504", "500 after acting", "garbage after acting"])
def test_a_post_in_doubt_is_found_out_and_never_doubled(net, bluesky, ann, options, fault, there):
    content = Content("hi", options=options)
    receipt = prepared(bluesky, ann, content)
    net.fault(APPLY if options else PUT, **fault)
    with pytest.raises(Unconfirmed):
        bluesky.publish(ann, content, receipt)
    found = bluesky.find(ann, content, receipt)
    assert found == (Published(net.posts[0]["uri"], found.url) if there else Absent())
    if not there:
        assert bluesky.publish(ann, content, receipt) == bluesky.find(ann, content, receipt)
    assert len(net.posts) == 1 and net.posts[0]["edits"] == 0


def test_sending_again_says_that_it_is_there(net, bluesky, ann):
    receipt = prepared(bluesky, ann, Content("hi"))
    first = bluesky.publish(ann, Content("hi"), receipt)
    assert bluesky.publish(ann, Content("hi"), receipt) == first
    changed = {**receipt, "record": {**receipt["record"], "text": "other"}}
    assert bluesky.publish(ann, Content("other"), changed) == first
    assert [(post["record"]["text"], post["edits"]) for post in net.posts] == [("hi", 0)]


def test_sending_again_with_gates_is_in_doubt_and_found(net, bluesky, ann):
    content = Content("hi", options=GATES)
    receipt = prepared(bluesky, ann, content)
    first = bluesky.publish(ann, content, receipt)
    with pytest.raises(Unconfirmed):
        bluesky.publish(ann, content, receipt)
    assert bluesky.find(ann, content, receipt) == first and len(net.posts) == 1


def test_every_target_has_a_key_of_its_own(net, bluesky, ann):
    assert published(bluesky, ann, Content("hi")) != published(bluesky, ann, Content("hi")) and len(net.posts) == 2


def test_a_finished_preparation_asks_for_nothing(net, bluesky, ann):
    content = Content("hi @ann.test", media=(image(),))
    receipt = prepared(bluesky, ann, content)
    seen = len(net.requests)
    assert list(bluesky.prepare(ann, content, receipt)) == [] and len(net.requests) == seen


def test_a_preparation_goes_on_where_it_stopped(net, bluesky, ann):
    content = Content("hi", media=(image(1), image(2)))
    steps = bluesky.prepare(ann, content, {})
    receipt = [next(steps), next(steps)][-1]
    net.fault(UPLOAD, status=503)
    with pytest.raises(Unavailable):
        next(steps)
    bluesky.publish(ann, content, prepared(bluesky, ann, content, receipt))
    assert [request.body for request in net.calls(UPLOAD) if request.status == 200] == [PNG + b"\1", PNG + b"\2"]
    assert len(net.posts) == 1


def test_media_that_the_server_dropped_are_uploaded_again_for_the_same_key(net, bluesky, ann):
    content = Content("hi", media=(image(),))
    receipt = prepared(bluesky, ann, content)
    net.advance(7 * 3600)
    again = replace(ann, credentials=bluesky.refresh(ann, force=True))
    with pytest.raises(Unavailable) as caught:
        bluesky.publish(again, content, receipt)
    assert caught.value.receipt == {"rkey": receipt["rkey"], "createdAt": receipt["createdAt"], "blobs": []}
    renewed = prepared(bluesky, again, content, caught.value.receipt)
    assert renewed == receipt and bluesky.publish(again, content, renewed) and len(net.posts) == 1


@pytest.mark.parametrize("answer, expected", [
    ({"status": 400, "body": {"error": "InvalidRequest", "message": "Could not locate record: at://x"}}, Absent()),
    ({"status": 400, "body": {"error": "InvalidRequest", "message": "Could not find repo: x"}}, None),
    ({"status": 200, "body": "<html>"}, None),
], ids=["older server", "no such repository", "nonsense"])
def test_finding_out_depends_on_a_clear_answer(net, bluesky, ann, answer, expected):
    receipt = prepared(bluesky, ann, Content("hi"))
    net.fault(GET, **answer)
    assert bluesky.find(ann, Content("hi"), receipt) == expected


def test_what_was_never_finished_was_never_sent(bluesky, ann):
    assert bluesky.find(ann, Content("hi"), {}) == Absent()
