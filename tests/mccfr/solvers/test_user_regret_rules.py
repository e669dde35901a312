"""User-defined regret rules: calls by kernels, all forms of full-width CFR, and checks.

Shows:

* Kernels pass each infoset's regrets unchanged to a user's rule (test_kernels_pass_regrets_unchanged_to_a_user_rule)
* Regret matching written by a user learns the tables of the built-in rule
  (test_user_defined_regret_matching_gives_the_tables_of_dcfr)
"""

import numpy as np
import pytest
from refusals import refusals
from toys import positive_part

import mccfr
from mccfr.solvers.minimisers import Rows, Tables, current_strategy


@mccfr.regret_rule
def least_bad(regrets, strategy):
    """A rule that uses negative regrets: the action with the largest regret gets probability 1."""
    best = 0
    for a in range(len(regrets)):
        strategy[a] = 0.0
        if regrets[a] > regrets[best]:
            best = a
    strategy[best] = 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", [positive_part, least_bad])
def test_kernels_pass_regrets_unchanged_to_a_user_rule(rule, dtype):
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
def test_user_defined_regret_matching_gives_the_tables_of_dcfr(game, options):
    """Compare on public trees, with and without in-place updates, and on histories, up to rounding."""
    ours, theirs = (
        mccfr.solver(mccfr.game(**game), "cfr", variant=name, **options) for name in ("dcfr", "toys:own_dcfr")
    )
    for solver in (ours, theirs):
        solver.run(iterations=8)
    for name, table in ours.tables.items():
        assert theirs.tables[name] == pytest.approx(table, rel=1e-9, abs=1e-9), name


test_rules_that_break_the_contract_are_refused = refusals(
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


def test_a_rule_that_does_not_compile_is_refused_in_one_line(tmp_path):
    @mccfr.regret_rule
    def python_only(regrets, strategy):
        strategy[:] = 1 / len(regrets)
        _ = {"a": object()}.items()

    with pytest.raises(ValueError, match=r"the regret rule .*python_only does not compile: ") as raised:
        _ = python_only.address
    assert "\n" not in str(raised.value)
