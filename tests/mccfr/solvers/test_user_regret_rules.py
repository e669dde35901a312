"""User-defined regret rules: kernel calls, every form of full-width CFR, checks.

Shows:

* Kernels pass each infoset's regrets unchanged to a user's rule (test_kernels_give_a_rule_every_column_as_it_stands)
* Regret matching written by a user learns the tables of the built-in rule
  (test_regret_matching_written_by_a_user_learns_what_dcfr_does)
"""

import numpy as np
import pytest
from refusals import refusals
from toys import positive_part

import mccfr
from mccfr.solvers.minimisers import Rows, Tables, current_strategy


@mccfr.regret_rule
def least_bad(regrets, strategy):
    """A rule that looks at negative regrets: all on the action whose regret is largest."""
    best = 0
    for a in range(len(regrets)):
        strategy[a] = 0.0
        if regrets[a] > regrets[best]:
            best = a
    strategy[best] = 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", [positive_part, least_bad])
def test_kernels_give_a_rule_every_column_as_it_stands(rule, dtype):
    rng = np.random.default_rng(1)
    basis = rng.normal(size=(9, 7)).astype(dtype)
    sigma = np.full((6, 5), np.nan, dtype)
    step = mccfr.Variant(rule).step(3)
    before = basis.copy()
    current_strategy(step, Tables(basis, basis, basis), Rows(2, 4, 1, 5), sigma, 1)
    assert np.array_equal(basis, before) and np.isnan(sigma[[0, 5]]).all()
    for k in range(5):
        expected = np.empty(4)
        rule.function(basis[2:6, 1 + k].astype(np.float64), expected)
        assert sigma[1:5, k] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ({"name": "leduc"}, {}),
        ({"name": "leduc"}, {"updates": "simultaneous"}),
        ({"name": "kuhn"}, {"pruning": "partial"}),
        ({"name": "goofspiel", "cards": 4}, {}),
    ],
    ids=str,
)
def test_regret_matching_written_by_a_user_learns_what_dcfr_does(game, options):
    """Over public trees, in place and not, and over histories: the same tables but for rounding."""
    ours, theirs = (
        mccfr.solver(mccfr.game(**game), "cfr", variant=name, **options) for name in ("dcfr", "toys:own_dcfr")
    )
    for solver in (ours, theirs):
        solver.run(iterations=8)
    for name, table in ours.tables.items():
        assert theirs.tables[name] == pytest.approx(table, rel=1e-9, abs=1e-9), name


test_rules_that_break_the_contract = refusals(
    ("probabilities are needed, which sum to 1", lambda regrets, strategy: None),
    ("probabilities are needed, which sum to 1", lambda regrets, strategy: strategy.fill(1.0)),
    (
        "scale",
        lambda regrets, strategy: strategy.__setitem__(
            slice(None), np.exp(np.tanh(regrets)) / np.exp(np.tanh(regrets)).sum()
        ),
    ),
    call=mccfr.regret_rule,
)


def test_a_rule_that_does_not_compile_is_told_of_in_one_sentence_before_anything_runs(tmp_path):
    @mccfr.regret_rule
    def python_only(regrets, strategy):
        strategy[:] = 1 / len(regrets)
        _ = {"a": object()}.items()

    with pytest.raises(ValueError, match=r"the regret rule .*python_only does not compile: ") as raised:
        _ = python_only.address
    assert "\n" not in str(raised.value)
