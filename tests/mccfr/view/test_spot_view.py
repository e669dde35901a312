"""Spots of a strategy: actions as in queries, ranges by Bayes, equities by naive enumeration.

Shows:

* `mccfr view` shows the frequencies that `query` prints, also off-tree
  (test_holdem_spots_have_the_frequencies_of_queries, test_leduc_spots_have_the_frequencies_of_queries)
* Ranges follow from Bayes' rule, with means over the translations of a bet
  (test_ranges_follow_from_both_players_actions_by_bayes,
  test_ranges_after_an_off_tree_bet_are_means_over_its_translations)
* Equities equal enumeration of all showdowns and published pre-flop tables
  (test_equities_equal_enumeration_of_all_showdowns, test_preflop_equities_equal_published_values)
"""

import time
from itertools import product

import numpy as np
import pytest
from policies import write_random
from random_policy import policy
from refusals import refusals, refused

from abstraction.cards import combo_text, parse_cards
from abstraction.hand_evaluator import strength
from abstraction.range_notation import parse_range
from mccfr.config.game_tables import GoofspielGame, KuhnGame, LeducGame
from mccfr.policy import Policy
from mccfr.policy.query import query
from mccfr.view import Spots, open_spots
from mccfr.view.resolve_request import Solving

FLOP, RIVER = "Kc7d2s", "Kc7d2s4hAs"


@pytest.fixture(scope="module")
def holdem():
    return Spots(policy(), "random")


@pytest.fixture(scope="module")
def leduc(tmp_path_factory):
    out = write_random(tmp_path_factory.mktemp("view") / "leduc", LeducGame())
    return open_spots(out), Policy.open(out)


def strategies(found):
    """{hand: {action: probability}} of a spot."""
    names = [one["action"] for one in found["actions"]]
    rows = found["hands"]["probabilities"]
    return {hand: dict(zip(names, row, strict=True)) for hand, row in zip(found["hands"]["names"], rows, strict=True)}


@pytest.mark.parametrize(
    ("line", "board"),
    [("b200c/", FLOP), ("b200c/cb400", FLOP), ("b200c/cc/cc/b200", RIVER), ("b250c/cb527", FLOP), ("b777c/c", FLOP)],
)
def test_holdem_spots_have_the_frequencies_of_queries(holdem, line, board):
    """Compare lines in the tree and off it; off the tree both are means over the line's readings."""
    found, asked = holdem.spot(line, board), query(policy(), line, board=board)
    assert (found["line"], found["player"], found["pot_chips"]) == (line, asked["player"], asked["pot_chips"])
    assert asked["line"] == line
    mine, theirs = ([(one["action"], one["to_chips"]) for one in each["actions"]] for each in (found, asked))
    assert mine == theirs
    mine = strategies(found)
    assert set(mine) == set(asked["hands"])
    for hand in list(mine)[::37]:
        assert list(mine[hand].values()) == pytest.approx(asked["hands"][hand], abs=1e-6)
    assert found["readings"] == asked.get("readings", [])
    trained = dict(zip(found["hands"]["names"], found["hands"]["trained"], strict=True))
    assert sorted(hand for hand, known in trained.items() if not known) == sorted(asked["unreached"])


@pytest.mark.parametrize(("line", "board"), [("", ""), ("b2", ""), ("b2c/", "Kc"), ("cb2c/cb4", "Qd")])
def test_leduc_spots_have_the_frequencies_of_queries(leduc, line, board):
    spots, source = leduc
    found = spots.spot(line, board)
    asked = query(source, found["line"], board=board)
    assert {hand: list(row.values()) for hand, row in strategies(found).items() if hand in asked["hands"]} == {
        hand: pytest.approx(row, abs=1e-6) for hand, row in asked["hands"].items()
    }
    assert found["role"] == ("First player", "Second player")[found["player"]]


