"""Head-to-head of policies with different betting trees, against enumeration of all deals.

Shows:

* Head-to-head between different betting trees equals enumeration of every deal, action and translation
  (test_head_to_head_of_any_two_menus_equals_enumeration)
* The test detects a bet that is translated anew at each decision
  (planted: test_a_translation_drawn_anew_at_each_decision_is_found)
* The test detects one bucket map for both sides, and errors in the joint tree (planted:
  test_one_bucket_map_for_both_sides_is_found, test_an_error_in_the_joint_tree_is_found)
"""

from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
import random_policy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from refusals import refusals, refused
from sessions import go, make
from small_games import DEEP, MENUS
from strategies import random_strategy
from test_head_to_head_buckets import renumbered

from mccfr.api.evaluating import evaluate_target
from mccfr.cards.deals import card_masks
from mccfr.config.game_tables import HoldemGame, Menu, PokerGame
from mccfr.evaluation import joint_tree as module
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.evaluation.joint_tree import joint_tree, shared_tree
from mccfr.games.betting import BettingState
from mccfr.games.line_lookup import NOWHERE, LineReading
from mccfr.games.registry import build_game
from mccfr.games.translation import Translation
from mccfr.policy import Policy
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results.run_export import export_run
from mccfr.runs.results.targets import Reference
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.compiled import DECISION

ANTES = PokerGame(ranks=3, suits=2, board_cards=(0, 1), antes=(1, 1), stack=25)
TWO_CARDS = PokerGame(ranks=3, suits=2, hole_cards=2, board_cards=(0, 1), blinds=(2, 1), stack=20, first_player=(2, 1))


@cache
def game(config, menu, merged=False):
    return build_game(msgspec.structs.replace(config, menu=MENUS[menu], merge_suits=merged), None)


def side(config, menu, seed, merged=False):
    found = game(config, menu, merged)
    return Profile(found, random_strategy(found, seed))


# --- naive implementation ---


class Player:
    """A side's policy with one hand on one board, as a seat plays it."""

    def __init__(self, side, player, hand, boards, cards):
        self.side, self.player, self.hand, self.boards, self.cards = side, player, hand, boards, cards
        self.translation = Translation(side.game.tree, side.game.real_rules)

    def shares(self, node):
        """Return the strategy at a decision of its tree."""
        arrays = self.side.game.tree.arrays
        block, slot, count = (int(getattr(arrays, name)[node]) for name in ("block", "slot", "count"))
        street = block // 2
        bucket = self.cards.bucket[street][self.player, self.boards[street], self.hand]
        return self.side.strategy.probability[block][bucket, slot : slot + count]

    def decides(self, reading):
        return reading.node != NOWHERE and self.side.game.tree.arrays.kind[reading.node] == DECISION

    def choices(self, reading, state):
        """Return (probability, real action, reading after it) of each action."""
        if not self.decides(reading):
            given_up = reading.node != NOWHERE and self.side.game.tree.label[reading.node] == "f"
            action = "f" if given_up and state.facing else "c"
            return [(1.0, action, self.translation.outcomes(reading, state, action)[0])]
        found = []
        for number, share in enumerate(self.shares(reading.node)):
            action = self.translation.real_action(reading.node, number, state)
            closed = action == "c" and reading.closed != NOWHERE
            after = reading.closed if closed else self.translation.child(reading.node, number)
            found.append((share, action, LineReading(after, 1.0)))
        return found


def chips_of_deal(players, result, redrawn):
    """Return the mean chips of player 0 with one deal, over all actions and draws.

    redrawn  a planted error: a side draws its reading of the line again at each decision
    """
    rules = players[0].translation

    def play(state, readings, line):
        actor, other = players[state.player], players[1 - state.player]
        drawn = [readings[state.player]]
        if redrawn:
            drawn = [LineReading(0, 1.0)]
            for before, action in line:
                drawn = actor.translation.follow(drawn, before, action)
        total = 0.0
        for reading in drawn:
            for share, action, done in actor.choices(reading, state):
                if share == 0:
                    continue
                chance, after = share * (reading.probability if redrawn else 1.0), rules.apply(state, action)
                if not isinstance(after, BettingState):
                    lost = state.put_in[state.player] * (1 if state.player else -1)
                    total += chance * (lost if action == "f" else result * state.to_call)
                    continue
                ways = other.translation.outcomes(readings[1 - state.player], state, action)
                for taken in ways[:1] if redrawn else ways:  # a reading that is drawn again needs no branch
                    both = (taken, done) if state.player else (done, taken)
                    probability = 1.0 if redrawn else taken.probability
                    total += chance * probability * play(after, both, [*line, (state, action)])
        return total

    return play(rules.start()[0], (LineReading(0, 1.0), LineReading(0, 1.0)), [])


