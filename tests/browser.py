"""A person's browser, as far as connecting an account needs one."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

import urllib3

from tests.service import Answer


class Browser:
    """A person's browser, which shows where it is sent instead of going there."""

    def __init__(self):
        self.secrets = []       # codes and states that it has seen, which no log may hold
        self._pool = urllib3.PoolManager(retries=False, timeout=30)

    def open(self, url, form=None, *, method=None, headers=None):
        """Opens the address, or posts the form (pairs) to it."""
        headers = headers or {}
        if form is not None:
            headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        response = self._pool.request(method or ("GET" if form is None else "POST"), url, redirect=False, headers=headers,
                                      body=None if form is None else urlencode(form))
        return Answer(response.status, response.headers, response.data)

    def allow(self, authorize_url):
        """Logs in at the network, and returns the address with which it sends the browser back."""
        back = self.open(authorize_url).headers["Location"]
        self.secrets.extend(value for name, value in parse_qsl(urlsplit(back).query) if name in ("code", "state"))
        return back


def page(answer, status):
    """The text of a page, with everything that protects it."""
    assert answer.status == status and answer.headers["Content-Type"] == "text/html; charset=utf-8", answer.raw
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script" not in policy and "frame-ancestors 'none'" in policy
    assert (answer.headers["Referrer-Policy"], answer.headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.raw.decode()
    assert "<script" not in text and '<html lang="en">' in text and re.search("<h1>.+</h1>", text)
    return text
