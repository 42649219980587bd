"""Posts on LinkedIn, by a stand-in as strict as LinkedIn."""

import json
import time
from dataclasses import replace

import pytest

from platforms.base import Absent, Content, Published
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.linkedin import LinkedIn
from platforms.linkedin_posts import little, plain
from tests.live import http_for, image, prepared, published
from tests.networks import linkedin as network
from tests.networks.linkedin import ann, linkedin, net, page  # fixtures
from tests.standins.linkedin_rules import CREATE, IMAGES, PUT_IMAGE, visible

LIST = "GET /rest/posts"
LONG_AGO = 600.0
POLL = {"question": "Rye or wheat?", "options": ["Rye", "Wheat"], "duration": "THREE_DAYS"}
LINK = {"url": "https://bread.example/menu", "title": "Menu", "description": "All (of) it"}
BASE = {"visibility": "PUBLIC", "lifecycleState": "PUBLISHED", "isReshareDisabledByAuthor": False,
        "distribution": {"feedDistribution": "MAIN_FEED", "targetEntities": [], "thirdPartyDistributionChannels": []}}


def body(net):
    """What created the last post."""
    return json.loads(net.calls(CREATE)[-1].body)


# What a post becomes.

def test_text(net, linkedin, ann):
    result = published(linkedin, ann, Content("hi", key="k-1"))
    urn = net.posts[0]["id"]
    assert result == Published(urn, f"{net.url}/feed/update/{urn}/") and urn.startswith("urn:li:share:")
    assert body(net) == {**BASE, "author": "urn:li:person:ann", "commentary": "hi"} and len(net.requests) == 1
    head = net.requests[0].headers
    assert (head["Linkedin-Version"], head["X-Restli-Protocol-Version"]) == ("202609", "2.0.0")


def test_the_version_is_a_setting(net, ann):
    linkedin = LinkedIn(http_for(net), {**network.settings(net), "version": "202603"})
    published(linkedin, ann, Content("hi", key="k-1"))
    assert net.requests[0].headers["Linkedin-Version"] == "202603"


def test_options(net, linkedin, ann):
    published(linkedin, ann, Content("hi", options={"visibility": "CONNECTIONS", "disableReshare": True}, key="k-1"))
    assert (body(net)["visibility"], body(net)["isReshareDisabledByAuthor"]) == ("CONNECTIONS", True)


def test_a_page_has_no_connections(linkedin, ann, page):
    content = Content("hi", options={"visibility": "CONNECTIONS"})
    assert linkedin.problems(content, ann) == linkedin.problems(content) == []
    assert [(one.path, one.rule) for one in linkedin.problems(content, page)] == [("options/visibility", "visibility")]


@pytest.mark.parametrize("post_type", network.SAMPLES)
@pytest.mark.parametrize("who", ["ann", "page"])
def test_every_kind_of_post(net, linkedin, request, who, post_type):
    author, content = request.getfixturevalue(who), network.SAMPLES[post_type]
    result = published(linkedin, author, content)
    assert network.public(net) == [result.id] and body(net)["author"] == author.platform_id
    assert net.posts[0]["text"] == content.caption


def test_an_image(net, linkedin, ann):
    published(linkedin, ann, Content("", media=(image(7),), options={"altTexts": ["zwölf"]}, key="k-1"))
    [asset] = net.assets.values()
    assert body(net)["content"] == {"media": {"id": asset.urn, "altText": "zwölf"}} and asset.data[-1] == 7


def test_images(net, linkedin, ann):
    published(linkedin, ann, Content("hi", media=(image(1), image(2), image(3)), options={"altTexts": ["", "b"]}, key="k-1"))
    first, second, third = net.assets.values()
    assert body(net)["content"] == {"multiImage": {"images": [
        {"id": first.urn}, {"id": second.urn, "altText": "b"}, {"id": third.urn}]}}


def test_a_video(net, linkedin, ann):
    published(linkedin, ann, network.SAMPLES["video"])
    [asset] = net.assets.values()
    assert body(net)["content"] == {"media": {"id": asset.urn, "title": "How bread is made"}} and asset.data == network.FILM
    assert net.posts[0]["id"].startswith("urn:li:ugcPost:")


