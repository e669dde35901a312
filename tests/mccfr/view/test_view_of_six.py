"""The page for policies of three to six seats: spots, charts by position, table, drills, judgements.

Shows:

* A hand's share counts the cards of all other players (planted: test_shares_count_all_other_ranges)
* Six-handed tables follow the rules of dealing, button and payoffs (test_a_table_is_played_by_the_rules,
  test_the_button_moves_round_the_table)
* Drills of six seats deal all hands by their ranges (test_drills_begin_first_in_or_facing_a_raise,
  planted: test_hands_of_a_drill_are_dealt_by_all_ranges)
* A six-handed table is played in a browser, and axe finds no violation
  (test_a_six_handed_table_in_a_browser)
"""

import json
from collections import Counter

import numpy as np
import pytest
from acpc import solved_again
from browser import browsing, needs_browser, wait_for
from page_parts import check_the_layout, fix_the_deals, verdict_texts
from pages_server import ask, serving
from policies import write_random
from random_policy import policy
from refusals import refused
from test_page_table import finish

from abstraction.cards import combo_masks
from abstraction.hand_evaluator import board_strengths
from mccfr.config.game_tables import KuhnGame, Menu
from mccfr.games.betting import after_call, after_fold, payoffs
from mccfr.games.translation import actions_of
from mccfr.trees.street_amounts import whole_line
from mccfr.view import Spots, open_spots
from mccfr.view.drills import deal_hand, drills
from mccfr.view.expected_values import ExpectedValues, query_values
from mccfr.view.judgement import judge
from mccfr.view.page_table import PageTable
from mccfr.view.position_charts import position_chart

MENU = Menu(first=("1p",), later=("1p",), max_bets=2, limp="small_blind")
SEATS = {"menu": MENU, "flop_players": 2}
ROLES = ("SB", "BB", "UTG", "HJ", "CO", "BTN")
RIVER = "Kc7d2s4h9d"


@pytest.fixture(scope="module")
def six():
    return Spots(policy(seats=6, **SEATS), "six seats")


@pytest.fixture(scope="module")
def three():
    """Any number of players may see a flop."""
    return Spots(policy(seats=3, menu=MENU), "three seats")


def line_to_flop(spots, opener):
    """Return a line to the flop: a position opens, the big blind calls, all others fold."""
    place = next(one for one in position_chart(spots)["entries"] if one["role"] == opener)
    line = next(one["line"] for one in place["actions"] if one["kind"] == "raise")
    while spots.spot(line)["role"] != "BB":
        line += "f"
    return line + "c/"


def test_decisions_name_the_positions(six, three):
    assert six.roles == ROLES and three.roles == ("SB", "BB", "BTN")
    first = six.spot()
    assert (first["role"], first["pot_chips"], first["left"]) == ("UTG", 150, list(range(6)))
    assert [one["role"] for one in first["ranges"]] if first["ranges"] else True
    flop = six.spot(line_to_flop(six, "HJ"), RIVER[:6])
    assert flop["left"] == [1, 3] and flop["role"] == "BB"
    raised = next(one for one in flop["path"] if one["kind"] == "raise")
    assert (ROLES[raised["player"]], raised["name"]) == ("HJ", "Raise to 3.5 BB") and flop["pot_chips"] == 750
    assert flop["behind_chips"] == [19_950, 19_650, 20_000, 19_650, 20_000, 20_000]
    bet = next(one for one in flop["actions"] if one["kind"] == "raise")
    assert (bet["name"], bet["pot_share"]) == ("Bet 7.5 BB", 1)
    assert "for more than two players" in ExpectedValues(six).values(flop["line"], RIVER[:6])["note"]


def test_shares_count_all_other_ranges(six):
    """Compare with sums over pairs of hands: one factor for each other player, folded or not."""
    line, board = line_to_flop(six, "CO"), RIVER[:6]
    found, reach = six.spot(line, board), six.decision(line, board).reach
    live, masks = six.decision(line, board).live, combo_masks()
    disjoint = (masks[:, None] & masks[None]) == 0
    expected = reach[1] * np.prod([disjoint @ reach[other] for other in (0, 2, 3, 4, 5)], axis=0)
    assert found["hands"]["shares"][1] == pytest.approx((expected / expected.sum())[live], abs=1e-6)
    planted = reach[1] * (disjoint @ reach[4])  # of the opponent alone
    assert np.abs(np.array(found["hands"]["shares"][1]) - (planted / planted.sum())[live]).max() > 1e-5


