"""Checks of the page in a browser: reviews, and the effect of the next card."""

import json

import pytest
from browser import wait_for
from pages_server import ask
from random_policy import policy

from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import uniform_strategy


def write_review(path):
    """Three decisions, written by hand."""

    def decision(street, line, board, hand, action, best, cost, player="Ada", ci95=None):
        link = f"#line={line}" + (f"&board={board}" if board else "")
        return {
            **{"player": player, "position": "big blind", "street": street, "line": line, "board": board},
            **{"hand": hand, "action": action, "did": action, "best": best, "cost_bb": cost, "ci95_bb": ci95},
            **{"taken_for": "", "probability": 0.25, "pot": "raised", "how": "in the tree", "link": link},
            **{"cost": cost / 2, "other": None},
        }

    river = "r200c/cc/cc/r400"
    hands = [
        [decision("preflop", "r200", "", "7h2c", "call 1 BB", "fold", 0.4, ci95=[0.1, 0.7])],
        [
            decision("river", river, "Kc7d2s4h9d", "AdAs", "fold", "call 2 BB", 3.1),
            decision("preflop", "", "", "KdKs", "call 0.5 BB", "call 0.5 BB", -0.2, "<i>Bob", [-0.5, 0.1]),
        ],
    ]
    head = {"boards": 4, "hands": "", "policies": {"mine": fingerprint()}, "resolve": None}
    told = {"names": ["Ada", "<i>Bob"], "unknown": 0, "won_bb": None, "aivat_bb": None, "policy": "mine"}
    told |= {"distance": "stack 180 for 200", "currency": "$", "tournament": False}
    lines = [json.dumps([n, {**told, "where": f"log, line {n}", "decisions": rows}]) for n, rows in enumerate(hands)]
    path.write_text("\n".join(["# mccfr review " + json.dumps(head), *lines, '[2, {"where"']))
    return path


def fingerprint():
    return Profile(policy().game, uniform_strategy(policy().game)).fingerprint()


def check_the_review(page, at):
    """The costliest decision first, the grid, line and hand of the one chosen; filters; and the way out."""
    rows = "[...document.querySelectorAll('.review-row')].map((one) => one.dataset.place).join()"
    page.evaluate("document.getElementById('tab-review').click()")
    at("#line=r200c/cc/cc/r400&board=Kc7d2s4h9d&review=0")
    assert page.evaluate(rows) == "0,1,2"
    assert page.evaluate("document.getElementById('hands-title').textContent") == "AA"
    assert page.evaluate("document.querySelector('#hands tr[aria-current] .hand').textContent") == "A♠A♦"
    told = page.evaluate("document.getElementById('review-told').textContent")
    assert told.startswith(
        "Ada, big blind, raised pot: fold with AdAs (the strategy: 25.0 %) costs 3.10 BB ($1.55); "
        "the best is call 2 BB."
    ), told
    assert page.evaluate("document.getElementById('tab-look').hasAttribute('aria-current')") is False
    page.evaluate("document.querySelector('[data-place=\"1\"]').click()")
    at("#line=r200&review=1")
    assert "about 0.40 BB ($0.20), 95 %: 0.10 to 0.70 BB" in page.evaluate(
        "document.getElementById('review-told').textContent"
    )
    for name, value, left in (("street", "river", "0"), ("street", "", "0,1,2"), ("player", "<i>Bob", "2")):
        chosen = f"document.getElementById('review-{name}')"
        page.evaluate(f"{chosen}.value = {json.dumps(value)}, {chosen}.dispatchEvent(new Event('change'))")
        wait_for(page, f"{rows} === '{left}'")
    page.evaluate("document.getElementById('tab-look').click()")
    at("#line=r200")
    assert page.evaluate("!document.getElementById('review')")


def check_the_cards(page, at, served):
    """Check the list of next cards: each row equals the spot with this card, and a click opens it."""
    page.evaluate("location.hash = '#line=r200c/cc/cc/&board=Kc7d2s4h'")
    wait_for(page, "document.querySelectorAll('.card-row').length > 3 && !document.querySelector('#left')")
    cells = "[...document.querySelector('[data-row=As]').cells].map((one) => one.innerText)"
    wait_for(page, f"!{cells}.includes('–')")  # EVs come last
    card, _, *told = page.evaluate(cells)
    wait_for(page, "document.querySelectorAll('.card-row').length === 48")
    assert "Equity is highest on " in page.locator("#card-chart").get_attribute("aria-label")
    assert card == "A♠"
    spot, equity, values = (
        json.loads(ask(served, f"/api/{what}?line=r200c/cc/cc/&board=Kc7d2s4hAs")[2])
        for what in ("spot", "equity", "values")
    )
    player = spot["player"]
    share, ev = equity["mean"][player], values["mean"][player]
    assert told[: len(spot["actions"])] == [f"{100 * one:.1f} %" for one in spot["frequencies"]]
    assert told[-4:-1] == [f"{spot['ranges'][player]['combos']:.1f}", f"{100 * share:.1f} %", f"{ev / 100:.2f}"]
    assert float(told[-1].removesuffix(" %")) == pytest.approx(100 * ev / (share * spot["pot_chips"]), abs=0.51)
    page.evaluate("document.querySelector('[data-row=As] button').click()")
    at("#line=r200c/cc/cc/&board=Kc7d2s4hAs")
    page.evaluate("[...document.querySelectorAll('#views button')].find((one) => one.textContent === 'Equity').click()")
    hands, won = spot["hands"], equity["equity"][player]
    aces = [(hands["shares"][player][k], won[k]) for k, cell in enumerate(hands["cells"]) if not cell]
    mean = sum(weight * one for weight, one in aces) / sum(weight for weight, _ in aces)
    assert float(page.evaluate("document.querySelector('#grid [data-class=AA] .figure').textContent")) == pytest.approx(
        100 * mean, abs=0.51
    )
    page.evaluate("document.querySelector('#views button').click()")
