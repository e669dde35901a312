"""The system's Chromium, driven by Playwright, and axe's check of a page's accessibility."""

import shutil
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LOCAL = {"127.0.0.1", None}
MOST_SECONDS = 120
ALIKE = {"exclude": [["tbody tr:nth-child(n + 13)"]]}
"""Table rows after the twelfth, which axe leaves out; a thousand rows would take most of a minute."""


def program():
    """Return the path of a browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(program() is None, reason="there is no Chromium on this machine")


def is_problem(message):
    """Return whether a console message is an error; error answers of the server do not count."""
    return message.type == "error" and not message.text.startswith("Failed to load resource: the server responded")


@contextmanager
def browsing():
    """Yield a page of a new browser; then assert that no script failed and no other server got a request."""
    problems, requests = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(1000 * MOST_SECONDS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if is_problem(message) else None)
        page.on("request", lambda request: requests.append(request.url))
        yield page
        browser.close()
    assert not problems, problems
    assert {urlsplit(url).hostname for url in requests} <= LOCAL, requests


def wait_for(page, script):
    """Wait until an expression is true; return its value.

    Playwright's own `wait_for_function` evaluates texts in the page, which its Content-Security-Policy forbids.
    """
    until = time.monotonic() + MOST_SECONDS
    while not (value := page.evaluate(script)):
        assert time.monotonic() < until, (script, page.evaluate("document.body.innerText"))
        time.sleep(0.05)
    return value


def check_accessible(page):
    """Assert that axe finds no violation on the present page, with the first rows of long tables."""
    found = Axe().run(page, ALIKE).response["violations"]
    assert not found, [(one["id"], one["nodes"][0]["html"][:200], len(one["nodes"])) for one in found]
