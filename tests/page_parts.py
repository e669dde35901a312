"""Checks of parts of the page in a browser: lists of hands, the trainer, reviews, next cards, layout."""

import json
import re
from types import SimpleNamespace

import pytest
from browser import check_accessible, wait_for
from pages_server import ask
from random_policy import policy

from mccfr.matches.review.hand_review import NO_COST


def write_review(path):
    """Write a review with four decisions, one of them without a cost."""

    def decision(street, line, board, hand, action, best, cost, player="Ada", ci95=None):
        link = f"#line={line}" + (f"&board={board}" if board else "")
        return {
            **{"player": player, "position": "BB", "street": street, "line": line, "board": board},
            **{"hand": hand, "action": action, "did": action, "best": best, "cost_bb": cost, "ci95_bb": ci95},
            **{"taken_for": "", "probability": 0.25, "pot": "raised", "how": "in the tree", "link": link},
            **{"cost": cost and cost / 2, "other": None, "frequencies": {action: 0.25}, "note": ""},
        }

    river = "b200c/cc/cc/b200"
    hands = [
        [decision("preflop", "b200", "", "7h2c", "call 1 BB", "fold", 0.4, ci95=[0.1, 0.7])],
        [
            decision("river", river, "Kc7d2s4h9d", "AdAs", "fold", "call 2 BB", 3.1),
            decision("preflop", "", "", "KdKs", "call 0.5 BB", "call 0.5 BB", -0.2, "<i>Bob", [-0.5, 0.1]),
            {**decision("preflop", "b200", "", "8h3c", "fold", "", None), "note": NO_COST},
        ],
    ]
    head = {"boards": 4, "hands": "", "policies": {"mine": policy().side().fingerprint()}, "resolve": None}
    told = {"names": ["Ada", "<i>Bob"], "unknown": 0, "won_bb": None, "aivat_bb": None, "policy": "mine", "ended": ""}
    told |= {"distance": "stack 180 for 200", "currency": "$", "tournament": False}
    lines = [json.dumps([n, {**told, "where": f"log, line {n}", "decisions": rows}]) for n, rows in enumerate(hands)]
    path.write_text("\n".join(["# mccfr review " + json.dumps(head), *lines, '[2, {"where"']))
    return path


def check_the_review(page, at):
    """Check order, grid, line and hand of reviewed decisions, the filters, and the link back."""
    rows = "[...document.querySelectorAll('.review-row')].map((one) => one.dataset.place).join()"
    page.evaluate("document.getElementById('tab-review').click()")
    at("#line=b200c/cc/cc/b200&board=Kc7d2s4h9d&review=0")
    assert page.evaluate(rows) == "0,1,2,3"
    assert page.locator("#hands-title").text_content() == "AA"
    assert page.locator("#hands tr[aria-current] .hand").first.text_content() == "A♠A♦"
    told = page.locator("#review-told").text_content()
    assert told.startswith(
        "Ada, BB, raised pot: fold with AdAs (the strategy: 25.0 %) costs 3.10 BB ($1.55); the best is call 2 BB."
    ), told
    assert page.evaluate("document.getElementById('tab-look').hasAttribute('aria-current')") is False
    check_the_layout(page)
    page.evaluate("document.querySelector('[data-place=\"1\"]').click()")
    at("#line=b200&review=1")
    assert "about 0.40 BB ($0.20), 95 %: 0.10 to 0.70 BB" in page.locator("#review-told").text_content()
    page.evaluate("document.querySelector('[data-place=\"3\"]').click()")
    at("#line=b200&review=3")
    told = page.locator("#review-told").text_content()
    assert "(the strategy: 25.0 %) has no cost; fold 25%. By mine" in told and NO_COST in told, told
    page.evaluate("document.querySelector('[data-place=\"1\"]').click()")
    at("#line=b200&review=1")
    for name, value, left in (("street", "river", "0"), ("street", "", "0,1,2,3"), ("player", "<i>Bob", "2")):
        chosen = f"document.getElementById('review-{name}')"
        page.evaluate(f"{chosen}.value = {json.dumps(value)}, {chosen}.dispatchEvent(new Event('change'))")
        wait_for(page, f"{rows} === '{left}'")
    page.evaluate("document.getElementById('tab-look').click()")
    at("#line=b200")
    assert page.evaluate("!document.getElementById('review')")


