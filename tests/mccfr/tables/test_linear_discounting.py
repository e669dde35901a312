"""Discounting: schedules, weights and sweeps against naive sweeps, and accuracy in long runs.

Shows:

* Discounting by weights equals sweeping the whole tables as the papers define it
  (test_external_sampling_equals_an_eager_sweep, test_outcome_sampling_equals_an_eager_sweep)
"""

import numpy as np
import pytest
from eager import EagerSweep, against_eager, factors, largest_difference, swept_tables
from harness import LEDUC, Trainer, rows

from abstraction.kernels.jit import njit
from mccfr.common.rng import next_word
from mccfr.solvers.dcfr_discount import DcfrDiscount
from mccfr.solvers.regret import add, update
from mccfr.tables.linear_discounting import Schedule

INF = np.inf
EXPONENTS = [(1.5, 0, 2), (1.5, 0.5, 2), (1.5, -INF, 2), (INF, -1, 0), (1, 1, 1)]
PERIODS = 105
UNTIL = 60  # periods after which discounting ends in some schedules


def schedules(period_nodes):
    """Return schedules of all kinds and parameters, and two whose discounting ends before the run."""
    every = [Schedule(kind, period_nodes) for kind in ("none", "linear", "initial")]
    every += [Schedule("dcfr", period_nodes, None, *exponents) for exponents in EXPONENTS]
    every += [Schedule(kind, period_nodes, UNTIL * period_nodes) for kind in ("linear", "dcfr")]
    return every


def name(schedule):
    return f"{schedule.kind} {schedule.alpha} {schedule.beta} {schedule.gamma} {schedule.until_nodes}"


@pytest.mark.parametrize("schedule", schedules(10_000), ids=name)
def test_external_sampling_equals_an_eager_sweep(schedule):
    errors = against_eager(LEDUC, schedule, PERIODS * 10_000)
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.parametrize("schedule", schedules(1_000), ids=name)
def test_outcome_sampling_equals_an_eager_sweep(schedule):
    """Use short periods: importance weights amplify rounding errors to 1e-6 after a million nodes."""
    errors = against_eager(LEDUC, schedule, PERIODS * 1_000, "outcome")
    assert max(errors.values()) < 1e-9, errors


@njit
def apply_updates(tables, updates, deltas, weight, rng):
    """Apply updates [E, 3] (first cell, actions, 1 for sums) with deltas [E, A], as kernels do."""
    for e in range(len(updates)):
        start, actions, to_sums = updates[e]
        if to_sums:
            add(tables.strategy_sum, start, actions, deltas[e], 0, weight, next_word(rng))
        else:
            update(tables.regret, start, actions, deltas[e], 0, 0.0, weight)


def record_updates(game, period_nodes, nodes):
    """Return the updates of an undiscounted run by iteration: rows [E, 3], deltas [E, A], periods [E]."""
    wide = {"regret_dtype": "float64", "sum_dtype": "float64"}
    trainer = Trainer(game, schedule=Schedule("none", period_nodes), **wide)
    cells, known = np.full(len(trainer.arrays.regret), -1), []
    for block, slots, _ in rows(game):
        for bucket in range(int(game.buckets[block])):
            for to_sums, kind in enumerate(("regret", "sum")):
                base = getattr(trainer.arrays, f"{kind}_base")[block]
                start = base + bucket * trainer.arrays.width[block] + slots.start
                cells[start : start + slots.stop - slots.start] = len(known)
                known.append((start, slots.stop - slots.start, to_sums))
    updates, deltas, periods = [], [], []
    flat, before = trainer.arrays.regret, trainer.arrays.regret.copy()  # regrets and sums lie in one float64 array
    while trainer.nodes < nodes:
        period = trainer.schedule.period(trainer.nodes)
        trainer.train(trainer.iterations + 1)
        changes = flat - before
        before[:] = flat
        for index in np.unique(cells[np.flatnonzero(changes)]):
            start, actions = known[index][:2]
            updates.append(known[index])
            deltas.append(np.pad(changes[start : start + actions], (0, 8 - actions)))
            periods.append(period)
    return np.array(updates, np.int64), np.array(deltas), np.array(periods)


@pytest.fixture(scope="module")
def stream():
    return record_updates(LEDUC, 2_000, PERIODS * 2_000)


