"""Errors of published solvers, planted in the kernels: the checks of production code detect them.

Each test runs one check on production code and on a mutant of it. The figures in the docstrings were measured
with these seeds; the assertions demand a wide gap. The checks are:

- exploitability after a fixed number of iterations
- mean increments of single iterations from a fixed strategy against enumeration, in standard errors
- discounted tables against an eager sweep, relative to a row's largest entry
- a resumed run against an uninterrupted one
- how often two workers draw the same deals and actions
- strategy sums against the weighted sum of single increments

Shows:

* The checks of the kernels detect errors that published solvers have had (planted: test_planted_errors)
"""

from functools import cache

import numpy as np
import planted
import pytest
from eager import against_eager, swept_tables
from harness import (
    KUHN,
    KUHN_OUTCOME,
    LEDUC,
    LEDUC_EXTERNAL_SHORT,
    LEDUC_OUTCOME_SHORT,
    MERGED_LEDUC,
    Trainer,
    increment_scores,
    same_tables,
    trained_chips,
)
from mutants import mutant

from mccfr.config.game_tables import KuhnGame
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import ExternalSamplingConfig, OutcomeSamplingConfig
from mccfr.solvers.public.public_chance import public_chance_sampling as public_chance
from mccfr.solvers.sampling import sampled
from mccfr.solvers.sampling.external import external_algorithm as external_solver
from mccfr.solvers.sampling.outcome import outcome_algorithm as outcome_solver
from mccfr.solvers.solver import Share
from mccfr.tables import linear_discounting
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import make_layout, private_tables

STANDARD_ERRORS = 5.0  # over the 1,344 cells of Leduc with suits merged; production's largest is 4.3
WIDE = {"regret_dtype": "float64", "sum_dtype": "float64"}
DCFR = Schedule("dcfr", 10_000)


SHORT = LEDUC_EXTERNAL_SHORT
BOUNDS = {"Leduc, external": SHORT, "Kuhn, outcome": KUHN_OUTCOME, "Leduc, outcome": LEDUC_OUTCOME_SHORT}


def wrong(algorithm, error):
    """Return options of `Trainer` for a kernel with the planted error and float64 tables."""
    mutants = {"external": planted.wrong_external, "outcome": planted.wrong_outcome}
    return {"kernels": mutants[algorithm](), "planted": error, **WIDE}


@cache
def right_chips(name):
    """Return the exploitability in chips of production kernels with float64 tables."""
    return trained_chips(BOUNDS[name], **WIDE)


def assert_caught(name, error, times):
    """Check that production stays below a bound, and a run with the error above `times` this bound."""
    bound = BOUNDS[name]
    assert right_chips(name) < bound.chips
    assert trained_chips(bound, **wrong(bound.algorithm, error)) > times * bound.chips


def assert_biased(algorithm, error, kind, above=100):
    """Check that an error shifts mean increments of one kind by `above` standard errors on Leduc.

    Increments of the other kind stay unbiased.
    """
    for name, score in increment_scores(MERGED_LEDUC, algorithm, **wrong(algorithm, error)).items():
        if name == kind:
            assert score > above, f"{name}: a planted error stays within {score:.1f} standard errors"
        else:
            assert score < STANDARD_ERRORS, f"{name}: off by {score:.1f} standard errors"


@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_mutants_without_an_error_equal_production_to_the_last_bit(algorithm):
    production, other = (
        Trainer(LEDUC, algorithm, schedule=DCFR, **options).train(3_000) for options in (WIDE, wrong(algorithm, 0))
    )
    assert same_tables(production, other)


@pytest.mark.parametrize("game", [KUHN, MERGED_LEDUC], ids=["Kuhn", "Leduc"])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_production_increments_are_unbiased(algorithm, game):
    """Compare increments with enumeration on Leduc, in standard errors of regrets and sums.

    The largest deviations are 3.8 and 4.3 in external sampling, 3.1 and 3.2 in outcome sampling.
    """
    scores = increment_scores(game, algorithm)
    assert max(scores.values()) < STANDARD_ERRORS, scores


def test_extra_opponent_reach_in_regrets_is_caught():
    """Exploitability of Leduc after 10^6 iterations is 0.145 chips with the error, 0.017 without it.

    Regrets are off by 1,457 standard errors.
    """
    assert_caught("Leduc, external", planted.OPPONENT_REACH, 4)
    assert_biased("external", planted.OPPONENT_REACH, "regret")


