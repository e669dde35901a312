"""Discounts: schedules, lazy and weighted forms against eager sweeps, and what long runs do to floating point.

Shows:

* Lazy discounting is an eager sweep (test_external_sampling_equals_an_eager_sweep,
  test_outcome_sampling_equals_an_eager_sweep)
"""

import numpy as np
import pytest
from eager import EagerSweep, factors, largest_difference, lazy_against_eager, swept_tables
from harness import KUHN, LEDUC, Trainer, rows

from abstraction.kernels.jit import njit
from mccfr.rng import next_word
from mccfr.solvers.regret import add, discount_regrets, discount_sums, sum_discount, update
from mccfr.tables.discount import Discount, Schedule

INF = np.inf
EXPONENTS = [(1.5, 0, 2), (1.5, 0.5, 2), (1.5, -INF, 2), (INF, -1, 0), (1, 1, 1)]
PERIODS = 105
UNTIL = 60  # periods, where discounting ends before the run


def schedules(period_nodes):
    """Every kind of discount with its parameters, and one of each kind that ends before the run does."""
    every = [Schedule(kind, period_nodes) for kind in ("none", "linear", "initial")]
    every += [Schedule("dcfr", period_nodes, None, *exponents) for exponents in EXPONENTS]
    every += [Schedule(kind, period_nodes, UNTIL * period_nodes) for kind in ("linear", "dcfr")]
    every += [Schedule(kind, period_nodes, averaging_power=power) for kind, power in (("none", 2), ("linear", 2.5))]
    return [*every, Schedule("linear", period_nodes, UNTIL * period_nodes, averaging_power=2)]


def name(schedule):
    powers = f"{schedule.alpha} {schedule.beta} {schedule.gamma} {schedule.averaging_power}"
    return f"{schedule.kind} {powers} {schedule.until_nodes}"


@pytest.mark.parametrize("schedule", schedules(10_000), ids=name)
def test_external_sampling_equals_an_eager_sweep(schedule):
    errors = lazy_against_eager(LEDUC, schedule, PERIODS * 10_000)
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.parametrize("schedule", schedules(1_000), ids=name)
def test_outcome_sampling_equals_an_eager_sweep(schedule):
    """Shorter periods: importance weights amplify rounding, to 1e-6 and more after a million nodes."""
    errors = lazy_against_eager(LEDUC, schedule, PERIODS * 1_000, "outcome")
    assert max(errors.values()) < 1e-9, errors


@njit
def apply_to_sums(sums, stamps, update, delta, discount, rng):
    """One addition to a row of strategy sums, made as kernels do."""
    start, actions, _, stamp, _ = update
    if discount.lazy:
        keep = sum_discount(stamps, stamp, discount.ends, discount.sum_factors)
        discount_sums(sums, start, actions, keep, next_word(rng))
    add(sums, start, actions, delta, 0, discount.sum_weight, next_word(rng))


@njit
def apply_updates(tables, updates, deltas, discount, rng):
    """Updates [E, 5] int64 (first cell, actions, block, stamp, 1 for sums) with deltas [E, A], made as kernels do."""
    logs = discount.positive_factors, discount.negative_factors
    for e in range(len(updates)):
        start, actions, block, stamp, to_sums = updates[e]
        if to_sums and tables.wide[block]:
            apply_to_sums(tables.wide_sum, tables.stamp, updates[e], deltas[e], discount, rng)
        elif to_sums:
            apply_to_sums(tables.narrow_sum, tables.stamp, updates[e], deltas[e], discount, rng)
        else:
            if discount.lazy:
                discount_regrets(tables.regret, start, actions, tables.stamp, stamp, discount.ends, *logs)
            update(tables.regret, start, actions, deltas[e], 0, 0.0, discount.weight)


