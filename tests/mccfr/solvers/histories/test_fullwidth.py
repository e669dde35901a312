"""Exact value and best response over histories, against OpenSpiel and enumeration."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pyspiel
import pytest
from strategies import tabulate

from mccfr.config.game_tables import GoofspielGame, OpenSpielGame
from mccfr.games.goofspiel import goofspiel
from mccfr.games.openspiel_import import import_openspiel
from mccfr.solvers.histories.history_values import best_response_value, expected_value
from mccfr.tables.strategy import Strategy, row_starts, uniform_strategy

GOOFSPIEL = (
    "turn_based_simultaneous_game(game=goofspiel(num_cards={},points_order=ascending,imp_info={},"
    "returns_type=point_difference))"
)
TEXTS = {
    "liars dice": "liars_dice(dice_sides=4)",
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "goofspiel-4": GOOFSPIEL.format(4, "False"),
    "goofspiel-4 result": GOOFSPIEL.format(4, "True"),
    "goofspiel-5": GOOFSPIEL.format(5, "False"),
}
GAMES = {
    "liars dice": import_openspiel(OpenSpielGame(game="liars_dice(dice_sides=4)")),
    "kuhn": import_openspiel(OpenSpielGame(game="kuhn_poker")),
    "leduc": import_openspiel(OpenSpielGame(game="leduc_poker")),
    "goofspiel-4": goofspiel(GoofspielGame(cards=4)),
    "goofspiel-4 result": goofspiel(GoofspielGame(cards=4, reveal="result")),
    "goofspiel-5": goofspiel(GoofspielGame(cards=5)),
}
ACTION_OFFSET = {name: int(name.startswith("goofspiel")) for name in GAMES}  # our bid 1 is OpenSpiel's action 0
PAYOFF_RATIO = {name: 1 + ACTION_OFFSET[name] for name in GAMES}  # OpenSpiel halves the difference


@cache
def openspiel_names(name):
    """OpenSpiel's name of the infoset of each decision node, found by walking both trees together."""
    tree, names = GAMES[name].tree, {}
    todo = [(0, pyspiel.load_game(TEXTS[name]).new_initial_state())]
    while todo:
        node, state = todo.pop()
        if state.current_player() >= 0:
            names[node] = state.information_state_string()
        todo.extend((c, state.child(int(tree.label[c]) - ACTION_OFFSET[name])) for c in tree.children(node))
    return names


def policy_pair(name, seed):
    """A policy of OpenSpiel and the same as ours: uniform (seed 0) or random, some actions never played."""
    game, rng = GAMES[name], np.random.default_rng(seed)
    table = {}
    for node, infoset in openspiel_names(name).items():
        if infoset not in table:
            count = int(game.tree.arrays.count[node])
            weights = np.ones(count) if seed == 0 else rng.exponential(size=count) * (rng.random(count) < 0.8)
            weights = weights if weights.sum() > 0 else np.eye(count)[0]
            table[infoset] = (weights / weights.sum(), [int(game.tree.label[c]) for c in game.tree.children(node)])
    theirs = pyspiel.TabularPolicy(
        {
            i: [(a - ACTION_OFFSET[name], float(x)) for a, x in zip(labels, p, strict=True)]
            for i, (p, labels) in table.items()
        }
    )
    return theirs, tabulate(game, lambda node, _: table[openspiel_names(name)[node]][0])


def their_values(name, policy):
    """OpenSpiel's value for player 0, best response values of both players, and NashConv, in our chips."""
    game = pyspiel.load_game(TEXTS[name])
    root = game.new_initial_state()
    best = [pyspiel.TabularBestResponse(game, player, policy).value_from_state(root) for player in range(2)]
    value = pyspiel.expected_returns(root, policy, -1, True)[0]
    return np.array([value, *best, pyspiel.nash_conv(game, policy, True)]) * PAYOFF_RATIO[name]


def our_values(game, strategy):
    best = [best_response_value(game, strategy, player) for player in range(2)]
    return np.array([expected_value(game, strategy), *best, sum(best)])


@pytest.mark.parametrize("name", GAMES)
def test_value_and_best_response_equal_openspiels(name):
    for seed in range(2):  # uniform, and random
        theirs, ours = policy_pair(name, seed)
        assert our_values(GAMES[name], ours) == pytest.approx(their_values(name, theirs), abs=1e-9)


def test_best_response_equals_the_best_of_all_pure_strategies():
    """Policies that depend on the order of past bids, which OpenSpiel's infosets forget."""
    game, rng = goofspiel(GoofspielGame(cards=3)), np.random.default_rng(5)
    rows = [np.diff(row_starts(game, player)) for player in range(2)]
    mixed = Strategy(
        tuple(np.concatenate([rng.dirichlet(np.ones(n)) for n in rows[player]])[None] for player in range(2)),
        uniform_strategy(game).weight,
    )
    for player in range(2):
        values = []
        for choices in product(*(range(count) for count in rows[player])):
            pure = np.concatenate([np.eye(n)[choice] for n, choice in zip(rows[player], choices, strict=True)])[None]
            probability = tuple(pure if p == player else mixed.probability[p] for p in range(2))
            values.append((1 - 2 * player) * expected_value(game, Strategy(probability, mixed.weight)))
        assert len(values) == 3 * 2**9
        assert best_response_value(game, mixed, player) == pytest.approx(max(values), abs=1e-12)


def test_lost_recall_is_found():
    game = GAMES["goofspiel-4"]
    row, slot = game.tree.arrays.row.copy(), game.tree.arrays.slot.copy()
    nodes = [int(n) for n in game.tree.decisions if game.tree.arrays.player[n] == 1 and game.tree.arrays.count[n] == 2]
    arrays = game.tree.arrays
    other = next(n for n in nodes if arrays.row[n] != arrays.row[nodes[0]])
    row[other], slot[other] = arrays.row[nodes[0]], arrays.slot[nodes[0]]  # one history moved to another infoset
    broken = replace(game, tree=replace(game.tree, arrays=arrays._replace(row=row, slot=slot)))
    best_response_value(broken, uniform_strategy(game), 0)
    with pytest.raises(ValueError, match=rf"player 1 lacks perfect recall at node {other} of goofspiel"):
        best_response_value(broken, uniform_strategy(game), 1)
