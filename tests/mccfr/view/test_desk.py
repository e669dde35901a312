"""Spots that are typed in the page: read, painted, solved by what `mccfr spot` does, and driven in a real browser.

Shows:

* A spot is typed or painted on the page, solved, stopped, looked at, locked and shared as a link
  (test_a_spot_from_ranges_to_locks_in_a_browser, test_what_is_solved_is_what_the_command_solves)
"""

import json
import threading

import numpy as np
import pytest
from browser import browsing, program
from commands import call
from pages_server import served_shelf
from random_policy import policy
from refusals import refused

from abstraction.ranges import class_names, parse_range
from mccfr.view import Shelf, Spots, open_shelf
from mccfr.view.desk import Desk
from mccfr.view.solve_spot import solve_spot
from mccfr.view.solving import BusyError

RIVER = {"board": "QsJh2h7c3d", "oop": "TT+,AQs+", "ip": "77+,ATs+,KQs,87s", "pot": "180", "stack": "910"}


def test_ranges_are_painted():
    """A class gets a weight, single hands of others stay, and blocked hands are not counted."""
    found = open_shelf(None).desk.range("QQ+,AhKh:0.5,54s-32s", "Ac7d2s", "KK,72o", "0.25")
    weights = parse_range(found["text"])
    np.testing.assert_array_equal(weights, parse_range("AA,KK:0.25,QQ,AhKh:0.5,54s,43s,32s,72o:0.25"))
    assert found["combos"] == 3 + 6 * 0.25 + 6 + 0.5 + 4 + 4 + 3 + 7 * 0.25
    at = class_names().index
    assert [found["weights"][at(name)] for name in ("AA", "KK", "AKs", "72o")] == [1, 0.25, 0.1667, 0.25]


def test_what_is_solved_is_what_the_command_solves(capsys, tmp_path, monkeypatch):
    """The same run with the same answer; what it takes is told before it trains, and then how far it is."""
    monkeypatch.chdir(tmp_path)
    told, asked = [], {**RIVER, "pot": 180.0, "stack": 910.0, "to": 0.005, "bets": "0.5p", "raises": None}
    solve_spot({**asked, "policy": None, "line": None, "menu": {}, "game": {}}, told.append)
    keys = [next(iter(one)) for one in told]
    assert keys.index("run") < keys.index("iterations") < keys.index("answer") == len(keys) - 1
    plan = told[keys.index("run")]["plan"]
    assert plan["memory_bytes"] > 0 and plan["seconds_an_iteration"] > 0 and plan["infosets"] > 100
    arguments = [f"--{name}={text}" for name, text in RIVER.items() if name != "board"]
    status, out, _ = call(capsys, "spot", RIVER["board"], *arguments, "--to", "0.5%", "--bets", "0.5p", "--json")
    assert status == 0 and {**json.loads(out), "seconds": 0} == {**told[-1]["answer"], "seconds": 0}


def test_what_is_solved_at_a_time_is_counted_with_all_else():
    """Where others are being solved nothing begins, and nothing is told of."""
    desk = Desk(threading.Semaphore(0), lambda run, asked: 0)
    with pytest.raises(BusyError, match="spots of other strategies are being solved"):
        desk.start(RIVER)
    refused("no spot has been typed yet", desk.state)