def twin(one, other, redrawn=False, cards=None):
    """Enumerate the chips that `one` wins from `other` over both seats; `cards` plants one bucket map."""
    listed = one.game.cards
    masks, boards = card_masks(listed.hand_cards), card_masks(listed.board_cards[-1])
    total = weight = 0.0
    for board, on_board in enumerate(boards):
        path = [board]
        for parents in listed.board_parent[:0:-1]:
            path.append(int(parents[path[-1]]))
        for first, second in np.ndindex(len(masks), len(masks)):
            if masks[first] & masks[second] or (masks[first] | masks[second]) & on_board:
                continue
            result = np.sign(int(listed.strength[board, first]) - int(listed.strength[board, second]))
            for sign, sides in ((1, (one, other)), (-1, (other, one))):
                players = [
                    Player(side, player, hand, path[::-1], cards or side.game.cards)
                    for player, (side, hand) in enumerate(zip(sides, (first, second), strict=True))
                ]
                total += sign * chips_of_deal(players, result, redrawn) / 2
            weight += 1
    return total / weight


SIZES = st.lists(st.sampled_from(["0.25p", "0.5p", "1p", "2p", "3chips", "allin"]), max_size=2, unique=True)
MENU = st.builds(Menu, first=SIZES, later=SIZES, max_bets=st.integers(0, 2), limp=st.booleans())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([DEEP, ANTES, TWO_CARDS]), MENU, MENU, st.integers(4, 40), st.integers(0, 99))
def test_head_to_head_of_any_two_menus_equals_enumeration(config, first, second, stack, seed):
    configs = [msgspec.structs.replace(config, stack=stack, menu=menu) for menu in (first, second)]
    try:
        games = [build_game(each, None) for each in configs]
    except ValueError:
        assume(False)  # not a valid menu of this game
    one, other = (Profile(game, random_strategy(game, seed + k)) for k, game in enumerate(games))
    found = head_to_head(one, other, boards=100)
    assert found.mean_chips == pytest.approx(twin(one, other), abs=1e-12)
    assert found.ci95_chips == (found.mean_chips, found.mean_chips)
    assert head_to_head(other, one, boards=100).mean_chips == -found.mean_chips


@pytest.mark.parametrize("config", [DEEP, ANTES, HoldemGame()], ids=["blinds", "antes", "hold'em"])
@pytest.mark.parametrize("menu", ["half or all-in", "two sizes"])
def test_the_joint_tree_of_equal_trees_is_that_tree(config, menu):
    """Strategies with equal trees are walked on that tree, by the same code."""
    known = hold_em(menu).game if isinstance(config, HoldemGame) else game(config, menu)
    found, shared = joint_tree((known, known)), shared_tree(known.tree)
    for name in found.tree.arrays._fields:
        if name != "touched":
            one, other = (getattr(meeting.tree.arrays, name) for meeting in (found, shared))
            assert np.array_equal(one, np.where(known.tree.arrays.kind == DECISION, other, one)), name
            assert name in ("first", "slot", "row") or np.array_equal(one, other), name
    assert np.array_equal(found.action, shared.action) and np.array_equal(found.factor, shared.factor)
    assert np.array_equal(found.tree.parent, shared.tree.parent)


def hold_em(menu, seed=1, stack=1_500.0):
    found = random_policy.policy(MENUS[menu], stack).game
    return Profile(found, random_strategy(found, seed))


def test_renumbering_buckets_changes_nothing_across_trees():
    one, other = side(DEEP, "two sizes", 1), side(DEEP, "half or all-in", 2, merged=True)
    expected = head_to_head(one, other, boards=100).mean_chips
    assert expected == pytest.approx(twin(one, other), abs=1e-12)
    for pair in ((renumbered(one), other), (one, renumbered(other)), (renumbered(one, 1), renumbered(other, 2))):
        assert head_to_head(*pair, boards=100).mean_chips == pytest.approx(expected, abs=1e-12)


# --- planted errors ---


def test_a_translation_drawn_anew_at_each_decision_is_found():
    one, other = side(ANTES, "half or all-in", 1), side(ANTES, "two sizes", 2)
    found = head_to_head(one, other, boards=100).mean_chips
    assert abs(twin(one, other, redrawn=True) - found) > 1e-3


def test_one_bucket_map_for_both_sides_is_found():
    one, other = side(DEEP, "two sizes", 1), renumbered(side(DEEP, "half or all-in", 2))
    found = head_to_head(one, other, boards=100).mean_chips
    assert abs(twin(one, other, cards=one.game.cards) - found) > 1e-3


