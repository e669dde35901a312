"""Spots entered in the page: parsing, painting, solving, in a real browser.

Shows:

* In the page, a user can type, paint, solve, stop, lock and share a spot
  (test_a_spot_from_ranges_to_locks_in_a_browser)
* The page's solve gives the result of `mccfr spot` (test_what_is_solved_is_what_the_command_solves)
* A betting line of a strategy can be solved as a spot (test_a_line_of_a_strategy_is_solved_as_a_spot)
"""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from browser import browsing, program
from commands import call
from pages_server import served_shelf
from refusals import refused

from abstraction.range_notation import class_names, parse_range
from mccfr.view import open_strategies
from mccfr.view.resolve_request import BusyError
from mccfr.view.spot_requests import SpotRequests
from mccfr.view.spot_worker import solve_spot

RIVER = {"board": "QsJh2h7c3d", "oop": "TT+,AQs+", "ip": "77+,ATs+,KQs,87s", "pot": "180", "stack": "910"}


def test_ranges_are_painted():
    """A class gets a weight, single hands of others stay, and blocked hands are not counted."""
    found = open_strategies(None).desk.range("QQ+,AhKh:0.5,54s-32s", "Ac7d2s", "KK,72o", "0.25")
    weights = parse_range(found["text"])
    np.testing.assert_array_equal(weights, parse_range("AA,KK:0.25,QQ,AhKh:0.5,54s,43s,32s,72o:0.25"))
    assert found["combos"] == 3 + 6 * 0.25 + 6 + 0.5 + 4 + 4 + 3 + 7 * 0.25
    at = class_names().index
    assert [found["weights"][at(name)] for name in ("AA", "KK", "AKs", "72o")] == [1, 0.25, 0.1667, 0.25]


def test_what_is_solved_is_what_the_command_solves(capsys, tmp_path, monkeypatch):
    """The same run with the same answer; what it takes is told before it trains, and then how far it is."""
    monkeypatch.chdir(tmp_path)
    told, asked = [], {**RIVER, "pot": 180.0, "stack": 910.0, "to": 0.005, "bets": "0.5p"}
    solve_spot(asked, told.append)
    keys = [next(iter(one)) for one in told]
    assert keys.index("run") < keys.index("iterations") < keys.index("answer") == len(keys) - 1
    plan = told[keys.index("run")]["plan"]
    assert plan["memory_bytes"] > 0 and plan["seconds_an_iteration"] > 0 and plan["infosets"] > 100
    arguments = [f"--{name}={text}" for name, text in RIVER.items() if name != "board"]
    status, out, _ = call(capsys, "spot", RIVER["board"], *arguments, "--to", "0.5%", "--bets", "0.5p", "--json")
    assert status == 0 and {**json.loads(out), "seconds": 0} == {**told[-1]["answer"], "seconds": 0}


def test_what_is_solved_at_a_time_is_counted_with_all_else():
    """Start nothing and announce nothing while other spots are solved."""
    desk = SpotRequests(threading.Semaphore(0), lambda run, asked: 0)
    with pytest.raises(BusyError, match="spots of other strategies are being solved"):
        desk.start(RIVER)
    refused("no spot has been typed yet", desk.state)