def test_ranges_follow_from_both_players_actions_by_bayes(leduc):
    """Compare a hand's reach, and its share after card removal, with products of queries over all deals."""
    spots, source = leduc
    found = spots.spot("cb2c/cb4", "Kc")
    steps = [("", "c"), ("c", "b2"), ("cb2", "c"), ("cb2c/", "c"), ("cb2c/c", "b4")]
    reach = [{}, {}]
    for hand in found["hands"]["names"]:
        for player in range(2):
            reach[player][hand] = 1.0
        for line, action in steps:
            asked = query(source, line, hand=hand, board="Kc" if "/" in line else None)
            chance = {one["action"]: one["probability"] for one in asked["actions"]}[action]
            reach[asked["player"]][hand] *= chance
    for player in range(2):
        assert found["hands"]["reach"][player] == pytest.approx(list(reach[player].values()), abs=1e-6)
    deals = {(a, b): reach[0][a] * reach[1][b] for a, b in product(reach[0], reach[1]) if a != b}
    for player in range(2):
        shares = [sum(w for pair, w in deals.items() if pair[player] == hand) for hand in reach[player]]
        expected = [one / sum(deals.values()) for one in shares]
        assert found["hands"]["shares"][player] == pytest.approx(expected, abs=1e-5)
    own = dict(zip(found["hands"]["names"], found["hands"]["shares"][found["player"]], strict=True))
    rows = strategies(found)
    mean = [sum(own[hand] * rows[hand][one["action"]] for hand in own) for one in found["actions"]]
    assert found["frequencies"] == pytest.approx(mean, abs=1e-5)


def test_ranges_after_an_off_tree_bet_are_means_over_its_translations(holdem):
    """A bet after a check is translated to the next smaller size or to the next larger one, all-in."""
    found = holdem.spot("b200c/cb800", FLOP)
    action = {"b200c/cb400": "b400", "b200c/cb19800": "b19800"}
    chance = {action[one["line"]]: one["probability"] for one in found["readings"]}
    assert set(chance) == {"b400", "b19800"}
    before, rows = holdem.spot("b200c/c", FLOP), strategies(holdem.spot("b200c/c", FLOP))
    for place, hand in list(enumerate(found["hands"]["names"]))[::97]:
        expected = sum(share * rows[hand][action] for action, share in chance.items())
        expected *= before["hands"]["reach"][1][place]
        assert found["hands"]["reach"][1][place] == pytest.approx(expected, abs=2e-6)


def test_equities_equal_enumeration_of_all_showdowns(holdem):
    """On the river, compare with a loop over the opponent's hands that share no card."""
    line = "b200c/cc/cc/b200"
    found, equity = holdem.spot(line, RIVER), holdem.equity(line, RIVER)
    names, reach = found["hands"]["names"], np.array(found["hands"]["reach"])
    board = parse_cards(RIVER)
    order = np.array([strength((*board, *parse_cards(name))) for name in names])
    held = [set(parse_cards(name)) for name in names]
    for player, hand in ((0, 5), (1, 500), (0, 1000)):
        meets = np.array([not held[hand] & other for other in held]) * reach[1 - player]
        won = (order < order[hand]) + 0.5 * (order == order[hand])
        assert equity["equity"][player][hand] == pytest.approx(meets @ won / meets.sum(), abs=1e-5)
    assert sum(equity["mean"]) == pytest.approx(1, abs=1e-5)


def test_equities_of_earlier_streets_are_means_over_boards(holdem, leduc):
    """On Leduc's first street, compare with a loop over boards; hold'em's flop without cards has none."""
    assert holdem.equity("b200c/") == {"equity": None, "mean": None}
    spots, _ = leduc
    found = dict(zip(spots.spot("")["hands"]["names"], spots.equity("")["equity"][0], strict=True))
    cards = "JcJdQcQdKcKd"
    deck = [cards[at : at + 2] for at in range(0, 12, 2)]

    def rank(hand, board):
        return (hand[0] == board[0]) * 10 + "JQK".index(hand[0])

    for hand in deck:
        results = [
            np.sign(rank(hand, board) - rank(other, board)) / 2 + 0.5
            for other, board in product(deck, deck)
            if len({hand, other, board}) == 3
        ]
        assert found[hand] == pytest.approx(np.mean(results), abs=1e-6)


def test_values_of_a_re_solved_river_equal_those_of_showdowns(holdem):
    """Against a river bet of 2 BB a fold has value 0, and a call the value of its equity."""
    solving, line = Solving(holdem), "b200c/cc/cc/b200"
    solving.start(line, RIVER)
    while not (state := solving.state())["done"]:
        time.sleep(0.01)
    values, there = np.array(state["result"]["values"], float), holdem.spot(line, RIVER)
    equity = np.array(holdem.equity(line, RIVER)["equity"][1], float)
    names = [one["action"] for one in state["result"]["actions"]]
    met = ~np.isnan(values).any(axis=1)
    assert met.any() and names[:2] == ["f", "c"] and np.abs(values[met, 0]).max() < 1e-4
    assert values[met, 1] == pytest.approx(equity[met] * (there["pot_chips"] + 200) - 200, abs=0.01)
    weight = np.array(there["hands"]["shares"][1])[met]
    played = np.array(state["result"]["hands"]["probabilities"])
    gained = (values.max(axis=1) - (played * values).sum(axis=1))[met] @ weight
    assert 0 <= gained < 2 * state["result"]["gap_chips"]


