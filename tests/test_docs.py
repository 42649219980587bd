"""The reference at /docs: complete, from one origin, and bound to it."""

import re
from urllib.parse import urljoin

import pytest

from handlers.docs import FILES
from tests.service import Http

SELF = {"default-src": "'none'", "script-src": "'self'", "connect-src": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'",
        "form-action": "'none'"}


def policy(answer):
    """The Content-Security-Policy by directive."""
    return dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))


def test_the_page_needs_nothing_from_elsewhere_and_no_script_of_its_own(api_url):
    page = Http(api_url).get("/docs")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert SELF.items() <= policy(page).items()
    text = page.raw.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert len(named) >= 5 and all(name.startswith("/") for name in named), named
    assert not re.search(r"<script[^>]*>\s*\S+.*</script>", text) and not re.search(r"\son\w+=", text)
    for name in named:
        assert Http(api_url).get(urljoin("/docs", name)).status == 200, name


@pytest.mark.parametrize("path", FILES)
def test_each_file_is_what_it_is_said_to_be_and_kept_by_its_etag(api_url, path):
    first = Http(api_url).get(path)
    assert first.status == 200 and first.headers["Content-Type"].startswith(FILES[path][1])
    assert first.headers["X-Content-Type-Options"] == "nosniff" and first.raw == FILES[path][0].read_bytes()
    for known in (first.headers["ETag"], f'"x", W/{first.headers["ETag"]}', "*"):
        again = Http(api_url).get(path, headers={"If-None-Match": known})
        assert (again.status, again.raw) == (304, b"")
    again = Http(api_url).get(path, headers={"If-None-Match": f'"x{first.headers["ETag"][1:]}'})
    assert again.raw == first.raw
    assert Http(api_url).post(path, {}).status == 405