def test_equities_are_those_of_the_two_remaining_players(six):
    line = line_to_flop(six, "CO") + "cc/cc/"
    found, at = six.equity(line, RIVER), six.decision(line, RIVER)
    assert [one is not None for one in found["mean"]] == [False, True, False, False, True, False]
    assert sum(one for one in found["mean"] if one is not None) == pytest.approx(1, abs=2e-6)
    strength, masks = np.array(board_strengths(at.board), np.int64), combo_masks()
    for place in range(0, len(at.live), 97):
        hand = at.live[place]
        other = np.where((masks & masks[hand]) == 0, at.reach[4], 0.0)
        won = (other * (strength[hand] > strength)).sum() + 0.5 * (other * (strength[hand] == strength)).sum()
        assert found["equity"][1][place] == pytest.approx(won / other.sum(), abs=1e-6)
    assert six.equity() == {"equity": None, "mean": None}


def test_more_than_two_players_see_a_flop(three):
    line = position_chart(three)["entries"][0]["actions"][1]["line"] + "cc/"
    found = three.spot(line, RIVER[:6])
    assert (found["left"], found["role"], found["pot_chips"]) == ([0, 1, 2], "SB", 1050)
    assert three.equity(line, RIVER[:6]) == {"equity": None, "mean": None}
    assert len(found["ranges"]) == 3 and sum(found["frequencies"]) == pytest.approx(1, abs=1e-5)


def test_queries_refuse_evs(three):
    refused("the EV of hands is for two players", query_values, three.source, "", None, None)


def test_charts_have_each_position(six):
    first = position_chart(six)["entries"]
    assert [one["role"] for one in first] == ["UTG", "HJ", "CO", "BTN", "SB"]
    assert [one["line"] for one in first] == ["", "f", "ff", "fff", "ffff"]
    opened = first[2]["actions"][1]["line"]
    facing = position_chart(six, opened)["entries"]
    assert [one["role"] for one in facing] == ["BTN", "SB", "BB"]
    for one in (*first, *facing):
        there = six.spot(one["line"])
        assert one["probabilities"] == there["classes"]["probabilities"] and len(one["probabilities"]) == 169
        assert sum(one["frequencies"]) == pytest.approx(1, abs=1e-5)
    assert [one["role"] for one in position_chart(six, "ffffc")["entries"]] == ["BB"]


def test_small_games_have_no_charts(tmp_path):
    kuhn = open_spots(write_random(tmp_path / "kuhn", KuhnGame()))
    refused("charts by position are for hold'em", position_chart, kuhn)


def test_decisions_are_judged_by_frequencies(six):
    """An action that the strategy takes less than 5 % of the time is "rare"."""
    hands, values = six.spot("f")["hands"], ExpectedValues(six)
    verdicts = Counter()
    for name, row, trained in list(zip(hands["names"], hands["probabilities"], hands["trained"], strict=True))[::29]:
        for one, share in zip(six.spot("f")["actions"], row, strict=True):
            found = judge(six, values, "f", "", name, one["action"])
            assert found["cost_chips"] is None
            assert found["verdict"] == (("rare" if share < 0.05 else "fine") if trained else None)
            verdicts[found["verdict"]] += 1
            if trained:
                assert f"{100 * share:.1f} %" in found["sentences"][0]
                assert [each["frequency"] for each in found["actions"]] == pytest.approx(row, abs=1e-4)
    assert verdicts["fine"]


@pytest.mark.parametrize("seats", [3, 6])
def test_a_table_is_played_by_the_rules(seats):
    """Compare chips and shown cards of each hand with the rules; the user folds, calls or raises.

    The tree lacks calls of a raise by players other than the big blind, so the policy translates them.
    """
    spots = Spots(policy(seats=seats, **SEATS), "seats")
    table, rules, won = PageTable(spots), spots.source.game.real_rules, 0.0
    state, ends, callers = table.sit(seed=4), set(), set()
    for number in range(24):
        choice = number // seats % 3
        seen = finish(table, state, lambda now: now["actions"][min(choice, len(now["actions"]) - 1)]["action"])  # noqa: B023
        deal, end = spots.dealing.deal(4, number), seen[-1]
        betting, last, at = spots.betting, None, spots.betting.start()[0]
        for action in actions_of(whole_line(end["line"], spots.start)):
            last = at, action
            at = betting.apply(at, action)
        final = after_fold(last[0]) if last[1] == "f" else after_call(rules, last[0])
        strength = board_strengths(deal.boards[-1])[list(deal.hands)].tolist()
        expected = payoffs(rules, final, strength)
        assert end["result"]["won_by_position"] == pytest.approx(expected) and sum(expected) == pytest.approx(0)
        won += expected[end["position"]]
        assert (end["won_chips"], end["played"]) == (pytest.approx(won), number + 1)
        left = [one for one in range(seats) if not final.seats.folded >> one & 1]
        assert end["left"] == left and end["pot_chips"] == sum(final.put_in)
        texts = [spots.dealing.hand_text(hand) for hand in deal.hands]
        shown = [text if len(left) > 1 and one in left else None for one, text in enumerate(texts)]
        assert end["result"]["shown"] == shown
        for now in seen:
            for one, text in enumerate(texts):
                hidden = one != now["position"] and (now["result"] is None or shown[one] is None)
                assert not (hidden and f'"{text}"' in json.dumps(now))
        ends.add((len(left) > 1, end["position"] in left))
        callers |= {one["player"] for one in end["log"] if one["kind"] == "call" and not one["street"]}
        state = table.deal(number)
    assert {(True, True), (False, False)} <= ends, "showdowns with the user, and hands that go on after the user's fold"
    assert callers - {0, 1}, "calls that the tree lacks"


