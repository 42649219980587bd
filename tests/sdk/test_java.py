"""The Java client is generated whole. Compiling it needs a JDK, which comes in no wheel: `tox -e sdk -- tests/sdk/java.py`."""

import pytest

PLATFORMS = ("Instagram", "TikTok", "YouTube", "LinkedIn", "Twitter", "Facebook", "Pinterest", "Bluesky", "Threads", "Mastodon",
             "Gbp")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_network_has_a_target_with_options_of_its_own(java_client, platform):
    source = next(java_client.rglob(f"{platform}Target.java")).read_text()
    assert f"public {platform}Target options(" in source and f"private {platform}Options options;" in source
    assert f"public Target({platform}Target o)" in next(java_client.rglob("Target.java")).read_text()
    assert next(java_client.rglob(f"{platform}Options.java")).is_file()
