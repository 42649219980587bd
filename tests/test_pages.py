"""The pages for people: every link from one to another leads somewhere."""

import re

import pytest

from tests.service import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


def anchors(page, level="#+"):
    """As GitHub makes them of headings."""
    headings = re.findall(rf"(?m)^{level} (.+)$", FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    links = [link.partition("#")[::2] for link in LINK.findall(FENCE.sub("", page.read_text())) if "://" not in link]
    targets = [((page.parent / path).resolve() if path else page, anchor) for path, anchor in links]
    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [anchor for target, anchor in targets if anchor and anchor not in anchors(target)] == []


def test_the_operations_page_is_led_to_and_leads_to_all_of_its_parts():
    page = ROOT / "docs" / "operations.md"
    assert anchors(page, "##") == set(re.findall(r"\(#([^)]+)\)", page.read_text().partition("\n## ")[0]))
    assert "(docs/operations.md)" in (ROOT / "README.md").read_text()
