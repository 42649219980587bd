"""A person at a browser that keeps cookies and follows redirects of ours, and programs that ask for access."""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from html import unescape
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import urllib3

from storage import people
from storage.database import database
from storage.models import User
from storage.oauth import OAuthClient
from tests.service import Answer, Http

BACK = "https://abcdefghijklmnop.chromiumapp.org/signed-in"     # where Chrome takes an extension's people back
FORM = re.compile(r'<form method="post"(?: action="([^"]*)")?>(.*?)</form>', re.S)
PASSWORD = "correct horse battery"
VERIFIER = "v" * 43
CHALLENGE = urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


class Person:
    """A browser with cookies, as far as signing in needs one, at the address `source` of this machine."""

    def __init__(self, url, *, source="127.0.0.1"):
        self.url, self.cookies, self.strict, self.at = url, {}, set(), None
        self._pool = urllib3.PoolManager(retries=False, timeout=30, source_address=(source, 0))

    def come(self, address):
        """Opens the address from the page of another site: browsers leave out the cookies that are SameSite=Strict."""
        return self.open(address, without=self.strict)

    def open(self, address, form=None, *, headers=None, without=()):
        """Opens the address, or sends the form there, and goes where it is sent within the service."""
        self.at = urljoin(self.at or self.url, address)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items() if name not in without)
        headers = {"Cookie": cookies, **(headers or {})}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        response = self._pool.request("GET" if form is None else "POST", self.at, redirect=False, headers=headers,
                                      body=None if form is None else urlencode(form))
        for line in response.headers.getlist("Set-Cookie"):
            name, _, rest = line.partition("=")
            self.cookies[name] = rest.partition(";")[0]
            self.strict |= {name} if "samesite=strict" in rest.lower() else set()
        answer = Answer(response.status, response.headers, response.data)
        location = answer.headers.get("Location", "")
        inside = answer.status == 303 and urljoin(self.at, location).startswith(self.url)
        return self.open(location) if inside else answer

    def press(self, answer, button="", **values):
        """Fills in and sends the form of a page that has the button with this text."""
        for action, inner in FORM.findall(answer.raw.decode()):
            if button in inner:
                hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', inner)
                return self.open(unescape(action) or self.at, {**{name: unescape(value) for name, value in hidden}, **values})
        raise AssertionError(f"no form with {button}: {answer.raw}")

    def sign_in(self, answer, login, password=PASSWORD):
        """Fills in the page that asks who it is."""
        return self.press(answer, "Sign in", login=login, password=password)

    def allow(self, answer, **values):
        """Says yes on the page that asks; returns the address to which it leads."""
        answer = self.press(answer, "Allow", decision="allow", **values)
        assert answer.status == 303, answer.raw
        return answer.headers["Location"]


def can_sign_in(user, login, password=PASSWORD):
    """Gives a user a name and a password."""
    with database.connection_context():
        User.update(login=login).where(User.id == user.id).execute()
        people.set_password(user, password)


def app(confidential=False, **values):
    """A fresh OAuth client and its secret."""
    given = {"name": "Idea Clipper", "mode": "test", "redirect_uris": [BACK], "scopes": ["ideas:write", "ideas:read"]}
    with database.connection_context():
        return OAuthClient.create(confidential=confidential, **{**given, **values})


def address(url, client, **changes):
    """Where `client` sends a person to ask for access; a change to None leaves a parameter out."""
    parameters = {"response_type": "code", "client_id": client.id, "redirect_uri": BACK, "state": "s-1", "scope": "ideas:write",
                  "code_challenge": CHALLENGE, "code_challenge_method": "S256", **changes}
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{url}/oauth/authorize?{urlencode(given, doseq=True)}"


def answered(location):
    """The parameters with which the browser comes back to the app."""
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def form(url, path, fields, *, headers=None):
    """What an app gets when it sends these fields."""
    given = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    return Http(url).request("POST", path, body=urlencode(fields, doseq=True).encode(), headers=given)


def redeem(url, client, code, /, **changes):
    """What the app gets for its code."""
    fields = {"grant_type": "authorization_code", "client_id": client.id, "code": code, "redirect_uri": BACK,
              "code_verifier": VERIFIER, **changes}
    return form(url, "/oauth/token", {name: value for name, value in fields.items() if value is not None})


def refresh(url, client, token, **changes):
    """What the app gets for its refresh token."""
    return form(url, "/oauth/token", {"grant_type": "refresh_token", "client_id": client.id, "refresh_token": token, **changes})


def tokens(member, oauth_client, *, person=None, login=None, **choices):
    """The tokens that `oauth_client` has after the member's user said yes."""
    if person is None:
        person, login = Person(member.url), f"ann.{member.user.id}".lower()
        can_sign_in(member.user, login)
    page = person.open(address(member.url, oauth_client, scope=" ".join(oauth_client.scopes)))
    page = person.sign_in(page, login) if login else page
    answer = redeem(member.url, oauth_client, answered(person.allow(page, **choices))["code"])
    assert answer.status == 200, answer.raw
    return answer.body