def test_range_texts_are_read_back_unchanged(holdem):
    found = holdem.spot("b200c/cb400", FLOP)
    for player in range(2):
        weights, reach = parse_range(found["ranges"][player]["text"]), np.array(found["hands"]["reach"][player])
        names = [combo_text(hand) for hand in range(1326)]
        live = [weights[names.index(name)] for name in found["hands"]["names"]]
        assert live == pytest.approx((reach / reach.max()).tolist(), abs=6e-4)
        assert found["ranges"][player]["combos"] == pytest.approx(reach.sum(), abs=0.01)
    assert found["ranges"][0]["role"] == "Big blind" and found["ranges"][1]["role"] == "Button"


def test_classes_are_means_of_their_hands(holdem):
    found, hands = holdem.spot("b200c/", FLOP), holdem.spot("b200c/", FLOP)["hands"]
    label = holdem.game()["grid"]["label"]
    assert len(label) == 169 and label[1] == "AKs"
    own = [place for place, cell in enumerate(hands["cells"]) if label[cell] == "AKs"]
    assert found["classes"]["combos"][1] == len(own) == 3  # the king of clubs lies on the board
    shares = np.array([hands["shares"][0][place] for place in own])
    rows = np.array([hands["probabilities"][place] for place in own])
    assert found["classes"]["probabilities"][1] == pytest.approx((shares @ rows / shares.sum()).tolist(), abs=1e-4)
    assert found["classes"]["shares"][0][1] == pytest.approx(shares.sum(), abs=1e-5)


def test_names_are_roles_and_big_blinds(holdem, tmp_path):
    found = holdem.spot("b200c/cb400", FLOP)
    assert [(holdem.game()["roles"][step["player"]], step["name"]) for step in found["path"]] == [
        ("Button", "Raise to 2 BB"),
        ("Big blind", "Call 1 BB"),
        ("Big blind", "Check"),
        ("Button", "Bet 4 BB"),
    ]
    assert [one["name"] for one in found["actions"]] == ["Fold", "Call 4 BB", "Raise to 16 BB", "All-in 198 BB"]
    assert [one["line"] for one in found["actions"]][:2] == [None, "b200c/cb400c/"]
    kuhn = open_spots(write_random(tmp_path / "kuhn", KuhnGame()))
    assert kuhn.game()["unit"] == "chips" and not kuhn.game()["square"]
    assert [one["name"] for one in kuhn.spot("cb")["actions"]] == ["Fold", "Call 1 chips"]


def test_a_spot_states_how_many_board_cards_are_missing(holdem, leduc):
    found = holdem.spot("b200c/cc/", FLOP)
    assert (found["missing_cards"], found["hands"], found["ranges"]) == (1, None, None)
    assert [one["name"] for one in found["actions"]] == ["Check", "Bet 2 BB", "Bet 4 BB", "All-in 198 BB"]
    assert holdem.spot("b200c/")["missing_cards"] == 3
    assert leduc[0].spot("cc/")["missing_cards"] == 1


def refuse_line(line, board, holdem):
    raise ValueError(refused(refused("", holdem.spot, line, board), holdem.equity, line, board))


test_invalid_lines_and_boards_are_refused = refusals(
    ("'x' is not an action", "x", ""),
    ("nothing to fold to", "b200c/f", FLOP),
    ("the hand is over", "f", ""),
    ("a bet must put in 200 to 20000 chips on this street", "b150", ""),
    ("r300 can mean chips put in on this street", "r300c/r600", FLOP),
    ("has 2 cards: on the flop give 3", "b200c/", "Kc7d"),
    ("has 5 cards", "b200c/", RIVER),
    ("twice", "b200c/", "KcKc2d"),
    ("Kx", "b200c/", "Kx7d2s"),
    ("leave the board out", "", "Kc7d2s"),
    call=refuse_line,
)


def open_goofspiel(tmp_path):
    open_spots(write_random(tmp_path / "goofspiel", GoofspielGame(cards=3)))


test_games_without_cards_are_refused = refusals(("deals no cards outside of its tree", open_goofspiel))
