"""The page's server: this machine alone, GET alone, one sentence for what is wrong; and the page in a real browser."""

import json
import socket
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from browser import browsing, program
from commands import call
from policies import write_random
from random_policy import policy

from mccfr.config.tables import KuhnGame
from mccfr.view import Spots, open_spots, server
from mccfr.view.server import ViewServer

EVIL = "<img src=x onerror=alert(1)>"


@contextmanager
def serving(spots):
    with ViewServer(spots, 0) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def holdem():
    with serving(Spots(policy(), f"my {EVIL}", ["a fact"])) as served:
        yield served


def ask(served, path, method="GET", host=None):
    """(status, headers, body) of a request."""
    connection = HTTPConnection("127.0.0.1", served.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name in host if isinstance(host, list) else [host or f"127.0.0.1:{served.server_port}"]:
        connection.putheader("Host", name)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def test_answers_are_those_of_the_spots(holdem):
    status, headers, body = ask(holdem, "/api/spot?line=r200c/cr600&board=Kc7d2s")
    assert status == 200 and json.loads(body) == holdem.spots.spot("r200c/cr600", "Kc7d2s")
    assert headers["Content-Type"] == "application/json" and "Access-Control-Allow-Origin" not in headers
    assert json.loads(ask(holdem, "/api/game")[2])["title"] == f"my {EVIL}"
    assert json.loads(ask(holdem, "/api/equity?line=r200")[2]) == {"equity": None, "mean": None}
    assert holdem.server_address[0] == "127.0.0.1"


def test_only_requests_that_name_this_machine_are_answered(holdem):
    port = holdem.server_port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1:{port}.evil",
    ):
        for path in ("/", "/api/game"):
            status, _, body = ask(holdem, path, host=host)
            assert status == 421 and b"answers to" in body and b"title" not in body
    assert ask(holdem, "/", host=[])[0] == 421
    assert ask(holdem, "/", host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_nothing_but_get_is_known(holdem, method):
    status, headers, _ = ask(holdem, "/api/game", method)
    assert status == 405 and headers["Allow"] == "GET"


def test_files_are_those_of_the_page_alone(holdem):
    for path, kind in (("/", "text/html"), ("/view.js", "text/javascript"), ("/view.css", "text/css")):
        status, headers, body = ask(holdem, path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body
        assert "default-src 'none'" in headers["Content-Security-Policy"] and b"http" not in body.replace(
            b"https", b"http"
        )
    for path in ("/../spots.py", "/static/view.js", "/%2e%2e/spots.py", "/view.js/", "//etc/passwd"):
        assert ask(holdem, path)[0] == 404


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/spot?line=x", "'x' is no action"),
        ("/api/spot?line=r200c/&board=Kc", "has 1 cards"),
        ("/api/spot?line=r200c/&board=%ff", "query is not understood"),
        ("/api/spot?line=c&line=f", "given twice"),
        ("/api/spot?hand=AsKd", "'hand' is no parameter"),
        ("/api/game?line=c", "'line' is no parameter"),
        ("/api/spot?line=" + "c" * 3000, "at most 2,000"),
        ("/api/spot?" + "&".join(["a=1"] * 50), "query is not understood"),
        ("/api/equity?line=" + "r" * 50, "is no action"),
    ],
)
def test_bad_requests_end_in_a_sentence(holdem, path, text):
    status, _, body = ask(holdem, path)
    found = json.loads(body)
    assert status == 400 and list(found) == ["error"] and text in found["error"] and "\n" not in found["error"]
    assert "Traceback" not in found["error"]


def test_the_command_serves_until_it_is_stopped(tmp_path, capsys, monkeypatch):
    """A port in use, and a directory that is nothing, are said in a sentence; Ctrl-C ends it without a word."""
    target = write_random(tmp_path / "kuhn", KuhnGame())
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, _, err = call(capsys, "view", target, "--port", other.getsockname()[1], "--no-browser")
    assert status == 2 and "is in use: give another --port" in err and err.count("\n") == 1
    status, _, err = call(capsys, "view", tmp_path, "--no-browser")
    assert status == 2 and "neither a run directory nor an exported policy" in err and err.count("\n") == 1

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(server.ViewServer, "serve_forever", interrupted)
    status, out, err = call(capsys, "view", target, "--port", 0, "--no-browser")
    assert (status, out) == (0, "") and "http://127.0.0.1:" in err and err.count("\n") == 1


