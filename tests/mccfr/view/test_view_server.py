"""The page's HTTP server: local requests only, error messages; the page in a real browser.

Shows:

* The page's server answers requests for this machine only (test_only_requests_that_name_this_machine_are_answered)
* The page works in a real browser without requests to other servers (test_the_page_in_a_browser)
* axe finds no violation on any tab (test_the_page_in_a_browser,
  test_a_spot_from_ranges_to_locks_in_a_browser, planted: test_small_games_are_shown_as_a_list_of_hands)
* A spot can be re-solved in the browser (test_a_spot_is_re_solved_in_a_browser)
"""

import json
import signal
import socket
import subprocess
import sys
import threading
import time

import page_parts
import pytest
from browser import browsing, check_accessible, needs_browser, wait_for
from commands import call, refusal
from pages_server import ask, serving
from policies import write_random
from random_policy import policy

from mccfr.config.game_tables import KuhnGame
from mccfr.evaluation import decision_values
from mccfr.view import Spots, open_spots, server

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def holdem(tmp_path_factory):
    one, other = Spots(policy(), f"my {EVIL}", ["a fact"]), Spots(policy(), f"beside {EVIL}")
    with serving(one, other, review=page_parts.write_review(tmp_path_factory.mktemp("review") / "kept")) as http:
        http.spots = one
        yield http


def test_http_answers_equal_those_of_the_spots_object(holdem):
    status, headers, body = ask(holdem, "/api/spot?line=b200c/cb400&board=Kc7d2s")
    assert status == 200 and json.loads(body) == holdem.spots.spot("b200c/cb400", "Kc7d2s")
    assert headers["Content-Type"] == "application/json" and "Access-Control-Allow-Origin" not in headers
    assert json.loads(ask(holdem, "/api/game")[2])["title"] == f"my {EVIL}"
    assert json.loads(ask(holdem, "/api/equity?line=b200c/")[2]) == {"equity": None, "mean": None}
    assert json.loads(ask(holdem, "/api/game?of=1")[2])["strategies"] == [[0, f"my {EVIL}"], [1, f"beside {EVIL}"]]
    assert holdem.socket.getsockname()[0] == "127.0.0.1"


def test_only_requests_that_name_this_machine_are_answered(holdem):
    port = holdem.server_port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1:{port}.evil",
    ):
        for path, sent in (("/", None), ("/api/game", None), ("/api/play/sit", {})):
            status, _, body = ask(holdem, path, "GET" if sent is None else "POST", host=host, body=sent)
            assert status == 421 and b"answers to" in body and b"title" not in body
    assert ask(holdem, "/", host=[])[0] == 421
    assert ask(holdem, "/", host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_methods_other_than_get_and_post_are_refused(holdem, method):
    status, headers, _ = ask(holdem, "/api/game", method)
    assert status == 405 and headers["Allow"] == "GET, POST"


def test_only_the_pages_own_files_are_served(holdem):
    for path, kind in (("/", "text/html"), ("/view.js", "text/javascript"), ("/view.css", "text/css")):
        status, headers, body = ask(holdem, path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    for path in ("/../spots.py", "/static/view.js", "/%2e%2e/spots.py", "/view.js/", "//etc/passwd"):
        assert ask(holdem, path)[0] == 404


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/spot?line=x", "'x' is not an action"),
        ("/api/spot?line=b200c/&board=Kc", "has 1 cards"),
        ("/api/spot?line=c&line=f", "given twice"),
        ("/api/spot?hand=AsKd", "'hand' is no parameter"),
        ("/api/game?line=c", "'line' is no parameter"),
        ("/api/spot?" + "&".join(["a=1"] * 50), "query is not understood"),
        ("/api/equity?line=" + "r" * 50, "is not an action"),
        ("/api/spot?of=2", "there are strategies 0 to 1"),
        ("/api/values?boards=2", "'boards' is no parameter"),
        ("/api/values?line=b200c/", "cards of the board are missing"),
        ("/api/solve", "no spot has been re-solved yet"),
    ],
)
def test_bad_get_requests_are_refused_in_one_sentence(holdem, path, text):
    status, _, body = ask(holdem, path)
    found = json.loads(body)
    assert status == 400 and list(found) == ["error"] and text in found["error"] and "\n" not in found["error"]
    assert "Traceback" not in found["error"]


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/api/solve", {"line": "b200"}, "from the flop on: before the flop the tree is too large"),
        ("/api/solve", {"line": "b200c/", "board": "Kc7d2s", "method": "maxmargin"}, "'method' is no parameter"),
        ("/api/solve", {"line": "b200c/", "board": "Kc7d2s", "iterations": 10**9}, "they must be from 1 to 5,000"),
        ("/api/solve", {"line": 7}, "line = '7': Expected str, got int"),
        ("/api/play/sit", {"seed": -1}, "it must be from 0 to 2^63 - 1"),
        ("/api/play/sit", {"seed": 2**63}, "it must be from 0 to 2^63 - 1"),
        ("/api/play/sit", {"seed": 10**40}, "it must be from 0 to 2^63 - 1"),
        ("/api/play/sit", {"resolve": "river:unsafe:5001"}, "at most 5,000 iterations are done here"),
        ("/api/play/sit", {"resolve": "moon"}, "it must be river, turn or flop"),
        ("/api/play/act", {"hand": True}, "hand = 'True': Expected int, got bool"),
        ("/api/play/act", {"cards": "AsAd"}, "'cards' is no parameter"),
        ("/api/play/act", b"[" * 5000, "is not JSON"),
        ("/api/play/act", b"[]", "no JSON object"),
        ("/api/spots/range", {"range": "@/etc/passwd"}, "files are not read here"),
        ("/api/spots/range", {"range": "AZ"}, "range: range item 'AZ' is not known"),
        ("/api/spots/range", {"range": "AA,"[:2] + " " * 20_000}, "of length <= 20000"),
        ("/api/spots/range", {"classes": "AKs,KAs"}, "'KAs' is not a class of hands"),
        ("/api/spots/range", {"classes": "AKs", "weight": "2"}, "a number from 0 to 1 is needed"),
        ("/api/spots/solve", {"oop": "@ranges"}, "oop: files are not read here"),
        ("/api/spots/solve", {"ip": "AA:0"}, "ip: the range holds no hand"),
        ("/api/spots/solve", {"pot": "much"}, "pot = 'much': a number without unit is needed"),
        ("/api/spots/solve", {"locks": "c 60%"}, "lock 'c 60%' has no ="),
        ("/api/spots/solve", {"policy": "/etc"}, "'policy' is no parameter here"),
        ("/api/spots/solve", {"line": "b200c/", "board": "Kc7d2s"}, "only lines of a policy"),
        ("/api/spots/stop", {}, "no spot has been typed yet"),
    ],
)
def test_bad_post_requests_are_refused_in_one_sentence(holdem, path, body, text):
    status, _, found = ask(holdem, path, "POST", body=body)
    assert status == 400 and text in json.loads(found)["error"]