def test_the_button_moves_round_the_table(six):
    """The user posts the big blind first, then the small one, and has the button in the third hand."""
    table, positions = PageTable(six), []
    state = table.sit(seed=1)
    for number in range(7):
        positions.append(ROLES[state["position"]])
        finish(table, state, lambda now: now["actions"][0]["action"])
        state = table.deal(number)
    assert positions == ["BB", "SB", "BTN", "CO", "HJ", "UTG", "BB"]


def test_the_strategy_re_solves_once_two_players_are_left(three, monkeypatch):
    """The user calls to the end; rivers with one opponent are solved."""
    solved, table = solved_again(monkeypatch), PageTable(three)
    state = table.sit("river:unsafe:2", seed=1)
    for number in range(12):
        seen = finish(table, state, lambda now: next(one["action"] for one in now["actions"] if one["kind"] != "fold"))
        assert sum(seen[-1]["result"]["won_by_position"]) == pytest.approx(0)
        state = table.deal(number)
    assert len(solved) > 2 and {left for left, _ in solved} == {2}


def test_drills_begin_first_in_or_facing_a_raise(six, three):
    names = {one["line"]: one["name"] for one in drills(six)}
    assert names["first-in UTG"] == "UTG, first in" and names["facing-raise"] == "Any position, facing a raise"
    assert [one for one in ROLES if f"first-in {one}" not in names] == ["BB"]
    assert [one for one in ROLES if f"facing-raise {one}" not in names] == ["UTG"]
    for spots, count in ((six, 6), (three, 3)):
        for kind in ("first-in", "facing-raise"):
            seen, table = set(), PageTable(spots)
            state = table.sit(seed=3, line=kind)
            for number in range(25):
                seen.add(spots.roles[state["position"]])
                raises = [one for one in state["log"][: state["opened"]] if one["kind"] == "raise"]
                assert len(raises) == (kind == "facing-raise") and state["actions"]
                assert {one["kind"] for one in state["log"][: state["opened"]]} <= {"fold", "raise"}
                state = table.deal(finish(table, state, lambda now: now["actions"][0]["action"])[-1]["hand"])
                assert state["played"] == number + 1
            assert len(seen) == count - 1
        assert PageTable(spots).sit(seed=1, line="facing-raise BB")["position"] == 1
    refused("'UTG' has no decision facing a raise", PageTable(six).sit, seed=1, line="facing-raise UTG")


def test_hands_of_a_drill_are_dealt_by_all_ranges(six):
    """Buckets of folded hands have the frequencies of the strategy's folds; no card is dealt twice."""
    line, counts, masks = "ff", np.zeros(5), combo_masks()
    rows = six.dealing.bucket_row(0, 2, ())
    for number in range(200):
        hands = deal_hand(six, line, 1, number).deal.hands
        assert np.bitwise_or.reduce(masks[list(hands)]).bit_count() == 12
        counts[rows[hands[2]]] += 1
    reach = np.bincount(rows, six.decision(line, "").reach[2], 5)
    expected, all_hands = (one / one.sum() for one in (reach, np.bincount(rows, minlength=5)))
    error, planted = (((counts / 200 - one) ** 2).sum() for one in (expected, all_hands))
    assert error < 0.3 * planted, "planted: folded hands dealt without their range"