@pytest.mark.skipif(program() is None, reason="there is no Chromium on this machine")
def test_a_spot_from_ranges_to_locks_in_a_browser(tmp_path, monkeypatch):
    """Typed, painted, solved until it is stopped; then a lock, solved again; widths of a phone; a link."""
    monkeypatch.chdir(tmp_path)
    with served_shelf(open_shelf(None)) as served, browsing(tmp_path / "browser") as page:

        def field(name, text):
            page[f"field = document.getElementById('spot-{name}'), field.value = {json.dumps(text)}"]
            page["field.dispatchEvent(new Event('change'))"]

        page.open(served.url)
        page.wait("document.body && document.querySelectorAll('#spot-grid-ip .cell .fill').length === 169")
        for name, text in {**RIVER, "ip": "77+,KQs", "to": "0.0001%", "board": "QsJh2h7c"}.items():
            field(name, text)
        page["document.querySelector('[data-card=\"3d\"]').click()"]
        page.wait("document.getElementById('spot-told-ip').textContent.endsWith('combos')")
        page["document.querySelector('[data-weight=\"50\"]').click()"]
        drag(page, "ip", "AKs", "ATs")
        page.wait("document.getElementById('spot-ip').value === '77+,ATs+:0.5,KQs'")
        for width in (390, 1400):
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            assert page["document.documentElement.scrollWidth <= innerWidth"], width
        state = "document.getElementById('spot-state').textContent"
        page["document.getElementById('spot-solve').click()"]
        page.wait(f"{state}.includes('of the pot after')")
        assert "of memory; about" in page["document.getElementById('spot-plan').textContent"]
        link = page["location.href"]
        page["document.getElementById('spot-stop').click()"]
        page.wait(f"{state}.includes('Stopped after')")
        look(page, 1000)
        answer = served.shelf.desk.state()["answer"]
        assert f"EV {answer['ev_chips'][0]:.2f}" in page["document.getElementById('ranges').textContent"]
        page[
            "document.getElementById('lock-what').value = 'c 100%', document.getElementById('locking').requestSubmit()"
        ]
        page.wait("document.getElementById('spot-locks').value === '=c 100%'")
        field("to", "5%")
        page["document.getElementById('spot-solve').click()"]
        page.wait(f"{state}.includes('Solved in')")
        look(page, 1001)
        assert page["document.querySelector('[data-action=c] .share').textContent"] == "100.0 %"
        page.open("about:blank")
        page.open(link)
        page.wait("document.body && document.querySelectorAll('#spot-grid-ip .cell .fill').length === 169")
        page.wait("document.getElementById('spot-told-oop').textContent.endsWith('combos')")
        assert page["document.getElementById('spot-ip').value"] == "77+,ATs+:0.5,KQs"
        assert page["document.getElementById('spot-board').value"] == RIVER["board"]
        assert page.problems == []


def drag(page, side, first, last):
    """The mouse from one class of a grid to another."""
    cells = [f"document.querySelector('#spot-grid-{side} [data-class={name}]')" for name in (first, last)]
    start, end = (page[f"(box = {cell}.getBoundingClientRect(), [box.x + 9, box.y + 9])"] for cell in cells)
    mouse = {"button": "left", "buttons": 1, "clickCount": 1}
    page.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **mouse)
    for step in np.linspace(start, end, 12).tolist():
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=step[0], y=step[1], **mouse)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **mouse)


def look(page, number):
    page["document.getElementById('spot-open').click()"]
    page.wait(f"location.hash === '#line=&of={number}' && (document.body.dataset.complete || '').includes('{number}')")


@pytest.mark.skipif(program() is None, reason="there is no Chromium on this machine")
def test_a_line_of_a_strategy_fills_the_form(tmp_path):
    """One button: its ranges, pot and stack; they may be changed."""
    spots = Spots(policy(), "random")
    with served_shelf(Shelf([("random", lambda: spots)])) as served, browsing(tmp_path) as page:
        page.open(served.url + "#line=r200c/&board=Kc7d2s")
        page.wait("document.body && document.body.dataset.ready && !document.getElementById('as-spot').hidden")
        page["document.getElementById('as-spot').click()"]
        page.wait("document.getElementById('spot-told-ip').textContent.endsWith('combos')")
        there = spots.spot("r200c/", "Kc7d2s")
        for name, text in {
            "oop": there["ranges"][0]["text"],
            "pot": "400",
            "stack": "19800",
            "board": "Kc7d2s",
        }.items():
            assert page[f"document.getElementById('spot-{name}').value"] == text
        assert "After r200c/ of random" in page["document.getElementById('spot-from').textContent"]
        assert page.problems == []