def test_the_command_serves_until_it_is_stopped(tmp_path, capsys, monkeypatch):
    """Report a port in use, or a wrong directory, in one sentence; Ctrl-C prints nothing."""
    target = write_random(tmp_path / "kuhn", KuhnGame())
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, _, err = call(capsys, "view", target, "--port", other.getsockname()[1], "--no-browser")
    assert status == 2 and "is in use: give another --port" in err and err.count("\n") == 1
    told = refusal(capsys, "view", "--against", target, "--no-browser")
    assert "--against has no effect without POLICY-or-RUN" in told
    assert "neither a run directory nor an exported policy" in refusal(capsys, "view", tmp_path, "--no-browser")

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(server.ViewServer, "serve_forever", interrupted)
    status, out, err = call(capsys, "view", target, "--port", 0, "--no-browser")
    assert (status, out) == (130, "") and "http://127.0.0.1:" in err and err.endswith("\nmccfr: stopped by signal 2\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_server_with_one_sentence(tmp_path, number):
    """A signal that is sent many times, as by a held Ctrl-C, prints no traceback."""
    target = write_random(tmp_path / "kuhn", KuhnGame())
    program = [sys.executable, "-m", "mccfr", "view", target, "--port", "0", "--no-browser"]
    started = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    first = next(line for line in started.stderr if "Ctrl-C" in line)  # on a busy machine other lines come first
    for _ in range(20):
        started.send_signal(number)
        time.sleep(0.01)
    assert "Ctrl-C stops" in first and started.communicate(timeout=60)[1] == f"mccfr: stopped by signal {number}\n"
    assert started.returncode == 128 + number


@needs_browser
def test_the_page_in_a_browser(holdem, monkeypatch):
    """Use grid, line, links, history, boards, keys, review and themes, without external requests."""
    page_parts.fix_the_deals(monkeypatch)
    for name in ("_WORK", "_LEAST_BOARDS"):  # rough EVs, which are compared with the server's
        monkeypatch.setattr(decision_values, name, 1)
    with browsing() as page:

        def at(fragment):
            text = json.dumps(fragment)
            wait_for(page, f"document.body.dataset.complete === {text} && location.hash === {text}")

        def go(fragment):
            page.evaluate(f"location.hash = {json.dumps(fragment)}")
            at(fragment)

        spot, go_on = holdem.spots.spot, threading.Event()
        with monkeypatch.context() as patch:
            patch.setattr(holdem.spots, "spot", lambda *at, **named: go_on.wait(60) and spot(*at, **named))
            page.goto(holdem.url)
            wait_for(page, "document.body && document.getElementById('note')")
            assert page.locator("#note").text_content() == "Reading …"
        go_on.set()
        wait_for(page, "document.body && document.body.dataset.complete")
        assert page.locator("#title").text_content() == f"my {EVIL}"
        assert page.locator("img").count() == 0
        assert page.locator("#grid .cell").count() == 169
        assert page.locator("#grid .cell .fill").count() == 169
        assert "from the flop on" in page.locator("#solve-state").text_content()
        wait_for(page, "document.querySelectorAll('#hands tbody tr').length === 169")  # before the flop: classes
        page.evaluate("document.querySelector('[data-action=b200]').click()")
        at("#line=b200")
        page.keyboard.press("c")  # the call: three cards are to be chosen
        wait_for(page, "!!document.getElementById('picker')")
        assert page.locator("#picker-cards button").count() == 52
        page.evaluate("document.querySelector('[data-card=\"Kc\"]').click()")
        for key in "c7d":  # a c that completes no card does nothing, and does not check
            page.keyboard.press(key)
        assert page.evaluate("location.hash") == "#line=b200c/"
        assert page.evaluate(
            "[...document.querySelectorAll('#picker [aria-pressed=true]')].map((one) => one.dataset.card).join()"
        ) in ("Kc,7d", "7d,Kc")
        page.keyboard.press("2")
        page.keyboard.press("h")
        at("#line=b200c/&board=Kc7d2h")
        page.evaluate("location.hash = '#line=b200c/'")  # the board that was chosen before is not shown
        wait_for(page, "!!document.getElementById('picker')")
        assert page.locator("#path .cards").first.text_content() == "choose 3"
        assert page.locator("#picker [aria-pressed=true]").count() == 0
        for key in "kc7D2s":
            page.keyboard.press(key)
        at("#line=b200c/&board=Kc7d2s")
        page.goto(holdem.url + "#line=b200")
        at("#line=b200")
        go("#line=b200c/&board=Kc7d2s")
        assert page.locator("#who").text_content() == "Big blind to act"
        row = page.evaluate("document.querySelector('#hands tbody tr').innerText")
        assert row.split("\t")[-3].endswith("%"), row  # the equity has arrived
        state, button = ("document.getElementById('solve-state').textContent", "document.getElementById('change')")
        assert page.evaluate(state).startswith("On later streets hands share")  # on the flop
        assert page.locator("#change").count() == 1 and page.locator("#lock").count() == 0
        go("#line=b200c/cb400&board=Kc7d2s")
        page.evaluate(f"{button}.click()")
        wait_for(page, "location.hash.startsWith('#spot&line=b200c%2F&board=Kc7d2s&')")  # where the street begins
        go("#line=b200")
        go("#line=b200c/&board=Kc7d2s")
        page.evaluate("history.back()")
        at("#line=b200")
        page.evaluate("history.forward()")
        at("#line=b200c/&board=Kc7d2s")
        said = page.locator("#worth").text_content()
        assert said.startswith("EV is an estimate over") and "95 % intervals" in said, "at once"
        go("#line=b250c/cb450&board=Kc7d2s")
        assert "not in the strategy's tree" in page.locator("#note").text_content()
        page.evaluate("location.hash = '#line=x'")
        page.get_by_text("is not an action").wait_for()
        go("#line=b200c/cb400&board=Kc7d2s")
        assert page.evaluate("!document.getElementById('problem')")
        page.keyboard.press("Backspace")
        at("#line=b200c/c&board=Kc7d2s")
        page.evaluate(
            "document.getElementById('other-amount').value = '5', document.getElementById('other').requestSubmit()"
        )
        at("#line=b200c/cb500&board=Kc7d2s")  # five big blinds on this street, two before it
        page.keyboard.press("Backspace")
        at("#line=b200c/c&board=Kc7d2s")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.locator("#hands-title").text_content() == "AKs"
        page.keyboard.press("?")
        wait_for(page, "document.getElementById('keys').open")
        page_parts.check_the_layout(page)
        page.evaluate("document.getElementById('keys').close()")
        page_parts.check_the_cards(page, at, holdem)
        river = "#line=b200c/cc/cc/b200&board=Kc7d2s4h9d&beside=1"  # EVs, two strategies, re-solving
        go(river)
        assert page.locator("#worth").text_content().startswith("EV is exact")
        there, worth = (json.loads(ask(holdem, path + river[1:-9])[2]) for path in ("/api/spot?", "/api/values?"))
        call = [one["kind"] for one in there["actions"]].index("call")
        taken = f"EV of the hands that take it {worth['taken'][call] / 100:.2f}"
        assert taken in page.evaluate("document.querySelector('[data-action=c]').innerText")
        assert page.locator("#name-grid-beside").text_content() == f"beside {EVIL}"
        page_parts.check_the_list_of_hands(page, there, worth)
        page_parts.check_the_lists(page, there, worth, json.loads(ask(holdem, "/api/equity?" + river[1:-9])[2]))
        assert page.locator("#grid-beside .cell").count() == 169
        page_parts.check_the_ev_of_classes(page, there["hands"], worth["hands"][there["player"]], there["player"])
        page.evaluate("[...document.querySelectorAll('#views button')][1].click()")
        assert "half the sum of the differences of its probabilities" in page.locator("#legend").text_content()
        page.evaluate("document.getElementById('solve').click()")
        wait_for(page, "document.getElementById('solve-state').textContent.startsWith('Solved in')")
        assert "200 of 200 iterations, exploitability" in page.locator("#solve-state").text_content()
        assert page.evaluate("document.getElementById('beside').value") == "solved"
        heads = "[...document.querySelectorAll('#hands th')].map((one) => one.textContent).join()"
        assert page.evaluate(heads) == "hand,blueprint,solved,apart,Fold,Call,10 BB,share,equity,EV,EV solved"
        assert "· solved " in page.evaluate("document.querySelector('[data-action=c]').innerText")
        page_parts.check_the_layout(page)
        page.locator("#beside").focus()  # keys work there, too
        page.keyboard.press("p")  # play a hand: call to its end, from any seat
        wait_for(page, "!!document.querySelector('[data-play]')")
        assert page.locator("#seat-theirs .card.back").count() == 2
        assert page.locator("[data-play=c] kbd").first.text_content() == "c"
        while page.evaluate("!document.getElementById('play-result').textContent"):
            wait_for(page, "!document.getElementById('play').classList.contains('busy')")
            page.keyboard.press("c")
        assert page.locator("#play-session").text_content().startswith("Hand 1 · 1 played")
        judged_at_the_end = page_parts.verdict_texts(page)
        assert judged_at_the_end and page.locator("#play-log a").count() > len(judged_at_the_end)
        page_parts.check_the_layout(page)
        page_parts.check_the_trainer(page)
        page.keyboard.press("n")
        wait_for(page, "document.getElementById('play-session').textContent.startsWith('Hand 2')")
        page.click("#tab-spot")
        wait_for(page, "document.querySelectorAll('#spot-grid-ip .cell .fill').length === 169")
        page_parts.check_the_layout(page)
        page.click("#tab-look")
        wait_for(page, "!!document.getElementById('right')")
        page_parts.check_the_review(page, at)
        paper = "getComputedStyle(document.body).backgroundColor"
        page.emulate_media(color_scheme="light")
        light = page.evaluate(paper)
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate(paper)
        page.keyboard.press("t")
        assert light == page.evaluate(paper) != dark


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(
    ("spot", "words"),
    [
        ("line=b200c/c&board=Kc7d2s", "100 of 100 iterations, an estimate"),
        ("line=b200c/cc/cc/&board=Kc7d2s4h9d", "200 of 200 iterations, exploitability"),
    ],
)
def test_a_spot_is_re_solved_in_a_browser(holdem, spot, words):
    """Re-solve the rest of a hand, with real hands or buckets: about ten seconds of processor time."""
    with browsing() as page:
        page.goto(f"{holdem.url}#{spot}")
        wait_for(page, "document.body && document.body.dataset.complete")
        page.evaluate("document.getElementById('solve').click()")
        wait_for(page, "document.getElementById('solve-state').textContent.startsWith('Solved in')")
        state = page.locator("#solve-state").text_content()
        assert words in state
        assert "not precise enough" not in state
        assert page.evaluate("document.getElementById('beside').value") == "solved"
        assert "· solved " in page.evaluate("document.querySelector('[data-action=c]').innerText"), "its EV"
        assert page.locator("#grid-beside .cell .fill").count() == 169


@needs_browser
def test_small_games_are_shown_as_a_list_of_hands(tmp_path):
    with serving(open_spots(write_random(tmp_path / "kuhn", KuhnGame()))) as http, browsing() as page:
        page.goto(http.url + "#line=b9")  # an invalid link shows the first decision and the error
        wait_for(page, "document.body && document.querySelectorAll('.hand').length")
        assert "'b9' is not possible after" in page.locator("#problem").inner_text()
        page.evaluate("location.hash = '#line=cb'")
        wait_for(page, "document.body && document.body.dataset.complete")
        assert page.evaluate("!document.getElementById('grids')")
        assert page.evaluate("[...document.querySelectorAll('.hand')].map((one) => one.textContent).join()") == "J,Q,K"
        assert page.evaluate("document.querySelector('[data-action=c]').innerText").startswith("Call 1 chips")
        page_parts.check_the_layout(page)
        page.evaluate("document.body.append(document.createElement('input'))")
        with pytest.raises(AssertionError, match="label"):
            check_accessible(page)
