"""Vector code for row updates: the bits of scalar code, no writes beyond the row, random words."""

from unittest import mock

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstraction.kernels.jit import intrinsic, njit, types
from mccfr.common.rng import random_at
from mccfr.solvers import regret as scalar
from mccfr.solvers.regret import choose
from mccfr.solvers.sampling import packed_rows
from mccfr.solvers.sampling.outcome.paths import exploration, explores, uniform_like


@njit
def vector_matching(regret, start, actions, sigma, place):
    packed_rows.regret_matching_row(regret, start, actions, sigma, place)


@njit
def vector_both(regret, start, actions, u, even, sigma, place):
    return packed_rows.match_and_choose_row(regret, start, actions, u, even, sigma, place)


@intrinsic
def add_one_by_ends(typing_context, cells, start, actions):
    """Add 1 to a row, stored as on a processor without masked stores."""

    def codegen(context, builder, signature, arguments):
        cells_, start_, actions_ = arguments
        mask, place = (
            packed_rows._lane_mask(builder, actions_),
            packed_rows._pointer(context, builder, cells, cells_, start_),
        )
        row = packed_rows._load(builder, place, mask)
        with mock.patch.object(packed_rows, "stores_masked_vectors", bool):
            packed_rows._store(builder, builder.fadd(row, row.type([1.0] * packed_rows.LANES)), place, mask, actions_)
        return context.get_dummy_value()

    return types.void(cells, types.int64, actions), codegen


@njit
def vector_add_one_by_ends(cells, start, actions):
    add_one_by_ends(cells, start, actions)


@njit
def vector_add(sums, start, actions, sigma, place, weight, word):
    packed_rows.add_row(sums, start, actions, sigma, place, weight, word)


@njit
def vector_update(regret, start, actions, sigma, place, value, child, endings, weight):
    return packed_rows.update_row(regret, start, actions, (sigma, place), (value, child), endings, weight)


@njit
def vector_update_explored(regret, start, actions, sigma, place, value, child, endings, weight, floor):
    floored = weight, floor
    return packed_rows.update_explored_row(regret, start, actions, (sigma, place), (value, child), endings, floored)


@njit
def vector_update_sampled(regret, start, actions, action, worth, here, weight):
    packed_rows.update_sampled_row(regret, start, actions, action, (worth, here), weight)


@njit
def path_draws(word, step, array, share):
    drawn = random_at(word, step)
    return drawn, uniform_like(array, drawn), explores(drawn, share)


numbers = st.floats(-1e9, 1e9, width=32)
rows_of_numbers = st.lists(numbers, min_size=1, max_size=8)
words = st.integers(0, 2**64 - 1)
dtypes = st.sampled_from([np.float32, np.float64])


def framed(values, dtype, guard=99.0):
    """Return cells with guard values before and after, and room for eight lanes behind."""
    return np.array([guard, *values, *[guard] * 16], dtype)


def assert_same(one, other):
    """Check that arrays are equal to the last bit, except for the sign of zeros."""
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


draws = st.one_of(st.floats(0, 1, exclude_max=True), st.just(1 - 2.0**-53))


@settings(max_examples=300, deadline=None)
@given(rows_of_numbers, draws, st.booleans(), dtypes)
def test_strategy_and_choice(values, u, even, dtype):
    table, actions = framed(values, dtype), len(values)
    matched, both, plain = (np.full(10, 7.0, dtype) for _ in range(3))
    vector_matching(table, 1, actions, matched, 1)
    action = vector_both(table, 1, actions, u, even, both, 1)
    scalar.regret_matching(table, 1, actions, plain, 1)
    assert action == scalar.choose(table, 1, actions, u, even)
    assert even or max(values) <= 0 or table[1 + action] > 0
    assert_same(matched[: actions + 1], plain[: actions + 1])
    assert np.all(matched[actions + 1 : 9] == 0) and matched[9] == 7
    assert_same(both, matched)
    assert_same(table, framed(values, dtype))


@pytest.mark.parametrize("actions", range(1, 9))
def test_storing_a_row_without_masks_changes_no_cell_beyond_it(actions):
    cells = framed(range(actions), np.float32)
    expected = cells.copy()
    expected[1 : 1 + actions] += 1
    vector_add_one_by_ends(cells, 1, actions)
    assert_same(cells, expected)


