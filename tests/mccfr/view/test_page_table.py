"""The table in the page: hands of the session, repeated requests, hidden cards.

Shows:

* The page shows the opponent's cards at showdown only (test_the_opponents_cards_are_shown_only_at_showdown)
* A decision's cost is the best action's EV minus its own (test_a_decisions_cost_is_the_best_actions_ev_minus_its_own)
* An action costs nothing only if the strategy takes it and its EV is certain
  (test_a_call_is_not_free_if_the_strategy_folds)
"""

import json

import numpy as np
import pytest
from naive import paid
from policies import write_random
from random_policy import policy
from refusals import refused

from abstraction.boards import preflop_classes
from abstraction.cards import combo_index, parse_cards
from mccfr.config.game_tables import KuhnGame
from mccfr.config.toml_files import config_from
from mccfr.evaluation.decision_values import DecisionValues
from mccfr.games.registry import build_game
from mccfr.play.preflop_equity import preflop_equities
from mccfr.trees.betting_lines import find_node
from mccfr.trees.street_amounts import whole_line
from mccfr.view import Spots, StrategyList, open_spots
from mccfr.view.expected_values import ExpectedValues
from mccfr.view.judgement import judge
from mccfr.view.page_table import PageTable


def finish(table, state, choose):
    """Play a hand to its end; return each of its states."""
    seen = [state]
    while state["result"] is None:
        state = table.act(state["hand"], state["line"], choose(state))
        seen.append(state)
    return seen


def folding(state):
    """Fold if that is legal, otherwise check or call."""
    return "f" if state["actions"][0]["action"] == "f" else "c"


def test_the_opponents_cards_are_shown_only_at_showdown():
    spots = Spots(policy(), "random")
    table, ends = PageTable(spots), set()
    assert table.state() == {"hand": None}
    state, won = table.sit(seed=2), 0.0
    for number in range(12):
        seen = finish(table, state, folding if number % 4 == 3 else lambda now: "c")
        dealt = spots.dealing.deal(2, number)
        position = (number + 1) % 2
        own, other = (spots.dealing.hand_text(dealt.hands[each]) for each in (position, 1 - position))
        for state in seen:
            assert (state["position"], state["cards"]) == (position, own)
            both = [spots.dealing.hand_text(hand) for hand in dealt.hands]
            shown = state["result"] is not None and state["result"]["shown"] == both
            assert shown or state["result"] is None or state["result"]["shown"] == [None, None]
            assert (f'"{other}"' in json.dumps(state)) == shown
            if state["actions"]:  # the board of the street, and no card more
                street = state["line"].count("/")
                assert state["board"] == spots.dealing.board_text(street, dealt.boards[street])
        won += state["result"]["won_chips"]
        assert state["won_chips"] == pytest.approx(won) and state["played"] == number + 1
        if state["line"].endswith("f"):
            folder = spots.betting.read(whole_line(state["line"][:-1], spots.start))[0].player
            assert (state["result"]["won_chips"] > 0) == (folder != position)
        ends.add(shown)
        state = table.deal(number)
    assert ends == {True, False}


def test_a_repeated_request_has_no_second_effect():
    table = PageTable(Spots(policy(), "random"))
    first = table.sit(seed=5)
    after = table.act(first["hand"], first["line"], "c")
    assert table.act(first["hand"], first["line"], "c") == after == table.state() == table.deal(first["hand"] + 3)
    refused("a bet must put in 100 to 19900 chips on this street", table.act, after["hand"], after["line"], "b1")
    for action in ("", "cc"):
        refused("give one action", table.act, after["hand"], after["line"], action)
    over = finish(table, after, lambda now: "c")[-1]
    assert table.act(over["hand"], over["line"], "c") == over
    following = table.deal(over["hand"])
    assert following["hand"] == over["hand"] + 1 and table.deal(over["hand"]) == following


