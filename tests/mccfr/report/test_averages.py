"""How far averages are apart, by street and depth, against a loop over infosets.

Shows:

* Averages of a run differ by street and depth as a loop over infosets says; experiments compare variants seed by seed
  (test_distances_are_means_by_weight_of_each_street_and_depth,
  test_pairs_are_ratios_to_the_first_variant_seed_by_seed)
"""

import numpy as np
import pytest

from mccfr.config.games import LeducGame
from mccfr.games.catalogue import build_game
from mccfr.report.averages import disagreements
from mccfr.tables.strategy import Strategy, uniform_strategy


def test_distances_are_means_by_weight_of_each_street_and_depth():
    game = build_game(LeducGame(merge_suits=True), None, None)
    tree, random, even = game.tree, np.random.default_rng(0), uniform_strategy(game)
    weights = tuple(random.uniform(size=weight.shape) for weight in even.weight)
    moved = []
    for block, table in enumerate(even.probability):
        changed = np.array(table)
        for node in tree.decisions[tree.arrays.block[tree.decisions] == block].tolist():
            slot = int(tree.arrays.slot[node])
            step = random.uniform(0, 0.3, len(changed))
            changed[:, slot] += step
            changed[:, slot + 1] -= step
        moved.append(changed)
    found = disagreements(game, [(Strategy(even.probability, weights), Strategy(tuple(moved), even.weight))])

    def where(node):
        return int(tree.arrays.block[node]) // 2, len(tree.path(node)) - 1

    assert [(row.street, row.depth) for row in found] == sorted({where(node) for node in tree.decisions.tolist()})
    for row in found:
        gaps, mass, count = 0.0, 0.0, 0
        for node in tree.decisions.tolist():
            if where(node) == (row.street, row.depth):
                block, slot = int(tree.arrays.block[node]), int(tree.arrays.slot[node])
                for bucket, weight in enumerate(weights[block][:, tree.arrays.row[node]]):
                    gaps += weight * abs(moved[block][bucket, slot] - even.probability[block][bucket, slot])
                    mass, count = mass + weight, count + 1
        assert row.mean == pytest.approx(gaps / mass, rel=1e-12)
        assert row.infosets == count
