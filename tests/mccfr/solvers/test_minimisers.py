"""Regret minimisers and variants: formulas, published algorithms, refused options."""

from dataclasses import replace
from math import inf, nan

import naive
import numpy as np
import pytest
from refusals import refusals, refused

from mccfr.solvers.minimisers import Rows, Tables, current_strategy, update_average, update_regrets
from mccfr.solvers.variants import PRESETS, Ramp, Variant, variant, warnings

DTYPES = (np.float32, np.float64)


def random_tables(dtype, optimistic=False, seed=1):
    generator = np.random.default_rng(seed)
    regret, basis, sums = (generator.normal(size=(7, 40)).astype(dtype) for _ in range(3))
    return Tables(regret, basis if optimistic else regret, np.abs(sums))


def strategy_of(name, regrets):
    """[A, K] float64 strategy that a variant makes of regrets."""
    table = np.ascontiguousarray(regrets, np.float64)
    sigma, rows = np.zeros_like(table), Rows(0, len(table), 0, table.shape[1])
    current_strategy(variant(name).step(1), Tables(table, table, table), rows, sigma, 0)
    return sigma


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["dcfr", "nh-dcfr", "optimistic-dcfr"])
def test_a_strategy_follows_from_the_basis_of_its_rows_alone(name, dtype):
    made = variant(name)
    tables, rows = random_tables(dtype, made.optimistic), Rows(2, 3, 5, 20)
    tables.basis[2:5, 7] = [-1, -2, 0]
    sigma = np.full((6, 30), 9, dtype)
    current_strategy(made.step(3), tables, rows, sigma, 1)
    block = tables.basis[2:5, 5:25].T.astype(np.float64)
    expected = naive.normal_hedge(block) if name == "nh-dcfr" else naive.regret_matching(block)
    expected[block.max(axis=1) <= 0] = 1 / 3
    assert expected[2, 0] == 1 / 3
    np.testing.assert_allclose(sigma[1:4, :20], expected.T, rtol=3e-6 if dtype == np.float32 else 1e-12, atol=1e-7)
    sigma[1:4, :20] = 9
    assert np.all(sigma == 9)  # nothing beside the block is touched


def test_normal_hedge_does_not_depend_on_scale():
    regrets = np.random.default_rng(4).normal(size=(9, 50))
    for scale in (1e-150, 1e150):
        np.testing.assert_allclose(strategy_of("nh-dcfr", scale * regrets), strategy_of("nh-dcfr", regrets), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRESETS)
def test_updates_equal_the_formulas(name, dtype):
    made, rows = variant(name), Rows(1, 4, 3, 30)
    if made.scheduled:
        made = replace(made, horizon=8)
    tables = random_tables(dtype, made.optimistic)
    generator = np.random.default_rng(2)
    values, sigma = generator.normal(size=(6, 35)).astype(dtype), generator.random((6, 35)).astype(dtype)
    total, reach = generator.normal(size=30).astype(dtype), generator.random(30).astype(dtype)
    old = Tables(*(table.astype(np.float64) for table in tables))
    block = np.s_[1:5, 3:33]
    t = 5
    update_average(made.step(t), tables, rows, sigma, 1, reach)
    update_regrets(made.step(t), tables, rows, values, 2, total)
    gain = values[2:6, :30].astype(np.float64) - total
    new = naive.discounted(old.regret[block] + gain, made, t)
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-15}
    np.testing.assert_allclose(tables.regret[block], new, **tolerance)
    sums = old.strategy_sum[block] * (4 / 5) ** naive.powers(made, t)[2] + reach * sigma[1:5, :30]
    np.testing.assert_allclose(tables.strategy_sum[block], sums, **tolerance)
    if made.optimistic:
        basis = new + gain if made.regret_minimiser == "predictive" else old.regret[block] + 2 * gain
        np.testing.assert_allclose(tables.basis[block], basis, **tolerance)
    for table, before in zip(tables, old, strict=True):
        outside = np.ones(table.shape, bool)
        outside[block] = False
        assert np.array_equal(table[outside], before[outside])


def test_parts_combine():
    made = variant("pdcfr+", updates="simultaneous", averaging_power=0)
    assert (made.optimistic, made.beta, made.alpha, made.averaging_power) == (True, -inf, 2.3, 0)
    assert not made.alternating
    assert variant("hs-dcfr-30", horizon=9) == replace(variant("hs-dcfr"), averaging_power=Ramp(30, 25), horizon=9)
    assert variant("hs-dcfr", alpha=1.5, horizon=10).powers(5) == (1.5, -2, 12.5)
    assert not variant("hs-pcfr+", averaging_power=2).scheduled


test_nonsense_costs_one_sentence = refusals(
    ("variant = 'cfr\\+\\+': one of cfr, ", {"name": "cfr++"}),
    ("regret_minimiser = 'hedge': one of regret-matching, ", {"name": Variant("hedge")}),
    ("updates = 'random': one of alternating, simultaneous", {"updates": "random"}),
    ("averaging_power = -1: .* at least 0", {"averaging_power": -1}),
    ("averaging_power = inf: a finite number", {"averaging_power": inf}),
    ("alpha = -inf: a number or inf", {"alpha": -inf}),
    ("alpha = nan", {"alpha": nan}),
    ("beta = nan", {"beta": nan}),
    ("beta = 0 with regret_minimiser = 'regret-matching-plus'", {"name": "cfr+", "beta": 0}),
    ("optimistic = false", {"name": Variant("predictive", beta=-inf)}),
    ("horizon = 100, and nothing of this variant follows a schedule", {"name": "dcfr+", "horizon": 100}),
    ("horizon = 0: at least 1 iteration", {"name": "hs-pcfr+", "horizon": 0}),
    ("beta = 0 with regret_minimiser = 'predictive'", {"name": "hs-pcfr+", "beta": 0}),
    call=lambda parts: variant(**parts),
)


def test_a_schedule_needs_a_horizon():
    refused(r"horizon = None: .* the planned number of iterations", variant("hs-dcfr").step, 1)


def test_unusual_settings_are_warned_of():
    assert "beta = 2 is above alpha = 1.5" in warnings(variant("dcfr", beta=2))[0]
    assert "alpha = -1" in warnings(variant("dcfr", alpha=-1, beta=-2))[0]
    assert [name for name in PRESETS if variant(name) != PRESETS[name] or warnings(variant(name))] == []