def record_updates(game, period_nodes, nodes):
    """The updates of an undiscounted run, iteration by iteration: rows [E, 5], deltas [E, A] and periods [E]."""
    wide = {"regret_dtype": "float64", "sum_dtype": "float64"}
    trainer = Trainer(game, schedule=Schedule("none", period_nodes), batch=1, **wide)
    stamped = Trainer(game, schedule=Schedule("dcfr"), **wide).arrays
    cells, known = np.full(len(trainer.arrays.regret), -1), []
    for block, slots, row in rows(game):
        for bucket in range(int(game.buckets[block])):
            for to_sums, kind in enumerate(("regret", "sum")):
                start = getattr(stamped, f"{kind}_base")[block] + bucket * stamped.width[block] + slots.start
                stamp = getattr(stamped, f"{kind}_stamp_base")[block] + bucket * stamped.rows[block] + row
                cells[start : start + slots.stop - slots.start] = len(known)
                known.append((start, slots.stop - slots.start, block, stamp, to_sums))
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
    lazy = Trainer(LEDUC, schedule=schedule, sum_dtype="float32")
    eager = [EagerSweep(LEDUC, spec=schedule, regret_dtype=t, sum_dtype=t) for t in ("float32", "float64")]
    for period in range(1, periods[-1] + 1):
        here, nodes = periods == period, (period - 1) * schedule.period_nodes
        lazy.nodes = nodes
        apply_updates(lazy.arrays, updates[here], deltas[here], schedule.at(nodes), lazy.rng)
        for twin in eager:
            twin.nodes = nodes
            twin.after_call()
            apply_updates(twin.arrays, updates[here], deltas[here], Schedule().at(0), twin.rng)
    assert periods[-1] >= 100
    for twin in eager:
        errors = largest_difference(LEDUC, swept_tables(lazy), twin.tables)
        assert max(errors.values()) < 1e-5, errors


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.5, 1.5])
def test_five_thousand_periods_stay_finite_and_right(beta):
    schedule = Schedule("dcfr", 100, beta=beta)
    trainer = Trainer(LEDUC, schedule=schedule).train(nodes=500_100)
    assert trainer.discount.ends >= 5_000
    for kind, table in trainer.tables.items():
        assert np.all(np.isfinite(table)), kind
    errors = lazy_against_eager(LEDUC, schedule, 500_100)
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.parametrize("exponents", [*EXPONENTS, (1.5, 1.5, 3), (-INF, INF, 0.5)], ids=str)
@pytest.mark.parametrize(
    ("stamp", "ends"), [(0, 1), (0, 5_000), (1_074, 1_076), (3_000, 3_003), (4_999, 5_000), (7, 7)]
)
def test_gap_equals_the_direct_product(exponents, stamp, ends):
    schedule = Schedule("dcfr", 10, None, *exponents)
    discount = schedule.at(10 * ends)
    steps = np.array([factors(schedule, period) for period in range(stamp + 1, ends + 1)]).reshape(-1, 3)
    up, down, shrink = steps.prod(axis=0)
    trainer = Trainer(KUHN, schedule=schedule, regret_dtype="float64", sum_dtype="float64")
    tables = trainer.arrays
    row, sums = int(tables.regret_base[0]), int(tables.sum_base[0])
    row_stamp, sum_stamp = int(tables.regret_stamp_base[0]), int(tables.sum_stamp_base[0])
    tables.regret[row : row + 2] = 3.0, -5.0
    tables.wide_sum[sums : sums + 2] = 7.0, 0.0
    tables.stamp[[row_stamp, sum_stamp]] = stamp
    for _ in range(2):  # a second call in the same period must change nothing
        logs = discount.positive_factors, discount.negative_factors
        discount_regrets(tables.regret, row, 2, tables.stamp, row_stamp, discount.ends, *logs)
        keep = sum_discount(tables.stamp, sum_stamp, discount.ends, discount.sum_factors)
        discount_sums(tables.wide_sum, sums, 2, keep, np.uint64(0))
    assert tables.stamp[[row_stamp, sum_stamp]].tolist() == [ends, ends]
    assert tables.regret[row : row + 2] == pytest.approx([3 * up, -5 * down], rel=1e-9, abs=1e-290)
    assert tables.wide_sum[sums : sums + 2] == pytest.approx([7 * shrink, 0], rel=1e-9, abs=1e-290)


def test_schedules_follow_the_nodes():
    linear = Schedule("linear", 100, until_nodes=350)
    assert [linear.weight(nodes) for nodes in (0, 99, 100, 250, 350, 399, 400, 10**9)] == [1, 1, 2, 3, 4, 4, 4, 4]
    assert [linear.period_end(nodes) for nodes in (0, 99, 100)] == [100, 100, 200]
    initial = Schedule("initial", 100)
    assert [initial.weight(nodes) for nodes in (0, 99, 100, 10**9)] == [1, 1, 10, 10]
    assert [initial.sum_weight(nodes) for nodes in (0, 99, 100, 10**9)] == [1, 1, 10, 10]
    squares = Schedule("none", 100, until_nodes=350, averaging_power=2)
    assert [squares.weight(nodes) for nodes in (0, 100, 250, 450)] == [1, 1, 1, 1]
    assert [squares.sum_weight(nodes) for nodes in (0, 99, 100, 250, 450)] == [1, 1, 4, 9, 25]
    dcfr = Schedule("dcfr", 100, until_nodes=1_000)
    assert [dcfr.at(nodes).ends for nodes in (0, 99, 100, 999, 1_000, 5_000)] == [0, 0, 1, 9, 10, 10]
    assert not linear.lazy
    assert dcfr.lazy


def test_schedule_uses_its_tables_again_and_grows_them():
    schedule = Schedule("dcfr", 10)
    known = schedule.at(0)
    again = schedule.at(500, known)
    assert again.sum_factors is known.sum_factors
    assert again.ends == 50
    grown = schedule.at(10_000, again)
    assert grown.ends == 1_000 < grown.sum_factors.shape[1]
    assert np.array_equal(grown.positive_factors[:, : known.positive_factors.shape[1]], known.positive_factors)
    assert isinstance(grown, Discount)


def test_a_worker_that_is_behind_leaves_a_row_as_it_is():
    """Workers pass a period's end at different moments: a row stamped by one ahead is not discounted again, or back."""
    discount = Schedule("dcfr", 10).at(50)
    regret, stamps = np.array([4.0, -6.0]), np.array([discount.ends + 1], np.uint32)
    logs = discount.positive_factors, discount.negative_factors
    discount_regrets(regret, 0, 2, stamps, 0, discount.ends, *logs)
    assert sum_discount(stamps, 0, discount.ends, discount.sum_factors) == 1
    assert regret.tolist() == [4.0, -6.0]
    assert stamps.tolist() == [discount.ends + 1]
