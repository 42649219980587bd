"""A person signs in and allows an app, which trades its code there, in a real browser: headless Chromium with chromedriver.

    python -m tests.benchmarks.signing_in [--pictures DIRECTORY]

Starts a service of its own. Both programs must be on the PATH (Debian: chromium, chromium-driver).
"""

import argparse
import base64
import http.server
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import urllib3

from storage.database import database
from tests.benchmarks.place import service
from tests.person import PASSWORD, VERIFIER, address, answered, app, can_sign_in
from tests.service import Http, Member, free_port

PATIENCE = 20.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"     # W3C WebDriver, section 12
TAB = "\ue004"
ENTER = "\ue007"


# What an app in a browser does at its own origin: asks where, and trades its code. The header makes the browser ask first.
TRADE = """return fetch(%s, {headers: {'X-App': 'x'}}).then(answer => answer.json()).then(metadata => fetch(
    metadata.token_endpoint, {method: 'POST', headers: {'X-App': 'x'}, body: new URLSearchParams(%s)})
    ).then(answer => answer.json())"""


class Chromium:
    """One window, by the WebDriver protocol."""

    def __init__(self, port, width):
        self._pool, self._base = urllib3.PoolManager(timeout=60), f"http://127.0.0.1:{port}"
        options = {"args": ["--headless=new", "--no-sandbox"], "binary": shutil.which("chromium"),
                   "mobileEmulation": {"deviceMetrics": {
                       "width": width, "height": 900, "pixelRatio": 1, "mobile": width < 600}}}
        capabilities = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}
        self._base += f"/session/{self._ask('POST', '/session', {'capabilities': capabilities})['sessionId']}"

    def _ask(self, method, path, body=None):
        answer = self._pool.request(method, self._base + path, body=None if body is None else json.dumps(body))
        value = answer.json()["value"]
        assert answer.status == 200, value
        return value

    def open(self, url):
        self._ask("POST", "/url", {"url": url})

    @property
    def url(self):
        return self._ask("GET", "/url")

    def run(self, script):
        """What a function with this body returns in the page: the driver's, which the page's own policy does not bind."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def keys(self, text):
        """Types where the keyboard is at, as a person without a mouse does."""
        element = self._ask("GET", "/element/active")[ELEMENT]
        self._ask("POST", f"/element/{element}/value", {"text": text})

    def reach(self, script):
        """Goes on with the Tab key until `script` holds of the active element."""
        for _ in range(30):
            if self.run(f"const e = document.activeElement; return {script}"):
                return
            actions = [{"type": kind, "value": TAB} for kind in ("keyDown", "keyUp")]
            self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})
        raise AssertionError(f"the Tab key never leads to {script}")

    def picture(self, path):
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def close(self):
        self._ask("DELETE", "")


def drive(browser, member, back, shown):
    """The whole way by keyboard alone, one mistake included; returns the access token."""
    client, _ = app(redirect_uris=[back])
    browser.open(address(member.url, client, redirect_uri=back, scope="ideas:write ideas:read"))
    for password in ("wrong password", PASSWORD):
        readable(browser)
        shown(f"sign-in-{'first' if password != PASSWORD else 'again'}")
        browser.reach("e.id === 'login'")
        browser.run("document.getElementById('login').value = ''")
        browser.keys("ann@example.net")
        browser.reach("e.id === 'password'")
        browser.keys(password + ENTER)
        until(lambda: browser.run("return document.readyState") == "complete")
    until(lambda: "Allow" in browser.run("return document.title"))
    readable(browser)
    shown("consent")
    browser.reach("e.value === 'allow'")
    browser.keys(ENTER)
    until(lambda: browser.url.startswith(back))
    told = answered(browser.url)
    assert told["iss"] == member.url and told["state"] == "s-1", told
    fields = {"grant_type": "authorization_code", "client_id": client.id, "code": told["code"], "redirect_uri": back,
              "code_verifier": VERIFIER}
    given = browser.run(TRADE % (json.dumps(f"{member.url}/.well-known/oauth-authorization-server"), json.dumps(fields)))
    assert given["token_type"] == "Bearer", given
    return given["access_token"]


def readable(browser):
    """What a page owes to people who see little or hear it read: names, language, one heading, no sideways scrolling."""
    found = browser.run("""
        const fields = [...document.querySelectorAll('input:not([type=hidden]), select')];
        return {lang: document.documentElement.lang, headings: document.querySelectorAll('h1').length,
                nameless: fields.filter(one => !one.labels.length).length, scripts: document.scripts.length,
                buttons: [...document.querySelectorAll('button')].every(one => one.innerText.trim() && one.offsetHeight >= 44),
                wide: document.documentElement.scrollWidth > document.documentElement.clientWidth};""")
    assert found == {"lang": "en", "headings": 1, "nameless": 0, "scripts": 0, "buttons": True, "wide": False}, found


def until(holds):
    """Waits until `holds()`."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


class Back(http.server.BaseHTTPRequestHandler):
    """Where the app gets people back."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"thanks")

    def log_message(self, *arguments):
        pass


def main():
    """Starts everything, drives a wide and a narrow window, and saves an idea with what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=Path, help="where to put a picture of each page")
    pictures = parser.parse_args().pictures
    back = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Back)
    threading.Thread(target=back.serve_forever, daemon=True).start()
    port = free_port()
    driver = subprocess.Popen(["chromedriver", f"--port={port}", "--silent"])
    try:
        with service() as (_, url, _):
            for width in (1200, 360):
                visit(port, url, f"http://127.0.0.1:{back.server_port}/back", width, pictures)
    finally:
        driver.terminate()
        back.shutdown()


def visit(port, url, back, width, pictures):
    """One window of this width."""
    member, browser = Member(url), Chromium(port, width)
    try:
        can_sign_in(member.user, "ann@example.net")

        def shown(name):
            if pictures is not None:
                browser.picture(pictures / f"{name}-{width}.png")

        extension = Http(url, drive(browser, member, back, shown))
        idea = extension.post("/v1/ideas", {"content": "x", "sourceUrl": "https://example.net"}).data
        assert extension.patch(f"/v1/ideas/{idea['id']}", {"content": "y"}).data["content"] == "y"
        print(f"{width} pixels: signed in by keyboard, allowed, an idea saved and edited")
    finally:
        browser.close()
        with database.connection_context():
            member.user.update(login=None).where(type(member.user).id == member.user.id).execute()


if __name__ == "__main__":
    main()