def test_averaging_at_own_nodes_is_caught():
    """Exploitability of Leduc after 10^6 iterations is 0.136 chips with the error, 0.017 without it.

    Kuhn does not show the error. Sums grow that should stay 0.
    """
    assert_caught("Leduc, external", planted.AT_OWN_NODES, 4)
    assert_biased("external", planted.AT_OWN_NODES, "strategy_sum")


@pytest.mark.parametrize("name", ["Kuhn, outcome", "Leduc, outcome"])
def test_no_division_by_the_sampling_probability_is_caught(name):
    """Exploitability of Kuhn after 10^6 iterations is 0.116 chips with the error, 0.002 without it.

    Leduc after 2·10^6 iterations: 2.04 chips with the error, 0.08 without it.
    """
    assert_caught(name, planted.UNDIVIDED, 10)


def test_weight_missing_only_in_outcome_regrets_is_caught():
    """The regrets are off by 2,300 standard errors, the sums by less than 5."""
    assert_biased("outcome", planted.UNDIVIDED_REGRETS, "regret")


def test_weight_missing_only_in_outcome_sums_is_caught():
    """The sums are off by 1,100 standard errors; Kuhn's exploitability (0.0023 chips) does not show it."""
    assert_biased("outcome", planted.UNDIVIDED_SUMS, "strategy_sum")
    assert trained_chips(KUHN_OUTCOME, **wrong("outcome", planted.UNDIVIDED_SUMS)) < KUHN_OUTCOME.chips


def test_own_reach_missing_in_outcome_regrets_is_caught():
    """The regrets are off by 59 standard errors; those of the last decision of each path are right."""
    assert_biased("outcome", planted.WORTH_STAYS, "regret", above=30)


@cache
def right_gaps(kind):
    """Return the distance of production tables from an eager sweep with this discount."""
    return against_eager(LEDUC, Schedule(kind, 10_000), 300_000)


def assert_discounts(right_schedule, *, wrong, **options):
    """Compare tables with an eager sweep; with `options`, a planted error, both kinds differ by `wrong`."""
    assert max(right_gaps(right_schedule.kind).values()) < 1e-9, right_gaps(right_schedule.kind)
    errors = against_eager(LEDUC, right_schedule, 300_000, **options)
    assert min(errors.values()) > wrong, f"a planted error is off by only {errors} of a row's largest entry"


@pytest.mark.parametrize(
    ("kind", "old", "never", "twice"),
    [
        ("linear", "return float(period)\n", "return 1.0\n", "return float(period) ** 2\n"),
        ("initial", "else 10.0\n", "else 1.0\n", "else 100.0\n"),
    ],
)
def test_a_missing_or_squared_discount_weight_is_caught(kind, old, never, twice):
    """Production equals an eager sweep to 1e-13 of a row's largest entry.

    With a missing or squared weight the difference is above half of that entry.
    """
    for new in (never, twice):
        planted = mutant(linear_discounting, (old, new)).Schedule(kind, 10_000)
        assert_discounts(Schedule(kind, 10_000), wrong=0.5, schedule=planted)


@pytest.mark.parametrize("error", planted.SWEEPS)
def test_a_missing_or_repeated_dcfr_discount_is_caught(error):
    """Production equals an eager sweep to 1e-13 of a row's largest entry."""
    assert_discounts(DCFR, wrong=0.5, sweep=planted.wrong_sweep(error))


@pytest.mark.parametrize("kind", ["linear", "initial", "dcfr"])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_an_unsaved_position_inside_a_period_is_caught(algorithm, kind):
    """Resuming gives equal bits; from the start of the period, sums differ by 0.47 to 0.77 of the largest."""
    options = {"schedule": Schedule(kind, 10_000), "seed": 3}
    whole = Trainer(LEDUC, algorithm, **options).train(nodes=35_000)
    stopped = Trainer(LEDUC, algorithm, **options).train(nodes=7_000)
    resumed = stopped.resume().train(whole.iterations)
    assert same_tables(resumed, whole)
    planted = stopped.resume(nodes=0).train(whole.iterations)
    assert not same_tables(planted, whole)
    sums, expected = (swept_tables(trainer)["strategy_sum/street0/player0"] for trainer in (planted, whole))
    assert np.abs(sums - expected).max() > 0.1 * expected.max()


SOLVERS = {
    "external-sampling": (external_solver, "ExternalSampling", ExternalSamplingConfig),
    "outcome-sampling": (outcome_solver, "OutcomeSampling", OutcomeSamplingConfig),
}