def test_preflop_equities_equal_published_values():
    """Compare with published tables to four digits: against any two cards, and for two pairs of classes."""
    table, classes = preflop_equities(), preflop_classes()
    assert table.shape == (169, 169) and abs(table + table.T - 1).max() < 1e-6
    found = Spots(policy(), "random")
    equity = dict(zip(found.spot("")["hands"]["names"], found.equity("")["equity"][0], strict=True))
    for hand, known in (("AsAh", 0.8520), ("7s2h", 0.3458), ("3s2h", 0.3230), ("AsKs", 0.6704)):
        assert equity[hand] == pytest.approx(known, abs=6e-5), hand
    number = {name: classes[combo_index(*parse_cards(name))] for name in ("AsAh", "KsKh", "AsKs", "QsQh")}
    assert table[number["AsAh"], number["KsKh"]] == pytest.approx(0.8195, abs=1e-4)
    assert table[number["AsKs"], number["QsQh"]] == pytest.approx(0.4605, abs=1e-3)


def test_compared_strategies_need_the_same_game(tmp_path):
    kuhn = open_spots(write_random(tmp_path / "kuhn", KuhnGame()))
    holdem = Spots(policy(), "random")
    shelf = StrategyList([("one", lambda: holdem), ("two", lambda: kuhn), ("three", lambda: Spots(policy(), "random"))])
    assert shelf.shown(2).spots.spot("b200") == holdem.spot("b200") and shelf.shown(2) is shelf.shown(2)
    refused("game", shelf.shown, 1)
    refused("there are strategies 0 to 2", shelf.shown, 3)


def test_a_decisions_cost_is_the_best_actions_ev_minus_its_own():
    """Exact on the river; the cost of a bet outside of the tree is unknown."""
    spots, line, board = Spots(policy(), "random"), "b200c/cc/cc/b200", "Kc7d2s4h9d"
    worth, there = ExpectedValues(spots), spots.spot(line, board)
    hand = there["hands"]["names"].index("KhQd")
    each = worth.values(line, board)["actions"][hand]
    values = {one["action"]: value for one, value in zip(there["actions"], each, strict=True)}
    best = max(values, key=values.get)
    for action, value in values.items():
        found = judge(spots, worth, line, board, "KhQd", action)
        assert found["exact"] and found["best"] == best and found["within_chips"] == 0
        assert found["cost_chips"] == pytest.approx(values[best] - value, abs=2e-4)
        assert [one["ev_chips"] for one in found["actions"]] == pytest.approx(each, abs=2e-4)
        mean = sum(one["frequency"] * one["ev_chips"] for one in found["actions"])
        assert found["own_loss_chips"] == pytest.approx(values[best] - mean, abs=3)
        assert found["verdict"] == ("costly" if value < values[best] else "fine")
        assert any("The strategy's own play loses" in one for one in found["sentences"])
    assert judge(spots, worth, line, board, "KhQd", "b1234")["cost_chips"] is None
    refused("cannot be held here", judge, spots, worth, line, board, "KcQd", "c")


def test_hands_outside_of_the_strategys_range_have_evs():
    """A user may reach a decision that the strategy never reaches with this hand.

    The opponent's range is known there, so the hand has EVs."""
    spots, line, board = Spots(policy(), "random"), "b200c/cc/cc/b200", "Kc7d2s4h9d"
    there, worth = spots.spot(line, board), ExpectedValues(spots)
    away = next(n for n, reach in enumerate(there["hands"]["reach"][there["player"]]) if reach == 0)
    hand = there["hands"]["names"][away]
    found = judge(spots, worth, line, board, hand, "c")
    assert worth.values(line, board)["actions"][away] == [None] * len(there["actions"])
    assert found["cost_chips"] is not None and len(found["actions"]) == len(there["actions"])
    equity = spots.equity(line, board)["equity"][there["player"]][away]
    call = next(one for one in found["actions"] if one["action"] == "c")
    shown_down = (there["pot_chips"] + 200) * equity - 200
    assert call["ev_chips"] == pytest.approx(shown_down, abs=0.1)


