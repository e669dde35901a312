"""Spots entered in the page: parsing, painting, solving, in a real browser.

Shows:

* In the page, spots are typed, painted, solved, stopped, locked, kept, compared and deleted
  (test_a_spot_from_ranges_to_locks_in_a_browser)
* The page's solve gives the result of `mccfr spot` (test_the_page_solves_the_same_run_as_the_command)
* A line of a strategy is solved as a spot (test_a_line_of_a_strategy_is_solved_as_a_spot)
"""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from browser import browsing, needs_browser, wait_for
from commands import call
from page_parts import check_the_layout
from pages_server import serve_strategies
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


def test_the_page_solves_the_same_run_as_the_command(capsys, tmp_path, monkeypatch):
    """Both give the same answer; the page states memory and time before training, then progress."""
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


def test_valid_bet_sizes_are_accepted_and_invalid_ones_refused_at_once():
    requests = SpotRequests(threading.Semaphore(0), lambda run, asked: 0)
    with pytest.raises(BusyError):  # the sizes are valid
        requests.start({**RIVER, "bets": "auto:2", "raises": "75%"})
    refused("bets: 'auto:0' is not allowed: auto:N stands alone", requests.start, {**RIVER, "bets": "auto:0"})
    refused("donk: bet size 'auto:1' is not allowed", requests.start, {**RIVER, "donk": "auto:1"})


def test_the_limit_of_simultaneous_solves_includes_typed_spots():
    """No solve starts while too many spots of other strategies are being solved."""
    requests = SpotRequests(threading.Semaphore(0), lambda run, asked: 0)
    with pytest.raises(BusyError, match="spots of other strategies are being solved"):
        requests.start(RIVER)
    refused("no spot has been typed yet", requests.state)


@needs_browser
def test_a_spot_from_ranges_to_locks_in_a_browser(tmp_path, monkeypatch):
    """Type, paint, solve and stop; lock painted and all hands and solve again; phone width and link."""
    monkeypatch.chdir(tmp_path)
    with serve_strategies(open_strategies(None)) as server, browsing() as page:

        def field(name, text):
            page.fill(f"#spot-{name}", text)
            page.locator(f"#spot-{name}").blur()

        page.goto(server.url)
        wait_for(page, "document.body && document.querySelectorAll('#spot-grid-ip .cell .fill').length === 169")
        sizes = ", ".join(f"{share}%" for share in range(20, 200, 12))  # so many that the button ends the solve
        typed = {**RIVER, "ip": "77+,KQs", "to": "0.0001%", "board": "QsJh2h7c", "bets": sizes, "raises": sizes}
        for name, text in typed.items():
            field(name, text)
        page.evaluate("document.querySelector('[data-card=\"3d\"]').click()")
        wait_for(page, "document.getElementById('spot-told-ip').textContent.endsWith('combos')")
        page.evaluate("document.querySelector('[data-weight=\"50\"]').click()")
        drag(page, "ip", "AKs", "ATs")
        wait_for(page, "document.getElementById('spot-ip').value === '77+,ATs+:0.5,KQs'")
        check_the_layout(page)
        state = "document.getElementById('spot-state').textContent"
        page.evaluate("document.getElementById('spot-solve').click()")
        wait_for(page, f"{state}.includes('of the pot after')")
        assert "of memory; about" in page.locator("#spot-plan").text_content()
        page.evaluate("document.getElementById('spot-stop').click()")
        wait_for(page, f"{state}.includes('Stopped after')")
        open_solved_spot(page)
        answer = server.application.shelf.desk.state()["answer"]
        assert f"EV {answer['ev_chips'][0]:.2f}" in page.locator("#ranges").text_content()
        page.evaluate("document.getElementById('lock').click()")
        wait_for(page, "document.getElementById('lock-who').textContent === 'Out of position:'")
        page.select_option("#lock-action", "c")
        page.evaluate("document.querySelector('[data-weight=\"100\"]').click()")
        drag(page, "lock", "AKs", "AQs")
        wait_for(page, "document.getElementById('spot-locks').value === '=c AQs+'")
        page.fill("#lock-line", "c")
        page.locator("#lock-line").blur()
        wait_for(page, "document.getElementById('lock-who').textContent === 'In position:'")
        page.click('[data-weight="75"]')
        page.click("#lock-all")
        assert page.evaluate("document.getElementById('spot-locks').value") == "=c AQs+\nc=c 75%"
        field("to", "5%")
        field("bets", "")
        field("raises", "")
        page.evaluate("document.getElementById('spot-solve').click()")
        wait_for(page, f"{state}.includes('Solved in')")
        assert "without locks)" in page.evaluate(state)
        link = page.evaluate("location.href")
        open_solved_spot(page)
        suited, pair = (page.locator(f"#grid [data-class={name}]").get_attribute("title") for name in ("AKs", "JJ"))
        assert "Check 100.0 %" in suited and "Check 100.0 %" not in pair
        page.evaluate("document.querySelector('[data-action=c]').click()")
        wait_for(
            page, "location.hash.startsWith('#line=c&') && document.getElementById('who').textContent.startsWith('In')"
        )
        wait_for(page, "document.querySelector('[data-action=c] .share').textContent === '75.0 %'")
        check_saved_state(page, server.url)
        page.goto("about:blank")
        page.goto(link)
        wait_for(page, "document.body && document.querySelectorAll('#spot-grid-ip .cell .fill').length === 169")
        wait_for(page, "document.getElementById('spot-told-oop').textContent.endsWith('combos')")
        assert page.evaluate("document.getElementById('spot-ip').value") == "77+,ATs+:0.5,KQs"
        assert page.evaluate("document.getElementById('spot-board').value") == RIVER["board"]
        assert page.evaluate("document.getElementById('spot-locks').value") == "=c AQs+\nc=c 75%"


