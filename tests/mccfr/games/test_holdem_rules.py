"""Betting rules of hold'em for two: random play against OpenSpiel, and single cases.

Shows:

* Limit hold'em has the numbers of betting sequences and infosets that Johanson et al. 2013 state
  (test_limit_holdem_has_the_sizes_of_its_papers)
* 5-flop hold'em has the decision depths of table 1 of Steinberger 2019
  (test_5_flop_holdem_has_the_depths_of_its_papers_table)
"""

from math import inf

import numpy as np
import pytest
from openspiel import NO_LIMIT, assert_same_betting, universal_poker
from pokerkit_table import random_action

from abstraction.hand_evaluator import strengths
from mccfr.config.game_tables import Menu
from mccfr.games.betting import called, fold_value, may_call, raise_bounds, raised
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import flop_holdem_rules, holdem_rules, limit_holdem_rules
from mccfr.trees.compiled import TERMINAL

BLINDS = (50, 100)


class OpenSpielHand:
    """One hand of universal_poker, which runs on the code of the ACPC dealer."""

    def __init__(self, stack, cards):
        table = {**NO_LIMIT, "blind": "100 50", "firstPlayer": "2 1 1 1", "stack": f"{stack} {stack}"}
        self.state = universal_poker(13, 4, 2, (0, 3, 1, 1), **table).new_initial_state()
        self.cards = list(cards)
        self.deal()

    def deal(self):
        while self.state.is_chance_node():
            self.state.apply_action(int(self.cards.pop(0)))

    def actor(self):
        return self.state.current_player()

    def legal(self):
        actions = self.state.legal_actions()
        raises = actions[1 + (actions[0] == 0) :]
        assert not raises or raises[-1] - raises[0] == len(raises) - 1
        return actions[0] == 0, 1 in actions[:2], (raises[0], raises[-1]) if raises else None

    def act(self, action):
        self.state.apply_action({"f": 0, "c": 1}.get(action, action))
        self.deal()

    def payoff(self):
        assert self.state.is_terminal()
        return self.state.returns()[0]


def play(rules, rng, hand, sign):
    """Play a random hand, compare every step with OpenSpiel, and return the number of actions."""
    state, length = rules.start(), 0
    while True:
        bounds = raise_bounds(rules, state)
        assert hand.actor() == state.player
        assert hand.legal() == (state.facing, may_call(rules, state), bounds)
        action = random_action(rng, state.facing, bounds)
        length += 1
        hand.act(action)
        if action == "f":
            assert hand.payoff() == fold_value(state)
            return length
        after = called(rules, state) if action == "c" else raised(rules, state, action)
        if after is None:
            assert hand.payoff() == sign * state.to_call
            return length
        state = after


def test_random_play_of_two_agrees_with_openspiel():
    rng = np.random.default_rng(4)
    for stack in (20_000, 1_000, 250, 137, 100):
        rules = holdem_rules(stack, BLINDS, 0, Menu())
        cards = np.array([rng.permutation(52)[:9] for _ in range(400)])
        first, second = (strengths(np.hstack([cards[:, hole : hole + 2], cards[:, 4:]])) for hole in (0, 2))
        signs = np.sign(first.astype(int) - second)
        hands = [OpenSpielHand(stack, deal.tolist()) for deal in cards]
        lengths = [play(rules, rng, hand, sign) for hand, sign in zip(hands, signs, strict=True)]
        assert max(lengths) > 6 or stack <= 120  # with fewer chips there is hardly a decision


@pytest.mark.parametrize(("bet", "max_raises"), [(100, (3, 3)), (150, (1, 1)), (200, (2, 4)), (100, (0, 1))])
def test_flop_holdem_equals_openspiels_limit_game(bet, max_raises):
    """Compare the whole betting tree on a deal that player 0 wins.

    Cards are dealt from the lowest, and player 0 gets the aces.
    """
    tree = build_tree(flop_holdem_rules(BLINDS, bet, max_raises))
    most = " ".join(map(str, max_raises))
    table = {"betting": "limit", "blind": "100 50", "firstPlayer": "2 1", "stack": "100000 100000"}
    game = universal_poker(13, 4, 2, (0, 3), **table, raiseSize=f"{bet} {bet}", maxRaises=most)
    state = game.new_initial_state()
    for card in (48, 49, 20, 29):  # a pair of aces against 7c 9d; the rest comes from the deuces
        state.apply_action(card)
    assert assert_same_betting(tree, 0, state) == (tree.arrays.kind == TERMINAL).sum()


