"""Exact evaluation walks one board of each class of suit-isomorphic boards.

Shows:

* Walking one board of each suit-isomorphic class equals walking all boards (test_suit_symmetry)
* The test detects a board that is not counted for its whole class (planted:
  test_planted_error_a_board_that_counts_only_for_itself)
"""

from dataclasses import replace

import mutants
import naive
import numpy as np
import pytest
from strategies import random_strategy

import mccfr
from mccfr.cards import suit_symmetry
from mccfr.cards.suit_symmetry import board_copies
from mccfr.solvers.public import best_response
from mccfr.solvers.public.best_response import values
from mccfr.solvers.public.public_tree import public_tree
from mccfr.tables.strategy import Strategy

GAMES = {
    "two suits": {"ranks": 4, "suits": 2, "board_cards": (0, 1)},
    "three suits, two streets of boards": {"ranks": 3, "suits": 3, "hole_cards": 1, "board_cards": (0, 1, 1)},
    "four suits": {"ranks": 3, "suits": 4, "hole_cards": 1, "board_cards": (1, 1)},
    "flushes": {"ranks": 4, "suits": 2, "board_cards": (0, 3)},
}
WALKED = {
    "two suits": (4, 8),
    "three suits, two streets of boards": (3 + 3 * 5, 9 + 72),
    "four suits": (3 + 3 * 5, 12 + 132),
    "flushes": (28, 56),
}
"""Numbers of walked boards and of all boards, without the empty board."""


def small(name, merge_suits):
    """Return a game with one bet a street, whose buckets distinguish suits or merge them."""
    options = {"hole_cards": 2, **GAMES[name]}
    bets = (1,) * len(options["board_cards"])
    return mccfr.game("poker", **options, antes=(1, 1), stack=4, max_raises=bets, merge_suits=merge_suits)


def with_distinct_suits(game, merged, strategy):
    """Return a strategy of the game with merged suits as a strategy of the game with distinct suits."""
    found, weights = [], []
    for block, (table, weight) in enumerate(zip(strategy.probability, strategy.weight, strict=True)):
        own, alike = (one.cards.bucket[block // 2][block % 2] for one in (game, merged))
        rows = np.zeros(int(game.buckets[block]), np.int64)
        rows[own[own >= 0]] = alike[own >= 0]
        found.append(table[rows])
        weights.append(weight[rows])
    return Strategy(tuple(found), tuple(weights))


def walked(copies):
    return int((copies.times > 0).sum())


def without_symmetry(game, strategy):
    """Return the values of a walk over all boards: in this game no two boards share a bucket."""
    public = public_tree(game)
    assert walked(public.copies) == len(public.copies.times)
    return values(game, strategy, public=public)


@pytest.mark.parametrize("name", GAMES)
def test_evaluation_by_suit_symmetry_equals_a_walk_over_all_boards(name):
    game, merged = small(name, False), small(name, True)
    strategy = random_strategy(merged)
    apart = with_distinct_suits(game, merged, strategy)
    first = len(game.cards.board_cards[0]) == 1
    few, every = WALKED[name]
    assert walked(board_copies(game.cards, apart.probability)) == walked(board_copies(merged.cards)) == few + first
    assert walked(board_copies(game.cards)) == every + first
    found = values(game, apart)
    np.testing.assert_allclose(found, without_symmetry(game, apart), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found, values(merged, strategy), rtol=0, atol=1e-12)
    assert found[:, 1].sum() / 2 == pytest.approx(naive.exploitability(game, apart), abs=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_a_strategy_that_distinguishes_suits_is_walked_on_all_boards(name):
    """One infoset differs by one bit or completely: suit renamings that move it are not used."""
    game, merged = small(name, False), small(name, True)
    strategy = with_distinct_suits(game, merged, random_strategy(merged))
    even = without_symmetry(game, strategy)
    table = strategy.probability[-1]
    bucket = game.cards.bucket[-1][1]
    place = bucket[-1][bucket[-1] >= 0][0]
    table[place, :2] = np.nextafter(table[place, :2], 2)
    fewer = walked(board_copies(merged.cards))
    assert walked(board_copies(game.cards, strategy.probability)) > fewer
    for node in game.tree.decisions:
        if game.tree.arrays.block[node] == len(strategy.probability) - 1:
            slot = int(game.tree.arrays.slot[node])
            table[place, slot : slot + int(game.tree.arrays.count[node])] = np.eye(int(game.tree.arrays.count[node]))[0]
    found = values(game, strategy)
    np.testing.assert_allclose(found, without_symmetry(game, strategy), rtol=0, atol=1e-12)
    assert np.abs(found - even).max() > 1e-9


@pytest.mark.parametrize("name", ["two suits", "four suits"])
def test_ranges_that_distinguish_suits_are_walked_on_all_boards(name):
    game, merged = small(name, False), small(name, True)
    strategy = with_distinct_suits(game, merged, random_strategy(merged))
    reach = game.cards.reach.copy()
    reach[0, 3] = 0.25
    uneven = replace(game, cards=replace(game.cards, reach=reach))
    assert walked(board_copies(uneven.cards, strategy.probability)) > walked(board_copies(merged.cards))
    found = values(uneven, strategy)
    np.testing.assert_allclose(found, without_symmetry(uneven, strategy), rtol=0, atol=1e-12)


def test_planted_error_rows_that_are_not_compared():
    """Plant an error: rows are not compared, so a board represents boards with another strategy."""
    game = small("two suits", False)
    strategy = random_strategy(game)
    wrong = mutants.mutant(
        suit_symmetry, ("!= rows[other[start : start + step]])", "!= rows[one[start : start + step]])")
    )
    copies = wrong.board_copies(game.cards, strategy.probability)
    assert walked(copies) < walked(board_copies(game.cards, strategy.probability))


def test_values_do_not_depend_on_the_number_of_threads():
    """Values are equal to the last bit: threads write to separate places, added in one order."""
    game = small("three suits, two streets of boards", True)
    strategy = random_strategy(game)
    public = public_tree(game)
    assert len(public.tasks) > 3
    one = values(game, strategy, public=public)
    for threads in (2, 3):
        np.testing.assert_array_equal(values(game, strategy, public=public, threads=threads), one)


def test_planted_error_a_board_that_counts_only_for_itself(monkeypatch):
    """Each walked board counts only for itself, and the others of its class are not walked."""
    monkeypatch.setattr(best_response, "is_small", lambda game: False)
    game = small("two suits", True)
    strategy, public = random_strategy(game), public_tree(game)
    copies = public.copies
    alone = np.minimum(np.diff(copies.first, axis=1), 1)
    first = np.zeros_like(copies.first)
    first[:, 1:] = np.cumsum(alone).reshape(alone.shape)
    first[1:, 0] = first[:-1, -1]
    renaming = copies.renaming[copies.first[:, :-1][alone > 0]]
    forgotten = public._replace(copies=copies._replace(first=first, renaming=renaming))
    right = values(game, strategy, public=public)
    assert np.abs(values(game, strategy, public=forgotten) - right).max() > 1e-6
