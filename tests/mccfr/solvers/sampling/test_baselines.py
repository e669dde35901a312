"""Baselines of sampled traversals change no expectation, whatever they are, and make outcome sampling scatter less.

Expectations are enumerated (`enumerated.py`), on tables in float64.
"""

from functools import cache

import naive
import numpy as np
import pytest
from enumerated import Traversals, mean_change
from harness import KUHN, LEDUC, MERGED_LEDUC, Trainer
from mutants import mutant

import mccfr
from mccfr.solvers.outcome import tree_depth
from mccfr.solvers.sampling import baselines
from mccfr.solvers.sampling.common import new_worklist
from mccfr.tables.layout import BASELINE, cells_ahead
from mccfr.trees.compiled import DECISION

EPSILON = 0.3
NONE, UNDIVIDED, AT_ONCE = range(3)
GAMES = {"external": KUHN, "outcome": LEDUC}  # what a traversal samples is many choices, or one path


@cache
def wrong():
    """Outcome sampling with errors that a second cell of `Baselines.rate` chooses, compiled once a process."""
    return mutant(
        baselines,
        (
            "(worth - value[action]) / chance",
            f"(worth - value[action]) / (chance if baselines.rate[1] != {UNDIVIDED} else 1.0)",
        ),
        (
            "    place = baselines.moves[0]\n",
            f"    if baselines.rate[1] == {AT_ONCE}:\n        baselines.cells[cell] += baselines.rate[0] * worth\n"
            "    place = baselines.moves[0]\n",
        ),
    )


class Play(Traversals):
    """Traversals with baselines."""

    def __init__(self, algorithm, seats=(0, 2), rate=0.0, scale=0.0, error=NONE):
        """`scale` of the baselines to begin with; an `error` other than NONE is made by the mutant."""
        super().__init__(GAMES[algorithm], baseline_scale=scale)
        module, game = wrong() if error else baselines, self.game
        self.kernel = getattr(module, f"{algorithm}_sampling_with_baselines")
        self.sampled = getattr(self, f"sampled_{algorithm}")
        blocks, nodes = 2 * game.tree.streets, len(self.tree.kind)
        flat = self.tables.kernel.regret
        made = baselines.new_baselines(flat, cells_ahead(self.tables, BASELINE), rate, 2 * nodes)
        made = made._replace(rate=np.array([rate, error], np.float64)[: 2 if error else 1])
        if algorithm == "external":
            self.scratch, own = new_worklist(nodes, blocks, "float64", seats), ()
        else:
            most = int(self.tree.count.max())
            self.scratch = baselines.new_steps(tree_depth(game.tree), most, blocks, "float64")
            self.scratch.seats[:], own = seats, (EPSILON,)
        self.own = (*own, made)

    def sampled_external(self, seat):
        """(what has been sampled by the last traversal, its probability)."""
        chosen, probability, waiting = [], 1.0, [0]
        while waiting:
            node = waiting.pop()
            if self.tree.kind[node] != DECISION:
                continue
            first = self.tree.first[node]
            if self.tree.player[node] == seat:
                waiting += range(first, first + self.tree.count[node])
            else:
                child = int(self.scratch.child[node])
                chosen.append(child)
                probability *= self.sigma(node)[1][child - first]
                waiting.append(child)
        return tuple(chosen), probability

    def sampled_outcome(self, seat):
        """As `sampled_external`."""
        chosen, probability, node = [], 1.0, 0
        while self.tree.kind[node] == DECISION:
            action, sigma = int(self.scratch.action[len(chosen)]), self.sigma(node)[1]
            assert self.scratch.node[len(chosen)] == node
            share = EPSILON / len(sigma) if self.tree.player[node] == seat else 0
            probability *= share + (1 - share * len(sigma)) * sigma[action]
            node = self.tree.first[node] + action
            chosen.append(node)
        return tuple(chosen), probability


def error_of_the_mean(algorithm, seat, error=NONE):
    """Largest difference between enumerated and exact increments of regrets, with baselines of some chips."""
    play = Play(algorithm, (seat, seat + 1), scale=3.0, error=error)
    return np.abs(mean_change(play, seat) - play.expected_regrets(seat)).max()


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_arbitrary_baselines_change_no_expectation(algorithm, seat):
    assert error_of_the_mean(algorithm, seat) < 1e-12


def test_a_correction_that_is_not_divided_is_caught():
    assert error_of_the_mean("outcome", 0, UNDIVIDED) > 1e-2


@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_baselines_of_nothing_are_the_sampler_without(algorithm):
    """The same random numbers, hence the same play; regrets differ by rounding.

    Outcome sampling without baselines plays deals in groups that learn together: there it is so of the first path.
    """
    play, deals = Play(algorithm), {"external": 8, "outcome": 1}[algorithm]
    plain = Trainer(play.game, algorithm, general=True, regret_dtype="float64", epsilon=EPSILON)
    for name in plain.tables:
        plain.tables[name][:] = play.tables[name]
    plain.play(play.deals, deals)
    play.run(0, (0, deals))
    first = [name for name in plain.tables if ("regret" in name) == ("player0" in name)]
    for name in plain.tables if algorithm == "external" else first:
        table = plain.tables[name]
        assert np.abs(table - play.tables[name]).max() < 1e-12
    assert np.abs(play.tables.kernel.regret - play.start).max() > 1e-2


def test_no_baseline_serves_on_the_deal_that_moves_it():
    for rate in (0.0, 1.0):
        play = Play("outcome", rate=rate)
        deals = [play.run(seed)[play.start != 0] for seed in range(20)]
        if rate == 0:
            right = deals
    assert all(np.array_equal(one, other) for one, other in zip(deals, right, strict=True))
    later = [Play("outcome", rate=rate).run(0, (0, 8)) for rate in (0.0, 1.0)]
    assert not np.array_equal(*[change[play.start != 0] for change in later])
    early = Play("outcome", rate=1.0, error=AT_ONCE)
    deals = [early.run(seed)[play.start != 0] for seed in range(20)]
    assert not all(np.array_equal(one, other) for one, other in zip(deals, right, strict=True))


def test_outcome_sampling_comes_closer_at_equal_nodes():
    """At a rate of next to nothing baselines stay where they begin, at 0: the sampler without."""
    chips = {}
    for rate in (1e-30, 0.5):
        options = {"baseline_rate": rate, "regret_dtype": "float64"}
        runs = [mccfr.solver(MERGED_LEDUC, "outcome-sampling", seed=seed, **options) for seed in range(3)]
        for run in runs:
            run.run(nodes=300_000)
        chips[rate] = np.mean([naive.exploitability(run.game, run.strategy()) for run in runs])
    assert chips[0.5] < 0.85 * chips[1e-30]
