"""Translation of real betting lines to trees with few bet sizes: published properties, legality.

Shows:

* The pseudo-harmonic mapping has the properties that Ganzfried & Sandholm 2013 state
  (test_the_mapping_has_its_published_properties)
* A bet stays a bet, however small (test_a_small_bet_stays_a_bet)
* Each translated line stays in step with the real game, and its actions are legal
  (test_readings_keep_step_with_the_game)
"""

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals, refused

from mccfr.config.game_tables import Menu
from mccfr.games.betting import BettingState, amount_text, may_call, raise_bounds
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.line_lookup import NOWHERE, OVER, LineReading
from mccfr.games.translation import Translation, pseudo_harmonic
from mccfr.trees.betting_lines import find_node, line_text
from mccfr.trees.compiled import DECISION

MENUS = {
    "pot or all-in": Menu(first=("0.5p", "1p", "allin"), later=("1p", "allin")),
    "one bet": Menu(first=("1p",), later=("allin",), max_bets=2),
    "no bets after the first": Menu(first=("0.33p", "2p"), later=(), max_bets=2),
    "no limp": Menu(first=("1p", "allin"), later=("1p", "allin"), limp=False),
    "checks only": Menu(first=(), later=()),
}
SHARES = st.floats(0.01, 20)


@cache
def translation(menu="pot or all-in", stack=20_000, blinds=(50, 100)):
    rules = holdem_rules(stack, blinds, 0, MENUS[menu])
    return Translation(build_tree(rules), rules)


def places(found, line):
    """Return {line of the node: probability} of a real line; after ">" the line that a call leads to."""
    _, readings = found.read(line)
    tree = found.tree

    def text(reading):
        node = "nowhere" if reading.node == NOWHERE else line_text(tree, reading.node)
        return node if reading.closed == NOWHERE else f"{node} > {line_text(tree, reading.closed)}"

    return {text(reading): pytest.approx(reading.probability, abs=1e-12) for reading in readings}


# --- the mapping ---


@given(SHARES, SHARES, SHARES)
def test_the_mapping_has_its_published_properties(a, b, c):
    """Test boundaries, monotonicity and the median of Ganzfried & Sandholm 2013, section 3."""
    small, share, large = sorted((a, b, c))
    if large - small < 1e-3:
        return
    assert pseudo_harmonic(small, large, small) == pytest.approx(1)
    assert pseudo_harmonic(small, large, large) == 0
    assert 0 <= pseudo_harmonic(small, large, share) <= 1 + 1e-12
    more = min(large, share * 1.01)
    assert pseudo_harmonic(small, large, more) <= pseudo_harmonic(small, large, share)
    median = (small + large + 2 * small * large) / (small + large + 2)
    assert pseudo_harmonic(small, large, median) == pytest.approx(0.5)


@pytest.mark.parametrize("menu", MENUS)
def test_lines_of_the_tree_are_translated_to_themselves(menu):
    found = translation(menu)
    nodes = [node for node in range(len(found.tree.label)) if found.tree.arrays.kind[node] == DECISION]
    for node in random.Random(1).sample(nodes, min(300, len(nodes))):
        state, readings = found.read(line_text(found.tree, node))
        assert readings == [LineReading(node, 1.0)]
        assert isinstance(state, BettingState) and tuple(found.tree.put_in[node]) == state.put_in
        actions = found.real_actions(readings[0], state)
        assert actions == [found.tree.label[child] for child in found.tree.children(node)]


def test_a_bet_between_two_sizes_is_mapped_to_both():
    """On the flop with 400 in the pot: half of it is 200, all of it 400; 300 is three quarters."""
    first, second = (1 - 0.75) * 1.5 / (0.5 * 1.75), (0.75 - 0.5) * 2 / (0.5 * 1.75)
    assert first + second == pytest.approx(1)
    assert places(translation(), "r200c/r500") == {"r200c/r400": first, "r200c/r600": second}
    # Shares of the real pot: with 600 in it, a bet of 450, and in the tree the line of 200 or of 300.
    found = places(translation(), "r250c/r625")
    assert {line.split("/")[0] for line in found} == {"r200c", "r300c"}
    assert sum(probability.expected for probability in found.values()) == pytest.approx(1)


def test_amounts_above_all_sizes_are_mapped_to_the_largest():
    assert places(translation("no bets after the first"), "r20000") == {"r500": 1.0}
    assert places(translation(), "cr20000") == {"cr20000": 1.0}


# --- cases that the published mapping leaves open ---


def test_a_small_bet_stays_a_bet():
    """The big blind, or the button after a check, bets 100 into 400; the tree's smallest bet is 200."""
    found = translation()
    for line, node in (
        ("r200c/r300", "r200c/r400"),
        ("r200c/cr300", "r200c/cr400"),
        ("r200c/cr300c/", "r200c/cr400c/"),
    ):
        assert places(found, line) == {node: 1.0}
    state, readings = found.read("r200c/cr300")
    assert found.real_actions(readings[0], state)[:2] == ["f", "c"]


def test_other_stakes_are_mapped_by_shares_of_the_pot():
    """All-in with 87 big blinds is all-in in the tree of 100; all-in with 5 is a bet size."""
    tree = translation(stack=10_000)

    def taken(rules, line):
        return max(places(tree.with_stakes(rules), line).items(), key=lambda one: one[1].expected)[0]

    cents = holdem_rules(8_700, (40, 100), 0, MENUS["pot or all-in"])
    assert taken(cents, "r300c/r600") == "r300c/r600" and taken(cents, "r8700") == "r10000"
    assert taken(holdem_rules(500, (40, 100), 0, MENUS["pot or all-in"]), "r500") == "r300"


