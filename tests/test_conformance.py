"""What every live connector owes the publisher, whatever its network: one suite over all of them.

A network takes part with a module `tests/networks/<name>.py`; what differs between networks stands there, in the open.
"""

import json

import pytest

from platforms.base import Absent, Account, Processing, Published
from platforms.errors import Disconnected, PlatformError, Unavailable, Unconfirmed
from tests.scenes import LIVE, MODULES, STEPS, Scene

CASES = [(name, kind) for name, module in MODULES.items() for kind in module.SAMPLES]
SHAPES = {
    "lost answer": {"drop_answer": True}, "lost request": {"drop_before": True}, "500": {"status": 500},
    "500 after acting": {"status": 500, "acts": True}, "502 page": {"status": 502, "body": "<html>"},
    "nonsense after acting": {"status": 200, "body": "<html>", "acts": True},
}


@pytest.fixture
def scene(request):
    with MODULES[request.param].start() as net:
        yield Scene(request.param, net)


over_networks = pytest.mark.parametrize("scene", LIVE, indirect=True)
over_samples = pytest.mark.parametrize("scene, kind", CASES, indirect=["scene"], ids=["-".join(case) for case in CASES])


def clean(error):
    """Whether an error, as people and logs see it, holds no credential."""
    return "canary" not in f"{error!r} {vars(error)} {error.__cause__!r} {error.__context__!r}"


@over_networks
def test_there_is_a_sample_of_every_post_type(scene):
    assert set(scene.module.SAMPLES) == set(scene.connector.post_types)


@over_samples
def test_a_post_is_public_once_with_its_id_and_address(scene, kind):
    content = scene.content(kind)
    assert scene.connector.problems(content, scene.account) == []
    outcome = scene.sent(content, scene.prepared(content))
    assert scene.public() == [outcome.id] and outcome.url.startswith(("https://", "http://"))


@over_samples
def test_nothing_is_public_before_it_is_sent(scene, kind):
    scene.prepared(scene.content(kind))
    assert scene.public() == []


@over_samples
def test_a_killed_worker_repeats_no_step(scene, kind):
    content = scene.content(kind)
    scene.sent(content, scene.prepared(content, again=True))
    interrupted = scene.writes()
    with scene.module.start() as net:
        straight = Scene(scene.connector.name, net)
        straight.sent(content, straight.prepared(content))
        assert interrupted == straight.writes()
    assert len(scene.public()) == 1


@over_samples
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sending_in_doubt_is_never_said_to_be_absent_when_it_is_public(scene, kind, shape):
    content = scene.content(kind)
    receipt = scene.prepared(content)
    scene.net.fault(scene.endpoint(kind), **SHAPES[shape])
    try:
        outcome = scene.connector.publish(scene.account, content, receipt)
    except PlatformError as error:
        outcome = error
    there, found = scene.public(), find(scene, content, receipt)
    if isinstance(outcome, PlatformError):
        assert clean(outcome) and isinstance(outcome, Unconfirmed | Unavailable), outcome
        assert not there or isinstance(outcome, Unconfirmed), "surely not done, says the connector, and it is public"
    if there:
        assert not isinstance(found, Absent)
    if isinstance(found, Published):
        assert [found.id] == there
    assert len(there) <= 1


def find(scene, content, receipt):
    """What looking for a post brings in the end; None where nobody can tell."""
    found = scene.connector.find(scene.account, content, receipt)
    for _ in range(STEPS):
        if not isinstance(found, Processing):
            return found
        scene.net.advance(found.after)
        found = scene.connector.check(scene.account, found.receipt)
    raise AssertionError("processed for ever")


@over_samples
def test_a_throttled_post_is_put_off_and_not_public(scene, kind):
    content = scene.content(kind)
    receipt = scene.prepared(content)
    scene.net.fault(scene.endpoint(kind), status=429, headers={"Retry-After": "7"})
    with pytest.raises(Unavailable) as caught:
        scene.connector.publish(scene.account, content, receipt)
    assert caught.value.code == "rate_limited" and (caught.value.retry_after or 7) >= 5 and clean(caught.value)
    assert scene.public() == []


@over_samples
def test_a_network_that_is_not_there_changes_nothing(scene, kind):
    content = scene.content(kind)
    receipt = scene.prepared(content)
    scene.net.__exit__(None, None, None)
    with pytest.raises(Unavailable) as caught:
        scene.connector.publish(scene.account, content, receipt)
    assert clean(caught.value)
    scene.net.__enter__()


@over_samples
def test_tokens_that_have_ended_are_renewed_or_need_a_person(scene, kind):
    content = scene.content(kind)
    scene.module.expire(scene.net)
    with pytest.raises(Disconnected) as caught:
        scene.sent(content, scene.prepared(content))
    assert clean(caught.value) and scene.public() == []
    if not getattr(scene.module, "RENEWS", True):
        assert scene.connector.refresh(scene.account, force=True) is None
        return
    before = scene.account
    fresh = scene.connector.refresh(before, force=True)
    assert fresh["accessToken" if "accessToken" in fresh else "accessJwt"] not in map(str, before.credentials.values())
    scene.account = Account(before.platform_id, before.username, before.host, json.loads(json.dumps(fresh)))
    outcome = scene.sent(content, scene.prepared(content))
    assert scene.public() == [outcome.id]


@over_networks
def test_fresh_tokens_are_left_alone(scene):
    assert scene.connector.refresh(scene.account) is None


@over_networks
def test_a_profile_has_an_id_a_name_and_perhaps_a_picture(scene):
    profile = scene.connector.profile(scene.account)
    assert profile.platform_id == scene.account.platform_id and profile.username and profile.display_name
    assert profile.picture is None or profile.picture.startswith("http")


@over_networks
def test_what_was_never_begun_is_surely_not_there(scene):
    content = next(iter(scene.module.SAMPLES.values()))
    found = scene.connector.find(scene.account, content, {})
    assert found is None or found == Absent()
