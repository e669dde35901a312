"""Rows of whole ranges as vectors: the minimisers' arithmetic to the last bit, and no cell beyond the row.

Shows:

* Full width's vectors of rows have the bits of loops (test_rows_as_vectors_have_the_bits_of_loops)
"""

import numpy as np
import pytest

from abstraction.kernels.jit import njit
from mccfr.solvers.minimisers import Rows, Tables, current_strategy, update_average, update_regrets
from mccfr.solvers.public.row_vectors import add_rows, average_rows, regret_rows, strategy_rows, times_rows
from mccfr.solvers.variants import variant

WIDTH = 48


@njit
def as_vectors(step, tables, rows, sigma, values):
    """A decision's strategy, into the average by the first row of values, its mean value, and the regrets."""
    strategy_rows(step, tables, rows, sigma, np.int64(1))
    average_rows(step, tables, rows, sigma, 1, values[0])
    add_rows(values, sigma, (np.int64(0), np.int64(1), np.int64(1), rows.actions, rows.count))
    regret_rows(step, tables, rows, values, np.int64(1), values[0])
    add_rows(values, sigma, (np.int64(0), np.int64(1), np.int64(-1), rows.actions, rows.count))
    times_rows(values, sigma, values[0], (np.int64(1), np.int64(1), rows.actions, rows.count))


def as_loops(step, tables, rows, sigma, values):
    """The same by `mccfr.solvers.minimisers`, and by numpy a product or sum at a time."""
    here, actions = slice(rows.count), range(1, 1 + rows.actions)
    current_strategy(step, tables, rows, sigma, 1)
    update_average(step, tables, rows, sigma, 1, values[0])
    values[0, here] = sigma[1, here] * values[1, here]
    for a in actions[1:]:
        values[0, here] += sigma[a, here] * values[a, here]
    update_regrets(step, tables, rows, values, 1, values[0])
    values[0, here] = values[1, here]
    for a in actions[1:]:
        values[0, here] += values[a, here]
    for a in actions:
        values[a, here] = sigma[a, here] * values[0, here]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 43])
@pytest.mark.parametrize("name", ["dcfr", "cfr+"])
def test_rows_as_vectors_have_the_bits_of_loops(count, name):
    draw, rows, step = np.random.default_rng(count), Rows(2, 3, 5, count), variant(name).step(7)
    regret, sums = (draw.normal(size=(5, 5 + count)).astype(np.float32) for _ in range(2))
    regret[2:, 5::3] = -np.abs(regret[2:, 5::3])  # nothing positive
    regret[2, 6::4] = -0.0
    sigma, values = np.zeros((4, WIDTH), np.float32), draw.normal(size=(4, WIDTH)).astype(np.float32)
    values[2, ::5] = values[1, ::5]
    found = []
    for how in (as_vectors, as_loops):
        regrets = regret.copy()
        arrays = (regrets, sums.copy(), sigma.copy(), values.copy())
        how(step, Tables(regrets, regrets, arrays[1]), rows, *arrays[2:])
        found.append(arrays)
    for one, other, width in zip(*found, (None, None, count, count), strict=True):
        assert one[:, :width].tobytes() == other[:, :width].tobytes()
    assert not np.array_equal(found[0][0], regret)
