"""Headless Chromium driven over a pipe by the DevTools protocol."""

import fcntl
import itertools
import json
import os
import select
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MOST_SECONDS = 120


def program():
    """Return the path of a browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """A tab.

    requests  addresses of everything that the page has asked for
    problems  what its scripts threw, and what they wrote as errors
    """

    def __init__(self, send, receive):
        self._send, self._receive = send, receive
        self._numbers, self._held, self._session = itertools.count(1), b"", None
        self.requests, self.problems = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method, **arguments):
        """Send a DevTools command and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + MOST_SECONDS
        while True:
            found = self._next(until)
            if found.get("id") == number:
                assert "error" not in found, (method, found)
                return found["result"]
            self._note(found)

    def _next(self, until):
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._receive], [], [], max(0, until - time.monotonic()))
            data = os.read(self._receive, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._held += data
        text, _, self._held = self._held.partition(b"\0")
        return json.loads(text)

    def _note(self, event):
        method, told = event.get("method"), event.get("params")
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown" or (method == "Runtime.consoleAPICalled" and told["type"] == "error"):
            self.problems.append(json.dumps(told)[:500])

    def __getitem__(self, script):
        """Value of an expression on the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, (script, found)
        return found["result"].get("value")

    def wait(self, script):
        """Wait until an expression is true; return its value."""
        until = time.monotonic() + MOST_SECONDS
        while not (value := self[script]):
            assert time.monotonic() < until, (script, self["document.body.innerText"], self.problems)
            time.sleep(0.05)
        return value

    def open(self, url):
        """Go to an address."""
        self.call("Page.navigate", url=url)

    def press(self, key):
        """A key of the keyboard."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))

    def close(self):
        """End the browser."""
        self._session = None
        self.call("Browser.close")

    def prefer(self, scheme):
        """Emulate the system's colour scheme: "light" or "dark"."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


@contextmanager
def browsing(folder: Path):
    """A page of a browser whose profile lies in `folder`; the browser ends with the block."""
    to_browser, from_browser = os.pipe(), os.pipe()
    arguments = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    arguments += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
    arguments += ["--remote-debugging-pipe", f"--user-data-dir={folder}"]
    # The browser reads at 3 and writes at 4; pipes that happen to have these numbers are moved first.
    reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser[0], from_browser[1]))
    actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (1, 2)]
    actions += [(os.POSIX_SPAWN_DUP2, reads, 3), (os.POSIX_SPAWN_DUP2, writes, 4)]
    process = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=actions)
    for end in (reads, writes, to_browser[0], from_browser[1]):
        os.close(end)
    try:
        page = Page(to_browser[1], from_browser[0])
        yield page
        page.close()
    finally:
        os.close(to_browser[1])  # which ends it, too
        os.waitpid(process, 0)
        os.close(from_browser[0])