def check_the_cards(page, at, server):
    """Check the list of next cards: each row equals the spot with this card, and a click opens it."""
    page.evaluate("location.hash = '#line=b200c/cc/cc/&board=Kc7d2s4h'")
    wait_for(page, "document.querySelectorAll('.card-row').length > 3 && !document.querySelector('#left')")
    cells = "[...document.querySelector('[data-row=As]').cells].map((one) => one.innerText)"
    wait_for(page, f"!{cells}.includes('–')")  # EVs arrive last
    card, _, *told = page.evaluate(cells)
    wait_for(page, "document.querySelectorAll('.card-row').length === 48")
    assert "Equity is highest on " in page.locator("#card-chart").get_attribute("aria-label")
    check_the_layout(page)
    assert card == "A♠"
    spot, equity, values = (
        json.loads(ask(server, f"/api/{what}?line=b200c/cc/cc/&board=Kc7d2s4hAs")[2])
        for what in ("spot", "equity", "values")
    )
    player = spot["player"]
    share, ev = equity["mean"][player], values["mean"][player]
    assert told[: len(spot["actions"])] == [f"{100 * one:.1f} %" for one in spot["frequencies"]]
    assert told[-4:-1] == [f"{spot['ranges'][player]['combos']:.1f}", f"{100 * share:.1f} %", f"{ev / 100:.2f}"]
    assert float(told[-1].removesuffix(" %")) == pytest.approx(100 * ev / (share * spot["pot_chips"]), abs=0.51)
    page.evaluate("document.querySelector('[data-row=As] button').click()")
    at("#line=b200c/cc/cc/&board=Kc7d2s4hAs")
    page.evaluate("[...document.querySelectorAll('#views button')].find((one) => one.textContent === 'Equity').click()")
    hands, won = spot["hands"], equity["equity"][player]
    aces = [(hands["shares"][player][k], won[k]) for k, cell in enumerate(hands["cells"]) if not cell]
    mean = sum(weight * one for weight, one in aces) / sum(weight for weight, _ in aces)
    shown = page.locator("#grid [data-class=AA] .figure").first.text_content()
    assert float(shown) == pytest.approx(100 * mean, abs=0.51)
    page.evaluate("document.querySelector('#views button').click()")


ROWS = "[...document.querySelectorAll('#hands tbody tr')].map((row) => [...row.cells].map((one) => one.innerText))"


def compare_with(page, which):
    choice = "document.getElementById('beside')"
    page.evaluate(f"{choice}.value = '{which}', {choice}.dispatchEvent(new Event('change'))")
    wait_for(page, f"!document.getElementById('grid-beside') === {str(not which).lower()}")