ENDLESS = [schedule for schedule in schedules(2_000)[1:] if schedule.until_nodes is None]


@pytest.mark.parametrize("schedule", ENDLESS, ids=name)
def test_float32_tables_equal_an_eager_sweep_on_one_stream_of_updates(stream, schedule):
    updates, deltas, periods = stream
    run = Trainer(LEDUC, schedule=schedule, sum_dtype="float32")
    eager = [EagerSweep(LEDUC, spec=schedule, regret_dtype=t, sum_dtype=t) for t in ("float32", "float64")]
    for period in range(1, periods[-1] + 1):
        here, nodes = periods == period, (period - 1) * schedule.period_nodes
        run.sweep_at(nodes)
        apply_updates(run.arrays, updates[here], deltas[here], schedule.weight(nodes), run.rng)
        for twin in eager:
            twin.state.nodes = nodes
            twin.after_call()
            apply_updates(twin.arrays, updates[here], deltas[here], 1.0, twin.rng)
    assert periods[-1] >= 100
    for twin in eager:
        errors = largest_difference(LEDUC, swept_tables(run), twin.tables)
        assert max(errors.values()) < 1e-5, errors


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.5, 1.5])
def test_tables_stay_finite_and_exact_over_5000_periods(beta):
    schedule = Schedule("dcfr", 100, beta=beta)
    trainer = Trainer(LEDUC, schedule=schedule).train(nodes=500_100)
    assert trainer.state.ends >= 4_999
    for kind, table in trainer.tables.items():
        assert np.all(np.isfinite(table)), kind
    errors = against_eager(LEDUC, schedule, 500_100)
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.parametrize("exponents", [*EXPONENTS, (1.5, 1.5, 3), (-INF, INF, 0.5)], ids=str)
@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 5_000), (1_074, 1_076), (4_999, 5_000), (7, 7)])
def test_the_factor_of_several_periods_is_a_product(exponents, first, last):
    schedule = Schedule("dcfr", 10, None, *exponents)
    steps = np.array([factors(schedule, period) for period in range(first + 1, last + 1)]).reshape(-1, 3)
    assert schedule.factors(first, last) == pytest.approx(steps.prod(axis=0), rel=1e-9, abs=1e-290)


def test_schedules_follow_the_nodes():
    linear = Schedule("linear", 100, until_nodes=350)
    assert [linear.weight(nodes) for nodes in (0, 99, 100, 250, 350, 399, 400, 10**9)] == [1, 1, 2, 3, 4, 4, 4, 4]
    assert [linear.period_end(nodes) for nodes in (0, 99, 100)] == [100, 100, 200]
    initial = Schedule("initial", 100)
    assert [initial.weight(nodes) for nodes in (0, 99, 100, 10**9)] == [1, 1, 10, 10]
    dcfr = Schedule("dcfr", 100, until_nodes=1_000)
    assert [dcfr.ends(nodes) for nodes in (0, 99, 100, 999, 1_000, 5_000)] == [0, 0, 1, 9, 10, 10]
    assert [linear.sweeps, linear.ends(500), dcfr.sweeps] == [False, 0, True]


def test_a_sweep_applies_each_discount_once():
    table, sums = np.array([[4.0, -6.0]]), np.array([[5.0]])
    sweep = DcfrDiscount([table], [sums], Schedule("dcfr", 10), (0, 0))
    assert sweep.run(5, 50) == 5
    assert sweep.run(6, 50) == 6
    assert table.tolist() == [[4.0, -6.0]] and sums.tolist() == [[5.0]]
    assert sweep.run(5, 60) == 6
    assert table[0] == pytest.approx([4 * 6**1.5 / (6**1.5 + 1), -3]) and sums[0] == pytest.approx([5 * 36 / 49])


def test_additional_tables_are_swept_by_their_own_factors():
    learners, opponents = np.array([[4.0, -6.0]]), np.array([[4.0, -6.0]])
    sweep = DcfrDiscount([learners], [], Schedule("dcfr", 10, beta=1.0), (0, 0))
    sweep.also([opponents], Schedule("dcfr", 10))
    assert sweep.run(1, 20) == 2
    kept = 4 * 2**1.5 / (2**1.5 + 1)
    assert learners[0] == pytest.approx([kept, -4]) and opponents[0] == pytest.approx([kept, -3])
