"""Exact values and best responses over histories, against OpenSpiel, enumeration, linear programs."""

from dataclasses import replace
from itertools import product

import numpy as np
import pyspiel
import pytest
from linear_program import solve_linear_program
from openspiel import openspiel_values, turn_based_goofspiel
from small_games import coin
from strategies import random_strategy

import mccfr
from mccfr.config.game_tables import OpenSpielGame
from mccfr.games.history_tree import expand
from mccfr.games.openspiel_import import import_openspiel
from mccfr.solvers.histories.history_values import best_response_value, expected_value
from mccfr.tables.strategy import Strategy, row_starts, uniform_strategy

IMPORTED = ("liars_dice(dice_sides=4)", "kuhn_poker", "leduc_poker")
GAMES = {text: (import_openspiel(OpenSpielGame(game=text)), pyspiel.load_game(text), 1) for text in IMPORTED}
for cards in (4, 5):
    bids = mccfr.game("goofspiel", cards=cards, reveal="result")
    GAMES[f"goofspiel-{cards}"] = bids, turn_based_goofspiel(cards, "result"), 2
"""By name: our game, OpenSpiel's game, and the number of our chips that equal one of OpenSpiel's chips."""


@pytest.mark.parametrize("name", GAMES)
def test_value_and_best_response_equal_openspiels(name):
    game, spiel, ratio = GAMES[name]
    for strategy in (uniform_strategy(game), random_strategy(game)):
        values, best = openspiel_values(game, spiel, strategy)
        assert expected_value(game, strategy) == pytest.approx(ratio * values[0], abs=1e-9)
        for player in range(2):
            assert best_response_value(game, strategy, player) == pytest.approx(ratio * best[player], abs=1e-9)


def test_best_response_equals_the_best_of_all_pure_strategies():
    """Use strategies that depend on the order of past bids, which OpenSpiel's infosets do not contain."""
    game = mccfr.game("goofspiel", cards=3)
    rows = [np.diff(row_starts(game, player)) for player in range(2)]
    mixed = random_strategy(game, 5)
    for player in range(2):
        values = []
        for choices in product(*(range(count) for count in rows[player])):
            pure = np.concatenate([np.eye(n)[choice] for n, choice in zip(rows[player], choices, strict=True)])[None]
            probability = tuple(pure if p == player else mixed.probability[p] for p in range(2))
            values.append((1 - 2 * player) * expected_value(game, Strategy(probability, mixed.weight)))
        assert len(values) == 3 * 2**9
        assert best_response_value(game, mixed, player) == pytest.approx(max(values), abs=1e-12)


def test_imperfect_recall_is_refused():
    game = mccfr.game("goofspiel", cards=4)
    row, slot = game.tree.arrays.row.copy(), game.tree.arrays.slot.copy()
    nodes = [int(n) for n in game.tree.decisions if game.tree.arrays.player[n] == 1 and game.tree.arrays.count[n] == 2]
    arrays = game.tree.arrays
    other = next(n for n in nodes if arrays.row[n] != arrays.row[nodes[0]])
    row[other], slot[other] = arrays.row[nodes[0]], arrays.slot[nodes[0]]  # this history moves to another infoset
    broken = replace(game, tree=replace(game.tree, arrays=arrays._replace(row=row, slot=slot)))
    best_response_value(broken, uniform_strategy(game), 0)
    with pytest.raises(ValueError, match=rf"player 1 lacks perfect recall at node {other} of goofspiel"):
        best_response_value(broken, uniform_strategy(game), 1)


LEDUC_VALUE = -0.08560642407800
VALUES = {
    "kuhn": (mccfr.game("kuhn"), -1 / 18),
    "leduc": (mccfr.game("leduc"), LEDUC_VALUE),
    "leduc, suits merged": (mccfr.game("leduc", merge_suits=True), LEDUC_VALUE),
    "half-street AKQ": (mccfr.game("akq"), 1 / 18),
    "clairvoyance, 3 streets": (mccfr.game("clairvoyance", streets=3, bet=0.5, probability=0.3), 0.32 / 0.45),
    "antes 1 1, stack 5": (mccfr.game("poker", antes=(1, 1), stack=5, merge_suits=True), -0.080417285),
    "unequal chances": (coin(lambda _: "blind"), 1.0),
    "goofspiel": (mccfr.game("goofspiel", cards=4), 0.0),
    "matrix": (mccfr.game("matrix", payoffs=[[1, 0.9], [-0.7, 1]]), 1.63 / 1.8),
}


@pytest.mark.parametrize("name", VALUES)
def test_published_values(name):
    game, value = VALUES[name]
    game = expand(game).game if game.cards.dealt else game
    found = solve_linear_program(game)
    assert found.value_chips + game.offset_chips == pytest.approx(value, abs=2e-7)
    assert expected_value(game, found.strategy) == pytest.approx(found.value_chips, abs=1e-6)
    assert best_response_value(game, found.strategy, 0) == pytest.approx(found.value_chips, abs=1e-6)
    assert best_response_value(game, found.strategy, 1) == pytest.approx(-found.value_chips, abs=1e-6)