def judge_fixed(ev, played, within, place):
    """Return the judgement of action `place` on fixed values of one hand."""
    spots, (ev, played, within) = Spots(policy(), "random"), (np.array(one) for one in (ev, played, within))
    found, hand = ExpectedValues(spots), spots.dealing.find_hands("AsAd")[0]
    values = np.full((3, 2, 1326), 1.0)
    values[:, :, hand] = np.stack([ev, played, within])
    errors = np.stack([values[2], -values[2]]) / np.sqrt(2)
    fixed = DecisionValues(0, np.ones((2, 1326)), values[1], values[0], values[0], errors, errors, 2)
    found._kept["b20000", "", None] = fixed
    return judge(spots, found, "b20000", "", "AsAd", ("f", "c")[place])


def test_a_call_is_not_free_if_the_strategy_folds():
    """A call of equal EV is "unclear" if the strategy rarely calls, or if the EV is uncertain."""
    rare = judge_fixed([0.0, 0.0], [0.99, 0.01], [0.0, 0.0], 1)
    assert rare["verdict"] == "unclear" and "It costs nothing." not in rare["sentences"]
    assert "the strategy takes it 1.0 % of the time" in rare["sentences"][0]
    rough = judge_fixed([0.0, -20.0], [0.5, 0.5], [0.0, 400.0], 1)
    assert rough["verdict"] == "unclear" and "too uncertain" in rough["sentences"][0] and "±" in rough["sentences"][0]
    mixed = judge_fixed([0.0, 0.0], [0.5, 0.5], [0.0, 0.0], 1)
    assert mixed["verdict"] == "fine" and mixed["indifferent"] and mixed["sentences"][0] == "It costs nothing."
    wrong = judge_fixed([0.0, 900.0], [0.99, 0.01], [0.0, 0.0], 0)
    assert wrong["verdict"] == "costly" and "own play loses 8.91 BB" in " ".join(wrong["sentences"])


RANGES = {"oop": "AhAd,QhQd,5s4s", "ip": "AcAs,KcKd"}
RAKED = {"name": "holdem-subgame", "board": "QsJh2h7c3d", "ranges": RANGES, "pot": 60, "effective_stack": 90}
RAKED |= {"rake": "5%", "rake_cap": 4, "menu": {"first": ["1p"], "later": ["allin"]}}


def test_hands_pay_the_rake_that_the_solver_counts(tmp_path):
    """Compare won, lost and shared showdowns, and folds, with naive payoffs."""
    game = build_game(config_from({"game": RAKED}, "test").game, None)
    write_random(tmp_path / "raked", config_from({"game": RAKED}, "test").game)
    table, seen = PageTable(open_spots(tmp_path / "raked")), set()
    for seed in range(60):
        end = finish(table, table.sit(seed=seed), lambda now: now["actions"][seed % len(now["actions"])]["action"])[-1]  # noqa: B023
        hands = table._spots.dealing.deal(seed, 0).hands
        node = find_node(game.tree, whole_line(end["line"], table._spots.start))
        expected = paid_at(game, node, hands, end["position"])
        assert end["result"]["won_chips"] == pytest.approx(expected, abs=1e-9)
        assert end["won_chips"] == end["result"]["won_chips"]
        seen.add(round(expected, 3))
    assert {27.0, -30.0, -1.5} <= seen and len(seen) > 6


def paid_at(game, node, hands, player):
    """Return a player's chips at a terminal with two hands, from the definition."""
    arrays = game.tree.arrays
    fixed, showdown = arrays.fixed[node] * (1 - 2 * player), arrays.showdown[node]
    own, other = game.cards.listed().strength[0][[hands[player], hands[1 - player]]].tolist()
    return float(paid(game, showdown or abs(fixed), np.sign(own - other if showdown else fixed)))
