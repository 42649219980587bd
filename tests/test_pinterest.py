"""Pins, by a network as strict as the real one."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from platforms.base import Absent, Published, Waiting
from platforms.errors import Disconnected, PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from tests.live import prepared, published
from tests.networks import pinterest as known
from tests.networks.pinterest import BOARD, CAROUSEL, IMAGE, PIN, SAMPLES, TOKEN, VIDEO, with_options
from tests.networks.pinterest import ann, net, pinterest  # noqa: F401
from tests.standins.pinterest import SCOPES
from tests.standins.pinterest_rules import CREATE, REGISTER, STATE, STORE

READ_BOARD, LIST = "GET /v5/boards/:id", "GET /v5/boards/:id/pins"


def sent_pin(net):
    return json.loads(net.calls(CREATE)[-1].body)


# What a post becomes.

def test_image(net, pinterest, ann):
    content = replace(IMAGE, options={**PIN, "dominantColor": "#6E7874"})
    result = published(pinterest, ann, content)
    assert result == Published(net.posts[0]["id"], f"{net.url}/pin/{net.posts[0]['id']}/")
    assert sent_pin(net) == {
        "board_id": BOARD, "title": "A loaf", "description": "Fresh bread", "link": "https://bread.example/menu",
        "alt_text": "A loaf on a table", "dominant_color": "#6E7874",
        "media_source": {"source_type": "image_url", "url": "https://media.test/0.png"}}


def test_a_pin_without_any_text(net, pinterest, ann):
    published(pinterest, ann, replace(IMAGE, caption="", options={"boardId": BOARD}))
    assert sent_pin(net).keys() == {"board_id", "media_source"}


def test_section(net, pinterest, ann):
    board = net.add_board(ann.platform_id, "Cake", sections=("Sweet",))
    section = next(iter(board.sections))
    published(pinterest, ann, replace(IMAGE, options={"boardId": board.id, "boardSectionId": section}))
    assert (net.posts[0]["board_id"], net.posts[0]["board_section_id"]) == (board.id, section)


def test_carousel(net, pinterest, ann):
    slides = [{"title": "One", "description": "first", "link": "https://bread.example/1"}]
    published(pinterest, ann, replace(CAROUSEL, options={"boardId": BOARD, "slides": slides}))
    assert sent_pin(net)["media_source"] == {"source_type": "multiple_image_urls", "items": [
        {"url": "https://media.test/1.png", **slides[0]}, {"url": "https://media.test/2.png"}]}


def test_video(net, pinterest, ann):
    steps = list(pinterest.prepare(ann, VIDEO, {}))
    assert [step.after for step in steps if isinstance(step, Waiting)] == [5.0, 5.0]
    assert pinterest.publish(ann, VIDEO, steps[-1]).id == net.posts[0]["id"]
    media = next(iter(net.videos))
    assert net.posts[0]["source"] == {"source_type": "video_id", "media_id": media, "cover_image_key_frame_time": 1}
    assert len(net.calls(REGISTER)) == len(net.calls(STORE)) == 1
    assert "Authorization" not in net.calls(STORE)[0].headers


@pytest.mark.parametrize("options, cover", [
    ({}, {"cover_image_key_frame_time": 0}),
    ({"coverImageUrl": "https://media.test/cover.jpg"}, {"cover_image_url": "https://media.test/cover.jpg"}),
])
def test_covers(net, pinterest, ann, options, cover):
    published(pinterest, ann, replace(VIDEO, options={"boardId": BOARD, **options}))
    assert net.posts[0]["source"].items() >= cover.items()


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["video first", "image first"])
def test_an_image_beside_a_video_is_its_cover(net, pinterest, ann, order):
    content = with_options(replace(VIDEO, media=(*VIDEO.media, *IMAGE.media)[order], post_type=None))
    assert pinterest.infer(content.media) == "video"
    published(pinterest, ann, content)
    assert net.posts[0]["source"]["cover_image_url"] == "https://media.test/0.png" and len(net.calls(STORE)) == 1


@pytest.mark.parametrize("option, value", [("coverSecond", 1), ("coverImageUrl", "https://a.test/")])
def test_an_image_is_the_only_cover(pinterest, option, value):
    content = with_options(replace(VIDEO, media=(*VIDEO.media, *IMAGE.media)), **{option: value})
    assert [(problem.path, problem.rule) for problem in pinterest.problems(content)] == [(f"options/{option}", "one_cover")]


def test_a_long_video_is_asked_after_ever_more_rarely(net, pinterest, ann):
    net.processing_polls = 40
    pauses = [step.after for step in pinterest.prepare(ann, VIDEO, {}) if isinstance(step, Waiting)]
    assert pauses == [5.0] * 12 + [15.0] * 16 + [60.0] * 12


# Boards.

def test_a_board_that_is_not_there_is_told_with_those_that_are(net, pinterest, ann):
    cakes = net.add_board(ann.platform_id, "Cakes")
    with pytest.raises(Rejected) as caught:
        prepared(pinterest, ann, replace(VIDEO, options={"boardId": "1"}))
    assert f"it has {BOARD} (Bread), {cakes.id} (Cakes)" in caught.value.message
    assert (caught.value.rule, caught.value.platform_message) == ("board", "Board not found.") and not net.calls(REGISTER)


def test_an_account_without_boards(net, pinterest, ann):
    net.boards.clear()
    with pytest.raises(Rejected) as caught:
        prepared(pinterest, ann, IMAGE)
    assert "it has none" in caught.value.message


def test_a_board_of_somebody_else(net, pinterest, ann):
    board = net.add_board(net.add_user("ben"), "Ben's")
    content = replace(IMAGE, options={"boardId": board.id})
    receipt = prepared(pinterest, ann, content)
    with pytest.raises(PermissionMissing) as caught:
        pinterest.publish(ann, content, receipt)
    assert caught.value.platform_code == "7" and not net.posts


def test_a_section_that_is_not_there_is_told_with_those_that_are(net, pinterest, ann):
    board = net.add_board(ann.platform_id, "Cake", sections=("Sweet", "Salty"))
    sweet, salty = board.sections
    with pytest.raises(Rejected) as caught:
        prepared(pinterest, ann, with_options(VIDEO, boardId=board.id, boardSectionId="1"))
    assert f"no section 1; it has {sweet} (Sweet), {salty} (Salty)" in caught.value.message
    assert caught.value.rule == "section" and not net.calls(REGISTER)
    with pytest.raises(Rejected) as caught:
        prepared(pinterest, ann, with_options(IMAGE, boardSectionId="1"))
    assert "it has none" in caught.value.message


def test_a_section_that_goes_away_meanwhile(net, pinterest, ann):
    board = net.add_board(ann.platform_id, "Cake", sections=("Sweet",))
    content = with_options(IMAGE, boardId=board.id, boardSectionId=next(iter(board.sections)))
    receipt = prepared(pinterest, ann, content)
    board.sections.clear()
    with pytest.raises(Rejected) as caught:
        pinterest.publish(ann, content, receipt)
    assert caught.value.platform_code == "2031"


def test_among_very_many_sections_pinterest_itself_finds_the_right_one(net, pinterest, ann):
    board = net.add_board(ann.platform_id, "Cake", sections=[str(number) for number in range(251)])
    content = with_options(IMAGE, boardId=board.id, boardSectionId=list(board.sections)[-1])
    assert published(pinterest, ann, content).id == net.posts[0]["id"]


# Exactly once.

@pytest.mark.parametrize("fault, there", [
    ({"drop_answer": True}, True), ({"drop_before": True}, False), ({"status": 504, "body": "<html>"}, False),
    ({"status": 500, "body": "", "acts": True}, True), ({"status": 201, "body": "<html>", "acts": True}, True),
    ({"status": 201, "body": {"id": 7}, "acts": True}, True),
], ids=["lost answer", "lost request", "504", "500 after acting", "garbage after acting", "a number for an id"])
@pytest.mark.parametrize("content", SAMPLES.values(), ids=SAMPLES)
def test_a_post_in_doubt_is_found_out(net, pinterest, ann, content, fault, there):
    receipt = prepared(pinterest, ann, content)
    net.fault(CREATE, **fault)
    with pytest.raises(Unconfirmed):
        pinterest.publish(ann, content, receipt)
    net.advance(150)
    found = pinterest.find(ann, replace(content, sent_ago=150.0), receipt)
    assert found == (Published(net.posts[0]["id"], f"{net.url}/pin/{net.posts[0]['id']}/") if there else Absent())
    assert len(net.calls(CREATE)) == 1 and not pinterest.find_retries


def test_the_first_look_may_come_before_the_pin_is_listed(net, pinterest, ann):
    assert pinterest.find(ann, replace(IMAGE, sent_ago=30.0), {}) is None


def test_a_pin_that_looks_otherwise_may_be_ours_all_the_same(net, pinterest, ann):
    published(pinterest, ann, replace(IMAGE, caption="Fresh bread!"))
    net.advance(150)
    assert pinterest.find(ann, replace(IMAGE, sent_ago=150.0), {}) is None


@pytest.mark.parametrize("change", [{"created_at": "2026-01-01T00:00:00"}, {"account": "1"}, {"board_id": "1"}])
def test_pins_that_cannot_be_ours(net, pinterest, ann, change):
    published(pinterest, ann, IMAGE)
    net.posts[0] |= change
    net.advance(150)
    assert pinterest.find(ann, replace(IMAGE, sent_ago=150.0), {}) == Absent()


def test_texts_that_pinterest_trimmed(net, pinterest, ann):
    content = replace(IMAGE, caption="Fresh bread \n", sent_ago=30.0)
    result = published(pinterest, ann, content)
    net.posts[0]["description"] = "Fresh bread"
    assert pinterest.find(ann, content, {}) == result


def test_a_pin_in_a_section_is_looked_for_there(net, pinterest, ann):
    board = net.add_board(ann.platform_id, "Cake", sections=("Sweet",))
    content = replace(IMAGE, options={"boardId": board.id, "boardSectionId": next(iter(board.sections))}, sent_ago=1.0)
    assert pinterest.find(ann, content, {}) is None
    assert published(pinterest, ann, content) == pinterest.find(ann, content, {})


@pytest.mark.parametrize("pins, found", [(999, Absent()), (1001, None)], ids=["all pages", "too many pages"])
def test_a_list_that_is_read_only_in_part_proves_nothing(net, pinterest, ann, pins, found):
    published(pinterest, ann, IMAGE)
    net.posts[:] = [{**net.posts[0], "id": str(number), "created_at": "2026-01-01T00:00:00"} for number in range(pins)]
    assert pinterest.find(ann, replace(IMAGE, sent_ago=150.0), {}) == found
    assert len(net.calls(LIST)) == 4


@pytest.mark.parametrize("fault", [{"status": 403, "body": {"code": 7}}, {"status": 404, "body": {"code": 40}}])
def test_a_board_that_cannot_be_read_cannot_tell(net, pinterest, ann, fault):
    net.fault(LIST, **fault)
    assert pinterest.find(ann, replace(IMAGE, sent_ago=150.0), {}) is None


@pytest.mark.parametrize("body", [{}, "<html>", {"items": [{"created_at": 7}]}, {"items": [7]}])
def test_a_list_of_nonsense_says_nothing(net, pinterest, ann, body):
    net.fault(LIST, status=200, body=body)
    with pytest.raises(Unavailable):
        pinterest.find(ann, replace(IMAGE, sent_ago=150.0), {})


# Going on where it stopped.

def test_a_finished_preparation_asks_for_nothing(net, pinterest, ann):
    receipt = prepared(pinterest, ann, VIDEO)
    seen = len(net.requests)
    assert list(pinterest.prepare(ann, VIDEO, receipt)) == [] and len(net.requests) == seen


def test_a_video_is_uploaded_once(net, pinterest, ann):
    steps = pinterest.prepare(ann, VIDEO, {})
    receipt = [next(steps), next(steps)][-1]
    assert "canary" not in json.dumps(receipt)
    net.fault(STATE, status=503)
    with pytest.raises(Unavailable):
        next(steps)
    published_once = pinterest.publish(ann, VIDEO, prepared(pinterest, ann, VIDEO, receipt))
    assert [published_once.id] == known.public(net) and len(net.calls(STORE)) == len(net.calls(READ_BOARD)) == 1


def test_an_upload_that_broke_off_is_registered_anew(net, pinterest, ann):
    net.fault(STORE, drop_answer=True)
    with pytest.raises(Unavailable):
        prepared(pinterest, ann, VIDEO)
    assert published(pinterest, ann, VIDEO) and len(net.calls(REGISTER)) == 2 and len(net.posts) == 1


def test_a_form_that_ran_out_is_registered_anew(net, pinterest, ann):
    net.fail("policy_expired")
    with pytest.raises(Unavailable) as caught:
        prepared(pinterest, ann, VIDEO)
    assert caught.value.platform_code == "AccessDenied"
    assert published(pinterest, ann, VIDEO)


def test_a_video_that_got_lost_is_uploaded_again(net, pinterest, ann):
    receipt = next(step for step in pinterest.prepare(ann, VIDEO, {}) if "media" in step)
    net.videos.clear()
    with pytest.raises(Unavailable) as caught:
        prepared(pinterest, ann, VIDEO, receipt)
    assert caught.value.receipt == {"board": "Bread"}
    assert pinterest.publish(ann, VIDEO, prepared(pinterest, ann, VIDEO, caught.value.receipt))


def test_files_that_could_not_be_fetched_are_tried_twice_more(net, pinterest, ann):
    receipt = prepared(pinterest, ann, IMAGE)
    net.unreachable = ("https://media.test/",)
    for tried in (1, 2):
        with pytest.raises(Unavailable) as caught:
            pinterest.publish(ann, IMAGE, receipt)
        receipt = caught.value.receipt
        assert receipt["fetches"] == tried
    with pytest.raises(Rejected) as last:
        pinterest.publish(ann, IMAGE, receipt)
    assert (last.value.rule, last.value.platform_code) == ("media_url", "235")
    net.unreachable = ()
    assert pinterest.publish(ann, IMAGE, receipt)


# Errors.

@pytest.mark.parametrize("row, expected, rule", [
    ("auth_failed", Disconnected, None), ("not_approved", Rejected, "app"), ("needs_standard", Rejected, "app"),
    ("trial", Rejected, "app"), ("scope_missing", PermissionMissing, None), ("forbidden", PermissionMissing, None),
    ("bad_field", Rejected, None), ("too_many_items", Rejected, None), ("no_cover", Rejected, None),
    ("unreachable", Unavailable, None), ("unfetched", Unavailable, None), ("blocked_link", Rejected, None),
    ("board_gone", Rejected, None), ("rate_limited", Unavailable, None), ("spam", Rejected, "spam"),
    ("server_error", Unconfirmed, None), ("bad_gateway", Unconfirmed, None), ("unavailable", Unconfirmed, None),
])
def test_errors_of_publishing(net, pinterest, ann, row, expected, rule):
    receipt = prepared(pinterest, ann, IMAGE)
    net.fail(row)
    with pytest.raises(PlatformError) as caught:
        pinterest.publish(ann, IMAGE, receipt)
    error, body = caught.value, net.errors[row]["body"]
    assert (type(error), error.rule) == (expected, rule) and not net.posts
    if isinstance(body, dict):
        assert error.platform_code == str(body["code"]) and error.platform_message.startswith(body["message"])
    if row == "rate_limited":
        assert (error.code, error.retry_after) == ("rate_limited", 41)
    assert "canary" not in repr(vars(error))


@pytest.mark.parametrize("row, expected, code", [
    ("too_large", Rejected, "EntityTooLarge"), ("bad_signature", Rejected, "SignatureDoesNotMatch"),
    ("media_failed", Rejected, "failed"), ("media_gone", Unavailable, "50"),
])
def test_errors_of_uploading(net, pinterest, ann, row, expected, code):
    net.fail(row)
    with pytest.raises(expected) as caught:
        prepared(pinterest, ann, VIDEO)
    assert caught.value.platform_code == code and "canary" not in repr(vars(caught.value))


def test_a_store_that_repeats_what_it_was_sent(net, pinterest, ann):
    net.fault(STORE, status=403, body="<Error><Code>AccessDenied</Code><Message>canary-session</Message></Error>")
    with pytest.raises(Unavailable) as caught:
        prepared(pinterest, ann, VIDEO)
    assert caught.value.platform_message == "[secret]"


def test_a_picture_in_place_of_a_video(net, pinterest, ann):
    file = replace(IMAGE.media[0], mime_type="video/mp4")
    with pytest.raises(Rejected) as caught:
        prepared(pinterest, ann, replace(VIDEO, media=(file,)))
    assert caught.value.rule == "video"


@pytest.mark.parametrize("endpoint, body", [
    (REGISTER, {}), (REGISTER, {"media_id": 7}), (REGISTER, {"media_id": "7", "upload_parameters": {"key": 7}}),
    (REGISTER, {"media_id": "7", "upload_parameters": {}, "upload_url": "file:///etc"}), (STATE, {}), (STATE, []),
])
def test_nonsense_while_uploading_is_tried_again(net, pinterest, ann, endpoint, body):
    net.fault(endpoint, status=200, body=body)
    with pytest.raises(Unavailable):
        prepared(pinterest, ann, VIDEO)


def test_the_limits_of_a_minute(net, pinterest, ann):
    net.rates["org_write"] = (1, 60)
    published(pinterest, ann, IMAGE)
    with pytest.raises(Unavailable) as caught:
        published(pinterest, ann, replace(IMAGE, caption="Another"))
    assert caught.value.code == "rate_limited" and 0 < caught.value.retry_after <= 61 and len(net.posts) == 1
    net.advance(timedelta(minutes=1).total_seconds())
    assert published(pinterest, ann, replace(IMAGE, caption="Another"))


def test_a_token_without_all_scopes(net, pinterest):
    ben = net.add_user("ben", "pina_ben", scopes=SCOPES.replace("pins:write,", ""))
    board = net.add_board(ben, "Ben's")
    account = replace(known.account(net), platform_id=ben, credentials={"accessToken": "pina_ben"})
    with pytest.raises(PermissionMissing):
        published(pinterest, account, replace(IMAGE, options={"boardId": board.id}))


def test_a_token_that_has_ended(net, pinterest, ann):
    receipt = prepared(pinterest, ann, IMAGE)
    known.expire(net)
    with pytest.raises(Disconnected) as caught:
        pinterest.publish(ann, IMAGE, receipt)
    assert TOKEN not in repr(vars(caught.value))
    renewed = replace(ann, credentials=pinterest.refresh(ann, force=True))
    assert pinterest.publish(renewed, IMAGE, receipt)