def test_a_post_is_shared_with_a_word_about_it(net, linkedin, ann):
    other = net.add_post("urn:li:person:zoe", "Look")
    published(linkedin, ann, Content("Look at this", options={"reshareUrn": other["id"]}, key="k-1"))
    assert body(net) == {**BASE, "author": ann.platform_id, "commentary": "Look at this",
                         "reshareContext": {"parent": other["id"]}}


@pytest.mark.parametrize("urn, disabled", [("urn:li:share:1", False), (None, True)], ids=["not there", "not to be shared"])
def test_a_post_that_cannot_be_shared_is_refused(net, linkedin, ann, urn, disabled):
    other = net.add_post("urn:li:person:zoe", "Look", isReshareDisabledByAuthor=disabled)
    with pytest.raises(Rejected):
        published(linkedin, ann, Content("hi", options={"reshareUrn": urn or other["id"]}, key="k-1"))


def test_a_page_chooses_who_sees_a_post(net, linkedin, ann, page):
    content = Content("hi", options={"targeting": network.TARGETS}, key="k-1")
    published(linkedin, page, content)
    assert body(net)["distribution"] == {**BASE["distribution"], "targetEntities": [network.TARGETS]}
    assert linkedin.problems(content) == []
    assert [(one.path, one.rule) for one in linkedin.problems(content, ann)] == [("options/targeting", "targeting")]


def test_too_few_people_are_refused(net, linkedin, page):
    net.few.add("urn:li:geo:103644278")
    with pytest.raises(Rejected) as caught:
        published(linkedin, page, Content("hi", options={"targeting": network.TARGETS}, key="k-1"))
    assert caught.value.platform_message == "The target audience is too small"


@pytest.mark.parametrize("media, link, article", [
    ((), LINK, {"source": LINK["url"], "title": "Menu", "description": "All (of) it"}),
    ((), {"url": "https://a.test", "title": "A"}, {"source": "https://a.test", "title": "A"}),
    ((image(),), {"url": "https://a.test", "title": "A"}, {"source": "https://a.test", "title": "A", "thumbnail": ...}),
])
def test_a_link(net, linkedin, ann, media, link, article):
    published(linkedin, ann, Content("hi", media=media, options={"link": link}, post_type="link", key="k-1"))
    thumbnail = {"thumbnail": next(iter(net.assets))} if media else {}
    assert body(net)["content"] == {"article": {**article, **thumbnail}}


def test_a_poll(net, linkedin, page):
    published(linkedin, page, Content("", options={"poll": POLL}, post_type="poll", key="k-1"))
    assert body(net)["content"] == {"poll": {"question": "Rye or wheat?", "options": [{"text": "Rye"}, {"text": "Wheat"}],
                                             "settings": {"duration": "THREE_DAYS"}}}


@pytest.mark.parametrize("caption, written", [
    ("(a) [b] {c} <d> @e *f* g_h ~i | \\ j#k # l", r"\(a\) \[b\] \{c\} \<d\> \@e \*f\* g\_h \~i \| \\ j\#k \# l"),
    ("#bread (#rolls) «#Grüße»", r"#bread \(#rolls\) «#Grüße»"),
    ("https://a.test/b_c#d?e=#f &#g", r"https://a.test/b\_c\#d?e=\#f &\#g"),
    ("Thanks @[Acme (UK)](urn:li:organization:1) and @[Jo Doe](urn:li:person:a_b-1)!",
     r"Thanks @[Acme \(UK\)](urn:li:organization:1) and @[Jo Doe](urn:li:person:a_b-1)!"),
    ("@[x](urn:li:share:1) @[](urn:li:person:1)", r"\@\[x\]\(urn:li:share:1\) \@\[\]\(urn:li:person:1\)"),
    ("a\nb\r\nc", "a\nb\r\nc"),
])
def test_nothing_in_a_caption_cuts_the_post(caption, written):
    assert little(caption) == written and plain(written) == caption
    names = caption.replace("@[Acme (UK)](urn:li:organization:1)", "Acme (UK)")
    names = names.replace("@[Jo Doe](urn:li:person:a_b-1)", "Jo Doe")
    assert visible(written) == names


def test_a_caption_that_is_not_escaped_would_be_cut():
    assert visible("Hi (you)") == "Hi "


# Exactly once.

