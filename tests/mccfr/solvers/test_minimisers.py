"""Regret minimisers and variants: scale, parts, refused options; formulas: public/test_vector_cfr.py."""

from dataclasses import replace
from math import inf, nan

import numpy as np
from refusals import refusals, refused

from mccfr.solvers.minimisers import Rows, Tables, current_strategy
from mccfr.solvers.variants import PRESETS, Ramp, Variant, variant, warnings


def strategy_of(name, regrets):
    """[A, K] float64 strategy that a variant makes of regrets."""
    table = np.ascontiguousarray(regrets, np.float64)
    sigma, rows = np.zeros_like(table), Rows(0, len(table), 0, table.shape[1])
    current_strategy(variant(name).step(1), Tables(table, table, table), rows, sigma, 0)
    return sigma


def test_normal_hedge_does_not_depend_on_scale():
    regrets = np.random.default_rng(4).normal(size=(9, 50))
    for scale in (1e-150, 1e150):
        np.testing.assert_allclose(strategy_of("nh-dcfr", scale * regrets), strategy_of("nh-dcfr", regrets), rtol=1e-12)


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
