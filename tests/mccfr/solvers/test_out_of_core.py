"""Out-of-core block schedule of strata: order, quotas and weights of cycles, and convergence.

Shows:

* Each cycle trains every stratum by its share, with one weight and its own order
  (test_a_cycle_trains_every_stratum_by_its_share_and_one_weight,
  test_cycle_quotas_have_exact_totals_and_are_proportional_by_stratum; planted:
  test_planted_errors_in_the_block_schedule_are_caught)
* Strata trained one block at a time learn as well as strata trained together
  (test_strata_trained_by_blocks_converge_like_strata_trained_together,
  test_blocks_converge_like_strata_trained_together_over_twenty_seeds)
"""

from itertools import pairwise, permutations

import numpy as np
import pytest
from stratified import Stratified

from mccfr.evaluation.exact import evaluate_exact
from mccfr.solvers import out_of_core as module
from mccfr.solvers.out_of_core import BlockSchedule, cycle_quotas, least_cycle_iterations, turn_order


def test_each_cycle_draws_its_own_order_and_all_orders_are_equally_likely():
    orders = [tuple(turn_order(3, cycle, 3)) for cycle in range(1200)]
    counts = [orders.count(order) for order in permutations(range(3))]
    assert sum(counts) == 1200 and min(counts) > 200 - 5 * np.sqrt(200)
    assert orders[:20] != [tuple(turn_order(4, cycle, 3)) for cycle in range(20)]


def test_cycle_quotas_have_exact_totals_and_are_proportional_by_stratum():
    shares = [6, 4, 7, 4, 1]
    least, done = least_cycle_iterations(shares), np.zeros(5, int)
    for cycle in range(50):
        quotas = cycle_quotas(shares, least + 5, cycle)
        done += quotas
        assert min(quotas) > 0 and sum(done) == (cycle + 1) * (least + 5)
        np.testing.assert_allclose(done, (cycle + 1) * (least + 5) * np.array(shares) / 22, atol=1)


def block_schedule(trained, blocks, iterations):
    return BlockSchedule(trained.barrier, blocks, iterations)


def train_cycles(trained, turns, cycles):
    """Train whole cycles like the block pools; return (block, interval, quotas) of each interval."""
    intervals = []
    while len(intervals) == 0 or turns.position.turns < cycles * turns.blocks or not turns.between:
        interval, quotas = turns.begin(trained.states)
        intervals.append((turns.block(), interval, quotas))
        trained.changes[:] = 0
        trained.train_strata(interval, quotas, [s for s, quota in enumerate(quotas) if quota])
        trained.barrier.add(interval, trained.changes)
        turns.end()
    return intervals


def check_cycle(trained, turns, iterations):
    """Check that a cycle trains each block once, with all quotas of its strata and a single weight."""
    before, cycle = trained.nodes, turns.position.turns // turns.blocks
    sums = trained.totals["strategy_sum/street0/player0"][:, :2].sum()
    intervals = train_cycles(trained, turns, cycle + 1)
    blocks = [block for block, _, _ in intervals]
    assert list(dict.fromkeys(blocks)) == turn_order(3, cycle, turns.blocks)
    assert sum(one != other for one, other in pairwise(blocks)) == turns.blocks - 1
    assert {interval.nodes for _, interval, _ in intervals} == {before}
    quotas = np.sum([quotas for _, _, quotas in intervals], axis=0)
    assert quotas.tolist() == cycle_quotas(trained.barrier.strata.shares.tolist(), iterations, cycle)
    added = trained.algorithm.schedule.weight(before) * iterations
    found = trained.totals["strategy_sum/street0/player0"][:, :2].sum()
    assert found == pytest.approx(sums + added, rel=1e-6)


def test_a_cycle_trains_every_stratum_by_its_share_and_one_weight():
    trained = Stratified(5, seed=3, period_nodes=3000)
    turns = block_schedule(trained, 3, 301)
    for _ in range(3):
        check_cycle(trained, turns, 301)


def change_weight(turns, states):
    turns.position = module.Position(turns.position.turns, sum(state.nodes for state in states))


def one_order(seed, cycle, blocks):
    return list(range(blocks))


@pytest.mark.parametrize("planted", ["a weight that changes within a cycle", "one order for ever", "no quotas"])
def test_planted_errors_in_the_block_schedule_are_caught(monkeypatch, planted):
    trained = Stratified(5, seed=3, period_nodes=300)
    turns, begin = block_schedule(trained, 3, 301), BlockSchedule._begin_turn
    if planted.startswith("a weight"):
        monkeypatch.setattr(BlockSchedule, "_begin_turn", lambda turns, s: (change_weight(turns, s), begin(turns, s)))
    elif planted == "no quotas":
        monkeypatch.setattr(module, "cycle_quotas", lambda shares, iterations, cycle: [60, 61, 60, 60, 60])
    else:
        monkeypatch.setattr(module, "turn_order", one_order)
    with pytest.raises(AssertionError):
        for _ in range(3):
            check_cycle(trained, turns, 301)


def ratio(seed, cycles, iterations, blocks=4):
    """Return the exploitability with blocks over that of strata together, after equal iterations."""
    found = []
    for in_turns in (True, False):
        trained = Stratified(4, seed=seed)
        if in_turns:
            train_cycles(trained, block_schedule(trained, blocks, iterations // cycles), cycles)
        else:
            trained.train(iterations)
        found.append(evaluate_exact(trained.game, trained.average()).exploitability_chips)
    return found[0] / found[1]


def test_strata_trained_by_blocks_converge_like_strata_trained_together():
    assert np.mean([ratio(seed, 330, 40_000) for seed in range(2)]) == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_blocks_converge_like_strata_trained_together_over_twenty_seeds():
    found = np.array([ratio(seed, 330, 300_000) for seed in range(20)])
    half = 2.1 * found.std(ddof=1) / np.sqrt(len(found))
    assert found.mean() - half > 0.9 and found.mean() + half < 1.1