needs_browser = pytest.mark.skipif(program() is None, reason="there is no Chromium on this machine")


@needs_browser
def test_the_page_in_a_browser(holdem, tmp_path):
    """Grid, line, links, back and forward, board picker, keys, both themes; nothing is asked for elsewhere."""
    with browsing(tmp_path) as page:

        def at(fragment):
            page.wait(
                f"document.body.dataset.complete === {json.dumps(fragment)} && location.hash === {json.dumps(fragment)}"
            )

        page.open(holdem.url)
        page.wait("document.body && document.body.dataset.complete")
        assert page["document.getElementById('title').textContent"] == f"my {EVIL}"
        assert page["document.querySelectorAll('img').length"] == 0
        assert page["document.querySelectorAll('#grid .cell').length"] == 169
        assert page["document.querySelectorAll('#grid .cell .fill').length"] == 169
        page["document.querySelector('[data-action=r200]').click()"]
        at("#line=r200")
        page.press("c")  # the call: three cards are to be chosen
        page.wait("!document.getElementById('picker').hidden")
        assert page["document.querySelectorAll('#picker-cards button').length"] == 52
        for card in ("Kc", "7d", "2s"):
            page[f"document.querySelector('[data-card={json.dumps(card)}]').click()"]
        at("#line=r200c/&board=Kc7d2s")
        assert page["document.getElementById('who').textContent"] == "Big blind to act"
        row = page["document.querySelector('#hands tbody tr').innerText"]
        assert "%" in row and "–" not in row, row  # its equity has come
        page["history.back()"]
        at("#line=r200")
        page["history.forward()"]
        at("#line=r200c/&board=Kc7d2s")
        page["location.hash = '#line=r250c/cr700&board=Kc7d2s'"]
        at("#line=r250c/cr700&board=Kc7d2s")
        assert "not in the strategy's tree" in page["document.getElementById('note').textContent"]
        page["location.hash = '#line=x'"]
        page.wait("document.getElementById('problem').textContent.includes('is no action')")
        page["location.hash = '#line=r200c/cr600&board=Kc7d2s'"]
        at("#line=r200c/cr600&board=Kc7d2s")
        assert page["document.getElementById('problem').hidden"]
        page.press("Backspace")
        at("#line=r200c/c&board=Kc7d2s")
        page.press("ArrowRight")
        page.press("ArrowRight")
        assert page["document.getElementById('hands-title').textContent"] == "AKs"
        page.press("?")
        assert page["document.getElementById('keys').open"]
        page["document.getElementById('keys').close()"]
        paper = "getComputedStyle(document.body).backgroundColor"
        page.prefer("light")
        light = page[paper]
        page.prefer("dark")
        dark = page[paper]
        page.press("t")
        assert light == page[paper] != dark
        assert page.problems == []
        assert page.requests and all(url.startswith((holdem.url, "data:", "about:")) for url in page.requests)


@needs_browser
def test_small_games_are_a_list_of_hands(tmp_path):
    with serving(open_spots(write_random(tmp_path / "kuhn", KuhnGame()))) as served, browsing(tmp_path / "x") as page:
        page.open(served.url + "#line=r9")  # a bad link: the first decision, and what is wrong with it
        page.wait("document.body && document.querySelectorAll('.hand').length")
        assert "is not possible here" in page["document.getElementById('problem').innerText"]
        page["location.hash = '#line=cb'"]
        page.wait("document.body && document.body.dataset.complete")
        assert page["document.getElementById('grid').hidden"]
        assert page["[...document.querySelectorAll('.hand')].map((one) => one.textContent).join()"] == "J,Q,K"
        assert page["document.querySelector('[data-action=c]').innerText"].startswith("Call 1 chips")
        assert page.problems == []
