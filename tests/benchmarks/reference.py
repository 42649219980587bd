"""The reference at /docs in a real browser: every operation is tried out there with a test key.

    python -m tests.benchmarks.reference [--pictures DIRECTORY]

Starts a service of its own, and headless Chromium by chromedriver. Both programs must be on the PATH (Debian: chromium,
chromium-driver).
"""

import argparse
import subprocess
import sys
from pathlib import Path

from handlers.contract import Contract
from tests.benchmarks.place import service
from tests.benchmarks.signing_in import Chromium, until
from tests.service import Member, free_port

# What the examples of the document, which name posts, ideas and webhooks that nobody has, are answered in test mode.
EXPECTED = {"create_media_from_url": 422, "connect_account": 409, **dict.fromkeys((
    "disconnect_account", "retry_post", "cancel_post", "get_post", "update_post", "update_idea", "get_webhook",
    "update_webhook", "delete_webhook", "rotate_webhook_secret", "list_deliveries", "replay_delivery", "replay_deliveries"),
    404)}
WATCH = """
window.refused = [];
document.addEventListener('securitypolicyviolation', event => refused.push(event.violatedDirective + ' ' + event.blockedURI));
"""
AUTHORIZE = """
document.querySelector('.auth-wrapper .authorize').click();
"""
KEY = """
const field = document.querySelector('#auth-bearer-value');
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, '%s');
field.dispatchEvent(new Event('input', {bubbles: true}));
field.closest('form').querySelector('.auth.authorize').click();
document.querySelector('.btn-done').click();
"""
FIND = "const block = document.querySelector('[id$=\"-%s\"].opblock');"
OPEN = FIND + "block.querySelector('.opblock-summary-control').click(); block.scrollIntoView();"
TRY = FIND + "block.querySelector('.try-out__btn').click();"
FILL = FIND + """
for (const row of block.querySelectorAll('tr[data-param-in="path"]')) {
  const field = row.querySelector('input');
  if (field && !field.value) {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, '%s');
    field.dispatchEvent(new Event('input', {bubbles: true}));
    field.dispatchEvent(new Event('focusout', {bubbles: true}));
  }
}
"""
EXECUTE = FIND + "block.querySelector('.execute').click();"
STATUS = FIND + "return block.querySelector('.live-responses-table tbody .response-col_status')?.innerText || null;"
ADDRESS = FIND + "return block.querySelector('.request-url pre')?.innerText || null;"


def visit(port, url, pictures):
    """Tries everything; returns the operations that were not answered as expected."""
    contract, browser, wrong = Contract(), Chromium(port, 1200), []
    try:
        browser.open(f"{url}/docs")
        browser.run(WATCH)
        until(lambda: browser.run("return document.querySelectorAll('.opblock').length") == len(contract.operations))
        picture(browser, pictures, "reference")
        browser.run(AUTHORIZE)
        until(lambda: browser.run("return !!document.querySelector('#auth-bearer-value')"))
        if browser.run("return document.querySelectorAll('.auth-container').length") != 1:
            wrong.append("a way to authorize beside the key")
        browser.run(KEY % Member(url).key())
        for operation in contract.operations.values():
            status, address = tried(browser, operation)
            expected = EXPECTED.get(operation.id, "2")
            good = status.startswith(str(expected)) and address.startswith(url)
            said = "" if good else f"expected {expected}"
            print(f"{operation.method:6} {operation.path:52} {status.split()[0]:4} {said}", flush=True)
            wrong += [] if good else [operation.id]
        picture(browser, pictures, "tried")
        refused = browser.run("return refused")
        print(f"refused by the page's policy: {refused or 'nothing'}")
        return wrong + refused
    finally:
        browser.close()


def tried(browser, operation):
    """The status and the address that the page shows after an operation was tried with what stands there."""
    name = operation.id
    browser.run(OPEN % name)
    until(lambda: browser.run(FIND % name + "return !!block.querySelector('.try-out__btn')"))
    browser.run(TRY % name)
    until(lambda: browser.run(FIND % name + "return !!block.querySelector('.execute')"))
    browser.run(FILL % (name, "post_0"))
    browser.run(EXECUTE % name)
    until(lambda: browser.run(STATUS % name))
    return browser.run(STATUS % name), browser.run(ADDRESS % name)


def picture(browser, pictures, name):
    """A picture of the window, where they are wanted."""
    if pictures is not None:
        browser.picture(pictures / f"{name}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=Path, help="where to put a picture of the page")
    pictures = parser.parse_args().pictures
    port = free_port()
    driver = subprocess.Popen(["chromedriver", f"--port={port}", "--silent"])
    try:
        with service() as (_, url, _):
            wrong = visit(port, url, pictures)
    finally:
        driver.terminate()
        driver.wait()
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