def test_flop_holdem_of_the_papers():
    tree = build_tree(flop_holdem_rules(BLINDS, 100, (3, 3)))
    assert tree.label[tree.children(0)[2]] == "r200"
    assert tree.arrays.showdown.max() == 700  # four bets before the flop, the big blind included, and three on it
    assert not (tree.arrays.touched == 3).any()
    five = build_tree(flop_holdem_rules(BLINDS, 100, (3, 3), board_cards=5))
    assert all(np.array_equal(a, b) for a, b in zip(tree.arrays, five.arrays, strict=True))


def test_5_flop_holdem_has_the_depths_of_its_papers_table():
    """Compare decision depths with Steinberger 2019, table 1.

    Decisions follow no or one action preflop, and two to five actions on the flop. Bets are the pot, without limps,
    with one raise preflop and two on the flop. Limps or another raise add deeper decisions; fewer raises remove those
    after five.
    """
    tree = build_tree(flop_holdem_rules(BLINDS, "pot", (1, 2), 5, limp=False))
    depths = {0: {0, 1}, 1: {2, 3, 4, 5}}
    assert depths_by_street(tree) == depths
    for limp, raises in ((True, (1, 2)), (False, (2, 2)), (False, (1, 3)), (False, (1, 1))):
        assert depths_by_street(build_tree(flop_holdem_rules(BLINDS, "pot", raises, 5, limp=limp))) != depths
    line = ["r300", "c", "r900", "r2700", "c"]  # each bet as large as the pot once the one before it is called
    node = 0
    for label in line:
        node = tree.children(node)[labels(tree, node).index(label)]
    assert tree.arrays.showdown[node] == 2700


def depths_by_street(tree):
    found = {}
    for node in tree.decisions.tolist():
        found.setdefault(int(tree.arrays.block[node]) // 2, set()).add(len(tree.path(node)) - 1)
    return found


def labels(tree, node):
    return [tree.label[child] for child in tree.children(node)]


def test_a_big_blind_that_is_all_in_leaves_one_decision():
    for stack, ante in ((80, 0), (100, 0), (120, 30)):
        for limp in (True, False):
            tree = build_tree(holdem_rules(stack, BLINDS, ante, Menu(limp=limp)))
            assert (tree.nodes, labels(tree, 0), tree.arrays.player[0]) == (3, ["f", "c"], 1)
            assert tree.arrays.fixed.tolist() == [0, 50 + ante, 0]
            assert tree.arrays.showdown.tolist() == [0, 0, stack]
            assert tree.arrays.touched[2] == 2  # the board is dealt


def test_raise_bounds_of_a_hand_with_known_amounts():
    rules = holdem_rules(1_000, BLINDS, 20, Menu())
    start = rules.start()
    assert (start.put_in, start.player, start.put_in_before) == ((120, 70), 1, 20)
    assert raise_bounds(rules, start) == (220, 1_000)
    opened = raised(rules, start, 370)  # raises by 250
    assert raise_bounds(rules, opened) == (620, 1_000)
    again = raised(rules, opened, 620)
    assert raise_bounds(rules, again) == (870, 1_000)
    flop = called(rules, again)
    assert (flop.put_in, flop.player, flop.put_in_before, flop.dealt) == ((620, 620), 0, 620, True)
    assert raise_bounds(rules, flop) == (720, 1_000)
    bet = raised(rules, flop, 950)  # 330: a raise of as much exceeds the stack
    assert raise_bounds(rules, bet) == (1_000, 1_000)
    shove = raised(rules, bet, 1_000)
    assert raise_bounds(rules, shove) is None
    assert called(rules, shove) is None
    assert (fold_value(shove), fold_value(bet)) == (-950, 620)
    assert raise_bounds(flop_holdem_rules(BLINDS, 100, (3, 3)), start) == (220, inf)


def test_with_equal_blinds_the_button_may_check():
    """A menu without limps allows the button's check, because a check is no limp."""
    tree = build_tree(holdem_rules(500, (100, 100), 0, Menu(first=(), later=(), limp=False)))
    assert labels(tree, 0) == ["c"]


def test_limit_holdem_has_the_sizes_of_its_papers():
    tree = build_tree(limit_holdem_rules((5, 10)))
    decisions = np.bincount(tree.street[tree.decisions], minlength=4)
    assert decisions.tolist() == [8, 70, 630, 5_670]
    assert decisions @ [169, 9_000, 9_000, 9_000] == 57_331_352
    assert max(tree.arrays.showdown) == 40 + 40 + 80 + 80
    assert labels(tree, 0) == ["f", "c", "r20"] and tree.arrays.player[0] == 1
