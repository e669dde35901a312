"""Solvers for games with three and more players in history trees: convergence, averages, refusals.

Shows:

* Sampling and full-width CFR solve Kuhn poker with three players to 0.005 chips
  (planted: test_averaging_at_one_opponents_traversal_stays_exploitable)
* External sampling solves Leduc poker with three players to 0.05 chips (test_leduc_with_three_players)
* Additions to an average strategy are in proportion to the player's own reach
  (planted: test_additions_are_in_proportion_to_own_reach)
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from harness import Trainer
from mutants import mutant
from refusals import refusals

import mccfr
from mccfr.evaluation.exact import evaluate_exact
from mccfr.solvers.histories.history_cfr import HistoryCfr
from mccfr.solvers.sampling.external import external_general
from mccfr.solvers.variants import variant
from mccfr.tables.linear_discounting import Schedule

KUHN = mccfr.game("kuhn", players=3)


def nash_conv(game, strategy):
    return sum(evaluate_exact(game, strategy).gains_chips)


@cache
def at_one_opponent_only():
    """Return kernels with an error: only the next player's traversal adds to strategy sums, undivided."""
    part = "part = weight / others_sampled(work, node, tree.player[node])"
    return mutant(external_general, (part, "part = weight if tree.player[node] == (traverser + 1) % players else 0.0"))


@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr", "pcfr+"])
def test_full_width_cfr_solves_kuhn(name):
    """With more than two players CFR has no guarantee, but it solves Kuhn poker."""
    solver = HistoryCfr(KUHN, variant(name))
    solver.iterate(20_000)
    assert nash_conv(KUHN, solver.average_strategy()) < 0.005


@pytest.mark.parametrize("players", [3, 4])
def test_partial_pruning_changes_no_table(players):
    game = mccfr.game("kuhn", players=players)
    plain, pruned = (HistoryCfr(game, variant("cfr+"), partial_pruning=prune) for prune in (False, True))
    for solver in (plain, pruned):
        solver.iterate(200)
    assert all(np.array_equal(plain.tables[name], pruned.tables[name]) for name in plain.tables)
    assert pruned.nodes_touched < plain.nodes_touched


def test_simultaneous_updates_use_the_strategies_before_the_iteration():
    """Compare one iteration with alternating updates, where player 2 already meets new strategies."""
    both = HistoryCfr(KUHN, variant("cfr", updates="simultaneous"))
    first = HistoryCfr(KUHN, variant("cfr"))
    both.iterate(1)
    first.iterate(1)
    assert np.array_equal(both.tables["regret/street0/player0"], first.tables["regret/street0/player0"])
    assert not np.array_equal(both.tables["regret/street0/player2"], first.tables["regret/street0/player2"])


@pytest.mark.parametrize(("algorithm", "iterations"), [("external", 1_000_000), ("outcome", 4_000_000)])
def test_sampling_solves_kuhn(algorithm, iterations):
    trainer = Trainer(KUHN, algorithm).train(iterations)
    assert nash_conv(KUHN, trainer.strategy) < 0.005


def test_averaging_at_one_opponents_traversal_stays_exploitable():
    """Adding to sums only at the next player's traversal does not average the strategies played.

    NashConv stays at 0.02 chips with more iterations.
    """
    trainer = Trainer(KUHN, general=True, kernels=at_one_opponent_only())
    assert nash_conv(KUHN, trainer.train(1_000_000).strategy) > 0.015


@pytest.mark.parametrize("planted", [False, True])
def test_additions_are_in_proportion_to_own_reach(planted):
    """Without payoffs play is uniform: mean sums are the chance probability times own reach.

    Sums of the planted error also contain the other opponent's reach.
    """
    unpaid = replace(KUHN, tree=replace(KUHN.tree, payoffs=np.zeros_like(KUHN.tree.payoffs)))
    trainer = Trainer(unpaid, general=True, kernels=at_one_opponent_only() if planted else None).train(400_000)
    arrays, off = KUHN.tree.arrays, 0.0
    for player in range(3):
        sums = trainer.tables[f"strategy_sum/street0/player{player}"][0]
        for node in np.flatnonzero(arrays.player == player).tolist():
            own = sum(arrays.player[step] == player for step in KUHN.tree.path(node)[:-1])
            slot = int(arrays.slot[node])
            expected = trainer.iterations * 2 / 4 * 0.5**own  # two other players' traversals, a card of four
            off = max(off, abs(sums[slot : slot + 2].sum() / expected - 1))
    assert off > 0.4 if planted else off < 0.05


@pytest.mark.slow
def test_leduc_with_three_players():
    """Use linear discounting; without it NashConv is 0.06 chips."""
    game = mccfr.game("leduc", players=3)
    trainer = Trainer(game, schedule=Schedule("linear")).train(5_000_000)
    found = nash_conv(game, trainer.strategy)
    assert found < 0.05


test_algorithms_for_two_players_are_refused = refusals(
    ("'public-chance-sampling' with these options is for two players", {"algorithm": "public-chance-sampling"}),
    ("pruning 'none' or 'partial'", {"algorithm": "cfr", "pruning": "regret-based"}),
    ("is for two players", {"algorithm": "cfr", "best_response": "zero-reach", "pruning": "partial"}),
    ("is for two players", {"algorithm": "deep-cfr"}),
    ("is for two players", {"algorithm": "cfr-br"}),
    call=lambda options: mccfr.solver(mccfr.game("kuhn", players=3), **options),
)


def test_resumed_sampling_has_the_same_bits():
    whole, halves = Trainer(KUHN).train(2_000), Trainer(KUHN).train(1_000).train(2_000)
    assert all(np.array_equal(whole.tables[name], halves.tables[name]) for name in whole.tables)