def check_the_list_of_hands(page, there, worth):
    """Check order, sorting by columns, and each action's frequency, combos and EV."""
    compare_with(page, "")
    page.keyboard.press("a")
    wait_for(page, "!!document.querySelector('#hands td small')")
    hands, player = there["hands"], there["player"]
    mixed = [max(row) < 0.95 for row in hands["probabilities"]]
    order = sorted(range(len(mixed)), key=lambda k: (not mixed[k], -hands["shares"][player][k], -k))
    suits = str.maketrans("♣♦♥♠", "cdhs")
    assert [row[0].translate(suits) for row in page.evaluate(ROWS)[:40]] == [hands["names"][k] for k in order[:40]]
    first = order[0]
    for action, one in enumerate(there["actions"]):
        share, value = hands["probabilities"][first][action], worth["actions"][first][action]
        assert page.evaluate(ROWS)[0][2 + action] == f"{100 * share:.1f} %\n{value / 100 + 0:.2f}"
        combos = sum(p[action] * r for p, r in zip(hands["probabilities"], hands["reach"][player], strict=True))
        told = page.evaluate(f"document.querySelector('[data-action={one['action']}]').innerText")
        assert f"{combos:,.1f}".removesuffix(".0") + " combos" in told
    head = "[...document.querySelectorAll('#hands th button')].find((one) => one.textContent === 'equity')"
    for sign in (-1, 1):
        page.evaluate(f"{head}.click()")
        found = [float(row[-3].removesuffix(" %")) for row in page.evaluate(ROWS) if row[-3] != "–"]
        assert found == sorted(found, key=lambda x: sign * x) and len(set(found)) > 10
    page.evaluate(f"{head}.click()")
    assert page.evaluate(ROWS)[0][0].translate(suits) == hands["names"][first]
    check_the_filters(page, hands, there["player"])
    compare_with(page, "1")


def check_the_filters(page, hands, player):
    """Filter by made hands; the list states their share of the range."""
    choices = "[...document.querySelectorAll('#only-made option')].map((one) => one.value)"
    assert set(page.evaluate(choices)) == {"", *hands["made"]}
    assert not page.locator("#only-draws").count()
    choose = "document.getElementById('only-made').value = '{}', drawn = new Event('change')"
    for kind in ("set", ""):
        page.evaluate(choose.format(kind) + ", document.getElementById('only-made').dispatchEvent(drawn)")
        there = [place for place, made in enumerate(hands["made"]) if kind in ("", made)]
        assert len(page.evaluate(ROWS)) == len(there)
        share = sum(hands["shares"][player][place] for place in there)
        assert f"{100 * share:.1f} % of the range" in page.locator("#listed").text_content()


def check_the_ev_of_classes(page, hands, values, player):
    """Check that each cell of the EV grid has its hands' mean by share, in big blinds."""
    wait_for(page, "document.querySelector('#views button:last-child').textContent === 'EV'")
    page.evaluate("document.querySelector('#views button:last-child').click()")
    for cell, name in ((0, "AA"), (3, "AJs"), (14, "KK")):
        held = [(hands["shares"][player][k], values[k]) for k, at in enumerate(hands["cells"]) if at == cell]
        mean = sum(share * (value or 0) for share, value in held) / sum(share for share, _ in held) / 100
        shown = page.locator(f"#grid [data-class={name}] .figure").first.text_content()
        assert float(shown) == pytest.approx(mean, abs=0.01 if abs(mean) < 10 else 0.1)


