"""Node locks with sampled algorithms.

Shows:

* Sampled runs keep locked rows unchanged under every discount and learn a response to them
  (test_samplers_keep_locked_rows_and_learn_the_rest)
"""

import numpy as np
import pytest
from places import RUNS
from strategies import lock_distance, some_locks

from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.locks import LockRanges, read_locks
from mccfr.games.registry import build_game
from mccfr.solvers.locked_tables import with_locked_rows
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.strategy import uniform_strategy
from mccfr.tables.table_layout import private_tables

PERIOD = 20_000
SAMPLERS = {
    "external": ({"algorithm": "external-sampling", "discount": "linear"}, 20_000, 0.2),
    "swept": ({"algorithm": "external-sampling", "discount": "dcfr"}, 20_000, 0.2),
    "pruned": (
        {"algorithm": "external-sampling", "negative_regret_pruning": True, "prune_after_nodes": 0},
        20_000,
        0.3,
    ),
    "outcome": ({"algorithm": "outcome-sampling", "discount": "linear"}, 60_000, 0.6),
    "public chance": ({"algorithm": "public-chance-sampling"}, 2_000, 0.2),
}


def leduc(solver):
    config = config_from({"game": {"name": "leduc"}, "solver": {**solver, "period_nodes": PERIOD}}, "test")
    return build_game(config.game, RUNS), algorithm_of(config)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_keep_locked_rows_and_learn_the_rest(name):
    solver, iterations, bound = SAMPLERS[name]
    game, algorithm = leduc(solver)
    game = some_locks(game, bars=False)
    tables = private_tables(algorithm.layout(game))
    trained = algorithm.solver(game, tables)
    assert lock_distance(game, algorithm.averages.strategy(game, tables, 0, 0)) < 1e-6
    nodes = done = 0
    while done < iterations:
        found = trained.run(nodes, 10**9, iterations - done)
        done, nodes = done + found[0], nodes + found[1]
    strategy = algorithm.averages.strategy(game, tables, nodes, done)
    assert 0 < lock_distance(game, strategy) < 1e-6
    assert lock_distance(game, with_locked_rows(game, strategy)) == 0  # exports contain exactly the lock
    begun = evaluate_exact(game, uniform_strategy(game)).exploitability_chips
    assert evaluate_exact(game, strategy).exploitability_chips < bound * begun


@pytest.mark.parametrize("name", ["external", "public chance"])
def test_samplers_refuse_locks_that_forbid_an_action(name):
    game, algorithm = leduc(SAMPLERS[name][0])
    with pytest.raises(
        ValueError, match=r"take the action out of game\.menu, as game\.menu\.river\.button\.later = \[\]"
    ):
        algorithm.layout(some_locks(game))


def test_locks_of_buckets_are_read():
    game, _ = leduc({"algorithm": "external-sampling"})
    locks = read_locks({"cb2": "c #0-#1:0.5,#4; f #0-#1:0.5"}, game.tree, LockRanges(game.cards))
    ((node, shares),) = locks.shares.items()
    assert [game.tree.label[child] for child in game.tree.children(node)] == ["f", "c", "r5"]
    np.testing.assert_array_equal(shares[:, :5].T, [[0.5, 0.5, 0], [0.5, 0.5, 0], [-1] * 3, [-1] * 3, [0, 1, 0]])
    for text, sentence in (("c #9", "#9' is not a bucket from #0 to #5"), ("c AA", "'AA' is not a probability")):
        with pytest.raises(ValueError, match=sentence):
            read_locks({"cb2": text}, game.tree, LockRanges(game.cards))