@needs_browser
def test_spots_of_three_seats_in_a_browser(three):
    """Charts lead to their decisions; two players on a flop have equities, and no EV."""
    with serving(three) as server, browsing() as page:
        page.goto(f"{server.url}#positions")
        wait_for(page, "document.body && document.querySelectorAll('.position').length === 2")
        check_the_layout(page)
        page.locator("#opener").select_option(index=1)
        wait_for(
            page, "[...document.querySelectorAll('.position h2')].map((one) => one.textContent).join() === 'SB,BB'"
        )
        page.locator(".position").nth(1).click()
        wait_for(page, "document.body.dataset.complete === location.hash")
        assert page.locator("#who").text_content() == "BB to act"
        assert page.locator("#path .step small").all_text_contents() == ["BTN ", "SB "]
        frequencies = json.loads(ask(server, f"/api/spot?{page.evaluate('location.hash')[1:]}")[2])["frequencies"]
        told = page.locator("#actions .share").all_text_contents()
        assert told == [f"{100 * one:.1f} %" for one in frequencies]
        page.keyboard.press("c")
        page.locator("#picker").wait_for()
        for key in RIVER[:6]:
            page.keyboard.press(key)
        wait_for(page, "document.body.dataset.complete === location.hash && location.hash.includes('board')")
        assert page.locator("#ranges .range").count() == 2 and page.locator("#ranges").inner_text().count("equity") == 2
        assert "EVs of hands are not computed" in page.locator("#worth").text_content()
        assert page.locator("#change").count() and not page.locator("#solve").count()
        assert "EV" not in page.locator("#hands thead").inner_text().split()
        for name in ("Equity graph", "Classes", "Hands"):
            page.click(f"#lists >> text={name}")
        check_the_layout(page)
        at = page.evaluate("location.hash")[1:]
        texts = [one["text"] for one in json.loads(ask(server, f"/api/spot?{at}")[2])["ranges"]]
        page.click("#change")
        wait_for(page, "document.getElementById('spot-pot')?.value === '750'")
        assert [page.locator(f"#spot-{side}").input_value() for side in ("oop", "ip")] == texts[1:]
        page.goto(f"{server.url}#line=b350cc/&board={RIVER[:6]}")
        wait_for(page, "document.body.dataset.complete === location.hash")
        assert page.locator("#ranges .range").count() == 3 and "equity" not in page.locator("#ranges").inner_text()
        assert "once two players are left" in page.locator("#solve-state").text_content()
        assert page.locator("#lists button").all_text_contents() == ["Hands", "Classes", "Blockers"]
        spot = json.loads(ask(server, f"/api/spot?line=b350cc/&board={RIVER[:6]}")[2])
        bet = next(action["line"] for action in spot["actions"] if "b" in action["line"].rpartition("/")[2])
        page.goto(f"{server.url}#line={bet}f&board={RIVER[:6]}")
        wait_for(page, "document.body.dataset.complete === location.hash")
        assert page.locator("#ranges .range").count() == 2 and not page.locator("#change").count()  # began with three


@needs_browser
def test_a_six_handed_table_in_a_browser(six, monkeypatch):
    fix_the_deals(monkeypatch)
    with serving(six) as server, browsing() as page:
        page.goto(f"{server.url}#play")
        wait_for(page, "document.body && !!document.querySelector('[data-play]')")
        assert page.locator("#seat-theirs .seat").count() == 5 and page.locator("#seat-mine .card").count() == 2
        roles = page.locator(".seat").evaluate_all("(seats) => seats.map((one) => one.dataset.seat)")
        assert sorted(roles) == sorted(ROLES) and roles[-1] == "BB"
        page.locator("#train-on").check()
        while not page.locator("#play-result").text_content():
            wait_for(page, "!document.getElementById('play').classList.contains('busy')")
            page.keyboard.press("c")
        told = verdict_texts(page)
        assert told and all("Frequency of this action" in one or "never reach this decision" in one for one in told)
        assert "as the strategy plays" in page.locator("#train-score").text_content()
        log = page.locator("#play-log small").all_text_contents()
        assert {one.strip() for one in log} <= {"You", *ROLES} and len(log) >= 6
        assert page.locator(".seat.folded").count() == len(page.locator("#play-log .fold").all())
        check_the_layout(page)
        page.locator("#play-log a").last.click()
        wait_for(page, "document.body.dataset.complete === location.hash")
        page.keyboard.press("p")
        page.locator("#train-drill").select_option(label="BTN, first in")
        wait_for(page, "document.querySelectorAll('#play-log .fold').length === 3")
        assert page.locator("#seat-mine .seat").get_attribute("data-seat") == "BTN"