def check_saved_state(page, url):
    """Check the reloaded form, saved ranges and the list of solved spots, by keyboard and by labels."""
    page.goto("about:blank")
    page.goto(url + "#spot")
    page.locator("#spot-state", has_text="Solved in").wait_for()
    assert page.input_value("#spot-board") == RIVER["board"] and page.input_value("#spot-ip") == "77+,ATs+:0.5,KQs"
    own = page.locator("#spot-sides .panel").first
    own.get_by_label("Name of the range").fill("mine")
    own.get_by_role("button", name="Save").click()
    other = page.locator("#spot-sides .panel").last
    other.get_by_label("Put in a range").locator("option", has_text="mine").wait_for(state="attached")
    other.get_by_label("Put in a range").select_option(label="mine")
    wait_for(page, "document.getElementById('spot-ip').value === document.getElementById('spot-oop').value")
    wait_for(page, "document.querySelector('#spot-grid-ip [data-class=AKs]').title === 'AKs: 100 %'")
    page.locator("#spot-grid-ip [data-class=AA]").focus()  # paint by keys
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_for(page, "document.querySelector('#spot-grid-ip [data-class=AKs]').title === 'AKs: 0 %'")
    check_the_layout(page)
    rows = page.locator("#solved-spots [data-run]")
    assert rows.count() == 2
    rows.first.get_by_role("button", name="Compare").click()
    rows.last.get_by_role("button", name="Compare with this").click()
    page.locator("#name-grid-beside").wait_for()
    page.goto("about:blank")
    page.goto(url + "#spot")
    page.once("dialog", lambda dialog: dialog.accept())
    rows.last.get_by_role("button", name="Delete").click()
    wait_for(page, "document.querySelectorAll('#solved-spots [data-run]').length === 1")


def drag(page, side, first, last):
    """Drag the mouse from one class of a grid to another."""
    grid = page.locator(f"#spot-grid-{side}")
    grid.scroll_into_view_if_needed()
    start, end = (grid.locator(f"[data-class={name}]").bounding_box() for name in (first, last))
    page.mouse.move(start["x"] + 9, start["y"] + 9)
    page.mouse.down()
    page.mouse.move(end["x"] + 9, end["y"] + 9, steps=12)
    page.mouse.up()


def open_solved_spot(page):
    page.evaluate("document.getElementById('spot-open').click()")
    there = "location.hash.startsWith('#line=&of=spot-')"
    wait_for(page, there + " && document.body.dataset.complete?.endsWith(location.hash.slice(6))")


@needs_browser
def test_a_line_of_a_strategy_is_solved_as_a_spot(tmp_path, monkeypatch):
    """Fill the form with ranges, pot and stack by one button; the EV is that of the strategy's line."""
    monkeypatch.chdir(tmp_path)
    turn = {"board": "QsJh2h7c", "oop": "TT+,AQs+", "ip": "77+,KQs", "pot": 180.0, "stack": 180.0, "bets": "0.5p"}
    told = []
    solve_spot({**turn, "to": 0.005}, told.append)
    run = next(Path(one["run"]) for one in told if "run" in one)
    with serve_strategies(open_strategies(run)) as server, browsing() as page:
        page.goto(server.url + "#line=cc/&board=QsJh2h7c3d")
        wait_for(page, "document.body && document.body.dataset.ready && !!document.getElementById('change')")
        page.click("#change")
        wait_for(page, "document.getElementById('spot-told-ip').textContent.endsWith('combos')")
        strategy = server.application.shelf.shown(0)
        filled = {"oop": strategy.spots.spot("cc/", "QsJh2h7c3d")["ranges"][0]["text"], "pot": "180", "stack": "180"}
        for name, text in {**filled, "board": "QsJh2h7c3d"}.items():
            assert page.evaluate(f"document.getElementById('spot-{name}').value") == text
        assert f"After cc/ of {run.name}" in page.locator("#spot-from").text_content()
        page.evaluate("document.getElementById('spot-solve').click()")
        wait_for(page, "document.getElementById('spot-state').textContent.includes('Solved in')")
        worth = np.array(strategy.values.values("cc/", "QsJh2h7c3d")["mean"])
        assert server.application.shelf.desk.state()["answer"]["ev_chips"] == pytest.approx(worth, abs=0.01 * 180)
        open_solved_spot(page)
        page.evaluate("document.querySelector('[data-action=c]').click()")
        wait_for(page, "(document.body.dataset.complete || '').startsWith('#line=c&')")
        assert page.locator("#hands tbody tr").count() > 20
        assert page.locator("#way-back").get_attribute("href") == "#line=cc/&board=QsJh2h7c3d"