DOUBT = pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 503, "body": ""}, False), ({"status": 500, "body": "", "acts": True}, True),
    ({"status": 201, "body": "", "acts": True}, True), ({"status": 200, "body": "<html>"}, False),
    ({"status": 201, "headers": {"x-restli-id": "urn:li:person:1"}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "503", "500 after acting", "no id", "garbage", "no post"])


@DOUBT
@pytest.mark.parametrize("post_type", network.SAMPLES)
def test_a_post_of_a_page_in_doubt_is_found_out(net, linkedin, page, fault, there, post_type):
    content = network.SAMPLES[post_type]
    receipt = prepared(linkedin, page, content)
    net.fault(CREATE, **fault)
    with pytest.raises(Unconfirmed):
        linkedin.publish(page, content, receipt)
    early = linkedin.find(page, replace(content, sent_ago=30.0), receipt)
    late = linkedin.find(page, replace(content, sent_ago=LONG_AGO), receipt)
    if there:
        assert early == late and late.id == net.posts[0]["id"]
    else:
        assert (early, late, net.posts) == (None, Absent(), [])


@DOUBT
def test_a_post_of_a_member_in_doubt_is_recognised_only_by_sending_it_again(net, linkedin, ann, fault, there):
    content = Content("hi (there)", media=(image(),), key="k-1")
    receipt = prepared(linkedin, ann, content)
    net.fault(CREATE, **fault)
    with pytest.raises(Unconfirmed):
        linkedin.publish(ann, content, receipt)
    seen = len(net.requests)
    assert linkedin.find(ann, replace(content, sent_ago=LONG_AGO), receipt) is None and len(net.requests) == seen
    again = linkedin.publish(ann, replace(content, sent_ago=60.0), receipt)     # somebody asked for it
    assert again.id == net.posts[0]["id"] and len(net.posts) == 1


def test_an_id_may_stand_in_the_location(net, linkedin, ann):
    net.fault(CREATE, status=201, headers={"Location": "https://api.linkedin.com/rest/posts/urn%3Ali%3Ashare%3A12"})
    assert published(linkedin, ann, Content("hi", key="k-1")).id == "urn:li:share:12"


def test_a_duplicate_is_refused_the_first_time(net, linkedin, ann):
    published(linkedin, ann, Content("hi", key="k-1"))
    with pytest.raises(Rejected) as caught:
        published(linkedin, ann, Content("hi", key="k-2"))
    assert caught.value.platform_code == "DUPLICATE_POST" and net.posts[0]["id"] in caught.value.platform_message


@pytest.mark.parametrize("message", ["Content is a duplicate", "Content is a duplicate of urn:li:person:1"])
def test_a_duplicate_of_nothing_is_refused(net, linkedin, ann, message):
    net.fault(CREATE, status=422, body={"message": message, "errorDetails": {"inputErrors": [{"code": "DUPLICATE_POST"}]}})
    with pytest.raises(Rejected):
        published(linkedin, ann, Content("hi", key="k-1", sent_ago=60.0))


def test_another_refusal_is_no_duplicate(net, linkedin, ann):
    net.fault(CREATE, status=422, body={"message": "urn:li:share:1 is wrong", "code": "UNPROCESSABLE_ENTITY"})
    with pytest.raises(Rejected):
        published(linkedin, ann, Content("hi", key="k-1", sent_ago=60.0))


@pytest.mark.parametrize("other", [
    Content("hi there"), Content("hi", media=(image(9),)), Content("hi", options={"poll": POLL}, post_type="poll"),
    Content("hi", options={"link": LINK}, post_type="link"), Content("see https://a.test"),
    Content("hi", options={"reshareUrn": "urn:li:share:1"}),
], ids=["longer", "with an image", "a poll", "a link", "an address", "shared"])
@pytest.mark.parametrize("ours", [
    Content("hi"), Content("hi", media=(image(),)),
    Content("hi", options={"poll": {**POLL, "question": "?"}}, post_type="poll"),
    Content("hi", options={"link": {**LINK, "url": "https://b.test"}}, post_type="link"),
    Content("hi", options={"reshareUrn": "urn:li:share:2"}),
], ids=["text", "image", "poll", "link", "shared"])
def test_posts_that_only_resemble_ours_are_not_taken_for_it(net, linkedin, page, other, ours):
    net.posts += [{"id": f"urn:li:share:{number}", "body": {"author": "urn:li:person:zoe"}, "time": 0} for number in (1, 2)]
    published(linkedin, page, other)
    assert linkedin.find(page, replace(ours, sent_ago=LONG_AGO), prepared(linkedin, page, ours)) == Absent()