@pytest.mark.skipif(program() is None, reason="there is no Chromium on this machine")
def test_a_spot_from_ranges_to_locks_in_a_browser(tmp_path, monkeypatch):
    """Type, paint, solve and stop; lock painted and all hands and solve again; phone width and link."""
    monkeypatch.chdir(tmp_path)
    with served_shelf(open_strategies(None)) as served, browsing(tmp_path / "browser") as page:

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
        page["document.getElementById('spot-stop').click()"]
        page.wait(f"{state}.includes('Stopped after')")
        look(page, 1000)
        answer = served.application.shelf.desk.state()["answer"]
        assert f"EV {answer['ev_chips'][0]:.2f}" in page["document.getElementById('ranges').textContent"]
        page["document.getElementById('lock').click()"]
        page.wait("document.getElementById('lock-who').textContent === 'Out of position:'")
        page["document.getElementById('lock-action').value = 'c'"]
        page["document.querySelector('[data-weight=\"100\"]').click()"]
        drag(page, "lock", "AKs", "AQs")
        page.wait("document.getElementById('spot-locks').value === '=c AQs+'")
        page["at = document.getElementById('lock-line'), at.value = 'c', at.dispatchEvent(new Event('change'))"]
        page.wait("document.getElementById('lock-who').textContent === 'In position:'")
        page["document.querySelector('[data-weight=\"75\"]').click(), document.getElementById('lock-all').click()"]
        assert page["document.getElementById('spot-locks').value"] == "=c AQs+\nc=c 75%"
        field("to", "5%")
        page["document.getElementById('spot-solve').click()"]
        page.wait(f"{state}.includes('Solved in')")
        assert "without locks)" in page[state]
        link = page["location.href"]
        look(page, 1001)
        suited, pair = (page[f"document.querySelector('#grid [data-class={name}]').title"] for name in ("AKs", "JJ"))
        assert "Check 100.0 %" in suited and "Check 100.0 %" not in pair
        page["document.querySelector('[data-action=c]').click()"]
        page.wait("location.hash.startsWith('#line=c&') && document.getElementById('who').textContent.startsWith('In')")
        page.wait("document.querySelector('[data-action=c] .share').textContent === '75.0 %'")
        page.open("about:blank")
        page.open(link)
        page.wait("document.body && document.querySelectorAll('#spot-grid-ip .cell .fill').length === 169")
        page.wait("document.getElementById('spot-told-oop').textContent.endsWith('combos')")
        assert page["document.getElementById('spot-ip').value"] == "77+,ATs+:0.5,KQs"
        assert page["document.getElementById('spot-board').value"] == RIVER["board"]
        assert page["document.getElementById('spot-locks').value"] == "=c AQs+\nc=c 75%"
        assert page.problems == []


def drag(page, side, first, last):
    """The mouse from one class of a grid to another."""
    cells = [f"document.querySelector('#spot-grid-{side} [data-class={name}]')" for name in (first, last)]
    page[f"{cells[0]}.scrollIntoView({{ block: 'center' }})"]
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
def test_a_line_of_a_strategy_is_solved_as_a_spot(tmp_path, monkeypatch):
    """Fill the form with ranges, pot and stack by one button; the EV is that of the strategy's line."""
    monkeypatch.chdir(tmp_path)
    told, turn = (
        [],
        {"board": "QsJh2h7c", "oop": "TT+,AQs+", "ip": "77+,KQs", "pot": 180.0, "stack": 180.0, "bets": "0.5p"},
    )
    solve_spot({**turn, "to": 0.005}, told.append)
    run = next(Path(one["run"]) for one in told if "run" in one)
    with served_shelf(open_strategies(run)) as served, browsing(tmp_path / "browser") as page:
        page.open(served.url + "#line=cc/&board=QsJh2h7c3d")
        page.wait("document.body && document.body.dataset.ready && !document.getElementById('as-spot').hidden")
        page["document.getElementById('as-spot').click()"]
        page.wait("document.getElementById('spot-told-ip').textContent.endsWith('combos')")
        strategy = served.application.shelf.shown(0)
        filled = {"oop": strategy.spots.spot("cc/", "QsJh2h7c3d")["ranges"][0]["text"], "pot": "180", "stack": "180"}
        for name, text in {**filled, "board": "QsJh2h7c3d"}.items():
            assert page[f"document.getElementById('spot-{name}').value"] == text
        assert f"After cc/ of {run.name}" in page["document.getElementById('spot-from').textContent"]
        page["document.getElementById('spot-solve').click()"]
        page.wait("document.getElementById('spot-state').textContent.includes('Solved in')")
        worth = np.array(strategy.values.values("cc/", "QsJh2h7c3d")["mean"])
        assert served.application.shelf.desk.state()["answer"]["ev_chips"] == pytest.approx(worth, abs=0.01 * 180)
        look(page, 1000)
        page["document.querySelector('[data-action=c]').click()"]
        page.wait("(document.body.dataset.complete || '').startsWith('#line=c&')")
        assert page["document.querySelectorAll('#hands tbody tr').length"] > 20
        assert page.problems == []
