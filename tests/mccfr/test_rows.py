"""Rows as vectors give the same bits as their scalar twins, and never touch a cell beyond the row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstraction.jit import njit
from mccfr import regret as scalar
from mccfr.sampling import rows


@njit
def vector_matching(regret, start, actions, sigma, place):
    rows.regret_matching_row(regret, start, actions, sigma, place)


@njit
def vector_choice(sigma, place, u):
    return rows.choose_row(sigma, place, u)


@njit
def vector_add(sums, start, actions, sigma, place, weight):
    rows.add_row(sums, start, actions, sigma, place, weight)


@njit
def vector_update(regret, start, actions, sigma, place, value, child, endings, weight):
    return rows.update_row(regret, start, actions, sigma, place, value, child, endings, weight)


@njit
def vector_update_sampled(regret, start, actions, action, worth, here, weight):
    rows.update_sampled_row(regret, start, actions, action, worth, here, weight)


numbers = st.floats(-1e9, 1e9, width=32)
rows_of_numbers = st.lists(numbers, min_size=1, max_size=8)
dtypes = st.sampled_from([np.float32, np.float64])


def framed(values, dtype, guard=99.0):
    """Cells with guards around and enough room behind for eight lanes."""
    return np.array([guard, *values, *[guard] * 16], dtype)


def assert_same(one, other):
    """Equal to the last bit, but for the sign of zeros."""
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


@settings(max_examples=150, deadline=None)
@given(rows_of_numbers, dtypes)
def test_regret_matching(values, dtype):
    table = framed(values, dtype)
    vector, plain = (np.full(10, 7.0, dtype) for _ in range(2))
    vector_matching(table, 1, len(values), vector, 1)
    scalar.regret_matching(table, 1, len(values), plain, 1)
    assert_same(vector[: len(values) + 1], plain[: len(values) + 1])
    assert np.all(vector[len(values) + 1 : 9] == 0) and vector[9] == 7
    assert_same(table, framed(values, dtype))


@settings(max_examples=150, deadline=None)
@given(rows_of_numbers, st.floats(0, 1, exclude_max=True), dtypes)
def test_choice(values, u, dtype):
    sigma = np.zeros(8, dtype)
    vector_matching(framed(values, dtype), 1, len(values), sigma, 0)
    action = vector_choice(sigma, 0, u)
    if action >= len(values):
        action = scalar.last_possible(sigma, 0, len(values))
    assert action == scalar.choose(sigma, 0, len(values), u)
    assert sigma[action] > 0


@settings(max_examples=150, deadline=None)
@given(rows_of_numbers, rows_of_numbers, st.floats(0, 1e6), dtypes, dtypes)
def test_add(values, shares, weight, dtype, sigma_dtype):
    actions = min(len(values), len(shares))
    sigma = framed(shares, sigma_dtype)
    vector, plain = (framed(values, dtype) for _ in range(2))
    vector_add(vector, 1, actions, sigma, 1, weight)
    scalar.add(plain, 1, actions, sigma, 1, weight)
    assert_same(vector, plain)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(numbers, st.floats(0, 1, width=32), numbers), min_size=1, max_size=8),
    st.booleans(),
    st.booleans(),
    st.floats(0, 1e6),
    dtypes,
)
def test_update(cells, folds, ends, weight, dtype):
    regrets, shares, values = (list(column) for column in zip(*cells, strict=True))
    folds, ends = int(folds and len(cells) > 0), int(ends and len(cells) > 1)
    sigma, value = np.array(shares + [0] * 8, dtype), np.array(values, dtype)
    vector, plain = (framed(regrets, dtype) for _ in range(2))
    # Values of children as they lie in the worklist: the endings' are given apart.
    worklist = framed(values[folds + ends :], dtype, guard=1e30)
    endings = (folds, values[0], ends, values[folds] if ends else 0.0)
    total = vector_update(vector, 1, len(cells), sigma, 0, worklist, 1, endings, weight)
    products = sigma[: len(cells)] * value
    expected = scalar.total_of(products, 0, len(cells))
    scalar.update(plain, 1, len(cells), value, 0, dtype(expected), weight)
    assert_same(np.array(total, dtype), np.array(expected, dtype))
    assert_same(vector, plain)


@settings(max_examples=150, deadline=None)
@given(rows_of_numbers, st.integers(0, 7), numbers, numbers, st.floats(0, 1e6), dtypes)
def test_update_sampled(values, action, worth, here, weight, dtype):
    action %= len(values)
    vector, plain = (framed(values, dtype) for _ in range(2))
    vector_update_sampled(vector, 1, len(values), action, worth, here, weight)
    scalar.update_sampled(plain, 1, len(values), action, worth, here, weight)
    assert_same(vector, plain)


@pytest.mark.parametrize("actions", [1, 7, 8, 9, 20])
def test_scalar_rows_of_any_length(actions):
    """General records may have more than eight actions: sums in lanes, choices by plain prefix sums."""
    generator = np.random.default_rng(actions)
    regrets, sigma = generator.normal(size=actions), np.zeros(actions)
    scalar.regret_matching(regrets, 0, actions, sigma, 0)
    positive = np.maximum(regrets, 0)
    expected = positive / positive.sum() if positive.any() else np.full(actions, 1 / actions)
    np.testing.assert_allclose(sigma, expected, rtol=1e-12)
    draws = (np.arange(2000) + 0.5) / 2000
    counts = np.bincount([scalar.choose(sigma, 0, actions, u) for u in draws], minlength=actions)
    np.testing.assert_allclose(counts / 2000, sigma, atol=1.01 / 2000)