def test_hashtags_may_come_back_in_another_way_of_writing(net, linkedin, page):
    content = Content("(a) #bread", key="k-1", sent_ago=5.0)
    result = published(linkedin, page, content)
    net.posts[0]["body"]["commentary"] = r"\(a\) {hashtag|\#|bread} "
    assert linkedin.find(page, content, {"media": []}) == result


def test_a_shared_post_is_found(net, linkedin, page):
    other = net.add_post("urn:li:person:zoe", "Look")
    content = Content("hi", options={"reshareUrn": other["id"]}, key="k-1", sent_ago=LONG_AGO)
    assert published(linkedin, page, content) == linkedin.find(page, content, {"media": []})


def test_links_that_linkedin_shortened_prove_nothing(net, linkedin, page):
    content = Content("New: https://bread.example/menu #a", key="k-1", sent_ago=LONG_AGO)
    published(linkedin, page, content)
    net.posts[0]["body"]["commentary"] = "New: https://lnkd.in/abc #a"
    assert linkedin.find(page, content, {"media": []}) is None
    assert linkedin.find(page, replace(content, caption="New: #a"), {"media": []}) == Absent()


def test_recognising_takes_time_in_proportion_to_the_text(net, linkedin, page):
    content = Content("漢" * 2990 + ".a", key="k-1", sent_ago=LONG_AGO)
    for number in range(20):
        linkedin.publish(page, replace(content, caption=f"{number}{content.caption}"), {"media": []})
    start = time.process_time()
    assert linkedin.find(page, content, {"media": []}) is None
    assert time.process_time() - start < 1


def test_posts_from_before_the_first_sending_are_not_taken_for_it(net, linkedin, page):
    published(linkedin, page, Content("hi", key="k-1"))
    net.advance(1000)
    assert linkedin.find(page, Content("hi", sent_ago=LONG_AGO), {"media": []}) == Absent()
    assert isinstance(linkedin.find(page, Content("hi", sent_ago=1000.0), {"media": []}), Published)


def test_a_page_that_is_full_proves_nothing_unless_it_reaches_back_far_enough(net, linkedin, page):
    for number in range(100):
        linkedin.publish(page, Content(f"{number}"), {"media": []})
    assert linkedin.find(page, Content("hi", sent_ago=LONG_AGO), {"media": []}) is None
    net.advance(2000)
    assert linkedin.find(page, Content("hi", sent_ago=LONG_AGO), {"media": []}) == Absent()


def test_a_page_that_the_app_may_not_read_cannot_tell(net, page):
    linkedin = LinkedIn(http_for(net), network.settings(net, "w_organization_social rw_organization_admin"))
    assert linkedin.find(page, Content("hi", sent_ago=LONG_AGO), {"media": []}) is None and not net.requests


@pytest.mark.parametrize("listed", [{}, "<html>", [], {"elements": {}}, {"elements": [7]}, {"elements": [{"createdAt": "1"}]}])
def test_a_list_of_nonsense_says_nothing(net, linkedin, page, listed):
    net.fault(LIST, status=200, body=listed)
    with pytest.raises(Unavailable):
        linkedin.find(page, Content("hi", sent_ago=LONG_AGO), {"media": []})


def test_what_was_never_prepared_was_never_sent(linkedin, ann):
    assert linkedin.find(ann, Content("hi"), {}) == Absent()


# Errors.