def test_a_bet_is_called_if_the_tree_has_no_raise():
    found = translation("checks only")
    assert places(found, "cr300") == {"nowhere > cc/": 1.0}
    state, readings = found.read("cr300")
    assert found.real_actions(readings[0], state) == ["c"]
    assert places(found, "cr300r900") == {"nowhere > cc/": 1.0}
    assert places(found, "cr300c/") == {"cc/": 1.0}


def test_every_bet_is_called_after_the_end_of_the_trees_hand():
    """A raise to 19,000 of 20,000 is translated to all-in; after the call 1,000 chips are left."""
    found = translation()
    state, readings = found.read("r300r19000")
    over = next(r for r in readings if line_text(found.tree, r.node).endswith("r20000"))
    assert found.real_actions(over, state) == ["f", "c"]
    after = found.follow([over], state, "c")
    state = found.apply(state, "c")
    assert isinstance(state, BettingState) and found.tree.arrays.kind[after[0].node] != DECISION
    assert found.real_actions(after[0], state) == ["c"]
    assert found.follow(after, state, "r20000") == after


def test_a_limp_is_mapped_to_the_smallest_raise_if_the_tree_has_no_limp():
    found = translation("no limp")
    rules = holdem_rules(20_000, (50, 100), 0, MENUS["pot or all-in"])  # limps are legal in the real game
    found = Translation(found.tree, rules)
    assert places(found, "c") == {"r300": 1.0}
    state, readings = found.read("c")
    assert found.real_actions(readings[0], state)[0] == "c"  # nothing to fold to
    given_up, state = found.done(readings[0], 0, "c"), found.apply(state, "c")
    assert found.real_actions(given_up, state) == ["c"]
    state = found.apply(found.apply(state, "c"), "r300")
    assert found.follow([given_up], state, "r300") == [given_up] and found.real_actions(given_up, state) == ["f"]


# --- translated actions are legal ---


def random_action(found, state, rng):
    """Return a random legal action: folds are rare, raises have every size."""
    actions = ["c"] * may_call(found.rules, state) + ["f"] * (state.facing and rng.random() < 0.1)
    bounds = raise_bounds(found.rules, state)
    if bounds is not None:
        low, high = map(int, bounds)
        sizes = (low, high, low + 1, min(high, 2 * low), rng.randint(low, high))
        actions += [f"r{min(high, size)}" for size in sizes]
    return rng.choice(actions)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(sorted(MENUS)), st.sampled_from((300, 2_000, 20_000)))
def test_readings_keep_step_with_the_game(seed, menu, stack):
    """Play random lines: probabilities sum to 1, the player to act agrees, and actions are legal."""
    if menu == "no limp" and stack == 300:
        stack = 2_000
    found, rng = translation(menu, stack), random.Random(seed)
    state, readings, line = *found.start(), ""
    while isinstance(state, BettingState) and len(line) < 200:
        assert sum(reading.probability for reading in readings) == pytest.approx(1)
        for reading in readings:
            for action in found.real_actions(reading, state):
                found.apply(state, action)  # raises where it is not legal
            if reading.node != NOWHERE and found.tree.arrays.kind[reading.node] == DECISION:
                assert divmod(int(found.tree.arrays.block[reading.node]), 2) == (state.street, state.player)
        action = random_action(found, state, rng)
        readings = found.follow(readings, state, action)
        line, state = line + action, found.apply(state, action)
    again, as_read = found.read(line)
    assert again == state
    assert {(r.node, r.closed): pytest.approx(r.probability) for r in readings} == {
        (r.node, r.closed): r.probability for r in as_read
    }


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_rounded_amounts_are_translated_back_to_the_chosen_actions(seed):
    """Translate a player's own rounded amounts back to the tree's actions, with probability above 0.99."""
    found, rng = translation(), random.Random(seed)
    state, reading = found.rules.start(), LineReading(0, 1.0)
    while isinstance(state, BettingState) and found.tree.arrays.kind[reading.node] == DECISION:
        children = found.tree.children(reading.node)
        choice = rng.randrange(len(children))
        action = found.real_actions(reading, state)[choice]
        translated = {r.node: r.probability for r in found.outcomes(reading, state, action)}
        assert translated.get(children[choice], 0) > 0.99
        state, reading = found.apply(state, action), LineReading(children[choice], 1.0)


# --- bad input ---


test_illegal_lines_are_refused = refusals(
    ("character 1: 'x' is not an action", "x"),
    ("a raise must be to 200 to 20000 chips", "r150"),
    ("a raise must be to 200", "r30000"),
    ("nothing to fold to", "cc/f"),
    ("the street does not change here", "c/"),
    ("character 6: the betting is over", "r200fc"),
    ("the betting is over", "r20000cc"),
    ("no raise is possible", "r20000r20000"),
    call=lambda line: translation().read(line),
)


def test_rules_with_other_blinds_than_the_tree_are_refused():
    found = translation()
    refused("begins with", Translation, found.tree, holdem_rules(20_000, (100, 200), 0, MENUS["pot or all-in"]))
    assert found.read("r200c/cc/cc/cc")[0] == OVER
    assert amount_text(found.tree.put_in[find_node(found.tree, "r200"), 1]) == "200"