@pytest.mark.parametrize("error", ["one reading for certain", "own bets read back", "chips of the actor's tree"])
def test_an_error_in_the_joint_tree_is_found(monkeypatch, error):
    one, other = side(ANTES, "half or all-in", 1), side(ANTES, "two sizes", 2)
    truth = twin(one, other)
    if error == "one reading for certain":
        whole = module._JointTreeBuilder.translations_of
        monkeypatch.setattr(
            module._JointTreeBuilder,
            "translations_of",
            lambda *call: [max(whole(*call), key=lambda r: r.probability)._replace(probability=1.0)],
        )
    elif error == "own bets read back":
        done = Translation.done

        def forgotten(translation, reading, number, action):
            found = done(translation, reading, number, action)
            tree = translation.tree
            smaller = found.node - 1 if action[0] == "r" and tree.label[found.node - 1][0] == "r" else found.node
            return found._replace(node=smaller)

        monkeypatch.setattr(Translation, "done", forgotten)
    else:
        tree_of = module._JointTreeBuilder.compiled

        def own_chips(builder):
            found = tree_of(builder)
            arrays = found.tree.arrays
            return found._replace(
                tree=replace(found.tree, arrays=arrays._replace(showdown=np.round(arrays.showdown * 0.9)))
            )

        monkeypatch.setattr(module._JointTreeBuilder, "compiled", own_chips)
    assert abs(head_to_head(one, other, boards=100).mean_chips - truth) > 1e-3


# --- refused games ---


def play_against_changed(keys):
    other = build_game(msgspec.structs.replace(DEEP, menu=MENUS["two sizes"], **keys), None)
    sides = side(DEEP, "pot", 1), Profile(other, random_strategy(other, 2))
    raise ValueError(refused("only card buckets and menus differ: ", head_to_head, *sides, boards=2))


test_games_with_other_rules_are_refused = refusals(
    ("a player's stack in chips is 30.* for the first and 31", {"stack": 31}),
    ("the starting pot in chips is 3.* and 6", {"blinds": (4, 2)}),
    (r"put in at the start is \[2.*\] .* and \[1", {"blinds": (1, 2), "first_player": (1, 1)}),
    (r"the player to act first on each street is \[1, 0\] .* and \[1, 1\]", {"first_player": (2, 2)}),
    ("hands, ranges, boards or strengths are others", {"ranks": 4}),
    call=play_against_changed,
)


def test_joint_trees_with_too_many_nodes_are_refused(monkeypatch):
    one, other = side(DEEP, "two sizes", 1), side(DEEP, "third", 2)
    nodes = max(len(joint_tree(games).action) for games in ((one.game, other.game), (other.game, one.game)))
    monkeypatch.setattr(module, "MAX_NODES", nodes)
    head_to_head(one, other, boards=2)
    monkeypatch.setattr(module, "MAX_NODES", nodes - 1)
    refused(f"has more than {nodes - 1:,} nodes", head_to_head, one, other, boards=2)


def test_trees_without_rules_for_all_bets_must_be_equal():
    """Refuse a game with a menu against one without: only the first has rules for all legal bets."""
    short = msgspec.structs.replace(DEEP, stack=6)
    every = build_game(short, None)
    with pytest.raises(ValueError, match=r"only card buckets differ: .* of the betting tree"):
        head_to_head(side(short, "pot", 1), Profile(every, uniform_strategy(every)), boards=2)


# --- runs and policies ---


def test_head_to_head_of_runs_and_policies_with_different_menus(tmp_path):
    runs = []
    for name in ("pot", "two sizes"):
        document = {"name": "poker", "ranks": 3, "suits": 2, "board_cards": [0, 1], "antes": [1, 1], "stack": 25}
        menu = {"first": list(MENUS[name].first), "later": list(MENUS[name].later), "max_bets": 2}
        runs.append(make(tmp_path / name, game=document | {"menu": menu}))
        go(runs[-1], iterations=400)
    policy = export_run(runs[1], runs[1].build_game(), tmp_path / "policy")
    assert Policy.open(policy).game.real_rules is not None
    options = {"method": "head-to-head", "boards": 100}
    found = evaluate_target(runs[0].directory, against=Reference(runs[1].directory), **options)
    by_policy = evaluate_target(runs[0].directory, against=Reference(policy), **options)
    back = evaluate_target(policy, against=Reference(runs[0].directory), **options)
    assert abs(found["value_chips"]) > 1e-3
    assert by_policy["value_chips"] == pytest.approx(found["value_chips"], abs=1e-3)  # rounded to 16 bits
    assert back["value_chips"] == -by_policy["value_chips"]
    assert found["against"] == str(runs[1].directory) and found["ci95_chips"] == [found["value_chips"]] * 2