def algorithm_with(name, *edits):
    """Return an algorithm for Kuhn without discounting, with errors planted in the common sampling code."""
    module, answer, options = SOLVERS[name]
    if edits:
        module = mutant(module, using={"mccfr.solvers.sampling.sampled": mutant(sampled, *edits)})
    return getattr(module, answer)(Config(game=KuhnGame(), solver=options(discount="none", seed=7)))


def shared_draws(name, *edits, iterations=2_000):
    """Return the shares of iterations in which workers 0 and 1 draw the same deal and the same action.

    The game is Kuhn. Player 0's card identifies the deal. Player 0's traversal identifies the action: it is the first
    of an iteration, so play is uniform, and it reaches the second decision if player 1 bets after a check.
    """
    drawn = np.zeros((2, 2, iterations), np.int64)
    for worker in range(2):
        tables = private_tables(make_layout(KUHN))
        solver = algorithm_with(name, *edits).solver(KUHN, tables, Share(worker))
        sums, regrets = tables["strategy_sum/street0/player0"], tables["regret/street0/player0"]
        for iteration in range(iterations):
            for table in tables.values():
                table[:] = 0
            assert solver.run(0, 1_000, 1)[0] == 1
            drawn[worker, :, iteration] = sums.sum(axis=1).argmax(), regrets[:, 2:4].any()
    return (drawn[0] == drawn[1]).mean(axis=1)


@pytest.mark.parametrize(("algorithm", "reached"), [("external-sampling", 0.5), ("outcome-sampling", 0.25)])
def test_workers_that_share_a_random_stream_are_caught(algorithm, reached):
    """Independent workers draw the same card in 1/3, the same action in p² + (1 - p)² of iterations.

    Over 2,000 iterations the standard error is 0.01. Streams of actions are compared on equal deals: with other cards
    the strategies and numbers of draws differ, so workers with a common stream also differ.
    """
    card, choice = 1 / 3, reached**2 + (1 - reached) ** 2
    deals = ("game.cards.dealer(seed, share.worker)", "game.cards.dealer(0, 0)")
    actions = ("new_stream(self.config.solver.seed, worker)", "new_stream(0, 0)")
    within = 0.055  # five standard errors
    assert shared_draws(algorithm) == pytest.approx([card, choice], abs=within)
    assert shared_draws(algorithm, deals) == pytest.approx([1, choice], abs=within)
    assert shared_draws(algorithm, deals, actions) == pytest.approx([1, 1], abs=1e-12)


WEIGHT = "return 1.0, float(self.schedule.effective_period(nodes)) ** self.schedule.gamma"


def floored_sums(module, schedule):
    """Return the nodes before each iteration and the tables of a Leduc run with regrets floored at 0."""
    tables = module.new_tables(module.table_specs(LEDUC, "float64", "float64"))
    run = module.PublicChanceSampling(LEDUC, module.PublicChanceOptions(schedule), tables, seed=2)
    nodes, found = [], [{name: table.copy() for name, table in tables.items()}]
    for _ in range(80):
        nodes.append(run.nodes_touched)
        run.run(1)
        found.append({name: table.copy() for name, table in tables.items()})
    return nodes, found


@pytest.mark.parametrize(
    "planted", [WEIGHT.removesuffix(" ** self.schedule.gamma"), WEIGHT.replace("effective_period", "period")]
)
def test_wrong_weights_of_strategy_sums_are_caught(planted):
    """Sums have weight n² in period n, to 1e-13 of the largest; wrong weights differ by a tenth of it."""
    schedule = Schedule("none", 2_000, until_nodes=9_000)
    once = Schedule("none", 2_000, until_nodes=0)  # all weights are 1, and sums have no effect on regrets
    nodes, even = floored_sums(public_chance, once)
    gaps = []
    for module in (public_chance, mutant(public_chance, (WEIGHT, planted))):
        _, found = floored_sums(module, schedule)
        gaps.append(0.0)
        for name in (name for name in even[0] if name.startswith("strategy_sum")):
            weights = [min(before // 2_000 + 1, 5) ** 2 for before in nodes]
            wanted = sum(w * (b[name] - a[name]) for w, a, b in zip(weights, even, even[1:], strict=False))
            gaps[-1] = max(gaps[-1], np.abs(found[-1][name] - wanted).max() / wanted.max())
    assert nodes[-1] > 12_000
    assert gaps[0] < 1e-12 and gaps[1] > 0.1, gaps