@settings(max_examples=150, deadline=None)
@given(rows_of_numbers, rows_of_numbers, st.floats(0, 1e6), words, dtypes, dtypes)
def test_add(values, shares, weight, word, dtype, sigma_dtype):
    actions = min(len(values), len(shares))
    sigma = framed(np.abs(shares), sigma_dtype)
    vector, plain = (framed(np.abs(values), dtype) for _ in range(2))
    vector_add(vector, 1, actions, sigma, 1, weight, np.uint64(word))
    scalar.add(plain, 1, actions, sigma, 1, weight, np.uint64(word))
    assert_same(vector, plain)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(numbers, st.floats(0, 1, width=32), numbers, st.booleans()), min_size=1, max_size=8),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.floats(0, 1e6),
    st.floats(-1e9, 0),
    dtypes,
)
def test_update(cells, folds, ends, explored, weight, floor, dtype):
    """Update rows with all actions explored, and rows with pruned actions, whose values are NaN."""
    count, folds, ends = len(cells), int(folds), int(ends and not explored and len(cells) > 1)
    regrets, shares, values, pruned = (list(column) for column in zip(*cells, strict=True))
    gone = np.array(pruned) & explored & (np.arange(count) >= folds)
    sigma, value = np.array(shares + [0] * 8, dtype), np.where(gone, np.nan, values).astype(dtype)
    vector, plain = (framed(regrets, dtype) for _ in range(2))
    # The worklist has the values of non-terminal children; `endings` has those of terminals.
    worklist = framed(value[folds + ends :], dtype, guard=1e30)
    endings = (folds, values[0] if folds else 0.0, ends, values[folds] if ends else 0.0)
    given = vector, 1, count, sigma, 0, worklist, 1, endings, weight
    expected = scalar.total_of(np.where(gone, dtype(0), sigma[:count] * value), 0, count)
    if explored:
        total = vector_update_explored(*given, floor)
        scalar.update_explored(plain, 1, count, value, 0, dtype(expected), weight, floor)
        assert np.all(vector[1 : 1 + count][~gone] >= dtype(floor))
    else:
        total = vector_update(*given)
        scalar.update(plain, 1, count, value, 0, dtype(expected), weight)
    assert_same(np.array(total, dtype), np.array(expected, dtype))
    assert_same(vector, plain)
    np.testing.assert_array_equal(vector[1 : 1 + count][gone], np.array(regrets, dtype)[gone])


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
    """General records may have more than eight actions: lane sums, and choices by prefix sums."""
    generator = np.random.default_rng(actions)
    regrets, sigma = generator.normal(size=actions), np.zeros(actions)
    scalar.regret_matching(regrets, 0, actions, sigma, 0)
    positive = np.maximum(regrets, 0)
    expected = positive / positive.sum() if positive.any() else np.full(actions, 1 / actions)
    np.testing.assert_allclose(sigma, expected, rtol=1e-12)
    draws = (np.arange(2000) + 0.5) / 2000
    counts = np.bincount([scalar.choose(sigma, 0, actions, u) for u in draws], minlength=actions)
    np.testing.assert_allclose(counts / 2000, sigma, atol=1.01 / 2000)


@settings(max_examples=150, deadline=None)
@given(words, st.integers(0, 100), st.floats(0, 1), dtypes)
def test_random_words_of_a_path(word, step, epsilon, dtype):
    expected, share = naive.random_at(word, step), exploration(epsilon)
    drawn, u, exploring = path_draws(np.uint64(word), np.uint64(step), np.zeros(1, dtype), share)
    assert drawn == expected
    assert u == dtype((expected >> 32) / 2**32)
    assert exploring == (expected % 2**32 < int(epsilon * 2**32))


def test_actions_without_probability_are_never_chosen():
    """A draw above the sum of probabilities takes the last action with a positive probability."""
    sigma = np.array([0.0, 0.3, 0.3, 0.3, 0.0])
    assert choose(sigma, 0, 5, 0.95) == 3
    assert choose(sigma, 0, 5, 0.0) == 1
