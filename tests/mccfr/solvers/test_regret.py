"""Regret matching and the choice of an action from it."""

import numpy as np
import pytest

from mccfr.solvers.regret import choose, regret_matching


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("regrets", "expected"),
    [
        ([3, 1, -2], [0.75, 0.25, 0]),
        ([-1, -2, -3], [1 / 3] * 3),
        ([0, 0, 0], [1 / 3] * 3),
        ([0, 5, 0], [0, 1, 0]),
        ([1e30, 1e30, -1e30], [0.5, 0.5, 0]),
    ],
)
def test_strategy_is_in_proportion_to_positive_regrets(dtype, regrets, expected):
    table = np.array([99, *regrets, 99], dtype)
    sigma = np.full(6, 7.0, dtype)
    regret_matching(table, 1, 3, sigma, 2)
    assert sigma.tolist() == pytest.approx([7, 7, *expected, 7])
    assert table.tolist() == np.array([99, *regrets, 99], dtype).tolist()


@pytest.mark.parametrize(("u", "action"), [(0.0, 1), (0.249, 1), (0.25, 2), (0.7499, 2), (0.75, 4), (1 - 2**-53, 4)])
def test_choice_counts_prefix_sums(u, action):
    sigma = np.array([9.0, 0.0, 0.25, 0.5, 0.0, 0.25, 0.0])
    assert choose(sigma, 1, 6, u) == action


def test_actions_without_probability_are_never_chosen():
    """Three thirds add up to a hair below 1; a draw above the sum takes the last action that can be played."""
    sigma = np.array([0.0, 0.3, 0.3, 0.3, 0.0])
    assert choose(sigma, 0, 5, 0.95) == 3
    assert choose(sigma, 0, 5, 0.0) == 1