@pytest.mark.parametrize("row, expected, code", [
    ("empty_token", Disconnected, "EMPTY_ACCESS_TOKEN"), ("invalid_token", Disconnected, "INVALID_ACCESS_TOKEN"),
    ("expired_token", Disconnected, "EXPIRED_ACCESS_TOKEN"), ("revoked_token", Disconnected, "REVOKED_ACCESS_TOKEN"),
    ("access_denied", PermissionMissing, "ACCESS_DENIED"), ("missing_field", Rejected, "MISSING_FIELD"),
    ("invalid_value", Rejected, "INVALID_VALUE_FOR_FIELD"), ("too_long", Rejected, "FIELD_LENGTH_TOO_LONG"),
    ("blank", Rejected, "INVALID_VALUE_BLANK_FIELD"), ("urn_type", Rejected, "INVALID_URN_TYPE"),
    ("urn_id", Rejected, "INVALID_URN_ID"), ("unprocessable", Rejected, "UNPROCESSABLE_ENTITY"),
    ("waiting_upload", Unavailable, "MEDIA_ASSET_WAITING_UPLOAD"), ("invalid_image", Rejected, "INVALID_IMAGE_ID"),
    ("processing_failed", Rejected, "MEDIA_ASSET_PROCESSING_FAILED"), ("duplicate", Rejected, "DUPLICATE_POST"),
    ("not_found", Rejected, "NOT_FOUND"), ("conflict", Unavailable, "CONFLICT"),
    ("version_ended", PlatformError, "NONEXISTENT_VERSION"), ("version_missing", PlatformError, "VERSION_MISSING"),
    ("day_quota", Unavailable, "TOO_MANY_REQUESTS"), ("no_activity", Unconfirmed, "INTERNAL_SERVER_ERROR"),
    ("unavailable", Unconfirmed, "SERVICE_UNAVAILABLE"), ("bad_gateway", Unconfirmed, "502"),
    ("gateway_timeout", Unconfirmed, "504"),
])
def test_errors_of_publishing(net, linkedin, ann, row, expected, code):
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        published(linkedin, ann, Content("hi", key="k-1"))
    error, answer = caught.value, net.errors[row]["body"]
    assert type(error) is expected and error.platform_code == code and not net.posts
    assert error.platform_message == (answer["message"] if isinstance(answer, dict) else None)
    assert "canary" not in repr(vars(error)) + str(error)
    if expected is PlatformError:
        assert error.rule == "version" and "POSTHORN_LINKEDIN_VERSION" in error.message


def test_a_quota_of_a_day_ends_at_midnight_in_utc(net, linkedin, ann):
    net.rates["posts"] = (1, 86_400)
    published(linkedin, ann, Content("1", key="k-1"))
    with pytest.raises(Unavailable) as caught:
        published(linkedin, ann, Content("2", key="k-2"))
    assert caught.value.code == "rate_limited"
    assert (time.time() + caught.value.retry_after) % 86_400 == pytest.approx(0, abs=60) or \
        (time.time() + caught.value.retry_after) % 86_400 == pytest.approx(86_400, abs=60)


def test_media_that_are_not_ready_after_all(net, linkedin, ann):
    net.fail("waiting_upload")
    with pytest.raises(Unavailable) as caught:
        published(linkedin, ann, Content("hi", media=(image(),), key="k-1"))
    assert (caught.value.retry_after, caught.value.receipt) == (30, None)


def test_a_refusal_without_a_reason(net, linkedin, ann):
    net.fail("empty_forbidden")
    with pytest.raises(PermissionMissing) as caught:
        published(linkedin, ann, Content("hi", media=(image(),), key="k-1"))
    assert (caught.value.platform_code, caught.value.platform_message) == ("403", None)


@pytest.mark.parametrize("row, expected", [
    ("expired_token", Disconnected), ("access_denied", PermissionMissing), ("day_quota", Unavailable),
    ("version_ended", PlatformError), ("unavailable", Unavailable), ("missing_field", Rejected), ("conflict", Unavailable),
    ("too_large", Rejected), ("unsupported_type", Rejected),
])
@pytest.mark.parametrize("endpoint", [IMAGES, PUT_IMAGE])
def test_errors_of_uploading(net, linkedin, ann, row, expected, endpoint):
    net.fail(row, endpoint=endpoint)
    with pytest.raises(PlatformError) as caught:
        prepared(linkedin, ann, Content("hi", media=(image(),), key="k-1"))
    assert type(caught.value) is expected and "canary" not in repr(vars(caught.value))


def test_somebody_elses_page(net, linkedin, ann, page):
    with pytest.raises(PermissionMissing):
        published(linkedin, replace(ann, platform_id=page.platform_id), Content("hi", key="k-1"))