def check_the_layout(page):
    """Check for horizontal scrolling and axe's violations: 390 pixels wide and dark, 1,400 and light."""
    for width, scheme in ((390, "dark"), (1400, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        sideways = "[...document.querySelectorAll('html, #hands')].filter((one) => one.scrollWidth > one.clientWidth)"
        wait_for(page, f"{sideways}.length === 0")  # charts take the new width a moment later
        page.emulate_media(color_scheme=scheme)
        check_accessible(page)


def check_the_lists(page, there, worth, equity):
    """Compare classes of hands, blockers and the equity graph with the spot's hands."""
    hands, player = there["hands"], there["player"]
    shares, reach = hands["shares"][player], hands["reach"][player]

    def cells(row):
        return [one.strip() for one in page.locator(f'#hands [data-row="{row}"] td').all_inner_texts()]

    def mix(places, weight):
        total = sum(weight[k] for k in places)
        return [
            sum(weight[k] * hands["probabilities"][k][a] for k in places) / total for a in range(len(there["actions"]))
        ]

    page.click("#lists >> text=Classes")
    places = [k for k, made in enumerate(hands["made"]) if made == "top pair"]
    assert cells("top pair")[2:-4] == [f"{100 * share:.1f} %" for share in mix(places, shares)]
    held = sum(shares[k] for k in places)
    mean = sum(shares[k] * worth["hands"][player][k] for k in places if shares[k]) / held / 100
    assert cells("top pair")[-4] == f"{100 * held:.1f} %"
    assert float(cells("top pair")[-1]) == pytest.approx(mean, abs=0.006)
    check_the_layout(page)
    page.click("#lists >> text=Blockers")
    every = range(len(reach))
    left = [k for k in every if "As" not in (hands["names"][k][:2], hands["names"][k][2:])]
    changes = [100 * (one - all_) for one, all_ in zip(mix(left, reach), mix(every, reach), strict=True)]
    assert [float(one) for one in cells("As")[1:-1]] == pytest.approx(changes, abs=0.006)
    gone = 1 - sum(reach[k] for k in left) / sum(reach)
    assert cells("As")[-1] == f"{100 * gone:.1f} %"
    page.click("#lists >> text=Equity graph")
    own = sorted((equity["equity"][player][k], shares[k]) for k in every if shares[k] > 0)
    half = next(share for k, (share, _) in enumerate(own) if sum(weight for _, weight in own[: k + 1]) >= 0.5)
    label = page.locator("#equity-graph").get_attribute("aria-label")
    assert f"{there['role']}: half the range has {100 * half:.1f} % or less" in label
    check_the_layout(page)
    page.click("#lists >> text=Hands")


def fix_the_deals(monkeypatch):
    """Give each session at the table the same seed, with a decision of the user in the first hand."""
    monkeypatch.setattr("mccfr.view.page_table.secrets", SimpleNamespace(randbits=lambda _: 5))


def verdict_texts(page):
    """Return the verdict texts of the hand's decisions, once all are there."""
    told = "[...document.querySelectorAll('#train-told p')].map((one) => one.textContent)"
    found = wait_for(page, f"(found => found.length && found.every((one) => one.endsWith('.')) && found)({told})")
    assert all(one.startswith("You: ") for one in found)
    return found


def check_the_trainer(page):
    """Judge each decision, replay the costliest, and drill a spot."""
    session = "play-session"
    page.evaluate("document.getElementById('train-on').click()")
    found, own = verdict_texts(page), page.locator("#play-log small", has_text="You").count()
    assert len(found) == own and all("; the strategy: " in one for one in found)
    priced = own - page.locator("#train-told .quiet").count()  # decisions that the strategy never reaches have no cost
    score = page.locator("#train-score").text_content()
    assert score.startswith(f"{priced} decision") if priced else not score
    if priced:
        assert priced == int(re.search(r": (\d+) decision", page.locator("#train-days").text_content())[1])
    if page.locator("#train-again button").count():  # depends on the table's seed
        kept = page.locator("#train-again button").all_text_contents()
        page.locator("#train-again button").first.click()
        wait_for(page, "!document.getElementById('play-result').textContent")
        assert page.locator("#play-session").text_content().startswith("Hand 1 · 1 played")
        page.reload()
        page.locator("#train-again button").first.wait_for()
        assert page.locator("#train-again button").all_text_contents() == kept
        page.locator("#train-on").click()
    page.evaluate("document.getElementById('train-on').click()")
    list_ = "document.getElementById('train-drill')"
    drilled = page.evaluate(f"[...{list_}.options].find((one) => one.textContent.includes('facing a 3-bet')).value")
    page.evaluate(f"{list_}.value = {json.dumps(drilled)}; {list_}.dispatchEvent(new Event('change'))")
    wait_for(page, f"document.getElementById('{session}').textContent.startsWith('Hand 1 · 0 played')")
    assert page.locator("#play-log .step").count() == drilled.count("b") + drilled.count("c")
    while page.evaluate("!document.getElementById('play-result').textContent"):
        wait_for(page, "!document.getElementById('play').classList.contains('busy')")
        page.keyboard.press("c")
