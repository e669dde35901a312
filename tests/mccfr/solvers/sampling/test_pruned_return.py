"""How soon an action that sampled pruning skips comes back once payoffs have changed, in units of the present weight.

At Leduc's first decision one action costs a chip more than the other until its regret lies on the floor, and then earns
a chip more.  Above the threshold every traversal looks at it and adds a chip of the present weight; below it one of
twenty does.  So it is played again after (what its regret is below the threshold) / 0.05 + (the rest) traversals on
average, whatever the weight is; and as fewer where the past is discounted, for its regret is smaller then.

Shows:

* An action that sampled pruning skips comes back as soon as the threshold says, in units of the present weight
  (test_a_pruned_action_comes_back_as_soon_as_is_said)
"""

import numpy as np
import pytest
from harness import LEDUC, Trainer

from mccfr.solvers.sampling.external.external_packed import PRUNED_SHARE, Pruning
from mccfr.tables.linear_discounting import Schedule
from mccfr.trees.compiled import TERMINAL

BELOW, FLOOR, PERIOD, SEEDS = 50.0, 55.0, 1_000, 16


def raising_earns(chips):
    """Leduc's tree where all that counts is whether player 0 begins with a bet: `chips` more than checking."""
    tree = LEDUC.tree
    bet = tree.arrays.first[0] + 1
    assert tree.label[bet] == "r3"
    fixed, below = np.zeros(tree.nodes), np.zeros(tree.nodes, bool)
    below[bet] = True
    for node in range(bet + 1, tree.nodes):
        below[node] = below[tree.parent[node]]
    fixed[below & (tree.arrays.kind == TERMINAL)] = chips
    return tree.arrays._replace(fixed=fixed, showdown=np.zeros(tree.nodes))


def traversals_until_played(schedule, before, after, seed):
    """Iterations of one deal, all in the period of `after` nodes, until the bet is played; learnt at `before` nodes."""
    run = Trainer(LEDUC, schedule=schedule, seed=seed, general=True)
    inner, pruning = run.inner, Pruning(1, BELOW, FLOOR, FLOOR)
    inner._own = lambda _: (pruning,)
    run.train(1)  # deals; what has been learnt of the game itself is dropped
    for table in run.tables.values():
        table[:] = 0
    row = run.arrays.regret_base[0] + inner._deals.bucket[0, 0] * run.arrays.width[0]
    limits = np.array([0, 1, np.iinfo(np.int64).max, 0])

    def play(tree, nodes, most):
        weight, count = schedule.weight(nodes), 0
        run.sweep_at(nodes)
        while count < most and not run.arrays.regret[row + 1] > 0:
            inner._kernel(tree, run.arrays, inner._deals, limits, weight, run.rng, inner._scratch, pruning)
            count += 1
        return count, run.arrays.regret[row + 1] / weight

    assert play(raising_earns(-1.0), before, 600) == (600, -FLOOR)
    return play(raising_earns(1.0), after, 3_000)[0]


@pytest.mark.parametrize(
    ("kind", "before", "after", "chips"),
    [
        ("none", 0, 0, FLOOR),
        ("linear", 4 * PERIOD, 4 * PERIOD, FLOOR),
        ("linear", 4 * PERIOD, 9 * PERIOD, FLOOR / 2),
        ("dcfr", 4 * PERIOD, 4 * PERIOD, FLOOR),
        ("dcfr", 4 * PERIOD, 5 * PERIOD, FLOOR / 2),
    ],
)
def test_a_pruned_action_comes_back_as_soon_as_is_said(kind, before, after, chips):
    """`chips`: its negative regret, in units of the weight, when payoffs change.

    The weight of period 10 is twice that of period 5; under dcfr a period's end halves negative regrets.
    """
    looks, seldom = np.ceil(chips), max(0.0, chips - BELOW)
    share = 1 - PRUNED_SHARE
    expected = looks - seldom + seldom / share + 1
    error = np.sqrt(seldom * PRUNED_SHARE) / share / np.sqrt(SEEDS)
    found = np.mean([traversals_until_played(Schedule(kind, PERIOD), before, after, s) for s in range(SEEDS)])
    assert abs(found - expected) <= 2 + 4 * error
